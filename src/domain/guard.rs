//! Who may close what, with how many people: the closing matrix of the protocol, as one function.
//! Also what the screen and the CLI show beforehand, so that a refusal never comes as a surprise.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Instant;
use super::evidence::{self, Bearing, ObjectStatus, Verdict};
use super::operation::{Closing, Contradiction, Effect, Operation, Status};
use super::policy::{ProviderKind, Terms};

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
    let ruling = match (row.status, decision) {
        (Status::Succeeded | Status::Failed, _) if row.contradicted.is_some() => {
            return no(
                "the row is closed and evidence contradicts it: correct it (C, or `ops correct`)",
            );
        }
        (Status::Succeeded | Status::Failed, _) => return no("the row is closed"),
        (Status::Open, _) if row.held => {
            return no(
                "the row is held; approve or reject it (A or D, `ops approve` or `ops reject`)",
            );
        }
        (Status::Open, _) if op.in_flight() => {
            return no(
                "an attempt is in flight; wait for its end, or stop the row first (X, or `ops stop`)",
            );
        }
        (Status::Open, Closing::Failed) if row.effect == Effect::NotStarted => {
            as_failed(op, terms, now)
        }
        (Status::Open, _) => return no("the row is open; stop it first (X, or `ops stop`)"),
        (Status::Unknown, Closing::Succeeded) => as_succeeded(op),
        (Status::Unknown, Closing::Failed) => as_failed(op, terms, now),
    };
    four_eyes(op, ruling, terms)
}

/// Above the tool's limit two people decide, unless evidence does.
fn four_eyes(op: &Operation, ruling: Ruling, terms: &Terms) -> Ruling {
    let evident = matches!(op.row.verdict, Some(Verdict::Confirmed | Verdict::Refused));
    if ruling == Ruling::OnePerson && !evident && over_four_eyes(op, terms) {
        Ruling::SecondPerson { typed_ref: false }
    } else {
        ruling
    }
}

fn over_four_eyes(op: &Operation, terms: &Terms) -> bool {
    let Some(money) = op.row.money else {
        return false;
    };
    terms
        .policy
        .caps
        .get(&money.currency())
        .and_then(|caps| caps.four_eyes_over)
        .is_some_and(|limit| money.minor() > limit)
}

fn as_succeeded(op: &Operation) -> Ruling {
    match op.row.verdict {
        Some(Verdict::Confirmed | Verdict::SecondEffect) => Ruling::OnePerson,
        Some(Verdict::Refused) => no("our refund at the provider failed or was canceled"),
        Some(Verdict::Pending) => no("our refund at the provider is not final yet"),
        None | Some(Verdict::Absent | Verdict::Ambiguous)
            if op.row.effect == Effect::NotStarted =>
        {
            no("nothing was sent, so nothing can have succeeded")
        }
        Some(Verdict::Ambiguous) => Ruling::SecondPerson { typed_ref: false },
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
            let silent = evidence::silence(&op.evidence)
                .is_some_and(|silence| silence.lasted(terms.profile.settle_time));
            if silent || terms.profile.kind == ProviderKind::None {
                Ruling::SecondPerson { typed_ref: false }
            } else {
                Ruling::Refused {
                    why: "look it up at the provider first (L, or `ops lookup`)".into(),
                    decidable_at: decidable_at(op, terms),
                }
            }
        }
    };
    too_early(op, terms, now).unwrap_or(ruling)
}

/// A request still on its way could have its effect after a closing as failed (I19).
fn too_early(op: &Operation, terms: &Terms, now: Instant) -> Option<Ruling> {
    let at = decidable_at(op, terms).filter(|at| now < *at)?;
    Some(Ruling::Refused {
        why: format!(
            "the last request may still take effect; decidable at {}",
            at.format("%Y-%m-%dT%H:%M:%SZ")
        ),
        decidable_at: Some(at),
    })
}

/// When `op` may first be closed as failed: last authorise + send window + timeout + settle time +
/// lookup lag. Computed with the terms of whoever asks: two programs on one ledger whose configurations
/// state other bounds answer differently, and each decision follows the configuration of its maker.
/// The column of that name is the last writer's answer, for lists; no rule reads it.
#[must_use]
pub fn decidable_at(op: &Operation, terms: &Terms) -> Option<Instant> {
    op.row
        .last_authorised_at
        .filter(|_| op.row.effect != Effect::NotStarted)
        .map(|last| terms.profile.decidable_at(last))
}

/// May a contradiction be ended so now, and by how many? Without a decision it is acknowledged: a
/// second effect, or one that later evidence took back, so that it agrees with the row again.
#[must_use]
pub fn correcting(
    op: &Operation,
    decision: Option<Closing>,
    terms: &Terms,
    now: Instant,
) -> Ruling {
    use Contradiction as C;
    let row = &op.row;
    let Some(contradiction) = row.contradicted else {
        return no("nothing contradicts this row");
    };
    let ours = |wanted: fn(ObjectStatus) -> bool| {
        let seen = evidence::objects(&op.evidence);
        seen.values()
            .any(|(o, b)| *b == Bearing::Ours && wanted(o.status))
    };
    let ruling = match (contradiction, decision, row.status, row.verdict) {
        (C::SecondEffect, None, Status::Failed, _) if ours(|s| !s.is_lost()) => {
            return no("a refund of ours exists; correct the row to succeeded");
        }
        (C::SecondEffect, None, _, _)
        | (_, None, Status::Succeeded, Some(Verdict::Confirmed))
        | (_, None, Status::Failed, Some(Verdict::Refused)) => return Ruling::OnePerson,
        (C::SecondEffect, Some(Closing::Succeeded), Status::Failed, _)
            if ours(|s| s == ObjectStatus::Succeeded) =>
        {
            Ruling::OnePerson
        }
        (
            C::FailedAfterSucceeded,
            Some(Closing::Failed),
            Status::Succeeded,
            Some(Verdict::Refused),
        ) => too_early(op, terms, now).unwrap_or(Ruling::OnePerson),
        (
            C::EffectAfterFailed,
            Some(Closing::Succeeded),
            Status::Failed,
            Some(Verdict::Confirmed),
        ) => Ruling::OnePerson,
        // What a wrong id was taken for is open again: the rules of closing as failed hold, and the
        // word of one person was wrong once.
        (C::RefMismatch, Some(Closing::Failed), Status::Succeeded, _) => {
            match as_failed(op, terms, now) {
                Ruling::OnePerson => Ruling::SecondPerson { typed_ref: false },
                ruling @ (Ruling::Refused { .. } | Ruling::SecondPerson { .. }) => ruling,
            }
        }
        _ => {
            return no(
                "the evidence does not carry this correction: choose the status that it shows (`--as`), or look it up again (L, or `ops lookup`)",
            );
        }
    };
    four_eyes(op, ruling, terms)
}
