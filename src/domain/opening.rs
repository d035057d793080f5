//! Get before check: whether a call is answered by a row that exists, or may open one of its own
//! (steps 3 to 5 of the protocol). Pure: the ledger brings the rows of the order and payment.

use super::Instant;
use super::answer;
use super::arguments::Arguments;
use super::ids::{ChargeId, OperationId, PaymentId, ProviderRef};
use super::money::{Currency, Money, decimal};
use super::operation::{OperationRow, Status};
use super::policy::{Repeat, ToolPolicy};
use super::tool_call::{RejectClass, ToolResult};

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
    args: &Arguments,
    payment: Option<&PaymentId>,
    policy: &ToolPolicy,
) -> Got {
    let words = policy.words;
    if let Some(row) = rows.iter().find(|r| r.contradicted.is_some()) {
        return Got::Answer(Box::new(answer::blocked(row, words)));
    }
    let identity = &args.identity;
    let payment = payment.or(args.payment.as_ref());
    let live = |r: &&OperationRow| matches!(r.status, Status::Open | Status::Unknown);
    let same_identity = |r: &&OperationRow| r.identity == *identity;
    let same_payment = |r: &&OperationRow| {
        payment.is_some()
            && r.payment.as_ref() == payment
            && r.minor() == args.money.map(Money::minor)
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
                .map_or_else(|| Got::Answer(Box::new(answer::repeat(row, words))), reject);
        }
        return match newest {
            Some(row) if row.id == *after => Got::Nothing,
            Some(_) | None => reject(format!(
                "after must name the newest {} operation of the same {}",
                words.success,
                if args.money.is_some() {
                    "order and amount"
                } else {
                    "kind"
                }
            )),
        };
    }
    match (newest, policy.repeat) {
        (Some(row), Repeat::Answer) => differs(row, args)
            .map_or_else(|| Got::Answer(Box::new(answer::repeat(row, words))), reject),
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
fn differs(row: &OperationRow, args: &Arguments) -> Option<String> {
    let id = &row.id;
    if let (Some(ours), Some(asked)) = (row.currency(), args.money.map(Money::currency))
        && ours != asked
    {
        return Some(format!("the currency differs: {id} has {ours}"));
    }
    if args.payment.is_some() && args.payment != row.payment {
        return Some(format!("the payment_intent differs from that of {id}"));
    }
    if args.charge.is_some() && args.charge != row.charge {
        return Some(format!("the charge differs from that of {id}"));
    }
    None
}

/// What the tool opened already, for its caps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// In the call's currency within its cap's window, minor units.
    pub minor: i64,
    /// Operations within the window of `max_operations`.
    pub operations: u32,
}

/// Step 4 and the sums of step 5: whether the amount fits. `rows` as in [`get`]; `resolved` is empty
/// for a tool whose provider knows no payments; `opened` is what the tool opened within its caps' windows.
///
/// # Errors
/// The answer that the call gets instead of a row.
pub fn check(
    rows: &[OperationRow],
    args: &Arguments,
    resolved: Option<&Resolved>,
    policy: &ToolPolicy,
    opened: Opened,
) -> Result<(), Box<ToolResult>> {
    let reject = |class, why: String| Err(Box::new(ToolResult::rejected(class, why)));
    let invalid = |why: String| reject(RejectClass::ValidationFailure, why);
    if let (Some(resolved), Some(money)) = (resolved, args.money)
        && resolved.currency != money.currency()
    {
        return invalid(format!(
            "the payment was made in {}, not {}",
            resolved.currency,
            money.currency()
        ));
    }
    let of_order = |r: &OperationRow| {
        let same_order = args.order.is_some() && r.order_id == args.order;
        let payment = resolved.map(|resolved| &resolved.payment);
        same_order || (payment.is_some() && r.payment.as_ref() == payment)
    };
    let unsettled = |r: &&OperationRow| {
        matches!(r.status, Status::Open | Status::Unknown) && r.provider_ref.is_none()
    };
    if let Some(row) = rows.iter().filter(unsettled).find(|r| of_order(r)) {
        return Err(Box::new(answer::order_busy(row)));
    }
    if let (Some(resolved), Some(money)) = (resolved, args.money) {
        let (room, currency) = (room(rows, resolved, None), money.currency());
        if money.minor() > room {
            return invalid(format!(
                "the amount is {money} and only {} {} of the payment is left to {}",
                currency.code(),
                decimal(room.max(0), currency),
                policy.words.noun
            ));
        }
    }
    if let Some(why) = args
        .money
        .and_then(|m| caps(policy, m.currency(), m.minor(), opened.minor))
    {
        return invalid(why);
    }
    match count_cap(policy, opened.operations) {
        Some(why) => reject(RejectClass::RateLimited, why),
        None => Ok(()),
    }
}

/// Why the tool's cap of operations forbids one more (R97).
#[must_use]
pub fn count_cap(policy: &ToolPolicy, opened: u32) -> Option<String> {
    let (max, window) = policy.max_operations.filter(|(max, _)| opened >= *max)?;
    Some(format!(
        "this tool may begin {max} operations in {} s; nothing was done",
        window.as_secs()
    ))
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
        .filter_map(OperationRow::minor)
        .fold(0_i64, i64::saturating_add);
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
            "this tool may {} {} in {} s",
            policy.words.noun,
            show(max),
            window.as_secs()
        ));
    }
    None
}

/// Whether a lead has to approve before anything is sent.
#[must_use]
pub fn needs_approval(policy: &ToolPolicy, args: &Arguments) -> bool {
    if policy.approve_all {
        return true;
    }
    let Some(money) = args.money else {
        return false;
    };
    policy
        .caps
        .get(&money.currency())
        .and_then(|c| c.approve_over)
        .is_some_and(|over| money.minor() > over)
}

/// Whether the provider has to be read again before the first send: it was read more than 60 s ago.
#[must_use]
pub fn is_stale(row: &OperationRow, read_at: Instant, now: Instant) -> bool {
    row.attempts == 0 && super::since(read_at, now) > std::time::Duration::from_mins(1)
}
