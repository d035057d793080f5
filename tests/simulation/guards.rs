//! A test of the test: with one guard of the protocol taken away, the judge must notice, and name the law
//! that is broken.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::options::{Guard, Options};
use crate::run;
use crate::store::{Disk, Store};

/// Lives through at most `most` seeds without `guard`; the first violation must be of one of `laws`.
fn missed(guard: Guard, most: u64, laws: &[&str]) {
    let store = Arc::new(Store::new());
    for seed in 0..most {
        let options = Options::derive(seed, &BTreeSet::new(), Some(guard));
        let ended = run::seed(&store, options, Disk::Memory);
        if let Some(violation) = &ended.violation {
            println!(
                "without {}: seed {seed} breaks {}: {}",
                guard.name(),
                violation.law,
                violation.what
            );
            assert!(laws.contains(&violation.law), "{}", run::report(&ended));
            return;
        }
    }
    panic!("{most} seeds without {} and nobody noticed", guard.name());
}

#[test]
fn without_the_check_before_sending_a_stopped_engine_sends_late_i9() {
    missed(Guard::CheckBeforeSending, 200, &["I9", "I10"]);
}

#[test]
fn a_fresh_key_for_a_retry_is_noticed_i3() {
    missed(Guard::OneKey, 50, &["I3"]);
}

#[test]
fn sending_after_unknown_is_noticed_r41() {
    // Where an attempt was counted and never sent, what goes out after unknown looks like that one, late.
    missed(Guard::NothingAfterUnknown, 100, &["R41", "I9"]);
}

#[test]
fn sending_on_a_commit_in_doubt_is_noticed_i5() {
    missed(Guard::CommitInDoubt, 100, &["I5"]);
}

#[test]
fn trying_again_after_a_5xx_is_noticed_i15() {
    missed(Guard::ServerErrorEnds, 50, &["I15"]);
}

#[test]
fn closing_as_failed_without_waiting_is_noticed_i19() {
    missed(Guard::WaitBeforeFailed, 100, &["I19", "failed-with-effect"]);
}

#[test]
fn absence_from_half_a_list_is_noticed() {
    missed(Guard::WholeListOnly, 300, &["failed-with-effect"]);
}

#[test]
fn checking_before_getting_is_noticed_i24() {
    missed(Guard::GetBeforeCheck, 200, &["I24"]);
}
