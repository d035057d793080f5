//! The review list: every rank in its place, paged across the ranks in both directions, and what is put
//! off last.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::ids::OperationId;
use samekey::domain::operation::Closing;
use samekey::domain::policy::Caps;
use samekey::domain::review_event::{Act, Fetched, TypedRef};
use samekey::domain::transition::Lookup;
use samekey::ledger::{Filter, Page, PageQuery, Tab};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::common::*;

fn review(limit: u32) -> PageQuery {
    PageQuery {
        tab: Tab::Review,
        limit,
        ..PageQuery::default()
    }
}

async fn page(w: &World, query: &PageQuery) -> Page {
    w.ledger.page(query).await.expect("a page")
}

fn orders(page: &Page) -> Vec<String> {
    let order = |l: &samekey::ledger::Listed| {
        l.row
            .order_id
            .as_ref()
            .map_or_else(String::new, ToString::to_string)
    };
    page.rows.iter().map(order).collect()
}

async fn undetermined(w: &World, order: &str, cents: i64) -> OperationId {
    let (call, id) = w.driven(order, order, cents).await;
    w.attempt(&id, &call, lost()).await;
    w.finish(&call).await;
    id
}

async fn seen(w: &World, id: &OperationId, source: Source, status: ObjectStatus) {
    let row = w.row(id).await;
    let object = object(&row, &refund_id(&row), status);
    let event = Lookup::One {
        object,
        taken: false,
    };
    w.observe(id, source, event).await;
}

/// What no door of this version does yet: a delivery that nobody knows of, a row that is put off.
async fn sql(w: &World, sql: String) {
    let options = SqliteConnectOptions::new().filename(w.place.path());
    let mut conn = options.connect().await.expect("a connection");
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await;
    done.expect("done");
    conn.close().await.expect("closed");
}

/// Rows of every rank, named after it, and some that need nobody. Answers the list's order.
async fn all_ranks(w: &World) -> Vec<&'static str> {
    undetermined(w, "1-runs-out", 100).await;
    w.wait(seconds(60));
    undetermined(w, "1-runs-out-later", 100).await;
    w.wait(seconds(22 * 3600));
    undetermined(w, "2-left", 300).await;
    let told = undetermined(w, "2-told", 300).await;
    // In the same instant the larger amount first.
    let small = w.driven("3-small", "3-small", 200).await;
    let large = w.driven("3-large", "3-large", 900).await;
    for (call, id) in [&small, &large] {
        w.attempt(id, call, server_error()).await;
    }
    for (call, _) in [&small, &large] {
        w.finish(call).await;
    }
    w.wait(SETTLE);
    seen(w, &told, Source::ReviewLookup, ObjectStatus::Succeeded).await;
    let contradicted = w.refunded("0-contradicted", "0-contradicted", 400).await;
    seen(w, &contradicted, Source::Webhook, ObjectStatus::Failed).await;
    let held = w.leased("4-held", "4-held", 60_000).await;
    w.opened(&held).await;
    w.finish(&held).await;
    let proposed = w.unknown("4-proposed", "4-proposed", 700).await;
    let typed = Some(TypedRef {
        id: "re_typed".parse().expect("an id"),
        fetched: Fetched::Unreachable,
    });
    let act = Act::Close {
        decision: Closing::Succeeded,
        typed,
    };
    w.decide(&proposed, &ann(), act).await.expect("proposed");
    let lost = w.refunded("5-undelivered", "5-undelivered", 410).await;
    let undelivered = format!(
        "UPDATE tool_calls SET delivery = 'delivery_unknown' WHERE operation_id = '{lost}'"
    );
    sql(w, undelivered).await;
    w.unknown("6-waits", "6-waits", 500).await;
    w.wait(seconds(5));
    w.unknown("6-waits-longer", "6-waits-longer", 500).await;
    let off = w.unknown("7-put-off", "7-put-off", 500).await;
    snooze(w, &off, 3_600).await;
    // A contradiction is never put off.
    snooze(w, &contradicted, 3_600).await;
    // Who is driven, or simply done, needs nobody; nor does whoever is put off without a need.
    let (_, busy) = w.driven("busy", "busy", 600).await;
    snooze(w, &busy, 3_600).await;
    w.refunded("done", "done", 700).await;
    vec![
        "0-contradicted",
        "1-runs-out",
        "1-runs-out-later",
        "2-left",
        "2-told",
        "3-large",
        "3-small",
        "4-held",
        "4-proposed",
        "5-undelivered",
        "6-waits",
        "6-waits-longer",
        "7-put-off",
    ]
}

async fn snooze(w: &World, id: &OperationId, secs: u64) {
    let until = samekey::domain::later(w.clock.now(), seconds(secs)).timestamp_micros();
    let put_off = format!(
        "DROP TRIGGER operations_move_forward;
         UPDATE operations SET snoozed_until = {until} WHERE operation_id = '{id}'"
    );
    let guard = guard(w).await;
    sql(w, put_off).await;
    sql(w, guard).await;
}

async fn guard(w: &World) -> String {
    let options = SqliteConnectOptions::new().filename(w.place.path());
    let mut conn = options.connect().await.expect("a connection");
    let text = "SELECT sql FROM sqlite_schema WHERE name = 'operations_move_forward'";
    let text = sqlx::query_scalar(text).fetch_one(&mut conn).await;
    text.expect("a trigger")
}

fn limited() -> samekey::domain::policy::Terms {
    let mut limited = terms();
    let caps = Caps {
        approve_over: Some(50_000),
        ..Caps::default()
    };
    limited.policy.caps.insert(usd(), caps);
    limited.policy.circuit = false;
    limited
}

#[tokio::test]
async fn each_rank_stands_in_its_place_and_pages_go_across_them_both_ways() {
    for_each_store_with(limited(), async |w| {
        let wanted = all_ranks(&w).await;
        let whole = page(&w, &review(100)).await;
        assert_eq!(orders(&whole), wanted);
        assert_eq!((whole.more, whole.next), (false, None));
        let counts = w.ledger.counts().await.expect("counted");
        assert_eq!(counts.review, wanted.len() as u64);
        for limit in 1..5 {
            for reversed in [false, true] {
                let (mut walked, mut query) = (Vec::new(), review(limit));
                query.ascending = reversed;
                loop {
                    let part = page(&w, &query).await;
                    walked.extend(orders(&part));
                    // By the mark and by the row, in turn.
                    query.from = part.next.filter(|_| walked.len() % 2 == 0);
                    query.after = part.rows.last().map(|l| l.row.id.clone());
                    if !part.more {
                        break;
                    }
                }
                if reversed {
                    walked.reverse();
                }
                assert_eq!(walked, wanted, "{limit} {reversed}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn filters_keep_the_order_of_the_ranks() {
    for_each_store_with(limited(), async |w| {
        let wanted = all_ranks(&w).await;
        for (filter, fits) in [
            (
                Filter {
                    text: Some("waits".into()),
                    ..Filter::default()
                },
                "waits",
            ),
            (
                Filter {
                    text: Some("1-".into()),
                    ..Filter::default()
                },
                "1-",
            ),
            (
                Filter {
                    session: Some("conversation".into()),
                    ..Filter::default()
                },
                "",
            ),
            (
                Filter {
                    order: Some("5-undelivered".into()),
                    ..Filter::default()
                },
                "5-",
            ),
        ] {
            let shown = format!("{filter:?}");
            let query = PageQuery {
                filter,
                ..review(100)
            };
            let fitting: Vec<&str> = wanted
                .iter()
                .copied()
                .filter(|o| o.contains(fits))
                .collect();
            assert_eq!(orders(&page(&w, &query).await), fitting, "{shown}");
        }
        // Done, and open but driven: not in the list, whatever is asked for.
        let query = PageQuery {
            filter: Filter {
                order: Some("done".into()),
                ..Filter::default()
            },
            ..review(100)
        };
        assert_eq!(orders(&page(&w, &query).await), Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn what_was_put_off_comes_back_when_its_time_is_over() {
    for_each_store(async |w| {
        let first = w.unknown("first", "first", 100).await;
        w.wait(seconds(1));
        w.unknown("second", "second", 100).await;
        w.wait(SETTLE);
        assert_eq!(orders(&page(&w, &review(9)).await), ["first", "second"]);
        snooze(&w, &first, 60).await;
        assert_eq!(orders(&page(&w, &review(9)).await), ["second", "first"]);
        w.wait(seconds(60));
        assert_eq!(orders(&page(&w, &review(9)).await), ["first", "second"]);
    })
    .await;
}
