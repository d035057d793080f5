//! What a model gets back (`contract.md`, "Tool result"), and how it is spelled.
//!
//! Owns: the six kinds of answer and their JSON. `status` and the name of the provider's object are the
//! tool's own words (`refunded` and `refund_id`, `created` and `ticket_id`), so the spelling is written
//! here by hand; what earlier versions stored reads the same. Never: claims more than the row (that is
//! [`super::answer`]). Tests: below.

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::ids::{OperationId, ProviderRef};
use super::operation::{FailureClass, Status};
use super::text::SafeText;

/// The statuses that are no tool's word for success.
pub const RESERVED: [&str; 5] = ["unconfirmed", "checking", "held", "failed", "rejected"];
/// The members that are no provider's object.
const MEMBERS: [&str; 9] = [
    "status",
    "operation_id",
    "class",
    "reason",
    "note",
    "repeat",
    "blocked_by",
    "customer_message",
    "follow_up",
];

/// Why a call was rejected; nothing was done for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectClass {
    ValidationFailure,
    PermissionDenied,
    RateLimited,
    Unavailable,
    OrderBusy,
}

/// The operation that stands in a call's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedBy {
    pub operation_id: OperationId,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub amount_cents: Option<i64>,
    pub status: Status,
}

/// The provider's object under the tool's own name for it (`refund_id`, `ticket_id`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub id: ProviderRef,
}

/// What a model gets back. Never claims more than the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolResult {
    /// It happened.
    Done {
        /// The tool's own word: refunded, created, sent.
        word: String,
        operation_id: OperationId,
        object: Option<Named>,
        /// The stored result of an earlier equal operation; nothing was sent.
        repeat: bool,
    },
    Unconfirmed {
        operation_id: OperationId,
        object: Option<Named>,
        note: SafeText,
    },
    Checking {
        operation_id: OperationId,
        object: Option<Named>,
        note: SafeText,
    },
    Held {
        operation_id: OperationId,
        note: SafeText,
    },
    Failed {
        operation_id: OperationId,
        object: Option<Named>,
        class: FailureClass,
        reason: SafeText,
    },
    Rejected {
        class: RejectClass,
        reason: SafeText,
        blocked_by: Option<BlockedBy>,
    },
}

impl ToolResult {
    /// The word in `status`.
    #[must_use]
    pub fn status(&self) -> &str {
        match self {
            Self::Done { word, .. } => word,
            Self::Unconfirmed { .. } => "unconfirmed",
            Self::Checking { .. } => "checking",
            Self::Held { .. } => "held",
            Self::Failed { .. } => "failed",
            Self::Rejected { .. } => "rejected",
        }
    }

    /// A rejection.
    #[must_use]
    pub fn rejected(class: RejectClass, reason: impl Into<SafeText>) -> Self {
        Self::Rejected {
            class,
            reason: reason.into(),
            blocked_by: None,
        }
    }

    /// The operation it speaks of.
    #[must_use]
    pub fn operation(&self) -> Option<&OperationId> {
        match self {
            Self::Done { operation_id, .. }
            | Self::Unconfirmed { operation_id, .. }
            | Self::Checking { operation_id, .. }
            | Self::Held { operation_id, .. }
            | Self::Failed { operation_id, .. } => Some(operation_id),
            Self::Rejected { .. } => None,
        }
    }

    /// The provider's object, where it is named.
    #[must_use]
    pub fn object(&self) -> Option<&ProviderRef> {
        match self {
            Self::Done { object, .. }
            | Self::Unconfirmed { object, .. }
            | Self::Checking { object, .. }
            | Self::Failed { object, .. } => object.as_ref().map(|o| &o.id),
            Self::Held { .. } | Self::Rejected { .. } => None,
        }
    }
}

impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("status", self.status())?;
        if let Some(id) = self.operation() {
            map.serialize_entry("operation_id", id)?;
        }
        match self {
            Self::Done { object, .. }
            | Self::Unconfirmed { object, .. }
            | Self::Checking { object, .. }
            | Self::Failed { object, .. } => {
                if let Some(Named { name, id }) = object {
                    map.serialize_entry(name, id)?;
                }
            }
            Self::Held { .. } | Self::Rejected { .. } => {}
        }
        match self {
            Self::Done { repeat: true, .. } => map.serialize_entry("repeat", &true)?,
            Self::Done { repeat: false, .. } => {}
            Self::Unconfirmed { note, .. }
            | Self::Checking { note, .. }
            | Self::Held { note, .. } => map.serialize_entry("note", note)?,
            Self::Failed { class, reason, .. } => {
                map.serialize_entry("class", class)?;
                map.serialize_entry("reason", reason)?;
            }
            Self::Rejected {
                class,
                reason,
                blocked_by,
            } => {
                map.serialize_entry("class", class)?;
                map.serialize_entry("reason", reason)?;
                if let Some(blocked_by) = blocked_by {
                    map.serialize_entry("blocked_by", blocked_by)?;
                }
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ToolResult {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Stored(Map::deserialize(d)?)
            .read()
            .map_err(serde::de::Error::custom)
    }
}

/// An answer as it was written.
struct Stored(Map<String, Value>);

impl Stored {
    fn read(&self) -> Result<ToolResult, String> {
        let status: String = self.member("status")?;
        Ok(match status.as_str() {
            "unconfirmed" => ToolResult::Unconfirmed {
                operation_id: self.member("operation_id")?,
                object: self.object()?,
                note: self.member("note")?,
            },
            "checking" => ToolResult::Checking {
                operation_id: self.member("operation_id")?,
                object: self.object()?,
                note: self.member("note")?,
            },
            "held" => ToolResult::Held {
                operation_id: self.member("operation_id")?,
                note: self.member("note")?,
            },
            "failed" => ToolResult::Failed {
                operation_id: self.member("operation_id")?,
                object: self.object()?,
                class: self.member("class")?,
                reason: self.member("reason")?,
            },
            "rejected" => ToolResult::Rejected {
                class: self.member("class")?,
                reason: self.member("reason")?,
                blocked_by: self.member("blocked_by")?,
            },
            _ => ToolResult::Done {
                operation_id: self.member("operation_id")?,
                object: self.object()?,
                repeat: self.member::<Option<bool>>("repeat")?.unwrap_or(false),
                word: status,
            },
        })
    }

    fn member<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let value = self.0.get(name).cloned().unwrap_or(Value::Null);
        serde_json::from_value(value).map_err(|e| format!("{name}: {e}"))
    }

    /// The one member that ends in `_id` and is none of ours.
    fn object(&self) -> Result<Option<Named>, String> {
        let found = self
            .0
            .keys()
            .find(|k| k.ends_with("_id") && !MEMBERS.contains(&k.as_str()));
        let Some(name) = found else {
            return Ok(None);
        };
        let id: Option<ProviderRef> = self.member(name)?;
        Ok(id.map(|id| Named {
            name: name.clone(),
            id,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_versions_stored_reads_and_is_written_the_same() {
        for text in [
            r#"{"status":"refunded","operation_id":"op_1","refund_id":"re_1"}"#,
            r#"{"status":"refunded","operation_id":"op_1","refund_id":"re_1","repeat":true}"#,
            r#"{"status":"refunded","operation_id":"op_1"}"#,
            r#"{"status":"created","operation_id":"op_1","ticket_id":"77"}"#,
            r#"{"status":"unconfirmed","operation_id":"op_1","refund_id":"re_1","note":"n"}"#,
            r#"{"status":"checking","operation_id":"op_1","note":"n"}"#,
            r#"{"status":"held","operation_id":"op_1","note":"n"}"#,
            r#"{"status":"failed","operation_id":"op_1","class":"effect_failed","reason":"r"}"#,
            r#"{"status":"rejected","class":"order_busy","reason":"r","blocked_by":{"operation_id":"op_2","amount_cents":1,"status":"open"}}"#,
            r#"{"status":"rejected","class":"rate_limited","reason":"r"}"#,
        ] {
            let read: ToolResult = serde_json::from_str(text).expect(text);
            assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        }
    }

    #[test]
    fn an_answer_without_its_members_is_none() {
        for text in [
            "{}",
            "[]",
            r#"{"status":"checking","note":"n"}"#,
            r#"{"status":"refunded"}"#,
            r#"{"status":"rejected","class":"magic","reason":"r"}"#,
            r#"{"status":"sent","operation_id":"op_1","message_id":7}"#,
        ] {
            assert!(serde_json::from_str::<ToolResult>(text).is_err(), "{text}");
        }
    }
}
