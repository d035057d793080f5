//! The gate over a real ledger file: it asks before the leap what deciding would refuse, guards
//! lookups across handles, and keeps the desk.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::desk::{Desk, PEOPLE, four_eyes, rule, still_terms};
use common::provider::refund_of;
use common::world::tool;
use samekey::domain::ids::OperationId;
use samekey::domain::later;
use samekey::domain::operation::{Closing, Status};
use samekey::domain::policy::Rate;
use samekey::domain::review_event::ReviewRefusal;
use samekey::domain::transition::Lookup;
use samekey::ledger::LookupBusy;
use samekey::review::{Ask, Gate, GateError, Level, MOST_LOOKUPS, Subject};

/// Nobody opens a dialog in vain: a waiting proposal, one's own, an expired one, nothing to approve.
#[tokio::test(flavor = "multi_thread")]
async fn asking_refuses_what_deciding_refuses() {
    let desk = Desk::of(four_eyes(), 1).await;
    let nothing = desk.refuses(Ask::Approve, "ben").await;
    assert_eq!(*rule(&nothing), ReviewRefusal::NothingToApprove);
    let nothing = desk.refuses(Ask::Reject, "ben").await;
    assert_eq!(*rule(&nothing), ReviewRefusal::NothingToApprove);
    let unseen = desk.refuses(Ask::Close(Closing::Failed), "ann").await;
    assert!(
        unseen.to_string().contains("(L, or `ops lookup`)"),
        "{unseen}"
    );
    let settled = desk.refuses(Ask::Correct(None), "ben").await;
    assert!(settled.to_string().contains("contradicts"), "{settled}");
    desk.refuses(Ask::Stop, "ann").await;
    desk.refuses(Ask::Close(Closing::Failed), "vic").await;

    desk.nothing_there();
    let ann = desk.is("ann");
    desk.gate.lookup(desk.first(), &ann).await.expect("looked");
    desk.propose().await;
    let waits = desk.refuses(Ask::Close(Closing::Failed), "ben").await;
    assert!(matches!(rule(&waits), ReviewRefusal::ProposalWaits(by) if by.as_str() == "ann"));
    assert!(
        waits.to_string().contains("ops approve"),
        "the next step: {waits}"
    );
    desk.refuses(Ask::Approve, "ann").await;
    let ben = desk.is("ben");
    let asked = desk.gate.ask(desk.first(), Ask::Approve, &ben).await;
    let asked = asked.expect("another lead");
    assert_eq!(asked.level, Level::TokenAndNote);
    let will = asked.will.concat();
    assert!(
        will.contains("failed, proposed by ann"),
        "what is approved: {will}"
    );

    desk.world.clock.advance(Duration::from_secs(24 * 3600));
    let late = desk.refuses(Ask::Approve, "ben").await;
    assert_eq!(*rule(&late), ReviewRefusal::Expired);
    desk.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_approves_what_they_proposed_themselves() {
    let desk = Desk::of(four_eyes(), 1).await;
    desk.nothing_there();
    let (id, ben) = (desk.first(), desk.is("ben"));
    desk.gate.lookup(id, &ben).await.expect("looked");
    let seen = desk.seen(id).await;
    let failed = Ask::Close(Closing::Failed);
    let done = desk
        .gate
        .decide(id, failed, &ben, "absent", seen, None)
        .await;
    assert!(done.expect("decided").proposed);
    let own = desk.refuses(Ask::Approve, "ben").await;
    assert!(matches!(rule(&own), ReviewRefusal::SamePerson(_)));
    let cleo = desk.is("cleo");
    let seen = desk.seen(id).await;
    let closed = desk
        .gate
        .decide(id, Ask::Approve, &cleo, "yes", seen, None)
        .await;
    let closed = closed.expect("another lead");
    assert_eq!(closed.op.row.status, Status::Failed);
    assert!(closed.says.contains("proposed by ben"), "{}", closed.says);
    desk.holds().await;
}

/// I18: rejected and proposed anew on the same version, it is another proposal.
#[tokio::test(flavor = "multi_thread")]
async fn another_proposal_than_the_one_read_is_not_approved() {
    let desk = Desk::of(four_eyes(), 1).await;
    desk.nothing_there();
    let (id, ann, ben, cleo) = (
        desk.first().clone(),
        desk.is("ann"),
        desk.is("ben"),
        desk.is("cleo"),
    );
    desk.gate.lookup(&id, &ann).await.expect("looked");
    desk.propose().await;
    let read = desk.seen(&id).await;
    let rejected = desk
        .gate
        .decide(&id, Ask::Reject, &cleo, "no", read.clone(), None);
    rejected.await.expect("rejected");
    desk.world.clock.advance(Duration::from_secs(1));
    desk.propose().await;
    let now = desk.seen(&id).await;
    assert_eq!(
        read.as_ref().map(|l| l.version),
        now.as_ref().map(|l| l.version)
    );
    for ask in [Ask::Approve, Ask::Reject] {
        let other = desk.gate.decide(&id, ask, &ben, "yes", read.clone(), None);
        let other = other.await.expect_err("not what ben read");
        assert!(
            matches!(rule(&other), ReviewRefusal::WaitsOther(_)),
            "{other}"
        );
    }
    let approved = desk.gate.decide(&id, Ask::Approve, &ben, "yes", now, None);
    assert_eq!(approved.await.expect("read").op.row.status, Status::Failed);
    desk.holds().await;
}

/// One lookup at a time per operation, over all handles; then a cooldown that says its time; a question
/// about it is refused just so.
#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_is_one_at_a_time_across_processes() {
    let desk = Desk::of(still_terms(), 2).await;
    let (ann, ben) = (desk.is("ann"), desk.is("ben"));
    let (first, second) = (desk.rows[0].clone(), desk.rows[1].clone());
    // As another process has it: its own handle on the file.
    let people = PEOPLE.iter().map(|(n, r)| (n.parse().expect("a name"), *r));
    let other = Gate::new(
        desk.world.second_handle().await,
        Arc::clone(&desk.world.providers),
        Arc::clone(&desk.world.terms),
        Arc::new(people.collect()),
        "os-user".parse().expect("a name"),
        desk.world.clock.clone(),
    );
    desk.provider.hold_lookups(true);
    let running = tokio::spawn({
        let (gate, id, ann) = (desk.gate.clone(), first.clone(), ann.clone());
        async move { gate.lookup(&id, &ann).await }
    });
    desk.provider.arrived.notified().await;
    let busy = other.lookup(&first, &ben).await.expect_err("one at a time");
    assert!(
        matches!(&busy, GateError::LookupBusy(LookupBusy::Running { by }) if by == "ann"),
        "{busy}"
    );
    let asked = other.ask(&first, Ask::Lookup, &ben).await;
    assert_eq!(asked.expect_err("no dialog").to_string(), busy.to_string());
    desk.provider.hold_lookups(false);
    other
        .lookup(&second, &ben)
        .await
        .expect("another operation");
    desk.provider.let_go();
    running.await.expect("a task").expect("looked up");
    assert_eq!(desk.provider.looked(), 2, "nothing was asked in vain");

    let soon = other.lookup(&first, &ben).await.expect_err("a cooldown");
    let at = later(desk.world.clock.now(), Duration::from_secs(30));
    let told = soon.to_string();
    assert!(told.contains(&at.format("%H:%M:%SZ").to_string()), "{told}");
    desk.world.clock.advance(Duration::from_secs(30));
    let asked = other.ask(&first, Ask::Lookup, &ben).await.expect("again");
    assert_eq!(asked.will, ["list"], "the request, before it is sent");
    other.lookup(&first, &ben).await.expect("again");
    assert_eq!(desk.provider.looked(), 3);
    desk.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lookups_spend_the_read_budget_of_the_provider() {
    let mut terms = still_terms();
    terms.profile.read_rate = Rate {
        count: 1,
        per: Duration::from_secs(3600),
    };
    let desk = Desk::of(terms, 2).await;
    let ann = desk.is("ann");
    desk.gate
        .lookup(&desk.rows[0], &ann)
        .await
        .expect("the first");
    let spent = desk
        .gate
        .lookup(&desk.rows[1], &ann)
        .await
        .expect_err("spent");
    assert!(matches!(spent, GateError::ReadBudget(_)), "{spent}");
    assert_eq!(desk.provider.looked(), 1, "nothing was sent for it");
    let typed = Some("re_1".parse().expect("an id"));
    let seen = desk.seen(desk.first()).await;
    let close = Ask::Close(Closing::Succeeded);
    let close = desk
        .gate
        .decide(desk.first(), close, &ann, "n", seen, typed);
    let spent = close.await.expect_err("a typed id is a read, too");
    assert!(matches!(spent, GateError::ReadBudget(_)), "{spent}");
    desk.holds().await;
}

/// Bulk lookups: up to the cap, each row once, a refused one stops nobody, and nothing is closed.
#[tokio::test(flavor = "multi_thread")]
async fn several_rows_are_looked_up_one_after_another_and_never_closed_u18() {
    let desk = Desk::of(still_terms(), 4).await;
    let ann = desk.is("ann");
    let row = desk
        .world
        .ledger
        .rows(&desk.rows[..1])
        .await
        .expect("read")
        .remove(0);
    desk.provider.lookup_gives(Lookup::Listed {
        began_at: desk.world.clock.now(),
        complete: true,
        objects: vec![(refund_of(&row), false)],
    });
    desk.gate
        .lookup(&desk.rows[2], &ann)
        .await
        .expect("now it is cooling down");
    let asked = desk
        .gate
        .ask_lookups(&desk.rows, &ann)
        .await
        .expect("a question");
    assert!(matches!(&asked.subject, Subject::Rows(rows) if rows.len() == 4));
    assert!(asked.will.concat().contains("4 rows") && asked.will.concat().contains("list"));
    assert_eq!(asked.level, Level::Plain);

    let mut told = Vec::new();
    let mut wanted = desk.rows.clone();
    wanted.extend_from_slice(&desk.rows);
    let each = |n: usize, id: &OperationId, r: &Result<_, GateError>| {
        told.push((n, id.clone(), r.is_ok()));
    };
    let answers = desk
        .gate
        .lookup_many(&wanted, &ann, each)
        .await
        .expect("few");
    let ok: Vec<_> = answers.iter().map(|(_, a)| a.is_ok()).collect();
    assert_eq!(ok, [true, true, false, true]);
    assert_eq!(told.len(), 4, "each row once: {told:?}");
    let rows = desk.world.ledger.rows(&desk.rows).await.expect("read");
    assert!(
        rows.iter().all(|r| r.status == Status::Unknown),
        "U18: closes nothing"
    );

    let many: Vec<_> = (0..=MOST_LOOKUPS)
        .map(|n| format!("op_{n}").parse().expect("an id"))
        .collect();
    let looked = desk.provider.looked();
    for refused in [
        desk.gate.ask_lookups(&many, &ann).await.err(),
        desk.gate.lookup_many(&many, &ann, |_, _, _| {}).await.err(),
    ] {
        let refused = refused.expect("above the cap");
        assert!(
            refused.to_string().contains("21 rows"),
            "with the number: {refused}"
        );
    }
    let vic = desk.is("vic");
    let viewer = desk.gate.lookup_many(&desk.rows, &vic, |_, _, _| {}).await;
    assert!(matches!(viewer, Err(GateError::NotPermitted { .. })));
    assert_eq!(desk.provider.looked(), looked, "nothing was sent");
    desk.holds().await;
}

/// Claims and snoozes are audited and leave a ledger that verifies.
#[tokio::test(flavor = "multi_thread")]
async fn the_desk_is_kept_in_the_audit() {
    let desk = Desk::of(still_terms(), 1).await;
    let (id, ann, ben, vic) = (
        desk.first().clone(),
        desk.is("ann"),
        desk.is("ben"),
        desk.is("vic"),
    );
    let gate = &desk.gate;
    assert!(matches!(
        gate.claim(&id, &vic).await,
        Err(GateError::Refused(ReviewRefusal::NotPermitted { .. }))
    ));
    let nowhere: OperationId = "op_nowhere".parse().expect("an id");
    assert!(matches!(
        gate.claim(&nowhere, &ann).await,
        Err(GateError::NoSuchOperation(_))
    ));
    let before = desk.seen(&id).await;
    let claimed = gate.claim(&id, &ann).await.expect("claimed");
    assert!(!claimed.says.contains("taken over"), "{}", claimed.says);
    let taken = gate.claim(&id, &ben).await.expect("taken over");
    assert!(taken.says.contains("taken over from ann"), "{}", taken.says);
    assert!(matches!(
        gate.release(&id, &ann).await,
        Err(GateError::Refused(ReviewRefusal::ClaimOfAnother(_)))
    ));
    gate.release(&id, &ben).await.expect("his own");
    let until = later(desk.world.clock.now(), Duration::from_secs(3600));
    let snoozed = gate.snooze(&id, &ann, until).await.expect("put off");
    assert_eq!(snoozed.op.row.snoozed_until, Some(until));
    assert_eq!(
        desk.seen(&id).await,
        before,
        "decisions are bound to none of it"
    );
    let detail = desk.world.only().await;
    let actions: Vec<_> = detail
        .audit
        .iter()
        .rev()
        .take(4)
        .map(|a| a.action.as_str())
        .collect();
    assert_eq!(actions, ["snoozed", "released", "claimed", "claimed"]);
    desk.holds().await;
}

/// A tool is switched as it was read: another's pause is not undone unread.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_paused_and_resumed_as_it_was_read() {
    let desk = Desk::of(still_terms(), 1).await;
    let (ann, ben) = (desk.is("ann"), desk.is("ben"));
    let (gate, tool) = (&desk.gate, tool());
    let refused = gate.ask_tool(&tool, None, &ann).await;
    assert!(
        matches!(refused, Err(GateError::NotPermitted { .. })),
        "a lead only"
    );
    let asked = gate.ask_tool(&tool, None, &ben).await.expect("sends");
    assert_eq!(asked.level, Level::Note, "with a reason");
    let silent = gate
        .switch(&tool, None, &ben, "  ")
        .await
        .expect_err("no reason");
    assert_eq!(*rule(&silent), ReviewRefusal::NoteMissing);
    gate.switch(&tool, None, &ben, "odd refunds")
        .await
        .expect("paused");
    let again = gate
        .switch(&tool, None, &ben, "again")
        .await
        .expect_err("read as sending");
    assert!(
        again.to_string().contains("paused by ben: odd refunds"),
        "{again}"
    );
    let other = ("engine".to_owned(), "credentials".to_owned());
    let unread = gate.switch(&tool, Some(&other), &ben, "").await;
    assert!(
        unread
            .expect_err("another pause")
            .to_string()
            .contains("odd refunds")
    );
    let read = ("ben".to_owned(), "odd refunds".to_owned());
    let asked = gate
        .ask_tool(&tool, Some(&read), &ben)
        .await
        .expect("paused");
    assert_eq!(asked.level, Level::Plain);
    gate.switch(&tool, Some(&read), &ben, "")
        .await
        .expect("resumed");
    let states = desk.world.ledger.tools().await.expect("read");
    assert!(states.iter().all(|s| s.paused.is_none()));
}
