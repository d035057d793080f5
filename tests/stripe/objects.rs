//! The refund as it is asked for and as it comes back (S25–S31, S35, S37, S38, S40).

use std::collections::BTreeMap;

use samekey::clock::Clock;
use samekey::domain::arguments::Arguments;
use samekey::domain::ids::{ChargeId, PaymentId};
use samekey::domain::opening::{Opened, Resolved, check};
use samekey::domain::operation::{Contradiction, Effect, Status};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::policy::ToolPolicy;
use samekey::domain::tool_call::RefundArguments;
use samekey::provider::{Asked, Provider as _};
use serde_json::{Value, json};

use crate::attempts::{REFUND, attempt};
use crate::desk::{Desk, honest, made};
use crate::server::json as reply;
use crate::stripe;

/// The form that would be sent for `arguments`, of this payment.
fn form(arguments: &Value, payment: &str) -> BTreeMap<String, String> {
    let stripe = stripe("https://api.stripe.com", &Clock::system());
    let args = RefundArguments::parse(arguments).expect("arguments");
    let money = args.money;
    let args = Arguments::from(args);
    let resolved = Resolved {
        payment: PaymentId::parse(payment).expect("payment"),
        charge: ChargeId::parse("ch_1").ok(),
        currency: money.currency(),
        captured_minor: 10_000,
        refunded_minor: 0,
        refunds: Vec::new(),
    };
    let id = "op_5521".parse().expect("an operation");
    let bytes = stripe.request(&Asked {
        tool: &"issue_refund".parse().expect("a tool"),
        operation: &id,
        arguments: &args,
        resolved: Some(&resolved),
    });
    let text = String::from_utf8(bytes.expect("a request")).expect("text");
    let (_, body) = text.split_once("\n\n").expect("a body");
    form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect()
}

fn arguments(with: &Value) -> Value {
    let mut base = json!({"order_id": "4417", "amount_cents": 3800, "currency": "usd"});
    for (k, v) in with.as_object().expect("an object") {
        base[k] = v.clone();
    }
    base
}

/// S25: exactly one of payment intent and charge; naming both would be refused.
#[test]
fn a_refund_names_its_payment_or_its_charge_and_never_both_s25() {
    for (payment, named, other) in [
        ("pi_1", "payment_intent", "charge"),
        ("ch_1", "charge", "payment_intent"),
    ] {
        let form = form(&arguments(&json!({})), payment);
        assert_eq!(form.get(named).map(String::as_str), Some(payment));
        assert_eq!(form.get(other), None);
    }
}

/// S26: the amount is always named (without it, all that is left would be refunded); a reason is one of three,
/// and never the system's own.
#[test]
fn the_amount_is_always_named_and_the_reason_is_one_of_three_s26() {
    let whole = form(&arguments(&json!({"amount_cents": 10_000})), "pi_1");
    assert_eq!(whole["amount"], "10000");
    assert_eq!(whole.get("reason"), None);
    for reason in ["duplicate", "fraudulent", "requested_by_customer"] {
        assert_eq!(
            form(&arguments(&json!({ "reason": reason })), "pi_1")["reason"],
            reason
        );
    }
    for reason in ["expired_uncaptured_charge", "", "DUPLICATE", "because"] {
        let asked = arguments(&json!({ "reason": reason }));
        assert!(RefundArguments::parse(&asked).is_err(), "{reason:?}");
    }
}

/// S27: our two entries, within the provider's limits even for the longest order.
#[test]
fn the_metadata_is_ours_and_within_the_limits_s27() {
    let longest = "ä".repeat(255);
    let form = form(&arguments(&json!({"order_id": longest})), "pi_1");
    let entries: Vec<_> = form
        .iter()
        .filter_map(|(k, v)| Some((k.strip_prefix("metadata[")?.strip_suffix(']')?, v)))
        .collect();
    assert_eq!(entries.len(), 2);
    for (name, value) in &entries {
        assert!(name.len() <= 40 && !name.contains(['[', ']']), "{name}");
        assert!(value.chars().count() <= 500, "{value}");
    }
    assert_eq!(form["metadata[operation_id]"], "op_5521");
    assert_eq!(form["metadata[order_id]"], longest);
}

fn refund(with: &Value) -> String {
    let mut base: Value = serde_json::from_str(REFUND).expect("a refund");
    for (k, v) in with.as_object().expect("an object") {
        base[k] = v.clone();
    }
    base.to_string()
}

/// S28: each status of a refund, and a word that nobody knows yet.
#[tokio::test]
async fn each_status_of_a_refund_has_its_class_s28() {
    use OutcomeClass as C;
    for (status, class) in [
        ("pending", C::Pending),
        ("requires_action", C::Pending),
        ("succeeded", C::Succeeded),
        ("failed", C::EffectFailed),
        ("canceled", C::EffectFailed),
        ("reversed", C::SideEffectUnknown),
    ] {
        let (outcome, _) = attempt(reply(200, &refund(&json!({ "status": status })))).await;
        assert_eq!(outcome.class, class, "{status}");
    }
}

/// S29: why it is pending changes nothing: accepted, not final.
#[tokio::test]
async fn a_pending_refund_is_pending_whatever_it_waits_for_s29() {
    for reason in [
        "processing",
        "insufficient_funds",
        "charge_pending",
        "something_new",
    ] {
        let body = refund(&json!({"status": "pending", "pending_reason": reason}));
        assert_eq!(
            attempt(reply(200, &body)).await.0.class,
            OutcomeClass::Pending
        );
    }
}

/// S30: the provider's reason of a failed refund is what the row fails with.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_refund_keeps_its_reason_s30() {
    for reason in [
        "lost_or_stolen_card",
        "expired_or_canceled_card",
        "charge_for_pending_refund_disputed",
        "insufficient_funds",
        "declined",
        "merchant_request",
        "unknown",
    ] {
        let desk = Desk::new(move |_, seen, _| {
            let mut refund = made(seen, "re_1", "failed");
            refund["failure_reason"] = json!(reason);
            refund["failure_balance_transaction"] = json!("txn_1");
            reply(200, &refund.to_string())
        })
        .await;
        let said = desk.ask("t1").await;
        assert_eq!(said.status(), "failed");
        assert!(format!("{said:?}").contains(reason), "{said:?}");
        let row = desk.row().await;
        assert_eq!((row.status, desk.posts().len()), (Status::Failed, 1));
        assert_eq!(row.provider_ref.expect("its object").as_str(), "re_1");
    }
}

/// S31: many refunds of a charge, together never above it.
#[test]
fn refunds_of_a_charge_add_up_to_it_at_most_s31() {
    let policy = ToolPolicy::refund("stripe".parse().expect("a provider"));
    let resolved = Resolved {
        payment: PaymentId::parse("pi_1").expect("payment"),
        charge: None,
        currency: "usd".parse().expect("usd"),
        captured_minor: 10_000,
        refunded_minor: 3000 + 3000,
        refunds: Vec::new(),
    };
    for (cents, fits) in [(1, true), (4000, true), (4001, false), (10_000, false)] {
        let asked = RefundArguments::parse(&arguments(&json!({"amount_cents": cents})));
        let asked = Arguments::from(asked.expect("arguments"));
        let checked = check(&[], &asked, Some(&resolved), &policy, Opened::default());
        assert_eq!(checked.is_ok(), fits, "{cents}");
    }
}

/// S35: a refund that succeeded may fail days later. The row is closed; it is flagged, not changed, and a
/// further call on the order is not sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_fails_after_it_succeeded_is_flagged_s35() {
    let desk = Desk::new(|_, seen, books| honest(seen, books)).await;
    assert_eq!(desk.ask("t1").await.status(), "refunded");
    desk.books.change("status", &json!("failed"));
    let gate = desk.world.gate(&[]);
    let me = gate.person(None).expect("the OS user");
    let id = desk.row().await.id;
    gate.lookup(&id, &me).await.expect("looked up");
    let row = desk.row().await;
    assert_eq!(row.status, Status::Succeeded);
    assert_eq!(row.contradicted, Some(Contradiction::FailedAfterSucceeded));
    assert_eq!(desk.ask("t2").await.status(), "checking");
    assert_eq!(desk.posts().len(), 1);
}

/// S37: without enough balance a refund is pending and later fails; nothing more is sent meanwhile, and the
/// next call hears the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_without_balance_is_followed_to_its_end_s37() {
    let desk = Desk::new(|_, seen, books| {
        let mut refund = made(seen, "re_1", "pending");
        refund["pending_reason"] = json!("insufficient_funds");
        books.keep(refund.clone());
        reply(200, &refund.to_string())
    })
    .await;
    assert_eq!(desk.ask("t1").await.status(), "unconfirmed");
    assert_eq!(desk.ask("t2").await.status(), "unconfirmed");
    let row = desk.row().await;
    assert_eq!((row.status, row.effect), (Status::Open, Effect::Identified));
    desk.books
        .change("failure_reason", &json!("insufficient_funds"));
    desk.books.change("status", &json!("failed"));
    let said = desk.ask("t3").await;
    assert!(
        said.status() == "failed" && format!("{said:?}").contains("insufficient_funds"),
        "{said:?}"
    );
    assert_eq!(desk.posts().len(), 1);
}

/// S38: what requires an action is pending and what was canceled has failed; nothing is ever canceled by us.
#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_refund_has_failed_and_nothing_is_canceled_here_s38() {
    let desk = Desk::new(|_, seen, books| {
        let refund = made(seen, "re_1", "requires_action");
        books.keep(refund.clone());
        reply(200, &refund.to_string())
    })
    .await;
    assert_eq!(desk.ask("t1").await.status(), "unconfirmed");
    desk.books.change("status", &json!("canceled"));
    assert_eq!(desk.ask("t2").await.status(), "failed");
    let posts = desk.server.requests();
    let posts: Vec<_> = posts
        .iter()
        .filter(|s| s.line.starts_with("POST"))
        .collect();
    assert_eq!(posts.len(), 1, "{posts:?}");
}

/// S40: a refund says nothing of its mode, and is ours all the same; where an answer does, it is not asked.
#[tokio::test]
async fn a_refund_needs_no_mode_s40() {
    for with in [
        json!({}),
        json!({"livemode": false}),
        json!({"livemode": true}),
    ] {
        let (outcome, _) = attempt(reply(200, &refund(&with))).await;
        assert_eq!(outcome.class, OutcomeClass::Succeeded, "{with}");
    }
}
