//! `doctor`: is this machine, this file and this configuration fit to move money?
//!
//! Owns: the checks and their sentences. Never: prints a secret, writes to the ledger, or sends
//! anything but reads. `ledger` looks at the file, `machine` at what it lies on, `setup` at
//! configuration, provider and terminal, `notices` at who is told, `events` at what the
//! provider tells.

mod events;
mod ledger;
mod machine;
mod notices;
mod setup;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::Serialize;

use super::context::Context;
use crate::error::{Exit, Failure};

/// One check and what it found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub name: &'static str,
    pub state: State,
    /// One sentence.
    pub says: String,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum State {
    Ok,
    /// Works, but somebody should know.
    Warn,
    /// Money should not be moved like this.
    Fail,
}

impl Check {
    fn ok(name: &'static str, says: impl Into<String>) -> Self {
        Self::of(name, State::Ok, says)
    }

    fn warn(name: &'static str, says: impl Into<String>) -> Self {
        Self::of(name, State::Warn, says)
    }

    fn fail(name: &'static str, says: impl Into<String>) -> Self {
        Self::of(name, State::Fail, says)
    }

    /// Whether a program of the configuration can be run; `what` it is.
    fn program(name: &'static str, what: &str, path: &Path) -> Self {
        let shown = path.display();
        match std::fs::metadata(path) {
            Ok(meta) if !meta.is_file() => Self::fail(name, format!("{what} {shown} is no file")),
            Ok(meta) if meta.permissions().mode() & 0o111 == 0 => {
                let says = format!("{what} {shown} is not executable; run chmod +x on it");
                Self::fail(name, says)
            }
            Ok(_) => Self::ok(name, format!("{what} {shown} can be run")),
            Err(e) => {
                let why = crate::config::plain(&e);
                Self::fail(name, format!("{what} {shown} cannot be examined: {why}"))
            }
        }
    }

    fn of(name: &'static str, state: State, says: impl Into<String>) -> Self {
        let says = says.into();
        Self { name, state, says }
    }
}

pub(super) async fn run(cx: &Context) -> Result<Exit, Failure> {
    let loaded = cx.config()?;
    let at = cx.ledger_at(&loaded.config)?;
    let mut checks = vec![ledger::sqlite_version().await];
    checks.extend(machine::place(&at.path));
    checks.extend(ledger::file(&at.path).await);
    checks.extend(machine::clocks(cx, &loaded.config, &at.path).await);
    checks.extend(setup::configuration(&loaded));
    checks.extend(setup::providers(cx, &loaded.config).await);
    checks.extend(events::secrets(cx, &loaded.config));
    checks.extend(events::inbox(cx, &loaded.config, &at.path).await);
    checks.extend(notices::outlets(cx, &loaded.config));
    checks.extend(notices::outbox(cx, &loaded.config, &at.path).await);
    checks.extend(setup::terminal(&cx.env));
    if cx.out.is_json() {
        cx.out.json(&checks)?;
    } else {
        let lines: Vec<_> = checks
            .iter()
            .map(|c| {
                let state: &str = c.state.into();
                format!("{state:<5} {:<17} {}", c.name, c.says)
            })
            .collect();
        cx.out.text(&lines.join("\n"))?;
    }
    let fails = checks.iter().any(|c| c.state == State::Fail);
    Ok(if fails { Exit::No } else { Exit::Done })
}
