//! The socket: connections, their bounds, and a clean stop.
//!
//! Owns: how many clients there may be, how long a head or a whole exchange may take, how large a head may
//! be; the routes. Never: knows what a request is about. Tests: `tests/webhooks/bounds.rs`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::webhook::{self, Endpoint, Intake};
use crate::clock::Clock;
use crate::ledger::SharedLedger;

/// Connections at a time; the next one waits in the kernel's queue.
const MAX_CONNECTIONS: usize = 512;
/// Largest head of a request, in bytes, and its most lines.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// For a head (real time): whoever says nothing is hung up on.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// For one connection from its first byte to its last: one request each, so that a slow reader ends too.
const WHOLE_TIME: Duration = Duration::from_secs(30);
/// After a failed accept (no descriptors left, most likely).
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("{0} is not an address of this machine alone")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {addr}: {error}")]
    Listen {
        addr: SocketAddr,
        error: std::io::Error,
    },
}

/// A listening gateway.
pub struct Gateway {
    addr: SocketAddr,
    stop: oneshot::Sender<Duration>,
    task: JoinHandle<()>,
}

impl Gateway {
    /// Listens on `addr`, a loopback address. Without endpoints there is no route for webhooks at all (F65).
    ///
    /// # Errors
    /// An address that others can reach, or one that cannot be listened on.
    pub async fn start(
        addr: SocketAddr,
        ledger: SharedLedger,
        endpoints: Vec<Endpoint>,
        clock: Clock,
    ) -> Result<Self, GatewayError> {
        if !addr.ip().is_loopback() {
            return Err(GatewayError::NotLoopback(addr));
        }
        let failed = |error| GatewayError::Listen { addr, error };
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let routes = routes(ledger, endpoints, clock);
        let task = tokio::spawn(serve(listener, routes, stopped));
        Ok(Self { addr, stop, task })
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

    /// Takes no new connections, and ends those there are within `limit`.
    pub async fn stop(self, limit: Duration) {
        // It may have ended by itself.
        let _ = self.stop.send(limit);
        if self.task.is_finished() {
            return;
        }
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the gateway ended badly");
        }
    }
}

fn routes(ledger: SharedLedger, endpoints: Vec<Endpoint>, clock: Clock) -> Router {
    let router = Router::new().route("/healthz", get(async || "ok\n"));
    if endpoints.is_empty() {
        return router;
    }
    let intake = Intake {
        ledger,
        endpoints,
        clock,
    };
    let webhooks = Router::new()
        .route("/webhooks/stripe", post(webhook::receive))
        .with_state(Arc::new(intake));
    router.merge(webhooks)
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
            Ok((socket, _)) => {
                let talk = connection(socket, routes.clone(), graceful.watcher());
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

async fn connection(socket: TcpStream, routes: Router, watcher: Watcher) {
    let _ = socket.set_nodelay(true);
    let talk = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(routes));
    match tokio::time::timeout(WHOLE_TIME, watcher.watch(talk)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection was cut"),
        Err(_) => tracing::debug!("a connection took too long"),
    }
}
