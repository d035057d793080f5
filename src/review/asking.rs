//! The look before the leap: what an action would take, or why it is refused. Changes nothing.

use super::{Ask, Asked, GateError, Level, Subject, by_role, proposed, word};
use crate::domain::Instant;
use crate::domain::guard::Role;
use crate::domain::operation::{Closing, Operation};
use crate::domain::policy::Terms;
use crate::domain::review_event::{
    Person, Persons, may_approve, may_close, may_correct, may_reject, may_stop,
};

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
    by_role(by, needed)?;
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
        Ask::Approve | Ask::Reject => approval_takes(&op, ask, by, terms, now)?,
        Ask::Correct(decision) => correction_takes(&op, decision, by, terms, now)?,
    };
    let will_not = match ask {
        Ask::Lookup => "only reads; closes nothing",
        Ask::Approve if row.held => "an engine then sends it once, with its own key",
        Ask::Reject => "does not call the provider; nothing is sent",
        Ask::Close(_) | Ask::Approve | Ask::Stop | Ask::Correct(_) | Ask::Note => {
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
        subject: Subject::Row(Box::new(op)),
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
    let word = word(terms, closing);
    match may_close(op, closing, by, terms, now)? {
        Persons::One => Ok(takes(
            Level::TokenAndNote,
            format!("status: {word}, closed by {}", by.name),
        )),
        Persons::Two { typed_ref } => Ok(Takes {
            level: Level::SecondPerson,
            typed_ref,
            will: format!("a proposal to close as {word}; another lead decides"),
        }),
    }
}

fn approval_takes(
    op: &Operation,
    ask: Ask,
    by: &Person,
    terms: &Terms,
    now: Instant,
) -> Result<Takes, GateError> {
    let verb = if ask == Ask::Approve {
        may_approve(op, by, terms, now)?;
        "approves"
    } else {
        may_reject(op)?;
        "rejects"
    };
    let what = match op.row.proposal.as_ref().filter(|_| !op.row.held) {
        None => "the held row".to_owned(),
        Some(p) => proposed(p, terms),
    };
    Ok(takes(
        Level::TokenAndNote,
        format!("{} {verb}: {what}", by.name),
    ))
}

fn correction_takes(
    op: &Operation,
    decision: Option<Closing>,
    by: &Person,
    terms: &Terms,
    now: Instant,
) -> Result<Takes, GateError> {
    match may_correct(op, decision, by, terms, now)? {
        Persons::One => Ok(takes(
            Level::TokenAndNote,
            "a correction, as a second decision in the history".into(),
        )),
        Persons::Two { .. } => Ok(takes(
            Level::SecondPerson,
            "a proposed correction; another lead decides".into(),
        )),
    }
}
