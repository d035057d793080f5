//! `(Operation, Event, now) → Step or Refusal`: every rule about money is here.
//!
//! Engine, review, simulator checks and model checking call this one function; the ledger writes
//! the step it returns, with its one audit entry, in one transaction (I23). Decisions of people are
//! in [`super::review_event`], which this file calls. Nothing here fails halfway: a refusal changes
//! nothing.

use std::time::Duration;

use serde_json::json;

use super::attempt::{Attempt, AttemptResult};
use super::draft::Draft;
use super::evidence::{self, Bearing, ProviderObject, Seen, Source, Verdict};
use super::ids::{Actor, AgentName, CallId};
use super::operation::{Contradiction, FailureClass, Operation, Status, UnknownReason};
use super::outcome::{Outcome, OutcomeClass};
use super::policy::{ProviderKind, Terms};
use super::recovery::Branch;
use super::review_event::{self, Decision};
use super::text::SafeText;
use super::{Instant, later};

pub use super::step::{Action, AuditEntry, Next, Refusal, Step};

/// An accepted but unfinished object stays open for so long.
const PENDING_FOR: Duration = Duration::from_hours(35 * 24);
/// How long a searchable provider is asked before a row becomes unknown.
const LOOKUPS_FOR: Duration = Duration::from_hours(1);

/// Something that happened to an operation.
#[derive(Clone, Debug)]
pub enum Event {
    /// An engine wants to send.
    Authorise(Authorise),
    /// An attempt ended.
    Finished {
        attempt: u32,
        outcome: Outcome,
        taken: bool,
    },
    /// Whoever drove it is gone; what was in flight has no outcome of its own (R75).
    Interrupted,
    /// A lookup or webhook brought evidence.
    Observed(Observed),
    /// A provider id accepted while the provider was unreachable has been fetched.
    RefFetched {
        object: Option<ProviderObject>,
        taken: bool,
    },
    /// Its last call ends and nothing was ever authorised.
    NeverSent,
    /// Read again before the first send, the order has no room for it any more.
    NoLongerFits { why: SafeText },
    /// The sweeper looks for deadlines.
    Swept,
    /// A person decides.
    Decided(Decision),
}

/// What an authorise must find true, read in its own transaction (I7).
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, each read by its own query in the transaction"
)]
pub struct Authorise {
    pub agent: AgentName,
    pub call: CallId,
    /// The caller still holds the row's lease.
    pub lease: bool,
    /// The wall clock can be trusted.
    pub clock: bool,
    /// Some row of its order or payment is contradicted.
    pub contradicted: bool,
    pub paused: bool,
    /// The circuit lets it through.
    pub circuit: bool,
    /// A rate token was there, or how long until the next.
    pub token: Result<(), Duration>,
}

/// Evidence as it comes in.
#[derive(Clone, Debug)]
pub struct Observed {
    pub source: Source,
    pub actor: Actor,
    pub seen: Lookup,
}

/// What a lookup brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The payment's objects; `complete` when the list was read to its end. `taken` marks those
    /// attached to another operation.
    Listed {
        began_at: Instant,
        complete: bool,
        objects: Vec<(ProviderObject, bool)>,
    },
    /// One object, by an event.
    One { object: ProviderObject, taken: bool },
    /// No answer.
    Unreachable { why: SafeText },
}

/// Applies `event` to `op`.
///
/// # Errors
/// The reason why nothing changes.
pub fn transition(
    op: &Operation,
    event: &Event,
    terms: &Terms,
    now: Instant,
) -> Result<Step, Refusal> {
    match event {
        Event::Authorise(facts) => authorise(op, facts, terms, now),
        Event::Finished {
            attempt,
            outcome,
            taken,
        } => finished(op, *attempt, outcome, *taken, terms, now),
        Event::Interrupted => {
            let open = op.attempts.iter().find(|a| a.in_flight());
            let number = open.ok_or(Refusal::NothingDue)?.number;
            finished(op, number, &Outcome::interrupted(), false, terms, now)
        }
        Event::Observed(observed) => observe(op, observed, terms, now),
        Event::RefFetched { object, taken } => ref_fetched(op, object.as_ref(), *taken, terms, now),
        Event::NeverSent => {
            untouched(op)?;
            let mut d = Draft::new(op, now);
            d.fail(
                &Actor::Engine,
                FailureClass::Unavailable,
                Some("nothing was sent".into()),
            );
            Ok(d.step(
                terms,
                Actor::Engine,
                Action::NeverSent,
                json!({}),
                Next::Settled,
            ))
        }
        Event::NoLongerFits { why } => {
            untouched(op)?;
            let mut d = Draft::new(op, now);
            d.fail(
                &Actor::Engine,
                FailureClass::ValidationFailure,
                Some(why.clone()),
            );
            let detail = json!({ "why": why });
            Ok(d.step(
                terms,
                Actor::Engine,
                Action::NoLongerFits,
                detail,
                Next::Settled,
            ))
        }
        Event::Swept => swept(op, terms, now),
        Event::Decided(decision) => {
            review_event::decide(op, decision, terms, now).map_err(Refusal::Review)
        }
    }
}

/// Whether `op` is open, not held, and nothing of it can exist at the provider: no attempt was ever
/// counted, and no evidence shows an object of ours.
fn untouched(op: &Operation) -> Result<(), Refusal> {
    let row = &op.row;
    let untouched =
        row.status == Status::Open && !row.held && row.attempts == 0 && row.provider_ref.is_none();
    untouched.then_some(()).ok_or(Refusal::NothingDue)
}

/// Whether everything allows one more attempt (I7), the facts of the row before those of the tool.
fn may_authorise(
    op: &Operation,
    f: &Authorise,
    terms: &Terms,
    now: Instant,
) -> Result<(), Refusal> {
    let row = &op.row;
    let spent = op
        .attempts
        .iter()
        .filter(|a| a.call == f.call && a.agent == f.agent)
        .count();
    let max_per_call = usize::try_from(terms.policy.max_per_call).unwrap_or(usize::MAX);
    let may_have_left = op.attempts.iter().any(Attempt::may_have_left);
    let refusal = if !f.clock {
        Some(Refusal::ClockAlarm)
    } else if row.status != Status::Open {
        Some(Refusal::NotOpen { status: row.status })
    } else if row.held {
        Some(Refusal::Held)
    } else if f.contradicted || row.contradicted.is_some() {
        Some(Refusal::Contradicted)
    } else if row.provider_ref.is_some() {
        Some(Refusal::Identified)
    } else if op.in_flight() {
        Some(Refusal::InFlight)
    } else if !f.lease {
        Some(Refusal::LeaseLost)
    } else if op.needs_lookup() {
        Some(Refusal::LookupFirst)
    } else if row.attempts >= row.attempts_max {
        Some(Refusal::OperationSpent)
    } else if spent >= max_per_call {
        Some(Refusal::CallSpent)
    } else if row.key_expires_at.is_some_and(|deadline| now >= deadline) || row.clock_ran_back(now)
    {
        Some(Refusal::KeyExpired)
    } else {
        match terms.profile.kind {
            _ if op.needs_search(terms) => Some(Refusal::LookupFirst),
            ProviderKind::None if may_have_left => Some(Refusal::OperationSpent),
            ProviderKind::Keyed | ProviderKind::Lookup | ProviderKind::None => None,
        }
    };
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    if f.paused {
        return Err(Refusal::Paused);
    }
    if !f.circuit {
        return Err(Refusal::CircuitOpen);
    }
    f.token.map_err(|wait| Refusal::RateLimited { wait })
}

fn authorise(op: &Operation, f: &Authorise, terms: &Terms, now: Instant) -> Result<Step, Refusal> {
    may_authorise(op, f, terms, now)?;
    let mut d = Draft::new(op, now);
    let number = op.row.attempts.saturating_add(1);
    d.op.row.attempts = number;
    d.op.row.first_authorised_at.get_or_insert(now);
    d.op.row.last_authorised_at = Some(now);
    let deadline = terms.profile.key_expires_at(now);
    d.op.row.key_expires_at.get_or_insert(deadline);
    d.op.attempts.push(Attempt {
        number,
        agent: f.agent.clone(),
        call: f.call.clone(),
        authorised_at: now,
        result: None,
    });
    let detail = json!({ "attempt": number, "call": f.call });
    Ok(d.step(
        terms,
        Actor::Engine,
        Action::Authorised,
        detail,
        Next::Send { attempt: number },
    ))
}

fn finished(
    op: &Operation,
    number: u32,
    outcome: &Outcome,
    taken: bool,
    terms: &Terms,
    now: Instant,
) -> Result<Step, Refusal> {
    let mut d = Draft::new(op, now);
    let attempt = d.op.attempts.iter_mut().find(|a| a.number == number);
    let attempt = attempt.ok_or(Refusal::NoSuchAttempt)?;
    let first = attempt.result.is_none();
    let interrupted = attempt
        .result
        .as_ref()
        .is_some_and(AttemptResult::was_interrupted);
    let ours = outcome
        .object
        .as_ref()
        .is_some_and(|o| o.bearing(&op.row, taken) == Some(Bearing::Ours));
    // A reply about an object that is not ours is no success, whatever it claims.
    let class = if outcome.class.claims_object() && !ours {
        OutcomeClass::ReplyMismatch
    } else {
        outcome.class
    };
    if first {
        let result = AttemptResult {
            class,
            ..AttemptResult::of(outcome, now)
        };
        attempt.result = Some(result);
        d.op.row.last_outcome = Some(class);
    } else {
        let taken_in = interrupted && d.see_reply(number, class, outcome, terms);
        if !taken_in && outcome.object.is_none() {
            return Err(Refusal::NoSuchAttempt);
        }
    }
    let ours = outcome
        .object
        .as_ref()
        .is_some_and(|o| d.see_object(Source::Attempt, o, taken, terms));
    d.reassess(terms);
    let mut next = d.absorb(&Actor::Engine, Source::Attempt, ours);
    if first && op.row.status == Status::Open && next == Next::Nothing {
        next = settle_open(&mut d, number, class, outcome, terms);
    }
    let detail = json!({
        "attempt": number, "class": class, "http_status": outcome.http_status,
        "request_id": outcome.request_id, "replayed": outcome.replayed, "error": outcome.error,
        "late": !first,
    });
    Ok(d.step(terms, Actor::Engine, Action::Finished, detail, next))
}

/// What the first outcome of an open row's attempt means, where evidence alone has not settled it.
fn settle_open(
    d: &mut Draft,
    number: u32,
    class: OutcomeClass,
    outcome: &Outcome,
    terms: &Terms,
) -> Next {
    let undetermined = d.op.undetermined_besides(number);
    match class {
        // Ours and final were settled by `absorb`; ours and pending ends the call.
        OutcomeClass::Succeeded | OutcomeClass::Pending | OutcomeClass::EffectFailed => {
            Next::EndCall
        }
        OutcomeClass::ReplyMismatch => d.unknown(UnknownReason::ReplyMismatch),
        OutcomeClass::ServerError => d.unknown(UnknownReason::ServerError),
        OutcomeClass::KeyMismatch => d.unknown(UnknownReason::KeyMismatch),
        OutcomeClass::ValidationFailure | OutcomeClass::PermissionDenied
            if outcome.already_refunded =>
        {
            if undetermined {
                d.unknown(UnknownReason::UndeterminedRefusal)
            } else {
                Next::Lookup
            }
        }
        OutcomeClass::ValidationFailure | OutcomeClass::PermissionDenied => {
            refused(d, class, outcome, undetermined, terms)
        }
        // One request of which a byte left is all that a provider with neither keys nor search ever gets; and
        // a tool may be as strict with any other (R94).
        OutcomeClass::SideEffectUnknown
        | OutcomeClass::KeyInProgress
        | OutcomeClass::RetryableFailure
            if terms.branch(class) == Branch::AskPerson =>
        {
            d.unknown(match terms.profile.kind {
                ProviderKind::None => UnknownReason::NoKeysAtProvider,
                ProviderKind::Keyed | ProviderKind::Lookup => UnknownReason::Stopped,
            })
        }
        OutcomeClass::SideEffectUnknown
        | OutcomeClass::KeyInProgress
        | OutcomeClass::RetryableFailure
        | OutcomeClass::NotSent => {
            let lookups = terms.branch(class) == Branch::LookUp;
            if d.op.row.attempts >= d.op.row.attempts_max {
                d.unknown(UnknownReason::AttemptsExhausted)
            } else if lookups || outcome.should_retry == Some(false) {
                Next::EndCall
            } else {
                Next::Retry {
                    retry_after: outcome.retry_after,
                }
            }
        }
    }
}

/// A refusal closes the row where it is definite, and where the tool lets it.
fn refused(
    d: &mut Draft,
    class: OutcomeClass,
    outcome: &Outcome,
    undetermined: bool,
    terms: &Terms,
) -> Next {
    let only_execution = outcome.replayed && terms.profile.saved_results_are_final;
    let definite = (!undetermined || only_execution)
        && outcome.should_retry != Some(true)
        && terms.branch(class) != Branch::AskPerson;
    if !definite {
        return d.unknown(UnknownReason::UndeterminedRefusal);
    }
    let failure = if class == OutcomeClass::PermissionDenied {
        FailureClass::PermissionDenied
    } else {
        FailureClass::ValidationFailure
    };
    d.fail(&Actor::Engine, failure, outcome.error.clone())
}

fn observe(op: &Operation, o: &Observed, terms: &Terms, now: Instant) -> Result<Step, Refusal> {
    let mut d = Draft::new(op, now);
    let (mut complete, mut ours) = (false, false);
    match &o.seen {
        Lookup::Listed {
            began_at,
            complete: all,
            objects,
        } => {
            complete = *all;
            for (object, taken) in objects {
                ours |= d.see_object(o.source, object, *taken, terms);
            }
            let began_at = *began_at;
            d.see(o.source, Seen::Scan { began_at, complete }, terms);
        }
        Lookup::One { object, taken } => ours = d.see_object(o.source, object, *taken, terms),
        Lookup::Unreachable { why } => {
            let why = why.clone();
            d.see(o.source, Seen::Unreachable { why }, terms);
        }
    }
    d.reassess(terms);
    let mut next = d.absorb(&o.actor, o.source, ours);
    if next == Next::Nothing && op.needs_lookup() && o.source == Source::EngineLookup {
        let identified = d.op.row.provider_ref.is_some();
        next = if identified {
            Next::EndCall
        } else if complete {
            let why = "the charge has already been refunded, not by this operation";
            d.fail(&o.actor, FailureClass::ValidationFailure, Some(why.into()))
        } else {
            d.unknown(UnknownReason::RefusalUnproven)
        };
    }
    if next == Next::Nothing && !o.source.by_person() && d.says_nothing_new() {
        return Err(Refusal::NothingNew);
    }
    let detail = json!({
        "source": o.source, "verdict": d.op.row.verdict, "complete": complete,
        "objects": evidence::objects(&d.op.evidence).keys().collect::<Vec<_>>(),
    });
    Ok(d.step(terms, o.actor.clone(), Action::Observed, detail, next))
}

/// A typed provider id must turn out to be what its typist said, or the row is contradicted.
fn ref_fetched(
    op: &Operation,
    object: Option<&ProviderObject>,
    taken: bool,
    terms: &Terms,
    now: Instant,
) -> Result<Step, Refusal> {
    op.awaits_fetch().ok_or(Refusal::NothingDue)?;
    let mut d = Draft::new(op, now);
    if let Some(object) = object
        && object.bearing(&op.row, taken) == Some(Bearing::Ours)
    {
        d.see_object(Source::TypedRef, object, taken, terms);
    }
    let answered = Seen::Scan {
        began_at: now,
        complete: false,
    };
    d.see(Source::TypedRef, answered, terms);
    let holds = object.is_some_and(|o| review_event::ref_holds(&op.row, o) && !taken);
    if !holds {
        d.op.row.contradicted = Some(Contradiction::RefMismatch);
    }
    let detail = json!({ "source": Source::TypedRef, "matches": holds });
    Ok(d.step(
        terms,
        Actor::Engine,
        Action::Observed,
        detail,
        Next::Nothing,
    ))
}

fn swept(op: &Operation, terms: &Terms, now: Instant) -> Result<Step, Refusal> {
    let mut d = Draft::new(op, now);
    let row = &op.row;
    let due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
    let proposal_over = due(row.proposal.as_ref().map(|p| p.expires_at));
    let approval_over = row.held && due(Some(later(row.created_at, terms.policy.approval_ttl)));
    let unsettled = row.status == Status::Open && row.provider_ref.is_none();
    let lookups_over = row
        .last_authorised_at
        .map(|last| later(terms.profile.decidable_at(last), LOOKUPS_FOR));
    let next = if approval_over {
        let why = "nobody approved it in time";
        d.fail(
            &Actor::Engine,
            FailureClass::PermissionDenied,
            Some(why.into()),
        )
    } else if proposal_over {
        d.op.row.proposal = None;
        Next::Nothing
    } else if row.status == Status::Open && due(row.pending_since.map(|p| later(p, PENDING_FOR))) {
        d.unknown(UnknownReason::PendingTooLong)
    } else if unsettled && (due(row.key_expires_at) || row.clock_ran_back(now)) {
        d.unknown(UnknownReason::KeyExpired)
    } else if unsettled && !op.in_flight() && !op.needs_lookup() && row.attempts >= row.attempts_max
    {
        d.unknown(UnknownReason::AttemptsExhausted)
    } else if unsettled
        && terms.searches_first()
        && op.attempts.iter().any(Attempt::undetermined)
        // Proven absent is decided: the next call may attempt.
        && row.verdict != Some(Verdict::Absent)
        && due(lookups_over)
    {
        d.unknown(UnknownReason::LookupInconclusive)
    } else {
        return Err(Refusal::NothingDue);
    };
    let detail = json!({ "reason": d.op.row.reason, "failure": d.op.row.failure });
    Ok(d.step(terms, Actor::Engine, Action::Swept, detail, next))
}
