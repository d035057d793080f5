//! The rows that are looked after, and when. Triggers enrol them; here one is taken, and put back for
//! later or for good. Tests: `tests/reconcile/`.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteRow;

use super::{Inner, Tx, read, store};
use crate::domain::ids::{OperationId, ProviderName};
use crate::domain::{Instant, later};
use crate::ledger::row::{Columns, micros};
use crate::ledger::{LedgerError, Watched};

/// The first row that is due and that no call drives, of the most urgent kind there is: at each provider and
/// urgency one look into the index, however many are due.
pub(super) const DUE: &str = "WITH RECURSIVE whose (name) AS (
        SELECT coalesce(?2, (SELECT min(provider) FROM watched))
        UNION ALL SELECT (SELECT min(provider) FROM watched WHERE provider > whose.name) FROM whose
        WHERE whose.name IS NOT NULL AND ?2 IS NULL)
    SELECT id FROM (SELECT j.value AS urgency, (
            SELECT w.operation_id FROM watched w INDEXED BY watched_due
            WHERE w.provider = whose.name AND w.urgency = j.value AND w.next_at <= ?1
            AND NOT EXISTS (SELECT 1 FROM drives d WHERE d.operation_id = w.operation_id AND d.until > ?1)
            ORDER BY w.next_at LIMIT 1) AS id
        FROM whose, json_each('[0, 1, 2]') j)
    WHERE id IS NOT NULL
    ORDER BY urgency, (SELECT next_at FROM watched w WHERE w.operation_id = id) LIMIT 1";

pub(super) async fn is_any_due(
    inner: &Arc<Inner>,
    of: Option<ProviderName>,
) -> Result<bool, LedgerError> {
    let found: Option<String> = sqlx::query_scalar(DUE)
        .bind(micros(inner.clock.now()))
        .bind(of.as_ref().map(ProviderName::as_str))
        .fetch_optional(&inner.readers)
        .await
        .map_err(store::failed)?;
    Ok(found.is_some())
}

pub(super) async fn take(
    tx: &mut Tx<'_>,
    of: Option<ProviderName>,
    lease: Duration,
) -> Result<Option<Watched>, LedgerError> {
    let due: Option<String> = sqlx::query_scalar(DUE)
        .bind(micros(tx.now))
        .bind(of.as_ref().map(ProviderName::as_str))
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let sql = "UPDATE watched SET next_at = ? WHERE operation_id = ? RETURNING operation_id, looks";
    let found = sqlx::query(sql)
        .bind(micros(later(tx.now, lease)))
        .bind(due)
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    found.as_ref().map(watched).transpose()
}

fn watched(found: &SqliteRow) -> Result<Watched, LedgerError> {
    let c = Columns(found);
    Ok(Watched {
        operation: c.word("operation_id")?,
        looks: c.count("looks")?,
    })
}

pub(super) async fn until(
    tx: &mut Tx<'_>,
    watched: &Watched,
    next_at: Option<Instant>,
) -> Result<(), LedgerError> {
    let sql = match next_at {
        Some(_) => "UPDATE watched SET looks = ?1, next_at = ?2 WHERE operation_id = ?3",
        None => "DELETE FROM watched WHERE looks <= ?1 AND ?2 IS NULL AND operation_id = ?3",
    };
    sqlx::query(sql)
        .bind(watched.looks)
        .bind(next_at.map(micros))
        .bind(watched.operation.as_str())
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

pub(super) const UNSETTLED: &str = "SELECT operation_id, coalesce(
        (SELECT looks FROM watched w WHERE w.operation_id = u.operation_id), 0) AS looks FROM (
        SELECT operation_id FROM operations WHERE status = 'unknown'
        UNION SELECT operation_id FROM operations WHERE contradicted IS NOT NULL
        UNION SELECT operation_id FROM operations o WHERE status = 'open' AND (attempts > 0 OR provider_ref IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM drives d WHERE d.operation_id = o.operation_id AND d.until > ?1)) u
    WHERE operation_id > ?2 ORDER BY operation_id LIMIT ?3";

pub(super) async fn unsettled(
    inner: &Arc<Inner>,
    after: Option<OperationId>,
    limit: u32,
) -> Result<Vec<Watched>, LedgerError> {
    let mut conn = read::reader(&inner.readers).await?;
    let after = after.as_ref().map_or("", OperationId::as_str);
    let rows = sqlx::query(UNSETTLED)
        .bind(micros(inner.clock.now()))
        .bind(after)
        .bind(limit)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    rows.iter().map(watched).collect()
}
