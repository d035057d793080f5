//! What the screen looks like at the four sizes, and that its colours carry what they should.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[path = "common/tui.rs"]
mod kit;

use kit::*;
use ratatui::style::{Color, Modifier};
use samekey::domain::evidence::Verdict;
use samekey::engine::{EngineHealth, EngineState};
use samekey::tui::action::Level;
use samekey::tui::message::{Failure, Message};

const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 40), (200, 60)];

fn stage(size: (u16, u16)) -> Stage {
    let mut stage = Stage::open(size, mixed_rows());
    stage.give(Message::Health(EngineHealth {
        state: EngineState::Running,
        workers: 8,
        busy: 3,
        alarm: None,
        ..EngineHealth::default()
    }));
    stage
}

fn snap(name: &str, stage: &Stage) {
    let (width, height) = stage.model.size;
    insta::assert_snapshot!(format!("{name}_{width}x{height}"), stage.text());
}

#[test]
fn the_list_at_every_size() {
    for size in SIZES {
        let mut stage = stage(size);
        stage.keys("j");
        snap("list", &stage);
    }
}

#[test]
fn the_detail_at_every_size() {
    for size in SIZES {
        let mut rows = mixed_rows();
        rows[1].row.verdict = Some(Verdict::Ambiguous);
        let mut stage = Stage::open(size, rows);
        stage.keys("j enter");
        snap("detail", &stage);
    }
}

#[test]
fn the_evidence_at_every_size() {
    for size in SIZES {
        let mut rows = mixed_rows();
        rows[1].row.verdict = Some(Verdict::Ambiguous);
        let mut stage = Stage::open(size, rows);
        stage.keys("j e");
        snap("evidence", &stage);
    }
}

#[test]
fn the_command_line_and_the_menus_at_every_size() {
    for size in SIZES {
        let mut stage = stage(size);
        stage.keys("j : down");
        snap("palette", &stage);
        stage.keys("'lo'");
        snap("palette_written", &stage);
        stage.keys("esc z");
        snap("menu_snooze", &stage);
        stage.keys("esc 6 s j");
        snap("menu_sort", &stage);
    }
}

#[test]
fn marks_claims_and_snoozes_at_every_size() {
    for size in SIZES {
        let mut rows = mixed_rows();
        rows[2].row.claim = Some(samekey::domain::operation::Claim {
            by: name("bob"),
            until: ahead(600),
        });
        rows[4].row.snoozed_until = Some(ahead(7_200));
        let mut stage = Stage::open(size, rows);
        stage.keys("space j space j");
        snap("marks", &stage);
    }
}

#[test]
fn a_text_over_everything_at_every_size() {
    let lines: Vec<String> = (1..40)
        .map(|n| format!("- request req_{n}: HTTP 500, replayed, and a few more words to wrap"))
        .collect();
    let packet = lines.join("\n");
    for size in SIZES {
        let mut stage = stage(size);
        stage.keys("j o");
        stage.told(Ok("https://dashboard.stripe.com/test/refunds/re_77"));
        snap("text_link", &stage);
        stage.keys("esc : 'packet' enter");
        stage.told(Ok(&packet));
        stage.keys("j j");
        snap("text_packet", &stage);
    }
}

#[test]
fn a_closing_dialog_at_every_size() {
    for size in SIZES {
        let mut stage = stage(size);
        stage.dialog("j F", Level::TokenAndNote);
        snap("dialog_close", &stage);
    }
}

#[test]
fn a_lookup_dialog_and_the_help_and_the_filter() {
    for size in SIZES {
        let mut stage = stage(size);
        stage.dialog("j L", Level::Plain);
        snap("dialog_lookup", &stage);
        stage.keys("esc ?");
        snap("help", &stage);
        stage.keys("esc / 'status:unknwon' enter");
        snap("filter_wrong", &stage);
    }
}

#[test]
fn all_operations_with_a_tombstone_and_news() {
    let mut stage = stage((80, 24));
    stage.keys("3 6 j");
    stage.rows.insert(0, listed(unknown(0x9000)));
    stage.rows.remove(2);
    stage.refresh();
    snap("list_all", &stage);
}

#[test]
fn a_row_that_moved_on_and_one_that_was_lost() {
    let mut stage = stage((80, 24));
    stage.dialog("j F", Level::TokenAndNote);
    stage.rows[1].row.version = 9;
    stage.refresh();
    snap("dialog_moved_on", &stage);
    let mut lost = self::stage((80, 24));
    lost.dialog("j F", Level::TokenAndNote);
    lost.keys("tab '5521' tab 'seen' ctrl-y");
    lost.done(Err(Failure {
        why:
            "the row was closed as succeeded by reviewer:bob; that stands (at 2026-03-14 14:03:20Z)"
                .into(),
        moved_to: None,
    }));
    snap("dialog_lost", &lost);
}

#[test]
fn an_old_screen_with_trouble_everywhere() {
    let mut stage = stage((100, 28));
    stage.deaf = true;
    stage.give(Message::Scoreboard(vec![
        "samekey: 12 intents, 12 refunds, 0 twice".into(),
    ]));
    let generation = stage.model.reading.generation;
    stage.give(Message::LoadFailed {
        generation,
        why: "the ledger cannot be reached: disk I/O error".into(),
    });
    stage.give(Message::Health(EngineHealth {
        state: EngineState::Running,
        workers: 8,
        busy: 0,
        alarm: Some("the clock ran back 12 min".into()),
        ..EngineHealth::default()
    }));
    stage.pass(12);
    snap("trouble", &stage);
}

#[test]
fn the_empty_pages() {
    let mut stage = Stage::open((80, 24), Vec::new());
    snap("empty_review", &stage);
    stage.give(Message::Resize {
        width: 40,
        height: 8,
    });
    snap("too_small", &stage);
}

// --- what text cannot show ------------------------------------------------------------------------

/// The style of the first place where `text` is drawn.
fn style_of(stage: &Stage, text: &str) -> (Color, Modifier) {
    let buffer = buffer(&stage.model);
    let wanted: Vec<String> = text.chars().map(String::from).collect();
    for y in 0..buffer.area.height {
        for x in 0..buffer.area.width {
            let fits = wanted
                .iter()
                .zip(x..)
                .all(|(symbol, x)| buffer.cell((x, y)).is_some_and(|c| c.symbol() == symbol));
            if fits {
                return (buffer[(x, y)].fg, buffer[(x, y)].modifier);
            }
        }
    }
    panic!("{text:?} is not on the screen\n{}", stage.text());
}

#[test]
fn the_selected_row_is_one_reversed_piece_and_its_glyph_and_word_stay() {
    let mut stage = stage((80, 24));
    stage.keys("j");
    let buffer = buffer(&stage.model);
    for x in 0..80 {
        let cell = &buffer[(x, 4)];
        assert!(cell.modifier.contains(Modifier::REVERSED), "column {x}");
        assert_eq!(cell.fg, Color::Reset, "no patches of colour");
    }
    assert!(stage.text().contains("? unknown"));
}

#[test]
fn a_status_has_its_colour_in_the_list() {
    let mut stage = stage((80, 24));
    stage.keys("6");
    assert_eq!(style_of(&stage, "? unknown").0, Color::LightMagenta);
    assert_eq!(style_of(&stage, "✓ refunded").0, Color::Green);
    assert_eq!(style_of(&stage, "✗ failed").0, Color::LightRed);
    assert_eq!(style_of(&stage, "● open").0, Color::Cyan);
}

#[test]
fn live_paints_another_frame_and_the_backdrop_of_a_dialog_steps_back() {
    let mut setup = setup((80, 24));
    setup.environment = environment("live");
    let mut stage = Stage::new(setup, mixed_rows());
    let (colour, modifier) = style_of(&stage, "! LIVE stripe !");
    assert_eq!(colour, Color::LightRed);
    assert!(modifier.contains(Modifier::REVERSED));
    assert_eq!(style_of(&stage, "────────").0, Color::LightRed);
    stage.dialog("j F", Level::TokenAndNote);
    assert_eq!(style_of(&stage, "┌").0, Color::LightRed);
    assert!(style_of(&stage, "ORDER").1.contains(Modifier::DIM));
    assert!(
        style_of(&stage, "[ Cancel ]")
            .1
            .contains(Modifier::REVERSED)
    );
    let calm = self::stage((80, 24));
    assert_eq!(style_of(&calm, "────────").0, Color::DarkGray);
}

#[test]
fn stale_is_amber_and_then_red_u20() {
    let mut stage = stage((120, 40));
    stage.deaf = true;
    stage.pass(5);
    assert_eq!(style_of(&stage, "STALE 5s").0, Color::Yellow);
    stage.pass(10);
    assert_eq!(style_of(&stage, "!STALE 15s").0, Color::LightRed);
}

#[test]
fn a_live_screen_with_a_proposal_dialog() {
    let mut setup = setup((80, 24));
    setup.environment = environment("live");
    let mut stage = Stage::new(setup, mixed_rows());
    stage.dialog("j R", Level::SecondPerson);
    stage.keys("tab 'live' tab 'x'");
    snap("dialog_live", &stage);
    // The caret is where the next letter goes.
    assert_eq!(cursor(&stage.model), (25, 15));
}

#[test]
fn over_a_page_the_choice_is_reversed_and_what_cannot_be_is_dim() {
    let mut stage = stage((80, 24));
    // Closed already, so there is nothing to stop.
    stage.keys(": 'stop'");
    assert!(style_of(&stage, "▸ stop").1.contains(Modifier::REVERSED));
    assert!(style_of(&stage, "▸ stop").1.contains(Modifier::DIM));
    stage.keys("esc j : 'look'");
    let (_, modifier) = style_of(&stage, "▸ lookup");
    assert!(modifier.contains(Modifier::REVERSED) && !modifier.contains(Modifier::DIM));
    // The caret is where the next letter goes (U48), the page behind steps back.
    assert_eq!(cursor(&stage.model), (8, 2));
    assert!(style_of(&stage, "reviewer").1.contains(Modifier::DIM));
    stage.keys("esc 6 s");
    assert!(
        style_of(&stage, "▸ ● updated")
            .1
            .contains(Modifier::REVERSED)
    );
}

#[test]
fn a_live_screen_paints_its_frame_around_everything_u17() {
    let mut setup = setup((80, 24));
    setup.environment = environment("live");
    let mut stage = Stage::new(setup, mixed_rows());
    for keys in [":", "esc j z", "esc 6 s"] {
        stage.keys(keys);
        assert_eq!(style_of(&stage, "┌").0, Color::LightRed, "{keys}");
    }
    stage.keys("esc o");
    stage.told(Ok("https://dashboard.stripe.com/refunds/re_9"));
    assert_eq!(style_of(&stage, "┌").0, Color::LightRed);
}
