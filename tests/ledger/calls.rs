//! Calls: accepted durably and once, answered once, delivered after that.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::operation::Status;
use samekey::domain::tool_call::{CallState, Delivery, RejectClass, ToolCall, ToolResult};
use samekey::ledger::{Accepted, CallQuery, NewCall};

use crate::common::*;

async fn known(w: &World, call: &str) -> ToolCall {
    let found = w.ledger.call(&agent("agent"), &call_id(call)).await;
    found.expect("read").expect("a known call")
}

#[tokio::test]
async fn the_same_call_is_known_and_another_under_its_name_a_conflict_i24() {
    for_each_store(async |w| {
        let Accepted::New(first) = w.accept("t1", "4417", 3800).await else {
            panic!("it is new");
        };
        assert_eq!(first.state, CallState::Queued);
        let Accepted::Known(again) = w.accept("t1", "4417", 3800).await else {
            panic!("it is known");
        };
        assert_eq!(again, first);
        let other = w.accept("t1", "4417", 3900).await;
        assert!(matches!(other, Accepted::Conflict), "{other:?}");
        let tool = NewCall {
            tool: "open_ticket".parse().expect("a tool"),
            ..new_call("t1", "4417", 3800)
        };
        let other = w.ledger.accept_call(tool).await.expect("accepted");
        assert!(matches!(other, Accepted::Conflict), "the tool counts too");
    })
    .await;
}

#[tokio::test]
async fn call_ids_are_scoped_to_their_agent() {
    for_each_store(async |w| {
        w.accept("t1", "4417", 3800).await;
        let theirs = NewCall {
            agent: agent("another"),
            ..new_call("t1", "9", 100)
        };
        let accepted = w.ledger.accept_call(theirs).await.expect("accepted");
        assert!(matches!(accepted, Accepted::New(_)), "{accepted:?}");
        let mine = known(&w, "t1").await;
        assert!(mine.arguments.contains("4417"));
        let none = w.ledger.call(&agent("third"), &call_id("t1")).await;
        assert_eq!(none.expect("read"), None);
    })
    .await;
}

#[tokio::test]
async fn a_restart_keeps_what_was_accepted_and_what_was_answered_i26() {
    for_each_store(async |w| {
        w.accept("waits", "1", 100).await;
        let id = w.refunded("done", "2", 200).await;
        w.ledger.close().await;
        let closed = w.ledger.call(&agent("agent"), &call_id("done")).await;
        assert!(closed.is_err(), "a closed handle says so");
        let again = w.other().await;
        let call = again.call(&agent("agent"), &call_id("waits")).await;
        let call = call.expect("read").expect("kept");
        assert_eq!((call.state, call.accepted_at), (CallState::Queued, at(0)));
        let done = again.call(&agent("agent"), &call_id("done")).await;
        let done = done.expect("read").expect("kept");
        let told = ToolResult::Done {
            operation_id: id.clone(),
            word: "refunded".into(),
            object: Some(samekey::domain::tool_call::Named {
                name: "refund_id".into(),
                id: "re_2_200".parse().expect("an id"),
            }),
            repeat: false,
        };
        assert_eq!(done.result, Some(told));
        let leased = again
            .lease_calls(&engine(2), LEASE, 10)
            .await
            .expect("leased");
        assert_eq!(leased.len(), 1, "the waiting one is taken up");
    })
    .await;
}

#[tokio::test]
async fn an_answer_is_given_once_and_never_changes_i24() {
    for_each_store(async |w| {
        let call = w.leased("t1", "4417", 3800).await;
        let no = ToolResult::rejected(RejectClass::ValidationFailure, "no such order");
        let told = w
            .ledger
            .answer_call(&call, no.clone())
            .await
            .expect("answered");
        assert_eq!(told, Some(no.clone()));
        let other = ToolResult::rejected(RejectClass::Unavailable, "something else");
        let again = w.ledger.answer_call(&call, other).await.expect("answered");
        assert_eq!(again, None, "the call is not this engine's any more");
        assert_eq!(w.ledger.finish_call(&call).await.expect("finished"), None);
        let stored = known(&w, "t1").await;
        assert_eq!(
            (stored.state, stored.result),
            (CallState::Answered, Some(no))
        );
    })
    .await;
}

#[tokio::test]
async fn the_stored_answer_stays_when_the_row_moves_on_i24() {
    for_each_store(async |w| {
        let id = w.unknown("t1", "4417", 3800).await;
        let before = known(&w, "t1").await;
        w.wait(SETTLE);
        w.nothing_there(&id).await;
        let closing = close_as(samekey::domain::operation::Closing::Failed);
        w.decide(&id, &ann(), closing).await.expect("closed");
        assert_eq!(w.row(&id).await.status, Status::Failed);
        assert_eq!(known(&w, "t1").await, before);
        let Accepted::Known(asked) = w.accept("t1", "4417", 3800).await else {
            panic!("it is known");
        };
        assert_eq!(asked.result.expect("answered").status(), "checking");
    })
    .await;
}

#[tokio::test]
async fn delivered_is_a_fact_of_its_own_and_comes_after_the_answer_i21() {
    for_each_store(async |w| {
        let name = (agent("agent"), call_id("t1"));
        let call = w.leased("t1", "4417", 3800).await;
        w.ledger.delivered(&name.0, &name.1).await.expect("noted");
        assert_eq!(
            known(&w, "t1").await.delivery,
            Delivery::Pending,
            "nothing to deliver yet"
        );
        let no = ToolResult::rejected(RejectClass::ValidationFailure, "no");
        w.ledger.answer_call(&call, no).await.expect("answered");
        w.wait(seconds(3));
        w.ledger.delivered(&name.0, &name.1).await.expect("noted");
        w.wait(seconds(3));
        w.ledger.delivered(&name.0, &name.1).await.expect("noted");
        let stored = known(&w, "t1").await;
        assert_eq!(stored.delivery, Delivery::Delivered);
        assert_eq!(
            (stored.executed_at, stored.delivered_at),
            (Some(at(0)), Some(at(3)))
        );
    })
    .await;
}

#[tokio::test]
async fn calls_are_listed_newest_first_by_state_tool_and_order() {
    for_each_store(async |w| {
        for n in 0..5 {
            w.accept(&format!("t{n}"), "4417", 100 + n).await;
            w.wait(seconds(1));
        }
        w.refunded("done", "9", 100).await;
        let list = async |query: CallQuery| -> Vec<String> {
            let calls = w.ledger.calls(&query).await.expect("listed").calls;
            calls.iter().map(|c| c.id.to_string()).collect()
        };
        let query = CallQuery {
            limit: 3,
            ..CallQuery::default()
        };
        assert_eq!(list(query).await, ["done", "t4", "t3"]);
        let query = CallQuery {
            state: Some(CallState::Queued),
            limit: 100,
            ..CallQuery::default()
        };
        assert_eq!(list(query).await, ["t4", "t3", "t2", "t1", "t0"]);
        let query = CallQuery {
            order: Some(order("9")),
            limit: 100,
            ..CallQuery::default()
        };
        assert_eq!(list(query).await, ["done"]);
    })
    .await;
}
