//! What a finished call left behind, as cells of each table.

use std::collections::BTreeMap;

use crate::domain::Instant;
use crate::domain::answer;
use crate::domain::attempt::Attempt;
use crate::domain::evidence::{Bearing, Seen};
use crate::domain::guard;
use crate::domain::ids::{
    ChargeId, EngineId, OperationId, OrderId, PaymentId, ProviderRef, SessionId, ToolName,
};
use crate::domain::key::hex_digest;
use crate::domain::money::Currency;
use crate::domain::operation::{Operation, OperationRow, Status};
use crate::domain::outcome::{Outcome, OutcomeClass};
use crate::domain::policy::{Terms, Words};
use crate::domain::tool_call::{CallState, Delivery};
use crate::domain::transition::{AuditEntry, Authorise, Event, transition};
use crate::ledger::row::{micros, to_json};
use crate::ledger::sqlite::{operations, store};
use crate::ledger::{LedgerError, NewCall, OpenRow};

/// A call that was answered after one attempt, and its row.
#[derive(Clone, Debug)]
pub struct Past {
    pub call: NewCall,
    pub engine: EngineId,
    /// `mark` counts for nothing here.
    pub row: OpenRow,
    /// How the attempt ended.
    pub outcome: Outcome,
    pub at: Times,
}

/// When each step was, in this order.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub accepted: Instant,
    pub begun: Instant,
    pub opened: Instant,
    pub authorised: Instant,
    pub finished: Instant,
    pub executed: Instant,
    pub delivered: Instant,
}

/// A value of a column.
pub(super) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<i64> for Cell {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<u32> for Cell {
    fn from(n: u32) -> Self {
        Self::Int(n.into())
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Self::Int(flag.into())
    }
}

impl From<Instant> for Cell {
    fn from(at: Instant) -> Self {
        Self::Int(micros(at))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

macro_rules! fifty {
    ($row:literal) => {
        fifty!(@5 fifty!(@10 $row))
    };
    (@5 $ten:expr) => {
        concat!($ten, ",", $ten, ",", $ten, ",", $ten, ",", $ten)
    };
    (@10 $row:literal) => {
        concat!($row, ",", $row, ",", $row, ",", $row, ",", $row, ",", $row, ",", $row, ",", $row, ",", $row, ",", $row)
    };
}

macro_rules! table {
    ($into:literal, $row:literal) => {
        (
            concat!($into, " VALUES ", $row),
            concat!($into, " VALUES ", fifty!($row)),
        )
    };
}

/// For each table the statement for one row, and for fifty.
pub(super) const TABLES: [(&str, &str); 7] = [
    table!(
        "INSERT INTO operations (operation_id, tool, identity, order_id, amount_cents, currency, provider, payment,
         charge, \"after\", status, effect, held, idempotency_key, request, request_hash, attempts, attempts_max,
         key_created_at, key_expires_at, first_authorised_at, last_authorised_at, last_outcome, reason, failure,
         failure_text, verdict, decidable_at, provider_ref, pending_since, version, corrections, audit_seq,
         created_at, updated_at, unknown_at, closed_at, closed_by)",
        "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
    ),
    table!(
        "INSERT INTO attempts (operation_id, attempt_no, agent, call_id, authorised_at, finished_at, outcome,
         http_status, provider_request_id, error, replayed, limiter, already_refunded)",
        "(?,?,?,?,?,?,?,?,?,?,?,?,?)"
    ),
    table!(
        "INSERT INTO evidence (operation_id, source, kind, provider_ref, payload, observed_at)",
        "(?,?,?,?,?,?)"
    ),
    table!(
        "INSERT INTO provider_objects (provider, provider_ref, operation_id)",
        "(?,?,?)"
    ),
    table!(
        "INSERT INTO audit (operation_id, seq, at, actor, os_user, action, detail, hash)",
        "(?,?,?,?,?,?,?,?)"
    ),
    table!(
        "INSERT INTO tool_calls (agent, call_id, tool, arguments, arguments_hash, session_id, operation_id, state,
         result, accepted_at, begun_at, executed_at, delivered_at, delivery, engine, epoch)",
        "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,1)"
    ),
    // What the trigger on becoming unknown says.
    table!(
        "INSERT INTO notices (event, subject, tool, operation_id, mark, reason, at, next_at)",
        "('unknown',?,?,?,?,?,?,?)"
    ),
];

/// The cells of each of [`TABLES`], row by row.
pub(super) type Tables = [Vec<Cell>; TABLES.len()];

/// The rows of so many calls, and how many calls those are.
pub(super) fn tables(
    past: impl Iterator<Item = Result<Past, LedgerError>>,
    terms: &BTreeMap<ToolName, Terms>,
    os_user: &str,
) -> Result<(u64, Tables), LedgerError> {
    let mut tables = Tables::default();
    let mut calls = 0;
    for past in past {
        let past = past?;
        let terms = terms.get(&past.row.tool).ok_or_else(|| {
            LedgerError::Constraint(format!("tool {} is not configured", past.row.tool))
        })?;
        one(&past, terms, os_user, &mut tables)?;
        calls += 1;
    }
    Ok((calls, tables))
}

fn one(past: &Past, terms: &Terms, os_user: &str, tables: &mut Tables) -> Result<(), LedgerError> {
    let [
        operations,
        attempts,
        evidence,
        objects,
        audit,
        calls,
        notices,
    ] = tables;
    let at = &past.at;
    let row = operations::fresh(&past.row, false, terms.policy.max_per_operation, at.opened);
    let opened = operations::first_entry(&row, &past.call.id, &past.call.agent);
    let mut hash = sealed(audit, (&row, 0), &opened, None, (at.opened, os_user))?;
    let mut op = Operation {
        row,
        attempts: Vec::new(),
        evidence: Vec::new(),
    };
    let authorise = Event::Authorise(Authorise {
        agent: past.call.agent.clone(),
        call: past.call.id.clone(),
        lease: true,
        clock: true,
        contradicted: false,
        paused: false,
        circuit: true,
        token: Ok(()),
    });
    let finished = Event::Finished {
        attempt: 1,
        outcome: past.outcome.clone(),
        taken: false,
    };
    for (event, at) in [(authorise, at.authorised), (finished, at.finished)] {
        let step = transition(&op, &event, terms, at)
            .map_err(|refusal| LedgerError::Constraint(refusal.to_string()))?;
        op = step.op;
        let left = (&op.row, op.evidence.len());
        hash = sealed(audit, left, &step.audit, Some(&hash), (at, os_user))?;
    }
    operation(operations, &op, terms);
    for a in &op.attempts {
        attempt(attempts, op.row.id.as_str(), a);
    }
    for entry in &op.evidence {
        let object = match &entry.seen {
            Seen::Object { object, bearing } => Some((object.id.as_str(), *bearing)),
            Seen::Scan { .. } | Seen::Unreachable { .. } | Seen::Reply { .. } => None,
        };
        evidence.extend::<[Cell; 6]>([
            op.row.id.as_str().into(),
            entry.source.as_str().into(),
            entry.seen.kind().into(),
            object.map(|(id, _)| id).into(),
            to_json(&entry.seen)?.into(),
            entry.observed_at.into(),
        ]);
        if let Some((id, Bearing::Ours)) = object {
            let (provider, owner) = (op.row.provider.as_str(), op.row.id.as_str());
            objects.extend::<[Cell; 3]>([provider.into(), id.into(), owner.into()]);
        }
    }
    notice(notices, &op.row);
    call(calls, past, &op.row)
}

/// What the trigger on becoming unknown would have told.
fn notice(cells: &mut Vec<Cell>, row: &OperationRow) {
    if row.status != Status::Unknown {
        return;
    }
    let (id, mark, at) = (row.id.as_str(), row.version.to_string(), row.updated_at);
    let (tool, reason) = (row.tool.as_str(), row.reason.map(<&str>::from));
    cells.extend::<[Cell; 7]>([
        id.into(),
        tool.into(),
        id.into(),
        mark.into(),
        reason.into(),
        at.into(),
        at.into(),
    ]);
}

/// Adds an audit entry and answers its hash. `left`: the row as it then was, and how much evidence.
fn sealed(
    cells: &mut Vec<Cell>,
    (row, evidence): (&OperationRow, usize),
    entry: &AuditEntry,
    before: Option<&str>,
    (at, os_user): (Instant, &str),
) -> Result<String, LedgerError> {
    let sealed = store::seal(row, evidence, entry, before, (micros(at), os_user))?;
    cells.extend::<[Cell; 8]>([
        row.id.as_str().into(),
        row.audit_seq.into(),
        at.into(),
        sealed.actor.into(),
        os_user.into(),
        entry.action.as_str().into(),
        sealed.detail.into(),
        sealed.hash.as_str().into(),
    ]);
    Ok(sealed.hash)
}

fn operation(cells: &mut Vec<Cell>, op: &Operation, terms: &Terms) {
    let row = &op.row;
    cells.extend::<[Cell; 38]>([
        row.id.as_str().into(),
        row.tool.as_str().into(),
        row.identity.as_str().into(),
        row.order_id.as_ref().map(OrderId::as_str).into(),
        row.minor().into(),
        row.currency().as_ref().map(Currency::as_str).into(),
        row.provider.as_str().into(),
        row.payment.as_ref().map(PaymentId::as_str).into(),
        row.charge.as_ref().map(ChargeId::as_str).into(),
        row.after.as_ref().map(OperationId::as_str).into(),
        row.status.as_str().into(),
        <&str>::from(row.effect).into(),
        row.held.into(),
        row.key.to_string().into(),
        Cell::Bytes(row.request.clone()),
        row.request_hash.as_str().into(),
        row.attempts.into(),
        row.attempts_max.into(),
        row.key_created_at.into(),
        row.key_expires_at.into(),
        row.first_authorised_at.into(),
        row.last_authorised_at.into(),
        row.last_outcome.map(OutcomeClass::as_str).into(),
        row.reason.map(<&str>::from).into(),
        row.failure.map(<&str>::from).into(),
        row.failure_text.as_ref().map(ToString::to_string).into(),
        row.verdict.map(<&str>::from).into(),
        guard::decidable_at(op, terms).into(),
        row.provider_ref.as_ref().map(ProviderRef::as_str).into(),
        row.pending_since.into(),
        row.version.into(),
        row.corrections.into(),
        row.audit_seq.into(),
        row.created_at.into(),
        row.updated_at.into(),
        row.unknown_at.into(),
        row.closed_at.into(),
        row.closed_by.as_deref().into(),
    ]);
}

fn attempt(cells: &mut Vec<Cell>, operation: &str, a: &Attempt) {
    let result = a.result.as_ref();
    let text = |text: Option<&crate::domain::text::SafeText>| text.map(ToString::to_string);
    cells.extend::<[Cell; 13]>([
        operation.into(),
        a.number.into(),
        a.agent.as_str().into(),
        a.call.as_str().into(),
        a.authorised_at.into(),
        result.map(|r| r.finished_at).into(),
        result.map(|r| r.class.as_str()).into(),
        result.and_then(|r| r.http_status).map(u32::from).into(),
        text(result.and_then(|r| r.request_id.as_ref())).into(),
        text(result.and_then(|r| r.error.as_ref())).into(),
        result.is_some_and(|r| r.replayed).into(),
        result.is_some_and(|r| r.limiter).into(),
        result.is_some_and(|r| r.already_refunded).into(),
    ]);
}

fn call(cells: &mut Vec<Cell>, past: &Past, row: &OperationRow) -> Result<(), LedgerError> {
    let (call, at) = (&past.call, &past.at);
    let hash = hex_digest(format!("{}\n{}", call.tool, call.arguments).as_bytes());
    cells.extend::<[Cell; 15]>([
        call.agent.as_str().into(),
        call.id.as_str().into(),
        call.tool.as_str().into(),
        call.arguments.as_str().into(),
        hash.into(),
        call.session.as_ref().map(SessionId::as_str).into(),
        row.id.as_str().into(),
        <&str>::from(CallState::Answered).into(),
        to_json(&answer::of(row, Words::REFUND))?.into(),
        at.accepted.into(),
        at.begun.into(),
        at.executed.into(),
        at.delivered.into(),
        <&str>::from(Delivery::Delivered).into(),
        past.engine.as_str().into(),
    ]);
    Ok(())
}
