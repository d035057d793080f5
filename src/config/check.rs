//! Values that must make sense, alone and together.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::read::{Section, Value};
use super::{Config, ConfigError, ProviderSection, ProviderType, show_duration};
use crate::domain::Instant;
use crate::domain::ids::ProviderName;
use crate::domain::policy::{Backoff, Caps, Profile, ToolPolicy};
use crate::domain::text::SafeText;
use crate::engine::EngineConfig;

/// Most words of a command.
const MAX_WORDS: usize = 64;

/// `sqlite:PATH`; a store that this version does not have is refused here already.
pub(super) fn ledger_url(v: &Value<'_>) -> Result<String, ConfigError> {
    let url = v.text()?;
    let remedy = "write url = \"sqlite:/absolute/path/ledger.db\"";
    match super::paths::ledger_path(url) {
        // Two working directories would mean two ledgers, and one order refunded from both.
        Ok(path) if !path.is_absolute() => Err(v.error("is not an absolute path", remedy)),
        Ok(_) => Ok(url.to_owned()),
        Err(what) => Err(v.error(what, remedy)),
    }
}

/// Scheme, host and port, nothing else.
pub(super) fn base_url(v: &Value<'_>) -> Result<String, ConfigError> {
    let remedy = "write scheme, host and port only, as in \"https://api.stripe.com\"";
    let text = v.text()?.trim_end_matches('/');
    let uri: hyper::Uri = text
        .parse()
        .map_err(|_| v.error("is not a web address", remedy))?;
    let authority = uri.authority().map_or("", |a| a.as_str());
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(_) | None => return Err(v.error("is not http or https", remedy)),
    }
    if authority.contains('@') {
        return Err(v.error("holds a user name or password", remedy));
    }
    if authority.is_empty() || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(v.error("is more than scheme, host and port", remedy));
    }
    Ok(text.to_owned())
}

/// Text that goes into a header: visible ASCII.
pub(super) fn header_text(v: &Value<'_>) -> Result<String, ConfigError> {
    let text = v.text()?;
    if text.len() <= 255 && text.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err(v.error("holds a space or a special character", "copy it again"))
    }
}

/// The name of an environment variable, and not the key that somebody pasted.
pub(super) fn variable_name(v: &Value<'_>, example: &str) -> Result<String, ConfigError> {
    let text = v.text()?;
    let instead = format!("{} = \"{example}\"", v.name());
    let name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    // The value is not repeated: it may be the key itself.
    if ["sk_", "rk_", "pk_", "whsec_"]
        .iter()
        .any(|p| text.starts_with(p))
    {
        return Err(v.error(
            "looks like a key; this file never holds one",
            format!(
                "write the name of the variable: {instead}; and replace that key at the provider"
            ),
        ));
    }
    if text.bytes().all(name) && !text.starts_with(|c: char| c.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err(v.error(
            "is not the name of an environment variable",
            format!("write {instead}"),
        ))
    }
}

/// A program by its whole path, and its arguments.
pub(super) fn command(v: &Value<'_>) -> Result<Vec<String>, ConfigError> {
    let remedy = "write command = [\"/path/to/program\", \"argument\"]";
    let words = v.list()?;
    let Some(program) = words.first() else {
        return Err(v.error("is empty", remedy));
    };
    if words.len() > MAX_WORDS {
        return Err(v.error(format!("has more than {MAX_WORDS} words"), "shorten it"));
    }
    // Not looked for in PATH: what runs is what stands here.
    if !Path::new(program.text()?).is_absolute() {
        return Err(program.error("is not an absolute path", remedy));
    }
    let texts = words.iter().map(|word| match word.text()? {
        text if text.contains('\0') => Err(word.error("holds a NUL", "remove it")),
        text => Ok(text.to_owned()),
    });
    texts.collect()
}

/// A provider that the file configures.
pub(super) fn known_provider(v: &Value<'_>, config: &Config) -> Result<ProviderName, ConfigError> {
    let name: ProviderName = v.id()?;
    if config.providers.contains_key(&name) {
        return Ok(name);
    }
    Err(v.error(
        format!(
            "names {:?}, which is not configured",
            SafeText::new(name.as_str()).as_str()
        ),
        format!("add [providers.{name}] or name a configured one"),
    ))
}

/// A tool whose provider is missing although another is configured would never send.
pub(super) fn tools_have_providers(config: &Config, file: &str) -> Result<(), ConfigError> {
    // Whoever has described tools alone refunds nothing.
    let refunds = |(_, p): &(_, &ProviderSection)| p.kind == ProviderType::Stripe;
    let Some((other, _)) = config.providers.iter().find(refunds) else {
        return Ok(());
    };
    for (name, tool) in &config.tools {
        let provider = &tool.policy.provider;
        if !config.providers.contains_key(provider) {
            return Err(ConfigError {
                file: file.to_owned(),
                line: None,
                key: Some(format!("tools.{name}.provider")),
                what: format!("is {provider}, which is not configured"),
                remedy: format!("write [tools.{name}] with provider = \"{other}\""),
            });
        }
    }
    Ok(())
}

/// A provider's object is read by its id alone: only one tool of a provider may say how.
pub(super) fn one_reader(config: &Config, file: &str) -> Result<(), ConfigError> {
    let mut readers = BTreeMap::new();
    for (name, tool) in &config.tools {
        let described = tool.described.as_ref();
        let lookup = described.and_then(|d| d.tool.description().lookup.as_ref());
        if lookup.is_none_or(|l| l.fetch.is_none()) {
            continue;
        }
        if let Some(other) = readers.insert(&tool.policy.provider, name) {
            return Err(ConfigError {
                file: file.to_owned(),
                line: None,
                key: Some(format!("tools.{name}")),
                what: format!(
                    "reads single objects of its provider (lookup.fetch), as {other} does"
                ),
                remedy: "give each of them a provider of its own".to_owned(),
            });
        }
    }
    Ok(())
}

pub(super) fn engine(e: &EngineConfig, s: &Section<'_>) -> Result<(), ConfigError> {
    if e.poll >= e.lease {
        return Err(s.error(
            format!(
                "has poll {} and lease {}: a dead engine would be noticed too late",
                show_duration(e.poll),
                show_duration(e.lease)
            ),
            "choose a poll shorter than the lease",
        ));
    }
    Ok(())
}

/// A key must live longer than the margin, or no retry could ever be sent (I10).
pub(super) fn profile(p: &Profile, s: &Section<'_>) -> Result<(), ConfigError> {
    let start = Instant::UNIX_EPOCH;
    let usable = crate::domain::since(start, p.key_expires_at(start));
    if usable > Duration::ZERO {
        return Ok(());
    }
    let margin = p.retention.saturating_add(missing(p));
    Err(s.error(
        format!(
            "has retention {}, not longer than the margin of {} (send window, timeout, settle time, clock error)",
            show_duration(p.retention),
            show_duration(margin)
        ),
        "state how long the provider really keeps keys, or shorten timeout and send_window",
    ))
}

/// How much longer the retention would have to be to reach the margin.
fn missing(p: &Profile) -> Duration {
    let start = Instant::UNIX_EPOCH;
    let long = Profile {
        retention: Duration::from_hours(366 * 24),
        ..p.clone()
    };
    let usable = crate::domain::since(start, long.key_expires_at(start));
    long.retention
        .saturating_sub(usable)
        .saturating_sub(p.retention)
}

pub(super) fn attempts(p: &ToolPolicy, s: &Section<'_>) -> Result<(), ConfigError> {
    if p.max_per_call > p.max_per_operation {
        return Err(s.error(
            format!(
                "has max_per_call {} above max_per_operation {}",
                p.max_per_call, p.max_per_operation
            ),
            "lower max_per_call or raise max_per_operation",
        ));
    }
    Ok(())
}

pub(super) fn backoff(b: Backoff, s: &Section<'_>) -> Result<(), ConfigError> {
    if b.cap < b.base {
        return Err(s.error(
            format!(
                "has cap {} below base {}",
                show_duration(b.cap),
                show_duration(b.base)
            ),
            "write backoff = { base = \"500ms\", cap = \"8s\" }",
        ));
    }
    Ok(())
}

pub(super) fn caps(c: &Caps, s: &Section<'_>) -> Result<(), ConfigError> {
    let Some(max) = c.max_amount else {
        return Ok(());
    };
    for (key, limit) in [
        ("approve_over_cents", c.approve_over),
        ("four_eyes_over_cents", c.four_eyes_over),
    ] {
        if let Some(limit) = limit.filter(|limit| *limit > max) {
            return Err(s.error(
                format!("has {key} {limit} above max_amount_cents {max}, so it would never apply"),
                format!("lower {key} or raise max_amount_cents"),
            ));
        }
    }
    if let Some((total, _)) = c.max_total.filter(|(total, _)| *total < max) {
        return Err(s.error(
            format!("has max_total_cents {total} below max_amount_cents {max}"),
            "raise the total or lower max_amount_cents",
        ));
    }
    Ok(())
}
