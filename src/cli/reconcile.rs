//! `reconcile --once`: every unsettled row looked at, missed events fetched in turns between them, and what
//! that came to.
//! Tests: `tests/reconcile/cli.rs`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::args::ReconcileArgs;
use super::context::{Context, Desk, Keys};
use super::screen::deps;
use crate::domain::evidence::Verdict;
use crate::domain::operation::{OperationRow, Status};
use crate::domain::since;
use crate::engine::{Reconciled, reconcile};
use crate::error::{Exit, Failure};
use crate::ledger::sqlite::OpenMode;
use crate::ledger::{EventCounts, EventLine};

/// Unsettled for longer than this is ageing.
const AGEING: Duration = Duration::from_hours(24);
/// Most events that are named.
const MOST_EVENTS: u32 = 100;

pub(super) async fn run(cx: &Context, _args: &ReconcileArgs) -> Result<Exit, Failure> {
    let desk = cx.open(OpenMode::Review, Keys::Needed).await?;
    let done = told(cx, &desk).await;
    desk.ledger.close().await;
    done
}

async fn told(cx: &Context, desk: &Desk) -> Result<Exit, Failure> {
    let done = reconcile(deps(desk)).await?;
    let counts = desk.ledger.recovery().event_counts().await?;
    let mut lines = desk.ledger.recovery().event_lines(MOST_EVENTS).await?;
    // Somebody has seen these.
    lines.retain(|line| line.acknowledged.is_none());
    let found = Found::of(&done, desk);
    if cx.out.is_json() {
        cx.out.json(&as_json(&found, &done, &counts, &lines))?;
    } else {
        cx.out.text(&as_text(&found, &done, &counts, &lines))?;
    }
    Ok(if done.unanswered.is_empty() {
        Exit::Done
    } else {
        Exit::Unreachable
    })
}

/// The rows that were looked at, sorted by what was found.
struct Found<'a> {
    matched: Vec<&'a OperationRow>,
    unmatched: Vec<&'a OperationRow>,
    ambiguous: Vec<&'a OperationRow>,
    contradicted: Vec<&'a OperationRow>,
    /// With their age in seconds.
    ageing: Vec<(&'a OperationRow, u64)>,
}

impl<'a> Found<'a> {
    fn of(done: &'a Reconciled, desk: &Desk) -> Self {
        let now = desk.clock.now();
        let mut known = BTreeSet::new();
        let rows = done.looked.iter().rev().filter(|r| known.insert(&r.id));
        let mut rows: Vec<&OperationRow> = rows.collect();
        rows.sort_by_key(|r| (r.created_at, r.id.as_str()));
        let with = |wanted: fn(Option<Verdict>) -> bool| {
            let of = rows.iter().copied().filter(|r| wanted(r.verdict));
            of.collect::<Vec<_>>()
        };
        let unsettled = |r: &&OperationRow| matches!(r.status, Status::Open | Status::Unknown);
        let ages = rows.iter().copied().filter(unsettled);
        let ages = ages.map(|r| (r, since(r.created_at, now)));
        let old = ages.filter(|(_, age)| *age >= AGEING);
        Self {
            matched: with(|v| {
                use Verdict as V;
                matches!(v, Some(V::Confirmed | V::Pending | V::Refused))
            }),
            unmatched: with(|v| matches!(v, None | Some(Verdict::Absent))),
            ambiguous: with(|v| matches!(v, Some(Verdict::Ambiguous | Verdict::SecondEffect))),
            contradicted: rows
                .iter()
                .copied()
                .filter(|r| r.contradicted.is_some())
                .collect(),
            ageing: old.map(|(r, age)| (r, age.as_secs())).collect(),
        }
    }
}

fn row(row: &OperationRow) -> Value {
    json!({
        "operation_id": row.id, "order_id": row.order_id, "amount_cents": row.minor(),
        "currency": row.currency(), "status": row.status, "reason": row.reason,
        "verdict": row.verdict, "provider_ref": row.provider_ref, "contradicted": row.contradicted,
    })
}

fn as_json(
    found: &Found<'_>,
    done: &Reconciled,
    counts: &EventCounts,
    lines: &[EventLine],
) -> Value {
    let rows = |of: &[&OperationRow]| of.iter().map(|r| row(r)).collect::<Vec<_>>();
    let ageing = found.ageing.iter().map(|(r, age_s)| {
        let mut value = row(r);
        value["age_s"] = json!(age_s);
        value
    });
    let unanswered = done.unanswered.iter();
    let unanswered = unanswered.map(|(id, why)| json!({ "operation_id": id, "why": why }));
    let troubles = done.troubles.iter();
    let troubles = troubles.map(|(provider, why)| json!({ "provider": provider, "why": why }));
    let named = lines.iter().map(|e| {
        json!({
            "event_id": e.id, "provider": e.provider, "type": e.kind, "state": e.state, "reason": e.reason,
            "operation_id": e.operation, "tries": e.tries,
        })
    });
    json!({
        "looked": done.looked.len(),
        "matched": rows(&found.matched), "unmatched": rows(&found.unmatched),
        "ambiguous": rows(&found.ambiguous), "contradicted": rows(&found.contradicted),
        "ageing": ageing.collect::<Vec<_>>(), "unanswered": unanswered.collect::<Vec<_>>(),
        "events": {
            "listed": done.listed, "missed": done.missed, "passed_over": done.passed_over,
            "worked_on": done.worked_on, "unfinished": done.unfinished,
            "received": counts.received, "waiting": counts.waiting, "processed": counts.processed,
            "ignored": counts.ignored, "quarantined": counts.quarantined,
            "acknowledged": counts.acknowledged,
            "named": named.collect::<Vec<_>>(), "troubles": troubles.collect::<Vec<_>>(),
        },
    })
}

fn as_text(
    found: &Found<'_>,
    done: &Reconciled,
    counts: &EventCounts,
    lines: &[EventLine],
) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{} looked at: {} matched, {} unmatched, {} ambiguous, {} contradicted, {} ageing",
        done.looked.len(),
        found.matched.len(),
        found.unmatched.len(),
        found.ambiguous.len(),
        found.contradicted.len(),
        found.ageing.len()
    );
    let parts = [
        ("ambiguous", &found.ambiguous),
        ("contradicted", &found.contradicted),
    ];
    for (word, rows) in parts {
        for row in rows {
            let (status, about) = (row.status.as_str(), row.subject());
            let _ = writeln!(out, "  {word}  {}  {about}  {status}", row.id);
        }
    }
    for (row, age) in &found.ageing {
        let (status, hours) = (row.status.as_str(), age / 3600);
        let _ = writeln!(out, "  ageing  {}  {status}  for {hours} h", row.id);
    }
    for (id, why) in &done.unanswered {
        let _ = writeln!(out, "  not looked at  {id}: {why}");
    }
    let _ = writeln!(
        out,
        "events: {} listed, {} had been missed; {} processed, {} ignored, {} waiting, {} quarantined",
        done.listed,
        done.missed,
        counts.processed,
        counts.ignored,
        counts.waiting.saturating_add(counts.received),
        counts.quarantined
    );
    for event in lines {
        let why = event.reason.as_ref().map_or("", |r| r.as_str());
        let _ = writeln!(
            out,
            "  {}  {}  {}: {why}",
            event.state, event.id, event.kind
        );
    }
    for provider in &done.unfinished {
        let _ = writeln!(
            out,
            "  the events of {provider} were not listed to the end; the next run goes on from there"
        );
    }
    for (provider, why) in &done.troubles {
        let _ = writeln!(out, "  the events of {provider} could not be listed: {why}");
    }
    out
}
