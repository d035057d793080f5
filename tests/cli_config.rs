//! `config`, `doctor`, `verify` and the screen's single frame, on the real binary.

#[path = "common/cli.rs"]
mod cli;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use cli::{Home, text};
use samekey::config::EXAMPLE;

#[test]
fn init_writes_the_example_once_and_it_is_right() {
    let home = Home::new();
    home.ok(0, &["config", "init"]);
    let path = home.path(".config/samekey.toml");
    assert_eq!(std::fs::read_to_string(&path).expect("written"), EXAMPLE);
    home.ok(0, &["config", "check"]);
    std::fs::write(&path, "# mine\n").expect("edited");
    let error = home.ok(1, &["config", "init", "--json"]).error();
    assert_eq!(error["code"], "config_exists");
    assert_eq!(std::fs::read_to_string(&path).expect("kept"), "# mine\n");
    let other = home.path("other.toml");
    home.ok(0, &["--config", text(&other), "config", "init"]);
    assert!(other.exists());
}

#[test]
fn show_prints_what_is_in_force_and_reads_back() {
    let mut home = Home::new();
    let defaults = home.ok(0, &["config", "show"]).stdout;
    assert!(defaults.contains("absent: defaults"), "{defaults}");
    home.config("[providers.stripe]\n[engine]\nworkers = 2\n");
    assert_eq!(
        home.json(&["config", "show"])["providers"]["stripe"]["api_key"]["set"],
        false
    );
    home.set("STRIPE_API_KEY", cli::KEY);
    let shown = home.ok(0, &["config", "show"]).stdout;
    assert!(shown.contains("the key of stripe is set") && shown.contains("workers = 2"));
    home.config(&shown);
    assert_eq!(home.ok(0, &["config", "show"]).stdout, shown);
    let json = home.json(&["config", "show"]);
    assert_eq!(json["engine"]["workers"], 2);
    assert_eq!(json["providers"]["stripe"]["api_key"]["set"], true);
    assert_eq!(home.json(&["config", "check"])["valid"], true);
}

#[test]
fn flag_beats_environment_beats_file() {
    let mut home = Home::new();
    let ledger = |name: &str| format!("sqlite:{}", home.path(name).display());
    let (file, variable, flag) = (ledger("file.db"), ledger("variable.db"), ledger("flag.db"));
    home.config(&format!("[ledger]\nurl = \"{file}\"\n"));
    home.ok(0, &["submit", "issue_refund"]);
    assert!(home.path("file.db").exists());
    home.set("SAMEKEY_LEDGER", &variable);
    home.ok(0, &["submit", "issue_refund"]);
    assert!(home.path("variable.db").exists());
    home.ok(0, &["submit", "issue_refund", "--ledger", &flag]);
    assert!(home.path("flag.db").exists() && !home.ledger().exists());
    home.set("SAMEKEY_CONFIG", "none.toml");
    home.ok(2, &["config", "check"]);
    home.set("SAMEKEY_REVIEWER", "bob");
    home.ok(
        4,
        &[
            "--config",
            text(&home.path(".config/samekey.toml")),
            "clock",
            "accept",
        ],
    );
}

#[test]
fn doctor_names_what_is_unfit() {
    let home = Home::with_provider("http://127.0.0.1:9", "account = \"acct_1\"\n");
    home.ok(0, &["submit", "issue_refund"]);
    let checks = home.json(&["doctor"]);
    let state = |checks: &serde_json::Value, name: &str| {
        let all = checks.as_array().expect("checks").iter();
        let one = all
            .filter(|c| c["name"] == name)
            .map(|c| c["state"].clone())
            .next();
        one.unwrap_or_else(|| panic!("{name}: {checks}"))
    };
    for name in [
        "sqlite",
        "journal",
        "synchronous",
        "modes",
        "strict",
        "damage",
        "clock",
        "account",
        "secret",
    ] {
        assert_eq!(state(&checks, name), "ok", "{name}: {checks}");
    }
    assert_eq!(
        std::fs::metadata(home.ledger()).expect("meta").mode() & 0o777,
        0o600
    );
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(home.ledger(), open).expect("mode");
    let ran = home.ok(1, &["doctor", "--json"]);
    assert_eq!(state(&ran.json(), "modes"), "fail");

    let keyless = Home::new();
    keyless.config("[providers.stripe]\n");
    let ran = keyless.ok(1, &["doctor"]);
    assert!(ran.stdout.contains("STRIPE_API_KEY is not set"), "{ran:#?}");
    assert!(!keyless.ledger().exists(), "doctor makes nothing");
    std::fs::create_dir_all(keyless.ledger().parent().expect("a parent")).expect("made");
    std::fs::write(keyless.ledger(), "no ledger").expect("written");
    assert!(
        keyless
            .ok(1, &["doctor"])
            .stdout
            .contains("no SQLite database")
    );
}

#[test]
fn a_webhook_and_a_command_are_checked_and_the_url_is_never_shown_i30() {
    let mut home = Home::with_provider(
        "http://127.0.0.1:9",
        "account = \"acct_1\"\n[notify]\nwebhook_env = \"HOOK\"\ncommand = [\"/bin/sh\"]\n",
    );
    let says = |ran: &cli::Ran| {
        let checks = ran.json();
        let all = checks.as_array().expect("checks").iter();
        let notify = all.filter(|c| c["name"] == "notify" || c["name"] == "notices");
        notify
            .map(|c| format!("{} {}", c["state"], c["says"]))
            .collect::<Vec<_>>()
            .join("\n")
    };
    home.ok(0, &["submit", "issue_refund"]);
    let absent = says(&home.ok(1, &["doctor", "--json"]));
    assert!(absent.contains("HOOK is not set"), "{absent}");
    assert!(absent.contains("/bin/sh can be run"), "{absent}");
    assert_eq!(
        home.json(&["config", "show"])["notify"]["webhook"]["set"],
        false
    );
    home.set("HOOK", "http://hooks.example/T0K3N");
    let wrong = home.ok(1, &["doctor", "--json"]);
    assert!(says(&wrong).contains("must use https"), "{wrong:#?}");
    home.set("HOOK", "https://hooks.slack.com/services/T0K3N");
    let right = home.ok(0, &["doctor", "--json"]);
    assert!(says(&right).contains("well formed"), "{right:#?}");
    assert!(says(&right).contains("0 wait, 0 were told, 0 were given up"));
    let shown = home.ok(0, &["config", "show"]);
    assert!(shown.stdout.contains("the URL of the webhook is set"));
    home.config(&shown.stdout);
    assert_eq!(home.ok(0, &["config", "show"]).stdout, shown.stdout);
    for ran in [
        wrong,
        right,
        shown,
        home.ok(0, &["config", "show", "--json"]),
    ] {
        assert!(!format!("{ran:?}").contains("T0K3N"), "{ran:#?}");
    }
    let file = home.path("no-program");
    std::fs::write(&file, "").expect("written");
    home.config(&format!("[notify]\ncommand = [\"{}\"]\n", text(&file)));
    let no_program = says(&home.run(&["doctor", "--json"]));
    assert!(no_program.contains("not executable"), "{no_program}");
}

/// Whoever resolves orders can be asked; a table or a command that is not there fails before a call does (S43).
#[test]
fn what_resolves_orders_is_checked_s43() {
    let home = Home::new();
    let table = home.path("orders.csv");
    let says = |resolve: String| {
        home.config(&format!("[providers.stripe]\nresolve = {{ {resolve} }}\n"));
        home.run(&["doctor"]).stdout
    };
    let named = || format!("table = \"{}\"", text(&table));
    assert!(says(named()).contains("orders.csv cannot be read: no such file"));
    std::fs::write(&table, "4417,pi_1\n").expect("written");
    assert!(says(named()).contains("orders.csv can be read"));
    let command = format!("command = [\"{}\"]", text(&table));
    assert!(says(command).contains("orders.csv is not executable"));
    assert!(says("command = [\"/bin/sh\"]".to_owned()).contains("/bin/sh can be run"));
}

#[test]
fn completions_and_the_man_page_name_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.ok(0, &["completions", shell]).stdout;
        assert!(
            script.contains("reviewer") && script.contains("doctor"),
            "{shell}"
        );
    }
    home.ok(2, &["completions", "sh"]);
    let page = home.ok(0, &["man"]).stdout;
    assert!(page.contains(".TH samekey 1"), "{page}");
    for chapter in [
        ".SH SAMEKEY OPS CLOSE",
        ".SH SAMEKEY SUBMIT",
        ".SH SAMEKEY MAN",
    ] {
        assert!(page.contains(chapter), "{chapter}: {page}");
    }
    assert!(page.contains("--expect-version"), "its flags, too");
    assert!(!home.ledger().exists(), "nothing was made");
}

#[test]
fn verify_says_whether_and_where() {
    let home = Home::new();
    assert_eq!(
        home.ok(3, &["verify", "--json"]).error()["code"],
        "ledger_unreachable"
    );
    home.ok(0, &["submit", "issue_refund"]);
    assert_eq!(home.json(&["verify"])["violations"], serde_json::json!([]));
    // Also with a configuration that is wrong, where the ledger is named.
    home.config("nonsense");
    home.ok(2, &["verify"]);
    home.ok(0, &["--ledger", text(&home.ledger()), "verify"]);
}

/// A first look: the frame says what to configure, or that a demo exists; no size is too small.
#[test]
fn one_frame_is_text_at_any_size_u37() {
    let home = Home::new();
    let frame = home.ok(0, &["--snapshot", "80x24"]).stdout;
    assert!(
        frame.contains("[providers.stripe]") && frame.contains("demo"),
        "{frame}"
    );
    for size in ["20x5", "0x0", "1x1", "60x16", "500x200"] {
        let ran = home.ok(0, &["--snapshot", size]);
        assert!(cli::is_inert(&ran.stdout), "{size}");
    }
    assert!(home.ok(0, &["--snapshot", "20x5"]).stdout.contains('q'));
    home.ok(
        0,
        &[
            "--read-only",
            "--snapshot",
            "80x24",
            "--ascii",
            "--theme",
            "mono",
        ],
    );
    home.ok(2, &["--snapshot", "80x24", "--theme", "neon"]);
}
