//! The look before the leap: what an action would take, or why it is refused. Changes nothing.

use super::{Ask, Asked, GateError, Level, word};
use crate::domain::Instant;
use crate::domain::guard::{self, Role, Ruling};
use crate::domain::operation::{Closing, Operation, OperationRow};
use crate::domain::policy::Terms;
use crate::domain::review_event::{Person, ReviewRefusal, already_closed, may_stop};

/// What confirming takes, and what will be written.
struct Takes {
    level: Level,
    typed_ref: bool,
    will: String,
}

pub(super) fn asked(
    op: Operation,
    ask: Ask,
    by: &Person,
    terms: &Terms,
    requests: Vec<String>,
    now: Instant,
) -> Result<Asked, GateError> {
    let needed = match ask {
        Ask::Approve | Ask::Reject | Ask::Correct(_) => Role::Lead,
        Ask::Lookup | Ask::Close(_) | Ask::Stop | Ask::Note => Role::Reviewer,
    };
    if by.role < needed {
        return Err(GateError::NotPermitted {
            needed,
            name: by.name.clone(),
            has: by.role,
        });
    }
    let row = &op.row;
    let takes = match ask {
        Ask::Lookup => takes(Level::Plain, String::new()),
        Ask::Note => takes(Level::Note, "a note in the audit of this row".into()),
        Ask::Stop => {
            may_stop(row)?;
            takes(
                Level::TokenAndNote,
                "status: unknown, reason: stopped; nothing more is ever sent".into(),
            )
        }
        Ask::Close(closing) => closing_takes(&op, closing, by, terms, now)?,
        Ask::Approve | Ask::Reject => approval_takes(row, ask, by)?,
        Ask::Correct(decision) => correction_takes(&op, decision, by, terms, now)?,
    };
    let will_not = match ask {
        Ask::Lookup => "only reads; closes nothing",
        Ask::Approve if row.held => "an engine then sends it once, with its own key",
        Ask::Close(_) | Ask::Approve | Ask::Reject | Ask::Stop | Ask::Correct(_) | Ask::Note => {
            "does not call the provider"
        }
    };
    let will = if ask == Ask::Lookup {
        requests
    } else {
        vec![takes.will]
    };
    Ok(Asked {
        level: takes.level,
        typed_ref: takes.typed_ref,
        will,
        will_not,
        op,
    })
}

fn takes(level: Level, will: String) -> Takes {
    Takes {
        level,
        typed_ref: false,
        will,
    }
}

fn closing_takes(
    op: &Operation,
    closing: Closing,
    by: &Person,
    terms: &Terms,
    now: Instant,
) -> Result<Takes, GateError> {
    if op.row.status.is_closed() {
        return Err(already_closed(&op.row, closing).into());
    }
    let word = word(terms, closing);
    match guard::closing(op, closing, terms, now) {
        Ruling::Refused { why, .. } => Err(GateError::Rule(why)),
        Ruling::OnePerson => Ok(takes(
            Level::TokenAndNote,
            format!("status: {word}, closed by {}", by.name),
        )),
        Ruling::SecondPerson { .. } if by.alone => Err(ReviewRefusal::NobodyElse.into()),
        Ruling::SecondPerson { typed_ref } => Ok(Takes {
            level: Level::SecondPerson,
            typed_ref,
            will: format!("a proposal to close as {word}; another lead decides"),
        }),
    }
}

fn approval_takes(row: &OperationRow, ask: Ask, by: &Person) -> Result<Takes, GateError> {
    let what = match (&row.proposal, row.held) {
        (_, true) => "the held row",
        (Some(_), false) => "the proposal",
        (None, false) => return Err(ReviewRefusal::NothingToApprove.into()),
    };
    let verb = if ask == Ask::Approve {
        "approves"
    } else {
        "rejects"
    };
    Ok(takes(
        Level::TokenAndNote,
        format!("{} {verb} {what}", by.name),
    ))
}

fn correction_takes(
    op: &Operation,
    decision: Option<Closing>,
    by: &Person,
    terms: &Terms,
    now: Instant,
) -> Result<Takes, GateError> {
    match guard::correcting(op, decision, terms, now) {
        Ruling::Refused { why, .. } => Err(GateError::Rule(why)),
        Ruling::OnePerson => Ok(takes(
            Level::TokenAndNote,
            "a correction, as a second decision in the history".into(),
        )),
        Ruling::SecondPerson { .. } if by.alone => Err(ReviewRefusal::NobodyElse.into()),
        Ruling::SecondPerson { .. } => Ok(takes(
            Level::SecondPerson,
            "a proposed correction; another lead decides".into(),
        )),
    }
}
