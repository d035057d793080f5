//! Driving one row: connect, authorise, check again, write; record; wait; again, within the call's
//! budget (step 8 of the protocol).

use std::time::Duration;

use super::worker::Job;
use crate::domain::evidence::Source;
use crate::domain::ids::Actor;
use crate::domain::opening;
use crate::domain::operation::{Operation, OperationRow};
use crate::domain::outcome::{Outcome, OutcomeClass};
use crate::domain::text::SafeText;
use crate::domain::transition::{Event, Lookup, Next, Observed, Refusal, Step};
use crate::kill;
use crate::ledger::LedgerError;
use crate::provider::{Ready, ResolveError, ResolveQuery};

/// How driving ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Driven {
    /// The call is to be answered from the row.
    Done,
    /// Somebody else drives it.
    LeaseLost,
    /// The engine stops; nothing is in flight.
    Stopped,
}

/// What comes after one try.
enum After {
    Again { wait: Duration, counts: bool },
    End(Driven),
}

impl After {
    const DONE: Self = Self::End(Driven::Done);
}

/// Drives `op` for this call until it is settled or the call's budget is spent.
pub(super) async fn drive(job: &Job<'_>, op: Operation) -> Result<Driven, LedgerError> {
    let shared = job.shared;
    let policy = &job.terms.policy;
    let mut op = op;
    let mut read_at = op.row.created_at;
    let mut tries = 0;
    while tries < policy.max_per_call {
        if shared.is_stopping() {
            return Ok(Driven::Stopped);
        }
        // Connecting and answering may take a timeout each, and must fit into the call's time.
        if job.time_left() <= job.terms.profile.timeout.saturating_mul(2) {
            return Ok(Driven::Done);
        }
        if opening::is_stale(&op.row, read_at, shared.now()) {
            if !still_fits(job, &op.row).await? {
                return Ok(Driven::Done);
            }
            read_at = shared.now();
        }
        let after = if op.needs_lookup() || op.needs_search(job.terms) {
            look_up(job, &mut op).await?
        } else {
            attempt(job, &mut op, tries).await?
        };
        match after {
            After::End(driven) => return Ok(driven),
            After::Again { wait, counts } => {
                tries += u32::from(counts);
                if tries >= policy.max_per_call || job.time_left() <= wait {
                    return Ok(Driven::Done);
                }
                if !shared.wait(wait).await {
                    return Ok(Driven::Stopped);
                }
            }
        }
    }
    Ok(Driven::Done)
}

/// Step 4 once more for a row that waited: its order may have no room for it any more.
async fn still_fits(job: &Job<'_>, row: &OperationRow) -> Result<bool, LedgerError> {
    let ledger = &job.shared.deps.ledger;
    let (Some(order), Some(money)) = (&row.order_id, row.money) else {
        return Ok(true);
    };
    if !job.provider.resolves() {
        return Ok(true);
    }
    let query = ResolveQuery {
        order: order.clone(),
        payment: row.payment.clone(),
        charge: row.charge.clone(),
    };
    let why = match job.provider.resolve(&query, &job.reads()).await {
        Ok(resolved) => {
            let rows = ledger
                .order_rows(&row.tool, order, row.payment.as_ref())
                .await?;
            if money.minor() <= opening::room(&rows, &resolved, Some(&row.id)) {
                return Ok(true);
            }
            SafeText::new("the payment has not that much left to refund any more")
        }
        Err(ResolveError::Refused(why)) => why,
        // Unreadable: nothing is known against it, but nothing is sent either.
        Err(ResolveError::Unreadable(_)) => return Ok(false),
    };
    // A refusal here means that the row moved on, which answers the call just as well.
    let _ = ledger.apply(&row.id, Event::NoLongerFits { why }).await?;
    Ok(false)
}

/// One try: a fresh connection, the counted attempt, the last check, the bytes.
async fn attempt(job: &Job<'_>, op: &mut Operation, tries: u32) -> Result<After, LedgerError> {
    let shared = job.shared;
    let ledger = &shared.deps.ledger;
    let retry = tries.saturating_add(1);
    let lots = &shared.deps.lots;
    let backoff = |asked| job.terms.policy.backoff.wait(retry, asked, lots.lot());
    let connection = match job.provider.connect().await {
        Ok(connection) => connection,
        Err(error) => {
            tracing::info!(operation = %op.row.id, %error, "no connection");
            ledger.connection_failed(&op.row.tool, &op.row.id).await?;
            return Ok(After::Again {
                wait: backoff(None),
                counts: true,
            });
        }
    };
    kill::point("connected");
    // Counted now it would not be sent (I9), and the operation has only so many (I6).
    if !shared.lease.holds_for(job.call) {
        return Ok(After::End(Driven::LeaseLost));
    }
    let asked_at = shared.deps.clock.boot();
    let step = match ledger.authorise(&op.row.id, job.call).await? {
        Ok(step) => step,
        Err(refusal) => return refused(job, op, refusal).await,
    };
    let Next::Send { attempt } = step.next else {
        return Ok(After::DONE);
    };
    kill::point("authorised");
    let outcome = send(job, &step, connection, asked_at).await;
    kill::point("answered");
    tracing::info!(operation = %op.row.id, attempt, class = %outcome.class, "attempt");
    let finished = Event::Finished {
        attempt,
        outcome,
        taken: false,
    };
    match record(job, op, finished).await {
        Ok(step) => {
            kill::point("saved");
            *op = step.op;
            Ok(after(job, op, step.next, backoff))
        }
        // Recorded by whoever took over: the row tells.
        Err(Some(refusal)) => {
            tracing::info!(operation = %op.row.id, %refusal, "the outcome came late");
            Ok(After::End(Driven::LeaseLost))
        }
        Err(None) => Ok(After::DONE),
    }
}

/// What follows a recorded outcome.
fn after(
    job: &Job<'_>,
    op: &Operation,
    next: Next,
    backoff: impl Fn(Option<Duration>) -> Duration,
) -> After {
    let (wait, counts) = match next {
        Next::Retry { retry_after } => (backoff(retry_after), true),
        Next::Lookup => (Duration::ZERO, false),
        // What the lost answer was about can be found as soon as searches show it (R81).
        Next::EndCall if op.needs_search(job.terms) => (job.terms.profile.lookup_lag, false),
        Next::Send { .. }
        | Next::EndCall
        | Next::Settled
        | Next::Proposed
        | Next::Due
        | Next::Nothing => return After::DONE,
    };
    After::Again { wait, counts }
}

/// The last check before the first byte, on a clock that also runs while the machine sleeps (I9).
async fn send(
    job: &Job<'_>,
    step: &Step,
    connection: Box<dyn Ready>,
    asked_at: Duration,
) -> Outcome {
    let shared = job.shared;
    let row = &step.op.row;
    let late = shared.deps.clock.boot().saturating_sub(asked_at) > job.terms.profile.send_window;
    let expired = row
        .key_expires_at
        .is_none_or(|deadline| shared.now() >= deadline);
    let why = if late {
        "the send window had passed"
    } else if expired {
        "the key may no longer be sent"
    } else if !shared.lease.holds_for(job.call) {
        "the lease had run out"
    } else {
        return connection.send(row).await;
    };
    Outcome::of(OutcomeClass::NotSent).because(why)
}

/// Writes an outcome, again and again while the ledger does not answer: it must not be lost while
/// this process lives. `Err(None)` when the engine gives up; then it stays in flight until swept.
async fn record(job: &Job<'_>, op: &Operation, event: Event) -> Result<Step, Option<Refusal>> {
    let mut wait = Duration::from_millis(50);
    loop {
        match job
            .shared
            .deps
            .ledger
            .apply(&op.row.id, event.clone())
            .await
        {
            Ok(Ok(step)) => return Ok(step),
            Ok(Err(refusal)) => return Err(Some(refusal)),
            Err(error) => {
                tracing::error!(operation = %op.row.id, %error, "an outcome could not be written yet");
                if job.time_left().is_zero() && !job.shared.lease.holds() {
                    return Err(None);
                }
                // Also while the engine stops: a known outcome is worth its last seconds.
                job.shared.deps.clock.sleep(wait).await;
                wait = wait.saturating_mul(2).min(Duration::from_secs(5));
            }
        }
    }
}

/// What a refused authorise means for the call.
async fn refused(
    job: &Job<'_>,
    op: &mut Operation,
    refusal: Refusal,
) -> Result<After, LedgerError> {
    tracing::debug!(operation = %op.row.id, %refusal, "not authorised");
    Ok(match refusal {
        // The connection is given up: by then it may have been closed.
        Refusal::RateLimited { wait } => After::Again {
            wait,
            counts: false,
        },
        Refusal::LeaseLost | Refusal::InFlight => After::End(Driven::LeaseLost),
        Refusal::LookupFirst => look_up(job, op).await?,
        Refusal::KeyExpired | Refusal::OperationSpent => {
            // The sweep says what that makes of the row.
            let _ = job
                .shared
                .deps
                .ledger
                .apply(&op.row.id, Event::Swept)
                .await?;
            After::DONE
        }
        Refusal::ClockAlarm
        | Refusal::NotOpen { .. }
        | Refusal::Held
        | Refusal::Contradicted
        | Refusal::Identified
        | Refusal::CallSpent
        | Refusal::Paused
        | Refusal::CircuitOpen
        | Refusal::NoSuchAttempt
        | Refusal::NothingDue
        | Refusal::NothingNew
        | Refusal::Review(_) => After::DONE,
    })
}

/// An engine lookup: read-only, within the read budget, before anything else is sent (S34).
async fn look_up(job: &Job<'_>, op: &mut Operation) -> Result<After, LedgerError> {
    let ledger = &job.shared.deps.ledger;
    let reads = job.shared.looks(job.provider.name(), job.time_left());
    let first = reads.prepay(Duration::ZERO).await;
    if let Err(wait) = first.map_err(|why| LedgerError::Unreachable(why.to_string()))? {
        return Ok(After::Again {
            wait,
            counts: false,
        });
    }
    let seen: Lookup = job.provider.lookup(&op.row, &reads).await;
    let observed = Observed {
        source: Source::EngineLookup,
        actor: Actor::Engine,
        seen,
    };
    if let Ok(step) = ledger.apply(&op.row.id, Event::Observed(observed)).await? {
        *op = step.op;
    }
    // Whatever it said, this call sends nothing more.
    Ok(After::DONE)
}
