//! The simulator's own time: the clock that came in, and what was skipped on top of it.
//!
//! Owns: skipping (a day passes in an instant, for nobody but the simulator). Never: reads the
//! machine's clock, or moves the clock that came in, which others live by. Tests: below and
//! `tests/simulator/`.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::watch;

use crate::clock::Clock;

/// Longest that all skips together may come to: ten years.
pub(super) const MAX_SKIPPED: Duration = Duration::from_hours(24 * 3650);

#[derive(Clone, Debug)]
pub(super) struct SimClock {
    clock: Clock,
    skipped: watch::Sender<Duration>,
}

impl SimClock {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            skipped: watch::Sender::new(Duration::ZERO),
        }
    }

    /// Wall time, with what was skipped.
    pub fn now(&self) -> DateTime<Utc> {
        let skipped = TimeDelta::from_std(*self.skipped.borrow()).unwrap_or(TimeDelta::MAX);
        let now = self.clock.now();
        now.checked_add_signed(skipped)
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// Wall time as the clock that came in has it: what travels between two programs and is judged
    /// by both (a signature's age) must not be skipped on one side only.
    pub fn shared(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The clock that came in.
    pub fn source(&self) -> &Clock {
        &self.clock
    }

    /// Skips `by` and wakes whoever is due by then; `false`, and nothing happens, above the limit.
    pub fn skip(&self, by: Duration) -> bool {
        self.skipped.send_if_modified(|skipped| {
            let sum = skipped.saturating_add(by);
            let fits = sum <= MAX_SKIPPED;
            if fits {
                *skipped = sum;
            }
            fits
        })
    }

    /// Sleeps for `duration` of this time.
    pub async fn sleep(&self, duration: Duration) {
        let until = self.elapsed().saturating_add(duration);
        let mut skips = self.skipped.subscribe();
        loop {
            let left = until.saturating_sub(self.elapsed());
            tokio::select! {
                biased;
                () = self.clock.sleep(left) => return,
                // An error cannot be: the sender is in `self`.
                _ = skips.changed() => {}
            }
        }
    }

    fn elapsed(&self) -> Duration {
        self.clock.boot().saturating_add(*self.skipped.borrow())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_skip_wakes_sleepers_and_leaves_the_other_clock_alone() {
        let source = Clock::manual(DateTime::<Utc>::UNIX_EPOCH);
        let clock = SimClock::new(source.clone());
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_hours(24)).await }
        });
        tokio::task::yield_now().await;
        assert!(clock.skip(Duration::from_hours(23)));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        source.advance(Duration::from_hours(1));
        sleeper.await.expect("woken by both together");
        assert_eq!((clock.now() - source.now()).num_hours(), 23);
        assert!(!clock.skip(MAX_SKIPPED), "no more than ten years");
    }
}
