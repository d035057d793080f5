//! Leases: who may work on a call, until when, and what a former holder can still do (I25).

use samekey::clock::Clock;
use samekey::domain::tool_call::ToolResult;
use samekey::ledger::NewCall;

use crate::common::*;

#[tokio::test]
async fn waiting_calls_are_taken_oldest_first_and_once() {
    for_each_store(async |w| {
        for n in 0..5 {
            w.accept(&format!("t{n}"), &n.to_string(), 100).await;
            w.wait(seconds(1));
        }
        let first = w
            .ledger
            .lease_calls(&engine(1), LEASE, 2)
            .await
            .expect("leased");
        let other = w.second().await;
        let second = other
            .ledger
            .lease_calls(&engine(2), LEASE, 10)
            .await
            .expect("leased");
        let names = |calls: &[samekey::ledger::LeasedCall]| -> Vec<String> {
            calls.iter().map(|c| c.call.id.to_string()).collect()
        };
        assert_eq!(names(&first), ["t0", "t1"]);
        assert_eq!(names(&second), ["t2", "t3", "t4"]);
        assert!(other.lease("t0").await.is_none(), "somebody has it");
        assert!(
            first
                .iter()
                .all(|c| c.epoch == 1 && c.call.begun_at == Some(at(5)))
        );
    })
    .await;
}

#[tokio::test]
async fn a_lease_that_runs_out_goes_to_another_engine_which_alone_answers_i25() {
    for_each_store(async |w| {
        let (mine, id) = w.driven("t1", "4417", 3800).await;
        w.attempt(&id, &mine, lost()).await;
        let other = w.second().await;
        w.wait(LEASE.saturating_sub(seconds(1)));
        assert!(other.lease("t1").await.is_none(), "F50: not before its end");
        w.wait(seconds(1));
        let theirs = other.lease("t1").await.expect("free");
        assert_eq!(theirs.epoch, mine.epoch + 1);
        assert_eq!(
            theirs.call.begun_at, mine.call.begun_at,
            "the call began once"
        );
        assert_eq!(w.ledger.finish_call(&mine).await.expect("asked"), None);
        let no = ToolResult::rejected(samekey::domain::tool_call::RejectClass::Unavailable, "no");
        assert_eq!(w.ledger.answer_call(&mine, no).await.expect("asked"), None);
        let told = other.ledger.finish_call(&theirs).await.expect("asked");
        assert_eq!(told.expect("answered").status(), "unconfirmed");
    })
    .await;
}

#[tokio::test]
async fn the_same_engine_taking_a_call_again_fences_its_own_past_f46() {
    for_each_store(async |w| {
        let before = w.leased("t1", "4417", 3800).await;
        w.wait(LEASE);
        let after = w.hand().lease("t1").await.expect("free");
        assert_eq!((before.engine == after.engine, after.epoch), (true, 2));
        w.opened(&after).await;
        assert_eq!(w.ledger.finish_call(&before).await.expect("asked"), None);
    })
    .await;
}

#[tokio::test]
async fn renewing_extends_what_an_engine_holds_and_nothing_else_f45() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let other = w.second().await;
        other.leased("t2", "9", 100).await;
        w.wait(LEASE.saturating_sub(seconds(1)));
        let held = [call.clone()];
        let renew =
            async |engine, held| w.ledger.renew(engine, LEASE, held).await.expect("renewed");
        assert_eq!(renew(&w.engine, &held).await, 1);
        assert_eq!(renew(&engine(7), &held).await, 0);
        w.wait(seconds(2));
        assert!(other.lease("t1").await.is_none(), "renewed");
        assert!(w.hand().lease("t2").await.is_some(), "not renewed");
        assert_eq!(
            w.authorise(&id, &call).await,
            Ok(1),
            "the row's lease goes with the call's"
        );
    })
    .await;
}

#[tokio::test]
async fn what_is_given_back_is_taken_at_once_and_its_row_with_it() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let other = w.second().await;
        w.ledger.release(&call).await.expect("released");
        let theirs = other.lease("t1").await.expect("free");
        w.ledger
            .release(&call)
            .await
            .expect("a lost lease is nobody's to give back");
        assert!(w.hand().lease("t1").await.is_none());
        let drive = other
            .ledger
            .drive(&id, &theirs, LEASE)
            .await
            .expect("a drive");
        assert!(
            matches!(drive, samekey::ledger::Drive::Mine(_)),
            "{drive:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn calls_of_tools_an_engine_does_not_know_are_left_alone_f49() {
    for_each_store(async |w| {
        let foreign = NewCall {
            tool: "open_ticket".parse().expect("a tool"),
            ..new_call("t1", "4417", 3800)
        };
        w.ledger.accept_call(foreign).await.expect("accepted");
        w.accept("t2", "9", 100).await;
        let leased = w
            .ledger
            .lease_calls(&w.engine, LEASE, 10)
            .await
            .expect("leased");
        assert_eq!(leased.len(), 1);
        assert_eq!(leased.first().map(|c| c.call.id.as_str()), Some("t2"));
    })
    .await;
}

#[tokio::test]
async fn the_leases_of_a_dead_engine_are_drained_f48() {
    for_each_store(async |w| {
        let batch = 500;
        for n in 0..batch {
            w.accept(&format!("t{n}"), &n.to_string(), 100).await;
        }
        let dead = w
            .ledger
            .lease_calls(&engine(9), LEASE, batch)
            .await
            .expect("leased");
        assert_eq!(dead.len(), 500);
        let none = w
            .ledger
            .lease_calls(&w.engine, LEASE, batch)
            .await
            .expect("leased");
        assert_eq!(none.len(), 0);
        w.wait(LEASE);
        let all = w
            .ledger
            .lease_calls(&w.engine, LEASE, batch)
            .await
            .expect("leased");
        assert_eq!(all.len(), 500);
    })
    .await;
}

/// L1: a released call is queued again; its old engine does not keep it alive by renewing.
#[tokio::test]
async fn a_released_call_is_not_renewed_by_the_engine_that_gave_it_back() {
    for_each_store(async |w| {
        w.accept("t1", "4417", 3800).await;
        let call = w.hand().lease("t1").await.expect("free");
        w.ledger.release(&call).await.expect("released");
        let held = [call.clone()];
        let renewed = w.ledger.renew(&call.engine, LEASE, &held).await;
        assert_eq!(renewed.expect("renewed"), 0);
        let next = w
            .ledger
            .lease_calls(&engine(9), LEASE, 10)
            .await
            .expect("answered");
        assert_eq!(next.len(), 1, "another engine has it at once");
        let late = w.ledger.finish_call(&call).await.expect("answered");
        assert_eq!(late, None, "I25");
    })
    .await;
}

/// L1: a call that was leased while the answer was lost has no worker; its engine does not know of it
/// and does not keep it from the others.
#[tokio::test]
async fn what_an_engine_does_not_know_it_holds_is_not_renewed() {
    for_each_store(async |w| {
        let (known, id) = w.driven("t1", "4417", 3800).await;
        let lost = w.leased("t2", "9", 100).await;
        let past = samekey::ledger::LeasedCall {
            epoch: lost.epoch - 1,
            ..lost.clone()
        };
        w.wait(LEASE.saturating_sub(seconds(1)));
        for held in [vec![known.clone()], vec![known.clone(), past]] {
            let renewed = w.ledger.renew(&w.engine, LEASE, &held).await;
            assert_eq!(renewed.expect("renewed"), 1);
        }
        w.wait(seconds(1));
        let other = w.second().await;
        assert!(other.lease("t2").await.is_some(), "nobody works on it");
        assert!(other.lease("t1").await.is_none(), "somebody does");
        assert_eq!(w.authorise(&id, &known).await, Ok(1));
    })
    .await;
}

/// I27: a clock that jumped forward ends nobody's lease, and dates nothing by an instant that never was.
#[tokio::test]
async fn a_clock_that_jumped_forward_takes_no_lease_away() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let clock = Clock::manual(at(0));
        let ahead = w.place.open(std::sync::Arc::clone(&w.terms), &clock).await;
        clock.step(chrono::TimeDelta::hours(1));
        assert!(ahead.clock_alarm().await.expect("read"));
        let taken = ahead.lease_calls(&engine(2), LEASE, 10).await;
        assert_eq!(taken.expect("answered").len(), 0, "its engine lives");
        let accepted = ahead.accept_call(new_call("t2", "9", 100)).await;
        let Ok(samekey::ledger::Accepted::New(new)) = accepted else {
            panic!("it is new: {accepted:?}");
        };
        assert!(new.accepted_at <= w.clock.now(), "{}", new.accepted_at);
        assert_eq!(w.authorise(&id, &call).await, Ok(1));
    })
    .await;
}
