//! The refund endpoints without faults: validation (S25–S33) and lists (S41–S45).
//!
//! Owns: what a refund request must look like, and the filters of the list. Never: makes a refund
//! (`world.rs`) or decides what a client gets to see of it (`execution.rs`). Tests: below and
//! `tests/simulator/`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ids::{order_of_charge, order_of_payment};
use super::objects;
use super::pages::{Created, Page};
use super::payments::{NewRefund, Refund};
use super::wire::{ApiError, Params};
use super::world::World;

const REASONS: [&str; 3] = ["duplicate", "fraudulent", "requested_by_customer"];
const KNOWN: [&str; 9] = [
    "amount",
    "charge",
    "payment_intent",
    "reason",
    "currency",
    "instructions_email",
    "metadata",
    "refund_application_fee",
    "reverse_transfer",
];

/// What every list of objects can be asked by.
pub(super) const LISTED_BY: [&str; 6] = [
    "charge",
    "payment_intent",
    "created",
    "limit",
    "starting_after",
    "ending_before",
];

/// The order whose payment or charge the parameters name, valid otherwise or not.
pub(super) fn order(form: &Params) -> Option<String> {
    let by_payment = form.get("payment_intent").and_then(order_of_payment);
    by_payment.or_else(|| form.get("charge").and_then(order_of_charge))
}

/// Reads a refund request. An error here is a validation error: nothing was executed and nothing
/// is saved under the key (S5).
pub(super) fn parse(form: &Params, currency: &str) -> Result<NewRefund, ApiError> {
    only(form, &KNOWN)?;
    let order = target(form)?;
    let reason = form.get("reason");
    if let Some(given) = reason
        && !REASONS.contains(&given)
    {
        let known = REASONS.join(", ");
        let message = format!("Invalid reason: must be one of {known}");
        return Err(ApiError::invalid("reason", message));
    }
    if let Some(given) = form.get("currency")
        && !given.eq_ignore_ascii_case(currency)
    {
        let message = format!("The currency must match the charge's currency, {currency}.");
        return Err(ApiError::invalid("currency", message));
    }
    Ok(NewRefund {
        order,
        amount: form.get("amount").map(amount).transpose()?,
        reason: reason.map(str::to_owned),
        metadata: metadata(form)?.set,
        ..NewRefund::default()
    })
}

/// Reads an update of a refund: its metadata, and nothing else.
pub(super) fn parse_update(form: &Params) -> Result<NewMetadata, ApiError> {
    only(form, &["metadata"])?;
    metadata(form)
}

/// Refuses parameters that the endpoint does not have, such as a filter by metadata (S42).
pub(super) fn only(form: &Params, known: &[&str]) -> Result<(), ApiError> {
    for (name, _) in form.iter() {
        let top = name.split('[').next().unwrap_or_default();
        if !known.contains(&top) && top != "expand" {
            let message = format!("Received unknown parameter: {name}");
            return Err(ApiError::invalid(name, message).code("parameter_unknown"));
        }
    }
    Ok(())
}

/// S25: a charge or a payment intent, not both.
fn target(form: &Params) -> Result<String, ApiError> {
    match (form.get("payment_intent"), form.get("charge")) {
        (Some(id), None) => order_of_payment(id)
            .ok_or_else(|| ApiError::missing("payment_intent", "payment_intent", id)),
        (None, Some(id)) => {
            order_of_charge(id).ok_or_else(|| ApiError::missing("charge", "charge", id))
        }
        (Some(_), Some(_)) => Err(ApiError::new(
            400,
            "You may only specify one of these parameters: charge, payment_intent.",
        )),
        (None, None) => Err(ApiError::new(
            400,
            "One of the following params should be provided for this request: payment_intent or \
             charge.",
        )),
    }
}

/// S26, S33: a positive whole number of minor units.
fn amount(text: &str) -> Result<i64, ApiError> {
    let wrong = |message: String| {
        Err(ApiError::invalid("amount", message).code("parameter_invalid_integer"))
    };
    match text.parse::<i64>() {
        Ok(amount) if amount > 0 => Ok(amount),
        Ok(_) => wrong("This value must be greater than or equal to 1.".to_owned()),
        Err(_) => wrong(format!("Invalid integer: {text}")),
    }
}

/// S27: up to 50 keys, 40-character names without square brackets, 500-character values.
fn metadata(form: &Params) -> Result<NewMetadata, ApiError> {
    let mut all = NewMetadata::default();
    for (param, value) in form.iter() {
        let Some(inner) = param.strip_prefix("metadata") else {
            continue;
        };
        if inner.is_empty() && value.is_empty() {
            all.clear = true;
            continue;
        }
        let name = inner.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        let name = name.filter(|n| !n.is_empty() && !n.contains(['[', ']']));
        let wrong = |message: &str| Err(ApiError::invalid(param, message));
        let Some(name) = name else {
            return wrong("Metadata keys must not be empty or contain square brackets.");
        };
        if name.chars().count() > 40 {
            return wrong("Metadata keys must be at most 40 characters long.");
        }
        if value.chars().count() > 500 {
            return wrong("Metadata values must be at most 500 characters long.");
        }
        if value.is_empty() {
            all.unset.push(name.to_owned());
        } else {
            all.set.insert(name.to_owned(), value.to_owned());
        }
    }
    if all.set.len() > 50 {
        let message = "Metadata may have at most 50 keys.";
        return Err(ApiError::invalid("metadata", message));
    }
    Ok(all)
}

/// What becomes of an object's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NewMetadata {
    /// Everything that was there goes first.
    clear: bool,
    set: BTreeMap<String, String>,
    unset: Vec<String>,
}

impl NewMetadata {
    pub fn apply(self, to: &mut BTreeMap<String, String>) {
        if self.clear {
            to.clear();
        }
        for name in &self.unset {
            to.remove(name);
        }
        to.extend(self.set);
    }
}

/// S42: `GET /v1/refunds`, newest first; only what was made up to the second `until` (S68).
pub(super) fn list(world: &World, query: &Params, until: i64) -> Result<Value, ApiError> {
    only(query, &LISTED_BY)?;
    let page = Page::parse(query)?;
    let created = Created::parse(query)?;
    let of_payment = query.get("payment_intent");
    let of_payment = of_payment.map(|id| {
        order_of_payment(id)
            .ok_or_else(|| ApiError::missing("payment_intent", "payment_intent", id))
    });
    let of_charge = query
        .get("charge")
        .map(|id| order_of_charge(id).ok_or_else(|| ApiError::missing("charge", "charge", id)));
    let (of_payment, of_charge) = (of_payment.transpose()?, of_charge.transpose()?);
    let fits = |r: &&Refund| {
        let second = r.created.timestamp();
        of_charge.as_ref().is_none_or(|o| *o == r.order)
            && created.includes(second)
            && second <= until
    };
    let newest_first: Vec<&Refund> = match of_payment.as_ref().or(of_charge.as_ref()) {
        Some(order) => world.of(order).rev().filter(fits).collect(),
        None => world.refunds().iter().rev().filter(fits).collect(),
    };
    let (on_page, has_more) = page.cut("refund", &newest_first, |r| &r.id)?;
    let data: Vec<Value> = on_page.iter().map(|r| objects::refund(r)).collect();
    Ok(objects::list("/v1/refunds", &data, has_more))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: &str) -> Result<NewRefund, ApiError> {
        parse(&Params::parse(form.as_bytes()), "usd")
    }

    fn param(form: &str) -> String {
        let error = read(form).expect_err(form);
        format!("{} {}", error.status, error.param.unwrap_or_default())
    }

    #[test]
    fn s25_to_s27_a_complete_request_is_read() {
        let new = read(
            "payment_intent=pi_order_4417&amount=3800&reason=duplicate&currency=USD&\
             metadata[operation_id]=op_1&metadata%5Bproof%5D=x%20y&metadata[empty]=&expand[]=charge",
        )
        .expect("valid");
        assert_eq!((new.order.as_str(), new.amount), ("4417", Some(3800)));
        assert_eq!(new.metadata.get("proof").map(String::as_str), Some("x y"));
        assert_eq!(new.metadata.len(), 2, "an empty value unsets");
        assert_eq!(read("charge=ch_order_4417").expect("valid").amount, None);
    }

    #[test]
    fn s25_to_s33_what_is_refused_names_its_parameter() {
        let long = "x".repeat(501);
        for (form, expected) in [
            ("", "400 "),
            ("payment_intent=pi_order_1&charge=ch_order_1", "400 "),
            ("payment_intent=pi_1", "404 payment_intent"),
            ("charge=pi_order_1", "404 charge"),
            ("charge=ch_order_1&amount=0", "400 amount"),
            ("charge=ch_order_1&amount=-5", "400 amount"),
            ("charge=ch_order_1&amount=38.00", "400 amount"),
            (
                "charge=ch_order_1&amount=99999999999999999999",
                "400 amount",
            ),
            ("charge=ch_order_1&reason=angry", "400 reason"),
            ("charge=ch_order_1&currency=eur", "400 currency"),
            ("charge=ch_order_1&amont=5", "400 amont"),
            ("charge=ch_order_1&metadata[a[b]]=5", "400 metadata[a[b]]"),
            ("charge=ch_order_1&metadata[]=5", "400 metadata[]"),
            (
                &format!("charge=ch_order_1&metadata[a]={long}"),
                "400 metadata[a]",
            ),
        ] {
            assert_eq!(param(form), expected, "{form}");
        }
        let many = (0..51).map(|i| format!("&metadata[k{i}]=v"));
        let many = many.collect::<Vec<_>>().concat();
        assert_eq!(param(&format!("charge=ch_order_1{many}")), "400 metadata");
    }
}
