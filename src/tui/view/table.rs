//! The list of operations: one line each, columns as the width allows.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::format;
use super::super::message::{Sort, Tab};
use super::super::model::{Focus, Model};
use super::super::selection::Entry;
use super::super::theme::Role;
use super::ink::{self, span};
use crate::domain::evidence::Verdict;
use crate::domain::operation::{Effect, OperationRow, Status};

/// From this width on the columns have their usual width.
const ROOMY: usize = 90;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Operation,
    Tool,
    Order,
    Amount,
    Status,
    Attempts,
    KeyAge,
    KeyLeft,
    Reason,
    Updated,
}

impl Column {
    /// The head, written out where the column has the room.
    fn title(self, columns: usize, tab: Tab) -> &'static str {
        let (long, short) = match self {
            Self::Operation => ("OPERATION", "ID"),
            Self::Tool => ("TOOL", "TOOL"),
            Self::Order => ("ORDER", "ORDER"),
            Self::Amount => ("AMOUNT", "AMOUNT"),
            Self::Status => ("STATUS", "STATUS"),
            Self::Attempts => ("ATTEMPTS", "ATT"),
            Self::KeyAge => ("KEY AGE", "KEY AGE"),
            Self::KeyLeft => ("KEY LEFT", "LEFT"),
            Self::Reason if tab == Tab::Review => ("WHAT SETTLES IT", "SETTLED BY"),
            Self::Reason => ("REASON", "REASON"),
            Self::Updated => ("UPDATED", "UPDATED"),
        };
        if format::width(long) <= columns {
            long
        } else {
            short
        }
    }

    fn sort(self) -> Option<Sort> {
        match self {
            Self::Updated => Some(Sort::Updated),
            Self::KeyAge => Some(Sort::Created),
            Self::Amount => Some(Sort::Amount),
            Self::Attempts => Some(Sort::Attempts),
            Self::KeyLeft => Some(Sort::KeyLeft),
            Self::Order => Some(Sort::Order),
            Self::Operation | Self::Tool | Self::Status | Self::Reason => None,
        }
    }

    fn right(self) -> bool {
        matches!(
            self,
            Self::Amount | Self::KeyAge | Self::KeyLeft | Self::Attempts | Self::Updated
        )
    }
}

/// The columns that fit and how wide each is.
fn columns(width: usize, tab: Tab, times: format::Times) -> Vec<(Column, usize)> {
    use Column::{
        Amount, Attempts, KeyAge, KeyLeft, Operation, Order, Reason, Status, Tool, Updated,
    };
    let (roomy, wide) = (width >= ROOMY, width >= 120);
    let updated = match times {
        format::Times::Relative => 8,
        format::Times::Utc => 15,
        format::Times::Local => 20,
    };
    let mut all = vec![
        (Operation, if roomy { 9 } else { 8 }),
        (Tool, 12),
        (Order, 8),
        (Amount, 13),
        (Status, 11),
        (Attempts, if wide { 8 } else { 4 }),
        (KeyAge, 7),
        (KeyLeft, if roomy { 8 } else { 6 }),
        (Reason, 14),
        (Updated, updated),
    ];
    let needed = |all: &[(Column, usize)]| all.iter().map(|(_, w)| w + 1).sum::<usize>() + 1;
    // Least needed first; what is left at 60 columns is still who, how much and how it stands, and in
    // Review what settles it.
    let last = if tab == Tab::Review {
        [Attempts, KeyLeft, Reason]
    } else {
        [Reason, KeyLeft, Attempts]
    };
    for dropped in [Tool, KeyAge, Updated]
        .into_iter()
        .chain(last)
        .chain([Order])
    {
        let unwanted = dropped == Tool && width < 130;
        if unwanted || needed(&all) > width {
            all.retain(|(c, _)| *c != dropped);
        }
    }
    let mut spare = width.saturating_sub(needed(&all));
    for (column, most) in [
        (Reason, 22),
        (Order, 12),
        (Amount, 15),
        (Reason, 48),
        (Order, 24),
    ] {
        if let Some((_, w)) = all.iter_mut().find(|(c, _)| *c == column) {
            let more = spare.min(most - (*w).min(most));
            *w += more;
            spare -= more;
        }
    }
    all
}

/// Draws heads and rows, and puts the terminal's cursor on the selected one (U48).
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let columns = columns(usize::from(area.width), model.tab, model.times);
    heads(model, frame, area, &columns);
    let entries = model.list.visible();
    if entries.is_empty() {
        empty(model, frame, area);
        return;
    }
    let cursor = model.list.index();
    for (n, entry) in entries.iter().enumerate() {
        let here = cursor == Some(model.list.offset() + n);
        let area = ink::row(area, n + 1);
        if area.is_empty() {
            break;
        }
        draw_row(model, frame, area, entry, here, &columns);
        if here && model.focus == Focus::List {
            frame.set_cursor_position((area.x, area.y));
        }
    }
}

fn heads(model: &Model, frame: &mut Frame<'_>, area: Rect, columns: &[(Column, usize)]) {
    let theme = &model.theme;
    let mut spans = vec![Span::raw(" ")];
    for (column, width) in columns {
        let sorted = model.tab != Tab::Review && column.sort() == Some(model.sort);
        let arrow = if model.ascending {
            theme.glyphs.up
        } else {
            theme.glyphs.down
        };
        let title = column.title(*width, model.tab);
        let role = if sorted { Role::Strong } else { Role::Dim };
        // The arrow takes the gap before a head that fills its column, never a letter of it.
        let (gap, title) = match sorted {
            true if format::width(title) < *width => (" ", format!("{title}{arrow}")),
            true => (arrow, title.to_owned()),
            false => (" ", title.to_owned()),
        };
        let text = format::cell(&title, *width, column.right(), "");
        spans.push(span(theme, role, gap));
        spans.push(span(theme, role, text));
    }
    ink::line(frame, ink::row(area, 0), spans, theme.glyphs.ellipsis);
}

fn empty(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let counts = model.counts.unwrap_or_default();
    let lines = if !model.list.loaded {
        vec![format!("reading the ledger{}", model.theme.glyphs.wait)]
    } else if model.list.more_below {
        vec![format!(
            "nothing so far; looking further down the list{}",
            model.theme.glyphs.wait
        )]
    } else if !model.filter_text.is_empty() {
        vec!["Nothing matches the filter. esc clears it.".to_owned()]
    } else if counts.all() == 0 {
        vec![
            "The ledger is empty: no agent has asked for anything yet.".to_owned(),
            "samekey submit queues a call; samekey demo shows one with simulated agents."
                .to_owned(),
        ]
    } else if model.tab == Tab::Review {
        vec![
            "Nothing needs you.".to_owned(),
            format!(
                "{} open, {} unknown, {} in all: 6 shows all of them.",
                counts.open,
                counts.unknown,
                counts.all()
            ),
        ]
    } else {
        vec!["No operation has this status.".to_owned()]
    };
    for (n, text) in lines.into_iter().enumerate() {
        let spans = vec![span(&model.theme, Role::Dim, format!("   {text}"))];
        ink::line(
            frame,
            ink::row(area, n + 2),
            spans,
            model.theme.glyphs.ellipsis,
        );
    }
}

fn draw_row(
    model: &Model,
    frame: &mut Frame<'_>,
    area: Rect,
    entry: &Entry,
    here: bool,
    columns: &[(Column, usize)],
) {
    let theme = &model.theme;
    let glyphs = &theme.glyphs;
    let mark = match (here, entry.gone) {
        (_, true) => glyphs.gone,
        (true, false) => glyphs.cursor,
        (false, false) => " ",
    };
    // One style over the whole row under the cursor: reversed patches of colour cannot be read.
    let base = match (here, model.focus) {
        (true, Focus::List) => Some(Role::Cursor),
        (true, Focus::Detail) => Some(Role::CursorAway),
        (false, _) => None,
    };
    let mut spans = vec![span(theme, base.unwrap_or(Role::Key), mark)];
    for (n, (column, width)) in columns.iter().enumerate() {
        let (text, role) = cell(model, entry, *column, *width);
        let text = format::cell(&text, *width, column.right(), glyphs.ellipsis);
        let role = match base {
            Some(base) => base,
            None if entry.gone => Role::Dim,
            None => role,
        };
        let flag = if n == 0 { flag(model, entry) } else { " " };
        spans.push(span(theme, base.unwrap_or(Role::Key), flag));
        spans.push(span(theme, role, text));
    }
    ink::line(frame, area, spans, glyphs.ellipsis);
    if let Some(base) = base {
        let mut style = theme.style(base);
        if entry.gone {
            style = style.patch(theme.style(Role::Dim));
        }
        frame.buffer_mut().set_style(area, style);
    }
}

/// What people did with the row, in the gap before its id: marked here, claimed, or put off.
fn flag(model: &Model, entry: &Entry) -> &'static str {
    let (glyphs, row) = (&model.theme.glyphs, &entry.listed.row);
    if model.marks.contains(&row.id) {
        glyphs.mark
    } else if row.claimed_by(model.now).is_some() {
        glyphs.claimed
    } else if row.snoozed(model.now).is_some() {
        glyphs.snoozed
    } else {
        " "
    }
}

fn cell(model: &Model, entry: &Entry, column: Column, width: usize) -> (String, Role) {
    let row = &entry.listed.row;
    let glyphs = &model.theme.glyphs;
    let dash = || (glyphs.dash.to_owned(), Role::Dim);
    match column {
        Column::Operation => (format::short_id(&row.id, glyphs.ellipsis), Role::Text),
        Column::Tool => (row.tool.as_str().to_owned(), Role::Dim),
        Column::Order => row
            .order_id
            .as_ref()
            .map_or_else(dash, |o| (o.to_string(), Role::Text)),
        Column::Amount => row
            .money
            .map_or_else(dash, |m| (format::money(m), Role::Text)),
        Column::Status => status(model, row, entry.listed.driven),
        Column::Attempts => {
            let spent = row.attempts >= row.attempts_max;
            let role = if spent && !row.status.is_closed() {
                Role::Warn
            } else {
                Role::Text
            };
            (format!("{}/{}", row.attempts, row.attempts_max), role)
        }
        Column::KeyAge => (format::age(row.key_created_at, model.now), Role::Dim),
        Column::KeyLeft => match row.key_expires_at {
            Some(at) if !row.status.is_closed() => key_left(model, at),
            Some(_) | None => dash(),
        },
        Column::Reason => (because(model, entry, width), Role::Text),
        Column::Updated => match model.times {
            format::Times::Relative => (format::age(row.updated_at, model.now), Role::Dim),
            _ => (model.stamp().at(row.updated_at), Role::Dim),
        },
    }
}

fn key_left(model: &Model, at: crate::domain::Instant) -> (String, Role) {
    let left = crate::domain::since(model.now, at);
    let role = if left < Duration::from_hours(1) {
        Role::Warn
    } else {
        Role::Text
    };
    (format::left(at, model.now), role)
}

/// Glyph and word, never colour alone.
pub fn status(model: &Model, row: &OperationRow, driven: bool) -> (String, Role) {
    let glyphs = &model.theme.glyphs;
    let word = match row.status {
        Status::Succeeded => model.word(&row.tool),
        Status::Open if row.held => "held",
        other => other.as_str(),
    };
    let (glyph, role) = match row.status {
        _ if row.contradicted.is_some() => (glyphs.alarm, Role::Alarm),
        Status::Open if row.held => (glyphs.held, Role::Held),
        Status::Open if driven => (glyphs.dot, Role::Open),
        Status::Open => (glyphs.open, Role::Open),
        Status::Unknown => (glyphs.unknown, Role::Unknown),
        Status::Succeeded => (glyphs.succeeded, Role::Succeeded),
        Status::Failed => (glyphs.failed, Role::Failed),
    };
    (format!("{glyph} {word}"), role)
}

/// In Review what would settle the row, then who has it or until when it is put off, then why it
/// stands as it does: as many of these as there is room for. Elsewhere the reason comes first.
fn because(model: &Model, entry: &Entry, width: usize) -> String {
    let row = &entry.listed.row;
    if entry.gone {
        let by = row.closed_by.as_deref().unwrap_or("moved on");
        return format!("left: {by}");
    }
    let glyphs = &model.theme.glyphs;
    let claimed = row.claimed_by(model.now);
    let claimed = claimed.map(|by| format!("{}{by}", glyphs.claimed));
    let snoozed = row.snoozed(model.now);
    let snoozed = snoozed.map(|at| format!("{} {}", glyphs.snoozed, format::left(at, model.now)));
    let settles = settles(model, entry).filter(|_| model.tab == Tab::Review);
    let mut parts = settles.into_iter().chain(Some(reason(row)));
    let mut text = parts.next().unwrap_or_default();
    for part in claimed.into_iter().chain(snoozed).chain(parts) {
        let longer = format!("{text} {} {part}", glyphs.sep);
        // What does not fit whole is left out: half a word tells nobody anything.
        if !part.is_empty() && format::width(&longer) <= width {
            text = longer;
        }
    }
    text
}

/// The reason in the protocol's own words.
pub fn reason(row: &OperationRow) -> String {
    if let Some(contradiction) = row.contradicted {
        return <&str>::from(contradiction).to_owned();
    }
    if let Some(proposal) = &row.proposal {
        return format!("proposed by {}", proposal.by);
    }
    match row.status {
        Status::Open if row.held => "waits for approval".to_owned(),
        Status::Open if row.effect == Effect::Identified => "accepted, not final".to_owned(),
        Status::Open => {
            // Counted and without an outcome: its bytes may have left.
            let none = if row.attempts == 0 {
                "not sent yet"
            } else {
                "no answer yet"
            };
            let last = row.last_outcome.map_or(none, |o| match o {
                crate::domain::outcome::OutcomeClass::SideEffectUnknown => "no answer",
                other => other.as_str(),
            });
            last.to_owned()
        }
        Status::Unknown => row.reason.map_or("", Into::into).to_owned(),
        Status::Succeeded => row
            .provider_ref
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
        Status::Failed => row.failure.map_or("", Into::into).to_owned(),
    }
}

/// What would settle a row that waits for a person: the key first, for narrow screens.
fn settles(model: &Model, entry: &Entry) -> Option<String> {
    let row = &entry.listed.row;
    if row.contradicted.is_some() {
        return Some("C correct".to_owned());
    }
    if row.held || row.proposal.is_some() {
        return Some("A or D".to_owned());
    }
    if row.status.is_closed() {
        return None;
    }
    let waits = model.decidable_at(row);
    let text = match (row.verdict, waits) {
        (Some(Verdict::Confirmed), _) => "R confirmed",
        (Some(Verdict::SecondEffect), _) => "R two effects",
        (Some(Verdict::Pending), _) => "not final yet",
        (_, Some(at)) if row.status == Status::Unknown => {
            return Some(format!("L, wait {}", format::left(at, model.now)));
        }
        (Some(Verdict::Refused), _) => "F refused",
        (Some(Verdict::Absent), _) => "F absent",
        (Some(Verdict::Ambiguous), _) if model.person.alone => "L again",
        (Some(Verdict::Ambiguous), _) => "R or F, by two",
        (None, _) if entry.listed.driven => "wait, driven",
        (None, _) if row.status == Status::Open => "L or X",
        (None, _) => "L look up",
    };
    Some(text.to_owned())
}
