//! The one place behind HTTP and MCP: takes a call of an agent that is known, and gives back its answer.
//!
//! Owns: who may call what, how much, one atomic insert before anything else (I26), waiting for the
//! answer, when it counts as delivered, and what an agent may see. Never: knows of a socket or a protocol,
//! drives a call (engines do), or shows an agent a key, a claim or a note. Tests: `tests/gateway/`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::courier::{Courier, Receipt};
use super::rates::Rates;
use super::tools::{self, ToolOffer};
use super::waiting::Waiting;
use crate::clock::Clock;
use crate::domain::agent::{self, Agent, SubmitLimits};
use crate::domain::ids::{AgentName, CallId, OperationId, ProviderName, SessionId, ToolName};
use crate::domain::message::Language;
use crate::domain::policy::Terms;
use crate::domain::tool_call::ToolCall;
use crate::kill;
use crate::ledger::view::{CallView, Lens, OwnRowView, ResultView};
use crate::ledger::{Accepted, LedgerError, Listed, NewCall, SharedLedger};
use crate::provider::SharedProvider;

/// Most bytes of a call's arguments, as canonical JSON.
pub const MAX_ARGUMENTS: usize = 64 * 1024;
/// Longest page of operations.
pub const MAX_PAGE: u32 = 200;
/// When an agent with too many calls may ask again.
const LATER: Duration = Duration::from_secs(1);

/// What the service needs of the world.
#[derive(Clone)]
pub struct ServiceDeps {
    pub ledger: SharedLedger,
    pub terms: Arc<BTreeMap<ToolName, Terms>>,
    pub providers: Arc<BTreeMap<ProviderName, SharedProvider>>,
    pub clock: Clock,
    /// In which customers are spoken to.
    pub language: Language,
    pub limits: SubmitLimits,
}

/// A call as an agent asks for it.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The agent's own name of the call; the same name is the same call.
    pub id: CallId,
    pub tool: ToolName,
    pub arguments: Map<String, Value>,
    pub session: Option<SessionId>,
}

/// How a call stands that was taken.
#[derive(Clone, Debug)]
pub enum Submitted {
    /// Stored now, durably.
    New(ToolCall),
    /// Known, and without an answer yet.
    Working(ToolCall),
    /// Known, with its answer.
    Answered(ToolCall),
}

/// Why a call was not taken; nothing was stored for it.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("there is no tool {0}")]
    NoSuchTool(ToolName),
    #[error("agent {agent} may not use {tool}")]
    NotPermitted { agent: AgentName, tool: ToolName },
    #[error("the call id begins with approval:, which is reserved")]
    ReservedId,
    #[error("the arguments are longer than {MAX_ARGUMENTS} bytes")]
    TooLong,
    #[error("the call id was used for another call: its tool, arguments or session differ")]
    Reused,
    #[error("too many calls of {of}; again in {} ms", wait.as_millis())]
    Rate { of: String, wait: Duration },
    #[error("{waiting} calls of agent {agent} wait for their answers; no more are taken")]
    QueueFull {
        agent: AgentName,
        waiting: u32,
        wait: Duration,
    },
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The service. Cheap to clone.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    deps: ServiceDeps,
    rates: Rates,
    waiting: Waiting,
    courier: Courier,
}

impl Service {
    /// Starts what waits and what notes deliveries.
    #[must_use]
    pub fn start(deps: ServiceDeps) -> Self {
        Self(Arc::new(Inner {
            rates: Rates::default(),
            waiting: Waiting::start(Arc::clone(&deps.ledger)),
            courier: Courier::start(Arc::clone(&deps.ledger)),
            deps,
        }))
    }

    /// The agent whose token this is; nobody where it is none, or is revoked.
    ///
    /// # Errors
    /// The ledger cannot say.
    pub async fn agent(&self, token: &str) -> Result<Option<Agent>, LedgerError> {
        let Some(id) = agent::token_id(token) else {
            return Ok(None);
        };
        let found = self.0.deps.ledger.serving().agent_of(id).await?;
        let right = found.filter(|(_, hash)| agent::is_right(token, hash));
        Ok(right.map(|(agent, _)| agent))
    }

    /// The tools that this agent may use.
    #[must_use]
    pub fn tools(&self, agent: &Agent) -> Vec<ToolOffer> {
        tools::offers(&self.0.deps.terms, &self.0.deps.providers, agent)
    }

    /// Takes a call: the agent's right to the tool, the limits, and then one atomic insert, committed
    /// before this answers. A call id that is known is never stored again, whatever else comes with it.
    ///
    /// # Errors
    /// Why it was not taken.
    pub async fn submit(&self, agent: &Agent, ask: Ask) -> Result<Submitted, Refused> {
        if ask.id.as_str().starts_with("approval:") {
            return Err(Refused::ReservedId);
        }
        self.may_use(agent, &ask.tool)?;
        let arguments = Value::Object(ask.arguments).to_string();
        if arguments.len() > MAX_ARGUMENTS {
            return Err(Refused::TooLong);
        }
        self.take_rates(agent, &ask.tool)?;
        let ledger = &self.0.deps.ledger;
        if ledger.call(&agent.name, &ask.id).await?.is_none() {
            self.has_room(&agent.name).await?;
        }
        let session = ask.session;
        let call = NewCall {
            id: ask.id,
            agent: agent.name.clone(),
            tool: ask.tool,
            arguments,
            session: session.clone(),
        };
        let taken = match ledger.accept_call(call).await? {
            Accepted::New(call) => Submitted::New(call),
            Accepted::Known(call) if call.session != session => return Err(Refused::Reused),
            Accepted::Known(call) if call.result.is_some() => Submitted::Answered(call),
            Accepted::Known(call) => Submitted::Working(call),
            Accepted::Conflict => return Err(Refused::Reused),
        };
        kill::point("accepted");
        Ok(taken)
    }

    fn may_use(&self, agent: &Agent, tool: &ToolName) -> Result<(), Refused> {
        if !agent.may_use(tool) {
            // Also for tools that are not there: the list is not to be guessed.
            return Err(Refused::NotPermitted {
                agent: agent.name.clone(),
                tool: tool.clone(),
            });
        }
        if self.0.deps.terms.contains_key(tool) {
            return Ok(());
        }
        Err(Refused::NoSuchTool(tool.clone()))
    }

    fn take_rates(&self, agent: &Agent, tool: &ToolName) -> Result<(), Refused> {
        let limits = &self.0.deps.limits;
        let (of_agent, of_tool) = (format!("agent {}", agent.name), format!("tool {tool}"));
        let names = [
            (of_agent.as_str(), limits.rate),
            (of_tool.as_str(), limits.tool_rate),
        ];
        let taken = self.0.rates.take(&names, self.0.deps.clock.boot());
        taken.map_err(|(of, wait)| Refused::Rate {
            of: of.to_owned(),
            wait,
        })
    }

    /// Read before the insert and not with it: calls that come at once may be a few too many.
    async fn has_room(&self, agent: &AgentName) -> Result<(), Refused> {
        let most = self.0.deps.limits.max_waiting;
        let serving = self.0.deps.ledger.serving();
        let waiting = serving.waiting_of(agent, most).await?;
        if waiting < most {
            return Ok(());
        }
        Err(Refused::QueueFull {
            agent: agent.clone(),
            waiting,
            wait: LATER,
        })
    }

    /// The call with its answer, if an engine gives it within `limit`; the service's end is the end of
    /// all waiting.
    pub async fn wait(&self, agent: &AgentName, id: &CallId, limit: Duration) -> Option<ToolCall> {
        self.0.waiting.answer(agent, id, limit).await
    }

    /// One of the agent's own calls.
    ///
    /// # Errors
    /// The ledger cannot say.
    pub async fn call(&self, agent: &Agent, id: &CallId) -> Result<Option<ToolCall>, LedgerError> {
        self.0.deps.ledger.call(&agent.name, id).await
    }

    /// For whoever writes this call's answer to its caller.
    #[must_use]
    pub fn receipt(&self, call: &ToolCall) -> Receipt {
        self.0.courier.receipt(&call.agent, &call.id)
    }

    /// The agent says that it has the answer: committed when this returns. The call as it stands then.
    ///
    /// # Errors
    /// The ledger cannot say.
    pub async fn acknowledge(
        &self,
        agent: &Agent,
        id: &CallId,
    ) -> Result<Option<ToolCall>, LedgerError> {
        let ledger = &self.0.deps.ledger;
        if ledger.call(&agent.name, id).await?.is_none() {
            return Ok(None);
        }
        ledger.delivered(&agent.name, id).await?;
        ledger.call(&agent.name, id).await
    }

    /// The agent's own operations, in the order of their ids, and whether more follow.
    ///
    /// # Errors
    /// The ledger cannot say.
    pub async fn operations(
        &self,
        agent: &Agent,
        after: Option<&OperationId>,
        limit: u32,
    ) -> Result<(Vec<OwnRowView>, bool), LedgerError> {
        let serving = self.0.deps.ledger.serving();
        let limit = limit.clamp(1, MAX_PAGE);
        let page = serving.own_operations(&agent.name, after, limit).await?;
        Ok((self.seen(&page.rows), page.more))
    }

    /// One of the agent's own operations.
    ///
    /// # Errors
    /// The ledger cannot say.
    pub async fn operation(
        &self,
        agent: &Agent,
        id: &OperationId,
    ) -> Result<Option<OwnRowView>, LedgerError> {
        let serving = self.0.deps.ledger.serving();
        let found = serving.own_operation(&agent.name, id).await?;
        Ok(found.and_then(|one| self.seen(&[one]).pop()))
    }

    fn seen(&self, rows: &[Listed]) -> Vec<OwnRowView> {
        let deps = &self.0.deps;
        let url = |name: &ProviderName, id: &_| deps.providers.get(name)?.url(id);
        let lens = Lens {
            terms: &deps.terms,
            url: &url,
            now: deps.clock.now(),
            language: deps.language,
        };
        rows.iter().map(|row| OwnRowView::of(row, lens)).collect()
    }

    /// A call as its agent sees it.
    #[must_use]
    pub fn call_view(&self, call: &ToolCall) -> CallView {
        CallView::of(call, self.0.deps.language)
    }

    /// The answer of a call as its agent hears it.
    #[must_use]
    pub fn result_view(&self, call: &ToolCall) -> Option<ResultView> {
        let view =
            |result| ResultView::of(result, &call.tool, &call.arguments, self.0.deps.language);
        call.result.as_ref().map(view)
    }

    /// Everybody who waits is told that there is no answer yet.
    pub fn close(&self) {
        self.0.waiting.close();
    }

    /// Notes the deliveries that were written, and ends.
    pub async fn end(&self) {
        self.close();
        self.0.courier.end().await;
    }
}
