//! The question before anything is done: what it is about, what will be written, what will not.
//!
//! Owns: how much room a dialog needs, so that it does not open where it does not fit; `about` says what
//! it is about. Never: takes keys. Cancel stands first and has the focus. Tests:
//! `tests/tui_safety.rs`, `tests/tui_desk.rs`, `tests/tui_snapshots.rs`.

mod about;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::action::{Ask, LookedAt, Target};
use super::super::format;
use super::super::model::{Dialog, DialogFocus, FieldName, Model, Stage};
use super::super::pager::Pager;
use super::super::theme::Role;
use super::ink::{self, span};
use super::panel::{centre, dim, pager, panel};
use crate::domain::ids::OperationId;
use crate::domain::operation::Closing;

type Spans = Vec<Span<'static>>;

/// Columns of the names on the left.
const NAMES: usize = 12;
const WIDEST: u16 = 80;

/// Width and height that a dialog needs on the present screen.
pub fn size(model: &Model, dialog: &Dialog) -> (u16, u16) {
    let width = model.size.0.min(WIDEST);
    let inner = usize::from(width.saturating_sub(4));
    let height = |lines: usize| u16::try_from(lines + 2).unwrap_or(u16::MAX);
    let airy = height(body(model, dialog, inner, true).len());
    if airy <= model.size.1 {
        (width, airy)
    } else {
        (width, height(body(model, dialog, inner, false).len()))
    }
}

/// Whether there is room for empty lines between the parts.
fn is_airy(model: &Model, dialog: &Dialog, inner: Rect) -> bool {
    let lines = body(model, dialog, usize::from(inner.width), true).len();
    lines <= usize::from(inner.height)
}

/// Whether it fits; a dialog that is cut off must not take keys.
pub fn fits(model: &Model, dialog: &Dialog) -> bool {
    size(model, dialog).1 <= model.size.1 && !super::layout::of(model).too_small
}

/// Draws it in the middle.
pub fn draw(model: &Model, frame: &mut Frame<'_>, dialog: &Dialog) {
    if dialog.stage == Stage::Asking {
        return;
    }
    if !fits(model, dialog) {
        let text = "This question does not fit. Enlarge the terminal, or press esc.";
        pager(model, frame, &Pager::new("too small", text));
        return;
    }
    let (width, height) = size(model, dialog);
    dim(frame);
    let area = centre(frame.area(), width, height);
    let title = title(model, dialog);
    let inner = panel(model, frame, area, &title);
    let airy = is_airy(model, dialog, inner);
    let lines = body(model, dialog, usize::from(inner.width), airy);
    for (n, spans) in lines.into_iter().enumerate() {
        ink::line(
            frame,
            ink::row(inner, n),
            spans,
            model.theme.glyphs.ellipsis,
        );
    }
    caret(model, frame, dialog, inner);
}

/// What is asked, in the tool's own word.
pub fn verb(model: &Model, dialog: &Dialog) -> String {
    let (operation, ask) = match dialog.frozen.target() {
        Target::Row { operation, ask, .. } => (operation, *ask),
        Target::Rows(rows) => return format!("look up {} marked rows", rows.len()),
        Target::Tool { tool, paused: None } => return format!("pause {tool}"),
        Target::Tool { tool, .. } => return format!("resume {tool}"),
        Target::Desk(_) => return "claim".to_owned(),
    };
    let mut rows = model.list.entries().iter().map(|e| &e.listed.row);
    let word = rows
        .find(|r| r.id == *operation)
        .map_or("succeeded", |r| model.word(&r.tool));
    match ask {
        Ask::Lookup => "look up".to_owned(),
        Ask::Close(Closing::Succeeded) => format!("close as {word}"),
        Ask::Close(Closing::Failed) => "close as failed".to_owned(),
        Ask::Approve => "approve".to_owned(),
        Ask::Reject => "reject".to_owned(),
        Ask::Stop => "stop".to_owned(),
        Ask::Correct(None) => "acknowledge the second effect".to_owned(),
        Ask::Correct(Some(Closing::Succeeded)) => format!("correct to {word}"),
        Ask::Correct(Some(Closing::Failed)) => "correct to failed".to_owned(),
        Ask::Note => "note".to_owned(),
    }
}

fn title(model: &Model, dialog: &Dialog) -> String {
    let environment = &model.environment;
    let (mode, provider) = (environment.mode.to_uppercase(), &environment.provider);
    let (sep, by) = (model.theme.glyphs.sep, dialog.frozen.by());
    let role: &str = by.role.into();
    format!(
        "{}  {sep}  {mode} {provider}  {sep}  {} ({role})",
        verb(model, dialog),
        by.name
    )
}

fn body(model: &Model, dialog: &Dialog, width: usize, airy: bool) -> Vec<Spans> {
    let mut out = Vec::new();
    let Some(asked) = &dialog.asked else {
        return out;
    };
    about::subject(model, dialog, &asked.subject, width, &mut out);
    // Once it cannot be confirmed any more, the reason takes the room of what would be done.
    if matches!(dialog.stage, Stage::Refused(_) | Stage::MovedOn(_)) {
        gap(airy, &mut out);
        out.extend(tail(model, dialog, width));
        return out;
    }
    gap(airy, &mut out);
    let reads = dialog.frozen.ask() == Some(Ask::Lookup);
    for (n, will) in asked.will.iter().enumerate() {
        let name = match (n, reads) {
            (0, true) => "will send",
            (0, false) => "will write",
            _ => "",
        };
        named(model, name, will, Role::Strong, width, &mut out);
    }
    named(model, "", asked.will_not, Role::Text, width, &mut out);
    gap(airy && !dialog.fields.is_empty(), &mut out);
    for n in 0..dialog.fields.len() {
        out.push(field(model, dialog, n, width));
    }
    out.extend(tail(model, dialog, width));
    out
}

fn gap(airy: bool, out: &mut Vec<Spans>) {
    if airy {
        out.push(Vec::new());
    }
}

/// What stands below the fields. A line for the status is always kept, so that a dialog that fits
/// goes on fitting when something has to be said.
fn tail(model: &Model, dialog: &Dialog, width: usize) -> Vec<Spans> {
    let mut out = Vec::new();
    status(model, dialog, width, &mut out);
    gap(out.is_empty(), &mut out);
    out.push(buttons(model, dialog, width));
    out
}

fn named(model: &Model, name: &str, text: &str, role: Role, width: usize, out: &mut Vec<Spans>) {
    let theme = &model.theme;
    for (n, line) in format::wrap(text, width.saturating_sub(NAMES))
        .into_iter()
        .enumerate()
    {
        let name = format::cell(if n == 0 { name } else { "" }, NAMES, false, "");
        out.push(vec![span(theme, Role::Dim, name), span(theme, role, line)]);
    }
}

fn label(model: &Model, dialog: &Dialog, name: FieldName) -> String {
    match name {
        FieldName::Token => {
            let token = dialog.frozen.operation().map(OperationId::token);
            format!("type {}", token.unwrap_or_default())
        }
        FieldName::Ref => "refund id".to_owned(),
        FieldName::Environment => format!("type \"{}\"", model.environment.name()),
        FieldName::Note => "note".to_owned(),
    }
}

/// Columns of the labels before the fields.
fn labels(model: &Model, dialog: &Dialog) -> usize {
    let widest = dialog
        .fields
        .iter()
        .map(|(name, _)| format::width(&label(model, dialog, *name)))
        .max()
        .unwrap_or(0);
    (widest + 3).clamp(NAMES, 32)
}

/// The visible part of a field and the caret's column in it.
fn window(text: &str, caret: usize, room: usize) -> (String, usize) {
    let skip = (caret + 1).saturating_sub(room);
    let mut seen = 0;
    let mut shown = String::new();
    for c in text.chars() {
        if seen >= skip {
            shown.push(c);
        }
        seen += format::width(c.encode_utf8(&mut [0; 4]));
    }
    (shown, caret - skip.min(caret))
}

fn field(model: &Model, dialog: &Dialog, n: usize, width: usize) -> Spans {
    let theme = &model.theme;
    let Some((name, field)) = dialog.fields.get(n) else {
        return Vec::new();
    };
    let columns = labels(model, dialog);
    let here = dialog.focus == DialogFocus::Field(n);
    let mark = if here { theme.glyphs.cursor } else { " " };
    let label = format::cell(&label(model, dialog, *name), columns - 2, false, "");
    let room = width.saturating_sub(columns + 2);
    let (text, _) = window(field.text(), field.caret(), room);
    let text = format::cell(&text, room, false, "");
    vec![
        span(theme, Role::Key, format!("{mark} ")),
        span(theme, if here { Role::Strong } else { Role::Text }, label),
        span(theme, Role::Dim, "["),
        span(theme, Role::Text, text),
        span(theme, Role::Dim, "]"),
    ]
}

/// What has to be said now; then what warns, one line each.
fn status(model: &Model, dialog: &Dialog, width: usize, out: &mut Vec<Spans>) {
    let sign = model.theme.glyphs.alarm;
    let (role, text) = match (&dialog.stage, dialog.missing) {
        (Stage::MovedOn(now), _) => (Role::Alarm, moved_on(dialog, now)),
        (Stage::Refused(why), _) => (Role::Alarm, format!("Not done: {why}")),
        (Stage::Committing, _) => {
            let wait = model.theme.glyphs.wait;
            (Role::Warn, format!("{}{wait}", committing(dialog)))
        }
        (Stage::Open, missing) => {
            let mut warnings = about::warnings(model, dialog);
            if let Some(missing) = missing {
                // In the place of the last, so that a dialog that fits goes on fitting.
                warnings.pop();
                warnings.insert(0, missing.to_owned());
            }
            for warning in warnings {
                let room = width.saturating_sub(NAMES);
                let line = format::fit(&warning, room, model.theme.glyphs.ellipsis);
                named(model, sign, &line, Role::Warn, width, out);
            }
            return;
        }
        (Stage::Asking, _) => return,
    };
    named(model, sign, &text, role, width, out);
}

fn moved_on(dialog: &Dialog, now: &LookedAt) -> String {
    let version = now.version;
    if dialog
        .frozen
        .looked_at()
        .is_some_and(|l| l.version == version)
    {
        return match now.waiting {
            Some(_) => "Another proposal waits now. ctrl-r reads it.".to_owned(),
            None => "Nothing waits for approval any more. ctrl-r reads it again.".to_owned(),
        };
    }
    format!("The row moved on to version {version}. ctrl-r reads it again.")
}

/// Never more than the ledger: it is not done until that says so (U21).
fn committing(dialog: &Dialog) -> String {
    match (dialog.frozen.ask(), dialog.progress) {
        (Some(Ask::Lookup), Some((done, of))) => {
            format!("asking the provider, {done} of {of} done")
        }
        (Some(Ask::Lookup), None) => "asking the provider".to_owned(),
        (Some(Ask::Close(_)), _) => "closing".to_owned(),
        _ => "writing".to_owned(),
    }
}

fn buttons(model: &Model, dialog: &Dialog, width: usize) -> Spans {
    let theme = &model.theme;
    let cancel = if dialog.focus == DialogFocus::Cancel {
        Role::Cursor
    } else {
        Role::Text
    };
    let mut out = vec![span(theme, cancel, "[ Cancel ]")];
    let mut hint = |key: &str, word: &str| {
        out.push(span(theme, Role::Key, format!("   {key}")));
        out.push(span(theme, Role::Dim, format!(" {word}")));
    };
    match dialog.stage {
        Stage::Committing | Stage::Refused(_) | Stage::Asking => {}
        Stage::MovedOn(_) => hint("ctrl-r", "read again"),
        Stage::Open => {
            let in_note = match dialog.focus {
                DialogFocus::Field(n) => {
                    dialog.fields.get(n).map(|(name, _)| *name) == Some(FieldName::Note)
                }
                DialogFocus::Cancel => false,
            };
            let confirm = format!("confirm: {}", verb(model, dialog));
            // What the key would confirm is never cut off; the other hints give way to it.
            let mut room = width.saturating_sub(10 + 9 + 1 + format::width(&confirm));
            let tab = !dialog.fields.is_empty();
            let template = in_note && !model.templates.is_empty();
            let mut others = Vec::new();
            for (wanted, key, words) in [
                (template, "ctrl-t", ["template", "template"]),
                (tab, "tab", ["next field", "next"]),
            ] {
                let takes = |word: &str| 3 + key.len() + 1 + word.len();
                let fits = words.into_iter().find(|w| wanted && takes(w) <= room);
                if let Some(word) = fits {
                    room -= takes(word);
                    others.push((key, word));
                }
            }
            for (key, word) in others {
                hint(key, word);
            }
            hint("ctrl-y", &confirm);
        }
    }
    out
}

/// The terminal's cursor: on the caret, or on Cancel (U48).
fn caret(model: &Model, frame: &mut Frame<'_>, dialog: &Dialog, inner: Rect) {
    let buttons = inner.bottom().saturating_sub(1);
    let (x, y) = match dialog.focus {
        DialogFocus::Cancel => (inner.x, buttons),
        DialogFocus::Field(n) => {
            let columns = labels(model, dialog);
            let room = usize::from(inner.width).saturating_sub(columns + 2);
            let (line, column) = field_position(model, dialog, n, inner, columns, room);
            (inner.x + column, inner.y + line)
        }
    };
    frame.set_cursor_position((x, y));
}

fn field_position(
    model: &Model,
    dialog: &Dialog,
    n: usize,
    inner: Rect,
    columns: usize,
    room: usize,
) -> (u16, u16) {
    let (width, airy) = (usize::from(inner.width), is_airy(model, dialog, inner));
    let all = body(model, dialog, width, airy).len();
    let below = tail(model, dialog, width).len() + dialog.fields.len() - n;
    let line = u16::try_from(all.saturating_sub(below)).unwrap_or(0);
    let caret = dialog
        .fields
        .get(n)
        .map_or(0, |(_, field)| window(field.text(), field.caret(), room).1);
    let column = u16::try_from(columns + 1 + caret).unwrap_or(0);
    (line, column.min(inner.width.saturating_sub(1)))
}
