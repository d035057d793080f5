//! The form of a scenario file: steps, and what each may do to a refund request.
//!
//! Owns: reading such a file and the checks that make it safe to run. Never: carries a step out
//! (`execution.rs`). Tests: below, and `tests/simulator/` runs every scenario over HTTP.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fault::PlanError;

/// A scenario's file: what happens to the first, second … request of a key. The last step
/// repeats for all further ones.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// One sentence for a list of scenarios.
    pub about: String,
    /// With it the fault lasts this long (virtual time) from the first refund request and hits
    /// reads too, which get the first step's answer.
    #[serde(default)]
    pub(super) window_s: Option<u32>,
    #[serde(rename = "step")]
    pub(super) steps: Vec<Step>,
}

/// What happens to one refund request; nothing given means: honest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Step {
    /// How the idempotency layer treats the request.
    pub keys: Keys,
    /// Somebody refunds in the dashboard just before.
    pub external: Option<External>,
    /// The customer disputes the charge just before.
    pub disputed: bool,
    /// Whether the request is executed. Without it and without `saved` the request does not even
    /// reach the key layer.
    pub effect: bool,
    /// With `effect = false`: the refund is made after all, so much later.
    pub late_s: Option<u32>,
    /// What becomes of the refund object.
    pub refund: Course,
    /// Further refunds with the same metadata, made together with ours.
    pub copies: u32,
    /// Failed refunds of somebody else that are newer than ours.
    pub newer: u32,
    /// Said instead of the true answer.
    pub answer: Option<Answer>,
    /// Whether `answer` is also what is saved under the key (S3, S12).
    pub saved: bool,
    /// Other requests of the key get 409 for so long (S8).
    pub busy_s: u32,
    /// So many other requests of the key get 409 however late they come.
    pub conflicts: u32,
    /// How the reply leaves, or does not.
    pub reply: ReplyKind,
    /// How long the reply takes (virtual time).
    pub delay_s: u32,
}

impl Default for Step {
    fn default() -> Self {
        Self {
            keys: Keys::Honoured,
            external: None,
            disputed: false,
            effect: true,
            late_s: None,
            refund: Course::default(),
            copies: 0,
            newer: 0,
            answer: None,
            saved: false,
            busy_s: 0,
            conflicts: 0,
            reply: ReplyKind::Send,
            delay_s: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Keys {
    Honoured,
    /// As if no key had been sent (S9, M36).
    Ignored,
    /// As if somebody else had used the key with other parameters (S6).
    Foreign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum External {
    SameAmount,
    Remaining,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReplyKind {
    Send,
    /// Nothing is said until the client hangs up.
    Hold,
    /// The connection closes without a reply.
    Close,
    /// The second half of the body is missing.
    Garbled,
    WrongAmount,
}

/// A refund's status (S28).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundStatus {
    /// Accepted, not final.
    Pending,
    /// The customer has to do something first; the only status that can be canceled (S38).
    RequiresAction,
    /// Done, although it may still turn failed (S35).
    Succeeded,
    /// The money is back with the merchant.
    Failed,
    /// Canceled by API.
    Canceled,
}

impl RefundStatus {
    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::RequiresAction => "requires_action",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// Whether the refund's amount is taken from the charge.
    #[must_use]
    pub fn takes_money(self) -> bool {
        matches!(self, Self::Pending | Self::RequiresAction | Self::Succeeded)
    }
}

/// The life of a refund object: its first status and what it turns into (S35).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Course {
    pub status: RefundStatus,
    #[serde(default)]
    pub then: Option<RefundStatus>,
    #[serde(default)]
    pub after_s: u32,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            status: RefundStatus::Succeeded,
            then: None,
            after_s: 0,
        }
    }
}

/// A scripted answer: Stripe's error envelope, or `text` as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub status: u16,
    #[serde(default, rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub code: Option<String>,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl Step {
    /// The request is answered, or lost, before the key layer: no effect, nothing saved.
    pub fn never_arrives(&self) -> bool {
        !self.effect && !self.saved
    }

    /// The reply comes late or never.
    pub fn waits(&self) -> bool {
        self.reply == ReplyKind::Hold || self.delay_s > 0
    }
}

impl Script {
    /// Reads a scenario file; `name` is only for the error.
    ///
    /// # Errors
    /// If the text is not a scenario, or one that could not be carried out.
    pub fn parse(name: &str, text: &str) -> Result<Self, PlanError> {
        let fail = |detail: String| PlanError::Script {
            name: name.to_owned(),
            detail,
        };
        let script: Self = toml::from_str(text).map_err(|e| fail(e.to_string()))?;
        script.check().map_err(|e| fail(e.to_owned()))?;
        Ok(script)
    }

    /// The step for the `nth` (from 1) request of a key.
    pub(super) fn step(&self, nth: u32) -> Step {
        let index = usize::try_from(nth.saturating_sub(1)).unwrap_or(usize::MAX);
        self.steps
            .get(index)
            .or(self.steps.last())
            .cloned()
            .unwrap_or_default()
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.steps.is_empty() {
            return Err("a scenario needs at least one [[step]]");
        }
        if self.window_s.is_some() && self.steps.iter().any(|s| s.answer.is_none()) {
            return Err("a scenario with window_s needs an answer in every step");
        }
        for step in &self.steps {
            let silent = matches!(step.reply, ReplyKind::Hold | ReplyKind::Close);
            if step.never_arrives() && step.answer.is_none() && !silent {
                return Err("effect = false needs an answer, or reply = \"hold\" or \"close\"");
            }
            if step.saved && step.answer.is_none() {
                return Err("saved = true needs an answer to save");
            }
            if step.late_s.is_some() && step.effect {
                return Err("late_s needs effect = false");
            }
            if step.copies > 100 || step.newer > 1000 {
                return Err("at most 100 copies and 1000 newer refunds");
            }
            if let Some(answer) = &step.answer
                && hyper::StatusCode::from_u16(answer.status).is_err()
            {
                return Err("status must be an HTTP status");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::Scenario;

    #[test]
    fn the_last_step_repeats() {
        let script = Scenario::Overlap409.script().expect("script");
        assert_eq!(script.step(1).conflicts, 1);
        assert_eq!(script.step(2), script.step(9));
        assert_eq!(script.step(2), Step::default(), "honest");
    }

    #[test]
    fn files_that_cannot_be_carried_out_are_refused() {
        for text in [
            "about = 'x'",
            "about = 'x'\nstep = []",
            "about = 'x'\n[[step]]\neffect = false",
            "about = 'x'\n[[step]]\nsaved = true",
            "about = 'x'\n[[step]]\nlate_s = 3",
            "about = 'x'\n[[step]]\nnewer = 5000",
            "about = 'x'\n[[step]]\nansver = 5",
            "about = 'x'\n[[step]]\nanswer = { status = 9 }",
        ] {
            assert!(Script::parse("test", text).is_err(), "{text}");
        }
    }
}
