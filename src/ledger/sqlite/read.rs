//! Reading: one operation with its history, step 3 of a call, what is due, and what else the screen
//! shows. Lists are in `pages`, `review_list` and `feeds`, counts in `counts`.

use std::sync::Arc;

use sqlx::sqlite::SqliteRow;
use sqlx::{SqliteConnection, SqlitePool};

use super::pages::Statement;
use super::{Inner, limits, store, terms};
use crate::domain::arguments::Arguments;
use crate::domain::ids::{AgentName, CallId, OperationId, PaymentId, ToolName};
use crate::domain::opening;
use crate::domain::operation::OperationRow;
use crate::domain::tool_call::ToolCall;
use crate::domain::{earlier, later};
use crate::ledger::row::{self, Columns, micros};
use crate::ledger::{
    AuditRow, BucketSeen, Detail, EngineSeen, LedgerError, LookupBusy, OrderRows, Stamp, ToolState,
};

pub(super) type Pooled = sqlx::pool::PoolConnection<sqlx::Sqlite>;

pub(super) async fn reader(pool: &SqlitePool) -> Result<Pooled, LedgerError> {
    pool.acquire().await.map_err(store::failed)
}

/// The instants that the review list is measured by, microseconds.
#[derive(Clone, Copy)]
pub(super) struct Horizons {
    now: i64,
    /// Keys that run out by then are urgent: now + 2 h.
    soon: i64,
    /// What was sent before is settled at the provider, if it ever will be: now − settle time.
    settled: i64,
}

impl Horizons {
    pub(super) fn of(inner: &Inner) -> Self {
        let now = inner.clock.now();
        let settle = inner.terms.values().map(|t| t.profile.settle_time).min();
        let soon = later(now, std::time::Duration::from_hours(2));
        Self {
            now: micros(now),
            soon: micros(soon),
            settled: micros(earlier(now, settle.unwrap_or_default())),
        }
    }

    /// Binds `?1` to `?3`.
    pub(super) fn bind(self, query: Statement<'_>) -> Statement<'_> {
        query.bind(self.now).bind(self.soon).bind(self.settled)
    }
}

pub(super) async fn detail(
    inner: &Arc<Inner>,
    id: &OperationId,
) -> Result<Option<Detail>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    // One snapshot, so that row and history agree.
    let mut tx = sqlx::Connection::begin(&mut *conn)
        .await
        .map_err(store::failed)?;
    let Some(op) = store::load(&mut tx, id).await? else {
        return Ok(None);
    };
    let calls = sqlx::query(
        "SELECT * FROM tool_calls WHERE operation_id = ? ORDER BY accepted_at LIMIT 500",
    )
    .bind(id.as_str())
    .fetch_all(&mut *tx)
    .await
    .map_err(store::failed)?;
    let audit = sqlx::query("SELECT * FROM audit WHERE operation_id = ? ORDER BY seq LIMIT 2000")
        .bind(id.as_str())
        .fetch_all(&mut *tx)
        .await
        .map_err(store::failed)?;
    let driver =
        sqlx::query("SELECT engine, call_id FROM drives WHERE operation_id = ? AND until > ?")
            .bind(id.as_str())
            .bind(micros(inner.clock.now()))
            .fetch_optional(&mut *tx)
            .await
            .map_err(store::failed)?;
    let driver = match &driver {
        Some(found) => {
            let c = Columns(found);
            Some((c.word("engine")?, c.word("call_id")?))
        }
        None => None,
    };
    let detail = Detail {
        op,
        calls: calls.iter().map(row::call).collect::<Result<_, _>>()?,
        audit: audit.iter().map(audit_row).collect::<Result<_, _>>()?,
        driver,
    };
    tx.rollback().await.map_err(store::failed)?;
    Ok(Some(detail))
}

pub(super) fn audit_row(found: &SqliteRow) -> Result<AuditRow, LedgerError> {
    let c = Columns(found);
    Ok(AuditRow {
        seq: c.int("seq")?,
        at: c.at("at")?,
        actor: c.text("actor")?,
        os_user: c.text("os_user")?,
        action: c.text("action")?,
        detail: c.json("detail")?,
        hash: c.text("hash")?,
    })
}

pub(super) async fn get(
    inner: &Arc<Inner>,
    tool: &ToolName,
    args: &Arguments,
    payment: Option<&PaymentId>,
) -> Result<OrderRows, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let policy = &terms(&inner.terms, tool)?.policy;
    let payment = payment.or(args.payment.as_ref());
    // The mark first: what changes between the two reads is then noticed.
    let mark = store::mark(&mut conn).await?;
    let rows = store::rows_about(&mut conn, tool, &policy.provider, args, payment).await?;
    Ok(OrderRows {
        got: opening::get(&rows, args, payment, policy),
        mark: mark.to_string(),
    })
}

/// Whether a review lookup would be refused now.
pub(super) async fn lookup_busy(
    inner: &Arc<Inner>,
    id: &OperationId,
) -> Result<Option<LookupBusy>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    limits::lookup_busy(&mut conn, &inner.terms, inner.clock.now(), id).await
}

pub(super) const SWEEPABLE: &str = "SELECT operation_id FROM (
        SELECT operation_id FROM operations WHERE status = 'open' AND (pending_since <= ?2
            OR (held = 1 AND created_at <= ?3)
            OR (provider_ref IS NULL AND (key_expires_at <= ?1 OR first_authorised_at > ?1
                                          OR attempts >= attempts_max)))
        UNION SELECT operation_id FROM operations
            WHERE status = 'open' AND last_authorised_at <= ?4 AND tool IN (SELECT value FROM json_each(?5))
        UNION SELECT operation_id FROM operations o WHERE status = 'open' AND held = 0 AND attempts = 0
            AND NOT EXISTS (SELECT 1 FROM tool_calls c WHERE c.operation_id = o.operation_id
                            AND c.state IN ('queued', 'running'))
        UNION SELECT a.operation_id FROM attempts a WHERE a.finished_at IS NULL
            AND NOT EXISTS (SELECT 1 FROM drives d WHERE d.operation_id = a.operation_id AND d.until > ?1)
        UNION SELECT operation_id FROM evidence WHERE source = 'typed_ref' AND kind = 'unreachable'
        UNION SELECT operation_id FROM operations WHERE proposal IS NOT NULL)
    JOIN operations USING (operation_id) ORDER BY updated_at LIMIT 1000";

/// Rows with a deadline behind them, an attempt whose driver is gone, nothing sent and nobody waiting, or a
/// typed id nobody fetched.
/// Each arm reads an index of its own: a sweep of a million rows looks at the open ones.
pub(super) async fn sweepable(inner: &Arc<Inner>) -> Result<Vec<OperationId>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let now = inner.clock.now();
    let approval = inner
        .terms
        .values()
        .map(|t| t.policy.approval_ttl)
        .min()
        .unwrap_or_default();
    // Rows of providers without keys have a deadline for being looked up.
    let lookups: Vec<&ToolName> = inner
        .terms
        .iter()
        .filter(|(_, terms)| terms.searches_first())
        .map(|(tool, _)| tool)
        .collect();
    let rows = sqlx::query(SWEEPABLE)
        .bind(micros(now))
        .bind(micros(earlier(
            now,
            std::time::Duration::from_hours(35 * 24),
        )))
        .bind(micros(earlier(now, approval)))
        .bind(micros(earlier(now, std::time::Duration::from_hours(1))))
        .bind(row::to_json(&lookups)?)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    rows.iter()
        .map(|found| Columns(found).word("operation_id"))
        .collect()
}

pub(super) async fn rows(
    inner: &Arc<Inner>,
    ids: &[OperationId],
) -> Result<Vec<OperationRow>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        rows.extend(one_row(&mut conn, id).await?);
    }
    Ok(rows)
}

async fn one_row(
    conn: &mut SqliteConnection,
    id: &OperationId,
) -> Result<Option<OperationRow>, LedgerError> {
    let found = sqlx::query("SELECT * FROM operations WHERE operation_id = ?")
        .bind(id.as_str())
        .fetch_optional(conn)
        .await
        .map_err(store::failed)?;
    found.as_ref().map(row::operation).transpose()
}

pub(super) async fn moved(
    inner: &Arc<Inner>,
    seen: &[(OperationId, i64)],
) -> Result<Vec<OperationRow>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let sql =
        "SELECT o.* FROM json_each(?) j CROSS JOIN operations o ON o.operation_id = j.value ->> 0
               WHERE o.audit_seq <> j.value ->> 1";
    let rows = sqlx::query(sql)
        .bind(row::to_json(&seen)?)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    rows.iter().map(row::operation).collect()
}

pub(super) async fn call(
    inner: &Arc<Inner>,
    agent: &AgentName,
    id: &CallId,
) -> Result<Option<ToolCall>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let found = sqlx::query("SELECT * FROM tool_calls WHERE agent = ? AND call_id = ?")
        .bind(agent.as_str())
        .bind(id.as_str())
        .fetch_optional(&mut *conn)
        .await
        .map_err(store::failed)?;
    found.as_ref().map(row::call).transpose()
}

pub(super) async fn buckets(inner: &Arc<Inner>) -> Result<Vec<BucketSeen>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let rows = sqlx::query("SELECT name, full_at FROM buckets ORDER BY name LIMIT 1000")
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let seen = rows.iter().map(|found| {
        let c = Columns(found);
        Ok(BucketSeen {
            name: c.text("name")?,
            full_at: c.at("full_at")?,
        })
    });
    seen.collect()
}

pub(super) async fn tools(inner: &Arc<Inner>) -> Result<Vec<ToolState>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let rows = sqlx::query("SELECT * FROM tool_state ORDER BY tool")
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    rows.iter()
        .map(|found| limits::tool_state(&Columns(found)))
        .collect()
}

pub(super) async fn engines(inner: &Arc<Inner>) -> Result<Vec<EngineSeen>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let rows = sqlx::query("SELECT * FROM engines ORDER BY started_at DESC LIMIT 100")
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    rows.iter().map(limits::engine_row).collect()
}

pub(super) async fn stamps(inner: &Arc<Inner>) -> Result<Vec<Stamp>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let rows = sqlx::query("SELECT * FROM stamps ORDER BY provider")
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    rows.iter().map(limits::stamp_row).collect()
}
