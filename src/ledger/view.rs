//! What is read from a ledger, as JSON for the outside ("Operation row as JSON" of the contract).
//!
//! Owns: member names, their order, and instants as RFC 3339 UTC with milliseconds. Never: decides
//! (it asks `domain::guard`), or hides anything; who may see less takes members away. Tests: below.

use std::collections::BTreeMap;

use chrono::SecondsFormat;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::query::{AuditRow, Detail, Listed};
use crate::domain::attempt::Attempt;
use crate::domain::evidence::{Evidence, Seen, Source, Verdict};
use crate::domain::guard::{self, Ruling};
use crate::domain::ids::{
    OperationId, ProviderName, ProviderRef, ReviewerName, SessionId, ToolName,
};
use crate::domain::message::{self, Language};
use crate::domain::operation::{
    Closing, Contradiction, Effect, Operation, OperationRow, Proposal, Status, UnknownReason,
};
use crate::domain::outcome::OutcomeClass;
use crate::domain::policy::Terms;
use crate::domain::text::SafeText;
use crate::domain::tool_call::{CallState, Delivery, ToolCall, ToolResult};
use crate::domain::{Instant, since};

/// What a view needs to know besides the row.
#[derive(Clone, Copy)]
pub struct Lens<'a> {
    pub terms: &'a BTreeMap<ToolName, Terms>,
    /// Where a person finds a provider's object.
    pub url: &'a dyn Fn(&ProviderName, &ProviderRef) -> Option<String>,
    pub now: Instant,
    /// In which customers are spoken to.
    pub language: Language,
}

/// An instant as the outside reads it: `2026-01-31T14:03:22.000Z`.
#[must_use]
pub fn instant(at: Instant) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The tool's own word for a status: `open`, `unknown`, `refunded`, `failed`.
#[must_use]
pub fn status_word(status: Status, terms: Option<&Terms>) -> &'static str {
    match (status, terms) {
        (Status::Succeeded, Some(terms)) => terms.policy.words.success,
        (status, _) => status.as_str(),
    }
}

/// An operation row, member for member as in the contract.
#[derive(Clone, Debug, Serialize)]
pub struct RowView {
    pub operation_id: OperationId,
    pub tool: ToolName,
    pub identity: Value,
    pub order_id: Option<String>,
    /// Minor units; empty for a tool that moves no money.
    pub amount_cents: Option<i64>,
    pub currency: Option<String>,
    pub payment: Option<String>,
    pub charge: Option<String>,
    pub after: Option<OperationId>,
    pub status: Status,
    pub status_word: &'static str,
    pub effect: Effect,
    pub held: bool,
    pub contradicted: Option<Contradiction>,
    pub idempotency_key: String,
    pub attempts: u32,
    pub attempts_max: u32,
    pub key_created_at: String,
    pub key_expires_at: Option<String>,
    /// Whole seconds since the key was created.
    pub key_age_s: u64,
    pub reason: Option<UnknownReason>,
    pub verdict: Option<Verdict>,
    /// From when an unknown row may be closed as failed.
    pub decidable_at: Option<String>,
    pub provider: ProviderName,
    pub provider_ref: Option<ProviderRef>,
    pub provider_url: Option<String>,
    pub last_outcome: Option<OutcomeClass>,
    pub session_ids: Vec<SessionId>,
    pub claimed_by: Option<String>,
    pub snoozed_until: Option<String>,
    pub proposal: Option<ProposalView>,
    pub version: i64,
    pub created_at: String,
    pub updated_at: String,
    pub unknown_at: Option<String>,
    pub closed_at: Option<String>,
    pub closed_by: Option<String>,
}

/// A decision that waits for a second person.
#[derive(Clone, Debug, Serialize)]
pub struct ProposalView {
    pub decision: Closing,
    pub correction: bool,
    pub by: ReviewerName,
    pub note: SafeText,
    pub provider_ref: Option<ProviderRef>,
    pub version: i64,
    pub digest: String,
    pub at: String,
    pub expires_at: String,
}

impl ProposalView {
    fn of(p: &Proposal) -> Self {
        Self {
            decision: p.decision,
            correction: p.correction,
            by: p.by.clone(),
            note: p.note.clone(),
            provider_ref: p.provider_ref.clone(),
            version: p.version,
            digest: p.digest.clone(),
            at: instant(p.at),
            expires_at: instant(p.expires_at),
        }
    }
}

impl RowView {
    /// A row of a list.
    #[must_use]
    pub fn of(listed: &Listed, lens: Lens<'_>) -> Self {
        Self::of_row(&listed.row, listed.sessions.clone(), lens)
    }

    /// The row of an operation with its history.
    #[must_use]
    pub fn of_detail(detail: &Detail, lens: Lens<'_>) -> Self {
        let mut sessions: Vec<_> = detail
            .calls
            .iter()
            .filter_map(|c| c.session.clone())
            .collect();
        sessions.sort();
        sessions.dedup();
        Self::of_row(&detail.op.row, sessions, lens)
    }

    fn of_row(row: &OperationRow, session_ids: Vec<SessionId>, lens: Lens<'_>) -> Self {
        let terms = lens.terms.get(&row.tool);
        let provider_ref = row.provider_ref.clone();
        Self {
            operation_id: row.id.clone(),
            tool: row.tool.clone(),
            identity: serde_json::from_str(row.identity.as_str()).unwrap_or(Value::Null),
            order_id: row.order_id.as_ref().map(ToString::to_string),
            amount_cents: row.minor(),
            currency: row.currency().map(|c| c.to_string()),
            payment: row.payment.as_ref().map(ToString::to_string),
            charge: row.charge.as_ref().map(ToString::to_string),
            after: row.after.clone(),
            status: row.status,
            status_word: status_word(row.status, terms),
            effect: row.effect,
            held: row.held,
            contradicted: row.contradicted,
            idempotency_key: row.key.to_string(),
            attempts: row.attempts,
            attempts_max: row.attempts_max,
            key_created_at: instant(row.key_created_at),
            key_expires_at: row.key_expires_at.map(instant),
            key_age_s: since(row.key_created_at, lens.now).as_secs(),
            reason: row.reason,
            verdict: row.verdict,
            decidable_at: terms.and_then(|t| decidable_at(row, t)).map(instant),
            provider: row.provider.clone(),
            provider_url: provider_ref
                .as_ref()
                .and_then(|id| (lens.url)(&row.provider, id)),
            provider_ref,
            last_outcome: row.last_outcome,
            session_ids,
            claimed_by: row.claimed_by(lens.now).map(ToString::to_string),
            snoozed_until: row.snoozed(lens.now).map(instant),
            proposal: row.proposal.as_ref().map(ProposalView::of),
            version: row.version,
            created_at: instant(row.created_at),
            updated_at: instant(row.updated_at),
            unknown_at: row.unknown_at.map(instant),
            closed_at: row.closed_at.map(instant),
            closed_by: row.closed_by.clone(),
        }
    }
}

/// Only a row that waits for a person has such a moment.
fn decidable_at(row: &OperationRow, terms: &Terms) -> Option<Instant> {
    let last = row
        .last_authorised_at
        .filter(|_| row.status == Status::Unknown && row.effect != Effect::NotStarted)?;
    Some(terms.profile.decidable_at(last))
}

/// An operation row as an agent sees its own: without the key, claims, proposals and the names of people.
/// Its conversations are the agent's own.
#[derive(Clone, Debug, Serialize)]
pub struct OwnRowView(Map<String, Value>);

/// What an agent is not shown.
const NOT_AN_AGENTS: [&str; 6] = [
    "idempotency_key",
    "claimed_by",
    "snoozed_until",
    "proposal",
    "closed_by",
    "provider_url",
];

impl OwnRowView {
    /// A row whose sessions are the agent's own.
    #[must_use]
    pub fn of(listed: &Listed, lens: Lens<'_>) -> Self {
        let row = serde_json::to_value(RowView::of(listed, lens)).unwrap_or_default();
        let Value::Object(mut members) = row else {
            return Self(Map::new());
        };
        for name in NOT_AN_AGENTS {
            members.remove(name);
        }
        Self(members)
    }
}

/// One operation with everything that belongs to it: the members of its row, and its history.
/// `attempts` is the row's count; the attempts themselves are in `attempt_list`.
#[derive(Clone, Debug, Serialize)]
pub struct DetailView {
    #[serde(flatten)]
    pub row: RowView,
    pub attempt_list: Vec<AttemptView>,
    pub calls: Vec<CallView>,
    /// The part of the evidence that lookups brought.
    pub lookups: Vec<EvidenceView>,
    pub evidence: Vec<EvidenceView>,
    /// What people wrote, in order.
    pub notes: Vec<Value>,
    pub audit: Vec<Value>,
    pub closings: Vec<ClosingView>,
    /// The engine and call that drive it now.
    pub driver: Option<Value>,
}

impl DetailView {
    /// Everything of `detail`.
    #[must_use]
    pub fn of(detail: &Detail, lens: Lens<'_>) -> Self {
        let op = &detail.op;
        let evidence: Vec<_> = op.evidence.iter().map(EvidenceView::of).collect();
        let is_lookup = |e: &&EvidenceView| {
            matches!(
                e.source,
                Source::ReviewLookup | Source::EngineLookup | Source::Reconciler
            )
        };
        Self {
            row: RowView::of_detail(detail, lens),
            attempt_list: op.attempts.iter().map(AttemptView::of).collect(),
            calls: detail
                .calls
                .iter()
                .map(|c| CallView::of(c, lens.language))
                .collect(),
            lookups: evidence.iter().filter(is_lookup).cloned().collect(),
            evidence,
            notes: detail.audit.iter().filter_map(note).collect(),
            audit: detail.audit.iter().map(audit).collect(),
            closings: lens
                .terms
                .get(&op.row.tool)
                .map(|terms| closings(op, terms, lens.now))
                .unwrap_or_default(),
            driver: detail
                .driver
                .as_ref()
                .map(|(engine, call)| json!({ "engine": engine, "call_id": call })),
        }
    }
}

/// One attempt.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptView {
    pub attempt_no: u32,
    pub call_id: String,
    pub authorised_at: String,
    pub finished_at: Option<String>,
    /// Empty while it is in flight.
    pub outcome: Option<OutcomeClass>,
    pub http_status: Option<u16>,
    pub provider_request_id: Option<SafeText>,
    pub error: Option<SafeText>,
    pub replayed: bool,
}

impl AttemptView {
    fn of(a: &Attempt) -> Self {
        let r = a.result.as_ref();
        Self {
            attempt_no: a.number,
            call_id: a.call.to_string(),
            authorised_at: instant(a.authorised_at),
            finished_at: r.map(|r| instant(r.finished_at)),
            outcome: r.map(|r| r.class),
            http_status: r.and_then(|r| r.http_status),
            provider_request_id: r.and_then(|r| r.request_id.clone()),
            error: r.and_then(|r| r.error.clone()),
            replayed: r.is_some_and(|r| r.replayed),
        }
    }
}

/// A tool result on its way out, with the sentence that may be said to the customer. The sentence is
/// not stored: answers never change, and the language may.
#[derive(Clone, Debug, Serialize)]
pub struct ResultView {
    #[serde(flatten)]
    result: ToolResult,
    customer_message: String,
}

impl ResultView {
    /// The result of a call of `tool` with these arguments, JSON text.
    #[must_use]
    pub fn of(result: &ToolResult, tool: &ToolName, arguments: &str, language: Language) -> Self {
        Self {
            customer_message: message::of_call(result, tool, arguments, language),
            result: result.clone(),
        }
    }

    /// The word in `status`.
    #[must_use]
    pub fn status(&self) -> &str {
        self.result.status()
    }
}

/// A tool call with its separate facts: accepted, executed, delivered (R85).
#[derive(Clone, Debug, Serialize)]
pub struct CallView {
    pub call_id: String,
    pub agent: String,
    pub tool: ToolName,
    pub arguments: Value,
    pub arguments_hash: String,
    pub session_id: Option<SessionId>,
    pub operation_id: Option<OperationId>,
    pub state: CallState,
    pub result: Option<ResultView>,
    pub accepted_at: String,
    pub executed_at: Option<String>,
    pub delivered_at: Option<String>,
    pub delivery: Delivery,
}

impl CallView {
    /// A call.
    #[must_use]
    pub fn of(call: &ToolCall, language: Language) -> Self {
        let result = call.result.as_ref();
        Self {
            call_id: call.id.to_string(),
            agent: call.agent.to_string(),
            tool: call.tool.clone(),
            arguments: serde_json::from_str(&call.arguments)
                .unwrap_or_else(|_| Value::String(call.arguments.clone())),
            arguments_hash: call.arguments_hash.clone(),
            session_id: call.session.clone(),
            operation_id: call.operation.clone(),
            state: call.state,
            result: result.map(|r| ResultView::of(r, &call.tool, &call.arguments, language)),
            accepted_at: instant(call.accepted_at),
            executed_at: call.executed_at.map(instant),
            delivered_at: call.delivered_at.map(instant),
            delivery: call.delivery,
        }
    }
}

/// One entry of the evidence.
#[derive(Clone, Debug, Serialize)]
pub struct EvidenceView {
    pub source: Source,
    pub kind: &'static str,
    pub provider_ref: Option<ProviderRef>,
    pub payload: Value,
    pub observed_at: String,
}

impl EvidenceView {
    fn of(e: &Evidence) -> Self {
        let (provider_ref, payload) = match &e.seen {
            Seen::Object { object, bearing } => (
                Some(object.id.clone()),
                json!({
                    "bearing": bearing, "operation_id": object.operation,
                    "payment": object.payment, "charge": object.charge,
                    "amount_cents": object.amount_minor, "currency": object.currency,
                    "status": object.status, "created_at": instant(object.created_at),
                    "failure_reason": object.failure_reason,
                }),
            ),
            Seen::Scan { began_at, complete } => (
                None,
                json!({ "began_at": instant(*began_at), "complete": complete }),
            ),
            Seen::Unreachable { why } => (None, json!({ "why": why })),
            Seen::Reply {
                attempt,
                class,
                http_status,
                request_id,
                error,
            } => (
                None,
                json!({
                    "attempt": attempt, "class": class, "http_status": http_status,
                    "request_id": request_id, "error": error,
                }),
            ),
        };
        Self {
            source: e.source,
            kind: e.seen.kind(),
            provider_ref,
            payload,
            observed_at: instant(e.observed_at),
        }
    }
}

fn audit(entry: &AuditRow) -> Value {
    json!({
        "seq": entry.seq, "at": instant(entry.at), "actor": entry.actor,
        "os_user": entry.os_user, "action": entry.action, "detail": entry.detail,
        "hash": entry.hash,
    })
}

/// What a person wrote with a decision, or as a note alone.
fn note(entry: &AuditRow) -> Option<Value> {
    let note = entry.detail.get("note")?;
    Some(json!({
        "at": instant(entry.at), "by": entry.actor, "action": entry.action, "note": note,
    }))
}

/// Whether a closing is allowed now; if not, why, and perhaps from when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClosingView {
    /// The word for `--as`.
    #[serde(rename = "as")]
    pub word: &'static str,
    pub closing: Closing,
    pub allowed: bool,
    /// One person decides, or proposes and another lead approves.
    pub persons: Option<u8>,
    /// The provider's id has to be typed.
    pub needs_provider_ref: bool,
    pub why_not: Option<String>,
    pub decidable_at: Option<String>,
}

/// The closings of a row and what the rules say to each.
#[must_use]
pub fn closings(op: &Operation, terms: &Terms, now: Instant) -> Vec<ClosingView> {
    [Closing::Succeeded, Closing::Failed]
        .map(|closing| {
            let ruling = guard::closing(op, closing, terms, now);
            let (persons, needs_provider_ref, why_not, at) = match ruling {
                Ruling::Refused { why, decidable_at } => (None, false, Some(why), decidable_at),
                Ruling::OnePerson => (Some(1), false, None, None),
                Ruling::SecondPerson { typed_ref } => (Some(2), typed_ref, None, None),
            };
            ClosingView {
                word: status_word(closing.status(), Some(terms)),
                closing,
                allowed: persons.is_some(),
                persons,
                needs_provider_ref,
                why_not,
                decidable_at: at.map(instant),
            }
        })
        .into()
}
