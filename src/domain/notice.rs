//! What people outside have to hear: the events, and how long each is worth telling.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Something that happened and somebody outside should know.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantArray,
    strum::VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NoticeEvent {
    /// A row became unknown: a person has to look.
    Unknown,
    /// The end of a row of which somebody was told something else before.
    Resolved,
    /// An open row's key runs out within [`KEY_EXPIRING`].
    KeyExpiring,
    /// Evidence contradicts a row.
    Contradicted,
    /// A tool's circuit opened: nothing is sent until the provider answers again.
    CircuitOpen,
    /// A call was rejected because of a money cap.
    CapReached,
}

impl NoticeEvent {
    /// The word in columns, JSON and settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How long before its deadline an unsettled open row is told of; as in the review list.
pub const KEY_EXPIRING: Duration = Duration::from_hours(2);
/// Older than this a notice is no news: turning notifications on later tells nothing old.
pub const MAX_AGE: Duration = Duration::from_hours(24);
/// Deliveries of one notice before it is given up.
pub const MAX_TRIES: u32 = 10;
