//! Typed provider ids and corrections: the two ways in which a person's word may turn out wrong.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::evidence::{ObjectStatus, ProviderObject, Source};
use samekey::domain::operation::{Closing, Contradiction, Status};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::review_event::{Fetched, ReviewRefusal};
use samekey::domain::transition::{Event, Next, Refusal};

use crate::builders::*;
use crate::deciding::{ACKNOWLEDGE, absent, correct, four_eyes_over, keyed, why};

/// F21: a typed provider id is fetched and must match in every part, be succeeded and belong to
/// nobody else.
#[test]
fn a_typed_id_must_be_what_it_is_said_to_be() {
    let story = absent(keyed());
    let other = |change: fn(&mut ProviderObject)| {
        let mut object = story.unmarked("re_7");
        change(&mut object);
        fetched(object)
    };
    for wrong in [
        Fetched::NotFound,
        Fetched::Object {
            object: story.unmarked("re_7"),
            taken: true,
        },
        other(|o| o.amount_minor = Some(1)),
        other(|o| o.currency = "eur".parse().ok()),
        other(|o| o.payment = None),
        other(|o| o.status = ObjectStatus::Pending),
        other(|o| o.status = ObjectStatus::Failed),
        other(|o| o.operation = Some(op_id(1))),
        other(|o| o.id = "re_8".parse().expect("an id")),
    ] {
        let refusal = story.clone().decide(&ann(), close_with("re_7", wrong));
        assert!(
            matches!(refusal, Err(ReviewRefusal::RefWrong { .. })),
            "{refusal:?}"
        );
    }
    let mut story = story;
    let missing = story.decide(&ann(), close_as(Closing::Succeeded));
    assert_eq!(missing, Err(ReviewRefusal::RefMissing));
    let by_hand = fetched(story.unmarked("re_7"));
    assert_eq!(
        story.decide(&ann(), close_with("re_7", by_hand)),
        Ok(Next::Proposed)
    );
    story.decide(&lea(), APPROVE).expect("second person");
    assert_eq!(
        story
            .op
            .row
            .provider_ref
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some("re_7")
    );
    assert_eq!(story.op.awaits_fetch(), None, "it was fetched");
    let object = None;
    let nothing = story.apply(&Event::RefFetched {
        object,
        taken: false,
    });
    assert_eq!(nothing, Err(Refusal::NothingDue));
    // Our own object turns up later, and it is another one: two effects, for a person to see.
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    story.observe(Source::Webhook, event_of(&refund));
    assert_eq!(story.op.row.contradicted, Some(Contradiction::SecondEffect));
}

/// Closed by two people on an id that nobody could fetch.
pub fn closed_unseen() -> Story {
    let mut story = Story::lost_and_stopped(keyed(), 3800);
    story.observe(Source::ReviewLookup, unreachable());
    let typed = close_with("re_7", Fetched::Unreachable);
    story.decide(&ann(), typed).expect("proposed");
    assert_eq!(story.op.awaits_fetch(), None, "nothing is closed yet");
    story.decide(&lea(), APPROVE).expect("approved");
    let awaited = story.op.awaits_fetch().map(ToString::to_string);
    assert_eq!(awaited.as_deref(), Some("re_7"));
    story
}

pub fn fetch(story: &mut Story, object: Option<ProviderObject>, taken: bool) {
    let event = Event::RefFetched { object, taken };
    story.apply(&event).expect("awaited");
}

/// A typed id accepted while the provider was unreachable is fetched as soon as it answers.
#[test]
fn a_typed_id_accepted_unseen_is_fetched_later() {
    let mut good = closed_unseen();
    let object = good.unmarked("re_7");
    fetch(&mut good, Some(object), false);
    assert_eq!(
        (good.op.row.contradicted, good.op.awaits_fetch()),
        (None, None)
    );
}

/// What turns out wrong contradicts the row (`ref_mismatch`), which then follows the rules of closing
/// as failed: time, lookup, two people.
#[test]
fn a_typed_id_that_was_wrong_contradicts_the_row() {
    let wrong = |story: &Story| ProviderObject {
        amount_minor: Some(1),
        ..story.unmarked("re_7")
    };
    for case in 0..3 {
        let mut story = closed_unseen();
        let (object, taken) = match case {
            0 => (None, false),
            1 => (Some(wrong(&story)), false),
            _ => (Some(story.unmarked("re_7")), true),
        };
        fetch(&mut story, object, taken);
        assert_eq!(story.op.row.contradicted, Some(Contradiction::RefMismatch));
        assert_eq!(story.status(), Status::Succeeded, "I20");
        let again = story.apply(&Event::RefFetched {
            object: None,
            taken: false,
        });
        assert_eq!(again, Err(Refusal::NothingDue));

        let early = story
            .decide(&lea(), correct(Closing::Failed))
            .expect_err("I19");
        assert!(matches!(
            early,
            ReviewRefusal::Refused {
                decidable_at: Some(_),
                ..
            }
        ));
        story.wait_until_decidable();
        assert!(
            why(story
                .decide(&lea(), correct(Closing::Failed))
                .expect_err(""))
            .contains("look it up")
        );
        let list = story.list(&[]);
        story.observe(Source::ReviewLookup, list);
        assert_eq!(
            story.decide(&lea(), correct(Closing::Failed)),
            Ok(Next::Proposed)
        );
        story.decide(&max(), APPROVE).expect("second lead");
        assert_eq!(
            (story.status(), story.op.row.provider_ref.clone()),
            (Status::Failed, None)
        );
    }
}

/// The effect exists under another id: the row is right, the id was wrong.
#[test]
fn a_wrong_id_of_a_real_effect_is_acknowledged() {
    let mut story = closed_unseen();
    fetch(&mut story, None, false);
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    story.observe(Source::Reconciler, event_of(&refund));
    story.wait_until_decidable();
    why(story
        .decide(&lea(), correct(Closing::Failed))
        .expect_err("I19: it did happen"));
    story.decide(&lea(), ACKNOWLEDGE).expect("acknowledged");
    assert_eq!(story.status(), Status::Succeeded);
    assert_eq!(story.op.row.provider_ref, Some(refund.id));
}

/// "Contradicted": only the evidence at hand carries a correction, and only in its direction.
#[test]
fn correct_follows_the_evidence() {
    let mut succeeded = Story::seed();
    let refund = succeeded.ours("re_1", ObjectStatus::Succeeded);
    succeeded.attempt("toolu_01", reply(OutcomeClass::Succeeded, refund));
    for act in [
        ACKNOWLEDGE,
        correct(Closing::Failed),
        correct(Closing::Succeeded),
    ] {
        assert!(why(succeeded.decide(&lea(), act).expect_err("")).contains("nothing contradicts"));
    }
    let mut returned = succeeded.clone();
    let lost = returned.ours("re_1", ObjectStatus::Failed);
    returned.observe(Source::Webhook, event_of(&lost));
    for act in [ACKNOWLEDGE, correct(Closing::Succeeded)] {
        why(returned.decide(&lea(), act).expect_err("not what it says"));
    }
    let early = returned
        .decide(&lea(), correct(Closing::Failed))
        .expect_err("I19");
    assert!(matches!(
        early,
        ReviewRefusal::Refused {
            decidable_at: Some(_),
            ..
        }
    ));
}

/// An object on a failed row blocks its order until it is final, and not for ever.
#[test]
fn an_effect_on_a_failed_row_is_corrected_or_taken_back() {
    let mut failed = absent(keyed());
    failed
        .decide(&ann(), close_as(Closing::Failed))
        .expect("absent");
    let pending = failed.ours("re_1", ObjectStatus::Pending);
    failed.observe(Source::Reconciler, event_of(&pending));
    assert_eq!(
        failed.op.row.contradicted,
        Some(Contradiction::EffectAfterFailed)
    );
    for act in [
        ACKNOWLEDGE,
        correct(Closing::Succeeded),
        correct(Closing::Failed),
    ] {
        why(failed.decide(&lea(), act).expect_err("not final"));
    }
    let mut took_it_back = failed.clone();
    let canceled = failed.ours("re_1", ObjectStatus::Canceled);
    took_it_back.observe(Source::Reconciler, event_of(&canceled));
    took_it_back
        .decide(&lea(), ACKNOWLEDGE)
        .expect("agrees again");
    assert_eq!(
        (took_it_back.status(), took_it_back.op.row.contradicted),
        (Status::Failed, None)
    );

    // Two effects on a failed row: acknowledging alone would leave it failed.
    let both = failed.list(&[
        failed.ours("re_1", ObjectStatus::Succeeded),
        failed.ours("re_2", ObjectStatus::Succeeded),
    ]);
    failed.observe(Source::Reconciler, both);
    assert!(why(failed.decide(&lea(), ACKNOWLEDGE).expect_err("")).contains("correct the row"));
    why(failed
        .decide(&lea(), correct(Closing::Failed))
        .expect_err("never against effects"));
    failed
        .decide(&lea(), correct(Closing::Succeeded))
        .expect("it happened");
    assert_eq!(failed.status(), Status::Succeeded);
}

/// The four-eyes rule applies to corrections that no evidence decides.
#[test]
fn a_large_correction_without_plain_evidence_takes_two_leads() {
    let mut story = absent(four_eyes_over(3799));
    story
        .decide(&ann(), close_as(Closing::Failed))
        .expect("proposed");
    story.decide(&lea(), APPROVE).expect("failed");
    let both = story.list(&[
        story.ours("re_1", ObjectStatus::Succeeded),
        story.ours("re_2", ObjectStatus::Succeeded),
    ]);
    story.observe(Source::Reconciler, both);
    assert_eq!(
        story.decide(&alone(), correct(Closing::Succeeded)),
        Err(ReviewRefusal::NobodyElse)
    );
    assert_eq!(
        story.decide(&lea(), correct(Closing::Succeeded)),
        Ok(Next::Proposed)
    );
    assert_eq!(
        story.decide(&lea(), APPROVE),
        Err(ReviewRefusal::SamePerson(lea().name))
    );
    story.decide(&max(), APPROVE).expect("second lead");
    assert_eq!(
        (story.status(), story.op.row.corrections),
        (Status::Succeeded, 1)
    );
    // Plain evidence needs no second pair.
    let mut plain = absent(four_eyes_over(3799));
    plain
        .decide(&ann(), close_as(Closing::Failed))
        .expect("proposed");
    plain.decide(&lea(), APPROVE).expect("failed");
    let refund = plain.ours("re_1", ObjectStatus::Succeeded);
    plain.observe(Source::Webhook, event_of(&refund));
    assert_eq!(
        plain.decide(&lea(), correct(Closing::Succeeded)),
        Ok(Next::Settled)
    );
}
