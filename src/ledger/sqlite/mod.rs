//! The ledger on SQLite: one writer connection, several readers, WAL, full sync.
//!
//! Owns: connections, the transaction around every step, the hint that something changed. Each write
//! runs in a task of its own, so that a dropped future never leaves a transaction half done
//! (`traps.md`, finding 1). Never: decides; it calls `domain` inside the transaction.

mod calls;
mod checking;
mod counts;
mod deliveries;
mod events;
mod feeds;
mod files;
mod fill;
mod limits;
mod listings;
mod narrow;
mod notices;
mod open;
mod operations;
mod pages;
#[cfg(test)]
mod plans;
mod read;
mod recovery;
mod report;
mod review_list;
mod serving;
mod store;
mod transaction;
mod watched;
mod watching;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::{Connection, SqliteConnection, SqlitePool};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use super::{
    Accepted, Applied, AuditPage, AuditQuery, BucketSeen, CallPage, CallQuery, Counts, Detail,
    Drive, EngineSeen, LeasedCall, Ledger, LedgerError, LookupBusy, NewCall, Notice, NoticeCounts,
    OpenRow, Opening, OrderRows, Page, PageQuery, ReadFor, Recovery, Serving, Stamp, Still,
    ToolState, Went,
};
use crate::clock::Clock;
use crate::domain::arguments::Arguments;
use crate::domain::ids::{
    AgentName, CallId, EngineId, OperationId, OrderId, PaymentId, ProviderName, ProviderRef,
    ReviewerName, ToolName,
};
use crate::domain::notice::NoticeEvent;
use crate::domain::operation::OperationRow;
use crate::domain::policy::Terms;
use crate::domain::report::{Report, ReportQuery};
use crate::domain::tool_call::{ToolCall, ToolResult};
use crate::domain::transition::Event;

pub(super) use files::is_sqlite;
pub use files::{network_name, path};
pub use fill::{Past, Times, fill};
pub use open::OpenMode;
pub(super) use open::{APPLICATION_ID, MIGRATIONS, connect_to_read};
pub(super) use store::failed;
use transaction::Tx;
use watching::Eye;

/// A handle on a SQLite ledger. Cheap to clone.
#[derive(Clone)]
pub struct SqliteLedger(Arc<Inner>);

struct Inner {
    /// Empty after a failure that leaves a connection in doubt; the next write makes a new one.
    writer: Mutex<Option<SqliteConnection>>,
    closed: AtomicBool,
    path: PathBuf,
    readers: SqlitePool,
    terms: Arc<BTreeMap<ToolName, Terms>>,
    clock: Clock,
    os_user: String,
    time: std::sync::Mutex<limits::KnownTime>,
    changed: watch::Sender<u64>,
    damage: checking::Damage,
    /// Sees whether anything was committed.
    eye: Arc<Eye>,
    /// What goes on for as long as the ledger is open.
    beside: std::sync::Mutex<JoinSet<()>>,
}

fn terms<'a>(
    all: &'a BTreeMap<ToolName, Terms>,
    tool: &ToolName,
) -> Result<&'a Terms, LedgerError> {
    all.get(tool).ok_or_else(|| {
        LedgerError::Constraint(format!("tool {tool} is not configured in this process"))
    })
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn check(&self) -> Result<(), LedgerError> {
        self.read(|inner| async move { checking::check(&inner).await })
            .await
    }

    async fn accept_call(&self, call: NewCall) -> Result<Accepted, LedgerError> {
        self.write(move |mut tx| Box::pin(async move { calls::accept(&mut tx, call).await }))
            .await
    }

    async fn lease_calls(
        &self,
        engine: &EngineId,
        lease: Duration,
        max: u32,
    ) -> Result<Vec<LeasedCall>, LedgerError> {
        let engine = engine.clone();
        self.write(move |mut tx| {
            Box::pin(async move { calls::lease(&mut tx, &engine, lease, max).await })
        })
        .await
    }

    async fn lease_call(
        &self,
        engine: &EngineId,
        lease: Duration,
        agent: &AgentName,
        id: &CallId,
    ) -> Result<Option<LeasedCall>, LedgerError> {
        let (engine, agent, id) = (engine.clone(), agent.clone(), id.clone());
        self.write(move |mut tx| {
            Box::pin(async move { calls::lease_one(&mut tx, &engine, lease, &agent, &id).await })
        })
        .await
    }

    async fn renew(
        &self,
        engine: &EngineId,
        lease: Duration,
        held: &[LeasedCall],
    ) -> Result<u64, LedgerError> {
        let (engine, held) = (engine.clone(), calls::names(held)?);
        self.write(move |mut tx| {
            Box::pin(async move { calls::renew(&mut tx, &engine, lease, &held).await })
        })
        .await
    }

    async fn release(&self, call: &LeasedCall) -> Result<(), LedgerError> {
        let call = call.clone();
        self.write(move |mut tx| Box::pin(async move { calls::release(&mut tx, &call).await }))
            .await
    }

    async fn finish_call(&self, call: &LeasedCall) -> Result<Option<ToolResult>, LedgerError> {
        let call = call.clone();
        self.write(move |mut tx| Box::pin(async move { calls::finish(&mut tx, &call).await }))
            .await
    }

    async fn answer_call(
        &self,
        call: &LeasedCall,
        result: ToolResult,
    ) -> Result<Option<ToolResult>, LedgerError> {
        let call = call.clone();
        self.write(move |mut tx| {
            Box::pin(async move { calls::answer(&mut tx, &call, result).await })
        })
        .await
    }

    async fn delivered(&self, agent: &AgentName, id: &CallId) -> Result<(), LedgerError> {
        let (agent, id) = (agent.clone(), id.clone());
        self.write(move |mut tx| {
            Box::pin(async move { calls::delivered(&mut tx, &agent, &id).await })
        })
        .await
    }

    async fn get(
        &self,
        tool: &ToolName,
        args: &Arguments,
        payment: Option<&PaymentId>,
    ) -> Result<OrderRows, LedgerError> {
        let (tool, args, payment) = (tool.clone(), args.clone(), payment.cloned());
        self.read(|inner| async move { read::get(&inner, &tool, &args, payment.as_ref()).await })
            .await
    }

    async fn open(&self, call: &LeasedCall, row: OpenRow) -> Result<Opening, LedgerError> {
        let call = call.clone();
        self.write(move |mut tx| {
            Box::pin(async move { operations::open(&mut tx, &call, row).await })
        })
        .await
    }

    async fn drive(
        &self,
        operation: &OperationId,
        call: &LeasedCall,
        lease: Duration,
    ) -> Result<Drive, LedgerError> {
        let (operation, call) = (operation.clone(), call.clone());
        self.write(move |mut tx| {
            Box::pin(async move { operations::drive(&mut tx, &operation, &call, lease).await })
        })
        .await
    }

    async fn authorise(&self, operation: &OperationId, call: &LeasedCall) -> Applied {
        let (operation, call) = (operation.clone(), call.clone());
        self.write(move |mut tx| {
            Box::pin(async move { operations::authorise(&mut tx, &operation, &call).await })
        })
        .await
    }

    async fn apply(&self, operation: &OperationId, event: Event) -> Applied {
        let operation = operation.clone();
        self.write(move |mut tx| {
            Box::pin(async move { operations::apply(&mut tx, &operation, event).await })
        })
        .await
    }

    async fn sweepable(&self) -> Result<Vec<OperationId>, LedgerError> {
        self.read(|inner| async move { read::sweepable(&inner).await })
            .await
    }

    async fn take_read(
        &self,
        provider: &ProviderName,
        reads_for: ReadFor,
    ) -> Result<Result<(), Duration>, LedgerError> {
        let provider = provider.clone();
        self.write(move |mut tx| {
            Box::pin(async move { limits::take_read(&mut tx, &provider, reads_for).await })
        })
        .await
    }

    async fn begin_lookup(
        &self,
        operation: &OperationId,
        by: &ReviewerName,
    ) -> Result<Result<(), LookupBusy>, LedgerError> {
        let (operation, by) = (operation.clone(), by.clone());
        self.write(move |mut tx| {
            Box::pin(async move { limits::begin_lookup(&mut tx, &operation, &by).await })
        })
        .await
    }

    async fn lookup_busy(
        &self,
        operation: &OperationId,
    ) -> Result<Option<LookupBusy>, LedgerError> {
        let operation = operation.clone();
        self.read(|inner| async move { read::lookup_busy(&inner, &operation).await })
            .await
    }

    async fn end_lookup(&self, operation: &OperationId) -> Result<(), LedgerError> {
        let operation = operation.clone();
        self.write(move |mut tx| {
            Box::pin(async move { limits::end_lookup(&mut tx, &operation).await })
        })
        .await
    }

    async fn connection_failed(
        &self,
        tool: &ToolName,
        operation: &OperationId,
    ) -> Result<(), LedgerError> {
        let (tool, operation) = (tool.clone(), operation.clone());
        self.write(move |mut tx| {
            Box::pin(async move { limits::connection_failed(&mut tx, &tool, &operation).await })
        })
        .await
    }

    async fn probed(&self, tool: &ToolName, succeeded: bool) -> Result<(), LedgerError> {
        let tool = tool.clone();
        self.write(move |mut tx| {
            Box::pin(async move { limits::probed(&mut tx, &tool, succeeded).await })
        })
        .await
    }

    async fn pause(&self, tool: &ToolName, by: Option<(&str, &str)>) -> Result<(), LedgerError> {
        let tool = tool.clone();
        let by = by.map(|(who, why)| (who.to_owned(), why.to_owned()));
        self.write(move |mut tx| Box::pin(async move { limits::pause(&mut tx, &tool, by).await }))
            .await
    }

    async fn bind(&self, stamp: &Stamp) -> Result<(), LedgerError> {
        let stamp = stamp.clone();
        self.write(move |mut tx| Box::pin(async move { limits::bind(&mut tx, &stamp).await }))
            .await
    }

    async fn engine_seen(&self, engine: &EngineSeen) -> Result<(), LedgerError> {
        let engine = engine.clone();
        self.write(move |mut tx| {
            Box::pin(async move { limits::engine_seen(&mut tx, &engine).await })
        })
        .await
    }

    async fn accept_clock(&self, by: &ReviewerName) -> Result<(), LedgerError> {
        let by = by.clone();
        let inner = Arc::clone(&self.0);
        self.write(move |mut tx| {
            Box::pin(async move { limits::accept_clock(&mut tx, &inner.clock, &by).await })
        })
        .await
    }

    async fn clock_alarm(&self) -> Result<bool, LedgerError> {
        self.read(|inner| async move {
            let mut conn = inner.readers.acquire().await.map_err(store::failed)?;
            let time = limits::ledger_now(&mut conn, &inner.clock, &inner.time).await?;
            Ok(!time.trusted)
        })
        .await
    }

    async fn take_notice(
        &self,
        events: &[NoticeEvent],
        lease: Duration,
    ) -> Result<Option<Notice>, LedgerError> {
        notices::take_due(self, events, lease).await
    }

    async fn notice_went(&self, notice: &Notice, went: Went) -> Result<(), LedgerError> {
        notices::note(self, notice.clone(), went).await
    }

    async fn tell_expiring(&self) -> Result<u64, LedgerError> {
        notices::tell_of_expiring(self).await
    }

    async fn notice_counts(&self) -> Result<NoticeCounts, LedgerError> {
        notices::counts(self).await
    }

    fn recovery(&self) -> &dyn Recovery {
        self
    }

    fn serving(&self) -> &dyn Serving {
        self
    }

    async fn page(&self, query: &PageQuery) -> Result<Page, LedgerError> {
        let query = query.clone();
        self.read(|inner| async move { pages::page(&inner, &query).await })
            .await
    }

    async fn counts(&self) -> Result<Counts, LedgerError> {
        self.read(|inner| async move { counts::counts(&inner).await })
            .await
    }

    async fn review_head(&self, limit: u32) -> Result<Vec<OperationId>, LedgerError> {
        self.read(move |inner| async move {
            let mut conn = read::reader(&inner.readers).await?;
            review_list::head(&mut conn, read::Horizons::of(&inner), limit).await
        })
        .await
    }

    async fn detail(&self, operation: &OperationId) -> Result<Option<Detail>, LedgerError> {
        let operation = operation.clone();
        self.read(|inner| async move { read::detail(&inner, &operation).await })
            .await
    }

    async fn rows(&self, operations: &[OperationId]) -> Result<Vec<OperationRow>, LedgerError> {
        let operations = operations.to_vec();
        self.read(|inner| async move { read::rows(&inner, &operations).await })
            .await
    }

    async fn moved(&self, seen: &[(OperationId, i64)]) -> Result<Vec<OperationRow>, LedgerError> {
        let seen = seen.to_vec();
        self.read(|inner| async move { read::moved(&inner, &seen).await })
            .await
    }

    async fn call(&self, agent: &AgentName, id: &CallId) -> Result<Option<ToolCall>, LedgerError> {
        let (agent, id) = (agent.clone(), id.clone());
        self.read(|inner| async move { read::call(&inner, &agent, &id).await })
            .await
    }

    async fn calls(&self, query: &CallQuery) -> Result<CallPage, LedgerError> {
        let query = query.clone();
        self.read(|inner| async move { feeds::calls(&inner, &query).await })
            .await
    }

    async fn calls_of(&self, ids: &[(AgentName, CallId)]) -> Result<Vec<ToolCall>, LedgerError> {
        let ids = ids.to_vec();
        self.read(move |inner| async move { feeds::calls_of(&inner, &ids).await })
            .await
    }

    async fn audit(&self, query: &AuditQuery) -> Result<AuditPage, LedgerError> {
        let query = query.clone();
        self.read(move |inner| async move { feeds::audit(&inner, &query).await })
            .await
    }

    async fn report(&self, query: &ReportQuery) -> Result<Report, LedgerError> {
        let query = query.clone();
        self.read(move |inner| async move { report::report(&inner, &query).await })
            .await
    }

    async fn buckets(&self) -> Result<Vec<BucketSeen>, LedgerError> {
        self.read(|inner| async move { read::buckets(&inner).await })
            .await
    }

    async fn tools(&self) -> Result<Vec<ToolState>, LedgerError> {
        self.read(|inner| async move { read::tools(&inner).await })
            .await
    }

    async fn engines(&self) -> Result<Vec<EngineSeen>, LedgerError> {
        self.read(|inner| async move { read::engines(&inner).await })
            .await
    }

    async fn stamps(&self) -> Result<Vec<Stamp>, LedgerError> {
        self.read(|inner| async move { read::stamps(&inner).await })
            .await
    }

    async fn order_rows(
        &self,
        tool: &ToolName,
        order: &OrderId,
        payment: Option<&PaymentId>,
    ) -> Result<Vec<OperationRow>, LedgerError> {
        let (tool, order, payment) = (tool.clone(), order.clone(), payment.cloned());
        self.read(|inner| async move {
            let mut conn = inner.readers.acquire().await.map_err(store::failed)?;
            let provider = terms(&inner.terms, &tool)?.policy.provider.clone();
            let order = Some(&order);
            store::order_rows(&mut conn, &tool, &provider, order, payment.as_ref(), None).await
        })
        .await
    }

    async fn owners(
        &self,
        provider: &ProviderName,
        refs: &[ProviderRef],
    ) -> Result<Vec<(ProviderRef, OperationId)>, LedgerError> {
        let (provider, refs) = (provider.clone(), refs.to_vec());
        self.read(|inner| async move {
            let mut conn = inner.readers.acquire().await.map_err(store::failed)?;
            store::owners(&mut conn, &provider, &refs).await
        })
        .await
    }

    async fn version(&self) -> Result<i64, LedgerError> {
        self.read(|inner| async move { inner.eye.version().await })
            .await
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    async fn still(&self) -> Still<'_> {
        Box::new(self.0.writer.lock().await)
    }

    async fn close(&self) {
        if let Ok(mut beside) = self.0.beside.lock() {
            beside.abort_all();
        }
        self.0.closed.store(true, Ordering::SeqCst);
        self.0.eye.close().await;
        if let Some(conn) = self.0.writer.lock().await.take() {
            // Nothing is left to write; a failure to close loses nothing.
            let _ = conn.close().await;
        }
        self.0.readers.close().await;
    }
}
