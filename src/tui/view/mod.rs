//! The frame of a model: pure, one file per part of the screen.
//!
//! Owns: what is drawn where. Never: changes the model, reads the time, or lets text from outside
//! into a cell without [`super::format::clean`]. Tests: `tests/tui_snapshots.rs`,
//! `tests/tui_properties.rs`.

mod audit;
mod banner;
mod detail;
pub mod dialog;
mod engine;
mod evidence;
mod facts;
mod feed;
mod footer;
mod grid;
mod header;
mod help;
mod ink;
pub mod layout;
mod menu;
mod palette;
mod panel;
mod queue;
mod report;
mod small;
mod table;
mod tabs;
mod timeline;

pub use detail::scroll_limit as detail_scroll_limit;
pub use engine::{cursor_line as engine_cursor_line, scroll_limit as engine_scroll_limit};
pub use help::scroll_limit as help_scroll_limit;
pub use panel::pager_scroll;
pub use report::scroll_limit as report_scroll_limit;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::board::Board;
use super::model::Model;
use super::theme::Role;

/// Draws `model`. Works at every size, 0×0 included (U37).
pub fn view(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    // What the model believes and what the terminal has may differ for one frame after a resize.
    let fits = area.width >= model.size.0 && area.height >= model.size.1;
    let regions = layout::of(model);
    if regions.too_small || !fits {
        small::draw(model, frame);
        return;
    }
    header::draw(model, frame, regions.header);
    banner::draw(model, frame, regions.banners);
    tabs::draw(model, frame, regions.tabs);
    rule(model, frame, regions.rule);
    match model.board {
        None => {
            table::draw(model, frame, regions.table);
            detail::draw(model, frame, &regions);
        }
        Some(Board::Queue) => queue::draw(model, frame, regions.board),
        Some(Board::Engine) => engine::draw(model, frame, regions.board),
        Some(Board::Audit) => audit::draw(model, frame, regions.board),
        Some(Board::Report) => report::draw(model, frame, regions.board),
    }
    footer::draw(model, frame, &regions);
    if model.help.is_some() {
        help::draw(model, frame);
    }
    if let Some(open) = &model.menu {
        menu::draw(model, frame, open);
    }
    if let Some(open) = &model.palette {
        palette::draw(model, frame, open);
    }
    if let Some(open) = &model.popup {
        panel::pager(model, frame, open);
    }
    if let Some(open) = &model.dialog {
        dialog::draw(model, frame, open);
    }
    if model.theme.is_ascii() {
        spell_out(frame);
    }
}

/// The pictures that stand for control characters in outside text are beyond ASCII themselves.
fn spell_out(frame: &mut Frame<'_>) {
    let pictures = '\u{2400}'..='\u{243f}';
    for cell in &mut frame.buffer_mut().content {
        let mut chars = cell.symbol().chars();
        if chars.any(|c| pictures.contains(&c) || c == char::REPLACEMENT_CHARACTER) {
            cell.set_symbol("?");
        }
    }
}

/// The role of rules and frames: another one where real money moves.
fn rule_role(model: &Model) -> Role {
    if model.environment.is_live() {
        Role::RuleLive
    } else {
        Role::Rule
    }
}

fn rule(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let glyphs = &model.theme.glyphs;
    let text = glyphs.rule.repeat(usize::from(area.width));
    let spans = vec![ink::span(&model.theme, rule_role(model), text)];
    ink::line(frame, area, spans, glyphs.ellipsis);
}
