//! Events that no webhook brought are found in the provider's own list; S45, S47, S55.

use std::time::Duration;

use samekey::domain::operation::{Contradiction, Status};
use serde_json::json;

use crate::scripted::{Room, SECRET, with};

/// A webhook that was lost: the list brings it, once; S66, S47.
#[tokio::test]
async fn a_lost_webhook_is_found_in_the_list_s47_s66() {
    let room = Room::new().await;
    let id = room.world.refunded("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_4417_3800", "failed").await;
    let event = room.event("evt_1", "refund.failed", &refund);
    room.shown().events.push(event.clone());
    room.world.wait(Duration::from_secs(30));
    let done = room.reconcile().await;
    assert_eq!((done.listed, done.missed, done.worked_on), (1, 1, 1));
    assert_eq!(
        room.row(&id).await.contradicted,
        Some(Contradiction::FailedAfterSucceeded)
    );
    // The provider's own later try, and the next listing, say nothing new.
    let gateway = room.gateway(&[SECRET]).await;
    assert_eq!(room.deliver(&gateway, &event).await, 200);
    let done = room.reconcile().await;
    assert_eq!((done.missed, done.worked_on), (0, 0));
    room.is_honest().await;
}

/// Each listing goes on where the last one ended, with an overlap; S45.
#[tokio::test]
async fn listings_go_on_where_they_ended_with_an_overlap_s45() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let row = room.row(&id).await;
    let mut asked = Vec::new();
    for n in 0..4 {
        let refund = room.refund(&row, &format!("re_{n}"), "pending");
        let mut event = room.event(&format!("evt_{n}"), "refund.updated", &refund);
        event["data"]["object"]["metadata"] = json!({});
        event["data"]["object"]["payment_intent"] = json!("pi_other");
        room.shown().events.push(event);
        room.world.wait(Duration::from_secs(3600));
        let done = room.reconcile().await;
        assert_eq!((done.missed, done.passed_over), (0, 1), "round {n}");
        let lines = room.server.requests();
        let last = lines.iter().rev().find(|r| r.line.contains("/v1/events"));
        let from = last.and_then(|r| {
            r.line
                .split("created%5Bgte%5D=")
                .nth(1)?
                .split('&')
                .next()?
                .parse::<i64>()
                .ok()
        });
        asked.push(from.expect("a bound"));
    }
    let steps: Vec<i64> = asked.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(steps[1..], [3600, 3600], "{asked:?}");
    let counts = room.counts().await;
    assert_eq!(
        (counts.passed_over, counts.ignored),
        (4, 0),
        "each is counted once"
    );
}

/// More than one run may list is gone on with by the next one, from the event that was read last; I33.
#[tokio::test]
async fn a_list_that_is_too_long_for_one_run_is_gone_on_with_i33() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let row = room.row(&id).await;
    for n in 0..120 {
        let mut refund = room.refund(&row, &format!("re_{n}"), "succeeded");
        refund["metadata"] = json!({"operation_id": "op_other"});
        room.shown()
            .events
            .push(room.event(&format!("evt_{n}"), "refund.created", &refund));
        room.world.wait(Duration::from_secs(60));
    }
    // A hundred pages are the most that one run reads after the last row.
    room.shown().page = 1;
    let first = room.reconcile().await;
    assert!(
        first.listed >= 100 && first.listed < 120,
        "{}",
        first.listed
    );
    assert_eq!((first.unfinished.len(), first.troubles.len()), (1, 0));
    let second = room.reconcile().await;
    assert_eq!(first.listed + second.listed, 120, "nothing is read twice");
    assert_eq!((second.unfinished.len(), second.troubles.len()), (0, 0));
    assert_eq!(room.counts().await.passed_over, 120);
    room.is_honest().await;
}

/// A key that may not list events: said, and everything else goes on.
#[tokio::test]
async fn a_key_that_may_not_list_events_is_named_and_the_rest_goes_on() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    room.shown().refunds.push(refund);
    room.shown().no_events = true;
    let done = room.reconcile().await;
    assert_eq!(done.troubles.len(), 1);
    assert!(done.troubles[0].1.as_str().contains("may not read events"));
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
    let counts = room.counts().await;
    assert_eq!(counts.troubles.len(), 1, "it stays visible");
    room.shown().no_events = false;
    room.reconcile().await;
    assert!(room.counts().await.troubles.is_empty(), "until it works");
}

/// Two events of one second, and one made while we asked: none is lost; S45.
#[tokio::test]
async fn no_event_falls_between_two_listings_s45() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let row = room.row(&id).await;
    let mut other = room.refund(&row, "re_x", "succeeded");
    other["metadata"] = json!({"operation_id": "op_other"});
    let early = room.event("evt_early", "refund.created", &other);
    room.shown().events.push(early.clone());
    // Asked within the very second of the event: it is not listed yet, and not passed over.
    let first = room.reconcile().await;
    // An event of that second shows up only afterwards.
    room.shown()
        .events
        .push(with(&early, &json!({"id": "evt_late"})));
    room.world.wait(Duration::from_secs(5));
    let second = room.reconcile().await;
    assert_eq!(first.passed_over + second.passed_over, 2);
}
