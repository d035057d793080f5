//! How far the provider's own list of events was read, and what of a page is kept.
//!
//! Owns: the rows of `event_readings`: up to when all was listed, the span that is being listed and the event
//! it has come to, and why nothing can be listed. One page is one transaction: its events and how it goes
//! on. Never: reads a payload. Tests: `tests/reconcile/missed.rs`, `tests/reconcile/endless.rs`.

use std::sync::Arc;

use sqlx::SqliteConnection;

use super::{Inner, Tx, events, read, store};
use crate::domain::Instant;
use crate::domain::ids::{EventId, OperationId, PaymentId, ProviderName, ProviderRef};
use crate::domain::text::SafeText;
use crate::ledger::row::{Columns, micros};
use crate::ledger::{LedgerError, Names, NewEvent, Onward, PageTaken, Span, Trouble};

/// Up to when the events were listed; before the first time, the opening of the oldest row.
pub(super) async fn read_from(
    inner: &Arc<Inner>,
    provider: &ProviderName,
) -> Result<Option<Instant>, LedgerError> {
    let mut conn = read::reader(&inner.readers).await?;
    let sql = "SELECT coalesce((SELECT read_to FROM event_readings WHERE provider = ?), (
                   SELECT min(oldest) FROM (SELECT (SELECT min(created_at) FROM operations o WHERE o.status = s.value) AS oldest
                   FROM json_each('[\"open\", \"unknown\", \"succeeded\", \"failed\"]') s))) AS read_from";
    let found = sqlx::query(sql)
        .bind(provider.as_str())
        .fetch_one(&mut *conn)
        .await
        .map_err(store::failed)?;
    Columns(&found).opt("read_from", Columns::at)
}

pub(super) async fn note_reading(
    tx: &mut Tx<'_>,
    provider: &ProviderName,
    reading: Result<Instant, SafeText>,
) -> Result<(), LedgerError> {
    let (read_to, trouble) = match reading {
        Ok(read_to) => (Some(micros(read_to)), None),
        Err(why) => (None, Some(why)),
    };
    let sql =
        "INSERT INTO event_readings (provider, read_to, read_at, trouble) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (provider) DO UPDATE SET read_to = coalesce(excluded.read_to, read_to),
               read_at = excluded.read_at, trouble = excluded.trouble";
    sqlx::query(sql)
        .bind(provider.as_str())
        .bind(read_to)
        .bind(micros(tx.now))
        .bind(trouble.as_ref().map(SafeText::as_str))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

pub(super) async fn troubles(conn: &mut SqliteConnection) -> Result<Vec<Trouble>, LedgerError> {
    let sql = "SELECT provider, trouble FROM event_readings WHERE trouble IS NOT NULL ORDER BY provider LIMIT 100";
    let rows = sqlx::query(sql)
        .fetch_all(conn)
        .await
        .map_err(store::failed)?;
    let trouble = |found| {
        let c = Columns(found);
        Ok(Trouble {
            provider: c.word("provider")?,
            why: c.safe("trouble")?,
        })
    };
    rows.iter().map(trouble).collect()
}

/// The span that is being listed, or this one from now on.
pub(super) async fn span(
    tx: &mut Tx<'_>,
    provider: &ProviderName,
    from: Instant,
    to: Instant,
) -> Result<Span, LedgerError> {
    let sql = "INSERT INTO event_readings (provider, read_at, span_from, span_to) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (provider) DO UPDATE SET span_from = excluded.span_from, span_to = excluded.span_to,
               after_event = NULL WHERE span_to IS NULL";
    sqlx::query(sql)
        .bind(provider.as_str())
        .bind(micros(tx.now))
        .bind(micros(from))
        .bind(micros(to))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let sql = "SELECT span_from, span_to, after_event FROM event_readings WHERE provider = ?";
    let found = sqlx::query(sql)
        .bind(provider.as_str())
        .fetch_one(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let c = Columns(&found);
    Ok(Span {
        from: c.at("span_from")?,
        to: c.at("span_to")?,
        after: c.opt("after_event", Columns::word)?,
    })
}

/// Stores the events of one page and how the span goes on.
pub(super) async fn page(
    tx: &mut Tx<'_>,
    provider: &ProviderName,
    span: &Span,
    page: Vec<NewEvent>,
    onward: Onward,
) -> Result<PageTaken, LedgerError> {
    let mut taken = PageTaken::default();
    let read_to = read_to(tx, provider).await?;
    for event in page {
        if is_ours(tx, &event).await? {
            taken.kept += u64::from(events::accept(tx, event).await?);
        } else if event.created_at >= read_to {
            // Listings overlap: what lies before was counted then.
            taken.passed_over += 1;
        }
    }
    // A page that is read again is counted then.
    let for_good = matches!(onward, Onward::After(_) | Onward::End);
    taken.mine = go_on(tx, provider, span, onward).await?;
    if taken.mine && for_good && taken.passed_over > 0 {
        let sql = "UPDATE event_readings SET passed_over = passed_over + ? WHERE provider = ?";
        sqlx::query(sql)
            .bind(i64::try_from(taken.passed_over).unwrap_or(i64::MAX))
            .bind(provider.as_str())
            .execute(&mut *tx.conn)
            .await
            .map_err(store::failed)?;
    }
    Ok(taken)
}

async fn read_to(tx: &mut Tx<'_>, provider: &ProviderName) -> Result<Option<Instant>, LedgerError> {
    let sql = "SELECT read_to FROM event_readings WHERE provider = ?";
    let found = sqlx::query(sql)
        .bind(provider.as_str())
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let read_to = match &found {
        Some(found) => Columns(found).opt("read_to", Columns::at)?,
        None => None,
    };
    // Lists go by whole seconds: the one in which was asked was not listed (S45).
    Ok(read_to.and_then(|at| Instant::from_timestamp(at.timestamp(), 0)))
}

/// Whether an event names anything of ours, by the same marks by which it is worked on later.
async fn is_ours(tx: &mut Tx<'_>, event: &NewEvent) -> Result<bool, LedgerError> {
    let Some(Names {
        object,
        operation,
        key,
        payment,
    }) = &event.names
    else {
        return Ok(true);
    };
    sqlx::query_scalar(IS_OURS)
        .bind(event.provider.as_str())
        .bind(operation.as_ref().map(OperationId::as_str))
        .bind(key.as_ref().map(ToString::to_string))
        .bind(object.as_ref().map(ProviderRef::as_str))
        .bind(payment.as_ref().map(PaymentId::as_str))
        .fetch_one(&mut *tx.conn)
        .await
        .map_err(store::failed)
}

/// Asked for every listed event, under the writer's lock: each part is one look into an index.
pub(super) const IS_OURS: &str =
    "SELECT EXISTS (SELECT 1 FROM operations WHERE operation_id = ?2 AND provider = ?1)
        OR EXISTS (SELECT 1 FROM operations WHERE idempotency_key = ?3 AND provider = ?1)
        OR EXISTS (SELECT 1 FROM operations WHERE provider = ?1 AND provider_ref = ?4)
        OR EXISTS (SELECT 1 FROM provider_objects WHERE provider = ?1 AND provider_ref = ?4)
        OR EXISTS (SELECT 1 FROM operations WHERE provider = ?1 AND payment = ?5 AND status IN ('open', 'unknown'))";

/// Moves the span on, if nobody else has; answers that.
async fn go_on(
    tx: &mut Tx<'_>,
    provider: &ProviderName,
    span: &Span,
    onward: Onward,
) -> Result<bool, LedgerError> {
    let sql = match &onward {
        Onward::After(_) => {
            "UPDATE event_readings SET after_event = ?5, read_at = ?6, trouble = NULL
             WHERE provider = ?1 AND span_from = ?2 AND span_to = ?3 AND after_event IS ?4"
        }
        Onward::End => {
            "UPDATE event_readings SET read_to = span_to, span_from = NULL, span_to = NULL, after_event = ?5,
                 read_at = ?6, trouble = NULL
             WHERE provider = ?1 AND span_from = ?2 AND span_to = ?3 AND after_event IS ?4"
        }
        Onward::Anew => {
            "UPDATE event_readings SET span_from = NULL, span_to = NULL, after_event = ?5, read_at = ?6
             WHERE provider = ?1 AND span_from = ?2 AND span_to = ?3 AND after_event IS ?4"
        }
        Onward::Stuck(_) => {
            "UPDATE event_readings SET trouble = ?5, read_at = ?6
             WHERE provider = ?1 AND span_from = ?2 AND span_to = ?3 AND after_event IS ?4"
        }
    };
    let word = match &onward {
        Onward::After(id) => Some(id.as_str()),
        Onward::Stuck(why) => Some(*why),
        Onward::End | Onward::Anew => None,
    };
    let moved = sqlx::query(sql)
        .bind(provider.as_str())
        .bind(micros(span.from))
        .bind(micros(span.to))
        .bind(span.after.as_ref().map(EventId::as_str))
        .bind(word)
        .bind(micros(tx.now))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(moved.rows_affected() == 1)
}
