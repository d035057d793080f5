//! Working on the provider's events: whose each is, and what follows.
//!
//! Owns: that what an event shows of a refund becomes evidence, that what it only hints at is read from
//! the provider, and that nothing is lost on the way: what cannot be done now waits and is seen waiting
//! (M5). Never: closes a row itself (`domain::transition` does), or takes in what is of another mode or
//! account. Tests: `tests/webhooks/`.

use std::time::Duration;

use super::reconciler::{self, READ_TIME};
use super::worker::Shared;
use crate::domain::evidence::{self, Bearing, ProviderObject, Source};
use crate::domain::ids::{Actor, OperationId, ProviderName, ProviderRef};
use crate::domain::provider_event::{About, EventRead, ProviderEvent};
use crate::domain::since;
use crate::domain::text::SafeText;
use crate::domain::transition::{Event, Lookup, Observed, Refusal};
use crate::ledger::{EventWent, LedgerError, Stamp, StoredEvent};
use crate::provider::{Reads, SharedProvider};

/// An event whose refund the provider does not know is asked about again for so long after it came in, as long
/// as the provider itself goes on sending an event (S55); then it is set aside, in sight.
const UNKNOWN_FOR: Duration = Duration::from_hours(3 * 24);
/// What failed is tried again after so long, doubled each time, up to the second.
const FIRST_RETRY: Duration = Duration::from_secs(10);
const LAST_RETRY: Duration = Duration::from_hours(1);

/// Works on one provider's events as they come, for as long as it runs: another that hangs holds up none of
/// them (L5).
pub(super) async fn keep(shared: &Shared, provider: &ProviderName) {
    let mut changes = shared.deps.ledger.changed();
    loop {
        changes.mark_unchanged();
        if let Err(error) = work_off(shared, Some(provider), Most::ALL).await {
            tracing::warn!(%error, "the provider's events have to wait");
            shared.deps.clock.sleep(shared.deps.config.poll).await;
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = shared.deps.clock.sleep(shared.deps.config.poll) => {}
        }
    }
}

/// How many events are worked on at a stretch, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub events: u64,
    pub time: Duration,
}

impl Most {
    pub const ALL: Self = Self {
        events: u64::MAX,
        time: Duration::MAX,
    };
}

/// Works on what is due, of this provider or of any, as long as it may; answers how many that were.
pub(super) async fn work_off(
    shared: &Shared,
    of: Option<&ProviderName>,
    most: Most,
) -> Result<u64, LedgerError> {
    let recovery = shared.deps.ledger.recovery();
    let begun = shared.now();
    let mut done = 0_u64;
    while done < most.events
        && since(begun, shared.now()) <= most.time
        && let Some(event) = recovery.take_event(of, shared.read_lease()).await?
    {
        let went = match work_on(shared, &event).await {
            Ok(went) => went,
            Err(error) => later(&event, &error.to_string()),
        };
        tracing::info!(event = %event.id, ?went, "event");
        recovery.event_went(&event, went).await?;
        done = done.saturating_add(1);
    }
    Ok(done)
}

/// Again, and seen meanwhile.
fn later(event: &StoredEvent, why: &str) -> EventWent {
    let doublings = event.tries.saturating_sub(1).min(16);
    let wait = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(doublings));
    EventWent::Later {
        wait: wait.min(LAST_RETRY),
        why: why.into(),
    }
}

/// The event is there and its refund is not: the provider's own lists may lag behind its events.
fn not_known_yet(shared: &Shared, event: &StoredEvent) -> EventWent {
    if since(event.received_at, shared.now()) < UNKNOWN_FOR {
        later(event, "the provider does not know the refund (yet)")
    } else {
        quarantined("refund_not_known")
    }
}

fn quarantined(why: &'static str) -> EventWent {
    EventWent::Quarantined {
        why,
        operation: None,
    }
}

async fn work_on(shared: &Shared, stored: &StoredEvent) -> Result<EventWent, LedgerError> {
    let Some(provider) = shared.deps.providers.get(&stored.provider) else {
        let why = format!("provider {} is not configured", stored.provider);
        return Ok(later(stored, &why));
    };
    let event = match provider.read_event(&stored.payload) {
        EventRead::Event(event) => event,
        EventRead::Other => return Ok(EventWent::Ignored { why: "other_kind" }),
        // Stored under its own kind, so it was readable whole: it was too large to be kept so.
        EventRead::Unreadable(_) if stored.kind.as_str() != "unreadable" => {
            return Ok(quarantined("too_large"));
        }
        EventRead::Unreadable(_) => return Ok(quarantined("unreadable")),
    };
    let stamps = shared.deps.ledger.stamps().await?;
    let Some(stamp) = stamps.iter().find(|s| s.provider == stored.provider) else {
        // Nothing was ever sent from this ledger.
        return Ok(EventWent::Ignored { why: "not_ours" });
    };
    if let Some(why) = foreign(&event, stamp, provider) {
        return Ok(quarantined(why));
    }
    // All that is read for one event, within the time that it is ours.
    let reads = shared.looks(provider.name(), READ_TIME);
    match &event.about {
        About::Refund { id, object } => {
            let told = (&*event, id, object.as_deref());
            refund(shared, stored, provider, told, &reads).await
        }
        About::Charge { payment, .. } => charge(shared, stored, payment, &reads).await,
    }
}

/// Why nothing may follow from an event: another provider than the ledger was sent to, test and real money
/// mixed up, another account (I17).
fn foreign(
    event: &ProviderEvent,
    stamp: &Stamp,
    provider: &SharedProvider,
) -> Option<&'static str> {
    let account = event.account.as_ref().map(SafeText::as_str);
    if stamp.origin != provider.origin() || stamp.mode != provider.mode() {
        Some("bound_elsewhere")
    } else if event.live != (stamp.mode == "live") {
        Some("wrong_mode")
    } else if account.is_some() && account != stamp.account.as_deref() {
        Some("wrong_account")
    } else {
        None
    }
}

/// What an event shows of a refund is evidence for the rows that the refund names or may belong to.
async fn refund(
    shared: &Shared,
    stored: &StoredEvent,
    provider: &SharedProvider,
    (event, id, shown): (&ProviderEvent, &ProviderRef, Option<&ProviderObject>),
    reads: &Reads,
) -> Result<EventWent, LedgerError> {
    // An event that has no readable refund in it says which one to read.
    let (object, source) = match shown {
        Some(object) => (object.clone(), Source::Webhook),
        None => match reconciler::fetch(shared, provider, id, reads).await? {
            Ok(Some(object)) => (object, Source::Reconciler),
            Ok(None) => return Ok(not_known_yet(shared, stored)),
            Err(why) => return Ok(later(stored, &why)),
        },
    };
    let mut best = EventWent::Ignored { why: "not_ours" };
    for row in concerned(shared, provider.name(), event, &object).await? {
        let object = by_key(shared, event, &row, object.clone()).await?;
        match take_in(shared, &row, object, source).await? {
            Ok(went) if rank(&went) > rank(&best) => best = went,
            Ok(_) => {}
            Err(why) => return Ok(later(stored, &why)),
        }
    }
    Ok(best)
}

/// The rows that a refund names, or that it was seen with before; without any operation's id it may still
/// be ours, or somebody else's of the same amount.
async fn concerned(
    shared: &Shared,
    provider: &ProviderName,
    event: &ProviderEvent,
    object: &ProviderObject,
) -> Result<Vec<OperationId>, LedgerError> {
    let recovery = shared.deps.ledger.recovery();
    let (marked, key) = (object.operation.as_ref(), event.key.as_ref());
    let rows = recovery.named_by(provider, &object.id, marked, key).await?;
    match (&object.payment, marked) {
        (Some(payment), None) if rows.is_empty() => recovery.unsettled_on(provider, payment).await,
        _ => Ok(rows),
    }
}

/// How much an event came to, where it concerns several rows.
fn rank(went: &EventWent) -> u8 {
    match went {
        EventWent::Ignored { .. } => 0,
        EventWent::Processed { note: Some(_), .. } => 1,
        EventWent::Processed { note: None, .. } => 2,
        EventWent::Quarantined { .. } => 3,
        EventWent::Later { .. } => 4,
    }
}

/// A refund without our id in its metadata is ours all the same where our key made it.
async fn by_key(
    shared: &Shared,
    event: &ProviderEvent,
    row: &OperationId,
    object: ProviderObject,
) -> Result<ProviderObject, LedgerError> {
    let (None, Some(key)) = (&object.operation, &event.key) else {
        return Ok(object);
    };
    let known = shared.deps.ledger.rows(std::slice::from_ref(row)).await?;
    let made = known.iter().any(|r| r.key == *key);
    Ok(ProviderObject {
        operation: made.then(|| row.clone()),
        ..object
    })
}

/// Gives the object to the row's rules; `Err` where that has to be done later.
async fn take_in(
    shared: &Shared,
    row: &OperationId,
    object: ProviderObject,
    source: Source,
) -> Result<Result<EventWent, String>, LedgerError> {
    let ledger = &shared.deps.ledger;
    let (id, names) = (object.id.clone(), object.operation.as_ref() == Some(row));
    let observed = Observed {
        source,
        actor: Actor::Webhook,
        seen: Lookup::One {
            object,
            taken: false,
        },
    };
    let news = match ledger.apply(row, Event::Observed(observed)).await? {
        Ok(_) => true,
        Err(Refusal::NothingNew) => false,
        Err(refusal) => return Ok(Err(refusal.to_string())),
    };
    let Some(detail) = ledger.detail(row).await? else {
        return Ok(Err(format!("operation {row} is gone")));
    };
    let seen = evidence::objects(&detail.op.evidence);
    let operation = row.clone();
    Ok(Ok(match seen.get(&id).map(|(_, bearing)| *bearing) {
        Some(Bearing::Ours) => EventWent::Processed {
            operation,
            note: (!news).then_some("nothing_new"),
        },
        // It names us and is not what we asked for: somebody copied or changed something (F23).
        Some(Bearing::Ambiguous) if names => EventWent::Quarantined {
            why: "mismatch",
            operation: Some(operation),
        },
        Some(Bearing::Ambiguous) => EventWent::Processed {
            operation,
            note: Some(if news { "perhaps_ours" } else { "nothing_new" }),
        },
        None => EventWent::Ignored { why: "not_ours" },
    }))
}

/// A charge tells that something was refunded, not what (S46): rows of its payment that wait for news are
/// looked up.
async fn charge(
    shared: &Shared,
    stored: &StoredEvent,
    payment: &crate::domain::ids::PaymentId,
    reads: &Reads,
) -> Result<EventWent, LedgerError> {
    let recovery = shared.deps.ledger.recovery();
    let rows = recovery.unsettled_on(&stored.provider, payment).await?;
    let Some(first) = rows.first().cloned() else {
        return Ok(EventWent::Ignored {
            why: "nothing_open",
        });
    };
    if stored.repeats {
        let (operation, note) = (first, Some("nothing_new"));
        return Ok(EventWent::Processed { operation, note });
    }
    let mut news = false;
    for row in &rows {
        match reconciler::look(shared, row, &Actor::Webhook, reads).await? {
            Ok(looked) => news |= looked.news,
            Err(why) => return Ok(later(stored, &why)),
        }
    }
    Ok(EventWent::Processed {
        operation: first,
        note: (!news).then_some("nothing_new"),
    })
}
