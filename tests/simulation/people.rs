//! Agents that ask, again and again, and people who look up, decide and get in each other's way.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use samekey::clock::Clock;
use samekey::domain::guard::Role;
use samekey::domain::ids::{OperationId, ProviderRef, ReviewerName};
use samekey::domain::later;
use samekey::domain::operation::{Closing, LookedAt};
use samekey::domain::review_event::{Person, ReviewRefusal};
use samekey::ledger::{Accepted, NewCall, PageQuery, SharedLedger, Tab};
use samekey::review::{Ask, Gate, GateError, Subject};

use tokio::runtime::Handle;

use crate::core::Core;
use crate::judge::{Judge, short};
use crate::options::{Kind, Options, between, chance, pick};
use crate::world::{DESK, World, tool};

pub const AGENTS: [&str; 2] = ["northwind", "southwind"];
/// What every order's charge captured is the largest.
pub const AMOUNTS: [i64; 3] = [3_800, 1_900, 100_000];
const PEOPLE: [(&str, Role); 4] = [
    ("ann", Role::Reviewer),
    ("bob", Role::Reviewer),
    ("lea", Role::Lead),
    ("max", Role::Lead),
];

/// What people and agents have at hand.
#[derive(Clone)]
pub struct Hands {
    pub core: Arc<Core>,
    pub judge: Arc<Judge>,
    pub ledger: SharedLedger,
    pub gate: Gate,
    pub clock: Clock,
    /// Where people's tasks run.
    pub room: Handle,
}

pub fn hands(world: &World) -> Hands {
    let desk = &world.desk;
    let clock = world.ground.clocks[DESK].clone();
    let ledger: SharedLedger = Arc::clone(&desk.ledger) as SharedLedger;
    let name = |n: &str| ReviewerName::parse(n).expect("a name");
    let reviewers = PEOPLE.iter().map(|(n, role)| (name(n), *role)).collect();
    let gate = Gate::new(
        Arc::clone(&ledger),
        Arc::clone(&desk.providers),
        Arc::clone(&desk.terms),
        Arc::new(reviewers),
        name("os-user"),
        clock.clone(),
    );
    Hands {
        core: Arc::clone(&world.core),
        judge: Arc::clone(&world.ground.judge),
        ledger,
        gate,
        clock,
        room: desk.room.runtime.handle().clone(),
    }
}

pub fn person(hands: &Hands, name: &str) -> Person {
    let name = ReviewerName::parse(name).expect("a name");
    hands.gate.person(Some(&name)).expect("a reviewer")
}

/// One request of an agent.
#[derive(Clone, Debug)]
pub struct Asked {
    pub agent: &'static str,
    pub call: String,
    pub order: String,
    pub amount: i64,
    pub after: Option<String>,
}

impl Asked {
    fn arguments(&self) -> String {
        let mut arguments = serde_json::json!({
            "order_id": self.order, "amount_cents": self.amount, "currency": "usd",
        });
        if let Some(after) = &self.after {
            arguments["after"] = after.as_str().into();
        }
        arguments.to_string()
    }
}

/// Hands a call in, again and again until it is known to be stored.
pub async fn ask(hands: Hands, asked: Asked) {
    let call = NewCall {
        id: asked.call.parse().expect("a call id"),
        agent: asked.agent.parse().expect("an agent"),
        tool: tool(),
        arguments: asked.arguments(),
        session: None,
    };
    for _ in 0..20 {
        match hands.ledger.accept_call(call.clone()).await {
            Ok(Accepted::New(_)) => {
                hands.judge.accepted(asked.agent, &asked.call);
                let Asked { order, amount, .. } = &asked;
                let what = format!(
                    "{} asks {}: order {order}, {amount}",
                    asked.agent, asked.call
                );
                hands.core.note(what);
                return;
            }
            Ok(Accepted::Known(_)) => {
                hands.judge.accepted(asked.agent, &asked.call);
                hands.core.saw("a call id that came again");
                return;
            }
            Ok(Accepted::Conflict) => {
                hands.core.saw("a call id with other arguments");
                return;
            }
            Err(_) => hands.clock.sleep(Duration::from_secs(1)).await,
        }
    }
}

/// The next request of some agent.
pub fn next_ask(d: &mut ChaCha8Rng, options: &Options, past: &[Asked], judge: &Judge) -> Asked {
    let n = past.len();
    let again = options.has(Kind::AskAgain) && chance(d, 60);
    if let Some(before) = past.last()
        && options.has(Kind::SameCallId)
        && chance(d, 15)
    {
        let mut same = before.clone();
        if chance(d, 30) {
            same.amount += 1;
        }
        return same;
    }
    let fresh = format!("toolu_{n:02}");
    if again && !past.is_empty() {
        let before = &past[d.random_range(0..n)];
        let mut asked = Asked {
            agent: pick(d, &AGENTS),
            call: fresh,
            after: None,
            ..before.clone()
        };
        if options.has(Kind::OtherAmount) && chance(d, 30) {
            asked.amount = pick(d, &AMOUNTS);
        }
        if options.has(Kind::After) && chance(d, 30) {
            let ops = judge.ops();
            let mut same = ops
                .iter()
                .filter(|(_, op)| op.order == asked.order && op.amount == asked.amount);
            asked.after = same.next_back().map(|(id, _)| id.clone());
        }
        return asked;
    }
    Asked {
        agent: pick(d, &AGENTS),
        call: fresh,
        order: format!("{}", 4417 + d.random_range(0..options.orders)),
        amount: if chance(d, 80) {
            3_800
        } else {
            pick(d, &AMOUNTS)
        },
        after: None,
    }
}

/// A person does something, sensible or not.
pub async fn meddle(hands: Hands, mut d: ChaCha8Rng) {
    let name = pick(&mut d, &PEOPLE).0;
    let by = person(&hands, name);
    let Some(id) = some_row(&hands, &mut d).await else {
        return;
    };
    let ask = some_ask(&mut d, &hands.core.options);
    if ask == Ask::Note {
        at_desk(&hands, &id, &by, &mut d).await;
        return;
    }
    if ask == Ask::Lookup {
        look_up(&hands, &id, &by).await;
        return;
    }
    let typed = (ask == Ask::Close(Closing::Succeeded) && chance(&mut d, 50))
        .then(|| some_ref(&hands, &id, &mut d))
        .flatten();
    let think = Duration::from_millis(d.random_range(0..30_000));
    decide(&hands, &id, ask, &by, think, typed).await;
}

/// Claims a row, gives it back or puts it off: which stands in nobody's way.
async fn at_desk(hands: &Hands, id: &OperationId, by: &Person, d: &mut ChaCha8Rng) {
    let gate = &hands.gate;
    let done = match d.random_range(0..3) {
        0 => gate.claim(id, by).await,
        1 => gate.release(id, by).await,
        _ => {
            let until = later(hands.clock.now(), Duration::from_secs(120));
            gate.snooze(id, by, until).await
        }
    };
    match done {
        Ok(done) => hands.core.note(format!("{}: {}", by.name, done.says)),
        Err(error) => hands.core.note(format!("{} at the desk: {error}", by.name)),
    }
}

/// Two persons decide on the same row at the same time, having seen the same version.
pub async fn duel(hands: Hands, mut d: ChaCha8Rng) {
    let Some(id) = some_row(&hands, &mut d).await else {
        return;
    };
    let asks = [
        Ask::Close(Closing::Failed),
        Ask::Close(Closing::Succeeded),
        Ask::Stop,
    ];
    let (one, two) = (person(&hands, "ann"), person(&hands, "lea"));
    let (first, second) = (pick(&mut d, &asks), pick(&mut d, &asks));
    look_up(&hands, &id, &one).await;
    let think = Duration::from_millis(d.random_range(0..100_000));
    tokio::join!(
        decide(&hands, &id, first, &one, think, None),
        decide(&hands, &id, second, &two, think, None),
    );
}

/// Stops a row a moment later.
pub async fn stop(hands: Hands, operation: String, after: Duration) {
    hands.clock.sleep(after).await;
    let Ok(id) = OperationId::parse(&operation) else {
        return;
    };
    let by = person(&hands, "bob");
    decide(&hands, &id, Ask::Stop, &by, Duration::ZERO, None).await;
}

/// Two persons who want rows out of the list: they stop, look up and close whatever they may, at once, and
/// the second one approves without looking.
pub async fn eager(hands: Hands, mut d: ChaCha8Rng) {
    let (by, second) = (person(&hands, "max"), person(&hands, "lea"));
    let now = Duration::ZERO;
    for _ in 0..12 {
        if hands.core.is_healed() {
            return;
        }
        if let Some(id) = some_row(&hands, &mut d).await {
            if hands.core.options.has(Kind::Stop) {
                decide(&hands, &id, Ask::Stop, &by, now, None).await;
            }
            look_up(&hands, &id, &by).await;
            let typed = if chance(&mut d, 30) {
                some_ref(&hands, &id, &mut d)
            } else {
                None
            };
            let closing = match typed {
                Some(_) => Closing::Succeeded,
                None => Closing::Failed,
            };
            if decide(&hands, &id, Ask::Close(closing), &by, now, typed).await {
                decide(&hands, &id, Ask::Approve, &second, now, None).await;
            }
        }
        hands.clock.sleep(between(&mut d, 1_500, 21_000)).await;
    }
}

async fn some_row(hands: &Hands, d: &mut ChaCha8Rng) -> Option<OperationId> {
    let tab = pick(d, &[Tab::Review, Tab::Unknown, Tab::Open, Tab::All]);
    let page = hands
        .ledger
        .page(&PageQuery {
            tab,
            limit: 20,
            ..PageQuery::default()
        })
        .await
        .ok()?;
    if page.rows.is_empty() {
        return None;
    }
    let n = d.random_range(0..page.rows.len());
    Some(page.rows[n].row.id.clone())
}

fn some_ask(d: &mut ChaCha8Rng, options: &Options) -> Ask {
    let mut asks = vec![
        Ask::Lookup,
        Ask::Lookup,
        Ask::Lookup,
        Ask::Close(Closing::Failed),
        Ask::Close(Closing::Failed),
        Ask::Close(Closing::Succeeded),
        Ask::Close(Closing::Succeeded),
        Ask::Approve,
        Ask::Approve,
        Ask::Reject,
        Ask::Correct(None),
        Ask::Correct(Some(Closing::Failed)),
        Ask::Correct(Some(Closing::Succeeded)),
        Ask::Note,
        Ask::Note,
    ];
    if options.has(Kind::Stop) {
        asks.extend([Ask::Stop; 3]);
    }
    pick(d, &asks)
}

/// An id that somebody could have read in the provider's dashboard, or mistyped.
fn some_ref(hands: &Hands, id: &OperationId, d: &mut ChaCha8Rng) -> Option<ProviderRef> {
    if chance(d, 35) {
        return ProviderRef::parse("re_mistyped").ok();
    }
    let ops = hands.judge.ops();
    let order = &ops.get(id.as_str())?.order;
    let effects = hands.judge.effects();
    let of_order = effects
        .iter()
        .filter(|e| e.order_id.as_ref() == Some(order));
    let all: Vec<&str> = of_order.map(|e| e.refund_id.as_str()).collect();
    if all.is_empty() {
        return None;
    }
    ProviderRef::parse(pick(d, &all)).ok()
}

pub async fn look_up(hands: &Hands, id: &OperationId, by: &Person) {
    let who = &by.name;
    match hands.gate.lookup(id, by).await {
        Ok(done) => {
            let says = format!("{who} looks {} up: {}", short(id.as_str()), done.says);
            hands.core.note(says);
        }
        Err(error) => {
            let says = format!("{who} cannot look {} up: {error}", short(id.as_str()));
            hands.core.note(says);
        }
    }
}

/// Looks, thinks, and decides on what was seen.
pub async fn decide(
    hands: &Hands,
    id: &OperationId,
    ask: Ask,
    by: &Person,
    think: Duration,
    typed: Option<ProviderRef>,
) -> bool {
    let core = &hands.core;
    let (who, what) = (&by.name, format!("{} {ask:?}", short(id.as_str())));
    let looked_at = match hands.gate.ask(id, ask, by).await {
        Ok(asked) => match asked.subject {
            Subject::Row(op) => LookedAt::of(&op.row),
            Subject::Rows(_) | Subject::Tool(_) => return false,
        },
        Err(error) => {
            core.note(format!("{who} may not: {what}: {error}"));
            if error.to_string().contains("decidable at") {
                core.saw("closing as failed refused because it was too early");
            }
            return false;
        }
    };
    hands.clock.sleep(think).await;
    let decided = hands
        .gate
        .decide(id, ask, by, "seen", Some(looked_at), typed)
        .await;
    match decided {
        Ok(done) => {
            core.note(format!("{who}: {}", done.says));
            if done.proposed {
                core.saw("a proposal");
            }
            true
        }
        Err(error) => {
            core.note(format!("{who}: {what}: {error}"));
            if let GateError::Refused(
                ReviewRefusal::MovedOn { .. }
                | ReviewRefusal::ClosedSame { .. }
                | ReviewRefusal::ClosedOther { .. },
            ) = error
            {
                core.saw("a decision that lost a race");
            }
            false
        }
    }
}
