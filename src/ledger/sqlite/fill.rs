//! A new ledger with a past: a million finished calls and their rows in a minute.
//!
//! Owns: the shortcut. What each row went through is asked of `domain` step by step, as at the doors;
//! only the writing is done in bulk, with triggers and indexes put back before the file gets its name.
//! Never: touches a ledger that exists. For throw-away ledgers of the demo and for measuring.
//! Tests: `tests/ledger/filling.rs` (rows as the doors make them, nothing for `verify` to find).

mod past;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sqlx::{Connection, SqliteConnection};
use tokio::sync::mpsc;

use super::{files, open, store};
use crate::domain::ids::ToolName;
use crate::domain::policy::Terms;
use crate::ledger::LedgerError;
use past::{Cell, TABLES, Tables};

pub use past::{Past, Times};

/// Calls whose rows are made while the ones before are written.
const CHUNK: usize = 500;
/// Chunks that may wait to be written.
const AHEAD: usize = 4;

/// Makes the ledger at `path` with the rows of `past`, oldest first, and answers how many those are.
///
/// # Errors
/// A ledger that is there already, a place where none can be, or a past that the domain refuses.
pub async fn fill(
    path: &Path,
    terms: Arc<BTreeMap<ToolName, Terms>>,
    past: impl Iterator<Item = Result<Past, LedgerError>> + Send + 'static,
) -> Result<u64, LedgerError> {
    files::check_place(path)?;
    let _lock = files::migration_lock(path).await?;
    if files::is_sqlite(path)?.is_some() {
        let why = format!(
            "{} is there already; only a new ledger is filled",
            path.display()
        );
        return Err(LedgerError::Unreachable(why));
    }
    let new = files::beside(path, ".new");
    let mut conn = open::make(&new).await?;
    for sql in BEFORE {
        run(&mut conn, sql).await?;
    }
    let rows = write(&mut conn, terms, past).await?;
    for sql in AFTER {
        run(&mut conn, sql).await?;
    }
    conn.close().await.map_err(store::failed)?;
    files::move_whole(&new, path)?;
    Ok(rows)
}

/// Nobody else has the file, and whoever is interrupted begins a new one: no journal, no sync. Then
/// triggers and indexes are taken out of the schema; an index keeps its place in the file, empty.
const BEFORE: [&str; 8] = [
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA cache_size = -262144",
    "PRAGMA writable_schema = ON",
    "CREATE TEMP TABLE hidden AS SELECT * FROM sqlite_schema WHERE type IN ('trigger', 'index') AND sql IS NOT NULL",
    "DELETE FROM sqlite_schema WHERE type IN ('trigger', 'index') AND sql IS NOT NULL",
    "PRAGMA writable_schema = RESET",
];

/// Puts them back, text by text as they were, and builds the indexes; a unique one over what is there
/// twice fails.
const AFTER: [&str; 11] = [
    "PRAGMA writable_schema = ON",
    "INSERT INTO sqlite_schema SELECT * FROM temp.hidden ORDER BY rowid",
    "PRAGMA writable_schema = RESET",
    "REINDEX",
    "UPDATE tallies SET n = (SELECT count(*) FROM operations o WHERE o.status = tallies.status)",
    "DELETE FROM attempt_times",
    "INSERT INTO attempt_times (provider, outcome, le_ms, n, total_ms)
     SELECT provider, outcome,
         CASE WHEN ms <= 50 THEN 50 WHEN ms <= 100 THEN 100 WHEN ms <= 250 THEN 250 WHEN ms <= 500 THEN 500
              WHEN ms <= 1000 THEN 1000 WHEN ms <= 2500 THEN 2500 WHEN ms <= 5000 THEN 5000
              WHEN ms <= 10000 THEN 10000 ELSE 999999999 END AS le,
         count(*), sum(ms)
     FROM (SELECT o.provider, a.outcome, max(0, (a.finished_at - a.authorised_at) / 1000) AS ms
           FROM attempts a JOIN operations o USING (operation_id) WHERE a.finished_at IS NOT NULL)
     GROUP BY provider, outcome, le",
    WATCH_UNSETTLED,
    WATCH_CLOSED,
    "PRAGMA synchronous = FULL",
    "PRAGMA journal_mode = WAL",
];

/// What was sent and is not settled is looked at as if an engine had run all the time and came to it now: not
/// all at once, but 400 ms apart, unknown rows first, in the order of their random ids; a young row a minute
/// after it moved, as its trigger says. (The fourth migration spreads those of an old ledger the same way.)
const WATCH_UNSETTLED: &str = "INSERT INTO watched (operation_id, provider, urgency, next_at)
    SELECT operation_id, provider, urgency, max(at, young) FROM (
        SELECT operation_id, provider, status = 'open' AS urgency, updated_at + 60000000 AS young,
            (SELECT max(updated_at) FROM operations) + 400000 * row_number() OVER (ORDER BY status = 'open', operation_id) AS at
        FROM operations WHERE status IN ('open', 'unknown') AND attempts > 0)";
/// What was closed is looked at on the next of its days (M6); those before have passed.
const WATCH_CLOSED: &str = "INSERT INTO watched (operation_id, provider, urgency, looks, next_at)
    SELECT operation_id, provider, 2, min(d.key), min(closed_at + d.value * 86400000000)
    FROM operations, json_each('[1, 2, 4, 8, 16, 30]') d
    WHERE status IN ('succeeded', 'failed') AND attempts > 0
    AND closed_at + d.value * 86400000000 > (SELECT max(updated_at) FROM operations)
    GROUP BY operation_id, provider";

async fn run(conn: &mut SqliteConnection, sql: &'static str) -> Result<(), LedgerError> {
    sqlx::raw_sql(sql)
        .execute(conn)
        .await
        .map(drop)
        .map_err(store::failed)
}

/// Writes the rows while a thread of its own works out the next ones.
async fn write(
    conn: &mut SqliteConnection,
    terms: Arc<BTreeMap<ToolName, Terms>>,
    past: impl Iterator<Item = Result<Past, LedgerError>> + Send + 'static,
) -> Result<u64, LedgerError> {
    let (sender, mut chunks) = mpsc::channel::<Result<(u64, Tables), LedgerError>>(AHEAD);
    let maker = tokio::task::spawn_blocking(move || {
        let os_user = crate::config::os_user();
        let mut past = past.peekable();
        while past.peek().is_some() {
            let chunk = past::tables(past.by_ref().take(CHUNK), &terms, &os_user);
            let failed = chunk.is_err();
            // The writer has failed, and says why.
            if sender.blocking_send(chunk).is_err() || failed {
                return;
            }
        }
    });
    run(conn, "BEGIN IMMEDIATE").await?;
    let mut written = 0;
    while let Some(chunk) = chunks.recv().await {
        let (rows, tables) = chunk?;
        for ((one, many), cells) in TABLES.into_iter().zip(tables) {
            insert(conn, one, many, cells).await?;
        }
        written += rows;
    }
    run(conn, "COMMIT").await?;
    maker
        .await
        .map_err(|e| LedgerError::Unreachable(format!("the rows could not be made: {e}")))?;
    Ok(written)
}

/// Inserts rows, given cell by cell: fifty a statement as long as there are so many.
async fn insert(
    conn: &mut SqliteConnection,
    one: &'static str,
    many: &'static str,
    cells: Vec<Cell>,
) -> Result<(), LedgerError> {
    let places = |sql: &str| sql.matches('?').count();
    let (width, wide) = (places(one), places(many));
    let mut cells = cells.into_iter();
    while cells.len() > 0 {
        let (sql, take) = if cells.len() >= wide {
            (many, wide)
        } else {
            (one, width)
        };
        let mut query = sqlx::query(sql);
        for cell in cells.by_ref().take(take) {
            query = match cell {
                Cell::Null => query.bind(None::<i64>),
                Cell::Int(n) => query.bind(n),
                Cell::Text(text) => query.bind(text),
                Cell::Bytes(bytes) => query.bind(bytes),
            };
        }
        query.execute(&mut *conn).await.map_err(store::failed)?;
    }
    Ok(())
}
