//! `[tools.NAME]`: what an agent may ask for, and how often.

use std::collections::BTreeMap;
use std::time::Duration;

use super::read::{Section, Value};
use super::sections::{HOUR, MONTH, MS, REFUND, SECOND, STRIPE};
use super::{Config, ConfigError, DescribedTool, ProviderType, ToolSection, check, described};
use crate::domain::ids::ProviderName;
use crate::domain::money::{Currency, MAX_MINOR};
use crate::domain::policy::{Backoff, Caps, ProviderKind, Repeat, ToolPolicy};
use crate::domain::recovery::Recovery;
use crate::domain::text::TextError;
use crate::tool::Tool;
use crate::tool::description::Risk;

const KNOWN: [&str; 14] = [
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
    "max_operations",
    "max_identical_calls",
    "description",
    "recovery",
];

pub(super) fn read(
    mut s: Section<'_>,
    name: &str,
    config: &Config,
) -> Result<ToolSection, ConfigError> {
    let (provider, described) = wire(&mut s, name, config)?;
    let mut p = ToolPolicy::refund(provider);
    if let Some(described) = &described {
        says(&mut p, &described.tool);
    }
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
    if let Some(v) = s.take("recovery") {
        p.recovery = recovery(&v, config, &p.provider)?;
    }
    counts(&mut s, &mut p)?;
    check::attempts(&p, &s)?;
    let keys = if described.is_some() {
        &described::KEYS[..]
    } else {
        &[]
    };
    s.finish(&[&KNOWN[..], keys].concat(), &[])?;
    Ok(ToolSection {
        policy: p,
        described,
    })
}

/// What of the limits the description decides.
fn says(p: &mut ToolPolicy, tool: &Tool) {
    p.words = tool.words();
    p.delivers = tool.description().delivers;
    p.recovery = tool.recovery().clone();
    p.approve_all = tool.description().risk == Risk::High;
}

/// Limits that are counts of calls and operations.
fn counts(s: &mut Section<'_>, p: &mut ToolPolicy) -> Result<(), ConfigError> {
    if let Some(v) = s.take("max_identical_calls") {
        p.max_identical_calls = Some(v.count(1000)?);
    }
    if let Some(v) = s.take("max_operations") {
        p.max_operations = Some(operations(&v)?);
    }
    Ok(())
}

/// Who carries it out, and how it is described: refunds by a provider of kind stripe, whose wire is the
/// program's own, and every other tool by a provider of kind http.
fn wire(
    s: &mut Section<'_>,
    name: &str,
    config: &Config,
) -> Result<(ProviderName, Option<DescribedTool>), ConfigError> {
    let provider = match s.take("provider") {
        Some(v) => check::known_provider(&v, config)?,
        None if name == REFUND => STRIPE
            .parse()
            .map_err(|e: TextError| s.error(e.to_string(), "name its provider"))?,
        None => {
            return Err(s.error(
                "has no provider",
                "add provider = \"…\", one of kind http (only issue_refund has a default)",
            ));
        }
    };
    let known = config.providers.get(&provider);
    let http = known.filter(|p| p.kind == ProviderType::Http);
    match (name == REFUND, http) {
        (true, None) => Ok((provider, None)),
        (true, Some(_)) => Err(s.error(
            format!("has the provider {provider}, which is of kind http"),
            "name one of kind stripe, or choose another name for a described tool",
        )),
        (false, None) => Err(s.error(
            "is not a tool that this provider has",
            format!("[tools.{REFUND}] is of kind stripe; other tools need a provider of kind http"),
        )),
        (false, Some(section)) => {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            if name.len() > 64 || !name.bytes().all(plain) {
                return Err(s.error(
                    "has a name that models cannot call",
                    "use letters, digits, _ and -",
                ));
            }
            let described = described::tool(s, name, section.profile.kind)?;
            Ok((provider, Some(described)))
        }
    }
}

/// The table of a tool whose wire is the program's own; described ones read it with their description.
fn recovery(
    v: &Value<'_>,
    config: &Config,
    provider: &ProviderName,
) -> Result<Recovery, ConfigError> {
    let table = v.table()?.take_all();
    let mut named = BTreeMap::new();
    for (class, branch) in &table {
        named.insert(class.clone(), branch.text()?.to_owned());
    }
    let kind = config.providers.get(provider).map(|p| p.profile.kind);
    Recovery::new(&named, kind.unwrap_or(ProviderKind::Keyed), true).map_err(|what| {
        v.error(
            what,
            "name every class, with the protocol's branch or a stricter one",
        )
    })
}

/// So many operations within a window.
fn operations(v: &Value<'_>) -> Result<(u32, Duration), ConfigError> {
    let mut s = v.table()?;
    let (Some(count), Some(window)) = (s.take("count"), s.take("window")) else {
        return Err(v.error(
            "needs both count and window",
            "write max_operations = { count = 100, window = \"1h\" }",
        ));
    };
    let limit = (count.count(1_000_000)?, window.duration(SECOND..=MONTH)?);
    s.finish(&["count", "window"], &[])?;
    Ok(limit)
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
