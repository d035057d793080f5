//! The help page, made from the key map.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Clear;

use super::super::format;
use super::super::keymap::{self, Binding, Context};
use super::super::model::Model;
use super::super::theme::Role;
use super::ink::{self, span};

type Spans = Vec<Span<'static>>;

/// Draws it over the whole screen.
pub fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    frame.render_widget(Clear, area);
    let lines = lines(model);
    let body = Rect {
        height: area.height.saturating_sub(1),
        ..area
    };
    let first = model.help.unwrap_or(0).min(limit(lines.len(), body.height));
    let more = lines.len().saturating_sub(first + usize::from(body.height));
    for (n, spans) in lines.into_iter().skip(first).enumerate() {
        ink::line(frame, ink::row(body, n), spans, model.theme.glyphs.ellipsis);
    }
    let theme = &model.theme;
    let mut spans = vec![
        span(theme, Role::Key, " esc"),
        span(theme, Role::Dim, " closes"),
    ];
    if more > 0 {
        spans.push(span(theme, Role::Key, "   j"));
        spans.push(span(
            theme,
            Role::Dim,
            format!(" goes on, {more} more lines"),
        ));
    }
    let last = ink::row(area, usize::from(area.height.saturating_sub(1)));
    ink::line(frame, last, spans, theme.glyphs.ellipsis);
    frame.set_cursor_position((area.x, area.y));
}

/// How far the help can be scrolled.
pub fn scroll_limit(model: &Model) -> usize {
    limit(lines(model).len(), model.size.1.saturating_sub(1))
}

fn limit(lines: usize, height: u16) -> usize {
    lines.saturating_sub(usize::from(height))
}

type Belongs = fn(&Binding) -> bool;

const SECTIONS: [(&str, Belongs); 4] = [
    ("LOOK", |b| in_lists(b) && !b.action.acts()),
    ("ACT, each after a question", |b| {
        in_lists(b) && b.action.acts()
    }),
    ("IN A DIALOG, FILTER, MENU OR TEXT", |b| {
        !in_lists(b) && !everywhere(b)
    }),
    ("EVERYWHERE", everywhere),
];
/// Columns of the keys.
const KEYS: usize = 23;

fn lines(model: &Model) -> Vec<Spans> {
    let theme = &model.theme;
    let mut out = vec![vec![
        span(theme, Role::Strong, " Keys"),
        span(
            theme,
            Role::Dim,
            "   lower case looks, upper case acts; enter never confirms",
        ),
    ]];
    for (title, belongs) in SECTIONS {
        out.push(Vec::new());
        out.push(vec![span(theme, Role::Dim, format!(" {title}"))]);
        for (keys, help) in keymap::lines(belongs) {
            let keys = format::cell(&keys, KEYS, false, theme.glyphs.ellipsis);
            out.push(vec![
                span(theme, Role::Key, format!("   {keys} ")),
                span(theme, Role::Text, help),
            ]);
        }
    }
    out
}

fn in_lists(binding: &Binding) -> bool {
    let lists = [Context::List, Context::Detail, Context::Board];
    lists.iter().any(|c| binding.on.contains(c)) && !everywhere(binding)
}

/// Whether it works even where text is written.
fn everywhere(binding: &Binding) -> bool {
    binding.on.contains(&Context::List) && binding.on.contains(&Context::Filter)
}
