//! Model checking: every schedule of two engines, delayed and copied requests, lost answers, crashes, lost
//! leases, a provider that forgets keys, webhooks, lookups and people, within bounds, on the real
//! `samekey::domain`. The laws hold in every world that can be reached; with any one guard missing the
//! checker finds how a law breaks (`guards`).
//!
//! `SAMEKEY_LONG=1` widens the bounds; `SAMEKEY_PATHS=1` prints each counterexample.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it searched"
)]
#![allow(
    clippy::unused_self,
    reason = "steps read alike: each is something that the model does to a world"
)]

mod breaking;
#[path = "../common/builders.rs"]
mod builders;
mod calling;
mod deciding;
mod engine;
mod events;
mod face;
mod guards;
#[path = "../common/laws.rs"]
mod laws;
mod model;
mod opening;
mod people;
mod places;
mod promises;
mod provider;
mod rows;
mod search;
mod sending;
mod world;
