//! One run over everything, for a person or a timer: `samekey reconcile --once`.
//!
//! Owns: that each unsettled and each contradicted row is looked at once, first and whatever else there is to
//! do, and that listing and working on events get bounded turns in between. Tests: `tests/reconcile/`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::events::{self, Most};
use super::reconciler::look_at;
use super::worker::Shared;
use super::{EngineDeps, fresh_id, listing};
use crate::domain::ids::{OperationId, ProviderName};
use crate::domain::operation::OperationRow;
use crate::domain::since;
use crate::domain::text::SafeText;
use crate::ledger::{LedgerError, Watched};

/// What a whole run came to: every unsettled and every contradicted row was looked at once.
#[derive(Clone, Debug, Default)]
pub struct Reconciled {
    /// Rows that were looked at, as they stand now.
    pub looked: Vec<OperationRow>,
    /// Rows that could not be looked at, and why.
    pub unanswered: Vec<(OperationId, SafeText)>,
    /// Events that were listed, those of them that nobody had brought, and those about nothing of ours.
    pub listed: u64,
    pub missed: u64,
    pub passed_over: u64,
    /// Events worked on.
    pub worked_on: u64,
    /// Why a provider's events could not be listed.
    pub troubles: Vec<(ProviderName, SafeText)>,
    /// Whose events were not listed to the end: the next run goes on from there.
    pub unfinished: Vec<ProviderName>,
}

/// How many rows are read at a time; after each lot the events have a turn.
const PAGE: u32 = 200;
/// After so many rows in a row without an answer nobody is asked any more.
const SILENT: u32 = 3;
/// Closed rows whose day has come, in one run.
const MOST_CLOSED: u32 = 1_000;
/// Pages of one provider's events in one turn, and in a whole run after the last row.
const TURN_PAGES: u32 = 10;
const LAST_PAGES: u32 = 100;
/// For so long the events have the run to themselves after the last row.
const LAST_TIME: Duration = Duration::from_mins(5);
/// Events that are worked on in one turn.
const TURN_EVENTS: Most = Most {
    events: 500,
    time: Duration::from_mins(1),
};

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
    events::work_off(&alone(deps), None, Most::ALL).await
}

/// One run over everything, whatever its schedule says: unsettled and contradicted rows, closed ones whose day
/// has come, and in turns between them missed and waiting events.
///
/// # Errors
/// A ledger that cannot be reached, or whose clock cannot be trusted.
pub async fn reconcile(deps: EngineDeps) -> Result<Reconciled, LedgerError> {
    deps.ledger.check().await?;
    let shared = alone(deps);
    let recovery = shared.deps.ledger.recovery();
    let mut done = Reconciled::default();
    let mut listings = Listings::of(&shared);
    recovery.hurry_events().await?;
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
        listings.turn(&shared, &mut done, TURN_PAGES).await?;
    }
    let mut closed = 0;
    while silent < SILENT
        && closed < MOST_CLOSED
        && let Some(watched) = recovery.take_watched(None, shared.read_lease()).await?
    {
        closed += 1;
        done.look_at(&shared, watched, &mut silent).await?;
    }
    let begun = shared.now();
    let mut pages = 0;
    loop {
        listings.turn(&shared, &mut done, TURN_PAGES).await?;
        pages += TURN_PAGES;
        let late = since(begun, shared.now()) > LAST_TIME;
        if listings.open.is_empty() || pages >= LAST_PAGES || late {
            break;
        }
    }
    done.unfinished = listings.open;
    Ok(done)
}

/// Whose events are still to be listed in this run.
struct Listings {
    open: Vec<ProviderName>,
}

impl Listings {
    fn of(shared: &Shared) -> Self {
        let open = shared.deps.providers.keys().cloned().collect();
        Self { open }
    }

    /// A little of every list, and of the work on what came in.
    async fn turn(
        &mut self,
        shared: &Shared,
        done: &mut Reconciled,
        pages: u32,
    ) -> Result<(), LedgerError> {
        for name in std::mem::take(&mut self.open) {
            match listing::turn(shared, &name, pages).await? {
                Some(Ok(turn)) => {
                    done.listed = done.listed.saturating_add(turn.listed);
                    done.missed = done.missed.saturating_add(turn.missed);
                    done.passed_over = done.passed_over.saturating_add(turn.passed_over);
                    if !turn.ended {
                        self.open.push(name);
                    }
                }
                Some(Err(why)) => done.troubles.push((name, why)),
                None => {}
            }
        }
        let worked = events::work_off(shared, None, TURN_EVENTS).await?;
        done.worked_on = done.worked_on.saturating_add(worked);
        Ok(())
    }
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
