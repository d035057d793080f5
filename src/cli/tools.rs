//! `tools`: the tools, their limits, and whether they send.

use serde_json::{Value, json};

use super::args::{PauseArgs, ToolsCommand};
use super::context::{Context, Desk, Keys};
use super::table::{self, Column};
use crate::config::{show_duration, show_rate};
use crate::domain::policy::{CircuitState, ToolPolicy};
use crate::error::{Exit, Failure};
use crate::ledger::ToolState;
use crate::ledger::sqlite::OpenMode;

pub(super) async fn run(cx: &Context, command: &ToolsCommand) -> Result<Exit, Failure> {
    let mode = match command {
        ToolsCommand::List => OpenMode::Read,
        ToolsCommand::Pause(_) | ToolsCommand::Resume(_) => OpenMode::Review,
    };
    let desk = cx.open(mode, Keys::IfThere).await?;
    let done = match command {
        ToolsCommand::List => list(cx, &desk).await,
        ToolsCommand::Pause(args) => switch(cx, &desk, args, true).await,
        ToolsCommand::Resume(args) => switch(cx, &desk, args, false).await,
    };
    desk.ledger.close().await;
    done
}

async fn list(cx: &Context, desk: &Desk) -> Result<Exit, Failure> {
    let states = desk.ledger.tools().await?;
    let of = |tool| states.iter().find(|s| s.tool == tool);
    let tools: Vec<_> = desk
        .terms
        .iter()
        .map(|(tool, terms)| (tool, &terms.policy, of(tool.clone())))
        .collect();
    if cx.out.is_json() {
        let values: Vec<_> = tools
            .iter()
            .map(|(tool, policy, state)| value(tool.as_str(), policy, *state))
            .collect();
        cx.out.json(&values)?;
        return Ok(Exit::Done);
    }
    let columns = [
        Column::Left("TOOL"),
        Column::Left("PROVIDER"),
        Column::Left("SENDING"),
        Column::Left("CIRCUIT"),
        Column::Right("PER CALL"),
        Column::Right("PER OPERATION"),
        Column::Right("RATE"),
    ];
    let rows: Vec<_> = tools
        .iter()
        .map(|(tool, policy, state)| {
            let paused = state.and_then(|s| s.paused.as_ref());
            let sending = paused.map_or("yes".to_owned(), |(by, why)| {
                format!("paused by {by}: {why}")
            });
            vec![
                tool.to_string(),
                policy.provider.to_string(),
                sending,
                circuit(*state).to_owned(),
                policy.max_per_call.to_string(),
                policy.max_per_operation.to_string(),
                show_rate(policy.rate),
            ]
        })
        .collect();
    cx.out.text(&table::render(&columns, &rows))?;
    Ok(Exit::Done)
}

fn circuit(state: Option<&ToolState>) -> &'static str {
    match state.map(|s| &s.circuit.state) {
        None | Some(CircuitState::Closed) => "closed",
        Some(CircuitState::Open { .. }) => "open",
        Some(CircuitState::Trial { .. }) => "trial",
    }
}

fn value(tool: &str, p: &ToolPolicy, state: Option<&ToolState>) -> Value {
    let paused = state
        .and_then(|s| s.paused.as_ref())
        .map(|(by, why)| json!({ "by": by, "why": why }));
    let caps: serde_json::Map<_, _> = p
        .caps
        .iter()
        .map(|(currency, c)| {
            let total = c.max_total.map(
                |(amount, window)| json!({ "amount": amount, "window": show_duration(window) }),
            );
            let caps = json!({
                "max_amount_cents": c.max_amount, "max_total_cents": total,
                "approve_over_cents": c.approve_over, "four_eyes_over_cents": c.four_eyes_over,
            });
            (currency.to_string(), caps)
        })
        .collect();
    json!({
        "tool": tool, "provider": p.provider, "paused": paused, "circuit": circuit(state),
        "max_per_call": p.max_per_call, "max_per_operation": p.max_per_operation,
        "rate": show_rate(p.rate), "repeat": p.repeat, "caps": caps,
    })
}

async fn switch(cx: &Context, desk: &Desk, args: &PauseArgs, pause: bool) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let tool = &args.tool;
    let says = if pause {
        let Some(why) = &args.note else {
            return Err(Failure::usage("usage", "a pause needs its reason").hint("add --note TEXT"));
        };
        gate.pause(tool, &person, why).await?;
        format!("{tool} is paused; lookups go on")
    } else {
        gate.resume(tool, &person).await?;
        format!("{tool} sends again")
    };
    if cx.out.is_json() {
        cx.out.json(&json!({ "tool": tool, "paused": pause }))?;
    } else {
        cx.out.text(&says)?;
    }
    Ok(Exit::Done)
}
