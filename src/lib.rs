//! samekey: one intended side effect stays one, however often an AI agent asks for it.

pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod engine;
pub mod error;
pub mod ledger;
pub mod provider;
pub mod review;
pub mod simulator;
pub mod telemetry;
