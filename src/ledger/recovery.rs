//! What webhook intake and reconciler keep: the provider's events until each is settled, and when a row
//! is looked at next.
//!
//! Owns: the shapes, and the steps as a trait of their own beside [`super::Ledger`]. Never: decides what an
//! event or a look means. Tests: `tests/webhooks/`, `tests/reconcile/`, `tests/verify/`.

use std::time::Duration;

use async_trait::async_trait;

use super::LedgerError;
use crate::domain::Instant;
use crate::domain::ids::{
    EventId, OperationId, PaymentId, ProviderName, ProviderRef, ReviewerName,
};
use crate::domain::key::{IdempotencyKey, hex_digest};
use crate::domain::provider_event::{About, EventKind, EventRead, ProviderEvent};
use crate::domain::text::SafeText;

/// Largest event that is kept, in bytes.
pub const MAX_EVENT: usize = 256 * 1024;
/// What is kept of a larger one, which a listing may bring: enough to see what it was.
const CUT: usize = 4 * 1024;

/// How an event reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum EventSource {
    /// Sent by the provider, with a signature that was right when it arrived.
    Webhook,
    /// Found in the provider's own list.
    Listing,
}

/// By what an event may be about something of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The refund; of a charge there is only a hint.
    pub object: Option<ProviderRef>,
    /// The operation in its metadata.
    pub operation: Option<OperationId>,
    /// The key of the request that made it.
    pub key: Option<IdempotencyKey>,
    /// The payment, where nothing marks it as somebody's: whoever waits for news of it is concerned.
    pub payment: Option<PaymentId>,
}

impl Names {
    /// `None` where the event does not say enough: it has to be looked into.
    fn of(event: &ProviderEvent) -> Option<Self> {
        let key = event.key.clone();
        match &event.about {
            About::Refund { object: None, .. } => None,
            About::Refund {
                object: Some(object),
                ..
            } => Some(Self {
                object: Some(object.id.clone()),
                operation: object.operation.clone(),
                key,
                payment: object
                    .payment
                    .clone()
                    .filter(|_| object.operation.is_none()),
            }),
            About::Charge { payment, .. } => Some(Self {
                object: None,
                operation: None,
                key: None,
                payment: Some(payment.clone()),
            }),
        }
    }
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
    /// What it names; `None`: it is kept whatever it is about.
    pub names: Option<Names>,
}

impl NewEvent {
    /// What is stored of `payload` that was read so; `None` where it is of a kind that is nothing of ours.
    /// What nobody understands is stored under its own digest, to be seen; of what is too large the beginning,
    /// under its own id and kind.
    #[must_use]
    pub fn of(
        provider: &ProviderName,
        source: EventSource,
        read: &EventRead,
        payload: &[u8],
    ) -> Option<Self> {
        let kept = if payload.len() > MAX_EVENT {
            payload.get(..CUT)?
        } else {
            payload
        };
        if kept.is_empty() {
            return None;
        }
        let (provider, whole, payload) = (provider.clone(), payload, kept.to_vec());
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
                names: Names::of(event),
            }),
            EventRead::Unreadable(_) => {
                let digest = hex_digest(whole);
                Some(Self {
                    id: EventId::parse(&format!("unreadable:{digest}")).ok()?,
                    provider,
                    kind: "unreadable",
                    object: None,
                    digest,
                    source,
                    payload,
                    created_at: None,
                    names: None,
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
    pub kind: SafeText,
    pub payload: Vec<u8>,
    pub received_at: Instant,
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
    /// Set aside, and nobody has said yet that they have seen it.
    pub quarantined: u64,
    pub acknowledged: u64,
    /// Listed, and about nothing of ours: not kept.
    pub passed_over: u64,
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

/// Who has seen a quarantined event, when, and what they wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    pub by: SafeText,
    pub at: Instant,
    pub note: SafeText,
}

/// An event that waits or was set aside, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLine {
    pub id: EventId,
    pub provider: ProviderName,
    pub kind: SafeText,
    pub state: SafeText,
    pub reason: Option<SafeText>,
    pub operation: Option<OperationId>,
    pub received_at: Instant,
    pub tries: u32,
    pub acknowledged: Option<Acknowledged>,
}

/// Why an event cannot be acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAcknowledged {
    #[error("there is no such event")]
    NoSuchEvent,
    #[error("the providers {0} have an event of this id; name one with --provider")]
    Several(String),
    #[error("the event is {0}; only a quarantined one is acknowledged")]
    NotQuarantined(SafeText),
    #[error("{0} has acknowledged it already")]
    Already(SafeText),
}

/// A listing of a provider's events that goes on: the span it reads, newest first, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: Instant,
    pub to: Instant,
    /// The last event that was read.
    pub after: Option<EventId>,
}

/// How a listing goes on after one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Onward {
    /// Behind this event.
    After(EventId),
    /// The span was read to its end.
    End,
    /// From its beginning: where it had come to is not known any more.
    Anew,
    /// Not at all from here, because.
    Stuck(&'static str),
}

/// What one listed page came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageTaken {
    /// Not known before, and kept.
    pub kept: u64,
    /// About nothing of ours.
    pub passed_over: u64,
    /// Nobody else has gone on with the same span meanwhile.
    pub mine: bool,
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
    /// The latest events that wait, were set aside or were acknowledged, at most `limit` of each.
    async fn event_lines(&self, limit: u32) -> Result<Vec<EventLine>, LedgerError>;
    /// Notes that a person has seen a quarantined event: it is not counted as such any more. Once, for good.
    async fn acknowledge_event(
        &self,
        id: &EventId,
        provider: Option<&ProviderName>,
        by: &ReviewerName,
        note: &SafeText,
    ) -> Result<Result<(), NotAcknowledged>, LedgerError>;
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
    /// The listing that is under way, or one of `from` to `to` that begins now.
    async fn span(
        &self,
        provider: &ProviderName,
        from: Instant,
        to: Instant,
    ) -> Result<Span, LedgerError>;
    /// Stores one page of a listing, and how it goes on, in one transaction.
    async fn page_listed(
        &self,
        provider: &ProviderName,
        span: &Span,
        events: Vec<NewEvent>,
        onward: Onward,
    ) -> Result<PageTaken, LedgerError>;
    /// The list was read to its end up to `read_to`, or could not be, because.
    async fn events_read(
        &self,
        provider: &ProviderName,
        read: Result<Instant, SafeText>,
    ) -> Result<(), LedgerError>;

    /// Takes the most urgent row that is due (unknown, open, closed; the first due of each), of this provider
    /// or of any, and that no call drives: for `lease`
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
