//! What operators see: figures, health and readiness.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::client::Ask;
use crate::hall::Hall;

/// The figures of a text in Prometheus' format: name with labels, and value.
fn figures(text: &str) -> BTreeMap<String, f64> {
    let lines = text
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty());
    let figures = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        (name.to_owned(), value.parse().expect("a number"))
    });
    figures.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_figures_are_those_of_the_ledger() {
    let hall = Hall::new("saved-500-with-effect:1").await;
    let token = hall.agent("desk", &[]).await;
    for n in 0..3 {
        let ask = Ask::refund(&token, &format!("k{n}"), &n.to_string(), 100).waiting(30);
        assert_eq!(ask.send(hall.addr).await.status, 200);
    }
    let shown = Ask::get("/metrics").send(hall.addr).await;
    assert_eq!(shown.status, 200);
    assert!(
        shown
            .header("content-type")
            .expect("a type")
            .starts_with("text/plain; version=0.0.4")
    );
    let f = figures(&shown.body);
    let of = |name: &str| {
        f.get(name)
            .copied()
            .unwrap_or_else(|| panic!("{name} is not in\n{}", shown.body))
    };
    for (name, value) in [
        (r#"samekey_operations{status="succeeded"}"#, 2.0),
        (r#"samekey_operations{status="unknown"}"#, 1.0),
        (r#"samekey_operations{status="open"}"#, 0.0),
        (
            r#"samekey_attempts_total{provider="stripe",outcome="succeeded"}"#,
            2.0,
        ),
        (
            r#"samekey_attempts_total{provider="stripe",outcome="server_error"}"#,
            1.0,
        ),
        (
            r#"samekey_attempt_duration_seconds_count{provider="stripe"}"#,
            3.0,
        ),
        (
            r#"samekey_attempt_duration_seconds_bucket{provider="stripe",le="+Inf"}"#,
            3.0,
        ),
        (r#"samekey_circuit_open{tool="issue_refund"}"#, 0.0),
        (r#"samekey_calls_waiting{state="queued"}"#, 0.0),
        ("samekey_oldest_queued_call_seconds", 0.0),
        ("samekey_review", 1.0),
        ("samekey_engine_up", 1.0),
        ("samekey_ledger_up", 1.0),
        ("samekey_clock_alarm", 0.0),
        (
            r#"samekey_http_answers_total{method="POST",route="/v1/tool-calls",status="200"}"#,
            3.0,
        ),
    ] {
        assert!(
            (of(name) - value).abs() < f64::EPSILON,
            "{name}: {}",
            of(name)
        );
    }
    of(r#"samekey_read_budget_wait_seconds{provider="stripe"}"#);
    assert!(
        !shown.body.contains("desk") && !shown.body.contains("/v1/tool-calls/k"),
        "names nobody"
    );
    hall.end().await;
}

/// Kept for a second: whoever asks often makes the ledger no work.
#[tokio::test(flavor = "multi_thread")]
async fn a_reading_is_kept_for_a_second_and_waiting_calls_have_an_age() {
    let hall = Hall::idle().await;
    let token = hall.agent("desk", &[]).await;
    assert_eq!(
        Ask::refund(&token, "k", "1", 100)
            .send(hall.addr)
            .await
            .status,
        202
    );
    let first = Ask::get("/metrics").send(hall.addr).await.body;
    assert_eq!(Ask::get("/metrics").send(hall.addr).await.body, first);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let later = figures(&Ask::get("/metrics").send(hall.addr).await.body);
    assert!(later["samekey_oldest_queued_call_seconds"] >= 1.0);
    assert!(
        !later.contains_key("samekey_least_key_time_left_seconds"),
        "nothing was sent"
    );
    assert!(later["samekey_engine_up"] < 1.0, "there is none");
    hall.end().await;
}

/// The least time left is of a key that may still be sent.
#[tokio::test(flavor = "multi_thread")]
async fn the_least_key_time_left_is_shown_r37() {
    let hall = Hall::new("timeout-before-effect").await;
    let token = hall.agent("desk", &[]).await;
    let ask = Ask::refund(&token, "k", "1", 100).waiting(60);
    assert_eq!(ask.send(hall.addr).await.json()["status"], "unconfirmed");
    let f = figures(&Ask::get("/metrics").send(hall.addr).await.body);
    let left = f["samekey_least_key_time_left_seconds"];
    assert!((80_000.0..86_400.0).contains(&left), "{left}");
    hall.end().await;
}

/// Ready while calls are taken and driven; else 503 with the reason. Health is only that it answers.
#[tokio::test(flavor = "multi_thread")]
async fn readiness_says_why_not() {
    let hall = Hall::new("honest").await;
    let ready = || Ask::get("/readyz");
    let mut answer = ready().send(hall.addr).await;
    for _ in 0..20 {
        if answer.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        answer = ready().send(hall.addr).await;
    }
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"ready": true}))
    );
    hall.world.ledger.close().await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let down = ready().send(hall.addr).await;
    assert_eq!(down.status, 503);
    let reason = down.json()["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.contains("ledger"), "{reason}");
    assert_eq!(Ask::get("/healthz").send(hall.addr).await.status, 200);
    let metrics = Ask::get("/metrics").send(hall.addr).await;
    assert!(figures(&metrics.body)["samekey_ledger_up"] < 1.0);
}
