//! Keys that nobody meant.

use serde_json::Value;

use crate::pty::Pty;
use crate::stage::{SMALL, SOON, Stage, selected, token};

/// Two unknown rows, and the screen on the first.
fn stage() -> (Stage, Pty) {
    let stage = Stage::new("saved-500-with-effect");
    for order in ["4417", "4418"] {
        stage.refund(order);
    }
    let pty = stage.watch(SMALL);
    pty.wait("the rows", |s| selected(s).contains("? unknown"));
    (stage, pty)
}

/// Leaves what is open, and waits until that is gone: an escape right before another key would be
/// one key together with it.
fn leave(pty: &mut Pty, what: &str) {
    pty.keys("esc");
    pty.wait_gone(what);
}

/// Ends the screen, so that nothing is still on its way, and looks at the ledger.
fn assert_unchanged(stage: &Stage, mut pty: Pty, before: &[Value]) {
    pty.keys("ctrl-c ctrl-c");
    assert!(pty.exit(SOON).success());
    assert_eq!(stage.everything(), before);
}

#[test]
fn two_hundred_enters_only_open_u7_u12() {
    let (stage, mut pty) = stage();
    let before = stage.everything();
    pty.send("\r".repeat(200));
    pty.wait_for("TIMELINE");
    leave(&mut pty, "TIMELINE");
    // In a dialog they cancel: the focus is on Cancel.
    pty.keys("L");
    pty.wait_for("ctrl-y confirm: look up");
    pty.send("\r".repeat(200));
    pty.wait_gone("[ Cancel ]");
    assert_unchanged(&stage, pty, &before);
}

#[test]
fn a_held_key_asks_once_at_most_and_confirms_nothing_u7_u8() {
    let (stage, mut pty) = stage();
    let before = stage.everything();
    // A lookup is the one question without a field.
    pty.send("L".repeat(300));
    pty.wait("one question, or none", |s| {
        let text = s.contents();
        text.contains("ctrl-y confirm: look up") || text.contains("too fast")
    });
    if pty.text().contains("ctrl-y confirm") {
        leave(&mut pty, "ctrl-y confirm");
    }
    pty.keys("L");
    pty.wait_for("ctrl-y confirm: look up");
    pty.send("L".repeat(300));
    leave(&mut pty, "[ Cancel ]");
    assert_unchanged(&stage, pty, &before);
}

#[test]
fn a_paste_is_no_keys_in_the_table_nor_in_a_dialog_u13() {
    let (stage, mut pty) = stage();
    let before = stage.everything();
    let op = before[0]["operation_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    pty.paste("LRFqy\n\u{19}\u{3}");
    pty.wait_for("the paste was ignored");
    pty.keys("L");
    pty.wait_for("ctrl-y confirm: look up");
    pty.paste("\n\u{19}");
    pty.wait_for("paste ignored: no text field has the focus");
    leave(&mut pty, "[ Cancel ]");
    // What has to be typed cannot be pasted; what is told can be, and confirms nothing.
    pty.keys("R");
    pty.wait_for("ctrl-y confirm: close as refunded");
    pty.keys("tab").paste(&format!("{}\n\u{19}", token(&op)));
    pty.wait_for("this has to be typed; paste ignored");
    leave(&mut pty, "[ Cancel ]");
    pty.keys("n");
    pty.wait_for("ctrl-y confirm: note");
    pty.keys("tab").paste("pasted\n\u{19}");
    pty.wait_for("[pasted");
    leave(&mut pty, "[ Cancel ]");
    // Refused before anything is asked.
    pty.keys("X");
    pty.wait_for("only an open row can be stopped");
    leave(&mut pty, "only an open row can be stopped");
    assert_unchanged(&stage, pty, &before);
}

#[test]
fn the_same_bytes_without_brackets_write_nothing_either_u14() {
    let (stage, mut pty) = stage();
    let before = stage.everything();
    pty.send("LRFqy\n");
    pty.wait_for("ctrl-y confirm: look up");
    leave(&mut pty, "[ Cancel ]");
    pty.send("LRFqy\n".repeat(20));
    pty.wait_for("too fast");
    // And it is still there: `q` among them did not quit.
    pty.wait("the rows", |s| selected(s).contains("? unknown"));
    assert_unchanged(&stage, pty, &before);
}
