//! A room with a help desk and a message channel, a ledger, and engines; the clock runs a thousand times
//! as fast, and bounds that guard against a stalled machine are wide.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use samekey::clock::Clock;
use samekey::config::{Config, Secret};
use samekey::domain::ids::{AgentName, CallId, ProviderName, ToolName};
use samekey::domain::policy::{Rate, Terms};
use samekey::domain::tool_call::ToolResult;
use samekey::engine::{EngineConfig, EngineDeps, Lots, run_call};
use samekey::ledger::sqlite::{OpenMode, SqliteLedger};
use samekey::ledger::{Detail, NewCall, PageQuery, SharedLedger};
use samekey::provider::SharedProvider;
use samekey::provider::described::{Described, DescribedConfig};
use samekey::simulator::Services;
use serde_json::Value;
use tempfile::TempDir;

pub const TOKEN: &str = "hd_token_5f0c2a";

pub struct Room {
    pub dir: TempDir,
    pub services: Services,
    pub ledger: SharedLedger,
    pub clock: Clock,
    terms: Arc<BTreeMap<ToolName, Terms>>,
    providers: Arc<BTreeMap<ProviderName, SharedProvider>>,
}

/// The configuration of a room; `more` is added to the tickets' section.
pub fn file(origin: &str, more: &str) -> String {
    format!(
        r#"
        [providers.helpdesk]
        kind = "http"
        base_url = "{origin}"
        keys = "lookup"
        settle_time = "60s"
        lookup_lag = "10s"
        [providers.channel]
        kind = "http"
        base_url = "{origin}"
        keys = "none"
        settle_time = "60s"
        [tools.create_ticket]
        provider = "helpdesk"
        description = "create_ticket"
        {more}
        [tools.send_message]
        provider = "channel"
        description = "send_message"
        "#
    )
}

impl Room {
    pub async fn new() -> Self {
        Self::with("").await
    }

    pub async fn with(more: &str) -> Self {
        let services = Services::start().await.expect("a port");
        let clock = Clock::scaled(1000);
        let config = Config::parse(&file(&services.origin(), more), "room.toml");
        let config = config.expect("a configuration");
        let free = Rate {
            count: 1_000_000,
            per: Duration::from_secs(1),
        };
        let wide = |terms: &mut Terms| {
            terms.policy.rate = free;
            terms.profile.rate = free;
            terms.profile.read_rate = free;
            terms.profile.send_window = Duration::from_secs(3000);
            terms.profile.timeout = Duration::from_secs(1500);
        };
        let mut terms = config.terms();
        terms.values_mut().for_each(wide);
        let providers = config.providers.keys().map(|name| {
            let tools = config.tools.iter();
            let tools = tools.filter(|(_, t)| t.policy.provider == *name);
            let tools: BTreeMap<_, _> = tools
                .filter_map(|(n, t)| Some((n.clone(), t.described.as_ref()?.tool.clone())))
                .collect();
            let profile = terms
                .values()
                .find(|t| t.policy.provider == *name)
                .map(|t| t.profile.clone());
            let config = DescribedConfig {
                name: name.clone(),
                base_url: services.origin(),
                credentials: Some((
                    "Authorization".into(),
                    Secret::new(format!("Bearer {TOKEN}")),
                )),
                profile: profile.expect("a tool"),
                live: true,
                probe: Some("/health".into()),
                tools,
            };
            let provider = Described::new(config, clock.clone()).expect("a provider");
            (name.clone(), Arc::new(provider) as SharedProvider)
        });
        let providers = Arc::new(providers.collect());
        let dir = tempfile::tempdir().expect("a folder");
        let terms = Arc::new(terms);
        let path = dir.path().join("ledger.db").display().to_string();
        let opened = SqliteLedger::open(&path, OpenMode::Engine, Arc::clone(&terms), clock.clone());
        Self {
            ledger: Arc::new(opened.await.expect("a ledger")),
            dir,
            services,
            clock,
            terms,
            providers,
        }
    }

    fn deps(&self) -> EngineDeps {
        EngineDeps {
            ledger: Arc::clone(&self.ledger),
            providers: Arc::clone(&self.providers),
            terms: Arc::clone(&self.terms),
            config: EngineConfig {
                lease: Duration::from_secs(60_000),
                call_timeout: Duration::from_secs(400_000),
                ..EngineConfig::default()
            },
            clock: self.clock.clone(),
            lots: Lots::default(),
        }
    }

    /// Queues a call and drives it here.
    pub async fn ask(&self, tool: &str, id: &str, arguments: &Value) -> ToolResult {
        let agent: AgentName = "northwind".parse().expect("an agent");
        let id: CallId = id.parse().expect("a call id");
        let call = NewCall {
            id: id.clone(),
            agent: agent.clone(),
            tool: tool.parse().expect("a tool"),
            arguments: arguments.to_string(),
            session: None,
        };
        self.ledger.accept_call(call).await.expect("accepted");
        let answer = run_call(self.deps(), &agent, &id).await;
        answer.expect("an answer")
    }

    /// Every operation there is, oldest first.
    pub async fn all(&self) -> Vec<Detail> {
        let query = PageQuery {
            limit: 100,
            ascending: true,
            ..PageQuery::default()
        };
        let page = self.ledger.page(&query).await.expect("a page");
        let mut all = Vec::new();
        for listed in page.rows {
            let detail = self.ledger.detail(&listed.row.id).await.expect("read");
            all.push(detail.expect("known"));
        }
        all
    }

    /// The only operation there is.
    pub async fn only(&self) -> Detail {
        let mut all = self.all().await;
        assert_eq!(all.len(), 1, "one row");
        all.remove(0)
    }

    /// Until a search can prove that nothing of the latest attempt exists.
    pub async fn settle(&self) {
        let row = self.only().await.op.row;
        let last = row.last_authorised_at.expect("sent");
        let profile = &self.terms[&row.tool].profile;
        let wait = samekey::domain::since(self.clock.now(), profile.decidable_at(last));
        self.clock.sleep(wait + Duration::from_secs(30)).await;
    }
}
