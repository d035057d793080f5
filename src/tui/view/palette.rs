//! The `:` line with what it may mean: name, key, and what it does or why it cannot.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::format;
use super::super::keymap::Binding;
use super::super::model::Model;
use super::super::palette::Palette;
use super::super::possible::why_not;
use super::super::theme::Role;
use super::ink::{self, span};
use super::panel::{centre, dim, panel};

/// Columns of the names and of the keys.
const NAMES: usize = 16;
const KEYS: usize = 12;
const WIDEST: u16 = 84;
const HIGHEST: u16 = 22;

/// Draws it near the top, above the lower rule, which goes on saying what happens. Its size does not
/// depend on what is written, so that it stands still.
pub fn draw(model: &Model, frame: &mut Frame<'_>, palette: &Palette) {
    dim(frame);
    let all = frame.area();
    let width = all.width.saturating_sub(2).min(WIDEST);
    let height = all.height.saturating_sub(3).min(HIGHEST);
    let area = Rect {
        y: all.y + 1,
        ..centre(all, width, height)
    }
    .intersection(all);
    let inner = panel(model, frame, area, "command");
    line(model, frame, ink::row(inner, 0), palette);
    // The line itself, and below the commands what the chosen one does, in full.
    let rows = usize::from(inner.height.saturating_sub(2));
    let commands = palette.commands();
    if commands.is_empty() {
        let spans = vec![span(&model.theme, Role::Warn, "no action has such a name")];
        ink::line(frame, ink::row(inner, 1), spans, "");
        return;
    }
    let chosen = palette.chosen();
    if let Some(command) = chosen {
        let (role, text) = told(model, command);
        let last = ink::row(inner, rows + 1);
        ink::line(frame, last, vec![span(&model.theme, role, text)], "");
    }
    let at = commands
        .iter()
        .position(|b| Some(b.action) == chosen.map(|c| c.action));
    let at = at.unwrap_or(0);
    // The cursor stays within the lines there are.
    let first = (at + 1).saturating_sub(rows);
    for (n, command) in commands.into_iter().skip(first).take(rows).enumerate() {
        let here = first + n == at;
        entry(model, frame, ink::row(inner, n + 1), command, here);
    }
}

/// What it does, or why it cannot now.
fn told(model: &Model, command: &Binding) -> (Role, String) {
    match why_not(model, command.action) {
        Some(why) => (Role::Warn, format!("not now: {why}")),
        None => (Role::Dim, command.help.to_owned()),
    }
}

fn line(model: &Model, frame: &mut Frame<'_>, area: Rect, palette: &Palette) {
    let theme = &model.theme;
    let room = usize::from(area.width).saturating_sub(2);
    let skip = (palette.field.caret() + 1).saturating_sub(room);
    let shown: String = palette.field.text().chars().skip(skip).collect();
    let spans = vec![
        span(theme, Role::Key, ":"),
        span(theme, Role::Strong, format::cell(&shown, room, false, "")),
    ];
    ink::line(frame, area, spans, "");
    let caret = u16::try_from(palette.field.caret() - skip + 1).unwrap_or(0);
    let x = area.x + caret.min(area.width.saturating_sub(1));
    frame.set_cursor_position((x, area.y));
}

fn entry(model: &Model, frame: &mut Frame<'_>, area: Rect, command: &Binding, here: bool) {
    let (theme, glyphs) = (&model.theme, &model.theme.glyphs);
    let why = why_not(model, command.action);
    let role = |usual: Role| match (here, &why) {
        (true, _) => Role::Cursor,
        (false, Some(_)) => Role::Dim,
        (false, None) => usual,
    };
    let keys = if command.keys.is_empty() {
        String::new()
    } else {
        command.spelled()
    };
    let (_, told) = told(model, command);
    let room = usize::from(area.width).saturating_sub(NAMES + KEYS + 2);
    let mark = if here { glyphs.cursor } else { " " };
    let spans: Vec<Span<'static>> = vec![
        span(theme, role(Role::Key), format!("{mark} ")),
        span(
            theme,
            role(Role::Strong),
            format::cell(command.action.name(), NAMES, false, glyphs.ellipsis),
        ),
        span(
            theme,
            role(Role::Key),
            format::cell(&keys, KEYS, false, glyphs.ellipsis),
        ),
        span(
            theme,
            role(Role::Text),
            format::cell(&told, room, false, glyphs.ellipsis),
        ),
    ];
    ink::line(frame, area, spans, glyphs.ellipsis);
    if here && why.is_some() {
        // Also under the cursor it can be seen that nothing would come of it.
        frame.buffer_mut().set_style(area, theme.style(Role::Dim));
    }
}
