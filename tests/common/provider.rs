//! A provider in memory: each attempt gets the next scripted outcome; everything sent is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use samekey::domain::evidence::{ObjectStatus, ProviderObject};
use samekey::domain::ids::{OperationId, ProviderName, ProviderRef};
use samekey::domain::key::IdempotencyKey;
use samekey::domain::opening::Resolved;
use samekey::domain::operation::OperationRow;
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::Profile;
use samekey::domain::text::SafeText;
use samekey::domain::transition::Lookup;
use samekey::provider::{Asked, Provider, ReadError, Reads, Ready, ResolveError, ResolveQuery};
use tokio::sync::Notify;

/// What the provider does with one attempt.
#[derive(Clone, Debug)]
pub enum Script {
    /// The refund is made and answered.
    Refund,
    /// This class and nothing else.
    Class(OutcomeClass),
    /// The whole outcome.
    Outcome(Box<Outcome>),
    /// No connection can be made.
    NoConnection,
    /// The answer waits until [`FakeProvider::let_go`], then the refund is answered.
    Hold,
    /// The worker dies.
    Panic,
}

/// One request as it arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub operation: OperationId,
    pub key: IdempotencyKey,
    pub body: Vec<u8>,
}

#[derive(Default)]
struct State {
    scripts: VecDeque<Script>,
    sent: Vec<Sent>,
    lookup: Option<Lookup>,
    captured: i64,
    refunded: i64,
    unreadable: bool,
    probes: u32,
    looked: u32,
    hold_lookups: bool,
    hold_reads: bool,
    moved: Option<(&'static str, &'static str)>,
    fetch: Option<ProviderObject>,
}

pub struct FakeProvider {
    name: ProviderName,
    profile: Profile,
    state: Arc<Mutex<State>>,
    gate: Arc<Notify>,
    pub arrived: Arc<Notify>,
}

impl FakeProvider {
    pub fn new(scripts: impl IntoIterator<Item = Script>) -> Arc<Self> {
        Self::named("stripe", scripts)
    }

    pub fn named(name: &str, scripts: impl IntoIterator<Item = Script>) -> Arc<Self> {
        Arc::new(Self {
            name: ProviderName::parse(name).expect("name"),
            profile: Profile::stripe(),
            state: Arc::new(Mutex::new(State {
                scripts: scripts.into_iter().collect(),
                captured: 100_000,
                ..State::default()
            })),
            gate: Arc::default(),
            arrived: Arc::default(),
        })
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.state.lock().expect("state").sent.clone()
    }

    pub fn probes(&self) -> u32 {
        self.state.lock().expect("state").probes
    }

    pub fn then(&self, script: Script) {
        self.state.lock().expect("state").scripts.push_back(script);
    }

    pub fn captured(&self, minor: i64) {
        self.state.lock().expect("state").captured = minor;
    }

    pub fn refunded_elsewhere(&self, minor: i64) {
        self.state.lock().expect("state").refunded = minor;
    }

    pub fn unreadable(&self, unreadable: bool) {
        self.state.lock().expect("state").unreadable = unreadable;
    }

    /// How many lookups arrived.
    pub fn looked(&self) -> u32 {
        self.state.lock().expect("state").looked
    }

    /// From now on lookups wait until [`FakeProvider::let_go`], one for each.
    pub fn hold_lookups(&self, hold: bool) {
        self.state.lock().expect("state").hold_lookups = hold;
    }

    /// From now on no account, object or probe is answered.
    pub fn hold_reads(&self) {
        self.state.lock().expect("state").hold_reads = true;
    }

    async fn held(&self) {
        if self.state.lock().expect("state").hold_reads {
            self.arrived.notify_one();
            std::future::pending::<()>().await;
        }
    }

    pub fn lookup_gives(&self, lookup: Lookup) {
        self.state.lock().expect("state").lookup = Some(lookup);
    }

    /// From now on it is another provider: at this origin, in this mode.
    pub fn moves(&self, origin: &'static str, mode: &'static str) {
        self.state.lock().expect("state").moved = Some((origin, mode));
    }

    /// What is found under any id.
    pub fn fetch_gives(&self, object: ProviderObject) {
        self.state.lock().expect("state").fetch = Some(object);
    }

    pub fn let_go(&self) {
        self.gate.notify_one();
    }
}

/// The object a successful refund of `row` makes.
pub fn refund_of(row: &OperationRow) -> ProviderObject {
    ProviderObject {
        id: ProviderRef::parse(&format!("re_{}", row.id.token())).expect("ref"),
        operation: Some(row.id.clone()),
        payment: row.payment.clone(),
        charge: row.charge.clone(),
        amount_minor: row.minor(),
        currency: row.currency(),
        status: ObjectStatus::Succeeded,
        created_at: row.created_at,
        failure_reason: None,
    }
}

#[async_trait]
impl Provider for FakeProvider {
    fn name(&self) -> &ProviderName {
        &self.name
    }
    fn profile(&self) -> &Profile {
        &self.profile
    }
    fn origin(&self) -> String {
        let moved = self.state.lock().expect("state").moved;
        moved.map_or("memory:", |(origin, _)| origin).into()
    }
    fn mode(&self) -> &'static str {
        let moved = self.state.lock().expect("state").moved;
        moved.map_or("simulator", |(_, mode)| mode)
    }
    async fn account(&self, _: &Reads) -> Result<Option<String>, ReadError> {
        self.held().await;
        Ok(None)
    }
    async fn resolve(&self, query: &ResolveQuery, _: &Reads) -> Result<Resolved, ResolveError> {
        let state = self.state.lock().expect("state");
        if state.unreadable {
            return Err(ResolveError::Unreadable("down".into()));
        }
        let payment = format!("pi_order_{}", query.order);
        Ok(Resolved {
            payment: payment.parse().expect("payment"),
            charge: None,
            currency: "usd".parse().expect("usd"),
            captured_minor: state.captured,
            refunded_minor: state.refunded,
            refunds: Vec::new(),
        })
    }
    fn request(&self, asked: &Asked<'_>) -> Result<Vec<u8>, SafeText> {
        let args = asked.arguments;
        let (order, money) = (args.order.as_ref(), args.money.expect("money"));
        let order = order.expect("an order");
        let text = format!("refund {} {order} {}", asked.operation, money.minor());
        Ok(text.into_bytes())
    }
    async fn connect(&self) -> Result<Box<dyn Ready>, ReadError> {
        let mut state = self.state.lock().expect("state");
        if matches!(state.scripts.front(), Some(Script::NoConnection)) {
            state.scripts.pop_front();
            return Err(ReadError("connection refused".into()));
        }
        Ok(Box::new(Line {
            state: Arc::clone(&self.state),
            gate: Arc::clone(&self.gate),
            arrived: Arc::clone(&self.arrived),
        }))
    }
    async fn lookup(&self, row: &OperationRow, _: &Reads) -> Lookup {
        let (known, hold) = {
            let mut state = self.state.lock().expect("state");
            state.looked += 1;
            (state.lookup.clone(), state.hold_lookups)
        };
        if hold {
            self.arrived.notify_one();
            self.gate.notified().await;
        }
        known.unwrap_or(Lookup::Listed {
            began_at: row.updated_at,
            complete: true,
            objects: Vec::new(),
        })
    }
    fn lookup_requests(&self, _: &OperationRow) -> Vec<String> {
        vec!["list".into()]
    }
    async fn fetch(&self, _: &ProviderRef, _: &Reads) -> Result<Option<ProviderObject>, ReadError> {
        self.held().await;
        if self.state.lock().expect("state").unreadable {
            return Err(ReadError("down".into()));
        }
        Ok(self.state.lock().expect("state").fetch.clone())
    }
    async fn probe(&self, _: &Reads) -> bool {
        self.held().await;
        self.state.lock().expect("state").probes += 1;
        true
    }
    fn url(&self, id: &ProviderRef) -> Option<String> {
        Some(format!("https://provider.example/refunds/{id}"))
    }
}

struct Line {
    state: Arc<Mutex<State>>,
    gate: Arc<Notify>,
    arrived: Arc<Notify>,
}

#[async_trait]
impl Ready for Line {
    async fn send(self: Box<Self>, row: &OperationRow) -> Outcome {
        let script = {
            let mut state = self.state.lock().expect("state");
            state.sent.push(Sent {
                operation: row.id.clone(),
                key: row.key.clone(),
                body: row.request.clone(),
            });
            state.scripts.pop_front().unwrap_or(Script::Refund)
        };
        self.arrived.notify_one();
        let refunded = || {
            let mut outcome = Outcome::of(OutcomeClass::Succeeded);
            outcome.http_status = Some(200);
            outcome.object = Some(refund_of(row));
            outcome
        };
        match script {
            Script::Refund => refunded(),
            Script::Hold => {
                self.gate.notified().await;
                refunded()
            }
            Script::Class(class) => Outcome::of(class),
            Script::Outcome(outcome) => *outcome,
            Script::Panic => panic!("a worker that dies"),
            Script::NoConnection => unreachable!("connecting failed"),
        }
    }
}
