//! One refund request on its way through faults, the key layer and the books.
//!
//! Owns: the order of these stages (limiters and gateways before the key layer, validation before
//! execution, saving from the beginning of execution on: S3, S5) and how a reply leaves. Never:
//! decides which fault there is. The books change in one step under the lock, before anything
//! waits, so a client that hangs up never leaves a half-done refund. Tests: `tests/simulator/`.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::changes::Request;
use super::fault::Fault;
use super::keys::{Busy, Found, other_parameters};
use super::objects;
use super::payments::NewRefund;
use super::records::EffectSource;
use super::refunds;
use super::state::{Shared, State, seconds_after};
use super::step::{Answer, External, Keys as KeyFault, ReplyKind, Step};
use super::wire::{ApiError, Call, Cut, Reply};
use super::world::World;

/// A held reply is given up after so long (real time), should its client never hang up.
const MAX_HOLD: Duration = Duration::from_mins(10);

/// A fault that hits everything until a moment.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    until: DateTime<Utc>,
    answer: Answer,
}

/// The result of an execution, and whether it is kept under the key.
enum Executed {
    Saved(Reply),
    Unsaved(Reply),
}

/// `POST /v1/refunds`.
pub(super) async fn create_refund(shared: &Shared, call: &Call) -> Result<Reply, Cut> {
    let order = refunds::order(&call.form);
    let (step, reply) = shared.change(|state, now| {
        let step = arrive(state, call, order.as_deref(), now);
        let reply = carry_out(state, call, &step, now, shared.latency);
        (step, reply)
    });
    let wait = shared
        .latency
        .max(Duration::from_secs(u64::from(step.delay_s)));
    let _held = (step.waits() || !wait.is_zero()).then(|| {
        let key = call.key.as_deref();
        shared.holds.begin(key, order.as_deref())
    });
    match step.reply {
        ReplyKind::Hold => {
            // hyper drops this future, and with it the guard, when the client hangs up.
            let _ = tokio::time::timeout(MAX_HOLD, std::future::pending::<()>()).await;
            Err(Cut)
        }
        ReplyKind::Close => Err(Cut),
        ReplyKind::Send | ReplyKind::Garbled | ReplyKind::WrongAmount => {
            shared.clock.sleep(wait).await;
            Ok(reply)
        }
    }
}

/// What else can be done to a refund, without faults.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write<'a> {
    /// `POST /v1/refunds/{id}/cancel` (S38).
    Cancel(&'a str),
    /// `POST /v1/refunds/{id}`: its metadata.
    Annotate(&'a str),
}

/// Carries it out, once for a key.
pub(super) fn write(shared: &Shared, call: &Call, what: Write<'_>) -> Reply {
    shared.change(|state, now| {
        let busy = Busy::default();
        let key = call.key.as_deref();
        keyed(state, call, key, now, busy, |world| {
            let done = match what {
                Write::Cancel(id) => world.cancel(id, now, &request(call)),
                Write::Annotate(id) => refunds::parse_update(&call.form)
                    .and_then(|new| world.annotate(id, new, now, &request(call))),
            };
            match (what, done) {
                (_, Ok(refund)) => Executed::Saved(Reply::json(200, &refund)),
                // Refused for the refund's state: a result like any other.
                (Write::Cancel(_), Err(error)) if error.status != 404 => {
                    Executed::Saved(error.reply(call))
                }
                (_, Err(error)) => Executed::Unsaved(error.reply(call)),
            }
        })
    })
}

fn request(call: &Call) -> Request {
    Request {
        id: call.request_id.clone(),
        key: call.key.clone(),
    }
}

/// The answer to everything while an outage lasts.
pub(super) fn outage(state: &State, call: &Call, now: DateTime<Utc>) -> Option<Reply> {
    let outage = state.outage.as_ref()?;
    let over = now >= outage.until || state.faults.exhausted();
    (!over).then(|| Reply::scripted(&outage.answer, call))
}

/// Counts and records the request and picks what happens to it.
fn arrive(state: &mut State, call: &Call, order: Option<&str>, now: DateTime<Utc>) -> Step {
    let account = call.account.clone().unwrap_or_default();
    let scope = match &call.key {
        Some(key) => (account, key.clone()),
        None => (
            format!("{account} without a key"),
            order.unwrap_or_default().to_owned(),
        ),
    };
    let nth = state.keys.count(&scope, now);
    let fault = state.faults.arrive(order.unwrap_or_default(), nth);
    let fault = fault.filter(|f| lasts(state, f, now));
    state.record(call, (nth, order), fault.as_ref(), now);
    fault.map(|f| f.step).unwrap_or_default()
}

/// Whether the fault is (still) on: one with a window begins with its first request and ends by
/// the clock, all others are always on.
fn lasts(state: &mut State, fault: &Fault, now: DateTime<Utc>) -> bool {
    let (Some(window_s), Some(answer)) = (fault.window_s, &fault.step.answer) else {
        return true;
    };
    let outage = state.outage.get_or_insert_with(|| Outage {
        until: seconds_after(now, window_s),
        answer: answer.clone(),
    });
    now < outage.until
}

/// Everything that changes the books, and the answer as it will leave.
fn carry_out(
    state: &mut State,
    call: &Call,
    step: &Step,
    now: DateTime<Utc>,
    latency: Duration,
) -> Reply {
    if let Err(error) = call.check_key() {
        return error.reply(call);
    }
    let asked = refunds::parse(&call.form, &state.world.setting().currency);
    let asked = asked.map(|new| NewRefund {
        key: call.key.clone(),
        request: Some(request(call)),
        webhook: step.webhook,
        ..new
    });
    if let Ok(new) = &asked {
        happen_before(&mut state.world, new, step, now);
    }
    if step.never_arrives() {
        if let (Ok(new), Some(late_s)) = (asked, step.late_s) {
            late(&mut state.world, new, step, seconds_after(now, late_s));
        }
        return instead(step, call).unwrap_or_else(|| unsaid(call));
    }
    let key = match (step.keys, call.key.as_deref()) {
        (KeyFault::Foreign, Some(key)) => return other_parameters(key).reply(call),
        (KeyFault::Ignored, _) => None,
        (KeyFault::Foreign | KeyFault::Honoured, key) => key,
    };
    let busy = Busy {
        time: latency.max(Duration::from_secs(u64::from(step.busy_s))),
        conflicts: step.conflicts,
    };
    let reply = keyed(state, call, key, now, busy, |world| match asked {
        Ok(new) => execute(world, new, step, call, now),
        Err(error) => Executed::Unsaved(error.reply(call)),
    });
    leave(reply, step, call)
}

/// What other people do just before.
fn happen_before(world: &mut World, new: &NewRefund, step: &Step, now: DateTime<Utc>) {
    match step.external {
        Some(External::SameAmount) => world.external(&new.order, new.amount, now),
        Some(External::Remaining) => world.external(&new.order, None, now),
        None => {}
    }
    match step.dispute {
        Some(course) if course.after_s == 0 => {
            world.dispute(&new.order, course, step.webhook, now);
        }
        Some(course) => {
            let at = seconds_after(now, course.after_s);
            world.dispute_later(&new.order, course, step.webhook, at);
        }
        None => {}
    }
}

/// Runs `run` unless the key says otherwise, and saves what it returns under the key.
fn keyed(
    state: &mut State,
    call: &Call,
    key: Option<&str>,
    now: DateTime<Utc>,
    busy: Busy,
    run: impl FnOnce(&mut World) -> Executed,
) -> Reply {
    let account = call.account.clone().unwrap_or_default();
    let scope = key.map(|key| (account, key.to_owned()));
    if let Some(scope) = &scope {
        match state.keys.look(scope, &call.fingerprint, now) {
            Found::Fresh => {}
            Found::Replay(reply) => return reply,
            Found::Refused(error) => return error.reply(call),
        }
    }
    match run(&mut state.world) {
        Executed::Unsaved(reply) => reply,
        Executed::Saved(reply) => {
            if let Some(scope) = scope {
                let answer = (&reply, call.request_id.as_str());
                let fingerprint = call.fingerprint.clone();
                state.keys.save(scope, fingerprint, answer, now, busy);
            }
            reply
        }
    }
}

/// The first and only execution under a key. Refusals that come from the charge's state are its
/// result and saved like any other.
fn execute(
    world: &mut World,
    mut new: NewRefund,
    step: &Step,
    call: &Call,
    now: DateTime<Utc>,
) -> Executed {
    let scripted = instead(step, call).filter(|_| step.saved);
    if !step.effect {
        if let Some(late_s) = step.late_s {
            late(world, new, step, seconds_after(now, late_s));
        }
        return Executed::Saved(scripted.unwrap_or_else(|| unsaid(call)));
    }
    new.course = step.refund;
    let order = new.order.clone();
    let copy = NewRefund {
        source: EffectSource::External,
        key: None,
        request: None,
        ..new.clone()
    };
    let made = match world.create(new, now) {
        Ok(index) => index,
        Err(error) => return Executed::Saved(error.reply(call)),
    };
    for _ in 0..step.copies {
        if let Err(refused) = world.create(copy.clone(), now) {
            tracing::debug!(?refused, "no room for a copy of the refund");
        }
    }
    world.fail_many(&order, step.newer, now);
    let true_reply = match world.refunds().get(made) {
        Some(refund) => Reply::json(200, &objects::refund(refund)),
        None => unsaid(call),
    };
    Executed::Saved(scripted.unwrap_or(true_reply))
}

fn late(world: &mut World, new: NewRefund, step: &Step, at: DateTime<Utc>) {
    let late = NewRefund {
        source: EffectSource::Late,
        // Nothing ties what happens by itself to a request (S47).
        request: None,
        course: step.refund,
        ..new
    };
    world.later(late, at);
}

/// What the client is told instead of the truth.
fn instead(step: &Step, call: &Call) -> Option<Reply> {
    step.answer.as_ref().map(|a| Reply::scripted(a, call))
}

/// Stands for an answer that never leaves.
fn unsaid(call: &Call) -> Reply {
    ApiError::new(500, "An unknown error occurred.")
        .kind("api_error")
        .reply(call)
}

/// The reply as it leaves: an unsaved answer in its place, or damaged.
fn leave(mut reply: Reply, step: &Step, call: &Call) -> Reply {
    if !step.saved
        && let Some(answer) = instead(step, call)
    {
        return answer;
    }
    if reply.status == 200 {
        match step.reply {
            ReplyKind::Garbled => reply.body.truncate(reply.body.len() / 2),
            ReplyKind::WrongAmount => reply.body = with_wrong_amount(&reply.body),
            ReplyKind::Send | ReplyKind::Hold | ReplyKind::Close => {}
        }
    }
    reply
}

fn with_wrong_amount(body: &Bytes) -> Bytes {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
        return body.clone();
    };
    let amount = value.get("amount").and_then(Value::as_i64).unwrap_or(0);
    if let Value::Object(members) = &mut value {
        members.insert("amount".into(), json!(amount.saturating_add(1)));
    }
    Reply::json(200, &value).body
}
