//! The socket: connections, routes, and rendering.
//!
//! Owns: the limits on what a client may send or occupy, and which path leads to what. Never:
//! decides an answer about refunds. Tests: `tests/simulator/`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use super::state::Shared;
use super::wire::{ApiError, Call, Cut, Reply};
use super::{execution, reads};

const MAX_BODY: usize = 1024 * 1024;
const MAX_HEAD: usize = 64 * 1024;
const MAX_CONNECTIONS: usize = 1024;
/// For a head, for a body, and for an idle connection (real time).
const READ_TIME: Duration = Duration::from_secs(30);

/// Accepts connections until `stop` fires or is dropped; then closes all of them.
pub(super) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stop: oneshot::Receiver<()>,
) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = &mut stop => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((socket, peer, place)) = accepted else {
            continue;
        };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let _ = socket.set_nodelay(true);
            connection(socket, peer, shared).await;
            drop(place);
        });
        while let Some(ended) = connections.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "a connection of the simulator ended badly");
            }
        }
    }
    connections.shutdown().await;
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((socket, peer)) => Some((socket, peer, place)),
        Err(error) => {
            // Out of descriptors, most likely: let some connections end first.
            tracing::warn!(%error, "the simulator could not accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// Serves one connection until it ends or its client hangs up.
pub(super) async fn connection(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: SocketAddr,
    shared: Arc<Shared>,
) {
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { handle(&shared, peer, request).await }
    });
    // Half-close stays off: a client that hangs up ends its request, held or not.
    let ended = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIME)
        .max_buf_size(MAX_HEAD)
        .title_case_headers(true)
        .serve_connection(TokioIo::new(io), service)
        .await;
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection of the simulator was cut");
    }
}

async fn handle(
    shared: &Shared,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Cut> {
    let (head, body) = request.into_parts();
    let read = Limited::new(body, MAX_BODY).collect();
    let (body, too_large) = match tokio::time::timeout(READ_TIME, read).await {
        Ok(Ok(body)) => (body.to_bytes(), false),
        Ok(Err(error)) if error.is::<LengthLimitError>() => (Bytes::new(), true),
        Ok(Err(_)) | Err(_) => return Err(Cut),
    };
    let call = Call::new(peer, &head, body, shared.next_request_id());
    let reply = if too_large {
        ApiError::new(413, "The request body is larger than 1 MiB.").reply(&call)
    } else {
        let reply = respond(shared, &call).await;
        let status = reply.as_ref().ok().map(|r| r.status);
        shared.state().0.journal.reply(&call.request_id, status);
        reply?
    };
    let version = head.headers.get("stripe-version").cloned();
    Ok(render(reply, &call, version))
}

async fn respond(shared: &Shared, call: &Call) -> Result<Reply, Cut> {
    let segments: Vec<&str> = call.segments.iter().map(String::as_str).collect();
    if let ["_sim", what] = segments.as_slice()
        && call.peer.ip().is_loopback()
    {
        return Ok(door(shared, call, what));
    }
    if let Some(reply) = before_all(shared, call) {
        return Ok(reply);
    }
    if call.method == Method::POST && segments == ["v1", "refunds"] {
        return execution::create_refund(shared, call).await;
    }
    let reply = if call.method == Method::GET {
        let (mut state, now) = shared.state();
        let told = match execution::outage(&state, call, now) {
            Some(outage) => return Ok(outage),
            None => reads::fault(&mut state, call, &segments),
        };
        told.unwrap_or_else(|| {
            reads::get(&state, call, &segments, now)
                .map_or_else(|error| error.reply(call), |value| Reply::json(200, &value))
        })
    } else {
        write(shared, call, &segments)
    };
    shared.clock.sleep(shared.latency).await;
    Ok(reply)
}

/// What is the simulator's own and not the provider's; for this machine only.
fn door(shared: &Shared, call: &Call, what: &str) -> Reply {
    match (call.method.as_str(), what) {
        ("GET", "state") => Reply::json(200, &shared.as_json()),
        ("POST", "advance") => advance(shared, call),
        _ => reads::no_route(call).reply(call),
    }
}

/// `POST /_sim/advance {"seconds":n}`: the simulator's time, and nobody else's, goes on by so much
/// at once.
fn advance(shared: &Shared, call: &Call) -> Reply {
    let asked: Option<Value> = serde_json::from_slice(&call.fingerprint.body).ok();
    let seconds = asked.and_then(|v| v.get("seconds").and_then(Value::as_u64));
    let skipped = seconds.is_some_and(|s| shared.clock.skip(Duration::from_secs(s)));
    if !skipped {
        let message = "Send {\"seconds\":n} with a whole number; at most ten years in all.";
        return ApiError::invalid("seconds", message).reply(call);
    }
    // What is due by now happens.
    let now = shared.change(|_, now| now);
    Reply::json(200, &json!({ "now": super::records::time(now) }))
}

/// Who is asked for credentials, and limits (S5): nothing of this is saved under a key.
fn before_all(shared: &Shared, call: &Call) -> Option<Reply> {
    let (mut state, now) = shared.state();
    let creates = call.method == Method::POST && call.path == "/v1/refunds";
    if call.account.is_none() {
        state.record(call, (0, None), None, now);
        return Some(unauthorized().reply(call));
    }
    let limits = state.faults.frame().limits;
    let limited = state.limiter.count(&limits, call, now);
    // A refund request that gets through is recorded with its fault.
    if limited.is_some() || !creates {
        state.record(call, (0, None), None, now);
    }
    limited
}

/// Everything that changes something, but making refunds.
fn write(shared: &Shared, call: &Call, segments: &[&str]) -> Reply {
    let outage = {
        let (state, now) = shared.state();
        execution::outage(&state, call, now)
    };
    if let Some(reply) = outage {
        return reply;
    }
    let what = match segments {
        ["v1", "refunds", id, "cancel"] => execution::Write::Cancel(id),
        ["v1", "refunds", id] => execution::Write::Annotate(id),
        _ => return reads::no_route(call).reply(call),
    };
    if call.method != Method::POST {
        return reads::no_route(call).reply(call);
    }
    match call.check_key() {
        Ok(()) => execution::write(shared, call, what),
        Err(error) => error.reply(call),
    }
}

fn unauthorized() -> ApiError {
    ApiError::new(
        401,
        "You did not provide a valid API key. The simulator accepts any key that begins with \
         sk_test_, as Bearer token or as user of Basic.",
    )
}

fn render(reply: Reply, call: &Call, version: Option<HeaderValue>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(reply.body));
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let own = [
        ("request-id", Some(call.request_id.as_str())),
        ("idempotency-key", call.key.as_deref()),
    ];
    let own = own.iter().filter_map(|(n, v)| v.map(|v| (*n, v)));
    let all = reply.headers.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    for (name, value) in all.chain(own) {
        // What cannot be a header (a hostile key, a typo in a scenario file) is left out.
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            response.headers_mut().insert(name, value);
        }
    }
    if let Some(version) = version {
        response.headers_mut().insert("stripe-version", version);
    }
    response
}
