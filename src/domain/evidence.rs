//! Evidence: what attempts, lookups and webhooks say about an outcome, and the verdict over all
//! of it.
//!
//! Ours is only what carries our operation id *and* agrees in payment, amount and currency (I17);
//! absence is proven only by a complete scan that began late enough.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ids::{ChargeId, OperationId, PaymentId, ProviderRef};
use super::money::Currency;
use super::operation::{Operation, OperationRow};
use super::outcome::OutcomeClass;
use super::policy::Profile;
use super::text::SafeText;
use super::{Instant, earlier, later};

/// The provider's status of an object (S28).
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ObjectStatus {
    Pending,
    RequiresAction,
    Succeeded,
    Failed,
    Canceled,
    /// A word this version does not know; never taken for final.
    #[serde(other)]
    Other,
}

impl ObjectStatus {
    /// The status of the provider's word.
    #[must_use]
    pub fn of(word: &str) -> Self {
        word.parse().unwrap_or(Self::Other)
    }

    /// Failed or canceled: no money moved, or it came back.
    #[must_use]
    pub fn is_lost(self) -> bool {
        match self {
            Self::Failed | Self::Canceled => true,
            Self::Pending | Self::RequiresAction | Self::Succeeded | Self::Other => false,
        }
    }

    /// How far along its life it is. An object only moves on: not final, succeeded, then perhaps
    /// failed when the bank returns the money.
    pub(super) fn stage(self) -> u8 {
        match self {
            Self::Pending | Self::RequiresAction | Self::Other => 0,
            Self::Succeeded => 1,
            Self::Failed | Self::Canceled => 2,
        }
    }
}

/// A provider's object, as far as it decides anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderObject {
    pub id: ProviderRef,
    /// The operation id in its metadata.
    pub operation: Option<OperationId>,
    pub payment: Option<PaymentId>,
    pub charge: Option<ChargeId>,
    /// Empty where the object tells of no money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount_minor: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    pub status: ObjectStatus,
    pub created_at: Instant,
    pub failure_reason: Option<SafeText>,
}

/// Whose an object is, seen from one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bearing {
    /// Our id, payment, amount and currency.
    Ours,
    /// Could be ours; a person has to look.
    Ambiguous,
}

/// How far before the first authorise an unmarked object may have been made and still be a
/// candidate: clocks differ.
const CANDIDATE_SLACK: Duration = Duration::from_mins(5);

impl ProviderObject {
    /// Whose it is; `None` where it is certainly not this operation's. `taken` says that it is
    /// attached to another operation.
    #[must_use]
    pub fn bearing(&self, row: &OperationRow, taken: bool) -> Option<Bearing> {
        let same_payment = self.payment == row.payment;
        let same_money = row.same_money(self.amount_minor, self.currency);
        match &self.operation {
            Some(id) if *id == row.id && same_payment && same_money && !taken => {
                Some(Bearing::Ours)
            }
            Some(id) if *id == row.id => Some(Bearing::Ambiguous),
            Some(_) => None,
            None => {
                let first = row.first_authorised_at?;
                // What nothing ties to the row, neither a mark nor a payment, is anybody's.
                let candidate = row.payment.is_some()
                    && same_payment
                    && same_money
                    && !taken
                    && self.created_at > earlier(first, CANDIDATE_SLACK);
                candidate.then_some(Bearing::Ambiguous)
            }
        }
    }
}

/// Where evidence comes from.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Source {
    Attempt,
    /// By a named reviewer; closes nothing.
    ReviewLookup,
    EngineLookup,
    Reconciler,
    Webhook,
    /// A provider id that a person typed and that was fetched.
    TypedRef,
}

impl Source {
    /// Whether `confirmed` from here closes a row by itself.
    #[must_use]
    pub fn may_close(self) -> bool {
        match self {
            Self::Attempt | Self::EngineLookup | Self::Reconciler | Self::Webhook => true,
            Self::ReviewLookup | Self::TypedRef => false,
        }
    }

    /// Whether it shows an object as it once was: an event may come late, and a replayed answer is
    /// as old as the key's first execution (F61). Lookups read the present.
    #[must_use]
    pub fn may_lag(self) -> bool {
        match self {
            Self::Attempt | Self::Webhook => true,
            Self::ReviewLookup | Self::EngineLookup | Self::Reconciler | Self::TypedRef => false,
        }
    }

    /// Whether a person asked; what people look at is kept, even if it says nothing new.
    pub(super) fn by_person(self) -> bool {
        match self {
            Self::ReviewLookup | Self::TypedRef => true,
            Self::Attempt | Self::EngineLookup | Self::Reconciler | Self::Webhook => false,
        }
    }

    /// The word in columns and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Seen {
    /// An object that is or may be ours.
    Object {
        object: ProviderObject,
        bearing: Bearing,
    },
    /// The payment's objects were listed to the end (`complete`) or not. From a typed id: the
    /// provider answered, and the one object was read.
    Scan { began_at: Instant, complete: bool },
    /// The provider did not answer the question.
    Unreachable { why: SafeText },
    /// What an attempt brought back after its engine had been given up: the attempt keeps the outcome
    /// it has, and nothing is decided by this (I25).
    Reply {
        attempt: u32,
        class: OutcomeClass,
        http_status: Option<u16>,
        request_id: Option<SafeText>,
        error: Option<SafeText>,
    },
}

impl Seen {
    /// The word in the `kind` column.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Object { .. } => "object",
            Self::Scan { .. } => "scan",
            Self::Unreachable { .. } => "unreachable",
            Self::Reply { .. } => "reply",
        }
    }
}

/// One entry of an operation's evidence. Append-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Whether the ledger holds it already.
    pub stored: bool,
    pub source: Source,
    pub seen: Seen,
    pub observed_at: Instant,
}

/// What all evidence of an operation says together.
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
pub enum Verdict {
    /// Two objects of ours.
    SecondEffect,
    /// Our object, succeeded.
    Confirmed,
    /// Our object, not final.
    Pending,
    /// Our object, failed or canceled.
    Refused,
    /// Something that may be ours.
    Ambiguous,
    /// A complete scan that began late enough found nothing.
    Absent,
}

impl Verdict {
    /// The word in columns and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The latest state of each object seen, by its id.
#[must_use]
pub fn objects(evidence: &[Evidence]) -> BTreeMap<&ProviderRef, (&ProviderObject, Bearing)> {
    let mut latest = BTreeMap::new();
    for entry in evidence {
        if let Seen::Object { object, bearing } = &entry.seen {
            latest.insert(&object.id, (object, *bearing));
        }
    }
    latest
}

/// The set and state of the objects seen: what decisions are bound to, without what only repeats it.
pub(super) fn states(evidence: &[Evidence]) -> BTreeMap<&ProviderRef, (ObjectStatus, Bearing)> {
    objects(evidence)
        .into_iter()
        .map(|(id, (object, bearing))| (id, (object.status, bearing)))
        .collect()
}

/// The verdict over all evidence (the order is the protocol's).
#[must_use]
pub fn verdict(op: &Operation, profile: &Profile) -> Option<Verdict> {
    let seen = objects(&op.evidence);
    let mut ours = seen.values().filter(|(_, b)| *b == Bearing::Ours);
    if let Some((object, _)) = ours.next() {
        if ours.next().is_some() {
            return Some(Verdict::SecondEffect);
        }
        return Some(match object.status {
            ObjectStatus::Succeeded => Verdict::Confirmed,
            ObjectStatus::Failed | ObjectStatus::Canceled => Verdict::Refused,
            ObjectStatus::Pending | ObjectStatus::RequiresAction | ObjectStatus::Other => {
                Verdict::Pending
            }
        });
    }
    if !seen.is_empty() {
        return Some(Verdict::Ambiguous);
    }
    op.evidence
        .iter()
        .any(|e| proves_absence(&e.seen, &op.row, profile))
        .then_some(Verdict::Absent)
}

/// Whether `seen` is a complete scan that began when nothing could still take effect unseen.
pub(super) fn proves_absence(seen: &Seen, row: &OperationRow, profile: &Profile) -> bool {
    match seen {
        Seen::Scan {
            began_at,
            complete: true,
        } => row
            .last_authorised_at
            .is_none_or(|last| *began_at >= profile.decidable_at(last)),
        Seen::Scan {
            complete: false, ..
        }
        | Seen::Object { .. }
        | Seen::Unreachable { .. }
        | Seen::Reply { .. } => false,
    }
}

/// The provider's silence at the end of the evidence: no lookup was answered since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The first unanswered lookup.
    pub first: Instant,
    /// The latest one that is kept.
    pub last: Instant,
}

impl Silence {
    /// Whether it lasted for `least`: lookups that far apart went unanswered. One old failure proves
    /// nothing about the time since.
    #[must_use]
    pub fn lasted(self, least: Duration) -> bool {
        self.last >= later(self.first, least)
    }
}

/// The unanswered lookups at the end, if the latest was one.
#[must_use]
pub fn silence(evidence: &[Evidence]) -> Option<Silence> {
    let mut silence: Option<Silence> = None;
    for entry in evidence.iter().rev() {
        match (&entry.seen, entry.source) {
            (Seen::Unreachable { .. }, _) => {
                let at = entry.observed_at;
                silence = Some(match silence {
                    Some(known) => Silence { first: at, ..known },
                    None => Silence {
                        first: at,
                        last: at,
                    },
                });
            }
            (Seen::Reply { .. }, _) | (_, Source::Attempt | Source::Webhook) => {}
            (Seen::Object { .. } | Seen::Scan { .. }, _) => break,
        }
    }
    silence
}
