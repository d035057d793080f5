//! The real adapter with points at which its process may be stopped or die, and with the guards that a
//! test takes away.

use std::sync::Arc;

use async_trait::async_trait;
use samekey::domain::Instant;
use samekey::domain::evidence::ProviderObject;
use samekey::domain::ids::{EventId, ProviderName, ProviderRef};
use samekey::domain::key::IdempotencyKey;
use samekey::domain::opening::Resolved;
use samekey::domain::operation::OperationRow;
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::Profile;
use samekey::domain::provider_event::EventRead;
use samekey::domain::text::SafeText;
use samekey::domain::transition::Lookup;
use samekey::provider::stripe::Stripe;
use samekey::provider::{
    Asked, EventPage, Provider, ReadError, Reads, Ready, ResolveError, ResolveQuery,
};
use uuid::Uuid;

use crate::core::{Core, Process};
use crate::options::Guard;

pub struct SimProvider {
    pub inner: Stripe,
    pub core: Arc<Core>,
    pub process: Arc<Process>,
}

#[async_trait]
impl Provider for SimProvider {
    fn name(&self) -> &ProviderName {
        self.inner.name()
    }

    fn profile(&self) -> &Profile {
        self.inner.profile()
    }

    fn origin(&self) -> String {
        self.inner.origin()
    }

    fn mode(&self) -> &'static str {
        self.inner.mode()
    }

    async fn account(&self, reads: &Reads) -> Result<Option<String>, ReadError> {
        self.process.step().await;
        self.inner.account(reads).await
    }

    async fn resolve(&self, query: &ResolveQuery, reads: &Reads) -> Result<Resolved, ResolveError> {
        self.process.step().await;
        let resolved = self.inner.resolve(query, reads).await;
        self.process.step().await;
        resolved
    }

    fn request(&self, asked: &Asked<'_>) -> Result<Vec<u8>, SafeText> {
        self.inner.request(asked)
    }

    async fn connect(&self) -> Result<Box<dyn Ready>, ReadError> {
        self.process.step().await;
        let ready = self.inner.connect().await?;
        self.process.step().await;
        Ok(Box::new(SimReady {
            inner: ready,
            core: Arc::clone(&self.core),
            process: Arc::clone(&self.process),
        }))
    }

    async fn lookup(&self, row: &OperationRow, reads: &Reads) -> Lookup {
        self.process.step().await;
        let seen = self.inner.lookup(row, reads).await;
        if let Lookup::Unreachable { .. } = seen {
            self.core.saw("a lookup that nobody answered");
        }
        self.process.step().await;
        seen
    }

    fn lookup_requests(&self, row: &OperationRow) -> Vec<String> {
        self.inner.lookup_requests(row)
    }

    async fn fetch(
        &self,
        id: &ProviderRef,
        reads: &Reads,
    ) -> Result<Option<ProviderObject>, ReadError> {
        self.process.step().await;
        self.inner.fetch(id, reads).await
    }

    fn read_event(&self, payload: &[u8]) -> EventRead {
        self.inner.read_event(payload)
    }

    fn storable(&self, payload: &[u8]) -> Vec<u8> {
        self.inner.storable(payload)
    }

    async fn events(
        &self,
        span: (Instant, Instant),
        after: Option<&EventId>,
        reads: &Reads,
    ) -> Result<EventPage, ReadError> {
        self.process.step().await;
        let page = self.inner.events(span, after, reads).await;
        self.process.step().await;
        page
    }

    async fn probe(&self, reads: &Reads) -> bool {
        self.process.step().await;
        self.inner.probe(reads).await
    }

    fn url(&self, id: &ProviderRef) -> Option<String> {
        self.inner.url(id)
    }
}

struct SimReady {
    inner: Box<dyn Ready>,
    core: Arc<Core>,
    process: Arc<Process>,
}

#[async_trait]
impl Ready for SimReady {
    async fn send(self: Box<Self>, row: &OperationRow) -> Outcome {
        let options = &self.core.options;
        let mut row = row.clone();
        if options.lacks(Guard::OneKey) && row.attempts > 1 {
            let other = u128::from(row.attempts) << 64 | u128::from(options.seed);
            row.key = IdempotencyKey::from_uuid(Uuid::from_u128(other));
        }
        // Between the engine's last look at its clocks and the first byte there is no step: nothing
        // can be asked of a process in there.
        let mut outcome = self.inner.send(&row).await;
        self.process.step().await;
        if options.lacks(Guard::ServerErrorEnds) && outcome.class == OutcomeClass::ServerError {
            outcome.class = OutcomeClass::SideEffectUnknown;
        }
        outcome
    }
}
