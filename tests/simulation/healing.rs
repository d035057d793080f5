//! Phase two of a seed: nothing fails any more, time goes on, and everything must come to an end
//! (L1–L4): calls answered, nothing in flight, leases given back, every row decided by people who do
//! what the rules ask, and then the ledger and the provider agree to the cent.

use std::time::Duration;

use samekey::domain::evidence::Verdict;
use samekey::domain::ids::OperationId;
use samekey::domain::operation::{Closing, Operation, OperationRow, Status};
use samekey::ledger::verify::verify_at;
use samekey::ledger::{PageQuery, Tab};
use samekey::review::Ask;

use crate::judge::short;
use crate::options::Kind;
use crate::people::{self, Asked, Hands};
use crate::world::{World, tool};

/// So often people go through all rows.
const ROUNDS: usize = 16;
const IN_FLIGHT: &str = "SELECT count(*) FROM attempts WHERE finished_at IS NULL";
const RUNNING: &str = "SELECT count(*) FROM tool_calls WHERE state IN ('queued', 'running')";
const DRIVEN: &str = "SELECT count(*) FROM drives";

pub fn heal(world: &mut World, hands: &Hands) {
    world.heal();
    trust_clocks(world, hands);
    let lead = hands.clone();
    world.at_desk(async move {
        let lea = people::person(&lead, "lea");
        let _ = lead.gate.resume(&tool(), &lea).await;
    });
    let steps: [fn(&mut World, &Hands); 10] = [
        calls_are_answered,
        nothing_is_in_flight,
        open_rows_end,
        rows_are_decided,
        typed_ids_are_fetched,
        everybody_looks_again,
        rows_are_decided,
        the_books_agree,
        orders_are_free,
        engines_stop,
    ];
    for step in steps {
        if world.core.violation().is_some() {
            return;
        }
        step(world, hands);
    }
}

/// The machines' clocks are set right, and a lead accepts them where somebody asks for it.
fn trust_clocks(world: &mut World, hands: &Hands) {
    for machine in 0..3 {
        world.set_clock_right(machine);
    }
    if world.clock_alarm() {
        world.core.saw("a clock alarm");
        let lead = hands.clone();
        world.at_desk(async move {
            let lea = people::person(&lead, "lea");
            let _ = lead.gate.accept_clock(&lea).await;
        });
    }
}

/// Lets time go on until `done`, at most for `limit`.
fn wait_until(world: &mut World, limit: Duration, mut done: impl FnMut(&World) -> bool) -> bool {
    let end = world.core.now() + limit;
    loop {
        world.settle();
        if done(world) {
            return true;
        }
        if world.core.now() >= end || world.core.violation().is_some() {
            return false;
        }
        world.advance(Some(end));
    }
}

/// L1, L2: within its call's time, once an engine has it; those before it in the queue come first.
fn calls_are_answered(world: &mut World, _: &Hands) {
    let engine = &world.core.options.engine;
    let waiting = u32::try_from(world.ground.judge.unanswered().len()).unwrap_or(100) + 1;
    let limit = engine.call_timeout * waiting + engine.lease * 2 + engine.poll * 2;
    let all = |w: &World| w.ground.judge.unanswered().is_empty();
    if !wait_until(world, limit, all) {
        let left = world.ground.judge.unanswered();
        world
            .core
            .violated("L1", format!("not answered within {limit:?}: {left:?}"));
    }
}

/// L2: what a dead engine left behind is taken care of within its lease and a sweep.
fn nothing_is_in_flight(world: &mut World, _: &Hands) {
    let engine = &world.core.options.engine;
    let limit = engine.call_timeout + engine.lease * 2 + engine.poll * 12;
    let nothing = |w: &World| {
        let count = |sql| w.ground.judge.count(&w.ground.store, sql);
        count(IN_FLIGHT) == 0 && count(RUNNING) == 0
    };
    if !wait_until(world, limit, nothing) {
        let count = |sql| world.ground.judge.count(&world.ground.store, sql);
        let (flying, running) = (count(IN_FLIGHT), count(RUNNING));
        world.core.violated(
            "L2",
            format!("after {limit:?}: {flying} in flight, {running} running"),
        );
        return;
    }
    // A drive may outlive its call only as long as its lease.
    world.run_until(world.core.now() + engine_lease(world));
    let driven = world.ground.judge.count(&world.ground.store, DRIVEN);
    if driven > 0 {
        world.core.saw("a drive left behind by a dead engine");
    }
}

fn engine_lease(world: &World) -> Duration {
    world.core.options.engine.lease
}

/// L3: no call comes any more, and every open row ends by its deadline; one that was never sent by the next
/// sweep. What the provider has but has not finished may take longer.
fn open_rows_end(world: &mut World, hands: &Hands) {
    // A held row that a clock in the future dated waits till then, or for a lead.
    let ahead = runs_ahead(world);
    let ends = |r: &OperationRow| {
        r.status == Status::Open && r.provider_ref.is_none() && !(r.held && ahead)
    };
    let options = &world.core.options;
    let terms = &options.terms;
    let longest = terms.profile.retention.max(terms.policy.approval_ttl);
    let limit = longest + options.engine.poll * 12;
    let end = world.core.now() + limit;
    loop {
        let left = all_rows(world, hands);
        let left: Vec<&OperationRow> = left.iter().filter(|r| ends(r)).collect();
        if left.is_empty() || world.core.violation().is_some() {
            return;
        }
        if world.core.now() >= end {
            for row in left {
                let what = format!("{} is still open {limit:?} after the last fault", row.id);
                world.core.violated("L3", what);
            }
            return;
        }
        let sweep = world.core.options.engine.poll * 5;
        world.run_until((world.core.now() + sweep).min(end));
    }
}

/// Whether instants may lie hours ahead.
fn runs_ahead(world: &World) -> bool {
    let options = &world.core.options;
    options.has(Kind::StepHour) || options.has(Kind::StepDay)
}

fn all_rows(world: &mut World, hands: &Hands) -> Vec<OperationRow> {
    rows_of(world, hands, Tab::All)
}

fn rows_of(world: &mut World, hands: &Hands, tab: Tab) -> Vec<OperationRow> {
    let ledger = hands.ledger.clone();
    let page = world.at_desk(async move {
        let query = PageQuery {
            tab,
            limit: 100,
            ..PageQuery::default()
        };
        ledger.page(&query).await.expect("a page")
    });
    let rows = page.unwrap_or_default().rows;
    rows.into_iter().map(|listed| listed.row).collect()
}

fn is_settled(row: &OperationRow) -> bool {
    row.status.is_closed() && row.contradicted.is_none()
}

/// L4: every row that is not settled is listed for people, and people can settle it.
fn rows_are_decided(world: &mut World, hands: &Hands) {
    for round in 0..ROUNDS {
        if round == ROUNDS / 2 && runs_ahead(world) {
            // Instants of a clock that ran ahead lie hours ahead; nobody has to be awake till then.
            world.sleep_over(Duration::from_secs(60 * 3600));
            trust_clocks(world, hands);
        }
        let left: Vec<OperationRow> = all_rows(world, hands)
            .into_iter()
            .filter(|r| !is_settled(r))
            .collect();
        if left.is_empty() || world.core.violation().is_some() {
            return;
        }
        let listed = rows_of(world, hands, Tab::Review);
        for row in &left {
            let shown = listed.iter().any(|r| r.id == row.id);
            let waits = row.status == Status::Open && row.provider_ref.is_some();
            if !shown && !waits {
                let what = format!(
                    "{} is {} and nobody is shown it",
                    row.id,
                    row.status.as_str()
                );
                world.core.violated("L4", what);
                return;
            }
            let (hands, id) = (hands.clone(), row.id.clone());
            world.at_desk(async move { settle_row(&hands, &id).await });
        }
        let pause = world.core.options.terms.profile.settle_time + Duration::from_secs(30);
        world.run_until(world.core.now() + pause);
    }
    for row in all_rows(world, hands).iter().filter(|r| !is_settled(r)) {
        let what = format!(
            "people cannot settle {}: {} {:?} {:?}",
            row.id,
            row.status.as_str(),
            row.verdict,
            row.contradicted
        );
        world.core.violated("L4", what);
    }
}

/// What people who keep to the rules do with a row: look it up, then what its verdict asks for.
async fn settle_row(hands: &Hands, id: &OperationId) {
    let (ann, lea, max) = (
        people::person(hands, "ann"),
        people::person(hands, "lea"),
        people::person(hands, "max"),
    );
    people::look_up(hands, id, &ann).await;
    let Ok(Some(detail)) = hands.ledger.detail(id).await else {
        return;
    };
    let op = detail.op;
    let now = Duration::ZERO;
    if op.row.proposal.is_some() {
        let stands = people::decide(hands, id, Ask::Approve, &lea, now, None).await
            || people::decide(hands, id, Ask::Approve, &max, now, None).await;
        if !stands {
            people::decide(hands, id, Ask::Reject, &max, now, None).await;
        }
        return;
    }
    for ask in sensible(&op) {
        let done = people::decide(hands, id, ask, &lea, now, None).await;
        if done {
            break;
        }
    }
}

fn sensible(op: &Operation) -> Vec<Ask> {
    let row = &op.row;
    let (failed, succeeded) = (Closing::Failed, Closing::Succeeded);
    if row.contradicted.is_some() && row.status.is_closed() {
        return match row.status {
            Status::Succeeded => vec![Ask::Correct(Some(failed)), Ask::Correct(None)],
            _ => vec![Ask::Correct(Some(succeeded)), Ask::Correct(None)],
        };
    }
    if row.contradicted.is_some() {
        return vec![Ask::Close(succeeded), Ask::Correct(None)];
    }
    match (row.status, row.verdict) {
        (Status::Open, _) if row.held => vec![Ask::Approve, Ask::Reject],
        (Status::Open, _) if row.attempts == 0 => vec![Ask::Close(failed)],
        (Status::Open, Some(Verdict::Confirmed | Verdict::Refused)) => vec![Ask::Stop],
        (Status::Unknown, Some(Verdict::Confirmed | Verdict::SecondEffect)) => {
            vec![Ask::Close(succeeded)]
        }
        (Status::Unknown, _) => vec![Ask::Close(failed), Ask::Close(succeeded)],
        _ => Vec::new(),
    }
}

/// An id that was typed while the provider was silent has to be fetched by the next sweep but one.
fn typed_ids_are_fetched(world: &mut World, hands: &Hands) {
    let typed = |r: &OperationRow| r.status == Status::Succeeded && on_their_word(r);
    if all_rows(world, hands).iter().any(typed) {
        let sweeps = world.core.options.engine.poll * 11;
        world.run_until(world.core.now() + sweeps);
    }
}

fn on_their_word(row: &OperationRow) -> bool {
    row.closed_by.as_deref().is_some_and(|by| by.contains(", "))
}

/// Refunds fail after they succeeded, and persons close wrongly on their word: a later look flags it.
fn everybody_looks_again(world: &mut World, hands: &Hands) {
    let later = world.core.options.has(Kind::FailsLater);
    if later {
        world.sleep_over(Duration::from_secs(4000));
        trust_clocks(world, hands);
    }
    for row in all_rows(world, hands) {
        if later || on_their_word(&row) {
            let (hands, id) = (hands.clone(), row.id.clone());
            world.at_desk(async move {
                let ann = people::person(&hands, "ann");
                people::look_up(&hands, &id, &ann).await;
            });
        }
    }
    let flagged = |r: &OperationRow| r.contradicted.is_some() && on_their_word(r);
    if all_rows(world, hands).iter().any(flagged) {
        let what = "two persons closed wrongly, and the row was flagged";
        world.core.saw(what);
    }
}

/// In the end every word of the ledger is true at the provider, and the audit of the file finds nothing.
fn the_books_agree(world: &mut World, _: &Hands) {
    world.ground.judge.agree();
    let report = world.ground.store.block(verify_at(
        &world.ground.place.path,
        world.ground.clocks[2].now(),
    ));
    let report = report.expect("the ledger can be audited");
    for violation in report.violations {
        let of = violation.operation.unwrap_or_default();
        let what = format!("verify: {} {}", short(&of), violation.what);
        world.core.violated(violation.rule, what);
    }
}

/// Life goes on: another amount of every order gets its refund, or is told that nothing is left.
fn orders_are_free(world: &mut World, hands: &Hands) {
    for n in 0..world.core.options.orders {
        let asked = Asked {
            agent: people::AGENTS[0],
            call: format!("toolu_end_{n}"),
            order: format!("{}", 4417 + n),
            amount: 777,
            after: None,
        };
        // One after another: after an outage one attempt at a time is let through.
        world.at_desk(people::ask(hands.clone(), asked));
        calls_are_answered(world, hands);
    }
    let stuck = "SELECT count(*) FROM tool_calls WHERE call_id LIKE 'toolu_end_%'
        AND (result LIKE '%order_busy%' OR result LIKE '%checking%' OR result LIKE '%unavailable%')";
    if world.ground.judge.count(&world.ground.store, stuck) > 0 {
        world
            .core
            .violated("L2", "an order is stuck although all its rows are settled");
    }
}

fn engines_stop(world: &mut World, _: &Hands) {
    for n in [0, 1] {
        world.stop_engine(n);
    }
}
