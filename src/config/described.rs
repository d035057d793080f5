//! Providers of described tools (`kind = "http"`) and the descriptions of their tools.
//!
//! Owns: their keys, and that a description fits the promises of its provider. A description stands in the
//! section itself, in a file of its own, or comes with the program. Tests: `tests/tools/`.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};

use super::provider::key_source;
use super::read::{Section, Value};
use super::sections::{MONTH, MS, SECOND};
use super::{ConfigError, OrdersBy, ProviderSection, ProviderType, check, open_file};
use crate::domain::policy::{Profile, ProviderKind};
use crate::tool::description::Description;
use crate::tool::{Tool, shipped};

/// Largest file with a description, bytes.
const MAX_FILE: u64 = 64 * 1024;

/// What only a provider of described tools has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSection {
    /// The header that carries the secret, and the word before it (`Bearer`).
    pub auth_header: String,
    pub auth_scheme: Option<String>,
    /// Whether what is done there is done in earnest.
    pub live: bool,
    /// What tells whether it is well, read-only.
    pub probe: Option<String>,
}

/// Where a description stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    Shipped(String),
    File(PathBuf),
    /// In the section itself: its keys.
    Here(Map<String, Json>),
}
impl Eq for Place {}

/// A described tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedTool {
    pub place: Place,
    pub tool: Arc<Tool>,
}

pub(super) const PROVIDER: [&str; 18] = [
    "kind",
    "base_url",
    "api_key_env",
    "api_key_file",
    "auth_header",
    "auth_scheme",
    "mode",
    "probe",
    "keys",
    "longest_key",
    "timeout",
    "send_window",
    "retention",
    "settle_time",
    "lookup_lag",
    "rate",
    "read_rate",
    "account",
];

/// The keys of a description that stands in its tool's section.
pub(super) const KEYS: [&str; 15] = [
    "about",
    "risk",
    "success_word",
    "result_id",
    "noun",
    "schema",
    "identity",
    "order",
    "amount",
    "currency",
    "request",
    "key_header",
    "outcomes",
    "lookup",
    "delivers",
];

pub(super) fn provider(mut s: Section<'_>) -> Result<ProviderSection, ConfigError> {
    let base_url = match s.take("base_url") {
        Some(v) => check::base_url(&v)?,
        None => return Err(s.error("has no base_url", "add base_url = \"https://…\"")),
    };
    let named = ["api_key_env", "api_key_file"];
    let api_key = key_source(&mut s, named, "HELPDESK_TOKEN")?;
    let auth_header = match s.take("auth_header") {
        Some(v) => check::header_text(&v)?,
        None => "Authorization".to_owned(),
    };
    let auth_scheme = match s.take("auth_scheme") {
        Some(v) if v.is_empty_text() => None,
        Some(v) => Some(check::header_text(&v)?),
        None => Some("Bearer".to_owned()).filter(|_| auth_header == "Authorization"),
    };
    let live = match s.take("mode") {
        None => true,
        Some(v) => match v.text()? {
            "live" => true,
            "test" => false,
            _ => return Err(v.error("is not known", "choose one of test, live")),
        },
    };
    let probe = match s.take("probe") {
        None => None,
        Some(v) if v.text()?.starts_with('/') => Some(check::header_text(&v)?),
        Some(v) => return Err(v.error("is no path", "write it from / on: \"/health\"")),
    };
    let profile = profile(&mut s)?;
    s.finish(&PROVIDER, &[])?;
    Ok(ProviderSection {
        kind: ProviderType::Http,
        base_url,
        api_key,
        api_version: String::new(),
        profile,
        account: None,
        webhook_secret: None,
        resolve: OrdersBy::Search,
        http: Some(HttpSection {
            auth_header,
            auth_scheme,
            live,
            probe,
        }),
    })
}

/// What it promises. What decides about safety has no default: nobody's promise can be guessed.
fn profile(s: &mut Section<'_>) -> Result<Profile, ConfigError> {
    let Some(keys) = s.take("keys") else {
        return Err(s.error(
            "does not say whether it honours keys",
            "add keys = \"keyed\", \"lookup\" (searchable by our id) or \"none\"",
        ));
    };
    let kind = match keys.text()? {
        "keyed" => ProviderKind::Keyed,
        "lookup" => ProviderKind::Lookup,
        "none" => ProviderKind::None,
        _ => return Err(keys.error("is not known", "choose one of keyed, lookup, none")),
    };
    let Some(settle) = s.take("settle_time") else {
        return Err(s.error(
            "states no settle_time",
            "add settle_time: how long it may still work on a request whose client has gone",
        ));
    };
    let settle_time = settle.duration(SECOND..=MONTH)?;
    let mut profile = Profile::plain(kind, settle_time);
    for (key, target, least, most) in [
        ("timeout", &mut profile.timeout, 10 * MS, 600 * SECOND),
        (
            "send_window",
            &mut profile.send_window,
            10 * MS,
            60 * SECOND,
        ),
        ("retention", &mut profile.retention, SECOND, MONTH),
        ("lookup_lag", &mut profile.lookup_lag, Duration::ZERO, MONTH),
    ] {
        let given = s.take(key);
        let keyed = key != "retention" || kind == ProviderKind::Keyed;
        if key == "retention" && given.is_none() && keyed {
            return Err(s.error(
                "states no retention",
                "add retention: how long it keeps idempotency keys",
            ));
        }
        if let Some(v) = given.as_ref().filter(|_| !keyed) {
            return Err(v.error("is of no use: the provider honours no keys", "remove it"));
        }
        if let Some(v) = given {
            *target = v.duration(least..=most)?;
        }
    }
    if let Some(v) = s.take("longest_key") {
        let longest = v.integer(36..=255)?;
        profile.longest_key = u16::try_from(longest).unwrap_or(255);
    }
    for (key, target) in [
        ("rate", &mut profile.rate),
        ("read_rate", &mut profile.read_rate),
    ] {
        if let Some(v) = s.take(key) {
            *target = v.rate()?;
        }
    }
    if kind == ProviderKind::Keyed {
        check::profile(&profile, s)?;
    }
    Ok(profile)
}

/// The description of a tool: a shipped one's name or a file, or the keys of the section itself.
pub(super) fn tool(
    s: &mut Section<'_>,
    name: &str,
    kind: ProviderKind,
) -> Result<DescribedTool, ConfigError> {
    let recovery = s.take("recovery").map(|v| (v.json(), v));
    let (place, mut keys, at) = if let Some(v) = s.take("description") {
        let (place, text) = elsewhere(&v)?;
        let keys: Map<String, Json> = toml::from_str(&text)
            .map_err(|e| v.error(format!("cannot be read: {}", e.message()), "correct it"))?;
        (place, keys, Some(v))
    } else {
        let here = here(s, name)?;
        (Place::Here(here.clone()), here, None)
    };
    if let Some((table, _)) = &recovery {
        keys.insert("recovery".into(), table.clone());
    }
    let refuse = |what: String| {
        let remedy = "correct it; `samekey tools check` tries a description out";
        match (&at, &recovery) {
            (_, Some((_, v))) if what.starts_with("recovery") => v.error(what, remedy),
            (Some(v), _) => v.error(format!("cannot be used: {what}"), remedy),
            (None, _) => s.error(format!("cannot be used: {what}"), remedy),
        }
    };
    let text: Description =
        serde_json::from_value(Json::Object(keys)).map_err(|e| refuse(e.to_string()))?;
    let tool = Tool::new(text, kind).map_err(refuse)?;
    Ok(DescribedTool {
        place,
        tool: Arc::new(tool),
    })
}

/// The description in the section itself.
fn here(s: &mut Section<'_>, name: &str) -> Result<Map<String, Json>, ConfigError> {
    let here: Map<String, Json> = KEYS
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), s.take(key)?.json())))
        .collect();
    if here.is_empty() {
        let known: Vec<_> = shipped::ALL.iter().map(|t| t.name).collect();
        let known = known.join(", ");
        let remedy =
            format!("add description = {name:?} or the path of a file; shipped are {known}");
        return Err(s.error("has no description", remedy));
    }
    Ok(here)
}

fn elsewhere(v: &Value<'_>) -> Result<(Place, String), ConfigError> {
    let text = v.text()?;
    if let Some(tool) = shipped::ALL.iter().find(|t| t.name == text) {
        return Ok((Place::Shipped(text.to_owned()), tool.description.to_owned()));
    }
    let path = PathBuf::from(text);
    if !path.is_absolute() {
        let known: Vec<_> = shipped::ALL.iter().map(|t| t.name).collect();
        return Err(v.error(
            "is neither a shipped description nor an absolute path",
            format!("shipped are {}", known.join(", ")),
        ));
    }
    let read = || {
        let mut text = String::new();
        let (file, _) = open_file(&path)?;
        file.take(MAX_FILE).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    let text = read().map_err(|e| {
        v.error(
            format!("cannot be read: {}", super::plain(&e)),
            "name a TOML file below 64 KiB",
        )
    })?;
    Ok((Place::File(path), text))
}

/// The secret's header as it is sent.
#[must_use]
pub fn credentials(section: &HttpSection, secret: &str) -> String {
    match &section.auth_scheme {
        Some(scheme) => format!("{scheme} {secret}"),
        None => secret.to_owned(),
    }
}
