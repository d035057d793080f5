//! The lease as its holder sees it: until when this engine may send, on a clock that also runs while
//! the machine sleeps (I9, I25).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::EngineDeps;
use crate::clock::Clock;
use crate::domain::ids::EngineId;
use crate::ledger::LeasedCall;

/// Until when everything this engine holds is surely its own.
pub(super) struct Lease {
    length: Duration,
    /// Boot clock, microseconds.
    safe_until: AtomicU64,
    /// The calls that workers have.
    held: Mutex<Vec<LeasedCall>>,
    clock: Clock,
}

/// A call that a worker has, until it is dropped.
pub(super) struct Held<'a> {
    lease: &'a Lease,
    call: &'a LeasedCall,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.lease.held();
        if let Some(at) = held.iter().position(|h| is(h, self.call)) {
            held.swap_remove(at);
        }
    }
}

fn is(one: &LeasedCall, other: &LeasedCall) -> bool {
    (one.epoch, &one.call.id, &one.call.agent) == (other.epoch, &other.call.id, &other.call.agent)
}

impl Lease {
    pub(super) fn new(length: Duration, clock: Clock) -> Self {
        let lease = Self {
            length,
            safe_until: AtomicU64::new(0),
            held: Mutex::default(),
            clock,
        };
        lease.extended_at(lease.clock.boot());
        lease
    }

    fn held(&self) -> MutexGuard<'_, Vec<LeasedCall>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews `call` too, for as long as the guard lives. A call that the ledger gave out while its
    /// answer was lost has no worker; nobody may keep it from the others.
    pub(super) fn hold<'a>(&'a self, call: &'a LeasedCall) -> Held<'a> {
        self.held().push(call.clone());
        Held { lease: self, call }
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

    /// Whether `call` surely is still this engine's: a lease that ran out and was then renewed holds for
    /// those calls alone that nobody took meanwhile (I9, I25).
    pub(super) fn holds_for(&self, call: &LeasedCall) -> bool {
        self.holds() && self.held().iter().any(|h| is(h, call))
    }

    /// Renews for as long as it runs; a ledger that does not answer lets the lease run out. What the ledger
    /// took to answer counts: a renewal that waited for long is followed by another at once.
    pub(super) async fn keep(&self, deps: &EngineDeps, engine: &EngineId) {
        loop {
            let began = self.clock.boot();
            let held = self.held().clone();
            let mut rest = self.length / 3;
            match deps.ledger.renew(engine, self.length, &held).await {
                Ok(renewed) => {
                    if usize::try_from(renewed) != Ok(held.len()) {
                        self.let_go_of_lost(deps, engine, &held).await;
                    }
                    self.extended_at(began);
                    rest = rest.saturating_sub(self.clock.boot().saturating_sub(began));
                }
                Err(error) => tracing::warn!(%error, "the lease could not be renewed"),
            }
            self.clock.sleep(rest).await;
        }
    }

    /// Of the calls that could not all be renewed, those that are another engine's now, or have ended.
    async fn let_go_of_lost(&self, deps: &EngineDeps, engine: &EngineId, held: &[LeasedCall]) {
        for call in held {
            let one = std::slice::from_ref(call);
            let renewed = deps.ledger.renew(engine, self.length, one).await;
            // Where nobody can say, it counts as lost: what is not sent now is sent by the next attempt.
            if !matches!(renewed, Ok(1)) {
                self.held().retain(|h| !is(h, call));
            }
        }
    }
}
