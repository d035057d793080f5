//! What a person decides: closing, proposing, approving, rejecting, stopping, correcting, noting.
//!
//! [`decide`] is the part of [`super::transition`] that people reach, through `review` only. What is
//! allowed stands in [`super::guard`]; this file carries it out, or says why not.

use serde_json::{Value, json};

use super::draft::Draft;
use super::evidence::{ObjectStatus, ProviderObject, Seen, Source, Verdict};
use super::guard::{self, Role, Ruling};
use super::ids::{Actor, ProviderRef, ReviewerName};
use super::operation::{
    Closing, Contradiction, FailureClass, Operation, OperationRow, Proposal, Status, UnknownReason,
};
use super::policy::Terms;
use super::text::SafeText;
use super::transition::{Action, Next, Step};
use super::{Instant, later};

/// A decision and who makes it.
#[derive(Clone, Debug)]
pub struct Decision {
    pub by: Person,
    pub note: SafeText,
    /// The version looked at; a row that moved on is refused. Not needed for a note.
    pub version: Option<i64>,
    pub act: Act,
}

/// A reviewer as the gate knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub name: ReviewerName,
    pub role: Role,
    /// No reviewers are configured: there is nobody who could be the second person.
    pub alone: bool,
}

/// What is decided.
#[derive(Clone, Debug)]
pub enum Act {
    Close {
        decision: Closing,
        typed: Option<TypedRef>,
    },
    /// A proposal, or a held row. `caps` says why the money caps no longer allow a held row.
    Approve {
        caps: Option<SafeText>,
    },
    Reject,
    Stop,
    /// A contradicted closed row, or (without a decision) acknowledges a second effect.
    Correct {
        decision: Option<Closing>,
    },
    Note,
}

/// A provider id that a person typed, and what fetching it gave.
#[derive(Clone, Debug)]
pub struct TypedRef {
    pub id: ProviderRef,
    pub fetched: Fetched,
}

/// What fetching a typed id gave.
#[derive(Clone, Debug)]
pub enum Fetched {
    Object { object: ProviderObject, taken: bool },
    NotFound,
    Unreachable,
}

/// Why a decision is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewRefusal {
    #[error("a note is needed: say what you saw and why")]
    NoteMissing,
    #[error("say which version of the row you looked at")]
    VersionMissing,
    #[error("the row has moved on to version {now}; look again (you saw version {seen})")]
    MovedOn { seen: i64, now: i64 },
    #[error("this needs the role {needed}; {name} is {has}")]
    NotPermitted {
        needed: Role,
        name: ReviewerName,
        has: Role,
    },
    #[error("the row is closed as {} already, by {by}", .status.as_str())]
    ClosedSame { status: Status, by: String },
    #[error("the row was closed as {} by {by}; that stands", .status.as_str())]
    ClosedOther { status: Status, by: String },
    #[error("{why}")]
    Refused {
        why: String,
        decidable_at: Option<Instant>,
    },
    #[error(
        "this needs a second person and no reviewers are configured; add [reviewers.NAME] role = \"reviewer\" and [reviewers.OTHER] role = \"lead\""
    )]
    NobodyElse,
    #[error("{0} proposed it; another lead has to decide")]
    SamePerson(ReviewerName),
    #[error("nothing waits for approval on this row")]
    NothingToApprove,
    #[error(
        "the proposal was made on version {0} of the row, which has moved on; it has to be made again"
    )]
    ProposalStale(i64),
    #[error("the approval came too late; its time is over")]
    Expired,
    #[error("a proposal by {0} waits already; approve or reject it first")]
    ProposalWaits(ReviewerName),
    #[error("give the provider's id of the refund")]
    RefMissing,
    #[error("{id} does not prove it: {why}")]
    RefWrong { id: ProviderRef, why: &'static str },
}

fn refused(why: &str) -> ReviewRefusal {
    ReviewRefusal::Refused {
        why: why.to_owned(),
        decidable_at: None,
    }
}

/// Whether the object behind a typed id is what closing as succeeded needs.
#[must_use]
pub fn ref_holds(row: &OperationRow, object: &ProviderObject) -> bool {
    object.payment == row.payment
        && object.amount_minor == row.money.minor()
        && object.currency == row.money.currency()
        && object.status == ObjectStatus::Succeeded
        && object.operation.as_ref().is_none_or(|id| *id == row.id)
}

/// Carries out a decision.
///
/// # Errors
/// Why not, in a sentence for its maker.
pub fn decide(
    op: &Operation,
    d: &Decision,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    let row = &op.row;
    if d.note.is_empty() {
        return Err(ReviewRefusal::NoteMissing);
    }
    let needed = match d.act {
        Act::Approve { .. } | Act::Reject | Act::Correct { .. } => Role::Lead,
        Act::Close { .. } | Act::Stop | Act::Note => Role::Reviewer,
    };
    if d.by.role < needed {
        let (name, has) = (d.by.name.clone(), d.by.role);
        return Err(ReviewRefusal::NotPermitted { needed, name, has });
    }
    if let Act::Close { decision, .. } = &d.act
        && row.status.is_closed()
    {
        // Before the version: "already done" is the useful answer to a second click.
        return Err(already_closed(row, *decision));
    }
    match d.version {
        None if !matches!(d.act, Act::Note) => return Err(ReviewRefusal::VersionMissing),
        Some(seen) if seen != row.version => {
            let now = row.version;
            return Err(ReviewRefusal::MovedOn { seen, now });
        }
        Some(_) | None => {}
    }
    match &d.act {
        Act::Close { decision, typed } => close(op, d, *decision, typed.as_ref(), terms, now),
        Act::Approve { caps } => approve(op, d, caps.as_ref(), terms, now),
        Act::Reject => reject(op, d, terms, now),
        Act::Stop => stop(op, d, terms, now),
        Act::Correct { decision } => correct(op, d, *decision, terms, now),
        Act::Note => {
            let draft = Draft::new(op, now);
            Ok(finish(
                draft,
                d,
                terms,
                Action::Noted,
                json!({}),
                Next::Nothing,
            ))
        }
    }
}

/// Whether the row can be stopped now; also asked before anybody is asked to confirm.
///
/// # Errors
/// Why not, in a sentence for a person.
pub fn may_stop(row: &OperationRow) -> Result<(), ReviewRefusal> {
    if row.status != Status::Open {
        return Err(refused("only an open row can be stopped"));
    }
    if row.held {
        return Err(refused("the row is held; approve or reject it"));
    }
    Ok(())
}

fn stop(op: &Operation, d: &Decision, terms: &Terms, now: Instant) -> Result<Step, ReviewRefusal> {
    may_stop(&op.row)?;
    let mut draft = Draft::new(op, now);
    let next = draft.unknown(UnknownReason::Stopped);
    Ok(finish(draft, d, terms, Action::Stopped, json!({}), next))
}

fn finish(
    draft: Draft,
    d: &Decision,
    terms: &Terms,
    action: Action,
    mut detail: Value,
    next: Next,
) -> Step {
    if let Value::Object(map) = &mut detail {
        map.insert("note".into(), json!(d.note));
        map.insert("role".into(), json!(d.by.role));
    }
    draft.step(
        terms,
        Actor::Reviewer(d.by.name.clone()),
        action,
        detail,
        next,
    )
}

/// Why a closed row is not closed again: as what it was closed and by whom (U23).
#[must_use]
pub fn already_closed(row: &OperationRow, wanted: Closing) -> ReviewRefusal {
    let (status, by) = (row.status, row.closed_by.clone().unwrap_or_default());
    if wanted.status() == status {
        ReviewRefusal::ClosedSame { status, by }
    } else {
        ReviewRefusal::ClosedOther { status, by }
    }
}

fn close(
    op: &Operation,
    d: &Decision,
    decision: Closing,
    typed: Option<&TypedRef>,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    let second_person = match guard::closing(op, decision, terms, now) {
        Ruling::Refused { why, decidable_at } => {
            return Err(ReviewRefusal::Refused { why, decidable_at });
        }
        Ruling::OnePerson => false,
        Ruling::SecondPerson { .. } if d.by.alone => return Err(ReviewRefusal::NobodyElse),
        Ruling::SecondPerson { typed_ref } => {
            if typed_ref && typed.is_none() {
                return Err(ReviewRefusal::RefMissing);
            }
            true
        }
    };
    if let Some(waiting) = waiting_proposal(op, now) {
        return Err(ReviewRefusal::ProposalWaits(waiting.by.clone()));
    }
    let mut draft = Draft::new(op, now);
    if let Some(typed) = typed.filter(|_| decision == Closing::Succeeded) {
        check_ref(op, typed)?;
        note_ref(&mut draft, typed, terms);
    }
    let provider_ref = typed.map(|t| t.id.clone());
    if second_person {
        draft.op.row.proposal = Some(proposal(
            &op.row,
            d,
            decision,
            false,
            provider_ref,
            terms,
            now,
        ));
        let detail = json!({ "decision": decision, "proposal": draft.op.row.proposal });
        return Ok(finish(
            draft,
            d,
            terms,
            Action::Proposed,
            detail,
            Next::Proposed,
        ));
    }
    let next = carry_out(&mut draft, d, decision, provider_ref);
    let detail = json!({ "decision": decision, "verdict": op.row.verdict });
    Ok(finish(draft, d, terms, Action::Closed, detail, next))
}

/// A proposal that can still be approved. One that the row has left behind stands in nobody's way.
fn waiting_proposal(op: &Operation, now: Instant) -> Option<&Proposal> {
    let row = &op.row;
    row.proposal
        .as_ref()
        .filter(|p| now < p.expires_at && p.version == row.version)
}

fn proposal(
    row: &OperationRow,
    d: &Decision,
    decision: Closing,
    correction: bool,
    provider_ref: Option<ProviderRef>,
    terms: &Terms,
    now: Instant,
) -> Proposal {
    Proposal {
        decision,
        correction,
        by: d.by.name.clone(),
        note: d.note.clone(),
        provider_ref,
        version: row.version,
        digest: row.request_hash.clone(),
        at: now,
        expires_at: later(now, terms.policy.approval_ttl),
    }
}

fn check_ref(op: &Operation, typed: &TypedRef) -> Result<(), ReviewRefusal> {
    let wrong = |why| {
        Err(ReviewRefusal::RefWrong {
            id: typed.id.clone(),
            why,
        })
    };
    match &typed.fetched {
        Fetched::Object { taken: true, .. } => wrong("it belongs to another operation"),
        Fetched::Object { object, .. } if object.id != typed.id => {
            wrong("the provider answered with another object")
        }
        Fetched::Object { object, .. } if !ref_holds(&op.row, object) => {
            wrong("its payment, amount, currency, owner or status is not this operation's")
        }
        Fetched::NotFound => wrong("the provider does not know it"),
        // Accepted unseen; fetched as soon as the provider answers, else `ref_mismatch`.
        Fetched::Object { .. } | Fetched::Unreachable => Ok(()),
    }
}

/// Keeps in the evidence whether the typed id could be fetched: what was accepted unseen is fetched
/// as soon as the provider answers ([`Operation::awaits_fetch`]).
fn note_ref(draft: &mut Draft, typed: &TypedRef, terms: &Terms) {
    let seen = if let Fetched::Unreachable = typed.fetched {
        let why = SafeText::new(&format!("{} was not fetched yet", typed.id));
        Seen::Unreachable { why }
    } else {
        let (began_at, complete) = (draft.now, false);
        Seen::Scan { began_at, complete }
    };
    draft.see(Source::TypedRef, seen, terms);
}

fn carry_out(
    draft: &mut Draft,
    d: &Decision,
    decision: Closing,
    typed: Option<ProviderRef>,
) -> Next {
    let by = Actor::Reviewer(d.by.name.clone());
    match decision {
        Closing::Succeeded => {
            if draft.op.row.provider_ref.is_none() {
                draft.op.row.provider_ref = typed;
            }
            draft.succeed(&by)
        }
        Closing::Failed => {
            let failure = if draft.op.row.verdict == Some(Verdict::Refused) {
                FailureClass::EffectFailed
            } else if draft
                .op
                .attempts
                .iter()
                .all(super::attempt::Attempt::without_effect)
            {
                FailureClass::Unavailable
            } else {
                FailureClass::ValidationFailure
            };
            draft.fail(
                &by,
                failure,
                Some("a person found that it did not happen".into()),
            )
        }
    }
}

fn approve(
    op: &Operation,
    d: &Decision,
    caps: Option<&SafeText>,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    let row = &op.row;
    let mut draft = Draft::new(op, now);
    if row.held {
        if now >= later(row.created_at, terms.policy.approval_ttl) {
            return Err(ReviewRefusal::Expired);
        }
        if let Some(why) = caps {
            return Err(refused(why.as_str()));
        }
        draft.op.row.held = false;
        draft.op.row.approved_by = Some(d.by.name.clone());
        let detail = json!({ "held": true, "digest": row.request_hash });
        return Ok(finish(draft, d, terms, Action::Approved, detail, Next::Due));
    }
    let proposal = row
        .proposal
        .as_ref()
        .ok_or(ReviewRefusal::NothingToApprove)?;
    if proposal.by == d.by.name {
        return Err(ReviewRefusal::SamePerson(proposal.by.clone()));
    }
    if now >= proposal.expires_at {
        return Err(ReviewRefusal::Expired);
    }
    if proposal.version != row.version || proposal.digest != row.request_hash {
        return Err(ReviewRefusal::ProposalStale(proposal.version));
    }
    let decision = proposal.decision;
    // The rules are asked again: time and evidence may have moved without the version.
    let ruling = if proposal.correction {
        guard::correcting(op, Some(decision), terms, now)
    } else {
        guard::closing(op, decision, terms, now)
    };
    if let Ruling::Refused { why, decidable_at } = ruling {
        return Err(ReviewRefusal::Refused { why, decidable_at });
    }
    let next = if proposal.correction {
        correct_row(&mut draft, d, Some(decision))
    } else {
        carry_out(&mut draft, d, decision, proposal.provider_ref.clone())
    };
    draft.op.row.closed_by = Some(format!("reviewer:{}, reviewer:{}", proposal.by, d.by.name));
    let detail =
        json!({ "decision": decision, "proposed_by": proposal.by, "proposal_note": proposal.note });
    let action = if proposal.correction {
        Action::Corrected
    } else {
        Action::Closed
    };
    Ok(finish(draft, d, terms, action, detail, next))
}

fn reject(
    op: &Operation,
    d: &Decision,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    let mut draft = Draft::new(op, now);
    if op.row.held {
        let by = Actor::Reviewer(d.by.name.clone());
        let why = SafeText::new(&format!("{} did not approve it", d.by.name));
        let next = draft.fail(&by, FailureClass::PermissionDenied, Some(why));
        return Ok(finish(
            draft,
            d,
            terms,
            Action::Rejected,
            json!({ "held": true }),
            next,
        ));
    }
    let proposal = op
        .row
        .proposal
        .as_ref()
        .ok_or(ReviewRefusal::NothingToApprove)?;
    draft.op.row.proposal = None;
    let detail = json!({ "decision": proposal.decision, "proposed_by": proposal.by });
    Ok(finish(
        draft,
        d,
        terms,
        Action::Rejected,
        detail,
        Next::Nothing,
    ))
}

fn correct(
    op: &Operation,
    d: &Decision,
    decision: Option<Closing>,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    let second_person = match guard::correcting(op, decision, terms, now) {
        Ruling::Refused { why, decidable_at } => {
            return Err(ReviewRefusal::Refused { why, decidable_at });
        }
        Ruling::OnePerson => false,
        Ruling::SecondPerson { .. } if d.by.alone => return Err(ReviewRefusal::NobodyElse),
        Ruling::SecondPerson { .. } => true,
    };
    if let Some(waiting) = waiting_proposal(op, now) {
        return Err(ReviewRefusal::ProposalWaits(waiting.by.clone()));
    }
    let mut draft = Draft::new(op, now);
    if let Some(decision) = decision.filter(|_| second_person) {
        draft.op.row.proposal = Some(proposal(&op.row, d, decision, true, None, terms, now));
        let detail = json!({ "decision": decision, "correction": true });
        return Ok(finish(
            draft,
            d,
            terms,
            Action::Proposed,
            detail,
            Next::Proposed,
        ));
    }
    let next = correct_row(&mut draft, d, decision);
    let detail = json!({ "decision": decision, "contradiction": op.row.contradicted });
    Ok(finish(draft, d, terms, Action::Corrected, detail, next))
}

/// Ends a contradiction: the other status, or an acknowledged second effect.
fn correct_row(draft: &mut Draft, d: &Decision, decision: Option<Closing>) -> Next {
    let by = Actor::Reviewer(d.by.name.clone());
    let was = draft.op.row.contradicted.take();
    draft.op.row.corrections = draft.op.row.corrections.saturating_add(1);
    draft.op.row.proposal = None;
    if was == Some(Contradiction::RefMismatch) {
        // The wrong id goes; our own object, where there is one, takes its place.
        draft.op.row.provider_ref = None;
    }
    match decision {
        None => Next::Nothing,
        Some(Closing::Succeeded) => draft.succeed(&by),
        Some(Closing::Failed) => {
            let why = if was == Some(Contradiction::FailedAfterSucceeded) {
                "the bank returned the money"
            } else {
                "a person corrected it"
            };
            draft.fail(&by, FailureClass::EffectFailed, Some(why.into()))
        }
    }
}
