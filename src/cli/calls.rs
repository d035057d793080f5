//! `calls`: tool calls with their separate facts, accepted, executed and delivered (R85).

use super::args::{CallListArgs, CallShowArgs, CallsCommand};
use super::context::{Context, Desk, Keys};
use super::table::{self, Column};
use crate::domain::tool_call::ToolCall;
use crate::error::{Exit, Failure};
use crate::ledger::CallQuery;
use crate::ledger::sqlite::OpenMode;
use crate::ledger::view::{CallView, instant};

pub(super) async fn run(cx: &Context, command: &CallsCommand) -> Result<Exit, Failure> {
    let desk = cx.open(OpenMode::Read, Keys::IfThere).await?;
    let done = match command {
        CallsCommand::List(args) => list(cx, &desk, args).await,
        CallsCommand::Show(args) => show(cx, &desk, args).await,
    };
    desk.ledger.close().await;
    done
}

async fn list(cx: &Context, desk: &Desk, args: &CallListArgs) -> Result<Exit, Failure> {
    let query = CallQuery {
        state: args.state,
        tool: args.tool.clone(),
        order: args.order.clone(),
        limit: args.limit,
        ..CallQuery::default()
    };
    let page = desk.ledger.calls(&query).await?;
    let calls = page.calls;
    if cx.out.is_json() {
        let views: Vec<_> = calls
            .iter()
            .map(|c| CallView::of(c, desk.language()))
            .collect();
        cx.out.json(&views)?;
    } else if calls.is_empty() {
        cx.out.note("no calls");
    } else {
        cx.out.text(&text(&calls))?;
    }
    if page.more {
        cx.out.note("there are more calls: raise --limit");
    }
    Ok(Exit::Done)
}

fn text(calls: &[ToolCall]) -> String {
    let columns = [
        Column::Left("CALL"),
        Column::Left("AGENT"),
        Column::Left("TOOL"),
        Column::Left("STATE"),
        Column::Left("ACCEPTED"),
        Column::Left("EXECUTED"),
        Column::Left("DELIVERED"),
        Column::Left("ANSWER"),
        Column::Left("OPERATION"),
    ];
    let rows: Vec<_> = calls
        .iter()
        .map(|c| {
            let (state, delivery): (&str, &str) = (c.state.into(), c.delivery.into());
            let delivered = c.delivered_at.map_or(delivery.to_owned(), instant);
            vec![
                c.id.to_string(),
                c.agent.to_string(),
                c.tool.to_string(),
                state.to_owned(),
                instant(c.accepted_at),
                c.executed_at.map_or(String::new(), instant),
                delivered,
                c.result.as_ref().map_or("", |r| r.status()).to_owned(),
                c.operation
                    .as_ref()
                    .map_or(String::new(), ToString::to_string),
            ]
        })
        .collect();
    table::render(&columns, &rows)
}

async fn show(cx: &Context, desk: &Desk, args: &CallShowArgs) -> Result<Exit, Failure> {
    let Some(call) = desk.ledger.call(&args.agent, &args.id).await? else {
        let message = format!("agent {} has no call {}", args.agent, args.id);
        return Err(Failure::no("no_such_call", message)
            .hint("call ids belong to their agent: name it with --agent"));
    };
    let view = CallView::of(&call, desk.language());
    if cx.out.is_json() {
        cx.out.json(&view)?;
        return Ok(Exit::Done);
    }
    let value = serde_json::to_value(&view).unwrap_or_default();
    let lines: Vec<_> = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, v)| !v.is_null())
        .map(|(k, v)| match v {
            serde_json::Value::String(text) => format!("{k}: {text}"),
            other => format!("{k}: {other}"),
        })
        .collect();
    cx.out.text(&lines.join("\n"))?;
    Ok(Exit::Done)
}
