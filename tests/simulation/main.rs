//! Simulation: the real engine, review gate, Stripe adapter, simulated provider and SQLite ledger on one
//! thread under virtual time, with faults drawn from a seed. A judge that knows true time and both sides'
//! books looks at every commit and every request; afterwards everything is healed and must come to an
//! end.
//!
//! ```text
//! cargo test --test simulation                              1,000 seeds
//! SAMEKEY_SEEDS=100000 cargo test --test simulation seeds   the long lane
//! SAMEKEY_SEED=42 cargo test --test simulation replay -- --nocapture
//! ```

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, prints what it found, and takes its seed from the environment"
)]

mod core;
mod guards;
mod healing;
mod judge;
mod ledger;
mod options;
mod people;
mod provider;
mod recovery;
mod room;
mod run;
mod store;
mod trouble;
mod wire;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use options::{Guard, Kind, Options};
use store::{Disk, Store};
use strum::VariantArray as _;

/// What a thousand seeds must have met, or they prove less than they say.
const SOMETIMES: &[&str] = &[
    "a 409",
    "a 409, then a success",
    "a 429",
    "a 5xx",
    "a call id that came again",
    "a call id with other arguments",
    "a call taken over",
    "a call that joined another one",
    "a clock alarm",
    "a commit whose reply was lost",
    "a correction",
    "a crash",
    "a decision that lost a race",
    "a key mismatch",
    "a key that could not be sent any more",
    "a lookup that nobody answered",
    "a pending object",
    "a proposal",
    "a refund that failed after it succeeded",
    "a request that arrived twice",
    "a row that the reconciler looked at",
    "an event that concerned a row",
    "a reply about something else",
    "a retry that got the saved success",
    "a row settled before it was sent again",
    "a row that became unknown with its effect made",
    "a row that became unknown without an effect",
    "a second effect",
    "a stored result given again",
    "a tool that was paused",
    "a typed id that did not match",
    "an attempt nobody knows the outcome of",
    "an attempt that was not sent",
    "an engine that was stopped for a while",
    "an interrupted attempt",
    "an outcome that came late",
    "closing as failed refused because it was too early",
    "unknown, then closed as failed by a person",
    "unknown, then closed as succeeded by a person",
    "unknown, then closed by late evidence",
];

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// I1–I28, L1–L4 over many seeds.
#[test]
fn seeds_keep_every_law() {
    let long = std::env::var("SAMEKEY_LONG").is_ok();
    let count = number("SAMEKEY_SEEDS").unwrap_or(if long { 10_000 } else { 1_000 });
    let first = number("SAMEKEY_FIRST").unwrap_or(0);
    let many = run::many(first..first + count, None, Disk::Memory, 5);
    for (what, times) in &many.seen {
        println!("{times:>8} × {what}");
    }
    let never: Vec<&str> = SOMETIMES
        .iter()
        .copied()
        .filter(|what| !many.seen.contains_key(what))
        .collect();
    let Some(seed) = many.failed.iter().min() else {
        assert!(count < 1_000 || never.is_empty(), "never seen: {never:#?}");
        return;
    };
    println!("failing seeds: {:?}", many.failed);
    let store = Arc::new(Store::new());
    let options = Options::derive(*seed, &BTreeSet::new(), None);
    let ended = run::shrink(&store, run::seed(&store, options, Disk::Memory));
    panic!("{}", run::report(&ended));
}

/// Among many faults an outage of several operations in a row is rare, so it is had alone: the circuit
/// opens, nothing is sent meanwhile, and all of it comes to rest (R96, L5).
#[test]
fn a_blackout_alone_opens_the_circuit_r96() {
    let store = Arc::new(Store::new());
    let alone: BTreeSet<Kind> = Kind::VARIANTS
        .iter()
        .copied()
        .filter(|kind| *kind != Kind::Blackout)
        .collect();
    let mut opened = 0;
    for seed in 0..1_000 {
        let options = Options::derive(seed, &alone, None);
        if !options.has(Kind::Blackout) {
            continue;
        }
        let ended = run::seed(&store, options, Disk::Memory);
        assert_eq!(ended.violation, None, "{}", run::report(&ended));
        opened += u32::from(ended.seen.contains_key("a circuit that was open"));
    }
    println!("{opened} worlds had an open circuit");
    assert!(opened > 0, "no circuit was ever open");
}

/// Lives one seed again: `SAMEKEY_SEED`, `SAMEKEY_WITHOUT` (kinds switched off), `SAMEKEY_GUARD_OFF`.
#[test]
fn replay() {
    let Some(seed) = number("SAMEKEY_SEED") else {
        return;
    };
    let off = std::env::var("SAMEKEY_WITHOUT").map_or_else(|_| BTreeSet::new(), |t| run::kinds(&t));
    let guard: Option<Guard> = std::env::var("SAMEKEY_GUARD_OFF")
        .ok()
        .map(|name| name.parse().expect("a guard"));
    let store = Arc::new(Store::new());
    let ended = run::seed(&store, Options::derive(seed, &off, guard), Disk::Memory);
    if std::env::var("SAMEKEY_WHOLE_LOG").is_ok() {
        for line in &ended.log {
            println!("{line}");
        }
    }
    println!("{}", run::report(&ended));
    assert_eq!(ended.violation, None);
}

/// The same seed is the same world, to the last event: what fails once can be looked at again.
#[test]
fn a_seed_replays_to_the_last_event() {
    let store = Arc::new(Store::new());
    for seed in 0..8 {
        let live = || {
            let options = Options::derive(seed, &BTreeSet::new(), None);
            run::seed(&store, options, Disk::Memory).log
        };
        let (first, second) = (live(), live());
        let differs = first.iter().zip(&second).find(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// On an ordinary disk, where a commit waits for the disk, the same holds.
#[test]
fn seeds_keep_every_law_on_a_file() {
    let many = run::many(5_000..5_020, None, Disk::File, 1);
    assert_eq!(many.failed, [0; 0]);
}
