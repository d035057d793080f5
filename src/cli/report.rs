//! `report`: what happened in a span of time, as text, JSON or CSV.
//!
//! Owns: how the figures are laid out. Never: counts (`domain::report` does), or adds up money of
//! different currencies. Tests: below, and `tests/cli_report.rs`.

use std::time::Duration;

use serde::Serialize;

use super::args::ReportArgs;
use super::context::{Context, Keys};
use super::table::{self, Column};
use crate::config::show_duration;
use crate::domain::ids::ToolName;
use crate::domain::money::{Currency, decimal};
use crate::domain::report::{Figures, Report, ReportQuery, Slot, Sums};
use crate::domain::{earlier, since};
use crate::error::{Exit, Failure};
use crate::ledger::sqlite::OpenMode;
use crate::ledger::view::instant;
use crate::tui::format::{grouped, span, took};

pub(super) async fn run(cx: &Context, args: &ReportArgs) -> Result<Exit, Failure> {
    let desk = cx.open(OpenMode::Read, Keys::IfThere).await?;
    let until = cx.clock.now();
    let query = ReportQuery {
        since: args.since.0.map(|span| earlier(until, span)),
        until,
        tool: args.tool.clone(),
    };
    let report = desk.ledger.report(&query).await;
    desk.ledger.close().await;
    let report = report?;
    if cx.out.is_json() {
        cx.out.json(&ReportView::of(&report))?;
    } else if args.csv {
        cx.out.text(&csv(&report))?;
    } else {
        cx.out.text(&text(&report))?;
    }
    Ok(Exit::Done)
}

/// The figures of all tools together, then of each.
fn everybody(report: &Report) -> impl Iterator<Item = (Option<&ToolName>, &Figures)> {
    let tools = report.tools.iter().map(|(tool, f)| (Some(tool), f));
    [(None, &report.total)].into_iter().chain(tools)
}

fn name(tool: Option<&ToolName>) -> String {
    tool.map_or("all".to_owned(), ToString::to_string)
}

/// The four sums by name.
fn sums(s: &Sums) -> [(&'static str, i128); 4] {
    [
        ("refunded", s.refunded),
        ("at_risk", s.at_risk),
        ("refused", s.refused),
        ("waiting", s.waiting),
    ]
}

// --- text -------------------------------------------------------------------------------------------

fn text(report: &Report) -> String {
    let until = instant(report.until);
    let opened = report.since.map_or_else(
        || "all operations".to_owned(),
        |at| format!("operations opened since {}", instant(at)),
    );
    let mut parts = vec![
        format!("{opened}, as they stand at {until}"),
        outcomes(report),
    ];
    if !report.total.money.is_empty() {
        parts.push(money(report));
    }
    if let Some((id, at)) = &report.oldest_unknown {
        let waits = span(since(*at, report.until));
        parts.push(format!(
            "oldest unknown: {id}, for {waits} (since {})",
            instant(*at)
        ));
    }
    if report.total.p50.is_some() {
        parts.push(histogram(report));
    }
    parts.join("\n\n")
}

#[rustfmt::skip]
const OUTCOMES: [Column; 10] = [
    Column::Left("TOOL"), Column::Right("OPERATIONS"), Column::Right("SUCCEEDED"), Column::Right("FAILED"),
    Column::Right("OPEN"), Column::Right("UNKNOWN"), Column::Right("CONTRADICTED"),
    Column::Right("ATTEMPTS EACH"), Column::Right("RESOLVED P50"), Column::Right("P95"),
];

fn outcomes(report: &Report) -> String {
    let rows: Vec<Vec<String>> = everybody(report)
        .map(|(tool, f)| {
            let time = |t: Option<Duration>| t.map_or("-".to_owned(), took);
            let counts = [
                f.operations(),
                f.succeeded,
                f.failed,
                f.open,
                f.unknown,
                f.contradicted,
            ];
            let mut cells = vec![name(tool)];
            cells.extend(counts.map(|n| grouped(&n.to_string())));
            cells.push(f.attempts_each().map_or("-".to_owned(), hundredths));
            cells.extend([time(f.p50), time(f.p95)]);
            cells
        })
        .collect();
    table::render(&OUTCOMES, &rows)
}

fn hundredths(n: u64) -> String {
    format!("{}.{:02}", n / 100, n % 100)
}

fn money(report: &Report) -> String {
    let columns = [
        Column::Left("TOOL"),
        Column::Left("CURRENCY"),
        Column::Right("REFUNDED"),
        Column::Right("AT RISK"),
        Column::Right("REFUSED"),
        Column::Right("WAITING"),
    ];
    let rows: Vec<Vec<String>> = everybody(report)
        .flat_map(|(tool, f)| f.money.iter().map(move |(currency, s)| (tool, currency, s)))
        .map(|(tool, currency, s)| {
            let mut cells = vec![name(tool), currency.code()];
            cells.extend(sums(s).map(|(_, minor)| grouped(&decimal(minor, *currency))));
            cells
        })
        .collect();
    table::render(&columns, &rows)
}

fn histogram(report: &Report) -> String {
    let columns = [
        Column::Left("TIME TO RESOLUTION"),
        Column::Right("OPERATIONS"),
    ];
    let rows: Vec<Vec<String>> = report
        .histogram
        .iter()
        .map(|(bound, n)| {
            let class = bound.map_or("longer".to_owned(), |b| format!("up to {}", span(b)));
            vec![class, grouped(&n.to_string())]
        })
        .collect();
    table::render(&columns, &rows)
}

// --- JSON -------------------------------------------------------------------------------------------

#[derive(Serialize)]
struct ReportView<'a> {
    since: Option<String>,
    until: String,
    total: FiguresView,
    tools: Vec<ToolView<'a>>,
    oldest_unknown: Option<OldestView<'a>>,
    slot_s: u64,
    slots: Vec<SlotView>,
    histogram: Vec<ClassView>,
}

#[derive(Serialize)]
struct ToolView<'a> {
    tool: &'a ToolName,
    #[serde(flatten)]
    figures: FiguresView,
}

#[derive(Serialize)]
struct FiguresView {
    operations: u64,
    succeeded: u64,
    failed: u64,
    open: u64,
    unknown: u64,
    contradicted: u64,
    attempts: u64,
    resolved_p50_ms: Option<u64>,
    resolved_p95_ms: Option<u64>,
    money: Vec<MoneyView>,
}

/// Minor units.
#[derive(Serialize)]
struct MoneyView {
    currency: Currency,
    refunded_cents: i128,
    at_risk_cents: i128,
    refused_cents: i128,
    waiting_cents: i128,
}

#[derive(Serialize)]
struct OldestView<'a> {
    operation_id: &'a str,
    unknown_at: String,
    age_s: u64,
}

#[derive(Serialize)]
struct SlotView {
    from: String,
    opened: u64,
    unknown: u64,
    failed: u64,
}

#[derive(Serialize)]
struct ClassView {
    /// Empty: longer than all others.
    up_to_s: Option<u64>,
    operations: u64,
}

impl<'a> ReportView<'a> {
    fn of(report: &'a Report) -> Self {
        let tools = report.tools.iter().map(|(tool, f)| ToolView {
            tool,
            figures: FiguresView::of(f),
        });
        let classes = report.histogram.iter().map(|(bound, n)| ClassView {
            up_to_s: bound.map(|b| b.as_secs()),
            operations: *n,
        });
        let oldest = report.oldest_unknown.as_ref().map(|(id, at)| OldestView {
            operation_id: id.as_str(),
            unknown_at: instant(*at),
            age_s: since(*at, report.until).as_secs(),
        });
        Self {
            since: report.since.map(instant),
            until: instant(report.until),
            total: FiguresView::of(&report.total),
            tools: tools.collect(),
            oldest_unknown: oldest,
            slot_s: report.slot.as_secs(),
            slots: report.slots.iter().map(SlotView::of).collect(),
            histogram: classes.collect(),
        }
    }
}

impl SlotView {
    fn of(slot: &Slot) -> Self {
        Self {
            from: instant(slot.from),
            opened: slot.opened,
            unknown: slot.unknown,
            failed: slot.failed,
        }
    }
}

fn millis(time: Option<Duration>) -> Option<u64> {
    time.and_then(|t| u64::try_from(t.as_millis()).ok())
}

impl FiguresView {
    fn of(f: &Figures) -> Self {
        let money = f.money.iter().map(|(currency, s)| MoneyView {
            currency: *currency,
            refunded_cents: s.refunded,
            at_risk_cents: s.at_risk,
            refused_cents: s.refused,
            waiting_cents: s.waiting,
        });
        Self {
            operations: f.operations(),
            succeeded: f.succeeded,
            failed: f.failed,
            open: f.open,
            unknown: f.unknown,
            contradicted: f.contradicted,
            attempts: f.attempts,
            resolved_p50_ms: millis(f.p50),
            resolved_p95_ms: millis(f.p95),
            money: money.collect(),
        }
    }
}

// --- CSV --------------------------------------------------------------------------------------------

/// One figure a line: `value` is a count, milliseconds or minor units, as `measure` says; `amount` is
/// the same money as a decimal. An empty `tool` means all of them.
fn csv(report: &Report) -> String {
    let mut lines = vec!["measure,tool,currency,from,value,amount".to_owned()];
    for (tool, f) in everybody(report) {
        let tool = tool.map_or("", ToolName::as_str);
        let counts = [
            ("operations", Some(f.operations())),
            ("succeeded", Some(f.succeeded)),
            ("failed", Some(f.failed)),
            ("open", Some(f.open)),
            ("unknown", Some(f.unknown)),
            ("contradicted", Some(f.contradicted)),
            ("attempts", Some(f.attempts)),
            ("resolved_p50_ms", millis(f.p50)),
            ("resolved_p95_ms", millis(f.p95)),
        ];
        for (measure, value) in counts {
            if let Some(value) = value {
                lines.push(line([measure, tool, "", "", &value.to_string(), ""]));
            }
        }
        for (currency, all) in &f.money {
            for (measure, minor) in sums(all) {
                let (value, amount) = (minor.to_string(), decimal(minor, *currency));
                let code = currency.code();
                lines.push(line([measure, tool, &code, "", &value, &amount]));
            }
        }
    }
    if let Some((id, at)) = &report.oldest_unknown {
        let age = since(*at, report.until).as_millis().to_string();
        let (id, at) = (id.as_str(), instant(*at));
        lines.push(line(["oldest_unknown_ms", "", "", &at, &age, ""]));
        lines.push(line(["oldest_unknown_id", "", "", &at, id, ""]));
    }
    for slot in &report.slots {
        let from = instant(slot.from);
        let counts = [
            ("slot_opened", slot.opened),
            ("slot_unknown", slot.unknown),
            ("slot_failed", slot.failed),
        ];
        for (measure, n) in counts {
            lines.push(line([measure, "", "", &from, &n.to_string(), ""]));
        }
    }
    for (bound, n) in &report.histogram {
        let class = bound.map_or("resolved_longer".to_owned(), |b| {
            format!("resolved_within_{}", show_duration(b))
        });
        lines.push(line([&class, "", "", "", &n.to_string(), ""]));
    }
    lines.join("\n")
}

fn line(fields: [&str; 6]) -> String {
    fields.map(field).join(",")
}

/// A field that no spreadsheet takes for a formula and no reader for two.
fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = if formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Instant;
    use crate::domain::money::Money;
    use crate::domain::operation::{Effect, Status};
    use crate::domain::report::{Fact, Fold};

    fn report(tool: &str, currency: &str) -> Report {
        let at = Instant::from_timestamp(1_773_497_002, 0).expect("an instant");
        let query = ReportQuery {
            since: None,
            until: at,
            tool: None,
        };
        let created_at = earlier(at, Duration::from_secs(48));
        let mut fold = Fold::new(&query, created_at);
        fold.add(&Fact {
            tool: tool.parse().expect("a tool"),
            status: Status::Succeeded,
            effect: Effect::Identified,
            contradicted: false,
            money: Money::from_minor(1_234, currency.parse().expect("a currency")).ok(),
            attempts: 2,
            created_at,
            unknown_at: None,
            closed_at: Some(at),
        });
        fold.report(None)
    }

    #[test]
    fn no_field_is_a_formula_or_two_fields() {
        let table = [
            ("plain", "plain"),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@sum", "'@sum"),
            ("a,b", "\"a,b\""),
            ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
            ("", ""),
        ];
        for (text, wanted) in table {
            assert_eq!(field(text), wanted);
        }
    }

    #[test]
    fn a_hostile_tool_stays_in_its_field() {
        let text = csv(&report("=cmd|' /C calc'!A0,\"x\"", "usd"));
        let line = text
            .lines()
            .find(|l| l.starts_with("succeeded,\"'=cmd"))
            .expect("its line");
        assert_eq!(line, "succeeded,\"'=cmd|' /C calc'!A0,\"\"x\"\"\",,,1,");
    }

    #[test]
    fn amounts_have_the_decimals_of_their_currency_u19() {
        for (currency, amount) in [("usd", "12.34"), ("jpy", "1234"), ("kwd", "1.234")] {
            let report = report("issue_refund", currency);
            let wanted = format!(
                "refunded,issue_refund,{},,1234,{amount}",
                currency.to_uppercase()
            );
            assert!(
                csv(&report).lines().any(|l| l == wanted),
                "{}",
                csv(&report)
            );
            assert!(text(&report).contains(&grouped(amount)));
        }
    }
}
