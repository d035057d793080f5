//! `[notify]`: who outside is told of what, and how.

use std::path::PathBuf;
use std::time::Duration;

use strum::{VariantArray, VariantNames};

use super::read::{Section, Value};
use super::sections::SECOND;
use super::{ConfigError, KeySource, check};
use crate::domain::notice::NoticeEvent;
use crate::http::Origin;

/// How long one delivery may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// `[notify]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifySection {
    /// A program by its whole path, and its arguments; no shell reads it.
    pub command: Option<Vec<String>>,
    pub webhook: Option<WebhookAt>,
    /// How the webhook is spoken to; without it the host decides.
    pub format: Option<WebhookFormat>,
    /// In the order of [`NoticeEvent`], each once.
    pub on: Vec<NoticeEvent>,
    pub timeout: Duration,
}

/// Where a webhook's URL is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAt {
    /// On this machine; stands in the file.
    Url(String),
    /// Anywhere else: whoever knows such a URL can post, so it is a secret.
    Secret(KeySource),
}

/// What a webhook understands.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString, strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum WebhookFormat {
    /// One `text`, as Slack and those who speak like it.
    Slack,
    /// One object with a member per fact.
    Json,
}

pub(super) fn read(mut s: Section<'_>) -> Result<NotifySection, ConfigError> {
    let command = s.take("command").map(|v| check::command(&v)).transpose()?;
    let webhook = webhook(&mut s)?;
    if command.is_none() && webhook.is_none() {
        return Err(s.error(
            "names nobody to tell",
            "add command = [\"/path/to/program\"] or webhook_env = \"NAME\", or remove the section",
        ));
    }
    let format = match s.take("webhook_format") {
        Some(v) if webhook.is_none() => {
            return Err(v.error("goes with a webhook", "add webhook_env or remove the line"));
        }
        Some(v) => Some(v.word(WebhookFormat::VARIANTS)?),
        None => None,
    };
    let on = match s.take("on") {
        Some(v) => events(&v)?,
        None => <NoticeEvent as VariantArray>::VARIANTS.to_vec(),
    };
    let timeout = match s.take("timeout") {
        Some(v) => v.duration(SECOND..=60 * SECOND)?,
        None => TIMEOUT,
    };
    let known = [
        "command",
        "webhook",
        "webhook_env",
        "webhook_file",
        "webhook_format",
        "on",
        "timeout",
    ];
    s.finish(&known, &[])?;
    Ok(NotifySection {
        command,
        webhook,
        format,
        on,
        timeout,
    })
}

fn webhook(s: &mut Section<'_>) -> Result<Option<WebhookAt>, ConfigError> {
    let given = ["webhook", "webhook_env", "webhook_file"].map(|key| s.take(key));
    if let [Some(_), Some(v), _] | [Some(_), _, Some(v)] | [_, Some(_), Some(v)] = &given {
        return Err(v.error(
            "stands beside another webhook",
            "keep one of webhook, webhook_env and webhook_file",
        ));
    }
    match given {
        [Some(v), ..] => local(&v).map(WebhookAt::Url).map(Some),
        [_, Some(v), _] => {
            let name = check::variable_name(&v, "SAMEKEY_WEBHOOK")?;
            Ok(Some(WebhookAt::Secret(KeySource::Env(name))))
        }
        [_, _, Some(v)] => {
            let path = PathBuf::from(v.text()?);
            if !path.is_absolute() {
                return Err(v.error("is not an absolute path", "write the path from / on"));
            }
            Ok(Some(WebhookAt::Secret(KeySource::File(path))))
        }
        [None, None, None] => Ok(None),
    }
}

/// A URL of this machine. Any other is a secret, and is not repeated.
fn local(v: &Value<'_>) -> Result<String, ConfigError> {
    let text = v.text()?;
    let remedy = "write webhook_env = \"SAMEKEY_WEBHOOK\" and put the URL into that variable";
    match Origin::with_path(text) {
        Ok((origin, _)) if origin.is_loopback() => Ok(text.to_owned()),
        Ok(_) => Err(v.error(
            "leads away from this machine; such a URL is a secret, and this file never holds one",
            remedy,
        )),
        Err(what) => Err(v.error(what, remedy)),
    }
}

fn events(v: &Value<'_>) -> Result<Vec<NoticeEvent>, ConfigError> {
    let mut on = Vec::new();
    for word in v.list()? {
        on.push(word.word(<NoticeEvent as VariantNames>::VARIANTS)?);
    }
    if on.is_empty() {
        return Err(v.error("is empty", "name events, or remove [notify]"));
    }
    on.sort();
    on.dedup();
    Ok(on)
}
