//! The demo on the dashboard: the endless one on the terminal, or one frame of a counted run.
//!
//! Owns: what the dashboard is told about where it is. Tests: `tests/demo.rs`.

use std::path::Path;

use tokio::sync::watch;

use super::headless::{batch, rest, serve};
use super::limits::Limits;
use super::live::{Demo, gate, lines, start};
use super::stage::{STOP_WITHIN, Stage};
use super::tally::Wanted;
use super::{DemoConfig, DemoError};
use crate::engine::EngineHealth;
use crate::tui::{self, Environment, TuiDeps, UiOptions};

/// Tool calls behind a snapshot, if nothing else is asked for.
const SNAPSHOT_CALLS: u32 = 60;

/// Runs the endless demo on the terminal until the person leaves.
///
/// # Errors
/// A wrong scenario, a ledger that is not a demo's, or no terminal.
pub async fn interactive(cfg: DemoConfig, ui: UiOptions) -> Result<(), DemoError> {
    let Demo {
        ledger,
        gate,
        person,
        health,
        clock,
        kept,
        scoreboard,
        mut running,
    } = start(cfg).await?;
    let deps = TuiDeps {
        ledger,
        gate,
        person,
        health,
        environment: environment(kept.as_deref()),
        clock,
        ui,
        scoreboard: Some(scoreboard),
    };
    let shown = Box::pin(tui::run(deps, async || running.pause().await)).await;
    running.stop().await;
    shown.map_err(|e| DemoError::Screen(e.to_string()))
}

/// One frame of the dashboard after a counted run, as text.
///
/// # Errors
/// A wrong scenario, or a ledger that is not a demo's.
pub async fn snapshot(
    cfg: DemoConfig,
    ui: UiOptions,
    width: u16,
    height: u16,
) -> Result<String, DemoError> {
    let stage = Stage::set(&cfg, |provider, plan| {
        Limits::counted(provider, plan, cfg.speed)
    })
    .await?;
    let calls = if cfg.calls == 0 {
        SNAPSHOT_CALLS
    } else {
        cfg.calls
    };
    let (engine, batch) = (stage.engine(), batch(&stage, calls)?);
    let health = engine.health();
    let frame = async {
        serve(&stage, &batch).await?;
        rest(&stage).await?;
        let board = lines(&stage, &Wanted::of(&batch));
        frame(&stage, health, board, (ui, width, height)).await
    };
    let frame = frame.await;
    engine.stop(STOP_WITHIN).await;
    drop(stage.strike().await);
    frame
}

async fn frame(
    stage: &Stage,
    health: watch::Receiver<EngineHealth>,
    board: Vec<String>,
    (ui, width, height): (UiOptions, u16, u16),
) -> Result<String, DemoError> {
    let gate = gate(stage)?;
    let (_lines, scoreboard) = watch::channel(board);
    let deps = TuiDeps {
        ledger: std::sync::Arc::clone(&stage.ledger),
        person: gate.person(None)?,
        gate,
        health,
        environment: environment(stage.is_kept().then(|| stage.path())),
        clock: stage.limits.clock.clone(),
        ui,
        scoreboard: Some(scoreboard),
    };
    let text = tui::snapshot(deps, width, height).await;
    text.map_err(|e| DemoError::Screen(e.to_string()))
}

fn environment(kept: Option<&Path>) -> Environment {
    let file = kept.and_then(Path::file_name);
    Environment {
        provider: "stripe".to_owned(),
        mode: "simulator".to_owned(),
        ledger: file.map_or_else(
            || "throw-away".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        ),
        notice: None,
    }
}
