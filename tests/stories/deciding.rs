//! A person settles what nobody knows.

use std::time::Duration;

use crate::cli::text;
use crate::pty::Pty;
use crate::stage::{LARGE, SMALL, SOON, Stage, asked_about, selected, token};

/// The main job, on the demo as the README promises it: look, look up, be refused the wrong
/// closing, close, and find the same in the ledger.
#[test]
fn an_unknown_row_is_looked_up_and_closed_with_token_and_note() {
    let stage = Stage::new("honest");
    let kept = stage.home.path("kept.db");
    let args = ["demo", "--scenario", "saved-500-with-effect", "--keep"];
    let mut pty = Pty::spawn(stage.command(&[&args[..], &[text(&kept)]].concat()), LARGE);
    pty.wait("an unknown row", |s| selected(s).contains("? unknown"));
    // Whoever moves has the list in hand.
    pty.keys("k");
    pty.wait_gone("following");

    pty.keys("L");
    let dialog = pty.wait_for("ctrl-y confirm: look up");
    assert!(dialog.contains("/v1/refunds?payment_intent="), "{dialog}");
    assert!(dialog.contains("only reads; closes nothing"), "{dialog}");
    let op = asked_about(&dialog);
    pty.keys("ctrl-y");
    pty.wait("the verdict", |s| {
        let row = selected(s);
        row.contains(token(&op)) && row.contains("R confirmed")
    });

    pty.keys("F");
    let refused = pty.wait_for("not now: close as failed");
    assert!(refused.contains("the provider has our refund"), "{refused}");
    pty.keys("esc");
    pty.wait_gone("not now: close as failed");

    pty.keys("R");
    let dialog = pty.wait_for("ctrl-y confirm: close as refunded");
    assert_eq!(asked_about(&dialog), op, "U2");
    assert!(dialog.contains("does not call the provider"), "{dialog}");
    // The key alone does nothing yet: the token is asked for.
    pty.keys("ctrl-y");
    pty.wait_for("the operation's last four do not match");
    pty.send(token(&op)).keys("tab");
    pty.send("seen at stripe");
    pty.wait_for("[seen at stripe ");
    pty.keys("ctrl-y");
    pty.wait_for("closed as refunded");

    pty.keys("3");
    let short = format!("op_…{}", token(&op));
    pty.wait("it left the unknown ones", |s| {
        let text = s.contents();
        text.contains(" REASON ") && !text.contains(&short)
    });
    pty.keys("q");
    assert!(pty.exit(SOON).success());

    let ledger = format!("sqlite:{}", text(&kept));
    let show = stage.home.json(&["ops", "show", &op, "--ledger", &ledger]);
    assert_eq!(show["status"], "succeeded");
    assert_eq!(show["verdict"], "confirmed");
    let by = show["closed_by"].as_str().expect("somebody");
    assert!(by.starts_with("reviewer:"), "{by}");
    let audit = show["audit"].to_string();
    assert!(audit.contains("seen at stripe"), "{audit}");
    stage.home.ok(0, &["verify", "--ledger", &ledger]);
}

/// Reading fails: the screen turns stale and nobody may act on it; then it comes back by itself.
#[test]
fn a_ledger_that_cannot_be_read_turns_the_screen_stale_and_refuses_u20() {
    let stage = Stage::with("saved-500-with-effect", "[ui]\nrefresh = \"2s\"\n");
    let op = stage.refund("4417");
    let mut pty = stage.watch(LARGE);
    pty.wait("the row", |s| selected(s).contains("? unknown"));
    let away = [
        "PRAGMA legacy_alter_table = ON",
        "ALTER TABLE operations RENAME TO operations_away",
    ];
    stage.sql(&away).let_go(&stage);
    pty.wait_for("the ledger cannot be reached");
    let text = pty.wait_for("STALE");
    assert!(text.contains(token(&op)), "what was read stays\n{text}");
    pty.keys("L");
    pty.wait_for("the screen is out of date; nobody may act");
    assert!(!pty.text().contains("[ Cancel ]"));
    let back = [
        "PRAGMA legacy_alter_table = ON",
        "ALTER TABLE operations_away RENAME TO operations",
    ];
    stage.sql(&back).let_go(&stage);
    pty.wait_gone("STALE");
    pty.wait_gone("the ledger cannot be reached");
    pty.keys("L");
    pty.wait_for("ctrl-y confirm: look up");
}

/// Another process holds the ledger's lock: the screen says what it waits for, and not that it is
/// done (U21, U58).
#[test]
fn a_busy_ledger_is_waited_for_and_nothing_is_claimed_meanwhile_u21_u58() {
    let stage = Stage::new("saved-500-with-effect");
    let op = stage.refund("4417");
    let mut pty = stage.watch(SMALL);
    pty.wait("the row", |s| selected(s).contains("? unknown"));
    pty.keys("n");
    pty.wait_for("ctrl-y confirm: note");
    pty.keys("tab 'waited'");
    pty.wait_for("[waited ");
    let lock = stage.sql(&["BEGIN IMMEDIATE"]);
    pty.keys("ctrl-y");
    pty.wait_for("writing");
    pty.keys("esc");
    pty.wait_for("cannot be taken back");
    assert!(!stage.show(&op)["audit"].to_string().contains("waited"));
    lock.let_go(&stage);
    pty.wait_for("noted");
    pty.wait_gone("[ Cancel ]");
    assert!(stage.show(&op)["audit"].to_string().contains("waited"));
    pty.keys("q");
    assert!(pty.exit(Duration::from_secs(10)).success());
}
