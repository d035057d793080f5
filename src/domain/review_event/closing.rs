//! Closing a row and correcting a closed one, by one person or as a proposal for two.

use serde_json::json;

use super::proposals;
use super::{Decision, Fetched, Person, ReviewRefusal, TypedRef, finish, refused};
use crate::domain::Instant;
use crate::domain::attempt::Attempt;
use crate::domain::draft::Draft;
use crate::domain::evidence::{ObjectStatus, ProviderObject, Seen, Source, Verdict};
use crate::domain::guard::{self, Ruling};
use crate::domain::ids::{Actor, ProviderRef};
use crate::domain::operation::{
    Closing, Contradiction, FailureClass, Operation, OperationRow, Proposal,
};
use crate::domain::policy::Terms;
use crate::domain::text::SafeText;
use crate::domain::transition::{Action, Next, Step};

/// How many people a decision takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persons {
    One,
    /// A proposal, and a lead of another name; perhaps with the provider's id typed.
    Two {
        typed_ref: bool,
    },
}

/// Whether the object behind a typed id is what closing as succeeded needs.
#[must_use]
pub fn ref_holds(row: &OperationRow, object: &ProviderObject) -> bool {
    object.payment == row.payment
        && row.same_money(object.amount_minor, object.currency)
        && object.status == ObjectStatus::Succeeded
        && object.operation.as_ref().is_none_or(|id| *id == row.id)
}

/// Why a closed row is not closed again: as what it was closed and by whom (U23).
#[must_use]
pub fn already_closed(row: &OperationRow, wanted: Closing) -> ReviewRefusal {
    let (status, by) = (row.status, row.closed_by.clone().unwrap_or_default());
    if wanted.status() == status {
        ReviewRefusal::ClosedSame { status, by }
    } else if row.contradicted.is_some() {
        refused("the row is closed and evidence contradicts it: correct it (C, or `ops correct`)")
    } else {
        ReviewRefusal::ClosedOther { status, by }
    }
}

/// Whether `by` may close the row so now, and how many people it takes; also asked before anybody is
/// asked to confirm.
///
/// # Errors
/// Why not, in a sentence for a person.
pub fn may_close(
    op: &Operation,
    decision: Closing,
    by: &Person,
    terms: &Terms,
    now: Instant,
) -> Result<Persons, ReviewRefusal> {
    if op.row.status.is_closed() {
        return Err(already_closed(&op.row, decision));
    }
    persons(op, guard::closing(op, decision, terms, now), by, now)
}

/// The same for a correction; without a decision a contradiction is acknowledged.
///
/// # Errors
/// Why not, in a sentence for a person.
pub fn may_correct(
    op: &Operation,
    decision: Option<Closing>,
    by: &Person,
    terms: &Terms,
    now: Instant,
) -> Result<Persons, ReviewRefusal> {
    persons(op, guard::correcting(op, decision, terms, now), by, now)
}

fn persons(
    op: &Operation,
    ruling: Ruling,
    by: &Person,
    now: Instant,
) -> Result<Persons, ReviewRefusal> {
    let persons = match ruling {
        Ruling::Refused { why, decidable_at } => {
            return Err(ReviewRefusal::Refused { why, decidable_at });
        }
        Ruling::OnePerson => Persons::One,
        Ruling::SecondPerson { .. } if by.alone => return Err(ReviewRefusal::NobodyElse),
        Ruling::SecondPerson { typed_ref } => Persons::Two { typed_ref },
    };
    match proposals::waiting(&op.row, now) {
        Some(waiting) => Err(ReviewRefusal::ProposalWaits(waiting.by.clone())),
        None => Ok(persons),
    }
}

pub(super) fn close(
    op: &Operation,
    d: &Decision,
    decision: Closing,
    typed: Option<&TypedRef>,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    let second_person = match may_close(op, decision, &d.by, terms, now)? {
        Persons::One => false,
        Persons::Two { typed_ref } => {
            if typed_ref && typed.is_none() {
                return Err(ReviewRefusal::RefMissing);
            }
            true
        }
    };
    let mut draft = Draft::new(op, now);
    if let Some(typed) = typed.filter(|_| decision == Closing::Succeeded) {
        check_ref(op, typed)?;
        note_ref(&mut draft, typed, terms);
    }
    let provider_ref = typed.map(|t| t.id.clone());
    if second_person {
        // Bound to the row with the object that its maker named.
        let version = draft.version_after(terms);
        let proposal = proposals::proposal(&op.row, d, decision, false, provider_ref, terms, now);
        draft.op.row.proposal = Some(Proposal {
            version,
            ..proposal
        });
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

/// Keeps in the evidence what fetching the typed id gave: the second person sees the object, and what
/// was accepted unseen is fetched as soon as the provider answers ([`Operation::awaits_fetch`]).
fn note_ref(draft: &mut Draft, typed: &TypedRef, terms: &Terms) {
    if let Fetched::Object { object, taken } = &typed.fetched {
        draft.see_object(Source::TypedRef, object, *taken, terms);
    }
    let seen = if let Fetched::Unreachable = typed.fetched {
        let why = SafeText::new(&format!("{} was not fetched yet", typed.id));
        Seen::Unreachable { why }
    } else {
        let (began_at, complete) = (draft.now, false);
        Seen::Scan { began_at, complete }
    };
    draft.see(Source::TypedRef, seen, terms);
}

pub(super) fn carry_out(
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
            } else if draft.op.attempts.iter().all(Attempt::without_effect) {
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

pub(super) fn correct(
    op: &Operation,
    d: &Decision,
    decision: Option<Closing>,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    let persons = may_correct(op, decision, &d.by, terms, now)?;
    let second_person = matches!(persons, Persons::Two { .. });
    let mut draft = Draft::new(op, now);
    if let Some(decision) = decision.filter(|_| second_person) {
        draft.op.row.proposal = Some(proposals::proposal(
            &op.row, d, decision, true, None, terms, now,
        ));
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
pub(super) fn correct_row(draft: &mut Draft, d: &Decision, decision: Option<Closing>) -> Next {
    let by = Actor::Reviewer(d.by.name.clone());
    let was = draft.op.row.contradicted.take();
    draft.op.row.corrections = draft.op.row.corrections.saturating_add(1);
    draft.op.row.proposal = None;
    draft.op.row.claim = None;
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
