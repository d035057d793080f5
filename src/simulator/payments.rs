//! A payment and its refunds, as the books have them.
//!
//! Owns: what is known of each. Never: changes one (`world.rs`) or says it on the wire
//! (`objects.rs`). Tests: in `world.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::changes::Request;
use super::records::EffectSource;
use super::step::{ChargeState, Course, FailureReason, RefundStatus, Setting, WebhookFault};

/// A refund object and what the simulator knows about it besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refund {
    pub id: String,
    pub order: String,
    pub amount: i64,
    pub currency: Arc<str>,
    pub status: RefundStatus,
    pub course: Course,
    pub failure_reason: FailureReason,
    /// Whether the bank's reference number is known (S39).
    pub has_reference: bool,
    pub reason: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub created: DateTime<Utc>,
    pub key: Option<String>,
    pub source: EffectSource,
    /// Whether it ever took money from the charge.
    pub moved_money: bool,
    pub webhook: WebhookFault,
}

/// What somebody wants refunded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NewRefund {
    pub order: String,
    /// `None`: all that remains (S26).
    pub amount: Option<i64>,
    pub reason: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub key: Option<String>,
    /// The request that wants it; nobody's in the dashboard or by itself.
    pub request: Option<Request>,
    pub source: EffectSource,
    pub course: Course,
    pub webhook: WebhookFault,
}

/// How an order's payment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payment {
    pub order: String,
    pub created: DateTime<Utc>,
    pub refunded: i64,
    /// The last dispute's id.
    pub dispute: Option<String>,
    pub setting: Arc<Setting>,
}

impl Payment {
    /// What was captured, in minor units.
    pub fn captured(&self) -> i64 {
        match self.setting.charge {
            ChargeState::Captured => self.setting.amount,
            ChargeState::Uncaptured | ChargeState::Failed => 0,
        }
    }
}
