//! Tool calls: what a model asked for, validated. The answer it gets back is in [`super::tool_result`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Instant;
use super::ids::{
    AgentName, CallId, ChargeId, OperationId, OrderId, PaymentId, SessionId, ToolName,
};
use super::money::{Currency, Money};
use super::text::SafeText;

pub use super::tool_result::{BlockedBy, Named, RejectClass, ToolResult};

/// Where a call stands.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CallState {
    /// Accepted; no engine has begun.
    Queued,
    /// Under an engine's lease.
    Running,
    /// Answered with `held`; a person decides.
    Held,
    /// Its answer is stored and never changes.
    Answered,
}

/// Whether the caller has the answer (R82–R86).
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Delivery {
    Pending,
    Delivered,
    DeliveryUnknown,
}

/// One request of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub id: CallId,
    pub agent: AgentName,
    pub tool: ToolName,
    /// JSON text as accepted.
    pub arguments: String,
    pub arguments_hash: String,
    pub session: Option<SessionId>,
    pub operation: Option<OperationId>,
    pub state: CallState,
    pub result: Option<ToolResult>,
    pub accepted_at: Instant,
    pub begun_at: Option<Instant>,
    pub executed_at: Option<Instant>,
    pub delivered_at: Option<Instant>,
    pub delivery: Delivery,
}

/// Validated arguments of `issue_refund`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundArguments {
    pub order: OrderId,
    pub money: Money,
    pub payment: Option<PaymentId>,
    pub charge: Option<ChargeId>,
    /// One of Stripe's words (S26).
    pub reason: Option<&'static str>,
    pub after: Option<OperationId>,
}

/// The reasons that may be given at Stripe (S26).
const REASONS: [&str; 3] = ["duplicate", "fraudulent", "requested_by_customer"];
/// The arguments of `issue_refund`.
const ARGUMENTS: [&str; 8] = [
    "order_id",
    "amount_cents",
    "amount",
    "currency",
    "payment_intent",
    "charge",
    "reason",
    "after",
];

/// Why arguments are refused: one sentence that names the argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgumentError(pub SafeText);

fn wrong(message: impl AsRef<str>) -> ArgumentError {
    ArgumentError(SafeText::new(message.as_ref()))
}

impl RefundArguments {
    /// Reads and checks the arguments of a call (step 2 of the protocol).
    ///
    /// # Errors
    /// One sentence that names the argument at fault.
    pub fn parse(arguments: &Value) -> Result<Self, ArgumentError> {
        let Value::Object(map) = arguments else {
            return Err(wrong("the arguments must be a JSON object"));
        };
        if let Some(name) = map.keys().find(|k| !ARGUMENTS.contains(&k.as_str())) {
            return Err(wrong(format!(
                "unknown argument {:?}; issue_refund takes {}",
                SafeText::new(name).as_str(),
                ARGUMENTS.join(", ")
            )));
        }
        // JSON null is an argument that is not given.
        let given = |name: &str| map.get(name).filter(|v| !v.is_null());
        let text = |name: &str| match given(name) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s.as_str())),
            Some(_) => Err(wrong(format!("{name} must be text"))),
        };
        let order = text("order_id")?.ok_or_else(|| wrong("order_id is missing"))?;
        let currency = text("currency")?.ok_or_else(|| wrong("currency is missing"))?;
        let currency: Currency = currency
            .parse()
            .map_err(|e| wrong(format!("currency {e}")))?;
        let reason =
            match text("reason")? {
                None => None,
                Some(r) => Some(*REASONS.iter().find(|k| **k == r).ok_or_else(|| {
                    wrong(format!("reason must be one of {}", REASONS.join(", ")))
                })?),
            };
        Ok(Self {
            order: id("order_id", order)?,
            money: money(given("amount_cents"), given("amount"), currency)?,
            payment: text("payment_intent")?
                .map(|t| id("payment_intent", t))
                .transpose()?,
            charge: text("charge")?.map(|t| id("charge", t)).transpose()?,
            reason,
            after: text("after")?.map(|t| id("after", t)).transpose()?,
        })
    }
}

fn id<T: std::str::FromStr<Err = super::text::TextError>>(
    name: &str,
    raw: &str,
) -> Result<T, ArgumentError> {
    raw.parse().map_err(|e| wrong(format!("{name} {e}")))
}

fn money(
    cents: Option<&Value>,
    amount: Option<&Value>,
    currency: Currency,
) -> Result<Money, ArgumentError> {
    match (cents, amount) {
        (Some(_), Some(_)) => Err(wrong("give amount or amount_cents, not both")),
        (None, None) => Err(wrong("amount or amount_cents is missing")),
        (Some(cents), None) => cents
            .as_i64()
            .ok_or_else(|| wrong("amount_cents must be a whole number of minor units"))
            .and_then(|n| {
                Money::from_minor(n, currency).map_err(|e| wrong(format!("amount_cents {e}")))
            }),
        (None, Some(Value::String(text))) => {
            Money::from_decimal(text, currency).map_err(|e| wrong(format!("amount {e}")))
        }
        (None, Some(_)) => Err(wrong(
            "amount must be decimal text such as \"38.00\"; a number would be rounded",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(v: &Value) -> Result<RefundArguments, String> {
        RefundArguments::parse(v).map_err(|e| e.to_string())
    }

    #[test]
    fn the_seeds_refund_reads_in_both_spellings_r13() {
        let cents = parse(&json!({"order_id":"4417","amount_cents":3800,"currency":"usd"}));
        let text =
            parse(&json!({"currency":"USD","amount":"38.00","order_id":" 4417 ","reason":null}));
        assert_eq!(cents, text);
        assert_eq!(cents.expect("valid").money.minor(), 3800);
    }

    #[test]
    fn bad_arguments_are_one_sentence_that_names_the_argument() {
        let with = |k: &str, v: Value| {
            let mut base = json!({"order_id":"4417","currency":"usd"});
            base[k] = v;
            parse(&base).expect_err("refused")
        };
        for (value, says) in [
            (json!("38.0.0"), "not a decimal"),
            (json!("1e3"), "not a decimal"),
            (json!("NaN"), "not a decimal"),
            (json!("-5"), "above zero"),
            (json!("0"), "above zero"),
            (json!("38.001"), "more decimals"),
            (json!("9".repeat(400)), "larger"),
            (json!(38.5), "decimal text"),
        ] {
            assert!(with("amount", value.clone()).contains(says), "{value}");
        }
        for value in [json!("3800"), json!(38.5), json!(-1), json!(0), json!(true)] {
            assert!(with("amount_cents", value).starts_with("amount_cents"));
        }
        assert!(with("amout", json!("1")).contains("unknown argument"));
        assert!(parse(&json!([])).is_err());
        let both = json!({"order_id":"1","currency":"usd","amount":"1","amount_cents":100});
        assert!(parse(&both).expect_err("both").contains("not both"));
        let order = |v: Value| parse(&json!({"order_id":v,"currency":"usd","amount":"1"}));
        assert!(order(json!("")).is_err() && order(json!(4417)).is_err());
        assert!(
            order(json!("44\n17")).is_err(),
            "a line break in an order id"
        );
    }
}
