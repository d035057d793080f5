//! `events`: the provider's events that wait, were set aside or were acknowledged, and acknowledging one.
//! Tests: `tests/webhooks/acknowledging.rs`.

use serde_json::{Value, json};

use super::args::{AcknowledgeArgs, EventsCommand};
use super::context::{Context, Desk, Keys};
use super::table::{self, Column};
use crate::domain::ids::OperationId;
use crate::error::{Exit, Failure};
use crate::ledger::EventLine;
use crate::ledger::sqlite::OpenMode;

/// Most of each state that are listed.
const MOST: u32 = 100;

pub(super) async fn run(cx: &Context, command: &EventsCommand) -> Result<Exit, Failure> {
    let mode = match command {
        EventsCommand::List => OpenMode::Read,
        EventsCommand::Acknowledge(_) => OpenMode::Review,
    };
    let desk = cx.open(mode, Keys::IfThere).await?;
    let done = match command {
        EventsCommand::List => list(cx, &desk).await,
        EventsCommand::Acknowledge(args) => acknowledge(cx, &desk, args).await,
    };
    desk.ledger.close().await;
    done
}

async fn list(cx: &Context, desk: &Desk) -> Result<Exit, Failure> {
    let lines = desk.ledger.recovery().event_lines(MOST).await?;
    if cx.out.is_json() {
        cx.out.json(&lines.iter().map(value).collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    let columns = [
        Column::Left("EVENT"),
        Column::Left("PROVIDER"),
        Column::Left("TYPE"),
        Column::Left("STATE"),
        Column::Left("WHY"),
        Column::Left("OPERATION"),
        Column::Left("RECEIVED"),
        Column::Right("TRIES"),
    ];
    let rows: Vec<_> = lines.iter().map(row).collect();
    cx.out.text(&table::render(&columns, &rows))?;
    Ok(Exit::Done)
}

fn row(line: &EventLine) -> Vec<String> {
    let why = line.reason.as_ref().map_or("", |r| r.as_str());
    let why = match &line.acknowledged {
        Some(seen) => format!("{why}; {}: {}", seen.by, seen.note),
        None => why.to_owned(),
    };
    let operation = line.operation.as_ref().map_or("", OperationId::as_str);
    vec![
        line.id.to_string(),
        line.provider.to_string(),
        line.kind.to_string(),
        line.state.to_string(),
        why,
        operation.to_owned(),
        line.received_at.format("%Y-%m-%d %H:%M:%SZ").to_string(),
        line.tries.to_string(),
    ]
}

fn value(line: &EventLine) -> Value {
    let time = |at: crate::domain::Instant| at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let seen = line.acknowledged.as_ref();
    let seen = seen.map(|s| json!({ "by": s.by, "at": time(s.at), "note": s.note }));
    json!({
        "event_id": line.id, "provider": line.provider, "type": line.kind, "state": line.state,
        "reason": line.reason, "operation_id": line.operation, "received_at": time(line.received_at),
        "tries": line.tries, "acknowledged": seen,
    })
}

async fn acknowledge(cx: &Context, desk: &Desk, args: &AcknowledgeArgs) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let provider = args.provider.as_ref();
    let says = gate
        .acknowledge_event(&args.id, provider, &person, &args.note)
        .await?;
    if cx.out.is_json() {
        cx.out
            .json(&json!({ "event_id": args.id, "state": "acknowledged" }))?;
    } else {
        cx.out.text(&says)?;
    }
    Ok(Exit::Done)
}
