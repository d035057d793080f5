//! The audit: entries of all operations, newest first.

use std::fmt::Write as _;

use ratatui::Frame;
use ratatui::layout::Rect;
use serde_json::Value;

use super::super::format;
use super::super::message::AuditRow;
use super::super::model::Model;
use super::super::theme::Role;
use super::feed::{self, Column, left, right, time, time_width};
use crate::ledger::Audited;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Time,
    Operation,
    Actor,
    User,
    Action,
    What,
}

/// Draws it.
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let audit = &model.boards.audit;
    let columns = columns(model, usize::from(area.width));
    let empty = if audit.filter_text.is_empty() {
        "Nothing has happened yet."
    } else {
        "No entry matches the filter. esc clears it."
    };
    let stamp_width = time_width(model, is_roomy(area.width.into()));
    let cell = |row: &Audited, what| cell(model, row, what, stamp_width);
    feed::draw(model, frame, area, &audit.list, &columns, cell, empty);
}

fn is_roomy(width: usize) -> bool {
    width >= 100
}

fn columns(model: &Model, width: usize) -> Vec<Column<Cell>> {
    let all = vec![
        right(Cell::Time, "TIME", time_width(model, is_roomy(width))),
        left(Cell::Operation, "OPERATION", 9),
        left(Cell::Actor, "ACTOR", 14),
        left(Cell::User, "OS USER", 8),
        left(Cell::Action, "ACTION", 10),
        left(Cell::What, "WHAT", 8),
    ];
    let dropped = [Cell::User, Cell::What];
    let grows = [
        (Cell::What, 36),
        (Cell::Action, 14),
        (Cell::Actor, 24),
        (Cell::User, 16),
        (Cell::What, 200),
    ];
    feed::fitted(all, width, &dropped, &grows)
}

fn cell(model: &Model, row: &Audited, what: Cell, stamp_width: usize) -> (String, Role) {
    let entry = &row.entry;
    match what {
        Cell::Time => (time(model, entry.at, stamp_width), Role::Dim),
        Cell::Operation => {
            let ellipsis = model.theme.glyphs.ellipsis;
            (format::short_id(&row.operation_id, ellipsis), Role::Text)
        }
        Cell::Actor => {
            let by_person = entry.actor.starts_with("reviewer:");
            let role = if by_person { Role::Strong } else { Role::Text };
            (entry.actor.clone(), role)
        }
        Cell::User => (entry.os_user.clone(), Role::Dim),
        Cell::Action => (entry.action.replace('_', " "), Role::Text),
        Cell::What => what_of(entry),
    }
}

/// Members of an entry's detail that say what it was, in the order in which they are told.
const TOLD: [&str; 9] = [
    "decision",
    "attempt",
    "class",
    "http_status",
    "error",
    "verdict",
    "reason",
    "failure",
    "why",
];

/// How the row stood after it, what it was, and what a person wrote.
fn what_of(entry: &AuditRow) -> (String, Role) {
    let word = |name: &str| match entry.detail.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    };
    let status = word("status").unwrap_or_default();
    let mut text = status.clone();
    for name in TOLD {
        if let Some(told) = word(name) {
            // Writing to a String cannot fail.
            let _ = match name {
                "decision" => write!(text, ", as {told}"),
                "attempt" => write!(text, ", attempt {told}"),
                "http_status" => write!(text, ", HTTP {told}"),
                _ => write!(text, ", {told}"),
            };
        }
    }
    if let Some(note) = word("note") {
        let _ = write!(text, ": {note}");
    }
    let role = match status.as_str() {
        "open" => Role::Open,
        "unknown" => Role::Unknown,
        "succeeded" => Role::Succeeded,
        "failed" => Role::Failed,
        _ => Role::Text,
    };
    (text, role)
}
