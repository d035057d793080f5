//! Everything that has to run for a demo: ledger, two simulated providers, engine, both clients.
//!
//! Owns: setting that up and striking it again; the throw-away ledger's directory. Never: makes a
//! call. Tests: `tests/demo.rs`.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::customers::Customers;
use super::desk::Desk;
use super::limits::{Limits, first};
use super::naive::Naive;
use super::prefill::Stories;
use super::rounds::Rounds;
use super::{DemoConfig, DemoError, prefill};
use crate::clock::Clock;
use crate::config::Secret;
use crate::domain::ids::{ProviderName, ToolName};
use crate::domain::policy::Terms;
use crate::engine::{Engine, EngineDeps, Lots};
use crate::ledger::sqlite::{OpenMode, SqliteLedger};
use crate::ledger::{Ledger as _, LedgerError, PageQuery, SharedLedger, Sort, Tab};
use crate::provider::SharedProvider;
use crate::provider::stripe::{Stripe, StripeConfig};
use crate::simulator::{Faults, Plan, SimConfig, Simulator};

const TOOL: &str = "issue_refund";
const PROVIDER: &str = "stripe";
const MODE: &str = "simulator";
/// Keys and accounts of the simulator are made up on the spot.
const API_KEY: &str = "sk_test_samekey_demo";
const API_VERSION: &str = "2026-08-26.dahlia";
/// How long a stopping engine may finish what it has in flight (real time).
pub(super) const STOP_WITHIN: Duration = Duration::from_secs(3);
/// Rows of one page while counting.
const PAGE: u32 = 1000;

/// A running demo without its customers.
pub(super) struct Stage {
    pub limits: Limits,
    pub tool: ToolName,
    pub ledger: SharedLedger,
    pub providers: Arc<BTreeMap<ProviderName, SharedProvider>>,
    pub terms: Arc<BTreeMap<ToolName, Terms>>,
    pub customers: Customers,
    pub desk: Arc<Desk>,
    pub naive: Arc<Naive>,
    /// samekey's provider.
    pub sim: Simulator,
    /// The naive client's own, with the same seed and plan.
    pub naive_sim: Simulator,
    /// Moves the clock, where it does not move by itself.
    _rounds: Option<Rounds>,
    file: LedgerFile,
}

/// Where the ledger is; a throw-away one is gone when this is dropped.
struct LedgerFile {
    path: PathBuf,
    temporary: Option<PathBuf>,
}

impl Drop for LedgerFile {
    fn drop(&mut self) {
        if let Some(dir) = &self.temporary
            && let Err(error) = std::fs::remove_dir_all(dir)
        {
            tracing::warn!(%error, dir = %dir.display(), "the demo's ledger could not be removed");
        }
    }
}

impl Stage {
    /// Opens the ledger and starts both simulators; the engine comes with [`Stage::engine`].
    pub async fn set(
        cfg: &DemoConfig,
        limits: impl FnOnce(ProviderName, &Plan) -> Limits,
    ) -> Result<Self, DemoError> {
        let plan = cfg.plan()?;
        let (faults, first) = (Faults::new(&plan, cfg.seed)?, first(&plan));
        let tool = ToolName::parse(TOOL)?;
        let provider_name = ProviderName::parse(PROVIDER)?;
        let mut limits = limits(provider_name.clone(), &plan);
        limits.engine.reconcile = cfg.reconcile;
        let terms = Arc::new(BTreeMap::from([(tool.clone(), limits.terms.clone())]));
        let file = ledger_file(cfg.keep.as_deref())?;
        let clock = limits.clock.clone();
        let rounds = limits
            .rounds
            .map(|speed| Rounds::start(clock.clone(), speed));
        let stamped = if is_new(&file.path) {
            None
        } else {
            // Looked at before anything is upgraded: it may be somebody's real ledger.
            let there = open(&file.path, OpenMode::Read, &terms, &clock).await;
            Some(stamped(there, &file.path).await?)
        };
        let sim = simulator(cfg, &limits, plan.clone(), stamped.as_deref()).await?;
        let naive_sim = simulator(cfg, &limits, plan, None).await?;
        let provider = provider(&provider_name, &sim, &limits)?;
        let mut stories = Stories::new(&tool, &provider, cfg.rows, clock.now());
        if stamped.is_none() {
            prefill::begin(&file.path, &terms, &stories).await?;
        }
        let ledger = open(&file.path, OpenMode::Engine, &terms, &clock).await?;
        let ledger: SharedLedger = Arc::new(ledger);
        stories.from = ledger.counts().await?.all();
        let providers = Arc::new(BTreeMap::from([(provider_name, provider)]));
        let run = free_run(&ledger, &tool, &faults).await?;
        let customers = Customers::new(cfg.seed, faults, first, run);
        let desk = Desk::new(Arc::clone(&ledger), tool.clone(), clock.clone(), sim.held());
        let naive = Naive {
            provider: naive_sim.addr(),
            clock,
            timeout: limits.terms.profile.timeout,
            held: naive_sim.held(),
        };
        let stage = Self {
            limits,
            tool,
            ledger,
            providers,
            terms,
            customers,
            desk: Arc::new(desk),
            naive: Arc::new(naive),
            sim,
            naive_sim,
            _rounds: rounds,
            file,
        };
        if stamped.is_some() {
            prefill::add(&stage, &stories).await?;
        }
        Ok(stage)
    }

    /// Starts the engine.
    pub fn engine(&self) -> Engine {
        Engine::start(EngineDeps {
            ledger: Arc::clone(&self.ledger),
            providers: Arc::clone(&self.providers),
            terms: Arc::clone(&self.terms),
            config: self.limits.engine.clone(),
            clock: self.limits.clock.clone(),
            lots: Lots::default(),
        })
    }

    /// Where the ledger's file is.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Whether the ledger stays when the demo is over.
    pub fn is_kept(&self) -> bool {
        self.file.temporary.is_none()
    }

    /// All attempts that the ledger has counted.
    pub async fn attempts(&self) -> Result<u64, DemoError> {
        let mut query = PageQuery {
            tab: Tab::All,
            sort: Sort::Created,
            ascending: true,
            limit: PAGE,
            ..PageQuery::default()
        };
        let mut attempts = 0;
        loop {
            let page = self.ledger.page(&query).await?;
            attempts += page
                .rows
                .iter()
                .map(|l| u64::from(l.row.attempts))
                .sum::<u64>();
            query.after = page.rows.last().map(|l| l.row.id.clone());
            if !page.more {
                return Ok(attempts);
            }
        }
    }

    /// Stops the simulators and closes the ledger, once its engine has been stopped. The ledger's
    /// file is there for as long as what is returned.
    pub async fn strike(self) -> Struck {
        self.sim.stop().await;
        self.naive_sim.stop().await;
        self.ledger.close().await;
        Struck(self.file)
    }
}

/// What is left of a demo: the ledger's file, until this is dropped.
pub(super) struct Struck(LedgerFile);

impl Struck {
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

/// A file that is to be kept, or one in a fresh directory that only its owner can read.
fn ledger_file(keep: Option<&Path>) -> Result<LedgerFile, DemoError> {
    if let Some(path) = keep {
        return Ok(LedgerFile {
            path: path.to_path_buf(),
            temporary: None,
        });
    }
    let name = format!("samekey-demo-{}", Uuid::new_v4().simple());
    let dir = std::env::temp_dir().join(name);
    let made = DirBuilder::new().mode(0o700).create(&dir);
    made.map_err(DemoError::Directory)?;
    Ok(LedgerFile {
        path: dir.join("ledger.db"),
        temporary: Some(dir),
    })
}

/// Not there, or still empty.
fn is_new(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.len() == 0) || !path.exists()
}

/// The origin that an existing ledger is bound to; nobody's but a simulator's may be touched.
async fn stamped(
    ledger: Result<SqliteLedger, LedgerError>,
    path: &Path,
) -> Result<String, DemoError> {
    let ledger = match ledger {
        Err(LedgerError::NotALedger(_)) => return Err(DemoError::NotADemo(path.to_path_buf())),
        other => other?,
    };
    let stamps = ledger.stamps().await?;
    ledger.close().await;
    let demo = stamps.iter().all(|s| s.mode == MODE);
    match stamps.into_iter().next() {
        Some(stamp) if demo => Ok(stamp.origin),
        Some(_) | None => Err(DemoError::NotADemo(path.to_path_buf())),
    }
}

/// A simulator; for a ledger that is bound already, at the address it is bound to.
async fn simulator(
    cfg: &DemoConfig,
    limits: &Limits,
    plan: Plan,
    origin: Option<&str>,
) -> Result<Simulator, DemoError> {
    let mut config = SimConfig {
        plan,
        seed: cfg.seed,
        latency: limits.latency,
        ..SimConfig::new(limits.clock.clone())
    };
    let address = origin.and_then(|o| o.strip_prefix("http://"));
    if let Some(address) = address.and_then(|a| a.parse().ok()) {
        config.listen = address;
    }
    let address = config.listen.to_string();
    Simulator::start(config)
        .await
        .map_err(|why| DemoError::Simulator { address, why })
}

fn provider(
    name: &ProviderName,
    sim: &Simulator,
    limits: &Limits,
) -> Result<SharedProvider, DemoError> {
    let config = StripeConfig {
        name: name.clone(),
        base_url: sim.base_url(),
        api_key: Secret::new(API_KEY),
        api_version: API_VERSION.to_owned(),
        profile: limits.terms.profile.clone(),
        account: None,
    };
    let stripe = Stripe::new(config, limits.clock.clone());
    stripe
        .map(|s| Arc::new(s) as SharedProvider)
        .map_err(|e| DemoError::Provider(e.to_string()))
}

async fn open(
    path: &Path,
    mode: OpenMode,
    terms: &Arc<BTreeMap<ToolName, Terms>>,
    clock: &Clock,
) -> Result<SqliteLedger, LedgerError> {
    let location = format!("sqlite:{}", path.display());
    SqliteLedger::open(&location, mode, Arc::clone(terms), clock.clone()).await
}

/// Which run on this ledger this is: the first whose first order has no call yet.
async fn free_run(
    ledger: &SharedLedger,
    tool: &ToolName,
    faults: &Faults,
) -> Result<u32, DemoError> {
    for run in 1..u32::MAX {
        let customers = Customers::new(0, faults.clone(), None, run);
        let order = customers.order(0)?;
        if ledger.order_rows(tool, &order, None).await?.is_empty() {
            return Ok(run);
        }
    }
    Ok(u32::MAX)
}
