//! One POST per notice, over the program's own client: a fresh connection, no redirect, no proxy.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::CONTENT_TYPE;

use super::outlets::OutletError;
use super::words::Told;
use super::{Again, Missed};
use crate::clock::Clock;
use crate::config::{Env, KeySource, NotifySection, Secret, WebhookAt, WebhookFormat};
use crate::domain::text::SafeText;
use crate::http::{Client, Exchange, Origin, Reply};

/// Speaks Slack, whatever is configured or not.
const SLACK_HOST: &str = "hooks.slack.com";

/// Where notices are posted.
#[derive(Clone)]
pub(super) struct Webhook {
    client: Arc<Client>,
    /// Path and query; who knows them may post.
    path: Secret,
    format: WebhookFormat,
}

impl Webhook {
    pub(super) fn new(
        at: &WebhookAt,
        section: &NotifySection,
        env: &Env,
        clock: &Clock,
    ) -> Result<Self, OutletError> {
        let (url, from) = match at {
            WebhookAt::Url(url) => (Secret::new(url), "webhook".to_owned()),
            WebhookAt::Secret(source) => {
                let from = match source {
                    KeySource::Env(name) => name.clone(),
                    KeySource::File(path) => path.display().to_string(),
                };
                (source.read(env)?, from)
            }
        };
        let (origin, path) =
            Origin::with_path(url.expose()).map_err(|what| OutletError::Url { from, what })?;
        let format = section.format.unwrap_or(if origin.name() == SLACK_HOST {
            WebhookFormat::Slack
        } else {
            WebhookFormat::Json
        });
        let client =
            Client::new(origin, clock.clone(), section.timeout).map_err(OutletError::Tls)?;
        Ok(Self {
            client: Arc::new(client),
            path: Secret::new(path),
            format,
        })
    }

    pub(super) async fn post(&self, told: &Told<'_>) -> Result<(), Missed> {
        let body = match self.format {
            WebhookFormat::Slack => told.slack(),
            WebhookFormat::Json => told.json(),
        };
        // Built before it is connected: what cannot be sent costs nobody a connection.
        let request = Request::post(self.path.expose())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|_| Missed::never("the webhook's URL cannot be asked for"))?;
        let line = self.client.connect().await.map_err(Missed::again)?;
        match line.exchange(request).await {
            Exchange::Answered(reply) => judge(&reply),
            Exchange::NotSent(why) | Exchange::Lost(why) => {
                let origin = self.client.origin();
                Err(Missed::again(format!("{origin} did not answer: {why}")))
            }
        }
    }
}

/// What the answer means: taken, again later, or never.
fn judge(reply: &Reply) -> Result<(), Missed> {
    let why = format!("the webhook answered {}", reply.status);
    match reply.status {
        200..=299 => Ok(()),
        408 | 425 | 429 | 500..=599 => Err(Missed {
            why: SafeText::new(&why),
            again: Again::After(retry_after(reply)),
        }),
        _ => Err(Missed::never(why)),
    }
}

/// Whole seconds; a date would need a clock that both trust.
fn retry_after(reply: &Reply) -> Option<Duration> {
    let seconds = reply.header("retry-after")?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
