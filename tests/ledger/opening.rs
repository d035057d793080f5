//! Opening: get, check and insert in one transaction, once (I1, I4; steps 3 to 5).

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
use samekey::domain::opening::Got;
use samekey::domain::operation::{Effect, Status};
use samekey::domain::policy::{Caps, Repeat};
use samekey::domain::tool_call::{RejectClass, ToolResult};
use samekey::domain::transition::Lookup;
use samekey::ledger::{LeasedCall, OpenRow, Opening};

use crate::common::*;

fn rejected(opening: Opening) -> (RejectClass, String) {
    match opening {
        Opening::Answer(answer) => match *answer {
            ToolResult::Rejected { class, reason, .. } => (class, reason.to_string()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_row_is_committed_with_its_key_and_bytes_before_anything_is_sent_i2_i3() {
    for_each_store(async |w| {
        let call = w.leased("t1", "4417", 3800).await;
        let row = open_row(&call, w.hand().mark(&call).await);
        let wanted = row.clone();
        let opened = w.ledger.open(&call, row).await.expect("answered");
        assert!(
            matches!(&opened, Opening::Opened(id) if *id == wanted.id),
            "{opened:?}"
        );
        // Another process sees it at once.
        let other = w.other().await;
        let detail = other
            .detail(&wanted.id)
            .await
            .expect("read")
            .expect("there");
        let seen = detail.op.row;
        assert_eq!((seen.key, seen.request), (wanted.key, wanted.request));
        assert_eq!(
            (seen.status, seen.effect),
            (Status::Open, Effect::NotStarted)
        );
        assert_eq!((seen.version, seen.attempts, seen.attempts_max), (1, 0, 6));
        assert_eq!(
            seen.key_expires_at, None,
            "no deadline before the first send"
        );
        assert_eq!(seen.payment, Some(payment_of("4417")));
        assert_eq!(detail.audit.len(), 1);
        assert_eq!(
            detail.audit.first().map(|a| a.action.as_str()),
            Some("opened")
        );
        assert_eq!(
            detail.calls.first().map(|c| c.id.as_str()),
            Some("t1"),
            "the call is linked"
        );
    })
    .await;
}

#[tokio::test]
async fn of_two_that_open_at_once_one_opens_and_the_other_finds_its_row_f02() {
    for_each_store(async |w| {
        let other = w.second().await;
        for n in 0..10 {
            let order = format!("order{n}");
            let (a, b) = (
                w.leased(&format!("a{n}"), &order, 3800).await,
                other.leased(&format!("b{n}"), &order, 3800).await,
            );
            let hand = w.hand();
            let (mine, theirs) = (hand.mark(&a).await, other.mark(&b).await);
            let both = tokio::join!(hand.open_with(&a, mine), other.open_with(&b, theirs));
            let ids = match both {
                (Opening::Opened(x), Opening::Row(y)) | (Opening::Row(y), Opening::Opened(x)) => {
                    (x, y)
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(ids.0, ids.1);
        }
        assert_eq!(w.ledger.counts().await.expect("counted").open, 10);
    })
    .await;
}

#[tokio::test]
async fn a_call_is_answered_by_the_row_of_its_effect_or_of_its_payment_and_amount() {
    for_each_store(async |w| {
        let first = w.leased("t1", "4417", 3800).await;
        let id = w.opened(&first).await;
        let again = w.leased("t2", "4417", 3800).await;
        let got = w
            .ledger
            .get(&tool(), &args(&again), None)
            .await
            .expect("got");
        assert_eq!(got.got, Got::Row(id.clone()));
        // Another name of the same order: the payment tells.
        let alias = w.leased("t3", "4417-b", 3800).await;
        let payment = payment_of("4417");
        let got = w
            .ledger
            .get(&tool(), &args(&alias), Some(&payment))
            .await
            .expect("got");
        assert_eq!(got.got, Got::Row(id.clone()));
        let mut row = open_row(&alias, got.mark);
        row.resolved.as_mut().expect("resolved").payment = payment;
        let opening = w.ledger.open(&alias, row).await.expect("answered");
        assert!(matches!(opening, Opening::Row(found) if found == id));
    })
    .await;
}

#[tokio::test]
async fn a_row_of_the_order_that_changed_since_the_provider_was_read_starts_it_again_i4() {
    for_each_store(async |w| {
        let late = w.leased("late", "4417", 3800).await;
        let mark = w.hand().mark(&late).await;
        w.refunded("first", "4417", 900).await;
        let opening = w.hand().open_with(&late, mark.clone()).await;
        assert!(matches!(opening, Opening::Changed), "{opening:?}");
        // What happens to other orders is of no interest.
        let fresh = w.hand().mark(&late).await;
        w.refunded("elsewhere", "9", 900).await;
        let opening = w.hand().open_with(&late, fresh).await;
        assert!(matches!(opening, Opening::Opened(_)), "{opening:?}");
    })
    .await;
}

#[tokio::test]
async fn another_amount_waits_until_the_first_is_settled_or_identified_i4() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let other = w.leased("t2", "4417", 3900).await;
        let Opening::Answer(answer) = w.hand().open(&other).await else {
            panic!("the order is busy");
        };
        let ToolResult::Rejected {
            class, blocked_by, ..
        } = *answer
        else {
            panic!("{answer:?}");
        };
        assert_eq!(class, RejectClass::OrderBusy);
        let blocked = blocked_by.expect("by whom");
        assert_eq!(
            (blocked.operation_id, blocked.amount_cents),
            (id.clone(), Some(3800))
        );
        // Accepted by the provider: its money is counted, the order is free.
        let outcome = pending(&w.row(&id).await);
        w.attempt(&id, &call, outcome).await;
        w.opened(&other).await;
    })
    .await;
}

#[tokio::test]
async fn the_whole_rest_of_a_payment_may_be_refunded_and_not_a_cent_more_i4() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 40_000).await;
        let outcome = pending(&w.row(&id).await);
        w.attempt(&id, &call, outcome).await;
        let with = async |name: &str, cents, refunded| {
            let call = w.leased(name, "4417", cents).await;
            let mut row = open_row(&call, w.hand().mark(&call).await);
            row.resolved.as_mut().expect("resolved").refunded_minor = refunded;
            w.ledger.open(&call, row).await.expect("answered")
        };
        // Captured 1000.00; 400.00 pending here, 100.00 refunded elsewhere.
        let (class, why) = rejected(with("t2", 50_001, 10_000).await);
        assert_eq!(class, RejectClass::ValidationFailure);
        assert!(why.contains("only USD 500.00"), "{why}");
        let opened = with("t3", 50_000, 10_000).await;
        assert!(matches!(opened, Opening::Opened(_)), "{opened:?}");
    })
    .await;
}

#[tokio::test]
async fn two_orders_of_one_payment_share_its_room_and_its_blocks() {
    for_each_store(async |w| {
        let first = w.leased("t1", "4417", 3800).await;
        w.opened(&first).await;
        let other = w.leased("t2", "4418", 100).await;
        let mut row = open_row(&other, w.hand().mark(&other).await);
        row.resolved.as_mut().expect("resolved").payment = payment_of("4417");
        let (class, _) = rejected(w.ledger.open(&other, row).await.expect("answered"));
        assert_eq!(class, RejectClass::OrderBusy);
    })
    .await;
}

#[tokio::test]
async fn an_equal_refund_after_a_success_is_answered_unless_it_is_named_r62_r24() {
    for_each_store(async |w| {
        let id = w.refunded("t1", "4417", 3800).await;
        let again = w.leased("t2", "4417", 3800).await;
        let Opening::Answer(answer) = w.hand().open(&again).await else {
            panic!("nothing is opened");
        };
        assert!(
            matches!(*answer, ToolResult::Done { repeat: true, .. }),
            "{answer:?}"
        );
        let told = w
            .ledger
            .answer_call(&again, *answer)
            .await
            .expect("answered");
        assert_eq!(told.and_then(|r| r.operation().cloned()), Some(id.clone()));
        let named = async |name: &str, after: &str| {
            let arguments = serde_json::json!({ "order_id": "4417", "amount_cents": 3800,
                "currency": "usd", "after": after });
            w.ledger
                .accept_call(call_with(name, &arguments))
                .await
                .expect("accepted");
            w.hand().lease(name).await.expect("leased")
        };
        let further = w.opened(&named("t3", id.as_str()).await).await;
        assert_eq!(w.row(&further).await.after, Some(id.clone()));
        // The same name again: the row that has it answers; another name is refused.
        let opening = w.hand().open(&named("t4", id.as_str()).await).await;
        assert!(matches!(opening, Opening::Row(row) if row == further));
    })
    .await;
}

#[tokio::test]
async fn with_the_bare_rule_an_equal_refund_opens_another_row_r24() {
    let mut bare = terms();
    bare.policy.repeat = Repeat::Open;
    for_each_store_with(bare, async |w| {
        let first = w.refunded("t1", "4417", 3800).await;
        let again = w.leased("t2", "4417", 3800).await;
        assert_ne!(w.opened(&again).await, first);
    })
    .await;
}

#[tokio::test]
async fn nothing_is_opened_on_a_contradicted_order() {
    for_each_store(async |w| {
        let id = w.refunded("t1", "4417", 3800).await;
        let row = w.row(&id).await;
        let object = object(&row, &refund_id(&row), ObjectStatus::Failed);
        let event = Lookup::One {
            object,
            taken: false,
        };
        w.observe(&id, Source::Webhook, event).await;
        let other = w.leased("t2", "4417", 100).await;
        let Opening::Answer(answer) = w.hand().open(&other).await else {
            panic!("nothing is opened");
        };
        assert_eq!(answer.status(), "checking");
    })
    .await;
}

fn capped(caps: Caps) -> samekey::domain::policy::Terms {
    let mut terms = terms();
    terms.policy.caps.insert(usd(), caps);
    terms
}

#[tokio::test]
async fn money_caps_hold_over_their_window_m47() {
    let caps = Caps {
        max_amount: Some(5_000),
        max_total: Some((8_000, Duration::from_secs(3600))),
        ..Caps::default()
    };
    for_each_store_with(capped(caps), async |w| {
        let large = w.leased("t1", "1", 5_001).await;
        assert!(
            rejected(w.hand().open(&large).await)
                .1
                .contains("largest amount")
        );
        w.refunded("t2", "2", 5_000).await;
        let over = w.leased("t3", "3", 3_001).await;
        assert!(
            rejected(w.hand().open(&over).await)
                .1
                .contains("may refund")
        );
        let within = w.leased("t4", "4", 3_000).await;
        w.opened(&within).await;
        w.wait(seconds(3601));
        let later = w.leased("t5", "5", 5_000).await;
        w.opened(&later).await;
    })
    .await;
}

#[tokio::test]
async fn of_two_openings_at_once_one_gets_the_last_of_a_cap() {
    let caps = Caps {
        max_total: Some((5_000, Duration::from_secs(3600))),
        ..Caps::default()
    };
    for_each_store_with(capped(caps), async |w| {
        let other = w.second().await;
        let (a, b) = (
            w.leased("a", "1", 3_000).await,
            other.leased("b", "2", 3_000).await,
        );
        let hand = w.hand();
        let both = tokio::join!(hand.open(&a), other.open(&b));
        let opened = [&both.0, &both.1].map(|o| matches!(o, Opening::Opened(_)));
        assert_eq!(opened.iter().filter(|o| **o).count(), 1, "{both:?}");
    })
    .await;
}

#[tokio::test]
async fn another_tool_of_another_provider_has_its_own_rows() {
    for_each_store(async |w| {
        let mut both = (*w.terms).clone();
        let mut voucher = terms();
        voucher.policy.provider = "vouchers".parse().expect("a provider");
        both.insert("issue_voucher".parse().expect("a tool"), voucher);
        let ledger = w.place.open(std::sync::Arc::new(both), &w.clock).await;
        w.opened(&w.leased("t1", "4417", 3800).await).await;
        let call = samekey::ledger::NewCall {
            tool: "issue_voucher".parse().expect("a tool"),
            ..new_call("t2", "4417", 3800)
        };
        ledger.accept_call(call).await.expect("accepted");
        let leased = ledger
            .lease_calls(&engine(3), LEASE, 5)
            .await
            .expect("leased");
        let call: &LeasedCall = leased.first().expect("the voucher");
        let got = ledger
            .get(&call.call.tool, &args(call), None)
            .await
            .expect("got");
        let row = OpenRow {
            provider: "vouchers".parse().expect("a provider"),
            ..open_row(call, got.mark)
        };
        let opening = ledger.open(call, row).await.expect("answered");
        assert!(matches!(opening, Opening::Opened(_)), "{opening:?}");
        let query = samekey::ledger::PageQuery {
            limit: 10,
            ..samekey::ledger::PageQuery::default()
        };
        let rows = w.ledger.page(&query).await.expect("a page").rows;
        let keys: std::collections::BTreeSet<String> =
            rows.iter().map(|r| r.row.key.to_string()).collect();
        assert_eq!(keys.len(), 2, "F07: each has its own key");
    })
    .await;
}
