//! A clock that stands still until it is told otherwise, and knows who sleeps on it.
//!
//! Sleepers wake in the order in which they are due, then in the order in which they went to sleep:
//! the same moves of the clock give the same order every time, so that a simulation can be replayed.
//! Tests: in `clock.rs`.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

/// Wall time and boot time of a clock that a test moves.
#[derive(Debug)]
pub(super) struct Manual {
    start: DateTime<Utc>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    elapsed: Duration,
    /// How far the wall clock was set away from the boot clock.
    stepped: TimeDelta,
    /// Who sleeps until when, and the number by which sleepers of one instant keep their order.
    sleepers: BTreeMap<(Duration, u64), Waker>,
    next: u64,
}

impl Manual {
    pub fn new(start: DateTime<Utc>) -> Self {
        Self {
            start: start.trunc_subsecs(6),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn advance(&self, by: Duration) {
        let mut state = self.state();
        state.elapsed = state.elapsed.saturating_add(by);
        let still = state.elapsed.saturating_add(Duration::from_nanos(1));
        let later = state.sleepers.split_off(&(still, 0));
        let due = std::mem::replace(&mut state.sleepers, later);
        // A waker may ask for the time.
        drop(state);
        due.into_values().for_each(Waker::wake);
    }

    pub fn step(&self, by: TimeDelta) {
        let mut state = self.state();
        state.stepped = state.stepped.checked_add(&by).unwrap_or(state.stepped);
    }

    pub fn elapsed(&self) -> Duration {
        self.state().elapsed
    }

    pub fn now(&self) -> DateTime<Utc> {
        let state = self.state();
        super::add(self.start, state.elapsed)
            .checked_add_signed(state.stepped)
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
            .trunc_subsecs(6)
    }

    pub fn next_wake(&self) -> Option<Duration> {
        let state = self.state();
        let ((until, _), _) = state.sleepers.first_key_value()?;
        Some(until.saturating_sub(state.elapsed))
    }

    pub fn sleep(&self, duration: Duration) -> Sleep<'_> {
        Sleep {
            clock: self,
            until: self.elapsed().saturating_add(duration),
            number: None,
        }
    }
}

/// Ends when the clock reaches `until`.
#[derive(Debug)]
pub(super) struct Sleep<'a> {
    clock: &'a Manual,
    until: Duration,
    number: Option<u64>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock;
        let mut state = clock.state();
        if state.elapsed >= self.until {
            return Poll::Ready(());
        }
        let number = self.number.unwrap_or(state.next);
        if self.number.is_none() {
            self.number = Some(number);
            state.next = state.next.wrapping_add(1);
        }
        state
            .sleepers
            .insert((self.until, number), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.clock.state().sleepers.remove(&(self.until, number));
        }
    }
}
