//! What the tests share: a ledger in a temporary folder, a provider in memory, calls.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a builder that fails fails its test"
)]
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod desk;
pub mod provider;
pub mod world;
