//! What the reconciler asks of the ledger, with the same faults in front of it as everything else.

use std::time::Duration;

use async_trait::async_trait;
use samekey::domain::Instant;
use samekey::domain::ids::{
    EventId, OperationId, PaymentId, ProviderName, ProviderRef, ReviewerName,
};
use samekey::domain::key::IdempotencyKey;
use samekey::domain::text::SafeText;
use samekey::ledger::{
    EventCounts, EventLine, EventWent, Ledger as _, LedgerError, NewEvent, NotAcknowledged, Onward,
    PageTaken, Recovery, Span, StoredEvent, Watched,
};

use crate::ledger::{SimLedger, Sort};

/// One call of the inner ledger.
macro_rules! run {
    ($self:ident, $sort:ident, $name:ident($($arg:expr),*)) => {
        $self
            .run(stringify!($name), Sort::$sort, |l| async move {
                l.recovery().$name($($arg),*).await
            })
            .await
    };
}

#[async_trait]
impl Recovery for SimLedger {
    async fn accept_event(&self, event: NewEvent) -> Result<bool, LedgerError> {
        run!(self, Write, accept_event(event))
    }

    async fn take_event(
        &self,
        of: Option<&ProviderName>,
        lease: Duration,
    ) -> Result<Option<StoredEvent>, LedgerError> {
        run!(self, Write, take_event(of, lease))
    }

    async fn event_went(&self, event: &StoredEvent, went: EventWent) -> Result<(), LedgerError> {
        match &went {
            EventWent::Processed { .. } => self.core.saw("an event that concerned a row"),
            EventWent::Ignored { .. } => self.core.saw("an event about nothing of ours"),
            EventWent::Quarantined { .. } => self.core.saw("an event set aside"),
            EventWent::Later { .. } => self.core.saw("an event that had to wait"),
        }
        run!(self, Write, event_went(event, went))
    }

    async fn hurry_events(&self) -> Result<(), LedgerError> {
        run!(self, Write, hurry_events())
    }

    async fn event_counts(&self) -> Result<EventCounts, LedgerError> {
        run!(self, Read, event_counts())
    }

    async fn event_lines(&self, limit: u32) -> Result<Vec<EventLine>, LedgerError> {
        run!(self, Read, event_lines(limit))
    }

    async fn acknowledge_event(
        &self,
        id: &EventId,
        provider: Option<&ProviderName>,
        by: &ReviewerName,
        note: &SafeText,
    ) -> Result<Result<(), NotAcknowledged>, LedgerError> {
        run!(self, Write, acknowledge_event(id, provider, by, note))
    }

    async fn named_by(
        &self,
        provider: &ProviderName,
        object: &ProviderRef,
        operation: Option<&OperationId>,
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<OperationId>, LedgerError> {
        run!(self, Read, named_by(provider, object, operation, key))
    }

    async fn unsettled_on(
        &self,
        provider: &ProviderName,
        payment: &PaymentId,
    ) -> Result<Vec<OperationId>, LedgerError> {
        run!(self, Read, unsettled_on(provider, payment))
    }

    async fn events_from(&self, provider: &ProviderName) -> Result<Option<Instant>, LedgerError> {
        run!(self, Read, events_from(provider))
    }

    async fn span(
        &self,
        provider: &ProviderName,
        from: Instant,
        to: Instant,
    ) -> Result<Span, LedgerError> {
        run!(self, Write, span(provider, from, to))
    }

    async fn page_listed(
        &self,
        provider: &ProviderName,
        span: &Span,
        events: Vec<NewEvent>,
        onward: Onward,
    ) -> Result<PageTaken, LedgerError> {
        run!(self, Write, page_listed(provider, span, events, onward))
    }

    async fn events_read(
        &self,
        provider: &ProviderName,
        read: Result<Instant, SafeText>,
    ) -> Result<(), LedgerError> {
        run!(self, Write, events_read(provider, read))
    }

    async fn take_watched(
        &self,
        of: Option<&ProviderName>,
        lease: Duration,
    ) -> Result<Option<Watched>, LedgerError> {
        let taken = run!(self, Write, take_watched(of, lease));
        if let Ok(Some(_)) = taken {
            self.core.saw("a row that the reconciler looked at");
        }
        taken
    }

    async fn watched_until(
        &self,
        watched: &Watched,
        next_at: Option<Instant>,
    ) -> Result<(), LedgerError> {
        run!(self, Write, watched_until(watched, next_at))
    }

    async fn unsettled(
        &self,
        after: Option<&OperationId>,
        limit: u32,
    ) -> Result<Vec<Watched>, LedgerError> {
        run!(self, Read, unsettled(after, limit))
    }
}
