//! The idempotency key: drawn at random, once, and committed with its row before anything is sent
//! (I2, R14–R17).

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A key as the provider sees it: a version-4 UUID in its usual spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdempotencyKey(Uuid);

impl IdempotencyKey {
    /// A key from a random UUID that the caller drew; nothing of a call enters it (R14, R15).
    #[must_use]
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// A key as stored.
    ///
    /// # Errors
    /// Text that is no UUID.
    pub fn parse(stored: &str) -> Result<Self, uuid::Error> {
        Uuid::parse_str(stored).map(Self)
    }

    /// What may be shown where the key itself may not: the first 12 digits of its SHA-256.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex_digest(self.0.hyphenated().to_string().as_bytes())
            .chars()
            .take(12)
            .collect()
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.hyphenated())
    }
}

/// SHA-256 in lower-case hexadecimal.
#[must_use]
pub fn hex_digest(bytes: &[u8]) -> String {
    use fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut out, byte| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{byte:02x}");
            out
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_and_read_in_one_spelling() {
        let key = IdempotencyKey::from_uuid(Uuid::from_u128(0xc41f));
        assert_eq!(IdempotencyKey::parse(&key.to_string()), Ok(key.clone()));
        assert_eq!(key.fingerprint().len(), 12);
        assert_eq!(hex_digest(b"").get(..8), Some("e3b0c442"));
    }
}
