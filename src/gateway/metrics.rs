//! The figures of `/metrics`, in the text format of Prometheus.
//!
//! Owns: their names and labels, which stay. Read from kept tallies and indexes, never by a scan; labels
//! are of closed sets. Never: names an order, a call or an agent. Tests: `tests/gateway/observe.rs`.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::domain::policy::CircuitState;
use crate::domain::since;
use crate::engine::{EngineHealth, EngineState};
use crate::ledger::{
    AttemptTimes, BEYOND_MS, BucketSeen, CallQuery, Counts, LedgerError, PageQuery, Sort, Tab,
    ToolState,
};

use super::observe::Observed;

/// How long a call may be queued without being the oldest: it is looked for among so many rows.
const LEAST: u32 = 20;

/// Answers by route, method and status.
pub(super) type Answers = BTreeMap<(String, &'static str, u16), u64>;

/// Everything at one moment. Durations in seconds.
#[derive(Debug)]
pub(super) struct Figures {
    answers: Answers,
    health: Option<EngineHealth>,
    ledger: Option<OfLedger>,
}

#[derive(Debug)]
struct OfLedger {
    counts: Counts,
    attempts: Vec<AttemptTimes>,
    key_left: Option<f64>,
    oldest_queued: f64,
    tools: Vec<(String, bool, bool)>,
    reads: Vec<(String, f64)>,
    clock_alarm: bool,
}

/// Reads what is shown. A ledger that does not answer is one of the figures.
pub(super) async fn figures(of: &Observed, answers: Answers) -> Figures {
    let ledger = match of_ledger(of).await {
        Ok(figures) => Some(figures),
        Err(error) => {
            tracing::warn!(%error, "the figures of the ledger could not be read");
            None
        }
    };
    Figures {
        answers,
        health: of.health(),
        ledger,
    }
}

async fn of_ledger(of: &Observed) -> Result<OfLedger, LedgerError> {
    let (ledger, now) = (&of.deps.ledger, of.deps.clock.now());
    let expiring = PageQuery {
        tab: Tab::Open,
        sort: Sort::KeyLeft,
        ascending: true,
        limit: LEAST,
        ..PageQuery::default()
    };
    // What the provider has made is not sent again, however long its key lives.
    let expiring = ledger.page(&expiring).await?.rows.into_iter();
    let key_left = expiring
        .filter(|l| l.row.provider_ref.is_none())
        .find_map(|l| l.row.key_expires_at)
        .map(|at| since(now, at).as_secs_f64());
    let queued = CallQuery {
        state: Some(crate::domain::tool_call::CallState::Queued),
        ascending: true,
        limit: 1,
        ..CallQuery::default()
    };
    let oldest = ledger.calls(&queued).await?.calls.into_iter().next();
    let states = ledger.tools().await?;
    let tools = of.deps.terms.keys().map(|tool| {
        let state = states.iter().find(|s| s.tool == *tool);
        let open = |s: &ToolState| !matches!(s.circuit.state, CircuitState::Closed);
        let paused = state.is_some_and(|s| s.paused.is_some());
        (tool.to_string(), state.is_some_and(open), paused)
    });
    let buckets = ledger.buckets().await?;
    let reads = of.deps.providers.keys().map(|provider| {
        let name = format!("read:{provider}");
        let used = |b: &&BucketSeen| b.name == name;
        let wait = buckets
            .iter()
            .find(used)
            .map_or(0.0, |b| since(now, b.full_at).as_secs_f64());
        (provider.to_string(), wait)
    });
    Ok(OfLedger {
        counts: ledger.counts().await?,
        attempts: ledger.serving().attempt_times().await?,
        key_left,
        oldest_queued: oldest.map_or(0.0, |c| since(c.accepted_at, now).as_secs_f64()),
        tools: tools.collect(),
        reads: reads.collect(),
        clock_alarm: ledger.clock_alarm().await?,
    })
}

/// The text of the figures.
pub(super) fn text(figures: Figures) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("samekey");
    registry.register_collector(Box::new(figures));
    let mut out = String::new();
    prometheus_text::encode(&mut out, &registry)?;
    Ok(out)
}

/// Gauges of one name.
fn gauges<L, I>(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, of: I) -> fmt::Result
where
    L: prometheus_client::encoding::EncodeLabelSet,
    I: IntoIterator<Item = (L, f64)>,
{
    let mut metric = e.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in of {
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

fn gauge(e: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    let mut metric = e.encode_descriptor(name, help, None, MetricType::Gauge)?;
    metric.encode_gauge(&value)
}

/// A count as Prometheus has all its numbers.
#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn float(n: u64) -> f64 {
    n as f64
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let e = &mut encoder;
        let up = f64::from(u8::from(self.ledger.is_some()));
        gauge(e, "ledger_up", "Whether the ledger could be read", up)?;
        let running = |h: &EngineHealth| h.state == EngineState::Running && h.alarm.is_none();
        let engine = f64::from(u8::from(self.health.as_ref().is_some_and(running)));
        gauge(
            e,
            "engine_up",
            "Whether the engine of this process runs and sends",
            engine,
        )?;
        let busy = self.health.as_ref().map_or(0, |h| h.busy);
        gauge(
            e,
            "engine_busy",
            "Calls that the engine of this process drives",
            f64::from(busy),
        )?;
        self.answers(e)?;
        match &self.ledger {
            Some(ledger) => ledger.encode(e),
            None => Ok(()),
        }
    }
}

impl Figures {
    fn answers(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Answers of the gateway";
        let mut metric = e.encode_descriptor("http_answers", help, None, MetricType::Counter)?;
        for ((route, method, status), n) in &self.answers {
            let status = status.to_string();
            let labels = [
                ("method", *method),
                ("route", route.as_str()),
                ("status", status.as_str()),
            ];
            let mut one = metric.encode_family(&labels)?;
            one.encode_counter::<NoLabelSet, _, f64>(n, None)?;
        }
        Ok(())
    }
}

impl OfLedger {
    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let c = &self.counts;
        let statuses = [
            ("open", c.open),
            ("unknown", c.unknown),
            ("succeeded", c.succeeded),
            ("failed", c.failed),
        ];
        let statuses = statuses.map(|(status, n)| ([("status", status)], float(n)));
        gauges(e, "operations", "Operations by status", statuses)?;
        let review = "Operations that need a person, counted up to 1000";
        gauge(e, "review", review, float(c.review))?;
        let calls = [("queued", c.queued), ("running", c.running)];
        let calls = calls.map(|(state, n)| ([("state", state)], float(n)));
        gauges(e, "calls_waiting", "Calls without an answer", calls)?;
        let oldest = "How long the oldest call waits that no engine has begun";
        gauge(e, "oldest_queued_call_seconds", oldest, self.oldest_queued)?;
        gauge(
            e,
            "attempts_in_flight",
            "Attempts without an outcome",
            float(c.in_flight),
        )?;
        if let Some(left) = self.key_left {
            let help = "Least time that the key of an open operation may still be sent";
            gauge(e, "least_key_time_left_seconds", help, left)?;
        }
        let alarm = f64::from(u8::from(self.clock_alarm));
        gauge(
            e,
            "clock_alarm",
            "Whether the wall clock is not trusted",
            alarm,
        )?;
        let flag = |on: bool| f64::from(u8::from(on));
        let open = self
            .tools
            .iter()
            .map(|(tool, open, _)| ([("tool", tool.as_str())], flag(*open)));
        gauges(
            e,
            "circuit_open",
            "Whether a tool's circuit is not closed",
            open,
        )?;
        let paused = self
            .tools
            .iter()
            .map(|(tool, _, p)| ([("tool", tool.as_str())], flag(*p)));
        gauges(e, "tool_paused", "Whether a tool is paused", paused)?;
        let reads = self
            .reads
            .iter()
            .map(|(p, wait)| ([("provider", p.as_str())], *wait));
        let help = "Until a provider may be read again within its read budget; 0: now";
        gauges(e, "read_budget_wait_seconds", help, reads)?;
        self.attempts(e)
    }

    fn attempts(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut classes: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut times: BTreeMap<&str, BTreeMap<u64, (u64, u64)>> = BTreeMap::new();
        for a in &self.attempts {
            *classes
                .entry((a.provider.as_str(), a.outcome.as_str()))
                .or_default() += a.count;
            let spans = times.entry(a.provider.as_str()).or_default();
            let span = spans.entry(a.le_ms).or_default();
            *span = (span.0 + a.count, span.1 + a.total_ms);
        }
        let help = "Attempts by outcome class";
        let mut metric = e.encode_descriptor("attempts", help, None, MetricType::Counter)?;
        for ((provider, outcome), n) in &classes {
            let labels = [("provider", *provider), ("outcome", *outcome)];
            let mut one = metric.encode_family(&labels)?;
            one.encode_counter::<NoLabelSet, _, f64>(n, None)?;
        }
        let help = "From an attempt's authorisation to its outcome";
        let name = "attempt_duration_seconds";
        let mut metric = e.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (provider, spans) in &times {
            let count = spans.values().map(|(n, _)| n).sum();
            let total: u64 = spans.values().map(|(_, total)| total).sum();
            let bounds = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, BEYOND_MS];
            let buckets = bounds.map(|le| {
                let n = spans.get(&le).map_or(0, |(n, _)| *n);
                let bound = if le == BEYOND_MS {
                    f64::INFINITY
                } else {
                    float(le) / 1000.0
                };
                (bound, n)
            });
            let labels = [("provider", *provider)];
            let mut one = metric.encode_family(&labels)?;
            one.encode_histogram::<NoLabelSet>(float(total) / 1000.0, count, &buckets, None)?;
        }
        Ok(())
    }
}
