//! Reading: pages by keyset, counts, one operation with its history, step 3 of a call.

use std::sync::Arc;

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection, SqlitePool};

use super::{Inner, limits, store, terms};
use crate::domain::ids::{AgentName, CallId, OperationId, OrderId, PaymentId, SessionId, ToolName};
use crate::domain::opening;
use crate::domain::operation::OperationRow;
use crate::domain::policy::ProviderKind;
use crate::domain::tool_call::{RefundArguments, ToolCall};
use crate::domain::{earlier, later};
use crate::ledger::row::{self, Columns, micros};
use crate::ledger::{
    AuditPage, AuditQuery, AuditRow, Audited, BucketSeen, CallPage, CallQuery, Counts, Detail,
    EngineSeen, LedgerError, Listed, OrderRows, Page, PageQuery, Sort, Stamp, Tab, ToolState,
};

type Pooled = sqlx::pool::PoolConnection<sqlx::Sqlite>;

async fn reader(pool: &SqlitePool) -> Result<Pooled, LedgerError> {
    pool.acquire().await.map_err(store::failed)
}

/// What `Review` lists, and how urgent it is: contradicted; keys that run out; undetermined rows
/// nobody waits for or whose lookup told the outcome; unknown rows that can be decided; held rows and
/// proposals; what waits.
/// `?1` now, `?2` now + 2 h, `?3` now − settle time.
macro_rules! review_rank {
    () => {
        "CASE WHEN contradicted IS NOT NULL THEN 0
              WHEN held = 1 OR proposal IS NOT NULL THEN 4
              WHEN status = 'unknown' AND (decidable_at IS NULL OR decidable_at <= ?1
                   OR verdict IN ('confirmed', 'second_effect')) THEN 3
              WHEN status = 'unknown' THEN 5
              WHEN status = 'open' AND key_expires_at IS NOT NULL AND provider_ref IS NULL AND key_expires_at <= ?2 THEN 1
              WHEN status = 'open' AND verdict IN ('confirmed', 'refused') THEN 2
              WHEN status = 'open' AND last_authorised_at <= ?3 AND provider_ref IS NULL AND effect <> 'not_started'
                   AND NOT EXISTS (SELECT 1 FROM tool_calls c WHERE c.operation_id = o.operation_id
                                   AND c.state IN ('queued', 'running')) THEN 2
              ELSE 9 END"
    };
}

macro_rules! in_review {
    () => {
        concat!(
            "(status IN ('open', 'unknown') OR contradicted IS NOT NULL) AND ",
            review_rank!(),
            " < 9"
        )
    };
}

/// The filter's parameters: `?4` tool, `?5` order, `?6` session, `?7` call, `?8` key, `?9` provider
/// id, `?10` reason, `?11` created before, `?12` key left until, `?13` amount over, `?14` text.
macro_rules! list_sql {
    ($where:expr, $key:expr, $cmp:literal, $dir:literal) => {
        concat!(
            "SELECT o.*, EXISTS (SELECT 1 FROM drives d WHERE d.operation_id = o.operation_id AND d.until > ?1) AS driven,
                (SELECT json_group_array(DISTINCT session_id) FROM tool_calls c
                 WHERE c.operation_id = o.operation_id AND session_id IS NOT NULL) AS sessions
             FROM operations o WHERE ", $where, "
             AND ?2 IS NOT NULL AND ?3 IS NOT NULL
             AND (?4 IS NULL OR tool = ?4) AND (?5 IS NULL OR order_id = ?5)
             AND (?6 IS NULL OR EXISTS (SELECT 1 FROM tool_calls c WHERE c.operation_id = o.operation_id AND c.session_id = ?6))
             AND (?7 IS NULL OR EXISTS (SELECT 1 FROM tool_calls c WHERE c.operation_id = o.operation_id AND c.call_id = ?7))
             AND (?8 IS NULL OR idempotency_key = ?8) AND (?9 IS NULL OR provider_ref = ?9)
             AND (?10 IS NULL OR reason = ?10) AND (?11 IS NULL OR created_at < ?11)
             AND (?12 IS NULL OR (key_expires_at < ?12 AND status = 'open'))
             AND (?13 IS NULL OR amount_cents > ?13)
             AND (?14 IS NULL OR instr(lower(operation_id), ?14) > 0 OR instr(lower(order_id), ?14) > 0
                  OR instr(lower(coalesce(payment, '')), ?14) > 0 OR instr(lower(coalesce(provider_ref, '')), ?14) > 0)
             AND (?15 IS NULL OR (", $key, ", operation_id) ", $cmp, " (SELECT ", $key, ", operation_id FROM operations o WHERE operation_id = ?15))
             ORDER BY ", $key, " ", $dir, ", operation_id ", $dir, " LIMIT ?16"
        )
    };
}

macro_rules! by_sort {
    ($where:expr, $sort:expr, $ascending:expr) => {
        match ($sort, $ascending) {
            (Sort::Updated, false) => list_sql!($where, "updated_at", "<", "DESC"),
            (Sort::Updated, true) => list_sql!($where, "updated_at", ">", "ASC"),
            (Sort::Created, false) => list_sql!($where, "created_at", "<", "DESC"),
            (Sort::Created, true) => list_sql!($where, "created_at", ">", "ASC"),
            (Sort::Amount, false) => list_sql!($where, "amount_cents", "<", "DESC"),
            (Sort::Amount, true) => list_sql!($where, "amount_cents", ">", "ASC"),
            (Sort::Attempts, false) => list_sql!($where, "attempts", "<", "DESC"),
            (Sort::Attempts, true) => list_sql!($where, "attempts", ">", "ASC"),
            (Sort::KeyLeft, false) => {
                list_sql!($where, "coalesce(key_expires_at, 9e15)", "<", "DESC")
            }
            (Sort::KeyLeft, true) => {
                list_sql!($where, "coalesce(key_expires_at, 9e15)", ">", "ASC")
            }
            (Sort::Order, false) => list_sql!($where, "order_id", "<", "DESC"),
            (Sort::Order, true) => list_sql!($where, "order_id", ">", "ASC"),
        }
    };
}

fn sql_of(query: &PageQuery) -> &'static str {
    let (sort, up) = (query.sort, query.ascending);
    match query.tab {
        // Its order is its own: urgency first, then age.
        Tab::Review => list_sql!(
            in_review!(),
            concat!(review_rank!(), ", coalesce(unknown_at, created_at)"),
            ">",
            "ASC"
        ),
        Tab::Open => by_sort!("status = 'open'", sort, up),
        Tab::Unknown => by_sort!("status = 'unknown'", sort, up),
        Tab::Succeeded => by_sort!("status = 'succeeded'", sort, up),
        Tab::Failed => by_sort!("status = 'failed'", sort, up),
        Tab::All => by_sort!("1", sort, up),
    }
}

/// The instants that the review list is measured by: now, now + 2 h, now − settle time.
fn horizons(inner: &Inner) -> [i64; 3] {
    let now = inner.clock.now();
    let settle = inner
        .terms
        .values()
        .map(|t| t.profile.settle_time)
        .min()
        .unwrap_or_default();
    let soon = later(now, std::time::Duration::from_hours(2));
    [micros(now), micros(soon), micros(earlier(now, settle))]
}

pub(super) async fn page(inner: &Arc<Inner>, query: &PageQuery) -> Result<Page, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let [now, soon, settled] = horizons(inner);
    let f = &query.filter;
    let limit = query.limit.clamp(1, 1000);
    let before = |age| micros(earlier(inner.clock.now(), age));
    let until = |left| micros(later(inner.clock.now(), left));
    let rows = sqlx::query(sql_of(query))
        .bind(now)
        .bind(soon)
        .bind(settled)
        .bind(&f.tool)
        .bind(&f.order)
        .bind(&f.session)
        .bind(&f.call)
        .bind(&f.key)
        .bind(&f.provider_ref)
        .bind(f.reason.map(<&str>::from))
        .bind(f.age_over.map(before))
        .bind(f.left_under.map(until))
        .bind(f.amount_over)
        // SQLite's lower() knows ASCII only; both sides have to fold alike.
        .bind(f.text.as_ref().map(|t| t.to_ascii_lowercase()))
        .bind(query.after.as_ref().map(OperationId::as_str))
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let more = rows.len() > limit as usize;
    let rows = rows
        .iter()
        .take(limit as usize)
        .map(listed)
        .collect::<Result<_, _>>()?;
    Ok(Page { rows, more })
}

fn listed(found: &SqliteRow) -> Result<Listed, LedgerError> {
    let c = Columns(found);
    Ok(Listed {
        row: row::operation(found)?,
        driven: c.flag("driven")?,
        sessions: c.json("sessions")?,
    })
}

pub(super) async fn counts(inner: &Arc<Inner>) -> Result<Counts, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let [now, soon, settled] = horizons(inner);
    let mut counts = Counts::default();
    let by_status = sqlx::query("SELECT status, count(*) FROM operations GROUP BY status")
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    for row in &by_status {
        let n = row.get::<i64, _>(1).unsigned_abs();
        match row.get::<&str, _>(0) {
            "open" => counts.open = n,
            "unknown" => counts.unknown = n,
            "succeeded" => counts.succeeded = n,
            "failed" => counts.failed = n,
            _ => {}
        }
    }
    let review = concat!(
        "SELECT count(*) FROM operations o WHERE ?1 + ?2 + ?3 IS NOT NULL AND ",
        in_review!()
    );
    let n: i64 = sqlx::query_scalar(review)
        .bind(now)
        .bind(soon)
        .bind(settled)
        .fetch_one(&mut *conn)
        .await
        .map_err(store::failed)?;
    counts.review = n.unsigned_abs();
    let waiting = "SELECT (SELECT count(*) FROM tool_calls WHERE state = 'queued'),
        (SELECT count(*) FROM tool_calls WHERE state = 'running'),
        (SELECT count(*) FROM attempts WHERE finished_at IS NULL)";
    let row = sqlx::query(waiting)
        .fetch_one(&mut *conn)
        .await
        .map_err(store::failed)?;
    counts.queued = row.get::<i64, _>(0).unsigned_abs();
    counts.running = row.get::<i64, _>(1).unsigned_abs();
    counts.in_flight = row.get::<i64, _>(2).unsigned_abs();
    Ok(counts)
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

fn audit_row(found: &SqliteRow) -> Result<AuditRow, LedgerError> {
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
    args: &RefundArguments,
    payment: Option<&PaymentId>,
) -> Result<OrderRows, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let policy = &terms(&inner.terms, tool)?.policy;
    let payment = payment.or(args.payment.as_ref());
    // The mark first: what changes between the two reads is then noticed.
    let mark = store::mark(&mut conn).await?;
    let rows = store::order_rows(&mut conn, tool, &policy.provider, &args.order, payment).await?;
    Ok(OrderRows {
        got: opening::get(&rows, args, payment, policy),
        mark: mark.to_string(),
    })
}

/// Rows with a deadline behind them, an attempt whose driver is gone, or a typed id nobody fetched.
pub(super) async fn sweepable(inner: &Arc<Inner>) -> Result<Vec<OperationId>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let now = inner.clock.now();
    let approval = inner
        .terms
        .values()
        .map(|t| t.policy.approval_ttl)
        .min()
        .unwrap_or_default();
    let sql = "SELECT operation_id FROM operations o WHERE (status = 'open' AND (
                   key_expires_at <= ?1 OR first_authorised_at > ?1 OR attempts >= attempts_max OR pending_since <= ?2
                   OR (held = 1 AND created_at <= ?3)
                   OR (held = 0 AND attempts = 0 AND NOT EXISTS (SELECT 1 FROM tool_calls c
                       WHERE c.operation_id = o.operation_id AND c.state IN ('queued', 'running')))))
               OR operation_id IN (SELECT operation_id FROM attempts a WHERE finished_at IS NULL
                   AND NOT EXISTS (SELECT 1 FROM drives d WHERE d.operation_id = a.operation_id AND d.until > ?1))
               OR (status = 'open' AND last_authorised_at <= ?4 AND tool IN (SELECT value FROM json_each(?5)))
               OR operation_id IN (SELECT operation_id FROM evidence WHERE source = 'typed_ref' AND kind = 'unreachable')
               OR proposal IS NOT NULL ORDER BY updated_at LIMIT 1000";
    // Rows of providers without keys have a deadline for being looked up.
    let lookups: Vec<&ToolName> = inner
        .terms
        .iter()
        .filter(|(_, terms)| terms.profile.kind == ProviderKind::Lookup)
        .map(|(tool, _)| tool)
        .collect();
    let rows = sqlx::query(sql)
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

pub(super) async fn calls(inner: &Arc<Inner>, query: &CallQuery) -> Result<CallPage, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let sql = "SELECT c.* FROM tool_calls c LEFT JOIN operations o USING (operation_id)
               WHERE (?1 IS NULL OR c.state = ?1) AND (?2 IS NULL OR c.tool = ?2)
               AND (?3 IS NULL OR o.order_id = ?3) AND (?4 IS NULL OR c.session_id = ?4)
               AND (?5 IS NULL OR c.delivery = ?5)
               AND (?6 IS NULL OR (c.accepted_at, c.rowid) <
                    (SELECT accepted_at, rowid FROM tool_calls WHERE agent = ?6 AND call_id = ?7))
               ORDER BY c.accepted_at DESC, c.rowid DESC LIMIT ?8";
    let limit = query.limit.clamp(1, 100_000);
    let after = query.after.as_ref();
    let rows = sqlx::query(sql)
        .bind(query.state.map(<&str>::from))
        .bind(query.tool.as_ref().map(ToolName::as_str))
        .bind(query.order.as_ref().map(OrderId::as_str))
        .bind(query.session.as_ref().map(SessionId::as_str))
        .bind(query.delivery.map(<&str>::from))
        .bind(after.map(|(agent, _)| agent.as_str()))
        .bind(after.map(|(_, call)| call.as_str()))
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let more = rows.len() > limit as usize;
    let calls = rows.iter().take(limit as usize).map(row::call);
    Ok(CallPage {
        calls: calls.collect::<Result<_, _>>()?,
        more,
    })
}

pub(super) async fn audit(
    inner: &Arc<Inner>,
    query: &AuditQuery,
) -> Result<AuditPage, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let sql =
        "SELECT * FROM audit WHERE (?1 IS NULL OR operation_id = ?1) AND (?2 IS NULL OR actor = ?2)
               AND (?3 IS NULL OR action = ?3) AND (?4 IS NULL OR audit_id < ?4)
               ORDER BY audit_id DESC LIMIT ?5";
    let limit = query.limit.clamp(1, 10_000);
    let rows = sqlx::query(sql)
        .bind(query.operation.as_ref().map(OperationId::as_str))
        .bind(&query.actor)
        .bind(&query.action)
        .bind(query.after)
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let more = rows.len() > limit as usize;
    let rows = rows.iter().take(limit as usize).map(|found| {
        let c = Columns(found);
        Ok(Audited {
            audit_id: c.int("audit_id")?,
            operation_id: c.word("operation_id")?,
            entry: audit_row(found)?,
        })
    });
    Ok(AuditPage {
        rows: rows.collect::<Result<_, LedgerError>>()?,
        more,
    })
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
