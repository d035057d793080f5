//! Naming the damage of a corrupted file before it is written to (finding 11 of `traps.md`).
//!
//! Owns: what must be looked at before anything is sent, and what may be looked at beside. A ledger of
//! some size is read whole first, as it takes a moment. Of a large one (four gigabytes take the better
//! part of a minute) first only what decides about sending: the schema's guards, the small tables, and
//! whether the indexes that keep an effect from being opened twice know every open row. The rest is read
//! beside, table by table; from the moment damage is found, nothing more is written.
//! Tests: `tests/ledger/files.rs`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sqlx::{ConnectOptions as _, Row as _, SqliteConnection, SqlitePool};
use tokio::sync::watch;
use tokio::time::sleep;

use super::open::{MIGRATIONS, options};
use super::{Inner, store};
use crate::ledger::LedgerError;

/// Larger files are checked beside.
const LARGE_BYTES: i64 = 64 * 1024 * 1024;
/// The screen and the first calls come first.
const BESIDE_AFTER: Duration = Duration::from_secs(2);

/// Damage that was found after the ledger had begun to work.
#[derive(Clone, Default)]
pub(super) struct Damage(Arc<Look>);

#[derive(Default)]
struct Look {
    begun: AtomicBool,
    found: OnceLock<String>,
}

impl Damage {
    /// Refuses where damage is known.
    pub(super) fn none(&self) -> Result<(), LedgerError> {
        match self.0.found.get() {
            Some(why) => Err(LedgerError::Damaged(why.clone())),
            None => Ok(()),
        }
    }
}

pub(super) async fn check(inner: &Arc<Inner>) -> Result<(), LedgerError> {
    inner.damage.none()?;
    let readers = &inner.readers;
    guards(readers).await?;
    let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let size: i64 = sqlx::query_scalar(size)
        .fetch_one(readers)
        .await
        .map_err(store::failed)?;
    if size <= LARGE_BYTES {
        return whole(
            sqlx::query_scalar("PRAGMA quick_check(1)")
                .fetch_one(readers)
                .await,
        );
    }
    for sql in SMALL {
        whole(sqlx::query_scalar(sql).fetch_one(readers).await)?;
    }
    open_rows(readers).await?;
    if !inner.damage.0.begun.swap(true, Ordering::SeqCst) {
        let (path, damage) = (inner.path.clone(), inner.damage.clone());
        tokio::spawn(beside(path, damage, inner.changed.clone()));
    }
    Ok(())
}

fn whole(said: Result<String, sqlx::Error>) -> Result<(), LedgerError> {
    match said.map_err(store::failed)?.as_str() {
        "ok" => Ok(()),
        damage => Err(LedgerError::Damaged(damage.to_owned())),
    }
}

/// Tables that stay small whatever the ledger's age.
const SMALL: [&str; 8] = [
    "PRAGMA quick_check(meta)",
    "PRAGMA quick_check(stamps)",
    "PRAGMA quick_check(tool_state)",
    "PRAGMA quick_check(buckets)",
    "PRAGMA quick_check(tallies)",
    "PRAGMA quick_check(drives)",
    "PRAGMA quick_check(lookups)",
    "PRAGMA quick_check(engines)",
];

/// The others, the one that decides most first.
const LARGE: [&str; 7] = [
    "PRAGMA quick_check(operations)",
    "PRAGMA quick_check(tool_calls)",
    "PRAGMA quick_check(attempts)",
    "PRAGMA quick_check(provider_objects)",
    "PRAGMA quick_check(evidence)",
    "PRAGMA quick_check(notices)",
    "PRAGMA quick_check(audit)",
];

/// Nothing is sent on a ledger whose own guards are gone.
async fn guards(readers: &SqlitePool) -> Result<(), LedgerError> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'";
    let guards: i64 = sqlx::query_scalar(sql)
        .fetch_one(readers)
        .await
        .map_err(store::failed)?;
    let made = MIGRATIONS.iter().flat_map(|m| {
        let made = m.sql.as_str().split("CREATE TRIGGER").skip(1);
        made.filter_map(|rest| rest.split_whitespace().next())
    });
    // A later migration may make one anew.
    let made = made.collect::<BTreeSet<_>>().len();
    if usize::try_from(guards).unwrap_or(0) < made {
        let why = "guards of the schema are missing; `samekey verify` names them";
        return Err(LedgerError::Damaged(why.into()));
    }
    Ok(())
}

/// Each open or unknown row is read, and stands in every index that keeps a second one from being
/// opened beside it (I1, I2); so many are kept count of.
async fn open_rows(readers: &SqlitePool) -> Result<(), LedgerError> {
    let sql = "SELECT count(*) AS rows, coalesce(sum(provider_ref IS NULL AND order_id IS NOT NULL), 0) AS orders,
            coalesce(sum(provider_ref IS NULL AND payment IS NOT NULL), 0) AS payments,
            coalesce(sum(EXISTS (SELECT 1 FROM operations k WHERE k.idempotency_key = o.idempotency_key
                                 AND k.rowid = o.rowid)), 0) AS keys,
            (SELECT sum(n) FROM tallies WHERE status IN ('open', 'unknown')) AS tally,
            (SELECT count(*) FROM operations INDEXED BY one_open_operation WHERE status IN ('open', 'unknown')) AS one_operation,
            (SELECT count(*) FROM operations INDEXED BY one_open_order
             WHERE status IN ('open', 'unknown') AND provider_ref IS NULL AND order_id IS NOT NULL) AS one_order,
            (SELECT count(*) FROM operations INDEXED BY one_open_payment
             WHERE status IN ('open', 'unknown') AND provider_ref IS NULL AND payment IS NOT NULL) AS one_payment
        FROM operations o WHERE status IN ('open', 'unknown')";
    let found = sqlx::query(sql).fetch_one(readers).await;
    let found = found.map_err(|error| match store::failed(error) {
        // An index by that name that is not there, or is another one.
        LedgerError::Unreachable(why) => LedgerError::Damaged(why),
        other => other,
    })?;
    let count = |name| found.try_get::<i64, _>(name).map_err(store::failed);
    let rows = count("rows")?;
    let agree = [
        (count("keys")?, rows),
        (count("tally")?, rows),
        (count("one_operation")?, rows),
        (count("one_order")?, count("orders")?),
        (count("one_payment")?, count("payments")?),
    ];
    if agree.iter().all(|(found, wanted)| found == wanted) {
        return Ok(());
    }
    let why =
        "an index or tally of the open rows does not know all of them; `samekey verify` says more";
    Err(LedgerError::Damaged(why.into()))
}

/// Reads the large tables. One a time, so that the log can be cut back in between.
async fn beside(path: std::path::PathBuf, damage: Damage, changed: watch::Sender<u64>) {
    sleep(BESIDE_AFTER).await;
    match large(&path).await {
        Ok(()) => tracing::info!("the ledger is whole"),
        Err(LedgerError::Damaged(why)) => {
            tracing::error!(%why, "the ledger is damaged; nothing more is written");
            // Set once.
            let _ = damage.0.found.set(why);
            changed.send_modify(|n| *n = n.wrapping_add(1));
        }
        Err(error) => tracing::warn!(%error, "the ledger could not be checked whole"),
    }
}

async fn large(path: &Path) -> Result<(), LedgerError> {
    let mut conn: SqliteConnection = options(path)
        .pragma("query_only", "ON")
        .connect()
        .await
        .map_err(store::failed)?;
    for sql in LARGE {
        whole(sqlx::query_scalar(sql).fetch_one(&mut conn).await)?;
    }
    Ok(())
}
