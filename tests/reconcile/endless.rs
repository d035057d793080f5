//! Lists of events that do not end, and entries that cannot be read: they hold up no look, and stay in sight.

use std::time::Duration;

use samekey::domain::operation::Status;
use samekey::engine::{Engine, EngineState};
use serde_json::{Value, json};

use crate::scripted::{Room, with};

/// L5, I33: whatever the list of events is like, the rows are looked at first, and a run ends.
#[tokio::test]
async fn an_endless_list_starves_no_look_and_a_run_ends_l5_i33() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    room.shown().refunds.push(refund);
    room.shown().endless = true;
    room.shown().page = 3;
    room.world.wait(Duration::from_secs(61));
    let first = room.reconcile().await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
    let all = room.server.requests();
    let look = all.iter().position(|r| r.line.contains("/v1/refunds?"));
    let list = all.iter().position(|r| r.line.contains("/v1/events?"));
    assert!(look < list && look.is_some(), "rows come first");
    assert!(first.listed <= 400, "{}", first.listed);
    assert_eq!((first.unfinished.len(), first.troubles.len()), (1, 0));
    // The next run goes on behind the last event, and none of the strangers was kept.
    let second = room.reconcile().await;
    let counts = room.counts().await;
    assert_eq!(counts.passed_over, first.listed + second.listed);
    assert_eq!(
        (counts.received, counts.ignored, counts.processed),
        (0, 0, 0)
    );
    let ids = room.server.requests().into_iter().map(|r| r.line);
    let cursors: Vec<_> = ids.filter(|l| l.contains("starting_after")).collect();
    let mut once = cursors.clone();
    once.dedup();
    assert_eq!(once.len(), cursors.len(), "no page is asked for twice");
    room.is_honest().await;
}

/// L5: the same under a running engine.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_engine_looks_while_a_list_does_not_end_l5() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    room.shown().refunds.push(refund);
    room.shown().endless = true;
    room.shown().page = 3;
    let engine = Engine::start(room.deps());
    let mut health = engine.health();
    let running = health.wait_for(|h| h.state == EngineState::Running);
    running.await.expect("it runs");
    room.world.wait(Duration::from_secs(61));
    for _ in 0..600 {
        room.world.wait(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(5)).await;
        let listed = room.counts().await.passed_over;
        if listed > 0 && room.row(&id).await.status == Status::Succeeded {
            break;
        }
    }
    let row = room.row(&id).await;
    let listed = room.counts().await.passed_over;
    engine.stop(Duration::from_secs(5)).await;
    assert_eq!(row.status, Status::Succeeded);
    assert!(listed > 0, "and lists in between");
}

/// What names us is kept, what names nobody here is counted and dropped; I33.
#[tokio::test]
async fn of_a_list_only_what_is_ours_is_kept_i33() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let row = room.row(&id).await;
    let ours = room.refund(&row, "re_1", "pending");
    let strange = json!({"metadata": {"operation_id": "op_other"}});
    let unmarked = json!({"id": "re_2", "metadata": {}});
    let elsewhere = json!({"id": "re_3", "metadata": {}, "payment_intent": "pi_other"});
    let charge =
        |payment: &str| json!({"id": "ch_1", "object": "charge", "payment_intent": payment});
    let mine = row.payment.as_ref().expect("a payment").as_str();
    let by_key = json!({"request": {"id": "req_1", "idempotency_key": row.key.to_string()}});
    let event = |n: u32, object: &Value| room.event(&format!("evt_{n}"), "refund.updated", object);
    let kept = [
        event(1, &ours),
        event(2, &with(&ours, &unmarked)),
        with(&event(3, &with(&ours, &elsewhere)), &by_key),
        room.event("evt_4", "charge.refunded", &charge(mine)),
        // Of another shape than ours: which refund it is has to be looked up.
        event(5, &json!({"id": "re_5", "object": "refund"})),
    ];
    let dropped = [
        event(6, &with(&ours, &with(&json!({"id": "re_6"}), &strange))),
        event(7, &with(&ours, &elsewhere)),
        room.event("evt_8", "charge.refunded", &charge("pi_other")),
    ];
    room.shown().events.extend(kept.into_iter().chain(dropped));
    room.world.wait(Duration::from_secs(30));
    let done = room.reconcile().await;
    assert_eq!((done.listed, done.missed, done.passed_over), (8, 5, 3));
    room.is_honest().await;
}

/// M5, I33: an event that is too large to be kept is kept in part, under its id and kind, and set aside.
#[tokio::test]
async fn an_event_that_is_too_large_stays_in_sight_m5_i33() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "pending").await;
    let mut event = room.event("evt_large", "refund.updated", &refund);
    event["data"]["object"]["note"] = json!("x".repeat(300 * 1024));
    room.shown().events.push(event);
    let junk = json!({"object": "event", "id": "evt_junk", "type": "refund.updated", "y": "y".repeat(300 * 1024)});
    let junk = with(
        &junk,
        &json!({"created": room.event("x", "x", &refund)["created"]}),
    );
    room.shown().events.push(junk);
    room.world.wait(Duration::from_secs(30));
    let done = room.reconcile().await;
    assert_eq!((done.listed, done.missed), (2, 2));
    let lines = room.world.ledger.recovery().event_lines(10).await;
    let lines = lines.expect("lines");
    let of = |line: &samekey::ledger::EventLine| {
        let reason = line.reason.as_ref().map(ToString::to_string);
        (line.kind.to_string(), line.state.to_string(), reason)
    };
    let large = lines.iter().find(|l| l.id.as_str() == "evt_large").map(of);
    let why = |kind: &str, why: &str| {
        Some((
            kind.to_owned(),
            "quarantined".to_owned(),
            Some(why.to_owned()),
        ))
    };
    assert_eq!(large, why("refund.updated", "too_large"));
    let junk = lines
        .iter()
        .find(|l| l.id.as_str().starts_with("unreadable:"))
        .map(of);
    assert_eq!(junk, why("unreadable", "unreadable"));
    assert_eq!(room.counts().await.quarantined, 2);
    // Once each, however often it is listed.
    room.world.wait(Duration::from_secs(600));
    assert_eq!(room.reconcile().await.missed, 0);
    room.is_honest().await;
}

/// S47, M5: an entry that cannot be read, last on its page, does not end the list: what lies behind is found.
#[tokio::test]
async fn behind_an_unreadable_entry_the_list_goes_on_s47_m5() {
    let room = Room::new().await;
    let id = room.world.refunded("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_4417_3800", "failed").await;
    let event = room.event("evt_1", "refund.failed", &refund);
    let created = event["created"].clone();
    // Oldest first; of each page of two the last entry cannot be read.
    room.shown().events.extend([
        event,
        json!({"object": "event", "id": 7, "created": created}),
        json!({"object": "event", "id": "evt_2", "type": "x", "created": created}),
    ]);
    room.shown().page = 2;
    room.world.wait(Duration::from_secs(30));
    let done = room.reconcile().await;
    assert_eq!(done.troubles, [], "it was listed to its end");
    assert!(
        room.row(&id).await.contradicted.is_some(),
        "what lay behind was found"
    );
    let counts = room.counts().await;
    assert_eq!(
        counts.quarantined, 2,
        "and what could not be read is in sight"
    );
}

/// M5: a page that nothing leads on from is said to be that, and is told of until the list can be read.
#[tokio::test]
async fn a_page_without_readable_ids_is_told_in_a_true_sentence_m5() {
    let room = Room::new().await;
    room.world.unknown("toolu_01", "4417", 3800).await;
    let created = room.event("x", "x", &json!({}))["created"].clone();
    for n in 0..4 {
        let junk = json!({"object": "event", "id": n, "created": created});
        room.shown().events.push(junk);
    }
    room.shown().page = 2;
    room.world.wait(Duration::from_secs(30));
    let done = room.reconcile().await;
    let why = done.troubles.first().map(|(_, why)| why.to_string());
    let why = why.expect("a trouble");
    assert!(
        why.contains("no event on the last page has a readable id"),
        "{why}"
    );
    assert_eq!(room.counts().await.troubles.len(), 1);
    assert_eq!(
        room.counts().await.quarantined,
        2,
        "the page itself is kept"
    );
    room.shown().events.clear();
    let done = room.reconcile().await;
    assert_eq!(
        (done.troubles, room.counts().await.troubles.len()),
        (Vec::new(), 0)
    );
    room.is_honest().await;
}
