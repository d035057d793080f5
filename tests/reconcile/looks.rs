//! What a look at a row leads to, and what it never leads to.

use std::time::Duration;

use samekey::domain::evidence::Verdict;
use samekey::domain::operation::{Closing, Contradiction, Effect, Status};
use samekey::domain::review_event::Act;
use serde_json::json;

use crate::ledger::{ann, close_as, lost, pending, succeeded};
use crate::scripted::{Room, with};

const DAY: Duration = Duration::from_hours(24);

/// Unknown with an effect: found, and closed on `confirmed`; M7, S42, I17.
#[tokio::test]
async fn an_unknown_row_whose_refund_exists_is_closed_m7() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    room.shown().refunds.push(refund);
    let done = room.reconcile().await;
    assert_eq!(done.looked.len(), 1);
    let row = room.row(&id).await;
    assert_eq!(row.status, Status::Succeeded);
    assert_eq!(row.closed_by.as_deref(), Some("reconciler"));
    assert_eq!(
        row.provider_ref
            .as_ref()
            .map(samekey::domain::ids::ProviderRef::as_str),
        Some("re_1")
    );
    room.is_honest().await;
}

/// Unknown without an effect: `absent` is proven, and the row stays unknown for ever; F18, M1, I16, R54.
#[tokio::test]
async fn an_unknown_row_is_never_failed_by_time_f18_m1_i16() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    for days in [0, 1, 2, 10, 40] {
        room.world.wait(DAY * days);
        room.reconcile().await;
        let row = room.row(&id).await;
        assert_eq!(row.status, Status::Unknown, "after {days} more days");
    }
    assert_eq!(room.row(&id).await.verdict, Some(Verdict::Absent));
    // What is proven helps a person: one is enough now.
    let closed = room
        .world
        .decide(&id, &ann(), close_as(Closing::Failed))
        .await;
    assert_eq!(closed.expect("allowed").op.row.status, Status::Failed);
    room.is_honest().await;
}

/// Absence is proven only by a complete scan that began late enough; protocol "Evidence", S44.
#[tokio::test]
async fn only_a_complete_scan_that_began_late_enough_proves_absence() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    room.world.wait(Duration::from_secs(300));
    room.reconcile().await;
    assert_eq!(
        room.row(&id).await.verdict,
        None,
        "the request may still take effect"
    );
    // Late enough, and broken off in the middle.
    room.world.wait(Duration::from_secs(600));
    let row = room.row(&id).await;
    for n in 0..3 {
        let mut other = room.refund(&row, &format!("re_other_{n}"), "succeeded");
        other["metadata"] = json!({"operation_id": "op_of_somebody_else"});
        room.shown().refunds.push(other);
    }
    room.shown().page = 1;
    room.shown().refunds[0]["amount"] = json!("unreadable");
    room.reconcile().await;
    assert_eq!(
        room.row(&id).await.verdict,
        None,
        "an entry could not be read"
    );
    room.shown().refunds[0]["amount"] = json!(1);
    room.reconcile().await;
    assert_eq!(room.row(&id).await.verdict, Some(Verdict::Absent));
    assert_eq!(room.row(&id).await.effect, Effect::Absent);
    room.is_honest().await;
}

/// The match lies on the second page; S42, S68.
#[tokio::test]
async fn a_match_on_a_later_page_is_found_s42_s68() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let ours = room.refund_of(&id, "re_ours", "succeeded").await;
    let other = with(&ours, &json!({"metadata": {"operation_id": "op_other"}}));
    room.shown().refunds.push(ours);
    for n in 0..5 {
        let other = with(&other, &json!({"id": format!("re_{n}")}));
        room.shown().refunds.push(other);
    }
    room.shown().page = 2;
    room.reconcile().await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
}

/// Copied metadata on an unknown row: two objects of ours close nothing by themselves; M59, S67.
#[tokio::test]
async fn two_objects_of_ours_close_nothing_and_are_flagged_m59() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    for refund in ["re_1", "re_2"] {
        let refund = room.refund_of(&id, refund, "succeeded").await;
        room.shown().refunds.push(refund);
    }
    room.reconcile().await;
    let row = room.row(&id).await;
    assert_eq!(
        (row.status, row.verdict),
        (Status::Unknown, Some(Verdict::SecondEffect))
    );
    assert_eq!(row.contradicted, Some(Contradiction::SecondEffect));
    room.is_honest().await;
}

/// Another account's answers prove nothing: they are not even asked for; I17.
#[tokio::test]
async fn the_answers_of_another_account_are_not_taken_i17() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    room.world.wait(Duration::from_secs(3600));
    room.shown().account = "acct_other";
    let done = room.reconcile().await;
    assert_eq!((done.looked.len(), done.unanswered.len()), (0, 1));
    assert_eq!(room.row(&id).await.verdict, None);
    let asked = room.server.requests();
    assert!(
        asked.iter().all(|r| !r.line.contains("/v1/refunds")),
        "{asked:?}"
    );
}

/// An open row that nobody drives any more is looked at and settled; a driven one is left alone.
#[tokio::test]
async fn a_driverless_open_row_is_settled_and_a_driven_one_left_alone() {
    let room = Room::new().await;
    let (call, id) = room.world.driven("toolu_01", "4417", 3800).await;
    room.world.attempt(&id, &call, lost()).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    room.shown().refunds.push(refund);
    assert!(
        room.reconcile().await.looked.is_empty(),
        "its driver has it"
    );
    room.world.wait(Duration::from_secs(61));
    assert_eq!(room.reconcile().await.looked.len(), 1);
    let row = room.row(&id).await;
    assert_eq!((row.status, row.attempts), (Status::Succeeded, 1));
    room.is_honest().await;
}

/// A pending refund is followed to its own end; F24, S28, S37.
#[tokio::test]
async fn a_pending_row_follows_its_own_object_f24_s37() {
    for (end, wanted) in [
        ("succeeded", Status::Succeeded),
        ("failed", Status::Failed),
        ("canceled", Status::Failed),
    ] {
        let room = Room::new().await;
        let (call, id) = room.world.driven("toolu_01", "4417", 3800).await;
        let row = room.row(&id).await;
        room.world.attempt(&id, &call, pending(&row)).await;
        room.world.finish(&call).await;
        let object = room.refund(&row, "re_4417_3800", "pending");
        room.shown().refunds.push(object.clone());
        room.world.wait(Duration::from_secs(90));
        room.reconcile().await;
        assert_eq!(room.row(&id).await.status, Status::Open, "not final");
        room.shown().refunds[0]["status"] = json!(end);
        room.world.wait(Duration::from_secs(7 * 3600));
        room.reconcile().await;
        assert_eq!(room.row(&id).await.status, wanted);
        room.is_honest().await;
    }
}

/// A closed row is looked at again within thirty days: a reversal is flagged, and after that nobody looks;
/// F25, M6, I20, S36.
#[tokio::test]
async fn a_reversal_is_found_without_an_event_and_looking_ends_after_thirty_days_m6() {
    let room = Room::new().await;
    let id = room.world.refunded("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_4417_3800", "succeeded").await;
    room.shown().refunds.push(refund);
    let mut looked = 0;
    for day in 1..=20 {
        room.world.wait(DAY);
        looked += room.reconcile().await.looked.len();
        assert_eq!(room.row(&id).await.contradicted, None, "day {day}");
    }
    assert_eq!(looked, 5, "on the days 1, 2, 4, 8 and 16");
    room.shown().refunds[0]["status"] = json!("failed");
    room.world.wait(DAY * 11);
    room.reconcile().await;
    let row = room.row(&id).await;
    assert_eq!(row.status, Status::Succeeded);
    assert_eq!(row.contradicted, Some(Contradiction::FailedAfterSucceeded));
    for _ in 0..10 {
        room.world.wait(DAY * 10);
        let due = room.world.ledger.recovery().take_watched(None, DAY).await;
        assert_eq!(due.expect("answered"), None, "nobody looks any more");
    }
    room.is_honest().await;
}

/// A late effect on a row that a person closed as failed is found and flagged; I19, I20.
#[tokio::test]
async fn an_effect_after_a_closing_as_failed_is_flagged_i20() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    room.world.wait(Duration::from_secs(3600));
    room.reconcile().await;
    let closed = room
        .world
        .decide(&id, &ann(), close_as(Closing::Failed))
        .await;
    closed.expect("absent, so one person is enough");
    let refund = room.refund_of(&id, "re_late", "succeeded").await;
    room.shown().refunds.push(refund);
    room.world.wait(DAY + Duration::from_secs(1));
    room.reconcile().await;
    let row = room.row(&id).await;
    assert_eq!(row.status, Status::Failed, "nothing is changed silently");
    assert_eq!(row.contradicted, Some(Contradiction::EffectAfterFailed));
    room.is_honest().await;
}

/// A provider that does not answer: nothing is concluded, and after three rows nobody is asked any more.
#[tokio::test]
async fn a_silent_provider_proves_nothing_and_is_not_pestered() {
    let room = Room::new().await;
    for n in 0..4 {
        room.world
            .unknown(&format!("toolu_{n}"), &format!("44{n}"), 3800)
            .await;
    }
    room.world.wait(Duration::from_secs(3600));
    // The account was told before the outage, so that only the lookups fail.
    room.shown().down = true;
    let done = room.reconcile().await;
    assert_eq!((done.looked.len(), done.unanswered.len()), (0, 4));
    assert_eq!(done.troubles.len(), 1, "and its events cannot be listed");
    let lines = room.server.requests();
    assert!(lines.len() <= 8, "{} requests", lines.len());
    room.is_honest().await;
}

/// Nothing but reads leaves, whatever is found and however long it goes on: after a 500 nothing is sent
/// again; I22, F08, M58.
#[tokio::test]
async fn the_reconciler_only_reads_and_sends_no_key_i22_f08_m58() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    room.world.refunded("toolu_02", "4418", 3800).await;
    let row = room.row(&id).await;
    room.shown().events.push(room.event(
        "evt_1",
        "refund.created",
        &room.refund(&row, "re_1", "pending"),
    ));
    for _ in 0..24 {
        room.world.wait(DAY / 8);
        room.reconcile().await;
    }
    let all = room.server.requests();
    assert!(
        all.iter().any(|r| r.line.contains("/v1/refunds"))
            && all.iter().any(|r| r.line.contains("/v1/events"))
    );
    for request in all {
        assert!(
            request.line.starts_with("GET ") && request.header("idempotency-key").is_none(),
            "{request:?}"
        );
    }
}

/// A note is no look, and a correction after a reversal ends the alarm: the story of M6 to its end.
#[tokio::test]
async fn a_person_corrects_what_the_reconciler_flagged_m6() {
    let room = Room::new().await;
    let (call, id) = room.world.driven("toolu_01", "4417", 3800).await;
    let row = room.row(&id).await;
    room.world.attempt(&id, &call, succeeded(&row)).await;
    room.world.finish(&call).await;
    let refund = room.refund(&row, "re_4417_3800", "failed");
    room.shown().refunds.push(refund);
    room.world.wait(DAY + Duration::from_secs(1));
    room.reconcile().await;
    let correct = Act::Correct {
        decision: Some(Closing::Failed),
    };
    let step = room.world.decide(&id, &crate::ledger::lea(), correct).await;
    let row = step.expect("the evidence carries it").op.row;
    assert_eq!((row.status, row.contradicted), (Status::Failed, None));
    room.is_honest().await;
}
