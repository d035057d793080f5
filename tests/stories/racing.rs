//! Two people on one row.

use serde_json::Value;

use crate::pty::Pty;
use crate::stage::{SMALL, Stage, fill_in, selected, wait_until, words};

/// anna and ben with the same row's closing filled in.
fn two_screens(stage: &Stage, op: &str) -> [Pty; 2] {
    ["anna", "ben"].map(|name| {
        let command = stage.command(&["--no-engine", "--reviewer", name]);
        let mut pty = Pty::spawn(command, SMALL);
        pty.wait("the row", |s| selected(s).contains("R confirmed"));
        pty.keys("R");
        pty.wait_for("ctrl-y confirm: close as refunded");
        fill_in(&mut pty, op, name);
        pty
    })
}

fn looked_up(stage: &Stage) -> String {
    let op = stage.refund("4417");
    stage.home.ok(0, &["ops", "lookup", &op]);
    op
}

fn closings(show: &Value) -> usize {
    let audit = show["audit"].as_array().expect("the history");
    audit
        .iter()
        .filter(|entry| entry["action"] == "closed")
        .count()
}

#[test]
fn both_confirm_at_once_one_closes_and_the_other_is_told_who_won_u23() {
    let stage = Stage::new("saved-500-with-effect");
    let op = looked_up(&stage);
    let mut screens = two_screens(&stage, &op);
    for pty in &mut screens {
        pty.keys("ctrl-y");
    }
    let show = wait_until("it is closed", || {
        Some(stage.show(&op)).filter(|show| show["status"] == "succeeded")
    });
    let winner = show["closed_by"].as_str().expect("somebody").to_owned();
    let (won, lost) = match winner.as_str() {
        "reviewer:anna" => (0, 1),
        "reviewer:ben" => (1, 0),
        other => panic!("{other} was not in the race"),
    };
    screens[won].wait_for("closed as refunded");
    let told = format!("by {winner}");
    let loser = &mut screens[lost];
    loser.wait("the loser is told", |s| {
        words(s).contains(&told) || words(s).contains("ctrl-r reads it again")
    });
    if !words(&loser.screen()).contains(&told) {
        loser.keys("ctrl-r");
        loser.wait("who won", |s| words(s).contains(&told));
    }
    assert_eq!(closings(&stage.show(&op)), 1, "{show}");
    stage.verify();
}

#[test]
fn a_row_that_moves_on_under_a_dialog_has_to_be_read_again_u23() {
    let stage = Stage::new("saved-500-with-effect");
    let op = looked_up(&stage);
    let [mut anna, mut ben] = two_screens(&stage, &op);
    anna.keys("ctrl-y");
    anna.wait_for("closed as refunded");
    ben.wait_for("ctrl-r reads it again");
    // The confirming key does nothing any more.
    ben.keys("ctrl-y ctrl-r");
    ben.wait("who won and when", |s| {
        let text = words(s);
        text.contains("closed as succeeded already, by reviewer:anna (at 20")
    });
    let show = stage.show(&op);
    assert_eq!(
        (closings(&show), &show["closed_by"]),
        (1, &"reviewer:anna".into())
    );
}
