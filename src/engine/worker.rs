//! One tool call from its lease to its answer: validate, get, check, open, drive, answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};

use super::EngineDeps;
use super::drive::{Driven, drive};
use super::lease::Lease;
use crate::domain::arguments::Arguments;
use crate::domain::evidence::Source;
use crate::domain::ids::{Actor, EngineId, OperationId, ProviderName};
use crate::domain::key::IdempotencyKey;
use crate::domain::opening::{Got, Resolved};
use crate::domain::operation::Status;
use crate::domain::policy::{CircuitState, Terms};
use crate::domain::tool_call::{RejectClass, ToolResult};
use crate::domain::transition::{Event, Observed};
use crate::domain::{Instant, later, since};
use crate::kill;
use crate::ledger::{Drive, LeasedCall, LedgerError, OpenRow, Opening, ReadFor, Stamp};
use crate::provider::{Asked, Reads, ResolveError, ResolveQuery, SharedProvider};

/// How often a changed order is read again before the call is turned away.
const OPENINGS: u32 = 3;

/// What all calls of one engine share.
pub(super) struct Shared {
    pub deps: EngineDeps,
    pub engine: EngineId,
    pub lease: Lease,
    pub permits: Arc<Semaphore>,
    /// Raised when the engine stops: waits end, nothing new is sent.
    pub stopping: watch::Receiver<bool>,
    /// Whether the ledger is bound to a provider; one lock each, so that none waits for another (L5).
    bound: BTreeMap<ProviderName, Mutex<bool>>,
}

impl Shared {
    pub(super) fn new(
        deps: EngineDeps,
        engine: EngineId,
        permits: Arc<Semaphore>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let lease = Lease::new(deps.config.lease, deps.clock.clone());
        let bound = deps.providers.keys();
        let bound = bound.map(|name| (name.clone(), Mutex::new(false)));
        Self {
            bound: bound.collect(),
            deps,
            engine,
            lease,
            permits,
            stopping,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.deps.clock.now()
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits, but not past a stop; answers whether the wait was whole.
    pub(super) async fn wait(&self, duration: Duration) -> bool {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            biased;
            () = raised(&mut stopping) => false,
            () = self.deps.clock.sleep(duration) => true,
        }
    }

    /// Looks at a provider for so long, out of the read budget.
    pub(super) fn looks(&self, provider: &ProviderName, time: Duration) -> Reads {
        super::reads(
            &self.deps.ledger,
            &self.deps.clock,
            provider,
            ReadFor::Look,
            time,
        )
    }

    /// Binds the ledger to the provider, once per engine, before anything can be sent.
    pub(super) async fn bind(
        &self,
        provider: &SharedProvider,
        reads: &Reads,
    ) -> Result<(), LedgerError> {
        let Some(bound) = self.bound.get(provider.name()) else {
            let why = format!("the provider {} is not configured", provider.name());
            return Err(LedgerError::Unreachable(why));
        };
        let mut bound = bound.lock().await;
        if *bound {
            return Ok(());
        }
        let known = self.deps.ledger.stamps().await?;
        let stamp = super::stamp(provider);
        // Before the first request, the account's included: a key of another mode is not even shown.
        stamp.fits(&known)?;
        let account = match provider.account(reads).await {
            Ok(account) => Some(account),
            Err(error) => {
                tracing::warn!(%error, "the provider's account is not known");
                None
            }
        };
        if account.is_none()
            && known
                .iter()
                .any(|k| k.provider == *provider.name() && k.account.is_some())
        {
            let why = "the provider does not say whose account this is";
            return Err(LedgerError::Unreachable(why.into()));
        }
        let stamp = Stamp {
            account: account.clone().flatten(),
            ..stamp
        };
        self.deps.ledger.bind(&stamp).await?;
        // A question that got no answer is asked again before the next row.
        *bound = account.is_some();
        Ok(())
    }
}

/// Waits until a flag is raised, or its owner is gone.
pub(super) async fn raised(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|raised| *raised).await;
}

/// How a call left the worker.
#[derive(Debug)]
pub(super) enum Left {
    Answered(Box<ToolResult>),
    /// Another engine has the call now.
    Lost,
    /// Given back because the engine stops.
    Released,
}

/// What a call needs on its way.
pub(super) struct Job<'a> {
    pub shared: &'a Shared,
    pub call: &'a LeasedCall,
    pub terms: &'a Terms,
    pub provider: &'a SharedProvider,
    /// When the call must be answered.
    pub deadline: Instant,
}

impl Job<'_> {
    pub(super) fn time_left(&self) -> Duration {
        since(self.shared.now(), self.deadline)
    }

    /// Reads of its provider that it cannot do without, within the call's time.
    pub(super) fn reads(&self) -> Reads {
        let deps = &self.shared.deps;
        let (name, time) = (self.provider.name(), self.time_left());
        super::reads(&deps.ledger, &deps.clock, name, ReadFor::Call, time)
    }
}

/// Where a call's row is, or that it already has its answer.
enum Place {
    Row(OperationId),
    Answered(Option<ToolResult>),
}

fn rejected(class: RejectClass, why: impl Into<crate::domain::text::SafeText>) -> ToolResult {
    ToolResult::rejected(class, why)
}

/// Drives one leased call to its answer. `permit` is given back while the call only waits.
pub(super) async fn run(
    shared: &Shared,
    call: &LeasedCall,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Left, LedgerError> {
    let config = &shared.deps.config;
    let begun = call.call.begun_at.unwrap_or(call.call.accepted_at);
    let answer = |result| shared.deps.ledger.answer_call(call, result);
    if call.call.operation.is_none() && since(call.call.accepted_at, begun) > config.call_ttl {
        let why = "the call waited too long before an engine took it; nothing was done";
        return Ok(left(answer(rejected(RejectClass::Unavailable, why)).await?));
    }
    let Some(terms) = shared.deps.terms.get(&call.call.tool) else {
        let why = format!("there is no tool {}", call.call.tool);
        return Ok(left(
            answer(rejected(RejectClass::ValidationFailure, why)).await?,
        ));
    };
    let Some(provider) = shared.deps.providers.get(&terms.policy.provider) else {
        let why = format!("provider {} is not configured", terms.policy.provider);
        return Ok(left(answer(rejected(RejectClass::Unavailable, why)).await?));
    };
    let arguments = serde_json::from_str(&call.call.arguments).unwrap_or_default();
    let args = match provider.arguments(&call.call.tool, &arguments) {
        Ok(args) => args,
        Err(e) => {
            return Ok(left(
                answer(rejected(RejectClass::ValidationFailure, e.0)).await?,
            ));
        }
    };
    // The ledger's clock may be minutes ahead of this one (I27): only spans are taken over from it.
    let spent = since(begun, call.leased_at);
    let deadline = later(shared.now(), config.call_timeout.saturating_sub(spent));
    let job = Job {
        shared,
        call,
        terms,
        provider,
        deadline,
    };
    let operation = match place(&job, &args).await? {
        Place::Row(id) => id,
        Place::Answered(result) => return Ok(left(result)),
    };
    carry(&job, &operation, permit).await
}

fn left(result: Option<ToolResult>) -> Left {
    result.map_or(Left::Lost, |r| Left::Answered(Box::new(r)))
}

/// Steps 3 to 5: the row that answers this call, or the answer of a call that gets none.
async fn place(job: &Job<'_>, args: &Arguments) -> Result<Place, LedgerError> {
    if let Some(id) = &job.call.call.operation {
        return Ok(Place::Row(id.clone()));
    }
    let ledger = &job.shared.deps.ledger;
    let answer = |result| async move {
        ledger
            .answer_call(job.call, result)
            .await
            .map(Place::Answered)
    };
    for _ in 0..OPENINGS {
        let rows = ledger.get(&job.call.call.tool, args, None).await?;
        match rows.got {
            Got::Row(id) => return Ok(Place::Row(id)),
            Got::Answer(result) => return answer(*result).await,
            Got::Nothing => {}
        }
        if let Some(why) = standing_still(job).await? {
            return answer(rejected(RejectClass::Unavailable, why)).await;
        }
        let resolved = match resolve(job, args).await {
            Ok(resolved) => resolved,
            Err(ResolveError::Refused(why)) => {
                return answer(rejected(RejectClass::ValidationFailure, why)).await;
            }
            Err(e @ ResolveError::Unreadable(_)) => {
                return answer(rejected(RejectClass::Unavailable, e.to_string())).await;
            }
        };
        let lots = &job.shared.deps.lots;
        let id = OperationId::from_uuid(lots.uuid());
        let asked = Asked {
            tool: &job.call.call.tool,
            operation: &id,
            arguments: args,
            resolved: resolved.as_ref(),
        };
        let request = match job.provider.request(&asked) {
            Ok(request) => request,
            Err(why) => return answer(rejected(RejectClass::ValidationFailure, why)).await,
        };
        let row = OpenRow {
            key: IdempotencyKey::from_uuid(lots.uuid()),
            tool: job.call.call.tool.clone(),
            provider: job.terms.policy.provider.clone(),
            request,
            id,
            arguments: args.clone(),
            resolved,
            mark: rows.mark,
        };
        match ledger.open(job.call, row).await {
            Ok(Opening::Opened(id) | Opening::Row(id)) => {
                kill::point("opened");
                return Ok(Place::Row(id));
            }
            Ok(Opening::Answer(result)) => return answer(*result).await,
            Ok(Opening::Changed) => {}
            // The loser of a race reads the winner's row (R21).
            Err(LedgerError::Constraint(why)) if why.contains("UNIQUE") => {}
            Err(error) => return Err(error),
        }
    }
    let why = "the order kept changing while the provider was read; nothing was done";
    answer(rejected(RejectClass::Unavailable, why)).await
}

/// Step 4: what the provider says of the order's payment, where it knows payments at all.
async fn resolve(job: &Job<'_>, args: &Arguments) -> Result<Option<Resolved>, ResolveError> {
    if !job.provider.resolves() {
        return Ok(None);
    }
    let Some(order) = &args.order else {
        return Err(ResolveError::Refused("the call names no order".into()));
    };
    let query = ResolveQuery {
        order: order.clone(),
        payment: args.payment.clone(),
        charge: args.charge.clone(),
    };
    let reads = job.reads();
    let asked = job.provider.resolve(&query, &reads);
    in_time(job, asked).await.map(Some)
}

/// What resolving gave, within the call's time.
async fn in_time(
    job: &Job<'_>,
    asked: impl Future<Output = Result<Resolved, ResolveError>>,
) -> Result<Resolved, ResolveError> {
    let limit = job.time_left();
    let answer = job.shared.deps.clock.timeout(limit, asked).await;
    answer.unwrap_or_else(|| {
        Err(ResolveError::Unreadable(
            "no answer within the call's time".into(),
        ))
    })
}

/// Why no row may be opened now, if so: paused, circuit open, clock, ledger bound elsewhere.
async fn standing_still(job: &Job<'_>) -> Result<Option<String>, LedgerError> {
    let ledger = &job.shared.deps.ledger;
    let tool = &job.call.call.tool;
    if let Some(state) = ledger.tools().await?.into_iter().find(|s| s.tool == *tool) {
        if let Some((_, why)) = state.paused {
            return Ok(Some(format!("the tool is paused: {why}")));
        }
        // While one attempt tries the provider out, the next new row has to wait; the first one is it.
        let standing = match state.circuit.state {
            CircuitState::Closed
            | CircuitState::Trial {
                operation: None, ..
            } => false,
            CircuitState::Open { .. }
            | CircuitState::Trial {
                operation: Some(_), ..
            } => true,
        };
        if standing {
            return Ok(Some("the provider has an outage; nothing was done".into()));
        }
    }
    if ledger.clock_alarm().await? {
        return Ok(Some("the clock cannot be trusted; nothing was done".into()));
    }
    match job.shared.bind(job.provider, &job.reads()).await {
        Ok(()) => Ok(None),
        Err(e @ LedgerError::Bound { .. }) => Ok(Some(e.to_string())),
        Err(e) => Err(e),
    }
}

/// Drives the row, or waits for the call that does, until this call has its answer.
async fn carry(
    job: &Job<'_>,
    operation: &OperationId,
    mut permit: Option<OwnedSemaphorePermit>,
) -> Result<Left, LedgerError> {
    let shared = job.shared;
    let ledger = &shared.deps.ledger;
    let mut changes = ledger.changed();
    loop {
        match ledger
            .drive(operation, job.call, shared.deps.config.lease)
            .await?
        {
            Drive::Settled => {
                follow(job, operation).await?;
                return Ok(left(ledger.finish_call(job.call).await?));
            }
            Drive::Broken(answer) => {
                return Ok(left(ledger.answer_call(job.call, *answer).await?));
            }
            Drive::Mine(op) => {
                // The row's own provider, whatever the tool is configured for by now (I3).
                let Some(provider) = shared.deps.providers.get(&op.row.provider) else {
                    tracing::error!(provider = %op.row.provider, "not configured; nothing is sent");
                    return Ok(left(ledger.finish_call(job.call).await?));
                };
                let job = Job { provider, ..*job };
                if let Err(error) = shared.bind(provider, &job.reads()).await {
                    tracing::error!(%error, "nothing is sent");
                    return Ok(left(ledger.finish_call(job.call).await?));
                }
                if permit.is_none() {
                    permit = Arc::clone(&shared.permits).acquire_owned().await.ok();
                }
                match drive(&job, *op).await? {
                    Driven::Done => return Ok(left(ledger.finish_call(job.call).await?)),
                    Driven::Stopped => {
                        ledger.release(job.call).await?;
                        return Ok(Left::Released);
                    }
                    // Whoever has it now gets a moment.
                    Driven::LeaseLost => {
                        shared.wait(shared.deps.config.poll).await;
                    }
                }
            }
            Drive::Joined => {
                permit = None;
                if let Some(gone) = joined(job, &mut changes).await? {
                    return Ok(gone);
                }
            }
        }
    }
}

/// An open row whose object is known waits for that object: one read-only look, within the budget, may
/// settle it before the call is answered.
async fn follow(job: &Job<'_>, operation: &OperationId) -> Result<(), LedgerError> {
    let shared = job.shared;
    let ledger = &shared.deps.ledger;
    let Some(row) = ledger.rows(std::slice::from_ref(operation)).await?.pop() else {
        return Ok(());
    };
    let Some(provider) = shared.deps.providers.get(&row.provider) else {
        return Ok(());
    };
    if row.status != Status::Open || row.provider_ref.is_none() {
        return Ok(());
    }
    let reads = shared.looks(&row.provider, job.time_left());
    // Nobody waits for it: without a read at hand the answer is as the row stands.
    if shared.bind(provider, &reads).await.is_err()
        || !matches!(reads.prepay(Duration::ZERO).await, Ok(Ok(())))
    {
        return Ok(());
    }
    let seen = provider.lookup(&row, &reads).await;
    let observed = Observed {
        source: Source::EngineLookup,
        actor: Actor::Engine,
        seen,
    };
    // Refused where the row moved on, which answers the call just as well.
    let _ = ledger.apply(operation, Event::Observed(observed)).await?;
    Ok(())
}

/// Waits for the driver's answer, for its end, or for one poll; `None` where it is worth another look.
async fn joined(
    job: &Job<'_>,
    changes: &mut watch::Receiver<u64>,
) -> Result<Option<Left>, LedgerError> {
    let shared = job.shared;
    let ledger = &shared.deps.ledger;
    let poll = shared.deps.config.poll;
    let until = later(shared.now(), poll);
    loop {
        let known = ledger.call(&job.call.call.agent, &job.call.call.id).await?;
        if let Some(result) = known.and_then(|c| c.result) {
            return Ok(Some(Left::Answered(Box::new(result))));
        }
        if job.time_left().is_zero() {
            return Ok(Some(left(ledger.finish_call(job.call).await?)));
        }
        if shared.is_stopping() {
            ledger.release(job.call).await?;
            return Ok(Some(Left::Released));
        }
        let wait = since(shared.now(), until).min(job.time_left());
        if wait.is_zero() {
            return Ok(None);
        }
        let mut stopping = shared.stopping.clone();
        tokio::select! {
            biased;
            () = raised(&mut stopping) => {}
            _ = changes.changed() => {}
            () = shared.deps.clock.sleep(wait) => {}
        }
    }
}
