//! Refund arithmetic, lists, search and the form of objects (S25–S45).

use super::*;

#[tokio::test]
async fn refunds_add_up_and_never_exceed_the_charge_s31_s32() {
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
async fn lists_page_newest_first_and_filter_by_payment_s41_s42() {
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
async fn every_order_is_found_by_search_hostile_names_included_s43() {
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
async fn refunds_change_by_the_clock_s35_s36() {
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
async fn a_refund_that_requires_action_can_be_canceled_s38() {
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
async fn refunds_have_no_filter_by_metadata_and_no_search_s42_s43_s48() {
    let (sim, _) = start("honest").await;
    refund(&sim, "K", PAYMENT).await;
    let filtered = get(&sim, "/v1/refunds?metadata[operation_id]=op_1").await;
    assert_eq!(
        (filtered.status, filtered.error("code")),
        (400, "parameter_unknown".into())
    );
    for path in ["/v1/refunds/search?query=amount:'3800'", "/v1/request_logs"] {
        assert_eq!(get(&sim, path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn lists_have_a_refund_at_once_s44() {
    let (sim, _) = start("honest").await;
    for n in 0..5_usize {
        let id = refund(&sim, &n.to_string(), PAYMENT).await.id();
        let list = get(&sim, "/v1/refunds?payment_intent=pi_order_4417&limit=1").await;
        assert_eq!(list.json()["data"][0]["id"], id.as_str());
    }
}

#[tokio::test]
async fn time_filters_have_whole_seconds_s45() {
    let (sim, clock) = start("honest").await;
    clock.advance(Duration::from_millis(900));
    let made = refund(&sim, "K", PAYMENT).await.json();
    let second = made["created"].as_i64().expect("a second");
    for (filter, there) in [
        (format!("created[gte]={second}"), true),
        (format!("created[gt]={second}"), false),
        (format!("created[lt]={}", second + 1), true),
        (format!("created={second}"), true),
    ] {
        let list = get(&sim, &format!("/v1/refunds?{filter}")).await.json();
        assert_eq!(
            list["data"].as_array().map(Vec::is_empty),
            Some(!there),
            "{filter}"
        );
    }
}

#[tokio::test]
async fn a_stale_list_shows_a_refund_once_it_is_old_enough_s68() {
    let (sim, clock) = start("stale-list").await;
    post_and_hang_up(&sim, "K", PAYMENT, 1).await;
    let path = "/v1/refunds?payment_intent=pi_order_4417";
    clock.advance(59 * SECOND);
    assert_eq!(get(&sim, path).await.json()["data"], json!([]));
    clock.advance(SECOND);
    let list = get(&sim, path).await.json();
    let id = list["data"][0]["id"].as_str().expect("there by now");
    assert_eq!(get(&sim, &format!("/v1/refunds/{id}")).await.status, 200);
}

#[tokio::test]
async fn paging_meets_a_limit_twice_for_every_payment_s68() {
    let (sim, _) = start("paging-limited").await;
    for order in ["1", "2"] {
        let body = format!("payment_intent=pi_order_{order}&amount=100&metadata[o]={order}");
        post_and_hang_up(&sim, order, &body, 1).await;
        let path = format!("/v1/refunds?payment_intent=pi_order_{order}&limit=100");
        let first = get(&sim, &path).await.json();
        let last = first["data"][99]["id"]
            .as_str()
            .expect("a full page")
            .to_owned();
        let next = format!("{path}&starting_after={last}");
        for status in [429, 429, 200] {
            assert_eq!(get(&sim, &next).await.status, status);
        }
        let page = get(&sim, &next).await.json();
        let ours = page["data"].as_array().expect("a page").last().cloned();
        assert_eq!(ours.expect("ours")["metadata"]["o"], order);
    }
}

#[tokio::test]
async fn lookups_may_be_forbidden_s68() {
    let (sim, _) = start("lookup-forbidden").await;
    post_and_hang_up(&sim, "K", PAYMENT, 1).await;
    let id = sim.effects()[0].refund_id.clone();
    let by_id = format!("/v1/refunds/{id}");
    for path in ["/v1/refunds?payment_intent=pi_order_4417", &by_id] {
        assert_eq!(get(&sim, path).await.status, 403, "{path}");
    }
    assert_eq!(
        get(&sim, "/v1/payment_intents/pi_order_4417").await.status,
        200
    );
}
