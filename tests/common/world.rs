//! A small world: one tool, one provider in memory, one ledger on a file, a fast clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use samekey::clock::Clock;
use samekey::domain::guard::Role;
use samekey::domain::ids::{AgentName, CallId, ProviderName, ReviewerName, ToolName};
use samekey::domain::policy::{Profile, Rate, Terms, ToolPolicy};
use samekey::domain::tool_call::ToolResult;
use samekey::engine::{EngineConfig, EngineDeps, Lots, run_call};
use samekey::ledger::sqlite::{OpenMode, SqliteLedger};
use samekey::ledger::{Accepted, Detail, NewCall, PageQuery, SharedLedger};
use samekey::provider::SharedProvider;
use samekey::review::Gate;
use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};
use tempfile::TempDir;

pub struct World {
    pub dir: TempDir,
    pub ledger: SharedLedger,
    pub clock: Clock,
    pub terms: Arc<BTreeMap<ToolName, Terms>>,
    pub providers: Arc<BTreeMap<ProviderName, SharedProvider>>,
}

/// The tool's limits, without rates in the way.
pub fn terms() -> Terms {
    let provider = ProviderName::parse("stripe").expect("provider");
    // Not even a microsecond: some of these clocks stand still.
    let free = Rate {
        count: u32::MAX,
        per: Duration::from_nanos(1),
    };
    let mut policy = ToolPolicy::refund(provider);
    policy.rate = free;
    let mut profile = Profile::stripe();
    profile.rate = free;
    profile.read_rate = free;
    // The clock runs 200 times as fast: bounds that guard against a stalled machine are wide, so that
    // a busy one does not meet them.
    profile.send_window = Duration::from_secs(4000);
    Terms { policy, profile }
}

pub fn tool() -> ToolName {
    ToolName::parse("issue_refund").expect("tool")
}

pub fn agent() -> AgentName {
    AgentName::parse("northwind").expect("agent")
}

pub fn refund(order: &str, cents: i64) -> Value {
    serde_json::json!({ "order_id": order, "amount_cents": cents, "currency": "usd" })
}

impl World {
    pub async fn new(provider: SharedProvider) -> Self {
        Self::with(provider, terms(), Clock::scaled(200)).await
    }

    pub async fn with(provider: SharedProvider, terms: Terms, clock: Clock) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let terms = Arc::new(BTreeMap::from([(tool(), terms)]));
        let ledger = open(&dir, &terms, &clock).await;
        let providers = Arc::new(BTreeMap::from([(provider.name().clone(), provider)]));
        Self {
            dir,
            ledger,
            clock,
            terms,
            providers,
        }
    }

    /// Another handle on the same file, as another process would have.
    pub async fn second_handle(&self) -> SharedLedger {
        open(&self.dir, &self.terms, &self.clock).await
    }

    pub fn deps(&self) -> EngineDeps {
        EngineDeps {
            ledger: Arc::clone(&self.ledger),
            providers: Arc::clone(&self.providers),
            terms: Arc::clone(&self.terms),
            // Wide too, for the same reason: an engine whose lease ran out in a stall is rightly taken over.
            config: EngineConfig {
                lease: Duration::from_secs(4_000),
                call_timeout: Duration::from_secs(40_000),
                call_ttl: Duration::from_secs(40_000),
                ..EngineConfig::default()
            },
            clock: self.clock.clone(),
            lots: Lots::default(),
        }
    }

    pub fn gate(&self, reviewers: &[(&str, Role)]) -> Gate {
        let name = |n: &str| ReviewerName::parse(n).expect("reviewer");
        let reviewers = reviewers.iter().map(|(n, role)| (name(n), *role)).collect();
        Gate::new(
            Arc::clone(&self.ledger),
            Arc::clone(&self.providers),
            Arc::clone(&self.terms),
            Arc::new(reviewers),
            name("os-user"),
            self.clock.clone(),
        )
    }

    pub async fn accept(&self, id: &str, arguments: &Value) {
        let call = NewCall {
            id: CallId::parse(id).expect("call id"),
            agent: agent(),
            tool: tool(),
            arguments: arguments.to_string(),
            session: None,
        };
        let accepted = self.ledger.accept_call(call).await.expect("accepted");
        assert!(
            matches!(accepted, Accepted::New(_) | Accepted::Known(_)),
            "{accepted:?}"
        );
    }

    /// Queues a call and drives it here.
    pub async fn ask(&self, id: &str, arguments: &Value) -> ToolResult {
        self.accept(id, arguments).await;
        run_call(self.deps(), &agent(), &CallId::parse(id).expect("call id"))
            .await
            .expect("an answer")
    }

    /// Waits until a call has its answer.
    pub async fn answer(&self, id: &str) -> ToolResult {
        let id = CallId::parse(id).expect("call id");
        let mut changes = self.ledger.changed();
        loop {
            let call = self
                .ledger
                .call(&agent(), &id)
                .await
                .expect("a call")
                .expect("known");
            if let Some(result) = call.result {
                return result;
            }
            changes.changed().await.expect("the ledger lives");
        }
    }

    /// Waits until a call has reached its operation.
    pub async fn linked(&self, id: &str) {
        let id = CallId::parse(id).expect("call id");
        let mut changes = self.ledger.changed();
        loop {
            let call = self.ledger.call(&agent(), &id).await.expect("read");
            if call.and_then(|c| c.operation).is_some() {
                return;
            }
            changes.changed().await.expect("the ledger lives");
        }
    }

    /// A connection to the file itself, as another program would have.
    pub async fn past_samekey(&self) -> SqliteConnection {
        let file = self.dir.path().join("ledger.db");
        let options = SqliteConnectOptions::new().filename(file);
        options.connect().await.expect("opened")
    }

    /// The only operation there is.
    pub async fn only(&self) -> Detail {
        let page = self
            .ledger
            .page(&PageQuery {
                limit: 10,
                ..PageQuery::default()
            })
            .await;
        let rows = page.expect("a page").rows;
        assert_eq!(rows.len(), 1, "one row");
        let id = &rows.first().expect("a row").row.id;
        self.ledger
            .detail(id)
            .await
            .expect("a detail")
            .expect("known")
    }
}

async fn open(
    dir: &TempDir,
    terms: &Arc<BTreeMap<ToolName, Terms>>,
    clock: &Clock,
) -> SharedLedger {
    let path = dir.path().join("ledger.db").display().to_string();
    let opened = SqliteLedger::open(&path, OpenMode::Engine, Arc::clone(terms), clock.clone());
    Arc::new(opened.await.expect("a ledger"))
}
