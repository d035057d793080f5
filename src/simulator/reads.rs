//! Everything that only reads: which path means what, and what reads of refunds meet (S68).
//!
//! Owns: the GET routes. Never: changes the books. Tests: `tests/simulator/`.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::ids::{is_order, order_of_charge, order_of_payment};
use super::state::State;
use super::wire::{ApiError, Call, Params, Reply};
use super::{disputes, objects, refunds, search};

/// The answer to a GET request.
pub(super) fn get(
    state: &State,
    call: &Call,
    segments: &[&str],
    now: DateTime<Utc>,
) -> Result<Value, ApiError> {
    let (world, query) = (&state.world, &call.query);
    match segments {
        ["v1", "account"] => Ok(objects::account(
            call.account.as_deref().unwrap_or_default(),
        )),
        ["v1", "payment_intents", "search"] => {
            let expanded = query.expands("data.latest_charge");
            let found = found_order(query, &world.setting().currency)?.map(|o| world.payment(&o));
            let data: Vec<Value> = found
                .iter()
                .map(|p| objects::payment_intent(p, expanded))
                .collect();
            Ok(objects::search_result(&call.path, &data))
        }
        ["v1", "charges", "search"] => {
            let found = found_order(query, &world.setting().currency)?.map(|o| world.payment(&o));
            let data: Vec<Value> = found.iter().map(objects::charge).collect();
            Ok(objects::search_result(&call.path, &data))
        }
        ["v1", "payment_intents", id] => {
            let order = order_of_payment(id)
                .ok_or_else(|| ApiError::missing("payment_intent", "intent", id))?;
            let expanded = query.expands("latest_charge");
            Ok(objects::payment_intent(&world.payment(&order), expanded))
        }
        ["v1", "charges"] => charges(state, query),
        ["v1", "charges", id] => {
            let order = order_of_charge(id).ok_or_else(|| ApiError::missing("charge", "id", id))?;
            Ok(objects::charge(&world.payment(&order)))
        }
        ["v1", "refunds"] => {
            let stale_s = i64::from(state.faults.frame().read.stale_s);
            refunds::list(world, query, now.timestamp().saturating_sub(stale_s))
        }
        ["v1", "refunds", id] => {
            let refund = world.refund(id);
            let refund = refund.ok_or_else(|| ApiError::missing("refund", "refund", id))?;
            Ok(objects::refund(refund))
        }
        ["v1", "disputes"] => disputes::list(world, query),
        ["v1", "disputes", id] => disputes::one(world, id),
        ["v1", "events"] => state.events.list(query, now),
        ["v1", "events", id] => state.events.one(id, now),
        _ => Err(no_route(call)),
    }
}

/// What a read of refunds is told instead of the truth, while the scenario says so.
pub(super) fn fault(state: &mut State, call: &Call, segments: &[&str]) -> Option<Reply> {
    if !matches!(segments, ["v1", "refunds"] | ["v1", "refunds", _]) {
        return None;
    }
    let read = &state.faults.frame().read;
    let answer = read.answer.clone()?;
    let times = read.times;
    let further = ["starting_after", "ending_before"].map(|p| call.query.get(p));
    if read.next_pages && further.iter().all(Option::is_none) {
        return None;
    }
    // For every payment, not by arrival: the same seed gives the same counts.
    let query = ["payment_intent", "charge"].map(|p| call.query.get(p));
    let of = query.iter().flatten().next().copied();
    let of = of.unwrap_or(segments.last().copied().unwrap_or_default());
    let count = state.bad_reads.entry(of.to_owned()).or_default();
    *count = count.saturating_add(1);
    let on = times.is_none_or(|times| *count <= times);
    on.then(|| Reply::scripted(&answer, call))
}

/// The charge of a payment; without one the list would never end.
fn charges(state: &State, query: &Params) -> Result<Value, ApiError> {
    let Some(id) = query.get("payment_intent") else {
        let message = "The simulator lists charges by payment_intent only.";
        return Err(ApiError::invalid("payment_intent", message));
    };
    let order = order_of_payment(id)
        .ok_or_else(|| ApiError::missing("payment_intent", "payment_intent", id))?;
    let data = [objects::charge(&state.world.payment(&order))];
    Ok(objects::list("/v1/charges", &data, false))
}

/// The one order whose objects match a search; every order exists, and everything about it but
/// its id is the same.
fn found_order(query: &Params, currency: &str) -> Result<Option<String>, ApiError> {
    let text = query.get("query").unwrap_or_default();
    let mut order: Option<String> = None;
    let mut matches = true;
    for clause in search::parse(text)? {
        match clause.field.as_str() {
            "metadata.order_id" => {
                matches &= order.as_ref().is_none_or(|o| *o == clause.value);
                order = Some(clause.value);
            }
            "status" => matches &= clause.value == "succeeded",
            "currency" => matches &= clause.value.eq_ignore_ascii_case(currency),
            // No object of the simulator has other metadata.
            field if field.starts_with("metadata.") => matches = false,
            field => {
                let message = format!("Field `{field}` is an unsupported search field.");
                return Err(ApiError::invalid("query", message));
            }
        }
    }
    Ok(order.filter(|o| matches && is_order(o)))
}

/// Nothing is there.
pub(super) fn no_route(call: &Call) -> ApiError {
    let message = format!("Unrecognized request URL ({}: {}).", call.method, call.path);
    ApiError::new(404, message)
}
