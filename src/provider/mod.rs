//! Providers: who really makes the effect. One trait, one adapter per kind of provider.
//!
//! Owns: the wire, classification of replies, reading back. Never: decides what follows from an
//! outcome (that is `domain`), retries, follows redirects, or touches the ledger. One attempt is one
//! request on one fresh connection (I12). Tests: `tests/stripe/`, `tests/tools/`.

pub mod described;
pub mod reads;
pub mod stripe;

pub use self::reads::{Purse, ReadPermit, Reads};
pub use crate::http::{Stream, Wire};

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::domain::Instant;
use crate::domain::arguments::Arguments;
use crate::domain::evidence::ProviderObject;
use crate::domain::ids::{
    ChargeId, EventId, OperationId, OrderId, PaymentId, ProviderName, ProviderRef, ToolName,
};
use crate::domain::opening::Resolved;
use crate::domain::operation::OperationRow;
use crate::domain::outcome::Outcome;
use crate::domain::policy::Profile;
use crate::domain::provider_event::EventRead;
use crate::domain::text::SafeText;
use crate::domain::tool_call::{ArgumentError, RefundArguments};
use crate::domain::transition::Lookup;

/// A shared handle on a provider.
pub type SharedProvider = Arc<dyn Provider>;

/// What is asked of a provider before a row may be opened.
#[derive(Clone, Debug)]
pub struct ResolveQuery {
    pub order: OrderId,
    pub payment: Option<PaymentId>,
    pub charge: Option<ChargeId>,
}

/// What a request is made of.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub tool: &'a ToolName,
    pub operation: &'a OperationId,
    pub arguments: &'a Arguments,
    /// Empty where [`Provider::resolves`] says so.
    pub resolved: Option<&'a Resolved>,
}

/// Why an order could not be resolved to one payment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No payment, several, or one of another order: the call is rejected.
    #[error("{0}")]
    Refused(SafeText),
    /// The provider could not be read: the call is rejected as unavailable.
    #[error("the provider could not be read: {0}")]
    Unreadable(SafeText),
}

/// Why something could not be read, or a connection not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(pub SafeText);

/// One page of the provider's list of events, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    /// The exact bytes of each.
    pub events: Vec<Vec<u8>>,
    pub next: NextPage,
}

/// What comes after a page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextPage {
    /// Nothing: this was the last one.
    End,
    /// The page behind this event.
    After(EventId),
    /// There is more, and nothing on the page says where: in one sentence.
    Lost(&'static str),
    /// The provider does not know the event any more that the page was to begin behind.
    Anew,
}

/// A provider that can make, list and fetch one kind of object. What only reads is paid for GET by GET out of
/// the [`Reads`] that come along.
#[async_trait]
pub trait Provider: Send + Sync {
    fn name(&self) -> &ProviderName;
    /// Its promises.
    fn profile(&self) -> &Profile;
    /// Scheme, host and port, as the ledger is stamped with.
    fn origin(&self) -> String;
    /// `simulator`, `test` or `live`.
    fn mode(&self) -> &'static str;
    /// The account behind the credentials, where it can be known.
    async fn account(&self, reads: &Reads) -> Result<Option<String>, ReadError>;
    /// Step 2: the arguments of a call of `tool`, checked. Pure.
    ///
    /// # Errors
    /// One sentence that names the argument at fault.
    fn arguments(&self, _tool: &ToolName, arguments: &Value) -> Result<Arguments, ArgumentError> {
        RefundArguments::parse(arguments).map(Arguments::from)
    }
    /// What agents are told of a described tool: what it is for, and the JSON Schema of its arguments.
    fn describes(&self, _tool: &ToolName) -> Option<(String, Value)> {
        None
    }
    /// Whether an order is a payment here, so that [`Provider::resolve`] has to be asked before a row is
    /// opened.
    fn resolves(&self) -> bool {
        true
    }
    /// Step 4: the payment of an order, what was captured and what was refunded, by anybody.
    async fn resolve(&self, query: &ResolveQuery, reads: &Reads) -> Result<Resolved, ResolveError>;
    /// The exact bytes that every attempt of the operation will send; our id is in them.
    ///
    /// # Errors
    /// One sentence: no request can be made of these arguments, so the call is rejected.
    fn request(&self, asked: &Asked<'_>) -> Result<Vec<u8>, SafeText>;
    /// A fresh connection, ready for one request. Nothing of the request has been sent.
    async fn connect(&self) -> Result<Box<dyn Ready>, ReadError>;
    /// Asks what exists for the operation's payment; read-only, without a key (I22).
    /// Cut short by the budget it is an incomplete scan, which proves nothing.
    async fn lookup(&self, row: &OperationRow, reads: &Reads) -> Lookup;
    /// The requests that [`Provider::lookup`] sends, for a person to see beforehand.
    fn lookup_requests(&self, row: &OperationRow) -> Vec<String>;
    /// One object by its id; `None` where the provider does not know it.
    async fn fetch(
        &self,
        id: &ProviderRef,
        reads: &Reads,
    ) -> Result<Option<ProviderObject>, ReadError>;
    /// Reads one event, sent by the provider or listed. Pure; a signature was checked before.
    fn read_event(&self, _payload: &[u8]) -> EventRead {
        EventRead::Unreadable("this provider has no events")
    }
    /// The event as it may be kept: without what looks like a secret.
    fn storable(&self, payload: &[u8]) -> Vec<u8> {
        payload.to_vec()
    }
    /// One page of the events of refunds made at or after `from` and before `to`, newest first, behind
    /// `after`.
    async fn events(
        &self,
        _span: (Instant, Instant),
        _after: Option<&EventId>,
        _reads: &Reads,
    ) -> Result<EventPage, ReadError> {
        Err(ReadError("this provider lists no events".into()))
    }
    /// Whether a read-only request succeeds now.
    async fn probe(&self, reads: &Reads) -> bool;
    /// Where a person finds the object.
    fn url(&self, id: &ProviderRef) -> Option<String>;
}

/// One connection that sends one request and is then gone.
#[async_trait]
pub trait Ready: Send {
    /// Sends the row's stored bytes with its key, and classifies what came back. Total: never fails,
    /// never waits longer than the profile's timeout.
    async fn send(self: Box<Self>, row: &OperationRow) -> Outcome;
}
