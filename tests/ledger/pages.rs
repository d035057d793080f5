//! Reading lists: pages by keyset, filters, sorting, counts, and what Review puts first.

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
use samekey::domain::ids::OperationId;
use samekey::domain::operation::UnknownReason;
use samekey::domain::policy::Caps;
use samekey::domain::transition::Lookup;
use samekey::ledger::{Filter, Page, PageQuery, Sort, Tab};

use crate::common::*;

async fn page(w: &World, query: &PageQuery) -> Page {
    w.ledger.page(query).await.expect("a page")
}

fn orders(page: &Page) -> Vec<String> {
    page.rows
        .iter()
        .map(|r| r.row.order_id.as_ref().expect("an order").to_string())
        .collect()
}

fn query(tab: Tab, filter: Filter) -> PageQuery {
    PageQuery {
        tab,
        filter,
        limit: 100,
        ..PageQuery::default()
    }
}

/// Rows in every status, a second apart.
async fn mixed(w: &World) {
    for n in 0..4_i64 {
        w.refunded(&format!("good{n}"), &format!("good{n}"), 1_000 + n)
            .await;
        w.wait(seconds(1));
    }
    for n in 0..3_i64 {
        w.unknown(&format!("lost{n}"), &format!("lost{n}"), 2_000 + n)
            .await;
        w.wait(seconds(1));
    }
    w.refunded("calm", "calm", 500).await;
    let (call, id) = w.driven("bad", "bad", 3_000).await;
    w.attempt(&id, &call, refused()).await;
    w.finish(&call).await;
    w.wait(seconds(1));
    for n in 0..2_i64 {
        w.driven(&format!("open{n}"), &format!("open{n}"), 4_000 + n)
            .await;
        w.wait(seconds(1));
    }
}

#[tokio::test]
async fn every_sort_walks_all_rows_once_in_order_by_keyset() {
    for_each_store(async |w| {
        mixed(&w).await;
        for sort in [
            Sort::Updated,
            Sort::Created,
            Sort::Amount,
            Sort::Attempts,
            Sort::KeyLeft,
            Sort::Order,
        ] {
            for ascending in [false, true] {
                let whole = PageQuery {
                    sort,
                    ascending,
                    limit: 100,
                    ..PageQuery::default()
                };
                let all = page(&w, &whole).await;
                assert_eq!((all.rows.len(), all.more), (11, false));
                let ids: Vec<OperationId> = all.rows.iter().map(|r| r.row.id.clone()).collect();
                let (mut walked, mut after) = (Vec::new(), None);
                loop {
                    let part = PageQuery {
                        after: after.clone(),
                        limit: 2,
                        ..whole.clone()
                    };
                    let part = page(&w, &part).await;
                    walked.extend(part.rows.iter().map(|r| r.row.id.clone()));
                    after = part.rows.last().map(|r| r.row.id.clone());
                    if !part.more {
                        break;
                    }
                }
                assert_eq!(walked, ids, "{sort:?} {ascending}");
                let amounts: Vec<i64> = all
                    .rows
                    .iter()
                    .map(|r| r.row.minor().expect("money"))
                    .collect();
                if sort == Sort::Amount {
                    assert!(if ascending {
                        amounts.is_sorted()
                    } else {
                        amounts.is_sorted_by(|a, b| a >= b)
                    });
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn tabs_and_counts_agree() {
    for_each_store(async |w| {
        mixed(&w).await;
        w.accept("queued", "q", 100).await;
        let counts = w.ledger.counts().await.expect("counted");
        assert_eq!(
            (counts.open, counts.unknown, counts.succeeded, counts.failed),
            (2, 3, 5, 1)
        );
        assert_eq!(
            (
                counts.all(),
                counts.queued,
                counts.running,
                counts.in_flight
            ),
            (11, 1, 2, 0)
        );
        for (tab, n) in [
            (Tab::Open, counts.open),
            (Tab::Unknown, counts.unknown),
            (Tab::Succeeded, counts.succeeded),
            (Tab::Failed, counts.failed),
            (Tab::All, counts.all()),
            (Tab::Review, counts.review),
        ] {
            let rows = page(&w, &query(tab, Filter::default())).await.rows;
            assert_eq!(rows.len() as u64, n, "{tab:?}");
        }
        let open = page(&w, &query(Tab::Open, Filter::default())).await;
        assert!(open.rows.iter().all(|r| r.driven && r.sessions.len() == 1));
    })
    .await;
}

#[tokio::test]
async fn filters_narrow_and_are_taken_literally() {
    for_each_store(async |w| {
        mixed(&w).await;
        let odd = w.leased("odd", "100%_É", 700).await;
        let id = w.opened(&odd).await;
        let key = w.row(&id).await.key.to_string();
        let cases: Vec<(Filter, Vec<&str>)> = vec![
            (
                Filter {
                    order: Some("bad".into()),
                    ..Filter::default()
                },
                vec!["bad"],
            ),
            (
                Filter {
                    call: Some("lost1".into()),
                    ..Filter::default()
                },
                vec!["lost1"],
            ),
            (
                Filter {
                    key: Some(key),
                    ..Filter::default()
                },
                vec!["100%_É"],
            ),
            (
                Filter {
                    provider_ref: Some("re_good2_1002".into()),
                    ..Filter::default()
                },
                vec!["good2"],
            ),
            (
                Filter {
                    reason: Some(UnknownReason::ServerError),
                    ..Filter::default()
                },
                vec!["lost2", "lost1", "lost0"],
            ),
            (
                Filter {
                    reason: Some(UnknownReason::Stopped),
                    ..Filter::default()
                },
                vec![],
            ),
            (
                Filter {
                    amount_over: Some(3_999),
                    ..Filter::default()
                },
                vec!["open1", "open0"],
            ),
            (
                Filter {
                    text: Some("0%_".into()),
                    ..Filter::default()
                },
                vec!["100%_É"],
            ),
            (
                Filter {
                    text: Some("É".into()),
                    ..Filter::default()
                },
                vec!["100%_É"],
            ),
            (
                Filter {
                    text: Some("OPEN".into()),
                    ..Filter::default()
                },
                vec!["open1", "open0"],
            ),
            (
                Filter {
                    text: Some("pi_order_bad".into()),
                    ..Filter::default()
                },
                vec!["bad"],
            ),
            (
                Filter {
                    text: Some("%".into()),
                    ..Filter::default()
                },
                vec!["100%_É"],
            ),
            (
                Filter {
                    text: Some("nothing has this".into()),
                    ..Filter::default()
                },
                vec![],
            ),
            (
                Filter {
                    tool: Some("issue_refund".into()),
                    order: Some("bad".into()),
                    ..Filter::default()
                },
                vec!["bad"],
            ),
            (
                Filter {
                    tool: Some("other".into()),
                    ..Filter::default()
                },
                vec![],
            ),
            (
                Filter {
                    session: Some("other".into()),
                    ..Filter::default()
                },
                vec![],
            ),
            (
                Filter {
                    age_over: Some(seconds(8)),
                    ..Filter::default()
                },
                vec!["good2", "good1", "good0"],
            ),
            (
                Filter {
                    left_under: Some(seconds(1)),
                    ..Filter::default()
                },
                vec![],
            ),
        ];
        for (filter, wanted) in cases {
            let shown = format!("{filter:?}");
            assert_eq!(
                orders(&page(&w, &query(Tab::All, filter)).await),
                wanted,
                "{shown}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn review_lists_what_needs_a_person_by_urgency() {
    let mut limited_terms = terms();
    let caps = Caps {
        approve_over: Some(50_000),
        ..Caps::default()
    };
    limited_terms.policy.caps.insert(usd(), caps);
    for_each_store_with(limited_terms, async |w| {
        // Its key runs out soon, nobody waits for it.
        let (call, id) = w.driven("runs-out", "runs-out", 100).await;
        w.attempt(&id, &call, lost()).await;
        w.finish(&call).await;
        w.wait(seconds(22 * 3600));
        let decidable = w.unknown("decidable", "decidable", 200).await;
        let (call, left) = w.driven("left", "left", 300).await;
        w.attempt(&left, &call, lost()).await;
        w.finish(&call).await;
        w.wait(SETTLE);
        w.nothing_there(&decidable).await;
        let contradicted = w.refunded("contradicted", "contradicted", 400).await;
        let row = w.row(&contradicted).await;
        let object = object(&row, &refund_id(&row), ObjectStatus::Failed);
        let event = Lookup::One {
            object,
            taken: false,
        };
        w.observe(&contradicted, Source::Webhook, event).await;
        let held = w.leased("held", "held", 60_000).await;
        w.opened(&held).await;
        w.finish(&held).await;
        w.unknown("waits", "waits", 500).await;
        // What is driven, or simply done, needs nobody.
        w.driven("busy", "busy", 600).await;
        w.refunded("done", "done", 700).await;
        let listed = page(&w, &query(Tab::Review, Filter::default())).await;
        let wanted = [
            "contradicted",
            "runs-out",
            "left",
            "decidable",
            "held",
            "waits",
        ];
        assert_eq!(orders(&listed), wanted);
        let second = PageQuery {
            after: listed.rows.get(2).map(|r| r.row.id.clone()),
            limit: 2,
            ..query(Tab::Review, Filter::default())
        };
        let second = page(&w, &second).await;
        assert_eq!(
            (orders(&second), second.more),
            (vec!["decidable".into(), "held".into()], true)
        );
        assert_eq!(w.ledger.counts().await.expect("counted").review, 6);
    })
    .await;
}

#[tokio::test]
async fn one_operation_is_read_whole() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.attempt(&id, &call, lost()).await;
        let detail = w.ledger.detail(&id).await.expect("read").expect("there");
        assert_eq!(detail.driver, Some((w.engine.clone(), call_id("t1"))));
        assert_eq!(
            (
                detail.calls.len(),
                detail.audit.len(),
                detail.op.attempts.len()
            ),
            (1, 3, 1)
        );
        let rows = w
            .ledger
            .rows(&[id.clone(), id.clone()])
            .await
            .expect("read");
        assert_eq!(rows.len(), 2);
        let rows = w
            .ledger
            .order_rows(&tool(), &order("x"), Some(&payment_of("4417")))
            .await;
        assert_eq!(rows.expect("read").len(), 1, "by payment too");
    })
    .await;
}

#[tokio::test]
async fn a_change_is_hinted_at_here_and_in_other_processes_l6() {
    for_each_store(async |w| {
        let other = w.other().await;
        let mut here = w.ledger.changed();
        let mut there = other.changed();
        // Both start with what they have seen.
        tokio::time::sleep(Duration::from_millis(400)).await;
        here.mark_unchanged();
        there.mark_unchanged();
        w.accept("t1", "4417", 3800).await;
        let soon = Duration::from_secs(10);
        assert!(here.has_changed().expect("alive"), "at once");
        tokio::time::timeout(soon, there.changed())
            .await
            .expect("in time")
            .expect("alive");
        let seen = other
            .call(&agent("agent"), &call_id("t1"))
            .await
            .expect("read");
        assert!(seen.is_some());
    })
    .await;
}

/// I33: what no index answers is looked for in pieces, and nothing is lost between them.
#[tokio::test]
async fn a_search_ends_at_its_budget_and_goes_on_where_it_ended() {
    let place = Place::new(Store::Sqlite);
    let past = crate::filling::refused_calls(4_500).into_iter().map(Ok);
    let filled = samekey::ledger::sqlite::fill(&place.path(), all(terms()), past).await;
    assert_eq!(filled.expect("filled"), 4_500);
    let w = World::new(place, terms()).await;
    for (text, wanted) in [("er1234", vec!["order1234"]), ("r99999", vec![])] {
        for sort in [Sort::Updated, Sort::Order] {
            let mut query = PageQuery {
                sort,
                budget: Some(2_000),
                ..query(
                    Tab::All,
                    Filter {
                        text: Some(text.into()),
                        ..Filter::default()
                    },
                )
            };
            let (mut found, mut pieces) = (Vec::new(), 0);
            loop {
                let part = page(&w, &query).await;
                found.extend(orders(&part));
                pieces += 1;
                assert_eq!(part.more, part.next.is_some());
                query.from = part.next;
                if query.from.is_none() {
                    break;
                }
            }
            assert_eq!(
                (found, pieces),
                (wanted.iter().map(ToString::to_string).collect(), 3)
            );
            query.budget = None;
            let whole = page(&w, &query).await;
            assert_eq!((orders(&whole).len(), whole.more), (wanted.len(), false));
        }
    }
    // What an index answers is there at once, whatever the budget.
    for text in ["order1234", "ORDER1234", "pi_order_order1234"] {
        let found = PageQuery {
            budget: Some(1),
            ..query(
                Tab::Failed,
                Filter {
                    text: Some(text.into()),
                    ..Filter::default()
                },
            )
        };
        let found = page(&w, &found).await;
        assert_eq!(
            (orders(&found), found.more),
            (vec!["order1234".into()], false)
        );
        let token = found.rows[0].row.id.token().to_owned();
        for text in [
            token.clone(),
            format!("op_…{token}"),
            found.rows[0].row.id.to_string(),
        ] {
            let by_token = PageQuery {
                budget: Some(1),
                ..query(
                    Tab::All,
                    Filter {
                        text: Some(text.clone()),
                        ..Filter::default()
                    },
                )
            };
            let found = page(&w, &by_token).await;
            assert!(orders(&found).contains(&"order1234".into()), "{text}");
        }
    }
}

#[tokio::test]
async fn only_what_moved_is_read_again_and_nothing_happened_is_a_fact() {
    for_each_store(async |w| {
        let other = w.other().await;
        let ids = [
            w.refunded("t1", "1", 100).await,
            w.unknown("t2", "2", 100).await,
        ];
        let seen = async |id: &OperationId| (id.clone(), w.row(id).await.audit_seq);
        let seen = [seen(&ids[0]).await, seen(&ids[1]).await];
        let version = other.version().await.expect("a number");
        assert_eq!(other.version().await.expect("a number"), version);
        assert_eq!(other.moved(&seen).await.expect("read"), []);
        w.nothing_there(&ids[1]).await;
        assert_ne!(other.version().await.expect("a number"), version);
        let here = w.ledger.version().await.expect("a number");
        let moved = other.moved(&seen).await.expect("read");
        assert_eq!(moved.len(), 1);
        assert_eq!((&moved[0].id, moved[0].audit_seq), (&ids[1], seen[1].1 + 1));
        // Also what this process writes itself.
        w.accept("t3", "3", 100).await;
        assert_ne!(w.ledger.version().await.expect("a number"), here);
    })
    .await;
}
