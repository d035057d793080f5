//! What an event leads to: the change with its one audit entry, what follows, or why nothing changes.
//!
//! Owns: these shapes, and no rule; [`super::transition`] makes them. Tests: `tests/protocol/`.

use std::time::Duration;

use serde_json::Value;

use super::ids::Actor;
use super::operation::{Operation, Status};
use super::review_event;

/// A change, ready to be written.
#[derive(Clone, Debug)]
pub struct Step {
    pub op: Operation,
    pub audit: AuditEntry,
    pub next: Next,
}

/// The one audit entry of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    pub actor: Actor,
    pub action: Action,
    pub detail: Value,
}

/// What an audit entry says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    Opened,
    Authorised,
    Finished,
    Observed,
    Swept,
    NeverSent,
    NoLongerFits,
    Proposed,
    Closed,
    Approved,
    Rejected,
    Stopped,
    Corrected,
    Noted,
    Claimed,
    Released,
    Snoozed,
}

impl Action {
    /// The word in the `action` column.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What the driver of the operation does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send attempt number … within the send window.
    Send { attempt: u32 },
    /// Wait, then try again with the same key, within the call's budget.
    Retry { retry_after: Option<Duration> },
    /// The call's attempts end here; the row stays as it is.
    EndCall,
    /// Look before anything else is sent (S34).
    Lookup,
    /// Closed or unknown: waiting calls are answered.
    Settled,
    /// A second person has to decide.
    Proposed,
    /// A held row was approved: an engine drives it.
    Due,
    /// Nothing follows.
    Nothing,
}

/// Why an event changes nothing. An answer, not an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the clock cannot be trusted; a lead has to accept it")]
    ClockAlarm,
    #[error("the row is {}", status.as_str())]
    NotOpen { status: Status },
    #[error("the row waits for approval")]
    Held,
    #[error("a row of this order or payment is contradicted")]
    Contradicted,
    #[error("the provider accepted it already")]
    Identified,
    #[error("a lookup has to come first")]
    LookupFirst,
    #[error("an attempt is in flight")]
    InFlight,
    #[error("another engine drives the row")]
    LeaseLost,
    #[error("the call has no attempts left")]
    CallSpent,
    #[error("the operation has no attempts left")]
    OperationSpent,
    #[error("the key may no longer be sent")]
    KeyExpired,
    #[error("the tool is paused")]
    Paused,
    #[error("the tool's circuit is open")]
    CircuitOpen,
    #[error("the rate limit asks to wait {} ms", wait.as_millis())]
    RateLimited { wait: Duration },
    #[error("there is no such attempt, or it has its outcome already")]
    NoSuchAttempt,
    #[error("nothing is due")]
    NothingDue,
    /// An automatic lookup or a repeated event: nothing is written, and so nothing audited (I33).
    #[error("it says nothing new")]
    NothingNew,
    #[error(transparent)]
    Review(review_event::ReviewRefusal),
}
