//! The desk: claims tell others that somebody looks at a row, snoozes put one off. Neither decides
//! anything, moves the version, or stops anybody.

use std::time::Duration;

use serde_json::json;

use super::{Decision, Person, ReviewRefusal, finish, refused};
use crate::domain::draft::Draft;
use crate::domain::guard::Role;
use crate::domain::operation::{Claim, Operation, OperationRow};
use crate::domain::policy::Terms;
use crate::domain::transition::{Action, Next, Step};
use crate::domain::{Instant, later};

/// What is put off for longer is forgotten.
pub const LONGEST_SNOOZE: Duration = Duration::from_hours(7 * 24);

/// Whether the row still asks for somebody.
///
/// # Errors
/// It is settled.
pub fn may_claim(row: &OperationRow) -> Result<(), ReviewRefusal> {
    if row.status.is_closed() && row.contradicted.is_none() {
        return Err(refused("the row is settled; nobody has to look at it"));
    }
    Ok(())
}

/// Whether `by` may give back the claim on the row; answers whose it is.
///
/// # Errors
/// Nobody claims it (an expired claim counts for nothing), or it is somebody else's.
pub fn may_release<'a>(
    row: &'a OperationRow,
    by: &Person,
    now: Instant,
) -> Result<&'a Claim, ReviewRefusal> {
    let running = row.claim.as_ref().filter(|c| now < c.until);
    let claim = running.ok_or(ReviewRefusal::NotClaimed)?;
    if claim.by != by.name && by.role < Role::Lead {
        return Err(ReviewRefusal::ClaimOfAnother(claim.by.clone()));
    }
    Ok(claim)
}

/// Whether the row may be put off until then.
///
/// # Errors
/// A row that is settled or contradicted, or a time that has passed or is too far away.
pub fn may_snooze(row: &OperationRow, until: Instant, now: Instant) -> Result<(), ReviewRefusal> {
    may_claim(row)?;
    if row.contradicted.is_some() {
        return Err(refused(
            "a contradicted row is not put off: it blocks its order until it is corrected",
        ));
    }
    if until <= now {
        return Err(refused("that time has passed; give one that lies ahead"));
    }
    if until > later(now, LONGEST_SNOOZE) {
        return Err(refused(
            "at most 7 days: what is put off for longer is forgotten",
        ));
    }
    Ok(())
}

pub(super) fn claim(
    op: &Operation,
    d: &Decision,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    may_claim(&op.row)?;
    let by = d.by.name.clone();
    let from = op.row.claimed_by(now).filter(|other| **other != by);
    let until = later(now, terms.policy.claim_ttl);
    let detail = json!({ "until": until, "from": from });
    let mut draft = Draft::new(op, now);
    draft.op.row.claim = Some(Claim { by, until });
    Ok(finish(
        draft,
        d,
        terms,
        Action::Claimed,
        detail,
        Next::Nothing,
    ))
}

pub(super) fn release(
    op: &Operation,
    d: &Decision,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    let of = may_release(&op.row, &d.by, now)?.by.clone();
    let mut draft = Draft::new(op, now);
    draft.op.row.claim = None;
    let detail = json!({ "of": of });
    Ok(finish(
        draft,
        d,
        terms,
        Action::Released,
        detail,
        Next::Nothing,
    ))
}

pub(super) fn snooze(
    op: &Operation,
    d: &Decision,
    until: Instant,
    terms: &Terms,
    now: Instant,
) -> Result<Step, ReviewRefusal> {
    may_snooze(&op.row, until, now)?;
    let mut draft = Draft::new(op, now);
    draft.op.row.snoozed_until = Some(until);
    let detail = json!({ "until": until });
    Ok(finish(
        draft,
        d,
        terms,
        Action::Snoozed,
        detail,
        Next::Nothing,
    ))
}
