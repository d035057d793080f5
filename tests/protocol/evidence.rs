//! What lookups and webhooks do to a row, in every status, and what they never do.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::evidence::{Bearing, ObjectStatus, ProviderObject, Source, Verdict, silence};
use samekey::domain::operation::{
    Closing, Contradiction, Effect, FailureClass, Status, UnknownReason,
};
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::ProviderKind;
use samekey::domain::review_event::Act;
use samekey::domain::tool_call::ToolResult;
use samekey::domain::transition::{Lookup, Next, Refusal};

use crate::builders::*;

const CLOSING: [Source; 3] = [Source::EngineLookup, Source::Reconciler, Source::Webhook];
const ALL: [Source; 4] = [
    Source::EngineLookup,
    Source::Reconciler,
    Source::Webhook,
    Source::ReviewLookup,
];

fn open_in_doubt() -> Story {
    let mut story = Story::seed();
    story.attempt("toolu_01", timeout());
    story
}

fn unknown() -> Story {
    Story::lost_and_stopped(terms(ProviderKind::Keyed), 3800)
}

fn succeeded() -> Story {
    let mut story = Story::seed();
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    story.attempt("toolu_01", reply(OutcomeClass::Succeeded, refund));
    story
}

/// Failed by a person, absence proven.
fn failed() -> Story {
    let mut story = unknown();
    story.wait_until_decidable();
    let list = story.list(&[]);
    story.observe(Source::ReviewLookup, list);
    story
        .decide(&ann(), close_as(Closing::Failed))
        .expect("absent");
    story
}

fn see(story: &mut Story, source: Source, id: &str, status: ObjectStatus) -> Next {
    let object = story.ours(id, status);
    story.observe(source, event_of(&object))
}

/// "Late news", R54, R76, R77, I16: each source on each status.
#[test]
fn confirmed_evidence_closes_open_and_unknown_rows_but_not_from_a_review() {
    for source in ALL {
        for mut story in [open_in_doubt(), unknown()] {
            let before = story.status();
            see(&mut story, source, "re_1", ObjectStatus::Succeeded);
            let closes = CLOSING.contains(&source);
            let expected = if closes { Status::Succeeded } else { before };
            assert_eq!(story.status(), expected, "{source:?} on {before:?}");
            assert_eq!(story.op.row.verdict, Some(Verdict::Confirmed));
            assert_eq!(story.op.row.effect, Effect::Identified);
        }
        // On closed rows nothing moves; on a failed one it is a contradiction (F25, I20).
        let mut good = succeeded();
        see(&mut good, source, "re_1", ObjectStatus::Succeeded);
        assert_eq!(
            (good.status(), good.op.row.contradicted),
            (Status::Succeeded, None)
        );
        let mut bad = failed();
        see(&mut bad, source, "re_1", ObjectStatus::Succeeded);
        assert_eq!(bad.status(), Status::Failed);
        assert_eq!(
            bad.op.row.contradicted,
            Some(Contradiction::EffectAfterFailed)
        );
    }
}

/// A review lookup sees first and closes nothing; the same news from a source that may close still
/// closes: neither is lost by the other's having seen it.
#[test]
fn what_a_review_lookup_saw_first_still_closes_later() {
    for source in CLOSING {
        for mut story in [open_in_doubt(), unknown()] {
            see(
                &mut story,
                Source::ReviewLookup,
                "re_1",
                ObjectStatus::Succeeded,
            );
            assert_ne!(story.status(), Status::Succeeded);
            story.authorise("toolu_02").expect_err("nothing is sent");
            see(&mut story, source, "re_1", ObjectStatus::Succeeded);
            assert_eq!(story.status(), Status::Succeeded, "{source:?}");
        }
    }
    // The attempt itself, in flight while the reviewer looked.
    let mut story = Story::seed();
    let number = story.authorise("toolu_01").expect("authorised");
    see(
        &mut story,
        Source::ReviewLookup,
        "re_1",
        ObjectStatus::Succeeded,
    );
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    story.end(number, reply(OutcomeClass::Succeeded, refund));
    assert_eq!(story.status(), Status::Succeeded);
    // But a list that shows somebody else's object confirms nothing.
    let mut story = open_in_doubt();
    see(
        &mut story,
        Source::ReviewLookup,
        "re_1",
        ObjectStatus::Succeeded,
    );
    let list = story.list(&[story.unmarked("re_2")]);
    story.observe(Source::Reconciler, list);
    assert_eq!(story.status(), Status::Open);
}

/// I21, F24: accepted is not final. Nothing more is sent, caps and the key's deadline do not apply,
/// our own object's end closes the row.
#[test]
fn a_pending_object_is_followed_to_its_end() {
    let pending = || {
        let mut story = Story::seed();
        let object = story.ours("re_1", ObjectStatus::Pending);
        let next = story.attempt("toolu_01", reply(OutcomeClass::Pending, object));
        assert_eq!(next, Next::EndCall);
        let ToolResult::Unconfirmed { object, note, .. } = story.answer() else {
            panic!("unconfirmed")
        };
        assert_eq!(object.expect("named").id.as_str(), "re_1");
        assert!(note.as_str().contains("not final"));
        assert_eq!(story.op.row.effect, Effect::Identified);
        assert_eq!(story.authorise("toolu_02"), Err(Refusal::Identified));
        story.wait(2 * 24 * 3600);
        assert_eq!(
            story.sweep(),
            Err(Refusal::NothingDue),
            "no deadline of the key"
        );
        story
    };
    for source in CLOSING {
        let mut done = pending();
        see(&mut done, source, "re_1", ObjectStatus::Succeeded);
        assert_eq!(done.status(), Status::Succeeded);
        for lost in [ObjectStatus::Failed, ObjectStatus::Canceled] {
            let mut story = pending();
            see(&mut story, source, "re_1", lost);
            assert_eq!(story.op.row.failure, Some(FailureClass::EffectFailed));
            let ToolResult::Failed { object, .. } = story.answer() else {
                panic!("failed")
            };
            assert!(object.is_some(), "keeps the provider's id");
        }
    }
    // A word nobody knows is never final.
    let mut odd = pending();
    see(
        &mut odd,
        Source::Webhook,
        "re_1",
        ObjectStatus::of("settling"),
    );
    assert_eq!(odd.status(), Status::Open);
    // After 35 days a person has to ask.
    let mut long = pending();
    long.now = at(1 + 35 * 24 * 3600 - 1);
    assert_eq!(long.sweep(), Err(Refusal::NothingDue));
    long.wait(1).sweep().expect("35 days");
    assert_eq!(long.op.row.reason, Some(UnknownReason::PendingTooLong));
    see(&mut long, Source::Webhook, "re_1", ObjectStatus::Failed);
    assert_eq!(
        long.status(),
        Status::Unknown,
        "an unknown row is failed by a person only"
    );
    long.wait_until_decidable();
    long.decide(&ann(), close_as(Closing::Failed))
        .expect("refused");
}

/// "Contradicted", I20, F25, M59: flagged, never changed silently; nothing is sent, the answer is
/// checking; acknowledged once, the same news does not flag it again.
#[test]
fn contradictions_are_flagged_once_and_corrected_once() {
    let mut returned = succeeded();
    see(&mut returned, Source::Webhook, "re_1", ObjectStatus::Failed);
    assert_eq!(returned.status(), Status::Succeeded);
    assert_eq!(
        returned.op.row.contradicted,
        Some(Contradiction::FailedAfterSucceeded)
    );
    assert_eq!(returned.answer().status(), "checking");
    returned.wait_until_decidable();
    let correct = |decision| Act::Correct { decision };
    returned
        .decide(&lea(), correct(Some(Closing::Failed)))
        .expect("corrected");
    assert_eq!(
        (returned.status(), returned.op.row.contradicted),
        (Status::Failed, None)
    );
    assert_eq!(returned.op.row.corrections, 1);

    let mut late = failed();
    see(&mut late, Source::Webhook, "re_1", ObjectStatus::Succeeded);
    late.decide(&lea(), correct(Some(Closing::Succeeded)))
        .expect("corrected");
    assert_eq!(
        (late.status(), late.op.row.failure),
        (Status::Succeeded, None)
    );

    let mut twice = succeeded();
    see(
        &mut twice,
        Source::Reconciler,
        "re_2",
        ObjectStatus::Succeeded,
    );
    assert_eq!(
        twice.op.row.contradicted,
        Some(Contradiction::SecondEffect),
        "M36"
    );
    twice.decide(&lea(), correct(None)).expect("acknowledged");

    for story in [returned, late, twice] {
        stays_quiet_until_there_is_news(story);
    }
}

/// Everything that is known is told again, by everybody, in every spelling.
fn stays_quiet_until_there_is_news(mut story: Story) {
    let version = story.op.row.version;
    let objects: Vec<ProviderObject> = samekey::domain::evidence::objects(&story.op.evidence)
        .values()
        .map(|(o, _)| (*o).clone())
        .collect();
    for source in ALL {
        let list = story.list(&objects);
        story.observe(source, list);
        for object in &objects {
            story.observe(source, event_of(object));
            // The same object in another reader's words is the same object.
            let spelt = ProviderObject {
                charge: Some("ch_1".parse().expect("a charge")),
                ..object.clone()
            };
            story.observe(source, event_of(&spelt));
        }
    }
    assert_eq!(story.op.row.contradicted, None, "not flagged again");
    assert_eq!(
        story.op.row.version, version,
        "repeated evidence binds nobody"
    );
    // A third object is news.
    see(&mut story, Source::Webhook, "re_3", ObjectStatus::Succeeded);
    assert_eq!(story.op.row.contradicted, Some(Contradiction::SecondEffect));
}

/// M36, I11: two objects of ours. An open row stops at once, an unknown one is flagged; neither closes
/// by itself.
#[test]
fn a_second_effect_stops_an_open_row_and_flags_the_others() {
    let two = |story: &Story| {
        story.list(&[
            story.ours("re_1", ObjectStatus::Succeeded),
            story.ours("re_2", ObjectStatus::Pending),
        ])
    };
    for source in ALL {
        let mut open = open_in_doubt();
        let list = two(&open);
        open.observe(source, list);
        assert_eq!(open.op.row.reason, Some(UnknownReason::SecondEffect));
        let mut stopped = unknown();
        let list = two(&stopped);
        stopped.observe(source, list);
        assert_eq!(stopped.op.row.reason, Some(UnknownReason::Stopped));
        for mut story in [open, stopped, succeeded(), failed()] {
            let (status, list) = (story.status(), two(&story));
            story.observe(source, list);
            assert_eq!(story.status(), status);
            assert_eq!(story.op.row.verdict, Some(Verdict::SecondEffect));
            assert_eq!(story.op.row.contradicted, Some(Contradiction::SecondEffect));
        }
    }
}

/// F61: events in every order end in the same evidence and verdict; a late "pending" or "succeeded"
/// takes no later status back, nor does a replayed answer.
#[test]
fn events_may_come_in_any_order() {
    use ObjectStatus::{Failed, Pending, Succeeded};
    for order in [
        [Pending, Succeeded, Failed],
        [Pending, Failed, Succeeded],
        [Succeeded, Pending, Failed],
        [Succeeded, Failed, Pending],
        [Failed, Pending, Succeeded],
        [Failed, Succeeded, Pending],
    ] {
        let mut story = unknown();
        for status in order {
            see(&mut story, Source::Webhook, "re_1", status);
        }
        let failed_last = story.status() == Status::Succeeded;
        assert_eq!(story.op.row.verdict, Some(Verdict::Refused), "{order:?}");
        let flag = failed_last.then_some(Contradiction::FailedAfterSucceeded);
        assert_eq!(story.op.row.contradicted, flag, "{order:?}");
    }
    let mut story = open_in_doubt();
    see(&mut story, Source::Webhook, "re_1", Failed);
    see(&mut story, Source::Webhook, "re_1", Succeeded);
    assert_eq!(
        (story.status(), story.op.row.contradicted),
        (Status::Failed, None)
    );
    // A lookup reads the present, so it is believed.
    see(&mut story, Source::Reconciler, "re_1", Succeeded);
    assert_eq!(
        story.op.row.contradicted,
        Some(Contradiction::EffectAfterFailed)
    );
    // An attempt that was in flight replays what the key's first execution said.
    let mut story = Story::seed();
    let number = story.authorise("toolu_01").expect("authorised");
    see(&mut story, Source::ReviewLookup, "re_1", Failed);
    let old = story.ours("re_1", Succeeded);
    story.end(number, reply(OutcomeClass::Succeeded, old));
    assert_eq!(story.op.row.failure, Some(FailureClass::EffectFailed));
}

/// I17, F23, F66, M59: ours is only our id and payment and amount and currency, attached to nobody
/// else. What carries our id but differs, or looks like ours without a mark, is ambiguous.
#[test]
fn evidence_is_ours_only_in_every_part() {
    let story = open_in_doubt();
    let row = &story.op.row;
    let ours = story.ours("re_1", ObjectStatus::Succeeded);
    let changed = |change: fn(&mut ProviderObject)| {
        let mut object = ours.clone();
        change(&mut object);
        object
    };
    let old = ProviderObject {
        created_at: at(0) - chrono::TimeDelta::seconds(300),
        ..story.unmarked("re_1")
    };
    let fresh = ProviderObject {
        created_at: at(0) - chrono::TimeDelta::seconds(299),
        ..old.clone()
    };
    for (object, taken, bearing) in [
        (ours.clone(), false, Some(Bearing::Ours)),
        (ours.clone(), true, Some(Bearing::Ambiguous)),
        (
            changed(|o| o.amount_minor = Some(1)),
            false,
            Some(Bearing::Ambiguous),
        ),
        (
            changed(|o| o.currency = "eur".parse().ok()),
            false,
            Some(Bearing::Ambiguous),
        ),
        (
            changed(|o| o.payment = Some(payment_of("1"))),
            false,
            Some(Bearing::Ambiguous),
        ),
        (changed(|o| o.operation = Some(op_id(1))), false, None),
        (story.unmarked("re_1"), false, Some(Bearing::Ambiguous)),
        (story.unmarked("re_1"), true, None),
        (fresh, false, Some(Bearing::Ambiguous)),
        (old, false, None),
        (
            ProviderObject {
                amount_minor: Some(1),
                ..story.unmarked("re_1")
            },
            false,
            None,
        ),
    ] {
        assert_eq!(object.bearing(row, taken), bearing, "{object:?}");
    }
}

/// I17: before anything was authorised nothing is a candidate, and what is ours stays ours.
#[test]
fn ours_begins_with_the_first_authorise_and_never_ends() {
    let story = open_in_doubt();
    // Before anything was authorised, an unmarked object is no candidate.
    assert_eq!(
        story.unmarked("re_1").bearing(&Story::seed().op.row, false),
        None
    );
    // Once ours, always ours: metadata that changes later disowns nothing.
    let mut story = unknown();
    see(
        &mut story,
        Source::ReviewLookup,
        "re_1",
        ObjectStatus::Succeeded,
    );
    let renamed = ProviderObject {
        operation: Some(op_id(1)),
        ..story.ours("re_1", ObjectStatus::Failed)
    };
    story.observe(Source::ReviewLookup, event_of(&renamed));
    assert_eq!(story.op.row.verdict, Some(Verdict::Refused));
}

/// Absence needs a complete scan that began after everything could have settled; anything of ours, or
/// that may be ours, excludes it.
#[test]
fn absence_is_proven_late_and_completely_or_not_at_all() {
    let mut story = unknown();
    story.wait_until_decidable();
    let early = story.now - chrono::TimeDelta::seconds(3);
    for (began_at, complete) in [(early, true), (story.now, false)] {
        let objects = Vec::new();
        story.observe(
            Source::ReviewLookup,
            Lookup::Listed {
                began_at,
                complete,
                objects,
            },
        );
        assert_eq!(story.op.row.verdict, None);
    }
    let mut absent = story.clone();
    let list = absent.list(&[]);
    absent.observe(Source::Reconciler, list);
    assert_eq!(absent.op.row.verdict, Some(Verdict::Absent));
    assert_eq!(
        (absent.op.row.effect, absent.status()),
        (Effect::Absent, Status::Unknown),
        "I16"
    );
    // An unmarked candidate, and two of them.
    for candidates in [&["re_8"][..], &["re_8", "re_9"]] {
        let mut story = story.clone();
        let objects: Vec<_> = candidates.iter().map(|id| story.unmarked(id)).collect();
        let list = story.list(&objects);
        story.observe(Source::Reconciler, list);
        assert_eq!(story.op.row.verdict, Some(Verdict::Ambiguous));
        let list = story.wait(60).list(&[]);
        story.observe(Source::Reconciler, list);
        assert_eq!(
            story.op.row.verdict,
            Some(Verdict::Ambiguous),
            "still excludes absent"
        );
        assert_eq!(story.status(), Status::Unknown);
    }
}

/// I33: evidence that says nothing new is not stored for ever; what a person looked at is.
#[test]
fn automatic_lookups_do_not_fill_the_ledger() {
    let mut story = Story::seed();
    let object = story.ours("re_1", ObjectStatus::Pending);
    story.attempt("toolu_01", reply(OutcomeClass::Pending, object.clone()));
    for _ in 0..200 {
        story.wait(600);
        let list = story.list(std::slice::from_ref(&object));
        story.observe(Source::Reconciler, list);
        story.observe(Source::Webhook, event_of(&object));
    }
    assert_eq!(story.op.evidence.len(), 1);
    let mut silent = unknown();
    for _ in 0..50 {
        silent.observe(Source::Reconciler, unreachable());
    }
    silent.wait_until_decidable();
    for _ in 0..50 {
        let list = silent.list(&[]);
        silent.observe(Source::Reconciler, list);
    }
    assert_eq!(
        silent.op.evidence.len(),
        2,
        "one silence, one proof that ends it"
    );
    let list = silent.list(&[]);
    silent.observe(Source::ReviewLookup, list);
    assert_eq!(
        silent.op.evidence.len(),
        3,
        "the answer to a person is stored"
    );
}

/// I33: automatic lookups that say nothing new write nothing, so that neither evidence nor audit grow
/// with time; a person's lookup is always written.
#[test]
fn repeated_automatic_lookups_are_not_audited_for_ever() {
    let mut story = unknown();
    for _ in 0..200 {
        story.wait(60);
        story.observe(Source::EngineLookup, unreachable());
    }
    // The first, and the one that shows how long it has lasted.
    assert_eq!(story.op.evidence.len(), 2);
    let silence = silence(&story.op.evidence).expect("silent");
    assert!(silence.lasted(story.terms.profile.settle_time));
    let audited = story.op.row.audit_seq;
    let nothing = story.apply(&observed(Source::EngineLookup, unreachable()));
    assert_eq!(nothing, Err(Refusal::NothingNew));
    let list = story.list(&[]);
    story.observe(Source::Reconciler, list);
    for _ in 0..200 {
        let list = story.wait(60).list(&[]);
        story.observe(Source::EngineLookup, list.clone());
        story.observe(Source::Reconciler, list);
    }
    assert_eq!(
        story.op.row.audit_seq,
        audited + 1,
        "the end of the silence"
    );
    let list = story.list(&[]);
    story.observe(Source::ReviewLookup, list);
    assert_eq!(story.op.row.audit_seq, audited + 2, "a person looked");
}

/// Whatever else comes late is evidence only: a second attempt's fate does not undo the first's.
#[test]
fn two_replies_of_one_key_are_one_effect_i13() {
    let mut story = Story::seed();
    story.attempt("toolu_01", timeout());
    story.attempt("toolu_01", in_progress());
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    let saved = Outcome {
        replayed: true,
        ..reply(OutcomeClass::Succeeded, refund)
    };
    story.attempt("toolu_01", saved);
    assert_eq!(story.status(), Status::Succeeded, "R26");
    assert_eq!(story.op.row.verdict, Some(Verdict::Confirmed));
}
