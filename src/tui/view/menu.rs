//! A menu: its choices, the present one marked, the cursor on one of them.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::super::format;
use super::super::menu::{Choice, Menu};
use super::super::model::Model;
use super::super::theme::Role;
use super::ink::{self, span};
use super::panel::{centre, dim, panel};

/// Columns of the choices, and between the parts of a line.
const LABELS: usize = 24;
const WIDTH: u16 = 58;

/// Draws it in the middle.
pub fn draw(model: &Model, frame: &mut Frame<'_>, menu: &Menu) {
    dim(frame);
    let lines = u16::try_from(menu.choices.len()).unwrap_or(u16::MAX);
    let area = centre(frame.area(), WIDTH, lines.saturating_add(4));
    let inner = panel(model, frame, area, &menu.title);
    for (n, choice) in menu.choices.iter().enumerate() {
        let area = ink::row(inner, n);
        line(model, frame, area, choice, n == menu.at);
        if n == menu.at && !area.is_empty() {
            frame.set_cursor_position((area.x, area.y));
        }
    }
    let theme = &model.theme;
    let mut hints = Vec::new();
    for (key, word) in [("enter", "takes it"), ("j k", "move"), ("esc", "leaves")] {
        hints.push(span(theme, Role::Key, format!("{key} ")));
        hints.push(span(theme, Role::Dim, format!("{word}   ")));
    }
    ink::line(frame, ink::row(inner, menu.choices.len() + 1), hints, "");
}

fn line(model: &Model, frame: &mut Frame<'_>, area: Rect, choice: &Choice, here: bool) {
    let (theme, glyphs) = (&model.theme, &model.theme.glyphs);
    let mark = if here { glyphs.cursor } else { " " };
    let present = if choice.present { glyphs.dot } else { " " };
    let role = |usual: Role| if here { Role::Cursor } else { usual };
    let room = usize::from(area.width).saturating_sub(LABELS + 4);
    let spans = vec![
        span(theme, role(Role::Key), format!("{mark} {present} ")),
        span(
            theme,
            role(Role::Text),
            format::cell(&choice.label, LABELS, false, glyphs.ellipsis),
        ),
        span(
            theme,
            role(Role::Dim),
            format::cell(&choice.hint, room, false, glyphs.ellipsis),
        ),
    ];
    ink::line(frame, area, spans, glyphs.ellipsis);
}
