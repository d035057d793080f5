//! `[providers.NAME]`: where a provider is, its key, and its promises.

use std::path::PathBuf;
use std::time::Duration;

use super::read::{Section, Value};
use super::sections::{MONTH, MS, SECOND, STRIPE};
use super::{ConfigError, KeySource, ProviderSection, ProviderType, check, described};
use crate::domain::policy::Profile;

/// Who knows which payment an order was paid with (`resolve`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrdersBy {
    /// The provider's own search, by `metadata.order_id`.
    Search,
    /// A file of order → payment: TOML where it ends in `.toml`, else CSV.
    Table(PathBuf),
    /// A program by its whole path and its arguments; it gets `SAMEKEY_ORDER_ID`, and `{order_id}` in its
    /// arguments is the order. No shell reads it.
    Command(Vec<String>),
}

const STRIPE_URL: &str = "https://api.stripe.com";
/// The version whose refunds are known here (S29 names fields from 2025-04-30 on).
const STRIPE_VERSION: &str = "2025-04-30.basil";
const STRIPE_KEY: &str = "STRIPE_API_KEY";
const STRIPE_WEBHOOK: &str = "STRIPE_WEBHOOK_SECRET";

const KNOWN: [&str; 16] = [
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
    "webhook_secret_env",
    "webhook_secret_file",
    "resolve",
];

pub(super) fn read(mut s: Section<'_>) -> Result<ProviderSection, ConfigError> {
    let kind = match s.take("kind") {
        Some(v) => v.word(&[STRIPE, "http"])?,
        None => ProviderType::Stripe,
    };
    if kind == ProviderType::Http {
        return described::provider(s);
    }
    let base_url = match s.take("base_url") {
        Some(v) => check::base_url(&v)?,
        None => STRIPE_URL.to_owned(),
    };
    let api_version = match s.take("api_version") {
        Some(v) => check::header_text(&v)?,
        None => STRIPE_VERSION.to_owned(),
    };
    let api_key = key_source(&mut s, ["api_key_env", "api_key_file"], STRIPE_KEY)?;
    let api_key = Some(api_key.unwrap_or_else(|| KeySource::Env(STRIPE_KEY.to_owned())));
    let named = ["webhook_secret_env", "webhook_secret_file"];
    let webhook_secret = key_source(&mut s, named, STRIPE_WEBHOOK)?;
    let account = match s.take("account") {
        Some(v) => Some(check::header_text(&v)?),
        None => None,
    };
    let resolve = match s.take("resolve") {
        Some(v) => orders_by(&v)?,
        None => OrdersBy::Search,
    };
    let profile = profile(&mut s)?;
    s.finish(&KNOWN, &[])?;
    Ok(ProviderSection {
        kind,
        base_url,
        api_key,
        api_version,
        profile,
        account,
        webhook_secret,
        resolve,
        http: None,
    })
}

fn orders_by(v: &Value<'_>) -> Result<OrdersBy, ConfigError> {
    let remedy = "write resolve = \"search\", { table = \"/path/orders.csv\" } or { command = [\"/path/to/program\"] }";
    let Ok(mut s) = v.table() else {
        return match v.text() {
            Ok("search") => Ok(OrdersBy::Search),
            Ok(_) | Err(_) => Err(v.error("is not known", remedy)),
        };
    };
    let by = match (s.take("table"), s.take("command")) {
        (Some(_), Some(both)) => {
            return Err(both.error("stands beside table", "keep one of the two"));
        }
        (Some(path), None) => {
            let path_text = PathBuf::from(path.text()?);
            if !path_text.is_absolute() {
                return Err(path.error("is not an absolute path", "write the path from / on"));
            }
            OrdersBy::Table(path_text)
        }
        (None, Some(words)) => OrdersBy::Command(check::command(&words)?),
        (None, None) => return Err(v.error("names neither table nor command", remedy)),
    };
    s.finish(&["table", "command"], &[])?;
    Ok(by)
}

/// A secret by the name of its variable or by its file.
pub(super) fn key_source(
    s: &mut Section<'_>,
    [env, file]: [&str; 2],
    example: &str,
) -> Result<Option<KeySource>, ConfigError> {
    match (s.take(env), s.take(file)) {
        (Some(_), Some(file)) => Err(file.error(
            format!("stands beside {env}"),
            "keep one of the two, so that it is clear which key is used",
        )),
        (Some(v), None) => check::variable_name(&v, example).map(|name| Some(KeySource::Env(name))),
        (None, Some(v)) => {
            let path = PathBuf::from(v.text()?);
            if path.is_absolute() {
                Ok(Some(KeySource::File(path)))
            } else {
                Err(v.error("is not an absolute path", "write the path from / on"))
            }
        }
        (None, None) => Ok(None),
    }
}

/// The documented promises with what the section changes.
fn profile(s: &mut Section<'_>) -> Result<Profile, ConfigError> {
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
    check::profile(&profile, s)?;
    Ok(profile)
}
