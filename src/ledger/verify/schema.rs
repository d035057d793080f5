//! The file itself: is its schema the one that the migrations make, and is the file whole?
//!
//! The migrations are run on an empty database in memory and the two schemas compared, text by
//! text: whatever guard is missing or altered shows, without a list of guards to keep.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Row, SqliteConnection};

use super::Findings;
use crate::ledger::LedgerError;
use crate::ledger::sqlite::{APPLICATION_ID, MIGRATIONS, failed};

/// What history consists of; without these the rows cannot be checked.
const HISTORY: [&str; 7] = [
    "operations",
    "attempts",
    "evidence",
    "audit",
    "tool_calls",
    "provider_objects",
    "meta",
];

/// Which tables have all columns that the migrations give them.
pub(super) struct Layout(BTreeSet<String>);

impl Layout {
    pub(super) fn has(&self, table: &str) -> bool {
        self.0.contains(table)
    }

    pub(super) fn has_history(&self) -> bool {
        HISTORY.iter().all(|table| self.has(table))
    }
}

/// (kind, name) of everything in a schema, with its SQL.
type Schema = BTreeMap<(String, String), String>;

/// Compares the schema with what the migrations make.
pub(super) async fn check(
    conn: &mut SqliteConnection,
    found: &mut Findings,
) -> Result<Layout, LedgerError> {
    let mut model = SqliteConnectOptions::new()
        .in_memory(true)
        .disable_statement_logging()
        .connect()
        .await
        .map_err(failed)?;
    MIGRATIONS
        .run_direct(None, &mut model, false)
        .await
        .map_err(|e| LedgerError::Unreachable(format!("the schema could not be made: {e}")))?;
    let (wanted, real) = (schema(&mut model).await?, schema(conn).await?);
    let id: i64 = sqlx::query_scalar("PRAGMA application_id")
        .fetch_one(&mut *conn)
        .await
        .map_err(failed)?;
    let rows = ("table".to_owned(), "operations".to_owned());
    if id != APPLICATION_ID {
        if !real.contains_key(&rows) {
            let why = "the file is an SQLite database, but not a ledger";
            return Err(LedgerError::NotALedger(why.into()));
        }
        found.add(None, "schema", "the file does not say that it is a ledger");
    }
    compare(&wanted, &real, found);
    migrations(conn, &real, found).await?;
    let (wanted, real) = (columns(&mut model).await?, columns(conn).await?);
    let whole = wanted.into_iter().filter(|(table, columns)| {
        let real = real.get(table);
        real.is_some_and(|real| columns.is_subset(real))
    });
    Ok(Layout(whole.map(|(table, _)| table).collect()))
}

/// sqlx keeps its own list of applied migrations, which is compared by content instead.
async fn schema(conn: &mut SqliteConnection) -> Result<Schema, LedgerError> {
    let sql = "SELECT type, name, coalesce(sql, '') FROM sqlite_schema
               WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> '_sqlx_migrations'";
    let rows = sqlx::query(sql).fetch_all(conn).await.map_err(failed)?;
    let mut schema = Schema::new();
    for row in rows {
        let part = |i: usize| row.try_get::<String, _>(i).map_err(failed);
        schema.insert((part(0)?, part(1)?), part(2)?);
    }
    Ok(schema)
}

fn compare(wanted: &Schema, real: &Schema, found: &mut Findings) {
    for ((kind, name), sql) in wanted {
        match real.get(&(kind.clone(), name.clone())) {
            None => found.add(None, "schema", format!("the {kind} {name} is missing")),
            Some(other) if other != sql => {
                let what = format!("the {kind} {name} is not as the migrations make it");
                found.add(None, "schema", what);
            }
            Some(_) => {}
        }
    }
    // A table or index of somebody's own does no harm; a trigger writes behind our back.
    for (kind, name) in real.keys() {
        if kind == "trigger" && !wanted.contains_key(&(kind.clone(), name.clone())) {
            let what = format!("the trigger {name} is not one of the migrations");
            found.add(None, "schema", what);
        }
    }
}

/// The applied migrations are the ones of this program, in content too (I29, F74).
async fn migrations(
    conn: &mut SqliteConnection,
    real: &Schema,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    let known = "SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'";
    let known: i64 = sqlx::query_scalar(known)
        .fetch_one(&mut *conn)
        .await
        .map_err(failed)?;
    if known == 0 || real.is_empty() {
        found.add(
            None,
            "schema",
            "the list of applied migrations (_sqlx_migrations) is missing",
        );
        return Ok(());
    }
    let rows = sqlx::query("SELECT version, checksum, success FROM _sqlx_migrations")
        .fetch_all(conn)
        .await
        .map_err(failed)?;
    let mut applied = BTreeMap::new();
    for row in rows {
        let version: i64 = row.try_get(0).map_err(failed)?;
        let checksum: Vec<u8> = row.try_get(1).map_err(failed)?;
        let success: bool = row.try_get(2).map_err(failed)?;
        applied.insert(version, (checksum, success));
    }
    for m in MIGRATIONS.iter() {
        let n = m.version;
        match applied.remove(&n) {
            None => found.add(None, "schema", format!("migration {n} was not applied")),
            Some((_, false)) => {
                found.add(None, "schema", format!("migration {n} was not finished"));
            }
            Some((checksum, true)) if checksum != *m.checksum => {
                let what = format!("migration {n} is not the one of this samekey");
                found.add(None, "schema", what);
            }
            Some((_, true)) => {}
        }
    }
    for n in applied.keys() {
        let what = format!("migration {n} is unknown to this samekey: a newer one wrote it");
        found.add(None, "schema", what);
    }
    Ok(())
}

async fn columns(
    conn: &mut SqliteConnection,
) -> Result<BTreeMap<String, BTreeSet<String>>, LedgerError> {
    let sql = "SELECT s.name, c.name FROM sqlite_schema s JOIN pragma_table_info(s.name) c
               WHERE s.type = 'table'";
    let rows = sqlx::query(sql).fetch_all(conn).await.map_err(failed)?;
    let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let part = |i: usize| row.try_get::<String, _>(i).map_err(failed);
        tables.entry(part(0)?).or_default().insert(part(1)?);
    }
    Ok(tables)
}

/// Pages, indexes, CHECKs and types of the whole file, and references that lead nowhere.
pub(super) async fn integrity(
    conn: &mut SqliteConnection,
    layout: &Layout,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    let said: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check(100)")
        .fetch_all(&mut *conn)
        .await
        .map_err(failed)?;
    for line in said.iter().filter(|line| *line != "ok") {
        found.add(None, "integrity", line);
    }
    let sql = "SELECT \"table\", rowid, \"parent\" FROM pragma_foreign_key_check LIMIT 1000";
    let rows = match sqlx::query(sql).fetch_all(&mut *conn).await {
        // Where a table has lost its key, nothing can refer to it.
        Err(sqlx::Error::Database(why)) if why.message().starts_with("foreign key mismatch") => {
            let what = format!("references cannot be followed: {}", why.message());
            found.add(None, "integrity", what);
            return Ok(());
        }
        rows => rows.map_err(failed)?,
    };
    for row in rows {
        let (table, parent): (String, String) = (
            row.try_get(0).map_err(failed)?,
            row.try_get(2).map_err(failed)?,
        );
        let rowid: Option<i64> = row.try_get(1).map_err(failed)?;
        let id = match (rowid, owner_sql(&table)) {
            (Some(rowid), Some(sql)) if layout.has(&table) => sqlx::query_scalar(sql)
                .bind(rowid)
                .fetch_optional(&mut *conn)
                .await
                .map_err(failed)?
                .flatten(),
            _ => None,
        };
        let id: Option<String> = id;
        let what = format!("a row of {table} refers to a row of {parent} that is not there");
        found.add(id.as_deref(), "integrity", what);
    }
    Ok(())
}

fn owner_sql(table: &str) -> Option<&'static str> {
    Some(match table {
        "operations" => "SELECT operation_id FROM operations WHERE rowid = ?",
        "attempts" => "SELECT operation_id FROM attempts WHERE rowid = ?",
        "evidence" => "SELECT operation_id FROM evidence WHERE rowid = ?",
        "audit" => "SELECT operation_id FROM audit WHERE rowid = ?",
        "tool_calls" => "SELECT operation_id FROM tool_calls WHERE rowid = ?",
        "provider_objects" => "SELECT operation_id FROM provider_objects WHERE rowid = ?",
        "drives" => "SELECT operation_id FROM drives WHERE rowid = ?",
        "lookups" => "SELECT operation_id FROM lookups WHERE rowid = ?",
        "notices" => "SELECT operation_id FROM notices WHERE rowid = ?",
        "provider_events" => "SELECT operation_id FROM provider_events WHERE rowid = ?",
        "watched" => "SELECT operation_id FROM watched WHERE rowid = ?",
        _ => return None,
    })
}
