//! What is kept beside the history: how many rows each status has, and what people outside were told.

use futures_util::TryStreamExt;
use sqlx::{Row, SqliteConnection};

use super::Findings;
use super::schema::Layout;
use crate::ledger::LedgerError;
use crate::ledger::sqlite::failed;

pub(super) async fn check(
    conn: &mut SqliteConnection,
    layout: &Layout,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    // A ledger of before has neither, which the schema's check has said.
    if layout.has("tallies") {
        tallies(conn, found).await?;
    }
    if layout.has("notices") {
        notices(conn, found).await?;
    }
    Ok(())
}

/// The counts on the screen are those of the rows. In one statement: an engine may be at work.
async fn tallies(conn: &mut SqliteConnection, found: &mut Findings) -> Result<(), LedgerError> {
    let sql = "SELECT s.value, coalesce((SELECT n FROM tallies t WHERE t.status = s.value), -1),
                   (SELECT count(*) FROM operations o WHERE o.status = s.value)
               FROM json_each('[\"open\", \"unknown\", \"succeeded\", \"failed\"]') s";
    let rows = sqlx::query(sql).fetch_all(conn).await.map_err(failed)?;
    for row in rows {
        let status: String = row.try_get(0).map_err(failed)?;
        let (kept, real): (i64, i64) = (
            row.try_get(1).map_err(failed)?,
            row.try_get(2).map_err(failed)?,
        );
        if kept < 0 {
            let what = format!("the tally of the operations that are {status} is missing");
            found.add(None, "integrity", what);
        } else if kept != real {
            let what = format!("{kept} operations are counted as {status}, there are {real}");
            found.add(None, "integrity", what);
        }
    }
    Ok(())
}

/// A notice about an operation names it as its subject.
async fn notices(conn: &mut SqliteConnection, found: &mut Findings) -> Result<(), LedgerError> {
    let sql = "SELECT notice_id, event, operation_id FROM notices
               WHERE event IN ('unknown', 'resolved', 'contradicted') AND operation_id IS NOT subject";
    let mut rows = sqlx::query(sql).fetch(conn);
    while let Some(row) = rows.try_next().await.map_err(failed)? {
        let (number, event): (i64, String) = (
            row.try_get(0).map_err(failed)?,
            row.try_get(1).map_err(failed)?,
        );
        let operation: Option<String> = row.try_get(2).map_err(failed)?;
        let what = format!("notice {number} ({event}) is about another subject than its operation");
        found.add(operation.as_deref(), "integrity", what);
        if found.is_full() {
            return Ok(());
        }
    }
    Ok(())
}
