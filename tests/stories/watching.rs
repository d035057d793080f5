//! What other processes do appears by itself: the screen reads once a minute unless it is told.

use crate::stage::{Stage, TALL, selected, token};

#[test]
fn what_others_do_appears_without_a_key() {
    let stage = Stage::new("saved-500-with-effect");
    let op = stage.refund("4417");
    let mut pty = stage.watch(TALL);
    pty.wait("the row and its history", |s| {
        selected(s).contains("? unknown") && s.contents().contains("TIMELINE")
    });

    let other = stage.refund("4418");
    pty.wait_for("3 Unknown 2");
    pty.wait("it is announced, not inserted", |s| {
        s.contents().contains("+1 new") && !s.contents().contains(&format!("op_…{}", token(&other)))
    });
    pty.wait("the cursor stays", |s| selected(s).contains(token(&op)));

    stage
        .home
        .ok(0, &["ops", "note", &op, "--note", "called the bank"]);
    pty.wait_for("reviewer:anna: called the bank");

    stage.home.ok(0, &["ops", "lookup", &op]);
    pty.wait("the verdict", |s| selected(s).contains("R confirmed"));

    let close = ["ops", "close", &op, "--as", "refunded", "--note", "seen"];
    stage.home.ok(0, &close);
    pty.wait("a tombstone under the cursor", |s| {
        let row = selected(s);
        row.contains(token(&op)) && row.contains("left: reviewer:anna")
    });
    pty.wait_for("3 Unknown 1");
    pty.keys(".");
    pty.wait_for(&format!("op_…{}", token(&other)));
    pty.keys("j");
    pty.wait_gone(&format!("op_…{}", token(&op)));
}
