//! Rows that were there before the demo began, for looking at long lists.
//!
//! A new ledger is made with them in bulk (`ledger::sqlite::fill`), spread over the past quarter of a
//! year; a demo's ledger that exists gets them through its own doors, now. Their orders (`P0000001` …)
//! belong to no simulated customer, and the simulated provider knows nothing of their refunds: a
//! lookup of one finds nothing.
//!
//! Owns: what those rows look like. Tests: `tests/demo.rs`, `tests/ledger/filling.rs`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use uuid::Uuid;

use super::DemoError;
use super::stage::Stage;
use crate::domain::arguments::Arguments;
use crate::domain::evidence::{ObjectStatus, ProviderObject};
use crate::domain::ids::{
    AgentName, CallId, EngineId, OperationId, OrderId, PaymentId, ProviderRef, SessionId, ToolName,
};
use crate::domain::key::IdempotencyKey;
use crate::domain::opening::Resolved;
use crate::domain::outcome::{Outcome, OutcomeClass};
use crate::domain::policy::Terms;
use crate::domain::tool_call::RefundArguments;
use crate::domain::transition::Event;
use crate::domain::{Instant, earlier, later};
use crate::ledger::sqlite::{self, Past, Times};
use crate::ledger::{Accepted, Drive, LeasedCall, LedgerError, NewCall, OpenRow, Opening};
use crate::provider::{Asked, SharedProvider};

/// How long the filling engine may hold a call (virtual time).
const LEASE: Duration = Duration::from_hours(1);
/// How far back the rows of a new ledger reach.
const SPAN: Duration = Duration::from_hours(90 * 24);
/// Open rows are younger than this: the key of an older one has run out.
const RECENT: Duration = Duration::from_hours(23);

/// What a prefilled row asks for, and how it ended.
struct Story {
    call: NewCall,
    row: OpenRow,
    outcome: Outcome,
}

/// Makes up the stories of `rows` rows.
#[derive(Clone)]
pub(super) struct Stories {
    tool: ToolName,
    provider: SharedProvider,
    /// The number of the first.
    pub from: u64,
    rows: u64,
    now: Instant,
}

/// How a row ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Refunded,
    Failed,
    Unknown,
    Open,
}

impl Stories {
    pub fn new(tool: &ToolName, provider: &SharedProvider, rows: u32, now: Instant) -> Self {
        Self {
            tool: tool.clone(),
            provider: Arc::clone(provider),
            from: 0,
            rows: u64::from(rows),
            now,
        }
    }

    /// Rows that are open or unknown, each: one in two thousand, but some in a short list too.
    fn few(&self) -> u64 {
        (self.rows / 2_000).max((self.rows / 20).min(5)).max(1)
    }

    /// The last rows, among which the open ones are.
    fn recent(&self) -> u64 {
        (self.few() * 20).min(self.rows)
    }

    fn ending(&self, index: u64) -> Ending {
        let every = (self.rows / self.few()).max(1);
        let behind = index.checked_sub(self.rows - self.recent());
        if behind.is_some_and(|n| (n + 1) % (self.recent() / self.few()).max(1) == 0) {
            Ending::Open
        } else if index % every == every / 2 {
            Ending::Unknown
        } else if index % 25 == 7 {
            Ending::Failed
        } else {
            Ending::Refunded
        }
    }

    /// When the row was asked for, before some jitter; later rows later.
    fn asked_at(&self, index: u64) -> Instant {
        let old = self.rows - self.recent();
        let (end, span, part, of) = match index.checked_sub(old) {
            None => (
                earlier(self.now, RECENT),
                SPAN.saturating_sub(RECENT),
                index,
                old,
            ),
            Some(n) => (
                earlier(self.now, Duration::from_mins(1)),
                RECENT,
                n,
                self.recent(),
            ),
        };
        let micros = u128::from(of - part) * span.as_micros() / u128::from(of.max(1));
        earlier(
            end,
            Duration::from_micros(u64::try_from(micros).unwrap_or(0)),
        )
    }

    fn times(&self, index: u64, lots: &mut ChaCha8Rng) -> Times {
        let ms = Duration::from_millis;
        let accepted = later(self.asked_at(index), ms(lots.random_range(0..1_500)));
        let begun = later(accepted, ms(3));
        let opened = later(begun, ms(lots.random_range(20..60)));
        let authorised = later(opened, ms(4));
        let answer = match self.ending(index) {
            Ending::Open => 10_000,
            Ending::Refunded | Ending::Failed | Ending::Unknown => lots.random_range(80..900),
        };
        let finished = later(authorised, ms(answer));
        let executed = later(finished, ms(2));
        Times {
            accepted,
            begun,
            opened,
            authorised,
            finished,
            executed,
            delivered: later(executed, ms(5)),
        }
    }

    fn story(
        &self,
        index: u64,
        made_at: Instant,
        lots: &mut ChaCha8Rng,
    ) -> Result<Story, DemoError> {
        let number = self.from + index;
        let order = OrderId::parse(&format!("P{number:07}"))?;
        let amount = lots.random_range(100..20_000);
        let arguments = json!({ "amount_cents": amount, "currency": "usd", "order_id": order });
        let args = RefundArguments::parse(&arguments);
        let args = args.map_err(|e| DemoError::Restless(e.to_string()))?;
        let money = args.money;
        let args = Arguments::from(args);
        let resolved = Resolved {
            payment: PaymentId::parse(&format!("pi_order_{order}"))?,
            charge: None,
            currency: money.currency(),
            captured_minor: 100_000,
            refunded_minor: 0,
            refunds: Vec::new(),
        };
        let id = OperationId::from_uuid(drawn(lots));
        let object = ProviderObject {
            id: ProviderRef::parse(&format!("re_p{number:07}"))?,
            operation: Some(id.clone()),
            payment: Some(resolved.payment.clone()),
            charge: None,
            amount_minor: Some(money.minor()),
            currency: Some(money.currency()),
            status: ObjectStatus::Succeeded,
            created_at: made_at,
            failure_reason: None,
        };
        let call = NewCall {
            id: CallId::parse(&format!("toolu_p{number:07}"))?,
            agent: AgentName::parse("earlier")?,
            tool: self.tool.clone(),
            arguments: arguments.to_string(),
            // Four of one customer in one conversation.
            session: Some(SessionId::parse(&format!("chat_p{:07}", number / 4))?),
        };
        let asked = Asked {
            tool: &self.tool,
            operation: &id,
            arguments: &args,
            resolved: Some(&resolved),
        };
        let request = self.provider.request(&asked);
        let request = request.map_err(|e| DemoError::Restless(e.to_string()))?;
        let row = OpenRow {
            key: IdempotencyKey::from_uuid(drawn(lots)),
            tool: self.tool.clone(),
            provider: self.provider.name().clone(),
            request,
            arguments: args,
            resolved: Some(resolved),
            mark: String::new(),
            id,
        };
        let outcome = self.ending(index).outcome(object);
        Ok(Story { call, row, outcome })
    }
}

/// A random UUID from the run's own lots.
fn drawn(lots: &mut ChaCha8Rng) -> Uuid {
    uuid::Builder::from_random_bytes(lots.random()).into_uuid()
}

impl Ending {
    fn outcome(self, object: ProviderObject) -> Outcome {
        let (class, status) = match self {
            Self::Refunded => (OutcomeClass::Succeeded, Some(200)),
            Self::Failed => (OutcomeClass::ValidationFailure, Some(400)),
            Self::Unknown => (OutcomeClass::ServerError, Some(500)),
            Self::Open => (OutcomeClass::SideEffectUnknown, None),
        };
        Outcome {
            http_status: status,
            object: (self == Self::Refunded).then_some(object),
            ..Outcome::of(class)
        }
    }
}

/// Makes the new ledger at `path` with the rows as its past.
pub(super) async fn begin(
    path: &Path,
    terms: &Arc<BTreeMap<ToolName, Terms>>,
    stories: &Stories,
) -> Result<(), DemoError> {
    if stories.rows == 0 {
        return Ok(());
    }
    let (engine, stories) = (EngineId::parse("eng_earlier")?, stories.clone());
    let mut lots = ChaCha8Rng::from_os_rng();
    let past = (0..stories.rows).map(move |index| {
        let at = stories.times(index, &mut lots);
        let Story { call, row, outcome } = stories
            .story(index, at.finished, &mut lots)
            .map_err(|e| LedgerError::Constraint(e.to_string()))?;
        Ok(Past {
            call,
            engine: engine.clone(),
            row,
            outcome,
            at,
        })
    });
    sqlite::fill(path, Arc::clone(terms), past).await?;
    Ok(())
}

/// Adds the rows to a ledger that exists, through its doors.
pub(super) async fn add(stage: &Stage, stories: &Stories) -> Result<(), DemoError> {
    let engine = EngineId::parse("eng_earlier")?;
    let mut lots = ChaCha8Rng::from_os_rng();
    for index in 0..stories.rows {
        let now = stage.limits.clock.now();
        let story = stories.story(index, now, &mut lots)?;
        one(stage, &engine, story).await?;
    }
    Ok(())
}

async fn one(stage: &Stage, engine: &EngineId, story: Story) -> Result<(), DemoError> {
    let Story {
        call,
        mut row,
        outcome,
    } = story;
    let (agent, id) = (call.agent.clone(), call.id.clone());
    let leased = match stage.ledger.accept_call(call).await? {
        Accepted::New(_) => stage.ledger.lease_call(engine, LEASE, &agent, &id).await?,
        Accepted::Known(_) | Accepted::Conflict => None,
    };
    let Some(call) = leased else {
        return Ok(());
    };
    let rows = stage.ledger.get(&stage.tool, &row.arguments, None).await?;
    row.mark = rows.mark;
    if let Opening::Opened(id) = stage.ledger.open(&call, row).await? {
        send(stage, &call, &id, outcome).await?;
    }
    stage.ledger.finish_call(&call).await?;
    stage.ledger.delivered(&agent, &id).await?;
    Ok(())
}

async fn send(
    stage: &Stage,
    call: &LeasedCall,
    id: &OperationId,
    outcome: Outcome,
) -> Result<(), DemoError> {
    if let Drive::Mine(_) = stage.ledger.drive(id, call, LEASE).await?
        && stage.ledger.authorise(id, call).await?.is_ok()
    {
        let finished = Event::Finished {
            attempt: 1,
            outcome,
            taken: false,
        };
        // A refusal would mean that somebody else had ended the attempt; nobody else is here.
        let _ = stage.ledger.apply(id, finished).await?;
    }
    Ok(())
}
