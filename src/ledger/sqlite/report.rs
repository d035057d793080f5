//! The figures of a span: its operations streamed once, in one snapshot, into `domain::report`.
//!
//! Owns: the one pass, by the index on status and `created_at`. Never: counts, or keeps a row. Tests:
//! `tests/ledger/report.rs`.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::read::reader;
use super::{Inner, store};
use crate::domain::Instant;
use crate::domain::ids::{OperationId, ToolName};
use crate::domain::money::Money;
use crate::domain::report::{Fact, Fold, Report, ReportQuery};
use crate::ledger::LedgerError;
use crate::ledger::row::{Columns, instant, micros};

const FACTS: &str =
    "SELECT tool, status, effect, contradicted IS NOT NULL AS contradicted, amount_cents, currency,
        attempts, created_at, unknown_at, closed_at
    FROM operations WHERE status IN ('open', 'unknown', 'succeeded', 'failed') AND created_at >= ?1 AND (?2 IS NULL OR tool = ?2)";
/// The first of each status, each off the index.
const FIRST: &str = "SELECT min(at) FROM (
    SELECT (SELECT created_at FROM operations WHERE status = j.value ORDER BY created_at LIMIT 1) AS at
    FROM json_each('[\"open\", \"unknown\", \"succeeded\", \"failed\"]') j)";
const OLDEST_UNKNOWN: &str =
    "SELECT operation_id, unknown_at FROM operations INDEXED BY operations_unknown
    WHERE status = 'unknown' AND (?1 IS NULL OR tool = ?1) ORDER BY unknown_at LIMIT 1";

pub(super) async fn report(inner: &Arc<Inner>, query: &ReportQuery) -> Result<Report, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    // One snapshot, so that all figures are of the same moment.
    let mut tx = sqlx::Connection::begin(&mut *conn)
        .await
        .map_err(store::failed)?;
    let begins = match query.since {
        Some(since) => since,
        None => first(&mut tx).await?.unwrap_or(query.until),
    };
    let tool = query.tool.as_ref().map(ToolName::as_str);
    let mut fold = Fold::new(query, begins);
    let mut rows = sqlx::query(FACTS)
        .bind(micros(begins))
        .bind(tool)
        .fetch(&mut *tx);
    while let Some(row) = rows.try_next().await.map_err(store::failed)? {
        fold.add(&fact(&row)?);
    }
    drop(rows);
    let oldest = oldest_unknown(&mut tx, tool).await?;
    tx.rollback().await.map_err(store::failed)?;
    Ok(fold.report(oldest))
}

/// When the first operation of the ledger was opened.
async fn first(conn: &mut SqliteConnection) -> Result<Option<Instant>, LedgerError> {
    let first: Option<i64> = sqlx::query_scalar(FIRST)
        .fetch_one(conn)
        .await
        .map_err(store::failed)?;
    first.map(instant).transpose()
}

async fn oldest_unknown(
    conn: &mut SqliteConnection,
    tool: Option<&str>,
) -> Result<Option<(OperationId, Instant)>, LedgerError> {
    let found = sqlx::query(OLDEST_UNKNOWN)
        .bind(tool)
        .fetch_optional(conn)
        .await
        .map_err(store::failed)?;
    let found = found.as_ref().map(|row| {
        let c = Columns(row);
        Ok((c.word("operation_id")?, c.at("unknown_at")?))
    });
    found.transpose()
}

fn fact(row: &SqliteRow) -> Result<Fact, LedgerError> {
    let c = Columns(row);
    let money = match c.opt("amount_cents", Columns::int)? {
        None => None,
        Some(minor) => {
            let money = Money::from_minor(minor, c.word("currency")?);
            Some(money.map_err(|e| LedgerError::Damaged(format!("column amount_cents {e}")))?)
        }
    };
    Ok(Fact {
        tool: c.word("tool")?,
        status: c.word("status")?,
        effect: c.word("effect")?,
        contradicted: c.flag("contradicted")?,
        money,
        attempts: c.count("attempts")?,
        created_at: c.at("created_at")?,
        unknown_at: c.opt("unknown_at", Columns::at)?,
        closed_at: c.opt("closed_at", Columns::at)?,
    })
}

/// What grows with the ledger, for its plans to be looked at.
#[cfg(test)]
pub(super) fn statements() -> [&'static str; 2] {
    [FACTS, OLDEST_UNKNOWN]
}
