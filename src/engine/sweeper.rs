//! The sweep: deadlines (and whom to warn of them), attempts whose driver is gone, rows that were never sent
//! and that nobody waits for, typed ids nobody fetched, probes of open circuits. Nothing here sends an
//! effect (L3, L4).

use super::EngineDeps;
use crate::domain::ids::OperationId;
use crate::domain::policy::CircuitState;
use crate::domain::transition::Event;
use crate::ledger::LedgerError;

/// Sweeps for as long as it runs.
pub(super) async fn keep(deps: &EngineDeps) {
    loop {
        if let Err(error) = sweep(deps).await {
            tracing::warn!(%error, "the sweep has to wait");
        }
        deps.clock.sleep(deps.config.poll.saturating_mul(5)).await;
    }
}

/// One round. A row that moved on meanwhile refuses, which is as good; one that cannot be read does not
/// hold up the others (L3).
pub(super) async fn sweep(deps: &EngineDeps) -> Result<(), LedgerError> {
    for id in deps.ledger.sweepable().await? {
        if let Err(error) = sweep_row(deps, &id).await {
            tracing::error!(operation = %id, %error, "a row could not be swept");
        }
    }
    deps.ledger.tell_expiring().await?;
    for state in deps.ledger.tools().await? {
        let CircuitState::Open { probe_at, .. } = state.circuit.state else {
            continue;
        };
        let provider = deps
            .terms
            .get(&state.tool)
            .and_then(|terms| deps.providers.get(&terms.policy.provider));
        if let Some(provider) = provider
            && deps.clock.now() >= probe_at
        {
            let succeeded = provider.probe().await;
            deps.ledger.probed(&state.tool, succeeded).await?;
        }
    }
    Ok(())
}

async fn sweep_row(deps: &EngineDeps, id: &OperationId) -> Result<(), LedgerError> {
    let _ = deps.ledger.apply(id, Event::Interrupted).await?;
    let _ = deps.ledger.apply(id, Event::Swept).await?;
    // Where its last call ended while the clock could not be trusted; refused where anything was sent.
    let _ = deps.ledger.apply(id, Event::NeverSent).await?;
    fetch_typed(deps, id).await
}

/// Fetches a provider id that a person typed while the provider was unreachable; one that does not
/// match contradicts its row (`ref_mismatch`).
async fn fetch_typed(deps: &EngineDeps, id: &OperationId) -> Result<(), LedgerError> {
    let Some(detail) = deps.ledger.detail(id).await? else {
        return Ok(());
    };
    let Some(typed) = detail.op.awaits_fetch() else {
        return Ok(());
    };
    let name = &detail.op.row.provider;
    let Some(provider) = deps.providers.get(name) else {
        return Ok(());
    };
    if deps.ledger.take_read(name).await?.is_err() {
        return Ok(());
    }
    if let Ok(object) = provider.fetch(typed).await {
        let taken = false;
        let _ = deps
            .ledger
            .apply(id, Event::RefFetched { object, taken })
            .await?;
    }
    Ok(())
}
