//! What the simulator tells its owner: effects, requests, and who is being held.
//!
//! Owns: the public records and the [`Held`] signal. Never: decides anything. Tests:
//! `tests/simulator/`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use tokio::sync::watch;

use super::ids::{charge_id, payment_id};
use super::payments::Refund;
use super::step::RefundStatus;

/// Requests remembered; older ones are forgotten first.
const MAX_REQUESTS: usize = 100_000;

/// Who caused a refund.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectSource {
    /// A request of a client.
    #[default]
    Api,
    /// Somebody else, by hand or by a copy.
    External,
    /// A request of a client, long after it was answered (S12).
    Late,
}

/// Money that was taken from a charge for a customer, even if it came back later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EffectRecord {
    /// `re_…`
    pub refund_id: String,
    /// `pi_order_…`
    pub payment: String,
    /// `ch_order_…`
    pub charge: String,
    /// The order the payment belongs to.
    pub order_id: Option<String>,
    /// Minor units.
    pub amount: i64,
    /// ISO 4217, lower case.
    pub currency: String,
    /// The idempotency key of the request, if it had one.
    pub key: Option<String>,
    /// As given by the client.
    pub metadata: BTreeMap<String, String>,
    /// Who caused it.
    pub source: EffectSource,
    /// The refund's present status.
    #[serde(serialize_with = "as_name")]
    pub status: RefundStatus,
    /// When it was made (virtual time).
    #[serde(serialize_with = "as_time")]
    pub at: DateTime<Utc>,
}

impl EffectRecord {
    pub(super) fn of(refund: &Refund) -> Self {
        Self {
            refund_id: refund.id.clone(),
            payment: payment_id(&refund.order),
            charge: charge_id(&refund.order),
            order_id: Some(refund.order.clone()),
            amount: refund.amount,
            currency: refund.currency.as_ref().to_owned(),
            key: refund.key.clone(),
            metadata: refund.metadata.clone(),
            source: refund.source,
            status: refund.status,
            at: refund.created,
        }
    }
}

/// A request that arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// The n-th request of its key, from 1; for a refund without a key, of its order; else 0.
    pub nth: u32,
    /// HTTP method.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// `Idempotency-Key`.
    pub key: Option<String>,
    /// SHA-256 of the body, hex.
    pub body_sha256: String,
    /// The order whose payment a refund request names.
    pub order_id: Option<String>,
    /// Its payment intent.
    pub payment: Option<String>,
    /// The scenario it met.
    pub fault: Option<&'static str>,
    /// When it had been read completely (virtual time).
    #[serde(serialize_with = "as_time")]
    pub at: DateTime<Utc>,
}

/// The last requests.
#[derive(Debug, Default)]
pub(super) struct Log(VecDeque<RequestRecord>);

impl Log {
    pub fn add(&mut self, record: RequestRecord) {
        if self.0.len() >= MAX_REQUESTS {
            self.0.pop_front();
        }
        self.0.push_back(record);
    }

    pub fn all(&self) -> Vec<RequestRecord> {
        self.0.iter().cloned().collect()
    }
}

/// RFC 3339, UTC, milliseconds.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn as_time<S: serde::Serializer>(at: &DateTime<Utc>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&time(*at))
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn as_name<S: serde::Serializer>(status: &RefundStatus, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(status.name())
}

#[derive(Debug, Default)]
struct HeldState {
    now: usize,
    keys: BTreeMap<String, u32>,
    orders: BTreeMap<String, u32>,
}

/// Tells when a refund request has been carried out but its reply is late or never comes.
///
/// Everything a wait asks for may also have happened before it began, so that a signal cannot be
/// missed. A request with an immediate reply (honest, and no latency configured) signals nothing:
/// ask [`super::Faults::pick`] first whether there will be a signal. When the simulator stops,
/// every wait ends.
#[derive(Clone, Debug)]
pub struct Held(watch::Receiver<HeldState>);

impl Held {
    /// How many replies are being held at this moment.
    #[must_use]
    pub fn now(&self) -> usize {
        self.0.borrow().now
    }

    /// Waits until a request with `key` is held for the `nth` time (from 1).
    pub async fn key(&mut self, key: &str, nth: u32) {
        self.until(|s| s.keys.get(key).is_some_and(|n| *n >= nth))
            .await;
    }

    /// Waits until a request for `order` is held for the `nth` time (from 1).
    pub async fn order(&mut self, order: &str, nth: u32) {
        self.until(|s| s.orders.get(order).is_some_and(|n| *n >= nth))
            .await;
    }

    /// Waits until no reply is held any more.
    pub async fn none(&mut self) {
        self.until(|s| s.now == 0).await;
    }

    async fn until(&mut self, condition: impl Fn(&HeldState) -> bool) {
        // An error means that the simulator is gone: nothing will be held again.
        let _ = self.0.wait_for(|s| condition(s)).await;
    }
}

/// The sending half of [`Held`].
#[derive(Clone, Debug)]
pub(super) struct Holds(Arc<watch::Sender<HeldState>>);

impl Holds {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(HeldState::default())))
    }

    pub fn watch(&self) -> Held {
        Held(self.0.subscribe())
    }

    /// Counts a held reply until the guard is dropped, by whatever way the request ends.
    pub fn begin(&self, key: Option<&str>, order: Option<&str>) -> HeldGuard {
        self.0.send_modify(|state| {
            state.now = state.now.saturating_add(1);
            for (counts, name) in [(&mut state.keys, key), (&mut state.orders, order)] {
                if let Some(name) = name {
                    *counts.entry(name.to_owned()).or_default() += 1;
                }
            }
        });
        HeldGuard(self.clone())
    }
}

#[derive(Debug)]
pub(super) struct HeldGuard(Holds);

impl Drop for HeldGuard {
    fn drop(&mut self) {
        let Holds(sender) = &self.0;
        sender.send_modify(|s| s.now = s.now.saturating_sub(1));
    }
}
