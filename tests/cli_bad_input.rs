//! Bad input of every kind: one clear sentence, the right exit code, no panic, nothing stored.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

#[path = "common/cli.rs"]
mod cli;

use cli::{Home, KEY, Ran, is_inert};

/// One sentence on standard error that says so, nothing on standard output, and with `--json` the
/// same as JSON.
fn says(home: &Home, args: &[&str], code: i32, part: &str) {
    let ran = home.run(args);
    assert_eq!(ran.code, code, "{args:?} {ran:#?}");
    assert!(ran.stderr.starts_with("error: "), "{args:?} {ran:#?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{args:?} {ran:#?}");
    assert!(ran.stderr.contains(part), "{args:?} {ran:#?}");
    assert!(ran.stdout.is_empty(), "{args:?} {ran:#?}");
    is_calm(&ran);
    let json = home.run(&[&["--json"], args].concat());
    assert_eq!(json.code, code, "{args:?} {json:#?}");
    let error = json.error();
    let message = error["message"].as_str().expect("a message");
    let hint = error["hint"].as_str().unwrap_or_default();
    assert!(
        message.contains(part) || hint.contains(part),
        "{args:?} {error}"
    );
    assert!(error["code"].is_string(), "{error}");
    is_calm(&json);
}

fn is_calm(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        assert!(is_inert(text), "I31: {ran:#?}");
        assert!(!text.contains("panicked"), "{ran:#?}");
        assert!(!text.contains(KEY), "I30: {ran:#?}");
    }
}

#[test]
fn wrong_usage_is_one_sentence_and_exit_2() {
    let home = Home::new();
    for (args, part) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["ops"], "a command is missing"),
        (&["ops", "frob"], "frob"),
        (&["ops", "list", "--limt", "1"], "--limt"),
        (&["ops", "list", "--limit", "0"], "0"),
        (&["ops", "list", "--limit", "-1"], "-1"),
        (&["ops", "list", "--status", "blue"], "review, open"),
        (&["ops", "list", "--sort", "size"], "updated, created"),
        (
            &["ops", "close", "op_1", "--as", "done", "--note", "x"],
            "refunded, succeeded",
        ),
        (&["ops", "close", "op_1", "--as", "failed"], "--note"),
        (&["ops", "show", ""], "empty"),
        (&["ops", "show", "op\u{202e}1"], "bidirectional"),
        (&["calls", "list", "--state", "x"], "queued, running"),
        (&["submit"], "<TOOL>"),
        (
            &["submit", "issue_refund", "--wait", "1", "--run"],
            "--wait",
        ),
        (&["submit", "issue_refund", "--wait", "soon"], "soon"),
        (&["submit", "issue_refund", "--call-id", "a\nb"], "control"),
        (
            &["submit", "issue_refund", "--call-id", "approval:op_1"],
            "reserved",
        ),
        (&["sim", "--listen", "nowhere"], "nowhere"),
        (&["sim", "--scenario", "sunny"], "sunny"),
        (&["sim", "--scenario", "slow:0"], "0"),
        (&["sim", "--scenario", "./none.toml"], "none.toml"),
        (
            &["sim", "--webhook", "http://127.0.0.1:1/x"],
            "--webhook-secret",
        ),
        (
            &["sim", "--webhook", "ftp://x", "--webhook-secret", "whsec_a"],
            "http",
        ),
        (&["sim", "--latency", "20"], "20ms"),
        (&["sim", "--speed", "0"], "0"),
        (&["--snapshot", "80"], "columns x rows"),
        (&["--snapshot", "axb"], "columns x rows"),
        (&["--snapshot", "99999x3"], "columns x rows"),
        (&["--snapshot", "80x24", "ops", "list"], "--snapshot"),
        (&["--read-only", "verify"], "--read-only"),
        (&["--color", "pink"], "pink"),
        (&["--reviewer", "", "ops", "list"], "empty"),
        (
            &["--ledger", "postgres://db/x", "ops", "list"],
            "not in this version",
        ),
        (
            &["--ledger", "sqlite::memory:", "ops", "list"],
            "names no file",
        ),
        (&["--ledger", "http://x/y", "ops", "list"], "sqlite:"),
        (
            &["demo", "--keep", "a.db", "--ledger", "sqlite:b.db"],
            "--keep",
        ),
        (&["demo", "--keep", "nowhere/a.db", "--headless"], "nowhere"),
        (&["tools", "pause"], "<TOOL>"),
    ] {
        says(&home, args, 2, part);
    }
}

/// The screen needs a terminal; its sentence names the way without one.
#[test]
fn a_screen_without_a_terminal_names_snapshot() {
    let home = Home::new();
    says(&home, &[], 2, "--snapshot");
    says(&home, &["--no-engine"], 2, "--snapshot");
    says(&home, &["demo"], 2, "demo --snapshot");
    assert!(!home.ledger().exists(), "nothing was made");
}

#[test]
fn a_wrong_configuration_ends_every_command_with_its_line() {
    let home = Home::new();
    for (text, part) in [
        ("[engine]\nworkerz = 8\n", "samekey.toml:2: engine.workerz"),
        ("[notify]\n", "names nobody to tell"),
        ("[engine]\nlease = 30\n", "no unit"),
        ("this is not toml", "not TOML"),
        (
            "[providers.stripe]\napi_key = \"x\"\n",
            "never stands in this file",
        ),
    ] {
        home.config(text);
        for args in [
            &["config", "check"][..],
            &["config", "show"],
            &["ops", "list"],
            &["submit", "issue_refund"],
            &["doctor"],
            &["--snapshot", "80x24"],
        ] {
            says(&home, args, 2, part);
        }
    }
    says(
        &home,
        &["--config", "none.toml", "config", "check"],
        2,
        "none.toml",
    );
    says(
        &home,
        &["--config", ".", "ops", "list"],
        2,
        "not a configuration file",
    );
}

/// Unknown tool, malformed `--arg`, broken JSON: wrong usage, and not even a ledger is made.
#[test]
fn a_call_that_cannot_be_read_is_not_stored() {
    let home = Home::new();
    let deep = "[".repeat(10_000);
    let long = format!("{{\"order_id\":\"{}\"}}", "9".repeat(70_000));
    for (args, part) in [
        (&["submit", "send_mail"][..], "no tool"),
        (&["submit", "issue\u{1b}[2J_refund"], "no tool"),
        (&["submit", "issue_refund", "--arg", "order_id"], "K=V"),
        (&["submit", "issue_refund", "--arg", "=1"], "K=V"),
        (
            &["submit", "issue_refund", "--arg", "a=1", "--arg", "a=2"],
            "twice",
        ),
        (
            &["submit", "issue_refund", "--json-args", "{"],
            "not a JSON object",
        ),
        (
            &["submit", "issue_refund", "--json-args", "[1]"],
            "not a JSON object",
        ),
        (
            &["submit", "issue_refund", "--json-args", "{\"a\":1,\"a\":2}"],
            "twice",
        ),
        (
            &["submit", "issue_refund", "--json-args", &deep],
            "not a JSON object",
        ),
        (
            &["submit", "issue_refund", "--json-args", &long],
            "longer than",
        ),
        (
            &["submit", "issue_refund", "--run"],
            "no provider is configured",
        ),
    ] {
        says(&home, args, 2, part);
    }
    assert!(!home.ledger().exists(), "nothing was stored");
}

/// Malformed money is `rejected` in the tool's own words: exit 1, and nothing reached the provider.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_money_is_rejected_f29() {
    let sim = cli::simulator("honest").await;
    let home = Home::with_provider(&sim.base_url(), "");
    let many = "9".repeat(400);
    for (key, value, currency, part) in [
        ("amount", "38.0.0", "usd", "not a decimal"),
        ("amount", "1e3", "usd", "not a decimal"),
        ("amount", "-5", "usd", "above zero"),
        ("amount", "NaN", "usd", "not a decimal"),
        ("amount", "0", "usd", "above zero"),
        ("amount", "38.001", "usd", "more decimals"),
        ("amount", &many, "usd", "larger than"),
        ("amount", "1.5", "jpy", "more decimals"),
        ("amount", "", "usd", "not a decimal"),
        ("amount", "٣٨", "usd", "not a decimal"),
        ("amount", "5", "xyz", "ISO 4217"),
        ("amount", "5", "", "ISO 4217"),
        ("amount_cents", "38.0.0", "usd", "whole number"),
        ("amount_cents", "1e3", "usd", "whole number"),
        ("amount_cents", "-5", "usd", "above zero"),
        ("amount_cents", "NaN", "usd", "whole number"),
        ("amount_cents", "0", "usd", "above zero"),
        ("amount_cents", &many, "usd", "whole number"),
    ] {
        let (amount, currency) = (format!("{key}={value}"), format!("currency={currency}"));
        let ran = home.ok(
            1,
            &[
                "submit",
                "issue_refund",
                "--run",
                "--json",
                "--arg",
                "order_id=4417",
                "--arg",
                &amount,
                "--arg",
                &currency,
            ],
        );
        let result = ran.json();
        assert_eq!(result["status"], "rejected", "{amount} {result}");
        assert_eq!(result["class"], "validation_failure", "{amount} {result}");
        let reason = result["reason"].as_str().expect("a reason");
        assert!(reason.contains(part), "{amount} {reason}");
        is_calm(&ran);
    }
    for order in ["order_id=", "order_id=  ", "order_id=44\u{202e}17"] {
        let args = ["--arg", order, "--arg", "amount=1", "--arg", "currency=usd"];
        let ran = home.ok(
            1,
            &[&["submit", "issue_refund", "--run"][..], &args].concat(),
        );
        assert!(ran.stdout.contains("order_id"), "{ran:#?}");
        is_calm(&ran);
    }
    assert!(sim.effects().is_empty() && sim.requests().is_empty());
    assert_eq!(home.json(&["ops", "list"]), serde_json::json!([]));
    sim.stop().await;
}

#[test]
fn a_ledger_that_is_none_is_exit_3_and_stays_as_it_is() {
    let home = Home::new();
    let text = "these are not the rows you are looking for";
    std::fs::write(home.path("text.db"), text).expect("written");
    std::fs::write(home.path("empty.db"), "").expect("written");
    std::fs::create_dir(home.path("dir.db")).expect("made");
    for file in ["text.db", "dir.db", "none.db", "nowhere/x.db"] {
        let url = format!("sqlite:{file}");
        for command in [
            &["ops", "list"][..],
            &["ops", "show", "op_1"],
            &["calls", "list"],
            &["tools", "list"],
            &["clock", "accept"],
            &["ops", "close", "op_1", "--as", "failed", "--note", "x"],
            &["--snapshot", "80x24"],
        ] {
            let name = file.split('/').next().expect("a name");
            says(&home, &[&["--ledger", &url], command].concat(), 3, name);
        }
    }
    for file in ["text.db", "dir.db", "nowhere/x.db"] {
        let url = format!("sqlite:{file}");
        let name = file.split('/').next().expect("a name");
        says(
            &home,
            &["--ledger", &url, "submit", "issue_refund"],
            3,
            name,
        );
    }
    let kept = std::fs::read_to_string(home.path("text.db")).expect("still there");
    assert_eq!(kept, text);
    assert!(!home.path("nowhere").exists() && !home.path("none.db").exists());
}

/// A provider that is down: the call is rejected as unavailable, asking again is safe.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_makes_no_row() {
    let sim = cli::simulator("honest").await;
    let home = Home::with_provider(&sim.base_url(), "");
    sim.stop().await;
    let args = [
        "--arg",
        "order_id=4417",
        "--arg",
        "amount=38",
        "--arg",
        "currency=usd",
    ];
    let ran = home.ok(
        1,
        &[&["submit", "issue_refund", "--run", "--json"][..], &args].concat(),
    );
    let result = ran.json();
    assert_eq!(
        (&result["status"], &result["class"]),
        (&"rejected".into(), &"unavailable".into())
    );
    assert!(ran.stderr.is_empty(), "{ran:#?}");
    is_calm(&ran);
    assert_eq!(home.json(&["ops", "list"]), serde_json::json!([]));
}

/// A key that is missing, readable by others, or no key: exit 2, and its text is never shown (I30).
#[test]
fn a_key_that_cannot_be_used_is_exit_2() {
    let submit = ["submit", "issue_refund", "--run"];
    let mut home = Home::with_provider("http://127.0.0.1:9", "api_key_env = \"OTHER\"\n");
    says(&home, &submit, 2, "OTHER is not set");
    home.set("OTHER", "two words");
    says(&home, &submit, 2, "OTHER");
    let mut home = Home::with_provider("http://127.0.0.1:9", "");
    home.set("STRIPE_API_KEY", "pk_test_123");
    says(&home, &submit, 2, "sk_test_");
    let key = home.path("key");
    std::fs::write(&key, KEY).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&key, mode).expect("mode");
    home.config(&format!("[providers.stripe]\napi_key_file = {key:?}\n"));
    says(&home, &submit, 2, "chmod 600");
    assert!(!home.ledger().exists());
}

#[test]
fn a_live_key_is_not_sent_in_the_clear() {
    let mut home = Home::with_provider("http://127.0.0.1:9", "");
    home.set("STRIPE_API_KEY", "sk_live_123");
    says(&home, &["submit", "issue_refund", "--run"], 2, "live key");
}

/// What hostile text becomes on its way out (I31, U50).
#[test]
fn hostile_text_in_a_stored_call_cannot_act() {
    let home = Home::new();
    let json = r#"{"order_id":"a\u001b[2J\u202e\u009b","currency":"usd","amount":"1"}"#;
    let submit = [
        "submit",
        "issue_refund",
        "--json-args",
        json,
        "--call-id",
        "c1",
    ];
    is_calm(&home.ok(0, &submit));
    for args in [
        &["calls", "show", "c1"][..],
        &["calls", "show", "c1", "--json"],
        &["calls", "list", "--json"],
        &["calls", "list"],
    ] {
        is_calm(&home.ok(0, args));
    }
    let shown = home.json(&["calls", "show", "c1"]);
    assert_eq!(shown["arguments"]["order_id"], "a\u{1b}[2J\u{202e}\u{9b}");
}

/// A command that can write no file beyond `blocks` times 1024 bytes, as on a disk that is full.
fn on_a_full_disk(home: &Home, args: &[&str], blocks: u32) -> std::process::Output {
    let plain = home.command(args);
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", &script])
        .arg(plain.get_program())
        .args(plain.get_args())
        .env_clear()
        .envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .current_dir(home.path(""));
    command.output().expect("run")
}

/// F81, F82: where nothing can be written a command ends with 3 and one sentence; what it acknowledged
/// before is there, the ledger is whole, and goes on once there is room again.
#[test]
fn a_full_disk_is_told_and_loses_nothing_f82() {
    let home = Home::new();
    let submit = |id: &str| {
        let arguments = r#"{"order_id":"4417","amount_cents":3800,"currency":"usd"}"#;
        [
            "submit",
            "issue_refund",
            "--json",
            "--json-args",
            arguments,
            "--call-id",
            id,
        ]
        .map(str::to_owned)
    };
    let first = submit("before");
    home.ok(0, &first);
    let (mut acknowledged, mut refused) = (vec!["before".to_owned()], 0);
    // From nothing at all to room for a few pages of the log, each five times.
    for (round, blocks) in [0, 33, 48, 64, 100].into_iter().enumerate() {
        for n in 0..5 {
            let id = format!("full_{round}_{n}");
            let args = submit(&id);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let out = on_a_full_disk(&home, &args, blocks);
            let said = String::from_utf8(out.stderr).expect("UTF-8");
            match out.status.code() {
                Some(0) => acknowledged.push(id),
                Some(3) => {
                    let error: serde_json::Value = serde_json::from_str(&said).expect(&said);
                    assert!(error["error"]["message"].is_string(), "{said}");
                    refused += 1;
                }
                other => panic!("{other:?} with {blocks}: {said}"),
            }
        }
    }
    println!("{refused} refused, {} acknowledged", acknowledged.len());
    assert!(refused >= 5, "{refused}");
    home.ok(0, &["verify"]);
    for id in &acknowledged {
        assert_eq!(home.json(&["calls", "show", id])["state"], "queued", "{id}");
    }
    home.ok(0, &submit("after"));
    home.ok(0, &["verify"]);
}
