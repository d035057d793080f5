//! An event of a provider: what it says happened, as far as it decides anything.
//!
//! An event is late, early, doubled or somebody else's by nature. What it shows of a refund is evidence
//! like any other ([`super::evidence::Source::Webhook`]); what it only hints at is read from the provider.
//! Never: decides whose it is (the rules of evidence do). Tests: `tests/webhooks/`, `tests/stripe/events.rs`.

use super::Instant;
use super::evidence::ProviderObject;
use super::ids::{ChargeId, EventId, PaymentId, ProviderRef};
use super::key::IdempotencyKey;
use super::text::SafeText;

/// The events that are understood (S49).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString, strum::VariantArray,
)]
pub enum EventKind {
    #[strum(serialize = "refund.created")]
    RefundCreated,
    #[strum(serialize = "refund.updated")]
    RefundUpdated,
    #[strum(serialize = "refund.failed")]
    RefundFailed,
    /// Also of a part of the charge.
    #[strum(serialize = "charge.refunded")]
    ChargeRefunded,
    /// An older name of `refund.updated`.
    #[strum(serialize = "charge.refund.updated")]
    ChargeRefundUpdated,
}

impl EventKind {
    /// The provider's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEvent {
    pub id: EventId,
    pub kind: EventKind,
    pub created_at: Instant,
    /// Real money.
    pub live: bool,
    /// The connected account it is about, where it is not the account that was asked (S51).
    pub account: Option<SafeText>,
    /// The key of the request that caused it; none where the provider itself did (S47).
    pub key: Option<IdempotencyKey>,
    pub about: About,
    /// SHA-256 of the kind and of what it says about its object: two events that describe the same
    /// thing have the same (S56).
    pub digest: String,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A refund; `object` is empty where its shape is not understood, so that it has to be fetched.
    Refund {
        id: ProviderRef,
        object: Option<Box<ProviderObject>>,
    },
    /// A charge of which something was refunded: a hint to look (S46).
    Charge { id: ChargeId, payment: PaymentId },
}

impl About {
    /// The object's id.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Refund { id, .. } => id.as_str(),
            Self::Charge { id, .. } => id.as_str(),
        }
    }
}

/// What became of reading one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventRead {
    Event(Box<ProviderEvent>),
    /// An event of another kind: nothing of ours.
    Other,
    /// Not what the provider's events look like.
    Unreadable(&'static str),
}
