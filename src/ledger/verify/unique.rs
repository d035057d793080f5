//! What must be there once, counted over the whole ledger, whatever indexes the file has
//! (I1, I2, I11, I17).

use futures_util::TryStreamExt;
use sqlx::{Row, SqliteConnection};

use super::Findings;
use crate::ledger::LedgerError;
use crate::ledger::sqlite::failed;

/// (rule, what is wrong, SQL that gives the operation and what it collides with).
const ONCE: [(&str, &str, &str); 9] = [
    (
        "I1",
        "open at the same time for the same effect as",
        "SELECT a.operation_id, b.operation_id FROM operations a JOIN operations b
         ON b.tool = a.tool AND b.identity = a.identity AND b.operation_id <> a.operation_id
         AND (b.created_at, b.operation_id) < (a.created_at, a.operation_id)
         WHERE a.status IN ('open', 'unknown') AND b.status IN ('open', 'unknown')",
    ),
    (
        "I1",
        "open at the same time on the same order as",
        "SELECT a.operation_id, b.operation_id FROM operations a JOIN operations b
         ON b.tool = a.tool AND b.order_id = a.order_id
         AND (b.created_at, b.operation_id) < (a.created_at, a.operation_id)
         WHERE a.status IN ('open', 'unknown') AND a.provider_ref IS NULL
         AND b.status IN ('open', 'unknown') AND b.provider_ref IS NULL",
    ),
    (
        "I1",
        "open at the same time on the same payment as",
        "SELECT a.operation_id, b.operation_id FROM operations a JOIN operations b
         ON b.provider = a.provider AND b.payment = a.payment
         AND (b.created_at, b.operation_id) < (a.created_at, a.operation_id)
         WHERE a.status IN ('open', 'unknown') AND a.provider_ref IS NULL
         AND b.status IN ('open', 'unknown') AND b.provider_ref IS NULL",
    ),
    (
        "I2",
        "its key is also that of",
        "SELECT o.operation_id, k.first FROM operations o JOIN
         (SELECT idempotency_key, min(operation_id) AS first FROM operations
          GROUP BY idempotency_key HAVING count(*) > 1) k
         ON k.idempotency_key = o.idempotency_key AND k.first <> o.operation_id",
    ),
    (
        "I1",
        "the operation is there more than once:",
        "SELECT operation_id, operation_id FROM operations GROUP BY operation_id HAVING count(*) > 1",
    ),
    (
        "I17",
        "its provider's object is also that of",
        "SELECT o.operation_id, k.first FROM operations o JOIN
         (SELECT provider, provider_ref, min(operation_id) AS first FROM operations
          WHERE provider_ref IS NOT NULL GROUP BY provider, provider_ref HAVING count(*) > 1) k
         ON k.provider = o.provider AND k.provider_ref = o.provider_ref AND k.first <> o.operation_id",
    ),
    (
        "I17",
        "its provider's object is kept as another operation's:",
        "SELECT o.operation_id, p.operation_id FROM operations o JOIN provider_objects p
         ON p.provider = o.provider AND p.provider_ref = o.provider_ref
         WHERE p.operation_id <> o.operation_id",
    ),
    (
        "I17",
        "no evidence of it shows the object that is kept as its own:",
        "SELECT p.operation_id, p.provider_ref FROM provider_objects p WHERE NOT EXISTS (
         SELECT 1 FROM evidence e WHERE e.operation_id = p.operation_id AND e.provider_ref = p.provider_ref
         AND CASE WHEN json_valid(e.payload) THEN json_extract(e.payload, '$.bearing') END = 'ours')",
    ),
    (
        "I17",
        "its evidence shows as its own an object that is not kept so:",
        "SELECT e.operation_id, e.provider_ref FROM evidence e JOIN operations o ON o.operation_id = e.operation_id
         WHERE e.kind = 'object'
         AND CASE WHEN json_valid(e.payload) THEN json_extract(e.payload, '$.bearing') END = 'ours'
         AND NOT EXISTS (SELECT 1 FROM provider_objects p WHERE p.provider = o.provider
                         AND p.provider_ref = e.provider_ref AND p.operation_id = e.operation_id)",
    ),
];

pub(super) async fn check(
    conn: &mut SqliteConnection,
    found: &mut Findings,
) -> Result<(), LedgerError> {
    for (rule, what, sql) in ONCE {
        let mut rows = sqlx::query(sql).fetch(&mut *conn);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let id: String = row.try_get(0).map_err(failed)?;
            let other: String = row.try_get(1).map_err(failed)?;
            found.add(Some(&id), rule, format!("{what} {other}"));
            if found.is_full() {
                return Ok(());
            }
        }
    }
    Ok(())
}
