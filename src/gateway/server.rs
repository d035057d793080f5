//! The socket: connections, their bounds, and a clean stop.
//!
//! Owns: how many clients there may be, how long a head, an answer or a connection may take, how large a
//! head may be; which routes there are. A connection is kept between requests for as long as a head may
//! take, so idle ones end by themselves. Never: knows what a request is about. Tests:
//! `tests/webhooks/bounds.rs`, `tests/gateway/clients.rs`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Request, header};
use axum::middleware;
use axum::routing::post;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::courier::Tray;
use super::http;
use super::line::{Answer, Line, Slips};
use super::mcp;
use super::observe::{self, Observed};
use super::service::{Service, ServiceDeps};
use super::webhook::{self, Endpoint, Intake};
use crate::engine::EngineHealth;
use crate::ledger::LedgerError;

/// Connections at a time; the next one waits in the kernel's queue.
const MAX_CONNECTIONS: usize = 1024;
/// Largest head of a request, in bytes, and its most lines.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// For a head, from the end of the one before (real time): whoever says nothing is hung up on.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Requests on one connection, and how long it may go on being used; then it is closed behind an answer.
const MAX_TURNS: u32 = 1000;
const MAX_AGE: Duration = Duration::from_secs(300);
/// A connection ends here whatever it is doing: the last request has had its wait and its writing.
const LIFETIME: Duration = Duration::from_secs(420);
/// After a failed accept (no descriptors left, most likely).
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("{0} is not an address of this machine alone, and no agent has a token yet")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {addr}: {error}")]
    Listen {
        addr: SocketAddr,
        error: std::io::Error,
    },
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// What a gateway needs of the world.
pub struct GatewayDeps {
    pub service: ServiceDeps,
    /// Without endpoints there is no route for webhooks at all (F65).
    pub endpoints: Vec<Endpoint>,
    /// Of the engine in this process, if there is one.
    pub health: Option<watch::Receiver<EngineHealth>>,
}

/// A listening gateway.
pub struct Gateway {
    addr: SocketAddr,
    service: Service,
    stop: oneshot::Sender<Duration>,
    task: JoinHandle<()>,
}

impl Gateway {
    /// Listens on `addr`: of this machine alone, or where at least one agent has a token, any.
    ///
    /// # Errors
    /// An address that others can reach while nobody has a token, or one that cannot be listened on.
    pub async fn start(addr: SocketAddr, deps: GatewayDeps) -> Result<Self, GatewayError> {
        if !addr.ip().is_loopback() {
            let agents = deps.service.ledger.serving().agents().await?;
            if !agents.iter().any(|a| a.revoked.is_none()) {
                return Err(GatewayError::NotLoopback(addr));
            }
        }
        let failed = |error| GatewayError::Listen { addr, error };
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let service = Service::start(deps.service.clone());
        let routes = routes(&service, deps);
        let task = tokio::spawn(serve(listener, routes, stopped));
        Ok(Self {
            addr,
            service,
            stop,
            task,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Waits until it has ended although nobody stopped it; says how. From then on nothing is taken in.
    pub async fn ended(&mut self) -> String {
        match (&mut self.task).await {
            Ok(()) => "it stopped listening".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Its task dies.
    #[cfg(test)]
    pub(crate) fn break_down(&self) {
        self.task.abort();
    }

    /// Takes no new connections; who waits for an answer is told that it is accepted; ends within `limit`,
    /// with what was delivered noted.
    pub async fn stop(self, limit: Duration) {
        self.service.close();
        // It may have ended by itself.
        let _ = self.stop.send(limit);
        // Whoever waited for its end already has heard how it was.
        if !self.task.is_finished()
            && let Err(error) = self.task.await
        {
            tracing::error!(%error, "the gateway ended badly");
        }
        self.service.end().await;
    }
}

fn routes(service: &Service, deps: GatewayDeps) -> Router {
    let observed = Arc::new(Observed::new(service.clone(), &deps.service, deps.health));
    let mut router = http::routes(service.clone())
        .merge(mcp::routes(service.clone()))
        .merge(observe::routes(Arc::clone(&observed)));
    if !deps.endpoints.is_empty() {
        let intake = Intake {
            ledger: deps.service.ledger,
            endpoints: deps.endpoints,
            clock: deps.service.clock,
        };
        let webhooks = Router::new()
            .route("/webhooks/stripe", post(webhook::receive))
            .with_state(Arc::new(intake));
        router = router.merge(webhooks);
    }
    router
        .fallback(http::nowhere)
        .method_not_allowed_fallback(http::no_method)
        .layer(middleware::from_fn_with_state(observed, observe::note))
}

async fn serve(listener: TcpListener, routes: Router, mut stop: oneshot::Receiver<Duration>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let limit = loop {
        let place = tokio::select! {
            limit = &mut stop => break limit,
            Ok(place) = Arc::clone(&places).acquire_owned() => place,
        };
        let accepted = tokio::select! {
            limit = &mut stop => break limit,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((socket, peer)) => {
                let talk = connection(socket, peer, routes.clone(), graceful.watcher());
                connections.spawn(async move {
                    talk.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
        while let Some(ended) = connections.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "a connection ended badly");
            }
        }
    };
    drop(listener);
    let limit = limit.unwrap_or_default();
    if tokio::time::timeout(limit, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("connections were cut off");
    }
    connections.shutdown().await;
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub SocketAddr);

async fn connection(socket: TcpStream, peer: SocketAddr, routes: Router, watcher: Watcher) {
    let _ = socket.set_nodelay(true);
    let slips = Slips::default();
    let line = Line::new(socket, slips.clone());
    let routes = TowerToHyperService::new(routes);
    let (turns, began) = (AtomicU32::new(1), tokio::time::Instant::now());
    let talk = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let last = turns.fetch_add(1, Ordering::Relaxed) >= MAX_TURNS || began.elapsed() > MAX_AGE;
        let answer = routes.call(request);
        let slips = slips.clone();
        async move {
            let Ok(mut response) = answer.await;
            if last {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            let tray = response.extensions_mut().remove::<Tray>();
            Ok::<_, Infallible>(response.map(|body| Answer::new(body, tray, slips)))
        }
    });
    let talk = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(line), talk);
    match tokio::time::timeout(LIFETIME, watcher.watch(talk)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection was cut"),
        Err(_) => tracing::debug!("a connection took too long"),
    }
}
