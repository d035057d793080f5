//! The sections of the file and their keys, with defaults and ranges.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use strum::VariantNames as _;

use super::read::{Doc, Section, Value, toml};
use super::{
    Config, ConfigError, KeySource, Language, LedgerSection, ProviderSection, ProviderType, Theme,
    TimeZone, ToolSection, UiSection, check,
};
use crate::domain::guard::Role;
use crate::domain::ids::{ProviderName, ToolName};
use crate::domain::money::{Currency, MAX_MINOR};
use crate::domain::policy::{Backoff, Caps, Profile, Repeat, ToolPolicy};
use crate::domain::text::TextError;
use crate::engine::EngineConfig;

/// The tool of this version.
pub(super) const REFUND: &str = "issue_refund";
const STRIPE: &str = "stripe";
const STRIPE_URL: &str = "https://api.stripe.com";
/// The version whose refunds are known here (S29 names fields from 2025-04-30 on).
const STRIPE_VERSION: &str = "2025-04-30.basil";
const STRIPE_KEY: &str = "STRIPE_API_KEY";

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const MONTH: Duration = Duration::from_secs(31 * 24 * 3600);

/// Keys of the contract that this version does not enforce; setting one is refused (a limit that
/// looks set and is not would be worse than none).
mod later {
    pub const ROOT: &[&str] = &["notify"];
    pub const LEDGER: &[&str] = &["busy_timeout"];
    pub const PROVIDER: &[&str] = &["webhook_secret_env"];
    pub const TOOL: &[&str] = &["max_identical_calls", "claim_ttl"];
    pub const UI: &[&str] = &["keys"];
}

/// `issue_refund` with the defaults.
pub(super) fn default_tools() -> BTreeMap<ToolName, ToolSection> {
    let (Ok(tool), Ok(provider)) = (ToolName::parse(REFUND), ProviderName::parse(STRIPE)) else {
        // Both are constants of this file; an empty map would only mean: no tool.
        return BTreeMap::new();
    };
    let policy = ToolPolicy::refund(provider);
    BTreeMap::from([(tool, ToolSection { policy })])
}

/// Reads the whole file.
pub(super) fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
    let doc = Doc { file, text };
    let table = toml(doc)?;
    let mut root = Section::new(doc, String::new(), 0, table.get_ref());
    let mut config = Config::default();
    if let Some(value) = root.take("ledger") {
        config.ledger = ledger(value.table()?)?;
    }
    if let Some(value) = root.take("engine") {
        config.engine = engine(value.table()?)?;
    }
    if let Some(value) = root.take("providers") {
        for (name, value) in value.table()?.take_all() {
            let section = provider(value.table()?)?;
            config.providers.insert(name_of(&name, &value)?, section);
        }
    }
    if let Some(value) = root.take("tools") {
        for (name, value) in value.table()?.take_all() {
            if name != REFUND {
                return Err(value.error(
                    "is not a tool of this version",
                    format!("this version has [tools.{REFUND}]"),
                ));
            }
            let section = tool(value.table()?, &config)?;
            config.tools.insert(name_of(&name, &value)?, section);
        }
    }
    if let Some(value) = root.take("reviewers") {
        for (name, value) in value.table()?.take_all() {
            config
                .reviewers
                .insert(name_of(&name, &value)?, reviewer(value.table()?)?);
        }
    }
    if let Some(value) = root.take("ui") {
        config.ui = ui(value.table()?)?;
    }
    let known = ["ledger", "engine", "providers", "tools", "reviewers", "ui"];
    root.finish(&known, later::ROOT)?;
    check::tools_have_providers(&config, file)?;
    Ok(config)
}

/// A name that stands in a section's header.
fn name_of<T: std::str::FromStr<Err = TextError>>(
    name: &str,
    value: &Value<'_>,
) -> Result<T, ConfigError> {
    name.parse()
        .map_err(|e| value.error(format!("has a name that {e}"), "choose another name"))
}

fn ledger(mut s: Section<'_>) -> Result<LedgerSection, ConfigError> {
    let url = match s.take("url") {
        Some(v) => Some(check::ledger_url(&v)?),
        None => None,
    };
    s.finish(&["url"], later::LEDGER)?;
    Ok(LedgerSection { url })
}

fn engine(mut s: Section<'_>) -> Result<EngineConfig, ConfigError> {
    let mut e = EngineConfig::default();
    if let Some(v) = s.take("workers") {
        e.workers = v.count(256)?;
    }
    for (key, target, least, most) in [
        ("lease", &mut e.lease, SECOND, HOUR),
        ("poll", &mut e.poll, 10 * MS, 60 * SECOND),
        ("call_timeout", &mut e.call_timeout, 100 * MS, HOUR),
        ("call_ttl", &mut e.call_ttl, SECOND, MONTH),
    ] {
        if let Some(v) = s.take(key) {
            *target = v.duration(least..=most)?;
        }
    }
    check::engine(&e, &s)?;
    let known = ["workers", "lease", "poll", "call_timeout", "call_ttl"];
    s.finish(&known, &[])?;
    Ok(e)
}

fn provider(mut s: Section<'_>) -> Result<ProviderSection, ConfigError> {
    let kind = match s.take("kind") {
        Some(v) => v.word(&[STRIPE])?,
        None => ProviderType::Stripe,
    };
    let base_url = match s.take("base_url") {
        Some(v) => check::base_url(&v)?,
        None => STRIPE_URL.to_owned(),
    };
    let api_version = match s.take("api_version") {
        Some(v) => check::header_text(&v)?,
        None => STRIPE_VERSION.to_owned(),
    };
    let api_key = key_source(&mut s)?;
    let account = match s.take("account") {
        Some(v) => Some(check::header_text(&v)?),
        None => None,
    };
    let mut profile = Profile::stripe();
    for (key, target, least, most) in [
        ("timeout", &mut profile.timeout, 10 * MS, 10 * 60 * SECOND),
        (
            "send_window",
            &mut profile.send_window,
            10 * MS,
            60 * SECOND,
        ),
        ("retention", &mut profile.retention, SECOND, MONTH),
        (
            "settle_time",
            &mut profile.settle_time,
            Duration::ZERO,
            MONTH,
        ),
        ("lookup_lag", &mut profile.lookup_lag, Duration::ZERO, MONTH),
    ] {
        if let Some(v) = s.take(key) {
            *target = v.duration(least..=most)?;
        }
    }
    for (key, target) in [
        ("rate", &mut profile.rate),
        ("read_rate", &mut profile.read_rate),
    ] {
        if let Some(v) = s.take(key) {
            *target = v.rate()?;
        }
    }
    check::profile(&profile, &s)?;
    let known = [
        "kind",
        "base_url",
        "api_key_env",
        "api_key_file",
        "api_version",
        "timeout",
        "send_window",
        "retention",
        "settle_time",
        "lookup_lag",
        "rate",
        "read_rate",
        "account",
    ];
    s.finish(&known, later::PROVIDER)?;
    Ok(ProviderSection {
        kind,
        base_url,
        api_key,
        api_version,
        profile,
        account,
    })
}

fn key_source(s: &mut Section<'_>) -> Result<KeySource, ConfigError> {
    match (s.take("api_key_env"), s.take("api_key_file")) {
        (Some(_), Some(file)) => Err(file.error(
            "stands beside api_key_env",
            "keep one of the two, so that it is clear which key is used",
        )),
        (Some(v), None) => check::variable_name(&v).map(KeySource::Env),
        (None, Some(v)) => {
            let path = PathBuf::from(v.text()?);
            if path.is_absolute() {
                Ok(KeySource::File(path))
            } else {
                Err(v.error("is not an absolute path", "write the path from / on"))
            }
        }
        (None, None) => Ok(KeySource::Env(STRIPE_KEY.to_owned())),
    }
}

fn tool(mut s: Section<'_>, config: &Config) -> Result<ToolSection, ConfigError> {
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
    let known = [
        "provider",
        "max_per_call",
        "max_per_operation",
        "backoff",
        "rate",
        "repeat",
        "lookup_cooldown",
        "approval_ttl",
        "caps",
    ];
    s.finish(&known, later::TOOL)?;
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

fn reviewer(mut s: Section<'_>) -> Result<Role, ConfigError> {
    let Some(v) = s.take("role") else {
        return Err(s.error(
            "has no role",
            "add role = \"viewer\", \"reviewer\" or \"lead\"",
        ));
    };
    let role = match v.text()? {
        "viewer" => Role::Viewer,
        "reviewer" => Role::Reviewer,
        "lead" => Role::Lead,
        _ => return Err(v.error("is not known", "choose one of viewer, reviewer, lead")),
    };
    s.finish(&["role"], &[])?;
    Ok(role)
}

fn ui(mut s: Section<'_>) -> Result<UiSection, ConfigError> {
    let mut ui = UiSection::default();
    if let Some(v) = s.take("theme") {
        ui.theme = v.word(Theme::VARIANTS)?;
    }
    if let Some(v) = s.take("refresh") {
        ui.refresh = v.duration(100 * MS..=60 * SECOND)?;
    }
    if let Some(v) = s.take("timezone") {
        ui.timezone = v.word(TimeZone::VARIANTS)?;
    }
    if let Some(v) = s.take("language") {
        if v.text()? == "ru" {
            return Err(v.error(
                "\"ru\" is not in this version",
                "write language = \"en\" or remove the line",
            ));
        }
        ui.language = v.word(Language::VARIANTS)?;
    }
    s.finish(&["theme", "refresh", "timezone", "language"], later::UI)?;
    Ok(ui)
}
