//! Errors and limits (S1, S5, S14, S16, S19–S24, S62, S63).

use super::*;

fn answering(answer: &str) -> String {
    format!("about = 'x'\n[[step]]\neffect = false\nanswer = {answer}\n")
}

#[tokio::test]
async fn keys_mean_nothing_to_get_and_delete_s1() {
    let (sim, _) = start("honest").await;
    let made = refund(&sim, "K", PAYMENT).await;
    let with_key = |method: &str| {
        let path = format!("/v1/refunds/{}", made.id());
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: s\r\nConnection: close\r\n{AUTH}Idempotency-Key: K\r\n\r\n"
        );
        raw(&sim, text)
    };
    let read = with_key("GET").await.expect("a reply");
    assert_eq!((read.status, read.replayed()), (200, false));
    let deleted = with_key("DELETE").await.expect("a reply");
    assert_eq!((deleted.status, deleted.replayed()), (404, false));
    assert!(refund(&sim, "K", PAYMENT).await.replayed(), "untouched");
}

#[tokio::test]
async fn errors_have_an_envelope_and_a_request_id_s19() {
    let (sim, _) = start("honest").await;
    let missing = get(&sim, "/v1/refunds/re_x").await;
    let id = missing.header("Request-Id").expect("an id").to_owned();
    assert_eq!(missing.error("type"), "invalid_request_error");
    assert_eq!(missing.error("code"), "resource_missing");
    assert_eq!(missing.error("param"), "refund");
    assert!(missing.error("message").contains("'re_x'"));
    assert!(missing.error("doc_url").ends_with("resource-missing"));
    assert!(missing.error("request_log_url").ends_with(&id));
    let types = [
        "api_error",
        "card_error",
        "idempotency_error",
        "invalid_request_error",
    ];
    for kind in types {
        let (sim, _) =
            start_file(&answering(&format!("{{ status = 402, type = '{kind}' }}"))).await;
        assert_eq!(refund(&sim, "K", PAYMENT).await.error("type"), kind);
    }
}

#[tokio::test]
async fn every_status_of_the_list_can_be_had_and_none_is_saved_s20_s62() {
    for status in [400, 401, 402, 403, 404, 409, 429, 500, 502, 503, 504] {
        let text = answering(&format!("{{ status = {status}, type = 'api_error' }}"));
        let (sim, _) = start_file(&format!("{text}[[step]]\n")).await;
        assert_eq!(refund(&sim, "K", PAYMENT).await.status, status);
        assert!(sim.effects().is_empty(), "{status}");
        let again = refund(&sim, "K", PAYMENT).await;
        assert_eq!((again.status, again.replayed()), (200, false), "{status}");
    }
}

#[tokio::test]
async fn retry_advice_is_true_false_or_absent_s14_s63() {
    for (advice, expected) in [
        ("headers = { Stripe-Should-Retry = 'true' }", Some("true")),
        ("headers = { Stripe-Should-Retry = 'false' }", Some("false")),
        ("headers = {}", None),
    ] {
        let text = answering(&format!("{{ status = 500, type = 'api_error', {advice} }}"));
        let (sim, _) = start_file(&text).await;
        let answer = refund(&sim, "K", PAYMENT).await;
        assert_eq!(answer.header("Stripe-Should-Retry"), expected);
    }
}

#[tokio::test]
async fn only_a_lock_is_worth_a_retry_at_once_s16_s21() {
    let (sim, _) = start("lock-timeout").await;
    let lock = refund(&sim, "K", PAYMENT).await;
    assert_eq!(
        (lock.status, lock.error("code")),
        (429, "lock_timeout".into())
    );
    assert_eq!(lock.header("Stripe-Should-Retry"), Some("true"));
    assert_eq!(lock.header("Stripe-Rate-Limited-Reason"), None);
    let (sim, _) = start("rate-limited").await;
    let limited = refund(&sim, "K", PAYMENT).await;
    assert_eq!(limited.header("Stripe-Should-Retry"), None);
    assert_eq!(limited.header("Retry-After"), None, "not documented");
}

#[tokio::test]
async fn every_reason_of_a_rate_limit_can_be_had_s21_s63() {
    for reason in [
        "global-rate",
        "endpoint-rate",
        "global-concurrency",
        "endpoint-concurrency",
        "resource-specific",
    ] {
        let text = answering(&format!(
            "{{ status = 429, code = 'rate_limit', headers = {{ Stripe-Rate-Limited-Reason = '{reason}' }} }}"
        ));
        let (sim, _) = start_file(&text).await;
        let answer = refund(&sim, "K", PAYMENT).await;
        assert_eq!(answer.header("Stripe-Rate-Limited-Reason"), Some(reason));
    }
}

#[tokio::test]
async fn limits_come_before_keys_and_pass_with_the_second_s5_s22() {
    let (sim, clock) = start("rate-limits").await;
    for n in 0..25 {
        let body = format!("payment_intent=pi_order_{n}&amount=100");
        assert_eq!(refund(&sim, &n.to_string(), &body).await.status, 200, "{n}");
    }
    let limited = refund(&sim, "K", PAYMENT).await;
    assert_eq!(
        (limited.status, limited.error("code")),
        (429, "rate_limit".into())
    );
    assert!(limited.header("Stripe-Rate-Limited-Reason").is_some());
    clock.advance(SECOND);
    let now = refund(&sim, "K", PAYMENT).await;
    assert_eq!(
        (now.status, now.replayed()),
        (200, false),
        "nothing was saved"
    );
    clock.advance(SECOND);
    let search = "/v1/charges/search?query=metadata['order_id']:'1'";
    for n in 0..21 {
        let answer = get(&sim, search).await;
        assert_eq!(answer.status == 429, n == 20, "{n}");
    }
    clock.advance(SECOND);
    assert_eq!(get(&sim, search).await.status, 200);
}

#[tokio::test]
async fn reads_have_an_allowance_for_thirty_days_and_writes_do_not_count_s23() {
    let (sim, _) = start_file("about = 'x'\n[limits]\nreads = 3\n[[step]]\n").await;
    refund(&sim, "K", PAYMENT).await;
    for n in 0..4 {
        assert_eq!(get(&sim, "/v1/refunds").await.status == 429, n == 3, "{n}");
    }
    assert_eq!(refund(&sim, "L", PAYMENT).await.status, 200);
    assert_eq!(get(&sim, "/_sim/state").await.json()["reads"], 4);
    advance(&sim, 30 * 86_400).await;
    assert_eq!(get(&sim, "/v1/refunds").await.status, 200);
}

#[tokio::test]
async fn the_old_form_of_a_rate_limit_can_be_had_s24() {
    let (sim, _) = start_file(&answering("{ status = 400, code = 'rate_limit' }")).await;
    let answer = refund(&sim, "K", PAYMENT).await;
    assert_eq!(
        (answer.status, answer.error("code")),
        (400, "rate_limit".into())
    );
}
