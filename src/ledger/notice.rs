//! Notices as they are handed to whoever delivers them.

use std::time::Duration;

use crate::domain::Instant;
use crate::domain::ids::{SessionId, ToolName};
use crate::domain::notice::NoticeEvent;
use crate::domain::operation::OperationRow;
use crate::domain::text::SafeText;

/// A notice that one process may deliver now, and what it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub id: i64,
    pub event: NoticeEvent,
    pub tool: ToolName,
    /// The row as it stands now; none for what concerns a whole tool.
    pub row: Option<OperationRow>,
    /// Conversations whose calls reached the row, each once, at most 100.
    pub sessions: Vec<SessionId>,
    /// Why, as it was when it happened: a word of the row, or a sentence of ours.
    pub reason: Option<SafeText>,
    pub at: Instant,
    /// Deliveries begun, this one included; fences whoever took it before.
    pub tries: u32,
    /// The channels that have it already.
    pub reached: Vec<Channel>,
}

/// A way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Channel {
    Command,
    Webhook,
}

/// How a delivery went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Went {
    /// This channel has it; the others are still to come.
    Reached(Channel),
    /// Everybody has it.
    Sent,
    /// Again after so long.
    Later { wait: Duration, why: SafeText },
    /// Never again.
    GaveUp { why: SafeText },
}

/// How many notices there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoticeCounts {
    pub pending: u64,
    pub sent: u64,
    pub gave_up: u64,
    /// The part of those that were tried in vain and happened within the last day.
    pub lost_lately: u64,
}
