//! The second person: proposals, held rows, and the lead who approves or rejects them, once and in
//! time.

use serde_json::json;

use super::closing;
use super::{Decision, Person, ReviewRefusal, finish, refused};
use crate::domain::draft::Draft;
use crate::domain::guard::{self, Ruling};
use crate::domain::ids::{Actor, ProviderRef};
use crate::domain::operation::{Closing, FailureClass, Operation, OperationRow, Proposal};
use crate::domain::policy::Terms;
use crate::domain::text::SafeText;
use crate::domain::transition::{Action, Next, Step};
use crate::domain::{Instant, later};

/// A proposal that can still be approved. One that the row has left behind stands in nobody's way.
pub(super) fn waiting(row: &OperationRow, now: Instant) -> Option<&Proposal> {
    row.proposal
        .as_ref()
        .filter(|p| now < p.expires_at && p.version == row.version)
}

pub(super) fn proposal(
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

/// Whether `by` may approve what waits on the row now; also asked before anybody is asked to confirm.
///
/// # Errors
/// Why not, in a sentence for a person.
pub fn may_approve(
    op: &Operation,
    by: &Person,
    terms: &Terms,
    now: Instant,
) -> Result<(), ReviewRefusal> {
    let row = &op.row;
    if row.held {
        let over = now >= later(row.created_at, terms.policy.approval_ttl);
        return if over {
            Err(ReviewRefusal::Expired)
        } else {
            Ok(())
        };
    }
    let proposal = row
        .proposal
        .as_ref()
        .ok_or(ReviewRefusal::NothingToApprove)?;
    if proposal.by == by.name {
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
    match ruling {
        Ruling::Refused { why, decidable_at } => Err(ReviewRefusal::Refused { why, decidable_at }),
        Ruling::OnePerson | Ruling::SecondPerson { .. } => Ok(()),
    }
}

/// Whether anything waits that could be rejected. Its maker may take a proposal back, as a lead.
///
/// # Errors
/// Nothing waits.
pub fn may_reject(op: &Operation) -> Result<(), ReviewRefusal> {
    match op.row.waiting() {
        Some(_) => Ok(()),
        None => Err(ReviewRefusal::NothingToApprove),
    }
}

pub(super) fn approve(
    op: &Operation,
    d: &Decision,
    caps: Option<&SafeText>,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    let row = &op.row;
    may_approve(op, &d.by, terms, now)?;
    let mut draft = Draft::new(op, now);
    let Some(proposal) = row.proposal.as_ref().filter(|_| !row.held) else {
        if let Some(why) = caps {
            return Err(refused(why.as_str()));
        }
        draft.op.row.held = false;
        draft.op.row.approved_by = Some(d.by.name.clone());
        let detail = json!({ "held": true, "digest": row.request_hash });
        return Ok(finish(draft, d, terms, Action::Approved, detail, Next::Due));
    };
    let decision = proposal.decision;
    let next = if proposal.correction {
        closing::correct_row(&mut draft, d, Some(decision))
    } else {
        closing::carry_out(&mut draft, d, decision, proposal.provider_ref.clone())
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

pub(super) fn reject(
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
