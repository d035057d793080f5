//! What the screen says of a row's evidence: what is proven, what is missing, and where an object
//! differs. It only reads the closing matrix backwards.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::findings::{Field, Missing, Proven, agrees, missing, proven};
use samekey::domain::guard::{self, Ruling};
use samekey::domain::ids::ProviderRef;
use samekey::domain::operation::{Closing, Status};

use crate::builders::*;
use crate::deciding::{absent, four_eyes_over, keyed};

fn found(story: &Story) -> (Proven, Vec<Missing>) {
    let (op, terms) = (&story.op, &story.terms);
    (proven(op, terms), missing(op, terms, story.now))
}

/// Nothing seen yet: first the time, then a lookup that begins after it.
#[test]
fn before_a_lookup_nothing_is_proven_and_the_next_step_is_one() {
    let mut story = Story::lost_and_stopped(keyed(), 3800);
    let at = guard::decidable_at(&story.op, &story.terms).expect("an attempt");
    let lookup = Missing::Lookup {
        not_before: Some(at),
    };
    let early = vec![Missing::Time { until: at }, lookup];
    assert_eq!(found(&story), (Proven::Nothing, early.clone()));
    // A complete scan that began too early proves nothing.
    let list = story.list(&[]);
    story.observe(Source::ReviewLookup, list);
    assert_eq!(found(&story), (Proven::Nothing, early));
    story.wait_until_decidable();
    assert_eq!(found(&story), (Proven::Nothing, vec![lookup]));
}

#[test]
fn an_absence_is_proven_by_the_scan_that_proves_it() {
    let story = absent(keyed());
    let Proven::DidNotHappen { scan_began_at } = proven(&story.op, &story.terms) else {
        panic!("absence is proven");
    };
    let at = guard::decidable_at(&story.op, &story.terms).expect("an attempt");
    assert!(scan_began_at >= at);
    assert_eq!(found(&story).1, vec![], "one person closes it");
    let four_eyes = absent(four_eyes_over(1_000));
    let second = Missing::SecondPerson { typed_ref: false };
    assert_eq!(found(&four_eyes).1, vec![second]);
}

#[test]
fn each_verdict_proves_what_it_says() {
    for (status, wanted, needs) in [
        (
            ObjectStatus::Pending,
            Proven::NotFinal,
            vec![Missing::FinalStatus],
        ),
        (ObjectStatus::Succeeded, Proven::Happened, vec![]),
        (ObjectStatus::Failed, Proven::Lost, vec![]),
    ] {
        let mut story = Story::lost_and_stopped(keyed(), 3800);
        story.wait_until_decidable();
        let object = story.ours("re_1", status);
        let list = story.list(&[object]);
        story.observe(Source::ReviewLookup, list);
        assert_eq!(found(&story), (wanted, needs), "{status:?}");
    }
    let mut story = Story::lost_and_stopped(keyed(), 3800);
    story.wait_until_decidable();
    let object = story.unmarked("re_1");
    let list = story.list(&[object]);
    story.observe(Source::ReviewLookup, list);
    let second = Missing::SecondPerson { typed_ref: false };
    assert_eq!(found(&story), (Proven::Doubtful, vec![second]));
}

#[test]
fn silence_is_missing_an_answer_since_the_first_unanswered_lookup() {
    let mut story = Story::lost_and_stopped(keyed(), 3800);
    story.wait_until_decidable();
    let since = story.now;
    story.observe(Source::ReviewLookup, unreachable());
    story.wait(60);
    story.observe(Source::ReviewLookup, unreachable());
    let answer = Missing::Answer {
        silent_since: since,
    };
    // Meanwhile only the provider's id, typed, leads anywhere.
    let typed = Missing::SecondPerson { typed_ref: true };
    assert_eq!(found(&story).1, vec![answer, typed]);
}

/// Where nothing is missing one person may close, and the other way round: no rule of its own.
#[test]
fn nothing_is_missing_exactly_where_one_person_may_close() {
    let mut stories = vec![
        Story::lost_and_stopped(keyed(), 3800),
        absent(keyed()),
        absent(four_eyes_over(1_000)),
    ];
    for status in [
        ObjectStatus::Pending,
        ObjectStatus::Succeeded,
        ObjectStatus::Failed,
    ] {
        let mut story = Story::lost_and_stopped(keyed(), 3800);
        let object = story.ours("re_1", status);
        let list = story.list(&[object]);
        story.observe(Source::ReviewLookup, list);
        stories.push(story);
    }
    for story in stories {
        let (op, terms, now) = (&story.op, &story.terms, story.now);
        assert_eq!(op.row.status, Status::Unknown);
        let one = [Closing::Succeeded, Closing::Failed]
            .into_iter()
            .any(|c| guard::closing(op, c, terms, now) == Ruling::OnePerson);
        assert_eq!(
            missing(op, terms, now).is_empty(),
            one,
            "{:?}",
            op.row.verdict
        );
    }
}

#[test]
fn an_open_row_may_still_be_settled_or_stopped_and_a_closed_one_misses_nothing() {
    let mut story = Story::seed();
    story.attempt("toolu_1", timeout());
    assert!(found(&story).1.contains(&Missing::Stop));
    let object = story.ours("re_1", ObjectStatus::Succeeded);
    let list = story.list(&[object]);
    story.observe(Source::EngineLookup, list);
    assert_eq!(found(&story), (Proven::Happened, vec![]));
}

#[test]
fn an_object_is_compared_field_by_field() {
    let story = Story::lost_and_stopped(keyed(), 3800);
    let row = &story.op.row;
    let ours = story.ours("re_1", ObjectStatus::Succeeded);
    for field in [
        Field::Payment,
        Field::Amount,
        Field::Currency,
        Field::Operation,
    ] {
        assert_eq!(agrees(row, &ours, field), Some(true), "{field:?}");
    }
    assert_eq!(agrees(row, &ours, Field::Id), None, "ours is not known yet");
    assert_eq!(
        agrees(row, &ours, Field::Status),
        None,
        "ours is not settled"
    );
    let mut other = story.unmarked("re_2");
    other.amount_minor = other.amount_minor.map(|minor| minor + 1);
    other.payment = None;
    assert_eq!(agrees(row, &other, Field::Amount), Some(false));
    assert_eq!(agrees(row, &other, Field::Payment), Some(false));
    assert_eq!(agrees(row, &other, Field::Operation), Some(false));
    let mut closed = row.clone();
    closed.status = Status::Failed;
    closed.provider_ref = Some(ProviderRef::parse("re_9").unwrap());
    assert_eq!(agrees(&closed, &ours, Field::Status), Some(false));
    assert_eq!(agrees(&closed, &ours, Field::Id), Some(false));
}
