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

/// The same in words: the review list is counted up to a cap.
pub fn counted(counts: &Counts, tab: Tab) -> String {
    match count(counts, tab) {
        n if tab == Tab::Review && n > MOST_SAID => format!("{MOST_SAID}+"),
        n => format::grouped(&n.to_string()),
    }
}

/// Most rows of the review list that are said to be so many.
const MOST_SAID: u64 = 999;

/// Draws them, as long as the width allows.
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width);
    let spans = [Form::Bars, Form::Words, Form::Short]
        .into_iter()
        .map(|form| tabs(model, form))
        .find(|spans| ink::width(spans) <= columns)
        .unwrap_or_else(|| tabs(model, Form::Short));
    ink::line(frame, area, spans, model.theme.glyphs.ellipsis);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Bars,
    Words,
    Short,
}

fn tabs(model: &Model, form: Form) -> Vec<Span<'static>> {
    let theme = &model.theme;
    let mut out = Vec::new();
    for (n, (tab, name, short)) in TABS.into_iter().enumerate() {
        out.push(match form {
            Form::Bars if n == 0 => Span::raw(""),
            _ if n == 0 => Span::raw(" "),
            _ => span(theme, super::rule_role(model), theme.glyphs.bar),
        });
        let name = if form == Form::Short { short } else { name };
        let count = model.counts.map(|c| count(&c, tab));
        let shown = model
            .counts
            .map_or_else(String::new, |c| format!(" {}", number(&c, tab, form)));
        let wants = matches!(tab, Tab::Review | Tab::Unknown) && count.is_some_and(|c| c > 0);
        let role = match (tab == model.tab, wants) {
            (true, _) => Role::Cursor,
            (false, true) => Role::Unknown,
            (false, false) => Role::Text,
        };
        let pad = if form == Form::Bars { " " } else { "" };
        out.push(span(
            theme,
            role,
            format!("{pad}{} {name}{shown}{pad}", n + 1),
        ));
    }
    out
}

fn number(counts: &Counts, tab: Tab, form: Form) -> String {
    match count(counts, tab) {
        n if form != Form::Short || n <= MOST_SAID || tab == Tab::Review => counted(counts, tab),
        n @ 0..=9_999 => n.to_string(),
        n @ 10_000..=999_999 => format!("{}k", n / 1_000),
        n => format!("{}M", n / 1_000_000),
    }
}
