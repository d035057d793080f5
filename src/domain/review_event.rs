//! What a person decides: closing, proposing, approving, rejecting, stopping, correcting, noting;
//! and the desk: claiming, giving back, putting off.
//!
//! [`decide`] is the part of [`super::transition`] that people reach, through `review` only. What is
//! allowed stands in [`super::guard`]; this file carries it out, or says why not. The `may_…`
//! functions are asked beforehand, too, so that nobody confirms in vain. `closing` holds closing and
//! correcting, `proposals` the second person, `desk` claims and snoozes. Tests: `tests/protocol/`.

mod closing;
mod desk;
mod proposals;

use serde_json::{Value, json};

use super::Instant;
use super::draft::Draft;
use super::evidence::ProviderObject;
use super::guard::Role;
use super::ids::{Actor, ProviderRef, ReviewerName};
use super::operation::{
    Closing, LookedAt, Operation, OperationRow, Status, UnknownReason, Waiting,
};
use super::policy::Terms;
use super::text::SafeText;
use super::transition::{Action, Next, Step};

pub use closing::{Persons, already_closed, may_close, may_correct, ref_holds};
pub use desk::{LONGEST_SNOOZE, may_claim, may_release, may_snooze};
pub use proposals::{may_approve, may_reject};

/// A decision and who makes it.
#[derive(Clone, Debug)]
pub struct Decision {
    pub by: Person,
    /// Empty for what the desk does.
    pub note: SafeText,
    /// What was looked at; a row that moved on is refused. Not needed for a note or the desk.
    pub looked_at: Option<LookedAt>,
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
    /// Tells others: I have this one. Takes over a running claim.
    Claim,
    /// Gives a claim back.
    Release,
    /// Last in Review until then, or until the version moves.
    Snooze {
        until: Instant,
    },
}

impl Act {
    /// The role it takes.
    #[must_use]
    pub fn role(&self) -> Role {
        match self {
            Self::Approve { .. } | Self::Reject | Self::Correct { .. } => Role::Lead,
            Self::Close { .. }
            | Self::Stop
            | Self::Note
            | Self::Claim
            | Self::Release
            | Self::Snooze { .. } => Role::Reviewer,
        }
    }

    /// Whether it decides nothing: no note, and no version that it is bound to.
    fn is_desk(&self) -> bool {
        match self {
            Self::Claim | Self::Release | Self::Snooze { .. } => true,
            Self::Close { .. }
            | Self::Approve { .. }
            | Self::Reject
            | Self::Stop
            | Self::Correct { .. }
            | Self::Note => false,
        }
    }
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
    #[error("the approval came too late; propose it again (a held row is closed as failed)")]
    Expired,
    #[error(
        "a proposal by {0} waits already; approve or reject it first (A or D, `ops approve` or `ops reject`)"
    )]
    ProposalWaits(ReviewerName),
    #[error("say what you read that waits for approval")]
    WaitingMissing,
    #[error("not what you read waits now, but {0}; read it first")]
    WaitsOther(String),
    #[error("nobody claims this row")]
    NotClaimed,
    #[error("{0} claims this row; only they or a lead can give the claim back")]
    ClaimOfAnother(ReviewerName),
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
    if d.note.is_empty() && !d.act.is_desk() {
        return Err(ReviewRefusal::NoteMissing);
    }
    let needed = d.act.role();
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
    as_looked_at(row, d)?;
    match &d.act {
        Act::Close { decision, typed } => {
            closing::close(op, d, *decision, typed.as_ref(), terms, now)
        }
        Act::Approve { caps } => proposals::approve(op, d, caps.as_ref(), terms, now),
        Act::Reject => proposals::reject(op, d, terms, now),
        Act::Stop => stop(op, d, terms, now),
        Act::Correct { decision } => closing::correct(op, d, *decision, terms, now),
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
        Act::Claim => desk::claim(op, d, terms, now),
        Act::Release => desk::release(op, d, terms, now),
        Act::Snooze { until } => desk::snooze(op, d, *until, terms, now),
    }
}

/// Whether the row, and what waits on it, is still what its maker looked at (I18).
fn as_looked_at(row: &OperationRow, d: &Decision) -> Result<(), ReviewRefusal> {
    let bound = !d.act.is_desk() && !matches!(d.act, Act::Note);
    let Some(looked_at) = &d.looked_at else {
        return if bound {
            Err(ReviewRefusal::VersionMissing)
        } else {
            Ok(())
        };
    };
    if looked_at.version != row.version {
        let (seen, now) = (looked_at.version, row.version);
        return Err(ReviewRefusal::MovedOn { seen, now });
    }
    if !matches!(d.act, Act::Approve { .. } | Act::Reject) {
        return Ok(());
    }
    let waits = row.waiting().ok_or(ReviewRefusal::NothingToApprove)?;
    match &looked_at.waiting {
        None => Err(ReviewRefusal::WaitingMissing),
        Some(read) if *read != waits => Err(ReviewRefusal::WaitsOther(named(&waits))),
        Some(_) => Ok(()),
    }
}

/// What waits, in words.
fn named(waiting: &Waiting) -> String {
    match waiting {
        Waiting::Held { .. } => "the held row itself".to_owned(),
        Waiting::Proposal(mark) => format!(
            "the proposal of {} at {}",
            mark.by,
            mark.at.format("%Y-%m-%d %H:%M:%SZ")
        ),
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
        return Err(refused(
            "the row is held; approve or reject it (A or D, `ops approve` or `ops reject`)",
        ));
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
        if !d.note.is_empty() {
            map.insert("note".into(), json!(d.note));
        }
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
