//! What an event leads to, in every order and whoever else tells of the same refund.

use std::time::Duration;

use samekey::domain::evidence::Verdict;
use samekey::domain::ids::OperationId;
use samekey::domain::operation::{Contradiction, Effect, Status};
use samekey::ledger::EventWent;
use serde_json::{Value, json};

use crate::ledger::{lost, pending, succeeded};
use crate::scripted::{Room, SECRET, charge_of, with};

/// Delivers all and works them off, one after the other.
async fn told(room: &Room, events: &[Value]) {
    let gateway = room.gateway(&[SECRET]).await;
    for event in events {
        assert_eq!(room.deliver(&gateway, event).await, 200);
        room.reconcile().await;
    }
}

/// Before the API's reply: one success, the webhook is evidence on it, the reply is written once after; F03, M2.
#[tokio::test]
async fn an_event_before_the_reply_makes_one_success_f03_m2() {
    let room = Room::new().await;
    let (call, id) = room.world.driven("toolu_01", "4417", 3800).await;
    let attempt = room.world.authorise(&id, &call).await.expect("sent");
    let row = room.row(&id).await;
    let refund = room.refund(&row, "re_4417_3800", "succeeded");
    told(&room, &[room.event("evt_1", "refund.created", &refund)]).await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
    room.world.end(&id, attempt, succeeded(&row)).await;
    assert_eq!(room.world.finish(&call).await.status(), "refunded");
    let op = room.world.op(&id).await;
    assert_eq!(op.row.contradicted, None);
    assert_eq!(op.attempts.len(), 1);
    assert_eq!(
        op.row
            .provider_ref
            .as_ref()
            .map(samekey::domain::ids::ProviderRef::as_str),
        Some("re_4417_3800")
    );
    room.is_honest().await;
}

/// A row that is refunded already: a note, nothing moves; F04.
#[tokio::test]
async fn an_event_of_a_saved_refund_is_a_note_f04() {
    let room = Room::new().await;
    let id = room.world.refunded("toolu_01", "4417", 3800).await;
    let before = room.world.op(&id).await;
    let refund = room.refund_of(&id, "re_4417_3800", "succeeded").await;
    room.shown().refunds.push(refund.clone());
    told(
        &room,
        &[
            room.event("evt_1", "refund.created", &refund),
            room.event("evt_2", "charge.refunded", &charge_of(&refund)),
        ],
    )
    .await;
    assert_eq!(room.world.op(&id).await, before);
    room.is_honest().await;
}

/// Synchronous card refunds send `refund.created` and `charge.refunded`, and no update; M3, S49, S50.
#[tokio::test]
async fn either_of_the_two_events_of_a_card_refund_closes_the_row_m3_s50() {
    for which in ["refund.created", "charge.refunded"] {
        let room = Room::new().await;
        let id = room.world.unknown("toolu_01", "4417", 3800).await;
        let refund = room.refund_of(&id, "re_1", "succeeded").await;
        room.shown().refunds.push(refund.clone());
        let object = if which == "charge.refunded" {
            charge_of(&refund)
        } else {
            refund
        };
        let gateway = room.gateway(&[SECRET]).await;
        assert_eq!(
            room.deliver(&gateway, &room.event("evt_1", which, &object))
                .await,
            200
        );
        // Only events: no listing and no look of their own.
        room.work_off().await;
        let row = room.row(&id).await;
        assert_eq!(row.status, Status::Succeeded, "{which}");
        assert_eq!(row.closed_by.as_deref(), Some("webhook"));
        room.is_honest().await;
    }
}

/// After a time-out the provider's id is linked, not only the status; M7, I17.
#[tokio::test]
async fn a_timeout_and_then_an_event_link_the_providers_id_m7() {
    let room = Room::new().await;
    let (call, id) = room.world.driven("toolu_01", "4417", 3800).await;
    room.world.attempt(&id, &call, lost()).await;
    let refund = room.refund_of(&id, "re_late", "succeeded").await;
    told(&room, &[room.event("evt_1", "refund.created", &refund)]).await;
    let row = room.row(&id).await;
    assert_eq!(row.status, Status::Succeeded);
    assert_eq!(
        row.provider_ref
            .as_ref()
            .map(samekey::domain::ids::ProviderRef::as_str),
        Some("re_late")
    );
    assert_eq!(row.effect, Effect::Identified);
    room.is_honest().await;
}

/// By our key where the metadata says nothing (a provider that drops it); S47, protocol "Evidence".
#[tokio::test]
async fn our_key_in_the_events_request_makes_it_ours_s47() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let row = room.row(&id).await;
    let mut refund = room.refund(&row, "re_1", "succeeded");
    refund["metadata"] = json!({});
    let event = room.event("evt_1", "refund.created", &refund);
    let by_key = json!({"request": {"id": "req_1", "idempotency_key": row.key.to_string()}});
    told(&room, &[with(&event, &by_key)]).await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
    room.is_honest().await;
}

/// A refund of the amount without anybody's id: perhaps ours, so nobody may close as if nothing were there.
#[tokio::test]
async fn an_unmarked_refund_of_the_amount_is_ambiguous_and_closes_nothing_s67() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let mut refund = room.refund_of(&id, "re_dashboard", "succeeded").await;
    refund["metadata"] = json!({});
    told(&room, &[room.event("evt_1", "refund.created", &refund)]).await;
    let row = room.row(&id).await;
    assert_eq!(
        (row.status, row.verdict),
        (Status::Unknown, Some(Verdict::Ambiguous))
    );
    room.is_honest().await;
}

/// Refunds that are not ours are counted, their bodies dropped, and nothing moves.
#[tokio::test]
async fn refunds_of_others_are_ignored_and_counted() {
    let room = Room::new().await;
    let id = room.world.refunded("toolu_01", "4417", 3800).await;
    let before = room.world.op(&id).await;
    let row = room.row(&id).await;
    let mut others = Vec::new();
    for (n, kind) in [
        "refund.created",
        "refund.updated",
        "refund.failed",
        "charge.refund.updated",
    ]
    .into_iter()
    .enumerate()
    {
        let mut refund = room.refund(&row, &format!("re_other_{n}"), "failed");
        refund["metadata"] = json!({"operation_id": format!("op_of_another_shop_{n}")});
        refund["payment_intent"] = json!("pi_of_another_order");
        others.push(room.event(&format!("evt_{n}"), kind, &refund));
    }
    let charge = json!({"id": "ch_x", "object": "charge", "payment_intent": "pi_of_another_order"});
    others.push(room.event("evt_charge", "charge.refunded", &charge));
    others.push(room.event(
        "evt_kind",
        "invoice.paid",
        &json!({"id": "in_1", "object": "invoice"}),
    ));
    told(&room, &others).await;
    assert_eq!(room.world.op(&id).await, before);
    assert_eq!(
        room.counts().await.ignored,
        5,
        "and one of another kind, which is not kept at all"
    );
    room.is_honest().await;
}

/// A late failure of another object does not turn a refunded row; F66, M4.
#[tokio::test]
async fn a_late_failure_of_another_object_is_a_note_f66_m4() {
    let room = Room::new().await;
    let id = room.world.refunded("toolu_01", "4417", 3800).await;
    let mut refund = room.refund_of(&id, "re_older", "failed").await;
    refund["metadata"] = json!({});
    told(&room, &[room.event("evt_1", "refund.failed", &refund)]).await;
    let row = room.row(&id).await;
    assert_eq!((row.status, row.contradicted), (Status::Succeeded, None));
    room.is_honest().await;
}

/// The bank returned the money: flagged, not reopened; F25, S35, S36, I20.
#[tokio::test]
async fn a_refund_that_fails_days_later_contradicts_its_row_f25_s35_i20() {
    let room = Room::new().await;
    let id = room.world.refunded("toolu_01", "4417", 3800).await;
    room.world.wait(Duration::from_secs(5 * 86_400));
    let refund = room.refund_of(&id, "re_4417_3800", "failed").await;
    let refund = with(&refund, &json!({"failure_reason": "lost_or_stolen_card"}));
    room.shown().refunds.push(refund.clone());
    told(&room, &[room.event("evt_1", "refund.failed", &refund)]).await;
    let row = room.row(&id).await;
    assert_eq!(row.status, Status::Succeeded, "nothing is changed silently");
    assert_eq!(row.contradicted, Some(Contradiction::FailedAfterSucceeded));
    room.is_honest().await;
}

/// A second refund with our metadata: alarm, and the link stays; M59, S67.
#[tokio::test]
async fn a_second_object_with_our_metadata_is_flagged_and_the_link_stays_m59_s67() {
    let room = Room::new().await;
    let id = room.world.refunded("toolu_01", "4417", 3800).await;
    let copy = room.refund_of(&id, "re_copied", "succeeded").await;
    told(&room, &[room.event("evt_1", "refund.created", &copy)]).await;
    let row = room.row(&id).await;
    assert_eq!(row.contradicted, Some(Contradiction::SecondEffect));
    assert_eq!(
        row.provider_ref
            .as_ref()
            .map(samekey::domain::ids::ProviderRef::as_str),
        Some("re_4417_3800")
    );
    room.is_honest().await;
}

/// Pending, then its end: accepted first, settled by its own object's end; F24, S35, S50.
#[tokio::test]
async fn a_pending_refund_follows_its_own_object_f24_s50() {
    for (end, kind, wanted) in [
        ("succeeded", "refund.updated", Status::Succeeded),
        ("succeeded", "charge.refund.updated", Status::Succeeded),
        ("failed", "refund.failed", Status::Failed),
        ("canceled", "refund.updated", Status::Failed),
    ] {
        let room = Room::new().await;
        let (call, id) = room.world.driven("toolu_01", "4417", 3800).await;
        let row = room.row(&id).await;
        room.world.attempt(&id, &call, pending(&row)).await;
        assert_eq!(room.world.finish(&call).await.status(), "unconfirmed");
        let refund = room.refund(&row, "re_4417_3800", end);
        room.shown().refunds.push(refund.clone());
        told(&room, &[room.event("evt_1", kind, &refund)]).await;
        assert_eq!(room.row(&id).await.status, wanted, "{kind} {end}");
        room.is_honest().await;
    }
}

/// Created, updated, failed in every order: the same evidence, verdict and alarm in the end; F61, S56.
#[tokio::test]
async fn every_order_of_events_ends_the_same_f61_s56() {
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for order in orders {
        let room = Room::new().await;
        // Unknown: no event but `confirmed` closes it, so that the end does not hang on who came first.
        let id = room.world.unknown("toolu_01", "4417", 3800).await;
        let object = |status: &str, refund: &Value| with(refund, &json!({"status": status}));
        let refund = room.refund_of(&id, "re_1", "pending").await;
        let all = [
            room.event("evt_0", "refund.created", &object("pending", &refund)),
            room.event(
                "evt_1",
                "refund.updated",
                &object("requires_action", &refund),
            ),
            room.event("evt_2", "refund.failed", &object("failed", &refund)),
        ];
        let gateway = room.gateway(&[SECRET]).await;
        for n in order {
            assert_eq!(room.deliver(&gateway, &all[n]).await, 200);
            room.work_off().await;
        }
        let row = room.row(&id).await;
        assert_eq!(
            (row.status, row.verdict),
            (Status::Unknown, Some(Verdict::Refused)),
            "{order:?}"
        );
        room.is_honest().await;
    }
}

/// Several events of one request are all stored; F62.
#[tokio::test]
async fn events_of_one_request_are_all_stored_f62() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    let gateway = room.gateway(&[SECRET]).await;
    for (n, kind) in ["refund.created", "refund.updated", "charge.refunded"]
        .into_iter()
        .enumerate()
    {
        let object = if n == 2 {
            charge_of(&refund)
        } else {
            refund.clone()
        };
        let event = room.event(&format!("evt_{n}"), kind, &object);
        assert_eq!(room.deliver(&gateway, &event).await, 200);
    }
    assert_eq!(room.counts().await.received, 3);
}

/// What cannot be worked on now waits, is seen waiting, and is done later; M5, S57.
#[tokio::test]
async fn what_cannot_be_done_waits_in_sight_and_is_done_later_m5_s57() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    room.shown().refunds.push(refund.clone());
    room.shown().down = true;
    let gateway = room.gateway(&[SECRET]).await;
    let charge = room.event("evt_1", "charge.refunded", &charge_of(&refund));
    assert_eq!(room.deliver(&gateway, &charge).await, 200);
    room.work_off().await;
    assert_eq!(
        (room.counts().await.waiting, room.row(&id).await.status),
        (1, Status::Unknown)
    );
    let lines = room
        .world
        .ledger
        .recovery()
        .event_lines(10)
        .await
        .expect("lines");
    assert!(
        lines[0].reason.is_some() && lines[0].tries == 1,
        "{lines:?}"
    );
    // Not again at once, but after a while.
    room.shown().down = false;
    room.work_off().await;
    assert_eq!(room.counts().await.waiting, 1);
    room.world.wait(Duration::from_secs(11));
    room.work_off().await;
    assert_eq!(
        (room.counts().await.waiting, room.row(&id).await.status),
        (0, Status::Succeeded)
    );
    room.is_honest().await;
}

/// A worker that dies over an event loses nothing: the event is taken again when its time is over; M5.
#[tokio::test]
async fn an_event_whose_worker_died_is_taken_again_m5() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    let gateway = room.gateway(&[SECRET]).await;
    assert_eq!(
        room.deliver(&gateway, &room.event("evt_1", "refund.created", &refund))
            .await,
        200
    );
    let recovery = room.world.ledger.recovery();
    let lease = Duration::from_secs(300);
    let taken = recovery
        .take_event(None, lease)
        .await
        .expect("answered")
        .expect("due");
    assert_eq!(
        recovery.take_event(None, lease).await.expect("answered"),
        None,
        "one at a time"
    );
    room.world.wait(Duration::from_secs(301));
    room.work_off().await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
    // Whoever comes back late has no say any more.
    let late = EventWent::Ignored { why: "late" };
    recovery.event_went(&taken, late).await.expect("answered");
    assert_eq!(room.counts().await.processed, 1);
    room.is_honest().await;
}

/// So is one that carries no operation's id: on a payment that waits for news it may be ours.
#[tokio::test]
async fn a_refund_of_another_shape_without_our_id_may_be_ours() {
    let room = Room::new().await;
    let id: OperationId = room.world.unknown("toolu_01", "4417", 3800).await;
    let mut refund = room.refund_of(&id, "re_1", "succeeded").await;
    refund["metadata"] = json!({});
    refund["created"] = json!(room.row(&id).await.created_at.timestamp());
    room.shown().refunds.push(refund);
    let strange = json!({"id": "re_1", "object": "refund", "amount": "38.00"});
    let gateway = room.gateway(&[SECRET]).await;
    let event = room.event("evt_1", "refund.created", &strange);
    assert_eq!(room.deliver(&gateway, &event).await, 200);
    room.work_off().await;
    let row = room.row(&id).await;
    assert_eq!(
        (row.status, row.verdict),
        (Status::Unknown, Some(Verdict::Ambiguous))
    );
    room.is_honest().await;
}

/// A refund whose shape is another one is fetched instead of guessed (the endpoint's API version differs).
#[tokio::test]
async fn a_refund_of_another_shape_is_fetched_s41() {
    let room = Room::new().await;
    let id: OperationId = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    room.shown().refunds.push(refund);
    let strange = json!({"id": "re_1", "object": "refund", "amount": "38.00"});
    let gateway = room.gateway(&[SECRET]).await;
    let event = room.event("evt_1", "refund.created", &strange);
    assert_eq!(room.deliver(&gateway, &event).await, 200);
    room.work_off().await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
    assert!(
        room.server
            .requests()
            .iter()
            .any(|r| r.line == "GET /v1/refunds/re_1")
    );
    room.is_honest().await;
}
