//! From an exchange to an outcome: transport state × status × headers × body → exactly one class.
//!
//! Total (I14): what is not recognised is `side_effect_unknown`, never success and never refusal. A
//! refusal counts only in Stripe's own envelope (S19): a proxy's 404 page says nothing of a refund.
//! Never: decides what follows. Tests: `classify/tests.rs`.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::wire::{self, Fault, Refund};
use crate::domain::outcome::{Expected, Outcome, OutcomeClass, classify_object};
use crate::domain::policy::Profile;
use crate::domain::text::SafeText;
use crate::http::{Exchange, Reply};

/// Longest wait that a `Retry-After` may ask for; nothing outside parks a call for a day.
const MAX_RETRY_AFTER: u64 = 3600;

/// The outcome of one attempt. `known` are secrets that must not be in its texts.
pub(super) fn classify(
    exchange: &Exchange,
    expected: &Expected<'_>,
    profile: &Profile,
    known: &[&str],
) -> Outcome {
    match exchange {
        Exchange::NotSent(why) => Outcome::of(OutcomeClass::NotSent).because(why),
        Exchange::Lost(why) => Outcome::of(OutcomeClass::SideEffectUnknown).because(why),
        Exchange::Answered(reply) => {
            let outcome = answered(reply, expected, known);
            with_headers(outcome, reply, profile, known)
        }
    }
}

/// What the headers add, whatever the class.
fn with_headers(outcome: Outcome, reply: &Reply, profile: &Profile, known: &[&str]) -> Outcome {
    let is = |header, word: &str| {
        reply
            .header(header)
            .is_some_and(|v| v.eq_ignore_ascii_case(word))
    };
    Outcome {
        http_status: Some(reply.status),
        request_id: reply.header("request-id").map(|id| wire::shown(id, known)),
        // S4, whatever the content type; S5: not of an answer that the provider never saves.
        replayed: is("idempotent-replayed", "true") && profile.may_be_replayed(reply.status),
        should_retry: match (
            is("stripe-should-retry", "true"),
            is("stripe-should-retry", "false"),
        ) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        },
        retry_after: reply
            .header("retry-after")
            .and_then(|v| v.parse::<u64>().ok())
            .map(|s| Duration::from_secs(s.min(MAX_RETRY_AFTER))),
        ..outcome
    }
}

fn answered(reply: &Reply, expected: &Expected<'_>, known: &[&str]) -> Outcome {
    // A 5xx is one whatever its body, even one that broke off (S12).
    if (500..=599).contains(&reply.status) {
        let fault = reply.body.as_deref().and_then(Fault::read);
        return Outcome {
            error: Some(words(reply, fault.as_ref(), known)),
            ..Outcome::of(OutcomeClass::ServerError)
        };
    }
    let Some(body) = reply.body.as_deref() else {
        return Outcome::of(OutcomeClass::SideEffectUnknown).because(&format!(
            "the answer (HTTP {}) broke off, came too slowly or was too large",
            reply.status
        ));
    };
    match reply.status {
        200..=299 => object(body, expected),
        400..=499 => refused(reply, body, known),
        status => Outcome::of(OutcomeClass::SideEffectUnknown)
            .because(&format!("HTTP {status} is not followed or understood")),
    }
}

/// A 2xx, by its content alone: neither the exact status nor a content type proves a refund.
fn object(body: &[u8], expected: &Expected<'_>) -> Outcome {
    let Some(object) = wire::parse::<Refund>(body).and_then(|r| r.read()) else {
        return Outcome::of(OutcomeClass::SideEffectUnknown)
            .because("the answer is not a readable refund");
    };
    let class = classify_object(expected, &object);
    let error = match class {
        OutcomeClass::ReplyMismatch => Some(SafeText::new(
            "the refund in the answer has another amount, currency, payment or operation",
        )),
        OutcomeClass::SideEffectUnknown => Some(SafeText::new(
            "the refund in the answer lacks our operation id or has an unknown status",
        )),
        OutcomeClass::EffectFailed => object.failure_reason.clone(),
        _ => None,
    };
    Outcome {
        error,
        object: Some(object),
        ..Outcome::of(class)
    }
}

/// A 4xx.
fn refused(reply: &Reply, body: &[u8], known: &[&str]) -> Outcome {
    use OutcomeClass as C;
    let fault = Fault::read(body);
    let is = |code| fault.as_ref().is_some_and(|f| f.is(code));
    let mismatch = fault
        .as_ref()
        .is_some_and(|f| f.kind.as_deref() == Some("idempotency_error"));
    let class = match (reply.status, &fault) {
        // The status alone says it; only what stood before the effect is asked of the body.
        (429, _) => C::RetryableFailure,
        // S24: rate limits once came as 400.
        (400, Some(_)) if is("rate_limit") => C::RetryableFailure,
        // S6, S7.
        (400 | 402 | 404, Some(_)) if mismatch => C::KeyMismatch,
        (400 | 402 | 404, Some(_)) => C::ValidationFailure,
        (401 | 403, Some(_)) => C::PermissionDenied,
        // S8: by status and code, whatever the type says.
        (409, Some(_)) if is("idempotency_key_in_use") => C::KeyInProgress,
        _ => C::SideEffectUnknown,
    };
    // S21: a limiter names its reason; a lock does not, and is no limiter. A 429 that cannot be
    // read could be a lock.
    let limiter = class == C::RetryableFailure
        && (reply.headers.contains_key("stripe-rate-limited-reason")
            || fault.is_some() && !is("lock_timeout"));
    Outcome {
        error: Some(words(reply, fault.as_ref(), known)),
        limiter,
        already_refunded: class == C::ValidationFailure && is("charge_already_refunded"),
        ..Outcome::of(class)
    }
}

/// The provider's words, or the bare status.
fn words(reply: &Reply, fault: Option<&Fault>, known: &[&str]) -> SafeText {
    fault.map_or_else(
        || SafeText::new(&format!("HTTP {} without a readable reason", reply.status)),
        |f| f.text(known),
    )
}
