//! Keys that nobody meant.

use crate::pty::Pty;
use crate::stage::{SMALL, Stage, selected, token};

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

/// Leaves whatever is open; the list has the keys again.
fn back_to_the_list(pty: &mut Pty) {
    pty.keys("esc");
    pty.wait_gone("[ Cancel ]");
    pty.keys("esc");
    pty.wait("the list", |s| {
        s.contents().contains("WHAT SETTLES IT") && !s.contents().contains("[ Cancel ]")
    });
}

#[test]
fn two_hundred_enters_only_open_u7_u12() {
    let (stage, mut pty) = stage();
    let before = stage.everything();
    pty.send("\r".repeat(200));
    pty.wait_for("TIMELINE");
    back_to_the_list(&mut pty);
    // In a dialog they cancel: the focus is on Cancel.
    pty.keys("L");
    pty.wait_for("ctrl-y confirm: look up");
    pty.send("\r".repeat(200));
    pty.wait_gone("[ Cancel ]");
    assert_eq!(stage.everything(), before);
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
    back_to_the_list(&mut pty);
    pty.keys("L");
    pty.wait_for("ctrl-y confirm: look up");
    pty.send("L".repeat(300));
    back_to_the_list(&mut pty);
    assert_eq!(stage.everything(), before);
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
    back_to_the_list(&mut pty);
    // What has to be typed cannot be pasted.
    pty.keys("X");
    pty.wait_for("not now");
    pty.keys("esc n");
    pty.wait_for("ctrl-y confirm: note");
    pty.keys("tab").paste(&format!("{}\n\u{19}", token(&op)));
    pty.wait_for(&format!("[{}", token(&op)));
    back_to_the_list(&mut pty);
    assert_eq!(stage.everything(), before);
}

#[test]
fn the_same_bytes_without_brackets_write_nothing_either_u14() {
    let (stage, mut pty) = stage();
    let before = stage.everything();
    pty.send("LRFqy\n");
    pty.wait_for("ctrl-y confirm: look up");
    back_to_the_list(&mut pty);
    pty.send("LRFqy\n".repeat(20));
    pty.wait_for("too fast");
    back_to_the_list(&mut pty);
    assert_eq!(stage.everything(), before);
    // And it is still there: `q` among them did not quit.
    pty.wait("the rows", |s| selected(s).contains("? unknown"));
}
