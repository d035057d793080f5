//! What all processes on one ledger share: the clock, rates, circuits, pauses, lookup guards, the
//! provider it is bound to, and which engines live.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use chrono::TimeDelta;
use sqlx::SqliteConnection;

use super::{Tx, notices, store};
use crate::clock::Clock;
use crate::domain::ids::{OperationId, ProviderName, ReviewerName, ToolName};
use crate::domain::operation::OperationRow;
use crate::domain::outcome::{Outcome, OutcomeClass};
use crate::domain::policy::{Bucket, Circuit, Health, Rate, Terms};
use crate::domain::{Instant, later, since};
use crate::ledger::row::{Columns, instant, micros, to_json};
use crate::ledger::{EngineSeen, LedgerError, LookupBusy, ReadFor, Stamp, ToolState};

/// A wall clock further off than this stops sending (protocol.md, "Keys and time").
const TOLERANCE: Duration = Duration::from_mins(5);
/// A lookup that did not end after so long has lost its process.
const LOOKUP_LOST: Duration = Duration::from_mins(2);

/// What this process knows of the time.
pub(super) struct KnownTime {
    /// How far the wall clock was from the boot clock when both were last trusted.
    offset: TimeDelta,
    /// Number of the acceptance that it was taken at.
    accepted: i64,
    /// The ledger's time when it was last read here, and the boot clock then: from there it goes on by
    /// the boot clock, whatever becomes of the wall clock (I27).
    last: Option<(Instant, Duration)>,
}

impl KnownTime {
    pub(super) fn new(clock: &Clock) -> Self {
        Self {
            offset: offset(clock),
            accepted: 0,
            last: None,
        }
    }
}

fn offset(clock: &Clock) -> TimeDelta {
    let boot = TimeDelta::from_std(clock.boot()).unwrap_or(TimeDelta::MAX);
    (clock.now() - Instant::UNIX_EPOCH)
        .checked_sub(&boot)
        .unwrap_or(TimeDelta::MAX)
}

/// The ledger's time in one transaction.
pub(super) struct LedgerTime {
    /// Never behind the stored mark, nor behind what was read here before (I27).
    pub now: Instant,
    /// The wall clock can be trusted.
    pub trusted: bool,
    /// The mark as it was read.
    mark: Option<Instant>,
}

/// Reads the clock against the ledger's mark and the boot clock.
pub(super) async fn ledger_now(
    conn: &mut SqliteConnection,
    clock: &Clock,
    known: &Mutex<KnownTime>,
) -> Result<LedgerTime, LedgerError> {
    let (mut mark, mut accepted) = (None, 0);
    let rows = sqlx::query("SELECT name, value FROM meta")
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    for row in &rows {
        let c = Columns(row);
        match c.text("name")?.as_str() {
            "clock_mark" => mark = Some(instant(c.int("value")?)?),
            "clock_accepted" => accepted = c.int("value")?,
            _ => {}
        }
    }
    let wall = clock.now();
    let behind = mark.is_some_and(|mark| since(wall, mark) > TOLERANCE);
    let mut known = known
        .lock()
        .map_err(|e| LedgerError::Unreachable(e.to_string()))?;
    if known.accepted != accepted {
        *known = KnownTime {
            offset: offset(clock),
            accepted,
            last: None,
        };
    }
    let apart = offset(clock).checked_sub(&known.offset).map(|d| d.abs());
    let apart = apart
        .and_then(|d| d.to_std().ok())
        .is_none_or(|d| d > TOLERANCE);
    let trusted = !behind && !apart;
    // A wall clock that was set back neither stops the ledger's time nor turns it back; one that cannot
    // be trusted has no say in it.
    let boot = clock.boot();
    let here = known
        .last
        .map(|(then, at)| later(then, boot.saturating_sub(at)));
    let heard = if trusted { Some(wall) } else { None };
    let now = [mark, here, heard].into_iter().flatten().max();
    let now = now.unwrap_or(wall);
    known.last = Some((now, boot));
    Ok(LedgerTime { now, trusted, mark })
}

/// Moves the mark, within a transaction that writes anyway, so that no instant written later is earlier.
/// Where the clock was accepted in this very transaction, that word stands.
pub(super) async fn move_mark(
    conn: &mut SqliteConnection,
    time: &LedgerTime,
) -> Result<(), LedgerError> {
    let sql = "INSERT INTO meta (name, value) VALUES ('clock_mark', ?1)
               ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value = ?2";
    sqlx::query(sql)
        .bind(micros(time.now))
        .bind(time.mark.map(micros))
        .execute(conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

async fn set_meta(
    conn: &mut SqliteConnection,
    name: &'static str,
    value: i64,
) -> Result<(), LedgerError> {
    let sql = "INSERT INTO meta (name, value) VALUES (?, ?)
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    sqlx::query(sql)
        .bind(name)
        .bind(value)
        .execute(conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// From now on the wall clock is right, whatever the mark says.
pub(super) async fn accept_clock(
    tx: &mut Tx<'_>,
    clock: &Clock,
    by: &ReviewerName,
) -> Result<(), LedgerError> {
    tracing::warn!(%by, "the clock was accepted");
    let now = micros(clock.now());
    set_meta(tx.conn, "clock_mark", now).await?;
    // What was written by a clock that ran ahead must not hold anything up.
    let ahead = [
        "DELETE FROM buckets WHERE full_at > ?",
        "DELETE FROM lookups WHERE began_at > ?",
        "DELETE FROM drives WHERE until > ? + 3600000000",
        "UPDATE tool_calls SET lease_until = 0 WHERE lease_until > ? + 3600000000",
        "UPDATE notices SET next_at = 0 WHERE state = 'pending' AND next_at > ? + 3600000000",
        "UPDATE provider_events SET next_at = 0 WHERE state IN ('received', 'waiting') AND next_at > ? + 3600000000",
    ];
    for sql in ahead {
        sqlx::query(sql)
            .bind(now)
            .execute(&mut *tx.conn)
            .await
            .map_err(store::failed)?;
    }
    let sql = "INSERT INTO meta (name, value) VALUES ('clock_accepted', 1)
               ON CONFLICT (name) DO UPDATE SET value = value + 1";
    sqlx::query(sql)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// The token a bucket would give now, or how long to wait; nothing is taken yet.
async fn peek(
    tx: &mut Tx<'_>,
    name: &str,
    rate: Rate,
) -> Result<Result<Bucket, Duration>, LedgerError> {
    let full_at: Option<i64> = sqlx::query_scalar("SELECT full_at FROM buckets WHERE name = ?")
        .bind(name)
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let bucket = full_at
        .map(instant)
        .transpose()?
        .map(|full_at| Bucket { full_at });
    Ok(rate.take(bucket, tx.now))
}

/// The tokens that one attempt takes: its tool's and its provider's (I28).
pub(super) async fn peek_send(
    tx: &mut Tx<'_>,
    row: &OperationRow,
) -> Result<Result<Vec<(String, Bucket)>, Duration>, LedgerError> {
    let terms = tx.terms(&row.tool)?;
    let wanted = [
        (format!("tool:{}", row.tool), terms.policy.rate),
        (format!("provider:{}", row.provider), terms.profile.rate),
    ];
    let mut taken = Vec::new();
    for (name, rate) in wanted {
        match peek(tx, &name, rate).await? {
            Ok(bucket) => taken.push((name, bucket)),
            Err(wait) => return Ok(Err(wait)),
        }
    }
    Ok(Ok(taken))
}

/// Takes a token that was peeked at in this transaction.
pub(super) async fn fill(tx: &mut Tx<'_>, name: &str, bucket: Bucket) -> Result<(), LedgerError> {
    let sql = "INSERT INTO buckets (name, full_at) VALUES (?, ?)
               ON CONFLICT (name) DO UPDATE SET full_at = excluded.full_at";
    sqlx::query(sql)
        .bind(name)
        .bind(micros(bucket.full_at))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

pub(super) async fn take_read(
    tx: &mut Tx<'_>,
    provider: &ProviderName,
    reads_for: ReadFor,
) -> Result<Result<(), Duration>, LedgerError> {
    let profile = tx
        .terms
        .values()
        .find(|t| t.policy.provider == *provider)
        .map(|t| &t.profile)
        .ok_or_else(|| LedgerError::Constraint(format!("provider {provider} is not configured")))?;
    let (name, rate) = match reads_for {
        ReadFor::Call => (format!("provider:{provider}"), profile.rate),
        ReadFor::Look => (format!("read:{provider}"), profile.read_rate),
    };
    Ok(match peek(tx, &name, rate).await? {
        Ok(bucket) => {
            fill(tx, &name, bucket).await?;
            Ok(())
        }
        Err(wait) => Err(wait),
    })
}

/// A tool's pause and circuit.
pub(super) async fn tool(tx: &mut Tx<'_>, tool: &ToolName) -> Result<ToolState, LedgerError> {
    let found = sqlx::query("SELECT * FROM tool_state WHERE tool = ?")
        .bind(tool.as_str())
        .fetch_optional(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    match found {
        Some(row) => tool_state(&Columns(&row)),
        None => Ok(ToolState {
            tool: tool.clone(),
            paused: None,
            circuit: Circuit::default(),
        }),
    }
}

/// A row of `tool_state`.
pub(super) fn tool_state(c: &Columns<'_>) -> Result<ToolState, LedgerError> {
    let paused_by = c.opt("paused_by", Columns::text)?;
    let reason = c.opt("paused_reason", Columns::text)?;
    Ok(ToolState {
        tool: c.word("tool")?,
        paused: paused_by.zip(reason),
        circuit: c.json("circuit")?,
    })
}

/// Writes a circuit that moved; others hear of one that opened.
pub(super) async fn set_circuit(
    tx: &mut Tx<'_>,
    tool: &ToolName,
    before: &Circuit,
    circuit: &Circuit,
) -> Result<(), LedgerError> {
    notices::circuit_moved(tx, tool, before, circuit).await?;
    let sql = "INSERT INTO tool_state (tool, circuit) VALUES (?, ?)
               ON CONFLICT (tool) DO UPDATE SET circuit = excluded.circuit";
    sqlx::query(sql)
        .bind(tool.as_str())
        .bind(to_json(circuit)?)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// What an attempt's end means for its tool: circuit, and credentials that do not work.
pub(super) async fn attempt_ended(
    tx: &mut Tx<'_>,
    row: &OperationRow,
    outcome: &Outcome,
) -> Result<(), LedgerError> {
    let known = tool(tx, &row.tool).await?;
    let health = if outcome.class == OutcomeClass::NotSent || !watched(tx, &row.tool)? {
        Health::Unclear
    } else if outcome.class.is_outage() {
        Health::Ill
    } else {
        Health::Well
    };
    let mut circuit = known.circuit.after(&row.id, health, tx.now);
    let mut pause = false;
    if let Some(status) = outcome.http_status {
        (circuit, pause) = circuit.credentials(status, row.order_id.as_ref());
    }
    if circuit != known.circuit {
        set_circuit(tx, &row.tool, &known.circuit, &circuit).await?;
    }
    if pause && known.paused.is_none() {
        self::pause(tx, &row.tool, Some(("engine".into(), "credentials".into()))).await?;
    }
    Ok(())
}

/// An attempt was interrupted: nothing was learnt of the provider, and a trial may go to another.
pub(super) async fn attempt_lost(tx: &mut Tx<'_>, row: &OperationRow) -> Result<(), LedgerError> {
    let known = tool(tx, &row.tool).await?;
    let circuit = known.circuit.after(&row.id, Health::Unclear, tx.now);
    if circuit == known.circuit {
        Ok(())
    } else {
        set_circuit(tx, &row.tool, &known.circuit, &circuit).await
    }
}

pub(super) async fn connection_failed(
    tx: &mut Tx<'_>,
    name: &ToolName,
    operation: &OperationId,
) -> Result<(), LedgerError> {
    if !watched(tx, name)? {
        return Ok(());
    }
    let known = tool(tx, name).await?;
    let circuit = known.circuit.after(operation, Health::Ill, tx.now);
    set_circuit(tx, name, &known.circuit, &circuit).await
}

/// Whether failures may open the tool's circuit.
fn watched(tx: &Tx<'_>, tool: &ToolName) -> Result<bool, LedgerError> {
    Ok(tx.terms(tool)?.policy.circuit)
}

pub(super) async fn probed(
    tx: &mut Tx<'_>,
    name: &ToolName,
    succeeded: bool,
) -> Result<(), LedgerError> {
    let known = tool(tx, name).await?;
    let circuit = known.circuit.probed(succeeded, tx.now);
    set_circuit(tx, name, &known.circuit, &circuit).await
}

pub(super) async fn pause(
    tx: &mut Tx<'_>,
    name: &ToolName,
    by: Option<(String, String)>,
) -> Result<(), LedgerError> {
    let known = tool(tx, name).await?;
    set_circuit(tx, name, &known.circuit, &known.circuit).await?;
    let (who, why) = by.unzip();
    tracing::info!(tool = %name, ?who, ?why, "pause");
    sqlx::query("UPDATE tool_state SET paused_by = ?, paused_reason = ? WHERE tool = ?")
        .bind(who)
        .bind(why)
        .bind(name.as_str())
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// Whether somebody looks the row up now, or did a moment ago.
pub(super) async fn lookup_busy(
    conn: &mut SqliteConnection,
    terms: &BTreeMap<ToolName, Terms>,
    now: Instant,
    operation: &OperationId,
) -> Result<Option<LookupBusy>, LedgerError> {
    let tool: Option<String> =
        sqlx::query_scalar("SELECT tool FROM operations WHERE operation_id = ?")
            .bind(operation.as_str())
            .fetch_optional(&mut *conn)
            .await
            .map_err(store::failed)?;
    let Some(tool) = tool else {
        let why = format!("there is no operation {operation}");
        return Err(LedgerError::Damaged(why));
    };
    let tool = ToolName::parse(&tool).map_err(|e| LedgerError::Damaged(format!("tool {e}")))?;
    let cooldown = super::terms(terms, &tool)?.policy.lookup_cooldown;
    let last = sqlx::query("SELECT * FROM lookups WHERE operation_id = ?")
        .bind(operation.as_str())
        .fetch_optional(&mut *conn)
        .await
        .map_err(store::failed)?;
    let Some(last) = last else { return Ok(None) };
    let c = Columns(&last);
    let began_at = c.at("began_at")?;
    let running = c.opt("ended_at", Columns::at)?.is_none();
    if running && since(began_at, now) < LOOKUP_LOST {
        let by = c.text("reviewer")?;
        return Ok(Some(LookupBusy::Running { by }));
    }
    let again_at = later(began_at, cooldown);
    Ok((again_at > now).then(|| LookupBusy::Cooldown {
        wait: since(now, again_at),
        again_at,
    }))
}

pub(super) async fn begin_lookup(
    tx: &mut Tx<'_>,
    operation: &OperationId,
    by: &ReviewerName,
) -> Result<Result<(), LookupBusy>, LedgerError> {
    if let Some(busy) = lookup_busy(tx.conn, tx.terms, tx.now, operation).await? {
        return Ok(Err(busy));
    }
    let sql = "INSERT INTO lookups (operation_id, reviewer, began_at) VALUES (?, ?, ?)
               ON CONFLICT (operation_id) DO UPDATE SET reviewer = excluded.reviewer,
               began_at = excluded.began_at, ended_at = NULL";
    sqlx::query(sql)
        .bind(operation.as_str())
        .bind(by.as_str())
        .bind(micros(tx.now))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(Ok(()))
}

pub(super) async fn end_lookup(
    tx: &mut Tx<'_>,
    operation: &OperationId,
) -> Result<(), LedgerError> {
    sqlx::query("UPDATE lookups SET ended_at = ? WHERE operation_id = ?")
        .bind(micros(tx.now))
        .bind(operation.as_str())
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// The first send binds the ledger to origin, account and mode; after that nothing else is taken.
pub(super) async fn bind(tx: &mut Tx<'_>, stamp: &Stamp) -> Result<(), LedgerError> {
    let rows = sqlx::query("SELECT * FROM stamps")
        .fetch_all(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    let known: Vec<Stamp> = rows.iter().map(stamp_row).collect::<Result<_, _>>()?;
    stamp.fits(&known)?;
    let sql = "INSERT INTO stamps (provider, origin, account, mode) VALUES (?, ?, ?, ?)
               ON CONFLICT (provider) DO UPDATE SET account = coalesce(account, excluded.account)";
    sqlx::query(sql)
        .bind(stamp.provider.as_str())
        .bind(&stamp.origin)
        .bind(&stamp.account)
        .bind(&stamp.mode)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// A row of `stamps`.
pub(super) fn stamp_row(row: &sqlx::sqlite::SqliteRow) -> Result<Stamp, LedgerError> {
    let c = Columns(row);
    Ok(Stamp {
        provider: c.word("provider")?,
        origin: c.text("origin")?,
        account: c.opt("account", Columns::text)?,
        mode: c.text("mode")?,
    })
}

pub(super) async fn engine_seen(tx: &mut Tx<'_>, engine: &EngineSeen) -> Result<(), LedgerError> {
    let sql = "INSERT INTO engines (engine, host, pid, workers, in_flight, started_at, seen_at, stopped)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (engine) DO UPDATE SET in_flight = excluded.in_flight, seen_at = excluded.seen_at,
               stopped = excluded.stopped";
    sqlx::query(sql)
        .bind(engine.engine.as_str())
        .bind(&engine.host)
        .bind(engine.pid)
        .bind(engine.workers)
        .bind(engine.in_flight)
        .bind(micros(engine.started_at))
        .bind(micros(tx.now))
        .bind(engine.stopped)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    // Engines that have been gone for a day are of no interest.
    sqlx::query("DELETE FROM engines WHERE seen_at < ?")
        .bind(micros(crate::domain::earlier(
            tx.now,
            Duration::from_hours(24),
        )))
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(())
}

/// A row of `engines`.
pub(super) fn engine_row(row: &sqlx::sqlite::SqliteRow) -> Result<EngineSeen, LedgerError> {
    let c = Columns(row);
    Ok(EngineSeen {
        engine: c.word("engine")?,
        host: c.text("host")?,
        pid: c.count("pid")?,
        workers: c.count("workers")?,
        in_flight: c.count("in_flight")?,
        started_at: c.at("started_at")?,
        seen_at: c.at("seen_at")?,
        stopped: c.flag("stopped")?,
    })
}
