//! Builders for tests of a ledger: a place where a ledger lies, and a small engine's worth of steps
//! through the trait's own doors, on a clock the test moves. Nothing here sends anything.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]
#![allow(dead_code, reason = "each test crate uses its own part")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use samekey::clock::Clock;
use samekey::domain::Instant;
use samekey::domain::arguments::Arguments;
use samekey::domain::evidence::{ObjectStatus, ProviderObject, Source};
use samekey::domain::guard::Role;
use samekey::domain::ids::{
    Actor, AgentName, CallId, EngineId, OperationId, OrderId, PaymentId, ProviderName, ToolName,
};
use samekey::domain::key::IdempotencyKey;
use samekey::domain::later;
use samekey::domain::money::Currency;
use samekey::domain::opening::Resolved;
use samekey::domain::operation::{Closing, LookedAt, Operation, OperationRow};
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::{Profile, Rate, Terms, ToolPolicy};
use samekey::domain::review_event::{Act, Decision, Person};
use samekey::domain::tool_call::{RefundArguments, ToolResult};
use samekey::domain::transition::{Event, Lookup, Next, Observed, Refusal, Step};
use samekey::ledger::sqlite::{OpenMode, SqliteLedger};
use samekey::ledger::{
    Accepted, Drive, LeasedCall, Ledger, LedgerError, NewCall, OpenRow, Opening, SharedLedger,
};
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

pub const LEASE: Duration = Duration::from_secs(30);
pub const SETTLE: Duration = Duration::from_secs(2 + 10 + 600);

pub type AllTerms = Arc<BTreeMap<ToolName, Terms>>;

/// So many seconds after the beginning of all tests.
pub fn at(seconds: u64) -> Instant {
    let start = Instant::UNIX_EPOCH;
    later(start, Duration::from_secs(1_790_000_000 + seconds))
}

pub fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub fn usd() -> Currency {
    "usd".parse().expect("usd")
}

pub fn tool() -> ToolName {
    ToolName::parse("issue_refund").expect("a tool")
}

pub fn stripe() -> ProviderName {
    ProviderName::parse("stripe").expect("a provider")
}

pub fn agent(name: &str) -> AgentName {
    AgentName::parse(name).expect("an agent")
}

pub fn call_id(name: &str) -> CallId {
    CallId::parse(name).expect("a call id")
}

pub fn order(name: &str) -> OrderId {
    OrderId::parse(name).expect("an order")
}

pub fn payment_of(order: &str) -> PaymentId {
    PaymentId::parse(&format!("pi_order_{order}")).expect("a payment")
}

/// The seed's tool, without a rate: the clock of a test stands still.
pub fn terms() -> Terms {
    let boundless = Rate {
        count: u32::MAX,
        per: Duration::from_nanos(1),
    };
    Terms {
        policy: ToolPolicy {
            rate: boundless,
            ..ToolPolicy::refund(stripe())
        },
        profile: Profile {
            rate: boundless,
            read_rate: boundless,
            ..Profile::stripe()
        },
    }
}

pub fn all(terms: Terms) -> AllTerms {
    Arc::new(BTreeMap::from([(tool(), terms)]))
}

/// A kind of ledger; the conformance suite runs on each.
#[derive(Clone, Copy, Debug)]
pub enum Store {
    Sqlite,
}

impl Store {
    pub const ALL: [Self; 1] = [Self::Sqlite];
}

/// A place where a ledger lies, which any number of handles may open.
pub struct Place {
    pub store: Store,
    pub dir: TempDir,
}

impl Place {
    pub fn new(store: Store) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self { store, dir }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("ledger.db")
    }

    pub fn location(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    pub async fn try_open(
        &self,
        mode: OpenMode,
        terms: AllTerms,
        clock: &Clock,
    ) -> Result<SharedLedger, LedgerError> {
        match self.store {
            Store::Sqlite => {
                let opened = SqliteLedger::open(&self.location(), mode, terms, clock.clone()).await;
                opened.map(|ledger| Arc::new(ledger) as Arc<dyn Ledger>)
            }
        }
    }

    /// A handle as an engine has it.
    pub async fn open(&self, terms: AllTerms, clock: &Clock) -> SharedLedger {
        let opened = self.try_open(OpenMode::Engine, terms, clock).await;
        opened.expect("the ledger opens")
    }
}

/// Runs a story on a new ledger of each kind.
pub async fn for_each_store(story: impl AsyncFn(World)) {
    for_each_store_with(terms(), story).await;
}

/// The same with other terms.
pub async fn for_each_store_with(terms: Terms, story: impl AsyncFn(World)) {
    for store in Store::ALL {
        story(World::new(Place::new(store), terms.clone()).await).await;
    }
}

/// A ledger, the time, and one engine's name.
pub struct World {
    pub place: Place,
    pub terms: AllTerms,
    pub clock: Clock,
    pub ledger: SharedLedger,
    pub engine: EngineId,
}

impl World {
    pub async fn new(place: Place, terms: Terms) -> Self {
        let clock = Clock::manual(at(0));
        let terms = all(terms);
        Self {
            ledger: place.open(Arc::clone(&terms), &clock).await,
            place,
            terms,
            clock,
            engine: engine(1),
        }
    }

    /// Another handle on the same ledger, as another process has it.
    pub async fn other(&self) -> SharedLedger {
        self.place.open(Arc::clone(&self.terms), &self.clock).await
    }

    /// The same ledger through another handle, under another engine's name.
    pub async fn second(&self) -> Hand {
        Hand {
            ledger: self.other().await,
            engine: engine(2),
        }
    }

    pub fn hand(&self) -> Hand {
        Hand {
            ledger: Arc::clone(&self.ledger),
            engine: self.engine.clone(),
        }
    }

    pub fn wait(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub async fn op(&self, id: &OperationId) -> Operation {
        let detail = self.ledger.detail(id).await.expect("a detail");
        detail.expect("an operation").op
    }

    pub async fn row(&self, id: &OperationId) -> OperationRow {
        self.op(id).await.row
    }

    pub async fn accept(&self, call: &str, order: &str, cents: i64) -> Accepted {
        let accepted = self.ledger.accept_call(new_call(call, order, cents)).await;
        accepted.expect("accepted")
    }

    /// A call that was accepted and is leased to this world's engine.
    pub async fn leased(&self, call: &str, order: &str, cents: i64) -> LeasedCall {
        self.hand().leased(call, order, cents).await
    }

    /// A row that this call opened.
    pub async fn opened(&self, call: &LeasedCall) -> OperationId {
        self.hand().opened(call).await
    }

    /// A call, its row, and the right to drive it.
    pub async fn driven(&self, call: &str, order: &str, cents: i64) -> (LeasedCall, OperationId) {
        let leased = self.leased(call, order, cents).await;
        let id = self.opened(&leased).await;
        self.drive(&id, &leased).await;
        (leased, id)
    }

    pub async fn drive(&self, id: &OperationId, call: &LeasedCall) {
        let drive = self.ledger.drive(id, call, LEASE).await.expect("a drive");
        assert!(matches!(drive, Drive::Mine(_)), "{drive:?}");
    }

    pub async fn authorise(&self, id: &OperationId, call: &LeasedCall) -> Result<u32, Refusal> {
        self.hand().authorise(id, call).await
    }

    /// One attempt with this end.
    pub async fn attempt(&self, id: &OperationId, call: &LeasedCall, outcome: Outcome) -> Step {
        let number = self.authorise(id, call).await.expect("authorised");
        self.end(id, number, outcome).await
    }

    pub async fn end(&self, id: &OperationId, attempt: u32, outcome: Outcome) -> Step {
        let event = Event::Finished {
            attempt,
            outcome,
            taken: false,
        };
        self.apply(id, event).await.expect("recorded")
    }

    pub async fn apply(&self, id: &OperationId, event: Event) -> Result<Step, Refusal> {
        self.ledger
            .apply(id, event)
            .await
            .expect("the store answers")
    }

    /// The answer, a moment after whatever settled the row.
    pub async fn finish(&self, call: &LeasedCall) -> ToolResult {
        self.wait(Duration::from_millis(1));
        let finished = self.ledger.finish_call(call).await.expect("finished");
        finished.expect("the lease holds")
    }

    /// The seed's good story: accepted, opened, sent once, refunded, answered.
    pub async fn refunded(&self, call: &str, order: &str, cents: i64) -> OperationId {
        let (leased, id) = self.driven(call, order, cents).await;
        let outcome = succeeded(&self.row(&id).await);
        self.attempt(&id, &leased, outcome).await;
        assert_eq!(self.finish(&leased).await.status(), "refunded");
        id
    }

    /// One attempt that ended with a 500: unknown (R41), answered `checking`.
    pub async fn unknown(&self, call: &str, order: &str, cents: i64) -> OperationId {
        let (leased, id) = self.driven(call, order, cents).await;
        self.attempt(&id, &leased, server_error()).await;
        assert_eq!(self.finish(&leased).await.status(), "checking");
        id
    }

    /// Evidence from outside.
    pub async fn observe(&self, id: &OperationId, source: Source, seen: Lookup) -> Step {
        let actor = match source {
            Source::Webhook => Actor::Webhook,
            Source::Reconciler => Actor::Reconciler,
            Source::ReviewLookup | Source::TypedRef => {
                Actor::Reviewer("ann".parse().expect("a name"))
            }
            Source::Attempt | Source::EngineLookup => Actor::Engine,
        };
        let observed = Observed {
            source,
            actor,
            seen,
        };
        let step = self.apply(id, Event::Observed(observed)).await;
        step.expect("observed")
    }

    /// A complete scan of the payment that found nothing.
    pub async fn nothing_there(&self, id: &OperationId) -> Step {
        let seen = Lookup::Listed {
            began_at: self.clock.now(),
            complete: true,
            objects: Vec::new(),
        };
        self.observe(id, Source::ReviewLookup, seen).await
    }

    pub async fn decide(&self, id: &OperationId, by: &Person, act: Act) -> Result<Step, Refusal> {
        let looked_at = LookedAt::of(&self.row(id).await);
        self.apply(id, decision(by, act, Some(looked_at))).await
    }
}

/// One engine's handle.
pub struct Hand {
    pub ledger: SharedLedger,
    pub engine: EngineId,
}

impl Hand {
    pub async fn lease(&self, call: &str) -> Option<LeasedCall> {
        let (agent, id) = (agent("agent"), call_id(call));
        let leased = self
            .ledger
            .lease_call(&self.engine, LEASE, &agent, &id)
            .await;
        leased.expect("the store answers")
    }

    pub async fn leased(&self, call: &str, order: &str, cents: i64) -> LeasedCall {
        let accepted = self.ledger.accept_call(new_call(call, order, cents)).await;
        accepted.expect("accepted");
        self.lease(call).await.expect("nobody has it")
    }

    /// Step 3 to 5, with a provider that has captured 1000.00 and refunded nothing.
    pub async fn open(&self, call: &LeasedCall) -> Opening {
        let mark = self.mark(call).await;
        self.open_with(call, mark).await
    }

    /// The mark that a caller has before it reads the provider.
    pub async fn mark(&self, call: &LeasedCall) -> String {
        let got = self.ledger.get(&call.call.tool, &args(call), None).await;
        got.expect("got").mark
    }

    pub async fn open_with(&self, call: &LeasedCall, mark: String) -> Opening {
        let opened = self.ledger.open(call, open_row(call, mark)).await;
        opened.expect("the store answers")
    }

    pub async fn opened(&self, call: &LeasedCall) -> OperationId {
        match self.open(call).await {
            Opening::Opened(id) => id,
            other => panic!("not opened: {other:?}"),
        }
    }

    pub async fn authorise(&self, id: &OperationId, call: &LeasedCall) -> Result<u32, Refusal> {
        let step = self.ledger.authorise(id, call).await;
        match step.expect("the store answers")?.next {
            Next::Send { attempt } => Ok(attempt),
            next => panic!("authorised without sending: {next:?}"),
        }
    }
}

pub fn engine(n: u128) -> EngineId {
    EngineId::from_uuid(Uuid::from_u128(n))
}

pub fn new_call(call: &str, order: &str, cents: i64) -> NewCall {
    call_with(
        call,
        &json!({ "amount_cents": cents, "currency": "usd", "order_id": order }),
    )
}

pub fn call_with(call: &str, arguments: &serde_json::Value) -> NewCall {
    NewCall {
        id: call_id(call),
        agent: agent("agent"),
        tool: tool(),
        arguments: arguments.to_string(),
        session: Some("conversation".parse().expect("a session")),
    }
}

pub fn args(call: &LeasedCall) -> Arguments {
    let json = serde_json::from_str(&call.call.arguments).expect("JSON");
    RefundArguments::parse(&json).expect("arguments").into()
}

/// What an engine brings to open a row for this call.
pub fn open_row(call: &LeasedCall, mark: String) -> OpenRow {
    let arguments = args(call);
    let id = OperationId::from_uuid(Uuid::new_v4());
    let request = format!(
        "amount={}&metadata[operation_id]={id}",
        arguments.money.expect("money").minor()
    );
    OpenRow {
        key: IdempotencyKey::from_uuid(Uuid::new_v4()),
        tool: call.call.tool.clone(),
        provider: stripe(),
        resolved: Some(Resolved {
            payment: payment_of(arguments.order.as_ref().expect("an order").as_str()),
            charge: None,
            currency: arguments.money.expect("money").currency(),
            captured_minor: 100_000,
            refunded_minor: 0,
            refunds: Vec::new(),
        }),
        request: request.into_bytes(),
        id,
        arguments,
        mark,
    }
}

/// The provider's object of a row, in this state.
pub fn object(row: &OperationRow, id: &str, status: ObjectStatus) -> ProviderObject {
    ProviderObject {
        id: id.parse().expect("a provider id"),
        operation: Some(row.id.clone()),
        payment: row.payment.clone(),
        charge: row.charge.clone(),
        amount_minor: row.minor(),
        currency: row.currency(),
        status,
        created_at: row.created_at,
        failure_reason: None,
    }
}

/// The row's own refund id.
pub fn refund_id(row: &OperationRow) -> String {
    format!(
        "re_{}_{}",
        row.order_id.as_ref().expect("an order"),
        row.minor().expect("money")
    )
}

pub fn succeeded(row: &OperationRow) -> Outcome {
    with_object(
        OutcomeClass::Succeeded,
        object(row, &refund_id(row), ObjectStatus::Succeeded),
    )
}

pub fn pending(row: &OperationRow) -> Outcome {
    with_object(
        OutcomeClass::Pending,
        object(row, &refund_id(row), ObjectStatus::Pending),
    )
}

pub fn with_object(class: OutcomeClass, object: ProviderObject) -> Outcome {
    Outcome {
        http_status: Some(200),
        request_id: Some("req_1".into()),
        object: Some(object),
        ..Outcome::of(class)
    }
}

pub fn lost() -> Outcome {
    Outcome::of(OutcomeClass::SideEffectUnknown).because("the connection was lost")
}

pub fn server_error() -> Outcome {
    http(OutcomeClass::ServerError, 500)
}

pub fn refused() -> Outcome {
    http(OutcomeClass::ValidationFailure, 400).because("the charge is disputed")
}

pub fn limited() -> Outcome {
    Outcome {
        limiter: true,
        ..http(OutcomeClass::RetryableFailure, 429)
    }
}

pub fn http(class: OutcomeClass, status: u16) -> Outcome {
    Outcome {
        http_status: Some(status),
        ..Outcome::of(class)
    }
}

pub fn person(name: &str, role: Role) -> Person {
    Person {
        name: name.parse().expect("a name"),
        role,
        alone: false,
    }
}

pub fn ann() -> Person {
    person("ann", Role::Reviewer)
}

pub fn lea() -> Person {
    person("lea", Role::Lead)
}

pub fn close_as(decision: Closing) -> Act {
    Act::Close {
        decision,
        typed: None,
    }
}

pub fn decision(by: &Person, act: Act, looked_at: Option<LookedAt>) -> Event {
    Event::Decided(Decision {
        by: by.clone(),
        note: "seen in the provider's dashboard".into(),
        looked_at,
        act,
    })
}
