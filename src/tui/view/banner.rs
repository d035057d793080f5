//! Lines under the header: what is wrong, what is missing, and the demo's scoreboard.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::super::format;
use super::super::message::EngineState;
use super::super::model::Model;
use super::super::theme::Role;
use super::ink::{self, span};

/// Draws as many as there is room for.
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = &model.theme;
    let lines = lines(model, usize::from(area.width));
    for (n, (role, text)) in lines.into_iter().enumerate() {
        let sign = match role {
            Role::Alarm => theme.glyphs.alarm,
            Role::Warn => theme.glyphs.sep,
            _ => " ",
        };
        let spans = vec![span(theme, role, format!(" {sign} {text}"))];
        ink::line(frame, ink::row(area, n), spans, theme.glyphs.ellipsis);
    }
}

/// Everything that has to be told, most urgent first.
pub fn lines(model: &Model, width: usize) -> Vec<(Role, String)> {
    let mut lines: Vec<(Role, String)> = Vec::new();
    if let Some(why) = &model.reading.problem {
        lines.push((Role::Alarm, why.clone()));
    }
    if let Some(alarm) = &model.health.alarm {
        lines.push((Role::Alarm, format!("nothing is sent: {alarm}")));
    } else if let EngineState::Down(why) = &model.health.state {
        lines.push((Role::Alarm, format!("the engine is down: {why}")));
    }
    if let Some(notice) = &model.environment.notice {
        lines.push((Role::Warn, notice.clone()));
    }
    // The scoreboard is one line where that fits, else a line for each part.
    let bar = format!("  {}  ", model.theme.glyphs.bar);
    let board = model.scoreboard.join(&bar);
    if format::width(&board) + 3 <= width {
        lines.extend((!board.is_empty()).then_some((Role::Text, board)));
    } else {
        lines.extend(model.scoreboard.iter().map(|l| (Role::Text, l.clone())));
    }
    lines
}
