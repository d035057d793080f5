//! Bodies that are not what they should be: each is one clear problem, and nothing is stored.

use samekey::ledger::CallQuery;
use serde_json::json;

use crate::client::{Ask, Talk};
use crate::hall::Hall;

#[tokio::test(flavor = "multi_thread")]
async fn each_body_that_is_not_right_is_one_clear_problem_i31_i33() {
    let hall = Hall::idle().await;
    let token = hall.agent("desk", &[]).await;
    let good = r#"{"tool":"issue_refund","arguments":{}}"#;
    let deep = format!(
        r#"{{"tool":"issue_refund","arguments":{{"a":{}{}}}}}"#,
        "[".repeat(100),
        "]".repeat(100)
    );
    let long =
        json!({"tool": "issue_refund", "arguments": {"reason": "x".repeat(64 * 1024)}}).to_string();
    let longer = json!({"tool": "issue_refund", "arguments": {"reason": "x".repeat(100 * 1024)}})
        .to_string();
    let cases: [(&[u8], u16, &str); 19] = [
        (b"", 400, "not_json"),
        (b"{", 400, "not_json"),
        (b"null", 400, "bad_request"),
        (b"[]", 400, "bad_request"),
        (b"\xff\xfe", 400, "not_utf8"),
        (
            br#"{"tool":"issue_refund","tool":"x","arguments":{}}"#,
            400,
            "duplicate_member",
        ),
        (
            br#"{"tool":"issue_refund","arguments":{"amount":"1","amount":"9"}}"#,
            400,
            "duplicate_member",
        ),
        (deep.as_bytes(), 400, "too_deep"),
        (br#"{"arguments":{}}"#, 400, "bad_request"),
        (br#"{"tool":"issue_refund"}"#, 400, "bad_request"),
        (br#"{"tool":7,"arguments":{}}"#, 400, "bad_request"),
        (br#"{"tool":"","arguments":{}}"#, 400, "bad_request"),
        (
            br#"{"tool":"issue_refund","arguments":[]}"#,
            400,
            "bad_request",
        ),
        (
            br#"{"tool":"issue_refund","arguments":"{}"}"#,
            400,
            "bad_request",
        ),
        (
            br#"{"tool":"issue_refund","arguments":{},"idempotency_key":"k"}"#,
            400,
            "unknown_member",
        ),
        (
            br#"{"tool":"issue_refund","arguments":{},"session_id":7}"#,
            400,
            "bad_request",
        ),
        (
            b"{\"tool\":\"issue\\u202erefund\",\"arguments\":{}}",
            400,
            "bad_request",
        ),
        (long.as_bytes(), 413, "too_large"),
        (longer.as_bytes(), 413, "too_large"),
    ];
    for (body, status, code) in cases {
        let ask = Ask::refund(&token, "k", "1", 1).body(body);
        let answer = ask.send(hall.addr).await;
        let shown: String = String::from_utf8_lossy(body).chars().take(80).collect();
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{shown}"
        );
    }
    for kind in [
        "text/plain",
        "application/json; charset=latin1",
        "application/x-www-form-urlencoded",
    ] {
        let ask = Ask::refund(&token, "k", "1", 1)
            .without("content-type")
            .with("Content-Type", kind);
        let answer = ask.body(good).send(hall.addr).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (415, "not_json_content"),
            "{kind}"
        );
    }
    let zipped = Ask::refund(&token, "k", "1", 1).with("Content-Encoding", "gzip");
    assert_eq!(
        zipped.send(hall.addr).await.status,
        415,
        "it is never unpacked"
    );
    let query = CallQuery {
        limit: 9,
        ..CallQuery::default()
    };
    let calls = hall.world.ledger.calls(&query).await.expect("calls").calls;
    assert!(calls.is_empty(), "nothing was stored");
    // What the tool's own check refuses is a call like any other: accepted, and answered `rejected`.
    let wrong = Ask::refund(&token, "k", "1", 1)
        .body(good)
        .send(hall.addr)
        .await;
    assert_eq!(wrong.status, 202);
    hall.end().await;
}

/// In pieces without an end: refused, and the connection is not kept for more.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_in_pieces_without_an_end_is_refused_i33() {
    let hall = Hall::idle().await;
    let token = hall.agent("desk", &[]).await;
    let mut talk = Talk::to(hall.addr).await;
    let head = format!(
        "POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: k\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    talk.write(head.as_bytes()).await;
    let piece = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    for _ in 0..64 {
        if !talk.write(piece.as_bytes()).await {
            break;
        }
    }
    assert!(
        matches!(talk.read().await.status, 413 | 0),
        "refused or cut off"
    );
    hall.end().await;
}
