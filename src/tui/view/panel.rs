//! A framed area over everything else, and the text that waits in one.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::{Block, Clear};

use super::super::format;
use super::super::model::Model;
use super::super::pager::Pager;
use super::super::theme::Role;
use super::ink::{self, span};
use super::rule_role;

/// Widest text; lines that are longer are hard to read.
const WIDEST: u16 = 100;
/// A text of at most so many lines is a short word, in a narrow area.
const SHORT: usize = 6;

/// A text that waits for esc, scrolled as far as the model says.
pub fn pager(model: &Model, frame: &mut Frame<'_>, pager: &Pager) {
    dim(frame);
    let area = pager_area(frame.area(), &pager.text);
    let inner = panel(model, frame, area, &pager.title);
    let lines = wrapped(&pager.text, inner.width);
    let rows = text_rows(inner);
    let first = pager.scroll.min(lines.len().saturating_sub(rows));
    let more = lines.len().saturating_sub(first + rows);
    let theme = &model.theme;
    for (n, text) in lines.into_iter().skip(first).take(rows).enumerate() {
        let spans = vec![span(theme, Role::Text, text)];
        ink::line(frame, ink::row(inner, n), spans, theme.glyphs.ellipsis);
    }
    let mut hints = vec![
        span(theme, Role::Key, "esc"),
        span(theme, Role::Dim, " closes this"),
    ];
    if pager.copy.is_some() {
        hints.push(span(theme, Role::Key, "   y"));
        hints.push(span(theme, Role::Dim, " copies it"));
    }
    if more > 0 {
        hints.push(span(theme, Role::Key, "   j"));
        hints.push(span(theme, Role::Dim, format!(" {more} more lines")));
    }
    let last = usize::from(inner.height.saturating_sub(1));
    ink::line(frame, ink::row(inner, last), hints, theme.glyphs.ellipsis);
    frame.set_cursor_position((inner.x, inner.y));
}

/// How far the text can be scrolled, and how many lines a page of it has.
pub fn pager_scroll(model: &Model) -> (usize, usize) {
    let Some(pager) = &model.popup else {
        return (0, 0);
    };
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let inner = inside(pager_area(screen, &pager.text));
    let rows = text_rows(inner);
    let lines = wrapped(&pager.text, inner.width).len();
    (lines.saturating_sub(rows), rows)
}

fn pager_area(screen: Rect, text: &str) -> Rect {
    let width = |widest: u16| screen.width.saturating_sub(2).min(widest);
    let lines = |width: u16| wrapped(text, width.saturating_sub(4)).len();
    let narrow = width(66);
    let width = if lines(narrow) <= SHORT {
        narrow
    } else {
        width(WIDEST)
    };
    let height = u16::try_from(lines(width) + 4).unwrap_or(u16::MAX);
    centre(screen, width, height.min(screen.height))
}

/// Lines for the text: the last two are an empty one and the hints.
fn text_rows(inner: Rect) -> usize {
    usize::from(inner.height.saturating_sub(2))
}

/// Every line of the text on its own, its indentation kept.
fn wrapped(text: &str, width: u16) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let indent = " ".repeat(indent.min(usize::from(width) / 2));
        let room = usize::from(width).saturating_sub(indent.len());
        let lines = format::wrap(line, room).into_iter();
        out.extend(lines.map(|l| format!("{indent}{l}")));
    }
    out
}

/// What lies behind steps back.
pub fn dim(frame: &mut Frame<'_>) {
    let area = frame.area();
    let style = Style::new()
        .add_modifier(Modifier::DIM)
        .remove_modifier(Modifier::BOLD);
    frame.buffer_mut().set_style(area, style);
}

/// An area of that size in the middle.
pub fn centre(area: Rect, width: u16, height: u16) -> Rect {
    Rect {
        x: area.x + area.width.saturating_sub(width) / 2,
        y: area.y + area.height.saturating_sub(height) / 2,
        width,
        height,
    }
    .intersection(area)
}

/// An empty framed area; answers what is inside.
pub fn panel(model: &Model, frame: &mut Frame<'_>, area: Rect, title: &str) -> Rect {
    let theme = &model.theme;
    let title = format::fit(
        title,
        usize::from(area.width.saturating_sub(4)),
        theme.glyphs.ellipsis,
    );
    let role = if model.environment.is_live() {
        rule_role(model)
    } else {
        Role::Key
    };
    let block = Block::bordered()
        .border_set(theme.glyphs.border)
        .border_style(theme.style(role))
        .title(Span::styled(
            format!(" {title} "),
            theme.style(Role::Strong),
        ));
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    inside(area)
}

fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    }
}
