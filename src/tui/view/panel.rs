//! A framed area over everything else, and the text that waits in one.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::{Block, Clear};

use super::super::format;
use super::super::model::Model;
use super::super::theme::Role;
use super::ink::{self, span};
use super::rule_role;

/// A text that waits for esc.
pub fn popup(model: &Model, frame: &mut Frame<'_>, title: &str, text: &str) {
    dim(frame);
    let width = frame.area().width.saturating_sub(2).min(66);
    let lines = format::wrap(text, usize::from(width.saturating_sub(4)));
    let height = u16::try_from(lines.len() + 4).unwrap_or(u16::MAX);
    let area = centre(frame.area(), width, height.min(frame.area().height));
    let inner = panel(model, frame, area, title);
    let theme = &model.theme;
    let all = lines
        .into_iter()
        .map(|l| vec![span(theme, Role::Text, l)])
        .chain([
            Vec::new(),
            vec![
                span(theme, Role::Key, "esc"),
                span(theme, Role::Dim, " closes this"),
            ],
        ]);
    for (n, spans) in all.enumerate() {
        ink::line(frame, ink::row(inner, n), spans, theme.glyphs.ellipsis);
    }
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
    Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    }
}
