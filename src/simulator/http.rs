//! The socket: connections, routes, and rendering.
//!
//! Owns: the limits on what a client may send or occupy, and which path means what. Never:
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
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use super::execution;
use super::ids::{is_order, order_of_charge, order_of_payment};
use super::state::{Shared, State};
use super::wire::{ApiError, Call, Cut, Params, Reply};
use super::{objects, refunds, search};

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
    if segments == ["_sim", "state"] && call.peer.ip().is_loopback() {
        return Ok(Reply::json(200, &shared.as_json()));
    }
    let creates = call.method == Method::POST && segments == ["v1", "refunds"];
    if call.account.is_some() && creates {
        return execution::create_refund(shared, call).await;
    }
    let read = {
        let (mut state, now) = shared.state();
        state.record(call, (0, None), None, now);
        if call.account.is_none() {
            return Ok(unauthorized().reply(call));
        }
        if let Some(reply) = execution::outage(&state, call, now) {
            return Ok(reply);
        }
        (call.method == Method::GET).then(|| get(&state, call, &segments))
    };
    let reply = match (read, segments.as_slice()) {
        (Some(Ok(value)), _) => Reply::json(200, &value),
        (Some(Err(error)), _) => error.reply(call),
        (None, ["v1", "refunds", id, "cancel"]) if call.method == Method::POST => {
            match call.check_key() {
                Ok(()) => execution::cancel_refund(shared, call, id),
                Err(error) => error.reply(call),
            }
        }
        (None, _) => no_route(call).reply(call),
    };
    shared.clock.sleep(shared.latency).await;
    Ok(reply)
}

/// Everything that only reads.
fn get(state: &State, call: &Call, segments: &[&str]) -> Result<Value, ApiError> {
    let (world, query) = (&state.world, &call.query);
    match segments {
        ["v1", "account"] => Ok(objects::account(
            call.account.as_deref().unwrap_or_default(),
        )),
        ["v1", "payment_intents", "search"] => {
            let expanded = query.expands("data.latest_charge");
            let found = found_order(query)?.map(|o| world.payment(&o));
            let data: Vec<Value> = found
                .iter()
                .map(|p| objects::payment_intent(p, expanded))
                .collect();
            Ok(objects::search_result(&call.path, &data))
        }
        ["v1", "charges", "search"] => {
            let found = found_order(query)?.map(|o| world.payment(&o));
            let data: Vec<Value> = found.iter().map(objects::charge).collect();
            Ok(objects::search_result(&call.path, &data))
        }
        ["v1", "payment_intents", id] => {
            let order = order_of_payment(id)
                .ok_or_else(|| ApiError::missing("payment_intent", "intent", id))?;
            let expanded = query.expands("latest_charge");
            Ok(objects::payment_intent(&world.payment(&order), expanded))
        }
        ["v1", "charges"] => charges(state, query),
        ["v1", "charges", id] => {
            let order = order_of_charge(id).ok_or_else(|| ApiError::missing("charge", "id", id))?;
            Ok(objects::charge(&world.payment(&order)))
        }
        ["v1", "refunds"] => refunds::list(world, query),
        ["v1", "refunds", id] => {
            let refund = world.refund(id);
            let refund = refund.ok_or_else(|| ApiError::missing("refund", "refund", id))?;
            Ok(objects::refund(refund))
        }
        _ => Err(no_route(call)),
    }
}

/// The charge of a payment; without one the list would never end.
fn charges(state: &State, query: &Params) -> Result<Value, ApiError> {
    let Some(id) = query.get("payment_intent") else {
        let message = "The simulator lists charges by payment_intent only.";
        return Err(ApiError::invalid("payment_intent", message));
    };
    let order = order_of_payment(id)
        .ok_or_else(|| ApiError::missing("payment_intent", "payment_intent", id))?;
    let data = [objects::charge(&state.world.payment(&order))];
    Ok(objects::list("/v1/charges", &data, false))
}

/// The one order whose objects match a search; every order exists, and everything about it but
/// its id is the same.
fn found_order(query: &Params) -> Result<Option<String>, ApiError> {
    let text = query.get("query").unwrap_or_default();
    let mut order: Option<String> = None;
    let mut matches = true;
    for clause in search::parse(text)? {
        match clause.field.as_str() {
            "metadata.order_id" => {
                matches &= order.as_ref().is_none_or(|o| *o == clause.value);
                order = Some(clause.value);
            }
            "status" => matches &= clause.value == "succeeded",
            "currency" => matches &= clause.value.eq_ignore_ascii_case("usd"),
            // No object of the simulator has other metadata.
            field if field.starts_with("metadata.") => matches = false,
            field => {
                let message = format!("Field `{field}` is an unsupported search field.");
                return Err(ApiError::invalid("query", message));
            }
        }
    }
    Ok(order.filter(|o| matches && is_order(o)))
}

fn unauthorized() -> ApiError {
    ApiError::new(
        401,
        "You did not provide a valid API key. The simulator accepts any key that begins with \
         sk_test_, as Bearer token or as user of Basic.",
    )
}

fn no_route(call: &Call) -> ApiError {
    let message = format!("Unrecognized request URL ({}: {}).", call.method, call.path);
    ApiError::new(404, message)
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
