//! What the screen looks like at the four sizes, and that its colours carry what they should.

#[path = "common/tui.rs"]
mod kit;

use kit::*;
use ratatui::style::{Color, Modifier};
use samekey::domain::evidence::Verdict;
use samekey::engine::{EngineHealth, EngineState};
use samekey::tui::action::Level;
use samekey::tui::message::Message;

const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 40), (200, 60)];

fn stage(size: (u16, u16)) -> Stage {
    let mut stage = Stage::open(size, mixed_rows());
    stage.give(Message::Health(EngineHealth {
        state: EngineState::Running,
        workers: 8,
        busy: 3,
        alarm: None,
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
fn a_closing_dialog_at_every_size() {
    for size in SIZES {
        let mut stage = stage(size);
        stage.dialog("j F", Level::TokenAndNote);
        snap("dialog_close", &stage);
    }
}

#[test]
fn a_lookup_dialog_and_the_help_and_the_filter() {
    for size in [(60, 16), (80, 24), (120, 40)] {
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
fn a_live_screen_with_a_proposal_dialog() {
    let mut setup = setup((80, 24));
    setup.environment = environment("live");
    let mut stage = Stage::new(setup, mixed_rows());
    stage.dialog("j R", Level::SecondPerson);
    stage.keys("tab 'live' tab 'x'");
    snap("dialog_live", &stage);
}
