//! Accepted, executed and delivered are three facts (R82–R88): an answer counts as delivered once the
//! system took its last byte, or once its agent says so.

use std::time::Duration;

use samekey::domain::tool_call::Delivery;
use serde_json::json;

use crate::client::{Ask, Talk};
use crate::hall::Hall;

/// By wait and by GET.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_written_is_delivered_r82_r85() {
    let hall = Hall::new("honest").await;
    let token = hall.agent("desk", &[]).await;
    let answer = Ask::refund(&token, "waited", "1", 100)
        .waiting(30)
        .send(hall.addr)
        .await;
    assert_eq!(answer.status, 200);
    let call = hall
        .until("desk", "waited", |c| c.delivery == Delivery::Delivered)
        .await;
    assert!(call.delivered_at >= call.executed_at && call.executed_at > Some(call.accepted_at));
    assert_eq!(
        Ask::refund(&token, "asked", "2", 100)
            .send(hall.addr)
            .await
            .status,
        202
    );
    let call = hall.until("desk", "asked", |c| c.result.is_some()).await;
    assert_eq!(
        call.delivery,
        Delivery::Pending,
        "executed is not delivered (R84)"
    );
    let shown = Ask::get("/v1/tool-calls/asked")
        .by(&token)
        .send(hall.addr)
        .await;
    assert_eq!(
        shown.json()["delivery"],
        "pending",
        "not before it was written"
    );
    hall.until("desk", "asked", |c| c.delivery == Delivery::Delivered)
        .await;
    hall.end().await;
}

/// A client that goes away while it waits: the call goes on, its answer stays pending, nothing is sent
/// twice; whoever asks again gets it (R84, R86).
#[tokio::test(flavor = "multi_thread")]
async fn whoever_left_while_waiting_has_no_answer_and_gets_it_later_r84_r86() {
    let hall = Hall::new("slow").await;
    let token = hall.agent("desk", &[]).await;
    let mut talk = Talk::to(hall.addr).await;
    talk.write(&Ask::refund(&token, "left", "1", 100).waiting(60).bytes())
        .await;
    hall.until("desk", "left", |c| c.begun_at.is_some()).await;
    drop(talk);
    let call = hall.until("desk", "left", |c| c.result.is_some()).await;
    assert_eq!(
        (call.delivery, call.delivered_at),
        (Delivery::Pending, None)
    );
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(hall.call("desk", "left").await.delivery, Delivery::Pending);
    let again = Ask::refund(&token, "left", "1", 100).send(hall.addr).await;
    assert_eq!(again.status, 200, "{again:?}");
    hall.until("desk", "left", |c| c.delivery == Delivery::Delivered)
        .await;
    assert_eq!(hall.simulator.effects().len(), 1);
    hall.end().await;
}

/// The sure form: the agent says so, and it is committed before it hears that it was.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_acknowledges_what_it_has() {
    let hall = Hall::new("honest").await;
    let token = hall.agent("desk", &[]).await;
    assert_eq!(
        Ask::refund(&token, "k", "1", 100)
            .send(hall.addr)
            .await
            .status,
        202
    );
    hall.until("desk", "k", |c| c.result.is_some()).await;
    let ack = || Ask::get("/v1/tool-calls/k/ack").post().by(&token);
    let first = ack().send(hall.addr).await;
    assert_eq!(
        (first.status, &first.json()["delivery"]),
        (200, &json!("delivered"))
    );
    let second = ack().send(hall.addr).await;
    assert_eq!(
        second.json()["delivered_at"],
        first.json()["delivered_at"],
        "once"
    );
    let none = Ask::get("/v1/tool-calls/other/ack")
        .post()
        .by(&token)
        .send(hall.addr)
        .await;
    assert_eq!((none.status, none.code()), (404, "no_such_call".into()));
    hall.end().await;
}

/// A stop answers those who wait with 202, and what was delivered until then is noted (L8).
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_tells_those_who_wait_that_their_call_is_accepted_l8() {
    let hall = Hall::idle().await;
    let token = hall.agent("desk", &[]).await;
    let mut waiting = Vec::new();
    for n in 0..20 {
        let mut talk = Talk::to(hall.addr).await;
        let ask = Ask::refund(&token, &format!("k{n}"), &n.to_string(), 100).waiting(60);
        talk.write(&ask.bytes()).await;
        waiting.push(talk);
    }
    for n in 0..20 {
        hall.until("desk", &format!("k{n}"), |_| true).await;
    }
    let addr = hall.addr;
    let stopped = tokio::spawn(async move { hall.end().await });
    for talk in &mut waiting {
        assert_eq!(talk.read().await.status, 202);
        assert_eq!(talk.read().await.status, 0, "and the connection ends");
    }
    stopped.await.expect("it ended");
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
}
