//! The agents' routes: `/v1/…`, each by the bearer's token.
//!
//! Owns: which answer has which status, and that an answer with a result carries its receipt. Never:
//! decides (the service does). `assets/openapi.json` describes all of it; `tests/gateway/openapi.rs` holds
//! the two together. Tests: `tests/gateway/`.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::json;

use super::courier::Tray;
use super::problem::Problem;
use super::request;
use super::service::{MAX_PAGE, Service, Submitted};
use crate::domain::agent::Agent;
use crate::domain::ids::{CallId, OperationId};
use crate::domain::text::SafeText;
use crate::domain::tool_call::ToolCall;

/// The document of all routes, JSON text.
pub const OPENAPI: &str = include_str!("../../assets/openapi.json");

/// What a caller hears whose call waits.
const DRIVEN: &str = "Accepted. The engine drives this call and tries again by itself: make no other call for it, ask its Location.";

static PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// What stays as it is in a path: the unreserved characters of RFC 3986.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The routes.
pub(super) fn routes(service: Service) -> Router {
    Router::new()
        .route("/v1/tool-calls", post(submit))
        .route("/v1/tool-calls/{call_id}", get(show_call))
        .route("/v1/tool-calls/{call_id}/ack", post(acknowledge))
        .route("/v1/operations", get(list_operations))
        .route("/v1/operations/{operation_id}", get(show_operation))
        .route("/v1/tools", get(list_tools))
        .with_state(service)
        .route(
            "/v1/openapi.json",
            get(async || as_json(OPENAPI.to_owned())),
        )
}

/// Whoever calls: the agent whose token the request bears.
pub(super) struct Caller(pub Agent);

impl FromRequestParts<Service> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(head: &mut Parts, service: &Service) -> Result<Self, Problem> {
        let token = request::bearer(&head.headers)?;
        let agent = service.agent(token).await?;
        if let Some(agent) = &agent {
            tracing::Span::current().record("agent", agent.name.as_str());
        }
        agent
            .map(Self)
            .ok_or_else(|| Problem::unauthorised("the token is nobody's, or was revoked"))
    }
}

async fn submit(
    State(service): State<Service>,
    Caller(agent): Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let id = request::call_id(&head.headers)?;
    let body = request::body(&head.headers, body).await?;
    let ask = request::ask(id, &body)?;
    let wait = request::wait(&head.headers);
    match service.submit(&agent, ask).await? {
        Submitted::New(call) => Ok(awaited(&service, call, wait).await),
        Submitted::Answered(call) => Ok(answered(&service, &call)),
        Submitted::Working(call) => {
            let detail = "this call is being worked on; its Location tells how it stands";
            let problem = Problem::new(StatusCode::CONFLICT, "call_in_progress", detail);
            Ok(problem
                .with(header::LOCATION, location(&call.id))
                .into_response())
        }
    }
}

/// 200 with the result if it comes in time, else 202.
async fn awaited(service: &Service, call: ToolCall, wait: Option<Duration>) -> Response {
    let mut response = match wait {
        Some(limit) => match service.wait(&call.agent, &call.id, limit).await {
            Some(answer) => answered(service, &answer),
            None => accepted(service, &call),
        },
        None => accepted(service, &call),
    };
    applied(&mut response, wait);
    response
}

fn applied(response: &mut Response, wait: Option<Duration>) {
    let value = wait.and_then(|w| HeaderValue::from_str(&format!("wait={}", w.as_secs())).ok());
    if let Some(value) = value {
        response.headers_mut().insert(&PREFERENCE_APPLIED, value);
    }
}

/// The call's result. It is delivered once this was written.
fn answered(service: &Service, call: &ToolCall) -> Response {
    let mut response = to_json(StatusCode::OK, &service.result_view(call));
    response
        .headers_mut()
        .insert(header::CONTENT_LOCATION, location(&call.id));
    let tray = Tray::with(service.receipt(call));
    response.extensions_mut().insert(tray);
    response
}

/// The call so far, and who tries again while it waits: nobody but the engine (M43).
fn accepted(service: &Service, call: &ToolCall) -> Response {
    let mut body = json!(service.call_view(call));
    body["note"] = json!(DRIVEN);
    let mut response = to_json(StatusCode::ACCEPTED, &body);
    response
        .headers_mut()
        .insert(header::LOCATION, location(&call.id));
    response
}

fn location(id: &CallId) -> HeaderValue {
    let path = format!("/v1/tool-calls/{}", utf8_percent_encode(id.as_str(), KEPT));
    // Percent-encoded text is always a header's value.
    HeaderValue::from_str(&path).unwrap_or(HeaderValue::from_static("/v1/tool-calls"))
}

type Named = Result<Path<String>, PathRejection>;

fn named<T: std::str::FromStr>(path: Named) -> Result<T, Problem> {
    let bad = || Problem::bad("bad_path", "the name in the path cannot be read");
    let Path(name) = path.map_err(|_| bad())?;
    name.parse().map_err(|_| bad())
}

fn no_call(id: &CallId) -> Problem {
    Problem::missing("no_such_call", format!("you have no call {id}"))
}

async fn show_call(
    State(service): State<Service>,
    Caller(agent): Caller,
    path: Named,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id: CallId = named(path)?;
    let mut call = service
        .call(&agent, &id)
        .await?
        .ok_or_else(|| no_call(&id))?;
    let wait = request::wait(&headers);
    if let (None, Some(limit)) = (&call.result, wait)
        && let Some(answer) = service.wait(&agent.name, &id, limit).await
    {
        call = answer;
    }
    let mut response = to_json(StatusCode::OK, &service.call_view(&call));
    if call.result.is_some() {
        let tray = Tray::with(service.receipt(&call));
        response.extensions_mut().insert(tray);
    }
    applied(&mut response, wait);
    Ok(response)
}

async fn acknowledge(
    State(service): State<Service>,
    Caller(agent): Caller,
    path: Named,
) -> Result<Response, Problem> {
    let id: CallId = named(path)?;
    let call = service
        .acknowledge(&agent, &id)
        .await?
        .ok_or_else(|| no_call(&id))?;
    if call.result.is_none() {
        let detail = "the call has no answer yet, so there is nothing to acknowledge";
        return Err(Problem::new(StatusCode::CONFLICT, "not_answered", detail));
    }
    Ok(to_json(StatusCode::OK, &service.call_view(&call)))
}

async fn list_operations(
    State(service): State<Service>,
    Caller(agent): Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (after, limit) = page(request.uri().query().unwrap_or_default())?;
    let (rows, more) = service.operations(&agent, after.as_ref(), limit).await?;
    Ok(to_json(
        StatusCode::OK,
        &json!({ "operations": rows, "more": more }),
    ))
}

/// `after` and `limit`, and nothing else.
fn page(query: &str) -> Result<(Option<OperationId>, u32), Problem> {
    let (mut after, mut limit) = (None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let wrong = || {
            let name = SafeText::new(&name);
            Problem::bad(
                "bad_query",
                format!(
                    "{:?} is not right: after=OPERATION, limit=1 to {MAX_PAGE}",
                    name.as_str()
                ),
            )
        };
        match &*name {
            "after" if after.is_none() => after = Some(value.parse().map_err(|_| wrong())?),
            "limit" if limit.is_none() => {
                let n = value.parse().ok().filter(|n| (1..=MAX_PAGE).contains(n));
                limit = Some(n.ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
    }
    Ok((after, limit.unwrap_or(50)))
}

async fn show_operation(
    State(service): State<Service>,
    Caller(agent): Caller,
    path: Named,
) -> Result<Response, Problem> {
    let id: OperationId = named(path)?;
    match service.operation(&agent, &id).await? {
        Some(row) => Ok(to_json(StatusCode::OK, &row)),
        None => Err(Problem::missing(
            "no_such_operation",
            format!("none of your calls reached an operation {id}"),
        )),
    }
}

async fn list_tools(State(service): State<Service>, Caller(agent): Caller) -> Response {
    to_json(StatusCode::OK, &json!({ "tools": service.tools(&agent) }))
}

fn to_json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => (status, as_json(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "an answer is no JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Not to be kept by anything in between: it is about money, and changes.
fn as_json(text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::from(text)).into_response()
}

/// A path that is none of ours.
pub(super) async fn nowhere() -> Problem {
    Problem::missing(
        "no_such_path",
        "there is nothing here; GET /v1/openapi.json tells what is where",
    )
}

/// A method that a path does not have.
pub(super) async fn no_method() -> Problem {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    Problem::new(status, "method_not_allowed", "this path has other methods")
}
