//! "Acting is safe": each of the eight points, as key scripts on a screen over a small world.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[path = "common/tui.rs"]
mod kit;

use kit::*;
use samekey::domain::operation::{Closing, OperationRow, Status};
use samekey::tui::action::{Access, Action, Ask, Level, LookedAt};
use samekey::tui::effect::Effect;
use samekey::tui::keymap::{Binding, Context, Key, Keymap, Meaning, TABLE};
use samekey::tui::message::{Failure, Message, Tab};
use samekey::tui::model::{DialogFocus, FieldName, Stage as DialogStage};
use strum::VariantArray;

const SIZE: (u16, u16) = (80, 24);
/// Everything a closing dialog asks for on the row 0x5521.
const FILLED: &str = "tab '5521' tab 'seen' ";

fn stage() -> Stage {
    Stage::open(SIZE, mixed_rows())
}

fn stage_of(stage: &Stage) -> &DialogStage {
    &stage.model.dialog.as_ref().expect("a dialog").stage
}

fn moved_to(version: i64) -> DialogStage {
    DialogStage::MovedOn(LookedAt {
        version,
        waiting: None,
    })
}

/// What the one write would do.
fn written(stage: &Stage) -> (String, i64, Ask, String) {
    match stage.writes().as_slice() {
        [Effect::Decide { frozen, note, .. }] => (
            frozen.operation().expect("one row").to_string(),
            frozen.looked_at().expect("looked at").version,
            frozen.ask().expect("asked about a row"),
            note.clone(),
        ),
        other => panic!("not one decision: {other:?}"),
    }
}

// --- 1: the cursor is an operation id ------------------------------------------------------------

#[test]
fn the_cursor_stays_on_its_operation_when_rows_come_and_go_u1() {
    let mut stage = stage();
    stage.keys("j");
    let line = stage.model.list.line();
    for n in 0..5 {
        stage.rows.insert(0, listed(unknown(0x9000 + n)));
        stage.refresh();
        assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5521)));
        assert_eq!(
            stage.model.list.line(),
            line,
            "U3: the line on the screen too"
        );
    }
    assert_eq!(stage.model.list.new, 5);
    assert!(stage.text().contains("+5 new"), "announced, not inserted");
    assert!(!stage.text().contains("9004"));
    stage.keys(".");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5521)));
    assert_eq!(stage.model.list.new, 0);
    stage.keys("g g");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x9004)));
}

#[test]
fn a_row_that_leaves_stays_as_a_tombstone_until_the_cursor_leaves_it() {
    let mut stage = stage();
    stage.keys("3");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5521)));
    stage.rows[1].row.status = Status::Succeeded;
    stage.rows[1].row.closed_by = Some("reviewer:bob".into());
    stage.refresh();
    let current = stage.model.list.current().expect("still there");
    assert!(current.gone);
    assert!(stage.text().contains("left: reviewer:bob"));
    stage.keys("j");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5533)));
    assert_eq!(stage.model.list.entries().len(), 1, "buried");
}

#[test]
fn nothing_moves_under_a_dialog_u3() {
    let mut stage = stage();
    stage.dialog("j j F", Level::TokenAndNote);
    let before: Vec<_> = stage.model.list.ids();
    stage.rows.reverse();
    stage.rows.remove(0);
    stage.rows.insert(0, listed(unknown(0x9000)));
    stage.refresh();
    assert_eq!(stage.model.list.ids(), before);
    stage.keys("esc");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5533)));
}

#[test]
fn the_row_drawn_reversed_is_the_one_that_enter_opens_u5() {
    use ratatui::style::Modifier;
    let mut stage = stage();
    stage.keys("6");
    for _ in 0..7 {
        let buffer = buffer(&stage.model);
        let reversed: Vec<u16> = (3..22)
            .filter(|y| buffer[(3, *y)].modifier.contains(Modifier::REVERSED))
            .collect();
        let line = u16::try_from(stage.model.list.line()).expect("a line");
        assert_eq!(reversed, vec![3 + line]);
        assert_eq!(
            cursor(&stage.model),
            (0, 3 + line),
            "U48: the terminal's cursor too"
        );
        let id = stage.model.list.cursor().cloned();
        stage.keys("enter");
        let view = stage.model.detail_view().expect("a detail");
        assert_eq!(Some(view.detail.op.row.id.clone()), id);
        stage.keys("esc j");
    }
}

// --- 2: an action key freezes its target ---------------------------------------------------------

#[test]
fn what_the_key_was_pressed_on_is_written_whatever_moves_meanwhile_u2() {
    let mut stage = stage();
    stage.keys("j F");
    // Before the gate answers, another row takes the place.
    stage.rows.swap(1, 2);
    stage.refresh();
    stage.gate_asks(Level::TokenAndNote);
    stage.draw();
    stage.keys(FILLED);
    stage.keys("ctrl-y");
    let (id, version, ask, note) = written(&stage);
    assert_eq!(id, op_id(0x5521).to_string());
    assert_eq!((version, ask), (7, Ask::Close(Closing::Failed)));
    assert_eq!(note, "seen");
}

#[test]
fn the_frozen_version_is_that_of_the_screen_not_of_the_ledger() {
    let mut stage = stage();
    stage.rows[1].row.version = 8;
    stage.dialog("j F", Level::TokenAndNote);
    assert_eq!(*stage_of(&stage), moved_to(8));
    stage.keys(FILLED);
    stage.keys("ctrl-y");
    assert!(stage.writes().is_empty());
}

// --- 3: levels, Cancel, and the committing key ---------------------------------------------------

#[test]
fn each_level_asks_for_its_own_and_cancel_has_the_focus() {
    use FieldName::{Note, Ref, Token};
    let levels = [
        ("j L", Level::Plain, vec![]),
        ("j n", Level::Note, vec![Note]),
        ("j F", Level::TokenAndNote, vec![Token, Note]),
        ("j R", Level::SecondPerson, vec![Token, Ref, Note]),
    ];
    for (keys, level, fields) in levels {
        let mut stage = stage();
        stage.dialog(keys, level);
        let dialog = stage.model.dialog.as_ref().expect("a dialog");
        let names: Vec<_> = dialog.fields.iter().map(|(n, _)| *n).collect();
        assert_eq!(names, fields, "{keys}");
        assert_eq!(dialog.focus, DialogFocus::Cancel);
    }
}

#[test]
fn enter_cancels_or_goes_on_and_never_commits_u7_u12() {
    let mut filled = stage();
    filled.dialog("j F", Level::TokenAndNote);
    filled.keys(FILLED);
    for _ in 0..200 {
        filled.keys("enter");
    }
    assert!(filled.model.dialog.is_some(), "the words are not lost");
    assert!(filled.writes().is_empty());

    let mut untouched = stage();
    untouched.dialog("j F", Level::TokenAndNote);
    for _ in 0..200 {
        untouched.keys("enter");
    }
    assert!(untouched.writes().is_empty());
    assert!(untouched.model.dialog.is_none());
}

#[test]
fn the_committing_key_is_neither_an_asking_key_nor_beside_one_u8() {
    let rows = ["1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm"];
    let place = |c: char| {
        let c = c.to_ascii_lowercase();
        let found = |(y, row): (usize, &&str)| Some((y, row.find(c)?));
        rows.iter().enumerate().find_map(found)
    };
    let keys = |wanted: fn(Action) -> bool| -> Vec<char> {
        TABLE
            .iter()
            .filter(|b| wanted(b.action))
            .flat_map(|b| b.keys)
            .map(|k| k.chars().last().expect("a key"))
            .collect()
    };
    for commit in keys(|a| a == Action::Commit) {
        for ask in keys(Action::acts) {
            let ((cy, cx), (ay, ax)) = (place(commit).expect("y"), place(ask).expect("a letter"));
            let near = cy.abs_diff(ay) <= 1 && cx.abs_diff(ax) <= 1;
            assert!(!near, "{commit} is beside {ask}");
        }
    }
}

#[test]
fn nothing_is_written_before_everything_asked_for_is_there() {
    for (script, missing) in [
        ("ctrl-y", "last four"),
        ("tab '5512' tab 'seen' ctrl-y", "last four"),
        ("tab '5521' ctrl-y", "a note is needed"),
        ("tab '5521' tab space space ctrl-y", "a note is needed"),
    ] {
        let mut stage = stage();
        stage.dialog("j F", Level::TokenAndNote);
        stage.keys(script);
        assert!(stage.writes().is_empty(), "{script}");
        assert!(stage.text().contains(missing), "{script}\n{}", stage.text());
    }
    let mut stage = stage();
    stage.dialog("j R", Level::SecondPerson);
    stage.keys("tab '5521' tab tab 'seen' ctrl-y");
    assert!(stage.writes().is_empty());
    assert!(stage.text().contains("provider's refund id"));
    stage.keys("'re_42' ctrl-y");
    let [Effect::Decide { typed, .. }] = stage.writes()[..] else {
        panic!("one decision");
    };
    assert_eq!(
        typed.as_ref().map(ToString::to_string),
        Some("re_42".into())
    );
}

#[test]
fn the_gate_s_refusal_is_shown_and_opens_nothing() {
    let mut stage = stage();
    stage.keys("j F");
    let serial = stage.model.dialog.as_ref().expect("asking").serial;
    let why = "the last request may still take effect; decidable at 2026-03-14T14:13:34Z";
    stage.give(Message::Asked {
        serial,
        result: Err(why.into()),
    });
    assert!(stage.model.dialog.is_none());
    assert!(stage.text().contains("decidable at"));
    stage.keys("enter");
    assert!(stage.model.popup.is_none());
}

// --- 4: the dialog shows what it is about, or does not open --------------------------------------

#[test]
fn the_dialog_shows_everything_it_is_about_u19() {
    let mut stage = stage();
    stage.rows[1].row.money = samekey::domain::money::Money::from_minor(3_800, name("jpy")).ok();
    stage.dialog("j F", Level::TokenAndNote);
    let text = stage.text();
    for shown in [
        &op_id(0x5521).to_string(),
        "issue_refund",
        "4417",
        "JPY 3,800",
        "3800 minor units of jpy",
        "3 of 6",
        "3h12m old",
        "20h42m left",
        "evidence",
        "will write",
        "status: failed",
        "does not call the provider",
        "type 5521",
        "TEST stripe",
        "ann (reviewer)",
        "[ Cancel ]",
        "ctrl-y",
    ] {
        assert!(text.contains(shown), "{shown:?} is missing\n{text}");
    }
}

#[test]
fn a_dialog_does_not_open_where_it_does_not_fit() {
    let mut setup = setup((60, 16));
    setup.environment = environment("live");
    let mut stage = Stage::new(setup, mixed_rows());
    stage.keys("j R");
    stage.gate_asks(Level::SecondPerson);
    assert!(stage.model.dialog.is_none());
    assert!(stage.text().contains("enlarge the terminal"));
}

#[test]
fn a_dialog_that_stops_fitting_takes_no_keys() {
    let mut stage = stage();
    stage.dialog("j F", Level::TokenAndNote);
    stage.keys(FILLED);
    stage.give(Message::Resize {
        width: 60,
        height: 10,
    });
    stage.draw();
    stage.keys("ctrl-y");
    assert!(stage.writes().is_empty());
    stage.give(Message::Resize {
        width: 80,
        height: 24,
    });
    stage.keys("ctrl-y");
    assert!(stage.writes().is_empty(), "not seen again yet");
    stage.draw();
    stage.keys("ctrl-y");
    assert_eq!(stage.writes().len(), 1);
}

// --- 5: typed ahead, held, pasted ----------------------------------------------------------------

#[test]
fn keys_from_before_the_first_frame_are_dropped_u7() {
    let mut stage = stage();
    stage.keys("j L");
    stage.keys("ctrl-y enter ctrl-y");
    stage.gate_asks(Level::Plain);
    stage.keys("ctrl-y enter ctrl-y");
    assert!(stage.writes().is_empty());
    assert!(stage.model.dialog.is_some());
    stage.draw();
    stage.keys("ctrl-y");
    assert_eq!(stage.writes().len(), 1);
}

#[test]
fn a_held_key_and_a_burst_write_nothing_u14() {
    let mut stage = stage();
    stage.dialog("j L", Level::Plain);
    let commit = Key::parse("ctrl-y").expect("a key");
    for (repeat, burst) in [(true, false), (false, true)] {
        for _ in 0..200 {
            stage.give(Message::Key {
                key: commit,
                repeat,
                burst,
            });
        }
        assert!(stage.writes().is_empty());
    }
    let mut held = self::stage();
    held.keys("j");
    for _ in 0..200 {
        held.keys("F");
        held.keys("L");
    }
    let asks = held
        .waiting
        .iter()
        .filter(|e| matches!(e, Effect::Ask { .. }));
    assert_eq!(asks.count(), 1, "a held action key asks once");
}

#[test]
fn a_paste_is_words_in_a_field_and_nothing_anywhere_else_u13() {
    let mut stage = stage();
    stage.keys("j");
    stage.give(Message::Paste("LRFqy\n\u{19}".into()));
    assert!(stage.model.dialog.is_none() && stage.model.quitting.is_none());
    assert!(stage.waiting.is_empty());
    assert!(stage.text().contains("the paste was ignored"));

    stage.dialog("F", Level::TokenAndNote);
    stage.keys("tab");
    stage.give(Message::Paste("5521".into()));
    stage.keys("tab");
    stage.give(Message::Paste(
        "seen at the\nbank \u{1b}[2J\u{202e}\u{19}".into(),
    ));
    assert!(stage.writes().is_empty());
    let dialog = stage.model.dialog.as_ref().expect("still open");
    assert_eq!(dialog.fields[0].1.text(), "", "a token is typed");
    assert_eq!(dialog.fields[1].1.text(), "seen at the bank ␛[2J�␙");
}

// --- 6: the row moves on -------------------------------------------------------------------------

#[test]
fn a_row_that_moves_on_under_the_dialog_must_be_read_again_u23() {
    let mut stage = stage();
    stage.dialog("j F", Level::TokenAndNote);
    stage.keys(FILLED);
    stage.rows[1].row.version = 9;
    stage.refresh();
    assert_eq!(*stage_of(&stage), moved_to(9));
    assert!(stage.text().contains("moved on to version 9"));
    stage.keys("ctrl-y tab ctrl-y");
    assert!(stage.writes().is_empty());
    stage.keys("ctrl-r");
    stage.gate_asks(Level::TokenAndNote);
    stage.keys("ctrl-y");
    stage.draw();
    stage.keys("ctrl-y");
    assert!(stage.writes().is_empty(), "what was typed is typed again");
    stage.keys("'5521' tab 'seen' space 'again' ctrl-y");
    assert_eq!(written(&stage).1, 9);
}

#[test]
fn a_note_does_not_come_too_late() {
    let mut stage = stage();
    stage.dialog("j n", Level::Note);
    stage.rows[1].row.version = 9;
    stage.refresh();
    assert_eq!(*stage_of(&stage), DialogStage::Open);
}

#[test]
fn a_lost_race_names_who_won_and_when() {
    let mut stage = stage();
    stage.dialog("j F", Level::TokenAndNote);
    stage.keys(FILLED);
    stage.keys("ctrl-y");
    let why =
        "the row was closed as succeeded by reviewer:bob; that stands (at 2026-03-14 14:03:20Z)";
    stage.done(Err(Failure {
        why: why.into(),
        moved_to: None,
    }));
    let text = stage.text();
    assert!(
        text.contains("Not done") && text.contains("reviewer:bob") && text.contains("14:03:20Z")
    );
    stage.keys("ctrl-y enter");
    assert_eq!(stage.writes().len(), 1, "the lost one only");
    assert!(stage.model.dialog.is_none());
}

// --- 7: never more than the ledger ---------------------------------------------------------------

#[test]
fn it_says_closing_until_the_ledger_has_it_u21() {
    let mut stage = stage();
    stage.dialog("j F", Level::TokenAndNote);
    stage.keys(FILLED);
    stage.keys("ctrl-y");
    assert!(stage.text().contains("closing…"));
    stage.refresh();
    assert_eq!(
        stage.model.list.current().expect("row").listed.row.status,
        Status::Unknown
    );
    stage.keys("ctrl-y esc enter ctrl-y q");
    assert_eq!(stage.writes().len(), 1, "a second time changes nothing");
    assert!(stage.model.dialog.is_some(), "and it cannot be taken back");
    stage.done(Ok(&format!("{}: closed as failed", op_id(0x5521))));
    assert!(stage.model.dialog.is_none());
    assert!(stage.text().contains("op_…5521: closed as failed"));
}

#[test]
fn old_data_turns_amber_then_red_and_nobody_acts_on_it_u20() {
    use samekey::tui::model::Freshness;
    let mut stage = stage();
    stage.keys("j");
    stage.deaf = true;
    for (seconds, freshness) in [
        (3, Freshness::Fresh),
        (1, Freshness::Stale),
        (7, Freshness::Old),
    ] {
        stage.pass(seconds);
        assert_eq!(stage.model.freshness(), freshness);
    }
    assert!(stage.text().contains("STALE 11s old"));
    for key in ["L", "R", "F", "X", "A", "D", "C", "n"] {
        stage.keys(key);
        assert!(stage.model.dialog.is_none(), "{key}");
    }
    assert!(stage.text().contains("out of date"));
}

#[test]
fn a_dialog_refuses_to_commit_on_old_data() {
    let mut stage = stage();
    stage.dialog("j F", Level::TokenAndNote);
    stage.keys(FILLED);
    stage.deaf = true;
    stage.pass(4);
    stage.keys("ctrl-y");
    assert!(stage.writes().is_empty());
    assert!(stage.text().contains("out of date"));
}

// --- 8: live -------------------------------------------------------------------------------------

#[test]
fn where_real_money_moves_the_environment_is_typed_in_every_money_dialog_u17() {
    let mut setup = setup(SIZE);
    setup.environment = environment("live");
    let mut stage = Stage::new(setup, mixed_rows());
    assert!(stage.text().contains("LIVE stripe"));
    stage.dialog("j F", Level::TokenAndNote);
    assert!(!stage.text().contains("TEST") && stage.text().contains("type \"live stripe\""));
    stage.keys("tab 'test' tab '5521' tab 'seen' ctrl-y");
    assert!(stage.writes().is_empty());
    assert!(stage.text().contains("money is real"));
    stage.keys("backspace backspace backspace backspace 'live' space 'stripe' ctrl-y");
    assert_eq!(stage.writes().len(), 1);

    for (key, level) in [("L", Level::Plain), ("n", Level::Note)] {
        let mut setup = kit::setup(SIZE);
        setup.environment = environment("live");
        let mut stage = Stage::new(setup, mixed_rows());
        stage.dialog(&format!("j {key}"), level);
        let fields = &stage.model.dialog.as_ref().expect("a dialog").fields;
        assert!(
            fields.iter().all(|(n, _)| *n != FieldName::Environment),
            "{key}"
        );
    }
}

// --- read-only, and modality ---------------------------------------------------------------------

#[test]
fn read_only_leads_to_no_question_and_no_write_u51() {
    let mut setup = setup(SIZE);
    setup.access = Access::of(true);
    let mut stage = Stage::new(setup, mixed_rows());
    stage.keys("j");
    for binding in TABLE
        .iter()
        .filter(|b| b.action.acts() || b.action.is_desk())
    {
        stage.keys(binding.keys[0]);
        assert!(stage.model.dialog.is_none(), "{:?}", binding.action);
    }
    assert!(stage.waiting.is_empty());
    assert!(stage.text().contains("READ-ONLY") && stage.text().contains("read-only"));
}

#[test]
fn every_acting_action_asks_the_gate_and_no_other_does_u11() {
    let row: OperationRow = unknown(1);
    for action in Action::VARIANTS {
        // A tool is asked about by its own name.
        let about_row = action.acts() && *action != Action::PauseTool;
        assert_eq!(action.ask(&row).is_some(), about_row, "{action:?}");
        assert!(!(action.acts() && action.is_desk()), "{action:?}");
    }
}

/// U10: in help and hints what looks comes before what acts, what only tells or reads before what
/// decides, and what closes comes last.
#[test]
fn what_is_safe_stands_first_and_what_closes_last_u10() {
    let at = |wanted: fn(Action) -> bool| -> Vec<usize> {
        let on_rows = TABLE.iter().filter(|b| b.on.contains(&Context::Detail));
        // Leaving and help belong to every page and stand at its very end.
        let always = [
            Action::Quit,
            Action::Help,
            Action::Interrupt,
            Action::Suspend,
            Action::Redraw,
        ];
        let found = on_rows.filter(|b| !always.contains(&b.action)).enumerate();
        found
            .filter(|(_, b)| wanted(b.action))
            .map(|(n, _)| n)
            .collect()
    };
    let looks = at(|a| !a.acts());
    let tells = at(|a| matches!(a, Action::Note | Action::Lookup));
    let closes = at(|a| matches!(a, Action::CloseSucceeded | Action::CloseFailed));
    let decides = at(|a| {
        let tells = matches!(a, Action::Note | Action::Lookup);
        let closes = matches!(a, Action::CloseSucceeded | Action::CloseFailed);
        a.acts() && !tells && !closes
    });
    for (first, then) in [(&looks, &tells), (&tells, &decides), (&decides, &closes)] {
        assert!(
            first.iter().max() < then.iter().min(),
            "{first:?} before {then:?}"
        );
    }
}

#[test]
fn a_dialog_has_all_the_keys_u9() {
    let keymap = Keymap::new().expect("a key map");
    let in_list = |b: &&Binding| b.on.contains(&Context::List) && !b.keys.is_empty();
    for binding in TABLE.iter().filter(in_list) {
        let mut stage = stage();
        stage.dialog("j F", Level::TokenAndNote);
        let (list, tab, focus) = (stage.model.list.ids(), stage.model.tab, stage.model.focus);
        let key = Key::parse(binding.keys[0].split(' ').next().expect("a key")).expect("a key");
        if let Meaning::Action(
            Action::Back | Action::Interrupt | Action::Suspend | Action::Redraw,
        ) = keymap.meaning(Context::Dialog, &[key])
        {
            continue;
        }
        stage.give(Message::Key {
            key,
            repeat: false,
            burst: false,
        });
        assert_eq!(stage.model.list.ids(), list);
        assert_eq!(
            (stage.model.tab, stage.model.focus),
            (tab, focus),
            "{:?}",
            binding.action
        );
        assert!(stage.model.quitting.is_none() && stage.model.filter_edit.is_none());
        assert!(stage.writes().is_empty());
    }
}

#[test]
fn while_following_a_key_acts_only_on_a_row_that_stood_still_u2() {
    let mut setup = setup(SIZE);
    setup.follow = true;
    let mut stage = Stage::new(setup, mixed_rows());
    stage.rows.insert(0, listed(unknown(0x9000)));
    stage.pass(1);
    stage.refresh();
    assert_eq!(
        stage.model.list.cursor(),
        Some(&op_id(0x9000)),
        "it moves by itself"
    );
    stage.keys("F");
    assert!(stage.model.dialog.is_none());
    assert!(stage.text().contains("the list was moving"));
    stage.keys("F");
    assert!(
        stage.model.dialog.is_some(),
        "now the person knows which row it is"
    );
    assert!(!stage.model.list.follow);
    assert_eq!(stage.model.tab, Tab::Review);
}
