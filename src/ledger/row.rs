//! Rows as values: how each type of the domain stands in a column.
//!
//! Owns: the one spelling of instants (microseconds UTC), words and JSON. What cannot be read is
//! [`LedgerError::Damaged`] with the column's name, never a panic.

use std::str::FromStr;

use chrono::DateTime;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, ValueRef};

use super::LedgerError;
use crate::domain::Instant;
use crate::domain::attempt::{Attempt, AttemptResult};
use crate::domain::evidence::Evidence;
use crate::domain::identity::Identity;
use crate::domain::key::IdempotencyKey;
use crate::domain::money::Money;
use crate::domain::operation::{Claim, OperationRow};
use crate::domain::text::SafeText;
use crate::domain::tool_call::ToolCall;

/// Whole microseconds since 1970 UTC.
pub(super) fn micros(at: Instant) -> i64 {
    at.timestamp_micros()
}

/// The instant of stored microseconds.
pub(super) fn instant(micros: i64) -> Result<Instant, LedgerError> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| LedgerError::Damaged(format!("{micros} is no instant")))
}

fn damaged(column: &str, why: impl std::fmt::Display) -> LedgerError {
    LedgerError::Damaged(format!("column {column}: {why}"))
}

/// Typed reading of a row's columns.
pub(super) struct Columns<'a>(pub &'a SqliteRow);

impl Columns<'_> {
    pub fn text(&self, column: &str) -> Result<String, LedgerError> {
        self.0.try_get(column).map_err(|e| damaged(column, e))
    }

    pub fn int(&self, column: &str) -> Result<i64, LedgerError> {
        self.0.try_get(column).map_err(|e| damaged(column, e))
    }

    pub fn count(&self, column: &str) -> Result<u32, LedgerError> {
        u32::try_from(self.int(column)?).map_err(|e| damaged(column, e))
    }

    pub fn flag(&self, column: &str) -> Result<bool, LedgerError> {
        Ok(self.int(column)? != 0)
    }

    pub fn bytes(&self, column: &str) -> Result<Vec<u8>, LedgerError> {
        self.0.try_get(column).map_err(|e| damaged(column, e))
    }

    fn is_null(&self, column: &str) -> Result<bool, LedgerError> {
        let value = self.0.try_get_raw(column).map_err(|e| damaged(column, e))?;
        Ok(value.is_null())
    }

    /// `read` of the column, or `None` where it is NULL.
    pub fn opt<T>(
        &self,
        column: &str,
        read: impl Fn(&Self, &str) -> Result<T, LedgerError>,
    ) -> Result<Option<T>, LedgerError> {
        if self.is_null(column)? {
            Ok(None)
        } else {
            read(self, column).map(Some)
        }
    }

    pub fn at(&self, column: &str) -> Result<Instant, LedgerError> {
        instant(self.int(column)?)
    }

    /// A word or an identifier.
    pub fn word<T: FromStr>(&self, column: &str) -> Result<T, LedgerError>
    where
        T::Err: std::fmt::Display,
    {
        self.text(column)?.parse().map_err(|e| damaged(column, e))
    }

    pub fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, LedgerError> {
        serde_json::from_str(&self.text(column)?).map_err(|e| damaged(column, e))
    }

    pub fn safe(&self, column: &str) -> Result<SafeText, LedgerError> {
        Ok(SafeText::new(&self.text(column)?))
    }
}

/// A row of `operations`.
pub(super) fn operation(row: &SqliteRow) -> Result<OperationRow, LedgerError> {
    let c = Columns(row);
    let money = match c.opt("amount_cents", Columns::int)? {
        None if !c.is_null("currency")? => {
            return Err(damaged("amount_cents", "is empty beside a currency"));
        }
        None => None,
        Some(minor) => Some(
            Money::from_minor(minor, c.word("currency")?)
                .map_err(|e| damaged("amount_cents", e))?,
        ),
    };
    Ok(OperationRow {
        id: c.word("operation_id")?,
        tool: c.word("tool")?,
        identity: Identity::stored(c.text("identity")?),
        order_id: c.opt("order_id", Columns::word)?,
        money,
        provider: c.word("provider")?,
        payment: c.opt("payment", Columns::word)?,
        charge: c.opt("charge", Columns::word)?,
        after: c.opt("after", Columns::word)?,
        status: c.word("status")?,
        effect: c.word("effect")?,
        held: c.flag("held")?,
        approved_by: c.opt("approved_by", Columns::word)?,
        contradicted: c.opt("contradicted", Columns::word)?,
        key: IdempotencyKey::parse(&c.text("idempotency_key")?)
            .map_err(|e| damaged("idempotency_key", e))?,
        request: c.bytes("request")?,
        request_hash: c.text("request_hash")?,
        attempts: c.count("attempts")?,
        attempts_max: c.count("attempts_max")?,
        key_created_at: c.at("key_created_at")?,
        key_expires_at: c.opt("key_expires_at", Columns::at)?,
        first_authorised_at: c.opt("first_authorised_at", Columns::at)?,
        last_authorised_at: c.opt("last_authorised_at", Columns::at)?,
        last_outcome: c.opt("last_outcome", Columns::word)?,
        reason: c.opt("reason", Columns::word)?,
        failure: c.opt("failure", Columns::word)?,
        failure_text: c.opt("failure_text", Columns::safe)?,
        verdict: c.opt("verdict", Columns::word)?,
        provider_ref: c.opt("provider_ref", Columns::word)?,
        pending_since: c.opt("pending_since", Columns::at)?,
        version: c.int("version")?,
        corrections: c.count("corrections")?,
        audit_seq: c.int("audit_seq")?,
        created_at: c.at("created_at")?,
        updated_at: c.at("updated_at")?,
        unknown_at: c.opt("unknown_at", Columns::at)?,
        closed_at: c.opt("closed_at", Columns::at)?,
        closed_by: c.opt("closed_by", Columns::text)?,
        proposal: c.opt("proposal", Columns::json)?,
        claim: match (
            c.opt("claimed_by", Columns::word)?,
            c.opt("claimed_until", Columns::at)?,
        ) {
            (Some(by), Some(until)) => Some(Claim { by, until }),
            _ => None,
        },
        snoozed_until: c.opt("snoozed_until", Columns::at)?,
    })
}

/// A row of `attempts`.
pub(super) fn attempt(row: &SqliteRow) -> Result<Attempt, LedgerError> {
    let c = Columns(row);
    let result = match c.opt("finished_at", Columns::at)? {
        None => None,
        Some(finished_at) => Some(AttemptResult {
            finished_at,
            class: c.word("outcome")?,
            http_status: c
                .opt("http_status", Columns::int)?
                .map(u16::try_from)
                .transpose()
                .map_err(|e| damaged("http_status", e))?,
            request_id: c.opt("provider_request_id", Columns::safe)?,
            error: c.opt("error", Columns::safe)?,
            replayed: c.flag("replayed")?,
            limiter: c.flag("limiter")?,
            already_refunded: c.flag("already_refunded")?,
        }),
    };
    Ok(Attempt {
        number: c.count("attempt_no")?,
        agent: c.word("agent")?,
        call: c.word("call_id")?,
        authorised_at: c.at("authorised_at")?,
        result,
    })
}

/// A row of `evidence`.
pub(super) fn evidence(row: &SqliteRow) -> Result<Evidence, LedgerError> {
    let c = Columns(row);
    Ok(Evidence {
        stored: true,
        source: c.word("source")?,
        seen: c.json("payload")?,
        observed_at: c.at("observed_at")?,
    })
}

/// A row of `tool_calls`.
pub(super) fn call(row: &SqliteRow) -> Result<ToolCall, LedgerError> {
    let c = Columns(row);
    Ok(ToolCall {
        id: c.word("call_id")?,
        agent: c.word("agent")?,
        tool: c.word("tool")?,
        arguments: c.text("arguments")?,
        arguments_hash: c.text("arguments_hash")?,
        session: c.opt("session_id", Columns::word)?,
        operation: c.opt("operation_id", Columns::word)?,
        state: c.word("state")?,
        result: c.opt("result", Columns::json)?,
        accepted_at: c.at("accepted_at")?,
        begun_at: c.opt("begun_at", Columns::at)?,
        executed_at: c.opt("executed_at", Columns::at)?,
        delivered_at: c.opt("delivered_at", Columns::at)?,
        delivery: c.word("delivery")?,
    })
}

/// JSON as it is stored: the domain's own types always serialise.
pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, LedgerError> {
    serde_json::to_string(value).map_err(|e| LedgerError::Damaged(e.to_string()))
}
