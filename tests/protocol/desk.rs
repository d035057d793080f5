//! The desk: claims warn and block nobody, snoozes end by themselves; neither decides anything.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use std::time::Duration;

use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::guard::Role;
use samekey::domain::later;
use samekey::domain::operation::{Closing, LookedAt, Status};
use samekey::domain::policy::Caps;
use samekey::domain::review_event::{Act, Decision, LONGEST_SNOOZE, Person, ReviewRefusal};
use samekey::domain::transition::{Action, Event, Next, Refusal, Step};

use crate::builders::*;
use crate::deciding::{absent, keyed, why};

fn event(by: &Person, act: Act) -> Event {
    Event::Decided(Decision {
        by: by.clone(),
        note: "".into(),
        looked_at: None,
        act,
    })
}

/// At the desk nobody gives a note or a version.
fn at_desk(story: &mut Story, by: &Person, act: Act) -> Result<Step, ReviewRefusal> {
    let event = event(by, act);
    match story.try_event(&event) {
        Ok(step) => {
            story.apply(&event).expect("the same again");
            Ok(step)
        }
        Err(Refusal::Review(refusal)) => Err(refusal),
        Err(other) => panic!("a person met {other}"),
    }
}

fn for_hours(story: &Story, hours: u64) -> Act {
    Act::Snooze {
        until: later(story.now, Duration::from_secs(hours * 3600)),
    }
}

fn claimed_by(story: &Story) -> Option<String> {
    story.op.row.claimed_by(story.now).map(ToString::to_string)
}

/// A claim counts for `claim_ttl`, warns, and blocks nobody: another one closes, and takes it over.
#[test]
fn a_claim_warns_and_blocks_nobody() {
    let mut story = absent(keyed());
    let version = story.op.row.version;
    let step = at_desk(&mut story, &ann(), Act::Claim).expect("claimed");
    assert_eq!(
        (step.audit.action, step.next),
        (Action::Claimed, Next::Nothing)
    );
    assert!(
        step.audit.detail.get("note").is_none(),
        "nothing was written"
    );
    assert_eq!(claimed_by(&story).as_deref(), Some("ann"));
    assert_eq!(
        story.op.row.version, version,
        "decisions are not bound to it"
    );

    let taken = at_desk(&mut story, &max(), Act::Claim).expect("taken over");
    assert_eq!(taken.audit.detail["from"], "ann", "and says from whom");
    assert_eq!(claimed_by(&story).as_deref(), Some("max"));
    let again = at_desk(&mut story, &max(), Act::Claim).expect("renewed");
    assert!(again.audit.detail["from"].is_null());

    story
        .decide_on(version, &ann(), close_as(Closing::Failed))
        .expect("a claim of max stops nobody");
    assert_eq!(story.op.row.claim, None, "closing clears it");
    why(at_desk(&mut story, &ann(), Act::Claim).expect_err("settled"));
}

#[test]
fn an_expired_claim_counts_for_nothing() {
    let mut story = absent(keyed());
    at_desk(&mut story, &ann(), Act::Claim).expect("claimed");
    story.wait(15 * 60 - 1);
    assert_eq!(claimed_by(&story).as_deref(), Some("ann"));
    story.wait(1);
    assert_eq!(claimed_by(&story), None);
    let nobody = at_desk(&mut story, &ann(), Act::Release).expect_err("over");
    assert_eq!(nobody, ReviewRefusal::NotClaimed);
    let fresh = at_desk(&mut story, &max(), Act::Claim).expect("free");
    assert!(
        fresh.audit.detail["from"].is_null(),
        "taken over from nobody"
    );
}

#[test]
fn a_claim_is_given_back_by_its_owner_or_a_lead() {
    let mut story = absent(keyed());
    let other = Person {
        name: "zoe".parse().expect("a name"),
        ..ann()
    };
    let nobody = at_desk(&mut story, &ann(), Act::Release).expect_err("unclaimed");
    assert_eq!(nobody, ReviewRefusal::NotClaimed);
    at_desk(&mut story, &ann(), Act::Claim).expect("claimed");
    let refused = at_desk(&mut story, &other, Act::Release).expect_err("not hers");
    assert_eq!(refused, ReviewRefusal::ClaimOfAnother(ann().name));
    let step = at_desk(&mut story, &lea(), Act::Release).expect("a lead");
    assert_eq!(step.audit.action, Action::Released);
    assert_eq!(step.audit.detail["of"], "ann");
    assert_eq!(claimed_by(&story), None);
    at_desk(&mut story, &ann(), Act::Claim).expect("claimed");
    at_desk(&mut story, &ann(), Act::Release).expect("her own");
}

#[test]
fn the_desk_takes_a_reviewer() {
    let mut story = absent(keyed());
    let viewer = Person {
        role: Role::Viewer,
        ..ann()
    };
    for act in [Act::Claim, Act::Release, for_hours(&story, 1)] {
        let refused = at_desk(&mut story, &viewer, act).expect_err("a viewer");
        assert!(matches!(refused, ReviewRefusal::NotPermitted { .. }), "M55");
    }
}

/// At most seven days ahead; and the refusal says why.
#[test]
fn a_snooze_lies_ahead_and_not_too_far() {
    let mut story = absent(keyed());
    let now = story.now;
    let until = |at| Act::Snooze { until: at };
    why(at_desk(&mut story, &ann(), until(now)).expect_err("now is not ahead"));
    let far = later(now, LONGEST_SNOOZE + Duration::from_secs(1));
    let refused = why(at_desk(&mut story, &ann(), until(far)).expect_err("too far"));
    assert!(
        refused.contains("7 days") && refused.contains("forgotten"),
        "{refused}"
    );
    let version = story.op.row.version;
    let step = at_desk(&mut story, &ann(), until(later(now, LONGEST_SNOOZE))).expect("just so");
    assert_eq!(step.audit.action, Action::Snoozed);
    assert_eq!(story.op.row.snoozed(now), Some(later(now, LONGEST_SNOOZE)));
    assert_eq!(story.op.row.version, version);
    story.wait(7 * 86_400);
    assert_eq!(story.op.row.snoozed(story.now), None, "it ends by itself");
}

/// Any move of the version ends it; notes, claims and repeated evidence do not.
#[test]
fn a_snooze_ends_when_the_row_moves() {
    let mut story = absent(keyed());
    let act = for_hours(&story, 5);
    at_desk(&mut story, &ann(), act).expect("put off");
    at_desk(&mut story, &ann(), Act::Claim).expect("claimed");
    story.decide(&ann(), Act::Note).expect("noted");
    let list = story.list(&[]);
    story.observe(Source::ReviewLookup, list);
    assert!(story.op.row.snoozed(story.now).is_some(), "nothing moved");
    let refund = story.ours("re_1", ObjectStatus::Pending);
    story.observe(Source::Webhook, event_of(&refund));
    assert_eq!(story.op.row.snoozed_until, None, "news");
    assert!(claimed_by(&story).is_some(), "a claim is about the person");

    let mut closed = absent(keyed());
    let act = for_hours(&closed, 5);
    at_desk(&mut closed, &ann(), act.clone()).expect("put off");
    closed
        .decide(&ann(), close_as(Closing::Failed))
        .expect("closed");
    assert_eq!(closed.op.row.snoozed_until, None, "closing clears it");
    why(at_desk(&mut closed, &ann(), act).expect_err("settled"));
}

/// What is contradicted stands first in every list: it may be claimed and is never put off.
#[test]
fn a_contradicted_row_is_claimed_but_not_put_off() {
    let mut story = absent(keyed());
    story
        .decide(&ann(), close_as(Closing::Failed))
        .expect("closed");
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    story.observe(Source::Webhook, event_of(&refund));
    assert!(story.op.row.contradicted.is_some());
    at_desk(&mut story, &ann(), Act::Claim).expect("claimed");
    let act = for_hours(&story, 1);
    let refused = why(at_desk(&mut story, &ann(), act).expect_err("it blocks its order"));
    assert!(refused.contains("blocks its order"), "{refused}");
    story
        .decide(
            &lea(),
            Act::Correct {
                decision: Some(Closing::Succeeded),
            },
        )
        .expect("corrected");
    assert_eq!(
        (story.status(), claimed_by(&story)),
        (Status::Succeeded, None)
    );
}

/// I18: a replaced proposal does not move the version, so an approval is bound to the proposal itself.
#[test]
fn an_approval_is_of_the_proposal_that_was_read_and_of_no_other() {
    let four_eyes = || {
        with_caps(Caps {
            four_eyes_over: Some(3_799),
            ..Caps::default()
        })
    };
    let mut story = absent(four_eyes());
    story
        .decide(&ann(), close_as(Closing::Failed))
        .expect("proposed");
    let read = LookedAt::of(&story.op.row);
    // Rejected, and another one made: same row, same version, another maker and another wish.
    story.decide(&lea(), Act::Reject).expect("rejected");
    story.wait(60);
    let typed = close_with("re_7", fetched(story.unmarked("re_7")));
    story.decide(&ann(), typed).expect("proposed again");
    let now = LookedAt::of(&story.op.row);
    assert_eq!(read.version, now.version, "the version says nothing of it");
    for act in [APPROVE, Act::Reject] {
        let event = Event::Decided(decision(&max(), read.clone(), act));
        let Err(Refusal::Review(ReviewRefusal::WaitsOther(what))) = story.try_event(&event) else {
            panic!("another proposal was decided than the one read");
        };
        assert!(what.contains("ann"), "names what waits: {what}");
    }
    let unread = LookedAt {
        waiting: None,
        ..now.clone()
    };
    let event = Event::Decided(decision(&max(), unread, APPROVE));
    let missing = story.try_event(&event).expect_err("said nothing");
    assert_eq!(missing, Refusal::Review(ReviewRefusal::WaitingMissing));
    let event = Event::Decided(decision(&max(), now, APPROVE));
    assert_eq!(story.apply(&event), Ok(Next::Settled));
    assert_eq!(story.status(), Status::Succeeded);

    // A held row is bound to its request, which never changes (I3); a proposal is none.
    let held = Story::held(keyed(), 3800);
    let wrong = LookedAt {
        waiting: read.waiting,
        ..LookedAt::of(&held.op.row)
    };
    let event = Event::Decided(decision(&lea(), wrong, APPROVE));
    let refused = held.try_event(&event).expect_err("not what was read");
    assert!(matches!(
        refused,
        Refusal::Review(ReviewRefusal::WaitsOther(_))
    ));
}
