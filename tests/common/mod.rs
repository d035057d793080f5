//! What the tests share: a ledger in a temporary folder, a provider in memory, calls.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod provider;
pub mod world;
