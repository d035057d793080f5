//! The edges of the rules: the last moment, entry or cent at which each says one thing, and the first at
//! which it says the other. Most of these were found by changing the code in one place and seeing that
//! nobody noticed (README, "How it is proven").

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::evidence::{self, Evidence, ObjectStatus, ProviderObject, Seen, Source};
use samekey::domain::findings::{Missing, missing};
use samekey::domain::guard;
use samekey::domain::operation::{Closing, Contradiction, Effect, Status, UnknownReason};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::review_event::{ReviewRefusal, may_reject, may_snooze};
use samekey::domain::transition::{Next, Refusal};

use crate::builders::*;
use crate::correcting::{closed_unseen, fetch};
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

/// I14: a success about an object that is not ours is kept as what it is, on the attempt as on the row.
#[test]
fn a_success_that_is_not_ours_is_kept_as_a_mismatch() {
    let mut story = Story::seed();
    let wrong = ProviderObject {
        amount_minor: Some(1),
        ..story.ours("re_1", ObjectStatus::Succeeded)
    };
    story.attempt("toolu_01", reply(OutcomeClass::Succeeded, wrong));
    let mismatch = Some(OutcomeClass::ReplyMismatch);
    assert_eq!(story.op.attempts[0].class(), mismatch);
    assert_eq!(story.op.row.last_outcome, mismatch);
}

/// F21: what is fetched under a typed id is evidence where it is ours, and nobody's doubt where it is not.
#[test]
fn only_our_own_object_is_taken_in_by_fetching_a_typed_id() {
    let mut ours = closed_unseen();
    let object = ours.ours("re_7", ObjectStatus::Succeeded);
    fetch(&mut ours, Some(object), false);
    assert_eq!(ours.op.row.effect, Effect::Identified);
    assert_eq!(seen_status(&ours, "re_7"), ObjectStatus::Succeeded);
    let mut unmarked = closed_unseen();
    let object = unmarked.unmarked("re_7");
    fetch(&mut unmarked, Some(object), false);
    assert_eq!(unmarked.op.row.verdict, None, "nothing is ambiguous");
}

/// R48: the last attempt of all is not swept away under its engine, nor the lookup that it asks for.
#[test]
fn the_last_attempt_is_not_swept_while_it_is_under_way() {
    let five = || {
        let mut story = Story::seed();
        for n in 0..5 {
            let name = if n < 3 { "toolu_01" } else { "toolu_02" };
            story.attempt(name, limited());
        }
        story
    };
    let mut flying = five();
    flying.authorise("toolu_02").expect("the sixth");
    assert_eq!(flying.sweep(), Err(Refusal::NothingDue));
    let mut looking = five();
    assert_eq!(
        looking.attempt("toolu_02", already_refunded()),
        Next::Lookup
    );
    assert_eq!(looking.sweep(), Err(Refusal::NothingDue));
}

/// A row is put off for at most seven days, to the moment.
#[test]
fn seven_days_are_the_longest_snooze() {
    let story = absent(keyed());
    let week = chrono::TimeDelta::days(7);
    let moment = chrono::TimeDelta::microseconds(1);
    let may = |until| may_snooze(&story.op.row, until, story.now);
    assert_eq!(may(story.now + week), Ok(()));
    may(story.now + week + moment).expect_err("longer");
    assert_eq!(may(story.now + moment), Ok(()));
    may(story.now).expect_err("over");
}

/// Rejecting is offered where something waits, and nowhere else.
#[test]
fn only_what_waits_may_be_rejected() {
    let nothing = may_reject(&absent(keyed()).op);
    assert_eq!(nothing, Err(ReviewRefusal::NothingToApprove));
    assert_eq!(may_reject(&Story::held(keyed(), 3800).op), Ok(()));
}

/// I27: before the row's own first attempt nobody knows how old its key is: nothing is sent, and the row
/// is a person's. At that very moment the clock has not run back.
#[test]
fn a_clock_before_the_first_attempt_ends_sending() {
    let mut story = Story::seed();
    story.wait(60).attempt("toolu_01", timeout());
    let first = story.op.row.first_authorised_at.expect("set");
    story.now = first;
    assert_eq!(story.sweep(), Err(Refusal::NothingDue));
    story
        .clone()
        .authorise("toolu_01")
        .expect("the same moment");
    story.now = first - chrono::TimeDelta::microseconds(1);
    assert_eq!(story.authorise("toolu_01"), Err(Refusal::KeyExpired));
    assert_eq!(story.sweep(), Ok(Next::Settled));
    assert_eq!(story.op.row.reason, Some(UnknownReason::KeyExpired));
}

/// Of two objects of ours the row names the one that succeeded, in whatever order they are listed.
#[test]
fn of_two_objects_the_one_that_succeeded_is_named() {
    use ObjectStatus::{Pending, Succeeded};
    for (first, second, named) in [(Pending, Succeeded, "re_2"), (Succeeded, Pending, "re_1")] {
        let mut story = Story::lost_and_stopped(keyed(), 3800);
        let list = story.list(&[story.ours("re_1", first), story.ours("re_2", second)]);
        story.observe(Source::ReviewLookup, list);
        let known = story.op.row.provider_ref.expect("identified");
        assert_eq!(known.as_str(), named);
    }
}
