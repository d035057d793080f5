//! The steps of webhook intake and reconciler on SQLite: which function runs in which transaction.

use std::time::Duration;

use async_trait::async_trait;

use super::{SqliteLedger, events, listings, watched};
use crate::domain::Instant;
use crate::domain::ids::{
    EventId, OperationId, PaymentId, ProviderName, ProviderRef, ReviewerName,
};
use crate::domain::key::IdempotencyKey;
use crate::domain::text::SafeText;
use crate::ledger::{
    EventCounts, EventLine, EventWent, LedgerError, NewEvent, NotAcknowledged, Onward, PageTaken,
    Recovery, Span, StoredEvent, Watched,
};

#[async_trait]
impl Recovery for SqliteLedger {
    async fn accept_event(&self, event: NewEvent) -> Result<bool, LedgerError> {
        self.write(move |mut tx| Box::pin(async move { events::accept(&mut tx, event).await }))
            .await
    }

    async fn take_event(
        &self,
        of: Option<&ProviderName>,
        lease: Duration,
    ) -> Result<Option<StoredEvent>, LedgerError> {
        // By a reader first, so that nobody waits for the writer while there is nothing.
        let (of, whose) = (of.cloned(), of.cloned());
        let due = self.read(|inner| async move { events::is_any_due(&inner, of).await });
        if !due.await? {
            return Ok(None);
        }
        self.write(move |mut tx| Box::pin(async move { events::take(&mut tx, whose, lease).await }))
            .await
    }

    async fn event_went(&self, event: &StoredEvent, went: EventWent) -> Result<(), LedgerError> {
        let event = event.clone();
        self.write(move |mut tx| Box::pin(async move { events::went(&mut tx, &event, went).await }))
            .await
    }

    async fn hurry_events(&self) -> Result<(), LedgerError> {
        self.write(|mut tx| Box::pin(async move { events::hurry(&mut tx).await }))
            .await
    }

    async fn event_counts(&self) -> Result<EventCounts, LedgerError> {
        self.read(|inner| async move { events::counts(&inner).await })
            .await
    }

    async fn event_lines(&self, limit: u32) -> Result<Vec<EventLine>, LedgerError> {
        self.read(move |inner| async move { events::lines(&inner, limit).await })
            .await
    }

    async fn acknowledge_event(
        &self,
        id: &EventId,
        provider: Option<&ProviderName>,
        by: &ReviewerName,
        note: &SafeText,
    ) -> Result<Result<(), NotAcknowledged>, LedgerError> {
        let (id, provider) = (id.clone(), provider.cloned());
        let (by, note) = (by.clone(), note.clone());
        self.write(move |mut tx| {
            Box::pin(async move {
                events::acknowledge(&mut tx, &id, provider.as_ref(), (&by, &note)).await
            })
        })
        .await
    }

    async fn named_by(
        &self,
        provider: &ProviderName,
        object: &ProviderRef,
        operation: Option<&OperationId>,
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<OperationId>, LedgerError> {
        let (provider, object) = (provider.clone(), object.clone());
        let names = (operation.cloned(), key.map(ToString::to_string));
        self.read(
            move |inner| async move { events::named_by(&inner, &provider, &object, names).await },
        )
        .await
    }

    async fn unsettled_on(
        &self,
        provider: &ProviderName,
        payment: &PaymentId,
    ) -> Result<Vec<OperationId>, LedgerError> {
        let (provider, payment) = (provider.clone(), payment.clone());
        self.read(
            move |inner| async move { events::unsettled_on(&inner, &provider, &payment).await },
        )
        .await
    }

    async fn events_from(&self, provider: &ProviderName) -> Result<Option<Instant>, LedgerError> {
        let provider = provider.clone();
        self.read(move |inner| async move { listings::read_from(&inner, &provider).await })
            .await
    }

    async fn span(
        &self,
        provider: &ProviderName,
        from: Instant,
        to: Instant,
    ) -> Result<Span, LedgerError> {
        let provider = provider.clone();
        self.write(move |mut tx| {
            Box::pin(async move { listings::span(&mut tx, &provider, from, to).await })
        })
        .await
    }

    async fn page_listed(
        &self,
        provider: &ProviderName,
        span: &Span,
        events: Vec<NewEvent>,
        onward: Onward,
    ) -> Result<PageTaken, LedgerError> {
        let (provider, span) = (provider.clone(), span.clone());
        self.write(move |mut tx| {
            Box::pin(async move { listings::page(&mut tx, &provider, &span, events, onward).await })
        })
        .await
    }

    async fn events_read(
        &self,
        provider: &ProviderName,
        read: Result<Instant, SafeText>,
    ) -> Result<(), LedgerError> {
        let provider = provider.clone();
        self.write(move |mut tx| {
            Box::pin(async move { listings::note_reading(&mut tx, &provider, read).await })
        })
        .await
    }

    async fn take_watched(
        &self,
        of: Option<&ProviderName>,
        lease: Duration,
    ) -> Result<Option<Watched>, LedgerError> {
        let (of, whose) = (of.cloned(), of.cloned());
        let due = self.read(|inner| async move { watched::is_any_due(&inner, of).await });
        if !due.await? {
            return Ok(None);
        }
        self.write(move |mut tx| {
            Box::pin(async move { watched::take(&mut tx, whose, lease).await })
        })
        .await
    }

    async fn watched_until(
        &self,
        watched: &Watched,
        next_at: Option<Instant>,
    ) -> Result<(), LedgerError> {
        let watched = watched.clone();
        self.write(move |mut tx| {
            Box::pin(async move { watched::until(&mut tx, &watched, next_at).await })
        })
        .await
    }

    async fn unsettled(
        &self,
        after: Option<&OperationId>,
        limit: u32,
    ) -> Result<Vec<Watched>, LedgerError> {
        let after = after.cloned();
        self.read(move |inner| async move { watched::unsettled(&inner, after, limit).await })
            .await
    }
}
