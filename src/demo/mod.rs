//! The demo: simulated customers and their agents, the simulated provider with its faults, samekey,
//! and a naive client beside it, all in one process on a throw-away ledger.
//!
//! Owns:
//! - `customers` who wants what, `asks` the calls made for it, `spelling` how models write them,
//!   `play` the sequence of a customer's calls,
//! - `desk` the calls through samekey, `naive` the same calls without it, `tally` what both made
//!   happen, `summary` how it is told,
//! - `limits` clock, limits and timeouts, `rounds` the clock of a counted run, `stage` everything that has to run, `prefill` rows that
//!   were there before,
//! - `headless` a counted run, `live` an endless one, `screen` the live one on the dashboard.
//!
//! Never: talks to a real provider, opens a ledger that was not written by a demo, or gives samekey
//! a hint of what its customers meant. Tests: beside the code and `tests/demo.rs`.

mod asks;
mod customers;
mod desk;
mod error;
mod headless;
mod limits;
mod live;
mod naive;
mod play;
mod prefill;
mod rounds;
mod screen;
mod spelling;
mod stage;
mod summary;
mod tally;

use std::path::PathBuf;

pub use error::DemoError;
pub use headless::headless;
pub use live::{Demo, start};
pub use screen::{interactive, snapshot};
pub use summary::{OperationCounts, Summary};

use crate::simulator::Plan;

/// What the demo is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DemoConfig {
    /// `NAME` or `NAME:N` (only the first N refund requests); `mixed` if not given.
    pub scenario: Option<String>,
    /// Decides customers, calls and faults.
    pub seed: u64,
    /// How many times as fast as real time engine, provider and agents live; 1 on the screen if not
    /// given. A counted run lives at most 40 times as fast, and slower where the machine is busy.
    pub speed: Option<u32>,
    /// Tool calls of a counted run.
    pub calls: u32,
    /// Where the ledger stays; new, or of an earlier demo.
    pub keep: Option<PathBuf>,
    /// Rows that are there before the first call.
    pub rows: u32,
    /// Whether the engine also looks at rows that nobody asks about.
    pub reconcile: bool,
}

impl DemoConfig {
    fn plan(&self) -> Result<Plan, DemoError> {
        Ok(Plan::parse(self.scenario.as_deref().unwrap_or("mixed"))?)
    }
}

/// One line for every scenario: its name and what it does.
#[must_use]
pub fn catalogue() -> Vec<String> {
    let all = Plan::catalogue();
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    all.into_iter()
        .map(|(name, about)| format!("{name:width$}  {about}"))
        .collect()
}
