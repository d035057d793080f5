//! A ledger as it lies there, read past samekey by plain SQL.

use std::path::Path;

use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, SqliteConnection};

/// One row.
#[derive(Clone, Debug)]
pub struct Op {
    pub id: String,
    pub order: String,
    pub amount: i64,
    pub key: String,
    pub status: String,
    pub reason: Option<String>,
    pub attempts: i64,
    pub provider_ref: Option<String>,
    /// The stored request's body.
    pub body: String,
    /// Microseconds.
    pub key_expires_at: Option<i64>,
    pub unknown_at: Option<i64>,
}

/// One accepted call.
#[derive(Clone, Debug)]
pub struct Call {
    pub id: String,
    pub tool: String,
    pub result: Option<Value>,
}

/// Everything that is judged.
#[derive(Clone, Debug, Default)]
pub struct Books {
    pub ops: Vec<Op>,
    pub calls: Vec<Call>,
    /// Attempts without an outcome.
    pub in_flight: i64,
}

impl Books {
    /// Every call has its answer and nothing is in flight.
    pub fn are_quiet(&self) -> bool {
        let waiting = |c: &&Call| c.tool == "issue_refund" && c.result.is_none();
        self.in_flight == 0 && self.calls.iter().find(waiting).is_none()
    }

    /// The only row.
    pub fn only(&self) -> &Op {
        assert_eq!(self.ops.len(), 1, "{:#?}", self.ops);
        &self.ops[0]
    }

    pub fn call(&self, id: &str) -> Option<&Call> {
        self.calls.iter().find(|c| c.id == id)
    }
}

pub fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// What the ledger holds now; nothing where it cannot be read (yet).
pub fn read(path: &Path) -> Result<Books, sqlx::Error> {
    block(async {
        let mut conn = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .disable_statement_logging()
            .connect()
            .await?;
        let books = books(&mut conn).await;
        conn.close().await?;
        books
    })
}

async fn books(conn: &mut SqliteConnection) -> Result<Books, sqlx::Error> {
    // One snapshot for all of it.
    let mut tx = conn.begin().await?;
    let mut books = Books::default();
    let rows = sqlx::query("SELECT * FROM operations ORDER BY created_at").fetch_all(&mut *tx);
    for row in rows.await? {
        let request: Vec<u8> = row.get("request");
        let request = String::from_utf8(request).expect("text");
        books.ops.push(Op {
            id: row.get("operation_id"),
            order: row.get("order_id"),
            amount: row.get("amount_cents"),
            key: row.get("idempotency_key"),
            status: row.get("status"),
            reason: row.get("reason"),
            attempts: row.get("attempts"),
            provider_ref: row.get("provider_ref"),
            body: request.split_once("\n\n").expect("a body").1.to_owned(),
            key_expires_at: row.get("key_expires_at"),
            unknown_at: row.get("unknown_at"),
        });
    }
    let rows = sqlx::query("SELECT * FROM tool_calls ORDER BY accepted_at").fetch_all(&mut *tx);
    for row in rows.await? {
        let result: Option<String> = row.get("result");
        books.calls.push(Call {
            id: row.get("call_id"),
            tool: row.get("tool"),
            result: result.map(|r| serde_json::from_str(&r).expect("JSON")),
        });
    }
    let open = "SELECT count(*) FROM attempts WHERE finished_at IS NULL";
    books.in_flight = sqlx::query_scalar(open).fetch_one(&mut *tx).await?;
    Ok(books)
}

/// A ledger as the first release made it: its schema alone.
pub fn make_old(path: &Path) {
    let dir = path.parent().expect("a directory");
    let first = dir.join("first-schema");
    std::fs::create_dir_all(&first).expect("made");
    let name = "0001_create_ledger.sql";
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    std::fs::copy(from.join(name), first.join(name)).expect("copied");
    block(async {
        let mut conn = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .create_if_missing(true)
            .connect()
            .await
            .expect("opened");
        let migrator = sqlx::migrate::Migrator::new(first).await.expect("one");
        let made = migrator.run_direct(None, &mut conn, false).await;
        made.expect("the first schema");
        let marked = sqlx::query("PRAGMA application_id = 1935764843").execute(&mut conn);
        marked.await.expect("marked");
        conn.close().await.expect("closed");
    });
}

/// The newest applied migration.
pub fn schema(path: &Path) -> i64 {
    number(
        path,
        "SELECT max(version) FROM _sqlx_migrations WHERE success",
    )
}

/// A connection that holds what it began: a snapshot or the writer's lock.
pub struct Held {
    runtime: tokio::runtime::Runtime,
    conn: Option<SqliteConnection>,
}

impl Held {
    /// Runs the statements and keeps the connection open.
    pub fn begin(path: &Path, statements: &[&'static str]) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let conn = runtime.block_on(async {
            let options = SqliteConnectOptions::new().filename(path);
            let mut conn = options.connect().await.expect("opened");
            for sql in statements {
                let done = sqlx::query(*sql).execute(&mut conn).await;
                done.unwrap_or_else(|e| panic!("{sql}: {e}"));
            }
            conn
        });
        Self {
            runtime,
            conn: Some(conn),
        }
    }

    /// Lets go; what was not committed is rolled back.
    pub fn let_go(mut self) {
        if let Some(conn) = self.conn.take() {
            self.runtime.block_on(conn.close()).expect("closed");
        }
    }
}

/// Whether nobody holds the writer's lock.
pub fn is_free(path: &Path) -> bool {
    block(async {
        let options = SqliteConnectOptions::new().filename(path);
        let options = options.busy_timeout(std::time::Duration::ZERO);
        let mut conn = options.connect().await.expect("opened");
        let began = sqlx::query("BEGIN IMMEDIATE").execute(&mut conn).await;
        conn.close().await.expect("closed");
        began.is_ok()
    })
}

/// One number.
pub fn number(path: &Path, sql: &'static str) -> i64 {
    block(async {
        let options = SqliteConnectOptions::new().filename(path).read_only(true);
        let mut conn = options.connect().await.expect("opened");
        let number = sqlx::query_scalar(sql).fetch_one(&mut conn).await;
        conn.close().await.expect("closed");
        number.expect("a number")
    })
}
