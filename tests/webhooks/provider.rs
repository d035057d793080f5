//! The simulated provider's own webhooks, signed by itself, into the real intake and a running engine: every
//! scenario of `contract.md` ends with one effect, an honest ledger, and nothing unknown to the engine (S66).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use samekey::clock::Clock;
use samekey::config::Secret;
use samekey::domain::operation::Status;
use samekey::engine::{Engine, EngineConfig, EngineDeps, reconcile};
use samekey::gateway::{Endpoint, Gateway};
use samekey::ledger::verify::verify_at;
use samekey::provider::SharedProvider;
use samekey::provider::stripe::{Stripe, StripeConfig};
use samekey::simulator::{Plan, SimConfig, Simulator, WebhookEndpoint};

use crate::shop::{World, refund, terms};

const SECRET: &str = "whsec_of_the_simulated_endpoint";

struct Town {
    simulator: Simulator,
    world: World,
    gateway: Gateway,
    engine: Engine,
}

/// A port that is free now.
fn free_port() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

async fn town(plan: &str) -> Town {
    let clock = Clock::scaled(60);
    let addr = free_port();
    let url = format!("http://{addr}/webhooks/stripe");
    let endpoint = WebhookEndpoint::new(&url, vec![SECRET.to_owned()]);
    let config = SimConfig {
        plan: Plan::parse(plan).expect("a scenario"),
        webhook: Some(endpoint.expect("an endpoint")),
        ..SimConfig::new(clock.clone())
    };
    let simulator = Simulator::start(config).await.expect("it listens");
    let mut terms = terms();
    // Ten seconds of real time, whatever else the machine does: a read that takes longer opens no row.
    terms.profile.timeout = Duration::from_secs(600);
    let config = StripeConfig {
        name: terms.policy.provider.clone(),
        base_url: simulator.base_url(),
        api_key: Secret::new("sk_test_town"),
        api_version: "2026-08-26.dahlia".into(),
        profile: terms.profile.clone(),
        account: None,
    };
    let stripe = Stripe::new(config, clock.clone()).expect("a configuration");
    let provider: SharedProvider = Arc::new(stripe);
    let world = World::with(Arc::clone(&provider), terms, clock.clone()).await;
    let secrets = vec![Secret::new(SECRET)];
    let endpoints = vec![Endpoint { provider, secrets }];
    let ledger = Arc::clone(&world.ledger);
    let given = crate::scripted::for_webhooks(ledger, endpoints, clock);
    let gateway = Gateway::start(addr, given).await;
    let engine = Engine::start(deps(&world));
    Town {
        simulator,
        gateway: gateway.expect("the port is still free"),
        engine,
        world,
    }
}

fn deps(world: &World) -> EngineDeps {
    let deps = world.deps();
    let config = EngineConfig {
        reconcile: true,
        ..deps.config
    };
    EngineDeps { config, ..deps }
}

/// S66, S49, S50, S54: early, doubled, out of order, late, lost, old, and signed by somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn every_webhook_scenario_ends_with_one_effect_s66() {
    let plans = [
        "honest",
        "webhook-early",
        "webhook-duplicate",
        "webhook-out-of-order",
        "webhook-late",
        "webhook-lost",
        "webhook-old-timestamp",
        "webhook-wrong-secret",
        "pending-then-succeeded",
        "saved-500-with-effect",
    ];
    let mut stories = tokio::task::JoinSet::new();
    for plan in plans {
        stories.spawn(story(plan));
    }
    while let Some(told) = stories.join_next().await {
        told.expect("a story");
    }
}

async fn story(plan: &str) {
    let town = town(plan).await;
    town.world.accept("toolu_01", &refund("4417", 3800)).await;
    town.world.answer("toolu_01").await;
    let settled = tokio::time::timeout(Duration::from_secs(90), settled(&town.world)).await;
    settled.unwrap_or_else(|_| panic!("{plan}: it was never settled"));
    // What no webhook brought is in the list, once its second is over.
    town.world.clock.sleep(Duration::from_secs(2)).await;
    reconcile(deps(&town.world)).await.expect("a run");
    let counts = town.world.ledger.recovery().event_counts().await;
    let counts = counts.expect("counts");
    let told = counts.processed + counts.ignored + counts.passed_over;
    assert!(told > 0, "{plan}: {counts:?}");
    assert_eq!(
        (counts.quarantined, counts.troubles.len()),
        (0, 0),
        "{plan}: {counts:?}"
    );
    assert_eq!(town.simulator.effects().len(), 1, "{plan}");
    assert_eq!(town.world.only().await.op.row.contradicted, None, "{plan}");
    town.gateway.stop(Duration::from_secs(1)).await;
    town.engine.stop(Duration::from_secs(5)).await;
    town.simulator.stop().await;
    let path = town.world.dir.path().join("ledger.db");
    let report = verify_at(&path, town.world.clock.now()).await;
    assert_eq!(report.expect("a report").violations, [], "{plan}");
}

/// Waits until the only row has succeeded.
async fn settled(world: &World) {
    let mut changes = world.ledger.changed();
    while world.only().await.op.row.status != Status::Succeeded {
        // Another handle may have written: looked at again in any case.
        let _ = tokio::time::timeout(Duration::from_millis(100), changes.changed()).await;
    }
}
