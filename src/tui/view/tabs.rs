//! The lists and how many rows each has, whatever the filter (U28).

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::board::{Board, PLACES, Place};
use super::super::format;
use super::super::message::{Counts, Tab};
use super::super::model::Model;
use super::super::theme::Role;
use super::ink::{self, span};

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

/// Draws all pages: lists with their counts, then the boards; in shorter words where the width asks
/// for it.
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width);
    let spans = FORMS
        .into_iter()
        .map(|form| tabs(model, form))
        .find(|spans| ink::width(spans) <= columns)
        .unwrap_or_else(|| tabs(model, SHORTEST));
    ink::line(frame, area, spans, model.theme.glyphs.ellipsis);
}

/// How much of a name is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Long,
    Short,
    /// The letter alone, but for the page that is shown.
    Letter,
}

#[derive(Clone, Copy)]
struct Form {
    lists: Words,
    boards: Words,
    padded: bool,
}

const SHORTEST: Form = Form {
    lists: Words::Letter,
    boards: Words::Letter,
    padded: false,
};

const FORMS: [Form; 5] = [
    Form {
        lists: Words::Long,
        boards: Words::Long,
        padded: true,
    },
    Form {
        lists: Words::Long,
        boards: Words::Long,
        padded: false,
    },
    Form {
        lists: Words::Short,
        boards: Words::Short,
        padded: false,
    },
    Form {
        lists: Words::Short,
        boards: Words::Letter,
        padded: false,
    },
    SHORTEST,
];

fn tabs(model: &Model, form: Form) -> Vec<Span<'static>> {
    let theme = &model.theme;
    let mut out = Vec::new();
    for (n, place) in PLACES.into_iter().enumerate() {
        out.push(match n {
            0 if form.padded => Span::raw(""),
            0 => Span::raw(" "),
            _ => span(theme, super::rule_role(model), theme.glyphs.bar),
        });
        let here = model.board.map_or(Place::List(model.tab), Place::Board) == place;
        let count = model.counts.and_then(|c| count_at(&c, place));
        let waits = [Place::List(Tab::Review), Place::List(Tab::Unknown)].contains(&place);
        let role = match (here, waits && count.is_some_and(|c| c > 0)) {
            (true, _) => Role::Cursor,
            (false, true) => Role::Unknown,
            (false, false) => Role::Text,
        };
        let shown = count.map_or_else(String::new, |c| match place {
            Place::List(Tab::Review) if c > MOST_SAID => format!(" {MOST_SAID}+"),
            _ => format!(" {}", number(c, form)),
        });
        let name = name(place, form, here);
        let (key, pad) = ((n + 1) % 10, if form.padded { " " } else { "" });
        out.push(span(theme, role, format!("{pad}{key}{name}{shown}{pad}")));
    }
    out
}

/// The number that stands behind a page's name.
fn count_at(counts: &Counts, place: Place) -> Option<u64> {
    match place {
        Place::List(tab) => Some(count(counts, tab)),
        Place::Board(Board::Queue) => Some(counts.queued),
        Place::Board(Board::Engine | Board::Audit | Board::Report) => None,
    }
}

/// The name with the space before it; a single letter stands close to its key.
fn name(place: Place, form: Form, here: bool) -> String {
    let (long, short, words) = match place {
        Place::List(Tab::Review) => ("Review", "Rev", form.lists),
        Place::List(Tab::Open) => ("Open", "Open", form.lists),
        Place::List(Tab::Unknown) => ("Unknown", "Unk", form.lists),
        Place::List(Tab::Succeeded) => ("Succeeded", "Succ", form.lists),
        Place::List(Tab::Failed) => ("Failed", "Fail", form.lists),
        Place::List(Tab::All) => ("All", "All", form.lists),
        Place::Board(Board::Queue) => ("Queue", "Que", form.boards),
        Place::Board(Board::Engine) => ("Engine", "Eng", form.boards),
        Place::Board(Board::Audit) => ("Audit", "Aud", form.boards),
        Place::Board(Board::Report) => ("Report", "Rep", form.boards),
    };
    match words {
        Words::Long => format!(" {long}"),
        Words::Short => format!(" {short}"),
        Words::Letter if here => format!(" {short}"),
        Words::Letter => long.chars().take(1).collect(),
    }
}

fn number(count: u64, form: Form) -> String {
    match count {
        _ if form.lists == Words::Long => format::grouped(&count.to_string()),
        0..=9_999 => count.to_string(),
        10_000..=999_999 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}
