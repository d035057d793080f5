//! The seed's scenario as a story, and the limits that bound it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use std::time::Duration;

use samekey::domain::arguments::Arguments;
use samekey::domain::evidence::ObjectStatus;
use samekey::domain::opening::{self, Got, Resolved};
use samekey::domain::operation::{Effect, Status, UnknownReason};
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::{ProviderKind, Repeat};
use samekey::domain::tool_call::{RefundArguments, ToolResult};
use samekey::domain::transition::{Authorise, Event, Next, Refusal};
use samekey::domain::{later, since};

use crate::builders::*;

/// What the model asked for: the same words in `toolu_01` and in `toolu_02`.
fn arguments() -> Arguments {
    Arguments::from(RefundArguments {
        order: "4417".parse().expect("an order"),
        money: money(3800),
        payment: None,
        charge: None,
        reason: None,
        after: None,
    })
}

/// R3, R7–R13, R43, R51–R53: three timeouts are "not confirmed"; "try again" finds the same row and
/// the same key, and is refunded by the fourth attempt.
#[test]
fn try_again_finds_the_open_row_and_its_key() {
    let mut story = Story::seed();
    let key = story.op.row.key.clone();

    let first = story.tool_call("toolu_01", &mut vec![timeout(), timeout(), timeout()]);
    assert_eq!(first.status(), "unconfirmed");
    assert_eq!(first.operation(), Some(&story.op.row.id));
    assert_eq!(story.op.row.attempts, 3, "R13");
    assert_eq!(story.op.row.effect, Effect::Possible);
    assert_eq!(story.authorise("toolu_01"), Err(Refusal::CallSpent), "R45");

    story.wait(90);
    let rows = [story.op.row.clone()];
    let got = opening::get(&rows, &arguments(), None, &story.terms.policy);
    assert_eq!(got, Got::Row(story.op.row.id.clone()), "R12");

    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    let second = story.tool_call(
        "toolu_02",
        &mut vec![reply(OutcomeClass::Succeeded, refund)],
    );
    let ToolResult::Done { object, repeat, .. } = second else {
        panic!("R52: {second:?}")
    };
    assert_eq!(object.expect("an id").id.as_str(), "re_1");
    assert!(!repeat);
    assert_eq!((story.op.row.attempts, &story.op.row.key), (4, &key), "R1");
    assert_eq!(story.status(), Status::Succeeded, "R22");
}

/// R3, R24, I4: the story on an order of exactly $38.00, and for the full remaining amount of a
/// larger one. Neither the open row nor the finished refund makes "try again" a matter of balance.
#[test]
fn the_full_amount_of_an_order_is_refunded_once() {
    for (captured, elsewhere) in [(3800, 0), (10_000, 6200)] {
        let mut story = Story::seed();
        let policy = story.terms.policy.clone();
        let mut paid = Resolved {
            payment: payment_of("4417"),
            charge: None,
            currency: usd(),
            captured_minor: captured,
            refunded_minor: elsewhere,
            refunds: Vec::new(),
        };
        opening::check(
            &[],
            &arguments(),
            Some(&paid),
            &policy,
            opening::Opened::default(),
        )
        .expect("it fits");

        story.tool_call("toolu_01", &mut vec![timeout(), timeout(), timeout()]);
        let rows = [story.op.row.clone()];
        assert_eq!(opening::room(&rows, &paid, None), 0, "its own row fills it");
        assert_eq!(opening::room(&rows, &paid, Some(&rows[0].id)), 3800);
        // Get before check: the second call is answered by the row and never meets the sums.
        let got = opening::get(&rows, &arguments(), Some(&paid.payment), &policy);
        assert!(matches!(got, Got::Row(_)));

        let refund = story.ours("re_1", ObjectStatus::Succeeded);
        story.attempt("toolu_02", reply(OutcomeClass::Succeeded, refund.clone()));
        paid.refunded_minor += 3800;
        paid.refunds.push(refund.id);
        let rows = [story.op.row.clone()];
        let repeat = opening::get(&rows, &arguments(), None, &policy);
        let Got::Answer(told) = repeat else {
            panic!("R62: {repeat:?}")
        };
        assert!(matches!(*told, ToolResult::Done { repeat: true, .. }));
        // With the seed's bare rule the sums hold the next one back (R24).
        let mut bare = policy.clone();
        bare.repeat = Repeat::Open;
        assert_eq!(opening::get(&rows, &arguments(), None, &bare), Got::Nothing);
        opening::check(
            &rows,
            &arguments(),
            Some(&paid),
            &bare,
            opening::Opened::default(),
        )
        .expect_err("nothing is left");
    }
}

/// R39, R41, R42, R50, I15, F16, M58: a 500 is saved with its key; one request, then every later
/// call hears "checking", days later too.
#[test]
fn a_saved_500_is_sent_once_and_then_checked_by_a_person() {
    let mut story = Story::seed();
    let server_error = Outcome::of(OutcomeClass::ServerError);
    let first = story.tool_call("toolu_01", &mut vec![server_error]);
    assert_eq!(first.status(), "checking");
    assert_eq!(story.op.row.reason, Some(UnknownReason::ServerError));
    for n in 2..=6 {
        story.wait(12 * 3600);
        let name = format!("toolu_0{n}");
        let status = Status::Unknown;
        assert_eq!(story.authorise(&name), Err(Refusal::NotOpen { status }));
        let got = opening::get(
            &[story.op.row.clone()],
            &arguments(),
            None,
            &story.terms.policy,
        );
        assert_eq!(got, Got::Row(story.op.row.id.clone()));
        assert_eq!(story.answer(), first, "R47");
        assert_eq!(story.sweep(), Err(Refusal::NothingDue), "I16, F18");
    }
    assert_eq!(story.op.row.attempts, 1);
    let ToolResult::Checking { note, .. } = first else {
        panic!("R42")
    };
    assert!(note.as_str().contains("Do not say"), "R42");
}

/// R44, R45, R48, R53, I6: three per call, six per operation; the sixth makes it unknown. 409s and
/// 429s count, because an attempt is counted before it is sent (R49).
#[test]
fn six_attempts_over_all_calls_are_the_end() {
    for outcome in [
        timeout(),
        in_progress(),
        limited(),
        Outcome::of(OutcomeClass::NotSent),
    ] {
        let mut story = Story::seed();
        let mut six = vec![outcome.clone(); 6];
        assert_eq!(
            story.tool_call("toolu_01", &mut six).status(),
            "unconfirmed",
            "F14"
        );
        assert_eq!(story.tool_call("toolu_02", &mut six).status(), "checking");
        assert!(six.is_empty());
        assert_eq!(story.op.row.reason, Some(UnknownReason::AttemptsExhausted));
        assert_eq!(story.op.row.attempts, 6);
    }
}

/// R45: call ids are scoped to their agent, so two agents' `toolu_01` are two calls.
#[test]
fn a_call_is_its_agent_and_its_id() {
    let mut story = Story::seed();
    for _ in 0..3 {
        story.attempt("toolu_01", timeout());
    }
    assert_eq!(story.authorise("toolu_01"), Err(Refusal::CallSpent));
    let mut other = allowed("toolu_01");
    other.agent = agent("southwind");
    let next = story.apply(&Event::Authorise(other));
    assert_eq!(next, Ok(Next::Send { attempt: 4 }));
}

/// S5: a limiter turns a request away before the key and any effect, so the effect stays
/// `not_started`; a 429 of a lock proves nothing of the kind.
#[test]
fn only_a_limiters_429_keeps_the_effect_not_started() {
    let mut story = Story::seed();
    story.attempt("toolu_01", limited());
    story.attempt("toolu_01", Outcome::of(OutcomeClass::NotSent));
    assert_eq!(story.op.row.effect, Effect::NotStarted);
    story.attempt("toolu_01", Outcome::of(OutcomeClass::RetryableFailure));
    assert_eq!(story.op.row.effect, Effect::Possible);
    // The flag alone, on a class that is not 429, frees nobody.
    let mut story = Story::seed();
    let confused = Outcome {
        limiter: true,
        ..timeout()
    };
    story.attempt("toolu_01", confused);
    assert_eq!(story.op.row.effect, Effect::Possible);
}

/// R34–R38, I10, F17, M35: the key's deadline runs from the first authorise; then nothing is sent,
/// neither with the old key nor with a new one, and the row is unknown.
#[test]
fn after_the_keys_deadline_nothing_is_sent() {
    let mut story = Story::seed();
    story.wait(7200);
    assert_eq!(story.op.row.key_expires_at, None, "null before");
    story.attempt("toolu_01", timeout());
    let deadline = story.op.row.key_expires_at.expect("set");
    let life = since(story.op.row.first_authorised_at.expect("set"), deadline);
    assert_eq!(
        life,
        Duration::from_secs(24 * 3600 - 2 - 10 - 600 - 300),
        "I10"
    );

    story.now = later(deadline, Duration::ZERO) - chrono::TimeDelta::microseconds(1);
    let mut last_moment = story.clone();
    last_moment.attempt("toolu_02", timeout());
    assert_eq!(
        last_moment.op.row.key_expires_at,
        Some(deadline),
        "I10: never moved"
    );
    assert_eq!(story.sweep(), Err(Refusal::NothingDue));
    story.now = deadline;
    assert_eq!(story.authorise("toolu_02"), Err(Refusal::KeyExpired));
    assert_eq!(story.sweep(), Ok(Next::Settled), "L3");
    assert_eq!(story.op.row.reason, Some(UnknownReason::KeyExpired));
    assert_eq!(story.answer().status(), "checking", "R38");
    // It hits a row whose attempt is still in flight, and one that only met a limiter, just the same.
    for outcome in [None, Some(limited())] {
        let mut story = Story::seed();
        let number = story.authorise("toolu_01").expect("authorised");
        if let Some(outcome) = outcome {
            story.end(number, outcome);
        }
        story.wait(24 * 3600);
        assert_eq!(
            story.sweep(),
            Ok(Next::Settled),
            "whatever the classes were"
        );
        assert_eq!(story.op.row.reason, Some(UnknownReason::KeyExpired));
    }
}

/// I7, I13, R48: each single fact that forbids an attempt forbids it, and says which it was.
#[test]
fn every_guard_of_authorise_refuses_alone() {
    type Spoil = fn(&mut Authorise);
    let wait = Duration::from_millis(200);
    let spoils: [(Spoil, Refusal); 6] = [
        (|f| f.clock = false, Refusal::ClockAlarm),
        (|f| f.lease = false, Refusal::LeaseLost),
        (|f| f.contradicted = true, Refusal::Contradicted),
        (|f| f.paused = true, Refusal::Paused),
        (|f| f.circuit = false, Refusal::CircuitOpen),
        (
            |f| f.token = Err(Duration::from_millis(200)),
            Refusal::RateLimited { wait },
        ),
    ];
    for (spoil, refusal) in spoils {
        let mut facts = allowed("toolu_01");
        spoil(&mut facts);
        let mut story = Story::seed();
        assert_eq!(story.apply(&Event::Authorise(facts)), Err(refusal));
        assert_eq!(story.op.row.attempts, 0);
    }
    let mut held = Story::held(terms(ProviderKind::Keyed), 3800);
    assert_eq!(held.authorise("toolu_01"), Err(Refusal::Held));
    let mut flying = Story::seed();
    flying.authorise("toolu_01").expect("the first");
    assert_eq!(flying.authorise("toolu_02"), Err(Refusal::InFlight), "I13");
    // Not only because the last attempt's end makes the row unknown.
    let mut spent = Story::seed();
    spent.op.row.attempts_max = 0;
    let refused = spent.authorise("toolu_01");
    assert_eq!(refused, Err(Refusal::OperationSpent), "I6");
}

/// R75, F47: an engine died with an attempt in flight. It counts, its effect is unknown, and the last
/// one of six does not lock the row for ever.
#[test]
fn an_interrupted_attempt_is_undetermined() {
    let mut story = Story::seed();
    assert_eq!(story.apply(&Event::Interrupted), Err(Refusal::NothingDue));
    story.authorise("toolu_01").expect("authorised");
    let next = story.wait(60).apply(&Event::Interrupted);
    assert!(matches!(next, Ok(Next::Retry { .. })));
    assert_eq!(
        story.op.row.last_outcome,
        Some(OutcomeClass::SideEffectUnknown)
    );
    assert_eq!(story.op.row.effect, Effect::Possible);

    for n in 0..4 {
        story.attempt(if n < 2 { "toolu_01" } else { "toolu_02" }, timeout());
    }
    story.authorise("toolu_02").expect("the sixth");
    assert_eq!(story.apply(&Event::Interrupted), Ok(Next::Settled));
    assert_eq!(story.op.row.reason, Some(UnknownReason::AttemptsExhausted));
}

/// A call that ends with its row never authorised closes it as failed: asking again is safe. A row
/// that is held, was counted once, or shows an object of ours is no such row.
#[test]
fn a_row_that_was_never_authorised_fails_as_unavailable() {
    let mut story = Story::seed();
    assert_eq!(story.apply(&Event::NeverSent), Ok(Next::Settled));
    let ToolResult::Failed { class, .. } = story.answer() else {
        panic!("failed")
    };
    assert_eq!(class, samekey::domain::operation::FailureClass::Unavailable);

    let mut counted = Story::seed();
    counted.attempt("toolu_01", Outcome::of(OutcomeClass::NotSent));
    let held = Story::held(terms(ProviderKind::Keyed), 3800);
    let mut seen = Story::seed();
    let pending = seen.ours("re_1", ObjectStatus::Pending);
    seen.observe(
        samekey::domain::evidence::Source::Webhook,
        event_of(&pending),
    );
    let why = || Event::NoLongerFits {
        why: "nothing is left".into(),
    };
    for mut story in [counted, held, seen] {
        assert_eq!(story.apply(&Event::NeverSent), Err(Refusal::NothingDue));
        assert_eq!(story.apply(&why()), Err(Refusal::NothingDue));
    }
    // Step 5: read again before the first send, the order has no room any more.
    let mut stale = Story::seed();
    assert!(!opening::is_stale(
        &stale.op.row,
        stale.op.row.created_at,
        at(60)
    ));
    assert!(opening::is_stale(
        &stale.op.row,
        stale.op.row.created_at,
        at(61)
    ));
    assert_eq!(stale.wait(61).apply(&why()), Ok(Next::Settled));
    assert_eq!(
        stale.op.row.failure,
        Some(samekey::domain::operation::FailureClass::ValidationFailure)
    );
    stale = Story::seed();
    stale.attempt("toolu_01", timeout());
    assert!(
        !opening::is_stale(&stale.op.row, stale.op.row.created_at, at(3600)),
        "only before the first send"
    );
}
