//! The request of an operation as the ledger keeps it: everything that an attempt repeats, in one
//! run of bytes, so that one hash covers method, path, API version and body (I3, F12).
//!
//! ```text
//! POST /v1/refunds
//! Content-Type: application/x-www-form-urlencoded
//! Stripe-Version: 2026-08-26.dahlia
//!
//! payment_intent=pi_…&amount=3800&metadata%5Boperation_id%5D=op_…&metadata%5Border_id%5D=4417
//! ```
//!
//! Never holds the API key or the idempotency key. Tests: below.

use crate::domain::ids::ChargeId;
use crate::provider::Asked;

const FORM: &str = "application/x-www-form-urlencoded";

/// A stored request, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stored<'a> {
    pub path: &'a str,
    pub version: &'a str,
    pub content_type: &'a str,
    pub body: &'a str,
}

impl Stored<'_> {
    fn bytes(&self) -> Vec<u8> {
        let Self {
            path,
            version,
            content_type,
            body,
        } = self;
        format!("POST {path}\nContent-Type: {content_type}\nStripe-Version: {version}\n\n{body}")
            .into_bytes()
    }

    /// Reads what [`refund`] wrote; anything else is `None`, and is never sent.
    pub(super) fn parse(bytes: &[u8]) -> Option<Stored<'_>> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (head, body) = text.split_once("\n\n")?;
        let mut lines = head.split('\n');
        let path = lines.next()?.strip_prefix("POST ")?;
        let content_type = lines.next()?.strip_prefix("Content-Type: ")?;
        let version = lines.next()?.strip_prefix("Stripe-Version: ")?;
        let visible = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_graphic());
        let sound = lines.next().is_none()
            && path.starts_with("/v1/")
            && [path, content_type, version, body].into_iter().all(visible);
        sound.then_some(Stored {
            path,
            version,
            content_type,
            body,
        })
    }
}

/// The bytes of a refund (S25–S27). The amount is always named: without it the provider would
/// refund whatever is left. Exactly one of payment intent and charge is named (S25).
pub(super) fn refund(version: &str, asked: &Asked<'_>) -> Option<Vec<u8>> {
    let (args, resolved) = (asked.arguments, asked.resolved?);
    let (order, money) = (args.order.as_ref()?, args.money?);
    let payment = resolved.payment.as_str();
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair(
        payment_field(payment, resolved.charge.as_ref().map(ChargeId::as_str)),
        payment,
    );
    form.append_pair("amount", &money.minor().to_string());
    if let Some(reason) = args.reason {
        form.append_pair("reason", reason);
    }
    form.append_pair("metadata[operation_id]", asked.operation.as_str());
    form.append_pair("metadata[order_id]", order.as_str());
    let stored = Stored {
        path: "/v1/refunds",
        version,
        content_type: FORM,
        body: &form.finish(),
    };
    Some(stored.bytes())
}

/// Under which name the provider takes a payment: a charge without a payment intent is its own
/// payment.
pub(super) fn payment_field(payment: &str, charge: Option<&str>) -> &'static str {
    if charge == Some(payment) {
        "charge"
    } else {
        "payment_intent"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::arguments::Arguments;
    use crate::domain::ids::{OperationId, OrderId, PaymentId, ToolName};
    use crate::domain::money::Money;
    use crate::domain::opening::Resolved;
    use crate::domain::tool_call::RefundArguments;

    fn bytes(payment: &str, charge: &str, reason: Option<&'static str>) -> String {
        let currency = "usd".parse().expect("currency");
        let args = Arguments::from(RefundArguments {
            order: OrderId::parse("44 17&é").expect("order"),
            money: Money::from_minor(3800, currency).expect("money"),
            payment: None,
            charge: None,
            reason,
            after: None,
        });
        let resolved = Resolved {
            payment: PaymentId::parse(payment).expect("payment"),
            charge: Some(ChargeId::parse(charge).expect("charge")),
            currency,
            captured_minor: 10_000,
            refunded_minor: 0,
            refunds: Vec::new(),
        };
        let operation = OperationId::parse("op_5521").expect("operation");
        let tool = ToolName::parse("issue_refund").expect("tool");
        let bytes = refund(
            "2026-08-26.dahlia",
            &Asked {
                tool: &tool,
                operation: &operation,
                arguments: &args,
                resolved: Some(&resolved),
            },
        );
        String::from_utf8(bytes.expect("bytes")).expect("text")
    }

    #[test]
    fn the_stored_bytes_are_exactly_these_i3_f12_s25() {
        let golden = "POST /v1/refunds\n\
            Content-Type: application/x-www-form-urlencoded\n\
            Stripe-Version: 2026-08-26.dahlia\n\
            \n\
            payment_intent=pi_1&amount=3800&reason=duplicate&metadata%5Boperation_id%5D=op_5521\
            &metadata%5Border_id%5D=44+17%26%C3%A9";
        assert_eq!(bytes("pi_1", "ch_1", Some("duplicate")), golden);
        assert_eq!(
            Stored::parse(golden.as_bytes()).map(|s| s.bytes()),
            Some(golden.as_bytes().to_vec()),
            "read back, every byte is there"
        );
    }

    #[test]
    fn a_charge_without_an_intent_is_named_alone_s25() {
        let text = bytes("ch_1", "ch_1", None);
        assert!(text.contains("\n\ncharge=ch_1&amount=3800&metadata"));
        assert!(!text.contains("payment_intent") && !text.contains("reason"));
    }

    #[test]
    fn bytes_that_are_not_ours_do_not_parse() {
        let good = bytes("pi_1", "ch_1", None);
        assert!(Stored::parse(good.as_bytes()).is_some());
        for bad in [
            String::new(),
            good.replace("POST", "GET"),
            good.replace("/v1/refunds", "http://elsewhere.example/"),
            good.replace("Stripe-Version", "Idempotency-Key"),
            good.replace("\n\n", "\nAuthorization: Bearer x\n\n"),
            good.replace("\n\n", "\n"),
            good.replace("dahlia", "dah\rlia"),
            format!("{good}\r\nGET /v1/account"),
        ] {
            assert_eq!(Stored::parse(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(Stored::parse(&[0xff; 80]), None);
    }
}
