//! The engine over real HTTP against the simulated provider: every scenario, one effect at most.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::world::{World, refund, terms};
use samekey::clock::Clock;
use samekey::config::Secret;
use samekey::domain::evidence::Verdict;
use samekey::domain::operation::{Closing, LookedAt, Status};
use samekey::domain::policy::Terms;
use samekey::ledger::PageQuery;
use samekey::provider::SharedProvider;
use samekey::provider::stripe::{Stripe, StripeConfig};
use samekey::review::{Ask, GateError};
use samekey::simulator::{EffectSource, Plan, Scenario, SimConfig, Simulator};

/// A simulator with one scenario, and a world that talks to it.
async fn against(plan: &str) -> (Simulator, World) {
    let clock = Clock::scaled(20);
    let mut config = SimConfig::new(clock.clone());
    config.plan = Plan::parse(plan).expect("a plan");
    let simulator = Simulator::start(config).await.expect("a simulator");
    let terms: Terms = terms();
    let provider = Stripe::new(
        StripeConfig {
            name: terms.policy.provider.clone(),
            base_url: simulator.base_url(),
            api_key: Secret::new("sk_test_wire"),
            api_version: "2026-08-26.dahlia".into(),
            profile: terms.profile.clone(),
            account: None,
        },
        clock.clone(),
    );
    let provider: SharedProvider = Arc::new(provider.expect("a provider"));
    let world = World::with(provider, terms, clock).await;
    (simulator, world)
}

fn ours(simulator: &Simulator) -> usize {
    simulator
        .effects()
        .iter()
        .filter(|e| e.source != EffectSource::External)
        .count()
}

/// R3–R12, S3, S4: the seed's scenario over the wire.
#[tokio::test(flavor = "multi_thread")]
async fn the_seeds_refund_over_the_wire_r12() {
    let (simulator, world) = against("timeout-after-effect:3").await;
    let first = world.ask("toolu_01", &refund("4417", 3800)).await;
    assert_eq!(first.status(), "unconfirmed");
    let second = world.ask("toolu_02", &refund("4417", 3800)).await;
    assert_eq!(second.status(), "refunded");
    assert_eq!(simulator.effects().len(), 1, "one refund");
    let keys: BTreeMap<_, usize> = simulator
        .requests()
        .iter()
        .filter_map(|r| r.key.clone())
        .fold(BTreeMap::new(), |mut keys, key| {
            *keys.entry(key).or_default() += 1;
            keys
        });
    assert_eq!(
        keys.into_values().collect::<Vec<_>>(),
        [4],
        "four attempts, one key"
    );
    simulator.stop().await;
}

/// S12, R39–R42: a saved 500 with its effect: one send, `checking` for every call, then a person.
#[tokio::test(flavor = "multi_thread")]
async fn a_saved_500_is_settled_by_a_person() {
    let (simulator, world) = against("saved-500-with-effect").await;
    for n in 0..3 {
        let result = world
            .ask(&format!("toolu_{n}"), &refund("4417", 3800))
            .await;
        assert_eq!(result.status(), "checking");
    }
    let posts = simulator
        .requests()
        .iter()
        .filter(|r| r.method == "POST")
        .count();
    assert_eq!(posts, 1);
    let gate = world.gate(&[]);
    let me = gate.person(None).expect("the OS user");
    let id = world.only().await.op.row.id;
    let looked = gate.lookup(&id, &me).await.expect("a lookup");
    assert_eq!(looked.op.row.verdict, Some(Verdict::Confirmed));
    assert_eq!(
        looked.op.row.status,
        Status::Unknown,
        "a lookup closes nothing"
    );
    let seen = Some(LookedAt::of(&looked.op.row));
    let failed = Ask::Close(Closing::Failed);
    let refused = gate
        .decide(&id, failed, &me, "looked", seen.clone(), None)
        .await;
    assert!(matches!(refused, Err(GateError::Refused(_))), "{refused:?}");
    let refunded = Ask::Close(Closing::Succeeded);
    let closed = gate
        .decide(&id, refunded, &me, "saw it", seen, None)
        .await
        .expect("closed");
    assert_eq!(closed.op.row.status, Status::Succeeded);
    simulator.stop().await;
}

/// I11: whatever the provider does, one wish of a customer has one effect; a provider that forgets or
/// ignores keys is the stated exception.
#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_has_at_most_one_effect_i11() {
    let broken_promises = [
        Scenario::IgnoresKeys,
        Scenario::PrunedKey,
        Scenario::CopiedMetadata,
    ];
    for scenario in Scenario::ALL.iter().copied() {
        if broken_promises.contains(&scenario) {
            continue;
        }
        let (simulator, world) = against(scenario.name()).await;
        for n in 0..3 {
            let result = world
                .ask(&format!("toolu_{n}"), &refund("4417", 3800))
                .await;
            let row = world
                .ledger
                .page(&PageQuery::default())
                .await
                .expect("page")
                .rows
                .pop();
            if result.status() == "refunded" {
                assert_eq!(
                    row.expect("a row").row.status,
                    Status::Succeeded,
                    "{scenario} (I24)"
                );
                assert!(ours(&simulator) == 1, "{scenario}: refunded means refunded");
            }
        }
        assert!(
            ours(&simulator) <= 1,
            "{scenario}: {:?}",
            simulator.effects()
        );
        world.ledger.close().await;
        simulator.stop().await;
    }
}

/// A provider that is down: nothing is opened, nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_opens_nothing() {
    let (simulator, world) = against("honest").await;
    simulator.stop().await;
    let result = world.ask("toolu_01", &refund("4417", 3800)).await;
    assert_eq!(result.status(), "rejected");
    let page = world
        .ledger
        .page(&PageQuery::default())
        .await
        .expect("page");
    assert!(page.rows.is_empty());
}
