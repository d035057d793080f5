//! The sweep: deadlines (and whom to warn of them), attempts whose driver is gone, rows that were never sent
//! and that nobody waits for, typed ids nobody fetched, probes of open circuits. Nothing here sends an
//! effect (L3, L4).

use std::time::Duration;

use futures_util::future::join_all;

use super::EngineDeps;
use crate::domain::ids::{OperationId, ProviderName};
use crate::domain::policy::CircuitState;
use crate::domain::transition::Event;
use crate::ledger::{LedgerError, ReadFor};

/// Longest wait for a read of the budget.
const READ_WAIT: Duration = Duration::from_secs(10);

/// Sweeps for as long as it runs. Whom a provider keeps waiting delays no row and no other provider (L5).
pub(super) async fn keep(deps: &EngineDeps) {
    let asking = deps.providers.keys().map(|name| keep_asking(deps, name));
    tokio::join!(biased; keep_sweeping(deps), join_all(asking));
}

async fn keep_sweeping(deps: &EngineDeps) {
    loop {
        if let Err(error) = sweep(deps).await {
            tracing::warn!(%error, "the sweep has to wait");
        }
        deps.clock.sleep(deps.config.poll.saturating_mul(5)).await;
    }
}

async fn keep_asking(deps: &EngineDeps, provider: &ProviderName) {
    loop {
        if let Err(error) = ask(deps, provider).await {
            tracing::warn!(%provider, %error, "the provider is asked later");
        }
        deps.clock.sleep(deps.config.poll.saturating_mul(5)).await;
    }
}

/// One round of what the ledger knows alone. A row that moved on meanwhile refuses, which is as good; one
/// that cannot be read does not hold up the others (L3).
async fn sweep(deps: &EngineDeps) -> Result<(), LedgerError> {
    for id in deps.ledger.sweepable().await? {
        if let Err(error) = sweep_row(deps, &id).await {
            tracing::error!(operation = %id, %error, "a row could not be swept");
        }
    }
    deps.ledger.tell_expiring().await?;
    Ok(())
}

/// One round of what only a provider can tell.
async fn ask(deps: &EngineDeps, name: &ProviderName) -> Result<(), LedgerError> {
    // What another provider, or another mode of it, says would prove nothing of this ledger (I17).
    if let Some(provider) = deps.providers.get(name) {
        super::stamp(provider).fits(&deps.ledger.stamps().await?)?;
    }
    for id in deps.ledger.sweepable().await? {
        if let Err(error) = fetch_typed(deps, &id, name).await {
            tracing::error!(operation = %id, %error, "a typed id could not be fetched");
        }
    }
    for state in deps.ledger.tools().await? {
        let CircuitState::Open { probe_at, .. } = state.circuit.state else {
            continue;
        };
        let provider = deps
            .terms
            .get(&state.tool)
            .filter(|terms| terms.policy.provider == *name)
            .and_then(|terms| deps.providers.get(&terms.policy.provider));
        if let Some(provider) = provider
            && deps.clock.now() >= probe_at
        {
            let reads = super::reads(&deps.ledger, &deps.clock, name, ReadFor::Look, READ_WAIT);
            // Without a read nothing was asked, and nothing is known.
            if matches!(reads.prepay(READ_WAIT).await, Ok(Ok(()))) {
                let succeeded = provider.probe(&reads).await;
                deps.ledger.probed(&state.tool, succeeded).await?;
            }
        }
    }
    Ok(())
}

async fn sweep_row(deps: &EngineDeps, id: &OperationId) -> Result<(), LedgerError> {
    let _ = deps.ledger.apply(id, Event::Interrupted).await?;
    let _ = deps.ledger.apply(id, Event::Swept).await?;
    // Where its last call ended while the clock could not be trusted; refused where anything was sent.
    let _ = deps.ledger.apply(id, Event::NeverSent).await?;
    Ok(())
}

/// Fetches a provider id that a person typed while the provider was unreachable; one that does not
/// match contradicts its row (`ref_mismatch`).
async fn fetch_typed(
    deps: &EngineDeps,
    id: &OperationId,
    name: &ProviderName,
) -> Result<(), LedgerError> {
    let Some(detail) = deps.ledger.detail(id).await? else {
        return Ok(());
    };
    let Some(typed) = detail.op.awaits_fetch() else {
        return Ok(());
    };
    let Some(provider) = deps
        .providers
        .get(name)
        .filter(|_| detail.op.row.provider == *name)
    else {
        return Ok(());
    };
    let reads = super::reads(&deps.ledger, &deps.clock, name, ReadFor::Look, READ_WAIT);
    if let Ok(object) = provider.fetch(typed, &reads).await {
        let taken = false;
        let _ = deps
            .ledger
            .apply(id, Event::RefFetched { object, taken })
            .await?;
    }
    Ok(())
}
