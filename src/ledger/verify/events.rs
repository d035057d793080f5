//! The provider's events against the evidence that followed from them.

use futures_util::TryStreamExt;
use sqlx::{Row, SqliteConnection};

use super::Findings;
use super::schema::Layout;
use crate::ledger::LedgerError;
use crate::ledger::sqlite::failed;

/// (rule, what is wrong, SQL that gives the event and its operation).
const WRONG: [(&str, &str, &str); 4] = [
    (
        "I17",
        "was taken in and its operation has no evidence of its object",
        "SELECT e.event_id, e.operation_id FROM provider_events e
         WHERE e.state = 'processed' AND e.reason IS NULL AND e.type <> 'charge.refunded'
         AND NOT EXISTS (SELECT 1 FROM evidence v WHERE v.operation_id = e.operation_id AND v.provider_ref = e.object_id)",
    ),
    (
        "integrity",
        "was settled before it was received",
        "SELECT event_id, operation_id FROM provider_events WHERE settled_at < received_at
         AND NOT EXISTS (SELECT 1 FROM meta WHERE name = 'clock_accepted')",
    ),
    (
        "integrity",
        "has lost its body",
        "SELECT event_id, operation_id FROM provider_events WHERE state <> 'ignored' AND length(payload) = 0",
    ),
    (
        "integrity",
        "is settled and says neither when nor how",
        "SELECT event_id, operation_id FROM provider_events
         WHERE (state IN ('processed', 'ignored', 'quarantined')) <> (settled_at IS NOT NULL)
            OR (state NOT IN ('received', 'processed') AND reason IS NULL)",
    ),
];

pub(super) async fn check(
    conn: &mut SqliteConnection,
    layout: &Layout,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    // A ledger of before has none, which the schema's check has said.
    if !["provider_events", "evidence", "meta"]
        .iter()
        .all(|table| layout.has(table))
    {
        return Ok(());
    }
    for (rule, what, sql) in WRONG {
        let mut rows = sqlx::query(sql).fetch(&mut *conn);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let event: String = row.try_get(0).map_err(failed)?;
            let operation: Option<String> = row.try_get(1).map_err(failed)?;
            let what = format!("the event {event} {what}");
            found.add(operation.as_deref(), rule, what);
            if found.is_full() {
                return Ok(());
            }
        }
    }
    Ok(())
}
