//! A board that is a long list: heads, rows, and one cursor, drawn as the list of operations is.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::format::{self, Times};
use super::super::model::Model;
use super::super::selection::{Entry, List, Row};
use super::super::theme::Role;
use super::ink::{self, span};
use crate::domain::Instant;

/// A column: its head, its width, and whether it stands at the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<C> {
    pub what: C,
    pub title: &'static str,
    pub width: usize,
    pub right: bool,
}

/// A column at the left.
pub const fn left<C>(what: C, title: &'static str, width: usize) -> Column<C> {
    Column {
        what,
        title,
        width,
        right: false,
    }
}

/// A column at the right.
pub const fn right<C>(what: C, title: &'static str, width: usize) -> Column<C> {
    Column {
        what,
        title,
        width,
        right: true,
    }
}

/// Leaves out what `dropped` names, in that order, until the rest fits; then gives what is left over to
/// what `grows` names, up to a width each.
pub fn fitted<C: Copy + PartialEq>(
    mut columns: Vec<Column<C>>,
    width: usize,
    dropped: &[C],
    grows: &[(C, usize)],
) -> Vec<Column<C>> {
    let needed = |all: &[Column<C>]| all.iter().map(|c| c.width + 1).sum::<usize>() + 1;
    for what in dropped {
        if needed(&columns) > width {
            columns.retain(|c| c.what != *what);
        }
    }
    let mut spare = width.saturating_sub(needed(&columns));
    for (what, most) in grows {
        if let Some(column) = columns.iter_mut().find(|c| c.what == *what) {
            let more = spare.min(most.saturating_sub(column.width));
            column.width += more;
            spare -= more;
        }
    }
    columns
}

/// Draws heads and rows, and puts the terminal's cursor on the selected one (U48). `empty` is said
/// where there is no row.
pub fn draw<R: Row, C: Copy>(
    model: &Model,
    frame: &mut Frame<'_>,
    area: Rect,
    list: &List<R>,
    columns: &[Column<C>],
    cell: impl Fn(&R, C) -> (String, Role),
    empty: &str,
) {
    if area.is_empty() {
        return;
    }
    heads(model, frame, area, columns);
    let entries = list.visible();
    if entries.is_empty() {
        let text = if list.loaded {
            empty.to_owned()
        } else {
            format!("reading the ledger{}", model.theme.glyphs.wait)
        };
        let spans = vec![span(&model.theme, Role::Dim, format!("   {text}"))];
        ink::line(frame, ink::row(area, 2), spans, model.theme.glyphs.ellipsis);
        return;
    }
    let cursor = list.index();
    for (n, entry) in entries.iter().enumerate() {
        let here = cursor == Some(list.offset() + n);
        let area = ink::row(area, n + 1);
        if area.is_empty() {
            break;
        }
        line(model, frame, area, entry, here, columns, &cell);
        if here {
            frame.set_cursor_position((area.x, area.y));
        }
    }
}

fn heads<C>(model: &Model, frame: &mut Frame<'_>, area: Rect, columns: &[Column<C>]) {
    let theme = &model.theme;
    let mut spans = vec![Span::raw(" ")];
    for column in columns {
        let text = format::cell(column.title, column.width, column.right, "");
        spans.push(Span::raw(" "));
        spans.push(span(theme, Role::Dim, text));
    }
    ink::line(frame, ink::row(area, 0), spans, theme.glyphs.ellipsis);
}

fn line<R, C: Copy>(
    model: &Model,
    frame: &mut Frame<'_>,
    area: Rect,
    entry: &Entry<R>,
    here: bool,
    columns: &[Column<C>],
    cell: &impl Fn(&R, C) -> (String, Role),
) {
    let theme = &model.theme;
    let glyphs = &theme.glyphs;
    let mark = match (here, entry.gone) {
        (_, true) => glyphs.gone,
        (true, false) => glyphs.cursor,
        (false, false) => " ",
    };
    // One style over the whole row under the cursor: reversed patches of colour cannot be read.
    let base = here.then_some(Role::Cursor);
    let mut spans = vec![span(theme, base.unwrap_or(Role::Key), mark)];
    for column in columns {
        let (text, role) = cell(&entry.listed, column.what);
        let text = format::cell(&text, column.width, column.right, glyphs.ellipsis);
        let role = match base {
            Some(base) => base,
            None if entry.gone => Role::Dim,
            None => role,
        };
        spans.push(span(theme, base.unwrap_or(Role::Text), " "));
        spans.push(span(theme, role, text));
    }
    ink::line(frame, area, spans, glyphs.ellipsis);
    if here {
        let mut style = theme.style(Role::Cursor);
        if entry.gone {
            style = style.patch(theme.style(Role::Dim));
        }
        frame.buffer_mut().set_style(area, style);
    }
}

/// Columns that an instant takes in the present spelling: with the day where there is room.
pub fn time_width(model: &Model, roomy: bool) -> usize {
    match (model.times, roomy) {
        (Times::Relative, _) => 8,
        (Times::Utc, false) => 9,
        (Times::Utc, true) => 15,
        (Times::Local, false) => 14,
        (Times::Local, true) => 20,
    }
}

/// An instant in the present spelling; its age where that does not fit, which says no less.
pub fn time(model: &Model, at: Instant, width: usize) -> String {
    let age = || format::age(at, model.now);
    match model.times {
        Times::Relative => age(),
        Times::Utc | Times::Local => {
            let text = model.stamp().at(at);
            if format::width(&text) <= width {
                text
            } else {
                age()
            }
        }
    }
}
