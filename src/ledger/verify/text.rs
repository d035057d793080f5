//! Every text in every table: no secret (I30), nothing that acts on a terminal (I31).

use sqlx::sqlite::SqliteRow;
use sqlx::{Column, Row, SqliteConnection, TypeInfo, ValueRef};

use super::Findings;
use super::schema::Layout;
use crate::domain::agent::TOKEN_MARK;
use crate::domain::text::{MAX_CHARS, SafeText};
use crate::ledger::LedgerError;
use crate::ledger::row::Columns;
use crate::ledger::sqlite::failed;

/// How the secrets of Stripe begin, and the tokens of agents.
const SECRETS: [&str; 6] = [
    "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", TOKEN_MARK,
];
/// A masked secret (`sk_live_****`) is none.
const SECRET_LETTERS: usize = 4;

/// A page of each table.
const TABLES: [(&str, &str); 20] = [
    (
        "operations",
        "SELECT rowid AS at_row, * FROM operations WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "attempts",
        "SELECT rowid AS at_row, * FROM attempts WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "evidence",
        "SELECT rowid AS at_row, * FROM evidence WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "provider_objects",
        "SELECT rowid AS at_row, * FROM provider_objects WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "audit",
        "SELECT rowid AS at_row, * FROM audit WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "tool_calls",
        "SELECT rowid AS at_row, * FROM tool_calls WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "tool_state",
        "SELECT rowid AS at_row, * FROM tool_state WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "stamps",
        "SELECT rowid AS at_row, * FROM stamps WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "engines",
        "SELECT rowid AS at_row, * FROM engines WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "lookups",
        "SELECT rowid AS at_row, * FROM lookups WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "drives",
        "SELECT rowid AS at_row, * FROM drives WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "tallies",
        "SELECT rowid AS at_row, * FROM tallies WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "notices",
        "SELECT rowid AS at_row, * FROM notices WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "provider_events",
        "SELECT rowid AS at_row, * FROM provider_events WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "event_tallies",
        "SELECT rowid AS at_row, * FROM event_tallies WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "event_readings",
        "SELECT rowid AS at_row, * FROM event_readings WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "agents",
        "SELECT rowid AS at_row, * FROM agents WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "attempt_times",
        "SELECT rowid AS at_row, * FROM attempt_times WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "watched",
        "SELECT rowid AS at_row, * FROM watched WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
    (
        "buckets",
        "SELECT rowid AS at_row, * FROM buckets WHERE rowid > ? ORDER BY rowid LIMIT 500",
    ),
];

pub(super) async fn check(
    conn: &mut SqliteConnection,
    layout: &Layout,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    for (table, sql) in TABLES.iter().filter(|(table, _)| layout.has(table)) {
        let mut after = i64::MIN;
        while !found.is_full() {
            let rows = sqlx::query(*sql)
                .bind(after)
                .fetch_all(&mut *conn)
                .await
                .map_err(failed)?;
            let Some(last) = rows.last() else {
                break;
            };
            after = Columns(last).int("at_row")?;
            for row in &rows {
                columns(table, row, found)?;
            }
        }
    }
    Ok(())
}

fn columns(table: &str, row: &SqliteRow, found: &mut Findings) -> Result<(), LedgerError> {
    for column in row.columns() {
        let name = column.name();
        let kind = row
            .try_get_raw(column.ordinal())
            .map_err(failed)?
            .type_info()
            .name()
            .to_owned();
        if kind != "TEXT" && kind != "BLOB" {
            continue;
        }
        let bytes: &[u8] = row.try_get(column.ordinal()).map_err(failed)?;
        let owner = || row.try_get::<String, _>("operation_id").ok();
        let text = String::from_utf8_lossy(bytes);
        if secret(&text) {
            let what = format!("{table}.{name} holds a secret");
            found.add(owner().as_deref(), "I30", what);
        }
        // The bytes of a request are sent, not shown; arguments are kept as they came, and shown
        // as `SafeText` only.
        let as_it_came = kind == "BLOB" || (table == "tool_calls" && name == "arguments");
        if !as_it_came && (std::str::from_utf8(bytes).is_err() || acts(&text)) {
            let what = format!("{table}.{name} holds a character that acts on a terminal");
            found.add(owner().as_deref(), "I31", what);
        }
    }
    Ok(())
}

fn secret(text: &str) -> bool {
    SECRETS.iter().any(|mark| {
        text.match_indices(mark).any(|(at, mark)| {
            let rest = text.get(at + mark.len()..).unwrap_or_default();
            let letters = rest.bytes().take_while(u8::is_ascii_alphanumeric);
            letters.take(SECRET_LETTERS).count() == SECRET_LETTERS
        })
    })
}

fn acts(text: &str) -> bool {
    if text.is_ascii() {
        return text.bytes().any(|b| b.is_ascii_control());
    }
    let mut chars = text.chars().peekable();
    while chars.peek().is_some() {
        let piece: String = chars.by_ref().take(MAX_CHARS).collect();
        if SafeText::new(&piece).as_str() != piece {
            return true;
        }
    }
    false
}
