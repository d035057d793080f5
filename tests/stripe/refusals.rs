//! Errors: their envelope, what each status means, and what becomes of the row (S19, S20, S32–S34).

use samekey::domain::operation::{Status, UnknownReason};
use samekey::domain::outcome::OutcomeClass;
use serde_json::json;

use crate::attempts::{REFUND, attempt};
use crate::desk::{Desk, fault, made};
use crate::server::{Act, answer, json as reply};

const INVALID: &str = "invalid_request_error";

/// S19: the provider's name of the request is kept, whatever became of it; of the envelope, code, message and
/// parameter are shown.
#[tokio::test]
async fn the_request_id_and_the_providers_words_are_kept_s19() {
    let error = json!({"error": {
        "type": INVALID, "code": "parameter_invalid_integer", "message": "Invalid integer", "param": "amount",
        "doc_url": "https://stripe.com/docs", "request_log_url": "https://dashboard.stripe.com/logs/req_7",
    }});
    for (status, body) in [
        (200, REFUND.to_owned()),
        (400, error.to_string()),
        (409, error.to_string()),
        (429, error.to_string()),
        (500, error.to_string()),
        (301, String::new()),
    ] {
        let (outcome, _) = attempt(answer(status, "Request-Id: req_7\r\n", &body)).await;
        assert_eq!(outcome.request_id, Some("req_7".into()), "{status}");
        assert_eq!(outcome.http_status, Some(status));
        if status >= 400 {
            let text = outcome.error.expect("words").to_string();
            assert_eq!(text, "parameter_invalid_integer: Invalid integer (amount)");
        }
    }
}

/// S20: what each status means, in the provider's own envelope; in anybody else's it means nothing.
#[tokio::test]
async fn each_status_has_its_meaning_and_only_in_the_envelope_s20() {
    use OutcomeClass as C;
    for (status, class) in [
        (400, C::ValidationFailure),
        (401, C::PermissionDenied),
        (402, C::ValidationFailure),
        (403, C::PermissionDenied),
        (404, C::ValidationFailure),
        (409, C::SideEffectUnknown),
        (410, C::SideEffectUnknown),
        (422, C::SideEffectUnknown),
        (429, C::RetryableFailure),
        (500, C::ServerError),
        (502, C::ServerError),
        (503, C::ServerError),
        (504, C::ServerError),
    ] {
        assert_eq!(
            attempt(fault(status, INVALID, "")).await.0.class,
            class,
            "{status}"
        );
        let page = answer(status, "Content-Type: text/html\r\n", "<html>proxy</html>");
        let bare = match status {
            429 | 500..=599 => class,
            _ => C::SideEffectUnknown,
        };
        assert_eq!(attempt(page).await.0.class, bare, "{status} of a proxy");
    }
}

/// S32: more than is left is refused with the parameter's name; S33: a dispute, an amount that is none, a
/// charge that is unknown, not captured or failed. All are definite: the row fails, once, with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_closes_the_row_with_its_reason_s32_s33() {
    for (status, code, param, words) in [
        (
            400,
            "",
            "amount",
            "Refund amount ($38.00) is greater than unrefunded amount on charge",
        ),
        (
            400,
            "charge_disputed",
            "",
            "Charge ch_1 has been charged back; cannot issue a refund.",
        ),
        (
            400,
            "parameter_invalid_integer",
            "amount",
            "Invalid positive integer",
        ),
        (
            404,
            "resource_missing",
            "payment_intent",
            "No such payment_intent: 'pi_1'",
        ),
        (
            400,
            "",
            "",
            "This PaymentIntent does not have a successful charge to refund.",
        ),
    ] {
        let mut error = json!({"type": INVALID, "message": words});
        for (name, value) in [("code", code), ("param", param)] {
            if !value.is_empty() {
                error[name] = json!(value);
            }
        }
        let body = json!({ "error": error }).to_string();
        let desk = Desk::new(move |_, _, _| reply(status, &body)).await;
        let said = format!("{:?}", desk.ask("t1").await);
        assert!(said.contains(words) && said.contains(param), "{said}");
        let row = desk.row().await;
        assert_eq!(
            (row.status, desk.posts().len()),
            (Status::Failed, 1),
            "{words}"
        );
    }
}

/// S34: already refunded is evidence, not success: it is looked into. Ours is success, a whole list without
/// ours is failure, and what cannot be read is for a person.
#[tokio::test(flavor = "multi_thread")]
async fn already_refunded_is_looked_into_s34() {
    let refused = || fault(400, INVALID, "charge_already_refunded");
    let ours = Desk::new(move |_, seen, books| {
        books.keep(made(seen, "re_1", "succeeded"));
        refused()
    })
    .await;
    assert_eq!(ours.ask("t1").await.status(), "refunded");
    let another = Desk::new(move |_, seen, books| {
        let mut refund = made(seen, "re_1", "succeeded");
        refund["metadata"] = json!({});
        refund["amount"] = json!(10_000);
        books.keep(refund);
        refused()
    })
    .await;
    assert_eq!(another.ask("t1").await.status(), "failed");
    let unread = Desk::new(move |_, _, books| {
        books.mute();
        refused()
    })
    .await;
    assert_eq!(unread.ask("t1").await.status(), "checking");
    assert_eq!(
        unread.row().await.reason,
        Some(UnknownReason::RefusalUnproven)
    );
    for desk in [&ours, &another, &unread] {
        assert_eq!(desk.posts().len(), 1);
    }
}

/// F20, S34: after an answer that was lost it may be our own refund that is in the way: no third request.
#[tokio::test(flavor = "multi_thread")]
async fn already_refunded_after_a_lost_answer_is_for_a_person_f20_s34() {
    let desk = Desk::new(|n, _, _| match n {
        1 => Act::Reset,
        _ => fault(400, INVALID, "charge_already_refunded"),
    })
    .await;
    for call in ["t1", "t2"] {
        assert_eq!(desk.ask(call).await.status(), "checking");
    }
    assert_eq!(
        desk.row().await.reason,
        Some(UnknownReason::UndeterminedRefusal)
    );
    assert_eq!(desk.posts().len(), 2);
}
