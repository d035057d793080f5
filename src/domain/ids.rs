//! Names of things: one type each, so that no two can be mixed up.
//!
//! All are plain text (see [`plain`]): no control characters, at most 255 characters, Unicode form C.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::text::{TextError, plain};

/// Longest identifier, in characters.
pub const MAX_ID: usize = 255;

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(String);

        impl $name {
            /// Takes text from outside.
            ///
            /// # Errors
            /// Empty, too long or hostile text.
            pub fn parse(raw: &str) -> Result<Self, TextError> {
                plain(raw, MAX_ID).map(Self)
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = TextError;
            fn from_str(raw: &str) -> Result<Self, TextError> {
                Self::parse(raw)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let raw = String::deserialize(d)?;
                Self::parse(&raw).map_err(|e| serde::de::Error::custom(format_args!("text {e}")))
            }
        }
    )*};
}

text_id! {
    /// One intended side effect: `op_` and 32 hexadecimal digits.
    OperationId;
    /// One request of a model, as its agent names it (`toolu_01`).
    CallId;
    /// Who calls tools. Call ids are scoped to it.
    AgentName;
    /// A tool by its configured name (`issue_refund`).
    ToolName;
    /// A provider by its configured name (`stripe`).
    ProviderName;
    /// The merchant's own name of an order.
    OrderId;
    /// The provider's name of the payment that is refunded (`pi_…`).
    PaymentId;
    /// The provider's name of the charge (`ch_…`).
    ChargeId;
    /// The provider's name of the object an operation made (`re_…`).
    ProviderRef;
    /// The provider's name of an event (`evt_…`).
    EventId;
    /// A conversation of an agent with a customer.
    SessionId;
    /// A person who reviews. A claim, not an authentication.
    ReviewerName;
    /// One run of one engine; never reused.
    EngineId;
}

impl OperationId {
    /// A name from a random UUID that the caller drew.
    #[must_use]
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(format!("op_{}", uuid.simple()))
    }

    /// The last four characters, which a person types to confirm an action on this row.
    #[must_use]
    pub fn token(&self) -> &str {
        let start = self.0.len().saturating_sub(4);
        self.0.get(start..).unwrap_or(&self.0)
    }
}

impl EngineId {
    /// A name from a random UUID that the caller drew.
    #[must_use]
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(format!("eng_{}", uuid.simple()))
    }
}

impl CallId {
    /// The call that drives an approved held row.
    #[must_use]
    pub fn approval(operation: &OperationId) -> Self {
        Self(format!("approval:{operation}"))
    }
}

/// Who did something, as the audit writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// An engine: workers and sweeper.
    Engine,
    /// The reconciler.
    Reconciler,
    /// A verified webhook.
    Webhook,
    /// An agent, through a tool call.
    Agent(AgentName),
    /// A person.
    Reviewer(ReviewerName),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine => f.write_str("engine"),
            Self::Reconciler => f.write_str("reconciler"),
            Self::Webhook => f.write_str("webhook"),
            Self::Agent(name) => write!(f, "agent:{name}"),
            Self::Reviewer(name) => write!(f, "reviewer:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_confirmed_by_the_end_of_its_id() {
        let id = OperationId::from_uuid(Uuid::from_u128(0x5521));
        assert_eq!(id.as_str(), "op_00000000000000000000000000005521");
        assert_eq!(id.token(), "5521");
        assert_eq!(OperationId::parse("é").expect("short id").token(), "é");
    }
}
