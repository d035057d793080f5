//! Builders for tests of the pure core: an operation that lives through events on a clock the test
//! moves. Every step taken here is checked against the invariants in `laws.rs`, whatever the test
//! itself is about.

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
use std::time::Duration;

use samekey::domain::answer;
use samekey::domain::evidence::{ObjectStatus, ProviderObject, Source};
use samekey::domain::guard::Role;
use samekey::domain::identity::Identity;
use samekey::domain::ids::{
    Actor, AgentName, CallId, OperationId, OrderId, PaymentId, ProviderName,
};
use samekey::domain::key::{IdempotencyKey, hex_digest};
use samekey::domain::money::{Currency, Money};
use samekey::domain::operation::{Closing, Effect, LookedAt, Operation, OperationRow, Status};
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::{Caps, Profile, ProviderKind, Terms, ToolPolicy, Words};
use samekey::domain::review_event::{Act, Decision, Fetched, Person, ReviewRefusal, TypedRef};
use samekey::domain::tool_call::ToolResult;
use samekey::domain::transition::{
    Authorise, Event, Lookup, Next, Observed, Refusal, Step, transition,
};
use samekey::domain::{Instant, later};
use uuid::Uuid;

use crate::laws;

/// So many seconds after the beginning of all tests.
pub fn at(seconds: u64) -> Instant {
    later(
        Instant::UNIX_EPOCH,
        Duration::from_secs(1_790_000_000 + seconds),
    )
}

pub fn usd() -> Currency {
    "usd".parse().expect("usd")
}

pub fn money(minor: i64) -> Money {
    Money::from_minor(minor, usd()).expect("an amount")
}

pub fn call(name: &str) -> CallId {
    CallId::parse(name).expect("a call id")
}

pub fn agent(name: &str) -> AgentName {
    AgentName::parse(name).expect("a name")
}

/// The seed's tool at a provider of `kind`: three attempts per call, six per operation (R45).
pub fn terms(kind: ProviderKind) -> Terms {
    Terms {
        policy: ToolPolicy::refund(ProviderName::parse("stripe").expect("a name")),
        profile: Profile {
            kind,
            ..Profile::stripe()
        },
    }
}

/// The same with limits in dollars.
pub fn with_caps(caps: Caps) -> Terms {
    let mut terms = terms(ProviderKind::Keyed);
    terms.policy.caps = BTreeMap::from([(usd(), caps)]);
    terms
}

/// Operation number `n`, of which every part but the order differs from the others.
pub fn op_id(n: u128) -> OperationId {
    OperationId::from_uuid(Uuid::from_u128(n))
}

/// A row as step 5 of the protocol writes it: open, with its key, and nothing sent.
pub fn new_row(n: u128, order: &str, amount: Money) -> OperationRow {
    let order_id = OrderId::parse(order).expect("an order");
    let request = format!("amount={}&metadata[operation]={}", amount.minor(), op_id(n));
    OperationRow {
        id: op_id(n),
        tool: "issue_refund".parse().expect("a tool"),
        identity: Identity::refund(&order_id, amount),
        payment: Some(payment_of(order)),
        order_id: Some(order_id),
        money: Some(amount),
        provider: ProviderName::parse("stripe").expect("a name"),
        charge: None,
        after: None,
        status: Status::Open,
        effect: Effect::NotStarted,
        held: false,
        approved_by: None,
        contradicted: None,
        key: IdempotencyKey::from_uuid(Uuid::from_u128(n ^ 0xc41f_7a2e)),
        request_hash: hex_digest(request.as_bytes()),
        request: request.into_bytes(),
        attempts: 0,
        attempts_max: 6,
        key_created_at: at(0),
        key_expires_at: None,
        first_authorised_at: None,
        last_authorised_at: None,
        last_outcome: None,
        reason: None,
        failure: None,
        failure_text: None,
        verdict: None,
        provider_ref: None,
        pending_since: None,
        version: 1,
        corrections: 0,
        audit_seq: 1,
        created_at: at(0),
        updated_at: at(0),
        unknown_at: None,
        closed_at: None,
        closed_by: None,
        proposal: None,
        claim: None,
        snoozed_until: None,
    }
}

pub fn payment_of(order: &str) -> PaymentId {
    PaymentId::parse(&format!("pi_order_{order}")).expect("a payment")
}

/// One operation on its way, and the time.
#[derive(Clone)]
pub struct Story {
    pub op: Operation,
    pub terms: Terms,
    pub now: Instant,
}

impl Story {
    /// The seed's refund: order 4417, $38.00 (R3), just opened.
    pub fn seed() -> Self {
        Self::of(terms(ProviderKind::Keyed), 3800)
    }

    pub fn of(terms: Terms, minor: i64) -> Self {
        Self {
            op: Operation {
                row: new_row(0x5521, "4417", money(minor)),
                attempts: Vec::new(),
                evidence: Vec::new(),
            },
            terms,
            now: at(0),
        }
    }

    /// The same, waiting for a lead.
    pub fn held(terms: Terms, minor: i64) -> Self {
        let mut story = Self::of(terms, minor);
        story.op.row.held = true;
        story
    }

    /// One attempt whose answer was lost, then stopped by a person: unknown, effect possible.
    pub fn lost_and_stopped(terms: Terms, minor: i64) -> Self {
        let mut story = Self::of(terms, minor);
        story.attempt("toolu_01", timeout());
        if story.status() == Status::Open {
            story.decide(&ann(), Act::Stop).expect("stopped");
        }
        story
    }

    pub fn wait(&mut self, seconds: u64) -> &mut Self {
        self.now = later(self.now, Duration::from_secs(seconds));
        self
    }

    /// What would happen, checked against the laws.
    pub fn try_event(&self, event: &Event) -> Result<Step, Refusal> {
        let result = transition(&self.op, event, &self.terms, self.now);
        if let Ok(step) = &result {
            laws::check(&self.op, event, step, &self.terms, self.now);
        }
        result
    }

    pub fn apply(&mut self, event: &Event) -> Result<Next, Refusal> {
        let step = self.try_event(event)?;
        self.op = step.op;
        for entry in &mut self.op.evidence {
            entry.stored = true;
        }
        Ok(step.next)
    }

    pub fn authorise(&mut self, name: &str) -> Result<u32, Refusal> {
        match self.apply(&Event::Authorise(allowed(name)))? {
            Next::Send { attempt } => Ok(attempt),
            next => panic!("authorised without sending: {next:?}"),
        }
    }

    pub fn end(&mut self, attempt: u32, outcome: Outcome) -> Next {
        let event = Event::Finished {
            attempt,
            outcome,
            taken: false,
        };
        self.apply(&event).expect("an attempt of this operation")
    }

    /// One attempt of `name` that ends a second later.
    pub fn attempt(&mut self, name: &str, outcome: Outcome) -> Next {
        let number = self.authorise(name).expect("authorised");
        self.wait(1).end(number, outcome)
    }

    /// A whole call as an engine drives it: attempts until the row is settled, the call's own are
    /// spent or the next step is not another attempt. Takes what the provider does from `outcomes`.
    pub fn tool_call(&mut self, name: &str, outcomes: &mut Vec<Outcome>) -> ToolResult {
        while let Ok(number) = self.authorise(name) {
            let outcome = outcomes.remove(0);
            let next = self.wait(1).end(number, outcome);
            if !matches!(next, Next::Retry { .. }) {
                break;
            }
        }
        self.answer()
    }

    pub fn answer(&self) -> ToolResult {
        answer::of(&self.op.row, Words::REFUND)
    }

    /// Evidence; what says nothing new changes nothing.
    pub fn observe(&mut self, source: Source, seen: Lookup) -> Next {
        match self.apply(&observed(source, seen)) {
            Ok(next) => next,
            Err(Refusal::NothingNew) => Next::Nothing,
            Err(other) => panic!("evidence met {other}"),
        }
    }

    /// A complete list that began just now.
    pub fn list(&self, objects: &[ProviderObject]) -> Lookup {
        Lookup::Listed {
            began_at: self.now,
            complete: true,
            objects: objects.iter().map(|o| (o.clone(), false)).collect(),
        }
    }

    pub fn sweep(&mut self) -> Result<Next, Refusal> {
        self.apply(&Event::Swept)
    }

    /// A decision on the row as it is now, with a note.
    pub fn decide(&mut self, by: &Person, act: Act) -> Result<Next, ReviewRefusal> {
        let version = self.op.row.version;
        self.decide_on(version, by, act)
    }

    pub fn decide_on(
        &mut self,
        version: i64,
        by: &Person,
        act: Act,
    ) -> Result<Next, ReviewRefusal> {
        let looked_at = LookedAt {
            version,
            ..LookedAt::of(&self.op.row)
        };
        match self.apply(&Event::Decided(decision(by, looked_at, act))) {
            Ok(next) => Ok(next),
            Err(Refusal::Review(refusal)) => Err(refusal),
            Err(other) => panic!("a person met {other}"),
        }
    }

    /// Our object, as the provider has it.
    pub fn ours(&self, id: &str, status: ObjectStatus) -> ProviderObject {
        object_of(&self.op.row, id, status, self.now)
    }

    /// An object like ours without our mark, as a refund in the Dashboard makes.
    pub fn unmarked(&self, id: &str) -> ProviderObject {
        ProviderObject {
            operation: None,
            ..self.ours(id, ObjectStatus::Succeeded)
        }
    }

    pub fn status(&self) -> Status {
        self.op.row.status
    }

    /// Waits until a closing as failed may be decided, and a complete list proves absence.
    pub fn wait_until_decidable(&mut self) -> &mut Self {
        self.wait(2 + 10 + 600)
    }
}

pub fn object_of(
    row: &OperationRow,
    id: &str,
    status: ObjectStatus,
    created_at: Instant,
) -> ProviderObject {
    ProviderObject {
        id: id.parse().expect("an id"),
        operation: Some(row.id.clone()),
        payment: row.payment.clone(),
        charge: None,
        amount_minor: row.minor(),
        currency: row.currency(),
        status,
        created_at,
        failure_reason: None,
    }
}

/// Everything outside the row allows an attempt.
pub fn allowed(name: &str) -> Authorise {
    Authorise {
        agent: agent("northwind"),
        call: call(name),
        lease: true,
        clock: true,
        contradicted: false,
        paused: false,
        circuit: true,
        token: Ok(()),
    }
}

pub fn observed(source: Source, seen: Lookup) -> Event {
    let actor = match source {
        Source::ReviewLookup | Source::TypedRef => Actor::Reviewer(ann().name),
        Source::Webhook => Actor::Webhook,
        Source::Reconciler => Actor::Reconciler,
        Source::Attempt | Source::EngineLookup => Actor::Engine,
    };
    Event::Observed(Observed {
        source,
        actor,
        seen,
    })
}

pub fn event_of(object: &ProviderObject) -> Lookup {
    Lookup::One {
        object: object.clone(),
        taken: false,
    }
}

pub fn unreachable() -> Lookup {
    Lookup::Unreachable {
        why: "connection refused".into(),
    }
}

// --- outcomes -------------------------------------------------------------------------------------

pub fn timeout() -> Outcome {
    Outcome::of(OutcomeClass::SideEffectUnknown).because("timeout")
}

/// 409: the key is being worked on.
pub fn in_progress() -> Outcome {
    Outcome::of(OutcomeClass::KeyInProgress)
}

/// A 429 of a limiter, before the key and before any effect (S5).
pub fn limited() -> Outcome {
    Outcome {
        limiter: true,
        ..Outcome::of(OutcomeClass::RetryableFailure)
    }
}

pub fn refusal() -> Outcome {
    Outcome::of(OutcomeClass::ValidationFailure).because("the charge is disputed")
}

pub fn already_refunded() -> Outcome {
    Outcome {
        already_refunded: true,
        ..refusal()
    }
}

/// A 2xx with `object`.
pub fn reply(class: OutcomeClass, object: ProviderObject) -> Outcome {
    Outcome {
        http_status: Some(200),
        object: Some(object),
        ..Outcome::of(class)
    }
}

// --- people ---------------------------------------------------------------------------------------

fn person(name: &str, role: Role) -> Person {
    Person {
        name: name.parse().expect("a name"),
        role,
        alone: false,
    }
}

/// A reviewer.
pub fn ann() -> Person {
    person("ann", Role::Reviewer)
}

/// A lead.
pub fn lea() -> Person {
    person("lea", Role::Lead)
}

/// Another lead.
pub fn max() -> Person {
    person("max", Role::Lead)
}

/// The OS user where no reviewers are configured.
pub fn alone() -> Person {
    Person {
        alone: true,
        ..person("root", Role::Lead)
    }
}

pub fn decision(by: &Person, looked_at: LookedAt, act: Act) -> Decision {
    Decision {
        by: by.clone(),
        note: "looked at the Dashboard".into(),
        looked_at: Some(looked_at),
        act,
    }
}

pub fn close_as(decision: Closing) -> Act {
    Act::Close {
        decision,
        typed: None,
    }
}

/// Closing as succeeded with a typed provider id.
pub fn close_with(id: &str, fetched: Fetched) -> Act {
    Act::Close {
        decision: Closing::Succeeded,
        typed: Some(TypedRef {
            id: id.parse().expect("an id"),
            fetched,
        }),
    }
}

pub fn fetched(object: ProviderObject) -> Fetched {
    Fetched::Object {
        object,
        taken: false,
    }
}

pub const APPROVE: Act = Act::Approve { caps: None };
