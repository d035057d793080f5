//! The lists and how many rows each has, whatever the filter (U28).

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::format;
use super::super::message::{Counts, Tab};
use super::super::model::Model;
use super::super::theme::Role;
use super::ink::{self, span};

/// The lists in the order of their keys: long name, short name.
pub const TABS: [(Tab, &str, &str); 6] = [
    (Tab::Review, "Review", "Rev"),
    (Tab::Open, "Open", "Open"),
    (Tab::Unknown, "Unknown", "Unk"),
    (Tab::Succeeded, "Succeeded", "Succ"),
    (Tab::Failed, "Failed", "Fail"),
    (Tab::All, "All", "All"),
];

/// How many rows a list has.
pub fn count(counts: &Counts, tab: Tab) -> u64 {
    match tab {
        Tab::Review => counts.review,
        Tab::Open => counts.open,
        Tab::Unknown => counts.unknown,
        Tab::Succeeded => counts.succeeded,
        Tab::Failed => counts.failed,
        Tab::All => counts.all(),
    }
}

/// Draws them.
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width);
    let spans = [(true, true), (true, false), (false, false)]
        .into_iter()
        .map(|(long, bars)| tabs(model, long, bars))
        .find(|spans| ink::width(spans) <= columns)
        .unwrap_or_else(|| tabs(model, false, false));
    ink::line(frame, area, spans, model.theme.glyphs.ellipsis);
}

fn tabs(model: &Model, long: bool, bars: bool) -> Vec<Span<'static>> {
    let theme = &model.theme;
    let mut out = Vec::new();
    for (n, (tab, name, short)) in TABS.into_iter().enumerate() {
        if n > 0 && bars {
            out.push(span(theme, super::rule_role(model), theme.glyphs.bar));
        }
        let name = if long { name } else { short };
        let count = model.counts.map(|c| count(&c, tab));
        let shown = count.map_or_else(String::new, |c| {
            let digits = c.to_string();
            format!(" {}", if long { format::grouped(&digits) } else { digits })
        });
        let here = tab == model.tab;
        let wants = matches!(tab, Tab::Review | Tab::Unknown) && count.is_some_and(|c| c > 0);
        let role = match (here, wants) {
            (true, _) => Role::Cursor,
            (false, true) => Role::Unknown,
            (false, false) => Role::Text,
        };
        let text = format!(" {} {name}{shown} ", n + 1);
        out.push(span(theme, role, text));
    }
    out
}
