//! `tools`: the tools, their limits, and whether they send.

use serde_json::{Value, json};

use super::args::{CheckArgs, PauseArgs, ToolsCommand};
use super::context::{Context, Desk, Keys};
use super::table::{self, Column};
use crate::config::{Place, show_duration, show_rate};
use crate::domain::policy::{CircuitState, ProviderKind, ToolPolicy};
use crate::domain::text::SafeText;
use crate::error::{Exit, Failure};
use crate::ledger::ToolState;
use crate::ledger::sqlite::OpenMode;
use crate::tool::Tool;
use crate::tool::description::Description;
use crate::tool::samples::Samples;
use crate::tool::shipped::{ALL, ShippedTool};

pub(super) async fn run(cx: &Context, command: &ToolsCommand) -> Result<Exit, Failure> {
    let mode = match command {
        ToolsCommand::Check(args) => return check(cx, args),
        ToolsCommand::List => OpenMode::Read,
        ToolsCommand::Pause(_) | ToolsCommand::Resume(_) => OpenMode::Review,
    };
    let desk = cx.open(mode, Keys::IfThere).await?;
    let done = match command {
        ToolsCommand::List | ToolsCommand::Check(_) => list(cx, &desk).await,
        ToolsCommand::Pause(args) => switch(cx, &desk, args, true).await,
        ToolsCommand::Resume(args) => switch(cx, &desk, args, false).await,
    };
    desk.ledger.close().await;
    done
}

/// Validates descriptions and runs the samples kept beside them; needs neither ledger nor provider.
fn check(cx: &Context, args: &CheckArgs) -> Result<Exit, Failure> {
    let loaded = cx.config()?;
    let mut found = Vec::new();
    for (name, section) in &loaded.config.tools {
        let Some(described) = &section.described else {
            continue;
        };
        let samples = match &described.place {
            Place::Shipped(name) => shipped(name).map(|t| t.samples.to_owned()),
            Place::File(path) => std::fs::read_to_string(path.with_extension("samples.json")).ok(),
            Place::Here(_) => None,
        };
        found.push((name.to_string(), tried(&described.tool, samples.as_deref())));
    }
    let configured: Vec<String> = found.iter().map(|(name, _)| name.clone()).collect();
    for tool in ALL
        .iter()
        .filter(|t| !configured.iter().any(|n| n == t.name))
    {
        let read = Description::parse(tool.description)
            .and_then(|text| Tool::new(text, ProviderKind::None));
        let tried = match read {
            Ok(read) => tried(&read, Some(tool.samples)),
            Err(why) => Tried::wrong(why),
        };
        found.push((tool.name.to_owned(), tried));
    }
    if let Some(wanted) = &args.tool {
        found.retain(|(name, _)| name == wanted);
        if found.is_empty() {
            let wanted = SafeText::new(wanted);
            let message = format!("there is no described tool {:?}", wanted.as_str());
            return Err(Failure::usage("unknown_tool", message)
                .hint("`samekey tools check` without a name tries all of them"));
        }
    }
    let good = found.iter().all(|(_, tried)| tried.wrong.is_empty());
    if cx.out.is_json() {
        let all: Vec<_> = found
            .iter()
            .map(|(name, t)| json!({ "tool": name, "samples": t.samples, "wrong": t.wrong }))
            .collect();
        cx.out.json(&all)?;
    } else {
        for (name, tried) in &found {
            let says = if tried.wrong.is_empty() {
                "ok"
            } else {
                "wrong"
            };
            cx.out
                .text(&format!("{name}: {says}, {} samples", tried.samples))?;
            for line in &tried.wrong {
                cx.out.text(&format!("  {line}"))?;
            }
        }
    }
    Ok(if good { Exit::Done } else { Exit::No })
}

/// How a description did.
struct Tried {
    samples: usize,
    wrong: Vec<String>,
}

impl Tried {
    fn wrong(why: String) -> Self {
        let (samples, wrong) = (0, vec![why]);
        Self { samples, wrong }
    }
}

fn tried(tool: &Tool, samples: Option<&str>) -> Tried {
    let Some(text) = samples else {
        let (samples, wrong) = (0, Vec::new());
        return Tried { samples, wrong };
    };
    match Samples::parse(text) {
        Ok(all) => Tried {
            samples: all.replies.len().saturating_add(all.lookups.len()),
            wrong: all.run(tool),
        },
        Err(why) => Tried::wrong(format!("the samples cannot be read: {why}")),
    }
}

fn shipped(name: &str) -> Option<&'static ShippedTool> {
    ALL.iter().find(|t| t.name == name)
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
