//! The provider's objects as JSON, with at least the members of Stripe's own fixtures.
//!
//! Owns: the form of refund, charge, payment intent, account and lists. Never: computes money or
//! looks anything up. Tests: `tests/simulator/` compares with
//! `tests/fixtures/stripe-fixtures.json`.

use serde_json::{Value, json};

use super::ids::{charge_id, object_id, payment_id};
use super::script::RefundStatus;
use super::world::{CAPTURED, CURRENCY, Payment, Refund};

/// Members of a charge that are always null here.
const CHARGE_NULLS: [&str; 17] = [
    "application",
    "application_fee",
    "application_fee_amount",
    "customer",
    "failure_balance_transaction",
    "failure_code",
    "failure_message",
    "on_behalf_of",
    "receipt_email",
    "receipt_number",
    "review",
    "shipping",
    "source",
    "source_transfer",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_data",
];

/// Members of a payment intent that are always null here.
const INTENT_NULLS: [&str; 21] = [
    "application",
    "application_fee_amount",
    "automatic_payment_methods",
    "canceled_at",
    "cancellation_reason",
    "customer",
    "customer_account",
    "excluded_payment_method_types",
    "last_payment_error",
    "next_action",
    "on_behalf_of",
    "payment_method_configuration_details",
    "processing",
    "receipt_email",
    "review",
    "setup_future_usage",
    "shipping",
    "source",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_data",
];

/// S25–S40; `failure_reason` and `pending_reason` only where they apply.
pub(super) fn refund(refund: &Refund) -> Value {
    let takes_money = refund.status.takes_money();
    let transaction = |prefix: &str| object_id("txn_", 0, &[prefix, &refund.id]);
    let settled = refund.moved_money && refund.status != RefundStatus::Pending;
    let mut value = json!({
        "amount": refund.amount,
        "balance_transaction": settled.then(|| transaction("refund")),
        "charge": charge_id(&refund.order),
        "created": refund.created.timestamp(),
        "currency": CURRENCY,
        "customer": null,
        "customer_account": null,
        "destination_details": { "card": { "type": "refund" }, "type": "card" },
        "id": refund.id,
        "metadata": refund.metadata,
        "object": "refund",
        "payment_intent": payment_id(&refund.order),
        "payment_method": null,
        "reason": refund.reason,
        "receipt_number": null,
        "source_transfer_reversal": null,
        "status": refund.status.name(),
        "transfer_reversal": null,
    });
    if let Value::Object(members) = &mut value {
        if refund.status == RefundStatus::Pending {
            members.insert("pending_reason".into(), json!("processing"));
        }
        if !takes_money {
            let reason = match refund.status {
                RefundStatus::Canceled => "merchant_request",
                _ => "expired_or_canceled_card",
            };
            members.insert("failure_reason".into(), json!(reason));
            let returned = refund.moved_money.then(|| transaction("failure"));
            members.insert("failure_balance_transaction".into(), json!(returned));
        }
    }
    value
}

/// A captured charge. `refunds` is always empty: nobody may rely on it (S46).
pub(super) fn charge(payment: &Payment) -> Value {
    let id = charge_id(&payment.order);
    let refunds_url = format!("/v1/charges/{id}/refunds");
    let value = json!({
        "amount": CAPTURED,
        "amount_captured": CAPTURED,
        "amount_refunded": payment.refunded,
        "balance_transaction": object_id("txn_", 0, &["charge", &payment.order]),
        "billing_details": billing(),
        "calculated_statement_descriptor": "SAMEKEY SIMULATOR",
        "captured": true,
        "created": payment.created.timestamp(),
        "currency": CURRENCY,
        "description": "Simulated order",
        "disputed": payment.disputed,
        "fraud_details": {},
        "id": id,
        "livemode": false,
        "metadata": { "order_id": payment.order },
        "object": "charge",
        "outcome": {
            "advice_code": null,
            "network_advice_code": null,
            "network_decline_code": null,
            "network_status": "approved_by_network",
            "reason": null,
            "risk_level": "normal",
            "seller_message": "Payment complete.",
            "type": "authorized",
        },
        "paid": true,
        "payment_intent": payment_id(&payment.order),
        "payment_method": "pm_card_visa",
        "payment_method_details": { "card": card(), "type": "card" },
        "receipt_url": format!("https://pay.stripe.com/receipts/{id}"),
        "refunded": payment.refunded >= CAPTURED,
        "refunds": { "data": [], "has_more": false, "object": "list", "url": refunds_url },
        "status": "succeeded",
        "transfer_group": null,
    });
    with_nulls(value, &CHARGE_NULLS)
}

fn with_nulls(mut value: Value, names: &[&str]) -> Value {
    if let Value::Object(members) = &mut value {
        members.extend(names.iter().map(|n| ((*n).to_owned(), Value::Null)));
    }
    value
}

fn billing() -> Value {
    json!({
        "address": {
            "city": null,
            "country": null,
            "line1": null,
            "line2": null,
            "postal_code": null,
            "state": null,
        },
        "email": null,
        "name": "Jenny Rosen",
        "phone": null,
        "tax_id": null,
    })
}

fn card() -> Value {
    json!({
        "amount_authorized": CAPTURED,
        "authorization_code": null,
        "brand": "visa",
        "checks": {
            "address_line1_check": null,
            "address_postal_code_check": null,
            "cvc_check": "pass",
        },
        "country": "US",
        "exp_month": 8,
        "exp_year": 2040,
        "extended_authorization": { "status": "disabled" },
        "fingerprint": "AOB934RVNwzk6xtn",
        "funding": "credit",
        "incremental_authorization": { "status": "unavailable" },
        "installments": null,
        "last4": "4242",
        "mandate": null,
        "multicapture": { "status": "unavailable" },
        "network": "visa",
        "network_token": { "used": false },
        "network_transaction_id": null,
        "overcapture": { "maximum_amount_capturable": CAPTURED, "status": "unavailable" },
        "regulated_status": "unregulated",
        "three_d_secure": null,
        "transaction_link_id": null,
        "wallet": null,
    })
}

/// A payment that succeeded; `latest_charge` as id, or the whole charge if `expanded`.
pub(super) fn payment_intent(payment: &Payment, expanded: bool) -> Value {
    let id = payment_id(&payment.order);
    let latest = if expanded {
        charge(payment)
    } else {
        json!(charge_id(&payment.order))
    };
    let value = json!({
        "amount": CAPTURED,
        "amount_capturable": 0,
        "amount_details": { "tip": {} },
        "amount_received": CAPTURED,
        "capture_method": "automatic",
        "client_secret": format!("{id}_secret_simulated"),
        "confirmation_method": "automatic",
        "created": payment.created.timestamp(),
        "currency": CURRENCY,
        "description": "Simulated order",
        "id": id,
        "latest_charge": latest,
        "livemode": false,
        "managed_payments": { "enabled": false },
        "metadata": { "order_id": payment.order },
        "object": "payment_intent",
        "payment_method": "pm_card_visa",
        "payment_method_options": { "card": { "request_three_d_secure": "automatic" } },
        "payment_method_types": ["card"],
        "status": "succeeded",
        "transfer_group": null,
    });
    with_nulls(value, &INTENT_NULLS)
}

/// The account the credentials belong to.
pub(super) fn account(id: &str) -> Value {
    json!({
        "business_profile": { "name": "samekey simulator" },
        "charges_enabled": true,
        "country": "US",
        "default_currency": CURRENCY,
        "details_submitted": true,
        "email": null,
        "id": id,
        "metadata": {},
        "object": "account",
        "payouts_enabled": true,
        "settings": { "dashboard": { "display_name": "samekey simulator", "timezone": "Etc/UTC" } },
        "type": "standard",
    })
}

pub(super) fn list(url: &str, data: &[Value], has_more: bool) -> Value {
    json!({ "data": data, "has_more": has_more, "object": "list", "url": url })
}

pub(super) fn search_result(url: &str, data: &[Value]) -> Value {
    json!({
        "data": data,
        "has_more": false,
        "next_page": null,
        "object": "search_result",
        "url": url,
    })
}
