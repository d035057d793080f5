//! Tool calls: accepted durably, leased to engines, answered once.

use std::time::Duration;

use sqlx::sqlite::SqliteRow;

use super::{Tx, deliveries, operations, store};
use crate::domain::answer;
use crate::domain::ids::{AgentName, CallId, EngineId, OperationId};
use crate::domain::key::hex_digest;
use crate::domain::operation::OperationRow;
use crate::domain::tool_call::{CallState, Delivery, RejectClass, ToolCall, ToolResult};
use crate::domain::transition::Event;
use crate::domain::{Instant, earlier, later};
use crate::ledger::row::{self, Columns, micros, to_json};
use crate::ledger::{Accepted, LeasedCall, LedgerError, NewCall};

/// The agent in whose name approved rows are driven.
const APPROVALS: &str = "samekey";

pub(super) async fn accept(tx: &mut Tx<'_>, new: NewCall) -> Result<Accepted, LedgerError> {
    let hash = hex_digest(format!("{}\n{}", new.tool, new.arguments).as_bytes());
    if let Some(known) = find(tx, &new.agent, &new.id).await? {
        return Ok(if known.arguments_hash == hash {
            Accepted::Known(known)
        } else {
            Accepted::Conflict
        });
    }
    let sql = "INSERT INTO tool_calls (agent, call_id, tool, arguments, arguments_hash, session_id, state,
               accepted_at, delivery) VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, 'pending')";
    sqlx::query(sql)
        .bind(new.agent.as_str())
        .bind(new.id.as_str())
        .bind(new.tool.as_str())
        .bind(&new.arguments)
        .bind(&hash)
        .bind(
            new.session
                .as_ref()
                .map(crate::domain::ids::SessionId::as_str),
        )
        .bind(micros(tx.now))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(Accepted::New(ToolCall {
        id: new.id,
        agent: new.agent,
        tool: new.tool,
        arguments: new.arguments,
        arguments_hash: hash,
        session: new.session,
        operation: None,
        state: CallState::Queued,
        result: None,
        accepted_at: tx.now,
        begun_at: None,
        executed_at: None,
        delivered_at: None,
        delivery: Delivery::Pending,
    }))
}

async fn find(
    tx: &mut Tx<'_>,
    agent: &AgentName,
    id: &CallId,
) -> Result<Option<ToolCall>, LedgerError> {
    let found = sqlx::query("SELECT * FROM tool_calls WHERE agent = ? AND call_id = ?")
        .bind(agent.as_str())
        .bind(id.as_str())
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    found.as_ref().map(row::call).transpose()
}

/// The latest calls of an agent (`?1`) to a tool (`?2`) accepted after `?3` and before this one (`?4`, `?5`),
/// newest first: what they asked for, and whether they sent or were kept from it.
pub(super) const LATEST: &str = "SELECT c.arguments_hash, c.result,
        EXISTS (SELECT 1 FROM attempts a WHERE a.operation_id = c.operation_id
                AND a.agent = c.agent AND a.call_id = c.call_id) AS sent
    FROM tool_calls c INDEXED BY tool_calls_by_agent
    WHERE c.agent = ?1 AND c.tool = ?2 AND c.accepted_at > ?3
      AND (c.accepted_at, c.rowid) < (?4, (SELECT rowid FROM tool_calls WHERE agent = ?1 AND call_id = ?5))
    ORDER BY c.accepted_at DESC, c.rowid DESC LIMIT ?6";

/// How far back calls count for the breaker.
const BREAKER_SPAN: std::time::Duration = std::time::Duration::from_hours(1);
/// Why it answers.
const BREAKER: &str = "the same call was made too often in a row; nothing was done";

/// Whether this call is one equal call too many: the tool's limit of them came right before it, and each sent
/// or was kept from it by this very rule (R96). Read off the calls themselves, so all engines agree.
pub(super) async fn broken(
    tx: &mut Tx<'_>,
    call: &LeasedCall,
) -> Result<Option<ToolResult>, LedgerError> {
    let asked = &call.call;
    let Some(most) = tx.terms(&asked.tool)?.policy.max_identical_calls else {
        return Ok(None);
    };
    let rows = sqlx::query(LATEST)
        .bind(asked.agent.as_str())
        .bind(asked.tool.as_str())
        .bind(micros(earlier(tx.now, BREAKER_SPAN)))
        .bind(micros(asked.accepted_at))
        .bind(asked.id.as_str())
        .bind(most)
        .fetch_all(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    if rows.len() < usize::try_from(most).unwrap_or(usize::MAX) {
        return Ok(None);
    }
    for found in &rows {
        let c = Columns(found);
        let kept = c
            .opt("result", Columns::text)?
            .is_some_and(|result| result.contains(BREAKER));
        let equal = c.text("arguments_hash")? == asked.arguments_hash;
        if !equal || !(kept || c.flag("sent")?) {
            return Ok(None);
        }
    }
    Ok(Some(ToolResult::rejected(
        RejectClass::RateLimited,
        BREAKER,
    )))
}

/// The arguments of an operation's first call.
pub(super) const FIRST_ARGUMENTS: &str =
    "SELECT arguments FROM tool_calls INDEXED BY tool_calls_by_operation
    WHERE operation_id = ?1 ORDER BY accepted_at LIMIT 1";

/// An approved held row is driven as a call of its own.
pub(super) async fn queue_approved(tx: &mut Tx<'_>, row: &OperationRow) -> Result<(), LedgerError> {
    let arguments = match (row.money, &row.order_id, &row.payment) {
        (Some(money), Some(order), Some(_)) => format!(
            r#"{{"amount_cents":{},"currency":"{}","order_id":{}}}"#,
            money.minor(),
            money.currency(),
            to_json(order)?
        ),
        // What was asked for stands in the call that opened the row.
        _ => sqlx::query_scalar(FIRST_ARGUMENTS)
            .bind(row.id.as_str())
            .fetch_one(&mut *tx.conn)
            .await
            .map_err(store::failed)?,
    };
    let agent = AgentName::parse(APPROVALS)
        .map_err(|e| LedgerError::Damaged(format!("{APPROVALS} {e}")))?;
    let call = NewCall {
        id: CallId::approval(&row.id),
        agent: agent.clone(),
        tool: row.tool.clone(),
        arguments,
        session: None,
    };
    let id = call.id.clone();
    match accept(tx, call).await? {
        Accepted::New(_) => {}
        // An agent took the name: better no approval than one that nobody drives.
        Accepted::Known(_) | Accepted::Conflict => {
            return Err(LedgerError::Constraint(format!(
                "the call {id} is there already"
            )));
        }
    }
    sqlx::query("UPDATE tool_calls SET operation_id = ? WHERE agent = ? AND call_id = ?")
        .bind(row.id.as_str())
        .bind(agent.as_str())
        .bind(id.as_str())
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// Calls that wait, and calls whose engine let its lease run out, oldest first; of each tool only so many
/// that every other tool still finds a worker (L5). Its own an engine takes only once their lease has been over
/// for as long again: after a ledger that stood still its workers are alive and their lease is renewed next,
/// while what it was given and never heard of has no worker.
pub(super) async fn lease(
    tx: &mut Tx<'_>,
    engine: &EngineId,
    lease: Duration,
    max: u32,
) -> Result<Vec<LeasedCall>, LedgerError> {
    let chosen = choose(tx, engine, lease, max).await?;
    let sql =
        "UPDATE tool_calls SET state = 'running', engine = ?1, epoch = epoch + 1, lease_until = ?2,
                   begun_at = coalesce(begun_at, ?3), joined = 0
               WHERE rowid IN (SELECT value FROM json_each(?4)) RETURNING *";
    let rows = sqlx::query(sql)
        .bind(engine.as_str())
        .bind(micros(later(tx.now, lease)))
        .bind(micros(tx.now))
        .bind(to_json(&chosen)?)
        .fetch_all(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let taken = rows.iter().map(|row| leased(row, tx.now));
    let mut calls: Vec<LeasedCall> = taken.collect::<Result<_, _>>()?;
    calls.sort_by_key(|c| c.call.accepted_at);
    Ok(calls)
}

// The index is named: it holds the calls without an answer alone, and without statistics SQLite would rather
// go through all calls of the tool, holding the writer's lock.
pub(super) const RUNNING: &str = "SELECT tool, count(*) FROM tool_calls INDEXED BY tool_calls_waiting
    WHERE state = 'running' AND state IN ('queued', 'running') AND engine = ? AND lease_until > ? GROUP BY tool";
pub(super) const WAITING: &str =
    "SELECT accepted_at, rowid FROM tool_calls INDEXED BY tool_calls_waiting
    WHERE state IN ('queued', 'running')
    AND (state = 'queued' OR lease_until <= CASE engine WHEN ?1 THEN ?2 ELSE ?3 END) AND tool = ?4
    ORDER BY accepted_at, rowid LIMIT ?5";

/// Which calls an engine takes that has `max` workers free. It leaves tools alone that it does not know (F49).
async fn choose(
    tx: &mut Tx<'_>,
    engine: &EngineId,
    lease: Duration,
    max: u32,
) -> Result<Vec<i64>, LedgerError> {
    let now = micros(tx.now);
    let running = sqlx::query_as(RUNNING).bind(engine.as_str()).bind(now);
    let running: Vec<(String, u32)> = running
        .fetch_all(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let workers = running
        .iter()
        .fold(max, |sum, (_, n)| sum.saturating_add(*n));
    let others = u32::try_from(tx.terms.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let share = workers.saturating_sub(others).max(1);
    let mut waiting: Vec<(i64, i64)> = Vec::new();
    for tool in tx.terms.keys() {
        let busy = running.iter().find(|(name, _)| name == tool.as_str());
        let room = share.saturating_sub(busy.map_or(0, |(_, n)| *n)).min(max);
        let found = sqlx::query_as(WAITING)
            .bind(engine.as_str())
            .bind(micros(earlier(tx.now, lease)))
            .bind(now)
            .bind(tool.as_str())
            .bind(room);
        let found: Vec<(i64, i64)> = found
            .fetch_all(&mut *tx.conn)
            .await
            .map_err(store::failed)?;
        waiting.extend(found);
    }
    waiting.sort_unstable();
    let chosen = waiting.into_iter().map(|(_, row)| row);
    Ok(chosen
        .take(usize::try_from(max).unwrap_or(usize::MAX))
        .collect())
}

pub(super) async fn lease_one(
    tx: &mut Tx<'_>,
    engine: &EngineId,
    lease: Duration,
    agent: &AgentName,
    id: &CallId,
) -> Result<Option<LeasedCall>, LedgerError> {
    let sql =
        "UPDATE tool_calls SET state = 'running', engine = ?1, epoch = epoch + 1, lease_until = ?2,
                   begun_at = coalesce(begun_at, ?3), joined = 0
               WHERE agent = ?4 AND call_id = ?5 AND state IN ('queued', 'running')
                   AND (state = 'queued' OR lease_until <= ?3)
               RETURNING *";
    let found = sqlx::query(sql)
        .bind(engine.as_str())
        .bind(micros(later(tx.now, lease)))
        .bind(micros(tx.now))
        .bind(agent.as_str())
        .bind(id.as_str())
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    found.as_ref().map(|row| leased(row, tx.now)).transpose()
}

fn leased(found: &SqliteRow, leased_at: Instant) -> Result<LeasedCall, LedgerError> {
    let c = row::Columns(found);
    Ok(LeasedCall {
        call: row::call(found)?,
        engine: c.word("engine")?,
        epoch: c.int("epoch")?,
        leased_at,
    })
}

/// Calls as [`renew`] takes them: agent, id and epoch of each, as JSON.
pub(super) fn names(held: &[LeasedCall]) -> Result<String, LedgerError> {
    let named: Vec<_> = held
        .iter()
        .map(|c| (&c.call.agent, &c.call.id, c.epoch))
        .collect();
    to_json(&named)
}

pub(super) async fn renew(
    tx: &mut Tx<'_>,
    engine: &EngineId,
    lease: Duration,
    held: &str,
) -> Result<u64, LedgerError> {
    let until = micros(later(tx.now, lease));
    // Both words, so that the index of waiting calls serves and not all calls are looked at.
    let calls = "UPDATE tool_calls SET lease_until = ?1 WHERE engine = ?2 AND state = 'running'
                 AND state IN ('queued', 'running')
                 AND (agent, call_id, epoch) IN
                     (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?3))";
    let rows = "UPDATE drives SET until = ?1 WHERE engine = ?2 AND (agent, call_id, epoch) IN
                    (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?3))";
    let mut renewed = 0;
    for (n, sql) in [calls, rows].into_iter().enumerate() {
        let done = sqlx::query(sql)
            .bind(until)
            .bind(engine.as_str())
            .bind(held)
            .execute(&mut *tx.conn)
            .await
            .map_err(store::failed)?;
        if n == 0 {
            renewed = done.rows_affected();
        }
    }
    Ok(renewed)
}

/// Back into the queue: another engine takes it at once.
pub(super) async fn release(tx: &mut Tx<'_>, call: &LeasedCall) -> Result<(), LedgerError> {
    if !mine(tx, call).await? {
        return Ok(());
    }
    end_drive(tx, call).await?;
    // Queued again, not merely let go: its old engine would renew it with everything else it has.
    let sql =
        "UPDATE tool_calls SET state = 'queued', engine = NULL, lease_until = NULL, joined = 0
               WHERE agent = ? AND call_id = ? AND state = 'running'";
    sqlx::query(sql)
        .bind(call.call.agent.as_str())
        .bind(call.call.id.as_str())
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// Whether this engine still has the call (I25).
pub(super) async fn mine(tx: &mut Tx<'_>, call: &LeasedCall) -> Result<bool, LedgerError> {
    let sql =
        "SELECT count(*) FROM tool_calls WHERE agent = ? AND call_id = ? AND state = 'running'
               AND engine = ? AND epoch = ?";
    let found: i64 = sqlx::query_scalar(sql)
        .bind(call.call.agent.as_str())
        .bind(call.call.id.as_str())
        .bind(call.engine.as_str())
        .bind(call.epoch)
        .fetch_one(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(found == 1)
}

async fn end_drive(tx: &mut Tx<'_>, call: &LeasedCall) -> Result<(), LedgerError> {
    sqlx::query("DELETE FROM drives WHERE agent = ? AND call_id = ? AND engine = ? AND epoch = ?")
        .bind(call.call.agent.as_str())
        .bind(call.call.id.as_str())
        .bind(call.engine.as_str())
        .bind(call.epoch)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// Notes which operation a call reached; the first one stays.
pub(super) async fn link(
    tx: &mut Tx<'_>,
    call: &LeasedCall,
    operation: &OperationId,
) -> Result<(), LedgerError> {
    let sql = "UPDATE tool_calls SET operation_id = ? WHERE agent = ? AND call_id = ? AND operation_id IS NULL";
    sqlx::query(sql)
        .bind(operation.as_str())
        .bind(call.call.agent.as_str())
        .bind(call.call.id.as_str())
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

pub(super) async fn set_joined(
    tx: &mut Tx<'_>,
    call: &LeasedCall,
    joined: bool,
) -> Result<(), LedgerError> {
    sqlx::query(
        "UPDATE tool_calls SET joined = ?1 WHERE agent = ?2 AND call_id = ?3 AND state = 'running' AND joined <> ?1",
    )
    .bind(joined)
    .bind(call.call.agent.as_str())
    .bind(call.call.id.as_str())
    .execute(&mut *tx.conn)
    .await
    .map_err(store::failed)?;
    Ok(())
}

/// Ends a call with what its row says now. A row that was never authorised and that nobody else
/// waits for is closed with it, so that asking again is safe.
pub(super) async fn finish(
    tx: &mut Tx<'_>,
    call: &LeasedCall,
) -> Result<Option<ToolResult>, LedgerError> {
    if !mine(tx, call).await? {
        return Ok(None);
    }
    let linked = find(tx, &call.call.agent, &call.call.id)
        .await?
        .and_then(|c| c.operation);
    let Some(id) = linked else {
        return Err(LedgerError::Damaged(format!(
            "call {} has no operation",
            call.call.id
        )));
    };
    let Some(mut op) = store::load(tx.conn, &id).await? else {
        return Err(LedgerError::Damaged(format!("operation {id} is gone")));
    };
    let waiting = waiting_besides(tx, call, &id).await?;
    let drove = drives(tx, call, &id).await?;
    // Joined calls end with their driver, so they do not wait for anybody else.
    let others = waiting.iter().any(|(_, _, joined)| !(drove && *joined));
    if !others
        && tx.clock_ok
        && let Ok(step) = operations::step(tx, &op, &Event::NeverSent).await?
    {
        op = step.op;
    }
    let words = tx.terms(&op.row.tool)?.policy.words;
    let result = answer::of(&op.row, words);
    store_answer(tx, &call.call.agent, &call.call.id, &result).await?;
    deliveries::doubted(tx, &op.row, &call.call.agent, &call.call.id, &result).await?;
    if drove {
        // Joined calls get their driver's answer.
        for (agent, id) in waiting.iter().filter(|w| w.2).map(|w| (&w.0, &w.1)) {
            store_answer(tx, agent, id, &result).await?;
            deliveries::doubted(tx, &op.row, agent, id, &result).await?;
        }
    }
    end_drive(tx, call).await?;
    Ok(Some(result))
}

async fn drives(
    tx: &mut Tx<'_>,
    call: &LeasedCall,
    operation: &OperationId,
) -> Result<bool, LedgerError> {
    let sql = "SELECT count(*) FROM drives WHERE operation_id = ? AND agent = ? AND call_id = ?";
    let found: i64 = sqlx::query_scalar(sql)
        .bind(operation.as_str())
        .bind(call.call.agent.as_str())
        .bind(call.call.id.as_str())
        .fetch_one(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(found > 0)
}

/// Other calls on the operation that have no answer yet: agent, id, and whether they joined.
async fn waiting_besides(
    tx: &mut Tx<'_>,
    call: &LeasedCall,
    operation: &OperationId,
) -> Result<Vec<(AgentName, CallId, bool)>, LedgerError> {
    let sql = "SELECT agent, call_id, joined FROM tool_calls WHERE operation_id = ?
               AND state IN ('queued', 'running') AND NOT (agent = ? AND call_id = ?)";
    let rows = sqlx::query(sql)
        .bind(operation.as_str())
        .bind(call.call.agent.as_str())
        .bind(call.call.id.as_str())
        .fetch_all(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    rows.iter()
        .map(|found| {
            let c = row::Columns(found);
            Ok((c.word("agent")?, c.word("call_id")?, c.flag("joined")?))
        })
        .collect()
}

/// Whether any call of the operation has no answer yet.
pub(super) async fn anybody_waits(
    tx: &mut Tx<'_>,
    operation: &OperationId,
) -> Result<bool, LedgerError> {
    let sql =
        "SELECT count(*) FROM tool_calls WHERE operation_id = ? AND state IN ('queued', 'running')";
    let waiting: i64 = sqlx::query_scalar(sql)
        .bind(operation.as_str())
        .fetch_one(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(waiting > 0)
}

/// Ends a call that got no row.
pub(super) async fn answer(
    tx: &mut Tx<'_>,
    call: &LeasedCall,
    result: ToolResult,
) -> Result<Option<ToolResult>, LedgerError> {
    if !mine(tx, call).await? {
        return Ok(None);
    }
    if let Some(operation) = result.operation() {
        link(tx, call, operation).await?;
    }
    store_answer(tx, &call.call.agent, &call.call.id, &result).await?;
    end_drive(tx, call).await?;
    Ok(Some(result))
}

async fn store_answer(
    tx: &mut Tx<'_>,
    agent: &AgentName,
    id: &CallId,
    result: &ToolResult,
) -> Result<(), LedgerError> {
    let state = if matches!(result, ToolResult::Held { .. }) {
        "held"
    } else {
        "answered"
    };
    let sql = "UPDATE tool_calls SET state = ?, result = ?, executed_at = ?, joined = 0, lease_until = NULL
               WHERE agent = ? AND call_id = ? AND result IS NULL";
    sqlx::query(sql)
        .bind(state)
        .bind(to_json(result)?)
        .bind(micros(tx.now))
        .bind(agent.as_str())
        .bind(id.as_str())
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// The caller has the answer; only an answered call can be delivered.
pub(super) async fn delivered(
    tx: &mut Tx<'_>,
    agent: &AgentName,
    id: &CallId,
) -> Result<(), LedgerError> {
    if deliveries::is_doubted(tx, agent, id).await? {
        return Ok(());
    }
    let sql = "UPDATE tool_calls SET delivery = 'delivered', delivered_at = ?
               WHERE agent = ? AND call_id = ? AND result IS NOT NULL AND delivery <> 'delivered'";
    sqlx::query(sql)
        .bind(micros(tx.now))
        .bind(agent.as_str())
        .bind(id.as_str())
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}
