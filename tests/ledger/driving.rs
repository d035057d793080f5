//! Driving: one call drives a row, others join it, and a dead driver is followed by another
//! (step 7; R75, L2).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::operation::{Effect, Status, UnknownReason};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::transition::{Event, Refusal};
use samekey::ledger::{Drive, LeasedCall};

use crate::common::*;

fn is_mine(drive: &Drive) -> bool {
    matches!(drive, Drive::Mine(_))
}

async fn asked(
    w: &World,
    hand: &Hand,
    id: &samekey::domain::ids::OperationId,
    call: &LeasedCall,
) -> Drive {
    let _ = w;
    hand.ledger.drive(id, call, LEASE).await.expect("a drive")
}

#[tokio::test]
async fn one_call_drives_and_the_others_get_its_answer() {
    for_each_store(async |w| {
        let (driver, id) = w.driven("t1", "4417", 3800).await;
        let other = w.second().await;
        let near = w.leased("t2", "4417", 3800).await;
        let far = other.leased("t3", "4417", 3800).await;
        assert!(matches!(
            asked(&w, &w.hand(), &id, &near).await,
            Drive::Joined
        ));
        assert!(matches!(asked(&w, &other, &id, &far).await, Drive::Joined));
        assert!(
            is_mine(&asked(&w, &w.hand(), &id, &driver).await),
            "its own again"
        );
        assert_eq!(
            other.authorise(&id, &far).await,
            Err(Refusal::LeaseLost),
            "joined calls send nothing"
        );
        let outcome = succeeded(&w.row(&id).await);
        w.attempt(&id, &driver, outcome).await;
        let told = w.finish(&driver).await;
        for name in ["t2", "t3"] {
            let call = w.ledger.call(&agent("agent"), &call_id(name)).await;
            let call = call.expect("read").expect("known");
            assert_eq!(call.result.as_ref(), Some(&told), "{name}");
        }
        assert_eq!(
            other.ledger.finish_call(&far).await.expect("asked"),
            None,
            "it has its answer"
        );
        let detail = w.ledger.detail(&id).await.expect("read").expect("there");
        assert_eq!(detail.driver, None);
        assert_eq!(detail.op.attempts.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_is_closed_unknown_or_held_has_nothing_to_drive() {
    for_each_store(async |w| {
        let done = w.refunded("t1", "1", 100).await;
        let unknown = w.unknown("t2", "2", 100).await;
        let (call, pending_row) = w.driven("t3", "3", 100).await;
        let outcome = pending(&w.row(&pending_row).await);
        w.attempt(&pending_row, &call, outcome).await;
        w.finish(&call).await;
        for (n, id) in [&done, &unknown, &pending_row].into_iter().enumerate() {
            let call = w.leased(&format!("late{n}"), "9", 100).await;
            let drive = asked(&w, &w.hand(), id, &call).await;
            assert!(matches!(drive, Drive::Settled), "{n}: {drive:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_dead_driver_is_followed_and_its_attempt_is_undetermined_r75_m9() {
    for_each_store(async |w| {
        let (dead, id) = w.driven("t1", "4417", 3800).await;
        w.authorise(&id, &dead).await.expect("authorised");
        let key = w.row(&id).await.key;
        let other = w.second().await;
        let follower = other.leased("t2", "4417", 3800).await;
        assert!(matches!(
            asked(&w, &other, &id, &follower).await,
            Drive::Joined
        ));
        let still = w.apply(&id, Event::Interrupted).await;
        assert_eq!(still.expect_err("it is driven"), Refusal::NothingDue);
        w.wait(LEASE);
        let follower = other.lease("t2").await.expect("its lease ran out too");
        let Drive::Mine(op) = asked(&w, &other, &id, &follower).await else {
            panic!("the driver is dead");
        };
        let first = op
            .attempts
            .first()
            .and_then(|a| a.result.clone())
            .expect("ended");
        assert_eq!(first.class, OutcomeClass::SideEffectUnknown);
        assert_eq!(
            first.error.map(|e| e.to_string()),
            Some("interrupted".into())
        );
        assert_eq!(op.row.effect, Effect::Possible);
        assert_eq!(other.authorise(&id, &follower).await, Ok(2));
        assert_eq!(w.row(&id).await.key, key, "never another key");
        // Whoever comes back from the dead has nothing to say but what it saw (M17).
        assert_eq!(w.authorise(&id, &dead).await, Err(Refusal::InFlight));
        let late = Event::Finished {
            attempt: 1,
            outcome: lost(),
            taken: false,
        };
        let told = w.apply(&id, late.clone()).await.expect("kept, once");
        let kept = told.op.evidence.last().map(|e| e.seen.kind());
        assert_eq!(kept, Some("reply"), "I25");
        assert_eq!(
            w.apply(&id, late).await.expect_err("once"),
            Refusal::NoSuchAttempt
        );
        let outcome = succeeded(&w.row(&id).await);
        w.end(&id, 1, outcome).await;
        assert_eq!(
            w.row(&id).await.status,
            Status::Succeeded,
            "late, but ours and confirmed"
        );
    })
    .await;
}

#[tokio::test]
async fn dying_in_the_last_attempt_leaves_an_unknown_row_f47() {
    for_each_store(async |w| {
        let mut id = None;
        for (call, attempts) in [("t1", 3), ("t2", 3)] {
            let leased = w.leased(call, "4417", 3800).await;
            let row = match id.take() {
                None => w.opened(&leased).await,
                Some(row) => row,
            };
            w.drive(&row, &leased).await;
            for n in 1..=attempts {
                let number = w.authorise(&row, &leased).await.expect("authorised");
                if number < 6 {
                    w.end(&row, number, limited()).await;
                    w.wait(seconds(n));
                }
            }
            if call == "t1" {
                w.finish(&leased).await;
            }
            id = Some(row);
        }
        let id = id.expect("a row");
        w.wait(LEASE);
        assert_eq!(
            w.ledger.sweepable().await.expect("listed"),
            vec![id.clone()]
        );
        let again = w.hand().lease("t2").await.expect("free");
        let drive = asked(&w, &w.hand(), &id, &again).await;
        assert!(matches!(drive, Drive::Settled), "{drive:?}");
        let row = w.row(&id).await;
        assert_eq!(
            (row.status, row.reason),
            (Status::Unknown, Some(UnknownReason::AttemptsExhausted))
        );
        assert_eq!(w.finish(&again).await.status(), "checking");
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_lost_its_call_cannot_take_the_row_from_its_successor_f42() {
    for_each_store(async |w| {
        let stale = w.leased("t1", "4417", 3800).await;
        let id = w.opened(&stale).await;
        w.wait(LEASE);
        let other = w.second().await;
        let theirs = other.lease("t1").await.expect("free");
        // It wakes before the successor has begun to drive.
        let drive = asked(&w, &w.hand(), &id, &stale).await;
        assert!(matches!(drive, Drive::Joined), "{drive:?}");
        assert!(
            is_mine(&asked(&w, &other, &id, &theirs).await),
            "the row is free"
        );
        assert_eq!(other.authorise(&id, &theirs).await, Ok(1));
    })
    .await;
}

#[tokio::test]
async fn a_row_that_was_never_sent_closes_with_its_last_call() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let told = w.finish(&call).await;
        assert_eq!(told.status(), "failed");
        let row = w.row(&id).await;
        assert_eq!(row.status, Status::Failed);
        assert_eq!(row.closed_by.as_deref(), Some("engine"));
        // Asking again is safe: a new row with a new key.
        let again = w.leased("t2", "4417", 3800).await;
        let next = w.opened(&again).await;
        assert_ne!(w.row(&next).await.key, row.key);
    })
    .await;
}

#[tokio::test]
async fn joined_calls_end_with_their_driver_and_leave_no_row_that_was_never_sent() {
    for_each_store(async |w| {
        let (driver, id) = w.driven("t1", "4417", 3800).await;
        let joiner = w.leased("t2", "4417", 3800).await;
        assert!(matches!(
            asked(&w, &w.hand(), &id, &joiner).await,
            Drive::Joined
        ));
        assert_eq!(w.finish(&driver).await.status(), "failed");
        let joined = w.ledger.call(&agent("agent"), &call_id("t2")).await;
        let joined = joined.expect("read").expect("known");
        assert_eq!(joined.result.expect("answered").status(), "failed");
        assert_eq!(
            w.row(&id).await.status,
            Status::Failed,
            "nobody is left to drive it"
        );
    })
    .await;
}

#[tokio::test]
async fn a_call_that_leaves_while_another_drives_closes_nothing() {
    for_each_store(async |w| {
        let (driver, id) = w.driven("t1", "4417", 3800).await;
        let joiner = w.leased("t2", "4417", 3800).await;
        asked(&w, &w.hand(), &id, &joiner).await;
        assert_eq!(w.finish(&joiner).await.status(), "unconfirmed");
        assert_eq!(w.row(&id).await.status, Status::Open);
        assert_eq!(w.authorise(&id, &driver).await, Ok(1));
    })
    .await;
}

/// R75, L2: also on a row that a person stopped meanwhile, an attempt does not stay in flight for ever
/// because its engine died.
#[tokio::test]
async fn a_stopped_rows_attempt_of_a_dead_engine_is_swept() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.authorise(&id, &call).await.expect("authorised");
        w.decide(&id, &ann(), samekey::domain::review_event::Act::Stop)
            .await
            .expect("stopped");
        let sweepable = async || w.ledger.sweepable().await.expect("listed");
        assert_eq!(sweepable().await, [], "its engine lives");
        w.wait(LEASE);
        assert_eq!(sweepable().await, std::slice::from_ref(&id));
        let swept = w.apply(&id, Event::Interrupted).await.expect("recorded");
        assert!(!swept.op.in_flight());
        assert_eq!(swept.op.row.status, Status::Unknown);
        assert_eq!(sweepable().await, [], "once");
    })
    .await;
}
