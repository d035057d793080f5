//! The reconciler: brings the truth back where nobody asked for it.
//!
//! Owns: looks at unknown, pending and driverless rows on a growing schedule, and at closed ones for thirty
//! days (M6), in turns with the events that no webhook brought (`listing`); and that people's own lookups
//! always get their part of the read budget. Never: sends anything but reads, closes a row itself
//! or fails one by time (I16): `domain::transition` closes on `confirmed`, follows our own pending object,
//! flags what contradicts. Tests: `tests/reconcile/`.

use std::time::Duration;

use super::listing;
use super::worker::Shared;
use crate::domain::evidence::{ProviderObject, Source};
use crate::domain::ids::{Actor, OperationId, ProviderName, ProviderRef};
use crate::domain::later;
use crate::domain::operation::OperationRow;
use crate::domain::transition::{Event, Lookup, Observed, Refusal};
use crate::domain::watch::next_look;
use crate::ledger::{LedgerError, Watched};
use crate::provider::{Reads, SharedProvider};

/// The last read of one look, or for one event, is sent within this time.
pub(super) const READ_TIME: Duration = Duration::from_mins(4);
/// A row whose provider did not answer is looked at again after so long; it does not count as a look.
const UNANSWERED: Duration = Duration::from_mins(5);
/// A row of a provider that is not configured here.
const NOT_HERE: Duration = Duration::from_hours(1);
/// How often the provider's own list of events is read.
const LIST_EVERY: Duration = Duration::from_mins(5);
/// What a running engine lists between two looks: neither has to wait for the other to end.
const LIST_TURN: u32 = 1;

impl Shared {
    /// For so long a row or an event is nobody else's: its last read is sent within [`READ_TIME`], and ends
    /// within the provider's limits for connecting and for the answer.
    pub(super) fn read_lease(&self) -> Duration {
        let limits = self.deps.providers.values().map(|p| p.profile().timeout);
        let longest = limits.max().unwrap_or_default().saturating_mul(2);
        READ_TIME.saturating_add(longest).saturating_add(MARGIN)
    }
}

/// For what the ledger itself takes.
const MARGIN: Duration = Duration::from_secs(30);

/// What one look brought.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    /// The row as it stands now.
    pub row: OperationRow,
    /// Something was written.
    pub news: bool,
}

/// Looks and lists at one provider for as long as it runs: another that hangs holds up nothing here (L5), and
/// a list without an end holds up no look.
pub(super) async fn keep(shared: &Shared, provider: &ProviderName) {
    let deps = &shared.deps;
    let mut list_at = deps.clock.now();
    loop {
        let looked = match look_at_next(shared, provider).await {
            Ok(looked) => looked.is_some(),
            Err(error) => {
                tracing::warn!(%provider, %error, "the reconciler has to wait");
                false
            }
        };
        let lists = deps.clock.now() >= list_at;
        if lists && !list_on(shared, provider).await {
            list_at = later(deps.clock.now(), LIST_EVERY);
        }
        if looked || lists {
            pace(shared).await;
        } else {
            deps.clock.sleep(deps.config.poll.saturating_mul(5)).await;
        }
    }
}

/// Lists a little; whether there is more to list now.
async fn list_on(shared: &Shared, provider: &ProviderName) -> bool {
    match listing::turn(shared, provider, LIST_TURN).await {
        Ok(Some(Ok(turn))) => !turn.ended,
        Ok(Some(Err(_)) | None) => false,
        Err(error) => {
            tracing::warn!(%provider, %error, "missed events could not be recovered");
            false
        }
    }
}

/// Leaves half of the read budget to people.
async fn pace(shared: &Shared) {
    let slowest = shared.deps.terms.values().map(|t| t.profile.read_rate);
    let step = slowest.map(|rate| rate.per.checked_div(rate.count).unwrap_or(rate.per));
    let step = step.max().unwrap_or_default();
    shared.deps.clock.sleep(step.saturating_mul(2)).await;
}

/// Looks at the provider's row that is due first, if one is.
async fn look_at_next(
    shared: &Shared,
    provider: &ProviderName,
) -> Result<Option<Looks>, LedgerError> {
    let recovery = shared.deps.ledger.recovery();
    match recovery
        .take_watched(Some(provider), shared.read_lease())
        .await?
    {
        Some(watched) => look_at(shared, watched).await.map(Some),
        None => Ok(None),
    }
}

/// What came of a look, or why there was none.
pub(super) type Looks = Result<Looked, String>;

/// Looks at a row, and writes when it is looked at next.
pub(super) async fn look_at(shared: &Shared, watched: Watched) -> Result<Looks, LedgerError> {
    let (id, by) = (&watched.operation, &Actor::Reconciler);
    let seen = match provider_of(shared, id).await? {
        Ok(provider) => look(shared, id, by, &shared.looks(&provider, READ_TIME)).await?,
        Err(why) => Err(why),
    };
    let now = shared.now();
    let (looks, next_at) = match &seen {
        Ok(looked) => {
            let looks = watched.looks.saturating_add(1);
            let terms = shared.deps.terms.get(&looked.row.tool);
            let next = terms.map(|t| next_look(&looked.row, looks, &t.profile, now));
            (looks, next.unwrap_or(Some(later(now, NOT_HERE))))
        }
        Err(why) => {
            tracing::info!(operation = %watched.operation, %why, "not looked at");
            (watched.looks, Some(later(now, UNANSWERED)))
        }
    };
    let watched = Watched { looks, ..watched };
    let recovery = shared.deps.ledger.recovery();
    recovery.watched_until(&watched, next_at).await?;
    Ok(seen)
}

async fn provider_of(
    shared: &Shared,
    id: &OperationId,
) -> Result<Result<ProviderName, String>, LedgerError> {
    let row = shared
        .deps
        .ledger
        .rows(std::slice::from_ref(id))
        .await?
        .pop();
    let gone = || format!("there is no operation {id}");
    Ok(row.map(|row| row.provider).ok_or_else(gone))
}

/// One look at a row: all refunds of its payment, and its own object where the list does not show it.
/// `Err` says why there was none.
pub(super) async fn look(
    shared: &Shared,
    id: &OperationId,
    by: &Actor,
    reads: &Reads,
) -> Result<Looks, LedgerError> {
    let ledger = &shared.deps.ledger;
    let Some(row) = ledger.rows(std::slice::from_ref(id)).await?.pop() else {
        return Ok(Err(format!("there is no operation {id}")));
    };
    let Some(provider) = shared.deps.providers.get(&row.provider) else {
        return Ok(Err(format!("provider {} is not configured", row.provider)));
    };
    // The answers of another account would prove nothing (I17).
    if let Err(error) = shared.bind(provider, reads).await {
        return Ok(Err(error.to_string()));
    }
    let seen = provider.lookup(&row, reads).await;
    let unanswered = match &seen {
        Lookup::Unreachable { why } => Some(why.to_string()),
        Lookup::Listed { .. } | Lookup::One { .. } => None,
    };
    let hidden = row.provider_ref.as_ref().filter(|id| !shows(&seen, id));
    let own = match hidden.filter(|_| unanswered.is_none()) {
        Some(id) => fetch(shared, provider, id, reads).await?.ok().flatten(),
        None => None,
    };
    let mut news = observe(shared, id, by, seen).await?;
    if let Some(object) = own {
        let one = Lookup::One {
            object,
            taken: false,
        };
        news |= observe(shared, id, by, one).await?;
    }
    if let Some(why) = unanswered {
        return Ok(Err(why));
    }
    let row = ledger.rows(std::slice::from_ref(id)).await?.pop();
    let gone = || format!("operation {id} is gone");
    Ok(row.map(|row| Looked { row, news }).ok_or_else(gone))
}

fn shows(seen: &Lookup, id: &ProviderRef) -> bool {
    match seen {
        Lookup::Listed { objects, .. } => objects.iter().any(|(o, _)| o.id == *id),
        Lookup::One { object, .. } => object.id == *id,
        Lookup::Unreachable { .. } => false,
    }
}

/// Gives evidence to the row's rules; whether anything was written.
async fn observe(
    shared: &Shared,
    id: &OperationId,
    by: &Actor,
    seen: Lookup,
) -> Result<bool, LedgerError> {
    let observed = Observed {
        source: Source::Reconciler,
        actor: by.clone(),
        seen,
    };
    match shared
        .deps
        .ledger
        .apply(id, Event::Observed(observed))
        .await?
    {
        Ok(_) => Ok(true),
        Err(Refusal::NothingNew) => Ok(false),
        Err(refusal) => Err(LedgerError::Unreachable(refusal.to_string())),
    }
}

/// One object by its id, within the budget. `Err` says why it could not be read.
pub(super) async fn fetch(
    shared: &Shared,
    provider: &SharedProvider,
    id: &ProviderRef,
    reads: &Reads,
) -> Result<Result<Option<ProviderObject>, String>, LedgerError> {
    if let Err(error) = shared.bind(provider, reads).await {
        return Ok(Err(error.to_string()));
    }
    let fetched = provider.fetch(id, reads).await;
    Ok(fetched.map_err(|e| e.to_string()))
}
