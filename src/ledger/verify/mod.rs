//! The audit of a ledger behind `samekey verify`: reads a file as it lies there and names whatever
//! breaks an invariant, with the operation it concerns.
//!
//! Owns: the list of checks and their order. Never: writes, repairs, asks a provider, or trusts the
//! guards of the file: a missing trigger, index or CHECK is a finding, and what it guarded is looked
//! at all the same. Reads by pages, each in one short snapshot, so that a million rows fit and a
//! running engine is not held up. Tests: `tests/verify/`.

mod agents;
mod calls;
mod chain;
mod desk;
mod events;
mod evidence;
mod facts;
mod pages;
mod rows;
mod schema;
mod text;
mod unique;

use std::path::Path;

use serde::Serialize;
use sqlx::{Connection, SqliteConnection};

use super::LedgerError;
use super::sqlite::{connect_to_read, failed, is_sqlite};
use crate::clock::Clock;
use crate::domain::Instant;
use crate::domain::text::SafeText;

/// After so many findings the rest is not looked for (I33).
const MAX_VIOLATIONS: usize = 10_000;

/// What the audit found. Empty `violations`: every invariant that can be read off the ledger holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many operations were looked at.
    pub operations: u64,
    pub violations: Vec<Violation>,
}

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The operation it concerns; empty where it concerns the file or a call without a row.
    pub operation: Option<String>,
    /// The invariant (`I1` …), `schema`, `integrity` or `stale`.
    pub rule: &'static str,
    /// One sentence.
    pub what: String,
}

/// Audits the ledger in the file at `path`, read-only.
///
/// # Errors
/// A file that is not there, cannot be opened, or is no ledger at all. What is wrong inside a
/// ledger is a [`Violation`].
pub async fn verify(path: &Path) -> Result<Report, LedgerError> {
    verify_at(path, Clock::system().now()).await
}

/// [`verify`], with leases judged at `now`.
///
/// # Errors
/// As there.
pub async fn verify_at(path: &Path, now: Instant) -> Result<Report, LedgerError> {
    let shown = path.display();
    match is_sqlite(path)? {
        Some(true) => {}
        Some(false) => return Err(LedgerError::NotALedger(format!("{shown} is not a ledger"))),
        None => {
            let why = format!("there is no ledger at {shown}");
            return Err(LedgerError::Unreachable(why));
        }
    }
    let mut conn = connect_to_read(path).await?;
    let mut found = Findings::default();
    let operations = audit(&mut conn, &mut found, now).await;
    // Nothing was written: a failure to close loses nothing.
    let _ = conn.close().await;
    Ok(Report {
        operations: operations?,
        violations: found.list,
    })
}

async fn audit(
    conn: &mut SqliteConnection,
    found: &mut Findings,
    now: Instant,
) -> Result<u64, LedgerError> {
    let layout = match schema::check(conn, found).await {
        Err(LedgerError::Damaged(why)) => {
            found.damage(&why);
            return Ok(0);
        }
        other => other?,
    };
    tolerate(schema::integrity(conn, &layout, found).await, found)?;
    tolerate(text::check(conn, &layout, found).await, found)?;
    tolerate(desk::check(conn, &layout, found).await, found)?;
    tolerate(events::check(conn, &layout, found).await, found)?;
    tolerate(agents::check(conn, &layout, found).await, found)?;
    tolerate(rows::check(conn, &layout, found).await, found)?;
    if !layout.has_history() {
        let what = "the rows were not checked: a table or column they need is missing";
        found.add(None, "schema", what);
        return Ok(0);
    }
    let accepted = tolerate(clock_accepted(conn).await, found)?.unwrap_or(false);
    tolerate(unique::check(conn, found).await, found)?;
    let mut operations = 0;
    let walked = walk(conn, found, accepted, &mut operations).await;
    tolerate(walked, found)?;
    tolerate(calls::without_row(conn, accepted, found).await, found)?;
    tolerate(calls::gone(conn, found).await, found)?;
    tolerate(calls::stale(conn, now, found).await, found)?;
    Ok(operations)
}

/// Operation by operation, page by page.
async fn walk(
    conn: &mut SqliteConnection,
    found: &mut Findings,
    clock_accepted: bool,
    operations: &mut u64,
) -> Result<(), LedgerError> {
    let mut after = String::new();
    while !found.is_full() {
        // Row and history are read in one snapshot, or an engine at work would look like damage.
        let mut tx = conn.begin().await.map_err(failed)?;
        let Some(page) = pages::read(&mut tx, &after, found).await? else {
            break;
        };
        for history in page.histories.values() {
            *operations += 1;
            chain::check(history, clock_accepted, found);
            facts::check(history, clock_accepted, found);
            evidence::check(history, clock_accepted, found);
        }
        calls::of_page(&mut tx, &page, clock_accepted, found).await?;
        tx.rollback().await.map_err(failed)?;
        after = page.last;
    }
    Ok(())
}

/// Whether a lead ever accepted a clock that had run back: then instants may step back too (I27).
async fn clock_accepted(conn: &mut SqliteConnection) -> Result<bool, LedgerError> {
    let sql = "SELECT count(*) FROM meta WHERE name = 'clock_accepted'";
    let n: i64 = sqlx::query_scalar(sql)
        .fetch_one(conn)
        .await
        .map_err(failed)?;
    Ok(n > 0)
}

/// Damage of the file is a finding; only a ledger that cannot be read any further is an error.
fn tolerate<T>(
    result: Result<T, LedgerError>,
    found: &mut Findings,
) -> Result<Option<T>, LedgerError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(LedgerError::Damaged(why) | LedgerError::NotALedger(why)) => {
            found.damage(&why);
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

/// The findings so far, bounded.
#[derive(Debug, Default)]
struct Findings {
    list: Vec<Violation>,
}

impl Findings {
    /// Notes a finding. What it quotes from the ledger is made harmless here.
    fn add(&mut self, operation: Option<&str>, rule: &'static str, what: impl AsRef<str>) {
        if self.list.len() > MAX_VIOLATIONS {
            return;
        }
        if self.list.len() == MAX_VIOLATIONS {
            self.list.push(Violation {
                operation: None,
                rule: "I33",
                what: "there is more; the rest was not looked at".into(),
            });
            return;
        }
        let violation = Violation {
            operation: operation.map(|id| SafeText::new(id).to_string()),
            rule,
            what: SafeText::new(what.as_ref()).to_string(),
        };
        if !self.list.contains(&violation) {
            self.list.push(violation);
        }
    }

    fn damage(&mut self, why: &str) {
        self.add(None, "integrity", format!("the file is damaged: {why}"));
    }

    fn is_full(&self) -> bool {
        self.list.len() > MAX_VIOLATIONS
    }
}
