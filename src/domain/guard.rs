//! Who may close what, with how many people: the closing matrix of the protocol, as one function.
//! Also what the screen and the CLI show beforehand, so that a refusal never comes as a surprise.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::evidence::{self, Verdict};
use super::operation::{Closing, Contradiction, Effect, Operation, Status};
use super::policy::{ProviderKind, Terms};
use super::{Instant, later};

/// What a person may do. Ordered: each may do what the one before may.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Sees.
    Viewer,
    /// Looks up, notes, claims, snoozes, stops, proposes, closes.
    Reviewer,
    /// Also approves, corrects, pauses.
    Lead,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str((*self).into())
    }
}

/// What the rules say to a closing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Not now, because; perhaps from `decidable_at` on.
    Refused {
        why: String,
        decidable_at: Option<Instant>,
    },
    OnePerson,
    /// A proposal and a lead of another name; perhaps with the provider's id typed.
    SecondPerson {
        typed_ref: bool,
    },
}

fn no(why: &str) -> Ruling {
    Ruling::Refused {
        why: why.to_owned(),
        decidable_at: None,
    }
}

/// May `op` be closed as `decision` now, and by how many?
#[must_use]
pub fn closing(op: &Operation, decision: Closing, terms: &Terms, now: Instant) -> Ruling {
    let row = &op.row;
    match row.status {
        Status::Succeeded | Status::Failed => return no("the row is closed"),
        Status::Open if row.held => return no("the row is held; approve or reject it"),
        Status::Open if op.in_flight() => return no("an attempt is in flight"),
        Status::Open if row.effect == Effect::NotStarted && decision == Closing::Failed => {
            return Ruling::OnePerson;
        }
        Status::Open => return no("the row is open; stop it first"),
        Status::Unknown => {}
    }
    let ruling = match decision {
        Closing::Succeeded => as_succeeded(op),
        Closing::Failed => as_failed(op, terms, now),
    };
    let evident = matches!(row.verdict, Some(Verdict::Confirmed | Verdict::Refused));
    match ruling {
        Ruling::OnePerson if !evident && over_four_eyes(op, terms) => {
            Ruling::SecondPerson { typed_ref: false }
        }
        ruling @ (Ruling::Refused { .. } | Ruling::OnePerson | Ruling::SecondPerson { .. }) => {
            ruling
        }
    }
}

fn over_four_eyes(op: &Operation, terms: &Terms) -> bool {
    terms
        .policy
        .caps
        .get(&op.row.money.currency())
        .and_then(|caps| caps.four_eyes_over)
        .is_some_and(|limit| op.row.money.minor() > limit)
}

fn as_succeeded(op: &Operation) -> Ruling {
    match op.row.verdict {
        Some(Verdict::Confirmed | Verdict::SecondEffect) => Ruling::OnePerson,
        Some(Verdict::Refused) => no("our refund at the provider failed or was canceled"),
        Some(Verdict::Pending) => no("our refund at the provider is not final yet"),
        Some(Verdict::Ambiguous) => Ruling::SecondPerson { typed_ref: false },
        None | Some(Verdict::Absent) if op.row.effect == Effect::NotStarted => {
            no("nothing was sent, so nothing can have succeeded")
        }
        None | Some(Verdict::Absent) => Ruling::SecondPerson { typed_ref: true },
    }
}

fn as_failed(op: &Operation, terms: &Terms, now: Instant) -> Ruling {
    let row = &op.row;
    let ruling = match row.verdict {
        Some(Verdict::Confirmed | Verdict::SecondEffect) => {
            return no("the provider has our refund: it did happen");
        }
        Some(Verdict::Pending) => return no("our refund at the provider is not final yet"),
        None | Some(Verdict::Absent) if row.effect == Effect::NotStarted => {
            return Ruling::OnePerson;
        }
        Some(Verdict::Refused | Verdict::Absent) => Ruling::OnePerson,
        Some(Verdict::Ambiguous) => Ruling::SecondPerson { typed_ref: false },
        None => {
            let silent = evidence::unreachable_since(&op.evidence)
                .is_some_and(|since| now >= later(since, terms.profile.settle_time));
            if silent || terms.profile.kind == ProviderKind::None {
                Ruling::SecondPerson { typed_ref: false }
            } else {
                Ruling::Refused {
                    why: "look it up at the provider first".into(),
                    decidable_at: decidable_at(op, terms),
                }
            }
        }
    };
    // A request still on its way could have its effect after the closing (I19).
    match decidable_at(op, terms) {
        Some(at) if now < at => Ruling::Refused {
            why: format!(
                "the last request may still take effect; decidable at {}",
                at.format("%Y-%m-%dT%H:%M:%SZ")
            ),
            decidable_at: Some(at),
        },
        Some(_) | None => ruling,
    }
}

/// When `op` may first be closed as failed: last authorise + send window + timeout + settle time +
/// lookup lag.
#[must_use]
pub fn decidable_at(op: &Operation, terms: &Terms) -> Option<Instant> {
    op.row
        .last_authorised_at
        .filter(|_| op.row.effect != Effect::NotStarted)
        .map(|last| terms.profile.decidable_at(last))
}

/// May a contradiction be ended so, and by how many?
#[must_use]
pub fn correcting(op: &Operation, decision: Option<Closing>, terms: &Terms) -> Ruling {
    let row = &op.row;
    let Some(contradiction) = row.contradicted else {
        return no("nothing contradicts this row");
    };
    let ruling = match (contradiction, decision, row.status, row.verdict) {
        (Contradiction::SecondEffect, None, _, _) => return Ruling::OnePerson,
        (Contradiction::SecondEffect, Some(Closing::Succeeded), Status::Failed, _) => {
            Ruling::OnePerson
        }
        (
            Contradiction::FailedAfterSucceeded,
            Some(Closing::Failed),
            Status::Succeeded,
            Some(Verdict::Refused),
        )
        | (
            Contradiction::EffectAfterFailed,
            Some(Closing::Succeeded),
            Status::Failed,
            Some(Verdict::Confirmed),
        ) => Ruling::OnePerson,
        (Contradiction::RefMismatch, Some(Closing::Failed), Status::Succeeded, _) => {
            Ruling::SecondPerson { typed_ref: false }
        }
        _ => return no("the evidence does not carry this correction; look it up again"),
    };
    let evident = matches!(row.verdict, Some(Verdict::Confirmed | Verdict::Refused));
    if !evident && over_four_eyes(op, terms) {
        Ruling::SecondPerson { typed_ref: false }
    } else {
        ruling
    }
}
