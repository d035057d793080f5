//! Opening a ledger: is it one, is it new enough, is this SQLite safe, and who else has it open.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::sync::{Mutex, watch};

use super::checking::Damage;
use super::watching::{self, Eye};
use super::{Inner, SqliteLedger, files, limits, store};
use crate::clock::Clock;
use crate::domain::ids::ToolName;
use crate::domain::policy::Terms;
use crate::kill;
use crate::ledger::LedgerError;

pub(in crate::ledger) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");
/// `samk`: says that an SQLite file is a ledger.
pub(in crate::ledger) const APPLICATION_ID: i64 = 0x7361_6d6b;
/// Below this, WAL mode can lose committed data with two connections (`traps.md`, finding 2).
const MIN_SQLITE: [u32; 3] = [3, 51, 3];
/// The write-ahead log is cut back to this when a checkpoint can (L7).
const WAL_LIMIT_BYTES: i64 = 16 * 1024 * 1024;

/// What a process opens a ledger for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Runs an engine: creates a missing ledger and upgrades an old one.
    Engine,
    /// Queues calls: creates a missing ledger.
    Submit,
    /// Decides on rows of a ledger that exists.
    Review,
    /// Only reads.
    Read,
}

impl OpenMode {
    fn creates(self) -> bool {
        matches!(self, Self::Engine | Self::Submit)
    }
}

impl SqliteLedger {
    /// Opens the ledger at `location` (`sqlite:PATH` or a path).
    ///
    /// # Errors
    /// A place that is not there or not local, a file that is no ledger, a ledger of another
    /// version, an SQLite that is too old.
    pub async fn open(
        location: &str,
        mode: OpenMode,
        terms: Arc<BTreeMap<ToolName, Terms>>,
        clock: Clock,
    ) -> Result<Self, LedgerError> {
        let path = files::path(location)?;
        files::check_place(&path)?;
        let shown = path.display().to_string();
        match files::is_sqlite(&path)? {
            Some(false) => {
                return Err(LedgerError::NotALedger(format!("{shown} is not a ledger")));
            }
            None if !mode.creates() => {
                let why = format!("there is no ledger at {shown}; an engine or `submit` makes one");
                return Err(LedgerError::Unreachable(why));
            }
            None | Some(true) => {}
        }
        let mut writer = prepare(&path, mode).await?;
        if mode == OpenMode::Read {
            sqlx::query("PRAGMA query_only = ON")
                .execute(&mut writer)
                .await
                .map_err(store::failed)?;
        } else {
            files::make_private(&path);
        }
        let readers = SqlitePoolOptions::new()
            .max_connections(4)
            // A file does not hang up.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options(&path).pragma("query_only", "ON"))
            .await
            .map_err(store::failed)?;
        let (changed, _) = watch::channel(0);
        let eye = options(&path).connect().await;
        let eye = Arc::new(Eye::new(eye.map_err(store::failed)?));
        let ledger = Self(Arc::new(Inner {
            writer: Mutex::new(Some(writer)),
            closed: std::sync::atomic::AtomicBool::new(false),
            path: path.clone(),
            readers,
            terms,
            time: std::sync::Mutex::new(limits::KnownTime::new(&clock)),
            clock,
            os_user: crate::config::os_user(),
            changed,
            damage: Damage::default(),
            eye: Arc::clone(&eye),
            beside: std::sync::Mutex::default(),
        }));
        let log = files::beside(&path, "-wal");
        let changed = ledger.0.changed.clone();
        if let Ok(mut beside) = ledger.0.beside.lock() {
            beside.spawn(watching::watch(eye, log, changed));
            if mode == OpenMode::Engine {
                beside.spawn(watching::cut(path));
            }
        }
        Ok(ledger)
    }
}

/// A new writer on a ledger that is open already.
pub(super) async fn reconnect(path: &Path) -> Result<SqliteConnection, LedgerError> {
    options(path).connect().await.map_err(store::failed)
}

pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(10))
        .synchronous(SqliteSynchronous::Full)
        .pragma("cell_size_check", "ON")
        .pragma("trusted_schema", "OFF")
        .pragma("journal_size_limit", WAL_LIMIT_BYTES.to_string())
        // A page in one go, not in turns of two threads.
        .row_buffer_size(512)
        .disable_statement_logging()
}

/// A connection that cannot write and that trusts nothing in the file, for auditing it. (SQLite does
/// not parse the CHECKs of a file it opens read-only: what they guard has to be looked at.)
pub(in crate::ledger) async fn connect_to_read(
    path: &Path,
) -> Result<SqliteConnection, LedgerError> {
    SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(Duration::from_secs(10))
        .pragma("query_only", "ON")
        .pragma("cell_size_check", "ON")
        .pragma("trusted_schema", "OFF")
        .disable_statement_logging()
        .connect()
        .await
        .map_err(store::failed)
}

/// Creates, upgrades or just checks the schema, and answers the writer's connection.
async fn prepare(path: &Path, mode: OpenMode) -> Result<SqliteConnection, LedgerError> {
    if files::is_sqlite(path)?.is_none() {
        create(path).await?;
    }
    let mut conn = options(path).connect().await.map_err(store::failed)?;
    check_version(&mut conn).await?;
    let id = pragma(&mut conn, "PRAGMA application_id").await?;
    if id != APPLICATION_ID {
        let why = format!("{} is an SQLite database, but not a ledger", path.display());
        return Err(LedgerError::NotALedger(why));
    }
    if schema(&mut conn).await? < newest() {
        if mode != OpenMode::Engine {
            let why = "the ledger has an old schema; start an engine once to upgrade it";
            return Err(LedgerError::NotALedger(why.into()));
        }
        let _lock = files::migration_lock(path).await?;
        kill::point("upgrading");
        MIGRATIONS
            .run_direct(None, &mut conn, false)
            .await
            .map_err(migration)?;
    }
    if schema(&mut conn).await? > newest() {
        let why = "the ledger was written by a newer samekey; use that version";
        return Err(LedgerError::NotALedger(why.into()));
    }
    Ok(conn)
}

/// Makes a new ledger beside its place and moves it there whole: nobody ever finds half of one,
/// whether they come early (F73) or after its maker was killed.
async fn create(path: &Path) -> Result<(), LedgerError> {
    let _lock = files::migration_lock(path).await?;
    if files::is_sqlite(path)?.is_some() {
        // Another process made it while this one waited.
        return Ok(());
    }
    let new = files::beside(path, ".new");
    let mut conn = make(&new).await?;
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut conn)
        .await
        .map_err(store::failed)?;
    conn.close().await.map_err(store::failed)?;
    kill::point("made");
    files::move_whole(&new, path)
}

/// An empty ledger in a file of its own that nobody knows of yet.
pub(super) async fn make(new: &Path) -> Result<SqliteConnection, LedgerError> {
    files::start_afresh(new)?;
    // Only the creator switches to WAL: the switch takes a lock that no timeout waits for.
    let options = options(new).journal_mode(SqliteJournalMode::Wal);
    let mut conn = options.connect().await.map_err(store::failed)?;
    check_version(&mut conn).await?;
    sqlx::query("PRAGMA application_id = 1935764843")
        .execute(&mut conn)
        .await
        .map_err(store::failed)?;
    MIGRATIONS
        .run_direct(None, &mut conn, false)
        .await
        .map_err(migration)?;
    Ok(conn)
}

fn newest() -> i64 {
    MIGRATIONS.iter().map(|m| m.version).max().unwrap_or(0)
}

/// The newest migration that is applied; 0 where there is none.
async fn schema(conn: &mut SqliteConnection) -> Result<i64, LedgerError> {
    let known = "SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'";
    if pragma(conn, known).await? == 0 {
        return Ok(0);
    }
    pragma(
        conn,
        "SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success",
    )
    .await
}

pub(super) async fn pragma(
    conn: &mut SqliteConnection,
    sql: &'static str,
) -> Result<i64, LedgerError> {
    sqlx::query_scalar(sql)
        .fetch_one(conn)
        .await
        .map_err(store::failed)
}

fn migration(error: MigrateError) -> LedgerError {
    match error {
        MigrateError::VersionMissing(_) => {
            LedgerError::NotALedger("the ledger was written by a newer samekey".into())
        }
        MigrateError::VersionMismatch(n) => LedgerError::NotALedger(format!(
            "migration {n} of the ledger is not the one of this samekey"
        )),
        other => LedgerError::Unreachable(format!("the schema could not be made: {other}")),
    }
}

async fn check_version(conn: &mut SqliteConnection) -> Result<(), LedgerError> {
    let version: String = sqlx::query_scalar("SELECT sqlite_version()")
        .fetch_one(conn)
        .await
        .map_err(store::failed)?;
    let parts: Vec<u32> = version.split('.').filter_map(|p| p.parse().ok()).collect();
    if parts.as_slice() >= MIN_SQLITE.as_slice() {
        Ok(())
    } else {
        Err(LedgerError::Unreachable(format!(
            "this build carries SQLite {version}; below 3.51.3 committed data can be lost"
        )))
    }
}
