//! Opening, driving and changing rows. Each function is one transaction; what it may do is asked of
//! `domain`, with facts read in that same transaction.

use std::time::Duration;

use serde_json::json;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Tx, calls, deliveries, limits, notices, store};
use crate::domain::attempt::Attempt;
use crate::domain::ids::{Actor, AgentName, CallId, OperationId, OrderId, PaymentId};
use crate::domain::key::hex_digest;
use crate::domain::opening::{self, Got, Opened};
use crate::domain::operation::{Effect, Operation, OperationRow, Status};
use crate::domain::review_event::Act;
use crate::domain::tool_call::ToolResult;
use crate::domain::transition::{
    Action, AuditEntry, Authorise, Event, Lookup, Next, Refusal, Step, transition,
};
use crate::domain::{Instant, earlier, later};
use crate::ledger::row::micros;
use crate::ledger::{Applied, Drive, LeasedCall, LedgerError, OpenRow, Opening};

/// Step 5: get and check once more, then one insert under the unique indexes.
pub(super) async fn open(
    tx: &mut Tx<'_>,
    call: &LeasedCall,
    new: OpenRow,
) -> Result<Opening, LedgerError> {
    if !calls::mine(tx, call).await? {
        // Whoever has the call now opens the row; this engine finds out when it looks again.
        return Ok(Opening::Changed);
    }
    let terms = tx.terms(&new.tool)?.clone();
    let policy = &terms.policy;
    let args = &new.arguments;
    let resolved = new.resolved.as_ref();
    let payment = resolved.map(|r| &r.payment);
    let rows = store::rows_about(tx.conn, &new.tool, &new.provider, args, payment).await?;
    match opening::get(&rows, args, payment, policy) {
        Got::Row(id) => {
            calls::link(tx, call, &id).await?;
            return Ok(Opening::Row(id));
        }
        Got::Answer(answer) => return Ok(Opening::Answer(answer)),
        Got::Nothing => {}
    }
    let mark = new.mark.parse().unwrap_or(0);
    if store::changed_since(tx.conn, &rows, mark).await? {
        return Ok(Opening::Changed);
    }
    if let Some(answer) = calls::broken(tx, call).await? {
        return Ok(Opening::Answer(Box::new(answer)));
    }
    let opened = opened_within(tx, &new).await?;
    if let Err(answer) = opening::check(&rows, args, resolved, policy, opened) {
        tell_cap(tx, &new, opened, &answer).await?;
        return Ok(Opening::Answer(answer));
    }
    let held = opening::needs_approval(policy, args);
    let row = fresh(&new, held, policy.max_per_operation, tx.now);
    let audit = first_entry(&row, &call.call.id, &call.call.agent);
    store::insert(tx, &row, &audit).await?;
    calls::link(tx, call, &row.id).await?;
    Ok(Opening::Opened(row.id))
}

/// Others hear of a call that was rejected because of a cap of its currency.
async fn tell_cap(
    tx: &mut Tx<'_>,
    new: &OpenRow,
    opened: Opened,
    answer: &ToolResult,
) -> Result<(), LedgerError> {
    let Some(money) = new.arguments.money else {
        return Ok(());
    };
    let policy = &tx.terms(&new.tool)?.policy;
    if !policy.caps.contains_key(&money.currency()) {
        return Ok(());
    }
    let cap = opening::caps(policy, money.currency(), money.minor(), opened.minor);
    match (answer, cap) {
        // Not where something else stood in its way first.
        (ToolResult::Rejected { reason, .. }, Some(why)) if reason.as_str() == why => {
            notices::cap_reached(tx, &new.tool, money.currency(), &why).await
        }
        _ => Ok(()),
    }
}

/// The audit entry of a new row.
pub(super) fn first_entry(row: &OperationRow, call: &CallId, agent: &AgentName) -> AuditEntry {
    AuditEntry {
        actor: Actor::Agent(agent.clone()),
        action: Action::Opened,
        detail: json!({
            "call": call, "identity": row.identity.as_str(), "amount_cents": row.minor(),
            "currency": row.currency(), "provider": row.provider, "payment": row.payment,
            "charge": row.charge, "after": row.after,
            "key_fingerprint": row.key.fingerprint(), "request_hash": row.request_hash,
            "attempts_max": row.attempts_max, "held": row.held, "status": row.status, "version": 1,
        }),
    }
}

/// A row as it begins.
pub(super) fn fresh(new: &OpenRow, held: bool, attempts_max: u32, now: Instant) -> OperationRow {
    OperationRow {
        id: new.id.clone(),
        tool: new.tool.clone(),
        identity: new.arguments.identity.clone(),
        order_id: new.arguments.order.clone(),
        money: new.arguments.money,
        provider: new.provider.clone(),
        payment: new.resolved.as_ref().map(|r| r.payment.clone()),
        charge: new.resolved.as_ref().and_then(|r| r.charge.clone()),
        after: new.arguments.after.clone(),
        status: Status::Open,
        effect: Effect::NotStarted,
        held,
        approved_by: None,
        contradicted: None,
        key: new.key.clone(),
        request: new.request.clone(),
        request_hash: hex_digest(&new.request),
        attempts: 0,
        attempts_max,
        key_created_at: now,
        key_expires_at: None,
        first_authorised_at: None,
        last_authorised_at: None,
        last_outcome: None,
        reason: None,
        failure: None,
        failure_text: None,
        verdict: None,
        provider_ref: None,
        pending_since: None,
        version: 1,
        corrections: 0,
        audit_seq: 1,
        created_at: now,
        updated_at: now,
        unknown_at: None,
        closed_at: None,
        closed_by: None,
        proposal: None,
        claim: None,
        snoozed_until: None,
    }
}

/// What the tool opened within its caps' windows.
async fn opened_within(tx: &mut Tx<'_>, new: &OpenRow) -> Result<Opened, LedgerError> {
    let policy = tx.terms(&new.tool)?.policy.clone();
    let mut opened = Opened::default();
    if let Some(money) = new.arguments.money {
        let caps = policy.caps.get(&money.currency());
        if let Some((_, window)) = caps.and_then(|c| c.max_total) {
            let currency = money.currency();
            opened.minor = sum_since(tx, new.tool.as_str(), currency.as_str(), window, "").await?;
        }
    }
    if let Some((_, window)) = policy.max_operations {
        opened.operations = sqlx::query_scalar(COUNT_SINCE)
            .bind(new.tool.as_str())
            .bind(micros(earlier(tx.now, window)))
            .fetch_one(&mut *tx.conn)
            .await
            .map_err(store::failed)?;
    }
    Ok(opened)
}

/// How many operations of a tool (`?1`) were opened after `?2`. What failed without being sent counts, too:
/// a runaway is one whether or not it gets through.
pub(super) const COUNT_SINCE: &str = "SELECT count(*) FROM operations INDEXED BY operations_by_tool
    WHERE tool = ?1 AND created_at > ?2";

async fn sum_since(
    tx: &mut Tx<'_>,
    tool: &str,
    currency: &str,
    window: Duration,
    except: &str,
) -> Result<i64, LedgerError> {
    let sql = "SELECT coalesce(sum(amount_cents), 0) FROM operations
               WHERE tool = ? AND currency = ? AND created_at > ? AND status <> 'failed' AND operation_id <> ?";
    sqlx::query_scalar(sql)
        .bind(tool)
        .bind(currency)
        .bind(micros(earlier(tx.now, window)))
        .bind(except)
        .fetch_one(&mut *tx.conn)
        .await
        .map_err(store::failed)
}

async fn loaded(tx: &mut Tx<'_>, id: &OperationId) -> Result<Operation, LedgerError> {
    store::load(tx.conn, id)
        .await?
        .ok_or_else(|| LedgerError::Damaged(format!("operation {id} is gone")))
}

/// The answer of a call that would send on an open row, but is one equal call too many (R96). A call that
/// has sent already is none.
async fn once_too_often(
    tx: &mut Tx<'_>,
    op: &Operation,
    call: &LeasedCall,
) -> Result<Option<ToolResult>, LedgerError> {
    let ours = |a: &Attempt| a.call == call.call.id && a.agent == call.call.agent;
    let sends = op.row.attempts > 0 && op.row.status == Status::Open;
    if !sends || op.attempts.iter().any(ours) {
        return Ok(None);
    }
    calls::broken(tx, call).await
}

/// Takes the row for this call, or joins whoever has it.
pub(super) async fn drive(
    tx: &mut Tx<'_>,
    id: &OperationId,
    call: &LeasedCall,
    lease: Duration,
) -> Result<Drive, LedgerError> {
    let mut op = loaded(tx, id).await?;
    if !calls::mine(tx, call).await? {
        // A lost lease joins: it must not stand in the way of whoever has the call now (F42).
        return Ok(Drive::Joined);
    }
    if let Some(answer) = once_too_often(tx, &op, call).await? {
        return Ok(Drive::Broken(Box::new(answer)));
    }
    calls::link(tx, call, id).await?;
    let row = &op.row;
    // With a clock that cannot be trusted nothing is driven, and no row changes.
    if row.status != Status::Open || row.held || row.provider_ref.is_some() || !tx.clock_ok {
        return Ok(Drive::Settled);
    }
    let holder =
        sqlx::query("SELECT agent, call_id, engine, until FROM drives WHERE operation_id = ?")
            .bind(id.as_str())
            .fetch_optional(&mut *tx.conn)
            .await
            .map_err(store::failed)?;
    let other = |holder: &SqliteRow| {
        let same_call = holder.get::<String, _>("agent") == call.call.agent.as_str()
            && holder.get::<String, _>("call_id") == call.call.id.as_str();
        let same_engine = holder.get::<String, _>("engine") == call.engine.as_str();
        holder.get::<i64, _>("until") > micros(tx.now) && !(same_call && same_engine)
    };
    if holder.as_ref().is_some_and(other) {
        calls::set_joined(tx, call, true).await?;
        return Ok(Drive::Joined);
    }
    if op.in_flight() {
        // Its driver is gone: what it sent has no outcome of its own.
        match step(tx, &op, &Event::Interrupted).await? {
            Ok(step) => {
                op = step.op;
                limits::attempt_lost(tx, &op.row).await?;
            }
            Err(refusal) => return Err(LedgerError::Damaged(refusal.to_string())),
        }
        if op.row.status != Status::Open {
            return Ok(Drive::Settled);
        }
    }
    let sql = "INSERT INTO drives (operation_id, agent, call_id, engine, epoch, until) VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT (operation_id) DO UPDATE SET agent = excluded.agent, call_id = excluded.call_id,
               engine = excluded.engine, epoch = excluded.epoch, until = excluded.until";
    sqlx::query(sql)
        .bind(id.as_str())
        .bind(call.call.agent.as_str())
        .bind(call.call.id.as_str())
        .bind(call.engine.as_str())
        .bind(call.epoch)
        .bind(micros(later(tx.now, lease)))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    calls::set_joined(tx, call, false).await?;
    Ok(Drive::Mine(Box::new(op)))
}

/// Counts an attempt, with everything that must hold read here and now (I7).
pub(super) async fn authorise(tx: &mut Tx<'_>, id: &OperationId, call: &LeasedCall) -> Applied {
    let op = loaded(tx, id).await?;
    let row = &op.row;
    let tool = limits::tool(tx, &row.tool).await?;
    let token = limits::peek_send(tx, row).await?;
    let circuit = tool.circuit.admit(id);
    let facts = Authorise {
        agent: call.call.agent.clone(),
        call: call.call.id.clone(),
        lease: holds(tx, id, call).await?,
        clock: tx.clock_ok,
        contradicted: contradicted_nearby(tx, row).await?,
        paused: tool.paused.is_some(),
        circuit: circuit.is_some(),
        token: token.as_ref().map(|_| ()).map_err(|wait| *wait),
    };
    let done = step(tx, &op, &Event::Authorise(facts)).await?;
    if done.is_ok() {
        for (name, bucket) in token.into_iter().flatten() {
            limits::fill(tx, &name, bucket).await?;
        }
        if let Some(circuit) = circuit.filter(|c| *c != tool.circuit) {
            limits::set_circuit(tx, &row.tool, &tool.circuit, &circuit).await?;
        }
    }
    Ok(done)
}

/// Whether this call's engine still holds call and row (I25).
async fn holds(tx: &mut Tx<'_>, id: &OperationId, call: &LeasedCall) -> Result<bool, LedgerError> {
    let sql = "SELECT count(*) FROM drives d JOIN tool_calls c ON c.agent = d.agent AND c.call_id = d.call_id
               WHERE d.operation_id = ? AND d.agent = ? AND d.call_id = ? AND d.engine = ? AND d.epoch = ?
               AND d.until > ? AND c.state = 'running' AND c.engine = d.engine AND c.epoch = d.epoch AND c.lease_until > ?";
    let now = micros(tx.now);
    let held: i64 = sqlx::query_scalar(sql)
        .bind(id.as_str())
        .bind(call.call.agent.as_str())
        .bind(call.call.id.as_str())
        .bind(call.engine.as_str())
        .bind(call.epoch)
        .bind(now)
        .bind(now)
        .fetch_one(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(held == 1)
}

async fn contradicted_nearby(tx: &mut Tx<'_>, row: &OperationRow) -> Result<bool, LedgerError> {
    let sql = "SELECT count(*) FROM operations WHERE contradicted IS NOT NULL
               AND ((tool = ?1 AND order_id = ?2) OR (provider = ?3 AND payment = ?4)
                    OR (tool = ?1 AND identity = ?5))";
    let found: i64 = sqlx::query_scalar(sql)
        .bind(row.tool.as_str())
        .bind(row.order_id.as_ref().map(OrderId::as_str))
        .bind(row.provider.as_str())
        .bind(row.payment.as_ref().map(PaymentId::as_str))
        .bind(row.identity.as_str())
        .fetch_one(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(found > 0)
}

/// Any other event, with what belongs to other operations read here.
pub(super) async fn apply(tx: &mut Tx<'_>, id: &OperationId, event: Event) -> Applied {
    let Some(op) = store::load(tx.conn, id).await? else {
        return Err(LedgerError::Damaged(format!("there is no operation {id}")));
    };
    if !tx.clock_ok && !holds_without_a_clock(&event) {
        return Ok(Err(Refusal::ClockAlarm));
    }
    if let Event::Interrupted = event {
        // Only what nobody drives any more is interrupted.
        let sql = "SELECT count(*) FROM drives WHERE operation_id = ? AND until > ?";
        let driven: i64 = sqlx::query_scalar(sql)
            .bind(id.as_str())
            .bind(micros(tx.now))
            .fetch_one(&mut *tx.conn)
            .await
            .map_err(store::failed)?;
        if driven > 0 {
            return Ok(Err(Refusal::NothingDue));
        }
    }
    if let Event::NeverSent = event
        && calls::anybody_waits(tx, id).await?
    {
        return Ok(Err(Refusal::NothingDue));
    }
    let event = with_facts(tx, &op, event).await?;
    let done = step(tx, &op, &event).await?;
    if let (
        Ok(_),
        Event::Finished {
            attempt, outcome, ..
        },
    ) = (&done, &event)
    {
        let first = op
            .attempts
            .iter()
            .any(|a| a.number == *attempt && a.in_flight());
        if first {
            limits::attempt_ended(tx, &op.row, outcome).await?;
        }
    }
    if let (Ok(_), Event::Interrupted) = (&done, &event) {
        limits::attempt_lost(tx, &op.row).await?;
    }
    Ok(done)
}

/// What may be written while the clock cannot be trusted: how an attempt ended, and notes. Everything
/// else rests on an instant: deadlines, waits, proofs of absence.
fn holds_without_a_clock(event: &Event) -> bool {
    match event {
        Event::Finished { .. } => true,
        Event::Decided(decision) => matches!(decision.act, Act::Note),
        Event::Authorise(_)
        | Event::Interrupted
        | Event::Observed(_)
        | Event::RefFetched { .. }
        | Event::NeverSent
        | Event::NoLongerFits { .. }
        | Event::Swept => false,
    }
}

/// Fills in what only the ledger knows: which objects are attached elsewhere, and the money caps.
async fn with_facts(
    tx: &mut Tx<'_>,
    op: &Operation,
    mut event: Event,
) -> Result<Event, LedgerError> {
    let row = &op.row;
    match &mut event {
        Event::Finished { outcome, taken, .. } => {
            if let Some(object) = &outcome.object {
                *taken = is_taken(tx, row, object.id.clone()).await?;
            }
        }
        Event::RefFetched {
            object: Some(object),
            taken,
        } => {
            *taken = is_taken(tx, row, object.id.clone()).await?;
        }
        Event::Observed(observed) => match &mut observed.seen {
            Lookup::Listed { objects, .. } => {
                for (object, taken) in objects {
                    *taken = is_taken(tx, row, object.id.clone()).await?;
                }
            }
            Lookup::One { object, taken } => {
                *taken = is_taken(tx, row, object.id.clone()).await?;
            }
            Lookup::Unreachable { .. } => {}
        },
        Event::Decided(decision) => {
            if let Act::Approve { caps } = &mut decision.act
                && row.held
                && let Some(money) = row.money
            {
                let currency = money.currency();
                let policy = tx.terms(&row.tool)?.policy.clone();
                let window = policy.caps.get(&currency).and_then(|c| c.max_total);
                let (tool, id) = (row.tool.as_str(), row.id.as_str());
                let opened = match window {
                    Some((_, window)) => sum_since(tx, tool, currency.as_str(), window, id).await?,
                    None => 0,
                };
                *caps = opening::caps(&policy, currency, money.minor(), opened)
                    .map(|why| why.as_str().into());
            }
        }
        Event::Authorise(_)
        | Event::Interrupted
        | Event::RefFetched { object: None, .. }
        | Event::NeverSent
        | Event::NoLongerFits { .. }
        | Event::Swept => {}
    }
    Ok(event)
}

async fn is_taken(
    tx: &mut Tx<'_>,
    row: &OperationRow,
    id: crate::domain::ids::ProviderRef,
) -> Result<bool, LedgerError> {
    let owners = store::owners(tx.conn, &row.provider, &[id]).await?;
    Ok(owners.iter().any(|(_, owner)| *owner != row.id))
}

/// Asks the domain and writes what it answers.
pub(super) async fn step(tx: &mut Tx<'_>, op: &Operation, event: &Event) -> Applied {
    let terms = tx.terms(&op.row.tool)?;
    let step: Step = match transition(op, event, terms, tx.now) {
        Ok(step) => step,
        Err(refusal) => return Ok(Err(refusal)),
    };
    debug_assert!(
        step.op
            .attempts
            .iter()
            .filter(|a| Attempt::in_flight(a))
            .count()
            <= 1
    );
    store::save(tx, op, &step).await?;
    deliveries::ended(tx, op, &step.op.row).await?;
    if step.next == Next::Due {
        calls::queue_approved(tx, &step.op.row).await?;
    }
    Ok(Ok(step))
}
