//! The audit chain: each entry's hash covers the entry and the hash before it, per operation (I23).

use crate::domain::ids::OperationId;
use crate::domain::key::hex_digest;

/// What one entry's hash covers, besides the hash before it.
#[derive(Debug)]
pub(super) struct Link<'a> {
    pub operation: &'a OperationId,
    pub seq: i64,
    /// Microseconds UTC.
    pub at: i64,
    pub actor: &'a str,
    pub os_user: &'a str,
    pub action: &'a str,
    /// JSON text as stored.
    pub detail: &'a str,
}

/// The hash of an entry; `before` is the hash of the entry before it, empty for the first.
pub(super) fn hash(before: &str, link: &Link<'_>) -> String {
    let seq = link.seq.to_string();
    let at = link.at.to_string();
    let parts = [
        before,
        link.operation.as_str(),
        &seq,
        &at,
        link.actor,
        link.os_user,
        link.action,
        link.detail,
    ];
    // Each part with its length, so that no two different entries read the same.
    let text = parts.iter().fold(String::new(), |mut text, part| {
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
        text
    });
    hex_digest(text.as_bytes())
}
