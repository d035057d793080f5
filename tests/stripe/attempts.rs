//! What one attempt puts on the wire, and what comes of it.

use samekey::clock::Clock;
use samekey::domain::arguments::Arguments;
use samekey::domain::opening::{Opened, Resolved, check};
use samekey::domain::operation::OperationRow;
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::ToolPolicy;
use samekey::domain::tool_call::RefundArguments;
use samekey::provider::stripe::Stripe;
use samekey::provider::{Asked, Provider as _};

use crate::server::{Act, Server, answer, json};
use crate::{API_KEY, TIMEOUT, VERSION, free, now, row, stripe};

pub const REFUND: &str = r#"{"object":"refund","id":"re_1","amount":3800,"currency":"usd",
    "created":1790000000,"status":"succeeded","payment_intent":"pi_1","charge":"ch_1",
    "metadata":{"operation_id":"op_5521","order_id":"4417"}}"#;

async fn send(stripe: &Stripe, row: &OperationRow) -> Outcome {
    stripe.connect().await.expect("connects").send(row).await
}

/// One attempt against a server that does `act`; the outcome and how many requests it saw.
pub async fn attempt(act: Act) -> (Outcome, usize) {
    let server = Server::always(act).await;
    let stripe = stripe(&server.origin, &Clock::system());
    let outcome = send(&stripe, &row(&stripe)).await;
    (outcome, server.requests().len())
}

#[tokio::test]
async fn the_stored_bytes_go_out_with_the_rows_key_i3_r17() {
    let headers = "Request-Id: req_1\r\nIdempotent-Replayed: true\r\n";
    let server = Server::always(answer(200, headers, REFUND)).await;
    let stripe = stripe(&server.origin, &Clock::system());
    let row = row(&stripe);
    for _ in 0..2 {
        let outcome = send(&stripe, &row).await;
        assert_eq!(outcome.class, OutcomeClass::Succeeded);
        assert_eq!(outcome.request_id, Some("req_1".into()));
        assert!(outcome.replayed);
        assert_eq!(outcome.object.expect("object").id.as_str(), "re_1");
    }
    let seen = server.requests();
    assert_eq!(seen.len(), 2, "one request per attempt");
    assert_eq!(seen[0].body, seen[1].body, "F12");
    assert_eq!(seen[0].head, seen[1].head);
    assert_eq!(seen[0].line, "POST /v1/refunds");
    assert_eq!(
        seen[0].body,
        "payment_intent=pi_1&amount=3800&metadata%5Boperation_id%5D=op_5521&metadata%5Border_id%5D=4417"
    );
    let host = server.origin.trim_start_matches("http://");
    for (name, value) in [
        ("host", host),
        ("authorization", &format!("Bearer {API_KEY}")),
        ("idempotency-key", &row.key.to_string()),
        ("stripe-version", VERSION),
        ("content-type", "application/x-www-form-urlencoded"),
    ] {
        assert_eq!(seen[0].header(name), Some(value));
    }
}

/// F27, F28: minor units go out as they are, whatever the decimals of their currency; a whole charge in
/// yen is refunded to the yen.
#[test]
fn minor_units_go_out_as_they_are_f27_f28() {
    let stripe = stripe("https://api.stripe.com", &Clock::system());
    let policy = ToolPolicy::refund("stripe".parse().expect("a provider"));
    let id = "op_5521".parse().expect("an operation");
    for (code, minor) in [("jpy", 500), ("usd", 3800), ("kwd", 1005), ("clf", 12_345)] {
        let asked = |minor: i64| {
            let arguments =
                serde_json::json!({"order_id": "4417", "amount_cents": minor, "currency": code});
            Arguments::from(RefundArguments::parse(&arguments).expect("arguments"))
        };
        let resolved = Resolved {
            payment: "pi_1".parse().expect("a payment"),
            charge: None,
            currency: code.parse().expect("a currency"),
            captured_minor: minor,
            refunded_minor: 0,
            refunds: Vec::new(),
        };
        let whole = asked(minor);
        assert_eq!(
            check(&[], &whole, Some(&resolved), &policy, Opened::default()),
            Ok(()),
            "{code}"
        );
        check(
            &[],
            &asked(minor + 1),
            Some(&resolved),
            &policy,
            Opened::default(),
        )
        .expect_err(code);
        let bytes = stripe.request(&Asked {
            tool: &"issue_refund".parse().expect("a tool"),
            operation: &id,
            arguments: &whole,
            resolved: Some(&resolved),
        });
        let bytes = String::from_utf8(bytes.expect("a request")).expect("text");
        assert!(bytes.contains(&format!("&amount={minor}&")), "{bytes}");
    }
}

#[tokio::test]
async fn a_stored_request_keeps_its_api_version_i3() {
    let server = Server::always(json(200, REFUND)).await;
    let stripe = stripe(&server.origin, &Clock::system());
    let mut row = row(&stripe);
    let old = String::from_utf8(row.request)
        .expect("text")
        .replace(VERSION, "2024-06-20");
    row.request = old.into_bytes();
    send(&stripe, &row).await;
    assert_eq!(
        server.requests()[0].header("stripe-version"),
        Some("2024-06-20")
    );
}

#[tokio::test]
async fn a_broken_answer_is_unknown_and_nothing_is_resent_i12_f85() {
    let half = &REFUND[..100];
    let long = "Content-Length: 9999\r\n\r\n";
    for (name, act) in [
        ("closed without an answer", Act::Say(Vec::new())),
        ("half a status line", Act::Say(b"HTTP/1.1 20".to_vec())),
        (
            "closed after headers",
            Act::Say(format!("HTTP/1.1 200 OK\r\n{long}").into()),
        ),
        (
            "half a body",
            Act::Say(format!("HTTP/1.1 200 OK\r\n{long}{half}").into()),
        ),
        (
            "half a body, until close",
            Act::Say(format!("HTTP/1.1 200 OK\r\n\r\n{half}").into()),
        ),
        (
            "half a refusal",
            Act::Say(format!("HTTP/1.1 402 No\r\n{long}{{").into()),
        ),
        ("reset", Act::Reset),
        ("no HTTP", Act::Say(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())),
        (
            "broken chunks",
            Act::Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec()),
        ),
        (
            "upgrade",
            Act::Say(b"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n".to_vec()),
        ),
    ] {
        let (outcome, requests) = attempt(act).await;
        assert_eq!(
            outcome.class,
            OutcomeClass::SideEffectUnknown,
            "{name}: {outcome:?}"
        );
        assert_eq!(requests, 1, "{name}");
    }
    let (outcome, requests) = attempt(Act::Say(format!("HTTP/1.1 500 No\r\n{long}").into())).await;
    assert_eq!(
        (outcome.class, requests),
        (OutcomeClass::ServerError, 1),
        "F16"
    );
}

#[tokio::test]
async fn an_endless_answer_is_cut_off_i33() {
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(3 * 1024 * 1024));
    let headers = format!("x-pad: {}\r\n", "y".repeat(100)).repeat(2000);
    for act in [
        answer(200, "", &large),
        answer(402, "", &large),
        answer(200, &headers, REFUND),
    ] {
        let (outcome, requests) = attempt(act).await;
        assert_eq!(
            (outcome.class, requests),
            (OutcomeClass::SideEffectUnknown, 1)
        );
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_i12() {
    let elsewhere = Server::always(json(200, REFUND)).await;
    for status in [301, 302, 307, 308] {
        let location = format!("Location: {}/v1/refunds\r\n", elsewhere.origin);
        let (outcome, requests) = attempt(answer(status, &location, "")).await;
        assert_eq!(
            (outcome.class, requests),
            (OutcomeClass::SideEffectUnknown, 1)
        );
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn silence_ends_at_the_timeout_and_is_unknown_r75() {
    for begun in ["", "HTTP/1.1 200 OK\r\nContent-"] {
        let server = Server::always(Act::Silence(begun.into())).await;
        let clock = Clock::manual(now());
        let stripe = stripe(&server.origin, &clock);
        let row = row(&stripe);
        let attempt = tokio::spawn(async move { send(&stripe, &row).await });
        server.reached(1, 1).await;
        assert!(
            !attempt.is_finished(),
            "it waits as long as the profile says"
        );
        clock.advance(TIMEOUT);
        let outcome = attempt.await.expect("attempt");
        assert_eq!(outcome.class, OutcomeClass::SideEffectUnknown);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_body_that_never_ends_stops_at_the_timeout_too() {
    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{";
    let server = Server::always(Act::Silence(begun.into())).await;
    // Ten seconds of this clock are ten milliseconds.
    let stripe = stripe(&server.origin, &Clock::scaled(1000));
    let outcome = send(&stripe, &row(&stripe)).await;
    assert_eq!(outcome.class, OutcomeClass::SideEffectUnknown);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn connecting_sends_nothing_and_a_bad_row_is_not_sent() {
    let server = Server::always(json(200, REFUND)).await;
    let stripe = stripe(&server.origin, &Clock::system());
    let ready = stripe.connect().await.expect("connects");
    server.reached(1, 0).await;
    let mut bad = row(&stripe);
    bad.request = b"DELETE /v1/everything\n\n".to_vec();
    let outcome = ready.send(&bad).await;
    assert_eq!(outcome.class, OutcomeClass::NotSent);
    drop(stripe.connect().await.expect("connects"));
    server.reached(2, 0).await;
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_server_that_hangs_up_at_once_never_makes_a_second_request_f86() {
    for _ in 0..20 {
        let server = Server::always(Act::HangUp).await;
        let stripe = stripe(&server.origin, &Clock::system());
        let row = row(&stripe);
        // The connection may be gone before or after the first byte: never success, never refusal.
        if let Ok(ready) = stripe.connect().await {
            server.reached(1, 0).await;
            let class = ready.send(&row).await.class;
            assert!(
                matches!(
                    class,
                    OutcomeClass::SideEffectUnknown | OutcomeClass::NotSent
                ),
                "{class}"
            );
        }
    }
}

#[tokio::test]
async fn no_connection_is_no_attempt() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let stripe = stripe(&format!("http://127.0.0.1:{port}"), &Clock::system());
    let error = stripe.connect().await.err().expect("refused");
    assert!(
        error
            .to_string()
            .starts_with("no connection to http://127.0.0.1"),
        "{error}"
    );
    assert!(!stripe.probe(&free()).await);
}

#[tokio::test]
async fn a_tls_handshake_that_hangs_is_bounded() {
    let server = Server::always(Act::Silence(Vec::new())).await;
    let clock = Clock::manual(now());
    let stripe = stripe(&server.origin.replace("http:", "https:"), &clock);
    assert_eq!(stripe.mode(), "simulator", "nobody but a simulator is here");
    let connecting = tokio::spawn(async move { stripe.connect().await.err() });
    server.reached(1, 0).await;
    clock.advance(TIMEOUT);
    let error = connecting.await.expect("task").expect("refused");
    assert!(error.to_string().contains("too long"), "{error}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_refusal_is_classified_and_its_text_is_clean_i30() {
    let body = format!(
        r#"{{"error":{{"type":"invalid_request_error","message":"Invalid API Key provided: {API_KEY}\u001b[2J"}}}}"#
    );
    let (outcome, _) = attempt(answer(401, "Stripe-Should-Retry: false\r\n", &body)).await;
    assert_eq!(outcome.class, OutcomeClass::PermissionDenied);
    assert_eq!(
        (outcome.http_status, outcome.should_retry),
        (Some(401), Some(false))
    );
    let text = outcome.error.expect("text").to_string();
    assert!(text.contains("‹secret›") && !text.contains("4eC39") && !text.contains('\u{1b}'));
}
