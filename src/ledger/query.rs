//! What is read from a ledger: pages, counts, one operation with its history.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::Instant;
use crate::domain::ids::{AgentName, CallId, EngineId, OperationId, OrderId, SessionId, ToolName};
use crate::domain::operation::{Operation, OperationRow, UnknownReason};
use crate::domain::tool_call::{CallState, Delivery, ToolCall};

/// A list on the screen, or a `--status` of the CLI.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Tab {
    /// What needs a person, in the order of urgency.
    Review,
    Open,
    Unknown,
    Succeeded,
    Failed,
    #[default]
    All,
}

/// The column a list is sorted by.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Sort {
    #[default]
    Updated,
    Created,
    Amount,
    Attempts,
    KeyLeft,
    Order,
}

/// Which rows. All parts must hold; free text is matched literally (no wildcards reach SQL).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub tool: Option<String>,
    pub order: Option<String>,
    pub session: Option<String>,
    pub call: Option<String>,
    pub key: Option<String>,
    pub provider_ref: Option<String>,
    pub reason: Option<UnknownReason>,
    /// Created longer ago than this.
    pub age_over: Option<Duration>,
    /// Key time left below this.
    pub left_under: Option<Duration>,
    /// Minor units.
    pub amount_over: Option<i64>,
    /// Anywhere in operation id, order, payment or provider's id.
    pub text: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct PageQuery {
    pub tab: Tab,
    pub filter: Filter,
    pub sort: Sort,
    /// Smallest first instead of largest first.
    pub ascending: bool,
    /// Continues behind this row, wherever it stands now (keyset, not offset).
    pub after: Option<OperationId>,
    /// Continues where a page ended; goes before `after`.
    pub from: Option<Mark>,
    pub limit: u32,
    /// At most about so many rows are looked at for a filter that no index answers; then the page ends
    /// early, and says where to go on. Without it the page is filled or the list ends.
    pub budget: Option<u32>,
}

/// A place in a list: where a page ended. The next one begins there even if the row that stood there
/// has moved since.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Of the review list; 0 in the others.
    pub(super) rank: u8,
    pub(super) key: Key,
    pub(super) second: i64,
    pub(super) row: i64,
}

/// What a list is ordered by first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Before all.
    #[default]
    First,
    Int(i64),
    Text(String),
    /// Behind all.
    Last,
}

/// A row in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub row: OperationRow,
    /// An engine drives it now.
    pub driven: bool,
    pub sessions: Vec<SessionId>,
}

/// A page and whether more follows.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub rows: Vec<Listed>,
    /// More may follow; a page that was looked for within a budget may have fewer rows than asked for.
    pub more: bool,
    /// Where it ended, if more may follow.
    pub next: Option<Mark>,
}

/// How many rows each list has, and the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Counted up to 1000.
    pub review: u64,
    pub open: u64,
    pub unknown: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// Calls accepted and not begun.
    pub queued: u64,
    /// Calls under a lease.
    pub running: u64,
    /// Attempts without an outcome.
    pub in_flight: u64,
}

impl Counts {
    /// All operations.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.open + self.unknown + self.succeeded + self.failed
    }
}

/// One operation with everything that belongs to it.
#[derive(Clone, Debug)]
pub struct Detail {
    pub op: Operation,
    pub calls: Vec<ToolCall>,
    pub audit: Vec<AuditRow>,
    /// Who drives it now.
    pub driver: Option<(EngineId, CallId)>,
}

/// One entry of an operation's audit chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditRow {
    pub seq: i64,
    pub at: Instant,
    pub actor: String,
    pub os_user: String,
    pub action: String,
    pub detail: serde_json::Value,
    pub hash: String,
}

/// Which calls, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallQuery {
    pub state: Option<CallState>,
    pub delivery: Option<Delivery>,
    pub tool: Option<ToolName>,
    pub order: Option<OrderId>,
    pub session: Option<SessionId>,
    /// Oldest first instead.
    pub ascending: bool,
    /// Continues behind this call (keyset, not offset).
    pub after: Option<(AgentName, CallId)>,
    pub limit: u32,
}

/// A page of calls and whether more follows.
#[derive(Clone, Debug, Default)]
pub struct CallPage {
    pub calls: Vec<ToolCall>,
    pub more: bool,
}

/// Which audit entries of all operations, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    pub operation: Option<OperationId>,
    /// Exactly, as in `reviewer:ann` or `engine`.
    pub actor: Option<String>,
    pub action: Option<String>,
    /// Oldest first instead.
    pub ascending: bool,
    /// Continues behind the entry of this number (keyset, not offset).
    pub after: Option<i64>,
    pub limit: u32,
}

/// An audit entry with its place in the ledger's history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audited {
    /// Grows with every entry of the ledger.
    pub audit_id: i64,
    pub operation_id: OperationId,
    #[serde(flatten)]
    pub entry: AuditRow,
}

/// A page of audit entries and whether more follows.
#[derive(Clone, Debug, Default)]
pub struct AuditPage {
    pub rows: Vec<Audited>,
    pub more: bool,
}

/// A shared rate that was used: tokens are spaced evenly, so until `full_at` there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketSeen {
    /// As the ledger names it: `tool:TOOL`, `provider:PROVIDER` (attempts), `read:PROVIDER`.
    pub name: String,
    /// When the next token is there.
    pub full_at: Instant,
}
