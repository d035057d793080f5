//! Starting, watching and stopping an engine's tasks. A panic in one is shown, never swallowed, and
//! never touches the terminal (U32).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::worker::{self, Left, Shared, raised};
use super::{
    EngineDeps, EngineError, EngineHealth, EngineState, events, fresh_id, reconciler, sweeper,
};
use crate::domain::Instant;
use crate::domain::ids::{AgentName, CallId};
use crate::domain::tool_call::ToolResult;
use crate::domain::transition::Event;
use crate::ledger::{EngineSeen, LeasedCall, LedgerError};

const CLOCK_ALARM: &str = "clock alarm: nothing is sent until a lead runs `samekey clock accept`";

/// A running engine.
pub struct Engine {
    health: watch::Receiver<EngineHealth>,
    teller: watch::Sender<EngineHealth>,
    stop: watch::Sender<bool>,
    abort: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Engine {
    /// Starts an engine's tasks.
    #[must_use]
    pub fn start(deps: EngineDeps) -> Self {
        let (health_tx, health) = watch::channel(EngineHealth {
            state: EngineState::Checking,
            workers: deps.config.workers,
            busy: 0,
            alarm: None,
            notices: None,
        });
        let (stop, stopping) = watch::channel(false);
        let (abort, aborting) = watch::channel(false);
        let teller = health_tx.clone();
        let task = tokio::spawn(supervise(deps, health_tx, stopping, aborting));
        Self {
            health,
            teller,
            stop,
            abort,
            task,
        }
    }

    /// What may be known of it; moves with every change.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<EngineHealth> {
        self.health.clone()
    }

    /// Shows beside the engine's own health how the notices of its ledger fare.
    pub fn notices_teller(&self) -> impl Fn(Option<String>) + Send + Sync + 'static {
        let teller = self.teller.clone();
        move |trouble| {
            teller.send_if_modified(|h| {
                let news = h.notices != trouble;
                h.notices.clone_from(&trouble);
                news
            });
        }
    }

    /// Takes no new work, finishes what is in flight within `limit`, and records the rest as
    /// interrupted (L8).
    pub async fn stop(self, limit: Duration) {
        let Self {
            health: _,
            teller: _,
            stop,
            abort,
            mut task,
        } = self;
        stop.send_replace(true);
        if tokio::time::timeout(limit, &mut task).await.is_err() {
            abort.send_replace(true);
            // Writing down what was cut off is a handful of commits.
            if tokio::time::timeout(Duration::from_secs(5), &mut task)
                .await
                .is_err()
            {
                task.abort();
            }
        }
    }
}

async fn supervise(
    deps: EngineDeps,
    health: watch::Sender<EngineHealth>,
    stopping: watch::Receiver<bool>,
    aborting: watch::Receiver<bool>,
) {
    let engine = fresh_id(&deps.lots);
    let started_at = deps.clock.now();
    let permits = Arc::new(Semaphore::new(deps.config.workers as usize));
    let shared = Arc::new(Shared::new(deps, engine, permits, stopping.clone()));
    if let Err(error) = shared.deps.ledger.check().await {
        health.send_modify(|h| {
            h.state = EngineState::Down(error.to_string());
            h.alarm = Some(error.to_string());
        });
        return;
    }
    health.send_modify(|h| h.state = EngineState::Running);
    tracing::info!(engine = %shared.engine, workers = shared.deps.config.workers, "the engine runs");
    let mut keepers = JoinSet::new();
    keepers.spawn({
        let shared = Arc::clone(&shared);
        async move { shared.lease.keep(&shared.deps, &shared.engine).await }
    });
    keepers.spawn({
        let shared = Arc::clone(&shared);
        async move { sweeper::keep(&shared.deps).await }
    });
    keepers.spawn({
        let (shared, health) = (Arc::clone(&shared), health.clone());
        async move { beat(&shared, &health, started_at).await }
    });
    if shared.deps.config.reconcile {
        recover(&mut keepers, &shared);
    }
    let mut calls = JoinSet::new();
    tokio::select! {
        () = dispatch(&shared, &health, &mut calls, &aborting) => {}
        ended = keepers.join_next() => down(&health, ended),
    }
    health.send_if_modified(|h| {
        let running = h.state == EngineState::Running;
        if running {
            h.state = EngineState::Draining;
        }
        running
    });
    while let Some(ended) = calls.join_next().await {
        note(&health, ended);
    }
    keepers.abort_all();
    let seen = seen(&shared, started_at, 0, true);
    if let Err(error) = shared.deps.ledger.engine_seen(&seen).await {
        tracing::debug!(%error, "the engine's end");
    }
    health.send_modify(|h| {
        h.busy = 0;
        tracing::info!(engine = %shared.engine, "the engine has stopped");
        if h.state == EngineState::Draining {
            h.state = EngineState::Stopped;
        }
    });
}

/// One task for each provider's events, and one for looks at its rows.
fn recover(keepers: &mut JoinSet<()>, shared: &Arc<Shared>) {
    for name in shared.deps.providers.keys() {
        let (at, of) = (Arc::clone(shared), name.clone());
        keepers.spawn(async move { events::keep(&at, &of).await });
        let (at, of) = (Arc::clone(shared), name.clone());
        keepers.spawn(async move { reconciler::keep(&at, &of).await });
    }
}

type Ended = Result<Result<Left, LedgerError>, tokio::task::JoinError>;

fn down(health: &watch::Sender<EngineHealth>, ended: Option<Result<(), tokio::task::JoinError>>) {
    let why = match ended {
        Some(Err(error)) => error.to_string(),
        Some(Ok(())) | None => "a task of the engine ended".to_owned(),
    };
    tracing::error!(%why, "the engine is down");
    health.send_modify(|h| {
        h.alarm = Some(format!("engine down: {why}"));
        h.state = EngineState::Down(why);
    });
}

/// Leases calls as permits allow, woken by changes and by the slow poll.
async fn dispatch(
    shared: &Arc<Shared>,
    health: &watch::Sender<EngineHealth>,
    calls: &mut JoinSet<Result<Left, LedgerError>>,
    aborting: &watch::Receiver<bool>,
) {
    let mut changes = shared.deps.ledger.changed();
    let mut stopping = shared.stopping.clone();
    let mut ledger_alarm: Option<String> = None;
    loop {
        while let Some(ended) = calls.try_join_next() {
            note(health, ended);
        }
        if shared.is_stopping() {
            return;
        }
        changes.mark_unchanged();
        let free = shared.permits.available_permits();
        let mut took = 0;
        if free > 0 && shared.lease.holds() {
            match take(shared, free).await {
                Ok(leased) => {
                    took = leased.len();
                    for (call, permit) in leased {
                        let (shared, aborting) = (Arc::clone(shared), aborting.clone());
                        calls.spawn(guarded(shared, call, permit, aborting));
                    }
                    // Only its own alarm: a clock or a panic is not over because a lease worked.
                    if let Some(own) = ledger_alarm.take() {
                        health.send_if_modified(|h| h.alarm.take_if(|a| *a == own).is_some());
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "no calls could be taken");
                    ledger_alarm = Some(error.to_string());
                    health.send_modify(|h| h.alarm.clone_from(&ledger_alarm));
                }
            }
        }
        // A call that has ended may not be joined yet; its worker is free all the same.
        let idle = u32::try_from(shared.permits.available_permits()).unwrap_or(u32::MAX);
        let busy = shared.deps.config.workers.saturating_sub(idle);
        health.send_if_modified(|h| std::mem::replace(&mut h.busy, busy) != busy);
        if took > 0 && took == free {
            // Perhaps there is more; look again as soon as a permit is free.
            continue;
        }
        tokio::select! {
            biased;
            () = raised(&mut stopping) => return,
            Some(ended) = calls.join_next(), if !calls.is_empty() => note(health, ended),
            _ = changes.changed(), if free > 0 => {}
            () = shared.deps.clock.sleep(shared.deps.config.poll) => {}
        }
    }
}

async fn take(
    shared: &Arc<Shared>,
    free: usize,
) -> Result<Vec<(LeasedCall, OwnedSemaphorePermit)>, LedgerError> {
    let max = u32::try_from(free).unwrap_or(u32::MAX).min(256);
    let lease = shared.deps.config.lease;
    let leased = shared
        .deps
        .ledger
        .lease_calls(&shared.engine, lease, max)
        .await?;
    let mut taken = Vec::with_capacity(leased.len());
    for call in leased {
        if let Ok(permit) = Arc::clone(&shared.permits).acquire_owned().await {
            taken.push((call, permit));
        }
    }
    Ok(taken)
}

/// Runs one call; cut off by an abort, what it had in flight is recorded as interrupted. A call that
/// failed or panicked is given back after a pause, so that it is neither lost nor tried in a hot loop.
async fn guarded(
    shared: Arc<Shared>,
    call: LeasedCall,
    permit: OwnedSemaphorePermit,
    mut aborting: watch::Receiver<bool>,
) -> Result<Left, LedgerError> {
    let _held = shared.lease.hold(&call);
    let mut work = tokio::spawn({
        let (shared, call) = (Arc::clone(&shared), call.clone());
        async move { worker::run(&shared, &call, Some(permit)).await }
    });
    let ended = tokio::select! {
        biased;
        ended = &mut work => ended,
        () = raised(&mut aborting) => {
            work.abort();
            // Its connection is closed before the ledger is told that nobody knows.
            let _ = work.await;
            cut_off(&shared, &call).await?;
            return Ok(Left::Released);
        }
    };
    let (why, pause) = match ended {
        Ok(Ok(left)) => return Ok(left),
        Ok(Err(error)) => (error, shared.deps.config.poll),
        Err(error) => {
            let why = format!("a worker panicked on call {}: {error}", call.call.id);
            (LedgerError::Unreachable(why), shared.deps.config.lease)
        }
    };
    tracing::error!(call = %call.call.id, %why, "a call has to wait");
    let _ = shared.wait(pause).await;
    cut_off(&shared, &call).await?;
    Err(why)
}

async fn cut_off(shared: &Shared, call: &LeasedCall) -> Result<(), LedgerError> {
    let ledger = &shared.deps.ledger;
    ledger.release(call).await?;
    let known = ledger.call(&call.call.agent, &call.call.id).await?;
    if let Some(operation) = known.and_then(|c| c.operation) {
        // Refused where nothing was in flight.
        let _ = ledger.apply(&operation, Event::Interrupted).await?;
    }
    Ok(())
}

fn note(health: &watch::Sender<EngineHealth>, ended: Ended) {
    let why = match ended {
        Ok(Err(error)) => error.to_string(),
        Err(error) if error.is_panic() => format!("a worker panicked: {error}"),
        Ok(Ok(_)) | Err(_) => return,
    };
    health.send_modify(|h| h.alarm = Some(why));
}

fn seen(shared: &Shared, started_at: Instant, busy: u32, stopped: bool) -> EngineSeen {
    EngineSeen {
        engine: shared.engine.clone(),
        host: host(),
        pid: std::process::id(),
        workers: shared.deps.config.workers,
        in_flight: busy,
        started_at,
        seen_at: shared.now(),
        stopped,
    }
}

fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Tells the ledger that this engine lives, and the screen when the clock cannot be trusted.
async fn beat(shared: &Shared, health: &watch::Sender<EngineHealth>, started_at: Instant) {
    let mut own: Option<String> = None;
    loop {
        let busy = health.borrow().busy;
        let seen = seen(shared, started_at, busy, false);
        let alarm = match shared.deps.ledger.engine_seen(&seen).await {
            Ok(()) => match shared.deps.ledger.clock_alarm().await {
                Ok(true) => Some(CLOCK_ALARM.to_owned()),
                Ok(false) => None,
                Err(error) => Some(error.to_string()),
            },
            Err(error) => Some(error.to_string()),
        };
        if alarm != own {
            health.send_modify(|h| match &alarm {
                Some(alarm) => h.alarm = Some(alarm.clone()),
                None => drop(h.alarm.take_if(|a| Some(a.as_str()) == own.as_deref())),
            });
            own = alarm;
        }
        shared.deps.clock.sleep(shared.deps.config.lease / 2).await;
    }
}

/// Drives this one call, in this process, and nothing else (`submit --run`).
///
/// # Errors
/// A call that is not there, a ledger that cannot be reached, or no answer within the call's time.
pub async fn run_call(
    deps: EngineDeps,
    agent: &AgentName,
    id: &CallId,
) -> Result<ToolResult, EngineError> {
    deps.ledger.check().await?;
    let (_stop, stopping) = watch::channel(false);
    let permits = Arc::new(Semaphore::new(1));
    let engine = fresh_id(&deps.lots);
    let shared = Arc::new(Shared::new(deps, engine, permits, stopping));
    let keeper = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move { shared.lease.keep(&shared.deps, &shared.engine).await }
    });
    let result = one_call(&shared, agent, id).await;
    keeper.abort();
    result
}

async fn one_call(
    shared: &Shared,
    agent: &AgentName,
    id: &CallId,
) -> Result<ToolResult, EngineError> {
    let ledger = &shared.deps.ledger;
    let config = &shared.deps.config;
    let give_up = crate::domain::later(
        shared.now(),
        config
            .call_timeout
            .saturating_add(config.lease)
            .saturating_add(config.lease),
    );
    loop {
        let known = ledger
            .call(agent, id)
            .await?
            .ok_or(EngineError::NoSuchCall)?;
        if let Some(result) = known.result {
            return Ok(result);
        }
        if let Some(call) = ledger
            .lease_call(&shared.engine, config.lease, agent, id)
            .await?
        {
            let _held = shared.lease.hold(&call);
            match worker::run(shared, &call, None).await {
                Ok(Left::Answered(result)) => return Ok(*result),
                Ok(Left::Lost | Left::Released) => {}
                Err(error) => {
                    ledger.release(&call).await?;
                    return Err(error.into());
                }
            }
        }
        if shared.now() >= give_up {
            return Err(EngineError::NotAnswered);
        }
        shared.deps.clock.sleep(config.poll).await;
    }
}
