//! SHIM, to be removed at the merge: stand-ins for `crate::tui`, `crate::demo` and
//! `crate::ledger::verify`, with the same names and shapes. Then `use crate::cli::doors::…` becomes
//! `use crate::…` and this file goes.

#![allow(dead_code, clippy::unused_async, missing_docs)]

pub mod verify {
    use std::path::Path;

    use serde::Serialize;

    use crate::ledger::LedgerError;

    #[derive(Clone, Debug, Default, Serialize)]
    pub struct Report {
        pub operations: u64,
        pub violations: Vec<Violation>,
    }

    #[derive(Clone, Debug, Serialize)]
    pub struct Violation {
        pub operation: Option<String>,
        pub rule: &'static str,
        pub what: String,
    }

    pub async fn verify(path: &Path) -> Result<Report, LedgerError> {
        let why = format!("{}: verify is not merged", path.display());
        Err(LedgerError::Unreachable(why))
    }
}

pub mod tui {
    use std::time::Duration;

    use tokio::sync::watch;

    use crate::clock::Clock;
    use crate::domain::review_event::Person;
    use crate::engine::EngineHealth;
    use crate::ledger::SharedLedger;
    use crate::review::Gate;

    #[derive(Debug, thiserror::Error)]
    #[error("the screen is not merged")]
    pub struct TuiError;

    #[derive(Clone, Copy, Debug, Default)]
    pub enum Timezone {
        Utc,
        #[default]
        Local,
    }

    #[derive(Clone, Copy, Debug, Default, strum::EnumString)]
    #[strum(serialize_all = "lowercase")]
    pub enum ThemeName {
        #[default]
        Default,
        Light,
        Mono,
        Deuteranopia,
    }

    #[derive(Clone, Debug)]
    pub struct UiOptions {
        pub theme: ThemeName,
        pub ascii: bool,
        pub read_only: bool,
        pub no_color: bool,
        pub refresh: Duration,
        pub timezone: Timezone,
        pub bell: bool,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Environment {
        pub provider: String,
        pub mode: String,
        pub ledger: String,
        pub notice: Option<String>,
    }

    pub struct TuiDeps {
        pub ledger: SharedLedger,
        pub gate: Gate,
        pub person: Person,
        pub health: watch::Receiver<EngineHealth>,
        pub environment: Environment,
        pub clock: Clock,
        pub ui: UiOptions,
        pub scoreboard: Option<watch::Receiver<Vec<String>>>,
    }

    pub async fn run(_: TuiDeps, _: impl AsyncFnOnce()) -> Result<(), TuiError> {
        Err(TuiError)
    }

    pub async fn snapshot(_: TuiDeps, _: u16, _: u16) -> Result<String, TuiError> {
        Err(TuiError)
    }
}

pub mod demo {
    use std::path::PathBuf;

    use serde::Serialize;

    use super::tui::UiOptions;

    #[derive(Debug, thiserror::Error)]
    #[error("the demo is not merged")]
    pub struct DemoError;

    impl DemoError {
        pub fn is_usage(&self) -> bool {
            false
        }
    }

    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct DemoConfig {
        pub scenario: Option<String>,
        pub seed: u64,
        pub speed: Option<u32>,
        pub calls: u32,
        pub keep: Option<PathBuf>,
        pub rows: u32,
    }

    #[derive(Clone, Debug, Default, Serialize)]
    pub struct Summary {
        pub violations: u64,
        pub duplicate_effects: u64,
    }

    impl std::fmt::Display for Summary {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{} violations", self.violations)
        }
    }

    pub fn catalogue() -> Vec<String> {
        let all = crate::simulator::Plan::catalogue();
        all.into_iter()
            .map(|(n, about)| format!("{n:26}{about}"))
            .collect()
    }

    pub async fn headless(_: DemoConfig) -> Result<Summary, DemoError> {
        Err(DemoError)
    }

    pub async fn interactive(_: DemoConfig, _: UiOptions) -> Result<(), DemoError> {
        Err(DemoError)
    }

    pub async fn snapshot(
        _: DemoConfig,
        _: UiOptions,
        _: u16,
        _: u16,
    ) -> Result<String, DemoError> {
        Err(DemoError)
    }
}
