//! `[tools.issue_refund]`: what an agent may ask for, and how often.

use std::time::Duration;

use super::read::{Section, Value};
use super::sections::{HOUR, MONTH, MS, SECOND, STRIPE};
use super::{Config, ConfigError, ToolSection, check};
use crate::domain::money::{Currency, MAX_MINOR};
use crate::domain::policy::{Backoff, Caps, Repeat, ToolPolicy};
use crate::domain::text::TextError;

const KNOWN: [&str; 10] = [
    "provider",
    "max_per_call",
    "max_per_operation",
    "backoff",
    "rate",
    "repeat",
    "lookup_cooldown",
    "claim_ttl",
    "approval_ttl",
    "caps",
];
/// Not enforced by this version.
const LATER: [&str; 1] = ["max_identical_calls"];

pub(super) fn read(mut s: Section<'_>, config: &Config) -> Result<ToolSection, ConfigError> {
    let provider = match s.take("provider") {
        Some(v) => check::known_provider(&v, config)?,
        None => STRIPE
            .parse()
            .map_err(|e: TextError| s.error(e.to_string(), "name its provider"))?,
    };
    let mut p = ToolPolicy::refund(provider);
    if let Some(v) = s.take("max_per_call") {
        p.max_per_call = v.count(100)?;
    }
    if let Some(v) = s.take("max_per_operation") {
        p.max_per_operation = v.count(100)?;
    }
    if let Some(v) = s.take("backoff") {
        p.backoff = backoff(v.table()?, p.backoff)?;
    }
    if let Some(v) = s.take("rate") {
        p.rate = v.rate()?;
    }
    if let Some(v) = s.take("repeat") {
        p.repeat = match v.word::<String>(&[])?.as_str() {
            "answer" => Repeat::Answer,
            "open" => Repeat::Open,
            _ => return Err(v.error("is not known", "choose one of answer, open")),
        };
    }
    if let Some(v) = s.take("lookup_cooldown") {
        p.lookup_cooldown = v.duration(Duration::ZERO..=HOUR)?;
    }
    if let Some(v) = s.take("claim_ttl") {
        p.claim_ttl = v.duration(SECOND..=24 * HOUR)?;
    }
    if let Some(v) = s.take("approval_ttl") {
        p.approval_ttl = v.duration(SECOND..=MONTH)?;
    }
    if let Some(v) = s.take("caps") {
        for (code, v) in v.table()?.take_all() {
            let currency: Currency = code
                .parse()
                .map_err(|e| v.error(format!("{e}"), "write [tools.issue_refund.caps.usd]"))?;
            if p.caps.insert(currency, caps(v.table()?)?).is_some() {
                return Err(v.error("stands here twice", "keep one section per currency"));
            }
        }
    }
    check::attempts(&p, &s)?;
    s.finish(&KNOWN, &LATER)?;
    Ok(ToolSection { policy: p })
}

fn backoff(mut s: Section<'_>, mut b: Backoff) -> Result<Backoff, ConfigError> {
    if let Some(v) = s.take("base") {
        b.base = v.duration(MS..=HOUR)?;
    }
    if let Some(v) = s.take("cap") {
        b.cap = v.duration(MS..=HOUR)?;
    }
    check::backoff(b, &s)?;
    s.finish(&["base", "cap"], &[])?;
    Ok(b)
}

fn caps(mut s: Section<'_>) -> Result<Caps, ConfigError> {
    let mut caps = Caps::default();
    let minor = |v: Value<'_>| v.integer(1..=MAX_MINOR);
    caps.max_amount = s.take("max_amount_cents").map(minor).transpose()?;
    caps.approve_over = s.take("approve_over_cents").map(minor).transpose()?;
    caps.four_eyes_over = s.take("four_eyes_over_cents").map(minor).transpose()?;
    if let Some(v) = s.take("max_total_cents") {
        let mut total = v.table()?;
        let (Some(amount), Some(window)) = (total.take("amount"), total.take("window")) else {
            return Err(v.error(
                "needs both amount and window",
                "write max_total_cents = { amount = 500000, window = \"24h\" }",
            ));
        };
        caps.max_total = Some((minor(amount)?, window.duration(SECOND..=MONTH)?));
        total.finish(&["amount", "window"], &[])?;
    }
    check::caps(&caps, &s)?;
    let known = [
        "max_amount_cents",
        "max_total_cents",
        "approve_over_cents",
        "four_eyes_over_cents",
    ];
    s.finish(&known, &[])?;
    Ok(caps)
}
