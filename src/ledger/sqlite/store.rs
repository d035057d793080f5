//! Loading an operation with its history, and writing a step: every column in one place.

use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::Tx;
use crate::domain::arguments::Arguments;
use crate::domain::evidence::{Bearing, Seen};
use crate::domain::guard;
use crate::domain::identity::Identity;
use crate::domain::ids::{OperationId, OrderId, PaymentId, ProviderName, ProviderRef, ToolName};
use crate::domain::money::Currency;
use crate::domain::operation::{Operation, OperationRow};
use crate::domain::transition::{AuditEntry, Step};
use crate::ledger::LedgerError;
use crate::ledger::audit::{self, Link};
use crate::ledger::row::{self, micros, to_json};

/// What helps is said with it: a program that starts on a full disk does not go on by itself.
pub(super) const FULL: &str =
    "the disk is full; make room on it and try again (what was accepted is kept)";
/// `SQLITE_IOERR_SHMSIZE`: no room for the `-shm` file, which whoever opens the ledger first has to make.
const NO_ROOM_BESIDE: i64 = 4874;

/// An error of SQLite in the ledger's words; constraint and trigger names stay readable.
#[allow(clippy::needless_pass_by_value, reason = "reads as map_err(failed)")]
pub(in crate::ledger) fn failed(error: sqlx::Error) -> LedgerError {
    let sqlx::Error::Database(db) = &error else {
        return LedgerError::Unreachable(error.to_string());
    };
    // The low byte of an extended code is the primary one.
    let extended = db.code().and_then(|c| c.parse::<i64>().ok()).unwrap_or(0);
    let full = extended & 0xff == 13 || extended == NO_ROOM_BESIDE;
    match extended & 0xff {
        19 => LedgerError::Constraint(db.message().to_owned()),
        11 => LedgerError::Damaged(db.message().to_owned()),
        26 => LedgerError::NotALedger(db.message().to_owned()),
        5 | 6 => LedgerError::Unreachable("another process holds its lock".into()),
        _ if full => LedgerError::Unreachable(FULL.into()),
        _ => LedgerError::Unreachable(db.message().to_owned()),
    }
}

/// How many rows this connection has ever written.
pub(super) async fn total_changes(conn: &mut SqliteConnection) -> Result<i64, LedgerError> {
    sqlx::query_scalar("SELECT total_changes()")
        .fetch_one(conn)
        .await
        .map_err(failed)
}

fn all<T>(
    rows: &[SqliteRow],
    read: impl Fn(&SqliteRow) -> Result<T, LedgerError>,
) -> Result<Vec<T>, LedgerError> {
    rows.iter().map(read).collect()
}

/// An operation with its attempts and evidence.
pub(super) async fn load(
    conn: &mut SqliteConnection,
    id: &OperationId,
) -> Result<Option<Operation>, LedgerError> {
    let found = sqlx::query("SELECT * FROM operations WHERE operation_id = ?")
        .bind(id.as_str())
        .fetch_optional(&mut *conn)
        .await
        .map_err(failed)?;
    match found {
        Some(found) => history(conn, row::operation(&found)?).await.map(Some),
        None => Ok(None),
    }
}

/// The operation of a row that was read.
pub(super) async fn history(
    conn: &mut SqliteConnection,
    row: OperationRow,
) -> Result<Operation, LedgerError> {
    let attempts = sqlx::query("SELECT * FROM attempts WHERE operation_id = ? ORDER BY attempt_no")
        .bind(row.id.as_str())
        .fetch_all(&mut *conn)
        .await
        .map_err(failed)?;
    let evidence =
        sqlx::query("SELECT * FROM evidence WHERE operation_id = ? ORDER BY evidence_id")
            .bind(row.id.as_str())
            .fetch_all(&mut *conn)
            .await
            .map_err(failed)?;
    Ok(Operation {
        row,
        attempts: all(&attempts, row::attempt)?,
        evidence: all(&evidence, row::evidence)?,
    })
}

/// Indexed look-ups; a row that is in several is there once.
pub(super) const ORDER_ROWS: &str =
    "SELECT * FROM (SELECT * FROM operations INDEXED BY operations_by_order WHERE tool = ?1 AND order_id = ?2
     UNION SELECT * FROM operations INDEXED BY operations_by_payment WHERE provider = ?3 AND payment = ?4
     UNION SELECT * FROM operations INDEXED BY operations_by_identity WHERE tool = ?1 AND identity = ?5)
     ORDER BY (status IN ('open', 'unknown') OR contradicted IS NOT NULL) DESC,
         created_at DESC, operation_id DESC LIMIT 2000";

/// The rows that can matter to a call with these arguments: those of its order and payment, and those of
/// its identity, which is all that a call without an order has.
pub(super) async fn rows_about(
    conn: &mut SqliteConnection,
    tool: &ToolName,
    provider: &ProviderName,
    args: &Arguments,
    payment: Option<&PaymentId>,
) -> Result<Vec<OperationRow>, LedgerError> {
    let (order, identity) = (args.order.as_ref(), Some(&args.identity));
    order_rows(conn, tool, provider, order, payment, identity).await
}

/// The rows of an order, a payment or an identity that can matter: first what is not settled or is contradicted, then
/// what is closed, each newest first.
pub(super) async fn order_rows(
    conn: &mut SqliteConnection,
    tool: &ToolName,
    provider: &ProviderName,
    order: Option<&OrderId>,
    payment: Option<&PaymentId>,
    identity: Option<&Identity>,
) -> Result<Vec<OperationRow>, LedgerError> {
    let rows = sqlx::query(ORDER_ROWS)
        .bind(tool.as_str())
        .bind(order.map(OrderId::as_str))
        .bind(provider.as_str())
        .bind(payment.map(PaymentId::as_str))
        .bind(identity.map(Identity::as_str))
        .fetch_all(conn)
        .await
        .map_err(failed)?;
    all(&rows, row::operation)
}

/// Moves whenever a row of the order or payment changes: the newest audit entry of any row.
pub(super) async fn mark(conn: &mut SqliteConnection) -> Result<i64, LedgerError> {
    sqlx::query_scalar("SELECT coalesce(max(audit_id), 0) FROM audit")
        .fetch_one(conn)
        .await
        .map_err(failed)
}

/// Whether any of `rows` changed after `mark`.
pub(super) async fn changed_since(
    conn: &mut SqliteConnection,
    rows: &[OperationRow],
    mark: i64,
) -> Result<bool, LedgerError> {
    // Not DISTINCT: that would be answered off another index, from its beginning to its end.
    let since = sqlx::query("SELECT operation_id FROM audit WHERE audit_id > ?")
        .bind(mark)
        .fetch_all(conn)
        .await
        .map_err(failed)?;
    let changed: Vec<String> = since.iter().map(|r| r.get(0)).collect();
    Ok(rows
        .iter()
        .any(|row| changed.iter().any(|id| id == row.id.as_str())))
}

/// Which operations the objects belong to.
pub(super) async fn owners(
    conn: &mut SqliteConnection,
    provider: &ProviderName,
    refs: &[ProviderRef],
) -> Result<Vec<(ProviderRef, OperationId)>, LedgerError> {
    let mut owners = Vec::new();
    let sql = "SELECT operation_id FROM provider_objects WHERE provider = ?1 AND provider_ref = ?2
               UNION SELECT operation_id FROM operations WHERE provider = ?1 AND provider_ref = ?2";
    for id in refs {
        let rows = sqlx::query(sql)
            .bind(provider.as_str())
            .bind(id.as_str())
            .fetch_all(&mut *conn)
            .await
            .map_err(failed)?;
        for found in &rows {
            owners.push((id.clone(), row::Columns(found).word("operation_id")?));
        }
    }
    Ok(owners)
}

/// Writes a new row with its first audit entry.
pub(super) async fn insert(
    tx: &mut Tx<'_>,
    row: &OperationRow,
    audit: &AuditEntry,
) -> Result<(), LedgerError> {
    let sql =
        "INSERT INTO operations (operation_id, tool, identity, order_id, amount_cents, currency,
        provider, payment, charge, \"after\", status, effect, held, idempotency_key, request,
        request_hash, attempts, attempts_max, key_created_at, version, corrections, audit_seq,
        created_at, updated_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, 1, 0, 1, ?, ?)";
    sqlx::query(sql)
        .bind(row.id.as_str())
        .bind(row.tool.as_str())
        .bind(row.identity.as_str())
        .bind(row.order_id.as_ref().map(OrderId::as_str))
        .bind(row.minor())
        .bind(row.currency().as_ref().map(Currency::as_str))
        .bind(row.provider.as_str())
        .bind(row.payment.as_ref().map(PaymentId::as_str))
        .bind(
            row.charge
                .as_ref()
                .map(crate::domain::ids::ChargeId::as_str),
        )
        .bind(row.after.as_ref().map(OperationId::as_str))
        .bind(row.status.as_str())
        .bind(<&str>::from(row.effect))
        .bind(row.held)
        .bind(row.key.to_string())
        .bind(row.request.as_slice())
        .bind(&row.request_hash)
        .bind(row.attempts_max)
        .bind(micros(row.key_created_at))
        .bind(micros(row.created_at))
        .bind(micros(row.updated_at))
        .execute(&mut *tx.conn)
        .await
        .map_err(failed)?;
    write_audit(tx, row, 0, audit).await
}

/// Writes a step: the row where nobody moved first, its new attempts and evidence, its audit entry.
pub(super) async fn save(
    tx: &mut Tx<'_>,
    before: &Operation,
    step: &Step,
) -> Result<(), LedgerError> {
    update_row(tx, before, step).await?;
    for attempt in &step.op.attempts {
        let known = before.attempts.iter().find(|a| a.number == attempt.number);
        match (known, &attempt.result) {
            (None, _) => {
                let sql =
                    "INSERT INTO attempts (operation_id, attempt_no, agent, call_id, authorised_at)
                           VALUES (?, ?, ?, ?, ?)";
                sqlx::query(sql)
                    .bind(step.op.row.id.as_str())
                    .bind(attempt.number)
                    .bind(attempt.agent.as_str())
                    .bind(attempt.call.as_str())
                    .bind(micros(attempt.authorised_at))
                    .execute(&mut *tx.conn)
                    .await
                    .map_err(failed)?;
            }
            (Some(known), Some(result)) if known.result.is_none() => {
                let sql = "UPDATE attempts SET finished_at = ?, outcome = ?, http_status = ?,
                           provider_request_id = ?, error = ?, replayed = ?, limiter = ?, already_refunded = ?
                           WHERE operation_id = ? AND attempt_no = ? AND finished_at IS NULL";
                sqlx::query(sql)
                    .bind(micros(result.finished_at))
                    .bind(result.class.as_str())
                    .bind(result.http_status)
                    .bind(result.request_id.as_ref().map(ToString::to_string))
                    .bind(result.error.as_ref().map(ToString::to_string))
                    .bind(result.replayed)
                    .bind(result.limiter)
                    .bind(result.already_refunded)
                    .bind(step.op.row.id.as_str())
                    .bind(attempt.number)
                    .execute(&mut *tx.conn)
                    .await
                    .map_err(failed)?;
            }
            (Some(_), _) => {}
        }
    }
    write_evidence(tx, step).await?;
    write_audit(tx, &step.op.row, step.op.evidence.len(), &step.audit).await
}

async fn update_row(tx: &mut Tx<'_>, before: &Operation, step: &Step) -> Result<(), LedgerError> {
    let row = &step.op.row;
    let decidable_at = guard::decidable_at(&step.op, tx.terms(&row.tool)?);
    let proposal = row.proposal.as_ref().map(to_json).transpose()?;
    let sql = "UPDATE operations SET status = ?, effect = ?, held = ?, approved_by = ?, contradicted = ?,
        attempts = ?, key_expires_at = ?, first_authorised_at = ?, last_authorised_at = ?, last_outcome = ?,
        reason = ?, failure = ?, failure_text = ?, verdict = ?, decidable_at = ?, provider_ref = ?,
        pending_since = ?, version = ?, corrections = ?, audit_seq = ?, updated_at = ?, unknown_at = ?,
        closed_at = ?, closed_by = ?, proposal = ?, claimed_by = ?, claimed_until = ?, snoozed_until = ?
        WHERE operation_id = ? AND version = ? AND audit_seq = ?";
    let done = sqlx::query(sql)
        .bind(row.status.as_str())
        .bind(<&str>::from(row.effect))
        .bind(row.held)
        .bind(
            row.approved_by
                .as_ref()
                .map(crate::domain::ids::ReviewerName::as_str),
        )
        .bind(row.contradicted.map(<&str>::from))
        .bind(row.attempts)
        .bind(row.key_expires_at.map(micros))
        .bind(row.first_authorised_at.map(micros))
        .bind(row.last_authorised_at.map(micros))
        .bind(
            row.last_outcome
                .map(crate::domain::outcome::OutcomeClass::as_str),
        )
        .bind(row.reason.map(<&str>::from))
        .bind(row.failure.map(<&str>::from))
        .bind(row.failure_text.as_ref().map(ToString::to_string))
        .bind(row.verdict.map(<&str>::from))
        .bind(decidable_at.map(micros))
        .bind(row.provider_ref.as_ref().map(ProviderRef::as_str))
        .bind(row.pending_since.map(micros))
        .bind(row.version)
        .bind(row.corrections)
        .bind(row.audit_seq)
        .bind(micros(row.updated_at))
        .bind(row.unknown_at.map(micros))
        .bind(row.closed_at.map(micros))
        .bind(&row.closed_by)
        .bind(proposal)
        .bind(row.claim.as_ref().map(|c| c.by.as_str()))
        .bind(row.claim.as_ref().map(|c| micros(c.until)))
        .bind(row.snoozed_until.map(micros))
        .bind(row.id.as_str())
        .bind(before.row.version)
        .bind(before.row.audit_seq)
        .execute(&mut *tx.conn)
        .await
        .map_err(failed)?;
    if done.rows_affected() == 1 {
        Ok(())
    } else {
        Err(LedgerError::Constraint(format!(
            "{} moved on meanwhile",
            row.id
        )))
    }
}

async fn write_evidence(tx: &mut Tx<'_>, step: &Step) -> Result<(), LedgerError> {
    for entry in step.op.evidence.iter().filter(|e| !e.stored) {
        let object = match &entry.seen {
            Seen::Object { object, bearing } => Some((&object.id, *bearing)),
            Seen::Scan { .. } | Seen::Unreachable { .. } | Seen::Reply { .. } => None,
        };
        let sql =
            "INSERT INTO evidence (operation_id, source, kind, provider_ref, payload, observed_at)
                   VALUES (?, ?, ?, ?, ?, ?)";
        sqlx::query(sql)
            .bind(step.op.row.id.as_str())
            .bind(entry.source.as_str())
            .bind(entry.seen.kind())
            .bind(object.map(|(id, _)| id.as_str()))
            .bind(to_json(&entry.seen)?)
            .bind(micros(entry.observed_at))
            .execute(&mut *tx.conn)
            .await
            .map_err(failed)?;
        if let Some((id, Bearing::Ours)) = object {
            let sql = "INSERT INTO provider_objects (provider, provider_ref, operation_id) VALUES (?, ?, ?)
                       ON CONFLICT (provider, provider_ref) DO NOTHING";
            sqlx::query(sql)
                .bind(step.op.row.provider.as_str())
                .bind(id.as_str())
                .bind(step.op.row.id.as_str())
                .execute(&mut *tx.conn)
                .await
                .map_err(failed)?;
        }
    }
    Ok(())
}

async fn write_audit(
    tx: &mut Tx<'_>,
    row: &OperationRow,
    evidence: usize,
    entry: &AuditEntry,
) -> Result<(), LedgerError> {
    let before: Option<String> =
        sqlx::query_scalar("SELECT hash FROM audit WHERE operation_id = ? AND seq = ?")
            .bind(row.id.as_str())
            .bind(row.audit_seq - 1)
            .fetch_optional(&mut *tx.conn)
            .await
            .map_err(failed)?;
    let at = micros(tx.now);
    let sealed = seal(row, evidence, entry, before.as_deref(), (at, tx.os_user))?;
    let sql = "INSERT INTO audit (operation_id, seq, at, actor, os_user, action, detail, hash)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    sqlx::query(sql)
        .bind(row.id.as_str())
        .bind(row.audit_seq)
        .bind(at)
        .bind(&sealed.actor)
        .bind(tx.os_user)
        .bind(entry.action.as_str())
        .bind(&sealed.detail)
        .bind(&sealed.hash)
        .execute(&mut *tx.conn)
        .await
        .map_err(failed)?;
    Ok(())
}

/// The texts of an audit entry as they are stored.
pub(super) struct Sealed {
    pub actor: String,
    pub detail: String,
    pub hash: String,
}

/// The audit entry of a change, with what the change left behind: a digest of the row and how much
/// evidence there is, so that `verify` notices what was changed past the ledger. `before`: the hash of
/// the entry before it; `by`: when (microseconds) and the OS user.
pub(super) fn seal(
    row: &OperationRow,
    evidence: usize,
    entry: &AuditEntry,
    before: Option<&str>,
    by: (i64, &str),
) -> Result<Sealed, LedgerError> {
    let actor = entry.actor.to_string();
    let mut detail = entry.detail.clone();
    if let Value::Object(map) = &mut detail {
        map.insert("evidence".into(), evidence.into());
        map.insert("row".into(), audit::row_digest(row).into());
    }
    let detail = to_json(&detail)?;
    let link = Link {
        operation: row.id.as_str(),
        seq: row.audit_seq,
        at: by.0,
        actor: &actor,
        os_user: by.1,
        action: entry.action.as_str(),
        detail: &detail,
    };
    let hash = audit::hash(before.unwrap_or(""), &link);
    Ok(Sealed {
        actor,
        detail,
        hash,
    })
}
