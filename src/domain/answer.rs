//! What a model hears: the answer of a call, from the row as it stands. Never more than the row.

use super::operation::{FailureClass, OperationRow, Status};
use super::tool_call::{BlockedBy, RejectClass, ToolResult};

const CHECKING: &str =
    "Outcome unknown. A person is checking. Do not say the refund succeeded or failed.";
const UNCONFIRMED: &str = "Not confirmed yet; it may or may not have happened. Asking again is safe. Do not say the refund succeeded or failed.";
const PENDING: &str =
    "The provider accepted it; it is not final yet. Do not say the refund arrived.";
const HELD: &str = "A person must approve this refund before it is sent. Nothing was sent.";

/// The answer that the row gives now, to a call that is done with it.
#[must_use]
pub fn of(row: &OperationRow) -> ToolResult {
    if row.contradicted.is_some() {
        return checking(row);
    }
    match row.status {
        Status::Succeeded => ToolResult::Refunded {
            operation_id: row.id.clone(),
            refund_id: row.provider_ref.clone(),
            repeat: false,
        },
        Status::Failed => ToolResult::Failed {
            operation_id: row.id.clone(),
            refund_id: row.provider_ref.clone(),
            class: row.failure.unwrap_or(FailureClass::ValidationFailure),
            reason: row
                .failure_text
                .clone()
                .unwrap_or_else(|| "the provider refused it".into()),
        },
        Status::Unknown => checking(row),
        Status::Open if row.held => ToolResult::Held {
            operation_id: row.id.clone(),
            note: HELD.into(),
        },
        Status::Open => ToolResult::Unconfirmed {
            operation_id: row.id.clone(),
            refund_id: row.provider_ref.clone(),
            note: if row.provider_ref.is_some() {
                PENDING
            } else {
                UNCONFIRMED
            }
            .into(),
        },
    }
}

/// `checking`, whatever the status: also for every call on a contradicted order (R42).
#[must_use]
pub fn checking(row: &OperationRow) -> ToolResult {
    ToolResult::Checking {
        operation_id: row.id.clone(),
        refund_id: row.provider_ref.clone(),
        note: CHECKING.into(),
    }
}

/// `checking` because a row of the same order or payment is contradicted: its object is not this
/// call's, so it is not named.
#[must_use]
pub fn blocked(row: &OperationRow) -> ToolResult {
    ToolResult::Checking {
        operation_id: row.id.clone(),
        refund_id: None,
        note: CHECKING.into(),
    }
}

/// The stored result of an earlier equal operation (R62).
#[must_use]
pub fn repeat(row: &OperationRow) -> ToolResult {
    ToolResult::Refunded {
        operation_id: row.id.clone(),
        refund_id: row.provider_ref.clone(),
        repeat: true,
    }
}

/// Another amount of the same order or payment is not settled: nothing was done for this one (I4).
#[must_use]
pub fn order_busy(row: &OperationRow) -> ToolResult {
    ToolResult::Rejected {
        class: RejectClass::OrderBusy,
        reason: "another amount of this order or payment is not settled yet; nothing was done for this amount"
            .into(),
        blocked_by: Some(BlockedBy {
            operation_id: row.id.clone(),
            amount_cents: row.money.minor(),
            status: row.status,
        }),
    }
}
