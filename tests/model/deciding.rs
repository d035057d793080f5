//! Deciding and evidence: what two people, lists that take time, webhooks that come late and twice, and
//! strangers on the same payment can do to a row whose outcome nobody knows.

use samekey::domain::policy::{Caps, ProviderKind, Terms};

use crate::builders::{terms, with_caps};
use crate::events::What;
use crate::model::{Do, Door, End, Scope};
use crate::places::Place;
use crate::search::explore;
use crate::world::{Fate, HOURS, Left, MONTH, Mark, Thing};

/// One attempt that waits for its answer.
const IN_FLIGHT: &[Do] = &[
    Do::Drive(0, 0),
    Do::Authorise(0),
    Do::Recheck(0),
    Do::Send(0),
];
/// One attempt whose answer was lost; the request may still arrive.
pub const LOST: &[Do] = &[
    Do::Drive(0, 0),
    Do::Authorise(0),
    Do::Recheck(0),
    Do::Send(0),
    Do::Lose(0),
    Do::Record(0),
    Do::GiveUp(0),
    Do::Answer(0),
];

fn small() -> Terms {
    let mut terms = terms(ProviderKind::Keyed);
    terms.policy.max_per_call = 1;
    terms.policy.max_per_operation = 2;
    terms.profile.retention = std::time::Duration::from_mins(25);
    terms
}

pub fn closing() -> Scope {
    Scope {
        name: "closing",
        terms: small(),
        engines: 1,
        calls: vec![38],
        opened: true,
        begin: IN_FLIGHT,
        depth: Some(10),
        long_depth: Some(13),
        captured: 100,
        horizon: 4,
        jumps: &[],
        troubles: Left {
            lookups: 2,
            looks: 2,
            webhooks: 1,
            ..Left::default()
        },
        doors: &[Door::In],
        ends: &[End::Done, End::BrokenWithEffect, End::BrokenWithout],
        strangers: &[],
        fates: false,
        whats: vec![
            What::Succeeded,
            What::SucceededUnseen(7),
            What::Failed,
            What::Approve,
            What::Stop,
        ],
        places: &[
            Place::TooEarly,
            Place::ItHappened,
            Place::LookFirst,
            Place::FailedOpen,
            Place::FailedInFlight,
            Place::FailedByOne,
            Place::TypedByTwo,
            Place::MovedOn,
            Place::ProposalWaits,
            Place::Absent,
            Place::StoppedByPerson,
            Place::UnknownWithEffect,
            Place::UnknownWithout,
        ],
    }
}

#[test]
fn no_closing_breaks_a_law() {
    explore(closing());
}

pub fn evidence() -> Scope {
    let caps = Caps {
        four_eyes_over: Some(30),
        ..Caps::default()
    };
    Scope {
        name: "evidence",
        depth: Some(9),
        long_depth: Some(11),
        terms: Terms {
            policy: samekey::domain::policy::ToolPolicy {
                caps: with_caps(caps).policy.caps,
                ..small().policy
            },
            ..small()
        },
        troubles: Left {
            lookups: 1,
            looks: 2,
            webhooks: 2,
            strangers: 1,
            ..Left::default()
        },
        begin: LOST,
        horizon: 0,
        jumps: &[MONTH],
        ends: &[End::Done, End::Pending],
        strangers: &[
            Mark::Row(0),
            Mark::OtherAmount(0),
            Mark::Unmarked(0),
            Mark::Foreign,
        ],
        fates: true,
        whats: vec![
            What::Succeeded,
            What::SucceededUnseen(7),
            What::Failed,
            What::Approve,
            What::Acknowledge,
            What::CorrectToFailed,
            What::CorrectToSucceeded,
        ],
        places: &[
            Place::FailedByTwo,
            Place::Returned,
            Place::TwoEffects,
            Place::LateEffect,
            Place::Corrected,
            Place::ItIsLost,
            Place::SucceededPending,
            Place::FailedPending,
            Place::TooLong,
        ],
        ..closing()
    }
}

#[test]
fn no_evidence_breaks_a_law() {
    explore(evidence());
}

/// Provider ids that people type: seen, unseen, ours, wrong; and what comes of it later.
fn typed() -> Scope {
    let first = Thing {
        id: 0,
        mark: Mark::Row(0),
        fate: Fate::Succeeded,
    };
    let whats = vec![
        What::SucceededUnseen(0),
        What::SucceededUnseen(7),
        What::SucceededSeen(first),
        What::Failed,
        What::Approve,
        What::Reject,
        What::Stop,
        What::CorrectToFailed,
        What::CorrectToSucceeded,
    ];
    Scope {
        name: "typed ids",
        depth: Some(12),
        long_depth: None,
        troubles: Left {
            looks: 4,
            webhooks: 1,
            lookups: 1,
            strangers: 1,
            ..Left::default()
        },
        ends: &[End::Done],
        strangers: &[Mark::Unmarked(0)],
        fates: false,
        jumps: &[HOURS],
        whats,
        places: &[Place::WrongRef, Place::ProposalWaits, Place::TypedByTwo],
        ..evidence()
    }
}

#[test]
fn no_typed_id_breaks_a_law() {
    explore(typed());
}

/// An attempt of which no byte left: nothing can have happened, and nobody may say it did.
fn unsent() -> Scope {
    Scope {
        name: "not sent",
        begin: &[
            Do::Drive(0, 0),
            Do::Authorise(0),
            Do::Tick,
            Do::Recheck(0),
            Do::Record(0),
        ],
        depth: Some(9),
        long_depth: Some(13),
        places: &[
            Place::NothingSent,
            Place::FailedByOne,
            Place::StoppedByPerson,
            Place::Failed,
        ],
        ..closing()
    }
}

#[test]
fn no_unsent_attempt_breaks_a_law() {
    explore(unsent());
}
