//! Tool calls and audit entries of the whole ledger, page by page in either direction.
//!
//! Owns: their order (by acceptance, by entry number), which never changes, and that a page costs the
//! same wherever it begins: every query is a range of an index. Tests: `tests/ledger/feeds.rs`.

use std::sync::Arc;

use sqlx::SqliteConnection;

use super::read::{audit_row, reader};
use super::{Inner, store};
use crate::domain::ids::{AgentName, CallId, OperationId, OrderId, SessionId, ToolName};
use crate::domain::tool_call::{CallState, Delivery, ToolCall};
use crate::ledger::row::{self, Columns};
use crate::ledger::{AuditPage, AuditQuery, Audited, CallPage, CallQuery, LedgerError};

/// `?1` state, `?2` tool, `?3` order, `?4` session, `?5` delivery, `?6` and `?7` where the page begins.
/// `$by`: the part that an index finds.
macro_rules! calls_sql {
    ($from:literal, $by:literal, $cmp:literal, $dir:literal) => {
        concat!(
            "SELECT c.* FROM ", $from, " WHERE ", $by, "
             AND (?1 IS NULL OR c.state = ?1) AND (?2 IS NULL OR c.tool = ?2) AND (?3 IS NULL OR 1)
             AND (?4 IS NULL OR c.session_id = ?4) AND (?5 IS NULL OR c.delivery = ?5)
             AND (c.accepted_at, c.rowid) ", $cmp, " (?6, ?7)
             ORDER BY c.accepted_at ", $dir, ", c.rowid ", $dir, " LIMIT ?8"
        )
    };
    ($by:literal, $ascending:expr) => {
        calls_sql!("tool_calls c", $by, $ascending)
    };
    ($from:literal, $by:literal, $ascending:expr) => {
        if $ascending {
            calls_sql!($from, $by, ">", "ASC")
        } else {
            calls_sql!($from, $by, "<", "DESC")
        }
    };
}

/// The rarest part of the filter chooses the index; without one it is the order of acceptance. A partial
/// index is found by its own condition, word for word.
fn calls_sql(query: &CallQuery) -> &'static str {
    let up = query.ascending;
    match (query.state, query.delivery) {
        // The join's order is written down: an order has few rows, and those few calls.
        _ if query.order.is_some() => calls_sql!(
            "operations o CROSS JOIN tool_calls c ON c.operation_id = o.operation_id",
            "o.status IN ('open', 'unknown', 'succeeded', 'failed') AND coalesce(o.order_id, '') = ?3",
            up
        ),
        _ if query.session.is_some() => calls_sql!("c.session_id = ?4", up),
        (Some(CallState::Queued), _) => calls_sql!(
            "c.state IN ('queued', 'running') AND c.state = 'queued'",
            up
        ),
        (Some(CallState::Running), _) => calls_sql!(
            "c.state IN ('queued', 'running') AND c.state = 'running'",
            up
        ),
        (Some(CallState::Held), _) => calls_sql!("c.state = 'held'", up),
        (_, Some(Delivery::Pending)) => {
            calls_sql!("c.delivery <> 'delivered' AND c.delivery = 'pending'", up)
        }
        (_, Some(Delivery::DeliveryUnknown)) => calls_sql!(
            "c.delivery <> 'delivered' AND c.delivery = 'delivery_unknown'",
            up
        ),
        _ if query.tool.is_some() => calls_sql!("c.tool = ?2", up),
        (Some(CallState::Answered) | None, Some(Delivery::Delivered) | None) => {
            calls_sql!("1", up)
        }
    }
}

pub(super) async fn calls(inner: &Arc<Inner>, query: &CallQuery) -> Result<CallPage, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let limit = query.limit.clamp(1, 100_000);
    let Some((accepted_at, number)) = begin(&mut conn, query).await? else {
        return Ok(CallPage::default());
    };
    let rows = sqlx::query(calls_sql(query))
        .bind(query.state.map(<&str>::from))
        .bind(query.tool.as_ref().map(ToolName::as_str))
        .bind(query.order.as_ref().map(OrderId::as_str))
        .bind(query.session.as_ref().map(SessionId::as_str))
        .bind(query.delivery.map(<&str>::from))
        .bind(accepted_at)
        .bind(number)
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let more = rows.len() > limit as usize;
    let calls = rows.iter().take(limit as usize).map(row::call);
    Ok(CallPage {
        calls: calls.collect::<Result<_, _>>()?,
        more,
    })
}

/// Where a page begins; nowhere if the ledger has no such call.
async fn begin(
    conn: &mut SqliteConnection,
    query: &CallQuery,
) -> Result<Option<(i64, i64)>, LedgerError> {
    let Some((agent, call)) = &query.after else {
        let end = if query.ascending { i64::MIN } else { i64::MAX };
        return Ok(Some((end, end)));
    };
    sqlx::query_as("SELECT accepted_at, rowid FROM tool_calls WHERE agent = ? AND call_id = ?")
        .bind(agent.as_str())
        .bind(call.as_str())
        .fetch_optional(conn)
        .await
        .map_err(store::failed)
}

/// Those of `ids` that the ledger has, as they are now.
pub(super) async fn calls_of(
    inner: &Arc<Inner>,
    ids: &[(AgentName, CallId)],
) -> Result<Vec<ToolCall>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let mut calls = Vec::with_capacity(ids.len());
    for (agent, id) in ids {
        let found = sqlx::query("SELECT * FROM tool_calls WHERE agent = ? AND call_id = ?")
            .bind(agent.as_str())
            .bind(id.as_str())
            .fetch_optional(&mut *conn)
            .await
            .map_err(store::failed)?;
        calls.extend(found.as_ref().map(row::call).transpose()?);
    }
    Ok(calls)
}

/// `?1` operation, `?2` actor, `?3` action, `?4` where the page begins.
macro_rules! audit_sql {
    ($by:literal, $cmp:literal, $dir:literal) => {
        concat!(
            "SELECT * FROM audit WHERE ",
            $by,
            "
             AND (?1 IS NULL OR operation_id = ?1) AND (?2 IS NULL OR actor = ?2)
             AND (?3 IS NULL OR action = ?3) AND audit_id ",
            $cmp,
            " ?4
             ORDER BY audit_id ",
            $dir,
            " LIMIT ?5"
        )
    };
    ($by:literal, $ascending:expr) => {
        if $ascending {
            audit_sql!($by, ">", "ASC")
        } else {
            audit_sql!($by, "<", "DESC")
        }
    };
}

/// What every attempt writes is most of the audit: it is found in the order of the entries, the rest
/// by its own index.
fn audit_sql(query: &AuditQuery) -> &'static str {
    let up = query.ascending;
    match (query.actor.as_deref(), query.action.as_deref()) {
        _ if query.operation.is_some() => audit_sql!("operation_id = ?1", up),
        (Some(actor), _) if actor != "engine" => {
            audit_sql!("actor <> 'engine' AND actor = ?2", up)
        }
        (_, None | Some("opened" | "authorised" | "finished")) => audit_sql!("1", up),
        (_, Some(_)) => audit_sql!(
            "action NOT IN ('opened', 'authorised', 'finished') AND action = ?3",
            up
        ),
    }
}

pub(super) async fn audit(
    inner: &Arc<Inner>,
    query: &AuditQuery,
) -> Result<AuditPage, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let limit = query.limit.clamp(1, 10_000);
    let end = if query.ascending { i64::MIN } else { i64::MAX };
    let rows = sqlx::query(audit_sql(query))
        .bind(query.operation.as_ref().map(OperationId::as_str))
        .bind(&query.actor)
        .bind(&query.action)
        .bind(query.after.unwrap_or(end))
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let more = rows.len() > limit as usize;
    let rows = rows.iter().take(limit as usize).map(|found| {
        let c = Columns(found);
        Ok(Audited {
            audit_id: c.int("audit_id")?,
            operation_id: c.word("operation_id")?,
            entry: audit_row(found)?,
        })
    });
    Ok(AuditPage {
        rows: rows.collect::<Result<_, LedgerError>>()?,
        more,
    })
}

/// Every statement of both lists, for their plans to be looked at.
#[cfg(test)]
pub(super) fn statements() -> Vec<&'static str> {
    let calls = [
        (None, None),
        (Some(CallState::Queued), None),
        (Some(CallState::Running), None),
        (Some(CallState::Held), None),
        (None, Some(Delivery::Pending)),
        (None, Some(Delivery::DeliveryUnknown)),
    ];
    let calls = calls.map(|(state, delivery)| CallQuery {
        state,
        delivery,
        ..CallQuery::default()
    });
    let by_tool = CallQuery {
        tool: ToolName::parse("x").ok(),
        ..CallQuery::default()
    };
    let some = |word: &str| Some(word.to_owned());
    let audit = [
        (None, None),
        (some("engine"), None),
        (some("x"), None),
        (None, some("opened")),
        (None, some("x")),
    ];
    let audit = audit.map(|(actor, action)| AuditQuery {
        actor,
        action,
        ..AuditQuery::default()
    });
    let calls = calls.iter().chain([&by_tool]).map(calls_sql);
    calls.chain(audit.iter().map(audit_sql)).collect()
}
