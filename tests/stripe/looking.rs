//! Looking up: one refund, lists and their pages, the search, and where a person looks (S41–S48).

use samekey::clock::Clock;
use samekey::config::Secret;
use samekey::domain::evidence::Bearing;
use samekey::domain::ids::ProviderRef;
use samekey::domain::policy::Profile;
use samekey::domain::transition::Lookup;
use samekey::provider::stripe::{Stripe, StripeConfig};
use samekey::provider::{Provider as _, ResolveError};
use serde_json::{Value, json};

use crate::reads::{World, list, refund, resolve};
use crate::server::Server;
use crate::{VERSION, free, now, row, stripe};

async fn looked(server: &Server, clock: &Clock) -> (bool, Vec<(String, Option<Bearing>)>) {
    let stripe = stripe(&server.origin, clock);
    let row = row(&stripe);
    match stripe.lookup(&row, &free()).await {
        Lookup::Listed {
            complete, objects, ..
        } => {
            let seen = objects.into_iter();
            let seen = seen.map(|(o, taken)| (o.id.to_string(), o.bearing(&row, taken)));
            (complete, seen.collect())
        }
        other => panic!("listed, not {other:?}"),
    }
}

/// S42: pages of a hundred, newest first, to the end; there is no filter by metadata, so ours is found by
/// reading all of the payment's.
#[tokio::test]
async fn ours_is_found_on_the_last_page_s42() {
    let page = |from: i64| -> Vec<Value> {
        (0..100)
            .map(|n| refund(&format!("re_{}", from - n), 100, Some("op_9")))
            .collect()
    };
    let server = Server::start(move |n, _| match n {
        1 => list(&page(1000), true),
        2 => list(&page(900), true),
        _ => list(&[refund("re_1", 3800, Some("op_5521"))], false),
    })
    .await;
    let (complete, seen) = looked(&server, &Clock::system()).await;
    assert!(complete);
    assert_eq!(seen, [("re_1".to_owned(), Some(Bearing::Ours))]);
    let lines: Vec<_> = server.requests().into_iter().map(|s| s.line).collect();
    let first = "GET /v1/refunds?payment_intent=pi_1&limit=100";
    let after = |id| format!("{first}&starting_after={id}");
    assert_eq!(lines, [first.to_owned(), after("re_901"), after("re_801")]);
}

/// S43: the search lags. What it does not know yet is no payment, is said so, and can be named; of what it
/// finds only the id counts, and the payment is read anew.
#[tokio::test]
async fn what_the_search_says_is_read_anew_and_what_it_lacks_can_be_named_s43() {
    let mut late = World::new();
    late.found.clear();
    let (refused, _) = resolve(late, None, None, "4417").await;
    let Err(ResolveError::Refused(why)) = refused else {
        panic!("refused, not {refused:?}");
    };
    assert!(why.as_str().contains("name its payment_intent"), "{why}");
    let mut named = World::new();
    named.found.clear();
    let (resolved, seen) = resolve(named, Some("pi_1"), None, "4417").await;
    assert!(resolved.is_ok() && seen.iter().all(|s| !s.line.contains("search")));
    // It still shows the first try to pay, and the order that the payment had before.
    let mut stale = World::new();
    stale.found[0]["latest_charge"] = json!("ch_failed");
    let (resolved, seen) = resolve(stale, None, None, "4417").await;
    assert_eq!(
        resolved
            .expect("resolves")
            .charge
            .expect("a charge")
            .as_str(),
        "ch_1"
    );
    assert!(
        seen.iter()
            .any(|s| s.line == "GET /v1/payment_intents/pi_1")
    );
    let mut moved = World::new();
    moved.payment["metadata"]["order_id"] = json!("9");
    let (resolved, _) = resolve(moved, None, None, "4417").await;
    assert!(
        matches!(resolved, Err(ResolveError::Refused(_))),
        "{resolved:?}"
    );
}

/// S44: v1's lists do not lag, so absence needs no more than the provider's own time to settle.
#[test]
fn a_v1_list_does_not_lag_s44() {
    let profile = Profile::stripe();
    assert!(profile.lookup_lag.is_zero());
    let settled = profile.send_window + profile.timeout + profile.settle_time;
    assert_eq!(profile.decidable_at(now()), now() + settled);
}

/// S45: pages that overlap show an object twice, it counts once; `created` has whole seconds, so what was made
/// in the very second of the first authorise (which is before it) may still be ours.
#[tokio::test]
async fn overlaps_count_once_and_seconds_are_coarse_s45() {
    let mut same_second = refund("re_2", 3800, None);
    same_second["created"] = json!(now().timestamp());
    let server = Server::start(move |n, _| match n {
        1 => list(
            &[refund("re_3", 3800, Some("op_5521")), same_second.clone()],
            true,
        ),
        _ => list(
            &[same_second.clone(), refund("re_1", 3800, Some("op_9"))],
            false,
        ),
    })
    .await;
    let (complete, seen) = looked(&server, &Clock::system()).await;
    assert!(complete);
    let ours = ("re_3".to_owned(), Some(Bearing::Ours));
    assert_eq!(seen, [ours, ("re_2".to_owned(), Some(Bearing::Ambiguous))]);
}

/// S46: refunds nested in a charge are not looked at, whatever they say.
#[tokio::test]
async fn refunds_nested_in_a_charge_are_not_read_s46() {
    for nested in [
        json!({"object": "list", "data": [refund("re_9", 9000, None)], "has_more": false}),
        json!({"object": "list", "data": [], "has_more": true}),
        json!(null),
        json!("lies"),
    ] {
        let mut world = World::new();
        world.charge["refunds"] = nested;
        world.refunds = vec![refund("re_1", 1000, None)];
        let (resolved, _) = resolve(world, None, None, "4417").await;
        assert_eq!(resolved.expect("resolves").refunded_minor, 1000);
    }
}

/// An older version, or somebody who speaks like Stripe, has no `amount_captured`: what was not captured
/// counts as refunded there. Where it is present it counts, and where neither is nothing is guessed.
#[tokio::test]
async fn a_charge_without_its_captured_amount_was_captured_whole() {
    for (amount, captured, is) in [
        (json!(10_000), json!(null), Some(10_000)),
        (json!(10_000), json!(4000), Some(4000)),
        (json!(null), json!(null), None),
        (json!(-1), json!(null), None),
    ] {
        let mut world = World::new();
        world.charge["amount"] = amount;
        world.charge["amount_captured"] = captured;
        let (resolved, _) = resolve(world, None, None, "4417").await;
        assert_eq!(resolved.ok().map(|r| r.captured_minor), is);
    }
}

/// S48: the dashboard's logs are not to be had, but its page of the refund is offered, in the key's mode.
#[test]
fn the_dashboard_is_offered_in_the_keys_mode_s48() {
    let id = ProviderRef::parse("re_1").expect("an id");
    for (base, key, url) in [
        (
            "https://api.stripe.com",
            "sk_test_a",
            Some("https://dashboard.stripe.com/test/refunds/re_1"),
        ),
        (
            "https://api.stripe.com",
            "rk_live_a",
            Some("https://dashboard.stripe.com/refunds/re_1"),
        ),
        ("http://127.0.0.1:1", "sk_test_a", None),
    ] {
        let config = StripeConfig {
            name: "stripe".parse().expect("a name"),
            base_url: base.into(),
            api_key: Secret::new(key),
            api_version: VERSION.into(),
            profile: Profile::stripe(),
            account: None,
        };
        let stripe = Stripe::new(config, Clock::system()).expect("valid");
        assert_eq!(stripe.url(&id).as_deref(), url);
    }
}
