//! What people decide: stop, close, propose, approve, reject, correct; once, with a note, on the
//! version they looked at, and with as many people as it takes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::guard::Role;
use samekey::domain::operation::{Closing, Effect, FailureClass, LookedAt, Status, UnknownReason};
use samekey::domain::policy::{Caps, ProviderKind, Terms};
use samekey::domain::review_event::{Act, Decision, Fetched, Person, ReviewRefusal};
use samekey::domain::tool_call::ToolResult;
use samekey::domain::transition::{Event, Next, Refusal};

use crate::builders::*;

pub fn keyed() -> Terms {
    terms(ProviderKind::Keyed)
}

pub fn four_eyes_over(limit: i64) -> Terms {
    with_caps(Caps {
        four_eyes_over: Some(limit),
        ..Caps::default()
    })
}

/// Unknown, and absence proven: one person fails it, unless the amount needs two.
pub fn absent(terms: Terms) -> Story {
    let mut story = Story::lost_and_stopped(terms, 3800);
    story.wait_until_decidable();
    let list = story.list(&[]);
    story.observe(Source::ReviewLookup, list);
    story
}

pub fn why(refusal: ReviewRefusal) -> String {
    match refusal {
        ReviewRefusal::Refused { why, .. } => why,
        other => panic!("refused otherwise: {other:?}"),
    }
}

pub fn correct(decision: Closing) -> Act {
    Act::Correct {
        decision: Some(decision),
    }
}

pub const ACKNOWLEDGE: Act = Act::Correct { decision: None };

/// I18: a note, the version looked at, and the role; each is asked for.
#[test]
fn every_decision_needs_a_note_a_version_and_the_role() {
    let story = absent(keyed());
    let version = story.op.row.version;
    let all = || {
        [
            close_as(Closing::Failed),
            Act::Stop,
            APPROVE,
            Act::Reject,
            ACKNOWLEDGE,
            Act::Note,
        ]
    };
    let at = |version| LookedAt {
        version,
        waiting: None,
    };
    let refusal = |d: Decision| match story.try_event(&Event::Decided(d)) {
        Err(Refusal::Review(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    };
    let viewer = Person {
        role: Role::Viewer,
        ..ann()
    };
    for act in all() {
        let blank = Decision {
            note: "  ".into(),
            ..decision(&lea(), at(version), act.clone())
        };
        assert_eq!(refusal(blank), ReviewRefusal::NoteMissing);
        let seen = decision(&viewer, at(version), act.clone());
        assert!(
            matches!(refusal(seen), ReviewRefusal::NotPermitted { .. }),
            "M55"
        );
        let old = decision(&lea(), at(version - 1), act.clone());
        assert!(matches!(refusal(old), ReviewRefusal::MovedOn { .. }), "U23");
        if !matches!(act, Act::Note) {
            let blind = Decision {
                looked_at: None,
                ..decision(&lea(), at(version), act.clone())
            };
            assert_eq!(refusal(blind), ReviewRefusal::VersionMissing);
        }
        if matches!(act, Act::Approve { .. } | Act::Reject | Act::Correct { .. }) {
            let reviewer = decision(&ann(), at(version), act);
            assert!(matches!(
                refusal(reviewer),
                ReviewRefusal::NotPermitted {
                    needed: Role::Lead,
                    ..
                }
            ));
        }
    }
    let mut noted = story.clone();
    assert_eq!(noted.decide(&ann(), Act::Note), Ok(Next::Nothing));
    assert_eq!(
        noted.op.row.version, version,
        "a note moves nothing decisions are bound to"
    );
}

/// I18, U23, M53: of two reviewers on one version one wins; the other sees by whom. The same outcome
/// again says so, the other one is refused.
#[test]
fn one_closing_per_row() {
    let mut story = absent(keyed());
    let version = story.op.row.version;
    story
        .decide_on(version, &ann(), close_as(Closing::Failed))
        .expect("first");
    let by = "reviewer:ann".to_owned();
    let status = Status::Failed;
    let again = story.decide_on(version, &max(), close_as(Closing::Failed));
    assert_eq!(
        again,
        Err(ReviewRefusal::ClosedSame {
            status,
            by: by.clone()
        })
    );
    let other = story.decide_on(version, &max(), close_as(Closing::Succeeded));
    assert_eq!(other, Err(ReviewRefusal::ClosedOther { status, by }));
    let version = story.op.row.version;
    for act in [
        Act::Stop,
        APPROVE,
        Act::Reject,
        ACKNOWLEDGE,
        correct(Closing::Succeeded),
    ] {
        story
            .decide_on(version, &lea(), act)
            .expect_err("I20: closed is closed");
    }
    assert_eq!(story.sweep(), Err(Refusal::NothingDue));
}

/// Stop: an open row, in flight or not, becomes unknown and nothing more is sent. Nothing else stops.
#[test]
fn stop_makes_an_open_row_unknown() {
    let mut fresh = Story::seed();
    let mut flying = Story::seed();
    flying.authorise("toolu_01").expect("authorised");
    for story in [&mut fresh, &mut flying] {
        assert_eq!(story.decide(&ann(), Act::Stop), Ok(Next::Settled));
        assert_eq!(story.op.row.reason, Some(UnknownReason::Stopped));
        assert_eq!(story.answer().status(), "checking", "R94");
        why(story.decide(&ann(), Act::Stop).expect_err("once"));
        story.authorise("toolu_02").expect_err("R41");
    }
    // Nothing was sent: one person fails it without a lookup, nobody can have it succeed.
    assert_eq!(fresh.op.row.effect, Effect::NotStarted);
    why(fresh
        .decide(&lea(), close_with("re_1", Fetched::Unreachable))
        .expect_err("not sent"));
    fresh
        .decide(&ann(), close_as(Closing::Failed))
        .expect("one person");
    assert_eq!(fresh.op.row.failure, Some(FailureClass::Unavailable));
    let mut held = Story::held(keyed(), 3800);
    why(held.decide(&lea(), Act::Stop).expect_err("held"));
}

/// Open rows are closed by hand only at effect `not_started` with nothing in flight.
#[test]
fn an_open_row_is_stopped_before_it_is_closed() {
    let mut fresh = Story::seed();
    why(fresh
        .decide(&ann(), close_as(Closing::Succeeded))
        .expect_err("open"));
    let mut limited_one = Story::seed();
    limited_one.attempt("toolu_01", limited());
    limited_one
        .decide(&ann(), close_as(Closing::Failed))
        .expect("not started");
    let mut flying = Story::seed();
    flying.authorise("toolu_01").expect("authorised");
    assert!(
        why(flying
            .decide(&ann(), close_as(Closing::Failed))
            .expect_err(""))
        .contains("in flight")
    );
    let mut doubtful = Story::seed();
    doubtful.attempt("toolu_01", timeout());
    assert!(
        why(doubtful
            .decide(&ann(), close_as(Closing::Failed))
            .expect_err(""))
        .contains("stop it")
    );
    // Above the limit two people do it, as everywhere without evidence.
    let mut large = Story::of(four_eyes_over(3799), 3800);
    assert_eq!(
        large.decide(&ann(), close_as(Closing::Failed)),
        Ok(Next::Proposed)
    );
    // The engine may still send meanwhile; then the proposal is about another row.
    large.attempt("toolu_01", timeout());
    let stale = large.decide(&lea(), APPROVE);
    assert!(matches!(stale, Err(ReviewRefusal::ProposalStale(_))));
}

/// Held rows: a lead approves or rejects, in time; nothing else touches them (R93, F26).
#[test]
fn a_held_row_takes_approval_rejection_or_expiry_and_nothing_else() {
    let held = || Story::held(keyed(), 3800);
    assert!(matches!(held().answer(), ToolResult::Held { .. }));
    for act in [
        close_as(Closing::Failed),
        close_as(Closing::Succeeded),
        close_with("re_1", Fetched::Unreachable),
        Act::Stop,
        correct(Closing::Failed),
    ] {
        why(held().decide(&lea(), act).expect_err("held"));
    }
    assert_eq!(held().apply(&Event::NeverSent), Err(Refusal::NothingDue));

    let mut yes = held();
    let reviewer = yes.decide(&ann(), APPROVE);
    assert!(matches!(reviewer, Err(ReviewRefusal::NotPermitted { .. })));
    let version = yes.op.row.version;
    assert_eq!(yes.decide(&lea(), APPROVE), Ok(Next::Due));
    assert_eq!(yes.op.row.approved_by, Some(lea().name));
    let twice = yes.decide_on(version, &max(), Act::Reject);
    assert!(
        matches!(twice, Err(ReviewRefusal::MovedOn { .. })),
        "F26: once"
    );
    assert_eq!(
        yes.decide(&lea(), APPROVE),
        Err(ReviewRefusal::NothingToApprove)
    );
    yes.attempt("approval:op", timeout());

    let mut no = held();
    assert_eq!(no.decide(&lea(), Act::Reject), Ok(Next::Settled));
    assert_eq!(no.op.row.failure, Some(FailureClass::PermissionDenied));

    let mut capped = held();
    let caps = Some("the cap is reached".into());
    assert_eq!(
        why(capped
            .decide(&lea(), Act::Approve { caps })
            .expect_err("caps")),
        "the cap is reached"
    );

    let mut late = held();
    late.wait(24 * 3600 - 1);
    assert_eq!(late.sweep(), Err(Refusal::NothingDue));
    late.wait(1);
    assert_eq!(late.decide(&lea(), APPROVE), Err(ReviewRefusal::Expired));
    assert_eq!(late.sweep(), Ok(Next::Settled));
    assert_eq!(late.op.row.failure, Some(FailureClass::PermissionDenied));
    // A lead alone may approve what a tool asks approval for: that takes one lead, not two people.
    assert_eq!(held().decide(&alone(), APPROVE), Ok(Next::Due));
}

/// Absent, above the limit, and proposed as failed.
fn proposed(by: &Person) -> Story {
    let mut story = absent(four_eyes_over(3799));
    let next = story.decide(by, close_as(Closing::Failed));
    assert_eq!(next, Ok(Next::Proposed));
    assert_eq!(story.status(), Status::Unknown, "nothing is closed yet");
    story
}

/// R78, R93: what needs two people is a proposal, bound to the version; a lead of another name decides
/// it once, in time.
#[test]
fn a_proposal_takes_a_lead_of_another_name_once_and_in_time() {
    let mut story = proposed(&lea());
    assert_eq!(
        story.decide(&lea(), APPROVE),
        Err(ReviewRefusal::SamePerson(lea().name))
    );
    let waits = ReviewRefusal::ProposalWaits(lea().name);
    assert_eq!(
        story.decide(&ann(), close_as(Closing::Failed)),
        Err(waits),
        "one at a time"
    );
    assert_eq!(story.decide(&max(), APPROVE), Ok(Next::Settled));
    assert_eq!(
        story.op.row.closed_by.as_deref(),
        Some("reviewer:lea, reviewer:max")
    );
    assert_eq!(
        story.decide(&lea(), APPROVE),
        Err(ReviewRefusal::NothingToApprove),
        "once"
    );

    let mut refused = proposed(&ann());
    assert_eq!(refused.decide(&lea(), Act::Reject), Ok(Next::Nothing));
    assert_eq!(
        refused.decide(&lea(), APPROVE),
        Err(ReviewRefusal::NothingToApprove)
    );
    assert_eq!(
        refused.decide(&ann(), close_as(Closing::Failed)),
        Ok(Next::Proposed),
        "again"
    );

    let mut late = proposed(&ann());
    late.wait(24 * 3600 - 1);
    assert_eq!(late.sweep(), Err(Refusal::NothingDue));
    late.wait(1);
    assert_eq!(late.decide(&lea(), APPROVE), Err(ReviewRefusal::Expired));
    let mut replaced = late.clone();
    assert_eq!(
        replaced.decide(&max(), close_as(Closing::Failed)),
        Ok(Next::Proposed)
    );
    assert_eq!(late.sweep(), Ok(Next::Nothing));
    assert_eq!(late.op.row.proposal, None);
}

/// I18: what was proposed on a row that moved on is about another row, and stands in nobody's way.
#[test]
fn a_proposal_is_bound_to_the_version_it_was_made_on() {
    let mut moved = proposed(&ann());
    let refund = moved.ours("re_1", ObjectStatus::Succeeded);
    moved.observe(Source::ReviewLookup, event_of(&refund));
    assert!(matches!(
        moved.decide(&lea(), APPROVE),
        Err(ReviewRefusal::ProposalStale(_))
    ));
    assert_eq!(
        moved.decide(&ann(), close_as(Closing::Succeeded)),
        Ok(Next::Settled)
    );
    // Exactly at the limit one person is enough; above it a lone user is told what to configure.
    let mut at_limit = absent(four_eyes_over(3800));
    assert_eq!(
        at_limit.decide(&ann(), close_as(Closing::Failed)),
        Ok(Next::Settled)
    );
    let mut lone = absent(four_eyes_over(3799));
    let told = lone
        .decide(&alone(), close_as(Closing::Failed))
        .expect_err("alone");
    assert_eq!(told, ReviewRefusal::NobodyElse);
    assert!(
        told.to_string().contains("[reviewers."),
        "names the lines to add"
    );
}

/// I19: what was proposed is asked again when it is approved; a provider that answers again is no
/// longer a reason to close as failed.
#[test]
fn approving_asks_the_rules_again() {
    let mut story = Story::lost_and_stopped(keyed(), 3800);
    story.observe(Source::ReviewLookup, unreachable());
    story.wait_until_decidable();
    story.observe(Source::ReviewLookup, unreachable());
    assert_eq!(
        story.decide(&ann(), close_as(Closing::Failed)),
        Ok(Next::Proposed)
    );
    let incomplete = samekey::domain::transition::Lookup::Listed {
        began_at: story.now,
        complete: false,
        objects: Vec::new(),
    };
    story.observe(Source::Reconciler, incomplete);
    assert!(why(story.decide(&lea(), APPROVE).expect_err("reachable")).contains("look it up"));
}

/// What a table of decisions says for one row: allowed or not, in the order of [`everything`].
fn allowed_to(story: &Story, by: &Person) -> String {
    everything(story)
        .into_iter()
        .map(|act| {
            if story.clone().decide(by, act).is_ok() {
                '+'
            } else {
                '-'
            }
        })
        .collect()
}

fn everything(story: &Story) -> [Act; 11] {
    [
        close_as(Closing::Succeeded),
        close_as(Closing::Failed),
        Act::Stop,
        APPROVE,
        Act::Reject,
        correct(Closing::Succeeded),
        correct(Closing::Failed),
        ACKNOWLEDGE,
        Act::Note,
        Act::Claim,
        Act::Snooze {
            until: story.now + chrono::TimeDelta::hours(1),
        },
    ]
}

/// U11: every action on every kind of row, for every role: what is not offered is refused, and what is
/// offered is done.
#[test]
fn every_action_on_every_kind_of_row_by_every_role_u11() {
    let mut doubtful = Story::seed();
    doubtful.attempt("toolu_01", timeout());
    let mut refunded = Story::seed();
    let refund = refunded.ours("re_1", ObjectStatus::Succeeded);
    refunded.attempt(
        "toolu_01",
        reply(samekey::domain::outcome::OutcomeClass::Succeeded, refund),
    );
    let mut failed = absent(keyed());
    failed
        .decide(&ann(), close_as(Closing::Failed))
        .expect("closed");
    let mut returned = refunded.clone();
    let lost = returned.ours("re_1", ObjectStatus::Failed);
    returned.observe(Source::Webhook, event_of(&lost));
    returned.wait_until_decidable();
    let viewer = Person {
        role: Role::Viewer,
        ..ann()
    };
    //                       close R F, stop, A D, correct S F -, note claim snooze
    for (name, story, lead, reviewer) in [
        ("open, unsent", &Story::seed(), "-++-----+++", "-++-----+++"),
        ("open, in doubt", &doubtful, "--+-----+++", "--+-----+++"),
        (
            "unknown, absent",
            &absent(keyed()),
            "-+------+++",
            "-+------+++",
        ),
        (
            "held",
            &Story::held(keyed(), 3800),
            "---++---+++",
            "--------+++",
        ),
        ("succeeded", &refunded, "--------+--", "--------+--"),
        ("failed", &failed, "--------+--", "--------+--"),
        ("contradicted", &returned, "------+-++-", "--------++-"),
        ("proposed", &proposed(&ann()), "---++---+++", "--------+++"),
    ] {
        assert_eq!(allowed_to(story, &lea()), lead, "{name}, a lead");
        assert_eq!(allowed_to(story, &ann()), reviewer, "{name}, a reviewer");
        assert_eq!(
            allowed_to(story, &viewer),
            "-----------",
            "{name}, a viewer"
        );
    }
}
