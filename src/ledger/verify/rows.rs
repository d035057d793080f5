//! What the CHECKs and keys of the tables guard and no other check looks at: flags that are neither yes nor
//! no, words that nobody knows, what is there once. Asked of the rows, whatever schema the file has.
//!
//! Never: repeats what reading a row notices anyway. Tests: `tests/verify/alone.rs`, case by case.

use futures_util::TryStreamExt;
use sqlx::{Row, SqliteConnection};

use super::Findings;
use super::schema::Layout;
use crate::ledger::LedgerError;
use crate::ledger::sqlite::failed;

/// (table, rule, SQL that gives the operation it concerns, if any, and what is wrong).
const WRONG: [(&str, &str, &str); 20] = [
    (
        "operations",
        "I23",
        "SELECT operation_id, 'held is ' || held || ', neither yes nor no' FROM operations WHERE held NOT IN (0, 1)",
    ),
    (
        "operations",
        "I23",
        "SELECT operation_id, 'a claim without its holder or its end' FROM operations
         WHERE (claimed_until IS NULL) <> (claimed_by IS NULL)",
    ),
    (
        "attempts",
        "I23",
        "SELECT operation_id, 'a flag of attempt ' || attempt_no || ' is neither yes nor no' FROM attempts
         WHERE replayed NOT IN (0, 1) OR limiter NOT IN (0, 1) OR already_refunded NOT IN (0, 1)",
    ),
    (
        "tool_calls",
        "I24",
        "SELECT operation_id, 'whether call ' || call_id || ' of ' || agent || ' joined is neither yes nor no'
         FROM tool_calls WHERE joined NOT IN (0, 1)",
    ),
    (
        "tool_calls",
        "I25",
        "SELECT operation_id, 'call ' || call_id || ' of ' || agent || ' is running and nobody has it' FROM tool_calls
         WHERE state = 'running' AND (engine IS NULL OR lease_until IS NULL OR begun_at IS NULL)",
    ),
    (
        "tool_calls",
        "I24",
        "SELECT min(operation_id), 'call ' || call_id || ' of ' || agent || ' is there more than once'
         FROM tool_calls GROUP BY agent, call_id HAVING count(*) > 1",
    ),
    (
        "drives",
        "I25",
        "SELECT operation_id, 'it is driven twice' FROM drives GROUP BY operation_id HAVING count(*) > 1",
    ),
    (
        "lookups",
        "I22",
        "SELECT operation_id, 'it is looked up twice' FROM lookups GROUP BY operation_id HAVING count(*) > 1",
    ),
    (
        "notices",
        "integrity",
        "SELECT min(operation_id), event || ' of ' || subject || ' is told more than once' FROM notices
         GROUP BY event, subject, mark HAVING count(*) > 1",
    ),
    (
        "notices",
        "integrity",
        "SELECT operation_id, 'notice ' || notice_id || ' is of no kind or state that there is' FROM notices
         WHERE tries < 0 OR state NOT IN ('pending', 'sent', 'gave_up') OR event NOT IN
             ('unknown', 'resolved', 'key_expiring', 'contradicted', 'circuit_open', 'cap_reached')",
    ),
    (
        "stamps",
        "integrity",
        "SELECT NULL, 'the mode of ' || provider || ' is ' || mode FROM stamps
         WHERE mode NOT IN ('simulator', 'test', 'live')",
    ),
    (
        "stamps",
        "integrity",
        "SELECT NULL, 'stamps has ' || provider || ' more than once' FROM stamps GROUP BY provider HAVING count(*) > 1",
    ),
    (
        "meta",
        "I27",
        "SELECT NULL, 'meta has ' || name || ' more than once' FROM meta GROUP BY name HAVING count(*) > 1",
    ),
    (
        "tool_state",
        "integrity",
        "SELECT NULL, CASE WHEN json_valid(circuit) THEN 'the pause of ' ELSE 'the circuit of ' END || tool
             || ' cannot be read' FROM tool_state
         WHERE NOT json_valid(circuit) OR (paused_by IS NULL) <> (paused_reason IS NULL)",
    ),
    (
        "tool_state",
        "integrity",
        "SELECT NULL, 'tool_state has ' || tool || ' more than once' FROM tool_state GROUP BY tool HAVING count(*) > 1",
    ),
    (
        "buckets",
        "I28",
        "SELECT NULL, 'buckets has ' || name || ' more than once' FROM buckets GROUP BY name HAVING count(*) > 1",
    ),
    (
        "engines",
        "integrity",
        "SELECT NULL, 'whether engine ' || engine || ' stopped is neither yes nor no' FROM engines
         WHERE stopped NOT IN (0, 1)",
    ),
    (
        "engines",
        "integrity",
        "SELECT NULL, 'engines has ' || engine || ' more than once' FROM engines GROUP BY engine HAVING count(*) > 1",
    ),
    (
        "tallies",
        "integrity",
        "SELECT NULL, 'operations are counted as ' || status || ', which is no status' FROM tallies
         WHERE status NOT IN ('open', 'unknown', 'succeeded', 'failed')",
    ),
    (
        "tallies",
        "integrity",
        "SELECT NULL, 'tallies has ' || status || ' more than once' FROM tallies GROUP BY status HAVING count(*) > 1",
    ),
];

pub(super) async fn check(
    conn: &mut SqliteConnection,
    layout: &Layout,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    for (_, rule, sql) in WRONG.iter().filter(|(table, ..)| layout.has(table)) {
        let mut rows = sqlx::query(*sql).fetch(&mut *conn);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let id: Option<String> = row.try_get(0).map_err(failed)?;
            let what: String = row.try_get(1).map_err(failed)?;
            found.add(id.as_deref(), rule, what);
            if found.is_full() {
                return Ok(());
            }
        }
    }
    Ok(())
}
