//! Reading operations with everything that belongs to them, a page at a time. What cannot be read
//! is noted as a finding and left out.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use serde_json::Value;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::Findings;
use crate::domain::evidence::Seen;
use crate::domain::operation::Operation;
use crate::ledger::LedgerError;
use crate::ledger::row::{self, Columns};
use crate::ledger::sqlite::failed;

/// Operations per page.
const PAGE: i64 = 200;

/// One audit entry as it stands in the file.
#[derive(Debug)]
pub(super) struct Entry {
    pub seq: i64,
    /// Microseconds UTC.
    pub at: i64,
    pub actor: String,
    pub os_user: String,
    pub action: String,
    pub raw_detail: String,
    pub hash: String,
    /// `raw_detail` read as JSON; null where it is none.
    pub detail: Value,
}

impl Entry {
    /// A text in the detail.
    pub(super) fn says(&self, name: &str) -> Option<&str> {
        self.detail.get(name).and_then(Value::as_str)
    }

    /// A whole number in the detail.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.detail.get(name).and_then(Value::as_i64)
    }
}

/// One operation with its history.
#[derive(Debug)]
pub(super) struct History {
    pub id: String,
    /// Empty where a part of it cannot be read (which has been noted).
    pub op: Option<Operation>,
    /// In order of their numbers.
    pub audit: Vec<Entry>,
}

/// A page of operations, in order of their ids, with all that belongs to them.
pub(super) struct Page {
    pub histories: BTreeMap<String, History>,
    pub first_after: String,
    pub last: String,
}

/// The page behind the operation `after`; `None` at the end.
pub(super) async fn read(
    conn: &mut SqliteConnection,
    after: &str,
    found: &mut Findings,
) -> Result<Option<Page>, LedgerError> {
    let sql = "SELECT * FROM operations WHERE operation_id > ? ORDER BY operation_id LIMIT ?";
    let rows = sqlx::query(sql)
        .bind(after)
        .bind(PAGE)
        .fetch_all(&mut *conn)
        .await
        .map_err(failed)?;
    let mut histories = BTreeMap::new();
    for found_row in &rows {
        let id = Columns(found_row).text("operation_id")?;
        let history = History {
            op: operation(found_row, &id, found),
            id: id.clone(),
            audit: Vec::new(),
        };
        histories.insert(id, history);
    }
    let Some(last) = histories.keys().next_back().cloned() else {
        return Ok(None);
    };
    let mut page = Page {
        histories,
        first_after: after.to_owned(),
        last,
    };
    attempts(conn, &mut page, found).await?;
    evidence(conn, &mut page, found).await?;
    audit(conn, &mut page, found).await?;
    Ok(Some(page))
}

fn operation(found_row: &SqliteRow, id: &str, found: &mut Findings) -> Option<Operation> {
    match row::operation(found_row) {
        Ok(row) => Some(Operation {
            row,
            attempts: Vec::new(),
            evidence: Vec::new(),
        }),
        Err(error) => {
            let why = error.to_string();
            let money = why.contains("column currency") || why.contains("column amount_cents");
            let rule = if money { "I32" } else { "schema" };
            found.add(Some(id), rule, why);
            None
        }
    }
}

impl Page {
    /// The history that a row belongs to; rows of other operations are orphans, which the check of
    /// references has named.
    pub(super) fn owner(&mut self, found_row: &SqliteRow) -> Option<&mut History> {
        let id = Columns(found_row).text("operation_id").ok()?;
        self.histories.get_mut(&id)
    }
}

async fn attempts(
    conn: &mut SqliteConnection,
    page: &mut Page,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    let sql = "SELECT * FROM attempts WHERE operation_id > ? AND operation_id <= ?
               ORDER BY operation_id, attempt_no";
    let (after, last) = (page.first_after.clone(), page.last.clone());
    let mut rows = sqlx::query(sql).bind(after).bind(last).fetch(conn);
    while let Some(found_row) = rows.try_next().await.map_err(failed)? {
        let Some(history) = page.owner(&found_row) else {
            continue;
        };
        match row::attempt(&found_row) {
            Ok(attempt) => {
                if let Some(op) = &mut history.op {
                    op.attempts.push(attempt);
                }
            }
            Err(error) => unreadable(history, "an attempt", &error, found),
        }
    }
    Ok(())
}

async fn evidence(
    conn: &mut SqliteConnection,
    page: &mut Page,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    let sql = "SELECT * FROM evidence WHERE operation_id > ? AND operation_id <= ?
               ORDER BY operation_id, evidence_id";
    let (after, last) = (page.first_after.clone(), page.last.clone());
    let mut rows = sqlx::query(sql).bind(after).bind(last).fetch(conn);
    while let Some(found_row) = rows.try_next().await.map_err(failed)? {
        let Some(history) = page.owner(&found_row) else {
            continue;
        };
        match row::evidence(&found_row) {
            Ok(entry) => {
                let columns = Columns(&found_row);
                let object = match &entry.seen {
                    Seen::Object { object, .. } => Some(object.id.as_str()),
                    Seen::Scan { .. } | Seen::Unreachable { .. } | Seen::Reply { .. } => None,
                };
                let named = columns.opt("provider_ref", Columns::text)?;
                if named.as_deref() != object || columns.text("kind")? != entry.seen.kind() {
                    let what = "evidence whose columns and payload name different things";
                    found.add(Some(&history.id), "I17", what);
                }
                if let Some(op) = &mut history.op {
                    op.evidence.push(entry);
                }
            }
            Err(error) => unreadable(history, "evidence", &error, found),
        }
    }
    Ok(())
}

async fn audit(
    conn: &mut SqliteConnection,
    page: &mut Page,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    let sql = "SELECT * FROM audit WHERE operation_id > ? AND operation_id <= ?
               ORDER BY operation_id, seq";
    let (after, last) = (page.first_after.clone(), page.last.clone());
    let mut rows = sqlx::query(sql).bind(after).bind(last).fetch(conn);
    while let Some(found_row) = rows.try_next().await.map_err(failed)? {
        let Some(history) = page.owner(&found_row) else {
            continue;
        };
        match entry(&found_row) {
            Ok(entry) => history.audit.push(entry),
            Err(error) => unreadable(history, "an audit entry", &error, found),
        }
    }
    Ok(())
}

fn entry(found_row: &SqliteRow) -> Result<Entry, LedgerError> {
    let c = Columns(found_row);
    let raw_detail = c.text("detail")?;
    Ok(Entry {
        seq: c.int("seq")?,
        at: c.int("at")?,
        actor: c.text("actor")?,
        os_user: c.text("os_user")?,
        action: c.text("action")?,
        hash: c.text("hash")?,
        detail: serde_json::from_str(&raw_detail).unwrap_or_default(),
        raw_detail,
    })
}

/// With a part missing, what is derived from the whole would only look wrong.
fn unreadable(history: &mut History, what: &str, error: &LedgerError, found: &mut Findings) {
    found.add(
        Some(&history.id),
        "schema",
        format!("{what} of it: {error}"),
    );
    history.op = None;
}
