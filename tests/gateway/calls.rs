//! A call from its request to its answer, and whose it is.

use std::time::Duration;

use serde_json::json;

use crate::client::{Ask, Talk};
use crate::hall::Hall;

/// 200 with the result within the wait; the same call again has the same answer, and one effect (R7, R62).
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_its_answer_and_its_repeat_has_the_same_r62_r67() {
    let hall = Hall::new("honest").await;
    let token = hall.agent("desk", &[]).await;
    let ask = Ask::refund(&token, "\"toolu_01\"", "4417", 3800).waiting(30);
    let first = ask.send(hall.addr).await;
    assert_eq!(first.status, 200, "{first:?}");
    let result = first.json();
    assert_eq!(result["status"], "refunded");
    assert!(result["refund_id"].is_string() && result["customer_message"].is_string());
    assert_eq!(first.header("preference-applied"), Some("wait=30"));
    assert_eq!(
        first.header("content-location"),
        Some("/v1/tool-calls/toolu_01")
    );
    // With or without quotes, whatever the order of its members: the same call.
    let text = r#"{"arguments":{"currency":"usd", "amount_cents":3800,"order_id":"4417"},"tool":"issue_refund"}"#;
    let again = Ask::refund(&token, "toolu_01", "4417", 3800).body(text);
    let again = again.send(hall.addr).await;
    assert_eq!((again.status, again.json()), (200, result.clone()));
    // An orchestrator that runs the step again from its first line makes a new call of the same effect.
    let other = Ask::refund(&token, "toolu_02", "4417", 3800).waiting(30);
    let other = other.send(hall.addr).await.json();
    assert_eq!(
        (&other["status"], &other["repeat"]),
        (&json!("refunded"), &json!(true))
    );
    assert_eq!(other["operation_id"], result["operation_id"]);
    assert_eq!(hall.simulator.effects().len(), 1);
    hall.end().await;
}

/// 202 with its place, and from there to the answer; no key anywhere (R60).
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_accepted_at_once_and_its_location_tells_the_rest_r60_r83() {
    let hall = Hall::new("honest").await;
    let token = hall.agent("desk", &[]).await;
    let accepted = Ask::refund(
        &token,
        r#""a b/ü%""#.replace('ü', "u").as_str(),
        "4417",
        3800,
    );
    let accepted = accepted.send(hall.addr).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    assert_eq!(accepted.json()["state"], "queued");
    // Who tries again is said to whoever might (M43).
    let note = accepted.json()["note"].as_str().expect("a note").to_owned();
    assert!(
        note.contains("engine") && note.contains("make no other call"),
        "{note}"
    );
    let location = accepted.header("location").expect("a place").to_owned();
    assert_eq!(location, "/v1/tool-calls/a%20b%2Fu%25");
    let shown = Ask::get(&location)
        .by(&token)
        .waiting(30)
        .send(hall.addr)
        .await;
    assert_eq!(shown.status, 200);
    let call = shown.json();
    assert_eq!(
        (&call["state"], &call["result"]["status"]),
        (&json!("answered"), &json!("refunded"))
    );
    assert!(call["accepted_at"].is_string() && call["executed_at"].is_string());
    let id = call["operation_id"]
        .as_str()
        .expect("an operation")
        .to_owned();
    let operations = Ask::get("/v1/operations")
        .by(&token)
        .send(hall.addr)
        .await
        .json();
    assert_eq!(operations["operations"][0]["operation_id"], json!(id));
    let operation = Ask::get(format!("/v1/operations/{id}"))
        .by(&token)
        .send(hall.addr)
        .await;
    let row = operation.json();
    assert_eq!(
        (&row["status"], &row["amount_cents"]),
        (&json!("succeeded"), &json!(3800))
    );
    for hidden in [
        "idempotency_key",
        "claimed_by",
        "snoozed_until",
        "proposal",
        "closed_by",
        "notes",
    ] {
        assert!(row.get(hidden).is_none(), "{hidden}: {row}");
    }
    let key = hall.world.only().await.op.row.key.to_string();
    for text in [&shown.body, &operation.body, &accepted.body] {
        assert!(!text.contains(&key) && !text.contains(&token));
    }
    hall.end().await;
}

/// 409 with its place while the first is worked on, 422 for another body, and nothing is stored twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_use_is_409_and_with_another_body_422() {
    let hall = Hall::idle().await;
    let token = hall.agent("desk", &[]).await;
    let ask = Ask::refund(&token, "k1", "4417", 3800);
    assert_eq!(ask.send(hall.addr).await.status, 202);
    let busy = ask.clone().waiting(1).send(hall.addr).await;
    assert_eq!((busy.status, busy.code()), (409, "call_in_progress".into()));
    assert_eq!(busy.header("location"), Some("/v1/tool-calls/k1"));
    for other in [
        Ask::refund(&token, "k1", "4417", 3900),
        Ask::refund(&token, "k1", "4418", 3800),
        Ask::refund(&token, "k1", "4417", 3800).body(
            json!({"tool": "issue_refund", "session_id": "s", "arguments":
                   {"order_id": "4417", "amount_cents": 3800, "currency": "usd"}})
            .to_string(),
        ),
    ] {
        let reused = other.send(hall.addr).await;
        assert_eq!(
            (reused.status, reused.code()),
            (422, "call_id_reused".into())
        );
    }
    let early = Ask::get("/v1/tool-calls/k1/ack")
        .post()
        .by(&token)
        .send(hall.addr)
        .await;
    assert_eq!((early.status, early.code()), (409, "not_answered".into()));
    hall.end().await;
}

/// A call without its key is refused (R63, M32); so is whoever is not known, or may not use the tool (R98).
#[tokio::test(flavor = "multi_thread")]
async fn nobody_calls_without_key_token_or_permission_r63_r98_m32() {
    let hall = Hall::idle().await;
    let all = hall.agent("desk", &[]).await;
    let few = hall.agent("tickets", &["create_ticket"]).await;
    let ask = Ask::refund(&all, "k1", "4417", 3800);
    let keyless = ask.clone().without("idempotency-key").send(hall.addr).await;
    assert_eq!(
        (keyless.status, keyless.code()),
        (400, "idempotency_key_missing".into())
    );
    for key in ["", "\"\"", "a b", "\"a", "é", &"x".repeat(256)] {
        let wrong = Ask::refund(&all, key, "4417", 3800).send(hall.addr).await;
        assert_eq!(wrong.status, 400, "{key}: {wrong:?}");
    }
    let reserved = Ask::refund(&all, "approval:op_1", "4417", 3800)
        .send(hall.addr)
        .await;
    assert_eq!(
        (reserved.status, reserved.code()),
        (400, "reserved_call_id".into())
    );
    let changed = all.replacen('a', "b", 40);
    let digits = all.rsplit('_').next().expect("its digits");
    for token in ["", "x", "Bearer", changed.as_str(), digits] {
        let unknown = Ask::refund(token, "k1", "4417", 3800).send(hall.addr).await;
        assert_eq!(
            (unknown.status, unknown.code()),
            (401, "unauthorised".into()),
            "{token}"
        );
        assert!(unknown.header("www-authenticate").is_some());
    }
    let basic = ask
        .clone()
        .without("authorization")
        .with("Authorization", format!("Basic {all}"));
    assert_eq!(basic.send(hall.addr).await.status, 401);
    assert_eq!(
        ask.clone()
            .without("authorization")
            .send(hall.addr)
            .await
            .status,
        401
    );
    for path in [
        "/v1/tools",
        "/v1/operations",
        "/v1/operations/op_1",
        "/v1/tool-calls/k1",
    ] {
        assert_eq!(Ask::get(path).send(hall.addr).await.status, 401, "{path}");
    }
    let forbidden = Ask::refund(&few, "k1", "4417", 3800).send(hall.addr).await;
    assert_eq!(
        (forbidden.status, forbidden.code()),
        (403, "tool_not_permitted".into())
    );
    let tool = json!({"tool": "issue_refunds", "arguments": {}});
    let unknown = Ask::call(&tool)
        .by(&all)
        .with("Idempotency-Key", "k2")
        .send(hall.addr)
        .await;
    assert_eq!(
        (unknown.status, unknown.code()),
        (404, "no_such_tool".into())
    );
    assert!(
        hall.world
            .ledger
            .calls(&samekey::ledger::CallQuery {
                limit: 9,
                ..Default::default()
            })
            .await
            .expect("calls")
            .calls
            .is_empty(),
        "nothing was stored"
    );
    let tools = |token: &str| Ask::get("/v1/tools").by(token);
    assert_eq!(
        tools(&all).send(hall.addr).await.json()["tools"][0]["name"],
        "issue_refund"
    );
    assert_eq!(tools(&few).send(hall.addr).await.json()["tools"], json!([]));
    hall.end().await;
}

/// Call ids and operations belong to their agent; a revoked token is nobody's.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_sees_its_own_and_a_revoked_token_is_nobodys() {
    let hall = Hall::new("honest").await;
    let (one, two) = (hall.agent("one", &[]).await, hall.agent("two", &[]).await);
    let mine = Ask::refund(&one, "k", "1", 100)
        .waiting(30)
        .send(hall.addr)
        .await;
    let theirs = Ask::refund(&two, "k", "2", 100)
        .waiting(30)
        .send(hall.addr)
        .await;
    let id = |a: &crate::client::Answer| a.json()["operation_id"].as_str().expect("one").to_owned();
    let (mine, theirs) = (id(&mine), id(&theirs));
    assert_ne!(mine, theirs, "the same call id of two agents is two calls");
    for (token, own, other) in [(&one, &mine, &theirs), (&two, &theirs, &mine)] {
        let list = Ask::get("/v1/operations")
            .by(token)
            .send(hall.addr)
            .await
            .json();
        assert_eq!(list["operations"].as_array().map(Vec::len), Some(1));
        assert_eq!(list["operations"][0]["operation_id"], json!(own));
        let hidden = Ask::get(format!("/v1/operations/{other}"))
            .by(token)
            .send(hall.addr)
            .await;
        assert_eq!(
            (hidden.status, hidden.code()),
            (404, "no_such_operation".into())
        );
        let none = Ask::get("/v1/tool-calls/other")
            .by(token)
            .send(hall.addr)
            .await;
        assert_eq!((none.status, none.code()), (404, "no_such_call".into()));
    }
    hall.revoke("one").await;
    assert_eq!(
        Ask::get("/v1/tools").by(&one).send(hall.addr).await.status,
        401
    );
    assert_eq!(
        Ask::get("/v1/tools").by(&two).send(hall.addr).await.status,
        200
    );
    hall.end().await;
}

/// Pages by keyset, each operation once.
#[tokio::test(flavor = "multi_thread")]
async fn operations_are_paged_by_keyset() {
    let hall = Hall::new("honest").await;
    let token = hall.agent("desk", &[]).await;
    let mut talk = Talk::to(hall.addr).await;
    for n in 0..7 {
        // Two calls reach each: it is listed once.
        for again in 0..2 {
            let ask = Ask::refund(&token, &format!("k{n}_{again}"), &n.to_string(), 100);
            assert_eq!(talk.ask(&ask.waiting(30)).await.status, 200);
        }
    }
    let mut seen = Vec::new();
    let mut path = "/v1/operations?limit=3".to_owned();
    loop {
        let page = talk.ask(&Ask::get(&path).by(&token)).await.json();
        for row in page["operations"].as_array().expect("rows") {
            seen.push(row["operation_id"].as_str().expect("an id").to_owned());
        }
        if page["more"] == json!(false) {
            break;
        }
        path = format!("/v1/operations?limit=3&after={}", seen.last().expect("one"));
    }
    let mut sorted = seen.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!((seen.len(), &seen), (7, &sorted));
    for bad in [
        "limit=0",
        "limit=201",
        "limit=x",
        "after=",
        "limit=1&limit=2",
        "status=open",
    ] {
        let wrong = talk
            .ask(&Ask::get(format!("/v1/operations?{bad}")).by(&token))
            .await;
        assert_eq!(
            (wrong.status, wrong.code()),
            (400, "bad_query".into()),
            "{bad}"
        );
    }
    hall.end().await;
}

/// What the provider does not settle is not made to look settled (R42, R57); the wait's end is 202.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_is_checking_and_a_wait_ends_with_202_r73() {
    let hall = Hall::new("saved-500-with-effect").await;
    let token = hall.agent("desk", &[]).await;
    let result = Ask::refund(&token, "k", "1", 100)
        .waiting(30)
        .send(hall.addr)
        .await
        .json();
    assert_eq!(result["status"], "checking", "{result}");
    hall.end().await;
    let hall = Hall::idle().await;
    let token = hall.agent("desk", &[]).await;
    let began = std::time::Instant::now();
    let late = Ask::refund(&token, "k", "1", 100)
        .waiting(1)
        .send(hall.addr)
        .await;
    assert_eq!(
        (late.status, late.header("preference-applied")),
        (202, Some("wait=1"))
    );
    assert!(began.elapsed() >= Duration::from_secs(1));
    hall.end().await;
}
