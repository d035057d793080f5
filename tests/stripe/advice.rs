//! Retry advice, limits and how often we send (S14–S18, S21–S24).

use samekey::domain::operation::Effect;
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::policy::Profile;

use crate::attempts::attempt;
use crate::common::world::terms;
use crate::desk::{Desk, advised, fault, honest};
use crate::server::Act;

const INVALID: &str = "invalid_request_error";

/// S14, S15: the header only makes us more careful. `false` ends the call's attempts, `true` keeps a refusal
/// from being definite, and neither makes a 5xx worth another request.
#[tokio::test(flavor = "multi_thread")]
async fn the_advice_only_makes_more_careful_s14_s15() {
    for (status, code, advice, result, posts) in [
        (429, "rate_limit", "false", "unconfirmed", 1),
        (429, "rate_limit", "False", "unconfirmed", 1),
        (429, "rate_limit", "true", "unconfirmed", 3),
        (429, "rate_limit", "maybe", "unconfirmed", 3),
        (409, "idempotency_key_in_use", "false", "unconfirmed", 1),
        (409, "idempotency_key_in_use", "true", "unconfirmed", 3),
        (402, "charge_disputed", "false", "failed", 1),
        (402, "charge_disputed", "true", "checking", 1),
        (400, "parameter_invalid_integer", "true", "checking", 1),
        (403, "more_permissions_required", "true", "checking", 1),
        (500, "", "false", "checking", 1),
        (500, "", "true", "checking", 1),
        (503, "", "true", "checking", 1),
    ] {
        let headers = format!("Stripe-Should-Retry: {advice}\r\n");
        let desk = Desk::new(move |_, _, _| advised(status, &headers, INVALID, code)).await;
        let said = desk.ask("t1").await;
        assert_eq!(
            (said.status(), desk.posts().len()),
            (result, posts),
            "{status} {code} {advice}: {said:?}"
        );
    }
}

/// S16, S21: a limiter (with any of its reasons) stood before the key and before any effect, an object's lock
/// did not; both are tried again with the same key.
#[tokio::test(flavor = "multi_thread")]
async fn a_limiter_is_told_from_a_lock_and_both_are_waited_for_s16_s21() {
    for (reason, code, effect) in [
        ("global-rate", "rate_limit", Effect::NotStarted),
        ("endpoint-rate", "rate_limit", Effect::NotStarted),
        ("global-concurrency", "rate_limit", Effect::NotStarted),
        ("endpoint-concurrency", "rate_limit", Effect::NotStarted),
        ("resource-specific", "lock_timeout", Effect::NotStarted),
        ("", "rate_limit", Effect::NotStarted),
        ("", "lock_timeout", Effect::Possible),
    ] {
        let headers = match reason {
            "" => String::new(),
            reason => format!("Stripe-Rate-Limited-Reason: {reason}\r\n"),
        };
        let limited = advised(429, &headers, INVALID, code);
        let (outcome, _) = attempt(limited.clone()).await;
        assert_eq!(outcome.class, OutcomeClass::RetryableFailure);
        assert_eq!(
            outcome.limiter,
            effect == Effect::NotStarted,
            "{reason} {code}"
        );
        let mut once = terms();
        once.policy.max_per_call = 1;
        let desk = Desk::with(
            samekey::clock::Clock::scaled(20),
            once,
            move |n, seen, books| match n {
                1 => limited.clone(),
                _ => honest(seen, books),
            },
        )
        .await;
        let first = desk.ask("t1").await;
        assert_eq!(first.status(), "unconfirmed");
        assert_eq!(desk.row().await.effect, effect, "{reason} {code}");
        assert_eq!(desk.ask("t2").await.status(), "refunded");
        desk.same();
    }
}

/// S18: no library sends anything on its own: each request on the wire is an attempt in the ledger, three a
/// call and six an operation.
#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_a_counted_attempt_s18() {
    let desk = Desk::new(|_, _, _| Act::Reset).await;
    for (call, status, posts) in [
        ("t1", "unconfirmed", 3),
        ("t2", "checking", 6),
        ("t3", "checking", 6),
    ] {
        assert_eq!(desk.ask(call).await.status(), status);
        let row = desk.row().await;
        assert_eq!(
            (desk.posts().len(), row.attempts),
            (posts, u32::try_from(posts).expect("few"))
        );
    }
    desk.same();
}

/// S22, S23: the shipped rates are Stripe's limits, and one refund, asked about twice, takes far fewer reads
/// than the 500 that each transaction gives.
#[tokio::test(flavor = "multi_thread")]
async fn rates_are_the_providers_and_reads_are_few_s22_s23() {
    let profile = Profile::stripe();
    let per_second = |r: samekey::domain::policy::Rate| (r.count, r.per.as_secs());
    assert_eq!(per_second(profile.rate), (25, 1), "one endpoint's");
    assert_eq!(
        per_second(profile.read_rate),
        (5, 1),
        "a quarter of a search's"
    );
    let desk = Desk::new(|_, seen, books| honest(seen, books)).await;
    assert_eq!(desk.ask("t1").await.status(), "refunded");
    assert_eq!(desk.ask("t2").await.status(), "refunded");
    let reads = desk.server.requests().len() - desk.posts().len();
    assert!((4..=8).contains(&reads), "{reads} reads");
}

/// S24: a rate limit in its old dress, 400 with its code, is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_that_comes_as_400_is_one_s24() {
    let desk = Desk::new(|n, seen, books| match n {
        1 => fault(400, INVALID, "rate_limit"),
        _ => honest(seen, books),
    })
    .await;
    assert_eq!(desk.ask("t1").await.status(), "refunded");
    let op = desk.world.only().await.op;
    let first = op.attempts[0].result.as_ref().expect("an outcome");
    assert_eq!(
        (first.class, first.limiter),
        (OutcomeClass::RetryableFailure, true)
    );
    assert_eq!(desk.posts().len(), 2);
    desk.same();
}
