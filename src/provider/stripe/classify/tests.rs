//! The classification as a table, and as a property over any answer (I14).

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::ids::{OperationId, PaymentId};
use crate::domain::money::Money;

const KEY: &str = "sk_test_4eC39HqLyjWDarjtT1zdp7dc";

fn run(exchange: &Exchange) -> Outcome {
    let operation = OperationId::parse("op_5521").expect("operation");
    let payment = PaymentId::parse("pi_1").expect("payment");
    let expected = Expected {
        operation: &operation,
        payment: Some(&payment),
        money: Money::from_minor(3800, "usd".parse().expect("currency")).ok(),
    };
    classify(exchange, &expected, &Profile::stripe(), &[KEY, "c41f7a2e"])
}

fn reply(status: u16, headers: &[(&str, &str)], body: Option<Vec<u8>>) -> Exchange {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(
            HeaderName::try_from(*name).expect("name"),
            HeaderValue::try_from(*value).expect("value"),
        );
    }
    Exchange::Answered(Reply {
        status,
        headers: map,
        body: body.map(Bytes::from),
    })
}

fn says(status: u16, headers: &[(&str, &str)], body: &str) -> Outcome {
    run(&reply(status, headers, Some(body.as_bytes().to_vec())))
}

fn fault(kind: &str, code: &str) -> String {
    json!({"error": {"type": kind, "code": code, "message": "no"}}).to_string()
}

fn refund(with: &Value) -> Value {
    let mut base = json!({
        "object": "refund", "id": "re_1", "amount": 3800, "currency": "usd", "created": 1_700_000_000,
        "status": "succeeded", "payment_intent": "pi_1", "charge": "ch_1",
        "metadata": {"operation_id": "op_5521", "order_id": "4417"},
    });
    for (k, v) in with.as_object().expect("object") {
        base[k] = v.clone();
    }
    base
}

#[test]
fn every_refusal_by_status_type_and_code_i14() {
    use OutcomeClass as C;
    let invalid = "invalid_request_error";
    for (status, kind, code, class) in [
        (
            400,
            invalid,
            "parameter_invalid_integer",
            C::ValidationFailure,
        ),
        (
            400,
            invalid,
            "charge_already_refunded",
            C::ValidationFailure,
        ),
        (400, invalid, "charge_disputed", C::ValidationFailure),
        (400, invalid, "rate_limit", C::RetryableFailure),
        (400, "idempotency_error", "", C::KeyMismatch),
        (404, "idempotency_error", "", C::KeyMismatch),
        (402, "card_error", "", C::ValidationFailure),
        (404, invalid, "resource_missing", C::ValidationFailure),
        (401, invalid, "", C::PermissionDenied),
        (
            403,
            invalid,
            "more_permissions_required",
            C::PermissionDenied,
        ),
        (409, invalid, "idempotency_key_in_use", C::KeyInProgress),
        (
            409,
            "idempotency_error",
            "idempotency_key_in_use",
            C::KeyInProgress,
        ),
        (409, "idempotency_error", "", C::SideEffectUnknown),
        (409, invalid, "lock_timeout", C::SideEffectUnknown),
        (429, invalid, "rate_limit", C::RetryableFailure),
        (429, invalid, "lock_timeout", C::RetryableFailure),
        (405, invalid, "", C::SideEffectUnknown),
        (408, invalid, "", C::SideEffectUnknown),
        (418, invalid, "resource_missing", C::SideEffectUnknown),
        (424, invalid, "idempotency_key_in_use", C::SideEffectUnknown),
        (100, invalid, "", C::SideEffectUnknown),
        (101, invalid, "", C::SideEffectUnknown),
        (301, invalid, "", C::SideEffectUnknown),
        (304, invalid, "", C::SideEffectUnknown),
        (307, invalid, "", C::SideEffectUnknown),
        (200, invalid, "resource_missing", C::SideEffectUnknown),
        (500, "api_error", "", C::ServerError),
        (503, invalid, "idempotency_key_in_use", C::ServerError),
        (599, "api_error", "", C::ServerError),
        (600, "api_error", "", C::SideEffectUnknown),
        (999, "api_error", "", C::SideEffectUnknown),
    ] {
        let outcome = says(status, &[], &fault(kind, code));
        assert_eq!(outcome.class, class, "{status} {kind} {code}");
        assert_eq!(outcome.http_status, Some(status));
        assert_eq!(outcome.already_refunded, code == "charge_already_refunded");
        assert!(outcome.error.is_some());
    }
}

#[test]
fn a_refusal_counts_only_in_stripes_envelope_i14() {
    use OutcomeClass as C;
    let page = "<html>404 Not Found</html>";
    for body in [page, "", "{}", "[]", "null", r#"{"error":"no"}"#, "\u{0}"] {
        for status in [400, 401, 402, 403, 404, 409, 410, 422] {
            assert_eq!(
                says(status, &[], body).class,
                C::SideEffectUnknown,
                "{status} {body}"
            );
        }
        let busy = says(429, &[], body);
        assert_eq!(
            (busy.class, busy.limiter),
            (C::RetryableFailure, false),
            "{body}"
        );
        assert_eq!(says(502, &[], body).class, C::ServerError);
    }
}

#[test]
fn a_limiter_is_told_from_a_lock_s21_s24() {
    let why = [("Stripe-Rate-Limited-Reason", "global-rate")];
    let limiter = |status, headers: &[_], code| says(status, headers, &fault("x", code)).limiter;
    assert!(limiter(429, &why, "rate_limit"));
    assert!(limiter(429, &why, "lock_timeout"));
    assert!(!limiter(429, &[], "lock_timeout"));
    assert!(limiter(429, &[], "rate_limit"));
    assert!(limiter(400, &[], "rate_limit"));
    assert!(!limiter(503, &why, "rate_limit"));
    assert!(!limiter(400, &why, "resource_missing"));
}

#[test]
fn an_answer_that_broke_off_is_unknown_unless_its_status_is_5xx() {
    for status in [200, 201, 302, 400, 401, 402, 404, 409, 429] {
        let outcome = run(&reply(status, &[("Request-Id", "req_1")], None));
        assert_eq!(outcome.class, OutcomeClass::SideEffectUnknown, "{status}");
        assert_eq!(outcome.request_id, Some("req_1".into()));
    }
    assert_eq!(run(&reply(500, &[], None)).class, OutcomeClass::ServerError);
    let lost = run(&Exchange::Lost("reset".into()));
    assert_eq!(lost.class, OutcomeClass::SideEffectUnknown);
    let stayed = run(&Exchange::NotSent("closed".into()));
    assert_eq!(
        (stayed.class, stayed.http_status),
        (OutcomeClass::NotSent, None)
    );
}

#[test]
fn a_2xx_is_judged_by_its_content_i14() {
    use OutcomeClass as C;
    for (with, class) in [
        (json!({}), C::Succeeded),
        (json!({"status": "pending"}), C::Pending),
        (json!({"status": "requires_action"}), C::Pending),
        (
            json!({"status": "failed", "failure_reason": "declined"}),
            C::EffectFailed,
        ),
        (json!({"status": "canceled"}), C::EffectFailed),
        (json!({"status": "paid"}), C::SideEffectUnknown),
        (json!({"status": null}), C::SideEffectUnknown),
        (json!({"amount": 3801}), C::ReplyMismatch),
        (json!({"currency": "eur"}), C::ReplyMismatch),
        (json!({"payment_intent": "pi_2"}), C::ReplyMismatch),
        (json!({"payment_intent": null}), C::ReplyMismatch),
        (
            json!({"metadata": {"operation_id": "op_9"}}),
            C::ReplyMismatch,
        ),
        (json!({"metadata": {}}), C::SideEffectUnknown),
        (json!({"metadata": null}), C::SideEffectUnknown),
        (json!({"object": "charge"}), C::SideEffectUnknown),
        (json!({"id": null}), C::SideEffectUnknown),
        (json!({"amount": "3800"}), C::SideEffectUnknown),
        (json!({"amount": 3800.5}), C::SideEffectUnknown),
    ] {
        for (status, kind) in [(200, "application/json"), (201, "text/html"), (299, "")] {
            let body = refund(&with).to_string();
            let outcome = says(status, &[("content-type", kind)], &body);
            assert_eq!(outcome.class, class, "{status} {with}");
        }
    }
    for body in [
        "",
        "OK",
        "{",
        "[]",
        r#"["refund","re_1",3800,"usd",1,"succeeded"]"#,
    ] {
        assert_eq!(says(200, &[], body).class, C::SideEffectUnknown, "{body}");
    }
    let cut = refund(&json!({})).to_string();
    let cut = cut.get(..cut.len() - 1).expect("cut");
    assert_eq!(says(200, &[], cut).class, C::SideEffectUnknown);
}

#[test]
fn headers_are_kept_whatever_the_class() {
    let headers = [
        ("Request-Id", "req_1"),
        ("Idempotent-Replayed", "true"),
        ("Stripe-Should-Retry", "false"),
        ("Retry-After", "7"),
    ];
    for status in [200, 307, 401, 402, 409, 429, 500] {
        let o = says(status, &headers, &fault("x", "y"));
        assert_eq!(o.request_id, Some("req_1".into()));
        // S5: what is never saved cannot be a saved answer, whatever it says of itself.
        let replayed = ![401, 409, 429].contains(&status);
        assert_eq!((o.replayed, o.should_retry), (replayed, Some(false)));
        assert_eq!(o.retry_after, Some(Duration::from_secs(7)));
    }
    let wait = |v| says(429, &[("Retry-After", v)], "").retry_after;
    assert_eq!(wait("99999999999"), Some(Duration::from_hours(1)), "I33");
    assert_eq!(wait("99999999999999999999999"), None);
    assert_eq!(wait("Wed, 21 Oct 2026 07:28:00 GMT"), None);
    let twice = [
        ("Stripe-Should-Retry", "false"),
        ("Stripe-Should-Retry", "true"),
    ];
    assert_eq!(says(500, &twice, "").should_retry, None);
    assert_eq!(
        says(500, &[("Stripe-Should-Retry", "maybe")], "").should_retry,
        None
    );
}

#[test]
fn no_secret_and_nothing_hostile_reaches_a_text_i30_i31() {
    let message = format!("Invalid key {KEY}; another than c41f7a2e\u{1b}[2J\u{202e}");
    let body = json!({"error": {"type": KEY, "message": message, "param": "sk_live_zz"}});
    for status in [400, 401, 429, 500] {
        let o = says(status, &[("Request-Id", KEY)], &body.to_string());
        let shown = format!("{o:?}");
        assert!(
            !shown.contains("4eC39") && !shown.contains("c41f7a2e"),
            "{shown}"
        );
        assert!(
            !shown.contains("sk_live") && !shown.contains('\u{1b}') && !shown.contains('\u{202e}')
        );
    }
}

/// Whether a body says everything that success needs, read by other means than the adapter's.
fn is_ours(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|v| {
        v["object"] == "refund"
            && v["id"].as_str().is_some_and(|id| !id.is_empty())
            && v["amount"] == 3800
            && v["currency"]
                .as_str()
                .is_some_and(|c| c.trim().eq_ignore_ascii_case("usd"))
            && v["status"] == "succeeded"
            && v["metadata"]["operation_id"]
                .as_str()
                .is_some_and(|o| o.trim() == "op_5521")
            && (v["payment_intent"] == "pi_1" || v["payment_intent"]["id"] == "pi_1")
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        prop::sample::select(vec![
            json!("succeeded"),
            json!("pending"),
            json!("failed"),
            json!("usd"),
            json!("USD"),
            json!("pi_1"),
            json!({"id": "pi_1"}),
            json!({"operation_id": "op_5521"}),
            json!(3800),
            json!([]),
            json!({"error": {"type": "idempotency_error"}}),
        ]),
    ]
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let field = prop::sample::select(vec![
        "object",
        "id",
        "amount",
        "currency",
        "created",
        "status",
        "payment_intent",
        "charge",
        "metadata",
        "failure_reason",
        "error",
    ]);
    let near = (
        prop::collection::vec((field, any_value()), 0..3),
        any::<prop::sample::Index>(),
    );
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        any_value().prop_map(|v| v.to_string().into_bytes()),
        // Our own refund with some members changed, and now and then cut short.
        near.prop_map(|(changes, cut)| {
            let mut v = refund(&json!({}));
            for (k, with) in changes {
                v[k] = with;
            }
            let mut body = v.to_string().into_bytes();
            let length = cut.index(body.len() * 3);
            if length > 0 {
                body.truncate(length);
            }
            body
        }),
        (".{0,12}", ".{0,12}", ".{0,30}").prop_map(|(t, c, m)| {
            json!({"error": {"type": t, "code": c, "message": m}})
                .to_string()
                .into_bytes()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_answer_has_one_class_and_success_needs_everything_i14(
        status in prop_oneof![Just(200_u16), 100_u16..1000],
        whole in prop::bool::weighted(0.9),
        body in any_body(),
        header in prop::sample::select(vec![
            "request-id", "retry-after", "stripe-should-retry", "idempotent-replayed",
            "stripe-rate-limited-reason", "content-type", "location",
        ]),
        value in prop::collection::vec(any::<u8>().prop_filter("header", |b| *b >= 32 && *b != 127), 0..30),
    ) {
        use OutcomeClass as C;
        let mut headers = HeaderMap::new();
        headers.insert(header, HeaderValue::from_bytes(&value).expect("value"));
        let ours = whole && is_ours(&body);
        let outcome = run(&Exchange::Answered(Reply {
            status, headers, body: whole.then(|| Bytes::from(body)),
        }));
        prop_assert_eq!(outcome.http_status, Some(status));
        prop_assert_ne!(outcome.class, C::NotSent, "bytes had left");
        if outcome.class == C::Succeeded {
            prop_assert!(ours && (200..300).contains(&status));
        }
        if matches!(outcome.class, C::Succeeded | C::Pending | C::EffectFailed | C::ReplyMismatch) {
            prop_assert!(outcome.object.is_some() && (200..300).contains(&status));
        }
        match status {
            500..=599 => prop_assert_eq!(outcome.class, C::ServerError),
            100..=199 | 300..=399 | 600.. => prop_assert_eq!(outcome.class, C::SideEffectUnknown),
            _ => prop_assert_ne!(outcome.class, C::ServerError),
        }
        prop_assert!(!outcome.limiter || outcome.class == C::RetryableFailure);
        if let Some(text) = outcome.error {
            prop_assert!(text.as_str().chars().all(|c| !c.is_control()));
        }
    }
}
