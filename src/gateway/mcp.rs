//! MCP: each tool that the agent may use is an MCP tool, and `operation_status` tells how things stand.
//!
//! Owns: what MCP calls things, and that an answer is the tool result, word for word, as structured
//! content. An answer of the ledger is no error of the tool, whatever it says; an error is what was not
//! taken or not answered in time. Over HTTP every request stands alone (no sessions) and bears a token.
//! Never: lets the model choose or see a key: the call id is the client's (`_meta.call_id`), or made for
//! the request. Tests: `tests/gateway/mcp.rs`.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use http_body_util::Full;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, RequestId, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Map, Value, json};

use super::courier::{Receipt, Tray};
use super::http::{Caller, OPENAPI};
use super::problem::Problem;
use super::service::{Ask, Refused, Service, Submitted};
use super::tools::ToolOffer;
use super::{json, request};
use crate::domain::agent::Agent;
use crate::domain::ids::{CallId, OperationId};
use crate::domain::text::SafeText;
use crate::domain::tool_call::ToolCall;

/// The tool that only reads.
const STATUS: &str = "operation_status";
/// For an answer: as long as a call may take from an engine's first lease, and a little.
const WAIT: Duration = Duration::from_secs(130);

/// Who calls, where that does not come with each request.
#[derive(Clone)]
pub(super) enum Speaker {
    /// The agent whose token the HTTP request bears.
    Bearer,
    /// The one at the other end of standard input; its answers' receipts go to whoever writes the lines.
    Pipe(Agent, Arc<dyn Fn(RequestId, Receipt) + Send + Sync>),
}

/// The server of one request or one pipe.
#[derive(Clone)]
pub(super) struct Handler {
    service: Service,
    speaker: Speaker,
}

impl Handler {
    pub(super) fn new(service: Service, speaker: Speaker) -> Self {
        Self { service, speaker }
    }

    fn agent(&self, cx: &RequestContext<RoleServer>) -> Result<Agent, ErrorData> {
        match &self.speaker {
            Speaker::Pipe(agent, _) => Ok(agent.clone()),
            Speaker::Bearer => {
                let parts = cx.extensions.get::<axum::http::request::Parts>();
                let agent = parts.and_then(|p| p.extensions.get::<Agent>());
                agent
                    .cloned()
                    .ok_or_else(|| ErrorData::internal_error("nobody is known here", None))
            }
        }
    }

    /// The answer goes out with this request's reply.
    fn hand_over(&self, cx: &RequestContext<RoleServer>, receipt: Receipt) {
        match &self.speaker {
            Speaker::Pipe(_, keep) => keep(cx.id.clone(), receipt),
            Speaker::Bearer => {
                let parts = cx.extensions.get::<axum::http::request::Parts>();
                if let Some(tray) = parts.and_then(|p| p.extensions.get::<Tray>()) {
                    tray.put(receipt);
                }
            }
        }
    }

    async fn call(
        &self,
        agent: &Agent,
        request: CallToolRequestParams,
        cx: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let ask = ask(request, &cx.meta.0)?;
        let id = ask.id.clone();
        let call = match self.service.submit(agent, ask).await {
            Ok(Submitted::Answered(call)) => Some(call),
            Ok(Submitted::New(_) | Submitted::Working(_)) => tokio::select! {
                answer = self.service.wait(&agent.name, &id, WAIT) => answer,
                // The client lost interest; the call goes on.
                () = cx.ct.cancelled() => None,
            },
            Err(refused) => return not_taken(&refused),
        };
        let Some(call) = call else {
            let message = "the call is accepted and has no answer yet: ask operation_status with this call_id, \
                           or make the same call again";
            let says = json!({ "code": "not_answered", "call_id": id, "message": message });
            return Ok(CallToolResult::structured_error(says));
        };
        Ok(self.answered(&call, cx))
    }

    fn answered(&self, call: &ToolCall, cx: &RequestContext<RoleServer>) -> CallToolResult {
        self.hand_over(cx, self.service.receipt(call));
        let result = self.service.result_view(call).map(serde_json::to_value);
        CallToolResult::structured(result.and_then(Result::ok).unwrap_or_default())
    }

    /// How an operation or a call of the agent's own stands now.
    async fn status(
        &self,
        agent: &Agent,
        arguments: &Map<String, Value>,
        cx: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let wrong = || ErrorData::invalid_params("give operation_id or call_id, as text", None);
        let value = match (text("operation_id"), text("call_id")) {
            (Some(id), None) if arguments.len() == 1 => {
                let id: OperationId = id.parse().map_err(|_| wrong())?;
                let row = self
                    .service
                    .operation(agent, &id)
                    .await
                    .map_err(unavailable)?;
                row.map(|row| serde_json::to_value(row).unwrap_or_default())
            }
            (None, Some(id)) if arguments.len() == 1 => {
                let id: CallId = id.parse().map_err(|_| wrong())?;
                let call = self.service.call(agent, &id).await.map_err(unavailable)?;
                call.map(|call| {
                    if call.result.is_some() {
                        self.hand_over(cx, self.service.receipt(&call));
                    }
                    serde_json::to_value(self.service.call_view(&call)).unwrap_or_default()
                })
            }
            _ => return Err(wrong()),
        };
        Ok(match value {
            Some(value) => CallToolResult::structured(value),
            None => CallToolResult::structured_error(json!({
                "code": "not_found", "message": "none of your calls is or reached this",
            })),
        })
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("samekey", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Each tool does its effect once, however often it is called with the same arguments. Tell \
                 customers only what customer_message says.",
            )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let agent = self.agent(&cx)?;
        let mut tools: Vec<Tool> = self.service.tools(&agent).iter().map(described).collect();
        tools.push(status_tool());
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let agent = self.agent(&cx)?;
        let result = if request.name == STATUS {
            let arguments = request.arguments.unwrap_or_default();
            self.status(&agent, &arguments, &cx).await
        } else {
            self.call(&agent, request, &cx).await
        };
        result.map(CallToolResponse::from)
    }
}

/// The call that a request makes: its id is the client's, or made now, at random.
fn ask(request: CallToolRequestParams, meta: &Map<String, Value>) -> Result<Ask, ErrorData> {
    let wrong = |what: &str, why: &str| ErrorData::invalid_params(format!("{what} {why}"), None);
    let text = |name: &str| match meta.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(wrong(name, "must be text")),
    };
    let id = match text("call_id")? {
        Some(id) => CallId::parse(id),
        None => CallId::parse(&format!("mcp_{}", uuid::Uuid::new_v4().simple())),
    };
    let session = text("session_id")?.map(str::parse).transpose();
    Ok(Ask {
        id: id.map_err(|e| wrong("_meta.call_id", &e.to_string()))?,
        tool: request
            .name
            .parse()
            .map_err(|_| wrong("the tool's name", "cannot be read"))?,
        arguments: request.arguments.unwrap_or_default(),
        session: session.map_err(|e: crate::domain::text::TextError| {
            wrong("_meta.session_id", &e.to_string())
        })?,
    })
}

/// A tool that is not there is the client's fault; every other refusal the model may read.
fn not_taken(refused: &Refused) -> Result<CallToolResult, ErrorData> {
    let message = SafeText::new(&refused.to_string()).to_string();
    let (code, again) = match refused {
        Refused::NoSuchTool(_) => return Err(ErrorData::invalid_params(message, None)),
        Refused::NotPermitted { .. } => ("tool_not_permitted", None),
        Refused::ReservedId => ("reserved_call_id", None),
        Refused::TooLong => ("too_large", None),
        Refused::Reused => ("call_id_reused", None),
        Refused::Rate { wait, .. } => ("rate_limited", Some(*wait)),
        Refused::QueueFull { wait, .. } => ("queue_full", Some(*wait)),
        Refused::Ledger(error) => {
            tracing::error!(%error, "the ledger did not answer the gateway");
            let message = "the ledger cannot be used just now; make the same call again";
            let says = json!({ "code": "ledger_unavailable", "message": message });
            return Ok(CallToolResult::structured_error(says));
        }
    };
    let again = again.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let says = json!({ "code": code, "message": message, "retry_after_ms": again });
    Ok(CallToolResult::structured_error(says))
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "reads as map_err(unavailable)"
)]
fn unavailable(error: crate::ledger::LedgerError) -> ErrorData {
    tracing::error!(%error, "the ledger did not answer the gateway");
    ErrorData::internal_error("the ledger cannot be used just now; ask again", None)
}

fn members(value: &Value) -> Arc<JsonObject> {
    Arc::new(value.as_object().cloned().unwrap_or_default())
}

/// It has an effect that cannot be taken back (destructive) at somebody else's (open world), and once, however often it is called
/// with the same arguments (idempotent).
fn described(offer: &ToolOffer) -> Tool {
    static RESULT: OnceLock<Arc<JsonObject>> = OnceLock::new();
    let result = RESULT.get_or_init(|| {
        let document: Value = serde_json::from_str(OPENAPI).unwrap_or_default();
        members(&document["components"]["schemas"]["ToolResult"])
    });
    let description = Some(Cow::Owned(offer.description.clone()));
    let schema = members(&offer.input_schema);
    let mut tool = Tool::new_with_raw(offer.name.to_string(), description, schema);
    let title = offer.title.clone();
    tool.title = Some(title.clone());
    tool.output_schema = Some(Arc::clone(result));
    let hints = [Some(false), Some(true), Some(true), Some(true)];
    tool.annotations = Some(annotations(title, hints));
    tool
}

fn status_tool() -> Tool {
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "operation_id": { "type": "string", "description": "As an answer named it" },
            "call_id": { "type": "string", "description": "A call of yours" },
        },
        "oneOf": [{ "required": ["operation_id"] }, { "required": ["call_id"] }],
    });
    let description =
        "How one of your operations or calls stands now. Reads only, and sends nothing to anybody.";
    let mut tool = Tool::new_with_raw(STATUS, Some(description.into()), members(&schema));
    let hints = [Some(true), Some(false), Some(true), Some(false)];
    tool.annotations = Some(annotations("Status of an operation".to_owned(), hints));
    tool
}

/// Reads only, destructive, idempotent, open world.
fn annotations(title: String, hints: [Option<bool>; 4]) -> ToolAnnotations {
    let [reads, destructive, idempotent, open] = hints;
    ToolAnnotations::from_raw(Some(title), reads, destructive, idempotent, open)
}

type Http = StreamableHttpService<Handler, NeverSessionManager>;

/// `POST /mcp`.
pub(super) fn routes(service: Service) -> Router<()> {
    Router::new().route("/mcp", post(speak)).with_state(service)
}

/// One request, whole: its sender is known before anything is read.
async fn speak(
    State(service): State<Service>,
    Caller(agent): Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (mut head, body) = request.into_parts();
    let body = request::body(&head.headers, body).await?;
    // Read strictly once, so that it means one thing only to everybody.
    json::read(&body).map_err(|e| Problem::bad(e.code(), e.to_string()))?;
    let tray = Tray::default();
    head.extensions.insert(agent);
    head.extensions.insert(tray.clone());
    let request = Request::from_parts(head, Full::new(body));
    let response = http(service).handle(request).await;
    let mut response = response.map(Body::new);
    response.extensions_mut().insert(tray);
    Ok(response)
}

/// Whoever bears a token is no page in somebody's browser: the name of the host proves nothing more.
fn http(service: Service) -> Http {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None)
        .with_max_request_body_bytes(request::MAX_BODY)
        .disable_allowed_hosts();
    let handler = move || Ok(Handler::new(service.clone(), Speaker::Bearer));
    StreamableHttpService::new(handler, Arc::default(), config)
}
