//! What each outcome class leads to, alone and after an attempt of which nobody knows the effect.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use samekey::domain::evidence::{ObjectStatus, ProviderObject, Seen, Source, Verdict};
use samekey::domain::operation::{Effect, FailureClass, Status, UnknownReason};
use samekey::domain::outcome::{Expected, Outcome, OutcomeClass, classify_object};
use samekey::domain::policy::ProviderKind;
use samekey::domain::transition::{Event, Lookup, Next, Refusal};
use strum::VariantArray as _;

use crate::builders::*;

/// Where the row stands afterwards, and what its driver does.
#[derive(Debug, PartialEq)]
enum Then {
    Succeeded,
    Failed(FailureClass),
    Unknown(UnknownReason),
    /// Open, and the driver's next step.
    Open(&'static str),
}

fn then(story: &Story, next: Next) -> Then {
    let row = &story.op.row;
    match row.status {
        Status::Succeeded => Then::Succeeded,
        Status::Failed => Then::Failed(row.failure.expect("a class")),
        Status::Unknown => Then::Unknown(row.reason.expect("a reason")),
        Status::Open => Then::Open(match next {
            Next::Retry { .. } => "retry",
            Next::EndCall => "end call",
            Next::Lookup => "lookup",
            other => panic!("an open row with {other:?}"),
        }),
    }
}

fn of(class: OutcomeClass) -> Outcome {
    Outcome::of(class)
}
fn replayed(outcome: Outcome) -> Outcome {
    Outcome {
        replayed: true,
        ..outcome
    }
}
fn should_retry(value: bool, outcome: Outcome) -> Outcome {
    Outcome {
        should_retry: Some(value),
        ..outcome
    }
}

/// The rows of the protocol's table: outcome, with nothing before it, after an undetermined attempt.
#[rustfmt::skip]
fn table() -> Vec<(&'static str, Outcome, Then, Then)> {
    use FailureClass as F;
    use OutcomeClass as C;
    use Then::{Failed, Open, Succeeded, Unknown};
    use UnknownReason as U;
    let seed = Story::seed();
    let object = |status| seed.ours("re_1", status);
    let wrong = ProviderObject { amount_minor: Some(380_000), ..object(ObjectStatus::Succeeded) };
    let stranger = ProviderObject { operation: Some(op_id(1)), ..object(ObjectStatus::Succeeded) };
    let invalid = || Failed(F::ValidationFailure);
    let forbidden = || Failed(F::PermissionDenied);
    let lost = || Failed(F::EffectFailed);
    let doubt = || Unknown(U::UndeterminedRefusal);
    let mismatch = || Unknown(U::ReplyMismatch);
    let broken = || Unknown(U::ServerError);
    let retry = || Open("retry");
    let end = || Open("end call");
    let denied = || of(C::PermissionDenied);
    vec![
        ("succeeded R52", reply(C::Succeeded, object(ObjectStatus::Succeeded)), Succeeded, Succeeded),
        ("pending F24 I21", reply(C::Pending, object(ObjectStatus::Pending)), end(), end()),
        ("effect_failed", reply(C::EffectFailed, object(ObjectStatus::Failed)), lost(), lost()),
        ("canceled", reply(C::EffectFailed, object(ObjectStatus::Canceled)), lost(), lost()),
        ("wrong amount I14", reply(C::ReplyMismatch, wrong.clone()), mismatch(), mismatch()),
        ("a success not ours I14", reply(C::Succeeded, stranger), mismatch(), mismatch()),
        ("a success of another amount", reply(C::Succeeded, wrong), mismatch(), mismatch()),
        ("a success without an object", of(C::Succeeded), mismatch(), mismatch()),
        ("refusal R23 F22", refusal(), invalid(), doubt()),
        ("replayed refusal", replayed(refusal()), invalid(), invalid()),
        ("refusal to be retried", should_retry(true, refusal()), doubt(), doubt()),
        ("replayed, to be retried", should_retry(true, replayed(refusal())), doubt(), doubt()),
        ("refusal not to be retried", should_retry(false, refusal()), invalid(), doubt()),
        ("already refunded S34 F20", already_refunded(), Open("lookup"), doubt()),
        ("permission R71", denied(), forbidden(), doubt()),
        ("replayed permission", replayed(denied()), forbidden(), forbidden()),
        ("permission to be retried", should_retry(true, denied()), doubt(), doubt()),
        ("limiter R72", limited(), retry(), retry()),
        ("lock F15", of(C::RetryableFailure), retry(), retry()),
        ("429, not to be retried", should_retry(false, limited()), end(), end()),
        ("409 R26 R28", in_progress(), retry(), retry()),
        ("409, not to be retried", should_retry(false, in_progress()), end(), end()),
        ("timeout R51", timeout(), retry(), retry()),
        ("timeout, not to be retried", should_retry(false, timeout()), end(), end()),
        ("timeout, to be retried", should_retry(true, timeout()), retry(), retry()),
        ("interrupted R75", Outcome::interrupted(), retry(), retry()),
        ("5xx R50 I15", of(C::ServerError), broken(), broken()),
        ("5xx, to be retried", should_retry(true, of(C::ServerError)), broken(), broken()),
        ("replayed 5xx R39", replayed(of(C::ServerError)), broken(), broken()),
        ("key mismatch R31", of(C::KeyMismatch), Unknown(U::KeyMismatch), Unknown(U::KeyMismatch)),
        ("not sent I9", of(C::NotSent), retry(), retry()),
    ]
}

/// R23, R50–R52, R69–R74, I14, I15: class by class.
#[test]
fn each_class_has_its_consequence_alone_and_after_doubt() {
    let mut seen = BTreeSet::new();
    for (name, outcome, alone, after_doubt) in table() {
        seen.insert(outcome.class.as_str());
        let mut story = Story::seed();
        let next = story.attempt("toolu_01", outcome.clone());
        assert_eq!(then(&story, next), alone, "{name}, nothing before");
        for before in [timeout(), in_progress(), Outcome::interrupted()] {
            let mut story = Story::seed();
            story.attempt("toolu_01", before.clone());
            let next = story.attempt("toolu_01", outcome.clone());
            assert_eq!(
                then(&story, next),
                after_doubt,
                "{name}, after {:?}",
                before.class
            );
        }
        // What is certain to have had no effect leaves no doubt behind.
        for before in [
            limited(),
            of(OutcomeClass::NotSent),
            of(OutcomeClass::RetryableFailure),
        ] {
            let mut story = Story::seed();
            story.attempt("toolu_01", before.clone());
            let next = story.attempt("toolu_01", outcome.clone());
            assert_eq!(
                then(&story, next),
                alone,
                "{name}, after {:?}",
                before.class
            );
        }
    }
    let all: BTreeSet<_> = OutcomeClass::VARIANTS.iter().map(|c| c.as_str()).collect();
    assert_eq!(seen, all, "every class has its row");
}

/// A replayed refusal is final only where the provider's profile says so.
#[test]
fn a_replay_is_final_only_where_the_profile_says_so() {
    let mut careful = terms(ProviderKind::Keyed);
    careful.profile.saved_results_are_final = false;
    let mut story = Story::of(careful, 3800);
    story.attempt("toolu_01", timeout());
    story.attempt("toolu_01", replayed(refusal()));
    assert_eq!(
        story.op.row.reason,
        Some(UnknownReason::UndeterminedRefusal)
    );
}

/// R28, F57: the provider's wish for a wait reaches the driver.
#[test]
fn retry_after_is_handed_on() {
    let asked = Duration::from_secs(3);
    let outcome = Outcome {
        retry_after: Some(asked),
        ..limited()
    };
    let next = Story::seed().attempt("toolu_01", outcome);
    let retry_after = Some(asked);
    assert_eq!(next, Next::Retry { retry_after });
}

/// I14: success needs our id, amount, currency, payment and a final status; what has a word nobody
/// knows is undetermined.
#[test]
fn a_2xx_is_classified_by_everything_in_it() {
    use OutcomeClass as C;
    let story = Story::seed();
    let row = &story.op.row;
    let expected = Expected {
        operation: &row.id,
        payment: row.payment.as_ref(),
        money: Some(money(3800)),
    };
    let ours = |status| story.ours("re_1", status);
    let ok = ours(ObjectStatus::Succeeded);
    let changed = |change: fn(&mut ProviderObject)| {
        let mut object = ok.clone();
        change(&mut object);
        object
    };
    for (object, class) in [
        (ok.clone(), C::Succeeded),
        (ours(ObjectStatus::Pending), C::Pending),
        (ours(ObjectStatus::RequiresAction), C::Pending),
        (ours(ObjectStatus::Failed), C::EffectFailed),
        (ours(ObjectStatus::Canceled), C::EffectFailed),
        (ours(ObjectStatus::of("settling")), C::SideEffectUnknown),
        (changed(|o| o.amount_minor = Some(38)), C::ReplyMismatch),
        (
            changed(|o| o.currency = "jpy".parse().ok()),
            C::ReplyMismatch,
        ),
        (
            changed(|o| o.payment = Some(payment_of("1"))),
            C::ReplyMismatch,
        ),
        (changed(|o| o.operation = Some(op_id(1))), C::ReplyMismatch),
        (changed(|o| o.operation = None), C::SideEffectUnknown),
    ] {
        assert_eq!(classify_object(&expected, &object), class, "{object:?}");
    }
}

/// S34, F20: "already refunded" sends nothing more before an engine lookup, which settles it.
#[test]
fn already_refunded_is_looked_into_before_anything_else() {
    let refused = || {
        let mut story = Story::seed();
        assert_eq!(story.attempt("toolu_01", already_refunded()), Next::Lookup);
        assert_eq!(story.authorise("toolu_01"), Err(Refusal::LookupFirst));
        assert_eq!(story.authorise("toolu_02"), Err(Refusal::LookupFirst));
        story
    };
    let look = |story: &mut Story, seen| story.observe(Source::EngineLookup, seen);

    let mut ours = refused();
    let list = ours.list(&[ours.ours("re_1", ObjectStatus::Succeeded)]);
    look(&mut ours, list);
    assert_eq!(ours.status(), Status::Succeeded);

    let mut pending = refused();
    let list = pending.list(&[pending.ours("re_1", ObjectStatus::Pending)]);
    assert_eq!(look(&mut pending, list), Next::EndCall);
    assert_eq!(pending.op.row.effect, Effect::Identified);

    let mut others = refused();
    let foreign = ProviderObject {
        operation: Some(op_id(7)),
        ..others.ours("re_9", ObjectStatus::Succeeded)
    };
    let list = others.list(&[foreign]);
    assert_eq!(look(&mut others, list), Next::Settled);
    assert_eq!(others.op.row.failure, Some(FailureClass::ValidationFailure));

    let half = |story: &Story| Lookup::Listed {
        began_at: story.now,
        complete: false,
        objects: Vec::new(),
    };
    let mut incomplete = refused();
    let seen = half(&incomplete);
    look(&mut incomplete, seen);
    let mut unreachable_one = refused();
    look(&mut unreachable_one, unreachable());
    for story in [incomplete, unreachable_one] {
        assert_eq!(story.op.row.reason, Some(UnknownReason::RefusalUnproven));
    }
    // A reviewer who looks meanwhile settles nothing.
    let mut watched = refused();
    let list = watched.list(&[]);
    assert_eq!(watched.observe(Source::ReviewLookup, list), Next::Nothing);
    assert_eq!(watched.status(), Status::Open);
    assert_eq!(watched.wait(3600).sweep(), Err(Refusal::NothingDue));
}

/// "Late news": an outcome may still be written once after the row was settled; only a `confirmed` one
/// closes it.
#[test]
fn an_outcome_is_written_once_even_after_the_row_was_settled() {
    let mut story = Story::seed();
    let number = story.authorise("toolu_01").expect("authorised");
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    story.observe(Source::Webhook, event_of(&refund));
    assert_eq!(
        story.status(),
        Status::Succeeded,
        "F03: the webhook was first, in flight or not"
    );
    story.end(number, reply(OutcomeClass::Succeeded, refund));
    assert_eq!(story.op.attempts[0].class(), Some(OutcomeClass::Succeeded));
    let again = Event::Finished {
        attempt: number,
        outcome: refusal(),
        taken: false,
    };
    assert_eq!(story.apply(&again), Err(Refusal::NoSuchAttempt));
    let nobody = Event::Finished {
        attempt: 9,
        outcome: refusal(),
        taken: false,
    };
    assert_eq!(story.apply(&nobody), Err(Refusal::NoSuchAttempt));

    for (late, status) in [
        (refusal(), Status::Unknown),
        (of(OutcomeClass::ServerError), Status::Unknown),
        (already_refunded(), Status::Unknown),
    ] {
        let mut story = Story::seed();
        let number = story.authorise("toolu_01").expect("authorised");
        story
            .decide(&ann(), samekey::domain::review_event::Act::Stop)
            .expect("stopped");
        story.wait(5).end(number, late);
        assert_eq!(story.status(), status);
        assert_eq!(
            story.op.row.reason,
            Some(UnknownReason::Stopped),
            "evidence only"
        );
    }
    let mut story = Story::seed();
    let number = story.authorise("toolu_01").expect("authorised");
    story
        .decide(&ann(), samekey::domain::review_event::Act::Stop)
        .expect("stopped");
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    story
        .wait(5)
        .end(number, reply(OutcomeClass::Succeeded, refund));
    assert_eq!(story.status(), Status::Succeeded, "F42");
}

/// I25: what a stale engine saw of an attempt that was recorded as interrupted is kept, once, with the
/// request's id; it decides nothing, and the attempt keeps its outcome.
#[test]
fn a_late_outcome_without_an_object_is_kept_as_evidence_once() {
    for late in [refusal(), of(OutcomeClass::ServerError), timeout()] {
        let mut story = Story::seed();
        let number = story.authorise("toolu_01").expect("authorised");
        story.apply(&Event::Interrupted).expect("its engine died");
        let (version, before) = (story.op.row.version, story.op.clone());
        let late = Outcome {
            http_status: Some(418),
            request_id: Some("req_late".into()),
            ..late
        };
        let finished = Event::Finished {
            attempt: number,
            outcome: late.clone(),
            taken: false,
        };
        assert_eq!(story.apply(&finished), Ok(Next::Nothing));
        let [kept] = &story.op.evidence[..] else {
            panic!("one entry: {:?}", story.op.evidence);
        };
        let Seen::Reply {
            attempt,
            class,
            http_status,
            request_id,
            ..
        } = &kept.seen
        else {
            panic!("{kept:?}");
        };
        assert_eq!((*attempt, *class), (number, late.class));
        assert_eq!((*http_status, request_id), (Some(418), &late.request_id));
        assert_eq!(story.op.attempts, before.attempts, "written once (U22)");
        let row = |op: &samekey::domain::operation::Operation| {
            (op.row.status, op.row.verdict, op.row.effect, op.row.version)
        };
        assert_eq!(row(&story.op), row(&before), "evidence only");
        assert_eq!(story.op.row.version, version);
        assert_eq!(story.apply(&finished), Err(Refusal::NoSuchAttempt), "once");
    }
    // What ended with an outcome of its own is told nothing new by another one.
    let mut story = Story::seed();
    story.attempt("toolu_01", timeout());
    let again = Event::Finished {
        attempt: 1,
        outcome: refusal(),
        taken: false,
    };
    assert_eq!(story.apply(&again), Err(Refusal::NoSuchAttempt));
}

/// The table "Tools differ": what follows when nobody knows, by what the provider offers.
#[test]
fn a_searchable_provider_is_asked_before_a_second_create_r81_m40() {
    let lookup_terms = || {
        let mut terms = terms(ProviderKind::Lookup);
        terms.profile.lookup_lag = Duration::from_secs(30);
        terms
    };
    for outcome in [timeout(), in_progress()] {
        let mut story = Story::of(lookup_terms(), 3800);
        assert_eq!(story.attempt("toolu_01", outcome.clone()), Next::EndCall);
        assert_eq!(story.answer().status(), "unconfirmed");
        assert_eq!(story.authorise("toolu_02"), Err(Refusal::LookupFirst));

        // Too early to prove anything: still nothing is sent.
        let early = story.list(&[]);
        story.observe(Source::EngineLookup, early);
        assert_eq!(story.op.row.verdict, None);
        assert_eq!(story.authorise("toolu_02"), Err(Refusal::LookupFirst));

        let mut found = story.clone();
        let list = found.list(&[found.ours("ticket_1", ObjectStatus::Succeeded)]);
        found.observe(Source::EngineLookup, list);
        assert_eq!(found.status(), Status::Succeeded, "attached and closed");

        let mut absent = story.clone();
        absent.wait_until_decidable().wait(30);
        let list = absent.list(&[]);
        absent.observe(Source::EngineLookup, list);
        assert_eq!(absent.op.row.verdict, Some(Verdict::Absent));
        let mut waits = absent.clone();
        assert_eq!(
            waits.wait(2 * 3600).sweep(),
            Err(Refusal::NothingDue),
            "it is decided"
        );
        absent.attempt("toolu_02", timeout());
        assert_eq!(
            absent.op.row.verdict, None,
            "an older scan says nothing of the new attempt"
        );
        assert_eq!(absent.authorise("toolu_03"), Err(Refusal::LookupFirst));

        let mut undecided = story;
        undecided.wait_until_decidable().wait(30 + 3600 - 2);
        assert_eq!(undecided.sweep(), Err(Refusal::NothingDue));
        undecided.wait(2).sweep().expect("an hour later");
        assert_eq!(
            undecided.op.row.reason,
            Some(UnknownReason::LookupInconclusive)
        );
    }
}

/// F39: without keys and without a search, one request of which a byte left is all.
#[test]
fn a_provider_without_keys_gets_one_request() {
    for outcome in [
        timeout(),
        in_progress(),
        limited(),
        of(OutcomeClass::RetryableFailure),
    ] {
        let mut story = Story::of(terms(ProviderKind::None), 3800);
        let not_sent = story.attempt("toolu_01", of(OutcomeClass::NotSent));
        assert!(matches!(not_sent, Next::Retry { .. }), "no byte left");
        story.attempt("toolu_01", outcome);
        assert_eq!(story.op.row.reason, Some(UnknownReason::NoKeysAtProvider));
    }
    // Even if the row were still open, a second request is refused.
    let mut story = Story::of(terms(ProviderKind::None), 3800);
    story.attempt("toolu_01", timeout());
    story.op.row.status = Status::Open;
    assert_eq!(story.authorise("toolu_01"), Err(Refusal::OperationSpent));
}
