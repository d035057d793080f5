//! Counts that do not scan: kept tallies, partial indexes, and a review list counted to a cap.

use std::sync::Arc;

use sqlx::Row;

use super::read::{Horizons, reader};
use super::{Inner, review_list, store};
use crate::ledger::{Counts, LedgerError};

pub(super) const COUNTED: &str =
    "SELECT status AS what, n FROM tallies
    UNION ALL SELECT state, count(*) FROM tool_calls WHERE state IN ('queued', 'running') GROUP BY state
    UNION ALL SELECT 'in_flight', count(*) FROM attempts WHERE finished_at IS NULL";

pub(super) async fn counts(inner: &Arc<Inner>) -> Result<Counts, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let mut counts = Counts::default();
    let all = sqlx::query(COUNTED)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    for row in &all {
        let n = row.get::<i64, _>(1).unsigned_abs();
        match row.get::<&str, _>(0) {
            "open" => counts.open = n,
            "unknown" => counts.unknown = n,
            "succeeded" => counts.succeeded = n,
            "failed" => counts.failed = n,
            "queued" => counts.queued = n,
            "running" => counts.running = n,
            "in_flight" => counts.in_flight = n,
            _ => {}
        }
    }
    counts.review = review_list::count(&mut conn, Horizons::of(inner)).await?;
    Ok(counts)
}
