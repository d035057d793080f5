//! A counted run: so many calls through both clients, to quiescence, and what came of it.
//!
//! Owns: that run. Never: draws anything. Tests: `tests/demo.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;

use super::asks::Ask;
use super::customers::Customer;
use super::limits::Limits;
use super::play::{Client, Pace, play};
use super::stage::{STOP_WITHIN, Stage};
use super::summary::{OperationCounts, Summary};
use super::tally::{self, Wanted};
use super::{DemoConfig, DemoError};
use crate::clock::Clock;
use crate::ledger::Counts;

/// How long the ledger may take to come to rest after the last answer (real time).
const REST_WITHIN: Duration = Duration::from_mins(1);

/// Runs `cfg.calls` tool calls and tells what came of them.
///
/// # Errors
/// A wrong scenario, a ledger that is not a demo's, or anything that keeps the run from its end.
pub async fn headless(cfg: DemoConfig) -> Result<Summary, DemoError> {
    let real = Clock::system();
    let began = real.boot();
    let stage = Stage::set(&cfg, |provider, plan| {
        Limits::counted(provider, plan, cfg.speed)
    })
    .await?;
    let before = (stage.ledger.counts().await?, stage.attempts().await?);
    let (engine, batch) = (stage.engine(), batch(&stage, cfg.calls)?);
    let served = serve(&stage, &batch).await;
    let rested = served.and(rest(&stage).await);
    engine.stop(STOP_WITHIN).await;
    let counts = rested?;
    let attempts = stage.attempts().await?.saturating_sub(before.1);
    let wanted = Wanted::of(&batch);
    let ours = tally::count(&stage.sim.effects(), &wanted);
    let naive = tally::count(&stage.naive_sim.effects(), &wanted);
    let desk = Arc::clone(&stage.desk);
    let struck = stage.strike().await;
    let violations = violations(struck.path()).await?;
    Ok(Summary {
        calls: desk.accepted.load(Ordering::Relaxed),
        answered: desk.answered.load(Ordering::Relaxed),
        operations: since(&before.0, &counts),
        attempts,
        intents: wanted.intents(),
        provider_effects: ours.made,
        duplicate_effects: ours.duplicates,
        naive_effects: naive.made,
        naive_duplicate_effects: naive.duplicates,
        violations,
        elapsed_ms: u64::try_from(real.boot().saturating_sub(began).as_millis())
            .unwrap_or(u64::MAX),
        scenario: cfg.scenario.unwrap_or_else(|| "mixed".to_owned()),
        seed: cfg.seed,
        overpaid: ours.overpaid,
        naive_overpaid: naive.overpaid,
    })
}

/// The customers of so many calls.
pub(super) fn batch(stage: &Stage, calls: u32) -> Result<Arc<Vec<Customer>>, DemoError> {
    Ok(Arc::new(stage.customers.batch(calls)?))
}

/// What the audit of the run's ledger finds.
async fn violations(ledger: &std::path::Path) -> Result<u64, DemoError> {
    let report = crate::ledger::verify::verify(ledger).await?;
    for violation in &report.violations {
        tracing::error!(?violation, "the audit found a violation");
    }
    Ok(u64::try_from(report.violations.len()).unwrap_or(u64::MAX))
}

/// Serves all customers through both clients at once.
pub(super) async fn serve(stage: &Stage, batch: &Arc<Vec<Customer>>) -> Result<(), DemoError> {
    let pace = Pace {
        clock: stage.limits.clock.clone(),
        think: stage.limits.think,
    };
    let desk = Arc::clone(&stage.desk) as Arc<dyn Client>;
    let naive = Arc::clone(&stage.naive) as Arc<dyn Client>;
    tokio::try_join!(
        everybody(desk, batch, stage.limits.at_a_time, &pace),
        everybody(naive, batch, stage.limits.naive_at_a_time, &pace),
    )?;
    Ok(())
}

async fn everybody(
    client: Arc<dyn Client>,
    batch: &Arc<Vec<Customer>>,
    at_a_time: usize,
    pace: &Pace,
) -> Result<(), DemoError> {
    let mut served = JoinSet::new();
    for index in 0..batch.len() {
        if served.len() >= at_a_time
            && let Some(done) = served.join_next().await
        {
            done??;
        }
        let (client, batch, pace) = (Arc::clone(&client), Arc::clone(batch), pace.clone());
        served.spawn(async move {
            match batch.get(index) {
                Some(customer) => play(&*client, customer, &pace, &|_: &Ask| {}).await,
                None => Ok(()),
            }
        });
    }
    while let Some(done) = served.join_next().await {
        done??;
    }
    Ok(())
}

/// Waits for quiescence: no call waits, no attempt is in flight.
pub(super) async fn rest(stage: &Stage) -> Result<Counts, DemoError> {
    let mut changed = stage.ledger.changed();
    let quiet = async {
        loop {
            changed.mark_unchanged();
            let counts = stage.ledger.counts().await?;
            if counts.queued + counts.running + counts.in_flight == 0 {
                return Ok(counts);
            }
            if changed.changed().await.is_err() {
                return Err(DemoError::Restless("it was closed".to_owned()));
            }
        }
    };
    let waited = tokio::time::timeout(REST_WITHIN, quiet).await;
    waited.unwrap_or_else(|_| {
        let why = "calls or attempts are still under way a minute after the last answer";
        Err(DemoError::Restless(why.to_owned()))
    })
}

fn since(before: &Counts, now: &Counts) -> OperationCounts {
    OperationCounts {
        open: now.open.saturating_sub(before.open),
        unknown: now.unknown.saturating_sub(before.unknown),
        succeeded: now.succeeded.saturating_sub(before.succeeded),
        failed: now.failed.saturating_sub(before.failed),
    }
}
