//! Every kind of story, told through the ledger's own doors, and no violation.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::agent;
use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::guard::Role;
use samekey::domain::operation::Closing;
use samekey::domain::policy::{Caps, Terms};
use samekey::domain::review_event::{Act, Fetched, TypedRef};
use samekey::domain::tool_call::{RejectClass, ToolResult};
use samekey::domain::transition::{Event, Lookup, Next};
use samekey::ledger::verify::verify_at;
use samekey::ledger::{Drive, EventSource, EventWent, NewAgent, NewEvent, Opening, Stamp};
use serde_json::json;

use crate::common::*;
use crate::{Fixture, raw};

/// Above 500.00 a lead approves.
pub fn terms() -> Terms {
    let mut terms = crate::common::terms();
    let caps = Caps {
        approve_over: Some(50_000),
        ..Caps::default()
    };
    terms.policy.caps.insert(usd(), caps);
    terms
}

pub async fn stories(w: &World) {
    let stamp = Stamp {
        provider: stripe(),
        origin: "https://api.stripe.com".into(),
        account: Some("acct_1".into()),
        mode: "test".into(),
    };
    w.ledger.bind(&stamp).await.expect("bound");
    w.refunded("t1", "refunded", 3800).await;
    settled_by_providers(w).await;
    // Its good answer keeps the circuit closed.
    w.refunded("t2", "calm", 100).await;
    settled_by_people(w).await;
    contradicted(w).await;
    told_by_events(w).await;
    answers(w).await;
    left_open(w).await;
    agents(w).await;
}

/// One with a token, and one whose token was revoked.
async fn agents(w: &World) {
    for (name, lot) in [("gone", 1), ("desk", 2)] {
        let new = NewAgent {
            name: name.parse().expect("a name"),
            token: agent::issue([lot; 8], [lot; 32]).1,
            tools: Some([tool()].into()),
            by: "ann".parse().expect("a name"),
        };
        let by = new.by.clone();
        let name = new.name.clone();
        let serving = w.ledger.serving();
        assert!(serving.add_agent(new).await.expect("added"));
        if lot == 1 {
            assert!(serving.revoke_agent(&name, &by).await.expect("revoked"));
        }
    }
}

async fn settled_by_providers(w: &World) {
    // Lost twice, then the same key finds it done.
    let (call, id) = w.driven("lost_1", "lost", 1200).await;
    for _ in 0..2 {
        w.attempt(&id, &call, lost()).await;
        w.wait(seconds(1));
    }
    let outcome = succeeded(&w.row(&id).await);
    w.attempt(&id, &call, outcome).await;
    w.finish(&call).await;

    let (call, id) = w.driven("refused_1", "refused", 900).await;
    w.attempt(&id, &call, limited()).await;
    w.attempt(&id, &call, refused()).await;
    assert_eq!(w.finish(&call).await.status(), "failed");

    let (call, id) = w.driven("pending_1", "pending", 700).await;
    let outcome = pending(&w.row(&id).await);
    w.attempt(&id, &call, outcome).await;
    assert_eq!(w.finish(&call).await.status(), "unconfirmed");
    let row = w.row(&id).await;
    let object = object(&row, &refund_id(&row), ObjectStatus::Succeeded);
    let event = Lookup::One {
        object,
        taken: false,
    };
    w.wait(seconds(5));
    w.observe(&id, Source::Webhook, event).await;

    // A driver that died: interrupted, then another call carries on.
    let (_, id) = w.driven("dead_1", "dead", 500).await;
    let first = w.leased("dead_2", "dead", 500).await;
    let drive = w.ledger.drive(&id, &first, LEASE).await.expect("a drive");
    assert!(matches!(drive, Drive::Joined));
    let dead = w.hand().lease("dead_1").await;
    assert!(dead.is_none(), "its lease still holds");
    w.ledger
        .renew(&engine(9), LEASE, std::slice::from_ref(&first))
        .await
        .expect("renewed");
    w.wait(LEASE);
    let second = w.hand().lease("dead_2").await.expect("free again");
    w.drive(&id, &second).await;
    w.attempt(&id, &second, lost()).await;
    w.attempt(&id, &second, lost()).await;
    w.finish(&second).await;
    let third = w.hand().lease("dead_1").await.expect("free again");
    w.drive(&id, &third).await;
    let number = w.authorise(&id, &third).await.expect("authorised");
    w.wait(LEASE);
    let swept = w.apply(&id, Event::Interrupted).await.expect("interrupted");
    assert_eq!(swept.op.attempts.len(), number as usize);
    let again = w.hand().lease("dead_1").await.expect("free again");
    w.finish(&again).await;
}

async fn settled_by_people(w: &World) {
    let absent = w.unknown("absent_1", "absent", 2500).await;
    w.wait(SETTLE);
    w.nothing_there(&absent).await;
    let closed = w.decide(&absent, &ann(), close_as(Closing::Failed)).await;
    closed.expect("proven absent");

    // Two people and the provider's id, while the provider is silent.
    let typed = w.unknown("typed_1", "typed", 2600).await;
    let act = Act::Close {
        decision: Closing::Succeeded,
        typed: Some(TypedRef {
            id: "re_typed".parse().expect("an id"),
            fetched: Fetched::Unreachable,
        }),
    };
    let proposed = w.decide(&typed, &ann(), act).await.expect("proposed");
    assert_eq!(proposed.next, Next::Proposed);
    let approved = w.decide(&typed, &lea(), Act::Approve { caps: None }).await;
    approved.expect("approved");

    // Typed, accepted unseen, and wrong: two leads take it back, and the id with it.
    let wrong = w.unknown("wrong_1", "wrong", 2700).await;
    let act = Act::Close {
        decision: Closing::Succeeded,
        typed: Some(TypedRef {
            id: "re_wrong".parse().expect("an id"),
            fetched: Fetched::Unreachable,
        }),
    };
    w.decide(&wrong, &ann(), act).await.expect("proposed");
    let approved = w.decide(&wrong, &lea(), Act::Approve { caps: None }).await;
    approved.expect("approved");
    w.wait(SETTLE);
    let fetched = Event::RefFetched {
        object: None,
        taken: false,
    };
    w.apply(&wrong, fetched).await.expect("fetched");
    w.nothing_there(&wrong).await;
    let act = Act::Correct {
        decision: Some(Closing::Failed),
    };
    w.decide(&wrong, &lea(), act).await.expect("proposed");
    let max = person("max", Role::Lead);
    let corrected = w.decide(&wrong, &max, Act::Approve { caps: None }).await;
    assert_eq!(corrected.expect("corrected").op.row.provider_ref, None);

    let (call, stopped) = w.driven("stopped_1", "stopped", 300).await;
    w.attempt(&stopped, &call, lost()).await;
    w.decide(&stopped, &ann(), Act::Stop)
        .await
        .expect("stopped");
    w.decide(&stopped, &ann(), Act::Note).await.expect("noted");
    w.finish(&call).await;

    let held = w.leased("held_1", "held", 60_000).await;
    let id = w.opened(&held).await;
    assert_eq!(w.finish(&held).await.status(), "held");
    let due = w.decide(&id, &lea(), Act::Approve { caps: None }).await;
    assert_eq!(due.expect("approved").next, Next::Due);
    let mut calls = w
        .ledger
        .lease_calls(&w.engine, LEASE, 10)
        .await
        .expect("leased");
    let call = calls.pop().expect("the approval's own call");
    w.drive(&id, &call).await;
    let outcome = succeeded(&w.row(&id).await);
    w.attempt(&id, &call, outcome).await;
    w.finish(&call).await;

    let held = w.leased("held_2", "not-approved", 60_000).await;
    let id = w.opened(&held).await;
    w.finish(&held).await;
    w.decide(&id, &lea(), Act::Reject).await.expect("rejected");
}

/// The provider's events: one that was taken in, and one for each other end.
async fn told_by_events(w: &World) {
    let id = w.unknown("hook_1", "hook", 1300).await;
    let row = w.row(&id).await;
    let object = object(&row, &refund_id(&row), ObjectStatus::Succeeded);
    let shown = object.id.to_string();
    let one = Lookup::One {
        object,
        taken: false,
    };
    w.observe(&id, Source::Webhook, one).await;
    let (wait, why) = (seconds(60), "the provider does not answer".into());
    let (operation, note) = (id, None);
    let ends = [
        EventWent::Processed { operation, note },
        EventWent::Ignored { why: "not_ours" },
        EventWent::Quarantined {
            why: "wrong_mode",
            operation: None,
        },
        EventWent::Quarantined {
            why: "wrong_account",
            operation: None,
        },
        EventWent::Later { wait, why },
    ];
    let recovery = w.ledger.recovery();
    for (n, went) in ends.into_iter().enumerate() {
        let event = NewEvent {
            id: format!("evt_{n}").parse().expect("an id"),
            provider: stripe(),
            kind: "refund.created",
            object: Some(shown.as_str().into()),
            digest: "0".repeat(64),
            source: EventSource::Webhook,
            payload: b"{}".to_vec(),
            created_at: Some(w.clock.now()),
            names: None,
        };
        assert!(recovery.accept_event(event.clone()).await.expect("stored"));
        assert!(!recovery.accept_event(event).await.expect("known"));
        let taken = recovery
            .take_event(None, seconds(30))
            .await
            .expect("answered");
        let taken = taken.expect("due");
        recovery.event_went(&taken, went).await.expect("written");
    }
    let by = ann().name;
    let seen = ("evt_3".parse().expect("an id"), "nothing of ours".into());
    let acknowledged = recovery.acknowledge_event(&seen.0, None, &by, &seen.1);
    acknowledged.await.expect("answered").expect("once");
    let read = recovery.events_read(&stripe(), Ok(w.clock.now())).await;
    read.expect("written");
}

async fn contradicted(w: &World) {
    // The bank returned the money; a lead corrects.
    let returned = w.refunded("returned_1", "returned", 4100).await;
    w.wait(seconds(3600));
    let row = w.row(&returned).await;
    let object = object(&row, &refund_id(&row), ObjectStatus::Failed);
    let event = Lookup::One {
        object,
        taken: false,
    };
    w.observe(&returned, Source::Webhook, event).await;
    let asked = w.leased("returned_2", "returned", 4100).await;
    let Opening::Answer(answer) = w.hand().open(&asked).await else {
        panic!("a contradicted order opens nothing");
    };
    w.ledger
        .answer_call(&asked, *answer)
        .await
        .expect("answered");
    let act = Act::Correct {
        decision: Some(Closing::Failed),
    };
    w.decide(&returned, &lea(), act).await.expect("corrected");

    // Two objects of ours: acknowledged, the status stays.
    let twice = w.refunded("twice_1", "twice", 4200).await;
    let row = w.row(&twice).await;
    let second = crate::common::object(&row, "re_second", ObjectStatus::Succeeded);
    let event = Lookup::One {
        object: second,
        taken: false,
    };
    w.observe(&twice, Source::Reconciler, event).await;
    let act = Act::Correct { decision: None };
    w.decide(&twice, &lea(), act).await.expect("acknowledged");
}

async fn answers(w: &World) {
    // Joined: one attempt, two answers.
    let (driver, id) = w.driven("joined_1", "joined", 800).await;
    let joiner = w.leased("joined_2", "joined", 800).await;
    let drive = w.ledger.drive(&id, &joiner, LEASE).await.expect("a drive");
    assert!(matches!(drive, Drive::Joined));
    let outcome = succeeded(&w.row(&id).await);
    w.attempt(&id, &driver, outcome).await;
    w.finish(&driver).await;
    let other = w.ledger.call(&agent("agent"), &call_id("joined_2")).await;
    let other = other.expect("read").expect("known");
    assert_eq!(other.result.expect("answered").status(), "refunded");
    w.ledger
        .delivered(&agent("agent"), &call_id("joined_2"))
        .await
        .expect("delivered");

    let repeated = w.leased("joined_3", "joined", 800).await;
    let Opening::Answer(answer) = w.hand().open(&repeated).await else {
        panic!("an equal refund is answered, not opened");
    };
    assert!(matches!(*answer, ToolResult::Done { repeat: true, .. }));
    w.ledger
        .answer_call(&repeated, *answer)
        .await
        .expect("answered");

    // A further equal one, by name.
    let arguments =
        json!({ "amount_cents": 800, "currency": "usd", "order_id": "joined", "after": id });
    let named = call_with("joined_4", &arguments);
    w.ledger.accept_call(named).await.expect("accepted");
    let named = w.hand().lease("joined_4").await.expect("leased");
    let further = w.opened(&named).await;
    w.drive(&further, &named).await;
    let row = w.row(&further).await;
    let object = object(&row, "re_further", ObjectStatus::Succeeded);
    let outcome = with_object(samekey::domain::outcome::OutcomeClass::Succeeded, object);
    w.attempt(&further, &named, outcome).await;
    w.finish(&named).await;

    let never = w.leased("never_1", "never", 100).await;
    let id = w.opened(&never).await;
    w.drive(&id, &never).await;
    assert_eq!(w.finish(&never).await.status(), "failed");

    let rejected = w.leased("rejected_1", "rejected", 100).await;
    let result = ToolResult::rejected(RejectClass::ValidationFailure, "no such order");
    w.ledger
        .answer_call(&rejected, result)
        .await
        .expect("answered");
}

/// Nothing says that a ledger is audited at rest: in flight, waiting for a lead, not begun.
async fn left_open(w: &World) {
    let (call, id) = w.driven("flying_1", "flying", 150).await;
    w.authorise(&id, &call).await.expect("authorised");
    let held = w.leased("waiting_1", "waiting", 70_000).await;
    w.opened(&held).await;
    w.finish(&held).await;
    w.accept("queued_1", "queued", 100).await;
}

#[tokio::test]
async fn an_honest_ledger_has_no_violation() {
    let fixture = Fixture::new().await;
    let report = fixture.verify().await;
    assert_eq!(report.violations, []);
    assert!(report.operations >= 14, "{}", report.operations);
}

/// I27: what was written by a clock that ran ahead, and settled after a lead accepted the right one, breaks
/// no law: then the order of the audit tells before from after.
#[tokio::test]
async fn an_accepted_clock_leaves_no_violation_behind() {
    let w = World::new(Place::new(Store::Sqlite), terms()).await;
    w.wait(seconds(25 * 3600));
    let (call, id) = w.driven("ahead_1", "ahead", 1200).await;
    w.attempt(&id, &call, lost()).await;
    w.accept("waiting_1", "waiting", 100).await;
    w.clock.step(chrono::TimeDelta::hours(-25));
    assert!(w.ledger.clock_alarm().await.expect("read"));
    w.ledger.accept_clock(&lea().name).await.expect("accepted");
    w.wait(seconds(60));
    w.finish(&call).await;
    let waiting = w.hand().lease("waiting_1").await.expect("free");
    let no = ToolResult::rejected(RejectClass::Unavailable, "not now");
    w.ledger.answer_call(&waiting, no).await.expect("answered");
    w.decide(&id, &ann(), Act::Stop).await.expect("stopped");
    let row = w.row(&id).await;
    let object = object(&row, &refund_id(&row), ObjectStatus::Succeeded);
    let seen = Lookup::One {
        object,
        taken: false,
    };
    w.observe(&id, Source::Webhook, seen).await;
    let report = verify_at(&w.place.path(), w.clock.now()).await;
    assert_eq!(report.expect("a report").violations, []);
}

#[tokio::test]
async fn a_ledger_in_use_is_audited_without_being_held_up() {
    let fixture = Fixture::new().await;
    let clock = samekey::clock::Clock::manual(fixture.now);
    let ledger = fixture.place.open(all(terms()), &clock).await;
    let auditing = tokio::spawn({
        let (path, now) = (fixture.path.clone(), fixture.now);
        async move { verify_at(&path, now).await.expect("a report") }
    });
    for n in 0..50 {
        let call = new_call(&format!("busy_{n}"), "busy", 100);
        ledger.accept_call(call).await.expect("accepted");
    }
    assert_eq!(auditing.await.expect("audited").violations, []);
}

#[tokio::test]
async fn what_is_no_ledger_is_an_error_not_a_finding() {
    let dir = tempfile::tempdir().expect("a directory");
    let missing = verify_at(&dir.path().join("none.db"), at(0)).await;
    assert!(
        missing
            .expect_err("missing")
            .to_string()
            .contains("no ledger at")
    );
    let text = dir.path().join("text");
    std::fs::write(&text, "plain text, long enough").expect("written");
    let foreign = verify_at(&text, at(0)).await;
    assert!(
        foreign
            .expect_err("text")
            .to_string()
            .contains("is not a ledger")
    );
    let other = dir.path().join("other.db");
    std::fs::write(&other, "").expect("written");
    let mut conn = raw(&other).await;
    crate::run(&mut conn, "CREATE TABLE notes (id INTEGER)")
        .await
        .expect("made");
    let foreign = verify_at(&other, at(0)).await;
    let why = foreign.expect_err("another database").to_string();
    assert!(why.contains("not a ledger"), "{why}");
}
