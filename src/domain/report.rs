//! What happened in a span of time, in figures: operations by outcome, money, time to resolution.
//!
//! Owns: the sums and how a percentile is taken. Never: reads, or mixes currencies.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Instant;
use super::ids::{OperationId, ToolName};
use super::money::Currency;

/// Operations opened since an instant, as they stand now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Empty: from the beginning of the ledger.
    pub since: Option<Instant>,
    pub until: Option<Instant>,
    pub total: Figures,
    pub tools: BTreeMap<ToolName, Figures>,
    /// The unknown row that has waited longest, and since when.
    pub oldest_unknown: Option<(OperationId, Instant)>,
    /// The span in equal slots, oldest first.
    pub slots: Vec<Slot>,
    /// Closed operations by time to resolution: the upper bound of each class (the last has none), and
    /// how many.
    pub histogram: Vec<(Option<Duration>, u64)>,
}

/// The figures of one tool, or of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub open: u64,
    pub unknown: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub contradicted: u64,
    /// Attempts of all of them.
    pub attempts: u64,
    /// Minor units, by currency.
    pub money: BTreeMap<Currency, Sums>,
    /// From opening to closing; empty where nothing is closed.
    pub p50: Option<Duration>,
    pub p95: Option<Duration>,
}

/// Minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub refunded: i64,
    /// Open or unknown with a possible effect, or contradicted.
    pub at_risk: i64,
    /// Failed: the customer got nothing.
    pub refused: i64,
}

/// One slot of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub from: Instant,
    pub opened: u64,
    /// Of those, unknown now or closed by way of unknown.
    pub unknown: u64,
    pub failed: u64,
}

impl Figures {
    /// All operations.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.open
            .saturating_add(self.unknown)
            .saturating_add(self.succeeded)
            .saturating_add(self.failed)
    }
}
