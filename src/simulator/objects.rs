//! The provider's objects as JSON, with at least the members of Stripe's own fixtures.
//!
//! Owns: the form of refund, charge, payment intent, dispute, account and lists. Never: computes money or
//! looks anything up. Tests: `tests/simulator/` compares with
//! `tests/fixtures/stripe-fixtures.json`.

use serde_json::{Value, json};

use super::disputes::Dispute;
use super::ids::{charge_id, object_id, payment_id};
use super::payments::{Payment, Refund};
use super::step::{ChargeState, FailureReason, PendingReason, RefundStatus, Verdict};

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

/// S25–S40; `failure_reason` and `pending_reason` only where they apply, and no `livemode` (S40).
pub(super) fn refund(refund: &Refund) -> Value {
    let transaction = |prefix: &str| object_id("txn_", 0, &[prefix, &refund.id]);
    let settled = refund.moved_money && refund.status != RefundStatus::Pending;
    let mut value = json!({
        "amount": refund.amount,
        "balance_transaction": settled.then(|| transaction("refund")),
        "charge": charge_id(&refund.order),
        "created": refund.created.timestamp(),
        "currency": refund.currency.as_ref(),
        "customer": null,
        "customer_account": null,
        "destination_details": { "card": destination(refund), "type": "card" },
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
            let reason: &str = pending(refund.course.pending_reason);
            members.insert("pending_reason".into(), json!(reason));
        }
        if !refund.status.takes_money() {
            let reason: &str = failure(refund.failure_reason);
            members.insert("failure_reason".into(), json!(reason));
            let returned = refund.moved_money.then(|| transaction("failure"));
            members.insert("failure_balance_transaction".into(), json!(returned));
        }
    }
    value
}

fn pending(reason: PendingReason) -> &'static str {
    reason.into()
}

fn failure(reason: FailureReason) -> &'static str {
    reason.into()
}

/// S39: the bank's reference number comes later, if ever.
fn destination(refund: &Refund) -> Value {
    let mut card = json!({ "type": "refund" });
    if let Value::Object(members) = &mut card
        && refund.status == RefundStatus::Succeeded
    {
        let status = if refund.has_reference {
            let digits = object_id("", 0, &["reference", &refund.id]);
            members.insert("reference".into(), json!(digits));
            "available"
        } else {
            "pending"
        };
        members.insert("reference_status".into(), json!(status));
        members.insert("reference_type".into(), json!("acquirer_reference_number"));
    }
    card
}

/// A charge. `refunds` is always empty: nobody may rely on it (S46).
pub(super) fn charge(payment: &Payment) -> Value {
    let id = charge_id(&payment.order);
    let refunds_url = format!("/v1/charges/{id}/refunds");
    let setting = &payment.setting;
    let failed = setting.charge == ChargeState::Failed;
    let value = json!({
        "amount": setting.amount,
        "amount_captured": payment.captured(),
        "amount_refunded": payment.refunded,
        "balance_transaction": object_id("txn_", 0, &["charge", &payment.order]),
        "billing_details": billing(),
        "calculated_statement_descriptor": "SAMEKEY SIMULATOR",
        "captured": setting.charge == ChargeState::Captured,
        "created": payment.created.timestamp(),
        "currency": setting.currency,
        "description": "Simulated order",
        "disputed": payment.dispute.is_some(),
        "fraud_details": {},
        "id": id,
        "livemode": false,
        "metadata": { "order_id": payment.order },
        "object": "charge",
        "outcome": {
            "advice_code": null,
            "network_advice_code": null,
            "network_decline_code": null,
            "network_status": if failed { "declined_by_network" } else { "approved_by_network" },
            "reason": null,
            "risk_level": "normal",
            "seller_message": if failed { "The bank declined." } else { "Payment complete." },
            "type": if failed { "issuer_declined" } else { "authorized" },
        },
        "paid": !failed,
        "payment_intent": payment_id(&payment.order),
        "payment_method": setting.payment_method,
        "payment_method_details": { "card": card(setting.amount), "type": "card" },
        "receipt_url": format!("https://pay.stripe.com/receipts/{id}"),
        "refunded": payment.captured() > 0 && payment.refunded >= payment.captured(),
        "refunds": { "data": [], "has_more": false, "object": "list", "url": refunds_url },
        "status": if failed { "failed" } else { "succeeded" },
        "transfer_group": null,
    });
    with_nulls(value, &CHARGE_NULLS)
}

/// A dispute of a whole charge.
pub(super) fn dispute(dispute: &Dispute) -> Value {
    let id = &dispute.id;
    let taken = json!(object_id("txn_", 0, &["dispute", id]));
    json!({
        "amount": dispute.setting.amount,
        "balance_transaction": taken,
        "balance_transactions": [],
        "charge": charge_id(&dispute.order),
        "created": dispute.created.timestamp(),
        "currency": dispute.setting.currency,
        "enhanced_eligibility_types": [],
        "evidence": {},
        "evidence_details": {
            "due_by": dispute.created.timestamp().saturating_add(20 * 86_400),
            "enhanced_eligibility": {},
            "has_evidence": false,
            "past_due": false,
            "submission_count": 0,
        },
        "id": id,
        "is_charge_refundable": dispute.verdict == Some(Verdict::Won),
        "livemode": false,
        "metadata": {},
        "object": "dispute",
        "payment_intent": payment_id(&dispute.order),
        "reason": "product_not_received",
        "status": dispute.status(),
    })
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

fn card(amount: i64) -> Value {
    json!({
        "amount_authorized": amount,
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
        "overcapture": { "maximum_amount_capturable": amount, "status": "unavailable" },
        "regulated_status": "unregulated",
        "three_d_secure": null,
        "transaction_link_id": null,
        "wallet": null,
    })
}

/// A payment; `latest_charge` as id, or the whole charge if `expanded`.
pub(super) fn payment_intent(payment: &Payment, expanded: bool) -> Value {
    let id = payment_id(&payment.order);
    let latest = if expanded {
        charge(payment)
    } else {
        json!(charge_id(&payment.order))
    };
    let setting = &payment.setting;
    let (status, capturable) = match setting.charge {
        ChargeState::Captured => ("succeeded", 0),
        ChargeState::Uncaptured => ("requires_capture", setting.amount),
        ChargeState::Failed => ("requires_payment_method", 0),
    };
    let value = json!({
        "amount": setting.amount,
        "amount_capturable": capturable,
        "amount_details": { "tip": {} },
        "amount_received": payment.captured(),
        "capture_method": "automatic",
        "client_secret": format!("{id}_secret_simulated"),
        "confirmation_method": "automatic",
        "created": payment.created.timestamp(),
        "currency": setting.currency,
        "description": "Simulated order",
        "id": id,
        "latest_charge": latest,
        "livemode": false,
        "managed_payments": { "enabled": false },
        "metadata": { "order_id": payment.order },
        "object": "payment_intent",
        "payment_method": setting.payment_method,
        "payment_method_options": { "card": { "request_three_d_secure": "automatic" } },
        "payment_method_types": ["card"],
        "status": status,
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
        "default_currency": "usd",
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
