//! What must hold of every world that can be reached ("always"), by the names of `invariants.md`. What a
//! single step can break is judged at the step, on the operation before and after it; what the provider
//! knows and the ledger does not is judged on the world.

use std::sync::atomic::Ordering;

use samekey::domain::evidence::Verdict;
use samekey::domain::operation::{Effect, Operation, Status};
use samekey::domain::tool_call::ToolResult;
use samekey::domain::transition::{Action, Event};
use samekey::domain::{later, since};
use stateright::Property;

use crate::events::{Ask, event};
use crate::face::Face;
use crate::model::Protocol;
use crate::people::{stands, went_through};
use crate::places;
use crate::rows::{Turn, instant};
use crate::world::{Mark, Reply, Tick, World};

macro_rules! laws {
    ($($law:ident $name:literal,)*) => {
        /// A promise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Law { $($law,)* }
        const LAWS: &[Law] = &[$(Law::$law,)*];
        impl Law {
            pub fn name(self) -> &'static str {
                match self { $(Self::$law => $name,)* }
            }
        }
        fn law_properties() -> Vec<Property<Protocol>> {
            vec![$(Property::always($name, |m, w| kept(m, w, Law::$law)),)*]
        }
    };
}

laws! {
    StepLaws "every step keeps the laws of tests/common/laws.rs",
    OneLiveRow "I1: one open or unknown row of an identity, one unidentified of an order",
    OneKey "I3: one key",
    WithinCapture "I4: never more than was captured",
    CommittedAttempts "I5: every request has its committed attempt, every attempt one request",
    Caps "I6: the caps of attempts",
    MayAuthorise "I7: authorised only where everything allows it",
    InWindow "I9: sent within the window of its authorise",
    BeforeDeadline "I10: nothing sent after the key's deadline",
    OneEffect "I11: one effect",
    OneInFlight "I13: one attempt in flight",
    FiveHundred "I15: a 5xx makes unknown in its own step",
    UnknownStays "I16: unknown is left by evidence of success or by people",
    TwoPeople "I16: two people are two names",
    OnlyOurs "I17: succeeded by itself or by one person means that ours went through",
    ClosedOnce "I18: closed once",
    DecidedAsSeen "I18: decided on what was seen",
    NotTooEarly "I19: no person fails what may still happen",
    FailedMeansNone "I19: failed means no effect, unless two people judged so without proof",
    ClosedStays "I20: a closed row changes by a correction only",
    Flagged "I20: evidence against a closed row flags it",
    AnsweredOnce "I24: answered once",
    AnswersTrue "I24: no answer says more than its row",
    Fenced "I25: a stale engine authorises nothing",
    EqualCallsOnce "R21: equal calls have one effect together",
}

/// Marks `law` as broken, where it is judged.
pub fn fault(model: &Protocol, broken: &mut u32, law: Law) {
    if model.judged.is_none_or(|judged| judged.contains(&law)) {
        *broken |= 1 << law as u32;
    }
}

/// Whether `law` holds. Only the first world that breaks it says so: it is the nearest one.
fn kept(model: &Protocol, world: &World, law: Law) -> bool {
    let bit = 1 << law as u32;
    world.broken & bit == 0 || model.met.fetch_or(bit, Ordering::Relaxed) & bit != 0
}

/// The laws, and the places that the scope must reach.
pub fn properties(model: &Protocol) -> Vec<Property<Protocol>> {
    let mut all = law_properties();
    match model.judged {
        Some(laws) => all.retain(|p| laws.iter().any(|l| l.name() == p.name)),
        None => all.extend(places::properties(model)),
    }
    debug_assert!(LAWS.len() <= 32);
    all
}

/// Whether the proof is missing, so that a closing rests on what two people think.
pub fn on_their_word(op: &Operation) -> bool {
    let proof = [Verdict::Absent, Verdict::Refused, Verdict::Confirmed];
    op.row.verdict.is_none_or(|v| !proof.contains(&v)) && op.row.effect != Effect::NotStarted
}

/// Judges one step of row `row`.
pub fn judge_step(
    model: &Protocol,
    world: &mut World,
    row: u8,
    ask: &Ask,
    before: &Operation,
    turn: &Turn,
) {
    let after = model.book.op(turn.op);
    let mut found = Vec::new();
    let mut check = |holds: bool, law| {
        if !holds {
            found.push(law);
        }
    };
    check(turn.lawful, Law::StepLaws);
    let (was, is) = (before.row.status, after.row.status);
    let decided = matches!(ask, Ask::Decided { .. });
    match (was, is) {
        (Status::Unknown, Status::Succeeded) => {
            let evident = after.row.verdict == Some(Verdict::Confirmed);
            check(decided || evident, Law::UnknownStays);
        }
        (Status::Unknown, Status::Failed) => check(decided, Law::UnknownStays),
        (Status::Unknown, Status::Open) => check(false, Law::UnknownStays),
        (Status::Succeeded | Status::Failed, _) if was != is => {
            let corrected = turn.action == Action::Corrected && before.row.contradicted.is_some();
            check(corrected, Law::ClosedStays);
        }
        _ => {}
    }
    match ask {
        Ask::Authorise { .. } => judge_authorise(model, world, row, ask, before, &mut check),
        Ask::Finished { attempt, reply } => {
            let first = |a: &&samekey::domain::attempt::Attempt| {
                a.number == u32::from(*attempt) && a.in_flight()
            };
            let open = was == Status::Open && before.attempts.iter().any(|a| first(&a));
            let ended = *reply != Reply::Broken || !open || is == Status::Unknown;
            check(ended, Law::FiveHundred);
        }
        Ask::Decided { .. } if is == Status::Failed && was != Status::Failed => {
            let wait = &model.scope.terms.profile;
            let last = before.row.last_authorised_at;
            let early = last.is_some_and(|last| {
                let bound = wait.send_window + wait.timeout + wait.settle_time;
                instant(world.now) < later(last, bound)
            });
            let could = before.row.effect != Effect::NotStarted;
            check(!(early && could), Law::NotTooEarly);
        }
        _ => {}
    }
    for law in found {
        fault(model, &mut world.broken, law);
    }
}

fn judge_authorise(
    model: &Protocol,
    world: &World,
    row: u8,
    ask: &Ask,
    before: &Operation,
    check: &mut impl FnMut(bool, Law),
) {
    let r = &before.row;
    let Event::Authorise(facts) = event(before, ask) else {
        return;
    };
    let mut order = world.rows.iter().map(|other| model.book.face(other.op));
    let free = !r.held && r.provider_ref.is_none() && !order.any(|other| other.contradicted);
    check(r.status == Status::Open && free, Law::MayAuthorise);
    check(!before.in_flight(), Law::OneInFlight);
    let held = world.rows[usize::from(row)].driver.is_some() && facts.lease;
    check(held, Law::Fenced);
    let policy = &model.scope.terms.policy;
    let spent = before.attempts.iter().filter(|a| a.call == facts.call);
    let room = spent.count() < policy.max_per_call as usize
        && before.attempts.len() < policy.max_per_operation as usize;
    check(room, Law::Caps);
}

/// Judges the first byte of attempt `attempt`, authorised at `then`.
pub fn judge_send(model: &Protocol, world: &mut World, row: u8, attempt: u8, then: Tick) {
    let op = model.op(world, row);
    let profile = &model.scope.terms.profile;
    let now = instant(world.now);
    let mut found = Vec::new();
    if since(instant(then), now) > profile.send_window {
        found.push(Law::InWindow);
    }
    // From the terms and not from the row: the row's word is what is judged.
    let first = op.row.first_authorised_at;
    if first.is_some_and(|first| now >= profile.key_expires_at(first)) {
        found.push(Law::BeforeDeadline);
    }
    let committed = op.attempts.iter().any(|a| a.number == u32::from(attempt));
    let once = u32::from(world.rows[usize::from(row)].sent) < op.row.attempts;
    if !committed || !once {
        found.push(Law::CommittedAttempts);
    }
    for law in found {
        fault(model, &mut world.broken, law);
    }
}

/// Judges what a call hears of row `row`.
pub fn judge_answer(model: &Protocol, world: &mut World, row: Option<u8>, result: &ToolResult) {
    let Some(r) = row else {
        return;
    };
    let op = model.op(world, r);
    let contradicted = op.row.contradicted.is_some();
    let word = world.rows[usize::from(r)].by_two;
    let holds = match result {
        ToolResult::Done { .. } => {
            op.row.status == Status::Succeeded && (word || went_through(world, r))
        }
        ToolResult::Failed { .. } => op.row.status == Status::Failed && !contradicted,
        ToolResult::Checking { .. } => op.row.status == Status::Unknown || contradicted,
        ToolResult::Held { .. } => op.row.held,
        ToolResult::Unconfirmed { .. } => op.row.status == Status::Open,
        ToolResult::Rejected { .. } => true,
    };
    let told = op.row.status != Status::Unknown || matches!(result, ToolResult::Checking { .. });
    if !holds || !told {
        fault(model, &mut world.broken, Law::AnswersTrue);
    }
}

/// Judges a whole world.
pub fn judge_world(model: &Protocol, world: &mut World) {
    let mut found = Vec::new();
    let mut check = |holds: bool, law| {
        if !holds {
            found.push(law);
        }
    };
    let faces: Vec<_> = world.rows.iter().map(|r| model.book.face(r.op)).collect();
    for ((r, row), face) in (0..).zip(&world.rows).zip(&faces) {
        check(face.in_flight <= 1, Law::OneInFlight);
        check(world.effects(r).count() <= 1, Law::OneEffect);
        check(row.closings <= 1, Law::ClosedOnce);
        check(!(row.closings > 0 && face.live()), Law::ClosedOnce);
        // Somebody else put our operation id on an object: then nothing tells it from ours.
        let forged = world
            .objects
            .iter()
            .any(|o| !o.by_us && o.mark == Mark::Row(r));
        let through = row.by_two || went_through(world, r);
        check(face.status != Status::Succeeded || through, Law::OnlyOurs);
        let quiet = face.status == Status::Failed && !face.contradicted;
        let void = row.by_two || forged || !stands(world, r);
        check(!quiet || void, Law::FailedMeansNone);
        let heard = matches!(face.verdict, Some(Verdict::Confirmed | Verdict::Pending));
        check(!(quiet && heard), Law::Flagged);
        let lost = face.status == Status::Succeeded
            && face.verdict == Some(Verdict::Refused)
            && face.holds_ours;
        check(!lost || face.contradicted, Law::Flagged);
        let undue = face.status == Status::Open && face.five_hundred && !face.identified;
        check(!undue, Law::FiveHundred);
        let sent = world.wires.iter().filter(|w| w.row == r).map(|w| w.key);
        let kept = world.keys.iter().map(|k| k.number).filter(|k| k / 8 == r);
        let mut keys = sent.chain(kept);
        let first = keys.next();
        check(keys.all(|key| Some(key) == first), Law::OneKey);
    }
    judge_order(model, world, &faces, &mut check);
    for law in found {
        fault(model, &mut world.broken, law);
    }
}

/// What rows of one order must keep together.
fn judge_order(model: &Protocol, world: &World, faces: &[Face], check: &mut impl FnMut(bool, Law)) {
    let mut stand = 0;
    for (r, face) in (0..).zip(faces) {
        if stands(world, r) {
            stand += face.amount;
        }
        let (mut live, mut paid, mut word) = (0, 0, false);
        for (n, other) in (0..).zip(faces).filter(|(_, f)| f.amount == face.amount) {
            live += usize::from(other.live());
            paid += usize::from(stands(world, n));
            word |= world.rows[usize::from(n)].by_two;
        }
        check(live <= 1, Law::OneLiveRow);
        check(word || paid <= 1, Law::EqualCallsOnce);
    }
    let unidentified = faces.iter().filter(|f| f.live() && !f.identified);
    check(unidentified.count() <= 1, Law::OneLiveRow);
    check(stand <= model.scope.captured, Law::WithinCapture);
}
