//! Webhooks: to whom, signed how, and when the next try is due (S52, S54–S56).
//!
//! Owns: the endpoint, the signature, the queue of what is to be sent and the growing waits.
//! Never: opens a connection (`delivery.rs`) or waits. Tests: below and `tests/simulator/`.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::state::seconds_after;
use super::step::WebhookFault;
use crate::http::Origin;

/// More than this never wait at a time; what comes on top is not sent (the list of events has it).
const MAX_WAITING: usize = 10_000;
/// Known to nobody.
const FOREIGN_SECRET: &str = "whsec_of_somebody_else";

/// Where webhooks go, and what signs them.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookEndpoint {
    pub(super) origin: Origin,
    pub(super) path: String,
    secrets: Vec<String>,
    /// How a delivery that fails is tried again.
    pub retries: Retries,
}

impl fmt::Debug for WebhookEndpoint {
    /// Secrets and paths are nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookEndpoint({})", self.origin)
    }
}

/// How failed deliveries are tried again (S55).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retries {
    /// After five minutes and then always twice as late, up to twelve hours, for three days.
    #[default]
    Live,
    /// Three tries in all, within a few hours.
    Sandbox,
}

impl Retries {
    /// How long to wait after the `tried`th (from 1) try has failed, `age` after the first was due;
    /// `None`: never again.
    pub(super) fn wait(self, tried: u32, age: TimeDelta) -> Option<TimeDelta> {
        let doubled = 2_i32.saturating_pow(tried.saturating_sub(1));
        match self {
            Self::Live => {
                let wait = TimeDelta::minutes(5) * doubled.min(1000);
                let wait = wait.min(TimeDelta::hours(12));
                (age + wait <= TimeDelta::days(3)).then_some(wait)
            }
            Self::Sandbox => (tried < 3).then(|| TimeDelta::hours(1) * doubled),
        }
    }
}

impl WebhookEndpoint {
    /// Reads where webhooks go: `https://…`, or `http://…` on this machine. Each secret signs, as
    /// while one is being replaced (S54).
    ///
    /// # Errors
    /// What is wrong, as one sentence without the URL.
    pub fn new(url: &str, secrets: Vec<String>) -> Result<Self, String> {
        let (origin, path) =
            Origin::with_path(url).map_err(|what| format!("the webhook's URL {what}"))?;
        if secrets.is_empty() || secrets.iter().any(|s| s.trim().is_empty()) {
            return Err("webhooks need a secret that is not empty".to_owned());
        }
        Ok(Self {
            origin,
            path,
            secrets,
            retries: Retries::default(),
        })
    }

    /// `Stripe-Signature` for a body sent at `now`: one signature for every secret (S52, S54).
    pub(super) fn signature(&self, body: &[u8], now: DateTime<Utc>, fault: WebhookFault) -> String {
        let age = TimeDelta::seconds(i64::from(fault.age_s));
        let at = now.checked_sub_signed(age).unwrap_or(now).timestamp();
        let mut header = format!("t={at}");
        let foreign = [FOREIGN_SECRET.to_owned()];
        let secrets = if fault.wrong_secret {
            foreign.as_slice()
        } else {
            &self.secrets
        };
        for secret in secrets {
            let _ = write!(header, ",v1={}", signed(secret, at, body));
        }
        header
    }
}

/// HMAC-SHA256 over `t.body` with the whole secret, in hex.
fn signed(secret: &str, at: i64, body: &[u8]) -> String {
    let mut hex = String::new();
    // A key of any length is accepted.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) {
        mac.update(format!("{at}.").as_bytes());
        mac.update(body);
        for byte in mac.finalize().into_bytes() {
            let _ = write!(hex, "{byte:02x}");
        }
    }
    hex
}

/// One webhook on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub event: String,
    /// When the first try was due.
    first: DateTime<Utc>,
    /// Tries that failed.
    tried: u32,
}

/// What is to be sent, by the time it is due.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<(DateTime<Utc>, u64), Waiting>,
    serial: u64,
    pub received: u64,
    pub given_up: u64,
    /// For want of room.
    pub dropped: u64,
}

impl Queue {
    /// Puts an event's webhook in, with its copies.
    pub fn add(&mut self, event: &str, kind: &str, fault: WebhookFault, at: DateTime<Utc>) {
        if fault.lost {
            return;
        }
        let mut first = seconds_after(at, fault.delay_s);
        if kind.ends_with(".created") {
            first = seconds_after(first, fault.created_delay_s);
        }
        for _ in 0..=fault.copies {
            let waiting = Waiting {
                event: event.to_owned(),
                first,
                tried: 0,
            };
            self.put(first, waiting);
        }
    }

    fn put(&mut self, at: DateTime<Utc>, waiting: Waiting) {
        if self.waiting.len() >= MAX_WAITING {
            self.dropped = self.dropped.saturating_add(1);
            tracing::warn!(event = waiting.event, "no room for another webhook");
            return;
        }
        self.serial = self.serial.saturating_add(1);
        self.waiting.insert((at, self.serial), waiting);
    }

    /// The next that is due, taken out.
    pub fn take(&mut self, now: DateTime<Utc>) -> Option<Waiting> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// A try has failed: again later, or never (S55).
    pub fn again(&mut self, mut waiting: Waiting, retries: Retries, now: DateTime<Utc>) {
        waiting.tried = waiting.tried.saturating_add(1);
        match retries.wait(waiting.tried, now - waiting.first) {
            Some(wait) => {
                let at = now.checked_add_signed(wait).unwrap_or(now);
                self.put(at, waiting);
            }
            None => self.given_up = self.given_up.saturating_add(1),
        }
    }

    pub fn next_due(&self) -> Option<DateTime<Utc>> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(secrets: &[&str]) -> WebhookEndpoint {
        let secrets = secrets.iter().map(|s| (*s).to_owned()).collect();
        WebhookEndpoint::new("http://127.0.0.1:1/webhooks/stripe", secrets).expect("an endpoint")
    }

    /// The value was computed with another program: `printf '%s' '1492774577.{"a":1}' | openssl
    /// dgst -sha256 -hmac whsec_test`.
    #[test]
    fn the_signature_is_hmac_sha256_over_time_and_body_s52() {
        let at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::seconds(1_492_774_577);
        let header = endpoint(&["whsec_test"]).signature(b"{\"a\":1}", at, WebhookFault::default());
        assert_eq!(
            header,
            "t=1492774577,v1=2a55874e33dedb30da6fac02873208f53a243141599a71c0d52a1d5b89656823"
        );
    }

    #[test]
    fn every_secret_signs_and_a_fault_shows_s54_s66() {
        let at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::seconds(1000);
        let both = endpoint(&["one", "two"]).signature(b"x", at, WebhookFault::default());
        let one = endpoint(&["one"]).signature(b"x", at, WebhookFault::default());
        assert!(both.starts_with(&one) && both.matches(",v1=").count() == 2);
        let fault = WebhookFault {
            wrong_secret: true,
            age_s: 600,
            ..WebhookFault::default()
        };
        let wrong = endpoint(&["one"]).signature(b"x", at, fault);
        assert!(wrong.starts_with("t=400,v1=") && wrong != one);
    }

    #[test]
    fn waits_grow_and_end_after_three_days_or_three_tries_s55() {
        let mut age = TimeDelta::zero();
        let live = (1..).map_while(|n| {
            let wait = Retries::Live.wait(n, age)?;
            age += wait;
            Some(wait.num_minutes())
        });
        let waits: Vec<_> = live.collect();
        assert_eq!(waits[..9], [5, 10, 20, 40, 80, 160, 320, 640, 720]);
        assert!(
            age <= TimeDelta::days(3) && age > TimeDelta::days(2),
            "{age}"
        );
        let sandbox: Vec<_> = (1..9)
            .map_while(|n| Retries::Sandbox.wait(n, TimeDelta::zero()))
            .collect();
        assert_eq!(sandbox.len(), 2, "three tries in all");
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut queue = Queue::default();
        let now = DateTime::<Utc>::UNIX_EPOCH;
        for n in 0..=MAX_WAITING {
            queue.add(
                &n.to_string(),
                "refund.created",
                WebhookFault::default(),
                now,
            );
        }
        assert_eq!((queue.len(), queue.dropped), (MAX_WAITING, 1));
    }

    #[test]
    fn an_endpoint_is_this_machine_or_https_and_never_shown() {
        for url in ["", "http://example.com/x", "ftp://127.0.0.1/x"] {
            assert!(
                WebhookEndpoint::new(url, vec!["s".into()]).is_err(),
                "{url}"
            );
        }
        assert!(WebhookEndpoint::new("http://127.0.0.1/x", vec![]).is_err());
        let shown = format!("{:?}", endpoint(&["whsec_1"]));
        assert!(!shown.contains("whsec_1"), "{shown}");
    }
}
