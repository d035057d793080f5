//! The sections of the file and their keys, with defaults and ranges. Keys of the contract that this
//! version does not enforce are refused: a limit that looks set and is not is worse than none.

use std::collections::BTreeMap;
use std::time::Duration;

use strum::VariantNames as _;

use super::read::{Doc, Section, Value, toml};
use super::{
    Config, ConfigError, LedgerSection, Theme, TimeZone, ToolSection, UiSection, check, notify,
    provider, tool,
};
use crate::domain::agent::SubmitLimits;
use crate::domain::guard::Role;
use crate::domain::ids::{ProviderName, ToolName};
use crate::domain::message::Language;
use crate::domain::policy::ToolPolicy;
use crate::domain::text::TextError;
use crate::engine::EngineConfig;

/// The tool of this version.
pub(super) const REFUND: &str = "issue_refund";
pub(super) const STRIPE: &str = "stripe";

/// Note templates that one key can still cycle through, and the characters of each.
const MOST_TEMPLATES: usize = 20;
const LONGEST_TEMPLATE: usize = 200;

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_hours(1);
pub(super) const MONTH: Duration = Duration::from_hours(31 * 24);

/// `issue_refund` with the defaults.
pub(super) fn default_tools() -> BTreeMap<ToolName, ToolSection> {
    let (Ok(tool), Ok(provider)) = (ToolName::parse(REFUND), ProviderName::parse(STRIPE)) else {
        // Both are constants of this file; an empty map would only mean: no tool.
        return BTreeMap::new();
    };
    let policy = ToolPolicy::refund(provider);
    BTreeMap::from([(
        tool,
        ToolSection {
            policy,
            described: None,
        },
    )])
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
    if let Some(value) = root.take("gateway") {
        config.gateway = gateway(value.table()?)?;
    }
    if let Some(value) = root.take("providers") {
        for (name, value) in value.table()?.take_all() {
            let section = provider::read(value.table()?)?;
            config.providers.insert(name_of(&name, &value)?, section);
        }
    }
    if let Some(value) = root.take("tools") {
        for (name, value) in value.table()?.take_all() {
            let section = tool::read(value.table()?, &name, &config)?;
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
    if let Some(value) = root.take("notify") {
        config.notify = Some(notify::read(value.table()?)?);
    }
    if let Some(value) = root.take("ui") {
        config.ui = ui(value.table()?)?;
    }
    let known = [
        "ledger",
        "engine",
        "gateway",
        "providers",
        "tools",
        "reviewers",
        "notify",
        "ui",
    ];
    root.finish(&known, &[])?;
    check::tools_have_providers(&config, file)?;
    check::one_reader(&config, file)?;
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
    s.finish(&["url"], &["busy_timeout"])?;
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

fn gateway(mut s: Section<'_>) -> Result<SubmitLimits, ConfigError> {
    let mut limits = SubmitLimits::default();
    if let Some(v) = s.take("rate") {
        limits.rate = v.rate()?;
    }
    if let Some(v) = s.take("tool_rate") {
        limits.tool_rate = v.rate()?;
    }
    if let Some(v) = s.take("max_waiting") {
        limits.max_waiting = v.count(100_000)?;
    }
    s.finish(&["rate", "tool_rate", "max_waiting"], &[])?;
    Ok(limits)
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
        ui.language = v.word(Language::VARIANTS)?;
    }
    if let Some(v) = s.take("note_templates") {
        ui.note_templates = v.texts(MOST_TEMPLATES, LONGEST_TEMPLATE)?;
    }
    let known = ["theme", "refresh", "timezone", "language", "note_templates"];
    s.finish(&known, &["keys"])?;
    Ok(ui)
}
