//! Everything behind a gateway: a simulated provider, a ledger, an engine (or none), and agents.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use samekey::clock::Clock;
use samekey::config::Secret;
use samekey::domain::agent::{self, SubmitLimits};
use samekey::domain::ids::{AgentName, CallId, ReviewerName, ToolName};
use samekey::domain::message::Language;
use samekey::domain::policy::Rate;
use samekey::domain::tool_call::ToolCall;
use samekey::engine::{Engine, EngineConfig, EngineDeps};
use samekey::gateway::{Gateway, GatewayDeps, ServiceDeps};
use samekey::ledger::NewAgent;
use samekey::ledger::verify::verify;
use samekey::provider::SharedProvider;
use samekey::provider::stripe::{Stripe, StripeConfig};
use samekey::simulator::{Plan, SimConfig, Simulator};

use crate::world::{World, terms};

pub struct Hall {
    pub simulator: Simulator,
    pub world: World,
    pub gateway: Gateway,
    pub engine: Option<Engine>,
    pub addr: SocketAddr,
}

/// Limits that no test meets by accident.
pub fn wide() -> SubmitLimits {
    let rate = Rate {
        count: 1_000_000,
        per: Duration::from_secs(1),
    };
    SubmitLimits {
        rate,
        tool_rate: rate,
        max_waiting: 100_000,
    }
}

impl Hall {
    /// With an engine; `plan` is what goes wrong at the provider.
    pub async fn new(plan: &str) -> Self {
        Self::open(plan, wide(), true).await
    }

    /// Calls are accepted and nobody drives them.
    pub async fn idle() -> Self {
        Self::open("honest", wide(), false).await
    }

    pub async fn open(plan: &str, limits: SubmitLimits, drives: bool) -> Self {
        let clock = Clock::system();
        let config = SimConfig {
            plan: Plan::parse(plan).expect("a scenario"),
            ..SimConfig::new(clock.clone())
        };
        let simulator = Simulator::start(config).await.expect("it listens");
        let mut terms = terms();
        terms.profile.timeout = Duration::from_secs(2);
        let config = StripeConfig {
            name: terms.policy.provider.clone(),
            base_url: simulator.base_url(),
            api_key: Secret::new("sk_test_hall"),
            api_version: "2026-08-26.dahlia".into(),
            profile: terms.profile.clone(),
            account: None,
        };
        let stripe = Stripe::new(config, clock.clone()).expect("a configuration");
        let provider: SharedProvider = Arc::new(stripe);
        let world = World::with(provider, terms, clock).await;
        let engine = drives.then(|| Engine::start(deps(&world)));
        let gateway = GatewayDeps {
            service: ServiceDeps {
                ledger: Arc::clone(&world.ledger),
                terms: Arc::clone(&world.terms),
                providers: Arc::clone(&world.providers),
                clock: world.clock.clone(),
                language: Language::default(),
                limits,
            },
            endpoints: Vec::new(),
            health: engine.as_ref().map(Engine::health),
        };
        let gateway = Gateway::start(([127, 0, 0, 1], 0).into(), gateway).await;
        let gateway = gateway.expect("it listens");
        let addr = gateway.addr();
        Self {
            simulator,
            world,
            gateway,
            engine,
            addr,
        }
    }

    /// The token of a new agent that may use these tools; all, without any.
    pub async fn agent(&self, name: &str, tools: &[&str]) -> String {
        let lot = uuid::Uuid::new_v4().into_bytes();
        let mut secret = [7; 32];
        secret[..16].copy_from_slice(&lot);
        let mut id = [0; 8];
        id.copy_from_slice(&lot[..8]);
        let (token, kept) = agent::issue(id, secret);
        let tools = tools.iter().map(|t| ToolName::parse(t).expect("a tool"));
        let tools = Some(tools.collect()).filter(|t: &std::collections::BTreeSet<_>| !t.is_empty());
        let new = NewAgent {
            name: AgentName::parse(name).expect("a name"),
            token: kept,
            tools,
            by: ReviewerName::parse("lea").expect("a name"),
        };
        let added = self.world.ledger.serving().add_agent(new).await;
        assert!(added.expect("added"));
        token
    }

    pub async fn revoke(&self, name: &str) {
        let name = AgentName::parse(name).expect("a name");
        let by = ReviewerName::parse("lea").expect("a name");
        let revoked = self.world.ledger.serving().revoke_agent(&name, &by).await;
        assert!(revoked.expect("revoked"));
    }

    pub async fn call(&self, agent: &str, id: &str) -> ToolCall {
        self.known(agent, id).await.expect("it is there")
    }

    pub async fn known(&self, agent: &str, id: &str) -> Option<ToolCall> {
        let agent = AgentName::parse(agent).expect("a name");
        let id = CallId::parse(id).expect("a call id");
        let call = self.world.ledger.call(&agent, &id).await;
        call.expect("read")
    }

    /// The call, once this holds of it.
    pub async fn until(
        &self,
        agent: &str,
        id: &str,
        holds: impl Fn(&ToolCall) -> bool,
    ) -> ToolCall {
        let mut changed = self.world.ledger.changed();
        let call = async {
            loop {
                if let Some(call) = self.known(agent, id).await
                    && holds(&call)
                {
                    return call;
                }
                let _ = tokio::time::timeout(Duration::from_secs(1), changed.changed()).await;
            }
        };
        let call = tokio::time::timeout(Duration::from_secs(30), call).await;
        call.expect("it holds in time")
    }

    /// Ends everything; the ledger is honest.
    pub async fn end(self) {
        self.gateway.stop(Duration::from_secs(5)).await;
        if let Some(engine) = self.engine {
            engine.stop(Duration::from_secs(5)).await;
        }
        self.world.ledger.close().await;
        let path = self.world.dir.path().join("ledger.db");
        let found = verify(&path).await.expect("a report").violations;
        assert!(found.is_empty(), "{found:#?}");
        self.simulator.stop().await;
    }
}

fn deps(world: &World) -> EngineDeps {
    EngineDeps {
        config: EngineConfig {
            workers: 16,
            poll: Duration::from_millis(200),
            ..EngineConfig::default()
        },
        ..world.deps()
    }
}
