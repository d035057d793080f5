//! Time as a value: the one place that reads a clock of the machine.
//!
//! Owns: wall time (UTC, whole microseconds), the boot clock (which also runs while the machine
//! sleeps) and sleeping. Never: decides anything. Tests: below, and everything that takes a
//! [`Clock`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use tokio::sync::watch;

/// A clock that is handed to everything that needs the time. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    System,
    /// Virtual time runs `speed` times as fast as real time from the moment of creation.
    Scaled {
        speed: u32,
        wall_start: DateTime<Utc>,
        boot_start: Duration,
    },
    /// Time moves only when a test says so.
    Manual {
        start: DateTime<Utc>,
        elapsed: watch::Sender<Duration>,
    },
}

impl Clock {
    /// The machine's own clocks.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(Source::System))
    }

    /// Starts at the present and then runs `speed` times (at least once) as fast.
    #[must_use]
    pub fn scaled(speed: u32) -> Self {
        Self(Arc::new(Source::Scaled {
            speed: speed.max(1),
            wall_start: system_wall(),
            boot_start: system_boot(),
        }))
    }

    /// Stands still at `start` until [`Clock::advance`].
    #[must_use]
    pub fn manual(start: DateTime<Utc>) -> Self {
        let (elapsed, _) = watch::channel(Duration::ZERO);
        Self(Arc::new(Source::Manual {
            start: start.trunc_subsecs(6),
            elapsed,
        }))
    }

    /// Moves a manual clock forward and wakes whoever sleeps on it; other clocks ignore it.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual { elapsed, .. } = &*self.0 {
            elapsed.send_modify(|e| *e = e.saturating_add(by));
        }
    }

    /// Wall time, UTC, truncated to microseconds (what both ledgers can store).
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        match &*self.0 {
            Source::System => system_wall(),
            Source::Scaled {
                wall_start,
                boot_start,
                speed,
            } => add(
                *wall_start,
                system_boot()
                    .saturating_sub(*boot_start)
                    .saturating_mul(*speed),
            ),
            Source::Manual { start, elapsed } => add(*start, *elapsed.borrow()),
        }
    }

    /// Time since boot, counted through suspend, for send windows and leases held locally.
    #[must_use]
    pub fn boot(&self) -> Duration {
        match &*self.0 {
            Source::System => system_boot(),
            Source::Scaled {
                boot_start, speed, ..
            } => boot_start.saturating_add(
                system_boot()
                    .saturating_sub(*boot_start)
                    .saturating_mul(*speed),
            ),
            Source::Manual { elapsed, .. } => *elapsed.borrow(),
        }
    }

    /// Sleeps for `duration` of this clock's time.
    pub async fn sleep(&self, duration: Duration) {
        match &*self.0 {
            Source::System => tokio::time::sleep(duration).await,
            Source::Scaled { speed, .. } => tokio::time::sleep(duration / *speed).await,
            Source::Manual { elapsed, .. } => {
                let mut seen = elapsed.subscribe();
                let until = seen.borrow().saturating_add(duration);
                // The sender lives in `self`, so waiting cannot end early.
                let _ = seen.wait_for(|e| *e >= until).await;
            }
        }
    }

    /// The result of `future`, or `None` if `limit` of this clock's time passes first.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            out = future => Some(out),
            () = self.sleep(limit) => None,
        }
    }

    /// How long `duration` of this clock takes in real time.
    #[must_use]
    pub fn real(&self, duration: Duration) -> Duration {
        match &*self.0 {
            Source::Scaled { speed, .. } => duration / *speed,
            Source::System | Source::Manual { .. } => duration,
        }
    }
}

fn add(start: DateTime<Utc>, by: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(by)
        .ok()
        .and_then(|d| start.checked_add_signed(d))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
        .trunc_subsecs(6)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock"
)]
fn system_wall() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

fn system_boot() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        u64::try_from(t.tv_sec).unwrap_or(0),
        u32::try_from(t.tv_nsec).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_moves_only_when_told_and_wakes_sleepers() {
        let clock = Clock::manual(DateTime::<Utc>::UNIX_EPOCH);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                clock.sleep(Duration::from_secs(60)).await;
                clock.now()
            }
        });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        assert_eq!(
            sleeper.await.expect("sleeper").timestamp(),
            60,
            "one minute of virtual time"
        );
    }

    #[test]
    fn wall_time_has_whole_microseconds() {
        assert_eq!(Clock::system().now().timestamp_subsec_nanos() % 1000, 0);
    }
}
