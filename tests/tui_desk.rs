//! The desk on the screen: claims, marked rows, tools, note templates, and proposals that are replaced
//! under a dialog.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[path = "common/tui.rs"]
mod kit;

use kit::*;
use samekey::domain::guard::Role;
use samekey::domain::operation::{Claim, Closing, LookedAt, OperationRow, Proposal, Waiting};
use samekey::domain::policy::Circuit;
use samekey::ledger::ToolState;
use samekey::tui::action::{Access, Asked, Level, Subject, Target, Wish};
use samekey::tui::board::ToolView;
use samekey::tui::effect::Effect;
use samekey::tui::keymap::Key;
use samekey::tui::message::{Done, Message, Standing};
use samekey::tui::model::{Setup, Stage as DialogStage};

const SIZE: (u16, u16) = (80, 24);

fn stage() -> Stage {
    Stage::open(SIZE, mixed_rows())
}

fn as_lead() -> Setup {
    Setup {
        person: person(Role::Lead),
        ..setup(SIZE)
    }
}

fn proposal(by: &str, seconds_ago: u64) -> Proposal {
    Proposal {
        decision: Closing::Failed,
        correction: false,
        by: name(by),
        note: "absent".into(),
        provider_ref: None,
        version: 7,
        digest: "00".into(),
        at: ago(seconds_ago),
        expires_at: ahead(3_600),
    }
}

fn wishes(stage: &Stage) -> Vec<(String, Wish)> {
    let wish = |e: &Effect| match e {
        Effect::Desk { frozen, wish } => {
            let id = frozen.operation().expect("one row").to_string();
            Some((id, *wish))
        }
        _ => None,
    };
    stage.waiting.iter().filter_map(wish).collect()
}

// --- claims --------------------------------------------------------------------------------------

#[test]
fn c_claims_the_row_under_the_cursor_and_gives_ones_own_claim_back() {
    let mut stage = stage();
    stage.keys("j c");
    let row = op_id(0x5521).to_string();
    assert_eq!(wishes(&stage), [(row.clone(), Wish::Claim)]);
    assert!(stage.model.dialog.is_none(), "at once");
    stage.give(Message::AtDesk(Ok(Done {
        operation: Some(op_id(0x5521)),
        says: format!("{row}: claimed until 14:18:22Z"),
        ..Done::default()
    })));
    assert!(stage.text().contains("op_…5521: claimed until 14:18:22Z"));

    let claim = |by: &str, until| Claim {
        by: name(by),
        until,
    };
    for (by, until, wish) in [
        ("ann", ahead(60), Wish::Release),
        ("ann", ago(1), Wish::Claim),
        ("bob", ahead(60), Wish::Claim),
    ] {
        let mut stage = self::stage();
        stage.rows[1].row.claim = Some(claim(by, until));
        stage.refresh();
        stage.keys("j c");
        assert_eq!(wishes(&stage), [(row.clone(), wish)], "{by}");
    }
}

/// U20, U51, U14: nothing is claimed by a screen that only looks or is old, by a held key or a burst.
#[test]
fn the_desk_needs_a_permit_and_a_fresh_screen() {
    let mut reading = setup(SIZE);
    reading.access = Access::of(true);
    let mut watching = Stage::new(reading, mixed_rows());
    watching.keys("j c");
    assert!(watching.waiting.is_empty());
    assert!(watching.text().contains("read-only"));

    let mut old = stage();
    old.keys("j");
    old.deaf = true;
    old.pass(4);
    old.keys("c");
    assert!(wishes(&old).is_empty());
    assert!(old.text().contains("out of date"));

    let mut held = stage();
    held.keys("j");
    let key = Key::parse("c").expect("a key");
    for (repeat, burst) in [(true, false), (false, true)] {
        held.give(Message::Key { key, repeat, burst });
    }
    assert!(wishes(&held).is_empty(), "U14");
    assert!(
        Effect::Desk {
            frozen: frozen_for_the_desk(),
            wish: Wish::Claim
        }
        .writes(),
        "U51"
    );
}

fn frozen_for_the_desk() -> samekey::tui::action::Frozen {
    let Access::Acting(permit) = Access::of(false) else {
        panic!("not read-only")
    };
    permit.freeze(
        Target::Desk(op_id(1)),
        person(Role::Reviewer),
        String::new(),
    )
}

#[test]
fn a_refused_claim_is_told() {
    let mut stage = stage();
    stage.keys("j c");
    stage.give(Message::AtDesk(Err("the row is settled".into())));
    assert!(stage.text().contains("the row is settled"));
}

/// Whoever confirms where somebody else is at it has been warned; their own claim is no news.
#[test]
fn a_dialog_warns_where_somebody_else_claims_the_row() {
    for (by, until, warned) in [("bob", 720, true), ("ann", 720, false)] {
        for size in [(80, 24), (60, 16)] {
            let mut stage = Stage::open(size, mixed_rows());
            stage.rows[1].row.claim = Some(Claim {
                by: name(by),
                until: ahead(until),
            });
            stage.refresh();
            stage.dialog("j F", Level::TokenAndNote);
            let text = stage.text();
            assert_eq!(
                text.contains("claimed by bob for another 12m"),
                warned,
                "{by}\n{text}"
            );
            assert!(text.contains("ctrl-y"), "it warns, it blocks nobody");
        }
    }
    let mut stage = stage();
    stage.rows[1].row.claim = Some(Claim {
        by: name("bob"),
        until: ago(1),
    });
    stage.refresh();
    stage.dialog("j F", Level::TokenAndNote);
    assert!(!stage.text().contains("claimed by"), "its time is over");
}

// --- marked rows ---------------------------------------------------------------------------------

fn rows_asked(rows: Vec<OperationRow>) -> Asked {
    Asked {
        subject: Subject::Rows(rows),
        level: Level::Plain,
        will: vec!["for each of the 3 rows:".into(), "GET /v1/refunds".into()],
        will_not: "only reads; closes nothing, whatever it finds",
        typed_ref: false,
    }
}

/// U18: L takes the marks, says how many, and looks up; what comes of it is told row by row.
#[test]
fn l_looks_up_the_marked_rows_in_one_dialog_u18() {
    let mut stage = stage();
    let marked = [0x5521, 0x5533, 0x5540].map(op_id);
    stage.model.marks.extend(marked.clone());
    stage.keys("L");
    let dialog = stage.model.dialog.as_ref().expect("a question");
    assert_eq!(dialog.frozen.operations(), marked);
    let rows = stage.rows.iter().map(|l| l.row.clone());
    let rows = rows.filter(|r| marked.contains(&r.id)).collect();
    stage.gate_answers(rows_asked(rows));
    let text = stage.text();
    for shown in [
        "look up 3 marked rows",
        "op_…5521",
        "op_…5533",
        "op_…5540",
        "GET /v1/refunds",
        "closes nothing",
    ] {
        assert!(text.contains(shown), "{shown}\n{text}");
    }
    // The cursor and the marks are not asked again.
    stage.model.marks.clear();
    stage.keys("ctrl-y");
    let [Effect::Lookup { serial, frozen }] = stage.writes()[..] else {
        panic!("one lookup: {:?}", stage.writes());
    };
    assert_eq!(*frozen.target(), Target::Rows(marked.to_vec()));
    let serial = *serial;
    stage.give(Message::Progress {
        serial,
        done: 1,
        of: 3,
    });
    assert!(stage.text().contains("1 of 3 done"));
    stage.model.marks.extend(marked.clone());
    stage.give(Message::Done {
        serial,
        result: Ok(Done {
            says: "2 looked up: 1 absent, 1 confirmed".into(),
            left: vec![(op_id(0x5540), "it was looked up a moment ago".into())],
            ..Done::default()
        }),
    });
    let text = stage.text();
    assert!(
        text.contains("1 of 3 not looked up") && text.contains("op_…5540"),
        "{text}"
    );
    let left: Vec<_> = stage.model.marks.iter().cloned().collect();
    assert_eq!(left, [op_id(0x5540)], "only what is left stays marked");
}

#[test]
fn above_the_cap_nothing_is_asked_and_the_number_is_said_u18() {
    let mut stage = stage();
    stage.model.marks.extend((0..21).map(op_id));
    stage.keys("L");
    assert!(stage.model.dialog.is_none() && stage.waiting.is_empty());
    assert!(
        stage.text().contains("21 rows are marked; at most 20"),
        "{}",
        stage.text()
    );
    stage.model.marks.remove(&op_id(0));
    stage.keys("L");
    assert!(stage.model.dialog.is_some(), "twenty are few enough");
}

/// Never bulk closing: every key that decides is about the row under the cursor, and says so.
#[test]
fn with_marks_a_deciding_key_is_about_the_cursor_s_row_alone_u18() {
    for (key, level) in [
        ("F", Level::TokenAndNote),
        ("R", Level::TokenAndNote),
        ("X", Level::TokenAndNote),
        ("A", Level::TokenAndNote),
        ("D", Level::TokenAndNote),
        ("C", Level::TokenAndNote),
    ] {
        let mut stage = stage();
        stage.model.marks.extend([op_id(0x5533), op_id(0x5540)]);
        stage.dialog(&format!("j {key}"), level);
        let dialog = stage.model.dialog.as_ref().expect("a dialog");
        assert_eq!(dialog.frozen.operations(), [op_id(0x5521)], "{key}");
        let text = stage.text();
        assert!(
            text.contains("only this row; the 2 marked are for lookups alone"),
            "{key}\n{text}"
        );
        stage.keys("tab '5521' tab 'seen' ctrl-y");
        let [Effect::Decide { frozen, .. }] = stage.writes()[..] else {
            panic!("{key}: one decision");
        };
        assert_eq!(frozen.operation(), Some(&op_id(0x5521)), "{key}");
    }
}

/// In the detail one row is read, and L is about that one.
#[test]
fn in_the_detail_l_is_about_the_row_that_is_read() {
    let mut stage = stage();
    stage.model.marks.extend([op_id(0x5533)]);
    stage.keys("j enter L");
    let dialog = stage.model.dialog.as_ref().expect("a question");
    assert_eq!(dialog.frozen.operations(), [op_id(0x5521)]);
}

// --- proposals -----------------------------------------------------------------------------------

/// I18: another proposal on the same version is another thing to approve: it has to be read again.
#[test]
fn a_proposal_replaced_under_the_dialog_must_be_read_again() {
    let mut stage = Stage::new(as_lead(), mixed_rows());
    stage.rows[1].row.proposal = Some(proposal("bob", 60));
    stage.refresh();
    stage.dialog("j A", Level::TokenAndNote);
    let text = stage.text();
    assert!(
        text.contains("close as failed, by bob") && text.contains("absent"),
        "{text}"
    );
    stage.keys("tab '5521' tab 'yes'");
    stage.rows[1].row.proposal = Some(proposal("zoe", 1));
    stage.refresh();
    let now = LookedAt::of(&stage.rows[1].row);
    assert_eq!(
        stage.model.dialog.as_ref().expect("open").stage,
        DialogStage::MovedOn(now.clone())
    );
    assert!(
        stage.text().contains("Another proposal waits now"),
        "{}",
        stage.text()
    );
    stage.keys("ctrl-y");
    assert!(stage.writes().is_empty(), "not what was read");
    stage.keys("ctrl-r");
    stage.gate_asks(Level::TokenAndNote);
    stage.draw();
    assert!(stage.text().contains("by zoe"), "{}", stage.text());
    stage.keys("tab '5521' tab 'yes' ctrl-y");
    let [Effect::Decide { frozen, .. }] = stage.writes()[..] else {
        panic!("one decision");
    };
    assert_eq!(
        frozen.looked_at(),
        Some(&now),
        "bound to the one that was read"
    );
    assert!(matches!(&now.waiting, Some(Waiting::Proposal(mark)) if mark.by.as_str() == "zoe"));
}

/// A closing is not about the proposal; one that comes or goes does not stop it here.
#[test]
fn only_an_approval_is_bound_to_what_waits() {
    let mut stage = Stage::new(as_lead(), mixed_rows());
    stage.dialog("j F", Level::TokenAndNote);
    stage.rows[1].row.proposal = Some(proposal("zoe", 1));
    stage.refresh();
    assert_eq!(
        stage.model.dialog.as_ref().expect("open").stage,
        DialogStage::Open
    );
}

// --- tools ---------------------------------------------------------------------------------------

fn tool_asked(paused: Option<(String, String)>, level: Level) -> Asked {
    Asked {
        subject: Subject::Tool(ToolState {
            tool: name("issue_refund"),
            paused,
            circuit: Circuit::default(),
        }),
        level,
        will: vec!["issue_refund sends nothing until a lead resumes it".into()],
        will_not: "lookups go on",
        typed_ref: false,
    }
}

#[test]
fn p_pauses_the_row_s_tool_with_a_reason() {
    let mut stage = Stage::new(as_lead(), mixed_rows());
    stage.keys("j P");
    stage.gate_answers(tool_asked(None, Level::Note));
    let text = stage.text();
    for shown in [
        "pause issue_refund",
        "sends nothing until",
        "lookups go on",
        "[ Cancel ]",
    ] {
        assert!(text.contains(shown), "{shown}\n{text}");
    }
    stage.keys("ctrl-y");
    assert!(stage.writes().is_empty(), "a reason is needed");
    stage.keys("'odd' space 'refunds' ctrl-y");
    let [Effect::Switch { frozen, note, .. }] = stage.writes()[..] else {
        panic!("one switch: {:?}", stage.writes());
    };
    assert_eq!(note, "odd refunds");
    let tool = Target::Tool {
        tool: name("issue_refund"),
        paused: None,
    };
    assert_eq!(*frozen.target(), tool);
}

/// On the engine board it is the tool under its cursor, as it is shown there; other boards have none.
#[test]
fn p_on_a_board_is_about_the_tool_that_is_shown_there() {
    let mut stage = Stage::new(as_lead(), mixed_rows());
    let paused = Some(("bob".to_owned(), "a bad day".to_owned()));
    let view = |tool: &str, paused: Option<(String, String)>| ToolView {
        tool: name(tool),
        state: Some(ToolState {
            tool: name(tool),
            paused,
            circuit: Circuit::default(),
        }),
        terms: None,
    };
    stage.boards.engine.tools = vec![
        view("issue_refund", None),
        view("send_mail", paused.clone()),
    ];
    stage.keys("8 j P");
    let dialog = stage.model.dialog.as_ref().expect("a question");
    let tool = Target::Tool {
        tool: name("send_mail"),
        paused,
    };
    assert_eq!(*dialog.frozen.target(), tool);
    stage.keys("esc 7 P");
    assert!(
        stage.model.dialog.is_none(),
        "not the tool of a row nobody sees"
    );
    assert!(
        stage.text().contains("no tool is selected"),
        "{}",
        stage.text()
    );
}

/// A paused tool is resumed as the screen showed it: by whom it was paused, and why.
#[test]
fn p_resumes_the_pause_that_was_read() {
    let mut stage = Stage::new(as_lead(), mixed_rows());
    let paused = Some(("bob".to_owned(), "a bad day".to_owned()));
    stage.standing = vec![Standing {
        tool: name("issue_refund"),
        why: "paused by bob: a bad day; nothing is sent".into(),
        paused: paused.clone(),
    }];
    stage.refresh();
    stage.keys("j P");
    let dialog = stage.model.dialog.as_ref().expect("a question");
    let tool = Target::Tool {
        tool: name("issue_refund"),
        paused: paused.clone(),
    };
    assert_eq!(*dialog.frozen.target(), tool);
    stage.gate_answers(tool_asked(paused, Level::Plain));
    assert!(stage.text().contains("resume issue_refund") && stage.text().contains("a bad day"));
    for _ in 0..200 {
        stage.keys("enter");
    }
    assert!(stage.writes().is_empty(), "U7");
}

/// Sending again moves money: where it is real, the environment is typed (U17).
#[test]
fn a_tool_of_a_live_ledger_asks_for_the_environment() {
    let mut setup = as_lead();
    setup.environment = environment("live");
    let mut stage = Stage::new(setup, mixed_rows());
    stage.keys("j P");
    stage.gate_answers(tool_asked(None, Level::Note));
    stage.keys("tab tab 'why' ctrl-y");
    assert!(stage.writes().is_empty());
    assert!(stage.text().contains("money is real"));
}

// --- notes ---------------------------------------------------------------------------------------

fn note_of(stage: &Stage) -> String {
    let dialog = stage.model.dialog.as_ref().expect("a dialog");
    dialog.fields.last().expect("a note").1.text().to_owned()
}

#[test]
fn ctrl_t_cycles_the_note_templates_and_replaces_no_words_of_ones_own() {
    let mut stage = stage();
    stage.dialog("j F", Level::TokenAndNote);
    stage.keys("ctrl-t");
    assert!(
        stage.text().contains("templates are for the note"),
        "{}",
        stage.text()
    );
    stage.keys("tab tab ctrl-t");
    assert!(stage.text().contains("ctrl-t template"), "{}", stage.text());
    assert_eq!(note_of(&stage), "seen at the bank");
    stage.keys("ctrl-t");
    assert_eq!(note_of(&stage), "asked support");
    stage.keys("ctrl-t");
    assert_eq!(note_of(&stage), "seen at the bank", "round again");
    stage.keys("'!' ctrl-t");
    assert_eq!(note_of(&stage), "seen at the bank!", "typed words stay");
    assert!(stage.text().contains("ctrl-u empties it"));
    stage.keys("ctrl-u ctrl-t");
    assert_eq!(note_of(&stage), "seen at the bank");
    assert!(stage.writes().is_empty());
}

/// The first letter typed while Cancel has the focus is not swallowed without a word.
#[test]
fn a_letter_that_goes_nowhere_is_told_where_it_is_seen() {
    use ratatui::style::Color;
    let mut stage = stage();
    stage.dialog("j F", Level::TokenAndNote);
    stage.keys("'5'");
    let text = stage.text();
    let line = text
        .lines()
        .position(|l| l.contains("nothing was typed: tab goes"))
        .expect("a hint");
    let buttons = text
        .lines()
        .position(|l| l.contains("[ Cancel ]"))
        .expect("buttons");
    assert_eq!(line + 1, buttons, "right above what has the focus");
    let buffer = buffer(&stage.model);
    let y = u16::try_from(line).expect("a line");
    assert!(
        (0..80).any(|x| buffer[(x, y)].fg == Color::Yellow),
        "in the colour of warnings"
    );
}

/// What the committing key would do is never cut off, at any size that a dialog opens at.
#[test]
fn the_confirming_hint_is_whole_at_every_size() {
    for size in [(60, 17), (80, 24), (120, 40)] {
        for (keys, verb) in [
            ("j F", "confirm: close as failed"),
            ("j R", "confirm: close as refunded"),
            ("C", "confirm: correct to failed"),
        ] {
            let mut stage = Stage::open(size, mixed_rows());
            stage.dialog(keys, Level::TokenAndNote);
            for _ in 0..3 {
                let text = stage.text();
                assert!(text.contains(verb), "{size:?} {keys}\n{text}");
                stage.keys("tab");
            }
        }
    }
}

/// Sentences on the lower rule fit into 80 columns beside the position.
#[test]
fn advice_is_not_cut_at_80_columns() {
    let mut stage = stage();
    stage.deaf = true;
    stage.keys("p");
    stage.pass(4);
    stage.keys("j F");
    assert!(
        stage
            .text()
            .contains("the screen is out of date; nobody may act; p resumes")
    );
    let mut marked = self::stage();
    marked.model.marks.extend((0..4_000).map(op_id));
    marked.keys("L");
    assert!(
        marked.text().contains("at most 20 are looked up at once"),
        "{}",
        marked.text()
    );
    let mut asked = self::stage();
    asked.dialog("j F", Level::SecondPerson);
    asked.keys("tab '5521' tab 'seen' ctrl-y");
    asked.done(Ok(&format!(
        "{}: proposed; another lead has to approve it",
        op_id(0x5521)
    )));
    assert!(asked.text().contains("another lead has to approve it"));
}
