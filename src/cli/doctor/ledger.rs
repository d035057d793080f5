//! The ledger's file: `SQLite`, journal, durability, who may read it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::Check;

/// Below this, WAL mode can lose committed data with two connections.
const MIN_SQLITE: [u32; 3] = [3, 51, 3];
/// A log that stays above this is held by a long reader, or nobody cuts it back.
const MUCH_WAL: u64 = 64 << 20;

/// The version that runs, whatever was meant to be built in.
pub(super) async fn sqlite_version() -> Check {
    const NAME: &str = "sqlite";
    let asked = async {
        let mut conn = SqliteConnection::connect("sqlite::memory:").await?;
        let query = sqlx::query_scalar::<_, String>("SELECT sqlite_version()");
        query.fetch_one(&mut conn).await
    };
    match asked.await {
        Ok(version) if is_new_enough(&version) => Check::ok(NAME, format!("SQLite {version}")),
        Ok(version) => Check::fail(
            NAME,
            format!("SQLite {version} can lose committed data; a build with 3.51.3 is needed"),
        ),
        Err(e) => Check::fail(NAME, format!("SQLite does not answer: {e}")),
    }
}

fn is_new_enough(version: &str) -> bool {
    let parts: Vec<u32> = version.split('.').filter_map(|p| p.parse().ok()).collect();
    parts.as_slice() >= MIN_SQLITE.as_slice()
}

/// What can be told from the file itself.
pub(super) async fn file(path: &Path) -> Vec<Check> {
    if !path.exists() {
        let says = format!(
            "{} does not exist yet; an engine or `submit` makes it",
            path.display()
        );
        return vec![Check::warn("ledger", says)];
    }
    let mut checks = modes(path);
    checks.push(wal_size(path));
    match open(path).await {
        Ok(mut conn) => {
            checks.extend(settings(&mut conn).await);
            // Nothing was written; a failure to close changes nothing.
            let _ = conn.close().await;
        }
        Err(e) => checks.push(Check::fail("ledger", format!("it cannot be opened: {e}"))),
    }
    checks
}

async fn open(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true)
        .busy_timeout(Duration::from_secs(5))
        .disable_statement_logging()
        .connect()
        .await
}

async fn settings(conn: &mut SqliteConnection) -> Vec<Check> {
    let mut checks = Vec::new();
    let journal = sqlx::query_scalar::<_, String>("PRAGMA journal_mode");
    checks.push(match journal.fetch_one(&mut *conn).await {
        Ok(mode) if mode.eq_ignore_ascii_case("wal") => Check::ok("journal", "write-ahead log"),
        Ok(mode) => Check::fail("journal", format!("journal mode is {mode}, not wal")),
        Err(e) => Check::fail("journal", format!("this is no SQLite database: {e}")),
    });
    let synchronous = sqlx::query_scalar::<_, i64>("PRAGMA synchronous");
    checks.push(match synchronous.fetch_one(&mut *conn).await {
        Ok(2 | 3) => Check::ok("synchronous", "every commit is synced to the disk"),
        Ok(n) => Check::fail("synchronous", format!("synchronous is {n}, not FULL")),
        Err(e) => Check::fail("synchronous", format!("it cannot be read: {e}")),
    });
    let tables = "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' \
                  AND NOT strict AND name NOT LIKE 'sqlite%' AND name <> '_sqlx_migrations'";
    checks.push(
        match sqlx::query_scalar::<_, i64>(tables)
            .fetch_one(&mut *conn)
            .await
        {
            Ok(0) => Check::ok("strict", "every table checks its types"),
            Ok(n) => Check::fail(
                "strict",
                format!("{n} tables are not STRICT; run `samekey verify`"),
            ),
            Err(e) => Check::fail("strict", format!("the tables cannot be listed: {e}")),
        },
    );
    let quick = sqlx::query_scalar::<_, String>("PRAGMA quick_check(1)");
    checks.push(match quick.fetch_one(&mut *conn).await {
        Ok(said) if said == "ok" => Check::ok("damage", "no damage found"),
        Ok(said) => Check::fail("damage", format!("the file is damaged: {said}")),
        Err(e) => Check::fail("damage", format!("the file cannot be checked: {e}")),
    });
    checks
}

/// The file and what `SQLite` lays beside it.
fn parts(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|tail| {
        let mut name = path.as_os_str().to_owned();
        name.push(tail);
        PathBuf::from(name)
    })
}

fn modes(path: &Path) -> Vec<Check> {
    const NAME: &str = "modes";
    let open: Vec<_> = parts(path)
        .into_iter()
        .filter_map(|p| {
            let mode = std::fs::metadata(&p).ok()?.mode() & 0o777;
            (mode & 0o077 != 0).then(|| format!("{} ({mode:04o})", p.display()))
        })
        .collect();
    let mut checks = vec![if open.is_empty() {
        Check::ok(NAME, "only their owner can read the ledger's files")
    } else {
        let says = format!("others can read {}; run chmod 600", open.join(", "));
        Check::fail(NAME, says)
    }];
    let directory = path.parent().and_then(|d| std::fs::metadata(d).ok());
    // With the sticky bit others cannot replace the file.
    if let Some(mode) = directory.map(|m| m.mode())
        && mode & 0o022 != 0
        && mode & 0o1000 == 0
    {
        let says = "others can replace files in the ledger's directory; run chmod go-w on it";
        checks.push(Check::warn("directory", says));
    }
    checks
}

fn wal_size(path: &Path) -> Check {
    const NAME: &str = "wal";
    let [_, wal, _] = parts(path);
    let bytes = std::fs::metadata(wal).map_or(0, |m| m.len());
    let shown = super::machine::show_bytes(bytes);
    if bytes > MUCH_WAL {
        Check::warn(
            NAME,
            format!("the log is {shown}; a reader may hold it, or no engine runs"),
        )
    } else {
        Check::ok(NAME, format!("the log is {shown}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_safe_sqlite_will_do() {
        for (version, safe) in [
            ("3.51.3", true),
            ("3.52.0", true),
            ("4.0", true),
            ("3.51.2", false),
            ("3.40.1", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), safe, "{version}");
        }
    }

    #[tokio::test]
    async fn this_build_carries_a_safe_sqlite() {
        assert_eq!(sqlite_version().await.state, super::super::State::Ok);
    }
}
