//! Whether the receiver of a message has it, where the effect of a tool is itself a delivery (R82–R88).
//!
//! Owns: `delivery_unknown` of the calls of such tools. A call that ends in doubt leaves it so, whoever reads
//! the answer; the end of its row, by a person or by evidence, ends the doubt. Nothing here is ever a reason
//! to send. Tests: `tests/tools/messages.rs`.

use super::{Tx, store};
use crate::domain::ids::{AgentName, CallId};
use crate::domain::operation::{Operation, OperationRow, Status};
use crate::domain::tool_call::ToolResult;
use crate::ledger::LedgerError;
use crate::ledger::row::micros;

/// The answer of a call of `row`'s tool says that nobody knows: neither does anybody of its delivery.
pub(super) async fn doubted(
    tx: &mut Tx<'_>,
    row: &OperationRow,
    agent: &AgentName,
    id: &CallId,
    result: &ToolResult,
) -> Result<(), LedgerError> {
    let doubt = matches!(result, ToolResult::Checking { .. });
    if !doubt || !tx.terms(&row.tool)?.policy.delivers {
        return Ok(());
    }
    let sql = "UPDATE tool_calls SET delivery = 'delivery_unknown'
               WHERE agent = ? AND call_id = ? AND delivery = 'pending'";
    sqlx::query(sql)
        .bind(agent.as_str())
        .bind(id.as_str())
        .execute(&mut *tx.conn)
        .await
        .map(drop)
        .map_err(store::failed)
}

/// The calls of an operation whose delivery is in doubt, ended by its row: it arrived, or it was never sent.
pub(super) const ENDED: &str = "UPDATE tool_calls SET delivery = ?2, delivered_at = ?3
    WHERE operation_id = ?1 AND delivery = 'delivery_unknown'";

pub(super) async fn ended(
    tx: &mut Tx<'_>,
    before: &Operation,
    row: &OperationRow,
) -> Result<(), LedgerError> {
    let (word, at) = match row.status {
        _ if before.row.status == row.status => return Ok(()),
        Status::Succeeded => ("delivered", Some(micros(tx.now))),
        Status::Failed => ("pending", None),
        Status::Open | Status::Unknown => return Ok(()),
    };
    if !tx.terms(&row.tool)?.policy.delivers {
        return Ok(());
    }
    sqlx::query(ENDED)
        .bind(row.id.as_str())
        .bind(word)
        .bind(at)
        .execute(&mut *tx.conn)
        .await
        .map(drop)
        .map_err(store::failed)
}

/// Whether whoever reads a call's answer thereby says nothing of its delivery.
pub(super) async fn is_doubted(
    tx: &mut Tx<'_>,
    agent: &AgentName,
    id: &CallId,
) -> Result<bool, LedgerError> {
    let sql = "SELECT tool FROM tool_calls WHERE agent = ? AND call_id = ? AND delivery = 'delivery_unknown'";
    let tool: Option<String> = sqlx::query_scalar(sql)
        .bind(agent.as_str())
        .bind(id.as_str())
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let tool = tool.and_then(|tool| tool.parse().ok());
    Ok(tool.is_some_and(|tool| tx.terms(&tool).is_ok_and(|t| t.policy.delivers)))
}
