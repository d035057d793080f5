//! A ledger of the third release, with events in it and rows that are looked after, under the fourth.

use samekey::ledger::SharedLedger;
use samekey::ledger::sqlite::OpenMode;
use samekey::ledger::verify::verify_at;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use crate::common::*;

async fn raw(place: &Place) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(place.path());
    options.connect().await.expect("a connection")
}

/// As the first three migrations left it.
async fn third_release(place: &Place) -> SqliteConnection {
    let first = place.dir.path().join("released");
    std::fs::create_dir(&first).expect("a folder");
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    for name in [
        "0001_create_ledger.sql",
        "0002_add_desk.sql",
        "0003_add_events.sql",
    ] {
        std::fs::copy(source.join(name), first.join(name)).expect("copied");
    }
    let options = SqliteConnectOptions::new()
        .filename(place.path())
        .journal_mode(SqliteJournalMode::Wal)
        .create_if_missing(true);
    let mut conn = options.connect().await.expect("a connection");
    let migrator = sqlx::migrate::Migrator::new(first).await.expect("three");
    let done = migrator.run_direct(None, &mut conn, false).await;
    done.expect("the third schema");
    let id = "PRAGMA application_id = 1935764843";
    sqlx::query(id).execute(&mut conn).await.expect("a ledger");
    conn
}

/// An event for each state.
const EVENTS: &str = "INSERT INTO provider_events (event_id, provider, type, object_id, digest, source, payload, created_at, received_at, next_at)
    VALUES ('evt_1', 'stripe', 'refund.created', 're_1', printf('%064d', 1), 'webhook', x'7b', 5, 10, 10),
           ('evt_2', 'stripe', 'refund.failed', 're_2', printf('%064d', 2), 'listing', x'7b', 6, 11, 11),
           ('evt_3', 'stripe', 'unreadable', NULL, printf('%064d', 3), 'webhook', x'7b', NULL, 12, 12),
           ('evt_4', 'stripe', 'refund.created', 're_4', printf('%064d', 4), 'webhook', x'7b', 7, 13, 13);
    UPDATE provider_events SET state = 'waiting', reason = 'down', tries = 2, next_at = 99 WHERE event_id = 'evt_2';
    UPDATE provider_events SET state = 'quarantined', reason = 'unreadable', settled_at = 20, tries = 1 WHERE event_id = 'evt_3';
    UPDATE provider_events SET state = 'ignored', reason = 'not_ours', settled_at = 21, tries = 1, payload = x'' WHERE event_id = 'evt_4';
    INSERT INTO event_readings VALUES ('stripe', 1000, 1001, 'it was down')";

async fn text(conn: &mut SqliteConnection, sql: &'static str) -> Vec<String> {
    let all = sqlx::query_scalar(sql).fetch_all(conn).await;
    all.expect("text")
}

const OF_OLD: &str = "SELECT concat_ws('|', event_no, event_id, provider, type, coalesce(object_id, '-'), digest, source,
        hex(payload), coalesce(created_at, '-'), received_at, state, coalesce(reason, '-'), tries, next_at, coalesce(settled_at, '-'))
    FROM provider_events ORDER BY event_no";

/// F74, I29: every event is there as it was, with its number; guards, indexes, counts and the readings too.
#[tokio::test]
async fn events_of_the_third_release_are_kept_f74_i29() {
    let place = Place::new(Store::Sqlite);
    let mut conn = third_release(&place).await;
    sqlx::raw_sql(EVENTS)
        .execute(&mut conn)
        .await
        .expect("events");
    let before = text(&mut conn, OF_OLD).await;
    conn.close().await.expect("closed");

    let clock = samekey::clock::Clock::manual(at(0));
    let opened = place.try_open(OpenMode::Engine, all(terms()), &clock).await;
    let ledger: SharedLedger = opened.expect("upgraded");
    let counts = ledger.recovery().event_counts().await.expect("counts");
    assert_eq!(
        (
            counts.received,
            counts.waiting,
            counts.quarantined,
            counts.ignored,
            counts.acknowledged
        ),
        (1, 1, 1, 1, 0)
    );
    assert_eq!(counts.troubles.len(), 1);
    let (id, by, note) = ("evt_3".parse().expect("an id"), ann().name, "seen".into());
    let seen = ledger.recovery().acknowledge_event(&id, None, &by, &note);
    seen.await.expect("answered").expect("it was set aside");
    ledger.close().await;

    let mut conn = raw(&place).await;
    let after = text(&mut conn, OF_OLD).await;
    let mut wanted = before;
    wanted[2] = wanted[2].replace("quarantined", "acknowledged");
    assert_eq!(after, wanted);
    let next = "INSERT INTO provider_events (event_id, provider, type, digest, source, payload, received_at, next_at)
                VALUES ('evt_1', ?, 'refund.created', printf('%064d', 9), 'webhook', x'7b', 30, 30) RETURNING event_no";
    let again = sqlx::query(next).bind("stripe").execute(&mut conn).await;
    assert!(again.is_err(), "once for each provider");
    let number: i64 = sqlx::query_scalar(next)
        .bind("other")
        .fetch_one(&mut conn)
        .await
        .expect("another's");
    assert_eq!(number, 5, "numbers go on");
    assert!(
        sqlx::query("DELETE FROM provider_events")
            .execute(&mut conn)
            .await
            .is_err()
    );
    conn.close().await.expect("closed");
    let report = verify_at(&place.path(), at(0)).await.expect("a report");
    assert_eq!(report.violations, []);
}

/// So many rows that were sent, `unknown` or `open`, and watched since long ago; one was closed three days ago.
fn rows(conn_sql: &mut String) {
    let row = |n: u32, status: &str, more: (&str, &str)| {
        format!(
            "INSERT INTO operations (operation_id, tool, identity, order_id, amount_cents, currency, provider, payment,
                status, effect, held, idempotency_key, request, request_hash, attempts, attempts_max, key_created_at,
                key_expires_at, first_authorised_at, last_authorised_at, version, corrections, audit_seq, created_at, updated_at{})
             VALUES ('op_{n:04}', 'issue_refund', '{{\"n\":{n}}}', '{n}', 100, 'usd', 'stripe', 'pi_{n}', '{status}', 'possible', 0,
                'key-{n}', X'00', printf('%064d', 0), 1, 6, 1, 9, 2, 2, 2, 0, 2, 1, 5{});
             INSERT INTO watched (operation_id, next_at) VALUES ('op_{n:04}', 5);",
            more.0, more.1
        )
    };
    conn_sql.push_str("BEGIN; DROP TRIGGER operations_start_open; PRAGMA defer_foreign_keys = ON;");
    for n in 0..50 {
        conn_sql.push_str(&row(n, "open", ("", "")));
        let unknown = (", reason, unknown_at", ", 'stopped', 5");
        conn_sql.push_str(&row(n + 100, "unknown", unknown));
    }
}

/// L5: first looks that are overdue are spread over the time that they take, unknown rows first.
#[tokio::test]
async fn overdue_first_looks_are_spread_when_a_ledger_is_upgraded_l5() {
    let place = Place::new(Store::Sqlite);
    let mut conn = third_release(&place).await;
    let trigger = "SELECT sql FROM sqlite_schema WHERE name LIKE 'operations_start%'";
    let trigger = text(&mut conn, trigger).await.remove(0);
    let name = trigger
        .split_whitespace()
        .nth(2)
        .expect("a name")
        .to_owned();
    let mut sql = String::new();
    rows(&mut sql);
    let sql = sql
        .replace("operations_start_open", &name)
        .replace("BEGIN;", "PRAGMA foreign_keys = OFF; BEGIN;");
    let sql = format!(
        "{sql} INSERT INTO meta (name, value) VALUES ('clock_mark', 1000000); COMMIT; {trigger};"
    );
    let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(&mut conn)
        .await;
    done.expect("rows");
    conn.close().await.expect("closed");
    let clock = samekey::clock::Clock::manual(at(0));
    let opened = place.try_open(OpenMode::Engine, all(terms()), &clock).await;
    opened.expect("upgraded").close().await;
    let mut conn = raw(&place).await;
    let schedule = "SELECT concat_ws(' ', urgency, next_at) FROM watched ORDER BY next_at";
    let schedule = text(&mut conn, schedule).await;
    let wanted = (1..=100).map(|n| format!("{} {}", u32::from(n > 50), 1_000_000 + n * 400_000));
    assert_eq!(schedule, wanted.collect::<Vec<_>>());
}
