//! The figures of a span, from real rows: what counts where, and from when on.

use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::operation::Closing;
use samekey::domain::report::{Report, ReportQuery, Sums};
use samekey::domain::review_event::Act;
use samekey::domain::transition::Lookup;

use crate::common::*;

async fn report(w: &World, since: Option<u64>) -> Report {
    let query = ReportQuery {
        since: since.map(at),
        until: w.clock.now(),
        tool: None,
    };
    w.ledger.report(&query).await.expect("a report")
}

fn money(report: &Report) -> Sums {
    report.total.money.get(&usd()).copied().unwrap_or_default()
}

#[tokio::test]
async fn rows_of_every_kind_are_counted_once() {
    for_each_store(async |w| {
        w.refunded("a", "1", 1_000).await;
        w.wait(seconds(10));
        w.unknown("b", "2", 200).await;
        let (call, id) = w.driven("c", "3", 30).await;
        w.wait(seconds(4));
        w.attempt(&id, &call, refused()).await;
        w.driven("d", "4", 4).await;
        let report = report(&w, None).await;
        let t = &report.total;
        assert_eq!((t.succeeded, t.unknown, t.failed, t.open), (1, 1, 1, 1));
        let wanted = Sums {
            refunded: 1_000,
            at_risk: 200,
            refused: 30,
            waiting: 4,
        };
        assert_eq!(money(&report), wanted);
        assert_eq!(t.attempts, 3);
        assert_eq!((t.p50, t.p95), (Some(seconds(0)), Some(seconds(4))));
        assert_eq!(report.tools.get(&tool()), Some(t));
        let opened: u64 = report.slots.iter().map(|s| s.opened).sum();
        assert_eq!(opened, 4);
        assert_eq!(report.slots[0].from, at(0), "from the first operation on");
    })
    .await;
}

#[tokio::test]
async fn a_span_begins_where_it_says_and_the_oldest_unknown_lies_before_it() {
    for_each_store(async |w| {
        let oldest = w.unknown("old", "1", 100).await;
        w.wait(seconds(3_600));
        w.refunded("new", "2", 200).await;
        let report = report(&w, Some(3_600)).await;
        assert_eq!(report.total.operations(), 1);
        assert_eq!(money(&report).refunded, 200);
        let (id, since) = report.oldest_unknown.expect("it waits all the same");
        assert_eq!((id, since), (oldest, at(0)));
        let query = ReportQuery {
            since: None,
            until: w.clock.now(),
            tool: Some("another".parse().expect("a tool")),
        };
        let other = w.ledger.report(&query).await.expect("a report");
        assert_eq!(other.total.operations(), 0);
        assert!(other.oldest_unknown.is_none(), "of that tool");
    })
    .await;
}

#[tokio::test]
async fn contradicted_money_is_at_risk_until_a_person_corrects_it_i20() {
    for_each_store(async |w| {
        let id = w.refunded("a", "1", 500).await;
        w.wait(seconds(2_000));
        let row = w.row(&id).await;
        let seen = Lookup::One {
            object: object(&row, &refund_id(&row), ObjectStatus::Failed),
            taken: false,
        };
        w.observe(&id, Source::Webhook, seen).await;
        let before = report(&w, None).await;
        assert_eq!((before.total.succeeded, before.total.contradicted), (1, 1));
        assert_eq!((money(&before).refunded, money(&before).at_risk), (0, 500));
        assert_eq!(before.total.p50, None, "it is not resolved");
        let act = Act::Correct {
            decision: Some(Closing::Failed),
        };
        w.decide(&id, &lea(), act).await.expect("corrected");
        let after = report(&w, None).await;
        assert_eq!((after.total.failed, after.total.contradicted), (1, 0));
        assert_eq!((money(&after).at_risk, money(&after).refused), (0, 500));
        assert_eq!(after.total.p50, Some(seconds(2_000)), "by the correction");
    })
    .await;
}

#[tokio::test]
async fn an_empty_ledger_has_a_report_too() {
    for_each_store(async |w| {
        let report = report(&w, None).await;
        assert_eq!(report.total.operations(), 0);
        assert!(report.tools.is_empty() && report.oldest_unknown.is_none());
    })
    .await;
}
