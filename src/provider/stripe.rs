//! The Stripe adapter: API v1 refunds over Stripe's wire, real or simulated.
//!
//! Owns: what is sent ([`request`]), how a reply is understood ([`classify`]), how Stripe is read
//! ([`read`], [`pages`], [`resolve`]), who else knows an order's payment ([`orders`]), and its JSON ([`wire`]). Never: retries, follows redirects, keeps connections, lets
//! a key onto any request but its own (F08, M34), or a secret into a text (I30).
//! Tests: beside each file, and `tests/stripe/` against a raw TCP server.

mod classify;
mod events;
mod orders;
mod pages;
mod read;
mod request;
mod resolve;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::HeaderValue;

pub use self::orders::Orders;
use self::read::Reader;
use self::request::Stored;
use super::{Asked, EventPage, Provider, ReadError, Reads, Ready, ResolveError, ResolveQuery};
use crate::clock::Clock;
use crate::config::Secret;
use crate::domain::Instant;
use crate::domain::evidence::ProviderObject;
use crate::domain::ids::{EventId, ProviderName, ProviderRef};
use crate::domain::opening::Resolved;
use crate::domain::operation::OperationRow;
use crate::domain::outcome::{Expected, Outcome};
use crate::domain::policy::Profile;
use crate::domain::provider_event::EventRead;
use crate::domain::text::SafeText;
use crate::domain::transition::Lookup;
use crate::http::{Client, Exchange, Line, Origin, Wire};

/// How a Stripe account is reached.
#[derive(Clone, Debug)]
pub struct StripeConfig {
    pub name: ProviderName,
    /// `https://api.stripe.com`, or `http://127.0.0.1:PORT` for a simulator.
    pub base_url: String,
    /// `sk_test_…`, `sk_live_…`, `rk_test_…` or `rk_live_…`.
    pub api_key: Secret,
    /// `Stripe-Version` of new requests; stored ones keep theirs (I3).
    pub api_version: String,
    pub profile: Profile,
    /// The account by configuration; else the provider is asked.
    pub account: Option<String>,
}

/// Why a configuration cannot be used: one sentence, without the secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StripeConfigError {
    #[error("base_url {0}")]
    Url(&'static str),
    #[error("the API key must begin with sk_test_, sk_live_, rk_test_ or rk_live_ and be plain")]
    Key,
    #[error(
        "a live key is not sent to a simulator on this machine; use a test key or Stripe's own base_url"
    )]
    LiveKeyToSimulator,
    #[error("api_version must be a version name such as 2026-08-26.dahlia")]
    Version,
    #[error("{0}")]
    Tls(String),
}

/// What kind of money moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Simulator,
    Test,
    Live,
}

/// A Stripe account as a [`Provider`].
pub struct Stripe {
    name: ProviderName,
    profile: Profile,
    mode: Mode,
    account: Option<String>,
    version: String,
    reader: Reader,
}

impl Stripe {
    /// Checks the configuration; connects to nothing.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn new(config: StripeConfig, clock: Clock) -> Result<Self, StripeConfigError> {
        let origin = Origin::parse(&config.base_url).map_err(StripeConfigError::Url)?;
        let live = is_live(config.api_key.expose())?;
        // Stripe itself is never on this machine, encrypted or not.
        let mode = match (origin.is_loopback(), live) {
            (true, true) => return Err(StripeConfigError::LiveKeyToSimulator),
            (true, false) => Mode::Simulator,
            (false, false) => Mode::Test,
            (false, true) => Mode::Live,
        };
        let graphic = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_graphic());
        if !graphic(&config.api_version) {
            return Err(StripeConfigError::Version);
        }
        let version =
            HeaderValue::try_from(&config.api_version).map_err(|_| StripeConfigError::Version)?;
        let bearer = format!("Bearer {}", config.api_key.expose());
        let mut authorization =
            HeaderValue::try_from(bearer).map_err(|_| StripeConfigError::Key)?;
        authorization.set_sensitive(true);
        let client = Client::new(origin, clock.clone(), config.profile.timeout)
            .map_err(StripeConfigError::Tls)?;
        Ok(Self {
            name: config.name,
            profile: config.profile,
            mode,
            account: config.account,
            version: config.api_version,
            reader: Reader {
                client,
                authorization,
                version,
                key: config.api_key,
                clock,
                orders: Orders::search(),
                live,
            },
        })
    }

    /// The same with somebody else to ask which payment an order was paid with.
    #[must_use]
    pub fn resolving(mut self, orders: Orders) -> Self {
        self.reader.orders = orders;
        self
    }
}

impl Stripe {
    /// [`Stripe::new`] over a wire of its own; only for a simulator on this machine.
    ///
    /// # Errors
    /// As there.
    pub fn over(
        config: StripeConfig,
        clock: Clock,
        wire: Arc<dyn Wire>,
    ) -> Result<Self, StripeConfigError> {
        let mut stripe = Self::new(config, clock)?;
        stripe.reader.client = stripe.reader.client.over(wire);
        Ok(stripe)
    }
}

/// Whether a key moves real money.
fn is_live(key: &str) -> Result<bool, StripeConfigError> {
    let starts = |prefixes: [&str; 2]| {
        prefixes
            .into_iter()
            .find_map(|p| key.strip_prefix(p))
            .is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            })
    };
    if starts(["sk_live_", "rk_live_"]) {
        Ok(true)
    } else if starts(["sk_test_", "rk_test_"]) {
        Ok(false)
    } else {
        Err(StripeConfigError::Key)
    }
}

#[async_trait]
impl Provider for Stripe {
    fn name(&self) -> &ProviderName {
        &self.name
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn origin(&self) -> String {
        self.reader.client.origin().to_string()
    }

    fn mode(&self) -> &'static str {
        match self.mode {
            Mode::Simulator => "simulator",
            Mode::Test => "test",
            Mode::Live => "live",
        }
    }

    async fn account(&self, reads: &Reads) -> Result<Option<String>, ReadError> {
        // The provider's own word counts; the configuration names what may not be asked for.
        match (self.reader.account(reads).await, &self.account) {
            (Ok(Some(account)), _) => Ok(Some(account)),
            (Ok(None) | Err(_), Some(account)) => Ok(Some(account.clone())),
            (told, None) => told,
        }
    }

    async fn resolve(&self, query: &ResolveQuery, reads: &Reads) -> Result<Resolved, ResolveError> {
        self.reader.resolve(query, reads).await
    }

    fn request(&self, asked: &Asked<'_>) -> Result<Vec<u8>, SafeText> {
        request::refund(&self.version, asked)
            .ok_or_else(|| "a refund needs an order, an amount and a payment".into())
    }

    async fn connect(&self) -> Result<Box<dyn Ready>, ReadError> {
        match self.reader.client.connect().await {
            Ok(line) => Ok(Box::new(Armed {
                line,
                authorization: self.reader.authorization.clone(),
                key: self.reader.key.clone(),
                profile: self.profile.clone(),
            })),
            Err(why) => Err(ReadError(wire::shown(&why, &[self.reader.key.expose()]))),
        }
    }

    async fn lookup(&self, row: &OperationRow, reads: &Reads) -> Lookup {
        self.reader.lookup(row, reads).await
    }

    fn lookup_requests(&self, row: &OperationRow) -> Vec<String> {
        read::listed_as(row)
            .map(|payment| {
                let path = read::list_path(&payment, row.charge.as_ref());
                format!("GET {}{path}", self.reader.client.origin())
            })
            .into_iter()
            .collect()
    }

    async fn fetch(
        &self,
        id: &ProviderRef,
        reads: &Reads,
    ) -> Result<Option<ProviderObject>, ReadError> {
        self.reader.fetch(id, reads).await
    }

    fn read_event(&self, payload: &[u8]) -> EventRead {
        events::read(payload)
    }

    fn storable(&self, payload: &[u8]) -> Vec<u8> {
        events::storable(payload)
    }

    async fn events(
        &self,
        span: (Instant, Instant),
        after: Option<&EventId>,
        reads: &Reads,
    ) -> Result<EventPage, ReadError> {
        self.reader.events(span, after, reads).await
    }

    async fn probe(&self, reads: &Reads) -> bool {
        self.reader.probe(reads).await
    }

    fn url(&self, id: &ProviderRef) -> Option<String> {
        let base = match self.mode {
            Mode::Simulator => return None,
            Mode::Test => "https://dashboard.stripe.com/test/refunds",
            Mode::Live => "https://dashboard.stripe.com/refunds",
        };
        read::path(base, id.as_str())
    }
}

/// A connection with the credentials for its one request.
struct Armed {
    line: Line,
    authorization: HeaderValue,
    key: Secret,
    profile: Profile,
}

#[async_trait]
impl Ready for Armed {
    async fn send(self: Box<Self>, row: &OperationRow) -> Outcome {
        let idempotency_key = row.key.to_string();
        let expected = Expected {
            operation: &row.id,
            payment: row.payment.as_ref(),
            money: row.money,
        };
        let exchange = if self.profile.takes_key(&idempotency_key) {
            match attempt(&row.request, &self.authorization, &idempotency_key) {
                Ok(request) => self.line.exchange(request).await,
                Err(why) => Exchange::NotSent(why.into()),
            }
        } else {
            Exchange::NotSent("the provider takes no such key".into())
        };
        let secrets = [self.key.expose(), idempotency_key.as_str()];
        classify::classify(&exchange, &expected, &self.profile, &secrets)
    }
}

/// The stored bytes as a request, with credentials and key. The only place that names the
/// `Idempotency-Key` header (F08).
fn attempt(
    stored: &[u8],
    authorization: &HeaderValue,
    key: &str,
) -> Result<Request<Full<Bytes>>, &'static str> {
    let stored = Stored::parse(stored).ok_or("the stored request cannot be read")?;
    let mut key = HeaderValue::try_from(key).map_err(|_| "the key is no header value")?;
    key.set_sensitive(true);
    Request::post(stored.path)
        .header("Authorization", authorization)
        .header("Content-Type", stored.content_type)
        .header("Stripe-Version", stored.version)
        .header("Idempotency-Key", key)
        .body(Full::from(stored.body.to_owned()))
        .map_err(|_| "the stored request is no HTTP request")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripe(base_url: &str, key: &str) -> Result<Stripe, StripeConfigError> {
        let config = StripeConfig {
            base_url: base_url.into(),
            api_key: Secret::new(key),
            ..config()
        };
        assert!(!format!("{config:?}").contains(key), "I30");
        Stripe::new(config, Clock::system())
    }

    #[test]
    fn the_mode_follows_from_origin_and_key() {
        let sim = stripe("http://127.0.0.1:4242", "sk_test_a").expect("simulator");
        assert_eq!(
            (sim.mode(), sim.origin()),
            ("simulator", "http://127.0.0.1:4242".into())
        );
        let id = ProviderRef::parse("re_1").expect("id");
        assert_eq!(sim.url(&id), None);
        for here in [
            "http://127.0.0.1:4242",
            "https://localhost:4242",
            "https://[::1]",
        ] {
            assert_eq!(
                stripe(here, "rk_live_a").err(),
                Some(StripeConfigError::LiveKeyToSimulator)
            );
            assert_eq!(stripe(here, "rk_test_a").map(|s| s.mode()), Ok("simulator"));
        }
        for (key, mode) in [("sk_test_a", "test"), ("sk_live_a", "live")] {
            let there = stripe("https://api.stripe.com", key);
            assert_eq!(there.map(|s| s.mode()), Ok(mode));
        }
        assert!(matches!(
            stripe("http://api.stripe.com", "sk_test_a"),
            Err(StripeConfigError::Url(_))
        ));
        for bad in [
            "",
            "sk_test_",
            "pk_test_a",
            "whsec_a",
            "sk_test_a b",
            "sk_test_a\n",
            "Bearer",
        ] {
            let refused = Stripe::new(
                StripeConfig {
                    api_key: Secret::new(bad),
                    ..config()
                },
                Clock::system(),
            );
            assert_eq!(refused.err(), Some(StripeConfigError::Key), "{bad:?}");
        }
    }

    fn config() -> StripeConfig {
        StripeConfig {
            name: ProviderName::parse("stripe").expect("name"),
            base_url: "http://[::1]:1".into(),
            api_key: Secret::new("sk_test_a"),
            api_version: "2026-08-26.dahlia".into(),
            profile: Profile::stripe(),
            account: None,
        }
    }
}
