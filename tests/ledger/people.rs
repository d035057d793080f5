//! What people decide, in the ledger: one of two wins, held rows are driven once, deadlines pass
//! (I18, M26–M28).

use std::time::Duration;

use samekey::domain::ids::CallId;
use samekey::domain::operation::{Closing, FailureClass, LookedAt, Status};
use samekey::domain::policy::{Caps, Terms};
use samekey::domain::review_event::{Act, ReviewRefusal};
use samekey::domain::tool_call::{CallState, ToolResult};
use samekey::domain::transition::{Event, Next, Refusal};

use crate::common::*;

fn approving() -> Terms {
    let mut terms = terms();
    let caps = Caps {
        approve_over: Some(1_000),
        max_total: Some((5_000, Duration::from_secs(3600))),
        ..Caps::default()
    };
    terms.policy.caps.insert(usd(), caps);
    terms
}

#[tokio::test]
async fn of_two_reviewers_one_wins_and_the_other_is_told_i18_f26() {
    for_each_store(async |w| {
        let id = w.unknown("t1", "4417", 3800).await;
        w.wait(SETTLE);
        w.nothing_there(&id).await;
        let seen = Some(LookedAt::of(&w.row(&id).await));
        let closing = close_as(Closing::Failed);
        let (one, two) = (w.other().await, w.other().await);
        let (mine, theirs) = (
            decision(&ann(), closing.clone(), seen.clone()),
            decision(&lea(), closing, seen),
        );
        let (x, y) = tokio::join!(one.apply(&id, mine), two.apply(&id, theirs));
        let results = [x.expect("answered"), y.expect("answered")];
        let won = results.iter().filter(|r| r.is_ok()).count();
        assert_eq!(won, 1, "{results:?}");
        let loser = results.into_iter().find_map(Result::err).expect("a loser");
        let Refusal::Review(ReviewRefusal::ClosedSame { by, .. }) = loser else {
            panic!("{loser:?}");
        };
        assert_eq!(Some(by), w.row(&id).await.closed_by);
    })
    .await;
}

#[tokio::test]
async fn a_decision_on_an_older_version_is_refused_i18() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let seen = Some(LookedAt::of(&w.row(&id).await));
        w.attempt(&id, &call, lost()).await;
        let late = w.apply(&id, decision(&ann(), Act::Stop, seen)).await;
        let refused = late.expect_err("it moved on");
        assert!(
            matches!(refused, Refusal::Review(ReviewRefusal::MovedOn { .. })),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn an_approved_row_is_driven_by_a_call_of_its_own() {
    for_each_store_with(approving(), async |w| {
        let call = w.leased("t1", "4417", 3_000).await;
        let id = w.opened(&call).await;
        let told = w.finish(&call).await;
        assert!(matches!(told, ToolResult::Held { .. }), "{told:?}");
        let asked = w.ledger.call(&agent("agent"), &call_id("t1")).await;
        assert_eq!(asked.expect("read").map(|c| c.state), Some(CallState::Held));
        let step = w
            .decide(&id, &lea(), Act::Approve { caps: None })
            .await
            .expect("approved");
        assert_eq!(step.next, Next::Due);
        assert_eq!(w.row(&id).await.approved_by, Some(lea().name));
        let twice = w.decide(&id, &lea(), Act::Approve { caps: None }).await;
        assert_eq!(
            twice.expect_err("once"),
            Refusal::Review(ReviewRefusal::NothingToApprove),
            "M28"
        );
        let leased = w
            .ledger
            .lease_calls(&w.engine, LEASE, 10)
            .await
            .expect("leased");
        let [due] = leased.as_slice() else {
            panic!("{leased:?}");
        };
        assert_eq!(
            (&due.call.id, &due.call.operation),
            (&CallId::approval(&id), &Some(id.clone()))
        );
        assert_eq!(
            args(due).money,
            w.row(&id).await.money,
            "M27: what was approved"
        );
        w.drive(&id, due).await;
        let outcome = succeeded(&w.row(&id).await);
        w.attempt(&id, due, outcome).await;
        assert_eq!(w.finish(due).await.status(), "refunded");
    })
    .await;
}

#[tokio::test]
async fn the_caps_are_taken_again_at_approval() {
    for_each_store_with(approving(), async |w| {
        let held = w.leased("t1", "1", 3_000).await;
        let id = w.opened(&held).await;
        w.finish(&held).await;
        // Its opening was counted long ago; others have used the window since.
        w.wait(seconds(3601));
        for n in 0..5 {
            w.refunded(&format!("s{n}"), &format!("s{n}"), 900).await;
        }
        let late = w.decide(&id, &lea(), Act::Approve { caps: None }).await;
        let refused = late.expect_err("over the cap").to_string();
        assert!(refused.contains("may refund"), "{refused}");
    })
    .await;
}

#[tokio::test]
async fn what_nobody_approves_in_time_fails() {
    for_each_store_with(approving(), async |w| {
        let held = w.leased("t1", "4417", 3_000).await;
        let id = w.opened(&held).await;
        w.finish(&held).await;
        assert_eq!(w.ledger.sweepable().await.expect("listed"), []);
        w.wait(seconds(24 * 3600));
        assert_eq!(
            w.ledger.sweepable().await.expect("listed"),
            vec![id.clone()]
        );
        let late = w.decide(&id, &lea(), Act::Approve { caps: None }).await;
        assert_eq!(
            late.expect_err("too late"),
            Refusal::Review(ReviewRefusal::Expired)
        );
        w.apply(&id, Event::Swept).await.expect("swept");
        let row = w.row(&id).await;
        assert_eq!(
            (row.status, row.failure),
            (Status::Failed, Some(FailureClass::PermissionDenied))
        );
    })
    .await;
}

#[tokio::test]
async fn a_rejected_row_fails_and_is_never_sent() {
    for_each_store_with(approving(), async |w| {
        let held = w.leased("t1", "4417", 3_000).await;
        let id = w.opened(&held).await;
        w.finish(&held).await;
        w.decide(&id, &lea(), Act::Reject).await.expect("rejected");
        assert_eq!(w.row(&id).await.status, Status::Failed);
        let none = w
            .ledger
            .lease_calls(&w.engine, LEASE, 10)
            .await
            .expect("leased");
        assert_eq!(none.len(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_proposal_is_swept_after_its_time() {
    for_each_store(async |w| {
        let id = w.unknown("t1", "4417", 3800).await;
        let act = Act::Close {
            decision: Closing::Succeeded,
            typed: Some(samekey::domain::review_event::TypedRef {
                id: "re_typed".parse().expect("an id"),
                fetched: samekey::domain::review_event::Fetched::Unreachable,
            }),
        };
        let step = w.decide(&id, &ann(), act).await.expect("proposed");
        assert_eq!(step.next, Next::Proposed);
        let stored = w.row(&id).await.proposal.expect("stored");
        assert_eq!(Some(&stored), step.op.row.proposal.as_ref());
        assert_eq!(
            w.ledger.sweepable().await.expect("listed"),
            vec![id.clone()]
        );
        let early = w.apply(&id, Event::Swept).await;
        assert_eq!(early.expect_err("not yet"), Refusal::NothingDue);
        w.wait(seconds(24 * 3600));
        w.apply(&id, Event::Swept).await.expect("swept");
        let row = w.row(&id).await;
        assert_eq!((row.status, row.proposal), (Status::Unknown, None));
    })
    .await;
}

#[tokio::test]
async fn time_alone_never_settles_an_unknown_row_i16_f18_m1() {
    for_each_store(async |w| {
        let id = w.unknown("t1", "4417", 3800).await;
        for _ in 0..10 {
            w.wait(seconds(24 * 3600));
            w.ledger.close().await;
            let again = w.other().await;
            let swept = again.apply(&id, Event::Swept).await.expect("answered");
            assert_eq!(swept.expect_err("nothing"), Refusal::NothingDue);
            again.close().await;
        }
        let again = w.other().await;
        let row = again.rows(&[id]).await.expect("read").pop().expect("there");
        assert_eq!(row.status, Status::Unknown);
    })
    .await;
}
