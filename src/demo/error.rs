//! Why a demo could not be run.

use std::path::PathBuf;

use crate::domain::ids::CallId;
use crate::domain::text::TextError;
use crate::ledger::LedgerError;
use crate::review::GateError;
use crate::simulator::PlanError;

/// One plain sentence each.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(
        "{} is no demo ledger; --keep takes a new file or one that a demo has written", .0.display()
    )]
    NotADemo(PathBuf),
    #[error("the directory for the demo's ledger cannot be made: {0}")]
    Directory(std::io::Error),
    #[error("the simulated provider cannot listen on {address}: {why}")]
    Simulator {
        address: String,
        why: std::io::Error,
    },
    #[error("the adapter for the simulated provider: {0}")]
    Provider(String),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the gate: {0}")]
    Gate(#[from] GateError),
    #[error("a made-up identifier {0}")]
    Text(#[from] TextError),
    #[error("a made-up call cannot be read: {0}")]
    Call(#[from] serde_json::Error),
    #[error("the ledger knows the call {0} already; was this demo run on it before?")]
    KnownCall(CallId),
    #[error("the call {0} was not answered; the engine seems to stand still")]
    Unanswered(CallId),
    #[error("the ledger does not come to rest: {0}")]
    Restless(String),
    #[error("a task of the demo ended badly: {0}")]
    Task(#[from] tokio::task::JoinError),
    #[error("the screen: {0}")]
    Screen(String),
}

impl DemoError {
    /// Whether the command was used wrongly (exit code 2), rather than something having failed.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Plan(_) | Self::NotADemo(_))
    }
}
