//! Everything the simulator remembers, behind one lock.
//!
//! Owns: the lock, the time and the order of the parts. Never: waits while it is locked. Tests:
//! `tests/simulator/`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::SimConfig;
use super::events::{Delivery, Events};
use super::execution::Outage;
use super::fault::{Fault, Faults, PlanError};
use super::ids::{object_id, payment_id};
use super::journal::Journal;
use super::keys::Keys;
use super::limits::Limiter;
use super::objects;
use super::records::{EffectRecord, Holds, Log, RequestRecord};
use super::time::SimClock;
use super::webhooks::Queue;
use super::wire::Call;
use super::world::World;

#[derive(Debug)]
pub(super) struct State {
    pub world: World,
    pub keys: Keys,
    pub faults: Faults,
    pub outage: Option<Outage>,
    pub events: Events,
    pub queue: Queue,
    pub limiter: Limiter,
    /// How often reads of a payment's refunds went wrong (S68).
    pub bad_reads: BTreeMap<String, u32>,
    pub log: Log,
    pub journal: Journal,
    /// How many refunds of the world were looked at for the journal.
    told: usize,
    /// Whether somebody wants webhooks.
    has_endpoint: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub clock: SimClock,
    pub latency: Duration,
    pub holds: Holds,
    /// Something was queued, or is due at another time.
    pub news: Notify,
    seed: u64,
    requests: AtomicU64,
    state: Mutex<State>,
}

impl Shared {
    pub fn new(cfg: &SimConfig) -> Result<Self, PlanError> {
        let faults = Faults::new(&cfg.plan, cfg.seed)?;
        let frame = faults.frame();
        let retention = frame.retention_s.map(|s| Duration::from_secs(s.into()));
        let retention = retention.unwrap_or(cfg.retention);
        let state = State {
            world: World::new(cfg.seed, cfg.clock.now(), &frame.world),
            keys: Keys::new(retention, cfg.conflict_type.clone()),
            faults,
            outage: None,
            events: Events::new(cfg.seed),
            queue: Queue::default(),
            limiter: Limiter::default(),
            bad_reads: BTreeMap::new(),
            log: Log::default(),
            journal: Journal(cfg.log.clone()),
            told: 0,
            has_endpoint: cfg.webhook.is_some(),
        };
        Ok(Self {
            clock: SimClock::new(cfg.clock.clone()),
            latency: cfg.latency,
            holds: Holds::new(),
            news: Notify::new(),
            seed: cfg.seed,
            requests: AtomicU64::new(0),
            state: Mutex::new(state),
        })
    }

    /// The books as of now. A panic elsewhere does not take the simulator down.
    pub fn state(&self) -> (MutexGuard<'_, State>, DateTime<Utc>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        state.world.settle(now);
        state.publish();
        (state, now)
    }

    /// Changes the books and tells of it.
    pub fn change<T>(&self, how: impl FnOnce(&mut State, DateTime<Utc>) -> T) -> T {
        let (mut state, now) = self.state();
        let out = how(&mut state, now);
        state.publish();
        drop(state);
        self.news.notify_one();
        out
    }

    pub fn next_request_id(&self) -> String {
        let nth = self.requests.fetch_add(1, Ordering::Relaxed);
        object_id("req_", self.seed, &["request", &nth.to_string()])
    }

    /// `GET /_sim/state`.
    pub fn as_json(&self) -> Value {
        let (state, now) = self.state();
        let refund = |refund| {
            let mut value = objects::refund(refund);
            if let Value::Object(members) = &mut value {
                members.insert("_sim".into(), json!(EffectRecord::of(refund)));
            }
            value
        };
        let refunds: Vec<Value> = state.world.refunds().iter().map(refund).collect();
        json!({
            "now": super::records::time(now),
            "refunds": refunds,
            "requests": state.log.all(),
            "keys": state.keys.as_json(),
            "reads": state.limiter.reads(),
            "webhooks": {
                "waiting": state.queue.len(),
                "received": state.queue.received,
                "given_up": state.queue.given_up,
                "dropped": state.queue.dropped,
            },
        })
    }
}

impl State {
    /// Makes events of what has changed, and queues their webhooks.
    fn publish(&mut self) {
        self.tell();
        for change in self.world.take_changes() {
            let delivery = if self.has_endpoint {
                Delivery::Pending
            } else {
                Delivery::Unwanted
            };
            let fault = change.webhook;
            for _ in 0..=u32::from(fault.twin) {
                let id = self.events.keep(&change, delivery);
                if self.has_endpoint {
                    self.queue.add(&id, change.kind, fault, change.at);
                }
            }
        }
    }

    /// Refunds that took money, oldest first.
    pub fn effects(&self) -> Vec<EffectRecord> {
        let moved = self.world.refunds().iter().filter(|r| r.moved_money);
        moved.map(EffectRecord::of).collect()
    }

    /// Writes down the effects that were made since.
    fn tell(&mut self) {
        let all = self.world.refunds();
        for refund in all.iter().skip(self.told).filter(|r| r.moved_money) {
            self.journal.effect(&EffectRecord::of(refund));
        }
        self.told = all.len();
    }

    /// Remembers a request.
    pub fn record(
        &mut self,
        call: &Call,
        (nth, order): (u32, Option<&str>),
        fault: Option<&Fault>,
        at: DateTime<Utc>,
    ) {
        let record = RequestRecord {
            nth,
            method: call.method.to_string(),
            path: call.path.clone(),
            key: call.key.clone(),
            body_sha256: call.body_sha256.clone(),
            order_id: order.map(str::to_owned),
            payment: order.map(payment_id),
            fault: fault.map(|f| f.name),
            at,
        };
        self.journal.request(&call.request_id, &record);
        self.log.add(record);
    }
}

/// `start` and some seconds; never overflows.
pub(super) fn seconds_after(start: DateTime<Utc>, seconds: u32) -> DateTime<Utc> {
    start
        .checked_add_signed(TimeDelta::seconds(i64::from(seconds)))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}
