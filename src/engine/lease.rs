//! The lease as its holder sees it: until when this engine may send, on a clock that also runs while
//! the machine sleeps (I9, I25).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::EngineDeps;
use crate::clock::Clock;
use crate::domain::ids::EngineId;

/// Until when everything this engine holds is surely its own.
pub(super) struct Lease {
    length: Duration,
    /// Boot clock, microseconds.
    safe_until: AtomicU64,
    clock: Clock,
}

impl Lease {
    pub(super) fn new(length: Duration, clock: Clock) -> Self {
        let lease = Self {
            length,
            safe_until: AtomicU64::new(0),
            clock,
        };
        lease.extended_at(lease.clock.boot());
        lease
    }

    /// A renewal that was asked for at `began` has succeeded.
    fn extended_at(&self, began: Duration) {
        let until = began.saturating_add(self.length).as_micros();
        self.safe_until
            .store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Whether the lease surely still holds.
    pub(super) fn holds(&self) -> bool {
        self.clock.boot().as_micros() < u128::from(self.safe_until.load(Ordering::SeqCst))
    }

    /// Renews for as long as it runs; a ledger that does not answer lets the lease run out.
    pub(super) async fn keep(&self, deps: &EngineDeps, engine: &EngineId) {
        loop {
            let began = self.clock.boot();
            match deps.ledger.renew(engine, self.length).await {
                Ok(_) => self.extended_at(began),
                Err(error) => tracing::warn!(%error, "the lease could not be renewed"),
            }
            self.clock.sleep(self.length / 3).await;
        }
    }
}
