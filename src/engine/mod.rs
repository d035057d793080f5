//! The engine: takes queued calls under a lease and drives each through the protocol.
//!
//! Owns: when something is sent (connect, authorise, check again, write), waiting between attempts,
//! leases, the sweep of deadlines, bringing missed outcomes back, a clean stop. Never: decides about money (`domain` does), talks to
//! a screen, or sends without a committed attempt. A killed engine loses nothing: its calls are taken
//! over when their lease ends. Tests: `tests/engine.rs`, `tests/reconcile/`,
//! `tests/webhooks/`.

mod drive;
mod events;
mod lease;
mod listing;
mod lots;
mod reads;
mod reconciler;
mod run;
mod supervise;
mod sweeper;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::domain::ids::{EngineId, ProviderName, ToolName};
use crate::domain::policy::Terms;
use crate::ledger::{LedgerError, SharedLedger, Stamp};
use crate::provider::SharedProvider;

pub use lots::Lots;
pub use reads::reads;
pub use run::{Reconciled, reconcile, work_off_events};
pub use supervise::{Engine, run_call};

/// What an engine needs of the world.
#[derive(Clone)]
pub struct EngineDeps {
    pub ledger: SharedLedger,
    pub providers: Arc<BTreeMap<ProviderName, SharedProvider>>,
    pub terms: Arc<BTreeMap<ToolName, Terms>>,
    pub config: EngineConfig,
    pub clock: Clock,
    /// [`Lots::default`], but for simulations.
    pub lots: Lots,
}

/// Why an engine could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("there is no such call")]
    NoSuchCall,
    #[error("the call was not answered in time; `calls show` tells how it stands")]
    NotAnswered,
}

/// Which ledger a provider fits, before it was asked anything.
fn stamp(provider: &SharedProvider) -> Stamp {
    Stamp {
        provider: provider.name().clone(),
        origin: provider.origin(),
        account: None,
        mode: provider.mode().to_owned(),
    }
}

/// A name for one run of an engine.
fn fresh_id(lots: &Lots) -> EngineId {
    EngineId::from_uuid(lots.uuid())
}

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub workers: u32,
    pub lease: Duration,
    pub poll: Duration,
    pub call_timeout: Duration,
    pub call_ttl: Duration,
    /// Whether it also works on the provider's events and looks at rows that nobody asks about. Off where
    /// a run is counted or replayed.
    pub reconcile: bool,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            workers: 8,
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            call_timeout: Duration::from_secs(120),
            call_ttl: Duration::from_secs(3600),
            reconcile: false,
        }
    }
}

/// What the screen may know of the engine in its own process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineHealth {
    pub state: EngineState,
    pub workers: u32,
    /// Calls being driven right now.
    pub busy: u32,
    /// Why sending stands still (clock alarm, ledger unreachable, provider not configured), if it does.
    pub alarm: Option<String>,
    /// Why people outside are not told of events, if they should be and are not.
    pub notices: Option<String>,
}

/// Whether the engine runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EngineState {
    /// No engine in this process.
    #[default]
    None,
    /// The ledger is being checked before the first authorise.
    Checking,
    Running,
    /// Takes no new work; finishes what is in flight.
    Draining,
    Stopped,
    /// A task of it panicked.
    Down(String),
}
