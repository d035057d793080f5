//! The events that no webhook brought, from the provider's own list (S47), page by page.
//!
//! Owns: that a listing goes on where the last one ended, with an overlap (S45), that it is bounded and gives
//! way, however long the list is: where it has come to is saved with each page. Never: works on an event, or
//! keeps one that names nothing of ours (it is counted). Tests: `tests/reconcile/missed.rs`, `endless.rs`.

use std::time::Duration;

use super::worker::Shared;
use crate::domain::ids::ProviderName;
use crate::domain::text::SafeText;
use crate::domain::{Instant, earlier, since};
use crate::ledger::{EventSource, LedgerError, NewEvent, Onward, PageTaken, Span, Stamp};
use crate::provider::{NextPage, SharedProvider};

/// Listings overlap: an event may show up a little later than its second says (S45).
const OVERLAP: Duration = Duration::from_mins(10);
/// So far back the provider lists events (S47), less a margin.
const LISTED_FOR: Duration = Duration::from_hours(30 * 24 - 1);
/// The last page of one turn is asked for within this time.
const TURN_TIME: Duration = Duration::from_mins(1);

/// What one turn at the list of one provider brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    pub listed: u64,
    /// Those that were not known, and were kept.
    pub missed: u64,
    /// Those that name nothing of ours.
    pub passed_over: u64,
    /// Pages that were read.
    pub pages: u32,
    /// The list was read to its end.
    pub ended: bool,
}

/// Reads at most so many pages of a provider's events. `None`: nothing was ever sent there. `Err` says why they
/// cannot be listed, and so does the ledger from now on, until they can.
pub(super) async fn turn(
    shared: &Shared,
    name: &ProviderName,
    pages: u32,
) -> Result<Option<Result<Turn, SafeText>>, LedgerError> {
    let stamps = shared.deps.ledger.stamps().await?;
    let known = stamps.iter().any(|s: &Stamp| s.provider == *name);
    let Some(provider) = shared.deps.providers.get(name).filter(|_| known) else {
        return Ok(None);
    };
    let read = read_on(shared, provider, pages).await?;
    if let Err(why) = &read {
        let recovery = shared.deps.ledger.recovery();
        recovery.events_read(name, Err(why.clone())).await?;
        tracing::warn!(provider = %name, %why, "its events could not be listed");
    }
    Ok(Some(read))
}

async fn read_on(
    shared: &Shared,
    provider: &SharedProvider,
    pages: u32,
) -> Result<Result<Turn, SafeText>, LedgerError> {
    let mut turn = Turn::default();
    let Some(mut span) = span(shared, provider).await? else {
        turn.ended = true;
        return Ok(Ok(turn));
    };
    let reads = shared.looks(provider.name(), TURN_TIME);
    if let Err(error) = shared.bind(provider, &reads).await {
        return Ok(Err(error.to_string().into()));
    }
    // What is noted by a wrong clock would leave out, later, what happened meanwhile.
    if shared.deps.ledger.clock_alarm().await? {
        return Ok(Err("the clock cannot be trusted".into()));
    }
    while turn.pages < pages {
        match reads.prepay(TURN_TIME).await {
            Ok(Ok(())) => {}
            // The next turn goes on from here.
            Ok(Err(_)) => return Ok(Ok(turn)),
            Err(why) => return Ok(Err(why)),
        }
        // The second in which we ask is not over: it is listed next time, whole.
        let asked = provider.events((span.from, span.to), span.after.as_ref(), &reads);
        let page = match asked.await {
            Ok(page) => page,
            Err(error) => return Ok(Err(error.0)),
        };
        let onward = onward(&page.next);
        let taken = store(shared, provider, &span, &page.events, onward).await?;
        turn.pages = turn.pages.saturating_add(1);
        turn.listed = turn.listed.saturating_add(page.events.len() as u64);
        turn.missed = turn.missed.saturating_add(taken.kept);
        turn.passed_over = turn.passed_over.saturating_add(taken.passed_over);
        match page.next {
            NextPage::After(id) if taken.mine => span.after = Some(id),
            NextPage::End if taken.mine => {
                turn.ended = true;
                return Ok(Ok(turn));
            }
            NextPage::Lost(why) => return Ok(Err(why.into())),
            // Somebody else lists it too, or it has to begin anew.
            NextPage::After(_) | NextPage::End | NextPage::Anew => return Ok(Ok(turn)),
        }
    }
    Ok(Ok(turn))
}

fn onward(next: &NextPage) -> Onward {
    match next {
        NextPage::After(id) => Onward::After(id.clone()),
        NextPage::End => Onward::End,
        NextPage::Anew => Onward::Anew,
        NextPage::Lost(why) => Onward::Stuck(why),
    }
}

/// The span that is being listed, or the next one, up to now.
async fn span(shared: &Shared, provider: &SharedProvider) -> Result<Option<Span>, LedgerError> {
    let recovery = shared.deps.ledger.recovery();
    let Some(from) = recovery.events_from(provider.name()).await? else {
        return Ok(None);
    };
    let to = shared.now();
    let oldest = earlier(to, LISTED_FOR);
    let from: Instant = earlier(from, OVERLAP).max(oldest);
    let span = recovery.span(provider.name(), from, to).await?;
    if since(span.to, to) < LISTED_FOR {
        return Ok(Some(span));
    }
    // The provider has forgotten all of it by now.
    let name = provider.name();
    recovery
        .page_listed(name, &span, Vec::new(), Onward::Anew)
        .await?;
    recovery.span(name, from, to).await.map(Some)
}

async fn store(
    shared: &Shared,
    provider: &SharedProvider,
    span: &Span,
    payloads: &[Vec<u8>],
    onward: Onward,
) -> Result<PageTaken, LedgerError> {
    let event = |payload: &Vec<u8>| {
        let read = provider.read_event(payload);
        let kept = provider.storable(payload);
        NewEvent::of(provider.name(), EventSource::Listing, &read, &kept)
    };
    let events = payloads.iter().filter_map(event).collect();
    let recovery = shared.deps.ledger.recovery();
    recovery
        .page_listed(provider.name(), span, events, onward)
        .await
}
