//! Every scenario over HTTP (S61–S68), and that the same seed gives the same faults.

use super::*;

#[tokio::test]
async fn a_late_effect_comes_from_a_file_s12() {
    let (sim, clock) = start_file(
        "about = 'late'\n[[step]]\neffect = false\nlate_s = 60\nanswer = { status = 503 }\n",
    )
    .await;
    assert_eq!(refund(&sim, "K", PAYMENT).await.status, 503);
    assert!(sim.effects().is_empty());
    clock.advance(60 * SECOND);
    assert_eq!(sim.effects()[0].source, EffectSource::Late);
    assert_eq!(sim.requests()[0].fault, Some("custom"));
}

#[tokio::test]
async fn a_held_reply_waits_until_the_client_hangs_up_s61() {
    for (plan, effects) in [("timeout-before-effect", 0), ("timeout-after-effect", 1)] {
        let (sim, _) = start(&format!("{plan}:2")).await;
        for nth in 1..=2 {
            // Returns only once the simulator has noticed that the client is gone.
            post_and_hang_up(&sim, "K", PAYMENT, nth).await;
            assert_eq!(sim.held().now(), 0);
            assert_eq!(sim.effects().len(), effects, "{plan}");
        }
        let third = refund(&sim, "K", PAYMENT).await;
        assert_eq!(
            (third.status, third.replayed()),
            (200, effects == 1),
            "{plan}"
        );
        assert_eq!(sim.effects().len(), 1);
    }
}

#[tokio::test]
async fn a_reset_after_the_commit_leaves_the_refund_s61() {
    let (sim, _) = start("reset-after-commit:1").await;
    assert_eq!(post(&sim, Some("K"), PAYMENT).await, None);
    assert_eq!(sim.effects().len(), 1);
    assert!(refund(&sim, "K", PAYMENT).await.replayed());
}

#[tokio::test]
async fn slow_answers_after_thirty_seconds_with_the_effect_already_there_s61() {
    let (sim, clock) = start("slow").await;
    let mut held = sim.held();
    let time = async {
        held.order("4417", 1).await;
        assert_eq!(sim.effects().len(), 1);
        clock.advance(30 * SECOND);
    };
    let (answer, ()) = tokio::join!(refund(&sim, "K", PAYMENT), time);
    assert_eq!(answer.status, 200);
}

/// Scenarios that answer at once: first and second status of a key, refunds by us and by others.
#[tokio::test]
async fn every_other_scenario_does_what_it_says_s62_s63_s64_s67() {
    for (plan, first, code, second, ours, others) in [
        ("bad-gateway", 502, "", Some(502), 0, 0),
        ("rate-limited", 429, "rate_limit", Some(429), 0, 0),
        ("lock-timeout", 429, "lock_timeout", Some(429), 0, 0),
        ("key-mismatch", 400, "", Some(400), 0, 0),
        ("permission-denied", 403, "", Some(403), 0, 0),
        ("refused", 400, "charge_disputed", Some(400), 0, 0),
        (
            "already-refunded",
            400,
            "charge_already_refunded",
            Some(400),
            0,
            1,
        ),
        ("wrong-amount-reply", 200, "", Some(200), 1, 0),
        ("garbled-reply", 200, "", Some(200), 1, 0),
        ("pruned-key", 0, "", Some(200), 2, 0),
        ("ignores-keys", 0, "", Some(200), 2, 0),
        ("rate-limited:1", 429, "rate_limit", Some(200), 1, 0),
    ] {
        let (sim, _) = start(plan).await;
        let answer = post(&sim, Some("K"), PAYMENT).await;
        assert_eq!(answer.as_ref().map_or(0, |a| a.status), first, "{plan}");
        if !code.is_empty() {
            assert_eq!(answer.expect("a reply").error("code"), code, "{plan}");
        }
        let answer = post(&sim, Some("K"), PAYMENT).await;
        assert_eq!(answer.map(|a| a.status), second, "{plan}");
        let count = |source| sim.effects().iter().filter(|e| e.source == source).count();
        assert_eq!(count(EffectSource::Api), ours, "{plan}");
        assert_eq!(count(EffectSource::External), others, "{plan}");
    }
}

#[tokio::test]
async fn details_of_refusals_s63_s64() {
    let (sim, _) = start("rate-limited").await;
    let limited = refund(&sim, "K", PAYMENT).await;
    assert_eq!(
        limited.header("Stripe-Rate-Limited-Reason"),
        Some("endpoint-rate")
    );
    let (sim, _) = start("key-mismatch").await;
    assert_eq!(
        refund(&sim, "K", PAYMENT).await.error("type"),
        "idempotency_error"
    );
    let (sim, _) = start("refused").await;
    refund(&sim, "K", PAYMENT).await;
    assert!(
        refund(&sim, "K", PAYMENT).await.replayed(),
        "a result of execution"
    );
    let charge = get(&sim, "/v1/charges/ch_order_4417").await.json();
    assert_eq!(charge["disputed"], true);
}

#[tokio::test]
async fn damaged_replies_hide_a_true_refund() {
    let (sim, _) = start("wrong-amount-reply").await;
    let wrong = refund(&sim, "K", PAYMENT).await;
    assert_eq!(wrong.json()["amount"], 3801);
    let truth = get(&sim, &format!("/v1/refunds/{}", wrong.id()))
        .await
        .json();
    assert_eq!(truth["amount"], 3800);
    let (sim, _) = start("garbled-reply").await;
    let garbled = refund(&sim, "K", PAYMENT).await;
    assert!(serde_json::from_str::<Value>(&garbled.body).is_err());
}

#[tokio::test]
async fn other_objects_on_the_payment_s67_s68() {
    let (sim, _) = start("external-refund").await;
    post_and_hang_up(&sim, "K", PAYMENT, 1).await;
    post_and_hang_up(&sim, "K", PAYMENT, 2).await;
    let effects = sim.effects();
    assert_eq!(effects.len(), 1);
    assert_eq!(
        (effects[0].source, effects[0].amount),
        (EffectSource::External, 3800)
    );
    assert!(effects[0].metadata.is_empty());

    let (sim, _) = start("copied-metadata").await;
    post_and_hang_up(&sim, "K", PAYMENT, 1).await;
    let effects = sim.effects();
    assert_eq!(effects.len(), 2);
    assert_eq!(effects[0].metadata, effects[1].metadata);

    let (sim, _) = start("match-on-page-2").await;
    post_and_hang_up(&sim, "K", PAYMENT, 1).await;
    assert_eq!(sim.effects().len(), 1, "the others moved no money");
    let ours = sim.effects()[0].refund_id.clone();
    let path = "/v1/refunds?payment_intent=pi_order_4417&limit=100";
    let page = get(&sim, path).await;
    assert!(!page.body.contains(&ours) && page.json()["has_more"] == true);
    let last = page.json()["data"][99]["id"]
        .as_str()
        .expect("id")
        .to_owned();
    let page = get(&sim, &format!("{path}&starting_after={last}")).await;
    assert!(page.body.contains(&ours) && page.json()["has_more"] == false);
}

#[tokio::test]
async fn an_outage_begins_with_a_refund_hits_reads_and_ends_by_the_clock() {
    let (sim, clock) = start("outage").await;
    assert_eq!(get(&sim, "/v1/account").await.status, 200, "not yet");
    assert_eq!(refund(&sim, "K", PAYMENT).await.status, 503);
    assert_eq!(get(&sim, "/v1/account").await.status, 503);
    clock.advance(Duration::from_mins(10));
    assert_eq!(get(&sim, "/v1/account").await.status, 200);
    assert_eq!(refund(&sim, "K", PAYMENT).await.status, 200);
    assert_eq!(sim.effects().len(), 1);
}

/// Contract: faults depend on seed, order and n-th request of a key, never on arrival.
#[tokio::test]
async fn the_same_seed_gives_the_same_faults_and_refunds_in_any_order() {
    let orders: Vec<String> = (0..40).map(|o| o.to_string()).collect();
    let run = |seed: u64, orders: Vec<String>| async move {
        let cfg = SimConfig {
            plan: Plan::Mixed { n: None },
            seed,
            ..SimConfig::new(clock())
        };
        let sim = Simulator::start(cfg).await.expect("start");
        for order in &orders {
            let body = format!("payment_intent=pi_order_{order}&amount=100");
            for _ in 0..3 {
                // Another key in each run, as a client's random keys are.
                let key = format!("{order}-{}", orders[0]);
                let before = sim.requests().len();
                tokio::select! {
                    _ = post(&sim, Some(&key), &body) => {}
                    () = arrived(&sim, before) => {}
                }
            }
        }
        let faults: BTreeSet<_> = sim
            .requests()
            .into_iter()
            .map(|r| (r.order_id, r.nth, r.fault))
            .collect();
        let effects: BTreeSet<_> = sim.effects().into_iter().map(|e| e.refund_id).collect();
        (faults, effects)
    };
    let forwards = run(7, orders.clone()).await;
    assert_eq!(forwards.0.len(), 120);
    let backwards = run(7, orders.iter().rev().cloned().collect()).await;
    assert_eq!(forwards, backwards);
    assert_ne!(forwards.0, run(8, orders).await.0);
}

/// Waits until one more request was carried out, held or not.
async fn arrived(sim: &Simulator, before: usize) {
    while sim.requests().len() <= before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
