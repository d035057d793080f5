//! What the gateway asks of a ledger: whose token it is, what is an agent's own, how the ledger stands.
//!
//! Owns: the shapes, and the steps as a trait of their own beside [`super::Ledger`]. Never: sees a token,
//! only its hash. Tests: `tests/gateway/`, `tests/verify/`.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{LedgerError, Listed};
use crate::domain::Instant;
use crate::domain::agent::{Agent, KeptToken};
use crate::domain::ids::{AgentName, CallId, OperationId, ProviderName, ReviewerName, ToolName};
use crate::domain::outcome::OutcomeClass;
use crate::domain::tool_call::ToolCall;

/// A token as it is added.
#[derive(Clone, Debug)]
pub struct NewAgent {
    pub name: AgentName,
    pub token: KeptToken,
    /// `None`: all tools.
    pub tools: Option<BTreeSet<ToolName>>,
    pub by: ReviewerName,
}

/// A token that is or was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSeen {
    pub agent: Agent,
    pub added_at: Instant,
    pub added_by: ReviewerName,
    /// When it was revoked and by whom.
    pub revoked: Option<(Instant, ReviewerName)>,
}

/// Attempts of a provider that ended in one class within one span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptTimes {
    pub provider: ProviderName,
    pub outcome: OutcomeClass,
    /// From authorised to finished, at most so many milliseconds ([`BEYOND_MS`]: however many).
    pub le_ms: u64,
    pub count: u64,
    /// Of all of them together.
    pub total_ms: u64,
}

/// The last span of [`AttemptTimes`].
pub const BEYOND_MS: u64 = 999_999_999;

/// Operations that an agent's calls reached, and whether more follow.
#[derive(Clone, Debug, Default)]
pub struct OwnPage {
    pub rows: Vec<Listed>,
    pub more: bool,
}

/// The gateway's steps. Every method is one transaction.
#[async_trait]
pub trait Serving: Send + Sync {
    /// Adds a token; `false` where the agent has one already.
    async fn add_agent(&self, new: NewAgent) -> Result<bool, LedgerError>;
    /// Revokes the agent's token; `false` where it has none.
    async fn revoke_agent(&self, name: &AgentName, by: &ReviewerName) -> Result<bool, LedgerError>;
    /// All tokens there are and were, the newest first, at most 1000.
    async fn agents(&self) -> Result<Vec<AgentSeen>, LedgerError>;
    /// Whose token has this name, and its hash; nobody's once it is revoked.
    async fn agent_of(&self, token_id: &str) -> Result<Option<(Agent, String)>, LedgerError>;
    /// How many calls of an agent have no answer yet, counted up to `at_most`.
    async fn waiting_of(&self, agent: &AgentName, at_most: u32) -> Result<u32, LedgerError>;
    /// Notes that these callers have their answers.
    async fn all_delivered(&self, calls: &[(AgentName, CallId)]) -> Result<(), LedgerError>;
    /// Operations that calls of this agent reached, in the order of their ids, behind `after`. The
    /// conversations are the agent's own.
    async fn own_operations(
        &self,
        agent: &AgentName,
        after: Option<&OperationId>,
        limit: u32,
    ) -> Result<OwnPage, LedgerError>;
    /// One operation, if a call of this agent reached it.
    async fn own_operation(
        &self,
        agent: &AgentName,
        operation: &OperationId,
    ) -> Result<Option<Listed>, LedgerError>;
    /// Those of these calls that have their answer.
    async fn answered_of(
        &self,
        calls: &[(AgentName, CallId)],
    ) -> Result<Vec<ToolCall>, LedgerError>;
    /// How attempts went, over the whole history.
    async fn attempt_times(&self) -> Result<Vec<AttemptTimes>, LedgerError>;
    /// Whether it could be written to now. Writes nothing.
    async fn writable(&self) -> Result<(), LedgerError>;
}
