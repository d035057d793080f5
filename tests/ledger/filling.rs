//! A ledger filled in bulk is the one that the doors would have made, to the last column.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use std::path::Path;
use std::sync::Arc;

use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::transition::Event;
use samekey::ledger::sqlite::{Past, Times, fill};
use samekey::ledger::verify::verify_at;
use samekey::ledger::{LeasedCall, LedgerError, Opening};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection};

use crate::common::*;

/// One call of each ending, each two minutes after the one before.
fn stories() -> Vec<Past> {
    let endings: [fn(&Past) -> Outcome; 5] = [
        |p| done(p),
        |_| refused(),
        |_| server_error(),
        |_| lost(),
        |_| limited(),
    ];
    told(endings.into_iter())
}

/// So many refused calls, on orders `order0`, `order1` …
pub fn refused_calls(n: usize) -> Vec<Past> {
    let ending: fn(&Past) -> Outcome = |_| refused();
    told(std::iter::repeat_n(ending, n))
}

fn told(endings: impl Iterator<Item = fn(&Past) -> Outcome>) -> Vec<Past> {
    (0_u64..)
        .zip(endings)
        .map(|(n, ending)| {
            let ms = |ms| at(0) + chrono::TimeDelta::milliseconds(ms) + seconds(n * 120);
            let leased = LeasedCall {
                call: call(&format!("call{n}"), &format!("order{n}")),
                engine: engine(1),
                epoch: 1,
                leased_at: at(0),
            };
            let mut past = Past {
                call: new_call(&format!("call{n}"), &format!("order{n}"), 1_000),
                engine: engine(1),
                row: open_row(&leased, String::new()),
                outcome: lost(),
                at: Times {
                    accepted: ms(0),
                    begun: ms(3),
                    opened: ms(20),
                    authorised: ms(24),
                    finished: ms(300),
                    executed: ms(302),
                    delivered: ms(310),
                },
            };
            past.outcome = ending(&past);
            past
        })
        .collect()
}

fn call(id: &str, order: &str) -> samekey::domain::tool_call::ToolCall {
    let new = new_call(id, order, 1_000);
    samekey::domain::tool_call::ToolCall {
        id: new.id,
        agent: new.agent,
        tool: new.tool,
        arguments: new.arguments,
        arguments_hash: String::new(),
        session: new.session,
        operation: None,
        state: samekey::domain::tool_call::CallState::Queued,
        result: None,
        accepted_at: at(0),
        begun_at: None,
        executed_at: None,
        delivered_at: None,
        delivery: samekey::domain::tool_call::Delivery::Pending,
    }
}

fn done(past: &Past) -> Outcome {
    let object = samekey::domain::evidence::ProviderObject {
        id: "re_done".parse().expect("an id"),
        operation: Some(past.row.id.clone()),
        payment: Some(
            past.row
                .resolved
                .as_ref()
                .expect("resolved")
                .payment
                .clone(),
        ),
        charge: None,
        amount_minor: Some(1_000),
        currency: Some(usd()),
        status: samekey::domain::evidence::ObjectStatus::Succeeded,
        created_at: past.at.finished,
        failure_reason: None,
    };
    with_object(OutcomeClass::Succeeded, object)
}

/// The same story through the ledger's doors, each step at its time.
async fn through_the_doors(w: &World, past: &Past) {
    let until = |at: samekey::domain::Instant| {
        let left = at.signed_duration_since(w.clock.now());
        w.wait(left.to_std().expect("forward"));
    };
    until(past.at.accepted);
    let accepted = w.ledger.accept_call(past.call.clone()).await;
    accepted.expect("accepted");
    until(past.at.begun);
    let leased = w.hand().lease(past.call.id.as_str()).await.expect("free");
    until(past.at.opened);
    let mut row = past.row.clone();
    row.mark = w.hand().mark(&leased).await;
    let opened = w.ledger.open(&leased, row).await.expect("a ledger");
    assert!(matches!(opened, Opening::Opened(_)), "{opened:?}");
    w.drive(&past.row.id, &leased).await;
    until(past.at.authorised);
    w.authorise(&past.row.id, &leased)
        .await
        .expect("authorised");
    until(past.at.finished);
    let event = Event::Finished {
        attempt: 1,
        outcome: past.outcome.clone(),
        taken: false,
    };
    w.apply(&past.row.id, event).await.expect("recorded");
    until(past.at.executed);
    let finished = w.ledger.finish_call(&leased).await.expect("a ledger");
    finished.expect("the lease holds");
    until(past.at.delivered);
    let (agent, id) = (&past.call.agent, &past.call.id);
    w.ledger.delivered(agent, id).await.expect("delivered");
}

const TABLES: [&str; 9] = [
    "operations",
    "attempts",
    "evidence",
    "provider_objects",
    "audit",
    "tool_calls",
    "drives",
    "notices",
    "tallies",
];

async fn raw(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path);
    options.connect().await.expect("a connection")
}

/// Every row of a table, every column of it.
async fn dump(conn: &mut SqliteConnection, table: &str) -> Vec<String> {
    let columns =
        "SELECT group_concat('''' || name || '=''||quote(\"' || name || '\")', '|| '' ''||')
                   FROM pragma_table_info(?)";
    let columns: String = sqlx::query_scalar(columns)
        .bind(table)
        .fetch_one(&mut *conn)
        .await
        .expect("columns");
    let sql = format!("SELECT {columns} FROM {table} ORDER BY rowid");
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_all(conn)
        .await
        .expect("rows")
}

#[tokio::test]
async fn what_is_filled_in_is_what_the_doors_would_have_made() {
    let stories = stories();
    let w = World::new(Place::new(Store::Sqlite), terms()).await;
    for past in &stories {
        through_the_doors(&w, past).await;
    }
    w.ledger.close().await;
    let place = Place::new(Store::Sqlite);
    let rows = stories.clone().into_iter().map(Ok);
    let filled = fill(&place.path(), Arc::clone(&w.terms), rows).await;
    assert_eq!(filled.expect("filled"), 5);
    let mut there = raw(&w.place.path()).await;
    let mut here = raw(&place.path()).await;
    for table in TABLES {
        let (wanted, found) = (dump(&mut there, table).await, dump(&mut here, table).await);
        assert!(!wanted.is_empty() || table == "drives", "{table}");
        assert_eq!(found, wanted, "{table}");
    }
    let report = verify_at(&place.path(), w.clock.now()).await;
    assert_eq!(report.expect("a report").violations, []);
}

/// L5, M6: what is filled in is looked after as if an engine had run all the time: overdue first looks one after
/// another, unknown rows first, closed ones on the next of their days.
#[tokio::test]
async fn what_is_filled_in_is_looked_after_without_all_being_due_at_once_l5_m6() {
    let mut old = told((0..40_u32).map(|n| {
        let ending: [fn(&Past) -> Outcome; 3] = [|_| lost(), |_| server_error(), |_| refused()];
        ending[n as usize % 3]
    }));
    // Every fourth row is two days younger than the one before.
    let days = |n: usize| seconds(u64::try_from(n).expect("few") / 4 * 2 * 86_400);
    for (n, past) in old.iter_mut().enumerate() {
        let at = &mut past.at;
        for at in [
            &mut at.accepted,
            &mut at.begun,
            &mut at.opened,
            &mut at.authorised,
            &mut at.finished,
            &mut at.executed,
            &mut at.delivered,
        ] {
            *at += days(n);
        }
    }
    let place = Place::new(Store::Sqlite);
    let filled = fill(&place.path(), all(terms()), old.into_iter().map(Ok)).await;
    assert_eq!(filled.expect("filled"), 40);
    let mut conn = raw(&place.path()).await;
    let now = "(SELECT max(updated_at) FROM operations)";
    let count = async |conn: &mut SqliteConnection, what: &str| {
        let sql = format!(
            "SELECT count(*) FROM watched w JOIN operations o USING (operation_id) WHERE {what}"
        );
        let n: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_one(conn)
            .await
            .expect("a count");
        n
    };
    assert_eq!(
        count(&mut conn, &format!("next_at <= {now}")).await,
        0,
        "nothing is overdue"
    );
    let unsettled = "urgency < 2";
    let open = count(&mut conn, "status IN ('open', 'unknown')").await;
    assert_eq!(count(&mut conn, unsettled).await, open);
    let soon = format!("{unsettled} AND next_at <= {now} + 400000 * {open}");
    assert!(
        count(&mut conn, &soon).await >= open - 1,
        "but the youngest"
    );
    let last = "status = 'open' AND next_at < (SELECT max(next_at) FROM watched WHERE urgency = 0 AND looks = 0)";
    assert!(count(&mut conn, last).await <= 1, "unknown rows come first");
    let days = "urgency = 2 AND (next_at - closed_at) / 86400000000 NOT IN (1, 2, 4, 8, 16, 30)";
    assert_eq!(count(&mut conn, days).await, 0, "M6");
    let report = verify_at(&place.path(), at(0) + seconds(40 * 86_400)).await;
    assert_eq!(report.expect("a report").violations, []);
}

#[tokio::test]
async fn filling_never_touches_a_ledger_that_is_there() {
    let w = World::new(Place::new(Store::Sqlite), terms()).await;
    w.refunded("t1", "4417", 3800).await;
    let rows = stories().into_iter().map(Ok);
    let refused = fill(&w.place.path(), Arc::clone(&w.terms), rows).await;
    assert!(matches!(refused, Err(LedgerError::Unreachable(_))));
    assert_eq!(w.ledger.counts().await.expect("counted").all(), 1);
}

#[tokio::test]
async fn two_rows_of_one_key_are_noticed_where_the_index_is_put_back() {
    let mut twice = stories();
    let key = twice[0].row.key.clone();
    let last = twice.last_mut().expect("a story");
    last.row.key = key;
    let place = Place::new(Store::Sqlite);
    let filled = fill(&place.path(), all(terms()), twice.into_iter().map(Ok)).await;
    assert!(
        matches!(filled, Err(LedgerError::Constraint(_))),
        "{filled:?}"
    );
    assert!(!place.path().exists(), "nobody finds half a ledger");
}
