//! The page for a screen that is too small: still the unknown count and how to quit.

use ratatui::Frame;

use super::super::model::Model;
use super::super::theme::Role;
use super::{ink, layout};

/// Draws it into whatever there is.
pub fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let theme = &model.theme;
    let unknown = model.counts.map_or_else(
        || "unknown ?".to_owned(),
        |c| format!("unknown {}", c.unknown),
    );
    let lines = [
        (Role::Unknown, unknown),
        (Role::Key, "q quits".to_owned()),
        (
            Role::Text,
            format!(
                "samekey needs {}x{}, this is {}x{}",
                layout::MIN.0,
                layout::MIN.1,
                area.width,
                area.height
            ),
        ),
        (Role::Calm, model.environment.name().to_uppercase()),
    ];
    for (n, (role, text)) in lines.into_iter().enumerate() {
        let spans = vec![ink::span(theme, role, text)];
        ink::line(frame, ink::row(area, n), spans, theme.glyphs.ellipsis);
    }
}
