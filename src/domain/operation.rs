//! The operation: one intended side effect, one ledger row, one idempotency key.

use serde::{Deserialize, Serialize};

use super::Instant;
use super::attempt::Attempt;
use super::evidence::{self, Bearing, Evidence, ObjectStatus, Seen, Source, Verdict};
use super::identity::Identity;
use super::ids::{
    ChargeId, OperationId, OrderId, PaymentId, ProviderName, ProviderRef, ReviewerName, ToolName,
};
use super::key::IdempotencyKey;
use super::money::{Currency, Money};
use super::outcome::OutcomeClass;
use super::policy::Terms;
use super::text::SafeText;

/// Where an operation stands. `open → succeeded | failed | unknown`, `unknown → succeeded | failed`;
/// a closed row changes only by a correction.
#[derive(
    Clone,
    Copy,
    Debug,
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
pub enum Status {
    Open,
    /// Nothing more is sent, ever again; a person or `confirmed` evidence settles it (R41).
    Unknown,
    Succeeded,
    Failed,
}

impl Status {
    /// The word in columns and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Succeeded or failed.
    #[must_use]
    pub fn is_closed(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed => true,
            Self::Open | Self::Unknown => false,
        }
    }
}

/// What is known of the effect at the provider.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Effect {
    /// No attempt can have had an effect.
    NotStarted,
    Possible,
    /// The provider's object is known.
    Identified,
    /// Proven not to exist.
    Absent,
}

/// Why a row is unknown.
#[derive(
    Clone,
    Copy,
    Debug,
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
pub enum UnknownReason {
    ServerError,
    AttemptsExhausted,
    KeyExpired,
    KeyMismatch,
    ReplyMismatch,
    UndeterminedRefusal,
    RefusalUnproven,
    LookupInconclusive,
    NoKeysAtProvider,
    PendingTooLong,
    SecondEffect,
    Stopped,
}

/// Why a row failed; the `class` of a `failed` answer.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FailureClass {
    ValidationFailure,
    PermissionDenied,
    EffectFailed,
    /// Nothing was ever sent; asking again is safe.
    Unavailable,
}

/// How evidence contradicts a row.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Contradiction {
    /// The bank returned the money.
    FailedAfterSucceeded,
    /// A late effect on a row closed as failed.
    EffectAfterFailed,
    /// Two objects of ours.
    SecondEffect,
    /// An id typed by a person turned out not to match.
    RefMismatch,
}

/// How a row may be closed.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Closing {
    Succeeded,
    Failed,
}

impl Closing {
    /// The status it leads to.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Succeeded => Status::Succeeded,
            Self::Failed => Status::Failed,
        }
    }
}

/// A decision that waits for a second person, bound to what its maker saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    pub decision: Closing,
    /// Whether it corrects a contradicted closed row instead of closing an open question.
    pub correction: bool,
    pub by: ReviewerName,
    pub note: SafeText,
    pub provider_ref: Option<ProviderRef>,
    /// The row's version its maker looked at.
    pub version: i64,
    /// Digest of the row's stored request.
    pub digest: String,
    pub at: Instant,
    pub expires_at: Instant,
}

/// Which proposal it is: no two of one row have the same maker and instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposalMark {
    pub by: ReviewerName,
    pub at: Instant,
}

impl Proposal {
    /// What an approval of this proposal, and of no other, is bound to.
    #[must_use]
    pub fn mark(&self) -> ProposalMark {
        ProposalMark {
            by: self.by.clone(),
            at: self.at,
        }
    }
}

/// What waits for a lead on a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The held row itself, by the digest of its stored request.
    Held {
        digest: String,
    },
    Proposal(ProposalMark),
}

/// What a person had before their eyes when they decided: decisions are bound to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookedAt {
    pub version: i64,
    /// A new proposal does not move the version, so approving is bound to it by itself.
    pub waiting: Option<Waiting>,
}

impl LookedAt {
    /// The row as it was read.
    #[must_use]
    pub fn of(row: &OperationRow) -> Self {
        Self {
            version: row.version,
            waiting: row.waiting(),
        }
    }
}

/// A ledger row without its history.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRow {
    pub id: OperationId,
    pub tool: ToolName,
    pub identity: Identity,
    /// Empty for a tool without orders.
    pub order_id: Option<OrderId>,
    /// Empty for a tool that moves none.
    pub money: Option<Money>,
    pub provider: ProviderName,
    pub payment: Option<PaymentId>,
    pub charge: Option<ChargeId>,
    /// The succeeded operation that this one names as its forerunner.
    pub after: Option<OperationId>,
    pub status: Status,
    pub effect: Effect,
    /// Waits for a lead's approval; nothing may be sent.
    pub held: bool,
    pub approved_by: Option<ReviewerName>,
    pub contradicted: Option<Contradiction>,
    pub key: IdempotencyKey,
    /// The exact bytes of the request, and their SHA-256; never change (I3).
    pub request: Vec<u8>,
    pub request_hash: String,
    pub attempts: u32,
    pub attempts_max: u32,
    pub key_created_at: Instant,
    /// First authorise + retention − margin; empty before.
    pub key_expires_at: Option<Instant>,
    pub first_authorised_at: Option<Instant>,
    pub last_authorised_at: Option<Instant>,
    pub last_outcome: Option<OutcomeClass>,
    pub reason: Option<UnknownReason>,
    pub failure: Option<FailureClass>,
    /// Why, in words that may be shown.
    pub failure_text: Option<SafeText>,
    pub verdict: Option<Verdict>,
    pub provider_ref: Option<ProviderRef>,
    pub pending_since: Option<Instant>,
    /// Moves with status, attempts, flags, verdict and the objects seen; what decisions are bound to.
    pub version: i64,
    pub corrections: u32,
    /// Number of the latest audit entry.
    pub audit_seq: i64,
    pub created_at: Instant,
    pub updated_at: Instant,
    pub unknown_at: Option<Instant>,
    pub closed_at: Option<Instant>,
    pub closed_by: Option<String>,
    pub proposal: Option<Proposal>,
    /// Who is looking at it; counts until its time is over. Warns others, blocks nobody.
    pub claim: Option<Claim>,
    /// Last in Review until then, or until the version moves.
    pub snoozed_until: Option<Instant>,
}

/// A reviewer's word to the others: I am looking at this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub by: ReviewerName,
    pub until: Instant,
}

impl OperationRow {
    /// The amount in minor units, where it moves money.
    #[must_use]
    pub fn minor(&self) -> Option<i64> {
        self.money.map(Money::minor)
    }

    /// The currency, where it moves money.
    #[must_use]
    pub fn currency(&self) -> Option<Currency> {
        self.money.map(Money::currency)
    }

    /// Whether an object's amount and currency are this row's; a row without money has nothing to say.
    #[must_use]
    pub fn same_money(&self, minor: Option<i64>, currency: Option<Currency>) -> bool {
        self.money
            .is_none_or(|m| minor == Some(m.minor()) && currency == Some(m.currency()))
    }

    /// What it is about, for people: the order, or else what makes it itself.
    #[must_use]
    pub fn subject(&self) -> String {
        match &self.order_id {
            Some(order) => format!("order {order}"),
            None => SafeText::new(self.identity.as_str()).to_string(),
        }
    }

    /// Who claims it at `now`.
    #[must_use]
    pub fn claimed_by(&self, now: Instant) -> Option<&ReviewerName> {
        let claim = self.claim.as_ref().filter(|c| now < c.until)?;
        Some(&claim.by)
    }

    /// What waits for a lead.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting> {
        if self.held {
            let digest = self.request_hash.clone();
            return Some(Waiting::Held { digest });
        }
        let proposal = self.proposal.as_ref()?;
        Some(Waiting::Proposal(proposal.mark()))
    }

    /// Until when it is put off, if it is at `now`.
    #[must_use]
    pub fn snoozed(&self, now: Instant) -> Option<Instant> {
        self.snoozed_until.filter(|until| now < *until)
    }

    /// Whether the row's first attempt lies ahead: the clock was corrected backwards since, so its
    /// stored deadline is later than the provider's, by an amount nobody knows (I10, I27).
    #[must_use]
    pub fn clock_ran_back(&self, now: Instant) -> bool {
        self.first_authorised_at.is_some_and(|first| now < first)
    }
}

/// An operation with the history that decides about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    pub row: OperationRow,
    /// In order of their numbers.
    pub attempts: Vec<Attempt>,
    /// In order of observation.
    pub evidence: Vec<Evidence>,
}

impl Operation {
    /// Whether an attempt has no outcome yet.
    #[must_use]
    pub fn in_flight(&self) -> bool {
        self.attempts.iter().any(Attempt::in_flight)
    }

    /// Whether another attempt than number `except` is undetermined or in flight.
    #[must_use]
    pub fn undetermined_besides(&self, except: u32) -> bool {
        self.attempts
            .iter()
            .any(|a| a.number != except && a.undetermined())
    }

    /// The latest attempt that ended with `charge_already_refunded` and has not been looked into:
    /// nothing may be sent before that lookup (S34).
    #[must_use]
    pub fn needs_lookup(&self) -> bool {
        self.row.status == Status::Open
            && self
                .attempts
                .last()
                .and_then(|a| a.result.as_ref())
                .is_some_and(|r| r.already_refunded)
    }

    /// Whether a provider (without keys, unless the tool is stricter) has to be asked what exists before anything more is sent to it: an
    /// attempt may have had an effect, and no complete search says that it had none (R76, R77, R81).
    #[must_use]
    pub fn needs_search(&self, terms: &Terms) -> bool {
        terms.searches_first()
            && self.row.status == Status::Open
            && self.row.provider_ref.is_none()
            && self.row.verdict != Some(Verdict::Absent)
            && self.attempts.iter().any(Attempt::undetermined)
    }

    /// The provider id that a person typed while the provider was unreachable, closed on, and nobody
    /// has fetched since.
    #[must_use]
    pub fn awaits_fetch(&self) -> Option<&ProviderRef> {
        let unfetched = self
            .evidence
            .iter()
            .rev()
            .find(|e| e.source == Source::TypedRef)
            .is_some_and(|e| matches!(e.seen, Seen::Unreachable { .. }));
        let seen = evidence::objects(&self.evidence);
        self.row.provider_ref.as_ref().filter(|id| {
            unfetched
                && self.row.status == Status::Succeeded
                && self.row.contradicted.is_none()
                && !seen.contains_key(id)
        })
    }

    /// The effect that attempts and evidence show.
    #[must_use]
    pub fn derived_effect(&self) -> Effect {
        let ours = evidence::objects(&self.evidence)
            .values()
            .any(|(_, b)| *b == Bearing::Ours);
        if ours {
            Effect::Identified
        } else if self.row.verdict == Some(Verdict::Absent) && !self.attempts.is_empty() {
            Effect::Absent
        } else if self.attempts.iter().all(Attempt::without_effect) {
            Effect::NotStarted
        } else {
            Effect::Possible
        }
    }

    /// The one object of ours that succeeded, or else any of ours.
    #[must_use]
    pub fn our_object(&self) -> Option<ProviderRef> {
        let seen = evidence::objects(&self.evidence);
        let ours = || {
            seen.values()
                .filter(|(_, b)| *b == Bearing::Ours)
                .map(|(o, _)| *o)
        };
        ours()
            .find(|o| o.status == ObjectStatus::Succeeded)
            .or_else(|| ours().next())
            .map(|o| o.id.clone())
    }
}
