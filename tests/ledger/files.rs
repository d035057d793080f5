//! The files of an SQLite ledger: where they may lie, what is refused, what a reader may do.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::ledger::sqlite::{OpenMode, network_name, path};
use samekey::ledger::{LedgerError, SharedLedger};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::common::*;

async fn open(place: &Place, mode: OpenMode) -> Result<SharedLedger, LedgerError> {
    let clock = samekey::clock::Clock::manual(at(0));
    place.try_open(mode, all(terms()), &clock).await
}

async fn refused(place: &Place, mode: OpenMode) -> String {
    match open(place, mode).await {
        Ok(_) => panic!("{mode:?} opened it"),
        Err(error) => error.to_string(),
    }
}

async fn sql(place: &Place, sql: &'static str) {
    let options = SqliteConnectOptions::new()
        .filename(place.path())
        .create_if_missing(true);
    let mut conn = options.connect().await.expect("a connection");
    sqlx::raw_sql(sql).execute(&mut conn).await.expect("done");
    conn.close().await.expect("closed");
}

const ALL: [OpenMode; 4] = [
    OpenMode::Engine,
    OpenMode::Submit,
    OpenMode::Review,
    OpenMode::Read,
];

#[tokio::test]
async fn engines_and_submit_create_a_ledger_readers_do_not() {
    for (mode, creates) in ALL.into_iter().zip([true, true, false, false]) {
        let place = Place::new(Store::Sqlite);
        let opened = open(&place, mode).await;
        assert_eq!(opened.is_ok(), creates, "{mode:?}");
        assert_eq!(place.path().exists(), creates, "{mode:?}");
        if let Err(error) = opened {
            assert!(matches!(error, LedgerError::Unreachable(_)), "{error}");
        }
    }
}

#[tokio::test]
async fn a_missing_directory_is_not_made() {
    let place = Place::new(Store::Sqlite);
    let inside = Place {
        store: Store::Sqlite,
        dir: tempfile::tempdir().expect("a directory"),
    };
    let gone = inside.dir.path().to_path_buf();
    std::fs::remove_dir_all(&gone).expect("removed");
    let why = refused(&inside, OpenMode::Engine).await;
    assert!(why.contains("create it first"), "{why}");
    assert!(!gone.exists());
    drop(place);
}

#[tokio::test]
async fn what_is_no_ledger_is_left_alone() {
    for mode in ALL {
        let text = Place::new(Store::Sqlite);
        std::fs::write(text.path(), "plain text, long enough to be looked at").expect("written");
        assert!(refused(&text, mode).await.contains("is not a ledger"));
        let foreign = Place::new(Store::Sqlite);
        sql(
            &foreign,
            "CREATE TABLE notes (id INTEGER); INSERT INTO notes VALUES (1)",
        )
        .await;
        let before = std::fs::read(foreign.path()).expect("read");
        let why = refused(&foreign, mode).await;
        assert!(why.contains("not a ledger"), "{mode:?}: {why}");
        assert_eq!(std::fs::read(foreign.path()).expect("read"), before);
        let folder = Place::new(Store::Sqlite);
        std::fs::create_dir(folder.path()).expect("made");
        assert!(refused(&folder, mode).await.contains("is not a ledger"));
    }
}

#[tokio::test]
async fn a_newer_ledger_is_refused_f84_i29() {
    let place = Place::new(Store::Sqlite);
    open(&place, OpenMode::Engine)
        .await
        .expect("made")
        .close()
        .await;
    sql(
        &place,
        "INSERT INTO _sqlx_migrations SELECT 999, description, installed_on, success, checksum, execution_time
         FROM _sqlx_migrations WHERE version = 1",
    )
    .await;
    for mode in ALL {
        let why = refused(&place, mode).await;
        assert!(why.contains("newer samekey"), "{mode:?}: {why}");
    }
}

#[tokio::test]
async fn postgres_is_said_not_to_be_there() {
    for location in ["postgres://localhost/x", "postgresql://localhost/x"] {
        let why = path(location).expect_err("refused").to_string();
        assert!(why.contains("sqlite:PATH"), "{why}");
    }
    assert!(path("sqlite:").is_err() && path("").is_err());
    for location in ["sqlite:/a/b.db", "sqlite:///a/b.db", "/a/b.db"] {
        let path = path(location).expect("a path");
        assert_eq!(path, std::path::Path::new("/a/b.db"), "{location}");
    }
}

#[test]
fn file_systems_that_other_machines_share_are_known_f83() {
    for (magic, name) in [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "SMB"),
        (0xfe53_4d42, "SMB"),
        (0x6573_5546, "FUSE"),
        (0x0102_1997, "9p"),
        (0x00c3_6400, "Ceph"),
    ] {
        assert_eq!(network_name(magic), Some(name));
    }
    for (magic, name) in [
        (0xef53, "ext4"),
        (0x9123_683e, "btrfs"),
        (0x5846_5342, "xfs"),
        (0x0102_1994, "tmpfs"),
        (0x794c_7630, "overlayfs"),
        (0x2fc1_2fc1, "zfs"),
    ] {
        assert_eq!(network_name(magic), None, "{name} is local");
    }
}

#[tokio::test]
async fn a_reader_reads_everything_and_writes_nothing() {
    let w = World::new(Place::new(Store::Sqlite), terms()).await;
    let id = w.refunded("t1", "4417", 3800).await;
    let reader = w
        .place
        .try_open(OpenMode::Read, all(terms()), &w.clock)
        .await;
    let reader = reader.expect("opened");
    assert!(reader.detail(&id).await.expect("read").is_some());
    assert!(
        !reader
            .clock_alarm()
            .await
            .expect("the header shows it to readers too")
    );
    w.wait(seconds(60));
    assert!(
        !reader
            .clock_alarm()
            .await
            .expect("also when the mark is old")
    );
    reader.check().await.expect("whole");
    let written = reader.accept_call(new_call("t2", "9", 100)).await;
    assert!(written.is_err());
    assert!(
        w.ledger
            .call(&agent("agent"), &call_id("t2"))
            .await
            .expect("read")
            .is_none()
    );
}

#[tokio::test]
async fn damage_is_named_before_anything_is_sent() {
    let w = World::new(Place::new(Store::Sqlite), terms()).await;
    for n in 0..50 {
        w.refunded(&format!("t{n}"), &n.to_string(), 100).await;
    }
    w.ledger.check().await.expect("whole");
    w.ledger.close().await;
    sql(&w.place, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let mut bytes = std::fs::read(w.place.path()).expect("read");
    for page in bytes.chunks_mut(4096).skip(40).step_by(7) {
        page.fill(0xa5);
    }
    std::fs::write(w.place.path(), bytes).expect("written");
    let ledger = w.other().await;
    let said = ledger.check().await.expect_err("damaged");
    assert!(matches!(said, LedgerError::Damaged(_)), "{said}");
}

/// A ledger whose file is too large to be read whole before the first send.
async fn large() -> World {
    let w = World::new(Place::new(Store::Sqlite), terms()).await;
    for n in 0..40 {
        w.refunded(&format!("t{n}"), &n.to_string(), 100).await;
    }
    w.driven("open", "open", 100).await;
    sql(&w.place, "CREATE TABLE weight (grams BLOB)").await;
    sql(&w.place, "INSERT INTO weight VALUES (zeroblob(80000000))").await;
    w
}

#[tokio::test]
async fn of_a_large_ledger_what_decides_about_sending_is_looked_at_first() {
    let w = large().await;
    w.ledger.check().await.expect("whole");
    for (damage, repair) in [
        (
            "UPDATE tallies SET n = n + 1 WHERE status = 'open'",
            "UPDATE tallies SET n = n - 1 WHERE status = 'open'",
        ),
        (
            "DROP INDEX one_open_order",
            "CREATE UNIQUE INDEX one_open_order ON operations (tool, order_id)
             WHERE status IN ('open', 'unknown') AND provider_ref IS NULL AND order_id IS NOT NULL",
        ),
    ] {
        sql(&w.place, damage).await;
        let said = w.ledger.check().await.expect_err(damage);
        assert!(matches!(said, LedgerError::Damaged(_)), "{said}");
        sql(&w.place, repair).await;
        w.ledger.check().await.expect(repair);
    }
}

#[tokio::test]
async fn damage_of_a_large_ledger_that_is_found_beside_ends_all_writing() {
    let w = large().await;
    let evidence = page_of(&w.place, "evidence").await;
    w.ledger.close().await;
    sql(&w.place, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    let mut bytes = std::fs::read(w.place.path()).expect("read");
    let page = bytes.chunks_mut(4096).nth(evidence - 1).expect("a page");
    page.fill(0xa5);
    std::fs::write(w.place.path(), bytes).expect("written");
    let ledger = w.other().await;
    let mut changed = ledger.changed();
    ledger.check().await.expect("what decides is whole");
    let written = ledger.accept_call(new_call("before", "1", 100)).await;
    written.expect("it is not known yet");
    let found = async {
        while ledger.check().await.is_ok() {
            changed.changed().await.expect("alive");
        }
    };
    let in_time = tokio::time::timeout(seconds(60), found).await;
    in_time.expect("found in time");
    let written = ledger.accept_call(new_call("after", "2", 100)).await;
    assert!(
        matches!(written, Err(LedgerError::Damaged(_))),
        "{written:?}"
    );
}

/// The number of the first page of a table.
async fn page_of(place: &Place, table: &str) -> usize {
    let options = SqliteConnectOptions::new().filename(place.path());
    let mut conn = options.connect().await.expect("a connection");
    let page = sqlx::query_scalar("SELECT rootpage FROM sqlite_schema WHERE name = ?").bind(table);
    let page: i64 = page.fetch_one(&mut conn).await.expect("a page");
    usize::try_from(page).expect("a number")
}

#[tokio::test]
async fn a_creation_that_died_halfway_is_no_obstacle() {
    let place = Place::new(Store::Sqlite);
    // As a killed creator leaves it: its lock file, and whatever it had begun beside the ledger.
    std::fs::write(place.dir.path().join("ledger.db.lock"), "").expect("written");
    std::fs::write(place.dir.path().join("ledger.db.new"), "half a database").expect("written");
    std::fs::write(place.path(), "").expect("written");
    let ledger = open(&place, OpenMode::Engine).await.expect("opened");
    ledger
        .accept_call(new_call("t1", "4417", 100))
        .await
        .expect("accepted");
    assert!(!place.dir.path().join("ledger.db.new").exists());
}

/// A ledger as the first released schema made it, with one row and its evidence.
const FIRST_RELEASE: &str = "PRAGMA application_id = 1935764843;
    BEGIN;
    INSERT INTO operations (operation_id, tool, identity, order_id, amount_cents, currency, provider, payment,
        status, effect, held, idempotency_key, request, request_hash, attempts, attempts_max, key_created_at,
        version, corrections, audit_seq, created_at, updated_at)
    VALUES ('op_1', 'issue_refund', '{}', '1', 100, 'usd', 'stripe', 'pi_1', 'open', 'not_started', 0,
        '00000000-0000-4000-8000-000000000001', X'00', printf('%064d', 0), 0, 6, 1, 1, 0, 1, 1, 1);
    INSERT INTO audit (operation_id, seq, at, actor, os_user, action, detail, hash)
    VALUES ('op_1', 1, 1, 'engine', 'root', 'opened', '{}', printf('%064d', 0));
    INSERT INTO evidence (operation_id, source, kind, payload, observed_at)
    VALUES ('op_1', 'review_lookup', 'unreachable', '{\"kind\":\"unreachable\",\"why\":\"down\"}', 5),
           ('op_1', 'webhook', 'scan', '{\"kind\":\"scan\",\"began_at\":\"2026-01-01T00:00:00Z\",\"complete\":true}', 6);
    COMMIT;";

/// I29, F74: an upgrade keeps what was seen, in order, and its guards.
#[tokio::test]
async fn an_upgraded_ledger_keeps_its_evidence() {
    let place = Place::new(Store::Sqlite);
    let first = place.dir.path().join("first");
    std::fs::create_dir(&first).expect("a folder");
    let name = "0001_create_ledger.sql";
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    std::fs::copy(source.join(name), first.join(name)).expect("copied");
    let options = SqliteConnectOptions::new()
        .filename(place.path())
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
        .create_if_missing(true);
    let mut conn = options.connect().await.expect("a connection");
    let migrator = sqlx::migrate::Migrator::new(first).await.expect("one");
    migrator
        .run_direct(None, &mut conn, false)
        .await
        .expect("the first schema");
    conn.close().await.expect("closed");
    sql(&place, FIRST_RELEASE).await;

    let ledger = open(&place, OpenMode::Engine).await.expect("upgraded");
    let id = "op_1".parse().expect("an id");
    let detail = ledger.detail(&id).await.expect("read").expect("there");
    let kinds: Vec<_> = detail.op.evidence.iter().map(|e| e.seen.kind()).collect();
    assert_eq!(kinds, ["unreachable", "scan"]);
    ledger.check().await.expect("no guard is missing");
    ledger.close().await;

    let mut conn = SqliteConnectOptions::new()
        .filename(place.path())
        .connect()
        .await
        .expect("a connection");
    let insert = "INSERT INTO evidence (operation_id, source, kind, payload, observed_at)
                  VALUES ('op_1', 'attempt', ?, '{}', 7)";
    for (kind, taken) in [("reply", true), ("rumour", false)] {
        let done = sqlx::query(insert).bind(kind).execute(&mut conn).await;
        assert_eq!(done.is_ok(), taken, "{kind}: {done:?}");
    }
    for refused in [
        "DELETE FROM evidence",
        "UPDATE evidence SET observed_at = 1",
    ] {
        let done = sqlx::query(refused).execute(&mut conn).await;
        assert!(done.is_err(), "{refused}");
    }
    let report = samekey::ledger::verify::verify(&place.path()).await;
    let schema: Vec<_> = report
        .expect("a report")
        .violations
        .into_iter()
        .filter(|v| v.rule == "schema" && v.operation.is_none())
        .collect();
    assert!(schema.is_empty(), "{schema:#?}");
}
