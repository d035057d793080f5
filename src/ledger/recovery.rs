//! What webhook intake and reconciler keep: the provider's events until each is settled, and when a row
//! is looked at next.
//!
//! Owns: the shapes, and the steps as a trait of their own beside [`super::Ledger`]. Never: decides what an
//! event or a look means. Tests: `tests/webhooks/`, `tests/reconcile/`, `tests/verify/`.

use std::time::Duration;

use async_trait::async_trait;

use super::LedgerError;
use crate::domain::Instant;
use crate::domain::ids::{EventId, OperationId, PaymentId, ProviderName, ProviderRef};
use crate::domain::key::{IdempotencyKey, hex_digest};
use crate::domain::provider_event::{EventKind, EventRead};
use crate::domain::text::SafeText;

/// Largest event that is kept, in bytes.
pub const MAX_EVENT: usize = 256 * 1024;

/// How an event reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum EventSource {
    /// Sent by the provider, with a signature that was right when it arrived.
    Webhook,
    /// Found in the provider's own list.
    Listing,
}

/// An event as it comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    pub id: EventId,
    pub provider: ProviderName,
    /// The provider's word for its kind.
    pub kind: &'static str,
    pub object: Option<SafeText>,
    /// What it says, as one number (S56).
    pub digest: String,
    pub source: EventSource,
    pub payload: Vec<u8>,
    pub created_at: Option<Instant>,
}

impl NewEvent {
    /// What is stored of `payload` that was read so; `None` where it is about nothing of ours, or too
    /// large to be kept. What nobody understands is stored under its own digest, to be seen.
    #[must_use]
    pub fn of(
        provider: &ProviderName,
        source: EventSource,
        read: &EventRead,
        payload: &[u8],
    ) -> Option<Self> {
        if payload.is_empty() || payload.len() > MAX_EVENT {
            return None;
        }
        let (provider, payload) = (provider.clone(), payload.to_vec());
        match read {
            EventRead::Other => None,
            EventRead::Event(event) => Some(Self {
                id: event.id.clone(),
                provider,
                kind: EventKind::as_str(event.kind),
                object: Some(event.about.id().into()),
                digest: event.digest.clone(),
                source,
                payload,
                created_at: Some(event.created_at),
            }),
            EventRead::Unreadable(_) => {
                let digest = hex_digest(&payload);
                Some(Self {
                    id: EventId::parse(&format!("unreadable:{digest}")).ok()?,
                    provider,
                    kind: "unreadable",
                    object: None,
                    digest,
                    source,
                    payload,
                    created_at: None,
                })
            }
        }
    }
}

/// An event that this process may work on now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number in the order of arrival.
    pub number: i64,
    pub id: EventId,
    pub provider: ProviderName,
    pub payload: Vec<u8>,
    /// An earlier event said the very same and was worked on.
    pub repeats: bool,
    /// Tries begun, this one included; fences whoever took it before.
    pub tries: u32,
}

/// How working on an event went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventWent {
    /// It concerns this operation; `note` says why nothing followed, where nothing did.
    Processed {
        operation: OperationId,
        note: Option<&'static str>,
    },
    /// Nothing of ours; its body is dropped.
    Ignored { why: &'static str },
    /// Nothing may follow from it, and a person should know.
    Quarantined {
        why: &'static str,
        operation: Option<OperationId>,
    },
    /// Again after so long.
    Later { wait: Duration, why: SafeText },
}

/// How many events there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Stored, and not tried yet.
    pub received: u64,
    /// Tried in vain, to be tried again.
    pub waiting: u64,
    pub processed: u64,
    pub ignored: u64,
    pub quarantined: u64,
    /// Why a provider's own list of events could not be read, the latest time.
    pub troubles: Vec<Trouble>,
}

impl EventCounts {
    /// Whether there is anything to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A provider whose list of events could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub provider: ProviderName,
    pub why: SafeText,
}

/// An event that waits or was set aside, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLine {
    pub id: EventId,
    pub kind: SafeText,
    pub state: SafeText,
    pub reason: Option<SafeText>,
    pub operation: Option<OperationId>,
    pub received_at: Instant,
    pub tries: u32,
}

/// A row whose next look is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    pub operation: OperationId,
    /// Looks so far, since it was sent, became unknown or was closed.
    pub looks: u32,
}

/// The steps of webhook intake and reconciler. Each is one transaction, as in [`super::Ledger`].
#[async_trait]
pub trait Recovery: Send + Sync {
    /// Stores an event durably before it is acknowledged (S57); false where its id is known.
    async fn accept_event(&self, event: NewEvent) -> Result<bool, LedgerError>;
    /// Takes the event that is due first, of this provider or of any: for `lease` nobody else works on it.
    async fn take_event(
        &self,
        of: Option<&ProviderName>,
        lease: Duration,
    ) -> Result<Option<StoredEvent>, LedgerError>;
    /// Writes how it went, unless another process has it by now.
    async fn event_went(&self, event: &StoredEvent, went: EventWent) -> Result<(), LedgerError>;
    /// Makes what waits due now.
    async fn hurry_events(&self) -> Result<(), LedgerError>;
    async fn event_counts(&self) -> Result<EventCounts, LedgerError>;
    /// The latest events that wait or were set aside, at most `limit`.
    async fn event_lines(&self, limit: u32) -> Result<Vec<EventLine>, LedgerError>;
    /// The operations that an object names or belongs to: by the id in its metadata, by the key of the
    /// request that made it, or because it was seen as theirs before.
    async fn named_by(
        &self,
        provider: &ProviderName,
        object: &ProviderRef,
        operation: Option<&OperationId>,
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<OperationId>, LedgerError>;
    /// Rows of this payment that are open or unknown.
    async fn unsettled_on(
        &self,
        provider: &ProviderName,
        payment: &PaymentId,
    ) -> Result<Vec<OperationId>, LedgerError>;

    /// From when the provider's events have to be listed: up to when they were, or the oldest row's
    /// opening; `None` where nothing was ever opened.
    async fn events_from(&self, provider: &ProviderName) -> Result<Option<Instant>, LedgerError>;
    /// The list was read to its end up to `read_to`, or could not be, because.
    async fn events_read(
        &self,
        provider: &ProviderName,
        read: Result<Instant, SafeText>,
    ) -> Result<(), LedgerError>;

    /// Takes the row that is due first, of this provider or of any, and that no call drives: for `lease`
    /// nobody else looks at it.
    async fn take_watched(
        &self,
        of: Option<&ProviderName>,
        lease: Duration,
    ) -> Result<Option<Watched>, LedgerError>;
    /// Writes when it is looked at next; never again without `next_at`.
    async fn watched_until(
        &self,
        watched: &Watched,
        next_at: Option<Instant>,
    ) -> Result<(), LedgerError>;
    /// Every row that something may have been sent for and that is neither settled nor driven, and every
    /// contradicted one, by its id, behind `after`; at most `limit`.
    async fn unsettled(
        &self,
        after: Option<&OperationId>,
        limit: u32,
    ) -> Result<Vec<Watched>, LedgerError>;
}
