//! Names of things: order ids inside object ids, ids of refunds, and lots drawn from a seed.
//!
//! Owns: the two-way mapping between an order id (free text from an agent, so hostile) and the
//! ids of its payment and charge. Never: keeps state or uses anything random. Tests: below.

use std::fmt::Write;

use sha2::{Digest, Sha256};

const PAYMENT: &str = "pi_order_";
const CHARGE: &str = "ch_order_";

/// Longest order id that exists: what a metadata value can hold (S27).
const MAX_ORDER: usize = 500;

/// `pi_order_<id>`; bytes outside `A-Z a-z 0-9 - _ .` become `~` and two hex digits.
pub(super) fn payment_id(order: &str) -> String {
    format!("{PAYMENT}{}", escape(order))
}

/// `ch_order_<id>`, escaped the same way.
pub(super) fn charge_id(order: &str) -> String {
    format!("{CHARGE}{}", escape(order))
}

/// The order of a payment id.
pub(super) fn order_of_payment(id: &str) -> Option<String> {
    id.strip_prefix(PAYMENT).and_then(unescape)
}

/// The order of a charge id.
pub(super) fn order_of_charge(id: &str) -> Option<String> {
    id.strip_prefix(CHARGE).and_then(unescape)
}

/// Whether an order of this name exists: every one does that is not empty or absurdly long.
pub(super) fn is_order(order: &str) -> bool {
    !order.is_empty() && order.len() <= MAX_ORDER
}

fn escape(order: &str) -> String {
    let mut out = String::with_capacity(order.len());
    for byte in order.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            out.push(char::from(byte));
        } else {
            push_hex(&mut out, "~", byte);
        }
    }
    out
}

fn unescape(id: &str) -> Option<String> {
    decode_hex(id, b'~').filter(|order| is_order(order))
}

/// Replaces `mark` and two hex digits by the byte they mean; `None` if that is not UTF-8.
pub(super) fn decode_hex(text: &str, mark: u8) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = text
            .get(at + 1..at + 3)
            .filter(|h| byte == mark && h.bytes().all(|b| b.is_ascii_hexdigit()));
        if let Some(decoded) = hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            out.push(decoded);
            at += 3;
        } else {
            out.push(byte);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

/// SHA-256 of the parts, each with its length, so that no two lists of parts look alike.
fn digest(seed: u64, parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(seed.to_be_bytes());
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// A lot drawn by seed and parts, always the same for the same ones.
pub(super) fn draw(seed: u64, parts: &[&str]) -> u64 {
    digest(seed, parts)
        .first_chunk()
        .map_or(0, |first| u64::from_be_bytes(*first))
}

/// An object id: prefix and 24 hex digits.
pub(super) fn object_id(prefix: &str, seed: u64, parts: &[&str]) -> String {
    let bytes = digest(seed, parts);
    let mut id = prefix.to_owned();
    for byte in bytes.iter().take(12) {
        push_hex(&mut id, "", *byte);
    }
    id
}

/// SHA-256 in hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in Sha256::digest(bytes) {
        push_hex(&mut out, "", byte);
    }
    out
}

fn push_hex(out: &mut String, mark: &str, byte: u8) {
    // Writing into a string cannot fail.
    let _ = write!(out, "{mark}{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_orders_keep_their_name() {
        assert_eq!(payment_id("4417"), "pi_order_4417");
        assert_eq!(charge_id("A-1_b.2"), "ch_order_A-1_b.2");
    }

    #[test]
    fn hostile_orders_become_harmless_and_come_back() {
        for order in [
            "a b",
            "../..",
            "x'y\"z",
            "~20",
            "ключ",
            "a/b?c=d&e#f",
            "\r\nX: y",
            "%2e",
        ] {
            let id = payment_id(order);
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
            assert!(id.chars().all(plain), "{id}");
            assert_eq!(order_of_payment(&id).as_deref(), Some(order));
            assert_eq!(order_of_charge(&charge_id(order)).as_deref(), Some(order));
        }
        assert_eq!(order_of_payment("pi_order_"), None);
        assert_eq!(order_of_payment("pi_other"), None);
        assert_eq!(order_of_payment("pi_order_~FF"), None, "not UTF-8");
        assert_eq!(order_of_payment(&payment_id(&"x".repeat(501))), None);
    }

    #[test]
    fn lots_differ_by_every_part() {
        assert_eq!(draw(1, &["a", "b"]), draw(1, &["a", "b"]));
        assert_ne!(draw(1, &["a", "b"]), draw(1, &["ab", ""]));
        assert_ne!(draw(1, &["a"]), draw(2, &["a"]));
    }
}
