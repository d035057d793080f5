//! One immediate transaction around every step: its connection, its instant, and the hint that it left.
//!
//! Owns: that a write runs in a task of its own (`traps.md`, finding 1), that one that wrote nothing costs
//! nothing, and that a connection in doubt is dropped. Never: decides. Tests: `tests/ledger/writers.rs`.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlx::{Connection, SqliteConnection};

use super::{Inner, SqliteLedger, limits, open, store, terms};
use crate::domain::Instant;
use crate::domain::ids::ToolName;
use crate::domain::policy::Terms;
use crate::ledger::LedgerError;

/// What runs inside one write transaction.
pub(super) type Work<'c, T> = Pin<Box<dyn Future<Output = Result<T, LedgerError>> + Send + 'c>>;

/// One write transaction: its connection, its instant, and what every step needs.
pub(super) struct Tx<'c> {
    pub conn: &'c mut SqliteConnection,
    /// The ledger's clock: never behind its stored mark (I27).
    pub now: Instant,
    /// The wall clock can be trusted.
    pub clock_ok: bool,
    pub terms: &'c BTreeMap<ToolName, Terms>,
    pub os_user: &'c str,
}

impl Tx<'_> {
    pub fn terms(&self, tool: &ToolName) -> Result<&Terms, LedgerError> {
        terms(self.terms, tool)
    }
}

impl SqliteLedger {
    /// Runs `work` in one immediate transaction, in a task of its own.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(Tx<'c>) -> Work<'c, T> + Send + 'static,
    {
        let inner = Arc::clone(&self.0);
        let task = tokio::spawn(async move { inner.transaction(work).await });
        task.await
            .unwrap_or_else(|e| Err(LedgerError::Unreachable(format!("the write was lost: {e}"))))
    }

    /// Runs `query` on a reader, in a task of its own.
    pub(super) async fn read<T, F, Fut>(&self, query: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Inner>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, LedgerError>> + Send + 'static,
    {
        let inner = Arc::clone(&self.0);
        let task = tokio::spawn(async move { query(inner).await });
        task.await
            .unwrap_or_else(|e| Err(LedgerError::Unreachable(format!("the read was lost: {e}"))))
    }
}

impl Inner {
    async fn transaction<T, F>(&self, work: F) -> Result<T, LedgerError>
    where
        F: for<'c> FnOnce(Tx<'c>) -> Work<'c, T>,
    {
        self.damage.none()?;
        let mut guard = self.writer.lock().await;
        let mut conn = match guard.take() {
            Some(conn) => conn,
            None if self.closed.load(Ordering::SeqCst) => {
                return Err(LedgerError::Unreachable("it is closed".into()));
            }
            None => open::reconnect(&self.path).await?,
        };
        let done = self.in_transaction(&mut conn, work).await;
        // After a full disk or an I/O error nobody knows in what transaction a connection is: it goes,
        // and with it whatever it had not committed.
        if !matches!(
            done,
            Err(LedgerError::Unreachable(_) | LedgerError::Damaged(_))
        ) {
            *guard = Some(conn);
        }
        drop(guard);
        let (value, wrote) = done?;
        if wrote {
            self.changed.send_modify(|n| *n = n.wrapping_add(1));
        }
        Ok(value)
    }

    /// The value, and whether anything was written.
    async fn in_transaction<T, F>(
        &self,
        conn: &mut SqliteConnection,
        work: F,
    ) -> Result<(T, bool), LedgerError>
    where
        F: for<'c> FnOnce(Tx<'c>) -> Work<'c, T>,
    {
        let mut tx = conn
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(store::failed)?;
        let time = limits::ledger_now(&mut tx, &self.clock, &self.time).await?;
        let before = store::total_changes(&mut tx).await?;
        let work = work(Tx {
            conn: &mut tx,
            now: time.now,
            clock_ok: time.trusted,
            terms: &self.terms,
            os_user: &self.os_user,
        });
        let value = match work.await {
            Ok(value) => value,
            Err(error) => {
                tx.rollback().await.map_err(store::failed)?;
                return Err(error);
            }
        };
        if store::total_changes(&mut tx).await? == before {
            // What wrote nothing costs no sync and wakes nobody.
            tx.rollback().await.map_err(store::failed)?;
            return Ok((value, false));
        }
        limits::move_mark(&mut tx, &time).await?;
        tx.commit().await.map_err(store::failed)?;
        Ok((value, true))
    }
}
