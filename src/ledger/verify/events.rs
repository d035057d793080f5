//! The provider's events, against the evidence that followed from them and against themselves; and the
//! reconciler's schedule. Asked of the rows, whatever schema the file has.

use futures_util::TryStreamExt;
use sqlx::{Row, SqliteConnection};

use super::Findings;
use super::schema::Layout;
use crate::ledger::LedgerError;
use crate::ledger::sqlite::failed;

/// (tables, rule, SQL that gives the operation it concerns, if any, and what is wrong).
const WRONG: [(&[&str], &str, &str); 15] = [
    (
        &["provider_events", "evidence"],
        "I17",
        "SELECT operation_id, 'the event ' || event_id || ' was taken in and its operation has no evidence of its object'
         FROM provider_events e WHERE state = 'processed' AND reason IS NULL AND type <> 'charge.refunded'
         AND NOT EXISTS (SELECT 1 FROM evidence v WHERE v.operation_id = e.operation_id AND v.provider_ref = e.object_id)",
    ),
    (
        &["provider_events"],
        "I17",
        "SELECT NULL, 'the event ' || event_id || ' was taken in for no operation' FROM provider_events
         WHERE state = 'processed' AND operation_id IS NULL",
    ),
    (
        &["provider_events", "meta"],
        "integrity",
        "SELECT operation_id, 'the event ' || event_id || ' was settled before it was received' FROM provider_events
         WHERE settled_at < received_at AND NOT EXISTS (SELECT 1 FROM meta WHERE name = 'clock_accepted')",
    ),
    (
        &["provider_events"],
        "integrity",
        "SELECT operation_id, 'the event ' || event_id || ' has lost its body' FROM provider_events
         WHERE state <> 'ignored' AND length(payload) = 0",
    ),
    (
        &["provider_events"],
        "integrity",
        "SELECT operation_id, 'the event ' || event_id || ' is settled and says neither when nor how' FROM provider_events
         WHERE (state IN ('processed', 'ignored', 'quarantined', 'acknowledged')) <> (settled_at IS NOT NULL)
            OR (state NOT IN ('received', 'processed') AND reason IS NULL)",
    ),
    (
        &["provider_events"],
        "integrity",
        "SELECT operation_id, 'event number ' || event_no || ' is none that was ever received' FROM provider_events
         WHERE length(event_id) NOT BETWEEN 1 AND 255 OR length(digest) <> 64 OR length(payload) > 262144 OR tries < 0
            OR source NOT IN ('webhook', 'listing')
            OR state NOT IN ('received', 'waiting', 'processed', 'ignored', 'quarantined', 'acknowledged')
            OR type NOT IN ('refund.created', 'refund.updated', 'refund.failed', 'charge.refunded',
                            'charge.refund.updated', 'unreadable')",
    ),
    (
        &["provider_events"],
        "integrity",
        "SELECT min(operation_id), 'the event ' || event_id || ' is there more than once' FROM provider_events
         GROUP BY event_id, provider HAVING count(*) > 1",
    ),
    (
        &["event_readings"],
        "integrity",
        "SELECT NULL, 'event_readings has ' || provider || ' more than once' FROM event_readings
         GROUP BY provider HAVING count(*) > 1",
    ),
    (
        &["event_readings"],
        "integrity",
        "SELECT NULL, 'the listing of the events of ' || provider || ' is neither under way nor at an end' FROM event_readings
         WHERE (span_from IS NULL) <> (span_to IS NULL) OR (span_to IS NULL AND after_event IS NOT NULL) OR passed_over < 0",
    ),
    (
        &["provider_events"],
        "I23",
        "SELECT operation_id, 'the event ' || event_id || ' is acknowledged and does not say by whom, when and why, or says so and is not'
         FROM provider_events WHERE (state = 'acknowledged') <> ((length(acknowledged_by) > 0 AND acknowledged_user IS NOT NULL
            AND acknowledged_at IS NOT NULL AND length(acknowledged_note) > 0) IS TRUE)
            OR (state <> 'acknowledged' AND coalesce(acknowledged_by, acknowledged_user, acknowledged_at, acknowledged_note) IS NOT NULL)",
    ),
    (
        &["event_tallies"],
        "integrity",
        "SELECT NULL, 'events are counted as ' || state || ', which is no state' FROM event_tallies
         WHERE state NOT IN ('received', 'waiting', 'processed', 'ignored', 'quarantined', 'acknowledged')",
    ),
    (
        &["event_tallies"],
        "integrity",
        "SELECT NULL, 'event_tallies has ' || state || ' more than once' FROM event_tallies GROUP BY state HAVING count(*) > 1",
    ),
    // In one statement: an engine may be at work.
    (
        &["event_tallies", "provider_events"],
        "integrity",
        "SELECT NULL, coalesce((SELECT max(n) FROM event_tallies t WHERE t.state = s.value), 'no')
            || ' events are counted as ' || s.value || ', there are '
            || (SELECT count(*) FROM provider_events e WHERE e.state = s.value)
         FROM json_each('[\"received\", \"waiting\", \"processed\", \"ignored\", \"quarantined\", \"acknowledged\"]') s
         WHERE (SELECT count(*) FROM provider_events e WHERE e.state = s.value)
            IS NOT (SELECT max(n) FROM event_tallies t WHERE t.state = s.value)",
    ),
    (
        &["watched", "operations"],
        "integrity",
        "SELECT operation_id, 'it is watched as if it were another kind of row, or of another provider' FROM watched w
         JOIN operations o USING (operation_id) WHERE w.provider <> o.provider
            OR w.urgency <> CASE o.status WHEN 'unknown' THEN 0 WHEN 'open' THEN 1 ELSE 2 END",
    ),
    (
        &["watched"],
        "integrity",
        "SELECT operation_id, 'it is watched ' || count(*) || ' times, after ' || min(looks) || ' looks' FROM watched
         GROUP BY operation_id HAVING count(*) > 1 OR min(looks) < 0",
    ),
];

pub(super) async fn check(
    conn: &mut SqliteConnection,
    layout: &Layout,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    // A ledger of before has none of these, which the schema's check has said.
    for (tables, rule, sql) in WRONG {
        if !tables.iter().all(|table| layout.has(table)) {
            continue;
        }
        let mut rows = sqlx::query(sql).fetch(&mut *conn);
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
