//! Outcome classes: what one attempt tells about the effect. Total: what is not recognised is
//! [`OutcomeClass::SideEffectUnknown`], never success or failure (I14).

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::evidence::ProviderObject;
use super::ids::{OperationId, PaymentId};
use super::money::Money;
use super::text::SafeText;

/// The class of an attempt's outcome; decides what follows (R70–R75).
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
pub enum OutcomeClass {
    /// 2xx, our object, final, everything as stored.
    Succeeded,
    /// 2xx, our object, not final yet.
    Pending,
    /// 2xx, our object, `failed` or `canceled`.
    EffectFailed,
    /// 2xx that parses but differs in amount, currency, payment or owner.
    ReplyMismatch,
    /// 400, 402 or 404: refused because of the request.
    ValidationFailure,
    /// 401 or 403: refused because of the credentials.
    PermissionDenied,
    /// 429: rate or lock.
    RetryableFailure,
    /// 409: the same key is being worked on.
    KeyInProgress,
    /// A byte may have left and nothing reliable came back.
    SideEffectUnknown,
    /// Any 5xx.
    ServerError,
    /// The key was used with other parameters.
    KeyMismatch,
    /// Authorised, but no byte left.
    NotSent,
}

impl OutcomeClass {
    /// The word in columns and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether nobody knows yet if this attempt had an effect.
    #[must_use]
    pub fn is_undetermined(self) -> bool {
        match self {
            Self::SideEffectUnknown
            | Self::ServerError
            | Self::KeyMismatch
            | Self::ReplyMismatch
            | Self::KeyInProgress => true,
            Self::Succeeded
            | Self::Pending
            | Self::EffectFailed
            | Self::ValidationFailure
            | Self::PermissionDenied
            | Self::RetryableFailure
            | Self::NotSent => false,
        }
    }

    /// Whether it says that an object of ours exists, in whatever state.
    #[must_use]
    pub fn claims_object(self) -> bool {
        match self {
            Self::Succeeded | Self::Pending | Self::EffectFailed => true,
            Self::ReplyMismatch
            | Self::ValidationFailure
            | Self::PermissionDenied
            | Self::RetryableFailure
            | Self::KeyInProgress
            | Self::SideEffectUnknown
            | Self::ServerError
            | Self::KeyMismatch
            | Self::NotSent => false,
        }
    }

    /// Whether it counts towards the tool's circuit (outage).
    #[must_use]
    pub fn is_outage(self) -> bool {
        match self {
            Self::SideEffectUnknown | Self::ServerError | Self::RetryableFailure => true,
            Self::Succeeded
            | Self::Pending
            | Self::EffectFailed
            | Self::ReplyMismatch
            | Self::ValidationFailure
            | Self::PermissionDenied
            | Self::KeyInProgress
            | Self::KeyMismatch
            | Self::NotSent => false,
        }
    }
}

impl fmt::Display for OutcomeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one attempt brought back, classified.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub class: OutcomeClass,
    /// HTTP status, where an answer came.
    pub http_status: Option<u16>,
    /// The provider's name of the request, for its support.
    pub request_id: Option<SafeText>,
    /// What went wrong, in the provider's or our own words.
    pub error: Option<SafeText>,
    /// The provider marked the answer as the saved result of this key.
    pub replayed: bool,
    /// `Stripe-Should-Retry`; only ever makes us more careful.
    pub should_retry: Option<bool>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// A 429 of a limiter, which runs before the key and before any effect (S5).
    pub limiter: bool,
    /// `charge_already_refunded`: evidence, not success (S34).
    pub already_refunded: bool,
    /// The object in the answer.
    pub object: Option<ProviderObject>,
}

impl Outcome {
    /// An outcome of `class` with nothing else known.
    #[must_use]
    pub fn of(class: OutcomeClass) -> Self {
        Self {
            class,
            http_status: None,
            request_id: None,
            error: None,
            replayed: false,
            should_retry: None,
            retry_after: None,
            limiter: false,
            already_refunded: false,
            object: None,
        }
    }

    /// The same with an explanation.
    #[must_use]
    pub fn because(mut self, why: &str) -> Self {
        self.error = Some(SafeText::new(why));
        self
    }

    /// What an attempt is whose engine died before its outcome was saved (R75).
    #[must_use]
    pub fn interrupted() -> Self {
        Self::of(OutcomeClass::SideEffectUnknown).because("interrupted")
    }
}

/// What the object in a 2xx answer must match.
#[derive(Clone, Debug)]
pub struct Expected<'a> {
    pub operation: &'a OperationId,
    pub payment: Option<&'a PaymentId>,
    pub money: Option<Money>,
}

/// The class of a 2xx answer that parsed: success needs our id, amount, currency, payment and a
/// final status to match (I14).
#[must_use]
pub fn classify_object(expected: &Expected<'_>, object: &ProviderObject) -> OutcomeClass {
    use super::evidence::ObjectStatus as S;
    let same_money = expected.money.is_none_or(|m| {
        object.amount_minor == Some(m.minor()) && object.currency == Some(m.currency())
    }) && object.payment.as_ref() == expected.payment;
    let Some(owner) = object.operation.as_ref() else {
        // Without our mark nobody can tell whose it is; the same key will ask again.
        return if same_money {
            OutcomeClass::SideEffectUnknown
        } else {
            OutcomeClass::ReplyMismatch
        };
    };
    if !same_money || owner != expected.operation {
        return OutcomeClass::ReplyMismatch;
    }
    match object.status {
        S::Succeeded => OutcomeClass::Succeeded,
        S::Pending | S::RequiresAction => OutcomeClass::Pending,
        S::Failed | S::Canceled => OutcomeClass::EffectFailed,
        S::Other => OutcomeClass::SideEffectUnknown,
    }
}
