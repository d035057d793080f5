//! The edges of the rules: the last moment, entry or cent at which each says one thing, and the first at
//! which it says the other; and the words that only people read. Most of these were found by changing the
//! code in one place and seeing that nobody noticed.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::evidence::{self, Evidence, ObjectStatus, ProviderObject, Seen, Source};
use samekey::domain::findings::{Field, Missing, Proven, agrees, missing, proven};
use samekey::domain::guard::{self, Ruling};
use samekey::domain::operation::{Closing, Contradiction, Status};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::policy::{Circuit, CircuitState, Health};
use samekey::domain::review_event::Act;
use samekey::domain::text::{TextError, plain};
use samekey::domain::transition::{Next, Refusal};
use strum::VariantArray as _;

use crate::builders::*;
use crate::deciding::{ACKNOWLEDGE, absent, correct, keyed};

fn seen_status(story: &Story, id: &str) -> ObjectStatus {
    let objects = evidence::objects(&story.op.evidence);
    let found = objects.iter().find(|(known, _)| known.as_str() == id);
    found.expect("seen").1.0.status
}

/// F61: an event is old news only about an earlier stage; between two words of one stage it is news.
#[test]
fn an_event_of_the_same_stage_is_news() {
    use ObjectStatus::{Canceled, Failed, Pending, RequiresAction};
    for (first, then) in [
        (Pending, RequiresAction),
        (RequiresAction, Pending),
        (Failed, Canceled),
    ] {
        let mut story = Story::lost_and_stopped(keyed(), 3800);
        for status in [first, then] {
            let object = story.ours("re_1", status);
            story.observe(Source::Webhook, event_of(&object));
        }
        assert_eq!(seen_status(&story, "re_1"), then, "after {first:?}");
    }
}

/// I33: past a thousand entries no silence begins by itself; a person's lookup is kept as ever.
#[test]
fn a_silence_begins_by_itself_below_a_thousand_entries() {
    let mut story = Story::lost_and_stopped(keyed(), 3800);
    let answered = |story: &Story| Evidence {
        stored: true,
        source: Source::ReviewLookup,
        seen: Seen::Scan {
            began_at: story.now,
            complete: false,
        },
        observed_at: story.now,
    };
    story.op.evidence = vec![answered(&story); 999];
    let mut last = story.clone();
    assert_eq!(
        last.observe(Source::Reconciler, unreachable()),
        Next::Nothing
    );
    assert_eq!(last.op.evidence.len(), 1_000, "the last that begins");
    story.op.evidence.push(answered(&story));
    let full = story.apply(&observed(Source::Reconciler, unreachable()));
    assert_eq!(full, Err(Refusal::NothingNew));
    story.observe(Source::ReviewLookup, unreachable());
    assert_eq!(story.op.evidence.len(), 1_001);
}

/// "Contradicted": a row closed on a typed id holds that object; that another one of ours failed does not
/// contradict it.
#[test]
fn the_loss_of_another_object_does_not_contradict_the_one_the_row_holds() {
    let mut story = absent(keyed());
    let by_hand = fetched(story.unmarked("re_7"));
    story
        .decide(&ann(), close_with("re_7", by_hand))
        .expect("proposed");
    story.decide(&lea(), APPROVE).expect("closed");
    let lost = story.ours("re_1", ObjectStatus::Failed);
    story.observe(Source::Webhook, event_of(&lost));
    assert_eq!(
        (story.status(), story.op.row.contradicted),
        (Status::Succeeded, None)
    );
}

/// R76: a row that fails by evidence says which object failed, and why the provider says so.
#[test]
fn a_lost_object_is_named_with_the_providers_reason() {
    for (reason, told) in [
        (Some("insufficient_funds"), "insufficient_funds"),
        (None, "no reason given"),
    ] {
        for status in [ObjectStatus::Failed, ObjectStatus::Canceled] {
            let mut story = Story::seed();
            story.attempt("toolu_01", timeout());
            let lost = ProviderObject {
                failure_reason: reason.map(Into::into),
                ..story.ours("re_1", status)
            };
            story.observe(Source::Webhook, event_of(&lost));
            let text = story.op.row.failure_text.expect("a reason");
            assert_eq!(
                text.as_str(),
                format!("the provider's refund re_1 failed: {told}")
            );
        }
    }
}

/// "Contradicted": two effects of a failed row that are both lost again agree with it; one that is not
/// does not.
#[test]
fn two_lost_effects_of_a_failed_row_are_acknowledged() {
    let mut story = absent(keyed());
    story
        .decide(&ann(), close_as(Closing::Failed))
        .expect("absent");
    let both = |story: &Story, second| {
        story.list(&[
            story.ours("re_1", ObjectStatus::Failed),
            story.ours("re_2", second),
        ])
    };
    let list = both(&story, ObjectStatus::Pending);
    story.observe(Source::Reconciler, list);
    assert_eq!(story.op.row.contradicted, Some(Contradiction::SecondEffect));
    story
        .decide(&lea(), ACKNOWLEDGE)
        .expect_err("one may still happen");
    story
        .decide(&lea(), correct(Closing::Succeeded))
        .expect_err("none of them succeeded");
    let list = both(&story, ObjectStatus::Canceled);
    story.observe(Source::Reconciler, list);
    story.decide(&lea(), ACKNOWLEDGE).expect("both are lost");
    assert_eq!(
        (story.status(), story.op.row.contradicted),
        (Status::Failed, None)
    );
}

/// What the screen compares: a closed row's status with the object's.
#[test]
fn a_closed_row_agrees_with_an_object_of_its_status() {
    let story = Story::lost_and_stopped(keyed(), 3800);
    let agree = |closed, seen| {
        let mut row = story.op.row.clone();
        row.status = closed;
        agrees(&row, &story.ours("re_1", seen), Field::Status)
    };
    for seen in [
        ObjectStatus::Pending,
        ObjectStatus::RequiresAction,
        ObjectStatus::Succeeded,
        ObjectStatus::Failed,
        ObjectStatus::Canceled,
        ObjectStatus::Other,
    ] {
        let happened = seen == ObjectStatus::Succeeded;
        let lost = matches!(seen, ObjectStatus::Failed | ObjectStatus::Canceled);
        assert_eq!(agree(Status::Succeeded, seen), Some(happened), "{seen:?}");
        assert_eq!(agree(Status::Failed, seen), Some(lost), "{seen:?}");
        assert_eq!(agree(Status::Open, seen), None);
    }
}

#[test]
fn nothing_sent_is_proven_where_nothing_was_sent() {
    let mut story = Story::seed();
    assert_eq!(proven(&story.op, &story.terms), Proven::NothingSent);
    story.decide(&ann(), Act::Stop).expect("stopped");
    assert_eq!(proven(&story.op, &story.terms), Proven::NothingSent);
}

/// I19: at the very moment at which a row is decidable, time is not missing any more.
#[test]
fn time_is_missing_until_the_moment_itself() {
    let mut story = Story::lost_and_stopped(keyed(), 3800);
    let at = guard::decidable_at(&story.op, &story.terms).expect("an attempt");
    let waits = Missing::Time { until: at };
    let waiting = |story: &Story| missing(&story.op, &story.terms, story.now).contains(&waits);
    story.now = at - chrono::TimeDelta::microseconds(1);
    assert!(waiting(&story));
    story.now = at;
    assert!(!waiting(&story));
}

/// A closed row is not closed again; where evidence contradicts it, the screen says what to do instead.
#[test]
fn a_contradicted_closed_row_is_told_to_be_corrected() {
    let mut story = Story::seed();
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    story.attempt("toolu_01", reply(OutcomeClass::Succeeded, refund));
    let says = |story: &Story| {
        let ruling = guard::closing(&story.op, Closing::Failed, &story.terms, story.now);
        let Ruling::Refused { why, .. } = ruling else {
            panic!("closed is closed")
        };
        why
    };
    assert_eq!(says(&story), "the row is closed");
    let lost = story.ours("re_1", ObjectStatus::Failed);
    story.observe(Source::Webhook, event_of(&lost));
    assert!(says(&story).contains("`ops correct`"));
}

/// "Outage": what counts towards a tool's circuit is silence, a 5xx or a 429; a refusal is a healthy answer.
#[test]
fn an_outage_is_silence_a_5xx_or_a_429() {
    for class in OutcomeClass::VARIANTS {
        let outage = matches!(
            class,
            OutcomeClass::SideEffectUnknown
                | OutcomeClass::ServerError
                | OutcomeClass::RetryableFailure
        );
        assert_eq!(class.is_outage(), outage, "{class:?}");
    }
}

/// "Outage": a trial whose attempt told nothing is free again, and only that attempt frees it.
#[test]
fn only_the_operation_on_trial_gives_the_trial_back() {
    let open = CircuitState::Open {
        since: at(0),
        probe_at: at(30),
    };
    let circuit = Circuit {
        state: open,
        ..Circuit::default()
    };
    let trial = circuit.probed(true, at(30)).admit(&op_id(4));
    let trial = trial.expect("one attempt at a time");
    let other = trial.after(&op_id(5), Health::Unclear, at(31));
    assert_eq!(other.admit(&op_id(6)), None, "4 is still under way");
    let own = trial.after(&op_id(4), Health::Unclear, at(31));
    assert!(own.admit(&op_id(6)).is_some(), "4 sent nothing");
    assert!(own.is_open(), "and proved nothing");
}

/// F31: a name of exactly the longest length is taken, and a flood of spaces around one is not even read.
#[test]
fn a_name_is_as_long_as_it_may_be_and_no_flood_is_read() {
    let nines = "9".repeat(20);
    assert_eq!(plain(&nines, 20), Ok(nines.clone()));
    let flood = |bytes: usize| format!("{}9", " ".repeat(bytes - 1));
    assert_eq!(plain(&flood(20 * 8 + 64), 20), Ok("9".into()));
    let longer = plain(&flood(20 * 8 + 65), 20);
    assert_eq!(longer, Err(TextError::TooLong { max: 20 }));
}

/// I14: a success about an object that is not ours is kept as what it is, on the attempt as on the row.
#[test]
fn a_success_that_is_not_ours_is_kept_as_a_mismatch() {
    let mut story = Story::seed();
    let wrong = ProviderObject {
        amount_minor: 1,
        ..story.ours("re_1", ObjectStatus::Succeeded)
    };
    story.attempt("toolu_01", reply(OutcomeClass::Succeeded, wrong));
    let mismatch = Some(OutcomeClass::ReplyMismatch);
    assert_eq!(story.op.attempts[0].class(), mismatch);
    assert_eq!(story.op.row.last_outcome, mismatch);
}
