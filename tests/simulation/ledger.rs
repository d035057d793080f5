//! The real SQLite ledger with faults in front of it: slow, busy, failing, or done although it says
//! that it failed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rand_chacha::ChaCha8Rng;
use samekey::clock::Clock;
use samekey::domain::arguments::Arguments;
use samekey::domain::ids::{
    AgentName, CallId, EngineId, OperationId, OrderId, PaymentId, ProviderName, ProviderRef,
    ReviewerName, ToolName,
};
use samekey::domain::notice::NoticeEvent;
use samekey::domain::operation::{OperationRow, Status};
use samekey::domain::report::{Report, ReportQuery};
use samekey::domain::tool_call::{ToolCall, ToolResult};
use samekey::domain::transition::{Action, AuditEntry, Event, Next, Refusal, Step};
use samekey::domain::{ids::Actor, opening::Got};
use samekey::ledger::sqlite::SqliteLedger;
use samekey::ledger::{
    Accepted, Applied, AuditPage, AuditQuery, BucketSeen, CallPage, CallQuery, Counts, Detail,
    Drive, EngineSeen, LeasedCall, Ledger, LedgerError, LookupBusy, NewCall, Notice, NoticeCounts,
    OpenRow, Opening, OrderRows, Page, PageQuery, ReadFor, Stamp, Still, ToolState, Went,
};
use tokio::sync::watch;

use crate::core::{Core, Fate, Process, lock};
use crate::judge::Judge;
use crate::options::{Guard, Kind, between, chance};
use crate::store::Store;

/// How many handles a world has at most: the hint of a change goes to all of them.
pub const HANDLES: usize = 4;

pub struct SimLedger {
    pub inner: Arc<SqliteLedger>,
    pub core: Arc<Core>,
    pub judge: Arc<Judge>,
    pub store: Arc<Store>,
    pub process: Arc<Process>,
    pub clock: Clock,
    /// Which handle it is, for hints.
    pub handle: usize,
    pub dice: Mutex<ChaCha8Rng>,
}

/// What a call is, as far as faults and checks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Read,
    Write,
    Renew,
    /// A transaction that answers calls.
    Answers,
}

/// What happens to one call of the ledger.
#[derive(Debug, Default)]
struct Luck {
    wait: Option<Duration>,
    fails: bool,
    lost: bool,
}

impl SimLedger {
    fn luck(&self, sort: Sort) -> Luck {
        let mut luck = Luck::default();
        if self.core.is_healed() {
            return luck;
        }
        let options = &self.core.options;
        let mut dice = lock(&self.dice);
        let d = &mut *dice;
        if options.has(Kind::LedgerSlow) && chance(d, 12) {
            // Now and then longer than the send window.
            luck.wait = Some(between(d, 1, 3500));
        }
        if options.has(Kind::LedgerBusy) && chance(d, 2) {
            luck.wait = Some(Duration::from_secs(10));
            luck.fails = true;
        }
        if options.has(Kind::CommitFails) && chance(d, 4) {
            luck.fails = true;
        }
        if sort == Sort::Renew && options.has(Kind::RenewFails) && chance(d, 60) {
            luck.fails = true;
        }
        if sort != Sort::Read && options.has(Kind::CommitLost) && chance(d, 5) {
            luck.lost = true;
        }
        luck
    }

    pub async fn run<T, Fut>(
        &self,
        name: &'static str,
        sort: Sort,
        run: impl FnOnce(Arc<SqliteLedger>) -> Fut + Send,
    ) -> Result<T, LedgerError>
    where
        T: Send,
        Fut: Future<Output = Result<T, LedgerError>>,
    {
        let luck = self.luck(sort);
        self.process.step().await;
        if let Some(wait) = luck.wait {
            self.clock.sleep(wait).await;
            self.process.step().await;
        }
        if luck.fails {
            self.core
                .note(format!("{}: {name} fails, not done", self.process.name));
            return Err(LedgerError::Unreachable("simulated: not done".into()));
        }
        let out = self.store.block(run(Arc::clone(&self.inner)));
        let changed = self.judge.look(&self.store, sort == Sort::Answers);
        if changed {
            self.core.committed(self.handle, HANDLES);
        }
        if let Err(error) = &out {
            self.core
                .note(format!("{}: {name}: {error}", self.process.name));
        }
        if luck.lost && changed {
            self.core.saw("a commit whose reply was lost");
            self.core
                .note(format!("{}: {name} done, reply lost", self.process.name));
            return Err(LedgerError::Unreachable("simulated: reply lost".into()));
        }
        self.process.step().await;
        out
    }

    async fn perhaps_stop(&self) {
        let options = &self.core.options;
        if !options.has(Kind::StopBeforeSending) || self.core.is_healed() {
            return;
        }
        let longest = u64::try_from(options.engine.lease.as_millis()).unwrap_or(0) * 2;
        let length = {
            let mut dice = lock(&self.dice);
            chance(&mut dice, 40).then(|| between(&mut dice, 100, longest))
        };
        if let Some(length) = length {
            self.process.doom(0, Fate::Stops(length));
            self.process.step().await;
        }
    }

    fn notice(&self, refusal: &Refusal) {
        match refusal {
            Refusal::LeaseLost => self.core.saw("a lease lost before sending"),
            Refusal::CircuitOpen => self.core.saw("a circuit that was open"),
            Refusal::Paused => self.core.saw("a tool that was paused"),
            Refusal::KeyExpired => self.core.saw("a key that could not be sent any more"),
            Refusal::RateLimited { .. } => self.core.saw("a rate that was used up"),
            Refusal::NotOpen { .. } => self.core.saw("a row settled before it was sent again"),
            _ => {}
        }
    }

    /// What a harness without guards makes of an authorise that was refused or failed.
    fn pretend(&self, operation: &OperationId) -> Option<Step> {
        let detail = self.store.block(self.inner.detail(operation)).ok()??;
        let mut op = detail.op;
        op.row.status = Status::Open;
        let now = self.clock.now();
        op.row.key_expires_at = Some(now + chrono::TimeDelta::hours(1));
        let attempt = op.row.attempts + 1;
        let audit = AuditEntry {
            actor: Actor::Engine,
            action: Action::Authorised,
            detail: serde_json::json!({}),
        };
        let next = Next::Send { attempt };
        Some(Step { op, audit, next })
    }
}

#[async_trait]
impl Ledger for SimLedger {
    async fn check(&self) -> Result<(), LedgerError> {
        self.process.step().await;
        self.store.block(self.inner.check())
    }

    async fn accept_call(&self, call: NewCall) -> Result<Accepted, LedgerError> {
        self.run("accept_call", Sort::Write, |l| async move {
            l.accept_call(call).await
        })
        .await
    }

    async fn lease_calls(
        &self,
        engine: &EngineId,
        lease: Duration,
        max: u32,
    ) -> Result<Vec<LeasedCall>, LedgerError> {
        let leased = self
            .run("lease_calls", Sort::Write, |l| async move {
                l.lease_calls(engine, lease, max).await
            })
            .await?;
        for call in &leased {
            self.judge.leased(&call.call, call.epoch);
            let name = &self.process.name;
            self.core.note(format!(
                "{name}: leases {}, epoch {}",
                call.call.id, call.epoch
            ));
        }
        Ok(leased)
    }

    async fn lease_call(
        &self,
        engine: &EngineId,
        lease: Duration,
        agent: &AgentName,
        id: &CallId,
    ) -> Result<Option<LeasedCall>, LedgerError> {
        self.run("lease_call", Sort::Write, |l| async move {
            l.lease_call(engine, lease, agent, id).await
        })
        .await
    }

    async fn renew(
        &self,
        engine: &EngineId,
        lease: Duration,
        held: &[LeasedCall],
    ) -> Result<u64, LedgerError> {
        self.run("renew", Sort::Renew, |l| async move {
            l.renew(engine, lease, held).await
        })
        .await
    }

    async fn release(&self, call: &LeasedCall) -> Result<(), LedgerError> {
        self.run(
            "release",
            Sort::Write,
            |l| async move { l.release(call).await },
        )
        .await
    }

    async fn finish_call(&self, call: &LeasedCall) -> Result<Option<ToolResult>, LedgerError> {
        self.run("finish_call", Sort::Answers, |l| async move {
            l.finish_call(call).await
        })
        .await
    }

    async fn answer_call(
        &self,
        call: &LeasedCall,
        result: ToolResult,
    ) -> Result<Option<ToolResult>, LedgerError> {
        self.run("answer_call", Sort::Answers, |l| async move {
            l.answer_call(call, result).await
        })
        .await
    }

    async fn delivered(&self, agent: &AgentName, id: &CallId) -> Result<(), LedgerError> {
        self.run("delivered", Sort::Write, |l| async move {
            l.delivered(agent, id).await
        })
        .await
    }

    async fn get(
        &self,
        tool: &ToolName,
        args: &Arguments,
        payment: Option<&PaymentId>,
    ) -> Result<OrderRows, LedgerError> {
        let mut rows = self
            .run("get", Sort::Read, |l| async move {
                l.get(tool, args, payment).await
            })
            .await?;
        if self.core.options.lacks(Guard::GetBeforeCheck) {
            rows.got = Got::Nothing;
        }
        Ok(rows)
    }

    async fn open(&self, call: &LeasedCall, row: OpenRow) -> Result<Opening, LedgerError> {
        self.run(
            "open",
            Sort::Write,
            |l| async move { l.open(call, row).await },
        )
        .await
    }

    async fn drive(
        &self,
        operation: &OperationId,
        call: &LeasedCall,
        lease: Duration,
    ) -> Result<Drive, LedgerError> {
        let driven = self
            .run("drive", Sort::Write, |l| async move {
                l.drive(operation, call, lease).await
            })
            .await?;
        if matches!(driven, Drive::Joined) {
            self.core.saw("a call that joined another one");
        }
        if self.core.options.lacks(Guard::NothingAfterUnknown)
            && matches!(driven, Drive::Settled)
            && let Ok(Some(detail)) = self.store.block(self.inner.detail(operation))
            && detail.op.row.status == Status::Unknown
        {
            return Ok(Drive::Mine(Box::new(detail.op)));
        }
        Ok(driven)
    }

    async fn authorise(&self, operation: &OperationId, call: &LeasedCall) -> Applied {
        self.judge.asks_to_send(operation);
        let done = self
            .run("authorise", Sort::Write, |l| async move {
                l.authorise(operation, call).await
            })
            .await;
        match &done {
            Ok(Ok(_)) => self.perhaps_stop().await,
            Ok(Err(refusal)) => self.notice(refusal),
            Err(_) => {}
        }
        let options = &self.core.options;
        match &done {
            Ok(Err(Refusal::NotOpen {
                status: Status::Unknown,
            })) if options.lacks(Guard::NothingAfterUnknown) => {
                Ok(self.pretend(operation).ok_or(Refusal::LeaseLost))
            }
            Err(_) if options.lacks(Guard::CommitInDoubt) => {
                Ok(self.pretend(operation).ok_or(Refusal::LeaseLost))
            }
            _ => done,
        }
    }

    async fn apply(&self, operation: &OperationId, event: Event) -> Applied {
        let mut notable = None;
        if let Event::Decided(decision) = &event {
            notable = Some(format!("{} decides {:?}", decision.by.name, decision.act));
        }
        let done = self
            .run("apply", Sort::Write, |l| async move {
                l.apply(operation, event).await
            })
            .await;
        if let (Some(what), Ok(Err(refusal))) = (notable, &done) {
            self.core.note(format!("{what}: refused, {refusal}"));
        }
        done
    }

    async fn sweepable(&self) -> Result<Vec<OperationId>, LedgerError> {
        self.run(
            "sweepable",
            Sort::Read,
            |l| async move { l.sweepable().await },
        )
        .await
    }

    async fn take_read(
        &self,
        provider: &ProviderName,
        reads_for: ReadFor,
    ) -> Result<Result<(), Duration>, LedgerError> {
        self.run("take_read", Sort::Write, |l| async move {
            l.take_read(provider, reads_for).await
        })
        .await
    }

    async fn begin_lookup(
        &self,
        operation: &OperationId,
        by: &ReviewerName,
    ) -> Result<Result<(), LookupBusy>, LedgerError> {
        self.run("begin_lookup", Sort::Write, |l| async move {
            l.begin_lookup(operation, by).await
        })
        .await
    }

    async fn lookup_busy(
        &self,
        operation: &OperationId,
    ) -> Result<Option<LookupBusy>, LedgerError> {
        self.run("lookup_busy", Sort::Read, |l| async move {
            l.lookup_busy(operation).await
        })
        .await
    }

    async fn end_lookup(&self, operation: &OperationId) -> Result<(), LedgerError> {
        self.run("end_lookup", Sort::Write, |l| async move {
            l.end_lookup(operation).await
        })
        .await
    }

    async fn connection_failed(
        &self,
        tool: &ToolName,
        operation: &OperationId,
    ) -> Result<(), LedgerError> {
        self.run("connection_failed", Sort::Write, |l| async move {
            l.connection_failed(tool, operation).await
        })
        .await
    }

    async fn probed(&self, tool: &ToolName, succeeded: bool) -> Result<(), LedgerError> {
        self.core.note(format!("probe: {succeeded}"));
        self.run("probed", Sort::Write, |l| async move {
            l.probed(tool, succeeded).await
        })
        .await
    }

    async fn pause(&self, tool: &ToolName, by: Option<(&str, &str)>) -> Result<(), LedgerError> {
        self.core.note(format!("pause: {by:?}"));
        self.run(
            "pause",
            Sort::Write,
            |l| async move { l.pause(tool, by).await },
        )
        .await
    }

    async fn bind(&self, stamp: &Stamp) -> Result<(), LedgerError> {
        self.run("bind", Sort::Write, |l| async move { l.bind(stamp).await })
            .await
    }

    async fn engine_seen(&self, engine: &EngineSeen) -> Result<(), LedgerError> {
        self.run("engine_seen", Sort::Write, |l| async move {
            l.engine_seen(engine).await
        })
        .await
    }

    async fn accept_clock(&self, by: &ReviewerName) -> Result<(), LedgerError> {
        self.core.note(format!("{by} accepts the clock"));
        self.judge.clock_accepted();
        self.run("accept_clock", Sort::Write, |l| async move {
            l.accept_clock(by).await
        })
        .await
    }

    async fn clock_alarm(&self) -> Result<bool, LedgerError> {
        self.run("clock_alarm", Sort::Read, |l| async move {
            l.clock_alarm().await
        })
        .await
    }

    async fn take_notice(
        &self,
        events: &[NoticeEvent],
        lease: Duration,
    ) -> Result<Option<Notice>, LedgerError> {
        self.run("take_notice", Sort::Write, |l| async move {
            l.take_notice(events, lease).await
        })
        .await
    }

    async fn notice_went(&self, notice: &Notice, went: Went) -> Result<(), LedgerError> {
        self.run("notice_went", Sort::Write, |l| async move {
            l.notice_went(notice, went).await
        })
        .await
    }

    async fn tell_expiring(&self) -> Result<u64, LedgerError> {
        self.run("tell_expiring", Sort::Write, |l| async move {
            l.tell_expiring().await
        })
        .await
    }

    async fn notice_counts(&self) -> Result<NoticeCounts, LedgerError> {
        self.run("notice_counts", Sort::Read, |l| async move {
            l.notice_counts().await
        })
        .await
    }

    async fn review_head(&self, limit: u32) -> Result<Vec<OperationId>, LedgerError> {
        self.run("review_head", Sort::Read, |l| async move {
            l.review_head(limit).await
        })
        .await
    }

    async fn moved(&self, seen: &[(OperationId, i64)]) -> Result<Vec<OperationRow>, LedgerError> {
        self.run("moved", Sort::Read, |l| async move { l.moved(seen).await })
            .await
    }

    async fn calls_of(&self, ids: &[(AgentName, CallId)]) -> Result<Vec<ToolCall>, LedgerError> {
        self.run(
            "calls_of",
            Sort::Read,
            |l| async move { l.calls_of(ids).await },
        )
        .await
    }

    async fn report(&self, query: &ReportQuery) -> Result<Report, LedgerError> {
        self.run(
            "report",
            Sort::Read,
            |l| async move { l.report(query).await },
        )
        .await
    }

    async fn version(&self) -> Result<i64, LedgerError> {
        self.run("version", Sort::Read, |l| async move { l.version().await })
            .await
    }

    fn recovery(&self) -> &dyn samekey::ledger::Recovery {
        self
    }

    fn serving(&self) -> &dyn samekey::ledger::Serving {
        self.inner.serving()
    }

    async fn page(&self, query: &PageQuery) -> Result<Page, LedgerError> {
        self.run("page", Sort::Read, |l| async move { l.page(query).await })
            .await
    }

    async fn counts(&self) -> Result<Counts, LedgerError> {
        self.run("counts", Sort::Read, |l| async move { l.counts().await })
            .await
    }

    async fn detail(&self, operation: &OperationId) -> Result<Option<Detail>, LedgerError> {
        self.run("detail", Sort::Read, |l| async move {
            l.detail(operation).await
        })
        .await
    }

    async fn rows(&self, operations: &[OperationId]) -> Result<Vec<OperationRow>, LedgerError> {
        self.run(
            "rows",
            Sort::Read,
            |l| async move { l.rows(operations).await },
        )
        .await
    }

    async fn call(&self, agent: &AgentName, id: &CallId) -> Result<Option<ToolCall>, LedgerError> {
        self.run(
            "call",
            Sort::Read,
            |l| async move { l.call(agent, id).await },
        )
        .await
    }

    async fn calls(&self, query: &CallQuery) -> Result<CallPage, LedgerError> {
        self.run("calls", Sort::Read, |l| async move { l.calls(query).await })
            .await
    }

    async fn audit(&self, query: &AuditQuery) -> Result<AuditPage, LedgerError> {
        self.run("audit", Sort::Read, |l| async move { l.audit(query).await })
            .await
    }

    async fn buckets(&self) -> Result<Vec<BucketSeen>, LedgerError> {
        self.run("buckets", Sort::Read, |l| async move { l.buckets().await })
            .await
    }

    async fn tools(&self) -> Result<Vec<ToolState>, LedgerError> {
        self.run("tools", Sort::Read, |l| async move { l.tools().await })
            .await
    }

    async fn engines(&self) -> Result<Vec<EngineSeen>, LedgerError> {
        self.run("engines", Sort::Read, |l| async move { l.engines().await })
            .await
    }

    async fn stamps(&self) -> Result<Vec<Stamp>, LedgerError> {
        self.run("stamps", Sort::Read, |l| async move { l.stamps().await })
            .await
    }

    async fn order_rows(
        &self,
        tool: &ToolName,
        order: &OrderId,
        payment: Option<&PaymentId>,
    ) -> Result<Vec<OperationRow>, LedgerError> {
        self.run("order_rows", Sort::Read, |l| async move {
            l.order_rows(tool, order, payment).await
        })
        .await
    }

    async fn owners(
        &self,
        provider: &ProviderName,
        refs: &[ProviderRef],
    ) -> Result<Vec<(ProviderRef, OperationId)>, LedgerError> {
        self.run("owners", Sort::Read, |l| async move {
            l.owners(provider, refs).await
        })
        .await
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.core.listen(self.handle)
    }

    async fn still(&self) -> Still<'_> {
        Box::new(())
    }

    async fn close(&self) {
        self.store.block(self.inner.close());
    }
}
