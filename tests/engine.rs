//! The engine on a real ledger file with a provider in memory: one effect, whatever happens.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::provider::{FakeProvider, Script, refund_of};
use common::world::{World, agent, refund, terms, tool};
use samekey::clock::Clock;
use samekey::domain::guard::Role;
use samekey::domain::operation::{
    Closing, Contradiction, FailureClass, LookedAt, Status, UnknownReason,
};
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::Caps;
use samekey::domain::tool_call::{RejectClass, ToolResult};
use samekey::domain::transition::Lookup;
use samekey::engine::{Engine, EngineDeps, EngineState};
use samekey::ledger::{NewCall, PageQuery};
use samekey::provider::Provider as _;
use samekey::review::Ask;

const TIMEOUT: Script = Script::Class(OutcomeClass::SideEffectUnknown);

fn status(result: &ToolResult) -> &str {
    result.status()
}

/// R3–R12: three timeouts, "try again" under a new call id, one row, one key, one refund.
#[tokio::test(flavor = "multi_thread")]
async fn the_seeds_refund_stays_one_r12() {
    let provider = FakeProvider::new([TIMEOUT, TIMEOUT, TIMEOUT]);
    let world = World::new(provider.clone()).await;
    assert_eq!(
        status(&world.ask("toolu_01", &refund("4417", 3800)).await),
        "unconfirmed"
    );
    assert_eq!(
        status(&world.ask("toolu_02", &refund("4417", 3800)).await),
        "refunded"
    );
    let sent = provider.sent();
    assert_eq!(sent.len(), 4);
    assert!(
        sent.windows(2).all(|w| w[0] == w[1]),
        "same key, same bytes (I3)"
    );
    let row = world.only().await.op.row;
    assert_eq!((row.status, row.attempts), (Status::Succeeded, 4));
}

/// The same on an order of exactly that amount: get comes before check (protocol step 3).
#[tokio::test(flavor = "multi_thread")]
async fn a_full_refund_is_asked_again_and_stays_one() {
    let provider = FakeProvider::new([TIMEOUT, TIMEOUT, TIMEOUT]);
    provider.captured(3800);
    let world = World::new(provider.clone()).await;
    world.ask("toolu_01", &refund("4417", 3800)).await;
    // The first one took effect: nothing is left to refund, and nobody may conclude from that.
    provider.refunded_elsewhere(3800);
    assert_eq!(
        status(&world.ask("toolu_02", &refund("4417", 3800)).await),
        "refunded"
    );
    let sent = provider.sent();
    assert_eq!(sent.len(), 4);
    assert!(
        sent.windows(2).all(|w| w[0] == w[1]),
        "F10: no sum is part of a key"
    );
}

/// R39, R41, R42, F16: a 500 is sent once; every later call hears `checking`.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_is_never_sent_again_f16() {
    let provider = FakeProvider::new([Script::Class(OutcomeClass::ServerError)]);
    let world = World::new(provider.clone()).await;
    for n in 0..5 {
        let result = world
            .ask(&format!("toolu_{n}"), &refund("4417", 3800))
            .await;
        assert_eq!(status(&result), "checking");
    }
    assert_eq!(provider.sent().len(), 1);
    assert_eq!(
        world.only().await.op.row.reason,
        Some(UnknownReason::ServerError)
    );
}

/// F13, F14: 409 on every attempt is `unconfirmed`, and at six `checking`, never `failed`.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_progress_uses_up_attempts_f14() {
    let busy = Script::Class(OutcomeClass::KeyInProgress);
    let provider = FakeProvider::new(vec![busy; 9]);
    let world = World::new(provider.clone()).await;
    assert_eq!(
        status(&world.ask("a", &refund("4417", 3800)).await),
        "unconfirmed"
    );
    assert_eq!(
        status(&world.ask("b", &refund("4417", 3800)).await),
        "checking"
    );
    assert_eq!(
        status(&world.ask("c", &refund("4417", 3800)).await),
        "checking"
    );
    assert_eq!(provider.sent().len(), 6, "R45");
}

/// F13, R26, R28: a timeout and two conflicts are waited for; the next call gets what the first request
/// did. Four attempts, one key, the same bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_waited_for_under_the_same_key_f13() {
    let busy = Script::Class(OutcomeClass::KeyInProgress);
    let provider = FakeProvider::new([TIMEOUT, busy.clone(), busy]);
    let world = World::new(provider.clone()).await;
    let first = world.ask("toolu_01", &refund("4417", 3800)).await;
    assert_eq!(status(&first), "unconfirmed");
    let second = world.ask("toolu_02", &refund("4417", 3800)).await;
    assert_eq!(status(&second), "refunded");
    let sent = provider.sent();
    assert_eq!(sent.len(), 4);
    assert!(sent.windows(2).all(|w| w[0] == w[1]), "{sent:?}");
}

/// L5: a row whose request hangs delays no other.
#[tokio::test(flavor = "multi_thread")]
async fn one_hanging_row_delays_no_other_l5() {
    let provider = FakeProvider::new([Script::Hold]);
    let world = World::new(provider.clone()).await;
    let engine = Engine::start(world.deps());
    world.accept("a", &refund("4417", 3800)).await;
    provider.arrived.notified().await;
    for n in 0..20 {
        let id = format!("b{n}");
        world.accept(&id, &refund(&format!("5{n}"), 100)).await;
    }
    for n in 0..20 {
        assert_eq!(status(&world.answer(&format!("b{n}")).await), "refunded");
    }
    let hanging = world.ledger.call(&agent(), &"a".parse().expect("id")).await;
    assert_eq!(hanging.expect("read").expect("known").result, None);
    provider.let_go();
    assert_eq!(status(&world.answer("a").await), "refunded");
    engine.stop(Duration::from_secs(5)).await;
}

/// I6, I25, L5: the ledger stands still for longer than the lease while a request is on its way. Its engine is
/// alive and has the call in hand: it does not take it from itself, and spends no further attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_stall_past_the_lease_takes_no_call_from_a_living_worker_i6_i25() {
    let provider = FakeProvider::new([Script::Hold]);
    let world = World::new(provider.clone()).await;
    let mut deps = world.deps();
    deps.config.lease = Duration::from_secs(800);
    let lease = world.clock.real(deps.config.lease);
    let engine = Engine::start(deps);
    world.accept("a", &refund("4417", 3800)).await;
    provider.arrived.notified().await;
    let mut other = world.past_samekey().await;
    let held = sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await;
    held.expect("held");
    // What has to pass is time.
    tokio::time::sleep(lease * 5 / 4).await;
    let freed = sqlx::query("ROLLBACK").execute(&mut other).await;
    freed.expect("let go");
    world.accept("b", &refund("4418", 3800)).await;
    assert_eq!(status(&world.answer("b").await), "refunded");
    let hanging = world.ledger.call(&agent(), &"a".parse().expect("id")).await;
    assert_eq!(hanging.expect("read").expect("known").result, None);
    provider.let_go();
    let answer = world.answer("a").await;
    assert_eq!(status(&answer), "refunded");
    let id = answer.operation().expect("an operation");
    let detail = world.ledger.detail(id).await.expect("read");
    assert_eq!(detail.expect("known").op.row.attempts, 1);
    assert_eq!(provider.sent().len(), 2, "one each");
    engine.stop(Duration::from_secs(5)).await;
}

/// A world with a second tool at a provider of its own, and an engine of two workers for both.
async fn two_tools(first: &Arc<FakeProvider>, second: &Arc<FakeProvider>) -> (World, EngineDeps) {
    let mut world = World::new(first.clone()).await;
    let mut terms = (*world.terms).clone();
    let mut voucher = terms[&tool()].clone();
    voucher.policy.provider = second.name().clone();
    terms.insert("issue_voucher".parse().expect("a tool"), voucher);
    world.terms = Arc::new(terms);
    world.ledger = world.second_handle().await;
    let mut providers = (*world.providers).clone();
    providers.insert(second.name().clone(), second.clone());
    world.providers = Arc::new(providers);
    let mut deps = world.deps();
    deps.config.workers = 2;
    (world, deps)
}

/// L5: a provider that hangs, when it is sent to or when it is asked whose account it is, delays its own
/// tool and no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_provider_delays_no_other_tool_l5() {
    for sending in [true, false] {
        let hanging = FakeProvider::new(vec![Script::Hold; 9]);
        if !sending {
            hanging.hold_reads();
        }
        let well = FakeProvider::named("vouchers", []);
        let (world, deps) = two_tools(&hanging, &well).await;
        let engine = Engine::start(deps);
        for n in 0..9 {
            let id = format!("a{n}");
            world.accept(&id, &refund(&format!("1{n}"), 100)).await;
        }
        hanging.arrived.notified().await;
        let voucher = NewCall {
            id: "b".parse().expect("id"),
            agent: agent(),
            tool: "issue_voucher".parse().expect("a tool"),
            arguments: refund("4417", 3800).to_string(),
            session: None,
        };
        world.ledger.accept_call(voucher).await.expect("accepted");
        let answer = tokio::time::timeout(Duration::from_secs(30), world.answer("b"));
        assert_eq!(status(&answer.await.expect("not held up")), "refunded");
        assert_eq!(well.sent().len(), 1);
        engine.stop(Duration::from_millis(50)).await;
    }
}

/// R62: asking again after the answer was missed gives the stored one; nothing is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_the_stored_result_r62() {
    let provider = FakeProvider::new([]);
    let world = World::new(provider.clone()).await;
    world.ask("a", &refund("4417", 3800)).await;
    let again = world.ask("b", &refund("4417", 3800)).await;
    assert!(
        matches!(again, ToolResult::Done { repeat: true, .. }),
        "{again:?}"
    );
    assert_eq!(provider.sent().len(), 1);
    // Named with `after`, an equal refund is a second one (M33).
    let first = world.only().await.op.row.id;
    let mut named = refund("4417", 3800);
    named["after"] = first.as_str().into();
    let second = world.ask("c", &named).await;
    assert!(
        matches!(second, ToolResult::Done { repeat: false, .. }),
        "{second:?}"
    );
    let sent = provider.sent();
    assert_ne!(sent[0].key, sent[1].key);
    // Nor is a key made of what is known of its row (I2).
    for request in &sent {
        let key = request.key.to_string().replace('-', "");
        assert!(!request.operation.as_str().contains(&key), "{request:?}");
    }
    // The same `after` again reaches that second one.
    let third = world.ask("d", &named).await;
    assert!(
        matches!(third, ToolResult::Done { repeat: true, .. }),
        "{third:?}"
    );
    assert_eq!(provider.sent().len(), 2);
}

/// R32, I4: another amount waits while the first is not settled.
#[tokio::test(flavor = "multi_thread")]
async fn another_amount_of_a_busy_order_is_rejected() {
    let provider = FakeProvider::new([Script::Class(OutcomeClass::ServerError)]);
    let world = World::new(provider.clone()).await;
    world.ask("a", &refund("4417", 3800)).await;
    let other = world.ask("b", &refund("4417", 1900)).await;
    let ToolResult::Rejected {
        class, blocked_by, ..
    } = other
    else {
        panic!("{other:?}");
    };
    assert_eq!(class, RejectClass::OrderBusy);
    assert_eq!(blocked_by.expect("named").status, Status::Unknown);
    assert_eq!(provider.sent().len(), 1);
}

/// F02, I1: the same refund by two engines at the same time is one row and one effect.
#[tokio::test(flavor = "multi_thread")]
async fn two_engines_and_many_calls_make_one_effect_f02() {
    let provider = FakeProvider::new([]);
    let world = World::new(provider.clone()).await;
    let mut second = world.deps();
    second.ledger = world.second_handle().await;
    for n in 0..20 {
        world
            .accept(&format!("toolu_{n}"), &refund("4417", 3800))
            .await;
    }
    let engines = [Engine::start(world.deps()), Engine::start(second)];
    for n in 0..20 {
        assert_eq!(
            status(&world.answer(&format!("toolu_{n}")).await),
            "refunded"
        );
    }
    assert_eq!(provider.sent().len(), 1);
    for engine in engines {
        engine.stop(Duration::from_secs(5)).await;
    }
}

/// Step 7: a call that finds another one driving joins it, spends nothing and gets its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_call_joins_the_first() {
    let provider = FakeProvider::new([Script::Hold]);
    let world = World::new(provider.clone()).await;
    let engine = Engine::start(world.deps());
    world.accept("a", &refund("4417", 3800)).await;
    provider.arrived.notified().await;
    world.accept("b", &refund("4417", 3800)).await;
    // It is linked to the row in the transaction in which it joins; only then the first may end.
    world.linked("b").await;
    provider.let_go();
    let first = world.answer("a").await;
    assert_eq!(status(&first), "refunded");
    // The driver's own answer, not a later look at the closed row (which would say `repeat`).
    assert_eq!(world.answer("b").await, first);
    assert_eq!(provider.sent().len(), 1);
    assert_eq!(world.only().await.op.row.attempts, 1);
    engine.stop(Duration::from_secs(5)).await;
}

/// L1: a call that joined another one is answered when its own time is over, however long that one hangs.
#[tokio::test(flavor = "multi_thread")]
async fn a_joined_call_is_answered_when_its_time_is_over_l1() {
    let provider = FakeProvider::new([Script::Hold]);
    let clock = Clock::manual("2026-01-02T17:00:00Z".parse().expect("a time"));
    let world = World::with(provider.clone(), terms(), clock.clone()).await;
    let mut deps = world.deps();
    deps.config.call_timeout = Duration::from_secs(120);
    let engine = Engine::start(deps);
    world.accept("a", &refund("4417", 3800)).await;
    provider.arrived.notified().await;
    world.accept("b", &refund("4417", 3800)).await;
    world.linked("b").await;
    clock.advance(Duration::from_secs(121));
    let answer = tokio::time::timeout(Duration::from_secs(30), world.answer("b"));
    assert_eq!(status(&answer.await.expect("in its time")), "unconfirmed");
    provider.let_go();
    assert_eq!(status(&world.answer("a").await), "refunded");
    engine.stop(Duration::from_secs(5)).await;
}

/// F53: what came back while the ledger could not be written is not forgotten: it is written once it can be.
#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_cannot_be_written_is_written_later_f53() {
    let provider = FakeProvider::new([Script::Hold]);
    let world = World::new(provider.clone()).await;
    let engine = Engine::start(world.deps());
    world.accept("a", &refund("4417", 3800)).await;
    provider.arrived.notified().await;
    let mut other = world.past_samekey().await;
    let refuse =
        "CREATE TRIGGER refuse BEFORE UPDATE ON attempts BEGIN SELECT RAISE(ABORT, 'no'); END";
    let refused = sqlx::query(refuse).execute(&mut other).await;
    refused.expect("refused from now on");
    provider.let_go();
    // Long enough for several tries.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let again = sqlx::query("DROP TRIGGER refuse").execute(&mut other).await;
    again.expect("taken again");
    assert_eq!(status(&world.answer("a").await), "refunded");
    assert_eq!(provider.sent().len(), 1, "nothing had to be asked again");
    let op = world.only().await.op;
    assert_eq!(op.attempts[0].class(), Some(OutcomeClass::Succeeded));
    engine.stop(Duration::from_secs(5)).await;
}

/// L8, U55: a stop cuts off nothing silently; what was in flight is recorded as interrupted, and the
/// next engine goes on under the same key.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_records_what_it_cuts_off() {
    let provider = FakeProvider::new([Script::Hold]);
    let world = World::new(provider.clone()).await;
    let engine = Engine::start(world.deps());
    let health = engine.health();
    world.accept("a", &refund("4417", 3800)).await;
    provider.arrived.notified().await;
    engine.stop(Duration::from_millis(100)).await;
    assert_eq!(health.borrow().state, EngineState::Stopped);
    let cut = world.only().await.op;
    assert!(!cut.in_flight());
    let result = cut.attempts[0].result.as_ref().expect("recorded");
    assert_eq!(result.error.as_ref().expect("why").as_str(), "interrupted");
    let next = Engine::start(world.deps());
    assert_eq!(status(&world.answer("a").await), "refunded");
    let sent = provider.sent();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
    next.stop(Duration::from_secs(5)).await;
}

/// F44, M19, U32: a call whose worker dies is told on the screen and driven on under the same key.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_workers_call_is_driven_on_f44() {
    let provider = FakeProvider::new([Script::Panic]);
    let world = World::new(provider.clone()).await;
    world.accept("a", &refund("4417", 3800)).await;
    let mut deps = world.deps();
    // The dead worker's call is given back after one lease.
    deps.config.lease = Duration::from_secs(1_600);
    let engine = Engine::start(deps);
    assert_eq!(status(&world.answer("a").await), "refunded");
    let op = world.only().await.op;
    assert_eq!(op.row.attempts, 2);
    assert_eq!(
        op.attempts[0].class(),
        Some(OutcomeClass::SideEffectUnknown)
    );
    let sent = provider.sent();
    assert_eq!(sent[0], sent[1]);
    engine.stop(Duration::from_secs(5)).await;
}

/// F44, I25: the work of an engine that is gone is taken over when its lease ends, and its name
/// writes nothing any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_engines_call_is_taken_over_f44() {
    let provider = FakeProvider::new([]);
    let world = World::new(provider.clone()).await;
    world.accept("a", &refund("4417", 3800)).await;
    let gone = "eng_gone".parse().expect("engine");
    let lease = Duration::from_secs(100);
    let leased = world
        .ledger
        .lease_calls(&gone, lease, 1)
        .await
        .expect("leased");
    let engine = Engine::start(world.deps());
    assert_eq!(status(&world.answer("a").await), "refunded");
    let late = world.ledger.finish_call(&leased[0]).await.expect("asked");
    assert_eq!(late, None, "a stale engine changes nothing");
    engine.stop(Duration::from_secs(5)).await;
}

/// Step 8: a failed connection is no attempt, but the call's tries are limited.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_connection_fails_safely() {
    let provider = FakeProvider::new(vec![Script::NoConnection; 3]);
    let world = World::new(provider.clone()).await;
    let result = world.ask("a", &refund("4417", 3800)).await;
    let ToolResult::Failed { class, .. } = result else {
        panic!("{result:?}")
    };
    assert_eq!(class, FailureClass::Unavailable);
    assert_eq!(world.only().await.op.row.attempts, 0, "never_sent");
    // Asking again is safe and works.
    assert_eq!(
        status(&world.ask("b", &refund("4417", 3800)).await),
        "refunded"
    );
}

/// S34, F20: already refunded is looked into: not ours → failed; ours → refunded.
#[tokio::test(flavor = "multi_thread")]
async fn already_refunded_is_looked_into_f20() {
    let mut outcome = Outcome::of(OutcomeClass::ValidationFailure);
    outcome.already_refunded = true;
    outcome.http_status = Some(400);
    let provider = FakeProvider::new([Script::Outcome(Box::new(outcome.clone()))]);
    let world = World::new(provider.clone()).await;
    assert_eq!(
        status(&world.ask("a", &refund("4417", 3800)).await),
        "failed"
    );
    // Unreachable: unknown, a person looks.
    provider.then(Script::Outcome(Box::new(outcome)));
    provider.lookup_gives(Lookup::Unreachable { why: "down".into() });
    assert_eq!(
        status(&world.ask("b", &refund("4418", 3800)).await),
        "checking"
    );
    assert_eq!(provider.sent().len(), 2);
}

/// M8: what cannot be resolved or read opens no row.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_opened_while_the_provider_cannot_be_read_m8() {
    let provider = FakeProvider::new([]);
    provider.unreadable(true);
    let world = World::new(provider.clone()).await;
    let result = world.ask("a", &refund("4417", 3800)).await;
    assert!(matches!(
        result,
        ToolResult::Rejected {
            class: RejectClass::Unavailable,
            ..
        }
    ));
    provider.unreadable(false);
    provider.captured(3799);
    let result = world.ask("b", &refund("4417", 3800)).await;
    assert!(matches!(
        result,
        ToolResult::Rejected {
            class: RejectClass::ValidationFailure,
            ..
        }
    ));
    assert!(
        world
            .ledger
            .page(&PageQuery::default())
            .await
            .expect("page")
            .rows
            .is_empty()
    );
}

/// I4, protocol steps 4 and 5: an approval comes late, and what was refunded elsewhere meanwhile leaves no
/// room for the row: it is read again before its first send. With room it is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_waited_is_held_against_its_payment_once_more_i4() {
    for (elsewhere, status, sent) in [(0, Status::Succeeded, 1), (1, Status::Failed, 0)] {
        let provider = FakeProvider::new([]);
        provider.captured(3800);
        let mut terms = terms();
        let caps = Caps {
            approve_over: Some(1),
            ..Caps::default()
        };
        terms.policy.caps.insert("usd".parse().expect("usd"), caps);
        let clock = Clock::manual("2026-01-02T17:00:00Z".parse().expect("a time"));
        let world = World::with(provider.clone(), terms, clock.clone()).await;
        let answer = world.ask("a", &refund("4417", 3800)).await;
        assert_eq!(answer.status(), "held");
        clock.advance(Duration::from_secs(61));
        provider.refunded_elsewhere(elsewhere);
        let gate = world.gate(&[("lea", Role::Lead)]);
        let lea = gate.person(Some(&"lea".parse().expect("a name")));
        let lea = lea.expect("known");
        let row = world.only().await.op.row;
        let seen = Some(LookedAt::of(&row));
        gate.decide(&row.id, Ask::Approve, &lea, "agreed", seen, None)
            .await
            .expect("approved");
        let engine = Engine::start(world.deps());
        let mut changes = world.ledger.changed();
        while !world.only().await.op.row.status.is_closed() {
            changes.changed().await.expect("the ledger lives");
        }
        let row = world.only().await.op.row;
        assert_eq!((row.status, row.attempts), (status, sent));
        assert_eq!(provider.sent().len(), usize::try_from(sent).expect("few"));
        if status == Status::Failed {
            assert_eq!(row.failure, Some(FailureClass::ValidationFailure));
        }
        engine.stop(Duration::from_secs(5)).await;
    }
}

/// An old queue is not sent: a call that no engine began within its time is rejected.
#[tokio::test(flavor = "multi_thread")]
async fn fridays_queue_is_not_sent_on_monday() {
    let provider = FakeProvider::new([]);
    let clock = Clock::manual("2026-01-02T17:00:00Z".parse().expect("friday"));
    let world = World::with(provider.clone(), terms(), clock.clone()).await;
    world.accept("a", &refund("4417", 3800)).await;
    clock.advance(Duration::from_secs(3 * 86_400));
    let engine = Engine::start(world.deps());
    let result = world.answer("a").await;
    assert!(
        matches!(
            result,
            ToolResult::Rejected {
                class: RejectClass::Unavailable,
                ..
            }
        ),
        "{result:?}"
    );
    assert!(provider.sent().is_empty());
    engine.stop(Duration::from_secs(5)).await;
}

/// Outage: the circuit opens, calls that would open a row are rejected, a probe and one attempt close it.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_does_not_turn_a_queue_into_unknown_rows() {
    let provider = FakeProvider::new(vec![Script::Class(OutcomeClass::ServerError); 5]);
    let world = World::new(provider.clone()).await;
    for n in 0..5 {
        world
            .ask(&format!("a{n}"), &refund(&format!("10{n}"), 100))
            .await;
    }
    let turned_away = world.ask("b", &refund("2000", 100)).await;
    assert!(matches!(
        turned_away,
        ToolResult::Rejected {
            class: RejectClass::Unavailable,
            ..
        }
    ));
    assert_eq!(provider.sent().len(), 5);
    let engine = Engine::start(world.deps());
    let mut changes = world.ledger.changed();
    while provider.probes() == 0 {
        changes.changed().await.expect("the ledger lives");
    }
    // After the probe one attempt is let through; its success closes the circuit.
    let mut answer = "rejected".to_owned();
    for n in 0..50 {
        answer = world
            .ask(&format!("c{n}"), &refund("2001", 100))
            .await
            .status()
            .to_owned();
        if answer == "refunded" {
            break;
        }
    }
    assert_eq!(answer, "refunded");
    let state = world
        .ledger
        .tools()
        .await
        .expect("tools")
        .pop()
        .expect("the tool");
    assert!(!state.circuit.is_open(), "its success closes the circuit");
    engine.stop(Duration::from_secs(5)).await;
}

/// I24: the same call id gets its stored answer; with other arguments an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_id_has_one_answer_i24() {
    let provider = FakeProvider::new([]);
    let world = World::new(provider.clone()).await;
    let first = world.ask("a", &refund("4417", 3800)).await;
    let again = world.ask("a", &refund("4417", 3800)).await;
    assert_eq!(first, again);
    assert_eq!(provider.sent().len(), 1);
    let other = samekey::ledger::NewCall {
        id: "a".parse().expect("id"),
        agent: agent(),
        tool: tool(),
        arguments: refund("4417", 3900).to_string(),
        session: None,
    };
    let conflict = world.ledger.accept_call(other).await.expect("stored");
    assert!(matches!(conflict, samekey::ledger::Accepted::Conflict));
}

/// The object a reply names must be ours in every part (I14); here the row is unknown at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_about_another_amount_is_no_success() {
    let provider = FakeProvider::new([]);
    let world = World::new(provider.clone()).await;
    world.ask("seed", &refund("1", 100)).await;
    let row = world.only().await.op.row;
    let mut wrong = Outcome::of(OutcomeClass::Succeeded);
    wrong.object = Some(refund_of(&row));
    provider.then(Script::Outcome(Box::new(wrong)));
    assert_eq!(status(&world.ask("a", &refund("2", 100)).await), "checking");
}

/// A key that runs out is told of by whatever engine sweeps, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_runs_out_is_told_by_the_sweep() {
    let provider = FakeProvider::new([TIMEOUT, TIMEOUT, TIMEOUT]);
    let mut terms = terms();
    terms.profile.retention = Duration::from_secs(2 * 3600);
    let world = World::with(provider.clone(), terms, Clock::scaled(20)).await;
    world.ask("a", &refund("4417", 3800)).await;
    let engine = Engine::start(world.deps());
    let mut changes = world.ledger.changed();
    while world.ledger.notice_counts().await.expect("counted").pending == 0 {
        changes.changed().await.expect("the ledger lives");
    }
    world.ledger.tell_expiring().await.expect("told");
    let counts = world.ledger.notice_counts().await.expect("counted");
    assert_eq!(counts.pending, 1, "once");
    engine.stop(Duration::from_secs(5)).await;
}

/// A row that two people closed with an id that nobody could fetch.
async fn closed_unseen(world: &World, provider: &FakeProvider) {
    provider.then(Script::Class(OutcomeClass::ServerError));
    world.ask("a", &refund("4417", 3800)).await;
    provider.unreadable(true);
    let gate = world.gate(&[("ann", Role::Reviewer), ("lea", Role::Lead)]);
    let person = |name: &str| {
        gate.person(Some(&name.parse().expect("a name")))
            .expect("known")
    };
    let row = world.only().await.op.row;
    let close = Ask::Close(Closing::Succeeded);
    let typed = Some("re_typed".parse().expect("a ref"));
    let seen = Some(LookedAt::of(&row));
    let ann = person("ann");
    let why = "the bank says so";
    let proposed = gate.decide(&row.id, close, &ann, why, seen, typed).await;
    let proposed = proposed.expect("proposed");
    assert!(proposed.proposed);
    let seen = Some(LookedAt::of(&proposed.op.row));
    let closed = gate
        .decide(&row.id, Ask::Approve, &person("lea"), "agreed", seen, None)
        .await
        .expect("closed");
    assert_eq!(closed.op.row.status, Status::Succeeded);
    provider.unreadable(false);
}

/// A typed id accepted while the provider was silent is fetched as soon as it answers; one that turns
/// out not to exist contradicts the row (protocol, "Evidence, verdicts, closing").
#[tokio::test(flavor = "multi_thread")]
async fn a_typed_id_accepted_unseen_is_fetched_by_the_engine() {
    let provider = FakeProvider::new([]);
    let world = World::new(provider.clone()).await;
    closed_unseen(&world, &provider).await;
    let engine = Engine::start(world.deps());
    let mut changes = world.ledger.changed();
    while world.only().await.op.row.contradicted.is_none() {
        changes.changed().await.expect("the ledger lives");
    }
    let contradicted = world.only().await.op.row.contradicted;
    assert_eq!(contradicted, Some(Contradiction::RefMismatch));
    engine.stop(Duration::from_secs(5)).await;
}

/// L5, L3: while a provider keeps the fetch of one row waiting, the deadlines of the others are met.
#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_read_delays_no_deadline_l5() {
    let provider = FakeProvider::new([]);
    let mut terms = terms();
    let profile = &mut terms.profile;
    profile.settle_time = Duration::from_secs(1);
    profile.retention = profile.send_window + Duration::from_secs(900);
    let world = World::with(provider.clone(), terms, Clock::scaled(200)).await;
    closed_unseen(&world, &provider).await;
    for _ in 0..3 {
        provider.then(TIMEOUT);
    }
    let told = world.ask("b", &refund("4418", 3800)).await;
    assert_eq!(status(&told), "unconfirmed");
    let id = told.operation().expect("an operation").clone();
    provider.hold_reads();
    let engine = Engine::start(world.deps());
    provider.arrived.notified().await;
    let ended = async {
        let mut changes = world.ledger.changed();
        loop {
            let row = world.ledger.rows(std::slice::from_ref(&id)).await;
            let row = row.expect("read").pop().expect("there");
            if row.status == Status::Unknown {
                return row.reason;
            }
            changes.changed().await.expect("the ledger lives");
        }
    };
    let reason = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert_eq!(reason.expect("swept"), Some(UnknownReason::KeyExpired));
    engine.stop(Duration::from_millis(50)).await;
}
