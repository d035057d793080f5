//! What is asked of the domain, in small words, and the real event behind each.

use samekey::domain::evidence::{ObjectStatus, ProviderObject, Source};
use samekey::domain::operation::{Closing, LookedAt, Operation, OperationRow};
use samekey::domain::outcome::{Expected, Outcome, OutcomeClass, classify_object};
use samekey::domain::review_event::{Act, Fetched, Person};
use samekey::domain::transition::{Authorise, Event, Lookup};

use crate::builders::{
    allowed, already_refunded, ann, at, close_as, close_with, decision, fetched, in_progress, lea,
    limited, object_of, observed, op_id, refusal, timeout, unreachable,
};
use crate::world::{Fate, Mark, Reader, Reply, Thing, Tick};

/// An event of the domain, small enough to be a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    Authorise {
        call: u8,
        lease: bool,
        contradicted: bool,
    },
    Finished {
        attempt: u8,
        reply: Reply,
    },
    Interrupted,
    Listed {
        by: Reader,
        began: Tick,
        complete: bool,
        list: Vec<Thing>,
    },
    Unanswered {
        by: Reader,
    },
    Webhook(Thing),
    Fetched(Option<Thing>),
    NeverSent,
    NoLongerFits,
    Swept,
    Decided {
        by: u8,
        /// The row as it is was looked at.
        fresh: bool,
        what: What,
    },
}

/// What a person decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    Succeeded,
    /// With the provider's id typed while the provider does not answer.
    SucceededUnseen(u8),
    /// With the provider's id typed and fetched.
    SucceededSeen(Thing),
    Failed,
    Approve,
    Reject,
    Stop,
    Acknowledge,
    CorrectToSucceeded,
    CorrectToFailed,
}

/// A reviewer and a lead.
pub fn person(number: u8) -> Person {
    if number == 0 { ann() } else { lea() }
}

fn source(by: Reader) -> Source {
    match by {
        Reader::Reviewer => Source::ReviewLookup,
        Reader::Reconciler => Source::Reconciler,
        Reader::Engine => Source::EngineLookup,
    }
}

/// The provider's object behind `thing`, as the operation of `row` would read it.
pub fn object(row: &OperationRow, thing: Thing) -> ProviderObject {
    let status = match thing.fate {
        Fate::Pending => ObjectStatus::Pending,
        Fate::Succeeded => ObjectStatus::Succeeded,
        Fate::Lost => ObjectStatus::Failed,
    };
    let mine = |number: u8| row.id == op_id(u128::from(number) + 1);
    let plain = object_of(row, &format!("re_{}", thing.id), status, at(0));
    // Rows differ in their amounts; an object has the amount of the row it was made for.
    let other_amount = row.minor().expect("money") + 1;
    let of = |number: u8, amount_minor| ProviderObject {
        operation: Some(op_id(u128::from(number) + 1)),
        amount_minor: Some(amount_minor),
        ..plain.clone()
    };
    match thing.mark {
        Mark::Row(number) if mine(number) => plain,
        Mark::Row(number) | Mark::OtherAmount(number) => of(number, other_amount),
        Mark::Unmarked(number) => ProviderObject {
            operation: None,
            amount_minor: if mine(number) {
                row.minor()
            } else {
                Some(other_amount)
            },
            ..plain
        },
        Mark::Foreign => of(u8::MAX, row.minor().expect("money")),
    }
}

fn outcome(row: &OperationRow, reply: Reply) -> Outcome {
    match reply {
        Reply::Object { thing, replayed } => {
            let object = object(row, thing);
            let expected = Expected {
                operation: &row.id,
                payment: row.payment.as_ref(),
                money: row.money,
            };
            Outcome {
                replayed,
                object: Some(object.clone()),
                ..Outcome::of(classify_object(&expected, &object))
            }
        }
        Reply::Broken => Outcome::of(OutcomeClass::ServerError),
        Reply::Refused { replayed } => Outcome {
            replayed,
            ..refusal()
        },
        Reply::Invalid => refusal(),
        Reply::AlreadyRefunded => already_refunded(),
        Reply::Denied => Outcome::of(OutcomeClass::PermissionDenied),
        Reply::Limited => limited(),
        Reply::Busy => in_progress(),
        Reply::OtherParameters => Outcome::of(OutcomeClass::KeyMismatch),
        Reply::Nothing => timeout(),
        Reply::NotSent => Outcome::of(OutcomeClass::NotSent),
    }
}

fn act(row: &OperationRow, what: What) -> Act {
    match what {
        What::Succeeded => close_as(Closing::Succeeded),
        What::SucceededUnseen(id) => close_with(&format!("re_{id}"), Fetched::Unreachable),
        What::SucceededSeen(thing) => {
            close_with(&format!("re_{}", thing.id), fetched(object(row, thing)))
        }
        What::Failed => close_as(Closing::Failed),
        What::Approve => Act::Approve { caps: None },
        What::Reject => Act::Reject,
        What::Stop => Act::Stop,
        What::Acknowledge => Act::Correct { decision: None },
        What::CorrectToSucceeded => Act::Correct {
            decision: Some(Closing::Succeeded),
        },
        What::CorrectToFailed => Act::Correct {
            decision: Some(Closing::Failed),
        },
    }
}

/// The event that `ask` stands for.
pub fn event(op: &Operation, ask: &Ask) -> Event {
    let row = &op.row;
    let seen = |thing: &Thing| (object(row, *thing), false);
    match ask {
        Ask::Authorise {
            call,
            lease,
            contradicted,
        } => Event::Authorise(Authorise {
            lease: *lease,
            contradicted: *contradicted,
            ..allowed(&format!("toolu_{call}"))
        }),
        Ask::Finished { attempt, reply } => Event::Finished {
            attempt: u32::from(*attempt),
            outcome: outcome(row, *reply),
            taken: false,
        },
        Ask::Interrupted => Event::Interrupted,
        Ask::Listed {
            by,
            began,
            complete,
            list,
        } => {
            let lookup = Lookup::Listed {
                began_at: crate::rows::instant(*began),
                complete: *complete,
                objects: list.iter().map(seen).collect(),
            };
            observed(source(*by), lookup)
        }
        Ask::Unanswered { by } => observed(source(*by), unreachable()),
        Ask::Webhook(thing) => {
            let (object, taken) = seen(thing);
            observed(Source::Webhook, Lookup::One { object, taken })
        }
        Ask::Fetched(found) => Event::RefFetched {
            object: found.as_ref().map(|t| object(row, *t)),
            taken: false,
        },
        Ask::NeverSent => Event::NeverSent,
        Ask::NoLongerFits => Event::NoLongerFits {
            why: "nothing is left".into(),
        },
        Ask::Swept => Event::Swept,
        Ask::Decided { by, fresh, what } => {
            let looked_at = LookedAt {
                version: row.version - i64::from(!fresh),
                ..LookedAt::of(row)
            };
            Event::Decided(decision(&person(*by), looked_at, act(row, *what)))
        }
    }
}
