//! Many at once, and callers that leave in the middle: nothing acknowledged is lost, nothing half
//! done stays (F70, F71, F77, M50); the log returns to its bound (L7).

use std::time::Duration;

use samekey::domain::operation::Status;
use samekey::domain::review_event::Act;
use samekey::ledger::{Accepted, CallQuery};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};
use tokio::sync::mpsc;

use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_writers_lose_no_write_and_see_no_busy_error_f77_m50() {
    for_each_store(async |w| {
        let id = w.unknown("t1", "4417", 3800).await;
        let mut writers = Vec::new();
        for n in 0..20 {
            let (ledger, id) = (w.other().await, id.clone());
            writers.push(tokio::spawn(async move {
                for round in 0..5 {
                    let call = new_call(&format!("w{n}_{round}"), "9", 100);
                    let accepted = ledger.accept_call(call).await.expect("no busy error");
                    assert!(matches!(accepted, Accepted::New(_)));
                    let note = decision(&ann(), Act::Note, None);
                    ledger
                        .apply(&id, note)
                        .await
                        .expect("no busy error")
                        .expect("noted");
                }
            }));
        }
        for writer in writers {
            writer.await.expect("wrote");
        }
        let query = CallQuery {
            limit: 1_000,
            ..CallQuery::default()
        };
        assert_eq!(
            w.ledger.calls(&query).await.expect("listed").calls.len(),
            101
        );
        let detail = w.ledger.detail(&id).await.expect("read").expect("there");
        let numbers: Vec<i64> = detail.audit.iter().map(|a| a.seq).collect();
        assert_eq!(
            numbers,
            (1..=103).collect::<Vec<i64>>(),
            "one after the other"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_that_leave_leave_no_transaction_behind_f70_f71() {
    for_each_store(async |w| {
        let (told, mut acknowledged) = mpsc::channel(1_000);
        let mut running = Vec::new();
        for n in 0..200_u64 {
            let (ledger, told) = (w.ledger.clone(), told.clone());
            let task = tokio::spawn(async move {
                let name = format!("t{n}");
                ledger
                    .accept_call(new_call(&name, "4417", 100))
                    .await
                    .expect("accepted");
                told.send(name).await.expect("told");
            });
            // From never begun to long done.
            tokio::time::sleep(Duration::from_micros((n * 7919) % 1500)).await;
            task.abort();
            running.push(task);
        }
        for task in running {
            let _ = task.await;
        }
        drop(told);
        let other = w.other().await;
        let mut names = 0;
        while let Some(name) = acknowledged.recv().await {
            names += 1;
            let call = other
                .call(&agent("agent"), &call_id(&name))
                .await
                .expect("read");
            assert!(call.is_some(), "{name} was acknowledged");
        }
        // The handle goes on, and what it says now is there for everybody.
        let accepted = w.ledger.accept_call(new_call("after", "4417", 100)).await;
        accepted.expect("no transaction was left open");
        let after = other
            .call(&agent("agent"), &call_id("after"))
            .await
            .expect("read");
        assert!(after.is_some(), "after {names} acknowledged calls");
    })
    .await;
}

/// L7, F76: a long reader keeps the log from being cut back and holds up nobody; a while after it left the
/// log is small again. (The while is virtual; the commits are not.)
#[tokio::test]
async fn the_log_is_cut_back_when_the_last_long_reader_left_l7_f76() {
    const BOUND: u64 = 16 << 20;
    let w = World::new(Place::new(Store::Sqlite), terms()).await;
    let log = w.place.dir.path().join("ledger.db-wal");
    let size = || std::fs::metadata(&log).expect("a log").len();
    let plain = async || {
        let options = SqliteConnectOptions::new().filename(w.place.path());
        options.connect().await.expect("a connection")
    };
    let (mut reader, mut filler) = (plain().await, plain().await);
    let run = async |conn: &mut SqliteConnection, sql: &'static str| {
        sqlx::raw_sql(sql).execute(conn).await.expect(sql);
    };
    run(&mut filler, "CREATE TABLE weight (grams BLOB)").await;
    run(&mut reader, "BEGIN; SELECT * FROM operations").await;
    for _ in 0..3 {
        run(
            &mut filler,
            "DELETE FROM weight; INSERT INTO weight VALUES (zeroblob(10000000))",
        )
        .await;
    }
    let mut number = 0;
    let mut pass = async |seconds: u64| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::time::resume();
        number += 1;
        w.accept(&format!("t{number}"), "4417", 100).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    pass(60).await;
    assert!(size() > BOUND, "the reader holds it: {}", size());
    run(&mut reader, "ROLLBACK").await;
    for _ in 0..50 {
        pass(60).await;
        if size() < BOUND / 16 {
            return;
        }
    }
    panic!("the log is still {} bytes", size());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_authorise_that_nobody_waited_for_is_whole_or_not_at_all_i8() {
    for_each_store(async |w| {
        for n in 0..20_u64 {
            let order = format!("order{n}");
            let (call, id) = w.driven(&format!("t{n}"), &order, 100).await;
            let (ledger, of) = (w.ledger.clone(), id.clone());
            let task = tokio::spawn(async move { ledger.authorise(&of, &call).await });
            tokio::time::sleep(Duration::from_micros(n * 150)).await;
            task.abort();
            let _ = task.await;
            // Behind it in the same queue: by now it is done or never will be.
            w.ledger.end_lookup(&id).await.expect("written");
            let op = w.op(&id).await;
            assert_eq!(op.row.attempts as usize, op.attempts.len());
            assert_eq!(op.row.audit_seq, 1 + i64::from(op.row.attempts));
            assert_eq!(op.row.status, Status::Open);
        }
    })
    .await;
}
