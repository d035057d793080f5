//! What lies over the page or beside the list: the `:` line, menus, marks, copies, links, texts, and
//! the evidence of the detail.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[path = "common/tui.rs"]
mod kit;

use kit::*;
use ratatui::style::Modifier;
use samekey::domain::evidence::Verdict;
use samekey::domain::ids::OperationId;
use samekey::domain::operation::{Claim, Status};
use samekey::tui::action::{Access, Action, Level, Wish};
use samekey::tui::board::Board;
use samekey::tui::effect::Effect;
use samekey::tui::keymap::{Context, TABLE};
use samekey::tui::menu::{Pick, snoozes};
use samekey::tui::message::{Message, Sort, Tab, Told};
use samekey::tui::model::Focus;
use samekey::tui::osc::{Habits, MAX_CLIPBOARD, clipboard};
use samekey::tui::palette::matching;
use samekey::tui::possible::why_not;
use strum::VariantArray;

const SIZE: (u16, u16) = (80, 24);

fn stage() -> Stage {
    Stage::open(SIZE, mixed_rows())
}

fn names(query: &str) -> Vec<&'static str> {
    matching(query).iter().map(|b| b.action.name()).collect()
}

/// The line under the cursor of what lies over the page.
fn selected(stage: &Stage) -> String {
    let buffer = buffer(&stage.model);
    let reversed = |y: &u16| {
        let inside = (0..buffer.area.width).filter(|x| {
            let cell = &buffer[(*x, *y)];
            cell.modifier.contains(Modifier::REVERSED) && cell.symbol() != " "
        });
        inside.count() > 3
    };
    // The row under the cursor lies behind; what is over it comes last within the panel.
    let lines: Vec<u16> = (0..buffer.area.height).filter(reversed).collect();
    let panel = lines.into_iter().find(|y| {
        let line: String = (0..buffer.area.width)
            .map(|x| buffer[(x, *y)].symbol())
            .collect();
        line.contains('│')
    });
    let y = panel.expect("a line under the cursor");
    (0..buffer.area.width)
        .map(|x| buffer[(x, y)].symbol())
        .collect()
}

// --- the `:` line --------------------------------------------------------------------------------

#[test]
fn every_action_of_a_page_is_there_by_its_name_with_its_key() {
    let all = names("");
    for action in Action::VARIANTS {
        let bound = TABLE.iter().find(|b| b.action == *action).expect("bound");
        let page = [Context::List, Context::Detail, Context::Board];
        let of_a_page = page.iter().any(|p| bound.on.contains(p));
        let expected = of_a_page && !matches!(action, Action::Palette | Action::Back);
        assert_eq!(all.contains(&action.name()), expected, "{action:?}");
    }
    assert!(all.contains(&"packet"), "without a key, too");
    let mut stage = stage();
    stage.keys("j : 'lookup'");
    let text = stage.text();
    assert!(text.contains("lookup") && text.contains(" L "), "{text}");
    assert!(text.contains("look it up at the provider (only reads)"));
}

#[test]
fn safest_first_and_deciding_last_whatever_is_written_u10() {
    for query in ["", "e", "s", "fail", "re", "op", "closed", "row", "look"] {
        // Names before descriptions; within both the looking ones first.
        let rest = matching(query).into_iter();
        let rest = rest.filter(|b| b.action.name() != query);
        let letters = |name: &str| {
            let mut name = name.chars();
            query.chars().all(|c| name.any(|n| n == c))
        };
        let rest: Vec<(bool, bool)> = rest
            .map(|b| (!letters(b.action.name()), b.action.acts()))
            .collect();
        assert!(rest.is_sorted(), "{query:?}: {:?}", names(query));
    }
    let all = names("");
    assert_eq!(all.last(), Some(&"close-failed"));
    assert_eq!(all.first(), Some(&"open"));
}

#[test]
fn a_few_letters_of_a_name_are_enough() {
    assert_eq!(names("pck").first(), Some(&"packet"));
    assert_eq!(names("close f").first(), Some(&"close-failed"));
    assert_eq!(names("COPY-J").first(), Some(&"copy-json"));
    assert_eq!(names("look").first(), Some(&"lookup"));
    // What is written out comes first, though others have the letters, too.
    assert_eq!(names("stop").first(), Some(&"stop"));
    assert_eq!(names("note").first(), Some(&"note"));
    // Words of the description.
    assert!(names("refunded").contains(&"close-succeeded"));
    assert!(names("zzzz").is_empty());
}

#[test]
fn enter_runs_what_its_key_would_and_never_commits_u12() {
    let mut by_key = stage();
    by_key.keys("j L");
    let mut by_name = stage();
    by_name.keys("j : 'lookup' enter");
    assert_eq!(
        by_key.waiting, by_name.waiting,
        "the same question to the gate"
    );
    assert!(by_name.model.palette.is_none());
    by_name.gate_asks(Level::Plain);
    by_name.draw();
    for _ in 0..200 {
        by_name.keys("enter");
    }
    assert!(by_name.writes().is_empty());

    let mut stage = stage();
    stage.keys(": 'unknown' enter");
    assert_eq!(stage.model.tab, Tab::Unknown);
    stage.keys(": 'help' enter");
    assert!(stage.model.help.is_some());
    stage.keys("esc : 'filter' enter 'x'");
    assert_eq!(stage.model.context(), Context::Filter);
}

#[test]
fn letters_and_pastes_are_text_and_nothing_else_gets_a_key_u9_u13() {
    let mut stage = stage();
    stage.keys("j : 'qLRFX?'");
    stage.give(Message::Paste("refund\u{1b}[2J\nq".into()));
    let palette = stage.model.palette.as_ref().expect("open");
    assert_eq!(palette.field.text(), "qLRFX?refund␛[2J q");
    assert!(stage.waiting.is_empty() && stage.model.quitting.is_none());
    assert!(stage.text().contains("no action has such a name"));
    stage.keys("enter");
    assert!(stage.model.palette.is_some());
    stage.keys("esc");
    assert!(stage.model.palette.is_none());
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5521)));
}

#[test]
fn a_held_enter_and_a_burst_run_nothing_u14() {
    for (repeat, burst) in [(true, false), (false, true)] {
        let mut stage = stage();
        stage.keys("j : 'lookup'");
        stage.give(Message::Key {
            key: samekey::tui::keymap::Key::parse("enter").expect("a key"),
            repeat,
            burst,
        });
        assert!(stage.waiting.is_empty() && stage.model.dialog.is_none());
    }
}

#[test]
fn what_does_not_apply_is_dimmed_with_the_reason_and_not_run() {
    let mut stage = stage();
    // The first row is closed and contradicted.
    stage.keys(": 'stop'");
    assert!(
        stage
            .text()
            .contains("not now: only an open operation can be stopped")
    );
    stage.keys("enter");
    assert!(stage.waiting.is_empty() && stage.model.palette.is_some());
    assert!(stage.text().contains("stop: only an open operation"));
    stage.keys("esc : 'next-row'");
    assert!(stage.text().contains("not now: only in the detail"));
    stage.keys("esc enter : 'next-row' enter");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5521)));

    let mut setup = setup(SIZE);
    setup.access = Access::of(true);
    let mut reading = Stage::new(setup, mixed_rows());
    reading.keys("j");
    for binding in TABLE.iter().filter(|b| b.action.acts()) {
        assert_eq!(
            why_not(&reading.model, binding.action),
            Some("read-only".into())
        );
    }
    assert_eq!(
        why_not(&reading.model, Action::CopyId),
        None,
        "looking is free"
    );
}

#[test]
fn what_the_rules_refuse_stands_in_the_palette_as_they_say_it() {
    let mut stage = stage();
    stage.keys("j enter : 'close-failed'");
    assert!(stage.text().contains("not now: look it up at the provider"));
    // In a hint it stays: the reason is a key press away.
    stage.keys("esc");
    assert!(stage.text().contains("F failed"));
}

#[test]
fn it_works_from_the_detail_and_from_a_board_and_is_never_unseen() {
    let mut stage = stage();
    stage.keys("j enter : 'times' enter");
    assert_eq!(stage.model.focus, Focus::Detail);
    assert!(stage.model.palette.is_none());
    stage.keys("esc");
    stage.keys("9 :");
    assert_eq!(stage.model.context(), Context::Palette);
    stage.keys("'close-failed'");
    assert_eq!(
        why_not(&stage.model, Action::CloseFailed),
        Some("not on this page".into()),
        "the row behind the board is nobody's choice"
    );
    stage.keys("enter");
    assert!(stage.waiting.is_empty());
    // What a board has of its own, and what leads away from it.
    stage.keys("esc : 'report' enter");
    assert_eq!(stage.model.board, Some(Board::Report));
    stage.keys(": 'filter'");
    let why = why_not(&stage.model, Action::Filter);
    assert_eq!(why, Some("this page has no filter".into()));
    stage.keys("esc : 'succeeded' enter");
    assert_eq!((stage.model.board, stage.model.tab), (None, Tab::Succeeded));
    stage.give(Message::Resize {
        width: 40,
        height: 10,
    });
    assert!(stage.model.palette.is_none());
    stage.keys(":");
    assert!(stage.model.palette.is_none(), "q still quits there");
}

#[test]
fn the_cursor_moves_by_arrows_and_nothing_moves_behind_u3() {
    let mut stage = stage();
    stage.keys("j :");
    let first = selected(&stage);
    stage.keys("down");
    assert_ne!(selected(&stage), first);
    stage.keys("up up");
    assert_eq!(selected(&stage), first);
    for _ in 0..200 {
        stage.keys("down");
    }
    assert!(
        selected(&stage).contains("close-failed"),
        "{}",
        stage.text()
    );
    let (ids, line) = (stage.model.list.ids(), stage.model.list.line());
    stage.rows.reverse();
    stage.rows.insert(0, listed(unknown(0x9000)));
    stage.refresh();
    assert_eq!(
        (stage.model.list.ids(), stage.model.list.line()),
        (ids, line)
    );
}

#[test]
fn what_asks_is_never_what_takes_u8() {
    let takes = |a: Action| matches!(a, Action::Apply | Action::Proceed | Action::Commit);
    let keys = |wanted: &dyn Fn(Action) -> bool| -> Vec<&str> {
        let bound = TABLE.iter().filter(|b| wanted(b.action));
        bound.flat_map(|b| b.keys).copied().collect()
    };
    let asking = keys(&|a| a.acts() || a.is_desk() || a == Action::Palette);
    for key in keys(&takes) {
        assert!(!asking.contains(&key), "{key}");
    }
}

#[test]
fn a_list_that_follows_stands_still_under_the_line_and_goes_on_after_it_u3() {
    for (open, close) in [(":", "esc"), ("6 f s", "esc")] {
        let mut setup = setup(SIZE);
        setup.follow = true;
        let mut stage = Stage::new(setup, mixed_rows());
        stage.keys(open);
        let before = (stage.model.list.ids(), stage.model.list.cursor().cloned());
        stage.rows.insert(0, listed(unknown(0x9000)));
        stage.refresh();
        let now = (stage.model.list.ids(), stage.model.list.cursor().cloned());
        assert_eq!(now, before, "{open}");
        stage.keys(close);
        stage.refresh();
    }
    let mut setup = setup(SIZE);
    setup.follow = true;
    let mut stage = Stage::new(setup, mixed_rows());
    stage.keys(": esc");
    stage.rows.insert(0, listed(unknown(0x9000)));
    stage.refresh();
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x9000)));
}

// --- menus ---------------------------------------------------------------------------------------

#[test]
fn the_sort_menu_marks_the_present_order_and_takes_another() {
    let mut stage = stage();
    stage.keys("6 j s");
    let text = stage.text();
    assert!(
        text.contains("order of the list") && text.contains("▸ ● updated"),
        "{text}"
    );
    stage.keys("j j enter");
    assert_eq!(stage.model.sort, Sort::Amount);
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5521)), "U1");
    stage.keys("s");
    assert!(stage.text().contains("▸ ● amount"));
    stage.keys("k esc");
    assert_eq!(stage.model.sort, Sort::Amount, "esc takes nothing");
    stage.keys("1 s");
    assert!(stage.model.menu.is_none());
    assert!(stage.text().contains("Review has its own order"));
}

#[test]
fn in_a_menu_no_letter_acts_by_itself_u9() {
    let mut stage = stage();
    stage.keys("j z");
    stage.draw();
    for word in TABLE.iter().flat_map(|b| b.keys).flat_map(|k| k.split(' ')) {
        if ["enter", "esc", "ctrl-c", "ctrl-l", "ctrl-z"].contains(&word) {
            continue;
        }
        stage.keys(word);
        assert!(stage.model.menu.is_some(), "{word}");
    }
    assert!(stage.waiting.is_empty() && stage.model.dialog.is_none());
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5521)));
}

#[test]
fn the_snooze_menu_has_the_shortest_first_and_tomorrow_in_the_screen_s_zone_u10() {
    let zone = |hours: i32| chrono::FixedOffset::east_opt(hours * 3600).expect("a zone");
    let at = |text: &str| {
        text.parse::<samekey::domain::Instant>()
            .expect("an instant")
    };
    let soon = ahead(600);
    let all = snoozes(now(), zone(2), Some(soon));
    assert!(all.is_sorted_by_key(|(_, at)| *at));
    assert_eq!(
        all.first(),
        Some(&("until it can be decided".to_owned(), soon))
    );
    assert_eq!(
        all.last(),
        Some(&(
            "tomorrow 09:00+02:00".to_owned(),
            at("2026-03-15T07:00:00Z")
        ))
    );
    // Where it is tomorrow already, the day after.
    let east = snoozes(now(), zone(12), None);
    assert_eq!(east.last().expect("one").1, at("2026-03-15T21:00:00Z"));
    assert_eq!(
        snoozes(now(), zone(0), Some(ago(1))).len(),
        4,
        "what has passed is no choice"
    );
}

#[test]
fn a_menu_is_about_the_row_it_was_opened_on_u2() {
    let mut stage = stage();
    stage.keys("j z");
    let menu = stage.model.menu.as_ref().expect("a menu");
    assert!(menu.title.contains("5521"));
    assert!(matches!(
        menu.chosen().map(|c| c.pick),
        Some(Pick::Snooze(_))
    ));
    // Enter from before it could be seen chooses nothing (U7).
    stage.keys("enter");
    assert!(stage.model.menu.is_some() && stage.waiting.is_empty());
    stage.draw();
    // The rows change places; the choice is still about the one it was frozen to.
    stage.rows.swap(1, 2);
    stage.refresh();
    stage.keys("j j enter");
    assert!(stage.model.menu.is_none());
    let [Effect::Desk { frozen, wish }] = stage.waiting.as_slice() else {
        panic!("one wish: {:?}", stage.waiting);
    };
    assert_eq!(frozen.operation(), Some(&op_id(0x5521)));
    assert_eq!(*wish, Wish::Snooze(ahead(4 * 3_600)));
    stage.waiting.clear();
    // Nothing of a settled row can be put off.
    stage.keys("5 z");
    assert!(stage.model.menu.is_none());
    assert!(stage.text().contains("it is settled"));
}

#[test]
fn a_menu_on_an_old_screen_or_a_read_only_one_leads_nowhere_u20_u51() {
    let mut old = stage();
    old.keys("j z");
    old.draw();
    old.deaf = true;
    old.pass(20);
    old.keys("enter");
    assert!(old.writes().is_empty() && old.text().contains("nobody may act"));
    let mut setup = setup(SIZE);
    setup.access = Access::of(true);
    let mut reading = Stage::new(setup, mixed_rows());
    reading.keys("j z c");
    assert!(reading.model.menu.is_none() && reading.waiting.is_empty());
}

#[test]
fn while_following_the_menu_opens_only_on_a_row_that_stood_still_u2() {
    let mut setup = setup(SIZE);
    setup.follow = true;
    let mut stage = Stage::new(setup, mixed_rows());
    stage.pass(1);
    stage.rows.insert(0, listed(unknown(0x9000)));
    stage.refresh();
    stage.keys("z");
    assert!(stage.model.menu.is_none());
    assert!(stage.text().contains("press again"));
    stage.keys("z");
    let menu = stage.model.menu.as_ref().expect("a menu");
    assert!(menu.title.contains("9000"));
}

// --- marks ---------------------------------------------------------------------------------------

#[test]
fn marks_are_ids_that_outlast_refreshes_and_lists_and_esc_takes_them_first() {
    let mut stage = stage();
    stage.keys("j space j space");
    let marked: Vec<OperationId> = stage.model.marks.iter().cloned().collect();
    assert_eq!(marked, [op_id(0x5521), op_id(0x5533)]);
    assert!(stage.text().contains("◆op_…5521") && stage.text().contains("2 marked"));
    stage.rows.reverse();
    stage.refresh();
    stage.keys("6 S");
    assert_eq!(stage.model.marks.len(), 2);
    stage.keys("5");
    assert!(
        stage.text().contains("2 marked, 2 not in this list"),
        "U18: never more than is said"
    );
    stage.keys("1 / '4417' enter esc");
    assert!(stage.model.marks.is_empty(), "before the filter");
    assert_eq!(stage.model.filter_text, "4417");
    stage.keys("space space");
    assert!(stage.model.marks.is_empty());
}

#[test]
fn marks_are_capped_with_a_word_and_never_close_anything_u18() {
    let rows = (0..150).map(|n| listed(row(n, "1", 100, "usd", Status::Unknown)));
    let mut stage = Stage::open(SIZE, rows.collect());
    for _ in 0..120 {
        stage.keys("space j");
    }
    assert_eq!(stage.model.marks.len(), 100);
    assert!(
        stage
            .text()
            .contains("100 rows are marked, and no more can be")
    );
    // A closing is about the row under the cursor, marked or not.
    stage.keys("F");
    let ids: Vec<_> = stage
        .waiting
        .iter()
        .filter(|e| matches!(e, Effect::Ask { .. }))
        .collect();
    assert_eq!(ids.len(), 1);
    assert!(format!("{ids:?}").contains(op_id(120).as_str()));
}

#[test]
fn claims_and_snoozes_show_in_the_list_and_in_the_detail() {
    let mut rows = mixed_rows();
    rows[1].row.claim = Some(Claim {
        by: name("bob"),
        until: ahead(600),
    });
    rows[2].row.snoozed_until = Some(ahead(3_600));
    let mut wide = Stage::open((120, 40), rows.clone());
    let text = wide.text();
    assert!(
        text.contains("@op_…5521") && text.contains("L look up · @bob"),
        "{text}"
    );
    assert!(
        text.contains("zop_…5533") && text.contains("F absent · z 1h"),
        "{text}"
    );
    wide.keys("j");
    assert!(
        wide.text().contains("claimed    by bob · until 14:13:22Z"),
        "{}",
        wide.text()
    );
    let narrow = Stage::open((60, 16), rows);
    assert!(
        narrow.text().contains("@op_…5521"),
        "the sign stays where the name does not fit"
    );
    let mut later = wide;
    later.pass(700);
    assert!(!later.text().contains("@bob"), "over is over");
}

// --- copies --------------------------------------------------------------------------------------

#[test]
fn y_and_a_letter_copies_and_says_what_as_far_as_it_is_known() {
    let mut stage = stage();
    stage.keys("6 j j j j j y i");
    assert!(
        stage
            .text()
            .contains("the operation id of op_…5511 was sent to the terminal's")
    );
    stage.keys("y k y p");
    assert_eq!(
        stage.copied(),
        [
            op_id(0x5511).as_str(),
            "00000000-0000-0000-0000-0000c41f5511",
            "re_1a2b3c"
        ]
    );
    stage.keys("k y p");
    assert!(stage.text().contains("the provider's id is not known"));
    stage.keys("y j");
    stage.told(Ok("{\"operation_id\":\"x\"}"));
    assert_eq!(stage.copied().last(), Some(&"{\"operation_id\":\"x\"}"));
    assert_eq!(stage.copied().len(), 4);
}

#[test]
fn marked_rows_are_copied_together() {
    let mut stage = stage();
    stage.keys("space j space y i");
    assert_eq!(
        stage.copied(),
        [format!("{} {}", op_id(0x1e09), op_id(0x5521))]
    );
    assert!(stage.text().contains("of 2 marked rows"));
    stage.keys("y j");
    let Some(Effect::Tell { what, ids, .. }) = stage.waiting.last() else {
        panic!("asked for the JSON");
    };
    assert_eq!((*what, ids.len()), (Told::Json, 2));
    // What is marked meanwhile is not in it, and it does not say so.
    stage.keys("j space");
    stage.told(Ok("[]"));
    assert!(stage.text().contains("JSON of 2 marked rows was sent"));
}

#[test]
fn what_no_terminal_would_take_is_refused_with_a_word() {
    let mut stage = stage();
    stage.keys("y j");
    stage.told(Ok(&"x".repeat(MAX_CLIPBOARD + 1)));
    assert!(stage.copied().is_empty());
    assert!(
        stage
            .text()
            .contains("not copied: JSON of op_…1e09 has 57 kB, a terminal takes 56")
    );
}

#[test]
fn the_clipboard_sequence_carries_clean_text_and_nothing_can_end_it_u50_u53() {
    let plain = clipboard("op_1\u{7}\u{1b}\\\u{202e}x\r", Habits::default()).expect("short");
    assert!(plain.starts_with("\u{1b}]52;c;") && plain.ends_with("\u{1b}\\"));
    let inner = &plain["\u{1b}]52;c;".len()..plain.len() - 2];
    assert!(
        inner
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
    );
    // The check values of RFC 4648.
    for (text, encoded) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foobar", "Zm9vYmFy"),
    ] {
        let sequence = clipboard(text, Habits::default()).expect("short");
        assert_eq!(sequence, format!("\u{1b}]52;c;{encoded}\u{1b}\\"));
    }
    // Lines stay lines; everything else that acts is a mark.
    let lines = clipboard("a\nb", Habits::default()).expect("short");
    assert_eq!(lines, "\u{1b}]52;c;YQpi\u{1b}\\");
    assert!(clipboard(&"x".repeat(MAX_CLIPBOARD), Habits::default()).is_some());
    assert!(clipboard(&"x".repeat(MAX_CLIPBOARD + 1), Habits::default()).is_none());
    let tmux = Habits {
        tmux: true,
        ..Habits::default()
    };
    let wrapped = clipboard("f", tmux).expect("short");
    assert_eq!(
        wrapped,
        "\u{1b}]52;c;Zg==\u{1b}\\\u{1b}Ptmux;\u{1b}\u{1b}]52;c;Zg==\u{1b}\u{1b}\\\u{1b}\\"
    );
}

#[test]
fn a_late_text_changes_nothing_u27() {
    let mut stage = stage();
    stage.keys("y j");
    let Some(Effect::Tell { serial, what, .. }) = stage.waiting.last().cloned() else {
        panic!("asked");
    };
    stage.keys("o");
    stage.give(Message::Told {
        serial,
        what,
        result: Ok("old".into()),
    });
    assert!(stage.copied().is_empty());
    // A question that opened meanwhile is not covered (U9).
    stage.dialog("j F", Level::TokenAndNote);
    stage.told(Ok("https://example.com/re_1"));
    assert!(stage.model.popup.is_none() && stage.model.dialog.is_some());
}

// --- texts ---------------------------------------------------------------------------------------

#[test]
fn the_link_is_shown_as_text_and_copied_by_y() {
    let mut stage = stage();
    stage.keys("6 j j j j j o");
    stage.told(Ok("https://dashboard.example.com/refunds/re_1a2b3c"));
    let text = stage.text();
    assert!(
        text.contains("the provider's link") && text.contains("refunds/re_1a2b3c"),
        "{text}"
    );
    stage.keys("y");
    assert_eq!(
        stage.copied(),
        ["https://dashboard.example.com/refunds/re_1a2b3c"]
    );
    stage.keys("enter o");
    stage.told(Ok(""));
    assert!(stage.text().contains("No page of the provider is known"));
    stage.keys("y");
    assert_eq!(stage.copied().len(), 1, "nothing to copy");
}

#[test]
fn a_packet_is_scrolled_and_copied_whole() {
    let mut stage = stage();
    let lines: Vec<String> = (0..60).map(|n| format!("- line {n}")).collect();
    let packet = lines.join("\n");
    stage.keys("j : 'packet' enter");
    stage.told(Ok(&packet));
    let text = stage.text();
    assert!(
        text.contains("for the provider's support") && text.contains("- line 0"),
        "{text}"
    );
    assert!(text.contains("y copies it") && text.contains("more lines"));
    stage.keys("j pgdn");
    assert!(!stage.text().contains("line 0 "));
    stage.keys("G");
    let end = stage.text();
    assert!(
        end.contains("- line 59") && !end.contains("more lines"),
        "{end}"
    );
    stage.keys("j j k");
    assert!(
        !stage.text().contains("line 59"),
        "no scrolling beyond the end"
    );
    stage.keys("g g");
    assert!(stage.text().contains("- line 0"));
    stage.keys("y");
    assert_eq!(stage.copied(), [packet.as_str()]);
    assert!(stage.model.popup.is_some());
    stage.keys("q");
    assert!(stage.model.popup.is_none() && stage.model.quitting.is_none());
}

#[test]
fn a_refusal_is_the_same_kind_of_text() {
    let mut stage = stage();
    stage.keys("j F");
    let serial = stage.model.dialog.as_ref().expect("asking").serial;
    stage.give(Message::Asked {
        serial,
        result: Err("one two three. ".repeat(200)),
    });
    assert!(
        stage.text().contains("more lines"),
        "a long one can be read to its end"
    );
    stage.keys("L R F n space y");
    assert!(stage.model.popup.is_some() && stage.model.marks.is_empty());
    assert!(stage.copied().is_empty());
    stage.keys("esc");
    assert!(stage.model.popup.is_none());
}

// --- evidence ------------------------------------------------------------------------------------

fn with_verdict(size: (u16, u16), verdict: Option<Verdict>) -> Stage {
    let mut rows = mixed_rows();
    rows[1].row.verdict = verdict;
    let mut stage = Stage::open(size, rows);
    stage.keys("j e");
    stage
}

#[test]
fn e_switches_between_timeline_and_evidence() {
    let mut stage = with_verdict(SIZE, None);
    assert_eq!(stage.model.focus, Focus::Detail, "opened with the evidence");
    assert!(stage.text().contains("OUR ROW BESIDE THE PROVIDER'S"));
    stage.keys("e");
    assert!(stage.text().contains("WHAT SETTLES IT"));
    stage.keys("esc enter");
    assert!(
        !stage.text().contains("OUR ROW"),
        "enter opens what was there last"
    );
    let mut beside = with_verdict((200, 60), None);
    assert_eq!(
        beside.model.focus,
        Focus::List,
        "beside the list it only switches"
    );
    beside.keys("e");
    assert!(beside.text().contains("TIMELINE"));
}

#[test]
fn what_differs_from_our_row_has_a_sign_and_a_colour() {
    let stage = with_verdict((120, 60), Some(Verdict::Ambiguous));
    let text = stage.text();
    for shown in [
        "= payment     pi_order_4417",
        "= amount      USD 38.00",
        "≠ operation   op_00000000000000000000000000005521",
        "re_77",
        "may be ours",
    ] {
        assert!(text.contains(shown), "{shown:?}\n{text}");
    }
    let buffer = buffer(&stage.model);
    let (x, y) = (0..buffer.area.height)
        .flat_map(|y| (0..buffer.area.width).map(move |x| (x, y)))
        .find(|at| buffer[*at].symbol() == "≠")
        .expect("the sign");
    assert_eq!(buffer[(x, y)].fg, ratatui::style::Color::LightRed);
    assert_eq!(buffer[(x + 20, y)].fg, ratatui::style::Color::LightRed);
}

#[test]
fn it_says_what_is_proven_and_what_is_missing_and_the_next_step() {
    let text = |verdict| with_verdict((120, 60), verdict).text();
    let none = text(None);
    assert!(none.contains("nobody knows whether it happened"), "{none}");
    assert!(none.contains("A complete lookup: press L first."));
    assert!(none.contains("ALLOWED NOW"));
    assert!(none.contains("review lookup"), "where it comes from");
    let absent = text(Some(Verdict::Absent));
    assert!(
        absent.contains("It did not happen: a complete lookup that began 1m50s ago"),
        "{absent}"
    );
    assert!(absent.contains("Nothing: one person can close it."));
    let doubtful = text(Some(Verdict::Ambiguous));
    assert!(doubtful.contains("may be ours, and a person has to look"));
    assert!(doubtful.contains("A second person: you propose, another lead decides."));
}

#[test]
fn narrow_screens_have_the_values_one_below_the_other() {
    let mut stage = with_verdict((60, 16), Some(Verdict::Ambiguous));
    let mut seen = String::new();
    for _ in 0..40 {
        seen.push_str(&stage.text());
        stage.keys("j");
    }
    for shown in [
        "≠ operation   ours    op_00000000000000000000000000005521",
        "theirs  none",
        "PROVEN",
        "MISSING",
        "SOURCES",
    ] {
        assert!(seen.contains(shown), "{shown:?}\n{seen}");
    }
}

#[test]
fn a_refused_row_does_not_say_that_an_effect_is_possible() {
    let mut stage = stage();
    stage.keys("5 enter");
    let text = stage.text();
    assert!(
        text.contains("effect none: the provider refused it"),
        "{text}"
    );
    assert!(!text.contains("effect possible"));
    stage.keys("esc 3 enter");
    assert!(stage.text().contains("effect possible"), "where it is");
}

#[test]
fn everything_that_lies_over_the_page_has_an_ascii_form() {
    let mut setup = setup((100, 30));
    setup.theme =
        samekey::tui::theme::Theme::new(samekey::tui::theme::ThemeName::Default, false, true);
    let mut rows = mixed_rows();
    rows[1].row.verdict = Some(Verdict::Ambiguous);
    rows[1].row.claim = Some(Claim {
        by: name("bob"),
        until: ahead(600),
    });
    rows[2].row.snoozed_until = Some(ahead(600));
    let mut stage = Stage::new(setup, rows);
    for keys in ["space j", ":", "esc z", "esc 6 s", "esc e", "e esc o"] {
        stage.keys(keys);
        if keys.ends_with('o') {
            stage.told(Ok("https://example.com/re_1"));
        }
        let text = stage.text();
        let odd: String = text.chars().filter(|c| !c.is_ascii()).collect();
        assert_eq!(odd, "", "{keys}\n{text}");
    }
}

// --- narrow heads --------------------------------------------------------------------------------

#[test]
fn a_sort_arrow_never_takes_a_letter_of_a_head() {
    for width in [60, 80, 100, 120, 140] {
        let mut stage = Stage::open((width, 24), mixed_rows());
        stage.keys("6");
        let heads = |stage: &Stage| {
            let text = stage.text();
            let line = text.lines().find(|l| l.contains("ORDER")).expect("heads");
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let arrows = |line: &str| line.replace(['▼', '▲'], " ");
        let plain = arrows(&heads(&stage));
        let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        for _ in Sort::VARIANTS {
            stage.keys("s j enter");
            let sorted = arrows(&heads(&stage));
            let words: Vec<&str> = sorted.split_whitespace().collect();
            assert_eq!(words.join(" "), plain, "{width}");
        }
    }
}

#[test]
fn no_word_of_what_settles_a_row_is_cut() {
    for width in [60, 66, 72, 80, 90, 100, 110, 120] {
        let mut stage = Stage::open((width, 24), mixed_rows());
        stage.rows[1].row.verdict = Some(Verdict::Ambiguous);
        stage.refresh();
        let text = stage.text();
        let rows = text
            .lines()
            .filter(|l| l.contains("op_…") && !l.starts_with(" op_"));
        for line in rows.take(5) {
            assert_eq!(line.matches('…').count(), 1, "{width}: {line}");
        }
    }
}

#[test]
fn the_header_drops_what_matters_least_and_never_the_environment_or_the_age_u17_u20() {
    for width in 60..=130 {
        let mut setup = setup((width, 24));
        setup.environment = environment("live");
        setup.access = Access::of(true);
        let mut stage = Stage::new(setup, mixed_rows());
        stage.deaf = true;
        stage.pass(70);
        let text = stage.text();
        let header = text.lines().next().expect("a header");
        for shown in ["! LIVE stripe !", "!STALE 1m10s old", "READ-ONLY"] {
            assert!(header.contains(shown), "{width}: {header}");
        }
        assert!(!header.contains('…'), "{width}: {header}");
        let role = header.contains("reviewer");
        assert!(!role || header.contains("ann"), "{width}: {header}");
    }
}
