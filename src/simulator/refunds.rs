//! The refund endpoints without faults: validation (S25–S33) and lists (S41–S45).
//!
//! Owns: what a refund request must look like, paging and filters. Never: makes a refund
//! (`world.rs`) or decides what a client gets to see of it (`execution.rs`). Tests: below and
//! `tests/simulator/`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ids::{order_of_charge, order_of_payment};
use super::objects;
use super::records::EffectSource;
use super::script::Course;
use super::wire::{ApiError, Params};
use super::world::{CURRENCY, NewRefund, Refund, World};

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

/// The order whose payment or charge the parameters name, valid otherwise or not.
pub(super) fn order(form: &Params) -> Option<String> {
    let by_payment = form.get("payment_intent").and_then(order_of_payment);
    by_payment.or_else(|| form.get("charge").and_then(order_of_charge))
}

/// Reads a refund request. An error here is a validation error: nothing was executed and nothing
/// is saved under the key (S5).
pub(super) fn parse(form: &Params, key: Option<&str>) -> Result<NewRefund, ApiError> {
    for (name, _) in form.iter() {
        let top = name.split('[').next().unwrap_or_default();
        if !KNOWN.contains(&top) && top != "expand" {
            let message = format!("Received unknown parameter: {name}");
            return Err(ApiError::invalid(name, message).code("parameter_unknown"));
        }
    }
    let order = target(form)?;
    let reason = form.get("reason");
    if let Some(given) = reason
        && !REASONS.contains(&given)
    {
        let known = REASONS.join(", ");
        let message = format!("Invalid reason: must be one of {known}");
        return Err(ApiError::invalid("reason", message));
    }
    if let Some(currency) = form.get("currency")
        && !currency.eq_ignore_ascii_case(CURRENCY)
    {
        let message = format!("The currency must match the charge's currency, {CURRENCY}.");
        return Err(ApiError::invalid("currency", message));
    }
    Ok(NewRefund {
        order,
        amount: form.get("amount").map(amount).transpose()?,
        reason: reason.map(str::to_owned),
        metadata: metadata(form)?,
        key: key.map(str::to_owned),
        source: EffectSource::Api,
        course: Course::default(),
    })
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
fn metadata(form: &Params) -> Result<BTreeMap<String, String>, ApiError> {
    let mut all = BTreeMap::new();
    for (param, value) in form.iter() {
        let Some(inner) = param.strip_prefix("metadata") else {
            continue;
        };
        if inner.is_empty() && value.is_empty() {
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
        if !value.is_empty() {
            all.insert(name.to_owned(), value.to_owned());
        }
    }
    if all.len() > 50 {
        let message = "Metadata may have at most 50 keys.";
        return Err(ApiError::invalid("metadata", message));
    }
    Ok(all)
}

/// S42: `GET /v1/refunds`, newest first.
pub(super) fn list(world: &World, query: &Params) -> Result<Value, ApiError> {
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
        of_charge.as_ref().is_none_or(|o| *o == r.order) && created.includes(r.created.timestamp())
    };
    let newest_first: Vec<&Refund> = match of_payment.as_ref().or(of_charge.as_ref()) {
        Some(order) => world.of(order).rev().filter(fits).collect(),
        None => world.refunds().iter().rev().filter(fits).collect(),
    };
    let (on_page, has_more) = page.cut(&newest_first, |r| &r.id)?;
    let data: Vec<Value> = on_page.iter().map(|r| objects::refund(r)).collect();
    Ok(objects::list("/v1/refunds", &data, has_more))
}

/// `limit`, `starting_after` and `ending_before`.
struct Page<'a> {
    limit: usize,
    after: Option<&'a str>,
    before: Option<&'a str>,
}

impl<'a> Page<'a> {
    fn parse(query: &'a Params) -> Result<Self, ApiError> {
        let limit = match query.get("limit") {
            None => 10,
            Some(text) => match text.parse::<usize>() {
                Ok(limit) if (1..=100).contains(&limit) => limit,
                _ => {
                    let message = format!("Invalid limit: {text}; it must be from 1 to 100.");
                    let error = ApiError::invalid("limit", message);
                    return Err(error.code("parameter_invalid_integer"));
                }
            },
        };
        let (after, before) = (query.get("starting_after"), query.get("ending_before"));
        if after.is_some() && before.is_some() {
            let message = "You cannot parameterize both starting_after and ending_before.";
            return Err(ApiError::invalid("starting_after", message));
        }
        Ok(Self {
            limit,
            after,
            before,
        })
    }

    /// The page, and whether there is more in its direction.
    fn cut<'i, T>(
        &self,
        items: &'i [T],
        id: impl Fn(&T) -> &String,
    ) -> Result<(&'i [T], bool), ApiError> {
        let find = |cursor: &str, param: &str| {
            let found = items.iter().position(|i| id(i) == cursor);
            found.ok_or_else(|| ApiError::missing("refund", param, cursor))
        };
        let (from, to, has_more) = match (self.after, self.before) {
            (_, Some(cursor)) => {
                let to = find(cursor, "ending_before")?;
                let from = to.saturating_sub(self.limit);
                (from, to, from > 0)
            }
            (after, None) => {
                let from = match after {
                    Some(cursor) => find(cursor, "starting_after")?.saturating_add(1),
                    None => 0,
                };
                let to = from.saturating_add(self.limit).min(items.len());
                (from, to, to < items.len())
            }
        };
        Ok((items.get(from..to).unwrap_or_default(), has_more))
    }
}

/// `created=…` and `created[gt|gte|lt|lte]=…`, in seconds (S42, S45).
struct Created {
    from: i64,
    to: i64,
}

impl Created {
    fn parse(query: &Params) -> Result<Self, ApiError> {
        let (mut from, mut to) = (i64::MIN, i64::MAX);
        for (param, text) in query.iter().filter(|(p, _)| p.starts_with("created")) {
            let second = text.parse::<i64>().map_err(|_| {
                let message = format!("Invalid timestamp: {text}");
                ApiError::invalid(param, message).code("parameter_invalid_integer")
            })?;
            match param {
                "created" => (from, to) = (from.max(second), to.min(second)),
                "created[gt]" => from = from.max(second.saturating_add(1)),
                "created[gte]" => from = from.max(second),
                "created[lt]" => to = to.min(second.saturating_sub(1)),
                "created[lte]" => to = to.min(second),
                _ => {
                    let message = format!("Received unknown parameter: {param}");
                    return Err(ApiError::invalid(param, message).code("parameter_unknown"));
                }
            }
        }
        Ok(Self { from, to })
    }

    fn includes(&self, second: i64) -> bool {
        (self.from..=self.to).contains(&second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: &str) -> Result<NewRefund, ApiError> {
        parse(&Params::parse(form.as_bytes()), Some("K"))
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

    #[test]
    fn s42_pages_go_both_ways() {
        let items: Vec<String> = (0..5).map(|i| i.to_string()).collect();
        let cut = |query: &str| {
            let query = Params::parse(query.as_bytes());
            let page = Page::parse(&query)?;
            page.cut(&items, |i| i).map(|(p, more)| (p.join(""), more))
        };
        assert_eq!(cut("limit=2"), Ok(("01".into(), true)));
        assert_eq!(cut("limit=3&starting_after=1"), Ok(("234".into(), false)));
        assert_eq!(cut("starting_after=4"), Ok((String::new(), false)));
        assert_eq!(cut("limit=2&ending_before=3"), Ok(("12".into(), true)));
        assert_eq!(cut("limit=3&ending_before=3"), Ok(("012".into(), false)));
        for wrong in ["limit=0", "limit=101", "limit=x", "starting_after=9"] {
            assert!(cut(wrong).is_err(), "{wrong}");
        }
        assert!(cut("starting_after=1&ending_before=2").is_err());
    }

    #[test]
    fn s45_created_filters_have_one_second_resolution() {
        let created = |q: &str| Created::parse(&Params::parse(q.as_bytes()));
        let window = created("created[gte]=10&created[lt]=20").expect("window");
        assert!(window.includes(10) && window.includes(19) && !window.includes(20));
        assert!(created("created=7").expect("exact").includes(7));
        assert!(created("created[eq]=7").is_err() && created("created[gt]=x").is_err());
    }
}
