//! One request sent to the provider for an operation, always with its key and stored bytes.

use super::Instant;
use super::ids::{AgentName, CallId};
use super::outcome::{Outcome, OutcomeClass};
use super::text::SafeText;

/// One counted attempt. Append-only: its outcome is written once.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// 1, 2, … within the operation.
    pub number: u32,
    /// The call that spent it; call ids are scoped to their agent.
    pub agent: AgentName,
    pub call: CallId,
    /// When it was counted, which is before anything was sent (R49).
    pub authorised_at: Instant,
    /// Empty while it is in flight.
    pub result: Option<AttemptResult>,
}

/// How an attempt ended; the part of an [`Outcome`] that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptResult {
    pub finished_at: Instant,
    pub class: OutcomeClass,
    pub http_status: Option<u16>,
    pub request_id: Option<SafeText>,
    pub error: Option<SafeText>,
    pub replayed: bool,
    pub limiter: bool,
    pub already_refunded: bool,
}

impl AttemptResult {
    /// What is kept of `outcome`.
    #[must_use]
    pub fn of(outcome: &Outcome, finished_at: Instant) -> Self {
        Self {
            finished_at,
            class: outcome.class,
            http_status: outcome.http_status,
            request_id: outcome.request_id.clone(),
            error: outcome.error.clone(),
            replayed: outcome.replayed,
            limiter: outcome.limiter,
            already_refunded: outcome.already_refunded,
        }
    }
}

impl AttemptResult {
    /// Whether it was written for an attempt whose engine was gone: what that engine saw may still
    /// come, once (I25).
    #[must_use]
    pub fn was_interrupted(&self) -> bool {
        *self == Self::of(&Outcome::interrupted(), self.finished_at)
    }
}

impl Attempt {
    /// Still without an outcome.
    #[must_use]
    pub fn in_flight(&self) -> bool {
        self.result.is_none()
    }

    /// The outcome class, once there is one.
    #[must_use]
    pub fn class(&self) -> Option<OutcomeClass> {
        self.result.as_ref().map(|r| r.class)
    }

    /// Whether nobody knows if it had an effect: in flight, or of an undetermined class.
    #[must_use]
    pub fn undetermined(&self) -> bool {
        self.class().is_none_or(OutcomeClass::is_undetermined)
    }

    /// Whether it cannot have had an effect: no byte left, or a limiter turned it away (S5).
    #[must_use]
    pub fn without_effect(&self) -> bool {
        self.result.as_ref().is_some_and(|r| {
            let limited = r.class == OutcomeClass::RetryableFailure && r.limiter;
            r.class == OutcomeClass::NotSent || limited
        })
    }

    /// Whether a byte of it may have left.
    #[must_use]
    pub fn may_have_left(&self) -> bool {
        self.class() != Some(OutcomeClass::NotSent)
    }
}
