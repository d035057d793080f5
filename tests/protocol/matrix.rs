//! The closing matrix of the protocol, every cell: verdict × decision × before/after `decidable_at` ×
//! amount over/under the four-eyes limit × alone/with reviewers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::evidence::{ObjectStatus, Source, Verdict};
use samekey::domain::guard::{self, Ruling};
use samekey::domain::operation::{Closing, Effect, Status};
use samekey::domain::policy::{Caps, ProviderKind, Terms};
use samekey::domain::review_event::{Act, ReviewRefusal};
use samekey::domain::transition::{Lookup, Next};
use strum::VariantArray as _;

use crate::builders::*;

/// What a cell of the matrix says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Refused,
    One,
    Second,
    /// A typed provider id and a second person.
    Typed,
}
use Cell::{One, Refused, Second, Typed};

type Build = fn(&mut Story);

/// A row of the matrix: how to get there, as succeeded, as failed (once decidable).
struct Line {
    name: &'static str,
    build: Build,
    verdict: Option<Verdict>,
    succeeded: Cell,
    failed: Cell,
}

fn look(story: &mut Story, objects: &[(&str, ObjectStatus)]) {
    let objects: Vec<_> = objects.iter().map(|(id, s)| story.ours(id, *s)).collect();
    let list = story.list(&objects);
    story.observe(Source::ReviewLookup, list);
}

fn look_at_an_unmarked_one(story: &mut Story) {
    let list = story.list(&[story.unmarked("re_8")]);
    story.observe(Source::ReviewLookup, list);
}

/// A complete scan that began late enough, without moving the story's clock.
fn prove_absence(story: &mut Story) {
    let mut then = story.clone();
    then.wait_until_decidable();
    let list = then.list(&[]);
    story.observe(Source::ReviewLookup, list);
}

/// Two unanswered lookups further apart than the settle time, without moving the story's clock for good.
fn be_silent_for_long(story: &mut Story) {
    let then = story.now;
    story.observe(Source::ReviewLookup, unreachable());
    story.wait(600).observe(Source::ReviewLookup, unreachable());
    story.now = then;
}

#[rustfmt::skip]
fn lines() -> Vec<Line> {
    use ObjectStatus as S;
    use Verdict as V;
    let line = |name, build: Build, verdict, succeeded, failed| Line { name, build, verdict, succeeded, failed };
    vec![
        line("confirmed", |s| look(s, &[("re_1", S::Succeeded)]), Some(V::Confirmed), One, Refused),
        line("second_effect", |s| look(s, &[("re_1", S::Succeeded), ("re_2", S::Succeeded)]), Some(V::SecondEffect), One, Refused),
        line("refused", |s| look(s, &[("re_1", S::Failed)]), Some(V::Refused), Refused, One),
        line("pending", |s| look(s, &[("re_1", S::Pending)]), Some(V::Pending), Refused, Refused),
        line("absent", prove_absence, Some(V::Absent), Typed, One),
        line("ambiguous", look_at_an_unmarked_one, Some(V::Ambiguous), Second, Second),
        line("none, nobody looked", |_| {}, None, Typed, Refused),
        line("none, looked too early", |s| look(s, &[]), None, Typed, Refused),
        line("unreachable for long", be_silent_for_long, None, Typed, Second),
    ]
}

fn limits(kind: ProviderKind, over: bool) -> Terms {
    let mut terms = with_caps(Caps {
        four_eyes_over: Some(if over { 3799 } else { 3800 }),
        ..Caps::default()
    });
    terms.profile.kind = kind;
    terms
}

/// The amount rule on top of a cell: two people, unless evidence decides.
fn with_amount(cell: Cell, verdict: Option<Verdict>, over: bool) -> Cell {
    let evident = matches!(verdict, Some(Verdict::Confirmed | Verdict::Refused));
    match cell {
        One if over && !evident => Second,
        other => other,
    }
}

fn assert_cell(name: &str, story: &Story, decision: Closing, expected: Cell) {
    let ruling = guard::closing(&story.op, decision, &story.terms, story.now);
    let cell = match ruling {
        Ruling::Refused { .. } => Refused,
        Ruling::OnePerson => One,
        Ruling::SecondPerson { typed_ref: false } => Second,
        Ruling::SecondPerson { typed_ref: true } => Typed,
    };
    assert_eq!(cell, expected, "{name} as {decision:?}");

    let act = || match expected {
        Typed => close_with("re_7", fetched(story.unmarked("re_7"))),
        Refused | One | Second => close_as(decision),
    };
    // With reviewers: what the guard says is what deciding does.
    let decided = story.clone().decide(&ann(), act());
    match expected {
        Refused => assert!(
            matches!(decided, Err(ReviewRefusal::Refused { .. })),
            "{name}"
        ),
        One => assert_eq!(decided, Ok(Next::Settled), "{name}"),
        Second | Typed => {
            assert_eq!(decided, Ok(Next::Proposed), "{name}");
            let mut story = story.clone();
            story.decide(&ann(), act()).expect("proposed");
            assert_eq!(story.decide(&lea(), APPROVE), Ok(Next::Settled), "{name}");
            assert_eq!(story.status(), decision.status());
        }
    }
    // Alone: what takes one person is done, what takes two is refused.
    let decided = story.clone().decide(&alone(), act());
    match expected {
        Refused => assert!(
            matches!(decided, Err(ReviewRefusal::Refused { .. })),
            "{name}"
        ),
        One => assert_eq!(decided, Ok(Next::Settled), "{name}"),
        Second | Typed => assert_eq!(decided, Err(ReviewRefusal::NobodyElse), "{name}"),
    }
}

/// I16, I19, R54, R78: every cell.
#[test]
fn the_closing_matrix_holds_cell_by_cell() {
    let lines = lines();
    for verdict in Verdict::VARIANTS {
        assert!(
            lines.iter().any(|l| l.verdict == Some(*verdict)),
            "{verdict:?} has a line"
        );
    }
    for line in &lines {
        for over in [false, true] {
            let mut story = Story::lost_and_stopped(limits(ProviderKind::Keyed, over), 3800);
            (line.build)(&mut story);
            assert_eq!(story.op.row.verdict, line.verdict, "{}", line.name);
            assert_eq!(story.status(), Status::Unknown);
            let name = format!("{} (over: {over})", line.name);
            let succeeded = with_amount(line.succeeded, line.verdict, over);
            let failed = with_amount(line.failed, line.verdict, over);

            assert_cell(&name, &story, Closing::Succeeded, succeeded);
            assert_cell(&name, &story, Closing::Failed, Refused);
            // The very last moment before, and the first one at which it may be.
            let decidable = guard::decidable_at(&story.op, &story.terms).expect("authorised");
            story.now = decidable - chrono::TimeDelta::microseconds(1);
            let early = guard::closing(&story.op, Closing::Failed, &story.terms, story.now);
            let Ruling::Refused { decidable_at, .. } = early else {
                panic!("{name}: I19")
            };
            if failed != Refused {
                assert_eq!(
                    decidable_at,
                    Some(decidable),
                    "{name}: the refusal says when"
                );
            }
            story.now = decidable;
            assert_cell(&name, &story, Closing::Failed, failed);
            assert_cell(&name, &story, Closing::Succeeded, succeeded);
        }
    }
}

/// The line of effect `not_started`: nothing can have succeeded; one person fails it, no lookup needed,
/// at once.
#[test]
fn what_was_never_sent_is_failed_by_one_person_at_once() {
    for over in [false, true] {
        for sent in [false, true] {
            let mut story = Story::of(limits(ProviderKind::Keyed, over), 3800);
            if sent {
                story.attempt("toolu_01", limited());
            }
            story.decide(&ann(), Act::Stop).expect("stopped");
            assert_eq!(story.op.row.effect, Effect::NotStarted);
            let failed = with_amount(One, None, over);
            assert_cell("not started", &story, Closing::Failed, failed);
            assert_cell("not started", &story, Closing::Succeeded, Refused);
            // Whatever else lies about at the provider, it was not this row.
            if sent {
                let list = story.list(&[story.unmarked("re_8")]);
                story.observe(Source::ReviewLookup, list);
                assert_cell(
                    "not started, ambiguous",
                    &story,
                    Closing::Succeeded,
                    Refused,
                );
                assert_cell("not started, ambiguous", &story, Closing::Failed, Second);
            }
        }
    }
}

/// "Unreachable for longer than the settle time (or a tool of kind `none`)": the silence has to last,
/// and one answer ends it; a provider without any lookup leaves two people.
#[test]
fn silence_has_to_last_and_one_answer_ends_it() {
    let mut story = Story::lost_and_stopped(limits(ProviderKind::Keyed, false), 3800);
    story.wait_until_decidable();
    story.observe(Source::ReviewLookup, unreachable());
    assert_cell("just now", &story, Closing::Failed, Refused);
    story.wait(599);
    story.observe(Source::ReviewLookup, unreachable());
    assert_cell("not yet", &story, Closing::Failed, Refused);
    story.wait(1);
    assert_cell("old, but not long", &story, Closing::Failed, Refused);
    story.observe(Source::ReviewLookup, unreachable());
    assert_cell("long enough", &story, Closing::Failed, Second);
    let answered = Lookup::Listed {
        began_at: story.now,
        complete: false,
        objects: Vec::new(),
    };
    story.observe(Source::Reconciler, answered);
    assert_cell("answered", &story, Closing::Failed, Refused);
    story.observe(Source::ReviewLookup, unreachable());
    story.wait(599);
    assert_cell("a new silence", &story, Closing::Failed, Refused);

    let mut none = Story::of(limits(ProviderKind::None, false), 3800);
    none.attempt("toolu_01", timeout());
    assert_cell("kind none, early", &none, Closing::Failed, Refused);
    none.wait_until_decidable();
    assert_cell("kind none", &none, Closing::Failed, Second);
}
