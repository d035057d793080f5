//! The reconciler: brings the truth back where nobody asked for it.
//!
//! Owns: looks at unknown, pending and driverless rows on a growing schedule, and at closed ones for thirty
//! days (M6); the events that no webhook brought (S47); and that all of it stays within the read budget,
//! of which people's own lookups always get their part. Never: sends anything but reads, closes a row itself
//! or fails one by time (I16): `domain::transition` closes on `confirmed`, follows our own pending object,
//! flags what contradicts. Tests: `tests/reconcile/`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::worker::Shared;
use super::{EngineDeps, events, fresh_id};
use crate::domain::evidence::{ProviderObject, Source};
use crate::domain::ids::{Actor, OperationId, ProviderName, ProviderRef};
use crate::domain::operation::OperationRow;
use crate::domain::text::SafeText;
use crate::domain::transition::{Event, Lookup, Observed, Refusal};
use crate::domain::watch::next_look;
use crate::domain::{Instant, earlier, later};
use crate::ledger::{EventSource, LedgerError, NewEvent, Stamp, Watched};
use crate::provider::SharedProvider;

/// For so long a row is looked at by nobody else: longer than a lookup of many pages takes.
const LEASE: Duration = Duration::from_mins(5);
/// A row whose provider did not answer is looked at again after so long; it does not count as a look.
const UNANSWERED: Duration = Duration::from_mins(5);
/// A row of a provider that is not configured here.
const NOT_HERE: Duration = Duration::from_hours(1);
/// How often the provider's own list of events is read.
const LIST_EVERY: Duration = Duration::from_mins(5);
/// Listings overlap: an event may show up a little later than its second says (S45).
const OVERLAP: Duration = Duration::from_mins(10);
/// So far back the provider lists events (S47), less a margin.
const LISTED_FOR: Duration = Duration::from_hours(30 * 24 - 1);
/// Listings of one run: spans that turn out too long are halved.
const MOST_LISTINGS: u32 = 64;
/// Longest wait for one read of the budget.
const LONGEST_READ_WAIT: Duration = Duration::from_mins(1);

/// What one look brought.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    /// The row as it stands now.
    pub row: OperationRow,
    /// Something was written.
    pub news: bool,
}

/// What listing the missed events of one provider brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recovered {
    pub listed: u64,
    /// Those that were not known.
    pub missed: u64,
}

/// Looks and lists at one provider for as long as it runs: another that hangs holds up nothing here (L5).
pub(super) async fn keep(shared: &Shared, provider: &ProviderName) {
    let deps = &shared.deps;
    let idle = || deps.clock.sleep(deps.config.poll.saturating_mul(5));
    let mut list_at = deps.clock.now();
    loop {
        if deps.clock.now() >= list_at {
            if let Err(error) = recover_all(shared, Some(provider)).await {
                tracing::warn!(%provider, %error, "missed events could not be recovered");
            }
            list_at = later(deps.clock.now(), LIST_EVERY);
        }
        match look_at_next(shared, provider).await {
            Ok(Some(_)) => pace(shared).await,
            Ok(None) => idle().await,
            Err(error) => {
                tracing::warn!(%provider, %error, "the reconciler has to wait");
                idle().await;
            }
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
    match recovery.take_watched(Some(provider), LEASE).await? {
        Some(watched) => look_at(shared, watched).await.map(Some),
        None => Ok(None),
    }
}

/// What came of a look, or why there was none.
type Looks = Result<Looked, String>;

/// Looks at a row, and writes when it is looked at next.
async fn look_at(shared: &Shared, watched: Watched) -> Result<Looks, LedgerError> {
    let seen = look(shared, &watched.operation, &Actor::Reconciler).await?;
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

/// One look at a row: all refunds of its payment, and its own object where the list does not show it.
/// `Err` says why there was none.
pub(super) async fn look(
    shared: &Shared,
    id: &OperationId,
    by: &Actor,
) -> Result<Looks, LedgerError> {
    let ledger = &shared.deps.ledger;
    let Some(row) = ledger.rows(std::slice::from_ref(id)).await?.pop() else {
        return Ok(Err(format!("there is no operation {id}")));
    };
    let Some(provider) = shared.deps.providers.get(&row.provider) else {
        return Ok(Err(format!("provider {} is not configured", row.provider)));
    };
    // The answers of another account would prove nothing (I17).
    if let Err(error) = shared.bind(provider).await {
        return Ok(Err(error.to_string()));
    }
    if let Err(why) = read_token(shared, &row.provider).await? {
        return Ok(Err(why));
    }
    let seen = provider.lookup(&row).await;
    let unanswered = match &seen {
        Lookup::Unreachable { why } => Some(why.to_string()),
        Lookup::Listed { .. } | Lookup::One { .. } => None,
    };
    let hidden = row.provider_ref.as_ref().filter(|id| !shows(&seen, id));
    let own = match hidden.filter(|_| unanswered.is_none()) {
        Some(id) => fetch(shared, provider, id).await?.ok().flatten(),
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
) -> Result<Result<Option<ProviderObject>, String>, LedgerError> {
    if let Err(error) = shared.bind(provider).await {
        return Ok(Err(error.to_string()));
    }
    if let Err(why) = read_token(shared, provider.name()).await? {
        return Ok(Err(why));
    }
    Ok(provider.fetch(id).await.map_err(|e| e.to_string()))
}

/// One read of the provider's budget, waited for.
async fn read_token(
    shared: &Shared,
    provider: &ProviderName,
) -> Result<Result<(), String>, LedgerError> {
    let give_up = later(shared.now(), LONGEST_READ_WAIT);
    loop {
        match shared.deps.ledger.take_read(provider).await? {
            Ok(()) => return Ok(Ok(())),
            Err(wait) if later(shared.now(), wait) > give_up => {
                return Ok(Err("the read budget is used up".to_owned()));
            }
            Err(wait) => shared.deps.clock.sleep(wait).await,
        }
    }
}

/// Lists the missed events of this provider, or of every one that anything was sent to.
async fn recover_all(
    shared: &Shared,
    of: Option<&ProviderName>,
) -> Result<BTreeMap<ProviderName, Result<Recovered, SafeText>>, LedgerError> {
    let stamps = shared.deps.ledger.stamps().await?;
    let mut all = BTreeMap::new();
    let wanted = |s: &Stamp| of.is_none_or(|of| *of == s.provider);
    for stamp in stamps.into_iter().filter(wanted) {
        if let Some(provider) = shared.deps.providers.get(&stamp.provider) {
            let done = recover(shared, provider).await?;
            if let Err(why) = &done {
                let recovery = shared.deps.ledger.recovery();
                recovery
                    .events_read(&stamp.provider, Err(why.clone()))
                    .await?;
                tracing::warn!(provider = %stamp.provider, %why, "its events could not be listed");
            }
            all.insert(stamp.provider, done);
        }
    }
    Ok(all)
}

/// Lists one provider's events from where the last listing ended, and stores what no webhook brought.
/// `Err` says why they could not be listed to the end.
async fn recover(
    shared: &Shared,
    provider: &SharedProvider,
) -> Result<Result<Recovered, SafeText>, LedgerError> {
    let recovery = shared.deps.ledger.recovery();
    let Some(from) = recovery.events_from(provider.name()).await? else {
        return Ok(Ok(Recovered::default()));
    };
    if let Err(error) = shared.bind(provider).await {
        return Ok(Err(error.to_string().into()));
    }
    let end = shared.now();
    // What is noted by a wrong clock would leave out, later, what happened meanwhile.
    if shared.deps.ledger.clock_alarm().await? {
        return Ok(Err("the clock cannot be trusted".into()));
    }
    let mut from = earlier(from, OVERLAP).max(earlier(end, LISTED_FOR));
    let mut to = end;
    let mut all = Recovered::default();
    for _ in 0..MOST_LISTINGS {
        if let Err(why) = read_token(shared, provider.name()).await? {
            return Ok(Err(why.into()));
        }
        // The second in which we ask is not over: it is listed next time, whole.
        let list = match provider.events(from, to).await {
            Ok(list) => list,
            Err(error) => return Ok(Err(error.0)),
        };
        for payload in &list.events {
            all.listed = all.listed.saturating_add(1);
            if store(shared, provider, payload).await? {
                all.missed = all.missed.saturating_add(1);
            }
        }
        if list.complete {
            recovery.events_read(provider.name(), Ok(to)).await?;
            if to >= end {
                return Ok(Ok(all));
            }
            (from, to) = (to, end);
        } else {
            match halved(from, to) {
                Some(middle) => to = middle,
                None => return Ok(Err("too many events within a minute".into())),
            }
        }
    }
    Ok(Err("there are too many events for one run".into()))
}

/// The middle of a span that was too long to be listed, unless it is as good as a moment.
fn halved(from: Instant, to: Instant) -> Option<Instant> {
    let half = crate::domain::since(from, to).checked_div(2)?;
    (half > Duration::from_secs(30)).then(|| later(from, half))
}

async fn store(
    shared: &Shared,
    provider: &SharedProvider,
    payload: &[u8],
) -> Result<bool, LedgerError> {
    let read = provider.read_event(payload);
    let kept = provider.storable(payload);
    let event = NewEvent::of(provider.name(), EventSource::Listing, &read, &kept);
    match event {
        Some(event) => shared.deps.ledger.recovery().accept_event(event).await,
        None => Ok(false),
    }
}

/// What a whole run came to: every unsettled and every contradicted row was looked at once.
#[derive(Clone, Debug, Default)]
pub struct Reconciled {
    /// Rows that were looked at, as they stand now.
    pub looked: Vec<OperationRow>,
    /// Rows that could not be looked at, and why.
    pub unanswered: Vec<(OperationId, SafeText)>,
    /// Events that were listed, and those of them that nobody had brought.
    pub listed: u64,
    pub missed: u64,
    /// Events worked on.
    pub worked_on: u64,
    /// Why a provider's events could not be listed.
    pub troubles: Vec<(ProviderName, SafeText)>,
}

/// How many rows are read at a time.
const PAGE: u32 = 200;
/// After so many rows in a row without an answer nobody is asked any more.
const SILENT: u32 = 3;

fn alone(deps: EngineDeps) -> Shared {
    // Nobody stops it but whoever drops the run.
    let (_stop, stopping) = watch::channel(false);
    let engine = fresh_id(&deps.lots);
    Shared::new(deps, engine, Arc::new(Semaphore::new(1)), stopping)
}

/// Works on the provider's events that are due, and nothing else; answers how many.
///
/// # Errors
/// A ledger that cannot be reached.
pub async fn work_off_events(deps: EngineDeps) -> Result<u64, LedgerError> {
    deps.ledger.check().await?;
    events::work_off(&alone(deps), None).await
}

/// One run over everything, whatever its schedule says: missed events, waiting events, unsettled and
/// contradicted rows, and closed ones whose day has come.
///
/// # Errors
/// A ledger that cannot be reached, or whose clock cannot be trusted.
pub async fn reconcile(deps: EngineDeps) -> Result<Reconciled, LedgerError> {
    deps.ledger.check().await?;
    let shared = alone(deps);
    let recovery = shared.deps.ledger.recovery();
    let mut done = Reconciled::default();
    for (provider, recovered) in recover_all(&shared, None).await? {
        match recovered {
            Ok(of) => {
                done.listed = done.listed.saturating_add(of.listed);
                done.missed = done.missed.saturating_add(of.missed);
            }
            Err(why) => done.troubles.push((provider, why)),
        }
    }
    recovery.hurry_events().await?;
    done.worked_on = events::work_off(&shared, None).await?;
    let (mut after, mut silent) = (None, 0);
    loop {
        let page = recovery.unsettled(after.as_ref(), PAGE).await?;
        let Some(last) = page.last().map(|w| w.operation.clone()) else {
            break;
        };
        for watched in page {
            done.look_at(&shared, watched, &mut silent).await?;
        }
        after = Some(last);
    }
    while silent < SILENT
        && let Some(watched) = recovery.take_watched(None, LEASE).await?
    {
        done.look_at(&shared, watched, &mut silent).await?;
    }
    Ok(done)
}

impl Reconciled {
    async fn look_at(
        &mut self,
        shared: &Shared,
        watched: Watched,
        silent: &mut u32,
    ) -> Result<(), LedgerError> {
        let id = watched.operation.clone();
        let looks = if *silent < SILENT {
            look_at(shared, watched).await?
        } else {
            Err("not asked: the provider does not answer".to_owned())
        };
        match looks {
            Ok(looked) => {
                *silent = 0;
                self.looked.push(looked.row);
            }
            Err(why) => {
                *silent = silent.saturating_add(1);
                self.unanswered.push((id, why.into()));
            }
        }
        Ok(())
    }
}
