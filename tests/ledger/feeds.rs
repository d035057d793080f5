//! Reading tool calls and audit entries of the whole ledger: by keyset, in both directions, whatever
//! the filter.

use samekey::domain::ids::OperationId;
use samekey::domain::review_event::Act;
use samekey::domain::tool_call::{CallState, Delivery};
use samekey::ledger::{AuditQuery, CallQuery};

use crate::common::*;

/// Calls in every state, some of them in the same instant.
async fn busy(w: &World) -> OperationId {
    w.refunded("done", "1", 100).await;
    let unknown = w.unknown("lost", "2", 200).await;
    w.ledger
        .delivered(&agent("agent"), &call_id("done"))
        .await
        .expect("delivered");
    for n in 0..5 {
        w.accept(&format!("wait{n}"), "3", 300 + n).await;
    }
    w.wait(seconds(1));
    w.leased("running", "4", 400).await;
    w.decide(&unknown, &ann(), Act::Note).await.expect("noted");
    unknown
}

/// All ids in pages of two.
async fn walk_calls(w: &World, query: &CallQuery) -> Vec<String> {
    let mut query = CallQuery {
        limit: 2,
        ..query.clone()
    };
    let mut all = Vec::new();
    loop {
        let page = w.ledger.calls(&query).await.expect("a page");
        all.extend(page.calls.iter().map(|c| c.id.to_string()));
        let last = page.calls.last().map(|c| (c.agent.clone(), c.id.clone()));
        if !page.more {
            return all;
        }
        query.after = last;
    }
}

#[tokio::test]
async fn calls_are_walked_once_in_order_in_both_directions() {
    for_each_store(async |w| {
        busy(&w).await;
        let filters = [
            CallQuery::default(),
            CallQuery {
                state: Some(CallState::Queued),
                ..CallQuery::default()
            },
            CallQuery {
                state: Some(CallState::Answered),
                delivery: Some(Delivery::Delivered),
                ..CallQuery::default()
            },
            CallQuery {
                delivery: Some(Delivery::Pending),
                ..CallQuery::default()
            },
            CallQuery {
                session: Some("conversation".parse().expect("a session")),
                tool: Some(tool()),
                ..CallQuery::default()
            },
            CallQuery {
                order: Some(order("2")),
                ..CallQuery::default()
            },
        ];
        let wanted: [&[&str]; 6] = [
            &[
                "running", "wait4", "wait3", "wait2", "wait1", "wait0", "lost", "done",
            ],
            &["wait4", "wait3", "wait2", "wait1", "wait0"],
            &["done"],
            &[
                "running", "wait4", "wait3", "wait2", "wait1", "wait0", "lost",
            ],
            &[
                "running", "wait4", "wait3", "wait2", "wait1", "wait0", "lost", "done",
            ],
            &["lost"],
        ];
        for (query, wanted) in filters.iter().zip(wanted) {
            let down = walk_calls(&w, query).await;
            assert_eq!(down, wanted, "{query:?}");
            let ascending = CallQuery {
                ascending: true,
                ..query.clone()
            };
            let mut up = walk_calls(&w, &ascending).await;
            up.reverse();
            assert_eq!(up, wanted, "{query:?}");
        }
        let nowhere = CallQuery {
            after: Some((agent("agent"), call_id("never"))),
            limit: 9,
            ..CallQuery::default()
        };
        let page = w.ledger.calls(&nowhere).await.expect("a page");
        assert!(page.calls.is_empty() && !page.more);
    })
    .await;
}

#[tokio::test]
async fn calls_are_read_again_by_their_ids() {
    for_each_store(async |w| {
        busy(&w).await;
        let ids = ["lost", "never", "wait3"].map(|id| (agent("agent"), call_id(id)));
        let calls = w.ledger.calls_of(&ids).await.expect("read");
        let ids: Vec<_> = calls.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, ["lost", "wait3"]);
    })
    .await;
}

#[tokio::test]
async fn the_audit_is_walked_once_in_order_in_both_directions_i23() {
    for_each_store(async |w| {
        let unknown = busy(&w).await;
        let everything = AuditQuery::default();
        let filters = [
            everything.clone(),
            AuditQuery {
                operation: Some(unknown.clone()),
                ..everything.clone()
            },
            AuditQuery {
                actor: Some("reviewer:ann".into()),
                ..everything.clone()
            },
            AuditQuery {
                actor: Some("engine".into()),
                action: Some("finished".into()),
                ..everything.clone()
            },
            AuditQuery {
                action: Some("noted".into()),
                ..everything.clone()
            },
        ];
        for (query, count) in filters.iter().zip([7, 4, 1, 2, 1]) {
            let mut both = Vec::new();
            for ascending in [false, true] {
                let mut query = AuditQuery {
                    ascending,
                    limit: 2,
                    ..query.clone()
                };
                let mut ids = Vec::new();
                loop {
                    let page = w.ledger.audit(&query).await.expect("a page");
                    ids.extend(page.rows.iter().map(|r| r.audit_id));
                    query.after = page.rows.last().map(|r| r.audit_id);
                    if !page.more {
                        break;
                    }
                }
                both.push(ids);
            }
            let [down, up] = both.try_into().expect("two directions");
            assert!(down.is_sorted_by(|a, b| a > b), "{query:?}: {down:?}");
            assert_eq!(down.len(), count, "{query:?}");
            assert_eq!(down, up.into_iter().rev().collect::<Vec<_>>());
        }
    })
    .await;
}
