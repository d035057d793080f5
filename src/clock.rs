//! Time as a value: the one place that reads a clock of the machine.
//!
//! Owns: wall time (UTC, whole microseconds), the boot clock (which also runs while the machine
//! sleeps) and sleeping. Never: decides anything. Tests: below, and everything that takes a
//! [`Clock`].

mod manual;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use self::manual::Manual;

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
    Manual(Manual),
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
        Self(Arc::new(Source::Manual(Manual::new(start))))
    }

    /// Moves a manual clock forward and wakes whoever sleeps on it, the first to be due first; other
    /// clocks ignore it.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(manual) = &*self.0 {
            manual.advance(by);
        }
    }

    /// Sets the wall time of a manual clock forward or back, as an administrator does: its boot time
    /// goes on as before. Other clocks ignore it.
    pub fn step(&self, by: TimeDelta) {
        if let Source::Manual(manual) = &*self.0 {
            manual.step(by);
        }
    }

    /// How long until somebody who sleeps on a manual clock is due; `None` where nobody sleeps, and
    /// for other clocks.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        match &*self.0 {
            Source::Manual(manual) => manual.next_wake(),
            Source::System | Source::Scaled { .. } => None,
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
            Source::Manual(manual) => manual.now(),
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
            Source::Manual(manual) => manual.elapsed(),
        }
    }

    /// Sleeps for `duration` of this clock's time.
    pub async fn sleep(&self, duration: Duration) {
        match &*self.0 {
            Source::System => tokio::time::sleep(duration).await,
            Source::Scaled { speed, .. } => tokio::time::sleep(duration / *speed).await,
            Source::Manual(manual) => manual.sleep(duration).await,
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
            Source::System | Source::Manual(_) => duration,
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
    fn a_stepped_wall_clock_leaves_the_boot_clock_alone() {
        let clock = Clock::manual(DateTime::<Utc>::UNIX_EPOCH + TimeDelta::hours(5));
        clock.advance(Duration::from_secs(60));
        clock.step(TimeDelta::hours(-1));
        let hours = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::hours(4);
        assert_eq!(clock.now(), hours + TimeDelta::seconds(60));
        assert_eq!(clock.boot(), Duration::from_secs(60));
    }

    #[tokio::test]
    async fn a_manual_clock_knows_who_is_due_next_and_forgets_who_left() {
        let clock = Clock::manual(DateTime::<Utc>::UNIX_EPOCH);
        assert_eq!(clock.next_wake(), None);
        let long = clock.sleep(Duration::from_secs(9));
        let mut long = std::pin::pin!(long);
        let gone = clock
            .timeout(Duration::from_secs(3), std::future::ready(()))
            .await;
        assert!(gone.is_some() && clock.next_wake().is_none());
        let short = clock.timeout(Duration::from_secs(4), &mut long);
        let mut short = Box::pin(short);
        let waker = std::task::Waker::noop();
        let mut cx = std::task::Context::from_waker(waker);
        assert!(short.as_mut().poll(&mut cx).is_pending());
        assert_eq!(clock.next_wake(), Some(Duration::from_secs(4)));
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.next_wake(), Some(Duration::from_secs(3)));
        drop(short);
        assert_eq!(clock.next_wake(), Some(Duration::from_secs(8)));
        clock.advance(Duration::from_secs(8));
        long.await;
        assert_eq!(clock.next_wake(), None);
    }

    #[test]
    fn wall_time_has_whole_microseconds() {
        assert_eq!(Clock::system().now().timestamp_subsec_nanos() % 1000, 0);
    }
}
