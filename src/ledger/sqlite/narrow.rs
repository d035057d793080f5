//! The few rows that a filter can mean, each found by an index; a filter that means many is looked for
//! along the list instead.
//!
//! Owns: which part of a filter is asked first, and what free text is taken for. What is found here is
//! still held against the whole filter by `pages`.

use sqlx::{Row, SqliteConnection};

use super::pages::Statement;
use super::{Inner, store};
use crate::domain::{Instant, earlier, later};
use crate::ledger::query::Filter;
use crate::ledger::row::{micros, to_json};
use crate::ledger::{LedgerError, Tab};

/// More than these are not few.
const FEW: usize = 1_000;

pub(super) const STATUSES: [&str; 4] = ["open", "unknown", "succeeded", "failed"];

/// The names of all providers, by jumping from one to the next.
macro_rules! providers {
    () => {
        "WITH RECURSIVE providers (name) AS (SELECT min(provider) FROM operations
             UNION ALL SELECT (SELECT min(provider) FROM operations WHERE provider > name) FROM providers WHERE name IS NOT NULL) "
    };
}

/// The statuses of a list's rows.
pub(super) fn statuses(tab: Tab) -> &'static [&'static str] {
    match tab {
        Tab::Review | Tab::All => &STATUSES,
        Tab::Open => &["open"],
        Tab::Unknown => &["unknown"],
        Tab::Succeeded => &["succeeded"],
        Tab::Failed => &["failed"],
    }
}

/// What follows the ellipsis of an id that was shortened for the screen.
fn meant(text: &str) -> &str {
    let text = text.rsplit('…').next().unwrap_or(text);
    text.rsplit("...").next().unwrap_or(text)
}

/// Text as it is looked for everywhere (`SQLite` folds ASCII only, and both sides have to fold alike).
pub(super) fn folded(text: &str) -> String {
    meant(text).to_ascii_lowercase()
}

/// The numbers of all rows that can match, if those are few; perhaps with some that do not match.
pub(super) async fn few(
    conn: &mut SqliteConnection,
    inner: &Inner,
    filter: &Filter,
    statuses: &[&str],
) -> Result<Option<Vec<i64>>, LedgerError> {
    let statuses = to_json(&statuses)?;
    for query in paths(inner.clock.now(), filter, &statuses) {
        if let Some(rows) = asked(conn, query).await? {
            return Ok(Some(rows));
        }
    }
    match &filter.text {
        Some(text) => asked(conn, by_text(text)).await,
        None => Ok(None),
    }
}

/// A way to rows by an index: `?1` what is looked for, `?2` the statuses (a JSON list).
type Path<'f> = Statement<'f>;

/// The ways that a filter offers, those that lead to fewer rows first.
fn paths<'f>(now: Instant, filter: &'f Filter, statuses: &'f str) -> Vec<Path<'f>> {
    let mut paths = Vec::new();
    if let Some(key) = &filter.key {
        let sql = "SELECT rowid FROM operations WHERE idempotency_key = ?1 LIMIT 1001";
        paths.push(sqlx::query(sql).bind(key));
    }
    if let Some(call) = &filter.call {
        let sql = "SELECT o.rowid FROM tool_calls c CROSS JOIN operations o USING (operation_id)
                   WHERE c.call_id = ?1 LIMIT 1001";
        paths.push(sqlx::query(sql).bind(call));
    }
    if let Some(id) = &filter.provider_ref {
        let sql = concat!(
            providers!(),
            "SELECT rowid FROM operations WHERE provider IN providers AND provider_ref = ?1 LIMIT 1001"
        );
        paths.push(sqlx::query(sql).bind(id));
    }
    if let Some(order) = &filter.order {
        let sql = "SELECT rowid FROM operations
                   WHERE status IN (SELECT value FROM json_each(?2)) AND coalesce(order_id, '') = ?1 LIMIT 1001";
        paths.push(sqlx::query(sql).bind(order).bind(statuses));
    }
    if let Some(session) = &filter.session {
        let sql =
            "SELECT DISTINCT o.rowid FROM tool_calls c CROSS JOIN operations o USING (operation_id)
                   WHERE c.session_id = ?1 LIMIT 1001";
        paths.push(sqlx::query(sql).bind(session));
    }
    if let Some(reason) = filter.reason {
        let sql =
            "SELECT rowid FROM operations WHERE reason IS NOT NULL AND reason = ?1 LIMIT 1001";
        paths.push(sqlx::query(sql).bind(<&str>::from(reason)));
    }
    if let Some(left) = filter.left_under {
        let sql = "SELECT rowid FROM operations
                   WHERE status = 'open' AND coalesce(key_expires_at, 9000000000000000) < ?1 LIMIT 1001";
        paths.push(sqlx::query(sql).bind(micros(later(now, left))));
    }
    if let Some(amount) = filter.amount_over {
        let sql = "SELECT rowid FROM operations
                   WHERE status IN (SELECT value FROM json_each(?2)) AND coalesce(amount_cents, 0) > ?1 LIMIT 1001";
        paths.push(sqlx::query(sql).bind(amount).bind(statuses));
    }
    if let Some(age) = filter.age_over {
        let sql = "SELECT rowid FROM operations
                   WHERE status IN (SELECT value FROM json_each(?2)) AND created_at < ?1 LIMIT 1001";
        paths.push(
            sqlx::query(sql)
                .bind(micros(earlier(now, age)))
                .bind(statuses),
        );
    }
    if let Some(tool) = &filter.tool {
        let sql = "SELECT rowid FROM operations WHERE tool = ?1 LIMIT 1001";
        paths.push(sqlx::query(sql).bind(tool));
    }
    paths
}

/// Rows of which an id begins so, or whose operation id ends so: the token on the screen. Orders and
/// the provider's ids are looked for as written, in small and in capital letters.
fn by_text(text: &str) -> Path<'static> {
    let sql = concat!(
        providers!(),
        ", spelled (low, high) AS (VALUES (?2, ?2 || char(1114111)), (?1, ?1 || char(1114111)), (upper(?1), upper(?1) || char(1114111)))
         SELECT DISTINCT row FROM (
             SELECT rowid AS row FROM operations WHERE operation_id >= ?1 AND operation_id < ?1 || char(1114111)
             UNION ALL SELECT rowid FROM operations WHERE operation_id >= 'op_' || ?1 AND operation_id < 'op_' || ?1 || char(1114111)
             UNION ALL SELECT rowid FROM operations WHERE substr(operation_id, -4) = ?1
             UNION ALL SELECT o.rowid FROM spelled s CROSS JOIN operations o
                 WHERE o.status IN ('open', 'unknown', 'succeeded', 'failed') AND coalesce(o.order_id, '') >= s.low AND coalesce(o.order_id, '') < s.high
             UNION ALL SELECT o.rowid FROM spelled s CROSS JOIN operations o
                 WHERE o.provider IN providers AND o.payment >= s.low AND o.payment < s.high
             UNION ALL SELECT o.rowid FROM spelled s CROSS JOIN operations o
                 WHERE o.provider IN providers AND o.provider_ref >= s.low AND o.provider_ref < s.high
             LIMIT 4000)
         LIMIT 1001"
    );
    sqlx::query(sql)
        .bind(folded(text))
        .bind(meant(text).to_owned())
}

async fn asked(
    conn: &mut SqliteConnection,
    path: Path<'_>,
) -> Result<Option<Vec<i64>>, LedgerError> {
    let found = path.fetch_all(conn).await.map_err(store::failed)?;
    if found.len() > FEW {
        return Ok(None);
    }
    let rows = found.iter().map(|found| found.try_get(0));
    rows.collect::<Result<_, _>>()
        .map(Some)
        .map_err(store::failed)
}

/// Every statement that a filter can lead to, for their plans to be looked at.
#[cfg(test)]
pub(super) fn statements() -> Vec<String> {
    use sqlx::Execute as _;
    let some = || Some("x".to_owned());
    let filter = Filter {
        tool: some(),
        order: some(),
        session: some(),
        call: some(),
        key: some(),
        provider_ref: some(),
        reason: Some(crate::domain::operation::UnknownReason::Stopped),
        age_over: Some(std::time::Duration::ZERO),
        left_under: Some(std::time::Duration::ZERO),
        amount_over: Some(0),
        text: None,
    };
    let all = paths(Instant::UNIX_EPOCH, &filter, "[]");
    all.into_iter()
        .chain([by_text("x")])
        .map(|query| query.sql().as_str().to_owned())
        .collect()
}
