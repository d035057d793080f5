//! Described tools over HTTP: a provider whose wire stands in the configuration.
//!
//! Owns: the one request of an attempt, lookups and reads, with the provider's secret on each and the key on
//! attempts alone. Never: retries, follows redirects, keeps connections, decides what a reply means (that is
//! [`crate::tool`]), or lets a secret into a text (I30). Tests: `tests/tools/`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::Value;

use super::{Asked, Provider, ReadError, ReadPermit, Reads, Ready, ResolveError, ResolveQuery};
use crate::clock::Clock;
use crate::config::Secret;
use crate::domain::arguments::Arguments;
use crate::domain::evidence::ProviderObject;
use crate::domain::ids::{ProviderName, ProviderRef, ToolName};
use crate::domain::opening::Resolved;
use crate::domain::operation::OperationRow;
use crate::domain::outcome::{Expected, Outcome, OutcomeClass};
use crate::domain::policy::Profile;
use crate::domain::text::SafeText;
use crate::domain::tool_call::ArgumentError;
use crate::domain::transition::Lookup;
use crate::http::{Client, Exchange, Line, Origin, Reply, Wire};
use crate::tool::Tool;
use crate::tool::reply::{self, Heard, Shown};
use crate::tool::stored::Stored;

/// Longest wait that a `Retry-After` may ask for.
const MAX_RETRY_AFTER: u64 = 3600;
/// What stands in the place of a secret.
const HIDDEN: &str = "‹hidden›";

/// How a provider of described tools is reached.
#[derive(Clone, Debug)]
pub struct DescribedConfig {
    pub name: ProviderName,
    pub base_url: String,
    /// The header with its whole value, such as `Authorization: Bearer …`.
    pub credentials: Option<(String, Secret)>,
    pub profile: Profile,
    /// Whether what is done there is done in earnest; on this machine it is a simulator either way.
    pub live: bool,
    /// What tells whether it is well, read-only.
    pub probe: Option<String>,
    pub tools: BTreeMap<ToolName, Arc<Tool>>,
}

/// Why a configuration cannot be used: one sentence, without the secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescribedConfigError {
    #[error("base_url {0}")]
    Url(&'static str),
    #[error("the header with the credentials cannot be sent")]
    Credentials,
    #[error("{0}")]
    Tls(String),
}

/// A provider of described tools.
pub struct Described {
    config: DescribedConfig,
    client: Client,
    clock: Clock,
    auth: Option<(HeaderName, HeaderValue)>,
}

impl Described {
    /// Checks the configuration; connects to nothing.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn new(config: DescribedConfig, clock: Clock) -> Result<Self, DescribedConfigError> {
        let origin = Origin::parse(&config.base_url).map_err(DescribedConfigError::Url)?;
        let auth = config.credentials.as_ref().map(|(name, secret)| {
            let name = HeaderName::try_from(name.as_str());
            let value = HeaderValue::try_from(secret.expose());
            let (Ok(name), Ok(mut value)) = (name, value) else {
                return Err(DescribedConfigError::Credentials);
            };
            value.set_sensitive(true);
            Ok((name, value))
        });
        let client = Client::new(origin, clock.clone(), config.profile.timeout)
            .map_err(DescribedConfigError::Tls)?;
        Ok(Self {
            auth: auth.transpose()?,
            config,
            client,
            clock,
        })
    }

    /// The same over a wire of its own; only for a simulator on this machine.
    #[must_use]
    pub fn over(mut self, wire: Arc<dyn Wire>) -> Self {
        self.client = self.client.over(wire);
        self
    }

    fn tool(&self, name: &ToolName) -> Option<&Arc<Tool>> {
        self.config.tools.get(name)
    }

    /// Text from outside, without the secret.
    fn shown(&self, text: &str) -> SafeText {
        let secret = self.config.credentials.as_ref();
        SafeText::new(&hidden(text, secret.map(|(_, s)| s.expose())))
    }

    /// One read-only request, which somebody has paid for.
    async fn get(&self, path: &str, _paid: ReadPermit) -> Result<Reply, ReadError> {
        let failed = |why: &str| ReadError(self.shown(&format!("GET {path}: {why}")));
        let mut request = Request::get(path).header("Accept", "application/json");
        if let Some((name, value)) = &self.auth {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::default())
            .map_err(|e| failed(&e.to_string()))?;
        let line = self.client.connect().await.map_err(|e| failed(&e))?;
        match line.exchange(request).await {
            Exchange::NotSent(why) | Exchange::Lost(why) => Err(failed(&why)),
            Exchange::Answered(reply) => Ok(reply),
        }
    }

    fn heard<'a>(&self, reply: &'a Reply) -> Heard<'a> {
        Heard {
            status: reply.status,
            body: reply.body.as_deref(),
            at: self.clock.now(),
        }
    }
}

fn hidden(text: &str, secret: Option<&str>) -> String {
    // The scheme before a token is no secret, and the token may be repeated without it.
    let token = secret.map(|s| s.rsplit(' ').next().unwrap_or(s));
    match token.filter(|t| t.len() > 3) {
        Some(token) => text.replace(token, HIDDEN),
        None => text.to_owned(),
    }
}

#[async_trait]
impl Provider for Described {
    fn name(&self) -> &ProviderName {
        &self.config.name
    }

    fn profile(&self) -> &Profile {
        &self.config.profile
    }

    fn origin(&self) -> String {
        self.client.origin().to_string()
    }

    fn mode(&self) -> &'static str {
        match (self.client.origin().is_loopback(), self.config.live) {
            (true, _) => "simulator",
            (false, true) => "live",
            (false, false) => "test",
        }
    }

    async fn account(&self, _: &Reads) -> Result<Option<String>, ReadError> {
        Ok(None)
    }

    fn arguments(&self, tool: &ToolName, arguments: &Value) -> Result<Arguments, ArgumentError> {
        let known = self.tool(tool);
        let known =
            known.ok_or_else(|| ArgumentError(format!("there is no tool {tool}").into()))?;
        known.arguments(arguments)
    }

    fn describes(&self, tool: &ToolName) -> Option<(String, Value)> {
        let tool = self.tool(tool)?;
        Some((tool.about().to_owned(), tool.schema()))
    }

    fn resolves(&self) -> bool {
        false
    }

    async fn resolve(&self, _: &ResolveQuery, _: &Reads) -> Result<Resolved, ResolveError> {
        Err(ResolveError::Refused(
            "this provider knows no payments".into(),
        ))
    }

    fn request(&self, asked: &Asked<'_>) -> Result<Vec<u8>, SafeText> {
        let tool = self.tool(asked.tool);
        let tool = tool.ok_or_else(|| SafeText::new("the tool is not configured"))?;
        tool.request(asked.operation, &asked.arguments.body)
            .map_err(SafeText::from)
    }

    async fn connect(&self) -> Result<Box<dyn Ready>, ReadError> {
        match self.client.connect().await {
            Ok(line) => Ok(Box::new(Armed {
                line,
                auth: self.auth.clone(),
                secret: self.config.credentials.as_ref().map(|(_, s)| s.clone()),
                profile: self.config.profile.clone(),
                tools: self.config.tools.clone(),
                clock: self.clock.clone(),
            })),
            Err(why) => Err(ReadError(self.shown(&why))),
        }
    }

    async fn lookup(&self, row: &OperationRow, reads: &Reads) -> Lookup {
        let unreachable = |why| Lookup::Unreachable { why };
        let tool = self.tool(&row.tool);
        let asked = tool.and_then(|t| t.lookup().zip(t.lookup_path(&row.id)));
        let (how, path) = match asked {
            Some((how, Ok(path))) => (how, path),
            Some((_, Err(why))) => return unreachable(SafeText::new(&why)),
            None => return unreachable("nothing can be looked up with this tool".into()),
        };
        let paid = match reads.permit().await {
            Ok(paid) => paid,
            Err(ReadError(why)) => return unreachable(why),
        };
        let began_at = self.clock.now();
        let reply = match self.get(&path, paid).await {
            Ok(reply) => reply,
            Err(ReadError(why)) => return unreachable(why),
        };
        match how.shown(&row.id, &self.heard(&reply)) {
            Shown::Nothing(why) => unreachable(self.shown(why.as_str())),
            Shown::Objects { objects, complete } => Lookup::Listed {
                began_at,
                complete,
                objects: objects.into_iter().map(|o| (o, false)).collect(),
            },
        }
    }

    fn lookup_requests(&self, row: &OperationRow) -> Vec<String> {
        let path = self.tool(&row.tool).and_then(|t| t.lookup_path(&row.id));
        let path = path.and_then(Result::ok);
        path.map(|path| format!("GET {}{path}", self.client.origin()))
            .into_iter()
            .collect()
    }

    async fn fetch(
        &self,
        id: &ProviderRef,
        reads: &Reads,
    ) -> Result<Option<ProviderObject>, ReadError> {
        // The configuration sees to it that no two tools of a provider can.
        let mut able = self.config.tools.values();
        let asked = able.find_map(|t| t.lookup().zip(t.fetch_path(id.as_str())));
        let Some((how, path)) = asked else {
            return Err(ReadError(
                "no tool of this provider reads one object".into(),
            ));
        };
        let path = path.map_err(|why| ReadError(SafeText::new(&why)))?;
        let reply = self.get(&path, reads.permit().await?).await?;
        how.one(&self.heard(&reply)).map_err(ReadError)
    }

    async fn probe(&self, reads: &Reads) -> bool {
        let Ok(paid) = reads.permit().await else {
            return false;
        };
        match &self.config.probe {
            Some(path) => self.get(path, paid).await.is_ok_and(|r| r.status < 500),
            None => self.client.connect().await.is_ok(),
        }
    }

    fn url(&self, _: &ProviderRef) -> Option<String> {
        None
    }
}

/// A connection with the credentials for its one request.
struct Armed {
    line: Line,
    auth: Option<(HeaderName, HeaderValue)>,
    secret: Option<Secret>,
    profile: Profile,
    tools: BTreeMap<ToolName, Arc<Tool>>,
    clock: Clock,
}

#[async_trait]
impl Ready for Armed {
    async fn send(self: Box<Self>, row: &OperationRow) -> Outcome {
        let not_sent = |why: &str| Outcome::of(OutcomeClass::NotSent).because(why);
        let Some(tool) = self.tools.get(&row.tool).cloned() else {
            return not_sent("the tool is not configured");
        };
        let key = row.key.to_string();
        let request = match self.attempt(row, &tool, &key) {
            Ok(request) => request,
            Err(why) => return not_sent(why),
        };
        let mut outcome = match self.line.exchange(request).await {
            Exchange::NotSent(why) => Outcome::of(OutcomeClass::NotSent).because(&why),
            Exchange::Lost(why) => Outcome::of(OutcomeClass::SideEffectUnknown).because(&why),
            Exchange::Answered(reply) => {
                let heard = Heard {
                    status: reply.status,
                    body: reply.body.as_deref(),
                    at: self.clock.now(),
                };
                let expected = Expected {
                    operation: &row.id,
                    payment: row.payment.as_ref(),
                    money: row.money,
                };
                let outcome = reply::outcome(tool.rules(), &expected, &heard);
                let id = reply
                    .header("x-request-id")
                    .or_else(|| reply.header("request-id"));
                let wait = reply.header("retry-after");
                let wait = wait.and_then(|v| v.parse::<u64>().ok());
                Outcome {
                    request_id: id.map(SafeText::new),
                    retry_after: wait.map(|s| Duration::from_secs(s.min(MAX_RETRY_AFTER))),
                    ..outcome
                }
            }
        };
        let secret = self.secret.as_ref().map(Secret::expose);
        let clean = |text: SafeText| {
            let text = hidden(text.as_str(), secret);
            SafeText::new(&hidden(&text, Some(&key)))
        };
        outcome.error = outcome.error.map(clean);
        outcome.request_id = outcome.request_id.map(clean);
        outcome
    }
}

impl Armed {
    /// The stored bytes as a request, with credentials and, where the provider honours one, the key.
    fn attempt(
        &self,
        row: &OperationRow,
        tool: &Tool,
        key: &str,
    ) -> Result<Request<Full<Bytes>>, &'static str> {
        let stored = Stored::parse(&row.request).ok_or("the stored request cannot be read")?;
        let mut request = Request::builder().method(stored.method).uri(stored.path);
        for (name, value) in &stored.headers {
            request = request.header(*name, *value);
        }
        request = request.header("Accept", "application/json");
        if !stored.body.is_empty() {
            request = request.header("Content-Type", "application/json");
        }
        if let Some((name, value)) = &self.auth {
            request = request.header(name, value);
        }
        if let Some(name) = &tool.description().key_header {
            if !self.profile.takes_key(key) {
                return Err("the provider takes no such key");
            }
            let mut key = HeaderValue::try_from(key).map_err(|_| "the key is no header value")?;
            key.set_sensitive(true);
            request = request.header(name.as_str(), key);
        }
        let body = Full::from(stored.body.to_owned());
        request
            .body(body)
            .map_err(|_| "the stored request is no HTTP request")
    }
}
