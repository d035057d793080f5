//! The outbox: what people outside have to hear. Rows write their own notices (triggers); the rest is
//! told here, in the transaction that makes it true. Delivered at least once, by one process at a time.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteRow;
use strum::VariantArray;

use super::{Inner, SqliteLedger, Tx, store};
use crate::domain::ids::{SessionId, ToolName};
use crate::domain::money::Currency;
use crate::domain::notice::{KEY_EXPIRING, MAX_AGE, NoticeEvent};
use crate::domain::policy::Circuit;
use crate::domain::text::SafeText;
use crate::domain::{Instant, earlier, later};
use crate::ledger::row::{self, Columns, micros, to_json};
use crate::ledger::{Channel, LedgerError, Notice, NoticeCounts, Went};

/// A cap is told of once in so many microseconds.
const CAP_WINDOW: i64 = 3_600_000_000;

/// A tool's circuit opened. A trial that fails belongs to the same outage.
pub(super) async fn circuit_moved(
    tx: &mut Tx<'_>,
    tool: &ToolName,
    before: &Circuit,
    after: &Circuit,
) -> Result<(), LedgerError> {
    if before.is_open() || !after.is_open() {
        return Ok(());
    }
    let mark = micros(tx.now).to_string();
    let event = NoticeEvent::CircuitOpen;
    tell(tx, event, tool, tool.as_str(), &mark, None).await
}

/// A call was rejected because of a money cap: once per tool, currency and hour.
pub(super) async fn cap_reached(
    tx: &mut Tx<'_>,
    tool: &ToolName,
    currency: Currency,
    why: &str,
) -> Result<(), LedgerError> {
    let mark = micros(tx.now).div_euclid(CAP_WINDOW).to_string();
    let subject = format!("{tool} {currency}");
    let event = NoticeEvent::CapReached;
    tell(tx, event, tool, &subject, &mark, Some(why)).await
}

async fn tell(
    tx: &mut Tx<'_>,
    event: NoticeEvent,
    tool: &ToolName,
    subject: &str,
    mark: &str,
    reason: Option<&str>,
) -> Result<(), LedgerError> {
    let sql = "INSERT INTO notices (event, subject, tool, mark, reason, at, next_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT (event, subject, mark) DO NOTHING";
    sqlx::query(sql)
        .bind(event.as_str())
        .bind(subject)
        .bind(tool.as_str())
        .bind(mark)
        .bind(reason)
        .bind(micros(tx.now))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// Unsettled open rows whose key runs out soon and that nobody was told of.
macro_rules! expiring {
    ($select:literal) => {
        concat!(
            $select,
            " FROM operations o WHERE status = 'open' AND provider_ref IS NULL
              AND key_expires_at > ?1 AND key_expires_at <= ?2 AND NOT EXISTS (SELECT 1 FROM notices n
                  WHERE n.event = 'key_expiring' AND n.subject = o.operation_id AND n.mark = CAST(o.key_expires_at AS TEXT))
              LIMIT 1000"
        )
    };
}

/// Looked for by a reader, so that nobody waits for the writer while there is nothing.
pub(super) async fn tell_of_expiring(ledger: &SqliteLedger) -> Result<u64, LedgerError> {
    let any = ledger.read(|inner| async move { is_any_expiring(&inner).await });
    if !any.await? {
        return Ok(0);
    }
    ledger
        .write(|mut tx| Box::pin(async move { tell_expiring(&mut tx).await }))
        .await
}

async fn is_any_expiring(inner: &Arc<Inner>) -> Result<bool, LedgerError> {
    let now = inner.clock.now();
    let found: Option<i64> = sqlx::query_scalar(expiring!("SELECT 1"))
        .bind(micros(now))
        .bind(micros(later(now, KEY_EXPIRING)))
        .fetch_optional(&inner.readers)
        .await
        .map_err(store::failed)?;
    Ok(found.is_some())
}

/// Once per row and deadline.
async fn tell_expiring(tx: &mut Tx<'_>) -> Result<u64, LedgerError> {
    let sql = expiring!(
        "INSERT INTO notices (event, subject, tool, operation_id, mark, at, next_at)
         SELECT 'key_expiring', operation_id, tool, operation_id, CAST(key_expires_at AS TEXT), ?1, ?1"
    );
    let told = sqlx::query(sql)
        .bind(micros(tx.now))
        .bind(micros(later(tx.now, KEY_EXPIRING)))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(told.rows_affected())
}

/// Likewise by a reader first.
pub(super) async fn take_due(
    ledger: &SqliteLedger,
    events: &[NoticeEvent],
    lease: Duration,
) -> Result<Option<Notice>, LedgerError> {
    let events = events.to_vec();
    let wanted = events.clone();
    let due = ledger.read(|inner| async move { is_any_due(&inner, &wanted).await });
    if !due.await? {
        return Ok(None);
    }
    ledger
        .write(move |mut tx| Box::pin(async move { take(&mut tx, &events, lease).await }))
        .await
}

/// Whether a notice of `events` is due, or any is too old.
async fn is_any_due(inner: &Arc<Inner>, events: &[NoticeEvent]) -> Result<bool, LedgerError> {
    let now = inner.clock.now();
    let sql = "SELECT EXISTS (SELECT 1 FROM notices WHERE state = 'pending'
                   AND event IN (SELECT value FROM json_each(?1)) AND next_at <= ?2)
               OR EXISTS (SELECT 1 FROM notices WHERE state = 'pending'
                   AND event IN (SELECT value FROM json_each(?3)) AND next_at <= ?4)";
    sqlx::query_scalar(sql)
        .bind(to_json(&events)?)
        .bind(micros(now))
        .bind(to_json(&<NoticeEvent as VariantArray>::VARIANTS)?)
        .bind(micros(earlier(now, MAX_AGE)))
        .fetch_one(&inner.readers)
        .await
        .map_err(store::failed)
}

/// The oldest due notice of `events`; its try is counted, and for `lease` it is nobody else's.
async fn take(
    tx: &mut Tx<'_>,
    events: &[NoticeEvent],
    lease: Duration,
) -> Result<Option<Notice>, LedgerError> {
    give_up_old(tx).await?;
    let sql = "UPDATE notices SET tries = tries + 1, next_at = ?1 WHERE notice_id = (
                   SELECT notice_id FROM notices WHERE state = 'pending' AND next_at <= ?2
                   AND event IN (SELECT value FROM json_each(?3)) ORDER BY next_at, notice_id LIMIT 1)
               RETURNING *";
    let found = sqlx::query(sql)
        .bind(micros(later(tx.now, lease)))
        .bind(micros(tx.now))
        .bind(to_json(&events)?)
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    match found {
        Some(found) => notice(tx, &found).await.map(Some),
        None => Ok(None),
    }
}

/// What nobody touched for a day is given up, some at a time.
async fn give_up_old(tx: &mut Tx<'_>) -> Result<(), LedgerError> {
    let sql = "UPDATE notices SET state = 'gave_up', error = 'nobody delivered it in time' WHERE notice_id IN (
                   SELECT notice_id FROM notices WHERE state = 'pending' AND next_at <= ?1
                   AND event IN (SELECT value FROM json_each(?2)) LIMIT 500)";
    let done = sqlx::query(sql)
        .bind(micros(earlier(tx.now, MAX_AGE)))
        .bind(to_json(&<NoticeEvent as VariantArray>::VARIANTS)?)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    if done.rows_affected() > 0 {
        tracing::warn!(notices = done.rows_affected(), "too old to be told");
    }
    Ok(())
}

async fn notice(tx: &mut Tx<'_>, found: &SqliteRow) -> Result<Notice, LedgerError> {
    let c = Columns(found);
    let operation = c.opt("operation_id", Columns::text)?;
    let mut row = None;
    let mut sessions = Vec::new();
    if let Some(operation) = &operation {
        let found = sqlx::query("SELECT * FROM operations WHERE operation_id = ?")
            .bind(operation)
            .fetch_one(&mut *tx.conn)
            .await
            .map_err(store::failed)?;
        row = Some(row::operation(&found)?);
        sessions = sessions_of(tx, operation).await?;
    }
    let reached = [
        (Channel::Command, "command_at"),
        (Channel::Webhook, "webhook_at"),
    ];
    let reached = reached.into_iter().filter_map(|(channel, column)| {
        let at: Result<Option<Instant>, _> = c.opt(column, Columns::at);
        at.map(|at| at.map(|_| channel)).transpose()
    });
    Ok(Notice {
        id: c.int("notice_id")?,
        event: c.word("event")?,
        tool: c.word("tool")?,
        row,
        sessions,
        reason: c.opt("reason", Columns::safe)?,
        at: c.at("at")?,
        tries: c.count("tries")?,
        reached: reached.collect::<Result<_, _>>()?,
    })
}

async fn sessions_of(tx: &mut Tx<'_>, operation: &str) -> Result<Vec<SessionId>, LedgerError> {
    let sql = "SELECT session_id FROM tool_calls WHERE operation_id = ? AND session_id IS NOT NULL
               GROUP BY session_id ORDER BY min(accepted_at), session_id LIMIT 100";
    let rows = sqlx::query(sql)
        .bind(operation)
        .fetch_all(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    rows.iter()
        .map(|found| Columns(found).word("session_id"))
        .collect()
}

/// Writes how a delivery went, unless another process has the notice by now.
pub(super) async fn note(
    ledger: &SqliteLedger,
    notice: Notice,
    how: Went,
) -> Result<(), LedgerError> {
    ledger
        .write(move |mut tx| Box::pin(async move { went(&mut tx, &notice, &how).await }))
        .await
}

async fn went(tx: &mut Tx<'_>, notice: &Notice, went: &Went) -> Result<(), LedgerError> {
    let now = micros(tx.now);
    let (state, next_at, error): (&str, i64, Option<&SafeText>) = match went {
        Went::Reached(channel) => return reached(tx, notice, *channel).await,
        Went::Sent => ("sent", now, None),
        Went::Later { wait, why } => ("pending", micros(later(tx.now, *wait)), Some(why)),
        Went::GaveUp { why } => ("gave_up", now, Some(why)),
    };
    let sql = "UPDATE notices SET state = ?, next_at = ?, error = coalesce(?, error)
               WHERE notice_id = ? AND tries = ? AND state = 'pending'";
    sqlx::query(sql)
        .bind(state)
        .bind(next_at)
        .bind(error.map(SafeText::as_str))
        .bind(notice.id)
        .bind(notice.tries)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// Also where another process took the notice meanwhile: it happened, and need not happen again.
async fn reached(tx: &mut Tx<'_>, notice: &Notice, channel: Channel) -> Result<(), LedgerError> {
    let sql = match channel {
        Channel::Command => {
            "UPDATE notices SET command_at = ? WHERE notice_id = ? AND command_at IS NULL"
        }
        Channel::Webhook => {
            "UPDATE notices SET webhook_at = ? WHERE notice_id = ? AND webhook_at IS NULL"
        }
    };
    sqlx::query(sql)
        .bind(micros(tx.now))
        .bind(notice.id)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

pub(super) async fn counts(ledger: &SqliteLedger) -> Result<NoticeCounts, LedgerError> {
    ledger
        .read(|inner| async move { counted(&inner).await })
        .await
}

async fn counted(inner: &Arc<Inner>) -> Result<NoticeCounts, LedgerError> {
    let sql = "SELECT state, count(*) AS n, count(*) FILTER (WHERE tries > 0 AND at > ?) AS lately
               FROM notices GROUP BY state";
    let rows = sqlx::query(sql)
        .bind(micros(earlier(inner.clock.now(), MAX_AGE)))
        .fetch_all(&inner.readers)
        .await
        .map_err(store::failed)?;
    let mut counts = NoticeCounts::default();
    for found in &rows {
        let c = Columns(found);
        let n = |column| c.int(column).map(|n| u64::try_from(n).unwrap_or(0));
        match c.text("state")?.as_str() {
            "pending" => counts.pending = n("n")?,
            "sent" => counts.sent = n("n")?,
            _ => (counts.gave_up, counts.lost_lately) = (n("n")?, n("lately")?),
        }
    }
    Ok(counts)
}
