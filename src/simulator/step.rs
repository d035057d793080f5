//! The parts of a scenario file: what may happen to one refund request, to what it makes, and to
//! the world around it.
//!
//! Owns: their names in a file and what each means. Never: reads a file (`script.rs`) or carries
//! anything out (`execution.rs`, `world.rs`, `webhooks.rs`). Tests: `tests/simulator/` runs every
//! part over HTTP.

use std::collections::BTreeMap;

use serde::Deserialize;

/// No client gives up before so long.
const PATIENCE_S: u32 = 10;

/// What happens to one refund request; nothing given means: honest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Step {
    /// How the idempotency layer treats the request.
    pub keys: Keys,
    /// Somebody refunds in the dashboard just before.
    pub external: Option<External>,
    /// The customer disputes the charge.
    pub dispute: Option<DisputeCourse>,
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
    /// What happens to the webhooks about the refund.
    pub webhook: WebhookFault,
}

impl Default for Step {
    fn default() -> Self {
        Self {
            keys: Keys::Honoured,
            external: None,
            dispute: None,
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
            webhook: WebhookFault::default(),
        }
    }
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

    /// The result of the request is said before any client gives up.
    pub fn is_answered(&self) -> bool {
        let said = matches!(self.reply, ReplyKind::Send | ReplyKind::WrongAmount);
        let executed = self.effect && self.answer.is_none() && self.keys == Keys::Honoured;
        said && executed && self.delay_s < PATIENCE_S
    }

    /// Why this step could not be carried out, and what to do.
    pub fn check(&self) -> Result<(), &'static str> {
        let silent = matches!(self.reply, ReplyKind::Hold | ReplyKind::Close);
        if self.never_arrives() && self.answer.is_none() && !silent {
            return Err(
                "effect = false needs something to say; add an answer, or reply = \"hold\" or \
                 \"close\"",
            );
        }
        if self.saved && self.answer.is_none() {
            return Err("saved = true needs an answer to save; add [step.answer]");
        }
        if self.late_s.is_some() && self.effect {
            return Err("late_s makes the refund later; add effect = false");
        }
        if self.copies > 100 || self.newer > 1000 || self.webhook.copies > 100 {
            return Err(
                "too many objects; at most 100 copies, 1000 newer refunds, 100 copies of a webhook",
            );
        }
        if self.refund.after_s > 0 && self.refund.then.is_none() {
            return Err("after_s of a refund needs then; say what it turns into");
        }
        self.answer.as_ref().map_or(Ok(()), Answer::check)
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

/// Why a refund is pending (S29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum PendingReason {
    #[default]
    Processing,
    InsufficientFunds,
    ChargePending,
}

/// Why a refund failed or was canceled (S30).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum FailureReason {
    LostOrStolenCard,
    #[default]
    ExpiredOrCanceledCard,
    ChargeForPendingRefundDisputed,
    InsufficientFunds,
    Declined,
    MerchantRequest,
    Unknown,
}

/// The life of a refund object: its first status and what it turns into (S35).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Course {
    pub status: RefundStatus,
    /// Said for as long as it is pending (S29, S37).
    pub pending_reason: PendingReason,
    pub then: Option<RefundStatus>,
    pub after_s: u32,
    /// Said if it fails (S30).
    pub failure_reason: FailureReason,
    /// The bank's reference number is known so much later (S39, S49); never without it.
    pub reference_after_s: Option<u32>,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            status: RefundStatus::Succeeded,
            pending_reason: PendingReason::default(),
            then: None,
            after_s: 0,
            failure_reason: FailureReason::default(),
            reference_after_s: None,
        }
    }
}

/// When a customer disputes the charge, and how that ends (S33, S69).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DisputeCourse {
    /// So long after the request; 0 is just before it.
    pub after_s: u32,
    /// Decided, if ever.
    pub then: Option<Verdict>,
    /// So long after it was opened.
    pub then_after_s: u32,
}

/// How a dispute was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    Won,
    Lost,
}

/// What happens to the webhooks about one refund (S66); nothing given means: honest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WebhookFault {
    /// None arrives, however often they are sent; the list of events has them.
    pub lost: bool,
    /// They are sent so much later.
    pub delay_s: u32,
    /// `….created` is sent so much later than the others, so that these overtake it.
    pub created_delay_s: u32,
    /// Each is sent so many times more.
    pub copies: u32,
    /// A second event, with an id of its own, says the same (S56).
    pub twin: bool,
    /// Signed with a secret that nobody knows.
    pub wrong_secret: bool,
    /// How much older than true the signature's time is.
    pub age_s: u32,
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

impl Answer {
    pub fn check(&self) -> Result<(), &'static str> {
        let known = (200..600).contains(&self.status);
        known
            .then_some(())
            .ok_or("status must be an HTTP status; write one from 200 to 599")
    }
}

/// What is different about every payment of the world.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Setting {
    /// ISO 4217, lower case.
    pub currency: String,
    /// What every charge came to, in minor units.
    pub amount: i64,
    pub charge: ChargeState,
    /// How it was paid; Stripe has cards for tests whose refunds fail or take their time (S35).
    pub payment_method: String,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            currency: "usd".to_owned(),
            amount: 100_000,
            charge: ChargeState::Captured,
            payment_method: "pm_card_visa".to_owned(),
        }
    }
}

impl Setting {
    pub fn check(&self) -> Result<(), &'static str> {
        let letters = self.currency.bytes().all(|b| b.is_ascii_lowercase());
        if self.currency.len() != 3 || !letters {
            return Err("currency of [world] must be three small letters, for example \"jpy\"");
        }
        let fits = (1..=99_999_999).contains(&self.amount);
        fits.then_some(())
            .ok_or("amount of [world] must be from 1 to 99999999 minor units")
    }
}

/// How the charges of the world stand (S33).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ChargeState {
    Captured,
    Uncaptured,
    Failed,
}

/// What reads of refunds meet (S68).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ReadFault {
    /// Lists show a refund only once it is so old.
    pub stale_s: u32,
    /// Said instead of a list or an object.
    pub answer: Option<Answer>,
    /// Only where a further page is asked for.
    pub next_pages: bool,
    /// So often for every payment; without it always.
    pub times: Option<u32>,
}

/// How much a client may ask, in the simulator's time (S22, S23); nothing given means: anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Allowance {
    pub per_second: Option<u32>,
    /// Of one endpoint, ids aside.
    pub per_endpoint: Option<u32>,
    /// Of all searches.
    pub searches: Option<u32>,
    /// GET requests in 30 days.
    pub reads: Option<u32>,
}
