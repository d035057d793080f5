//! Webhooks: which, signed how, and everything that goes wrong with them (S49–S56, S66).

use super::receiver::Receiver;
use super::*;

const SECRET: &str = "whsec_test";

async fn told(plan: &str) -> (Simulator, Clock, Receiver) {
    let receiver = Receiver::start().await;
    let plan = Plan::parse(plan).expect("a plan");
    let (sim, clock) = start_plan(plan, Some(receiver.endpoint(&[SECRET]))).await;
    (sim, clock, receiver)
}

/// Waits until as many webhooks were received: a clock that moves while a receiver answers would run
/// out its time.
async fn received(sim: &Simulator, count: u64) {
    loop {
        let state = get(sim, "/_sim/state").await.json();
        if state["webhooks"]["received"] == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_refund_that_succeeds_at_once_is_told_of_twice_and_no_more_s49_s50() {
    let (sim, _, mut receiver) = told("honest").await;
    let made = refund(&sim, "K", PAYMENT).await;
    let (created, charge) = (receiver.next().await, receiver.next().await);
    assert_eq!(created.kind(), "refund.created");
    assert_eq!(created.event()["data"]["object"], made.json());
    assert_eq!(charge.kind(), "charge.refunded", "also when partial");
    let object = &charge.event()["data"]["object"];
    assert_eq!(
        (&object["id"], &object["refunded"]),
        (&json!("ch_order_4417"), &json!(false))
    );
    assert_eq!(object["amount_refunded"], 3800);
    refund(&sim, "K", PAYMENT).await;
    received(&sim, 2).await;
    receiver.nothing();
}

#[tokio::test]
async fn a_refund_that_takes_its_time_is_told_of_again_s35_s50() {
    for (plan, later) in [
        (
            "pending-then-succeeded",
            vec!["refund.updated", "charge.refund.updated", "charge.refunded"],
        ),
        (
            "pending-then-failed",
            vec!["refund.failed", "charge.refund.updated"],
        ),
    ] {
        let (sim, clock, mut receiver) = told(plan).await;
        refund(&sim, "K", PAYMENT).await;
        let first = receiver.next().await;
        assert_eq!(first.kind(), "refund.created");
        assert_eq!(first.event()["data"]["object"]["status"], "pending");
        received(&sim, 1).await;
        receiver.nothing();
        // Nobody asks: the change comes by the clock, and so do its webhooks.
        clock.advance(Duration::from_mins(10));
        let next = receiver.next().await;
        assert_eq!(next.kind(), later[0], "{plan}");
        assert_eq!(
            next.event()["data"]["previous_attributes"]["status"],
            "pending"
        );
        assert_eq!(receiver.kinds(later.len() - 1).await, later[1..]);
    }
}

#[tokio::test]
async fn metadata_and_reference_numbers_are_updates_s39_s49() {
    let receiver = Receiver::start().await;
    let plan = file("about = 'x'\n[[step]]\nrefund = { reference_after_s = 86400 }\n");
    let (sim, _) = start_plan(plan, Some(receiver.endpoint(&[SECRET]))).await;
    let mut receiver = receiver;
    let made = refund(&sim, "K", PAYMENT).await;
    let card = &made.json()["destination_details"]["card"];
    assert_eq!(
        (&card["reference_status"], &card["reference"]),
        (&json!("pending"), &Value::Null)
    );
    receiver.kinds(2).await;
    let path = format!("/v1/refunds/{}", made.id());
    let text = post_text(&path, Some("M"), "metadata[note]=x&metadata[operation_id]=");
    let changed = raw(&sim, text).await.expect("a reply").json();
    assert_eq!(changed["metadata"], json!({ "note": "x" }));
    let told = receiver.next().await;
    assert_eq!(told.kind(), "refund.updated");
    let previous = &told.event()["data"]["previous_attributes"];
    assert_eq!(previous, &json!({ "metadata": { "operation_id": "op_1" } }));
    assert_eq!(told.event()["request"]["idempotency_key"], "M");
    assert_eq!(receiver.next().await.kind(), "charge.refund.updated");
    advance(&sim, 86_400).await;
    let told = receiver.next().await.event();
    let card = &told["data"]["object"]["destination_details"]["card"];
    assert_eq!(card["reference_status"], "available");
    assert!(card["reference"].is_string() && told["request"]["id"].is_null());
    assert_eq!(get(&sim, &path).await.json(), told["data"]["object"]);
    let refused = raw(&sim, post_text(&path, None, "amount=1")).await;
    assert_eq!(refused.expect("a reply").error("code"), "parameter_unknown");
}

#[tokio::test]
async fn disputes_are_told_of_and_so_is_what_they_do_s49_s69() {
    let (sim, clock, mut receiver) = told("dispute-while-pending").await;
    refund(&sim, "K", PAYMENT).await;
    assert_eq!(receiver.next().await.kind(), "refund.created");
    received(&sim, 1).await;
    clock.advance(Duration::from_mins(5));
    assert_eq!(receiver.next().await.kind(), "charge.dispute.created");
    assert_eq!(
        receiver.next().await.kind(),
        "charge.dispute.funds_withdrawn"
    );
    let failed = receiver.next().await.event();
    assert_eq!(failed["type"], "refund.failed");
    assert_eq!(
        failed["data"]["object"]["failure_reason"],
        "charge_for_pending_refund_disputed"
    );
    assert_eq!(
        refund(&sim, "L", PAYMENT).await.error("code"),
        "charge_disputed"
    );
    receiver.next().await;
    received(&sim, 5).await;
    clock.advance(Duration::from_hours(168));
    assert_eq!(
        receiver.kinds(2).await,
        ["charge.dispute.closed", "charge.dispute.funds_reinstated"]
    );
    let list = get(&sim, "/v1/disputes?charge=ch_order_4417").await.json();
    assert_eq!(list["data"][0]["status"], "won");
    let id = list["data"][0]["id"].as_str().expect("id");
    assert_eq!(
        get(&sim, &format!("/v1/disputes/{id}")).await.json(),
        list["data"][0]
    );
    assert_eq!(
        refund(&sim, "M", PAYMENT).await.status,
        200,
        "won: refundable again"
    );
}

#[tokio::test]
async fn the_envelope_names_the_request_and_the_key_s47_s51() {
    let (sim, _, mut receiver) = told("honest").await;
    let made = refund(&sim, "K", PAYMENT).await;
    let event = receiver.next().await.event();
    assert_eq!(event["object"], "event");
    assert_eq!(event["api_version"], "2026-08-26.dahlia");
    assert_eq!(
        (&event["livemode"], &event["pending_webhooks"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(event["request"]["idempotency_key"], "K");
    assert_eq!(event["request"]["id"].as_str(), made.header("Request-Id"));
    assert!(
        event["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("evt_"))
    );
    received(&sim, 2).await;
    let path = format!("/v1/events/{}", event["id"].as_str().expect("id"));
    assert_eq!(
        get(&sim, &path).await.json()["pending_webhooks"],
        0,
        "received"
    );
}

#[tokio::test]
async fn every_secret_signs_the_raw_body_s52_s54() {
    let receiver = Receiver::start().await;
    let endpoint = receiver.endpoint(&["whsec_old", "whsec_new"]);
    let (sim, clock) = start_plan(Plan::Honest, Some(endpoint)).await;
    let mut receiver = receiver;
    refund(&sim, "K", PAYMENT).await;
    let told = receiver.next().await;
    assert_eq!(told.signature.matches("v1=").count(), 2);
    for (secret, count) in [("whsec_old", 1), ("whsec_new", 1), ("whsec_none", 0)] {
        assert_eq!(told.signed_with(secret), count, "{secret}");
    }
    assert_eq!(told.at(), clock.now().timestamp());
}

#[tokio::test]
async fn a_wrong_secret_and_an_old_time_are_to_be_refused_s53_s66() {
    let (sim, _, mut receiver) = told("webhook-wrong-secret").await;
    refund(&sim, "K", PAYMENT).await;
    let forged = receiver.next().await;
    assert_eq!(
        (
            forged.signed_with(SECRET),
            forged.signature.matches("v1=").count()
        ),
        (0, 1)
    );
    let (sim, clock, mut receiver) = told("webhook-old-timestamp").await;
    refund(&sim, "K", PAYMENT).await;
    let old = receiver.next().await;
    assert_eq!(old.signed_with(SECRET), 1, "the signature itself is right");
    assert_eq!(clock.now().timestamp() - old.at(), 600);
}

#[tokio::test]
async fn what_fails_is_tried_again_later_and_signed_anew_s54_s55_s56() {
    let (sim, clock, mut receiver) = told("honest").await;
    // 3xx is a failure as well.
    receiver.answer(&[500, 200, 302]);
    refund(&sim, "K", PAYMENT).await;
    let first = receiver.next().await;
    receiver.next().await;
    received(&sim, 1).await;
    clock.advance(SECOND * 299);
    received(&sim, 1).await;
    receiver.nothing();
    clock.advance(SECOND);
    let second = receiver.next().await;
    assert_eq!(second.body, first.body, "the same event");
    assert_eq!(second.at() - first.at(), 300);
    assert_eq!(second.signed_with(SECRET), 1);
    waiting(&sim, 1).await;
    clock.advance(SECOND * 599);
    receiver.nothing();
    clock.advance(SECOND);
    assert_eq!(receiver.next().await.body, first.body, "twice as late");
    received(&sim, 2).await;
    clock.advance(Duration::from_hours(80));
    let state = get(&sim, "/_sim/state").await.json();
    assert_eq!(state["webhooks"]["waiting"], 0);
    receiver.nothing();
}

/// Waits until so many webhooks are queued for later.
async fn waiting(sim: &Simulator, count: u64) {
    loop {
        let state = get(sim, "/_sim/state").await.json();
        if state["webhooks"]["waiting"] == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_sandbox_gives_up_after_three_tries_s55() {
    let receiver = Receiver::start().await;
    let mut endpoint = receiver.endpoint(&[SECRET]);
    endpoint.retries = Retries::Sandbox;
    let pending = file("about = 'x'\n[[step]]\nrefund = { status = 'pending' }\n");
    let (sim, clock) = start_plan(pending, Some(endpoint)).await;
    let mut receiver = receiver;
    receiver.answer(&[500; 3]);
    refund(&sim, "K", PAYMENT).await;
    for hours in [1, 2] {
        assert_eq!(receiver.next().await.kind(), "refund.created");
        waiting(&sim, 1).await;
        clock.advance(Duration::from_hours(hours));
    }
    receiver.next().await;
    waiting(&sim, 0).await;
    clock.advance(Duration::from_hours(72));
    let state = get(&sim, "/_sim/state").await.json();
    assert_eq!(state["webhooks"]["given_up"], 1);
    let missed = get(&sim, "/v1/events?delivery_success=false").await.json();
    assert_eq!(
        missed["data"][0]["type"], "refund.created",
        "still to be listed"
    );
    receiver.nothing();
}

#[tokio::test]
async fn lost_and_late_webhooks_s66() {
    let (sim, clock, mut receiver) = told("webhook-lost").await;
    refund(&sim, "K", PAYMENT).await;
    clock.advance(Duration::from_hours(100));
    let events = get(&sim, "/v1/events").await.json();
    assert_eq!(events["data"].as_array().map(Vec::len), Some(4));
    assert_eq!(events["data"][0]["pending_webhooks"], 1);
    receiver.nothing();

    let (sim, clock, mut receiver) = told("webhook-late").await;
    refund(&sim, "K", PAYMENT).await;
    clock.advance(SECOND * 3599);
    get(&sim, "/v1/account").await;
    receiver.nothing();
    clock.advance(SECOND);
    let late = receiver.next().await;
    assert_eq!(late.kind(), "refund.created");
    assert_eq!(
        late.at() - late.event()["created"].as_i64().expect("a time"),
        3600
    );
    assert_eq!(
        late.signed_with(SECRET),
        1,
        "late, and signed when it was sent"
    );
}

#[tokio::test]
async fn webhooks_come_before_the_reply_s66() {
    let (sim, clock, mut receiver) = told("webhook-early").await;
    let reply = refund(&sim, "K", PAYMENT);
    let webhooks = async {
        let kinds = receiver.kinds(2).await;
        assert_eq!(sim.held().now(), 1, "nobody has been answered");
        clock.advance(5 * SECOND);
        kinds
    };
    let (reply, kinds) = tokio::join!(reply, webhooks);
    assert_eq!((reply.status, kinds[0].as_str()), (200, "refund.created"));
}

#[tokio::test]
async fn duplicates_and_twins_s56_s66() {
    let (sim, _, mut receiver) = told("webhook-duplicate").await;
    refund(&sim, "K", PAYMENT).await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        let told = receiver.next().await;
        assert_eq!(told.kind(), "refund.created");
        ids.push(told.event()["id"].as_str().expect("id").to_owned());
    }
    received(&sim, 6).await;
    receiver.nothing();
    let different: BTreeSet<_> = ids.iter().collect();
    assert_eq!(different.len(), 2, "two events, three times each");
}

#[tokio::test]
async fn an_update_overtakes_the_creation_s56_s66() {
    let (sim, clock, mut receiver) = told("webhook-out-of-order").await;
    refund(&sim, "K", PAYMENT).await;
    clock.advance(600 * SECOND);
    assert_eq!(
        receiver.kinds(3).await,
        ["refund.updated", "charge.refund.updated", "charge.refunded"]
    );
    received(&sim, 3).await;
    clock.advance(300 * SECOND);
    let created = receiver.next().await.event();
    assert_eq!(created["type"], "refund.created");
    assert_eq!(
        created["data"]["object"]["status"], "pending",
        "as it was then"
    );
}

#[tokio::test]
async fn refunds_of_others_and_late_ones_are_told_of_without_a_request_s12_s47_s67() {
    let (sim, _, mut receiver) = told("already-refunded").await;
    refund(&sim, "K", PAYMENT).await;
    let theirs = receiver.next().await.event();
    assert_eq!(theirs["data"]["object"]["amount"], 100_000);
    assert_eq!(
        theirs["request"],
        json!({ "id": null, "idempotency_key": null })
    );
    let (sim, _, mut receiver) = told("late-effect").await;
    assert_eq!(refund(&sim, "K", PAYMENT).await.status, 500);
    advance(&sim, 1800).await;
    let late = receiver.next().await.event();
    assert_eq!(late["data"]["object"]["metadata"]["operation_id"], "op_1");
    assert_eq!(late["request"]["idempotency_key"], Value::Null);
    assert_eq!(sim.effects()[0].source, EffectSource::Late);
}

/// A receiver that does not listen, and one that never answers, cost no request anything.
#[tokio::test]
async fn nobody_waits_for_webhooks() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("bind");
    let url = format!("http://{}/x", silent.local_addr().expect("an address"));
    for url in [url.as_str(), "http://127.0.0.1:1/x"] {
        let endpoint = WebhookEndpoint::new(url, vec![SECRET.to_owned()]).expect("an endpoint");
        let (sim, _) = start_plan(Plan::Honest, Some(endpoint)).await;
        for n in 0..20 {
            let body = format!("payment_intent=pi_order_{n}&amount=100");
            assert_eq!(refund(&sim, &n.to_string(), &body).await.status, 200);
        }
        sim.stop().await;
    }
}
