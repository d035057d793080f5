//! `verify`: an honest ledger has no violation; each damage is named with its operation and rule;
//! with the guards of the schema in place none of the damages can be done by SQL, and each guard is needed
//! for something (`alone`).

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "the builders of a test may fail it"
)]

mod alone;
mod cases;
mod checks;
#[path = "../common/ledger.rs"]
mod common;
mod damage;
mod guards;
mod honest;

use std::path::{Path, PathBuf};

use common::{Place, Store, World};
use samekey::domain::Instant;
use samekey::ledger::verify::{Report, verify_at};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};
use tokio::sync::OnceCell;

/// The file with every kind of story in it, made once, and when it was made.
static TOLD: OnceCell<(Vec<u8>, Instant)> = OnceCell::const_new();

async fn told() -> (Vec<u8>, Instant) {
    let world = World::new(Place::new(Store::Sqlite), honest::terms()).await;
    honest::stories(&world).await;
    world.ledger.close().await;
    let path = world.place.path();
    let mut conn = raw(&path).await;
    let whole = run(&mut conn, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    whole.expect("a checkpoint");
    conn.close().await.expect("closed");
    (std::fs::read(path).expect("a file"), world.clock.now())
}

/// A ledger with every kind of story in it, at rest.
struct Fixture {
    place: Place,
    path: PathBuf,
    now: Instant,
}

impl Fixture {
    async fn new() -> Self {
        let (bytes, now) = TOLD.get_or_init(told).await;
        let place = Place::new(Store::Sqlite);
        let path = place.path();
        std::fs::write(&path, bytes).expect("written");
        let now = *now;
        Self { place, path, now }
    }

    async fn verify(&self) -> Report {
        let report = verify_at(&self.path, self.now).await;
        report.expect("a report")
    }

    /// The operation of an order (the first, where there are several).
    async fn operation(&self, order: &str) -> String {
        let mut conn = raw(&self.path).await;
        let sql = "SELECT operation_id FROM operations WHERE order_id = ? ORDER BY created_at";
        let id = sqlx::query_scalar(sql)
            .bind(order)
            .fetch_one(&mut conn)
            .await;
        id.expect("an operation of the order")
    }
}

/// A plain connection, as any SQL client has it.
async fn raw(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false)
        .disable_statement_logging();
    options.connect().await.expect("a connection")
}

async fn run(conn: &mut SqliteConnection, sql: &str) -> Result<(), String> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(conn)
        .await;
    done.map(drop).map_err(|e| e.to_string())
}

/// Changes the ledger past its guards, and puts them back as they were.
async fn damage(path: &Path, sql: &str) {
    let mut conn = raw(path).await;
    let guards = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'
                  OR (type = 'index' AND sql LIKE 'CREATE UNIQUE%')";
    let guards: Vec<(String, String)> = sqlx::query_as(guards)
        .fetch_all(&mut conn)
        .await
        .expect("the guards");
    for (name, sql) in &guards {
        let kind = if sql.starts_with("CREATE TRIGGER") {
            "TRIGGER"
        } else {
            "INDEX"
        };
        let dropped = run(&mut conn, &format!("DROP {kind} {name}")).await;
        dropped.expect("dropped");
    }
    run(&mut conn, "PRAGMA ignore_check_constraints = ON")
        .await
        .expect("a pragma");
    run(&mut conn, sql).await.expect("damaged");
    if !sql.contains("tallies") {
        // Whoever gets past the guards sees that the counts still fit.
        let counted = "UPDATE tallies SET n = (SELECT count(*) FROM operations o WHERE o.status = tallies.status)";
        run(&mut conn, counted).await.expect("counted");
    }
    if !sql.contains("attempt_times") {
        let timed = "DELETE FROM attempt_times; INSERT INTO attempt_times
            SELECT o.provider, a.outcome, 50, count(*), 0 FROM attempts a JOIN operations o USING (operation_id)
            WHERE a.finished_at IS NOT NULL GROUP BY o.provider, a.outcome";
        run(&mut conn, timed).await.expect("timed");
    }
    for (_, sql) in &guards {
        // A unique index over what is there twice cannot be made again; that is a finding of its own.
        let made = run(&mut conn, sql).await;
        assert!(made.is_ok() || sql.contains("UNIQUE INDEX"), "{made:?}");
    }
    conn.close().await.expect("closed");
}
