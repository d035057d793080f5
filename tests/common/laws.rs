//! What must hold of every single step of an operation, whatever happened (the invariants that one
//! step can break). Written from `invariants.md`, not from the code: it recomputes what it can.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use std::collections::BTreeMap;

use samekey::domain::answer;
use samekey::domain::attempt::Attempt;
use samekey::domain::evidence::{self, Bearing, ObjectStatus, Source, Verdict};
use samekey::domain::operation::{Effect, Operation, OperationRow, Status};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::policy::{Terms, Words};
use samekey::domain::review_event::Act;
use samekey::domain::tool_call::ToolResult;
use samekey::domain::transition::{Action, Event, Next, Step};
use samekey::domain::{Instant, later};

/// Panics, with the law's name, where `step` breaks one.
pub fn check(before: &Operation, event: &Event, step: &Step, terms: &Terms, now: Instant) {
    let after = &step.op;
    identity_stays(&before.row, &after.row);
    attempts_only_grow(before, after, terms);
    sending_is_guarded(before, event, step, terms, now);
    evidence_only_grows(before, after);
    status_moves_by_the_rules(before, event, step);
    failing_by_a_person_waits(before, event, step, terms, now);
    failing_by_itself_is_certain(before, event, step, terms);
    bookkeeping_is_exact(before, after);
    the_desk_decides_nothing(before, event, after);
    answers_never_claim_more(&after.row);
    facts_agree(after);
}

/// I2, I3, I4: a key, its request, and what it is for never change.
fn identity_stays(before: &OperationRow, after: &OperationRow) {
    let fixed = |r: &OperationRow| {
        (
            (r.id.clone(), r.tool.clone(), r.identity.clone()),
            (r.order_id.clone(), r.money, r.payment.clone()),
            (r.key.clone(), r.request.clone(), r.request_hash.clone()),
            (r.attempts_max, r.created_at, r.key_created_at),
        )
    };
    assert!(fixed(before) == fixed(after), "I3: the row became another");
    for (was, is) in [
        (before.first_authorised_at, after.first_authorised_at),
        (before.key_expires_at, after.key_expires_at),
    ] {
        assert!(was.is_none() || was == is, "I10: the key's clock restarted");
    }
    assert!(before.held || !after.held, "a row became held later");
}

/// I6, U22: counted attempts never fall, outcomes are written once, the limits hold.
fn attempts_only_grow(before: &Operation, after: &Operation, terms: &Terms) {
    let count = usize::try_from(after.row.attempts).expect("a count");
    assert_eq!(count, after.attempts.len(), "I5: attempts are counted");
    assert!(
        after.row.attempts <= after.row.attempts_max,
        "I6: operation"
    );
    let mut per_call = BTreeMap::new();
    for attempt in &after.attempts {
        *per_call
            .entry((attempt.agent.clone(), attempt.call.clone()))
            .or_insert(0_u32) += 1;
    }
    assert!(
        per_call.values().all(|n| *n <= terms.policy.max_per_call),
        "I6: call"
    );
    assert!(before.attempts.len() <= after.attempts.len(), "I6: fell");
    for (was, is) in before.attempts.iter().zip(&after.attempts) {
        let same = (was.number, &was.agent, &was.call) == (is.number, &is.agent, &is.call);
        assert!(same && was.authorised_at == is.authorised_at, "U22");
        assert!(
            was.result.is_none() || was.result == is.result,
            "U22: twice"
        );
    }
}

/// I7, I10, I13, R41: what a new attempt needs.
fn sending_is_guarded(before: &Operation, event: &Event, step: &Step, terms: &Terms, now: Instant) {
    let grew = before.attempts.len() < step.op.attempts.len();
    assert_eq!(grew, matches!(step.next, Next::Send { .. }), "R49");
    if !grew {
        return;
    }
    let Event::Authorise(facts) = event else {
        panic!("I7: only an authorise counts an attempt")
    };
    let row = &before.row;
    assert!(facts.lease && facts.clock && !facts.contradicted, "I7");
    assert!(facts.circuit && !facts.paused && facts.token.is_ok(), "I7");
    assert_eq!(row.status, Status::Open, "R41: nothing is sent any more");
    assert!(
        !row.held && row.contradicted.is_none(),
        "I7: held or contradicted"
    );
    assert_ne!(row.effect, Effect::Identified, "an object of ours exists");
    assert!(row.provider_ref.is_none(), "an object of ours exists");
    assert!(!before.in_flight(), "I13: one at a time");
    let first = row.first_authorised_at.unwrap_or(now);
    assert!(now < terms.profile.key_expires_at(first), "I10");
    assert_eq!(step.op.row.last_authorised_at, Some(now));
}

fn evidence_only_grows(before: &Operation, after: &Operation) {
    assert!(
        after.evidence.starts_with(&before.evidence),
        "evidence is append-only"
    );
    assert!(after.evidence.len() <= before.evidence.len() + 8, "I33");
}

/// I16, I20: how a row leaves each status.
fn status_moves_by_the_rules(before: &Operation, event: &Event, step: &Step) {
    let (was, is) = (before.row.status, step.op.row.status);
    if was == is {
        return;
    }
    let decided = matches!(event, Event::Decided(_));
    match (was, is) {
        (Status::Open, _) => {}
        (Status::Unknown, Status::Succeeded) => {
            let source = match event {
                Event::Finished { .. } => Some(Source::Attempt),
                Event::Observed(o) => Some(o.source),
                _ => None,
            };
            let evident = step.op.row.verdict == Some(Verdict::Confirmed)
                && source.is_some_and(Source::may_close);
            assert!(decided || evident, "I16: unknown was left without evidence");
        }
        (Status::Unknown, Status::Failed) => assert!(decided, "I16: only a person fails it"),
        (_, Status::Open) | (Status::Succeeded | Status::Failed, Status::Unknown) => {
            panic!("I16/I20: {was:?} became {is:?}")
        }
        (Status::Succeeded | Status::Failed, _) => {
            assert!(decided && step.audit.action == Action::Corrected, "I20");
            assert!(before.row.contradicted.is_some(), "I20");
            assert_eq!(step.op.row.corrections, before.row.corrections + 1, "I18");
        }
        (Status::Unknown, Status::Unknown) => unreachable!("they differ"),
    }
}

/// I19: a person fails nothing early, nor against evidence of an effect.
fn failing_by_a_person_waits(
    before: &Operation,
    event: &Event,
    step: &Step,
    terms: &Terms,
    now: Instant,
) {
    let failed = before.row.status != Status::Failed && step.op.row.status == Status::Failed;
    let Event::Decided(decision) = event else {
        return;
    };
    if !failed {
        return;
    }
    assert!(
        !matches!(
            before.row.verdict,
            Some(Verdict::Confirmed | Verdict::Pending | Verdict::SecondEffect)
        ),
        "I19: against the evidence"
    );
    assert!(
        !before.in_flight() || before.row.status != Status::Open,
        "in flight"
    );
    if before.row.effect != Effect::NotStarted
        && let Some(last) = before.row.last_authorised_at
    {
        let wait = terms.profile.send_window + terms.profile.timeout + terms.profile.settle_time;
        assert!(now >= later(last, wait), "I19: too early");
    }
    if before.row.held {
        return;
    }
    assert!(
        !matches!(decision.act, Act::Stop | Act::Note | Act::Reject),
        "that does not fail a row"
    );
}

/// Without a person a row fails only if nothing can have happened, or our object is lost.
fn failing_by_itself_is_certain(before: &Operation, event: &Event, step: &Step, terms: &Terms) {
    let failed = before.row.status != Status::Failed && step.op.row.status == Status::Failed;
    if !failed || matches!(event, Event::Decided(_)) {
        return;
    }
    assert_eq!(before.row.status, Status::Open, "I16");
    if step.op.row.verdict == Some(Verdict::Refused) {
        return;
    }
    match event {
        Event::Finished {
            attempt, outcome, ..
        } => {
            let others = before.undetermined_besides(*attempt);
            let final_result = outcome.replayed && terms.profile.saved_results_are_final;
            assert!(!others || final_result, "R23: not definite");
            assert_ne!(outcome.should_retry, Some(true), "not definite");
            let refused = matches!(
                outcome.class,
                OutcomeClass::ValidationFailure | OutcomeClass::PermissionDenied
            );
            assert!(refused && !outcome.already_refunded, "no refusal");
        }
        Event::Observed(_) => assert!(before.needs_lookup(), "S34: nobody asked"),
        Event::NeverSent | Event::NoLongerFits { .. } => assert_eq!(before.row.attempts, 0),
        Event::Swept => assert!(before.row.held, "only an approval runs out as failed"),
        _ => panic!("{event:?} failed a row"),
    }
}

/// I23: one audit number a step; the version moves exactly with what decisions are bound to.
fn bookkeeping_is_exact(before: &Operation, after: &Operation) {
    assert_eq!(after.row.audit_seq, before.row.audit_seq + 1, "I23");
    let bound = |op: &Operation| {
        let row = &op.row;
        let flags = (row.held, row.contradicted, row.corrections);
        let status = (row.status, row.reason, row.verdict);
        let attempts: Vec<_> = op.attempts.iter().map(Attempt::class).collect();
        (flags, status, attempts, states(op))
    };
    let moved = bound(before) != bound(after);
    assert_eq!(
        after.row.version,
        before.row.version + i64::from(moved),
        "I18: the version moves with what is bound to it, and with nothing else"
    );
}

/// A claim or a snooze changes nothing but itself; what moves on is not put off, what is settled is
/// nobody's.
fn the_desk_decides_nothing(before: &Operation, event: &Event, after: &Operation) {
    let at_desk = matches!(event, Event::Decided(d)
        if matches!(d.act, Act::Claim | Act::Release | Act::Snooze { .. }));
    if at_desk {
        let mut same = after.clone();
        same.row.claim.clone_from(&before.row.claim);
        same.row.snoozed_until = before.row.snoozed_until;
        same.row.audit_seq = before.row.audit_seq;
        same.row.updated_at = before.row.updated_at;
        assert!(same == *before, "the desk changed the row");
    }
    let moved = after.row.version != before.row.version;
    assert!(
        !moved || after.row.snoozed_until.is_none(),
        "moved on, and put off"
    );
    if after.row.status.is_closed() && after.row.contradicted.is_none() {
        assert!(
            after.row.claim.is_none() && after.row.snoozed_until.is_none(),
            "settled"
        );
    }
}

fn states(op: &Operation) -> Vec<(String, ObjectStatus, Bearing)> {
    evidence::objects(&op.evidence)
        .into_iter()
        .map(|(id, (o, bearing))| (id.to_string(), o.status, bearing))
        .collect()
}

/// I24: what a model hears is never more than the row.
fn answers_never_claim_more(row: &OperationRow) {
    let told = answer::of(row, Words::REFUND);
    assert_eq!(told.operation(), Some(&row.id));
    let holds = match told {
        ToolResult::Done { .. } => row.status == Status::Succeeded && row.contradicted.is_none(),
        ToolResult::Failed { .. } => row.status == Status::Failed && row.contradicted.is_none(),
        ToolResult::Checking { .. } => row.status == Status::Unknown || row.contradicted.is_some(),
        ToolResult::Held { .. } => row.status == Status::Open && row.held,
        ToolResult::Unconfirmed { .. } => row.status == Status::Open && !row.held,
        ToolResult::Rejected { .. } => false,
    };
    assert!(holds, "I24: {told:?} of a row that is {:?}", row.status);
}

/// The row's own facts fit each other.
fn facts_agree(op: &Operation) {
    let row = &op.row;
    let ours = states(op).iter().filter(|s| s.2 == Bearing::Ours).count();
    assert_eq!(ours > 0, row.effect == Effect::Identified, "effect");
    assert!(
        ours == 0 || row.provider_ref.is_some(),
        "identified by name"
    );
    assert_eq!(ours > 1, row.verdict == Some(Verdict::SecondEffect), "I11");
    assert!(row.status != Status::Unknown || (row.reason.is_some() && row.unknown_at.is_some()));
    assert_eq!(row.status == Status::Failed, row.failure.is_some(), "class");
    assert_eq!(
        row.status.is_closed(),
        row.closed_at.is_some() && row.closed_by.is_some()
    );
    assert!(
        row.proposal.is_none() || !row.held,
        "held rows take no proposals"
    );
    if row.effect == Effect::NotStarted {
        assert!(op.attempts.iter().all(Attempt::without_effect), "effect");
    }
}
