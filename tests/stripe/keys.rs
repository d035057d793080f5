//! The idempotency layer as a client meets it (S1–S13).

use std::time::Duration;

use samekey::clock::Clock;
use samekey::domain::operation::{Status, UnknownReason};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::policy::Profile;
use uuid::{Uuid, Version};

use crate::attempts::{REFUND, attempt};
use crate::common::world::{refund, terms};
use crate::desk::{Desk, advised, fault, honest};
use crate::now;
use crate::server::{Act, answer, json};

/// S1: a whole refund, looked up afterwards: the key stands on the POST and on nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_goes_on_the_refund_and_on_no_read_s1() {
    let desk = Desk::new(|_, seen, books| honest(seen, books)).await;
    assert_eq!(desk.ask("t1").await.status(), "refunded");
    let gate = desk.world.gate(&[]);
    let me = gate.person(None).expect("the OS user");
    gate.lookup(&desk.row().await.id, &me)
        .await
        .expect("looked up");
    let seen = desk.server.requests();
    let keyed: Vec<_> = seen
        .iter()
        .filter(|s| s.header("idempotency-key").is_some())
        .map(|s| s.line.as_str())
        .collect();
    assert_eq!(keyed, ["POST /v1/refunds"]);
    assert!(seen.len() > 5, "it was read, too");
    assert!(
        seen.iter()
            .all(|s| s.line.starts_with("GET ") || s.line == keyed[0])
    );
}

/// S2: random, of version 4, 36 of at most 255 characters, nothing of the order in it; two operations, two keys.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_a_random_uuid_within_255_characters_s2() {
    let desk = Desk::new(|_, seen, books| honest(seen, books)).await;
    for order in ["4417", "4418"] {
        let result = desk.world.ask(order, &refund(order, 3800)).await;
        assert_eq!(result.status(), "refunded", "{result:?}");
    }
    let posts = desk.posts();
    let keys = posts
        .iter()
        .map(|s| s.header("idempotency-key").expect("a key"));
    let keys: Vec<Uuid> = keys.map(|k| k.parse().expect("a UUID")).collect();
    assert!(
        keys.iter()
            .all(|k| k.get_version() == Some(Version::Random))
    );
    assert_ne!(keys[0], keys[1]);
    let profile = Profile::stripe();
    assert!(profile.takes_key(&keys[0].to_string()) && profile.takes_key(&"k".repeat(255)));
    for bad in [
        String::new(),
        "k".repeat(256),
        "a key".into(),
        "schlüssel".into(),
        "k\n".into(),
    ] {
        assert!(!profile.takes_key(&bad), "{bad:?}");
    }
}

/// A provider that takes no key of ours is sent nothing (S2).
#[tokio::test]
async fn a_key_that_the_provider_does_not_take_is_not_sent_s2() {
    use samekey::provider::Provider as _;
    let server = crate::server::Server::always(json(200, REFUND)).await;
    let config = samekey::provider::stripe::StripeConfig {
        name: "stripe".parse().expect("a name"),
        base_url: server.origin.clone(),
        api_key: samekey::config::Secret::new(crate::API_KEY),
        api_version: crate::VERSION.into(),
        profile: Profile {
            longest_key: 35,
            ..Profile::stripe()
        },
        account: None,
    };
    let short = samekey::provider::stripe::Stripe::new(config, Clock::system()).expect("valid");
    let outcome = short
        .connect()
        .await
        .expect("connects")
        .send(&crate::row(&short))
        .await;
    assert_eq!(outcome.class, OutcomeClass::NotSent);
    assert!(server.requests().is_empty());
}

/// S3, S4: a replayed answer is the first one, marked by a header; nothing else about it, least of all its
/// content type, has to be as it was.
#[tokio::test]
async fn a_replayed_answer_is_marked_whatever_its_content_type_s3_s4() {
    for kind in [
        "application/json",
        "text/html; charset=utf-8",
        "text/plain",
        "",
    ] {
        for mark in ["true", "True"] {
            let headers = format!(
                "Content-Type: {kind}\r\nIdempotent-Replayed: {mark}\r\nOriginal-Request: req_1\r\n"
            );
            let (outcome, _) = attempt(answer(200, &headers, REFUND)).await;
            assert_eq!(
                (outcome.class, outcome.replayed),
                (OutcomeClass::Succeeded, true)
            );
            let refused = r#"{"error":{"type":"card_error","code":"x"}}"#;
            let (outcome, _) = attempt(answer(402, &headers, refused)).await;
            let class = OutcomeClass::ValidationFailure;
            assert_eq!((outcome.class, outcome.replayed), (class, true), "{kind}");
        }
    }
    for unmarked in [
        "",
        "Idempotent-Replayed: false\r\n",
        "Idempotent-Replayed: true, true\r\n",
    ] {
        assert!(
            !attempt(answer(200, unmarked, REFUND)).await.0.replayed,
            "{unmarked}"
        );
    }
}

/// S3: after a lost answer the saved refusal comes back, marked: the key's only execution was refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_saved_refusal_is_the_end_and_an_unmarked_one_is_not_s3() {
    for (headers, status, row) in [
        ("Idempotent-Replayed: true\r\n", "failed", Status::Failed),
        ("", "checking", Status::Unknown),
    ] {
        let desk = Desk::new(move |n, _, _| match n {
            1 => Act::Reset,
            _ => advised(402, headers, "card_error", "charge_disputed"),
        })
        .await;
        assert_eq!(desk.ask("t1").await.status(), status);
        assert_eq!((desk.row().await.status, desk.posts().len()), (row, 2));
    }
}

/// S5: what was not saved may differ next time: 429, 409, then the refund, all under one key.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_saved_is_asked_again_with_the_same_key_s5() {
    let desk = Desk::new(|n, seen, books| match n {
        1 => fault(429, "invalid_request_error", "rate_limit"),
        2 => fault(409, "invalid_request_error", "idempotency_key_in_use"),
        _ => honest(seen, books),
    })
    .await;
    assert_eq!(desk.ask("t1").await.status(), "refunded");
    assert_eq!(desk.posts().len(), 3);
    desk.same();
}

/// S5: an answer that is never saved cannot be a saved one; a mark on it proves nothing after a lost answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_on_what_is_never_saved_is_not_believed_s5() {
    let desk = Desk::new(|n, _, _| match n {
        1 => Act::Reset,
        _ => advised(
            401,
            "Idempotent-Replayed: true\r\n",
            "invalid_request_error",
            "",
        ),
    })
    .await;
    assert_eq!(desk.ask("t1").await.status(), "checking");
    let row = desk.row().await;
    assert_eq!(row.reason, Some(UnknownReason::UndeterminedRefusal));
}

/// S6, S7: the key was used with other parameters, or elsewhere: our bytes never change, so somebody else
/// used it. `unknown` at once, nothing more is sent, and the key stays out of every text.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_somebody_else_used_is_an_incident_s6_s7() {
    for (status, words) in [
        (400, "with the same parameters they were first used with"),
        (
            404,
            "for the same endpoint they were first used for ('/v1/charges')",
        ),
    ] {
        let desk = Desk::new(move |_, seen, _| {
            let key = seen.header("idempotency-key").expect("a key");
            let message = format!("Keys can only be used {words}. Try another than '{key}'.");
            let error =
                serde_json::json!({"error": {"type": "idempotency_error", "message": message}});
            json(status, &error.to_string())
        })
        .await;
        for call in ["t1", "t2", "t3"] {
            assert_eq!(desk.ask(call).await.status(), "checking");
        }
        let op = desk.world.only().await.op;
        assert_eq!(op.row.reason, Some(UnknownReason::KeyMismatch));
        let result = op.attempts[0].result.as_ref().expect("an outcome");
        let error = result.error.as_ref().expect("words").to_string();
        assert!(
            error.contains(words) && !error.contains(&op.row.key.to_string()),
            "{error}"
        );
        assert_eq!(desk.posts().len(), 1);
    }
}

/// S8: a conflict is known by status and code, whatever the type; it is waited for with the same key.
#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_known_by_its_code_whatever_its_type_s8() {
    for kind in [
        "invalid_request_error",
        "idempotency_error",
        "api_error",
        "",
    ] {
        let desk = Desk::new(move |n, seen, books| match n {
            1 | 2 => fault(409, kind, "idempotency_key_in_use"),
            _ => honest(seen, books),
        })
        .await;
        assert_eq!(desk.ask("t1").await.status(), "refunded", "{kind}");
        let attempts = desk.world.only().await.op.attempts;
        let classes: Vec<_> = attempts.iter().filter_map(|a| a.result.as_ref()).collect();
        assert_eq!(classes[0].class, OutcomeClass::KeyInProgress);
        assert_eq!(desk.posts().len(), 3);
        desk.same();
    }
}

/// S9, S11: nobody knows the outcome when the key's 24 hours end: neither it nor another is sent. Just
/// before, the same key still is.
#[tokio::test]
async fn after_the_keys_time_neither_it_nor_another_is_sent_s9_s11() {
    for (waited, posts) in [(Duration::from_hours(20), 2), (Duration::from_hours(24), 1)] {
        let clock = Clock::manual(now());
        let mut terms = terms();
        terms.policy.max_per_call = 1;
        let desk = Desk::with(clock.clone(), terms, |_, _, _| Act::Reset).await;
        assert_eq!(desk.ask("t1").await.status(), "unconfirmed");
        clock.advance(waited);
        let result = desk.ask("t2").await;
        assert_eq!(desk.posts().len(), posts, "{waited:?}: {result:?}");
        if posts == 1 {
            assert_eq!(result.status(), "checking");
            assert_eq!(desk.row().await.reason, Some(UnknownReason::KeyExpired));
            desk.ask("t3").await;
            assert_eq!(desk.posts().len(), 1);
        }
        desk.same();
    }
}

/// S12: a 500 is indeterminate, whatever stands in it: not even our own refund in its body, a mark or the
/// advice to retry makes it anything else.
#[tokio::test(flavor = "multi_thread")]
async fn a_5xx_is_indeterminate_whatever_it_carries_s12() {
    for (status, headers) in [
        (500, "Idempotent-Replayed: true\r\n"),
        (502, "Retry-After: 0\r\n"),
        (503, "Stripe-Should-Retry: true\r\n"),
        (504, ""),
    ] {
        let desk = Desk::new(move |_, seen, _| {
            let refund = crate::desk::made(seen, "re_1", "succeeded");
            answer(status, headers, &refund.to_string())
        })
        .await;
        for call in ["t1", "t2", "t3", "t4", "t5"] {
            assert_eq!(desk.ask(call).await.status(), "checking", "{status}");
        }
        assert_eq!(desk.row().await.reason, Some(UnknownReason::ServerError));
        assert_eq!(desk.posts().len(), 1);
    }
}

/// S13: after a refusal a changed request is another operation with its own key; after a 500 there is no
/// fresh key for anything of that order.
#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_key_after_a_refusal_and_none_after_a_500_s13() {
    let desk = Desk::new(|n, seen, books| match n {
        1 => fault(400, "invalid_request_error", "parameter_invalid_integer"),
        _ => honest(seen, books),
    })
    .await;
    assert_eq!(desk.ask("t1").await.status(), "failed");
    let changed = desk.world.ask("t2", &refund("4417", 3700)).await;
    assert_eq!(changed.status(), "refunded");
    let posts = desk.posts();
    assert_eq!(posts.len(), 2);
    assert_ne!(
        posts[0].header("idempotency-key"),
        posts[1].header("idempotency-key")
    );

    let desk = Desk::new(|_, _, _| fault(500, "api_error", "")).await;
    assert_eq!(desk.ask("t1").await.status(), "checking");
    assert_eq!(desk.ask("t2").await.status(), "checking");
    let changed = desk.world.ask("t3", &refund("4417", 3700)).await;
    assert_eq!(changed.status(), "rejected", "order_busy");
    assert_eq!(desk.posts().len(), 1);
}
