//! What a call asks for, of whatever tool: the validated arguments as the protocol needs them.
//!
//! Owns: the one form that get, check, open and the providers work on. Never: reads a schema; a tool's
//! own reader makes one of these ([`RefundArguments`] for refunds, `provider::http_tool` for tools that
//! are described in the configuration). Tests: below, `tests/protocol/general.rs`.

use serde_json::json;

use super::identity::Identity;
use super::ids::{ChargeId, OperationId, OrderId, PaymentId};
use super::money::Money;
use super::tool_call::RefundArguments;

/// Validated arguments of any tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// What makes two calls the same effect.
    pub identity: Identity,
    pub order: Option<OrderId>,
    pub money: Option<Money>,
    pub payment: Option<PaymentId>,
    pub charge: Option<ChargeId>,
    /// Why, in the provider's own word (S26); refunds only.
    pub reason: Option<&'static str>,
    /// The succeeded operation that a further equal one is to follow.
    pub after: Option<OperationId>,
    /// All of them as canonical JSON: names sorted, no spaces.
    pub body: String,
}

impl From<RefundArguments> for Arguments {
    fn from(args: RefundArguments) -> Self {
        let body = json!({
            "after": args.after, "amount_cents": args.money.minor(), "charge": args.charge,
            "currency": args.money.currency(), "order_id": args.order,
            "payment_intent": args.payment, "reason": args.reason,
        });
        Self {
            identity: Identity::refund(&args.order, args.money),
            order: Some(args.order),
            money: Some(args.money),
            payment: args.payment,
            charge: args.charge,
            reason: args.reason,
            after: args.after,
            body: body.to_string(),
        }
    }
}
