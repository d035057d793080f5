//! Thousands of lives of one operation: every short one, and many long random ones. The laws are
//! checked at each step (by [`Story`]); here it is also checked that the interesting places were
//! really reached, because a search that never gets anywhere proves nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use samekey::domain::evidence::{ObjectStatus, ProviderObject, Source};
use samekey::domain::operation::{Closing, Effect, LookedAt, Operation, Status};
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::{Caps, ProviderKind};
use samekey::domain::review_event::{Act, Decision, Fetched, Person};
use samekey::domain::transition::{Event, Lookup, Refusal};

use crate::builders::*;

const STATUSES: [ObjectStatus; 6] = [
    ObjectStatus::Pending,
    ObjectStatus::RequiresAction,
    ObjectStatus::Succeeded,
    ObjectStatus::Failed,
    ObjectStatus::Canceled,
    ObjectStatus::Other,
];
const SOURCES: [Source; 4] = [
    Source::ReviewLookup,
    Source::EngineLookup,
    Source::Reconciler,
    Source::Webhook,
];

fn pick<T: Clone>(lots: &mut ChaCha8Rng, from: &[T]) -> T {
    from[lots.random_range(0..from.len())].clone()
}

/// Some object: ours, almost ours, unmarked, or somebody else's.
fn object(story: &Story, lots: &mut ChaCha8Rng) -> ProviderObject {
    let id = pick(lots, &["re_1", "re_1", "re_1", "re_2"]);
    let ours = story.ours(id, pick(lots, &STATUSES));
    match lots.random_range(0..12) {
        0 => ProviderObject {
            operation: None,
            ..ours
        },
        1 => ProviderObject {
            amount_minor: Some(1),
            ..ours
        },
        2 => ProviderObject {
            operation: Some(op_id(1)),
            ..ours
        },
        _ => ours,
    }
}

fn outcome(story: &Story, lots: &mut ChaCha8Rng) -> Outcome {
    use OutcomeClass as C;
    let ours = |status| story.ours("re_1", status);
    let plain = match lots.random_range(0..16) {
        0 => reply(C::Succeeded, ours(ObjectStatus::Succeeded)),
        1 => reply(C::Pending, ours(ObjectStatus::Pending)),
        2 => reply(C::EffectFailed, ours(ObjectStatus::Failed)),
        3 => reply(C::ReplyMismatch, object(story, lots)),
        4 => Outcome::of(C::ServerError),
        5 => Outcome::of(C::KeyMismatch),
        6 => refusal(),
        7 => already_refunded(),
        8 => Outcome::of(C::PermissionDenied),
        9 => limited(),
        10 => Outcome::of(C::RetryableFailure),
        11 => Outcome::of(C::NotSent),
        12 => in_progress(),
        _ => timeout(),
    };
    Outcome {
        replayed: lots.random_range(0..8) == 0,
        should_retry: pick(lots, &[None, None, None, Some(true), Some(false)]),
        ..plain
    }
}

fn lookup(story: &Story, lots: &mut ChaCha8Rng) -> Lookup {
    match lots.random_range(0..6) {
        0 => unreachable(),
        1 => Lookup::One {
            object: object(story, lots),
            taken: lots.random_range(0..6) == 0,
        },
        n => Lookup::Listed {
            began_at: story.now,
            complete: n != 2,
            objects: (0..lots.random_range(0..3))
                .map(|_| (object(story, lots), lots.random_range(0..8) == 0))
                .collect(),
        },
    }
}

fn act(story: &Story, lots: &mut ChaCha8Rng) -> Act {
    let closing = pick(lots, &[Closing::Succeeded, Closing::Failed]);
    match lots.random_range(0..14) {
        0 => Act::Stop,
        1 => Act::Note,
        12 => pick(lots, &[Act::Claim, Act::Release]),
        13 => Act::Snooze {
            until: story.now + chrono::TimeDelta::hours(pick(lots, &[-1, 1, 100, 1000])),
        },
        2 | 3 => APPROVE,
        4 => Act::Reject,
        5 => Act::Correct { decision: None },
        6 => Act::Correct {
            decision: Some(closing),
        },
        7 => close_with("re_7", Fetched::Unreachable),
        8 => close_with("re_7", fetched(story.unmarked("re_7"))),
        _ => close_as(closing),
    }
}

/// What a life is mostly about, so that its far corners are reached too.
#[derive(Clone, Copy)]
enum Mood {
    Anything,
    /// Attempts that tell nothing.
    Retrying,
    /// People deciding about a row that is unknown.
    Deciding,
}

/// Any event at all, sensible or not.
fn event(story: &Story, mood: Mood, lots: &mut ChaCha8Rng) -> Event {
    let attempt = lots.random_range(1..=story.op.row.attempts.max(1));
    if let Mood::Retrying = mood
        && lots.random_range(0..12) != 0
    {
        let call = pick(lots, &["toolu_01", "toolu_02", "toolu_03"]);
        let outcome = pick(lots, &[timeout(), in_progress(), limited()]);
        let attempt = story.op.row.attempts;
        let taken = false;
        return if story.op.in_flight() {
            Event::Finished {
                attempt,
                outcome,
                taken,
            }
        } else {
            Event::Authorise(allowed(call))
        };
    }
    let kinds = match mood {
        Mood::Anything | Mood::Retrying => 0..20,
        Mood::Deciding => 10..30,
    };
    match lots.random_range(kinds) {
        0..=4 => {
            let mut facts = allowed(pick(lots, &["toolu_01", "toolu_02", "toolu_03"]));
            facts.lease = lots.random_range(0..10) != 0;
            facts.paused = lots.random_range(0..10) == 0;
            facts.contradicted = lots.random_range(0..20) == 0;
            Event::Authorise(facts)
        }
        5..=8 => Event::Finished {
            attempt,
            outcome: outcome(story, lots),
            taken: lots.random_range(0..20) == 0,
        },
        9 => Event::Interrupted,
        10..=12 => observed(pick(lots, &SOURCES), lookup(story, lots)),
        13 => {
            let other = object(story, lots);
            let answers = [None, Some(story.unmarked("re_7")), Some(other)];
            Event::RefFetched {
                object: pick(lots, &answers),
                taken: lots.random_range(0..4) == 0,
            }
        }
        14 => Event::NeverSent,
        15 => Event::NoLongerFits {
            why: "nothing is left".into(),
        },
        16 => Event::Swept,
        _ => {
            let by: Person = pick(lots, &[ann(), lea(), max(), alone()]);
            let stale = i64::from(lots.random_range(0..12) == 0);
            let looked_at = LookedAt {
                version: story.op.row.version - stale,
                ..LookedAt::of(&story.op.row)
            };
            Event::Decided(decision(&by, looked_at, act(story, lots)))
        }
    }
}

/// Names of places worth having been at.
fn places(before: &Operation, story: &Story, event: &Event) -> Vec<String> {
    let row = &story.op.row;
    let mut seen = vec![format!("status {}", row.status.as_str())];
    seen.extend(row.reason.map(|r| format!("reason {r:?}")));
    seen.extend(row.failure.map(|f| format!("failure {f:?}")));
    seen.extend(row.contradicted.map(|c| format!("contradicted {c:?}")));
    seen.extend(row.verdict.map(|v| format!("verdict {v:?}")));
    if row.corrections > before.row.corrections {
        seen.push("corrected".into());
    }
    if row.proposal.is_some() && before.row.proposal.is_none() {
        seen.push("proposed".into());
    }
    if before.row.status != row.status {
        let how = match event {
            Event::Decided(Decision { act, .. }) => match act {
                Act::Approve { .. } => "by two people",
                Act::Close { .. } => "by one person",
                _ => "by another decision",
            },
            _ => "by itself",
        };
        seen.push(format!(
            "{} to {} {how}",
            before.row.status.as_str(),
            row.status.as_str()
        ));
    }
    if row.attempts == 6 {
        seen.push("six attempts".into());
    }
    if story.op.in_flight() && row.status != Status::Open {
        seen.push("settled in flight".into());
    }
    seen
}

const MUST_SEE: [&str; 47] = [
    "status open",
    "status unknown",
    "status succeeded",
    "status failed",
    "reason ServerError",
    "reason AttemptsExhausted",
    "reason KeyExpired",
    "reason KeyMismatch",
    "reason ReplyMismatch",
    "reason UndeterminedRefusal",
    "reason RefusalUnproven",
    "reason LookupInconclusive",
    "reason NoKeysAtProvider",
    "reason PendingTooLong",
    "reason SecondEffect",
    "reason Stopped",
    "failure ValidationFailure",
    "failure PermissionDenied",
    "failure EffectFailed",
    "failure Unavailable",
    "contradicted FailedAfterSucceeded",
    "contradicted EffectAfterFailed",
    "contradicted SecondEffect",
    "contradicted RefMismatch",
    "verdict SecondEffect",
    "verdict Confirmed",
    "verdict Pending",
    "verdict Refused",
    "verdict Ambiguous",
    "verdict Absent",
    "corrected",
    "proposed",
    "open to succeeded by itself",
    "open to failed by itself",
    "open to unknown by itself",
    "open to failed by one person",
    "open to unknown by another decision",
    "unknown to succeeded by itself",
    "unknown to succeeded by one person",
    "unknown to succeeded by two people",
    "unknown to failed by one person",
    "unknown to failed by two people",
    "succeeded to failed by another decision",
    "failed to succeeded by another decision",
    "open to failed by another decision",
    "six attempts",
    "settled in flight",
];

fn beginning(seed: u64) -> Story {
    let kind = match seed % 5 {
        0..=2 => ProviderKind::Keyed,
        3 => ProviderKind::Lookup,
        _ => ProviderKind::None,
    };
    let over = if seed.is_multiple_of(2) { 3799 } else { 3800 };
    let mut terms = with_caps(Caps {
        four_eyes_over: Some(over),
        ..Caps::default()
    });
    terms.profile.kind = kind;
    if seed.is_multiple_of(7) {
        Story::held(terms, 3800)
    } else {
        Story::of(terms, 3800)
    }
}

/// I1–I25 as far as one row can show them: 4,000 random lives of 60 events each.
#[test]
fn no_random_life_breaks_a_law() {
    let mut seen = BTreeSet::new();
    for seed in 0..4_000 {
        let mut lots = ChaCha8Rng::seed_from_u64(seed);
        let (mut story, mood) = match seed % 4 {
            0 | 1 => (beginning(seed), Mood::Anything),
            2 => (beginning(seed), Mood::Retrying),
            _ => {
                let terms = beginning(seed).terms;
                (Story::lost_and_stopped(terms, 3800), Mood::Deciding)
            }
        };
        for _ in 0..60 {
            let pause = pick(&mut lots, &[0, 1, 1, 1, 30, 700, 7200, 90_000, 36 * 86_400]);
            let often = lots.random_range(0..4) == 0 || pause <= 30;
            story.wait(if often { pause } else { 1 });
            let event = event(&story, mood, &mut lots);
            let before = story.op.clone();
            if story.apply(&event).is_ok() {
                seen.extend(places(&before, &story, &event));
            } else {
                assert!(
                    story.op == before,
                    "seed {seed}: a refusal changed something"
                );
            }
        }
    }
    let missing: Vec<_> = MUST_SEE.iter().filter(|p| !seen.contains(**p)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}

/// What can happen to a young row, in few words; for the exhaustive walk.
fn alphabet(story: &Story) -> Vec<(&'static str, Event)> {
    let finish = |outcome| Event::Finished {
        attempt: story.op.row.attempts,
        outcome,
        taken: false,
    };
    let seen = || LookedAt::of(&story.op.row);
    let decide = |by: &Person, act| Event::Decided(decision(by, seen(), act));
    let refund = |status| story.ours("re_1", status);
    let ok = reply(OutcomeClass::Succeeded, refund(ObjectStatus::Succeeded));
    let lost = event_of(&refund(ObjectStatus::Failed));
    vec![
        ("authorise", Event::Authorise(allowed("toolu_01"))),
        ("times out", finish(timeout())),
        ("is refused", finish(refusal())),
        ("has been refunded", finish(already_refunded())),
        ("succeeds", finish(ok)),
        ("breaks", finish(Outcome::of(OutcomeClass::ServerError))),
        (
            "webhook succeeded",
            observed(Source::Webhook, event_of(&refund(ObjectStatus::Succeeded))),
        ),
        ("webhook failed", observed(Source::Webhook, lost)),
        (
            "listed empty",
            observed(Source::ReviewLookup, story.list(&[])),
        ),
        ("stop", decide(&ann(), Act::Stop)),
        ("close as failed", decide(&ann(), close_as(Closing::Failed))),
        (
            "close as succeeded",
            decide(&ann(), close_as(Closing::Succeeded)),
        ),
        (
            "correct to failed",
            decide(
                &lea(),
                Act::Correct {
                    decision: Some(Closing::Failed),
                },
            ),
        ),
        ("sweep", Event::Swept),
        ("claim", decide(&ann(), Act::Claim)),
        (
            "snooze",
            decide(
                &ann(),
                Act::Snooze {
                    until: story.now + chrono::TimeDelta::hours(1),
                },
            ),
        ),
    ]
}

/// Every life of up to six events, each at once or after a quarter of an hour or a day: the laws hold
/// in all of them. Equal rows are walked once.
#[test]
fn no_short_life_breaks_a_law() {
    let mut frontier = vec![Story::seed()];
    let mut known = BTreeSet::new();
    let mut steps = 0_u32;
    for _ in 0..6 {
        let mut next = Vec::new();
        for story in frontier {
            for pause in [1, 900, 90_000] {
                let mut then = story.clone();
                then.wait(pause);
                for (_, event) in alphabet(&then) {
                    let Ok(step) = then.try_event(&event) else {
                        continue;
                    };
                    steps += 1;
                    let mut after = then.clone();
                    after.op = step.op;
                    if known.insert(shape(&after)) {
                        next.push(after);
                    }
                }
            }
        }
        frontier = next;
    }
    assert!(steps > 20_000, "only {steps} steps were walked");
}

/// What tells two lives apart: everything that rules ask, times only as what has passed.
fn shape(story: &Story) -> String {
    let row = &story.op.row;
    let passed = |at: Option<samekey::domain::Instant>| at.map(|at| story.now >= at);
    let decidable = row
        .last_authorised_at
        .map(|last| story.terms.profile.decidable_at(last));
    let attempts: Vec<_> = story
        .op
        .attempts
        .iter()
        .map(|a| (a.class(), a.result.as_ref().map(|r| r.already_refunded)))
        .collect();
    let evidence: Vec<_> = story
        .op
        .evidence
        .iter()
        .map(|e| (e.seen.kind(), e.source))
        .collect();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {attempts:?} {evidence:?} {:?} {:?} {}",
        row.status,
        (row.reason, row.failure, row.contradicted, row.corrections),
        (row.effect, row.verdict),
        row.provider_ref,
        row.proposal.is_some(),
        passed(row.key_expires_at),
        passed(decidable),
        row.attempts,
    )
}

/// L3: whatever happened to a row that was authorised, with no further call the sweeper alone ends it
/// by the key's deadline, or 35 days after its object was found pending.
#[test]
fn every_authorised_row_ends_without_a_further_call() {
    for seed in 0..500 {
        let mut lots = ChaCha8Rng::seed_from_u64(seed);
        let mut story = beginning(seed);
        for _ in 0..lots.random_range(1..12) {
            story.wait(1);
            let event = event(&story, Mood::Anything, &mut lots);
            let _: Result<_, Refusal> = story.apply(&event);
        }
        if story.op.row.attempts == 0 {
            continue;
        }
        story.wait(24 * 3600);
        while story.sweep().is_ok() {}
        let identified = story.op.row.effect == Effect::Identified;
        assert!(
            story.status() != Status::Open || identified,
            "seed {seed}: L3"
        );
        story.now += Duration::from_hours(35 * 24);
        while story.sweep().is_ok() {}
        assert_ne!(story.status(), Status::Open, "seed {seed}: L3, pending");
    }
}
