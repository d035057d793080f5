//! The demo: simulated customers and agents, the simulated provider with its faults, samekey and a
//! naive client side by side, all in one process on a throw-away ledger.
mod customers;
mod naive;
mod play;
mod spelling;
mod tally;
#[derive(Debug, thiserror::Error)]
pub enum DemoError { #[error("x")] X }
