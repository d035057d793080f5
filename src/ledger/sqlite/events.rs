//! The provider's events: stored once, worked on by one process at a time, settled once.
//!
//! Owns: the rows of `provider_events`, and who acknowledged one. Never: reads a payload; what one means is
//! asked of the provider's adapter and of `domain`. Tests: `tests/webhooks/`.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteRow;

use super::{Inner, Tx, listings, read, store};
use crate::domain::ids::{
    EventId, OperationId, PaymentId, ProviderName, ProviderRef, ReviewerName,
};
use crate::domain::later;
use crate::domain::text::SafeText;
use crate::ledger::row::{Columns, micros};
use crate::ledger::{
    Acknowledged, EventCounts, EventLine, EventWent, LedgerError, NewEvent, NotAcknowledged,
    StoredEvent,
};

/// Most rows that one payment or object may concern (I33).
const MOST_ROWS: i64 = 100;

/// Stores it, unless its provider's id of it is known.
pub(super) async fn accept(tx: &mut Tx<'_>, event: NewEvent) -> Result<bool, LedgerError> {
    let known: Option<i64> = sqlx::query_scalar(
        "SELECT event_no FROM provider_events WHERE provider = ? AND event_id = ?",
    )
    .bind(event.provider.as_str())
    .bind(event.id.as_str())
    .fetch_optional(&mut *tx.conn)
    .await
    .map_err(store::failed)?;
    if known.is_some() {
        return Ok(false);
    }
    let source: &str = event.source.into();
    let sql = "INSERT INTO provider_events
                   (event_id, provider, type, object_id, digest, source, payload, created_at, received_at, next_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)";
    sqlx::query(sql)
        .bind(event.id.as_str())
        .bind(event.provider.as_str())
        .bind(event.kind)
        .bind(event.object.as_ref().map(SafeText::as_str))
        .bind(event.digest)
        .bind(source)
        .bind(event.payload)
        .bind(event.created_at.map(micros))
        .bind(micros(tx.now))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(true)
}

// The indexes are named: without statistics SQLite would rather go through every event of a state, for each
// event that is taken, and hold the writer's lock meanwhile.
pub(super) const IS_ANY_DUE: &str =
    "SELECT EXISTS (SELECT 1 FROM provider_events INDEXED BY provider_events_due
         WHERE state IN ('received', 'waiting') AND next_at <= ?1 AND (?2 IS NULL OR provider = ?2))";
pub(super) const TAKE: &str =
    "UPDATE provider_events SET tries = tries + 1, next_at = ?1 WHERE event_no = (
        SELECT event_no FROM provider_events INDEXED BY provider_events_due
        WHERE state IN ('received', 'waiting') AND next_at <= ?2 AND (?3 IS NULL OR provider = ?3)
        ORDER BY next_at, event_no LIMIT 1)
    RETURNING event_no, event_id, provider, type, payload, received_at, tries,
        EXISTS (SELECT 1 FROM provider_events e INDEXED BY provider_events_by_digest
                WHERE e.digest = provider_events.digest AND e.event_no <> provider_events.event_no
                AND e.provider = provider_events.provider AND e.state = 'processed') AS repeats";

pub(super) async fn is_any_due(
    inner: &Arc<Inner>,
    of: Option<ProviderName>,
) -> Result<bool, LedgerError> {
    sqlx::query_scalar(IS_ANY_DUE)
        .bind(micros(inner.clock.now()))
        .bind(of.as_ref().map(ProviderName::as_str))
        .fetch_one(&inner.readers)
        .await
        .map_err(store::failed)
}

/// The event that is due first; its try is counted, and for `lease` it is nobody else's.
pub(super) async fn take(
    tx: &mut Tx<'_>,
    of: Option<ProviderName>,
    lease: Duration,
) -> Result<Option<StoredEvent>, LedgerError> {
    let found = sqlx::query(TAKE)
        .bind(micros(later(tx.now, lease)))
        .bind(micros(tx.now))
        .bind(of.as_ref().map(ProviderName::as_str))
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let Some(found) = found else { return Ok(None) };
    let c = Columns(&found);
    Ok(Some(StoredEvent {
        number: c.int("event_no")?,
        id: c.word("event_id")?,
        provider: c.word("provider")?,
        kind: c.safe("type")?,
        payload: c.bytes("payload")?,
        received_at: c.at("received_at")?,
        repeats: c.flag("repeats")?,
        tries: c.count("tries")?,
    }))
}

/// Writes how working on it went.
pub(super) async fn went(
    tx: &mut Tx<'_>,
    event: &StoredEvent,
    went: EventWent,
) -> Result<(), LedgerError> {
    let now = micros(tx.now);
    let (state, reason, operation, next_at) = match went {
        EventWent::Processed { operation, note } => {
            ("processed", note.map(SafeText::new), Some(operation), now)
        }
        EventWent::Ignored { why } => ("ignored", Some(why.into()), None, now),
        EventWent::Quarantined { why, operation } => {
            ("quarantined", Some(why.into()), operation, now)
        }
        EventWent::Later { wait, why } => ("waiting", Some(why), None, micros(later(tx.now, wait))),
    };
    let sql = "UPDATE provider_events SET state = ?1, reason = ?2, operation_id = coalesce(operation_id, ?3), next_at = ?4,
                   settled_at = CASE WHEN ?1 = 'waiting' THEN NULL ELSE ?5 END,
                   payload = CASE WHEN ?1 = 'ignored' THEN x'' ELSE payload END
               WHERE event_no = ?6 AND tries = ?7 AND settled_at IS NULL";
    sqlx::query(sql)
        .bind(state)
        .bind(reason.as_ref().map(SafeText::as_str))
        .bind(operation.as_ref().map(OperationId::as_str))
        .bind(next_at)
        .bind(now)
        .bind(event.number)
        .bind(event.tries)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// What waits is due now.
pub(super) async fn hurry(tx: &mut Tx<'_>) -> Result<(), LedgerError> {
    let sql = "UPDATE provider_events SET next_at = ?1 WHERE state = 'waiting' AND next_at > ?1";
    sqlx::query(sql)
        .bind(micros(tx.now))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// What is kept of how many there are; nothing is counted anew.
pub(super) const COUNTED: &str = "SELECT state, n FROM event_tallies
    UNION ALL SELECT 'passed_over', sum(passed_over) FROM event_readings";

pub(super) async fn counts(inner: &Arc<Inner>) -> Result<EventCounts, LedgerError> {
    let mut conn = read::reader(&inner.readers).await?;
    let rows = sqlx::query(COUNTED)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let mut counts = EventCounts::default();
    for found in &rows {
        let c = Columns(found);
        let n = c.opt("n", Columns::int)?.unwrap_or(0);
        let n = u64::try_from(n).unwrap_or(0);
        match c.text("state")?.as_str() {
            "received" => counts.received = n,
            "waiting" => counts.waiting = n,
            "processed" => counts.processed = n,
            "ignored" => counts.ignored = n,
            "quarantined" => counts.quarantined = n,
            "acknowledged" => counts.acknowledged = n,
            _ => counts.passed_over = n,
        }
    }
    counts.troubles = listings::troubles(&mut conn).await?;
    Ok(counts)
}

/// By state, so that what needs a person is not hidden behind what only waits.
pub(super) const LINES: &str =
    "SELECT event_id, provider, type, state, reason, operation_id, received_at, tries,
        acknowledged_by, acknowledged_at, acknowledged_note
    FROM provider_events INDEXED BY provider_events_by_state
    WHERE state = ? ORDER BY received_at DESC LIMIT ?";

pub(super) async fn lines(inner: &Arc<Inner>, limit: u32) -> Result<Vec<EventLine>, LedgerError> {
    let mut conn = read::reader(&inner.readers).await?;
    let mut all = Vec::new();
    for state in ["quarantined", "waiting", "acknowledged"] {
        let rows = sqlx::query(LINES)
            .bind(state)
            .bind(limit)
            .fetch_all(&mut *conn)
            .await
            .map_err(store::failed)?;
        for found in &rows {
            all.push(line(found)?);
        }
    }
    Ok(all)
}

fn line(found: &SqliteRow) -> Result<EventLine, LedgerError> {
    let c = Columns(found);
    let at = c.opt("acknowledged_at", Columns::at)?;
    let acknowledged = match at {
        Some(at) => Some(Acknowledged {
            by: c.safe("acknowledged_by")?,
            at,
            note: c.safe("acknowledged_note")?,
        }),
        None => None,
    };
    Ok(EventLine {
        id: c.word("event_id")?,
        provider: c.word("provider")?,
        kind: c.safe("type")?,
        state: c.safe("state")?,
        reason: c.opt("reason", Columns::safe)?,
        operation: c.opt("operation_id", Columns::word)?,
        received_at: c.at("received_at")?,
        tries: c.count("tries")?,
        acknowledged,
    })
}

/// Notes who has seen a quarantined event.
pub(super) async fn acknowledge(
    tx: &mut Tx<'_>,
    id: &EventId,
    of: Option<&ProviderName>,
    (by, note): (&ReviewerName, &SafeText),
) -> Result<Result<(), NotAcknowledged>, LedgerError> {
    let sql = "SELECT event_no, provider, state, acknowledged_by FROM provider_events
               WHERE event_id = ?1 AND (?2 IS NULL OR provider = ?2) ORDER BY provider LIMIT 10";
    let rows = sqlx::query(sql)
        .bind(id.as_str())
        .bind(of.map(ProviderName::as_str))
        .fetch_all(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let found = match rows.as_slice() {
        [] => return Ok(Err(NotAcknowledged::NoSuchEvent)),
        [one] => Columns(one),
        several => {
            let names = several.iter().map(|r| Columns(r).text("provider"));
            let names: Result<Vec<String>, _> = names.collect();
            return Ok(Err(NotAcknowledged::Several(names?.join(" and "))));
        }
    };
    match found.text("state")?.as_str() {
        "quarantined" => {}
        "acknowledged" => {
            let who = found.safe("acknowledged_by")?;
            return Ok(Err(NotAcknowledged::Already(who)));
        }
        _ => return Ok(Err(NotAcknowledged::NotQuarantined(found.safe("state")?))),
    }
    let sql = "UPDATE provider_events SET state = 'acknowledged', acknowledged_by = ?1, acknowledged_user = ?2,
                   acknowledged_at = ?3, acknowledged_note = ?4 WHERE event_no = ?5";
    sqlx::query(sql)
        .bind(by.as_str())
        .bind(tx.os_user)
        .bind(micros(tx.now))
        .bind(note.as_str())
        .bind(found.int("event_no")?)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(Ok(()))
}

fn ids(rows: &[SqliteRow]) -> Result<Vec<OperationId>, LedgerError> {
    let word = |found| Columns(found).word("operation_id");
    rows.iter().map(word).collect()
}

pub(super) async fn named_by(
    inner: &Arc<Inner>,
    provider: &ProviderName,
    object: &ProviderRef,
    (operation, key): (Option<OperationId>, Option<String>),
) -> Result<Vec<OperationId>, LedgerError> {
    let sql = "SELECT operation_id FROM operations WHERE operation_id = ?1 AND provider = ?3
               UNION SELECT operation_id FROM operations WHERE idempotency_key = ?2 AND provider = ?3
               UNION SELECT operation_id FROM operations WHERE provider = ?3 AND provider_ref = ?4
               UNION SELECT operation_id FROM provider_objects WHERE provider = ?3 AND provider_ref = ?4
               LIMIT ?5";
    let rows = sqlx::query(sql)
        .bind(operation.as_ref().map(OperationId::as_str))
        .bind(key)
        .bind(provider.as_str())
        .bind(object.as_str())
        .bind(MOST_ROWS)
        .fetch_all(&inner.readers)
        .await
        .map_err(store::failed)?;
    ids(&rows)
}

pub(super) async fn unsettled_on(
    inner: &Arc<Inner>,
    provider: &ProviderName,
    payment: &PaymentId,
) -> Result<Vec<OperationId>, LedgerError> {
    let sql = "SELECT operation_id FROM operations WHERE provider = ? AND payment = ?
               AND status IN ('open', 'unknown') ORDER BY created_at LIMIT ?";
    let rows = sqlx::query(sql)
        .bind(provider.as_str())
        .bind(payment.as_str())
        .bind(MOST_ROWS)
        .fetch_all(&inner.readers)
        .await
        .map_err(store::failed)?;
    ids(&rows)
}
