//! Cursors, whatever is asked: pages put together are the whole list, once and in order, in both
//! directions, by row and by mark, with any filter, limit and budget, over rows that share everything a
//! list is sorted by.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use samekey::domain::operation::OperationRow;
use samekey::domain::review_event::Act;
use samekey::domain::tool_call::{CallState, Delivery};
use samekey::ledger::{AuditQuery, CallQuery, Filter, PageQuery, Sort, Tab};
use strum::VariantArray as _;

use crate::common::*;

/// Forty rows of few amounts, in four moments.
async fn crowd(w: &World) {
    for n in 0..40 {
        let (call, order) = (format!("t{n}"), format!("order{n}"));
        let cents = 100 * (1 + n % 3);
        match n % 8 {
            0 => drop(w.unknown(&call, &order, cents).await),
            3 => {
                let (leased, id) = w.driven(&call, &order, cents).await;
                w.attempt(&id, &leased, refused()).await;
                w.finish(&leased).await;
            }
            5 => drop(w.driven(&call, &order, cents).await),
            _ => drop(w.refunded(&call, &order, cents).await),
        }
        if n % 10 == 9 {
            w.wait(seconds(60));
        }
    }
    for n in 0..15 {
        w.accept(&format!("waits{n}"), "9", 100).await;
    }
}

fn queries() -> impl Strategy<Value = PageQuery> {
    let filter = prop_oneof![
        3 => Just(Filter::default()),
        1 => (0..400_i64).prop_map(|over| Filter { amount_over: Some(over), ..Filter::default() }),
        1 => "[0-9]{1,2}|order|nothing".prop_map(|text| Filter { text: Some(text), ..Filter::default() }),
        1 => "order[0-9]{1,2}".prop_map(|order| Filter { order: Some(order), ..Filter::default() }),
    ];
    let (tab, sort) = (
        prop::sample::select(Tab::VARIANTS),
        prop::sample::select(Sort::VARIANTS),
    );
    let budget = prop::option::of(1..60_u32);
    (tab, sort, any::<bool>(), filter, 1..12_u32, budget).prop_map(
        |(tab, sort, ascending, filter, limit, budget)| PageQuery {
            tab,
            filter,
            sort,
            ascending,
            limit,
            budget,
            ..PageQuery::default()
        },
    )
}

/// All rows of a query, page by page; by the mark where a page ended, or by its last row.
async fn walk(w: &World, query: &PageQuery, by_mark: bool) -> Vec<OperationRow> {
    let mut query = query.clone();
    let mut all = Vec::new();
    for _ in 0..500 {
        let page = w.ledger.page(&query).await.expect("a page");
        assert!(page.rows.len() <= query.limit as usize, "{query:?}");
        let last = page.rows.last().map(|r| r.row.id.clone());
        all.extend(page.rows.into_iter().map(|r| r.row));
        if !page.more {
            return all;
        }
        if by_mark || last.is_none() || query.budget.is_some() {
            query.from = page.next;
            assert!(
                query.from.is_some(),
                "more, and nowhere to go on: {query:?}"
            );
        } else {
            query.after = last;
        }
    }
    panic!("it never ends: {query:?}");
}

/// What a list is sorted by, where it does not change while it is walked.
fn key(row: &OperationRow, sort: Sort) -> Option<(i64, String)> {
    Some(match sort {
        Sort::Updated => (row.updated_at.timestamp_micros(), String::new()),
        Sort::Created => (row.created_at.timestamp_micros(), String::new()),
        Sort::Amount => (row.minor().unwrap_or(0), String::new()),
        Sort::Attempts => (i64::from(row.attempts), String::new()),
        Sort::Order => (
            0,
            row.order_id
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
        ),
        Sort::KeyLeft => return None,
    })
}

fn belongs(row: &OperationRow, query: &PageQuery) -> bool {
    let status = row.status.as_str();
    let tab = match query.tab {
        Tab::All | Tab::Review => true,
        Tab::Open => status == "open",
        Tab::Unknown => status == "unknown",
        Tab::Succeeded => status == "succeeded",
        Tab::Failed => status == "failed",
    };
    let over = query.filter.amount_over;
    tab && over.is_none_or(|over| row.minor() > Some(over))
}

fn ids(rows: &[OperationRow]) -> Vec<String> {
    rows.iter().map(|r| r.id.to_string()).collect()
}

#[test]
fn pages_put_together_are_the_whole_list_whatever_is_asked() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let w = runtime.block_on(World::new(Place::new(Store::Sqlite), terms()));
    runtime.block_on(crowd(&w));
    let whole = |query: &PageQuery| {
        let whole = PageQuery {
            limit: 1000,
            budget: None,
            ..query.clone()
        };
        let page = runtime.block_on(w.ledger.page(&whole)).expect("a page");
        assert!(!page.more);
        page.rows.into_iter().map(|r| r.row).collect::<Vec<_>>()
    };
    let everything = whole(&PageQuery::default());
    assert_eq!(everything.len(), 40);
    let mut runner = TestRunner::new(Config::with_cases(400));
    let asked = (queries(), any::<bool>());
    let holds = |(query, by_mark): (PageQuery, bool)| {
        let whole = whole(&query);
        let walked = runtime.block_on(walk(&w, &query, by_mark));
        prop_assert_eq!(ids(&walked), ids(&whole), "{:?}", query);
        let distinct: BTreeSet<_> = ids(&whole).into_iter().collect();
        prop_assert_eq!(distinct.len(), whole.len(), "{:?}", query);
        if query.tab != Tab::Review && query.filter.text.is_none() && query.filter.order.is_none() {
            let wanted = everything.iter().filter(|row| belongs(row, &query)).count();
            prop_assert_eq!(whole.len(), wanted, "{:?}", query);
        }
        let keys: Option<Vec<_>> = whole.iter().map(|row| key(row, query.sort)).collect();
        if let (Some(keys), true) = (keys, query.tab != Tab::Review) {
            let sorted = if query.ascending {
                keys.is_sorted()
            } else {
                keys.is_sorted_by(|a, b| a >= b)
            };
            prop_assert!(sorted, "{:?}: {:?}", query, keys);
        }
        Ok(())
    };
    runner.run(&asked, holds).expect("the property holds");
}

/// State, delivery, action, ascending, limit.
type Asked = (
    Option<CallState>,
    Option<Delivery>,
    Option<&'static str>,
    bool,
    u32,
);

#[test]
fn calls_and_audit_are_walked_whole_whatever_is_asked() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let w = runtime.block_on(World::new(Place::new(Store::Sqlite), terms()));
    runtime.block_on(crowd(&w));
    let state = prop::option::of(prop::sample::select(vec![
        CallState::Queued,
        CallState::Running,
        CallState::Answered,
    ]));
    let delivery = prop::option::of(Just(Delivery::Pending));
    let action = prop::option::of(prop::sample::select(vec!["opened", "finished", "never"]));
    let asked = (state, delivery, action, any::<bool>(), 1..12_u32);
    let mut runner = TestRunner::new(Config::with_cases(200));
    let holds = |(state, delivery, action, ascending, limit): Asked| {
        let mut calls = CallQuery {
            state,
            delivery,
            ascending,
            limit: 1000,
            ..CallQuery::default()
        };
        let read = |query: &CallQuery| runtime.block_on(w.ledger.calls(query)).expect("a page");
        let whole = read(&calls).calls;
        calls.limit = limit;
        let mut walked = Vec::new();
        loop {
            let page = read(&calls);
            calls.after = page.calls.last().map(|c| (c.agent.clone(), c.id.clone()));
            walked.extend(page.calls);
            if !page.more {
                break;
            }
            prop_assert!(walked.len() <= whole.len(), "{:?}", calls);
        }
        prop_assert_eq!(&walked, &whole, "{:?}", calls);
        let mut audit = AuditQuery {
            action: action.map(str::to_owned),
            ascending,
            limit: 1000,
            ..AuditQuery::default()
        };
        let read = |query: &AuditQuery| runtime.block_on(w.ledger.audit(query)).expect("a page");
        let whole = read(&audit).rows;
        audit.limit = limit;
        let mut walked = Vec::new();
        loop {
            let page = read(&audit);
            audit.after = page.rows.last().map(|r| r.audit_id);
            walked.extend(page.rows);
            if !page.more {
                break;
            }
            prop_assert!(walked.len() <= whole.len(), "{:?}", audit);
        }
        prop_assert_eq!(walked, whole, "{:?}", audit);
        Ok(())
    };
    runner.run(&asked, holds).expect("the property holds");
}

/// Rows that change between two pages are neither lost nor seen twice, where what the list is sorted by
/// never changes; also where the row that a page ended with has moved to another list.
#[tokio::test]
async fn what_changes_between_two_pages_is_seen_once() {
    for_each_store(async |w| {
        crowd(&w).await;
        for sort in [Sort::Created, Sort::Amount, Sort::Order] {
            for ascending in [false, true] {
                let mut query = PageQuery {
                    sort,
                    ascending,
                    limit: 7,
                    ..PageQuery::default()
                };
                let mut seen = Vec::new();
                loop {
                    let page = w.ledger.page(&query).await.expect("a page");
                    seen.extend(page.rows.iter().map(|r| r.row.id.clone()));
                    query.from = page.next;
                    for row in page.rows.iter().map(|r| &r.row) {
                        w.wait(seconds(1));
                        let first = seen.first().expect("a row");
                        w.decide(first, &ann(), Act::Note).await.expect("noted");
                        // What is not open any more cannot be stopped, and only gets its note.
                        let _ = w.decide(&row.id, &ann(), Act::Stop).await;
                        w.decide(&row.id, &ann(), Act::Note).await.expect("noted");
                    }
                    if !page.more {
                        break;
                    }
                }
                let distinct: BTreeSet<_> = seen.iter().collect();
                assert_eq!(
                    (seen.len(), distinct.len()),
                    (40, 40),
                    "{sort:?} {ascending}"
                );
            }
        }
    })
    .await;
}
