//! The ways out, as configured: their secrets read, their URLs understood.

use std::time::Duration;

use super::webhook::Webhook;
use super::words::Told;
use super::{Missed, command};
use crate::clock::Clock;
use crate::config::{Env, NotifySection, SecretError};
use crate::ledger::Channel;
use crate::program::Program;

/// What a delivery needs beside its own time limits.
const SLACK: Duration = Duration::from_secs(10);

/// Why nobody can be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutletError {
    #[error("the webhook: {0}")]
    Secret(#[from] SecretError),
    /// Never with the URL, which may be a secret.
    #[error("the webhook's URL from {from} {what}")]
    Url { from: String, what: &'static str },
    #[error("the webhook: {0}")]
    Tls(String),
}

/// Who is told.
#[derive(Clone)]
pub struct Outlets {
    program: Option<Program>,
    webhook: Option<Webhook>,
    /// How long one channel may take.
    limit: Duration,
}

impl Outlets {
    /// Reads the secrets; opens nothing.
    ///
    /// # Errors
    /// A secret that is not there, or a URL that cannot be used.
    pub fn new(section: &NotifySection, env: &Env, clock: &Clock) -> Result<Self, OutletError> {
        let program = section.command.as_ref();
        let program = program.map(|words| Program::new(words.clone(), |name| env.get(name)));
        let webhook = section
            .webhook
            .as_ref()
            .map(|at| Webhook::new(at, section, env, clock))
            .transpose()?;
        Ok(Self {
            program,
            webhook,
            limit: section.timeout,
        })
    }

    /// The channels, in the order in which they are used.
    pub(super) fn channels(&self) -> impl Iterator<Item = Channel> + use<> {
        let program = self.program.as_ref().map(|_| Channel::Command);
        let webhook = self.webhook.as_ref().map(|_| Channel::Webhook);
        program.into_iter().chain(webhook)
    }

    /// Longer than delivering one notice to everybody takes: connecting to a webhook and its answer
    /// have the limit each.
    pub(super) fn longest(&self) -> Duration {
        self.limit.saturating_mul(4).saturating_add(SLACK)
    }

    pub(super) async fn deliver(
        &self,
        channel: Channel,
        told: &Told<'_>,
        clock: &Clock,
    ) -> Result<(), Missed> {
        match (channel, &self.program, &self.webhook) {
            (Channel::Command, Some(program), _) => {
                command::run(program, told, clock, self.limit).await
            }
            (Channel::Webhook, _, Some(webhook)) => webhook.post(told).await,
            (Channel::Command, None, _) | (Channel::Webhook, _, None) => Ok(()),
        }
    }
}
