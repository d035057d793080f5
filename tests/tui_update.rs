//! What messages and keys do to the model: lists, paging, filters, freshness, the bell, leaving.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[path = "common/tui.rs"]
mod kit;

use kit::*;
use samekey::domain::operation::{OperationRow, Status};
use samekey::engine::{EngineHealth, EngineState};
use samekey::tui::effect::{Beside, Effect};
use samekey::tui::format::Times;
use samekey::tui::message::{Counts, Filter, Message, Sort, Tab};
use samekey::tui::model::Focus;
use samekey::tui::update::update;

const SIZE: (u16, u16) = (80, 24);

fn many(n: u128) -> Vec<samekey::tui::message::Listed> {
    (0..n)
        .map(|i| listed(row(i, &format!("{i}"), 100, "usd", Status::Open)))
        .collect()
}

// --- lists ---------------------------------------------------------------------------------------

#[test]
fn numbers_and_tab_choose_the_list() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    for (key, tab) in [
        ("2", Tab::Open),
        ("3", Tab::Unknown),
        ("4", Tab::Succeeded),
        ("5", Tab::Failed),
        ("6", Tab::All),
        ("1", Tab::Review),
        ("tab", Tab::Open),
        ("backtab", Tab::Review),
        // The boards lie between.
        ("backtab backtab backtab backtab backtab", Tab::All),
    ] {
        stage.keys(key);
        assert_eq!(stage.model.tab, tab, "{key}");
    }
}

#[test]
fn an_answer_for_an_old_list_changes_nothing_u27() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.deaf = true;
    stage.keys("3");
    let old = stage.waiting.pop().expect("a load");
    stage.keys("5");
    stage.deaf = false;
    let revision = stage.model.revision;
    let Effect::Load(load) = old else {
        panic!("a load")
    };
    let loaded = samekey::tui::message::Loaded {
        generation: load.generation,
        as_of: now(),
        page: samekey::tui::message::Page {
            rows: many(3),
            ..Default::default()
        },
        others: Vec::new(),
        tools: std::collections::BTreeMap::new(),
        around: None,
    };
    stage.give(Message::Loaded(Box::new(loaded)));
    assert!(stage.model.list.entries().is_empty());
    assert_eq!(stage.model.revision, revision, "nothing to draw either");
}

/// A person waits for the list, so that a key asks for nothing else; what is around it follows, and what
/// an older question brought of that is not lost, nor does it push newer figures aside.
#[test]
fn a_key_that_begins_a_list_asks_for_the_list_alone_and_no_count_is_lost() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.deaf = true;
    stage.give(Message::LedgerChanged);
    assert!(!stage.model.waits(), "what is read anew holds up no frame");
    stage.keys("3");
    assert!(
        stage.model.waits(),
        "the list and its frame belong together"
    );
    let beside: Vec<Beside> = stage
        .waiting
        .drain(..)
        .filter_map(|effect| match effect {
            Effect::Load(load) => Some(load.beside),
            _ => None,
        })
        .collect();
    assert_eq!(beside, [Beside::Around, Beside::Nothing]);
    let counted = |unknown, as_of| {
        Message::Loaded(Box::new(samekey::tui::message::Loaded {
            generation: 0,
            as_of,
            page: samekey::tui::message::Page::default(),
            others: Vec::new(),
            tools: std::collections::BTreeMap::new(),
            around: Some(samekey::tui::message::Around {
                counts: samekey::tui::message::Counts {
                    unknown,
                    ..counts()
                },
                review: None,
                engines: samekey::tui::message::Engines::default(),
                standing: Vec::new(),
            }),
        }))
    };
    let unknown = |stage: &Stage| stage.model.counts.map(|c| c.unknown);
    stage.give(counted(77, now() + chrono::Duration::seconds(1)));
    assert_eq!(unknown(&stage), Some(77));
    assert!(
        stage.model.reading.in_flight,
        "the new list is still waited for"
    );
    stage.give(counted(5, now()));
    assert_eq!(unknown(&stage), Some(77), "older than what is known");
}

/// A reading that found nothing within its budget.
fn nothing_so_far(load: &samekey::tui::effect::Load) -> Message {
    Message::Loaded(Box::new(samekey::tui::message::Loaded {
        generation: load.generation,
        as_of: now(),
        page: samekey::tui::message::Page {
            rows: Vec::new(),
            more: true,
            next: Some(samekey::ledger::Mark::default()),
        },
        others: Vec::new(),
        tools: std::collections::BTreeMap::new(),
        around: None,
    }))
}

#[test]
fn a_search_goes_down_the_list_piece_by_piece_and_is_not_begun_again() {
    let mut stage = Stage::open(SIZE, many(3));
    stage.deaf = true;
    stage.keys("/ 'needle' enter");
    let Some(Effect::Load(load)) = stage.waiting.pop() else {
        panic!("a load");
    };
    assert!(load.query.0.budget.is_some());
    stage.give(nothing_so_far(&load));
    for piece in 0..3 {
        let Some(Effect::More { query, .. }) = stage.waiting.pop() else {
            panic!("the next piece");
        };
        assert_eq!(
            (query.0.from, query.0.after),
            (Some(samekey::ledger::Mark::default()), None)
        );
        // Readings of the head go on meanwhile; they neither end nor repeat the search.
        stage.give(Message::RefreshDue);
        let Some(Effect::Load(load)) = stage.waiting.pop() else {
            panic!("a load");
        };
        stage.give(nothing_so_far(&load));
        assert!(stage.waiting.is_empty());
        let shown = samekey::tui::frame_text(&stage.model, SIZE.0, SIZE.1);
        assert!(shown.contains("nothing so far"), "{shown}");
        let more = piece < 2;
        stage.give(Message::More {
            generation: stage.model.reading.generation,
            edge: samekey::tui::message::Edge::Below,
            result: Ok(samekey::tui::message::Page {
                rows: Vec::new(),
                more,
                next: more.then(Default::default),
            }),
        });
    }
    assert!(stage.waiting.is_empty(), "it is at the end");
    stage.give(Message::RefreshDue);
    let Some(Effect::Load(load)) = stage.waiting.pop() else {
        panic!("a load");
    };
    stage.give(nothing_so_far(&load));
    assert!(stage.waiting.is_empty(), "and is not begun again");
    let shown = samekey::tui::frame_text(&stage.model, SIZE.0, SIZE.1);
    assert!(shown.contains("Nothing matches"), "{shown}");
}

#[test]
fn what_did_not_change_is_as_of_now_without_being_read_again() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.deaf = true;
    let rows = stage.model.list.entries().to_vec();
    stage.give(Message::RefreshDue);
    let Some(Effect::Load(load)) = stage.waiting.pop() else {
        panic!("a load");
    };
    let later = now() + chrono::TimeDelta::seconds(1);
    let as_of = |generation| Message::Unchanged {
        generation,
        as_of: later,
    };
    stage.give(as_of(load.generation.wrapping_sub(1)));
    assert_ne!(
        stage.model.reading.as_of,
        Some(later),
        "of another list (U27)"
    );
    stage.give(as_of(load.generation));
    assert_eq!(stage.model.reading.as_of, Some(later));
    assert!(!stage.model.reading.in_flight);
    assert_eq!(stage.model.list.entries(), rows);
    assert!(stage.waiting.is_empty());
}

#[test]
fn a_detail_of_another_question_is_dropped_u27() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("enter");
    let first = stage.model.detail.serial;
    stage.keys("right");
    stage.give(Message::Detail {
        serial: first,
        id: op_id(0x1e09),
        result: Ok(None),
    });
    assert!(stage.model.detail.problem.is_none());
    let view = stage.model.detail_view().expect("a detail");
    assert_eq!(view.detail.op.row.id, op_id(0x5521));
}

#[test]
fn who_reads_the_end_of_a_detail_sees_what_is_added_and_nobody_else_is_moved() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("enter");
    let row = stage
        .model
        .list
        .current()
        .expect("a row")
        .listed
        .row
        .clone();
    for (keys, follows) in [("G", true), ("g g", false)] {
        stage.keys(keys);
        let (scroll, end) = (stage.model.detail.scroll, end_of(&stage));
        assert_eq!(scroll, if follows { end } else { 0 });
        let mut view = detail(row.clone());
        let last = view.detail.audit.last().cloned().expect("an entry");
        view.detail.audit.push(last.clone());
        view.detail.audit.push(last);
        stage.give(Message::Detail {
            serial: stage.model.detail.serial,
            id: row.id.clone(),
            result: Ok(Some(Box::new(view))),
        });
        assert!(end_of(&stage) > end || !follows);
        let wanted = if follows { end_of(&stage) } else { 0 };
        assert_eq!(stage.model.detail.scroll, wanted);
    }
}

fn end_of(stage: &Stage) -> usize {
    samekey::tui::view::detail_scroll_limit(&stage.model)
}

#[test]
fn a_million_rows_are_paged_and_never_all_kept_i33() {
    let mut stage = Stage::open(SIZE, many(3_000));
    stage.keys("6");
    for _ in 0..200 {
        stage.keys("pgdn");
    }
    assert_eq!(stage.model.list.cursor(), Some(&op_id(2_999)));
    assert!(stage.model.list.entries().len() <= samekey::tui::selection::MAX_ROWS);
    for _ in 0..200 {
        stage.keys("pgup");
    }
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0)));
    let ids = stage.model.list.ids();
    assert!(ids.windows(2).all(|w| w[0] < w[1]), "in order, none twice");
    stage.keys("G");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(2_999)));
    stage.keys("k k");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(2_997)));
    stage.keys("g g");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0)));
    assert_eq!(stage.model.list.offset(), 0);
}

#[test]
fn half_pages_and_ends() {
    let mut stage = Stage::open(SIZE, many(50));
    stage.keys("ctrl-d");
    let half = stage.model.list.index();
    assert!(half > Some(5));
    stage.keys("ctrl-u");
    assert_eq!(stage.model.list.index(), Some(0));
    stage.keys("end");
    assert_eq!(stage.model.list.index(), Some(49));
    stage.keys("home");
    assert_eq!(stage.model.list.index(), Some(0));
}

#[test]
fn an_unfinished_sequence_is_forgotten() {
    let mut stage = Stage::open(SIZE, many(30));
    stage.keys("j j g j");
    assert_eq!(stage.model.list.index(), Some(3), "g j is j");
    stage.keys("g g");
    assert_eq!(stage.model.list.index(), Some(0));
}

#[test]
fn sorting_keeps_the_cursor_on_its_operation_u1() {
    let mut stage = Stage::open(SIZE, many(30));
    stage.keys("6 j j j s j enter");
    assert_eq!(stage.model.sort, Sort::Created);
    assert_eq!(stage.model.list.cursor(), Some(&op_id(3)));
    stage.keys("S");
    assert!(stage.model.ascending);
    assert_eq!(stage.model.list.cursor(), Some(&op_id(3)));
    stage.keys("1 s");
    assert!(stage.text().contains("Review has its own order"));
}

#[test]
fn following_lets_the_list_move_until_the_next_key() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("j f");
    stage.rows.insert(0, listed(unknown(0x9000)));
    stage.refresh();
    assert_eq!(stage.model.list.index(), Some(0));
    assert!(stage.text().contains("9000"));
    stage.keys("j");
    stage.rows.insert(0, listed(unknown(0x9001)));
    stage.refresh();
    assert!(!stage.text().contains("9001") && stage.text().contains("+1 new"));
}

// --- filter --------------------------------------------------------------------------------------

#[test]
fn a_filter_is_applied_shown_and_cleared() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("/ 'order:4417' space 'status:unknown' enter");
    assert_eq!(stage.model.tab, Tab::Unknown);
    assert_eq!(stage.model.filter.order.as_deref(), Some("4417"));
    let text = stage.text();
    assert!(text.contains("filter order:4417 status:unknown"));
    assert!(text.contains("3 Unk 3"), "U28: the count is not filtered");
    stage.keys("esc");
    assert_eq!(stage.model.filter, Filter::default());
    assert!(stage.model.filter_text.is_empty());
}

#[test]
fn a_wrong_word_is_marked_and_nothing_is_applied() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("/ 'order:4417' space 'age>soon' enter");
    assert!(stage.model.filter_edit.is_some());
    assert_eq!(stage.model.filter, Filter::default());
    let text = stage.text();
    let line = text.lines().last().expect("a last line");
    let above = text.lines().rev().nth(1).expect("the filter");
    assert_eq!(
        line.find('^'),
        above.find("age>soon"),
        "under the wrong word"
    );
    assert!(line.contains("^^^^^^^^ write a number and a unit"));
    stage.keys("esc");
    assert!(stage.model.filter_edit.is_none());
    assert_eq!(stage.model.tab, Tab::Review);
}

#[test]
fn letters_in_the_filter_are_letters() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("/ 'qLRFXAD?123'");
    assert_eq!(
        stage.model.filter_edit.as_ref().expect("open").field.text(),
        "qLRFXAD?123"
    );
    assert!(stage.waiting.is_empty());
}

// --- time and drawing ----------------------------------------------------------------------------

#[test]
fn one_beat_a_second_while_ages_are_on_the_screen_and_none_else_u41() {
    let beats = |stage: &mut Stage| {
        let mut drawn = 0;
        for tenth in 1..=600_i64 {
            let before = stage.model.revision;
            let at = now() + chrono::TimeDelta::milliseconds(tenth * 100);
            stage.model.reading.as_of = Some(at);
            update(&mut stage.model, Message::Tick(at));
            drawn += usize::from(stage.model.revision != before);
        }
        drawn
    };
    let mut full = Stage::open(SIZE, mixed_rows());
    assert_eq!(beats(&mut full), 60);
    let mut empty = Stage::open(SIZE, Vec::new());
    assert_eq!(beats(&mut empty), 0);
}

#[test]
fn a_paused_screen_says_so_reads_nothing_and_grows_old() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("p");
    stage.pass(20);
    let as_of = stage.model.reading.as_of;
    stage.refresh();
    stage.give(Message::LedgerChanged);
    assert_eq!(stage.model.reading.as_of, as_of);
    let text = stage.text();
    assert!(text.contains("PAUSED") && text.contains("STALE 20s old"));
    stage.keys("j L");
    assert!(stage.text().contains("p resumes"));
    stage.keys("p");
    assert_eq!(stage.model.reading.as_of, Some(stage.model.now));
}

#[test]
fn only_one_reading_is_on_its_way_and_none_is_forgotten() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.deaf = true;
    for _ in 0..50 {
        stage.give(Message::LedgerChanged);
    }
    assert_eq!(stage.waiting.len(), 1);
    assert!(stage.model.reading.again);
}

#[test]
fn a_ledger_that_cannot_be_read_is_told_and_forgotten_when_it_can_u58() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    let generation = stage.model.reading.generation;
    stage.give(Message::LoadFailed {
        generation,
        why: "the ledger cannot be reached: disk I/O error".into(),
    });
    assert!(stage.text().contains("disk I/O error"));
    stage.refresh();
    assert!(!stage.text().contains("disk I/O error"));
}

#[test]
fn every_timestamp_carries_the_same_zone_u25() {
    let mut stage = Stage::open((120, 40), mixed_rows());
    for (times, wanted) in [(Times::Utc, "14:01:22Z"), (Times::Local, "16:01:22+02:00")] {
        stage.keys("t");
        assert_eq!(stage.model.times, times);
        let text = stage.text();
        assert!(text.contains(wanted), "{text}");
        let other = if times == Times::Utc { "+02:00" } else { "Z " };
        assert!(
            !text.contains(&format!("22{other}")),
            "one zone only\n{text}"
        );
    }
}

// --- the bell ------------------------------------------------------------------------------------

#[test]
fn the_bell_rings_once_for_each_row_that_newly_needs_a_person() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    let rings = |stage: &Stage| {
        let ring = |e: &&Effect| matches!(e, Effect::Ring(_));
        stage.waiting.iter().filter(ring).count()
    };
    assert_eq!(rings(&stage), 0, "what was there already rings for nobody");
    stage.rows.push(listed(unknown(0x9000)));
    stage.refresh();
    stage.refresh();
    assert_eq!(rings(&stage), 1);
    stage.keys("6");
    stage.rows.push(listed(unknown(0x9001)));
    stage.rows.push(listed(unknown(0x9002)));
    stage.refresh();
    stage.refresh();
    assert_eq!(rings(&stage), 2);
    let last = stage.waiting.iter().rev().find_map(|e| match e {
        Effect::Ring(text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(
        last.as_deref(),
        Some("samekey: 2 operations need a person, op_...9001 first")
    );
}

#[test]
fn without_the_bell_nothing_rings_and_nothing_more_is_read() {
    let mut setup = setup(SIZE);
    setup.bell = false;
    let mut stage = Stage::new(setup, mixed_rows());
    stage.rows.push(listed(unknown(0x9000)));
    stage.refresh();
    assert!(stage.waiting.is_empty());
}

// --- layers and leaving --------------------------------------------------------------------------

#[test]
fn esc_goes_back_one_layer_at_a_time() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("/ '4417' enter enter");
    assert_eq!(stage.model.focus, Focus::Detail);
    stage.keys("?");
    assert!(stage.model.help.is_some());
    stage.keys("esc");
    assert!(stage.model.help.is_none());
    stage.keys("esc");
    assert_eq!(stage.model.focus, Focus::List);
    stage.keys("esc");
    assert!(stage.model.filter_text.is_empty());
    stage.keys("esc esc");
    assert!(stage.model.quitting.is_none(), "esc never quits");
}

#[test]
fn q_quits_from_the_list_only() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("enter q");
    assert!(stage.model.quitting.is_none());
    stage.keys("? q");
    assert!(stage.model.quitting.is_none() && stage.model.help.is_none());
    stage.keys("q");
    assert!(stage.model.quitting.is_some());
    assert_eq!(stage.waiting, vec![Effect::Stop]);
    assert!(stage.text().contains("3 in flight; ctrl-c leaves at once"));
    stage.keys("j L q");
    assert_eq!(
        stage.waiting,
        vec![Effect::Stop],
        "nothing begins while leaving"
    );
    stage.keys("ctrl-c");
    assert_eq!(stage.waiting.last(), Some(&Effect::Leave));
}

#[test]
fn ctrl_c_quits_the_second_time_and_is_forgotten_by_any_other_key() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.keys("ctrl-c");
    assert!(stage.text().contains("ctrl-c again quits"));
    stage.keys("j ctrl-c");
    assert!(stage.model.quitting.is_none());
    stage.keys("ctrl-c");
    assert!(stage.model.quitting.is_some());
}

#[test]
fn a_decision_on_its_way_survives_quitting() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.dialog("j L", samekey::tui::action::Level::Plain);
    stage.keys("ctrl-y");
    stage.give(Message::Terminate);
    assert!(stage.model.dialog.is_some());
    stage.done(Ok("verdict: absent"));
    assert!(stage.model.dialog.is_none());
}

#[test]
fn engine_trouble_is_in_the_header_and_told_u32() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.give(Message::Health(EngineHealth {
        state: EngineState::Down("worker 3 panicked".into()),
        ..EngineHealth::default()
    }));
    assert!(stage.text().contains("! DOWN"));
    let alarm = EngineHealth {
        state: EngineState::Running,
        workers: 8,
        busy: 0,
        alarm: Some("the clock ran back".into()),
        notices: Some("the webhook answered 500".into()),
    };
    stage.give(Message::Health(alarm));
    let text = stage.text();
    assert!(text.contains("not sending") && text.contains("nothing is sent: the clock ran back"));
    assert!(text.contains("telling others fails: the webhook answered 500"));
}

#[test]
fn the_demo_s_scoreboard_stands_under_the_header_in_one_line_or_two() {
    for (width, second, third) in [
        (120, "0 twice  │  naive:", "1 Review"),
        (80, "0 twice", "naive:"),
    ] {
        let mut stage = Stage::open((width, 24), mixed_rows());
        stage.give(Message::Scoreboard(vec![
            "samekey: 12 intents, 12 refunds, 0 twice".into(),
            "naive: 12 intents, 17 refunds, 5 twice".into(),
        ]));
        let text = stage.text();
        let line = |n| text.lines().nth(n).expect("a line").to_owned();
        assert!(
            line(1).contains(second) && line(2).contains(third),
            "{text}"
        );
        assert_eq!(stage.model.list.visible().len(), 5, "the list made room");
    }
}

#[test]
fn a_tool_that_stands_still_is_told() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.standing = vec![samekey::tui::message::Standing {
        paused: None,
        tool: name("issue_refund"),
        why: "paused by engine: credentials; nothing is sent".into(),
    }];
    stage.refresh();
    assert!(
        stage
            .text()
            .contains("issue_refund: paused by engine: credentials")
    );
}

#[test]
fn a_ledger_that_sleeps_does_not_stop_the_keys_u43() {
    let mut stage = Stage::open(SIZE, mixed_rows());
    stage.deaf = true;
    stage.refresh();
    let revision = stage.model.revision;
    stage.keys("j");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5521)));
    assert!(stage.model.revision > revision, "a frame is due at once");
    stage.keys("? esc t");
    assert_eq!(stage.model.times, Times::Utc);
}

#[test]
fn an_empty_ledger_says_what_to_do() {
    let mut stage = Stage::open(SIZE, Vec::new());
    stage.counts = Counts::default();
    stage.refresh();
    assert!(stage.text().contains("samekey demo"));
    stage.keys("enter L");
    assert_eq!(stage.model.focus, Focus::List);
    assert!(stage.model.dialog.is_none());
}

#[test]
fn the_correction_that_a_contradiction_calls_for() {
    use samekey::domain::operation::Closing;
    use samekey::domain::operation::Contradiction::{
        EffectAfterFailed, FailedAfterSucceeded, RefMismatch, SecondEffect,
    };
    use samekey::tui::action::{Action, Ask};
    let ask = |contradiction, status| {
        Action::Correct.ask(&OperationRow {
            contradicted: Some(contradiction),
            ..row(1, "1", 1, "usd", status)
        })
    };
    for (contradiction, status, decision) in [
        (
            FailedAfterSucceeded,
            Status::Succeeded,
            Some(Closing::Failed),
        ),
        (EffectAfterFailed, Status::Failed, Some(Closing::Succeeded)),
        (SecondEffect, Status::Succeeded, None),
        (SecondEffect, Status::Unknown, None),
        (SecondEffect, Status::Failed, Some(Closing::Succeeded)),
        (RefMismatch, Status::Succeeded, Some(Closing::Failed)),
    ] {
        assert_eq!(ask(contradiction, status), Some(Ask::Correct(decision)));
    }
}
