//! Agents and their tokens, and how many attempts are counted for the metrics: what the guards of these
//! tables forbid, asked of the rows. Tests: `tests/verify/alone.rs`.

use futures_util::TryStreamExt;
use sqlx::{Row, SqliteConnection};

use super::Findings;
use super::schema::Layout;
use crate::ledger::LedgerError;
use crate::ledger::sqlite::failed;

/// (tables, rule, SQL that gives what is wrong).
const WRONG: [(&[&str], &str, &str); 4] = [
    (
        &["agents"],
        "integrity",
        "SELECT 'agent ' || name || ' has the name of samekey itself, or a token that is none' FROM agents
         WHERE name IN ('samekey', 'cli') OR length(token_id) <> 16 OR length(token_hash) <> 64
         OR (tools IS NOT NULL AND NOT json_valid(tools)) OR (revoked_at IS NULL) <> (revoked_by IS NULL)",
    ),
    (
        &["agents"],
        "integrity",
        "SELECT 'agent ' || name || ' has more than one token' FROM agents WHERE revoked_at IS NULL
         GROUP BY name HAVING count(*) > 1",
    ),
    (
        &["agents"],
        "integrity",
        "SELECT 'the token ' || token_id || ' is there more than once' FROM agents
         GROUP BY token_id HAVING count(*) > 1",
    ),
    // In one statement: an engine may be at work.
    (
        &["attempt_times", "attempts", "operations"],
        "integrity",
        "SELECT coalesce(t.n, 0) || ' attempts are counted as ' || r.outcome || ' at ' || r.provider || ', there are ' || r.n
         FROM (SELECT provider, outcome, sum(n) AS n FROM (
                   SELECT o.provider, a.outcome, 1 AS n FROM attempts a JOIN operations o USING (operation_id)
                   WHERE a.finished_at IS NOT NULL
                   UNION ALL SELECT DISTINCT provider, outcome, 0 FROM attempt_times)
               GROUP BY provider, outcome) r
         LEFT JOIN (SELECT provider, outcome, sum(n) AS n FROM attempt_times GROUP BY provider, outcome) t
         ON t.provider = r.provider AND t.outcome = r.outcome WHERE coalesce(t.n, 0) <> r.n",
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
            let what: String = row.try_get(0).map_err(failed)?;
            found.add(None, rule, what);
            if found.is_full() {
                return Ok(());
            }
        }
    }
    Ok(())
}
