//! Get before check: whether a call is answered by a row that exists, or may open one of its own
//! (steps 3 to 5 of the protocol). Pure: the ledger brings the rows of the order and payment.

use super::Instant;
use super::answer;
use super::identity::Identity;
use super::ids::{ChargeId, OperationId, PaymentId, ProviderRef};
use super::money::{Currency, decimal};
use super::operation::{OperationRow, Status};
use super::policy::{Repeat, ToolPolicy};
use super::tool_call::{RefundArguments, RejectClass, ToolResult};

/// What step 3 found.
#[derive(Clone, Debug, PartialEq)]
pub enum Got {
    /// This open or unknown row answers the call.
    Row(OperationId),
    /// The call ends here.
    Answer(Box<ToolResult>),
    /// There is no such row: the provider has to be read.
    Nothing,
}

/// What the provider said of a payment: captured, and every refund, whoever made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub payment: PaymentId,
    pub charge: Option<ChargeId>,
    pub currency: Currency,
    pub captured_minor: i64,
    pub refunded_minor: i64,
    /// Refunds counted in `refunded_minor`, so that rows of ours are not counted twice.
    pub refunds: Vec<ProviderRef>,
}

/// Step 3. `rows` are the rows of the call's order and, once it is known, of its payment, newest
/// first; `payment` is what the provider resolved.
#[must_use]
pub fn get(
    rows: &[OperationRow],
    args: &RefundArguments,
    payment: Option<&PaymentId>,
    policy: &ToolPolicy,
) -> Got {
    if let Some(row) = rows.iter().find(|r| r.contradicted.is_some()) {
        return Got::Answer(Box::new(answer::blocked(row)));
    }
    let identity = Identity::refund(&args.order, args.money);
    let payment = payment.or(args.payment.as_ref());
    let live = |r: &&OperationRow| matches!(r.status, Status::Open | Status::Unknown);
    let same_identity = |r: &&OperationRow| r.identity == identity;
    let same_payment = |r: &&OperationRow| {
        payment.is_some() && r.payment.as_ref() == payment && r.money.minor() == args.money.minor()
    };
    if let Some(row) = rows
        .iter()
        .filter(live)
        .find(|r| same_identity(r) || same_payment(r))
    {
        return differs(row, args).map_or_else(|| Got::Row(row.id.clone()), reject);
    }
    let newest = rows
        .iter()
        .filter(same_identity)
        .find(|r| r.status == Status::Succeeded);
    if let Some(after) = &args.after {
        // A row that already follows it answers; a failed one does not count.
        let follower = rows
            .iter()
            .find(|r| r.after.as_ref() == Some(after) && r.status != Status::Failed);
        if let Some(row) = follower.filter(same_identity) {
            return differs(row, args)
                .map_or_else(|| Got::Answer(Box::new(answer::repeat(row))), reject);
        }
        return match newest {
            Some(row) if row.id == *after => Got::Nothing,
            Some(_) | None => reject(
                "after must name the newest refunded operation of the same order and amount".into(),
            ),
        };
    }
    match (newest, policy.repeat) {
        (Some(row), Repeat::Answer) => {
            differs(row, args).map_or_else(|| Got::Answer(Box::new(answer::repeat(row))), reject)
        }
        (Some(_), Repeat::Open) | (None, _) => Got::Nothing,
    }
}

fn reject(why: String) -> Got {
    Got::Answer(Box::new(ToolResult::rejected(
        RejectClass::ValidationFailure,
        why,
    )))
}

/// What the call names otherwise than the row has it.
fn differs(row: &OperationRow, args: &RefundArguments) -> Option<String> {
    let id = &row.id;
    if row.money.currency() != args.money.currency() {
        return Some(format!(
            "the currency differs: {id} has {}",
            row.money.currency()
        ));
    }
    if args.payment.is_some() && args.payment != row.payment {
        return Some(format!("the payment_intent differs from that of {id}"));
    }
    if args.charge.is_some() && args.charge != row.charge {
        return Some(format!("the charge differs from that of {id}"));
    }
    None
}

/// Step 4 and the sums of step 5: whether the amount fits. `rows` as in [`get`]; `opened_minor` is
/// what the tool opened in this currency within its cap's window.
///
/// # Errors
/// The answer that the call gets instead of a row.
pub fn check(
    rows: &[OperationRow],
    args: &RefundArguments,
    resolved: &Resolved,
    policy: &ToolPolicy,
    opened_minor: i64,
) -> Result<(), Box<ToolResult>> {
    let invalid = |why: String| {
        Err(Box::new(ToolResult::rejected(
            RejectClass::ValidationFailure,
            why,
        )))
    };
    let currency = args.money.currency();
    if resolved.currency != currency {
        return invalid(format!(
            "the payment was made in {}, not {currency}",
            resolved.currency
        ));
    }
    let unsettled = |r: &&OperationRow| {
        matches!(r.status, Status::Open | Status::Unknown) && r.provider_ref.is_none()
    };
    if let Some(row) = rows.iter().find(unsettled) {
        return Err(Box::new(answer::order_busy(row)));
    }
    let room = room(rows, resolved, None);
    if args.money.minor() > room {
        return invalid(format!(
            "the amount is {} and only {} {} of the payment is left to refund",
            args.money,
            currency.code(),
            decimal(room.max(0), currency)
        ));
    }
    match caps(policy, currency, args.money.minor(), opened_minor) {
        Some(why) => invalid(why),
        None => Ok(()),
    }
}

/// What is left of a payment: captured − refunded (anywhere) − open, unknown or contradicted here,
/// but for `except` itself (I4). Rows whose refund the provider counted already are not counted twice.
#[must_use]
pub fn room(rows: &[OperationRow], resolved: &Resolved, except: Option<&OperationId>) -> i64 {
    let ours = rows
        .iter()
        .filter(|r| Some(&r.id) != except)
        .filter(|r| matches!(r.status, Status::Open | Status::Unknown) || r.contradicted.is_some())
        .filter(|r| {
            !r.provider_ref
                .as_ref()
                .is_some_and(|p| resolved.refunds.contains(p))
        })
        .fold(0_i64, |sum, r| sum.saturating_add(r.money.minor()));
    resolved
        .captured_minor
        .saturating_sub(resolved.refunded_minor)
        .saturating_sub(ours)
}

/// Why the tool's money caps forbid it; taken at opening and again at approval.
#[must_use]
pub fn caps(
    policy: &ToolPolicy,
    currency: Currency,
    minor: i64,
    opened_minor: i64,
) -> Option<String> {
    if policy.caps.is_empty() {
        return None;
    }
    let Some(caps) = policy.caps.get(&currency) else {
        return Some(format!(
            "this tool has no cap for {currency}, so it refuses that currency"
        ));
    };
    let show = |minor| format!("{} {}", currency.code(), decimal(minor, currency));
    if let Some(max) = caps.max_amount.filter(|max| minor > *max) {
        return Some(format!("the largest amount of this tool is {}", show(max)));
    }
    if let Some((max, window)) = caps.max_total
        && opened_minor.saturating_add(minor) > max
    {
        return Some(format!(
            "this tool may refund {} in {} s",
            show(max),
            window.as_secs()
        ));
    }
    None
}

/// Whether a lead has to approve before anything is sent.
#[must_use]
pub fn needs_approval(policy: &ToolPolicy, args: &RefundArguments) -> bool {
    policy
        .caps
        .get(&args.money.currency())
        .and_then(|c| c.approve_over)
        .is_some_and(|over| args.money.minor() > over)
}

/// Whether the provider has to be read again before the first send: it was read more than 60 s ago.
#[must_use]
pub fn is_stale(row: &OperationRow, read_at: Instant, now: Instant) -> bool {
    row.attempts == 0 && super::since(read_at, now) > std::time::Duration::from_mins(1)
}
