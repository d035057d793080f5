//! What the evidence of an operation proves, and what a person would still need to decide about it:
//! the closing matrix read backwards, in the order in which it is to be had.
//!
//! Owns: these answers, which the screen shows in words. Never: a rule of its own; what is allowed says
//! [`super::guard`], what a verdict is [`super::evidence`]. Tests: `tests/protocol/findings.rs`.

use super::Instant;
use super::evidence::{self, ObjectStatus, ProviderObject, Seen, Source, Verdict};
use super::guard::{self, Ruling};
use super::operation::{Closing, Effect, Operation, OperationRow, Status};
use super::policy::Terms;

/// What is proven about an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proven {
    /// No attempt can have had an effect.
    NothingSent,
    /// Nobody knows whether it happened.
    Nothing,
    /// It happened once: our object succeeded.
    Happened,
    /// It happened twice.
    HappenedTwice,
    /// Our object exists and is not final.
    NotFinal,
    /// Our object failed or was canceled: no money moved, or it came back.
    Lost,
    /// Something exists that may be ours.
    Doubtful,
    /// It did not happen: a complete scan that began then found nothing of ours.
    DidNotHappen { scan_began_at: Instant },
}

/// What is missing for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Until then a request may still take effect: too early for a closing as failed.
    Time { until: Instant },
    /// A complete lookup that begins no earlier than this.
    Lookup { not_before: Option<Instant> },
    /// The provider's answer: it has been silent since.
    Answer { silent_since: Instant },
    /// The end of our own object's way.
    FinalStatus,
    /// A second person; perhaps with the provider's id typed.
    SecondPerson { typed_ref: bool },
    /// It is open: an engine or the next call may still settle it, unless somebody stops it.
    Stop,
}

/// What a row of ours and an object of the provider both tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray)]
pub enum Field {
    Id,
    Payment,
    Amount,
    Currency,
    Status,
    Created,
    /// The operation id in the object's metadata.
    Operation,
    Reason,
}

/// Whether `object` says the same as `row`; `None` where the two cannot differ: one of them does not
/// tell yet, or each tells something of its own.
#[must_use]
pub fn agrees(row: &OperationRow, object: &ProviderObject, field: Field) -> Option<bool> {
    match field {
        Field::Id => row.provider_ref.as_ref().map(|id| *id == object.id),
        Field::Payment => Some(row.payment == object.payment),
        Field::Amount => row.money.map(|m| Some(m.minor()) == object.amount_minor),
        Field::Currency => row.money.map(|m| Some(m.currency()) == object.currency),
        Field::Status => match row.status {
            Status::Succeeded => Some(object.status == ObjectStatus::Succeeded),
            Status::Failed => Some(object.status.is_lost()),
            Status::Open | Status::Unknown => None,
        },
        Field::Operation => Some(object.operation.as_ref() == Some(&row.id)),
        Field::Created | Field::Reason => None,
    }
}

/// What all evidence of `op` proves together.
#[must_use]
pub fn proven(op: &Operation, terms: &Terms) -> Proven {
    match op.row.verdict {
        Some(Verdict::SecondEffect) => Proven::HappenedTwice,
        Some(Verdict::Confirmed) => Proven::Happened,
        Some(Verdict::Pending) => Proven::NotFinal,
        Some(Verdict::Refused) => Proven::Lost,
        Some(Verdict::Ambiguous) => Proven::Doubtful,
        None | Some(Verdict::Absent) if op.row.effect == Effect::NotStarted => Proven::NothingSent,
        Some(Verdict::Absent) => {
            let proof = op.evidence.iter().find_map(|e| {
                let Seen::Scan { began_at, .. } = &e.seen else {
                    return None;
                };
                let proves = evidence::proves_absence(&e.seen, &op.row, &terms.profile);
                proves.then_some(*began_at)
            });
            proof.map_or(Proven::Nothing, |scan_began_at| Proven::DidNotHappen {
                scan_began_at,
            })
        }
        None => Proven::Nothing,
    }
}

/// What `op` still needs before a person can settle it, in the order in which it is to be had; empty
/// where nothing is missing or nothing is to be settled.
#[must_use]
pub fn missing(op: &Operation, terms: &Terms, now: Instant) -> Vec<Missing> {
    let row = &op.row;
    let mut out = Vec::new();
    if row.status.is_closed() || row.held {
        return out;
    }
    if row.verdict == Some(Verdict::Pending) {
        return vec![Missing::FinalStatus];
    }
    let rulings = [Closing::Succeeded, Closing::Failed].map(|c| guard::closing(op, c, terms, now));
    if rulings.contains(&Ruling::OnePerson) {
        return out;
    }
    let earliest = guard::decidable_at(op, terms);
    out.extend(
        earliest
            .filter(|at| now < *at)
            .map(|until| Missing::Time { until }),
    );
    if row.verdict.is_none() && row.effect != Effect::NotStarted {
        out.push(match silent_since(op) {
            Some(silent_since) => Missing::Answer { silent_since },
            None => Missing::Lookup {
                not_before: earliest,
            },
        });
    }
    let second = rulings.iter().find_map(|ruling| match ruling {
        Ruling::SecondPerson { typed_ref } => Some(*typed_ref),
        Ruling::Refused { .. } | Ruling::OnePerson => None,
    });
    // Where a lookup can still tell, that is the way; two people are for what it cannot.
    let by_lookup = matches!(out.last(), Some(Missing::Lookup { .. }));
    if let Some(typed_ref) = second.filter(|_| !by_lookup) {
        let either = rulings.contains(&Ruling::SecondPerson { typed_ref: false });
        out.push(Missing::SecondPerson {
            typed_ref: typed_ref && !either,
        });
    }
    if row.status == Status::Open {
        out.push(Missing::Stop);
    }
    out
}

/// Since when no lookup has been answered, if the latest was not.
fn silent_since(op: &Operation) -> Option<Instant> {
    let asked = |s: Source| !matches!(s, Source::Attempt | Source::Webhook);
    let silent = |seen: &Seen| matches!(seen, Seen::Unreachable { .. });
    let lookups = op.evidence.iter().rev().filter(|e| asked(e.source));
    let unanswered = lookups.take_while(|e| silent(&e.seen));
    unanswered.last().map(|e| e.observed_at)
}
