//! The filter line of a board: words with qualifiers, read into a query of calls or of the audit.
//!
//! Owns: which qualifiers a board has. Where a word is wrong is told as on the lists. Tests:
//! `tests/tui_boards.rs`.

use super::super::query::{Fault, each};
use super::Board;
use crate::domain::tool_call::{CallState, Delivery};
use crate::ledger::{AuditQuery, CallQuery};

const CALLS: &str = "state: delivery: tool: order: session:";
const AUDIT: &str = "op: actor: action:";

/// The qualifiers of `board`, for the hint under the line.
#[must_use]
pub fn qualifiers(board: Board) -> &'static str {
    match board {
        Board::Queue => CALLS,
        Board::Audit => AUDIT,
        Board::Engine | Board::Report => "",
    }
}

/// What is wrong with `line` on `board`.
#[must_use]
pub fn fault(board: Board, line: &str) -> Option<Fault> {
    match board {
        Board::Queue => calls(line).err(),
        Board::Audit => audit(line).err(),
        Board::Engine | Board::Report => None,
    }
}

/// Reads a filter of tool calls.
///
/// # Errors
/// The first word that cannot be read.
pub fn calls(line: &str) -> Result<CallQuery, Fault> {
    let mut query = CallQuery::default();
    each(line, |name, value| {
        let name = name.ok_or_else(|| no_text(CALLS))?;
        match name {
            "state:" => query.state = Some(state(value)?),
            "delivery:" => query.delivery = Some(delivery(value)?),
            "tool:" => query.tool = Some(id(value)?),
            "order:" => query.order = Some(id(value)?),
            "session:" => query.session = Some(id(value)?),
            _ => return Err(no_such(CALLS)),
        }
        Ok(())
    })?;
    Ok(query)
}

/// Reads a filter of audit entries.
///
/// # Errors
/// The first word that cannot be read.
pub fn audit(line: &str) -> Result<AuditQuery, Fault> {
    let mut query = AuditQuery::default();
    each(line, |name, value| {
        match name {
            // An operation's id is what people have in hand.
            None if value.starts_with("op_") => query.operation = Some(id(value)?),
            None => return Err(no_text(AUDIT)),
            Some("op:") => query.operation = Some(id(value)?),
            Some("actor:") => query.actor = Some(actor(value)),
            Some("action:") => query.action = Some(value.to_ascii_lowercase()),
            Some(_) => return Err(no_such(AUDIT)),
        }
        Ok(())
    })?;
    Ok(query)
}

fn no_text(names: &str) -> String {
    format!("write one of {names}")
}

fn no_such(names: &str) -> String {
    format!("no such qualifier: {names}")
}

fn state(value: &str) -> Result<CallState, String> {
    value
        .parse()
        .map_err(|_| "no such state: queued running held answered".to_owned())
}

/// The words of the ledger; `unknown` alone is what people say.
fn delivery(value: &str) -> Result<Delivery, String> {
    let value = if value == "unknown" {
        "delivery_unknown"
    } else {
        value
    };
    value
        .parse()
        .map_err(|_| "no such delivery: pending delivered unknown".to_owned())
}

/// As the audit has it; a name alone is a reviewer's.
fn actor(value: &str) -> String {
    let alone = !value.contains(':') && !["engine", "reconciler", "webhook"].contains(&value);
    if alone {
        format!("reviewer:{value}")
    } else {
        value.to_owned()
    }
}

fn id<T: std::str::FromStr<Err = crate::domain::text::TextError>>(
    value: &str,
) -> Result<T, String> {
    value.parse().map_err(|e| format!("the text {e}"))
}
