//! Identity: the tool's canonical answer to "is this the same effect?".
//!
//! Canonical JSON: an object of text and whole numbers, names sorted, no spaces. Two calls with the
//! same identity reach one operation, in whatever order or spelling their arguments came (F31).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::OrderId;
use super::money::Money;

/// One identity field. Text is text and a number a number: `"4417"` is not `4417`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Field {
    Number(i64),
    Text(String),
}

/// Canonical JSON of the identity fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(String);

impl Identity {
    /// From fields that were validated and are in canonical spelling already.
    #[must_use]
    pub fn new(fields: &BTreeMap<&str, Field>) -> Self {
        // A map of text and whole numbers has no value that JSON cannot write.
        Self(serde_json::to_string(fields).unwrap_or_default())
    }

    /// A refund: the order and the amount in minor units (R12, R20). Not the currency: the same
    /// number in another currency is a contradiction to be told, not another refund.
    #[must_use]
    pub fn refund(order: &OrderId, amount: Money) -> Self {
        Self::new(&BTreeMap::from([
            ("amount_cents", Field::Number(amount.minor())),
            ("order_id", Field::Text(order.as_str().to_owned())),
        ]))
    }

    /// As the ledger stored it.
    #[must_use]
    pub fn stored(canonical: String) -> Self {
        Self(canonical)
    }

    /// Canonical JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refund_is_its_order_and_its_amount_r20() {
        let usd = "usd".parse().expect("usd");
        let of = |order: &str, minor| {
            Identity::refund(
                &OrderId::parse(order).expect("order"),
                Money::from_minor(minor, usd).expect("money"),
            )
        };
        assert_eq!(
            of("4417", 3800).as_str(),
            r#"{"amount_cents":3800,"order_id":"4417"}"#
        );
        assert_eq!(of(" 4417 ", 3800), of("4417", 3800));
        assert_ne!(
            of("4417", 3801),
            of("4417", 3800),
            "R32: another amount, another operation"
        );
        assert_eq!(
            of("a\"b", 1).as_str(),
            r#"{"amount_cents":1,"order_id":"a\"b"}"#
        );
    }
}
