//! Everything that decides about money: pure, total, without clock, socket, database or randomness.
//!
//! Owns the words of the protocol (status, effect, outcome class, verdict, proposal) and its rules.
//! [`transition`] is the one function through which an operation changes; [`guard`] says what a
//! person may do; [`opening`] says whether a call gets a row of its own; [`answer`] what a model
//! hears, [`message`] what its customer may hear. Never: waits, reads the time, draws lots, or knows of SQL, HTTP or a terminal.
//! Tests: beside each file, and `tests/protocol/` for whole stories.

#![cfg_attr(
    not(test),
    deny(
        clippy::wildcard_enum_match_arm,
        clippy::arithmetic_side_effects,
        clippy::float_arithmetic,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]

pub mod agent;
pub mod answer;
pub mod arguments;
pub mod attempt;
mod draft;
pub mod evidence;
pub mod findings;
pub mod guard;
pub mod identity;
pub mod ids;
pub mod key;
pub mod message;
pub mod money;
pub mod notice;
pub mod opening;
pub mod operation;
pub mod outcome;
pub mod policy;
pub mod profile;
pub mod provider_event;
pub mod recovery;
pub mod report;
pub mod review_event;
mod step;
pub mod text;
pub mod tool_call;
pub mod tool_result;
pub mod transition;
pub mod watch;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// An instant, UTC, whole microseconds.
pub type Instant = DateTime<Utc>;

/// `at + by`, stopping at the end of time instead of overflowing (I33).
#[must_use]
pub fn later(at: Instant, by: Duration) -> Instant {
    TimeDelta::from_std(by)
        .ok()
        .and_then(|d| at.checked_add_signed(d))
        .unwrap_or(Instant::MAX_UTC)
}

/// `at - by`, stopping at the beginning of time.
#[must_use]
pub fn earlier(at: Instant, by: Duration) -> Instant {
    TimeDelta::from_std(by)
        .ok()
        .and_then(|d| at.checked_sub_signed(d))
        .unwrap_or(Instant::MIN_UTC)
}

/// How long ago `then` was at `now`; zero where it lies ahead.
#[must_use]
pub fn since(then: Instant, now: Instant) -> Duration {
    now.signed_duration_since(then)
        .to_std()
        .unwrap_or(Duration::ZERO)
}
