//! Tool calls: what they were answered, against what their row was at that time (I24); leases that
//! nobody holds any more.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::TryStreamExt;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::Findings;
use super::chain::status;
use super::pages::{History, Page};
use crate::domain::key::hex_digest;
use crate::domain::operation::{Operation, Status};
use crate::domain::tool_call::{CallState, Delivery, ToolCall, ToolResult};
use crate::domain::{Instant, earlier};
use crate::ledger::LedgerError;
use crate::ledger::row::{self, Columns, micros};
use crate::ledger::sqlite::failed;

/// A lease that ended so long ago is nobody's.
const STALE: Duration = Duration::from_hours(1);

/// The calls of a page's operations.
pub(super) async fn of_page(
    conn: &mut SqliteConnection,
    page: &Page,
    clock_accepted: bool,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    let sql = "SELECT * FROM tool_calls WHERE operation_id > ? AND operation_id <= ?
               ORDER BY operation_id, accepted_at";
    let (after, last) = (page.first_after.clone(), page.last.clone());
    let mut rows = sqlx::query(sql).bind(after).bind(last).fetch(conn);
    while let Some(found_row) = rows.try_next().await.map_err(failed)? {
        let owner = Columns(&found_row).text("operation_id")?;
        let Some(history) = page.histories.get(&owner) else {
            continue;
        };
        let Some(call) = read(&found_row, Some(&owner), clock_accepted, found) else {
            continue;
        };
        if let (Some(result), Some(op)) = (&call.result, &history.op) {
            answered(&call, result, history, op, clock_accepted, found);
        }
    }
    Ok(())
}

/// Calls that spent an attempt and are not there any more: an accepted call is never deleted.
pub(super) async fn gone(
    conn: &mut SqliteConnection,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    let sql = "SELECT a.operation_id, a.attempt_no, a.call_id FROM attempts a
               LEFT JOIN tool_calls c ON c.agent = a.agent AND c.call_id = a.call_id
               WHERE c.call_id IS NULL";
    let mut rows = sqlx::query(sql).fetch(conn);
    while let Some(row) = rows.try_next().await.map_err(failed)? {
        let c = Columns(&row);
        let (attempt, call) = (c.int("attempt_no")?, c.text("call_id")?);
        let what = format!("call {call}, which spent attempt {attempt}, is gone");
        found.add(Some(&c.text("operation_id")?), "I24", what);
    }
    Ok(())
}

/// Calls that never reached a row: rejected, or not begun.
pub(super) async fn without_row(
    conn: &mut SqliteConnection,
    clock_accepted: bool,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    let sql = "SELECT rowid AS at_row, * FROM tool_calls WHERE rowid > ? AND operation_id IS NULL
               ORDER BY rowid LIMIT 1000";
    let mut after = 0_i64;
    loop {
        let rows = sqlx::query(sql)
            .bind(after)
            .fetch_all(&mut *conn)
            .await
            .map_err(failed)?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = Columns(last).int("at_row")?;
        for found_row in &rows {
            let Some(call) = read(found_row, None, clock_accepted, found) else {
                continue;
            };
            match &call.result {
                None | Some(ToolResult::Rejected { .. }) => {}
                Some(result) => {
                    let what =
                        format!("{} answers {}, without a row", name(&call), result.status());
                    let id = result
                        .operation()
                        .map(crate::domain::ids::OperationId::as_str);
                    found.add(id, "I24", what);
                }
            }
        }
    }
}

fn name(call: &ToolCall) -> String {
    format!("call {} of {}", call.id, call.agent)
}

/// A call that can be read, whose own columns agree.
fn read(
    found_row: &SqliteRow,
    owner: Option<&str>,
    clock_accepted: bool,
    found: &mut Findings,
) -> Option<ToolCall> {
    let call = match row::call(found_row) {
        Ok(call) => call,
        Err(error) => {
            found.add(owner, "I24", format!("a tool call of it: {error}"));
            return None;
        }
    };
    let hash = hex_digest(format!("{}\n{}", call.tool, call.arguments).as_bytes());
    if hash != call.arguments_hash {
        let what = format!("the arguments of {} were changed", name(&call));
        found.add(owner, "I24", what);
    }
    let (told, held) = (call.result.is_some(), call.state == CallState::Held);
    let agree = told == matches!(call.state, CallState::Held | CallState::Answered)
        && told == call.executed_at.is_some()
        && held == matches!(call.result, Some(ToolResult::Held { .. }))
        && (call.delivery == Delivery::Delivered) == call.delivered_at.is_some();
    if !agree {
        let what = format!("the state of {} is not that of its answer", name(&call));
        found.add(owner, "I24", what);
    }
    let steps = [
        Some(call.accepted_at),
        call.begun_at,
        call.executed_at,
        call.delivered_at,
    ];
    let steps: Vec<Instant> = steps.into_iter().flatten().collect();
    let slack = Duration::from_mins(5);
    if !clock_accepted && !steps.is_sorted_by(|a, b| earlier(*a, slack) <= *b) {
        let what = format!("{} was answered before it was accepted", name(&call));
        found.add(owner, "I21", what);
    }
    Some(call)
}

/// An answer says no more than its row did when it was given.
fn answered(
    call: &ToolCall,
    result: &ToolResult,
    history: &History,
    op: &Operation,
    clock_accepted: bool,
    found: &mut Findings,
) {
    let id = Some(history.id.as_str());
    if let Some(other) = result.operation().filter(|o| o.as_str() != history.id) {
        let what = format!("{} is answered with operation {other}", name(call));
        found.add(id, "I24", what);
        return;
    }
    let until = call.executed_at.filter(|_| !clock_accepted).map(micros);
    let then = statuses(history, until);
    let ever = |status| {
        history
            .audit
            .iter()
            .any(|e| self::status(e) == Some(status) && until.is_none_or(|until| e.at <= until))
    };
    let uncorrected = op.row.corrections == 0;
    let holds = match result {
        ToolResult::Done { object, repeat, .. } => {
            let recorded =
                then.contains(Status::Succeeded.as_str()) || (*repeat && ever(Status::Succeeded));
            recorded
                && (!uncorrected || object.as_ref().map(|o| &o.id) == op.row.provider_ref.as_ref())
        }
        ToolResult::Failed { class, .. } => {
            then.contains(Status::Failed.as_str())
                && (!uncorrected || Some(*class) == op.row.failure)
        }
        // Also for a closed row that evidence contradicts.
        ToolResult::Checking { .. } => then.iter().any(|s| *s != Status::Open.as_str()),
        ToolResult::Unconfirmed { .. } => then.contains(Status::Open.as_str()),
        ToolResult::Held { .. } => {
            let held = history.audit.first().and_then(|e| e.detail.get("held"));
            held == Some(&serde_json::Value::Bool(true))
        }
        // The call gets nothing of this row.
        ToolResult::Rejected { .. } => true,
    };
    if !holds {
        let what = format!(
            "{} is answered {}, which the row was not at that time",
            name(call),
            result.status()
        );
        found.add(id, "I24", what);
    }
}

/// The statuses a row had at an instant: the one it came with, and those it took in that instant.
/// Without an instant all it ever had.
fn statuses(history: &History, at: Option<i64>) -> BTreeSet<&'static str> {
    let mut statuses = BTreeSet::new();
    for entry in &history.audit {
        let Some(status) = status(entry) else {
            continue;
        };
        if at.is_some_and(|at| entry.at > at) {
            break;
        }
        if at.is_some_and(|at| entry.at < at) {
            statuses.clear();
        }
        statuses.insert(status.as_str());
    }
    statuses
}

/// Calls that an engine took, whose lease ended long ago: no engine lives, or one cannot answer.
pub(super) async fn stale(
    conn: &mut SqliteConnection,
    now: Instant,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    let sql = "SELECT agent, call_id, operation_id FROM tool_calls
               WHERE state = 'running' AND lease_until < ? ORDER BY lease_until LIMIT 10001";
    let rows = sqlx::query(sql)
        .bind(micros(earlier(now, STALE)))
        .fetch_all(conn)
        .await
        .map_err(failed)?;
    for found_row in &rows {
        let c = Columns(found_row);
        let operation = c.opt("operation_id", Columns::text)?;
        let what = format!(
            "call {} of {} is running, but its lease ended more than an hour ago",
            c.text("call_id")?,
            c.text("agent")?
        );
        found.add(operation.as_deref(), "stale", what);
    }
    Ok(())
}
