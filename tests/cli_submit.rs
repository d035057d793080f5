//! `submit`, `calls`, `tools`, `sim`: a call on its way, as scripts see it.

#[path = "common/cli.rs"]
mod cli;

use std::io::{BufRead as _, BufReader};

use cli::{Home, KEY, simulator};
use serde_json::{Value, json};

const REFUND: [&str; 7] = [
    "issue_refund",
    "--arg",
    "order_id=4417",
    "--arg",
    "amount=38.00",
    "--arg",
    "currency=usd",
];

fn submit(more: &[&'static str]) -> Vec<&'static str> {
    [&["submit"][..], &REFUND, more].concat()
}

/// The seed's refund: one row, one effect, whatever the spelling and however often (R7, R62, F31).
#[tokio::test(flavor = "multi_thread")]
async fn one_refund_stays_one_r7() {
    let sim = simulator("honest").await;
    let home = Home::with_provider(&sim.base_url(), "");
    let first = home.json(&submit(&["--run"]));
    assert_eq!(first["status"], "refunded");
    assert!(first.get("repeat").is_none(), "{first}");
    let again = [
        "submit",
        "issue_refund",
        "--run",
        "--json-args",
        r#"{"currency":"USD", "amount_cents":3800,"order_id":" 4417 "}"#,
    ];
    let again = home.json(&again);
    assert_eq!(again["repeat"], true);
    assert_eq!(again["refund_id"], first["refund_id"]);
    assert_eq!(sim.effects().len(), 1, "I11");
    let calls = home.json(&["calls", "list"]);
    assert_eq!(calls.as_array().expect("calls").len(), 2);
    for call in calls.as_array().expect("calls") {
        assert_eq!(
            (&call["state"], &call["delivery"]),
            (&json!("answered"), &json!("delivered"))
        );
        assert!(
            call["accepted_at"].as_str() <= call["executed_at"].as_str(),
            "R85: {call}"
        );
    }
    sim.stop().await;
}

/// Exit codes of a call with a result: 0 refunded, unconfirmed, checking, held; 1 failed, rejected.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_decides_the_exit_code() {
    let caps = "[tools.issue_refund]\nmax_per_call = 1\n[tools.issue_refund.caps.usd]\n\
                max_amount_cents = 10000\napprove_over_cents = 5000\n";
    for (scenario, amount, code, status) in [
        ("honest", "amount=38.00", 0, "refunded"),
        ("reset-after-commit", "amount=38.00", 0, "unconfirmed"),
        ("saved-500-with-effect", "amount=38.00", 0, "checking"),
        ("honest", "amount=60.00", 0, "held"),
        ("refused", "amount=38.00", 1, "failed"),
        ("honest", "amount=200.00", 1, "rejected"),
    ] {
        let sim = simulator(scenario).await;
        let home = Home::with_provider(&sim.base_url(), caps);
        let args = [
            "submit",
            "issue_refund",
            "--run",
            "--json",
            "--arg",
            "order_id=1",
            "--arg",
        ];
        let ran = home.ok(
            code,
            &[&args[..], &[amount, "--arg", "currency=usd"]].concat(),
        );
        assert_eq!(ran.json()["status"], status, "{scenario} {ran:#?}");
        assert!(ran.stderr.is_empty(), "{ran:#?}");
        let text = home.run(&["calls", "list"]);
        assert!(text.stdout.contains(status), "{text:#?}");
        sim.stop().await;
    }
}

#[test]
fn a_queued_call_is_known_by_its_id() {
    let home = Home::new();
    let id = home.ok(0, &submit(&[])).stdout;
    assert!(id.starts_with("cli_") && id.lines().count() == 1, "{id}");
    let call = home.json(&["calls", "show", id.trim()]);
    assert_eq!(call["state"], "queued");
    assert_eq!(call["agent"], "cli");
    let arguments = json!({"amount":"38.00","currency":"usd","order_id":"4417"});
    assert_eq!(call["arguments"], arguments);
    assert_eq!(
        (&call["executed_at"], &call["delivered_at"]),
        (&Value::Null, &Value::Null)
    );

    let named = ["--call-id", "toolu_01", "--session", "s1"];
    for _ in 0..2 {
        let told = home.json(&submit(&named));
        assert_eq!(told, json!({"call_id":"toolu_01","state":"queued"}));
    }
    let other = [
        "submit",
        "issue_refund",
        "--call-id",
        "toolu_01",
        "--arg",
        "order_id=1",
        "--json",
    ];
    let error = home.ok(1, &other).error();
    assert_eq!(error["code"], "call_id_conflict");
    let queued = home.json(&["calls", "list", "--state", "queued"]);
    assert_eq!(queued.as_array().expect("calls").len(), 2);
    assert_eq!(
        home.ok(1, &["calls", "show", "nope", "--json"]).error()["code"],
        "no_such_call"
    );
}

/// A call that will be rejected is queued all the same, and its maker is told.
#[test]
fn a_queued_call_with_bad_money_is_announced() {
    let home = Home::new();
    let ran = home.ok(0, &["submit", "issue_refund", "--arg", "order_id=1"]);
    assert!(
        ran.stderr.contains("will be rejected: currency is missing"),
        "{ran:#?}"
    );
    assert!(ran.stdout.starts_with("cli_"), "{ran:#?}");
}

#[test]
fn a_wait_without_an_engine_ends_as_not_answered() {
    let home = Home::new();
    let error = home.ok(1, &submit(&["--wait", "0", "--json"])).error();
    assert_eq!(error["code"], "not_answered");
    let calls = home.json(&["calls", "list"]);
    assert_eq!(calls[0]["state"], "queued", "the call stays");
}

/// `--wait` prints what another process's engine answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_prints_what_an_engine_answers() {
    let sim = simulator("honest").await;
    let home = Home::with_provider(&sim.base_url(), "");
    let waiting = home.command(&submit(&["--wait", "50", "--json", "--call-id", "w"]));
    let waiting = { waiting }.spawn().expect("started");
    // The very same call, driven by a second process.
    home.json(&submit(&["--run", "--call-id", "w"]));
    let out = waiting.wait_with_output().expect("its output");
    assert_eq!(out.status.code(), Some(0));
    let result: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(result["status"], "refunded");
    assert_eq!(sim.effects().len(), 1);
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_tool_sends_nothing_and_only_a_lead_pauses_m55() {
    let sim = simulator("honest").await;
    let reviewers = "[reviewers.anna]\nrole = \"reviewer\"\n[reviewers.ben]\nrole = \"lead\"\n";
    let home = Home::with_provider(&sim.base_url(), reviewers);
    home.ok(0, &submit(&[]));
    let pause = ["tools", "pause", "issue_refund", "--note", "incident 7"];
    assert_eq!(
        home.ok(4, &[&pause[..], &["--json"]].concat()).error()["code"],
        "unknown_reviewer"
    );
    home.ok(4, &[&["--reviewer", "anna"][..], &pause].concat());
    home.ok(2, &["--reviewer", "ben", "tools", "pause", "issue_refund"]);
    home.ok(0, &[&["--reviewer", "ben"][..], &pause].concat());
    let tools = home.json(&["tools", "list"]);
    assert_eq!(tools[0]["paused"], json!({"by":"ben","why":"incident 7"}));
    let result = home.ok(1, &submit(&["--run", "--json"])).json();
    assert_eq!(
        (&result["status"], &result["class"]),
        (&json!("rejected"), &json!("unavailable"))
    );
    assert!(sim.effects().is_empty());
    home.ok(
        4,
        &["--reviewer", "anna", "tools", "resume", "issue_refund"],
    );
    home.ok(0, &["--reviewer", "ben", "tools", "resume", "issue_refund"]);
    assert_eq!(home.json(&submit(&["--run"]))["status"], "refunded");
    assert_eq!(
        home.ok(4, &["--reviewer", "anna", "clock", "accept", "--json"])
            .error()["code"],
        "not_permitted"
    );
    home.ok(0, &["--reviewer", "ben", "clock", "accept"]);
    sim.stop().await;
}

/// `sim` prints its address before anything else and ends on a signal.
#[test]
fn the_simulator_alone_tells_where_it_listens_and_ends_on_term() {
    let home = Home::new();
    let mut child = home
        .command(&[
            "sim",
            "--scenario",
            "saved-500-with-effect:1",
            "--seed",
            "3",
        ])
        .spawn()
        .expect("started");
    let mut line = String::new();
    let out = child.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let home = Home::with_provider(&format!("http://{}", line.trim()), "");
    assert_eq!(home.json(&submit(&["--run"]))["status"], "checking");
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("a pid"), rustix::process::Signal::TERM)
        .expect("sent");
    assert_eq!(child.wait().expect("ended").code(), Some(0));
}

/// Every result that leaves carries the sentence for the customer, in their language; the ledger's own
/// result does not (R57).
#[tokio::test(flavor = "multi_thread")]
async fn a_result_says_what_the_customer_may_hear_r57() {
    let sim = simulator("saved-500-with-effect").await;
    let home = Home::with_provider(&sim.base_url(), "");
    let result = home.json(&submit(&["--run", "--call-id", "t1"]));
    assert_eq!(result["status"], "checking");
    let says = "We cannot confirm your refund of USD 38.00 for order 4417 yet. \
                A colleague is checking and will answer in this chat.";
    assert_eq!(result["customer_message"], says);
    let shown = home.json(&["calls", "show", "t1"]);
    assert_eq!(shown["result"]["customer_message"], says);
    let text = home.ok(0, &["calls", "show", "t1"]).stdout;
    assert!(text.contains(says), "{text}");
    let op = result["operation_id"].as_str().expect("an id");
    let whole = home.json(&["ops", "show", op]);
    assert_eq!(whole["calls"][0]["result"]["customer_message"], says);
    // The answer is stored without it: the language may change, an answer never does.
    home.config(&format!(
        "[providers.stripe]\nbase_url = \"{}\"\n[ui]\nlanguage = \"ru\"\n",
        sim.base_url()
    ));
    let listed = home.json(&["calls", "list"]);
    let russian = "Мы пока не можем подтвердить возврат на сумму 38,00\u{a0}USD по заказу 4417. \
                   Наш сотрудник проверяет и ответит вам в этом чате.";
    assert_eq!(listed[0]["result"]["customer_message"], russian);
    let rejected = home.ok(
        1,
        &[
            "submit",
            "issue_refund",
            "--run",
            "--json",
            "--arg",
            "order_id=",
        ],
    );
    let rejected = rejected.json();
    assert_eq!(rejected["status"], "rejected");
    let says = rejected["customer_message"].as_str().expect("a sentence");
    assert!(says.contains("ничего не сделано"), "{says}");
    sim.stop().await;
}

/// No output of a whole life of a refund holds the key (I30).
#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_never_shown_i30() {
    let sim = simulator("honest").await;
    let mut home = Home::with_provider(&sim.base_url(), "");
    home.set("SAMEKEY_LOG", "trace");
    let op = home.ok(0, &submit(&["--run", "--json"])).json();
    let op = op["operation_id"].as_str().expect("an id").to_owned();
    for args in [
        &["ops", "show", &op, "--json"][..],
        &["config", "show"],
        &["config", "show", "--json"],
        &["doctor"],
        &["ops", "note", &op, "--note", "x"],
    ] {
        let ran = home.run(args);
        assert!(
            !format!("{}{}", ran.stdout, ran.stderr).contains(KEY),
            "{args:?}"
        );
    }
    let traced = home.run(&["clock", "accept"]);
    assert!(
        !traced.stderr.is_empty(),
        "the filter is in force: {traced:#?}"
    );
    let traced = home.run(&submit(&["--run"]));
    assert!(!traced.stderr.contains(KEY), "F93");
    sim.stop().await;
}
