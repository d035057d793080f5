//! What each guard of the gate is for: with any one of them left out, one of these tests fails.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::time::Duration;

use common::desk::{Desk, PEOPLE, rule, still_terms};
use common::provider::{FakeProvider, refund_of};
use common::world::{World, refund, tool};
use samekey::clock::Clock;
use samekey::domain::evidence::ProviderObject;
use samekey::domain::guard::Role;
use samekey::domain::ids::{OperationId, ToolName};
use samekey::domain::operation::Closing;
use samekey::domain::policy::{Caps, Rate, Terms};
use samekey::domain::review_event::ReviewRefusal;
use samekey::domain::transition::Lookup;
use samekey::ledger::{LedgerError, LookupBusy};
use samekey::review::{Ask, Decided, GateError, MOST_LOOKUPS};

const AS_REFUNDED: Ask = Ask::Close(Closing::Succeeded);

fn one_read_in(per: Duration) -> Terms {
    let mut terms = still_terms();
    terms.profile.read_rate = Rate { count: 1, per };
    terms
}

/// Closing the first row, or another, with a typed id.
async fn close(
    desk: &Desk,
    row: usize,
    ask: Ask,
    by: &str,
    typed: &str,
) -> Result<Decided, GateError> {
    let id = desk.rows.get(row).expect("a row");
    let (by, seen) = (desk.is(by), desk.seen(id).await);
    let typed = Some(typed.parse().expect("an id"));
    desk.gate.decide(id, ask, &by, "note", seen, typed).await
}

/// M55: where nobody is configured the OS user decides alone, as a lead; where somebody is, nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn only_configured_reviewers_or_else_the_os_user_decide() {
    let desk = Desk::of(still_terms(), 1).await;
    let nobody = desk.world.gate(&[]);
    let (os_user, ann) = (
        "os-user".parse().expect("a name"),
        "ann".parse().expect("a name"),
    );
    for name in [None, Some(&os_user)] {
        let person = nobody.person(name).expect("alone");
        assert_eq!(person.name, os_user);
        assert_eq!((person.role, person.alone), (Role::Lead, true));
    }
    let other = nobody.person(Some(&ann)).expect_err("not configured");
    assert!(matches!(other, GateError::UnknownReviewer(_)), "{other}");
    let unnamed = desk.gate.person(None).expect_err("not configured");
    assert!(
        matches!(unnamed, GateError::UnknownReviewer(_)),
        "{unnamed}"
    );
    assert!(!desk.is("ann").alone);
}

/// I22: nothing is read at the provider for what would be refused anyway, nor where no id is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_typed_id_is_fetched_only_for_one_who_may_close_so() {
    let desk = Desk::of(one_read_in(Duration::from_secs(3600)), 1).await;
    let viewer = close(&desk, 0, AS_REFUNDED, "vic", "re_1").await;
    let viewer = viewer.expect_err("a viewer");
    assert!(matches!(viewer, GateError::NotPermitted { .. }), "{viewer}");
    let looked = desk.gate.lookup(desk.first(), &desk.is("vic")).await;
    let looked = looked.expect_err("a viewer");
    assert!(matches!(looked, GateError::NotPermitted { .. }), "{looked}");
    let failed = Ask::Close(Closing::Failed);
    let unseen = close(&desk, 0, failed, "ann", "re_1").await;
    let unseen = unseen.expect_err("nobody looked");
    assert!(matches!(rule(&unseen), ReviewRefusal::Refused { .. }));
    // None of it was a read: the only one of this hour is still there.
    desk.nothing_there();
    let ann = desk.is("ann");
    desk.gate.lookup(desk.first(), &ann).await.expect("a read");
    close(&desk, 0, failed, "ann", "re_1")
        .await
        .expect("absent");
    let closed = close(&desk, 0, AS_REFUNDED, "ann", "re_1").await;
    let closed = closed.expect_err("closed");
    assert!(matches!(rule(&closed), ReviewRefusal::ClosedOther { .. }));
    desk.holds().await;
}

/// I17: an id that is attached to another operation proves nothing for this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_typed_id_of_another_operation_is_refused() {
    let desk = Desk::of(still_terms(), 2).await;
    let (ledger, ann) = (&desk.world.ledger, desk.is("ann"));
    let rows = ledger.rows(&desk.rows).await.expect("read");
    let [first, second] = &rows[..] else {
        panic!("two rows")
    };
    let object = refund_of(first);
    desk.provider.lookup_gives(Lookup::Listed {
        began_at: desk.world.clock.now(),
        complete: true,
        objects: vec![(object.clone(), false)],
    });
    desk.gate.lookup(&first.id, &ann).await.expect("ours");
    // In every part but its owner it is the second row's.
    let typed = object.id.to_string();
    desk.provider.fetch_gives(ProviderObject {
        operation: None,
        payment: second.payment.clone(),
        ..object
    });
    let taken = close(&desk, 1, AS_REFUNDED, "ann", &typed).await;
    let taken = taken.expect_err("taken");
    assert!(matches!(rule(&taken), ReviewRefusal::RefWrong { .. }));
    assert!(taken.to_string().contains("another operation"), "{taken}");
    desk.holds().await;
}

/// I17: the answers of another provider than the one this ledger was sent to are not asked for.
#[tokio::test(flavor = "multi_thread")]
async fn another_provider_than_the_ledgers_is_not_asked() {
    let desk = Desk::of(still_terms(), 1).await;
    let ann = desk.is("ann");
    for (origin, mode) in [
        ("https://elsewhere.example", "simulator"),
        ("memory:", "live"),
    ] {
        desk.provider.moves(origin, mode);
        let bound = |error: &GateError| {
            let GateError::Ledger(LedgerError::Bound { configured, .. }) = error else {
                panic!("not bound: {error}")
            };
            assert!(configured.contains(origin) && configured.contains(mode));
        };
        let looked = desk.gate.lookup(desk.first(), &ann).await;
        bound(&looked.expect_err("another provider"));
        let typed = close(&desk, 0, AS_REFUNDED, "ann", "re_1").await;
        bound(&typed.expect_err("another provider"));
    }
    assert_eq!(desk.provider.looked(), 0, "nothing was sent");
    desk.provider.moves("memory:", "simulator");
    desk.gate.lookup(desk.first(), &ann).await.expect("its own");
    desk.holds().await;
}

/// I22: a second's wait for the read budget is waited out, not told.
#[tokio::test(flavor = "multi_thread")]
async fn a_short_wait_for_the_read_budget_is_waited_out() {
    let second = Duration::from_secs(1);
    let desk = Desk::of(one_read_in(second), 2).await;
    let ann = desk.is("ann");
    desk.gate.lookup(&desk.rows[0], &ann).await.expect("first");
    let waits = tokio::spawn({
        let (gate, id) = (desk.gate.clone(), desk.rows[1].clone());
        async move { gate.lookup(&id, &ann).await }
    });
    let clock = &desk.world.clock;
    while !waits.is_finished() && clock.next_wake().is_none_or(|wake| wake > second) {
        tokio::task::yield_now().await;
    }
    clock.advance(second);
    waits.await.expect("a task").expect("a second later");
    assert_eq!(desk.provider.looked(), 2);
    desk.holds().await;
}

/// A lookup that the budget refuses leaves nobody waiting for its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_without_budget_does_not_go_on_running() {
    let desk = Desk::of(one_read_in(Duration::from_secs(3600)), 2).await;
    let ann = desk.is("ann");
    desk.gate.lookup(&desk.rows[0], &ann).await.expect("first");
    let spent = desk.gate.lookup(&desk.rows[1], &ann).await;
    assert!(matches!(spent, Err(GateError::ReadBudget(_))));
    let busy = desk.world.ledger.lookup_busy(&desk.rows[1]).await;
    let busy = busy.expect("read");
    assert!(
        !matches!(busy, Some(LookupBusy::Running { .. })),
        "{busy:?}"
    );
    desk.holds().await;
}

/// U18: none is no wish, exactly as many as are allowed are, and a row that is gone is said to be.
#[tokio::test(flavor = "multi_thread")]
async fn several_lookups_are_at_least_one_and_each_of_a_row_that_exists() {
    let desk = Desk::of(still_terms(), 1).await;
    let (ann, vic) = (desk.is("ann"), desk.is("vic"));
    let none = desk.gate.lookup_many(&[], &ann, |_, _, _| {}).await;
    assert!(none.expect_err("none").to_string().contains("no row"));
    let viewer = desk.gate.ask_lookups(&desk.rows, &vic).await;
    assert!(matches!(viewer, Err(GateError::NotPermitted { .. })));
    desk.gate
        .ask_lookups(&desk.rows, &ann)
        .await
        .expect("a row");
    let mut full = desk.rows.clone();
    full.extend((1..MOST_LOOKUPS).map(|n| format!("op_{n}").parse().expect("an id")));
    assert_eq!(full.len(), MOST_LOOKUPS);
    let gone = desk.gate.ask_lookups(&full, &ann).await;
    let first: OperationId = "op_1".parse().expect("an id");
    assert!(
        matches!(&gone, Err(GateError::NoSuchOperation(id)) if *id == first),
        "{gone:?}"
    );
}

/// Tools and the clock are a lead's, and a tool that is not configured here is nobody's.
#[tokio::test(flavor = "multi_thread")]
async fn tools_and_the_clock_are_a_leads() {
    let desk = Desk::of(still_terms(), 1).await;
    let (ann, ben, gate, tool) = (desk.is("ann"), desk.is("ben"), &desk.gate, tool());
    let unknown: ToolName = "send_money".parse().expect("a tool");
    for refused in [
        gate.pause(&tool, &ann, "odd").await,
        gate.resume(&tool, &ann).await,
        gate.accept_clock(&ann).await,
        gate.switch(&tool, None, &ann, "odd").await.map(drop),
    ] {
        let refused = refused.expect_err("a lead's");
        assert!(
            matches!(refused, GateError::NotPermitted { .. }),
            "{refused}"
        );
    }
    for refused in [
        gate.pause(&unknown, &ben, "odd").await,
        gate.resume(&unknown, &ben).await,
        gate.ask_tool(&unknown, None, &ben).await.map(drop),
    ] {
        let refused = refused.expect_err("not configured");
        assert!(matches!(refused, GateError::NoTool(_)), "{refused}");
    }
    let known: Vec<_> = gate.all_terms().keys().collect();
    assert_eq!(known, [&tool]);
    let ledger = &desk.world.ledger;
    desk.world.clock.step(chrono::TimeDelta::hours(-3));
    assert!(ledger.clock_alarm().await.expect("read"), "I27");
    gate.accept_clock(&ben).await.expect("a lead");
    assert!(!ledger.clock_alarm().await.expect("read"), "accepted");
}

/// What will not be done is said before: only a held row's approval sends anything.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_approval_of_a_held_row_sends() {
    let mut terms = still_terms();
    let caps = Caps {
        approve_over: Some(1),
        four_eyes_over: Some(1),
        ..Caps::default()
    };
    terms.policy.caps.insert("usd".parse().expect("usd"), caps);
    let clock = Clock::manual(Clock::system().now());
    let world = World::with(FakeProvider::new([]), terms.clone(), clock).await;
    assert_eq!(world.ask("c1", &refund("1", 3800)).await.status(), "held");
    let gate = world.gate(&PEOPLE);
    let ben = gate.person(Some(&"ben".parse().expect("a name")));
    let id = world.only().await.op.row.id;
    let asked = gate.ask(&id, Ask::Approve, &ben.expect("a lead")).await;
    assert!(
        asked
            .expect("held")
            .will_not
            .contains("an engine then sends it")
    );

    let mut closing = still_terms();
    closing.policy.caps = terms.policy.caps;
    if let Some(caps) = closing.policy.caps.values_mut().next() {
        caps.approve_over = None;
    }
    let desk = Desk::of(closing, 1).await;
    desk.nothing_there();
    let (ann, cleo) = (desk.is("ann"), desk.is("cleo"));
    desk.gate.lookup(desk.first(), &ann).await.expect("looked");
    desk.propose().await;
    let asked = desk.gate.ask(desk.first(), Ask::Approve, &cleo).await;
    assert_eq!(
        asked.expect("a proposal").will_not,
        "does not call the provider"
    );
}

/// A claim says until when it counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_says_its_end() {
    let desk = Desk::of(still_terms(), 1).await;
    let claimed = desk.gate.claim(desk.first(), &desk.is("ann")).await;
    let claimed = claimed.expect("claimed");
    let until = claimed.op.row.claim.expect("a claim").until;
    let says = format!("claimed until {}", until.format("%H:%M:%SZ"));
    assert!(claimed.says.ends_with(&says), "{}", claimed.says);
}

/// A person is led to the provider's own page of an object, where that provider is configured here.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_has_its_providers_page() {
    let desk = Desk::of(still_terms(), 1).await;
    let url = |provider: &str| {
        let provider = provider.parse().expect("a name");
        desk.gate.url(&provider, &"re_1".parse().expect("an id"))
    };
    let page = "https://provider.example/refunds/re_1";
    assert_eq!(url("stripe").as_deref(), Some(page));
    assert_eq!(url("elsewhere"), None);
}
