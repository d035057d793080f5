//! What a model hears: the answer of a call, from the row as it stands. Never more than the row.

use super::operation::{FailureClass, OperationRow, Status};
use super::policy::Words;
use super::text::SafeText;
use super::tool_call::{BlockedBy, Named, RejectClass, ToolResult};

fn checks(words: Words) -> SafeText {
    let noun = words.noun;
    SafeText::new(&format!(
        "Outcome unknown. A person is checking. Do not say the {noun} succeeded or failed."
    ))
}

fn not_confirmed(words: Words) -> SafeText {
    let noun = words.noun;
    SafeText::new(&format!(
        "Not confirmed yet; it may or may not have happened. Asking again is safe. Do not say the {noun} succeeded or failed."
    ))
}

fn accepted(words: Words) -> SafeText {
    let noun = words.noun;
    SafeText::new(&format!(
        "The provider accepted it; it is not final yet. Do not say the {noun} arrived."
    ))
}

fn waits(words: Words) -> SafeText {
    let noun = words.noun;
    SafeText::new(&format!(
        "A person must approve this {noun} before it is sent. Nothing was sent."
    ))
}

fn object(row: &OperationRow, words: Words) -> Option<Named> {
    let name = words.object.to_owned();
    row.provider_ref.clone().map(|id| Named { name, id })
}

/// The answer that the row gives now, to a call that is done with it.
#[must_use]
pub fn of(row: &OperationRow, words: Words) -> ToolResult {
    if row.contradicted.is_some() {
        return checking(row, words);
    }
    match row.status {
        Status::Succeeded => done(row, words, false),
        Status::Failed => ToolResult::Failed {
            operation_id: row.id.clone(),
            object: object(row, words),
            class: row.failure.unwrap_or(FailureClass::ValidationFailure),
            reason: row
                .failure_text
                .clone()
                .unwrap_or_else(|| "the provider refused it".into()),
        },
        Status::Unknown => checking(row, words),
        Status::Open if row.held => ToolResult::Held {
            operation_id: row.id.clone(),
            note: waits(words),
        },
        Status::Open => ToolResult::Unconfirmed {
            operation_id: row.id.clone(),
            object: object(row, words),
            note: if row.provider_ref.is_some() {
                accepted(words)
            } else {
                not_confirmed(words)
            },
        },
    }
}

fn done(row: &OperationRow, words: Words, repeat: bool) -> ToolResult {
    ToolResult::Done {
        word: words.success.to_owned(),
        operation_id: row.id.clone(),
        object: object(row, words),
        repeat,
    }
}

/// `checking`, whatever the status: also for every call on a contradicted order (R42).
#[must_use]
pub fn checking(row: &OperationRow, words: Words) -> ToolResult {
    ToolResult::Checking {
        operation_id: row.id.clone(),
        object: object(row, words),
        note: checks(words),
    }
}

/// `checking` because a row of the same order or payment is contradicted: its object is not this
/// call's, so it is not named.
#[must_use]
pub fn blocked(row: &OperationRow, words: Words) -> ToolResult {
    ToolResult::Checking {
        operation_id: row.id.clone(),
        object: None,
        note: checks(words),
    }
}

/// The stored result of an earlier equal operation (R62).
#[must_use]
pub fn repeat(row: &OperationRow, words: Words) -> ToolResult {
    done(row, words, true)
}

/// Another request for the same order or payment is not settled: nothing was done for this one (I4).
#[must_use]
pub fn order_busy(row: &OperationRow) -> ToolResult {
    let reason = if row.money.is_some() {
        "another amount of this order or payment is not settled yet; nothing was done for this amount"
    } else {
        "another request for this order is not settled yet; nothing was done for this one"
    };
    ToolResult::Rejected {
        class: RejectClass::OrderBusy,
        reason: reason.into(),
        blocked_by: Some(BlockedBy {
            operation_id: row.id.clone(),
            amount_cents: row.minor(),
            status: row.status,
        }),
    }
}
