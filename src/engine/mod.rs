//! The engine: takes queued calls under a lease and drives each through the protocol.

use std::time::Duration;

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub workers: u32,
    pub lease: Duration,
    pub poll: Duration,
    pub call_timeout: Duration,
    pub call_ttl: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            workers: 8,
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            call_timeout: Duration::from_secs(120),
            call_ttl: Duration::from_secs(3600),
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
