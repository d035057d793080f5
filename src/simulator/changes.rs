//! What changed in the books and is worth an event: which types, and about which object (S49, S50).
//!
//! Owns: the rule from a change to its event types, with the objects as they were then. Never:
//! gives events an id, keeps or sends them (`events.rs`, `webhooks.rs`). Tests:
//! `tests/simulator/`.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::disputes::Dispute;
use super::objects;
use super::payments::{Payment, Refund};
use super::step::{RefundStatus, WebhookFault};

/// The API request behind a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub id: String,
    pub key: Option<String>,
}

/// The object of an event, as it was when the event was made.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    Refund(Refund),
    Charge(Payment),
    Dispute(Dispute),
}

impl Subject {
    pub fn as_json(&self) -> Value {
        match self {
            Self::Refund(refund) => objects::refund(refund),
            Self::Charge(payment) => objects::charge(payment),
            Self::Dispute(dispute) => objects::dispute(dispute),
        }
    }
}

/// One event to be.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub kind: &'static str,
    pub at: DateTime<Utc>,
    pub order: String,
    pub subject: Subject,
    /// `data.previous_attributes`, on updates (S51).
    pub previous: Option<Value>,
    /// `None` for what happens by itself or in the dashboard (S47).
    pub by: Option<Request>,
    pub webhook: WebhookFault,
}

impl Change {
    /// S50: a refund that succeeds at once has no later event about its status.
    pub fn created(
        refund: &Refund,
        payment: Payment,
        at: DateTime<Utc>,
        by: Option<&Request>,
    ) -> Vec<Self> {
        let mut all = vec![Self::refund("refund.created", refund, None, at, by)];
        match refund.status {
            RefundStatus::Succeeded => all.push(Self::charge(refund, payment, at, by)),
            RefundStatus::Failed => all.push(Self::refund("refund.failed", refund, None, at, by)),
            RefundStatus::Pending | RefundStatus::RequiresAction | RefundStatus::Canceled => {}
        }
        all
    }

    /// S49, S50; `charge.refund.updated` is deprecated and still sent.
    pub fn updated(
        before: &Refund,
        after: &Refund,
        payment: Payment,
        at: DateTime<Utc>,
        by: Option<&Request>,
    ) -> Vec<Self> {
        let previous = previous(&objects::refund(before), &objects::refund(after));
        let turned = before.status != after.status;
        let kind = if turned && after.status == RefundStatus::Failed {
            "refund.failed"
        } else {
            "refund.updated"
        };
        let mut all = vec![
            Self::refund(kind, after, Some(previous.clone()), at, by),
            Self::refund("charge.refund.updated", after, Some(previous), at, by),
        ];
        if turned && after.status == RefundStatus::Succeeded {
            all.push(Self::charge(after, payment, at, by));
        }
        all
    }

    fn refund(
        kind: &'static str,
        refund: &Refund,
        previous: Option<Value>,
        at: DateTime<Utc>,
        by: Option<&Request>,
    ) -> Self {
        Self {
            kind,
            at,
            order: refund.order.clone(),
            subject: Subject::Refund(refund.clone()),
            previous,
            by: by.cloned(),
            webhook: refund.webhook,
        }
    }

    /// S49: also for a partial refund.
    fn charge(refund: &Refund, payment: Payment, at: DateTime<Utc>, by: Option<&Request>) -> Self {
        let mut before = payment.clone();
        before.refunded = before.refunded.saturating_sub(refund.amount);
        let previous = previous(&objects::charge(&before), &objects::charge(&payment));
        Self {
            kind: "charge.refunded",
            at,
            order: refund.order.clone(),
            subject: Subject::Charge(payment),
            previous: Some(previous),
            by: by.cloned(),
            webhook: refund.webhook,
        }
    }
}

/// The members of `before` that `after` has otherwise; null where they were not there.
fn previous(before: &Value, after: &Value) -> Value {
    let empty = Map::new();
    let (before, after) = (
        before.as_object().unwrap_or(&empty),
        after.as_object().unwrap_or(&empty),
    );
    let mut all = Map::new();
    for (name, value) in before {
        if after.get(name) != Some(value) {
            all.insert(name.clone(), value.clone());
        }
    }
    for name in after.keys().filter(|n| !before.contains_key(*n)) {
        all.insert(name.clone(), Value::Null);
    }
    Value::Object(all)
}
