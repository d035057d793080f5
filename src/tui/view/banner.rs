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
        let spans = vec![span(theme, role, text)];
        ink::line(frame, ink::row(area, n), spans, theme.glyphs.ellipsis);
    }
}

/// Everything that has to be told, most urgent first, in lines of `width`.
pub fn lines(model: &Model, width: usize) -> Vec<(Role, String)> {
    let glyphs = &model.theme.glyphs;
    let mut lines: Vec<(Role, String)> = Vec::new();
    for (role, text) in told(model) {
        let sign = if role == Role::Alarm {
            glyphs.alarm
        } else {
            glyphs.sep
        };
        for (n, line) in format::wrap(&text, width.saturating_sub(4))
            .into_iter()
            .enumerate()
        {
            let sign = if n == 0 { sign } else { " " };
            lines.push((role, format!(" {sign} {line}")));
        }
    }
    // The scoreboard is one line where that fits, else a line for each part.
    let board = model.scoreboard.join(&format!("  {}  ", glyphs.bar));
    if format::width(&board) + 3 <= width {
        lines.extend((!board.is_empty()).then(|| (Role::Text, format!("   {board}"))));
    } else {
        let parts = model.scoreboard.iter();
        lines.extend(parts.map(|l| (Role::Text, format!("   {l}"))));
    }
    lines
}

fn told(model: &Model) -> Vec<(Role, String)> {
    let mut told: Vec<(Role, String)> = Vec::new();
    if let Some(why) = &model.reading.problem {
        told.push((Role::Alarm, why.clone()));
    }
    let board = model.board.map(|b| model.boards.reading(b));
    if let Some(why) = board.and_then(|r| r.problem.as_ref())
        && model.reading.problem.as_ref() != Some(why)
    {
        told.push((Role::Alarm, why.clone()));
    }
    let notice = model.environment.notice.as_ref();
    match (&model.health.alarm, &model.health.state) {
        // What is missing here is told once, as what it is.
        (Some(alarm), _) if Some(alarm) != notice => {
            told.push((Role::Alarm, format!("nothing is sent: {alarm}")));
        }
        (None, EngineState::Down(why)) => {
            told.push((Role::Alarm, format!("the engine is down: {why}")));
        }
        _ => {}
    }
    if let Some(why) = &model.health.notices {
        told.push((Role::Warn, format!("telling others fails: {why}")));
    }
    for standing in &model.standing {
        told.push((Role::Warn, format!("{}: {}", standing.tool, standing.why)));
    }
    told.extend(notice.map(|text| (Role::Warn, text.clone())));
    told
}
