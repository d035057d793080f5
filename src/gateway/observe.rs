//! `/healthz`, `/readyz`, `/metrics`, and a line of log for every answer.
//!
//! Owns: what an operator may see without asking the ledger too often: readings are kept for a second.
//! `/healthz` says that the process answers. The other two are for this machine and for whoever has a
//! token: they tell how things stand. Never: logs a token, a key, a body or a query. Tests:
//! `tests/gateway/observe.rs`.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::metrics::{self, Answers};
use super::problem::Problem;
use super::request;
use super::server::Peer;
use super::service::{Service, ServiceDeps};
use crate::domain::text::SafeText;
use crate::engine::{EngineHealth, EngineState};

/// A reading answers for this long.
const FRESH: Duration = Duration::from_secs(1);

/// What is watched.
pub(super) struct Observed {
    service: Service,
    pub(super) deps: ServiceDeps,
    health: Option<watch::Receiver<EngineHealth>>,
    answers: Mutex<Answers>,
    figures: Kept<String>,
    ready: Kept<Option<String>>,
}

/// A reading, and when it was made. Whoever comes meanwhile waits for it and makes none of their own.
struct Kept<T>(tokio::sync::Mutex<Option<(Instant, T)>>);

impl<T: Clone> Kept<T> {
    fn new() -> Self {
        Self(tokio::sync::Mutex::default())
    }

    async fn get(&self, read: impl Future<Output = T>) -> T {
        let mut kept = self.0.lock().await;
        if let Some((at, value)) = &*kept
            && at.elapsed() < FRESH
        {
            return value.clone();
        }
        let value = read.await;
        *kept = Some((Instant::now(), value.clone()));
        value
    }
}

impl Observed {
    pub(super) fn new(
        service: Service,
        deps: &ServiceDeps,
        health: Option<watch::Receiver<EngineHealth>>,
    ) -> Self {
        Self {
            service,
            deps: deps.clone(),
            health,
            answers: Mutex::default(),
            figures: Kept::new(),
            ready: Kept::new(),
        }
    }

    /// Of the engine in this process.
    pub(super) fn health(&self) -> Option<EngineHealth> {
        self.health.as_ref().map(|h| h.borrow().clone())
    }

    fn answered(&self, route: String, method: &Method, status: u16) {
        // A closed set: methods may be any word.
        let method = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::HEAD => "HEAD",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry((route, method, status)).or_default() += 1;
    }

    async fn figures(&self) -> String {
        let answers = self
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let figures = metrics::figures(self, answers).await;
        metrics::text(figures).unwrap_or_default()
    }

    /// Why calls would not be taken and driven now, if they would not.
    async fn trouble(&self) -> Option<String> {
        let ledger = &self.deps.ledger;
        if let Err(error) = ledger.serving().writable().await {
            return Some(format!("the ledger cannot be written to: {error}"));
        }
        match ledger.clock_alarm().await {
            Err(error) => return Some(format!("the ledger cannot be read: {error}")),
            Ok(true) => return Some("clock alarm: nothing is sent".to_owned()),
            Ok(false) => {}
        }
        let health = self.health()?;
        match health.state {
            EngineState::Running => health.alarm,
            EngineState::None => None,
            EngineState::Checking => Some("the ledger is being checked".to_owned()),
            EngineState::Draining | EngineState::Stopped => Some("the engine stops".to_owned()),
            EngineState::Down(why) => Some(format!("the engine is down: {why}")),
        }
    }

    /// Whether the request is from this machine, or bears an agent's token.
    async fn may_look(&self, peer: Option<Peer>, headers: &HeaderMap) -> Result<(), Problem> {
        if peer.is_some_and(|Peer(addr)| addr.ip().to_canonical().is_loopback()) {
            return Ok(());
        }
        let token = request::bearer(headers)?;
        match self.service.agent(token).await? {
            Some(_) => Ok(()),
            None => Err(Problem::unauthorised(
                "the token is nobody's, or was revoked",
            )),
        }
    }
}

/// The routes.
pub(super) fn routes(observed: Arc<Observed>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .with_state(observed)
}

fn peer(request: &Request) -> Option<Peer> {
    request.extensions().get::<Peer>().copied()
}

async fn readyz(
    State(observed): State<Arc<Observed>>,
    request: Request,
) -> Result<Response, Problem> {
    observed.may_look(peer(&request), request.headers()).await?;
    let trouble = observed.ready.get(observed.trouble()).await;
    let (status, body) = match trouble {
        None => (StatusCode::OK, json!({ "ready": true })),
        Some(why) => {
            let reason = SafeText::new(&why);
            (
                StatusCode::SERVICE_UNAVAILABLE,
                json!({ "ready": false, "reason": reason }),
            )
        }
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((status, kind, body.to_string()).into_response())
}

async fn metrics_text(
    State(observed): State<Arc<Observed>>,
    request: Request,
) -> Result<Response, Problem> {
    observed.may_look(peer(&request), request.headers()).await?;
    let figures = observed.figures.get(observed.figures()).await;
    let kind = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    Ok((kind, figures).into_response())
}

/// Counts and logs each answer: the route and not the path, which names calls.
pub(super) async fn note(
    State(observed): State<Arc<Observed>>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("none", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let span = tracing::info_span!("request", %method, route, agent = tracing::field::Empty);
    let began = Instant::now();
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    span.in_scope(|| tracing::info!(status, ms, "answered"));
    observed.answered(route, &method, status);
    response
}
