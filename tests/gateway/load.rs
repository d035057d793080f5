//! Many clients at once: none lost, none twice, and how long they waited.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use samekey::ledger::CallQuery;

use crate::client::{Ask, Talk};
use crate::hall::Hall;

/// Every client makes one call after the other over a connection of its own, each its own order, and
/// sends every fifth call again; so many seconds long.
async fn load(clients: usize, time: Duration) {
    let hall = Hall::new("honest").await;
    let token = hall.agent("desk", &[]).await;
    let (addr, until) = (hall.addr, Instant::now() + time);
    let mut all = tokio::task::JoinSet::new();
    for client in 0..clients {
        let token = token.clone();
        all.spawn(async move {
            let mut talk = Talk::to(addr).await;
            let mut took = Vec::new();
            while Instant::now() < until || took.is_empty() {
                let name = format!("c{client}_{}", took.len());
                let ask = Ask::refund(&token, &name, &name, 100).waiting(60);
                let began = Instant::now();
                let answer = talk.ask(&ask).await;
                assert_eq!(answer.status, 200, "{name}: {answer:?}");
                assert_eq!(answer.json()["status"], "refunded", "{answer:?}");
                took.push((name, began.elapsed()));
                if took.len() % 5 == 0 {
                    assert_eq!(talk.ask(&ask).await.json(), answer.json());
                }
            }
            took
        });
    }
    let mut took = Vec::new();
    let mut names = Vec::new();
    while let Some(ended) = all.join_next().await {
        for (name, time) in ended.expect("a client that was served") {
            names.push(name);
            took.push(time);
        }
    }
    took.sort();
    let part = |n: usize| took[(took.len() - 1) * n / 1000];
    println!(
        "{} calls of {clients} clients in {time:?}: p50 {:?}, p99 {:?}, worst {:?}",
        took.len(),
        part(500),
        part(990),
        part(1000)
    );
    let query = CallQuery {
        limit: 100_000,
        ..CallQuery::default()
    };
    let calls = hall.world.ledger.calls(&query).await.expect("calls").calls;
    assert_eq!(calls.len(), names.len(), "each is there once");
    let mut effects: BTreeMap<String, usize> = BTreeMap::new();
    for effect in hall.simulator.effects() {
        *effects
            .entry(effect.order_id.clone().unwrap_or_default())
            .or_default() += 1;
    }
    assert!(
        names.iter().all(|name| effects.get(name) == Some(&1)),
        "one effect each"
    );
    assert_eq!(effects.len(), names.len());
    hall.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_hundred_clients_lose_nothing_and_pay_nothing_twice() {
    load(500, Duration::from_secs(5)).await;
}

/// For the long lane.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "half a minute of load"]
async fn five_hundred_clients_for_half_a_minute() {
    load(500, Duration::from_secs(30)).await;
}
