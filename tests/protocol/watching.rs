//! When a row is looked at again without anybody asking: the whole schedule, to the moment.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::operation::Closing;
use samekey::domain::watch::next_look;

use crate::builders::*;
use crate::deciding::{absent, keyed};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Seconds until the look after the `looks`-th one.
fn wait(story: &Story, looks: u32) -> Option<i64> {
    let next = next_look(&story.op.row, looks, &story.terms.profile, story.now)?;
    Some((next - story.now).num_seconds())
}

/// I16: the wait doubles from a minute to a day; a row that stays unknown is never given up.
#[test]
fn an_unknown_row_is_looked_at_ever_more_rarely_and_never_given_up() {
    let story = absent(keyed());
    for (looks, seconds) in [
        (0, MINUTE),
        (1, MINUTE),
        (2, 2 * MINUTE),
        (3, 4 * MINUTE),
        (11, 1024 * MINUTE),
        (12, DAY),
        (17, DAY),
        (u32::MAX, DAY),
    ] {
        assert_eq!(wait(&story, looks), Some(seconds), "after {looks}");
    }
}

/// I21: an object on its way is looked at every six hours at least.
#[test]
fn a_pending_object_is_looked_at_every_six_hours() {
    let mut story = Story::seed();
    story.attempt("toolu_01", timeout());
    story.wait_until_decidable();
    assert_eq!(wait(&story, 12), Some(DAY), "open, and nothing seen");
    let pending = story.ours("re_1", ObjectStatus::Pending);
    story.observe(Source::Webhook, event_of(&pending));
    assert_eq!(wait(&story, 9), Some(256 * MINUTE));
    assert_eq!(wait(&story, 10), Some(6 * HOUR));
}

/// I19: the first look that can prove anything is not missed by a growing wait.
#[test]
fn the_first_look_that_proves_is_not_missed() {
    let mut story = Story::lost_and_stopped(keyed(), 3800);
    let decidable = story.terms.profile.decidable_at(at(0));
    let left = (decidable - story.now).num_seconds();
    assert_eq!(wait(&story, 1), Some(MINUTE), "sooner than that");
    assert_eq!(wait(&story, 12), Some(left));
    story.now = decidable;
    assert_eq!(wait(&story, 12), Some(DAY), "it proves now");
}

/// M6, S36: a closed row is looked at on six days of its first month, and then no more.
#[test]
fn a_closed_row_is_looked_at_for_thirty_days() {
    let mut story = absent(keyed());
    story
        .decide(&ann(), close_as(Closing::Failed))
        .expect("absent");
    let closed_at = story.op.row.closed_at.expect("closed");
    let mut days = Vec::new();
    // Bounded, so that a schedule without an end fails instead of going on.
    for _ in 0..10 {
        let Some(seconds) = wait(&story, 1) else {
            break;
        };
        story.now += chrono::TimeDelta::seconds(seconds);
        days.push((story.now - closed_at).num_days());
    }
    assert_eq!(days, [1, 2, 4, 8, 16, 30]);
}
