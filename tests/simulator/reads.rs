//! Refund arithmetic, lists, search and the form of objects (S25–S45).

use super::*;

#[tokio::test]
async fn s31_s32_refunds_add_up_and_never_exceed_the_charge() {
    let (sim, _) = start("honest").await;
    let body = |amount: i64| format!("charge=ch_order_7&amount={amount}");
    assert_eq!(refund(&sim, "a", &body(99_000)).await.status, 200);
    let over = refund(&sim, "b", &body(1001)).await;
    assert_eq!((over.status, over.error("param")), (400, "amount".into()));
    let charge = get(&sim, "/v1/charges/ch_order_7").await.json();
    assert_eq!(charge["amount_refunded"], 99_000);
    assert_eq!(charge["refunded"], false);
    let rest = refund(&sim, "c", "charge=ch_order_7").await;
    assert_eq!(rest.json()["amount"], 1000, "S26: the remaining amount");
    let none = refund(&sim, "d", &body(1)).await;
    assert_eq!(none.error("code"), "charge_already_refunded");
    assert!(
        refund(&sim, "d", &body(1)).await.replayed(),
        "executed, so saved"
    );
    let charge = get(&sim, "/v1/charges/ch_order_7").await.json();
    assert_eq!(charge["refunded"], true);
}

#[tokio::test]
async fn s41_s42_lists_page_newest_first_and_filter_by_payment() {
    let (sim, clock) = start("honest").await;
    let mut ids = Vec::new();
    for nth in 0..5 {
        let answer = refund(
            &sim,
            &format!("k{nth}"),
            "payment_intent=pi_order_1&amount=10",
        )
        .await;
        ids.insert(0, answer.id());
        clock.advance(SECOND);
    }
    refund(&sim, "other", "payment_intent=pi_order_2&amount=10").await;
    let page = |query: String| {
        let sim = &sim;
        async move {
            let list = get(sim, &format!("/v1/refunds?{query}")).await.json();
            let data = list["data"].as_array().cloned().unwrap_or_default();
            let ids = data
                .iter()
                .filter_map(|r| r["id"].as_str().map(str::to_owned));
            (ids.collect::<Vec<_>>(), list["has_more"] == json!(true))
        }
    };
    let first = page("payment_intent=pi_order_1&limit=3".into()).await;
    assert_eq!(first, (ids[..3].to_vec(), true));
    let second = format!("charge=ch_order_1&limit=3&starting_after={}", ids[2]);
    assert_eq!(page(second).await, (ids[3..].to_vec(), false));
    let before = format!("payment_intent=pi_order_1&limit=1&ending_before={}", ids[2]);
    assert_eq!(page(before).await, (vec![ids[1].clone()], true));
    let since = clock.now().timestamp() - 3;
    let recent = format!("payment_intent=pi_order_1&created[gte]={since}");
    assert_eq!(page(recent).await, (ids[..3].to_vec(), false));
    assert_eq!(page(String::new()).await.0.len(), 6);
    assert_eq!(get(&sim, "/v1/refunds?limit=101").await.status, 400);
    let one = get(&sim, &format!("/v1/refunds/{}", ids[4])).await;
    assert_eq!((one.status, one.id()), (200, ids[4].clone()));
    let missing = get(&sim, "/v1/refunds/re_x").await;
    assert_eq!(
        (missing.status, missing.error("code")),
        (404, "resource_missing".into())
    );
}

#[tokio::test]
async fn s43_every_order_is_found_by_search_hostile_names_included() {
    let (sim, _) = start("honest").await;
    for (order, literal) in [
        ("4417", "'4417'"),
        ("a b/../c?d#e%2F", "\"a b/../c?d#e%2F\""),
        ("it's \\ \"x\"", r#"'it\'s \\ "x"'"#),
        ("заказ\r\nX-Evil: 1", "'заказ\r\nX-Evil: 1'"),
    ] {
        let query =
            form_urlencoded::byte_serialize(format!("metadata['order_id']:{literal}").as_bytes())
                .collect::<String>();
        let found = get(&sim, &format!("/v1/payment_intents/search?query={query}"))
            .await
            .json();
        let intent = &found["data"][0];
        assert_eq!(intent["metadata"]["order_id"], order);
        let id = intent["id"].as_str().expect("id");
        let direct = get(&sim, &format!("/v1/payment_intents/{id}")).await.json();
        assert_eq!(&direct, intent);
        let body = format!("payment_intent={id}&amount=5");
        assert_eq!(
            refund(&sim, &format!("k{}", id.len()), &body).await.status,
            200
        );
        let charge = intent["latest_charge"].as_str().expect("charge");
        let charge = get(&sim, &format!("/v1/charges/{charge}")).await.json();
        assert_eq!(charge["amount_refunded"], 5, "{order:?}");
    }
    let wrong = get(&sim, "/v1/payment_intents/search?query=order%3A4417").await;
    assert_eq!((wrong.status, wrong.error("param")), (400, "query".into()));
    let charges = get(&sim, "/v1/charges?payment_intent=pi_order_4417")
        .await
        .json();
    assert_eq!(charges["data"][0]["id"], "ch_order_4417");
    let expanded = get(
        &sim,
        "/v1/payment_intents/pi_order_4417?expand[]=latest_charge",
    )
    .await;
    assert_eq!(expanded.json()["latest_charge"]["object"], "charge");
}

#[tokio::test]
async fn s35_s36_refunds_change_by_the_clock() {
    for (plan, first, then, after) in [
        ("pending-then-succeeded", "pending", "succeeded", 600),
        ("pending-then-failed", "pending", "failed", 600),
        ("succeeded-then-failed", "succeeded", "failed", 3600),
    ] {
        let (sim, clock) = start(plan).await;
        let made = refund(&sim, "K", PAYMENT).await.json();
        assert_eq!(made["status"], first, "{plan}");
        let path = format!("/v1/refunds/{}", made["id"].as_str().expect("id"));
        clock.advance(SECOND * (after - 1));
        assert_eq!(get(&sim, &path).await.json()["status"], first, "{plan}");
        clock.advance(SECOND);
        let now = get(&sim, &path).await.json();
        assert_eq!(now["status"], then, "{plan}");
        assert_eq!(now["failure_reason"].is_string(), then == "failed", "S30");
        let charge = get(&sim, "/v1/charges/ch_order_4417").await.json();
        let kept = if then == "failed" { 0 } else { 3800 };
        assert_eq!(charge["amount_refunded"], kept, "{plan}");
        let replay = refund(&sim, "K", PAYMENT).await;
        assert_eq!(replay.json()["status"], first, "S3: what was saved");
    }
}

#[tokio::test]
async fn s38_a_refund_that_requires_action_can_be_canceled() {
    let (sim, _) =
        start_file("about = 'x'\n[[step]]\nrefund = { status = 'requires_action' }\n").await;
    let id = refund(&sim, "K", PAYMENT).await.id();
    let cancel = || {
        raw(
            &sim,
            post_text(&format!("/v1/refunds/{id}/cancel"), None, ""),
        )
    };
    let canceled = cancel().await.expect("a reply").json();
    assert_eq!(canceled["status"], "canceled");
    assert_eq!(cancel().await.expect("a reply").status, 400);
    assert_eq!(sim.effects()[0].status, RefundStatus::Canceled);
}

#[tokio::test]
async fn members_and_types_are_those_of_the_fixtures() {
    let (sim, _) = start("honest").await;
    let text = include_str!("../fixtures/stripe-fixtures.json");
    let fixtures: Value = serde_json::from_str(text).expect("fixtures");
    let made = refund(&sim, "K", PAYMENT).await.json();
    let intent = get(&sim, "/v1/payment_intents/pi_order_4417").await.json();
    let charge = get(&sim, "/v1/charges/ch_order_4417").await.json();
    for (name, ours) in [
        ("refund", made),
        ("payment_intent", intent),
        ("charge", charge),
    ] {
        let mut missing = Vec::new();
        compare(name, &fixtures[name], &ours, &mut missing);
        assert!(missing.is_empty(), "{missing:#?}");
    }
}

/// Every member of the fixture is there, with the same type wherever both have a value.
fn compare(path: &str, theirs: &Value, ours: &Value, wrong: &mut Vec<String>) {
    let Value::Object(members) = theirs else {
        return;
    };
    for (name, value) in members {
        let path = format!("{path}.{name}");
        match ours.get(name) {
            None => wrong.push(format!("{path} is missing")),
            Some(Value::Null) => {}
            Some(own) => {
                let same = std::mem::discriminant(own) == std::mem::discriminant(value);
                if !same && !value.is_null() {
                    wrong.push(format!("{path} has another type"));
                }
                compare(&path, value, own, wrong);
            }
        }
    }
}
