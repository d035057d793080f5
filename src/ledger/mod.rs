//! The ledger: the one place that remembers, in steps of the domain rather than rows to edit.
//!
//! Owns: durability, the transaction around each step, leases, the audit chain, paging. Never:
//! talks to a provider, decides anything about money (it calls `domain`), or keeps a transaction
//! open across a provider call. Tests: `tests/ledger/`, one suite for every store; `tests/verify/`.

mod audit;
mod notice;
pub mod query;
mod recovery;
mod row;
mod serving;
pub mod sqlite;
pub mod verify;
pub mod view;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::domain::Instant;
use crate::domain::arguments::Arguments;
use crate::domain::evidence::ProviderObject;
use crate::domain::ids::{
    AgentName, CallId, EngineId, OperationId, OrderId, PaymentId, ProviderName, ProviderRef,
    ReviewerName, SessionId, ToolName,
};
use crate::domain::key::IdempotencyKey;
use crate::domain::notice::NoticeEvent;
use crate::domain::opening::{Got, Resolved};
use crate::domain::operation::{Operation, OperationRow};
use crate::domain::policy::Circuit;
use crate::domain::report::{Report, ReportQuery};
use crate::domain::tool_call::{ToolCall, ToolResult};
use crate::domain::transition::{Event, Refusal, Step};

pub use notice::{Channel, Notice, NoticeCounts, Went};
pub use query::{
    AuditPage, AuditQuery, AuditRow, Audited, BucketSeen, CallPage, CallQuery, Counts, Detail,
    Filter, Listed, Mark, Page, PageQuery, Sort, Tab,
};
pub use recovery::{
    Acknowledged, EventCounts, EventLine, EventSource, EventWent, MAX_EVENT, Names, NewEvent,
    NotAcknowledged, Onward, PageTaken, Recovery, Span, StoredEvent, Trouble, Watched,
};

pub use serving::{AgentSeen, AttemptTimes, BEYOND_MS, NewAgent, OwnPage, Serving};

/// A shared handle on a ledger.
pub type SharedLedger = Arc<dyn Ledger>;

/// Why the ledger could not answer. A refusal of the domain is not an error.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("{0}")]
    NotALedger(String),
    #[error("the ledger cannot be reached: {0}")]
    Unreachable(String),
    #[error(
        "the ledger was written for {stamped}; this configuration is {configured}. Use another ledger or the provider it was bound to"
    )]
    Bound { stamped: String, configured: String },
    #[error("the ledger refused the write: {0}")]
    Constraint(String),
    #[error("the ledger holds something that cannot be read: {0}")]
    Damaged(String),
}

/// A call as it comes in.
#[derive(Clone, Debug)]
pub struct NewCall {
    pub id: CallId,
    pub agent: AgentName,
    pub tool: ToolName,
    /// Canonical JSON text.
    pub arguments: String,
    pub session: Option<SessionId>,
}

/// What accepting a call found.
#[derive(Clone, Debug)]
pub enum Accepted {
    /// Stored now, durably.
    New(ToolCall),
    /// This agent's call of that id, with the same arguments, is known.
    Known(ToolCall),
    /// The id is known with other arguments.
    Conflict,
}

/// A call under an engine's lease.
#[derive(Clone, Debug)]
pub struct LeasedCall {
    pub call: ToolCall,
    pub engine: EngineId,
    /// Fences writes of an engine that lost the lease (I25).
    pub epoch: i64,
    /// By the ledger's clock, as all instants of the call.
    pub leased_at: Instant,
}

/// The rows of an order and payment, and a mark that changes when any of them does.
#[derive(Clone, Debug)]
pub struct OrderRows {
    pub got: Got,
    pub mark: String,
}

/// What opening a row needs; the ledger repeats get and check in its own transaction (step 5).
#[derive(Clone, Debug)]
pub struct OpenRow {
    pub id: OperationId,
    pub key: IdempotencyKey,
    pub tool: ToolName,
    pub provider: ProviderName,
    pub arguments: Arguments,
    /// Empty where the provider knows no payments.
    pub resolved: Option<Resolved>,
    /// The exact bytes every attempt sends.
    pub request: Vec<u8>,
    /// Mark of [`OrderRows`] from before the provider was read.
    pub mark: String,
}

/// What opening gave.
#[derive(Clone, Debug)]
pub enum Opening {
    /// Committed with its key, before anything is sent.
    Opened(OperationId),
    /// An existing row answers.
    Row(OperationId),
    /// The call ends here.
    Answer(Box<ToolResult>),
    /// A row of this order or payment changed since the provider was read, or another engine has the
    /// call now: start again.
    Changed,
}

/// What an attempt to drive a row gave.
#[derive(Clone, Debug)]
pub enum Drive {
    /// This call drives it now.
    Mine(Box<Operation>),
    /// Another call drives it, or another engine has this call now; wait for the answer.
    Joined,
    /// Closed, unknown or held: nothing is left to drive.
    Settled,
    /// It is one equal call too many (R96): nothing is sent for it, and this is its answer.
    Broken(Box<ToolResult>),
}

/// What a read of a provider is for, and so which allowance pays for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFor {
    /// A call that waits for its row: one of the provider's `rate`, as what it sends then (S22).
    Call,
    /// A look at what is there already: one of the provider's `read_rate`, the read budget (S23).
    Look,
}

/// A tool's shared state.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolState {
    pub tool: ToolName,
    /// Who paused it and why.
    pub paused: Option<(String, String)>,
    pub circuit: Circuit,
}

/// An engine as others see it through the ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineSeen {
    pub engine: EngineId,
    pub host: String,
    pub pid: u32,
    pub workers: u32,
    pub in_flight: u32,
    pub started_at: Instant,
    pub seen_at: Instant,
    pub stopped: bool,
}

/// What a ledger is bound to at its first send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub provider: ProviderName,
    /// Scheme, host and port of its API.
    pub origin: String,
    pub account: Option<String>,
    /// `simulator`, `test` or `live`.
    pub mode: String,
}

impl Stamp {
    /// Whether a ledger with these stamps may be sent to this provider: all its providers are of one mode,
    /// and each is reached at one origin and, as far as they are known, one account.
    ///
    /// # Errors
    /// [`LedgerError::Bound`], which names both.
    pub fn fits(&self, known: &[Self]) -> Result<(), LedgerError> {
        let account = |k: &Self| match (&k.account, &self.account) {
            (Some(known), Some(ours)) => known == ours,
            (None, _) | (_, None) => true,
        };
        let other_mode = known.iter().find(|k| k.mode != self.mode);
        let other_place = known
            .iter()
            .find(|k| k.provider == self.provider && (k.origin != self.origin || !account(k)));
        match other_mode.or(other_place) {
            Some(other) => Err(LedgerError::Bound {
                stamped: other.to_string(),
                configured: self.to_string(),
            }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = self.account.as_deref().unwrap_or("an unnamed account");
        let Self {
            provider,
            origin,
            mode,
            ..
        } = self;
        write!(f, "{provider} ({mode}, {account}) at {origin}")
    }
}

/// An answer of the domain, or a failure of the store.
pub type Applied = Result<Result<Step, Refusal>, LedgerError>;

/// The ledger in domain steps. Every method is one transaction; none is cancelled halfway when the
/// caller's future is dropped.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Names the damage of a corrupted store, before anything is sent (finding 11 of `traps.md`).
    async fn check(&self) -> Result<(), LedgerError>;

    // --- calls ---------------------------------------------------------------------------------

    /// Stores a call durably before it is acknowledged (I26).
    async fn accept_call(&self, call: NewCall) -> Result<Accepted, LedgerError>;
    /// Takes up to `max` calls that wait or whose engine is gone, oldest first.
    async fn lease_calls(
        &self,
        engine: &EngineId,
        lease: Duration,
        max: u32,
    ) -> Result<Vec<LeasedCall>, LedgerError>;
    /// Takes this one call, if nobody has it.
    async fn lease_call(
        &self,
        engine: &EngineId,
        lease: Duration,
        agent: &AgentName,
        id: &CallId,
    ) -> Result<Option<LeasedCall>, LedgerError>;
    /// Extends what this engine knows that it holds, with the rows that those calls drive; answers how
    /// many calls that were. What it was given without hearing of it runs out, and is taken again (L1).
    async fn renew(
        &self,
        engine: &EngineId,
        lease: Duration,
        held: &[LeasedCall],
    ) -> Result<u64, LedgerError>;
    /// Gives back what this engine holds without having begun to send.
    async fn release(&self, call: &LeasedCall) -> Result<(), LedgerError>;
    /// Ends a call with the answer its row gives now; joined calls get the same. `None` where the
    /// lease is lost: whoever has the call now answers it.
    async fn finish_call(&self, call: &LeasedCall) -> Result<Option<ToolResult>, LedgerError>;
    /// Ends a call that got no row, likewise.
    async fn answer_call(
        &self,
        call: &LeasedCall,
        result: ToolResult,
    ) -> Result<Option<ToolResult>, LedgerError>;
    /// Notes that the caller has the answer.
    async fn delivered(&self, agent: &AgentName, id: &CallId) -> Result<(), LedgerError>;

    // --- operations ----------------------------------------------------------------------------

    /// Step 3 of the protocol, on the rows of the order and (when known) the payment.
    async fn get(
        &self,
        tool: &ToolName,
        args: &Arguments,
        payment: Option<&PaymentId>,
    ) -> Result<OrderRows, LedgerError>;
    /// Step 5: the row with its key, once, or whoever was first.
    async fn open(&self, call: &LeasedCall, row: OpenRow) -> Result<Opening, LedgerError>;
    /// Takes the right to drive a row, or joins its driver; a dead driver's attempt in flight is
    /// recorded as interrupted.
    async fn drive(
        &self,
        operation: &OperationId,
        call: &LeasedCall,
        lease: Duration,
    ) -> Result<Drive, LedgerError>;
    /// Counts an attempt durably, if everything allows it (I7).
    async fn authorise(&self, operation: &OperationId, call: &LeasedCall) -> Applied;
    /// Applies any other event. Which objects are attached elsewhere is read in the same transaction.
    async fn apply(&self, operation: &OperationId, event: Event) -> Applied;
    /// Rows that a sweep may have something to do for: open ones, and any with an attempt that nobody
    /// drives any more.
    async fn sweepable(&self) -> Result<Vec<OperationId>, LedgerError>;

    // --- shared limits ---------------------------------------------------------------------------

    /// Takes one read of the provider from the allowance it is for, or says how long to wait.
    async fn take_read(
        &self,
        provider: &ProviderName,
        reads_for: ReadFor,
    ) -> Result<Result<(), Duration>, LedgerError>;
    /// Takes the right to one review lookup: one at a time per operation, and a cooldown.
    async fn begin_lookup(
        &self,
        operation: &OperationId,
        by: &ReviewerName,
    ) -> Result<Result<(), LookupBusy>, LedgerError>;
    /// Whether a review lookup would be refused now; takes nothing.
    async fn lookup_busy(&self, operation: &OperationId)
    -> Result<Option<LookupBusy>, LedgerError>;
    /// Ends it.
    async fn end_lookup(&self, operation: &OperationId) -> Result<(), LedgerError>;
    /// Notes a failed connection, which is no attempt but counts towards the circuit.
    async fn connection_failed(
        &self,
        tool: &ToolName,
        operation: &OperationId,
    ) -> Result<(), LedgerError>;
    /// Notes a read-only probe of an open circuit.
    async fn probed(&self, tool: &ToolName, succeeded: bool) -> Result<(), LedgerError>;
    /// Pauses or resumes a tool.
    async fn pause(&self, tool: &ToolName, by: Option<(&str, &str)>) -> Result<(), LedgerError>;
    /// Binds the ledger at the first send, or refuses another origin, account or mode.
    async fn bind(&self, stamp: &Stamp) -> Result<(), LedgerError>;
    /// Tells others that this engine lives.
    async fn engine_seen(&self, engine: &EngineSeen) -> Result<(), LedgerError>;
    /// A lead accepts the wall clock as it is now.
    async fn accept_clock(&self, by: &ReviewerName) -> Result<(), LedgerError>;
    /// Whether the wall clock ran back behind the ledger's mark or away from the boot clock.
    async fn clock_alarm(&self) -> Result<bool, LedgerError>;

    // --- notices -----------------------------------------------------------------------------------

    /// Takes the oldest due notice of these events: for `lease` nobody else delivers it. Notices that
    /// nobody delivered for a day are given up on the way.
    async fn take_notice(
        &self,
        events: &[NoticeEvent],
        lease: Duration,
    ) -> Result<Option<Notice>, LedgerError>;
    /// Writes how a delivery went.
    async fn notice_went(&self, notice: &Notice, went: Went) -> Result<(), LedgerError>;
    /// Tells of open rows whose key runs out soon, once per deadline; answers of how many.
    async fn tell_expiring(&self) -> Result<u64, LedgerError>;
    async fn notice_counts(&self) -> Result<NoticeCounts, LedgerError>;

    // --- what was missed ---------------------------------------------------------------------------

    /// The provider's events, and the rows that are looked after.
    fn recovery(&self) -> &dyn Recovery;

    // --- the gateway -------------------------------------------------------------------------------

    /// Agents with their tokens, and what is their own.
    fn serving(&self) -> &dyn Serving;

    // --- reading -----------------------------------------------------------------------------------

    async fn page(&self, query: &PageQuery) -> Result<Page, LedgerError>;
    async fn counts(&self) -> Result<Counts, LedgerError>;
    /// The first operations of the review list, most urgent first.
    async fn review_head(&self, limit: u32) -> Result<Vec<OperationId>, LedgerError>;
    async fn detail(&self, operation: &OperationId) -> Result<Option<Detail>, LedgerError>;
    async fn rows(&self, operations: &[OperationId]) -> Result<Vec<OperationRow>, LedgerError>;
    /// Of these operations the rows that have another last audit entry than the given one: those that
    /// moved since they were read.
    async fn moved(&self, seen: &[(OperationId, i64)]) -> Result<Vec<OperationRow>, LedgerError>;
    async fn call(&self, agent: &AgentName, id: &CallId) -> Result<Option<ToolCall>, LedgerError>;
    async fn calls(&self, query: &CallQuery) -> Result<CallPage, LedgerError>;
    /// Those of these calls that there are, as they stand now.
    async fn calls_of(&self, ids: &[(AgentName, CallId)]) -> Result<Vec<ToolCall>, LedgerError>;
    /// Audit entries of all operations, newest first.
    async fn audit(&self, query: &AuditQuery) -> Result<AuditPage, LedgerError>;
    /// The figures of a span, in one pass over its operations. Takes seconds on a large ledger.
    async fn report(&self, query: &ReportQuery) -> Result<Report, LedgerError>;
    /// Shared rates that are partly used up.
    async fn buckets(&self) -> Result<Vec<BucketSeen>, LedgerError>;
    async fn tools(&self) -> Result<Vec<ToolState>, LedgerError>;
    async fn engines(&self) -> Result<Vec<EngineSeen>, LedgerError>;
    async fn stamps(&self) -> Result<Vec<Stamp>, LedgerError>;
    /// The rows of an order or payment, for the sums of [`crate::domain::opening`].
    async fn order_rows(
        &self,
        tool: &ToolName,
        order: &OrderId,
        payment: Option<&PaymentId>,
    ) -> Result<Vec<OperationRow>, LedgerError>;
    /// Whom else these objects belong to.
    async fn owners(
        &self,
        provider: &ProviderName,
        refs: &[ProviderRef],
    ) -> Result<Vec<(ProviderRef, OperationId)>, LedgerError>;
    /// A number that is another one whenever anything was committed since, by whomever: asked of the
    /// store itself, so that "nothing changed" is a fact and not the lack of a hint.
    async fn version(&self) -> Result<i64, LedgerError>;
    /// Moves whenever something changed, here or in another process: a hint, without content.
    fn changed(&self) -> watch::Receiver<u64>;
    /// Waits for what is being written; nothing is written as long as the answer is held. For a
    /// process that is about to be stopped, which would keep the store's lock from all others (U56).
    async fn still(&self) -> Still<'_>;
    /// Waits for what is being written and closes.
    async fn close(&self);
}

/// Nobody in this process writes while this is held.
pub type Still<'a> = Box<dyn Send + 'a>;

/// Why a review lookup may not run now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupBusy {
    #[error("{by} is looking it up right now")]
    Running { by: String },
    #[error(
        "it was looked up a moment ago; again in {} s, at {}",
        wait.as_secs().saturating_add(1),
        again_at.format("%H:%M:%SZ")
    )]
    Cooldown { wait: Duration, again_at: Instant },
}

/// Marks objects of `objects` that belong to another operation than `operation`.
#[must_use]
pub fn mark_taken(
    objects: Vec<ProviderObject>,
    owners: &[(ProviderRef, OperationId)],
    operation: &OperationId,
) -> Vec<(ProviderObject, bool)> {
    objects
        .into_iter()
        .map(|o| {
            let taken = owners
                .iter()
                .any(|(id, owner)| *id == o.id && owner != operation);
            (o, taken)
        })
        .collect()
}
