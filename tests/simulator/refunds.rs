//! Refund requests and what becomes of refunds (S25–S40, S65, S69).

use super::*;

#[tokio::test]
async fn a_payment_or_a_charge_but_not_both_s25() {
    let (sim, _) = start("honest").await;
    let none = refund(&sim, "a", "amount=5").await;
    let message = none.error("message");
    assert_eq!(none.status, 400);
    assert!(
        message.contains("payment_intent") && message.contains("charge"),
        "{message}"
    );
    let both = refund(&sim, "a", "payment_intent=pi_order_1&charge=ch_order_1").await;
    assert_eq!(both.status, 400);
    let charge = refund(&sim, "a", "charge=ch_order_1&amount=5").await.json();
    assert_eq!(charge["payment_intent"], "pi_order_1");
}

#[tokio::test]
async fn reasons_are_three_and_the_systems_own_is_refused_s26() {
    let (sim, _) = start("honest").await;
    for reason in ["duplicate", "fraudulent", "requested_by_customer"] {
        let body = format!("payment_intent=pi_order_1&amount=5&reason={reason}");
        assert_eq!(refund(&sim, reason, &body).await.json()["reason"], reason);
    }
    let body = "payment_intent=pi_order_1&amount=5&reason=expired_uncaptured_charge";
    let refused = refund(&sim, "x", body).await;
    assert_eq!(
        (refused.status, refused.error("param")),
        (400, "reason".into())
    );
}

#[tokio::test]
async fn metadata_has_its_limits_s27() {
    let (sim, _) = start("honest").await;
    let (name, value) = ("n".repeat(40), "v".repeat(500));
    let body = format!("payment_intent=pi_order_1&amount=5&metadata[{name}]={value}");
    assert_eq!(
        refund(&sim, "a", &body).await.json()["metadata"][&name],
        value.as_str()
    );
    let many = (0..51)
        .map(|i| format!("&metadata[k{i}]=v"))
        .collect::<Vec<_>>()
        .concat();
    for wrong in [
        format!("&metadata[{name}n]=v"),
        format!("&metadata[a]={value}v"),
        "&metadata[a[b]]=v".to_owned(),
        many,
    ] {
        let body = format!("payment_intent=pi_order_1&amount=5{wrong}");
        let refused = refund(&sim, "b", &body).await;
        assert_eq!(refused.status, 400);
        assert!(refused.error("param").starts_with("metadata"), "{wrong}");
    }
}

#[tokio::test]
async fn every_status_and_reason_can_be_had_s28_s29_s30() {
    for status in [
        "pending",
        "requires_action",
        "succeeded",
        "failed",
        "canceled",
    ] {
        let text = format!("about = 'x'\n[[step]]\nrefund = {{ status = '{status}' }}\n");
        let (sim, _) = start_file(&text).await;
        assert_eq!(refund(&sim, "K", PAYMENT).await.json()["status"], status);
    }
    for reason in ["processing", "insufficient_funds", "charge_pending"] {
        let text = format!(
            "about = 'x'\n[[step]]\nrefund = {{ status = 'pending', pending_reason = '{reason}' }}\n"
        );
        let (sim, _) = start_file(&text).await;
        let made = refund(&sim, "K", PAYMENT).await.json();
        assert_eq!(made["pending_reason"], reason);
        assert_eq!(made.get("failure_reason"), None);
    }
    for reason in [
        "lost_or_stolen_card",
        "expired_or_canceled_card",
        "charge_for_pending_refund_disputed",
        "insufficient_funds",
        "declined",
        "merchant_request",
        "unknown",
    ] {
        let text = format!(
            "about = 'x'\n[[step]]\nrefund = {{ then = 'failed', after_s = 9, failure_reason = '{reason}' }}\n"
        );
        let (sim, clock) = start_file(&text).await;
        let id = refund(&sim, "K", PAYMENT).await.id();
        clock.advance(9 * SECOND);
        let failed = get(&sim, &format!("/v1/refunds/{id}")).await.json();
        assert_eq!(failed["failure_reason"], reason);
        assert!(failed["failure_balance_transaction"].is_string());
        assert_eq!(failed.get("pending_reason"), None);
    }
}

#[tokio::test]
async fn what_cannot_be_refunded_is_refused_for_its_reason_s33() {
    let (sim, _) = start("refused").await;
    assert_eq!(
        refund(&sim, "K", PAYMENT).await.error("code"),
        "charge_disputed"
    );
    let (sim, _) = start("honest").await;
    for amount in ["0", "-1", "1.5", "x"] {
        let refused = refund(&sim, amount, &format!("charge=ch_order_1&amount={amount}")).await;
        assert_eq!(
            refused.error("code"),
            "parameter_invalid_integer",
            "{amount}"
        );
    }
    let unknown = refund(&sim, "u", "charge=ch_unknown&amount=5").await;
    assert_eq!(
        (unknown.status, unknown.error("code")),
        (404, "resource_missing".into())
    );
    for (state, word) in [("uncaptured", "captured"), ("failed", "successful charge")] {
        let text = format!("about = 'x'\n[world]\ncharge = '{state}'\n[[step]]\n");
        let (sim, _) = start_file(&text).await;
        let refused = refund(&sim, "K", PAYMENT).await;
        assert_eq!(refused.status, 400, "{state}");
        assert!(refused.error("message").contains(word), "{state}");
        let charge = get(&sim, "/v1/charges/ch_order_4417").await.json();
        assert_eq!(charge["captured"], false);
        assert_eq!(charge["status"] == "failed", state == "failed");
        assert!(sim.effects().is_empty());
    }
}

#[tokio::test]
async fn cards_for_tests_stand_in_the_payment_s35() {
    for (plan, card) in [
        ("honest", "pm_card_visa"),
        ("succeeded-then-failed", "pm_card_refundFail"),
        ("pending-then-succeeded", "pm_card_pendingRefund"),
    ] {
        let (sim, _) = start(plan).await;
        let intent = get(&sim, "/v1/payment_intents/pi_order_4417").await.json();
        assert_eq!(intent["payment_method"], card);
    }
}

#[tokio::test]
async fn a_low_balance_makes_it_pending_and_then_failed_s37_s69() {
    let (sim, _) = start("balance-too-low").await;
    let made = refund(&sim, "K", PAYMENT).await;
    assert_eq!(made.json()["pending_reason"], "insufficient_funds");
    let path = format!("/v1/refunds/{}", made.id());
    advance(&sim, 5 * 86_400 - 1).await;
    assert_eq!(get(&sim, &path).await.json()["status"], "pending");
    advance(&sim, 1).await;
    let failed = get(&sim, &path).await.json();
    assert_eq!(
        (&failed["status"], &failed["failure_reason"]),
        (&json!("failed"), &json!("insufficient_funds"))
    );
    let charge = get(&sim, "/v1/charges/ch_order_4417").await.json();
    assert_eq!(charge["amount_refunded"], 0);
}

#[tokio::test]
async fn no_action_ends_in_canceled_s38_s65() {
    let (sim, _) = start("requires-action-then-canceled").await;
    let made = refund(&sim, "K", PAYMENT).await;
    assert_eq!(made.json()["status"], "requires_action");
    advance(&sim, 86_400).await;
    let canceled = get(&sim, &format!("/v1/refunds/{}", made.id()))
        .await
        .json();
    assert_eq!(canceled["status"], "canceled");
    assert_eq!(canceled["failure_reason"], "merchant_request");
    let text = post_text(&format!("/v1/refunds/{}/cancel", made.id()), Some("C"), "");
    let refused = raw(&sim, text.clone()).await.expect("a reply");
    assert_eq!((refused.status, refused.replayed()), (400, false));
    assert!(
        raw(&sim, text).await.expect("a reply").replayed(),
        "executed, so saved"
    );
}

#[tokio::test]
async fn a_refund_does_not_say_its_mode_s40() {
    let (sim, _) = start("honest").await;
    let made = refund(&sim, "K", PAYMENT).await.json();
    assert_eq!(made.get("livemode"), None);
    let event = get(&sim, "/v1/events").await.json();
    assert_eq!(event["data"][0]["livemode"], false);
}

#[tokio::test]
async fn yen_have_no_decimals_s69() {
    let (sim, _) = start("zero-decimal").await;
    let body = |amount: i64| format!("payment_intent=pi_order_1&currency=jpy&amount={amount}");
    let made = refund(&sim, "a", &body(500)).await.json();
    assert_eq!(
        (&made["currency"], &made["amount"]),
        (&json!("jpy"), &json!(500))
    );
    let over = refund(&sim, "b", &body(100_000)).await;
    assert!(
        over.error("message").contains("(¥100000)"),
        "{}",
        over.error("message")
    );
    let usd = refund(&sim, "c", "payment_intent=pi_order_1&currency=usd&amount=5").await;
    assert_eq!(usd.error("param"), "currency");
    let intent = get(&sim, "/v1/payment_intents/pi_order_1").await.json();
    assert_eq!(intent["currency"], "jpy");
    assert_eq!(sim.effects()[0].currency, "jpy");
}

#[tokio::test]
async fn equal_parts_are_different_refunds_s31_s69() {
    let (sim, _) = start("honest").await;
    let mut ids = BTreeSet::new();
    for key in ["a", "b", "c"] {
        ids.insert(refund(&sim, key, PAYMENT).await.id());
    }
    assert_eq!((ids.len(), sim.effects().len()), (3, 3));
}

#[tokio::test]
async fn two_candidates_of_one_amount_s67() {
    let (sim, _) = start("two-candidates").await;
    post_and_hang_up(&sim, "K", PAYMENT, 1).await;
    let list = get(&sim, "/v1/refunds?payment_intent=pi_order_4417")
        .await
        .json();
    let all = list["data"].as_array().expect("a list");
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|r| r["amount"] == 3800));
    assert_eq!(all[0]["metadata"]["operation_id"], "op_1");
    assert_eq!(all[1]["metadata"], json!({}), "the dashboard's");
}
