//! Any bytes, signed or not: never a panic, never a guess, never a success out of nothing.

use proptest::prelude::*;
use samekey::config::Secret;
use samekey::domain::Instant;
use samekey::domain::ids::ProviderName;
use samekey::domain::provider_event::EventRead;
use samekey::gateway::signature::{Refused, sign, verify};
use samekey::ledger::{EventSource, NewEvent};
use samekey::provider::Provider as _;
use samekey::provider::stripe::{Stripe, StripeConfig};
use serde_json::{Value, json};

use crate::ledger::{at, terms};

fn stripe() -> Stripe {
    let config = StripeConfig {
        name: ProviderName::parse("stripe").expect("a name"),
        base_url: "http://127.0.0.1:1".into(),
        api_key: Secret::new("sk_test_a"),
        api_version: "2026-08-26.dahlia".into(),
        profile: terms().profile,
        account: None,
    };
    Stripe::new(config, samekey::clock::Clock::manual(at(0))).expect("a configuration")
}

/// JSON that looks like an event, with anything at all in its places.
fn eventful() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("refund"),
            Just("charge"),
            Just("event"),
            Just("refund.created"),
            Just("charge.refunded"),
            Just("usd"),
            Just("succeeded"),
            Just("re_1"),
            Just("pi_1"),
        ]
        .prop_map(Value::from),
    ];
    let any_object = prop::collection::vec(leaf.clone(), 10).prop_map(|v| {
        let names = [
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
        ];
        Value::Object(names.iter().map(|n| (*n).to_owned()).zip(v).collect())
    });
    (prop::collection::vec(leaf, 6), any_object).prop_map(|(v, object)| {
        let names = ["object", "id", "type", "created", "livemode", "request"];
        let mut event: serde_json::Map<_, _> =
            names.iter().map(|n| (*n).to_owned()).zip(v).collect();
        event.insert("data".into(), json!({ "object": object }));
        Value::Object(event).to_string().into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_body_is_read_without_a_guess(body in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..400),
        eventful(),
    ]) {
        let (name, read) = (ProviderName::parse("stripe").expect("a name"), stripe().read_event(&body));
        let stored = NewEvent::of(&name, EventSource::Webhook, &read, &body);
        match &read {
            EventRead::Event(event) => {
                prop_assert!(!event.id.as_str().is_empty() && event.digest.len() == 64);
                prop_assert_eq!(stored.map(|s| s.id), Some(event.id.clone()));
            }
            EventRead::Other => prop_assert!(stored.is_none()),
            EventRead::Unreadable(_) => prop_assert_eq!(stored.is_some(), !body.is_empty()),
        }
        prop_assert!(stripe().storable(&body).len() <= body.len().saturating_mul(2));
    }

    #[test]
    fn any_header_is_refused_but_a_signature(header in ".{0,200}", body in prop::collection::vec(any::<u8>(), 0..64)) {
        let secrets = [Secret::new("whsec_a"), Secret::new("")];
        prop_assert!(verify(&secrets, &header, &body, at(0)).is_err());
        // With a time that is right, too.
        let header = format!("t={},{header}", at(0).timestamp());
        prop_assert!(verify(&secrets, &header, &body, at(0)).is_err());
    }

    #[test]
    fn one_changed_bit_is_a_wrong_signature(body in prop::collection::vec(any::<u8>(), 1..64), place in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let secret = [Secret::new("whsec_a")];
        let header = sign(&secret[0], &body, at(0));
        prop_assert_eq!(verify(&secret, &header, &body, at(0)), Ok(()));
        let mut other = body.clone();
        let place = place.index(other.len());
        other[place] ^= 1 << bit;
        prop_assert_eq!(verify(&secret, &header, &other, at(0)), Err(Refused::Wrong));
        let far: Instant = at(301);
        prop_assert_eq!(verify(&secret, &header, &body, far), Err(Refused::Time));
    }
}
