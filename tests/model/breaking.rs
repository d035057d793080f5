//! The test of the tests: each guard switched off, and the law that then breaks. Without its guard a law
//! that still held would be a law the model cannot see, or a guard that nobody needs.

use crate::calling::calling;
use crate::deciding::{LOST, closing, evidence};
use crate::guards::Guard;
use crate::model::{Do, Door, End, Scope};
use crate::promises::Law;
use crate::search::break_without;
use crate::sending::{ageing, bare, searchable, sending};
use crate::world::Left;

/// Two engines of which one can lose its lease, and one plain effect.
fn racing() -> Scope {
    Scope {
        name: "racing",
        troubles: Left {
            crashes: 1,
            ..Left::default()
        },
        doors: &[Door::In],
        ends: &[End::Done],
        ..sending()
    }
}

/// A request that may still arrive, and nobody who tries again.
fn waiting() -> Scope {
    Scope {
        name: "waiting",
        begin: LOST,
        ..closing()
    }
}

/// A refund that went through, and a bank; then another amount of the order.
fn returned() -> Scope {
    Scope {
        name: "returned",
        engines: 1,
        calls: vec![38, 40],
        begin: &[
            Do::Get(0, 0),
            Do::ReadProvider(0),
            Do::Open(0),
            Do::Drive(0, 0),
            Do::Authorise(0),
            Do::Recheck(0),
            Do::Send(0),
            Do::Arrive(0, Door::In),
            Do::Finish(0, End::Done),
            Do::Read(0),
            Do::Record(0),
            Do::Answer(0),
        ],
        fates: true,
        troubles: Left {
            webhooks: 1,
            ..Left::default()
        },
        ..calling()
    }
}

/// A refund whose answer was lost; then an amount for which there is no room.
fn unsettled() -> Scope {
    Scope {
        name: "unsettled",
        terms: sending().terms,
        engines: 1,
        calls: vec![38, 80],
        begin: &[
            Do::Get(0, 0),
            Do::ReadProvider(0),
            Do::Open(0),
            Do::Drive(0, 0),
            Do::Authorise(0),
            Do::Recheck(0),
            Do::Send(0),
            Do::Lose(0),
            Do::Record(0),
            Do::GiveUp(0),
            Do::Answer(0),
        ],
        whats: vec![],
        troubles: Left::default(),
        ..calling()
    }
}

/// What a lost lease must never cost.
const MONEY: &[Law] = &[
    Law::OneKey,
    Law::CommittedAttempts,
    Law::OneEffect,
    Law::OneInFlight,
    Law::FailedMeansNone,
    Law::ClosedOnce,
];

fn breaks(scope: Scope, guard: Guard, law: &'static [Law]) {
    let name = scope.name;
    let found = break_without(scope, guard, law);
    assert!(
        found.is_some(),
        "{name}: without {guard:?} nothing broke: {law:?}"
    );
}

#[test]
fn without_the_check_at_send_time() {
    breaks(racing(), Guard::SendTimeCheck, &[Law::InWindow]);
    breaks(racing(), Guard::SendTimeCheck, &[Law::BeforeDeadline]);
    breaks(ageing(), Guard::SendTimeCheck, &[Law::OneEffect]);
}

#[test]
fn without_the_same_key() {
    breaks(ageing(), Guard::SameKey, &[Law::OneKey]);
    breaks(ageing(), Guard::SameKey, &[Law::OneEffect]);
}

#[test]
fn without_asking_whether_the_row_is_open() {
    let broken = Scope {
        ends: &[End::BrokenWithEffect],
        ..racing()
    };
    breaks(broken, Guard::OpenOnly, &[Law::MayAuthorise]);
}

#[test]
fn without_the_keys_deadline() {
    breaks(ageing(), Guard::KeyDeadline, &[Law::BeforeDeadline]);
    breaks(ageing(), Guard::KeyDeadline, &[Law::OneEffect]);
}

#[test]
fn without_room_for_the_settle_time_before_the_deadline() {
    breaks(ageing(), Guard::DeadlineLeavesSettleTime, &[Law::OneEffect]);
}

#[test]
fn without_the_cap_of_a_call() {
    breaks(ageing(), Guard::CallCap, &[Law::Caps]);
}

#[test]
fn without_waiting_for_the_commit() {
    breaks(racing(), Guard::CommitBeforeSend, &[Law::CommittedAttempts]);
}

#[test]
fn without_ending_at_a_500() {
    breaks(sending(), Guard::FiveHundredEnds, &[Law::FiveHundred]);
}

#[test]
fn without_doubting_a_refusal_after_a_timeout() {
    let denied = Scope {
        doors: &[Door::In, Door::Denied],
        troubles: Left::default(),
        ..racing()
    };
    breaks(denied, Guard::DefiniteRefusal, &[Law::FailedMeansNone]);
}

#[test]
fn without_the_waiting_period() {
    breaks(waiting(), Guard::WaitingPeriod, &[Law::NotTooEarly]);
    breaks(waiting(), Guard::WaitingPeriod, &[Law::FailedMeansNone]);
}

#[test]
fn without_a_complete_list() {
    breaks(waiting(), Guard::CompleteList, &[Law::FailedMeansNone]);
}

#[test]
fn without_our_mark() {
    breaks(evidence(), Guard::OurMark, &[Law::OnlyOurs]);
}

#[test]
fn without_the_version_looked_at() {
    breaks(closing(), Guard::VersionLookedAt, &[Law::DecidedAsSeen]);
}

#[test]
fn without_compare_and_set() {
    breaks(evidence(), Guard::CompareAndSet, &[Law::ClosedOnce]);
}

#[test]
fn without_another_person() {
    breaks(evidence(), Guard::OtherPerson, &[Law::TwoPeople]);
}

#[test]
fn without_getting_first() {
    let pending = Scope {
        ends: &[End::Pending],
        ..calling()
    };
    breaks(pending, Guard::GetFirst, &[Law::OneLiveRow]);
    breaks(calling(), Guard::GetFirst, &[Law::EqualCallsOnce]);
}

#[test]
fn without_counting_what_is_open() {
    breaks(unsettled(), Guard::OpenRowsCount, &[Law::OneLiveRow]);
    breaks(unsettled(), Guard::OpenRowsCount, &[Law::WithinCapture]);
}

#[test]
fn without_reading_again_what_changed() {
    let apart = Scope {
        engines: 2,
        begin: &[],
        ends: &[End::Done],
        ..unsettled()
    };
    breaks(apart, Guard::MarkUnchanged, &[Law::WithinCapture]);
}

#[test]
fn without_waiting_for_a_lead() {
    breaks(calling(), Guard::HeldFirst, &[Law::MayAuthorise]);
}

#[test]
fn without_blocking_a_contradicted_order() {
    breaks(returned(), Guard::ContradictedBlocks, &[Law::MayAuthorise]);
}

/// The epoch is there for limits, blame and late evidence: status and key protect the money without it.
#[test]
fn without_lease_epochs_no_money_is_lost() {
    breaks(racing(), Guard::LeaseEpoch, &[Law::Fenced]);
    let small = Scope {
        calls: vec![38],
        horizon: 3,
        ..racing()
    };
    let found = break_without(small, Guard::LeaseEpoch, MONEY);
    assert_eq!(found.map(|(law, _)| law), None);
}

/// F35, F39: without keys a second create is a second effect, unless the provider was searched before, or
/// there is none.
#[test]
fn without_a_search_before_the_second_create() {
    breaks(searchable(), Guard::SearchFirst, &[Law::OneEffect]);
    breaks(bare(), Guard::OneRequest, &[Law::OneEffect]);
}

/// What is assumed of the world outside, and what it would cost if it were not so.
#[test]
fn assumptions_cannot_be_dropped() {
    breaks(waiting(), Guard::ProviderBound, &[Law::FailedMeansNone]);
    breaks(ageing(), Guard::ProviderBound, &[Law::OneEffect]);
    breaks(racing(), Guard::PromptWrite, &[Law::InWindow]);
    breaks(
        sending(),
        Guard::CopiesShareRefusal,
        &[Law::FailedMeansNone],
    );
}
