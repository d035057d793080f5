//! Stripe's JSON, as far as it decides anything, made into the domain's words.
//!
//! Owns: the shapes, and that nothing secret and nothing hostile gets past them (I30, I31). A known
//! member that is there twice, of the wrong type or out of range makes the object unreadable; it is
//! never guessed. Never: decides what an object means. Tests: below and `tests/stripe/`.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::domain::Instant;
use crate::domain::evidence::{ObjectStatus, ProviderObject};
use crate::domain::ids::{ChargeId, OperationId, OrderId, PaymentId, ProviderRef};
use crate::domain::money::{Currency, MAX_MINOR};
use crate::domain::text::{SafeText, TextError};

/// What stands where a secret was.
const HIDDEN: &str = "‹secret›";
/// How Stripe's own secrets begin.
const SECRETS: [&str; 5] = ["sk_test_", "sk_live_", "rk_test_", "rk_live_", "whsec_"];

/// A JSON object of the shape `T`.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    // serde also reads a struct from a JSON array, member by member; no provider means that.
    if body.trim_ascii_start().first() == Some(&b'{') {
        serde_json::from_slice(body).ok()
    } else {
        None
    }
}

/// An id, or the whole object where it was expanded.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Named {
    Id(String),
    Object { id: String },
}

impl Named {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Id(id) | Self::Object { id } => id,
        }
    }
}

/// The two entries that are ours (S27); what others wrote beside them is not read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Metadata {
    operation_id: Option<String>,
    order_id: Option<String>,
}

impl Metadata {
    /// Whether the object names no order, or this one.
    pub(super) fn admits(&self, order: &OrderId) -> bool {
        self.order_id.is_none() || self.names(order)
    }

    /// Whether the object names this order.
    pub(super) fn names(&self, order: &OrderId) -> bool {
        self.order_id
            .as_ref()
            .is_some_and(|o| OrderId::parse(o).as_ref() == Ok(order))
    }
}

/// A refund (S25–S30).
#[derive(Debug, Deserialize)]
pub(super) struct Refund {
    object: String,
    pub id: String,
    amount: i64,
    currency: String,
    created: i64,
    status: Option<String>,
    payment_intent: Option<Named>,
    charge: Option<Named>,
    metadata: Option<Metadata>,
    failure_reason: Option<String>,
}

impl Refund {
    /// The domain's object; `None` where a member is out of range or an id unfit.
    pub(super) fn read(&self) -> Option<ProviderObject> {
        let charge = match &self.charge {
            Some(named) => Some(name(named.id(), ChargeId::parse)?),
            None => None,
        };
        // A charge without a payment intent is its own payment.
        let payment = match self.payment_intent.as_ref().or(self.charge.as_ref()) {
            Some(named) => Some(name(named.id(), PaymentId::parse)?),
            None => None,
        };
        let marked = self.metadata.as_ref().and_then(|m| m.operation_id.as_ref());
        (self.object == "refund").then_some(())?;
        Some(ProviderObject {
            id: name(&self.id, ProviderRef::parse)?,
            operation: marked.and_then(|id| name(id, OperationId::parse)),
            payment,
            charge,
            amount_minor: Some(minor(self.amount)?),
            currency: Some(self.currency.parse().ok()?),
            status: ObjectStatus::of(self.status.as_deref().unwrap_or_default()),
            created_at: instant(self.created)?,
            failure_reason: self.failure_reason.as_ref().map(|r| shown(r, &[])),
        })
    }
}

/// A charge.
#[derive(Debug, Deserialize)]
pub(super) struct Charge {
    pub id: String,
    currency: String,
    amount: Option<i64>,
    /// Absent in old versions and in some who speak like Stripe: there a charge is captured whole, or
    /// what was not captured counts as refunded.
    amount_captured: Option<i64>,
    amount_refunded: i64,
    pub captured: bool,
    pub status: String,
    #[serde(default)]
    pub disputed: bool,
    /// Whether real money moved, where it says so.
    pub livemode: Option<bool>,
    pub payment_intent: Option<Named>,
    #[serde(default)]
    pub metadata: Option<Metadata>,
}

impl Charge {
    /// Currency, captured and refunded.
    pub(super) fn sums(&self) -> Option<(Currency, i64, i64)> {
        Some((
            self.currency.parse().ok()?,
            minor(self.amount_captured.or(self.amount)?)?,
            minor(self.amount_refunded)?,
        ))
    }
}

/// A payment intent.
#[derive(Debug, Deserialize)]
pub(super) struct Payment {
    pub id: String,
    /// Whether real money moved, where it says so.
    pub livemode: Option<bool>,
    pub latest_charge: Option<Named>,
    pub metadata: Option<Metadata>,
}

/// One page of a list or search (S42).
#[derive(Debug, Deserialize)]
pub(super) struct Page<T> {
    pub data: Vec<T>,
    pub has_more: bool,
}

/// An account.
#[derive(Debug, Deserialize)]
pub(super) struct Account {
    pub id: String,
}

/// The envelope of a refusal (S19).
#[derive(Debug, Deserialize)]
struct Envelope {
    error: Fault,
}

/// What a refusal says.
#[derive(Debug, Deserialize)]
pub(super) struct Fault {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub code: Option<String>,
    message: Option<String>,
    param: Option<String>,
}

impl Fault {
    /// The refusal in `body`; `None` where the body is not one of Stripe's.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        parse::<Envelope>(body).map(|e| e.error)
    }

    pub(super) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// One line that may be shown; `known` are secrets that must not be in it.
    pub(super) fn text(&self, known: &[&str]) -> SafeText {
        let mut line = [&self.code, &self.kind]
            .into_iter()
            .flatten()
            .next()
            .cloned()
            .unwrap_or_else(|| "refused".into());
        if let Some(message) = &self.message {
            line = format!("{line}: {message}");
        }
        if let Some(param) = &self.param {
            line = format!("{line} ({param})");
        }
        shown(&line, known)
    }
}

/// Text of the provider that may be shown: secrets hidden, then made harmless.
pub(super) fn shown(raw: &str, known: &[&str]) -> SafeText {
    SafeText::new(&redact(raw, known))
}

/// Hides `known` and whatever looks like one of Stripe's secrets.
pub(super) fn redact(raw: &str, known: &[&str]) -> String {
    let mut text = raw.to_owned();
    for secret in known.iter().filter(|s| !s.is_empty()) {
        text = text.replace(secret, HIDDEN);
    }
    let in_secret = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '*' | '-');
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = SECRETS.iter().filter_map(|s| rest.find(s)).min() {
        let (before, secret) = rest.split_at(at);
        out.push_str(before);
        out.push_str(HIDDEN);
        rest = secret.trim_start_matches(in_secret);
    }
    out.push_str(rest);
    out
}

/// Whether one of Stripe's secrets begins somewhere in it, and not inside a word.
pub(super) fn holds_secret(raw: &str) -> bool {
    SECRETS
        .iter()
        .flat_map(|s| raw.match_indices(s))
        .any(|(at, _)| {
            !raw.get(..at)
                .unwrap_or_default()
                .ends_with(|c: char| c.is_ascii_alphanumeric())
        })
}

/// An id that is fit to be one, and is no secret (`pi_order_desk_test_1` is none).
pub(super) fn name<T>(raw: &str, parse: impl Fn(&str) -> Result<T, TextError>) -> Option<T> {
    if holds_secret(raw) {
        None
    } else {
        parse(raw).ok()
    }
}

fn minor(amount: i64) -> Option<i64> {
    (0..=MAX_MINOR).contains(&amount).then_some(amount)
}

pub(super) fn instant(seconds: i64) -> Option<Instant> {
    // Year 9999: far beyond any real one, well within what both ledgers store.
    (0..=253_402_300_799)
        .contains(&seconds)
        .then(|| Instant::from_timestamp(seconds, 0))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FIXTURES: &str = include_str!("../../../tests/fixtures/stripe-fixtures.json");

    fn fixture(name: &str) -> Vec<u8> {
        let all: serde_json::Value = serde_json::from_str(FIXTURES).expect("fixtures");
        serde_json::to_vec(&all[name]).expect("bytes")
    }

    #[test]
    fn stripes_own_examples_read() {
        let refund: Refund = parse(&fixture("refund")).expect("refund");
        let object = refund.read().expect("object");
        assert_eq!(object.id.as_str(), "re_1Pgc72B7WZ01zgkWqPvrRrPE");
        assert_eq!(
            (object.amount_minor, object.status),
            (Some(100), ObjectStatus::Succeeded)
        );
        assert_eq!(object.operation, None);
        assert_eq!(
            object.payment.as_ref().map(PaymentId::as_str),
            object.charge.as_ref().map(ChargeId::as_str),
            "a charge without an intent is its own payment"
        );
        let charge: Charge = parse(&fixture("charge")).expect("charge");
        assert!(!charge.captured && charge.payment_intent.is_none());
        assert_eq!(charge.sums().map(|s| (s.1, s.2)), Some((0, 0)));
        let payment: Payment = parse(&fixture("payment_intent")).expect("payment");
        assert!(payment.latest_charge.is_none());
    }

    fn refund(with: &serde_json::Value) -> Option<ProviderObject> {
        let mut base = json!({
            "object": "refund", "id": "re_1", "amount": 3800, "currency": "usd",
            "created": 1_700_000_000, "status": "succeeded", "payment_intent": "pi_1",
            "charge": "ch_1", "metadata": {"operation_id": "op_1", "other": 7},
        });
        for (k, v) in with.as_object().expect("object") {
            base[k] = v.clone();
        }
        parse::<Refund>(&serde_json::to_vec(&base).expect("bytes"))?.read()
    }

    #[test]
    fn an_expanded_object_is_its_id_and_unknown_words_are_never_final() {
        let plain = refund(&json!({})).expect("reads");
        let expanded = json!({"payment_intent": {"id": "pi_1", "object": "payment_intent"}});
        assert_eq!(refund(&expanded), Some(plain.clone()));
        assert_eq!(plain.operation.map(|o| o.to_string()), Some("op_1".into()));
        for status in [json!("settled"), json!(null), json!("")] {
            let object = refund(&json!({"status": status})).expect("reads");
            assert_eq!(object.status, ObjectStatus::Other);
        }
    }

    #[test]
    fn what_is_out_of_range_is_unreadable_and_never_guessed() {
        for bad in [
            json!({"object": "charge"}),
            json!({"amount": -1}),
            json!({"amount": 3800.0}),
            json!({"amount": "3800"}),
            json!({"amount": i64::MAX}),
            json!({"currency": "zzz"}),
            json!({"created": i64::MAX}),
            json!({"created": -5}),
            json!({"id": ""}),
            json!({"id": "re\u{202e}1"}),
            json!({"id": "sk_live_abc"}),
            json!({"payment_intent": 7}),
        ] {
            assert_eq!(refund(&bad), None, "{bad}");
        }
        let twice = br#"{"object":"refund","id":"re_1","id":"re_2","amount":1,"currency":"usd","created":1}"#;
        assert!(parse::<Refund>(twice).is_none());
        assert!(parse::<Account>(br#"["acct_1"]"#).is_none());
        let deep = format!("{{\"id\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
        assert!(parse::<Account>(deep.as_bytes()).is_none());
        assert!(parse::<Refund>(br#"{"object":"refund","id":"re_1","amount":1e999}"#).is_none());
    }

    #[test]
    fn secrets_are_hidden_in_everything_that_is_shown_i30() {
        let key = "c41f7a2e-0000-4000-8000-000000000001";
        let text = shown(
            &format!("bad key sk_test_4eC39*****dc, rk_live_x; try another than '{key}' whsec_Q."),
            &[key, ""],
        );
        assert_eq!(
            text.as_str(),
            "bad key ‹secret›, ‹secret›; try another than '‹secret›' ‹secret›."
        );
        assert_eq!(
            shown("risk_test_ing desk_ 4417", &[]).as_str(),
            "ri‹secret› desk_ 4417"
        );
    }
}
