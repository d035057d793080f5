//! The idempotency layer over HTTP (S1–S13).

use super::*;

#[tokio::test]
async fn a_key_replays_its_first_answer_s3_s4() {
    let (sim, _) = start("honest").await;
    let first = refund(&sim, "K", PAYMENT).await;
    assert_eq!((first.status, first.replayed()), (200, false));
    let again = refund(&sim, "K", PAYMENT).await;
    assert!(again.replayed());
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(again.header("Original-Request"), first.header("Request-Id"));
    assert_ne!(again.header("Request-Id"), first.header("Request-Id"));
    let effects = sim.effects();
    assert_eq!(effects.len(), 1);
    assert_eq!(
        (effects[0].amount, effects[0].key.as_deref()),
        (3800, Some("K"))
    );
    assert_eq!(effects[0].metadata["operation_id"], "op_1");
    let other = refund(&sim, "K2", PAYMENT).await;
    assert_ne!(other.id(), first.id(), "another key is another refund");
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_requests_at_once_make_one_refund_s3() {
    let (sim, _) = start("honest").await;
    let all = (0..16).map(|_| refund(&sim, "K", PAYMENT));
    let all = futures_util::future::join_all(all).await;
    assert_eq!(all.iter().filter(|a| a.replayed()).count(), 15);
    let ids: BTreeSet<_> = all.iter().map(Answer::id).collect();
    assert_eq!((ids.len(), sim.effects().len()), (1, 1));
    assert_eq!(sim.requests().iter().map(|r| r.nth).max(), Some(16));
}

#[tokio::test]
async fn another_request_under_a_key_is_refused_s6_s7() {
    let (sim, _) = start("honest").await;
    refund(&sim, "K", PAYMENT).await;
    let other = refund(&sim, "K", "payment_intent=pi_order_4417&amount=3801").await;
    assert_eq!(
        (other.status, other.error("type")),
        (400, "idempotency_error".into())
    );
    assert!(other.error("message").contains("'K'"));
    let cancel = post_text("/v1/refunds/re_x/cancel", Some("K"), PAYMENT);
    let elsewhere = raw(&sim, cancel).await.expect("a reply");
    assert!(elsewhere.error("message").contains("same endpoint"));
    assert_eq!(sim.effects().len(), 1);
}

#[tokio::test]
async fn a_key_of_256_characters_is_refused_and_nothing_saved_s2() {
    let (sim, _) = start("honest").await;
    let long = "k".repeat(256);
    assert_eq!(refund(&sim, &long, PAYMENT).await.status, 400);
    assert_eq!(refund(&sim, &long[1..], PAYMENT).await.status, 200);
    assert_eq!(sim.effects().len(), 1);
}

#[tokio::test]
async fn validation_and_401_are_not_saved_s5() {
    let (sim, _) = start("honest").await;
    assert_eq!(refund(&sim, "K", "amount=3800").await.status, 400);
    let anonymous = post_text("/v1/refunds", Some("K"), PAYMENT).replace(AUTH, "");
    let anonymous = raw(&sim, anonymous).await.expect("a reply");
    assert_eq!(anonymous.status, 401);
    assert!(
        anonymous
            .header("Request-Id")
            .is_some_and(|r| r.starts_with("req_"))
    );
    let good = refund(&sim, "K", PAYMENT).await;
    assert_eq!((good.status, good.replayed()), (200, false));
}

#[tokio::test]
async fn overlapping_requests_of_a_key_get_409_s8() {
    let (sim, clock) = start("overlap-409").await;
    let mut held = sim.held();
    let text = post_text("/v1/refunds", Some("K"), PAYMENT);
    let request = raw(&sim, text);
    let others = async {
        held.order("4417", 1).await;
        for _ in 0..3 {
            let other = refund(&sim, "K", PAYMENT).await;
            assert_eq!(other.status, 409);
            assert_eq!(other.error("code"), "idempotency_key_in_use");
            assert_eq!(other.error("type"), "invalid_request_error");
        }
        clock.advance(5 * SECOND);
        assert!(
            refund(&sim, "K", PAYMENT).await.replayed(),
            "executed by now"
        );
        clock.advance(25 * SECOND);
    };
    let (first, ()) = tokio::join!(request, others);
    assert_eq!(first.expect("a reply at last").status, 200);
    assert_eq!(sim.effects().len(), 1);
}

#[tokio::test]
async fn a_client_that_hung_up_meets_exactly_one_409_however_late_it_comes_s8() {
    let (sim, clock) = start("overlap-409").await;
    post_and_hang_up(&sim, "K", PAYMENT, 1).await;
    clock.advance(60 * SECOND);
    assert_eq!(refund(&sim, "K", PAYMENT).await.status, 409);
    assert!(refund(&sim, "K", PAYMENT).await.replayed());
}

#[tokio::test]
async fn latency_alone_makes_overlaps_conflict_and_the_type_is_configurable_s8() {
    let clock = clock();
    let cfg = SimConfig {
        latency: SECOND,
        conflict_type: "idempotency_error".to_owned(),
        ..SimConfig::new(clock.clone())
    };
    let sim = Simulator::start(cfg).await.expect("start");
    let mut held = sim.held();
    let first = post(&sim, Some("K"), PAYMENT);
    let second = async {
        held.key("K", 1).await;
        let second = post(&sim, Some("K"), PAYMENT);
        let time = async {
            held.key("K", 2).await;
            clock.advance(SECOND);
        };
        tokio::join!(second, time).0
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.expect("a reply").status, 200);
    let second = second.expect("a reply");
    assert_eq!(
        (second.status, second.error("type")),
        (409, "idempotency_error".into())
    );
}

#[tokio::test]
async fn a_saved_500_never_changes_with_or_without_effect_s12() {
    for (plan, effects) in [
        ("saved-500-with-effect", 1),
        ("saved-500-without-effect", 0),
    ] {
        let (sim, _) = start(plan).await;
        let first = refund(&sim, "K", PAYMENT).await;
        assert_eq!((first.status, first.replayed()), (500, false), "{plan}");
        assert_eq!(first.header("Stripe-Should-Retry"), Some("false"));
        let again = refund(&sim, "K", PAYMENT).await;
        assert_eq!((again.status, again.replayed()), (500, true), "{plan}");
        assert_eq!(again.body, first.body);
        assert_eq!(sim.effects().len(), effects, "{plan}");
    }
}

#[tokio::test]
async fn keys_are_pruned_after_their_retention_s9() {
    let (sim, clock) = start("honest").await;
    refund(&sim, "K", PAYMENT).await;
    clock.advance(SECOND * 86_399);
    assert!(refund(&sim, "K", PAYMENT).await.replayed());
    clock.advance(SECOND);
    assert!(!refund(&sim, "K", PAYMENT).await.replayed());
    assert_eq!(sim.effects().len(), 2);
}

#[tokio::test]
async fn every_api_key_has_its_own_account_and_idempotency_keys_s10() {
    let (sim, _) = start("honest").await;
    refund(&sim, "K", PAYMENT).await;
    let other = post_text("/v1/refunds", Some("K"), PAYMENT).replace("sk_test_demo", "sk_test_2");
    assert!(!raw(&sim, other).await.expect("a reply").replayed());
    let account = get(&sim, "/v1/account").await.json();
    assert!(
        account["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("acct_"))
    );
    // "sk_test_demo:" as user of Basic
    let basic = "Authorization: Basic c2tfdGVzdF9kZW1vOg==\r\n";
    let text = format!("GET /v1/account HTTP/1.1\r\nHost: s\r\nConnection: close\r\n{basic}\r\n");
    let same = raw(&sim, text).await.expect("a reply").json();
    assert_eq!(same["id"], account["id"]);
}

#[tokio::test]
async fn a_scenario_may_forget_keys_early_or_late_s9_s64() {
    for (kept, early) in [(60, true), (172_800, false)] {
        let (sim, _) = start_file(&format!("about = 'x'\nretention_s = {kept}\n[[step]]\n")).await;
        refund(&sim, "K", PAYMENT).await;
        advance(&sim, 86_400).await;
        assert_eq!(
            refund(&sim, "K", PAYMENT).await.replayed(),
            !early,
            "{kept}"
        );
        assert_eq!(sim.effects().len(), if early { 2 } else { 1 });
    }
}
