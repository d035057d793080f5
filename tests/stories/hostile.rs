//! Text from outside that would act on a terminal.

use std::fmt::Write as _;

use crate::cli::is_inert;
use crate::escapes::{Escape, escapes};
use crate::pty::Pty;
use crate::stage::{SOON, Stage, TALL, selected};

/// Title, clipboard, a report that types, colours, a C1 control, reordering and hiding.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}]52;c;b3duZWQ=\u{7}\u{1b}[6n\u{1b}[5;31mPWNED\u{1b}c\
    \u{9b}5m\u{9d}52;c;eA==\u{9c}\u{202e}desrever\u{2066}\u{200b}\u{7f}\u{8}\rEND";

/// Everything in `raw` is what the screen itself says: no sequence of anybody else's.
fn assert_only_ours(raw: &[u8]) {
    for escape in escapes(raw) {
        let ours = match &escape {
            Escape::Csi(p, 'h' | 'l') => ["?25", "?1049", "?2004", "?2026"].contains(&p.as_str()),
            // The note's red is not the way in which the screen says a colour.
            Escape::Csi(p, 'm') => !["5", "31", "5;31"].contains(&p.as_str()),
            Escape::Csi(p, 'H' | 'J' | 'K') => p.chars().all(|c| c.is_ascii_digit() || c == ';'),
            Escape::Osc(text) => text.starts_with("9;samekey: "),
            // The bell that goes with the notice.
            Escape::Control(c) => *c == '\u{7}',
            Escape::Csi(..) | Escape::Other(_) | Escape::Invisible(_) => false,
        };
        assert!(ours, "{escape:?}");
    }
}

#[test]
fn a_hostile_note_is_shown_and_never_acts_i31_u49_u50() {
    let stage = Stage::new("saved-500-with-effect");
    let op = stage.refund("4417");
    let mut pty = stage.watch(TALL);
    pty.wait("the row and its history", |s| {
        selected(s).contains("? unknown") && s.contents().contains("TIMELINE")
    });
    stage.home.ok(0, &["ops", "note", &op, "--note", HOSTILE]);
    let text = pty.wait_for("PWNED");
    assert!(text.contains("END"), "\r moved nothing\n{text}");
    // Also while it is written, as terminals do that send pastes without brackets.
    pty.keys("n");
    pty.wait_for("ctrl-y confirm: note");
    pty.keys("tab").paste(HOSTILE);
    pty.wait("what was pasted", |s| {
        s.contents().matches("PWNED").count() >= 2
    });
    pty.keys("esc");
    pty.wait_gone("[ Cancel ]");
    pty.keys("q");
    assert!(pty.exit(SOON).success());
    assert_only_ours(&pty.raw());

    let shown = stage.home.ok(0, &["ops", "show", &op]).stdout;
    assert!(shown.contains("PWNED") && is_inert(&shown), "{shown:?}");
    let json = stage.home.ok(0, &["ops", "show", &op, "--json"]).stdout;
    assert!(json.contains("PWNED") && is_inert(&json), "{json:?}");
}

/// What the provider says about its refusal, and what the ledger's file is called.
#[test]
fn hostile_words_of_a_provider_and_of_a_file_never_act_f92_u49() {
    let stage = Stage::with("honest", "");
    let scenario = stage.home.path("hostile.toml");
    let mut message = String::new();
    for c in HOSTILE.chars() {
        write!(message, "\\u{:04x}", u32::from(c)).expect("written");
    }
    let script = format!(
        "about = \"A refusal with a sting.\"\n[[step]]\neffect = false\nsaved = true\n[step.answer]\n\
         status = 400\ntype = \"invalid_request_error\"\ncode = \"charge_disputed\"\nmessage = \"{message}\"\n"
    );
    std::fs::write(&scenario, script).expect("written");
    let mut command = stage.command(&["sim", "--scenario", "hostile.toml"]);
    command.cwd(stage.home.path(""));
    let sim = Pty::spawn(command, TALL);
    let address = sim.wait_for("127.0.0.1:");
    stage.home.config(&format!(
        "[providers.stripe]\nbase_url = \"http://{}\"\n[ui]\nrefresh = \"60s\"\n",
        address.trim()
    ));
    let ledger = format!(
        "sqlite:{}",
        stage.home.path("a\u{1b}]0;b\u{7}\u{202e}c.db").display()
    );
    let op = {
        let args = [
            "submit",
            "issue_refund",
            "--run",
            "--ledger",
            &ledger,
            "--json",
            "--arg",
            "order_id=4417",
            "--arg",
            "amount=38.00",
            "--arg",
            "currency=usd",
        ];
        let ran = stage.home.run(&args);
        assert!(is_inert(&ran.stdout) && is_inert(&ran.stderr), "{ran:?}");
        ran.json()["operation_id"]
            .as_str()
            .expect("an id")
            .to_owned()
    };
    for args in [
        &["ops", "show", &op][..],
        &["ops", "list"],
        &["calls", "list"],
        &["verify"],
        &["doctor"],
    ] {
        let ran = stage.home.run(&[args, &["--ledger", &ledger]].concat());
        assert!(
            is_inert(&ran.stdout) && is_inert(&ran.stderr),
            "{args:?} {ran:?}"
        );
    }
    let mut pty = Pty::spawn(stage.command(&["--no-engine", "--ledger", &ledger]), TALL);
    pty.wait_for("5 Failed 1");
    pty.keys("5");
    pty.wait("the row", |s| selected(s).contains("4417"));
    pty.keys("enter");
    pty.wait_for("PWNED");
    pty.keys("ctrl-c ctrl-c");
    assert!(pty.exit(SOON).success());
    assert_only_ours(&pty.raw());
}
