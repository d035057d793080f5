//! `agents`: tokens for the gateway. A token is drawn here, shown once, and kept nowhere.

use rand::TryRngCore as _;
use rand::rngs::OsRng;
use serde_json::{Value, json};

use super::args::{AddAgentArgs, AgentsCommand, RevokeAgentArgs};
use super::context::{Context, Desk, Keys};
use super::table::{self, Column};
use crate::domain::agent;
use crate::error::{Exit, Failure};
use crate::ledger::AgentSeen;
use crate::ledger::sqlite::OpenMode;
use crate::ledger::view::instant;

pub(super) async fn run(cx: &Context, command: &AgentsCommand) -> Result<Exit, Failure> {
    let mode = match command {
        AgentsCommand::Add(_) => OpenMode::Submit,
        AgentsCommand::List => OpenMode::Read,
        AgentsCommand::Revoke(_) => OpenMode::Review,
    };
    let desk = cx.open(mode, Keys::IfThere).await?;
    let done = match command {
        AgentsCommand::Add(args) => add(cx, &desk, args).await,
        AgentsCommand::List => list(cx, &desk).await,
        AgentsCommand::Revoke(args) => revoke(cx, &desk, args).await,
    };
    desk.ledger.close().await;
    done
}

async fn add(cx: &Context, desk: &Desk, args: &AddAgentArgs) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let (token, kept) = agent::issue(random()?, random()?);
    let tools = (!args.tools.is_empty()).then(|| args.tools.iter().cloned().collect());
    gate.add_agent(&args.name, tools, kept, &person).await?;
    // One form for people and programs: it is to be copied whole.
    cx.out
        .json(&json!({ "agent": args.name, "token": token }))?;
    cx.out.note(
        "the token is shown this once: give it to the agent, as `Authorization: Bearer TOKEN`",
    );
    Ok(Exit::Done)
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    match OsRng.try_fill_bytes(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Failure::unreachable(
            "randomness",
            format!("the system gives no random bytes: {error}"),
        )),
    }
}

async fn list(cx: &Context, desk: &Desk) -> Result<Exit, Failure> {
    let agents = desk.ledger.serving().agents().await?;
    if cx.out.is_json() {
        let values: Vec<_> = agents.iter().map(value).collect();
        cx.out.json(&values)?;
    } else if agents.is_empty() {
        cx.out
            .note("no agents: `samekey agents add NAME` gives one its token");
    } else {
        cx.out.text(&text(&agents))?;
    }
    Ok(Exit::Done)
}

fn value(seen: &AgentSeen) -> Value {
    let revoked = seen.revoked.as_ref();
    json!({
        "agent": seen.agent.name, "tools": seen.agent.tools, "added_at": instant(seen.added_at),
        "added_by": seen.added_by, "revoked_at": revoked.map(|(at, _)| instant(*at)),
        "revoked_by": revoked.map(|(_, by)| by),
    })
}

fn text(agents: &[AgentSeen]) -> String {
    let columns = [
        Column::Left("AGENT"),
        Column::Left("TOOLS"),
        Column::Left("ADDED"),
        Column::Left("BY"),
        Column::Left("REVOKED"),
        Column::Left("BY"),
    ];
    let rows: Vec<_> = agents
        .iter()
        .map(|seen| {
            let tools = seen.agent.tools.as_ref().map_or("all".to_owned(), |tools| {
                let names: Vec<_> = tools.iter().map(ToString::to_string).collect();
                names.join(", ")
            });
            let (at, by) = seen.revoked.as_ref().map_or_else(
                || (String::new(), String::new()),
                |(at, by)| (instant(*at), by.to_string()),
            );
            let added = instant(seen.added_at);
            let (name, added_by) = (seen.agent.name.to_string(), seen.added_by.to_string());
            vec![name, tools, added, added_by, at, by]
        })
        .collect();
    table::render(&columns, &rows)
}

async fn revoke(cx: &Context, desk: &Desk, args: &RevokeAgentArgs) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    gate.revoke_agent(&args.name, &person).await?;
    if cx.out.is_json() {
        cx.out
            .json(&json!({ "agent": args.name, "revoked": true }))?;
    } else {
        let says = format!("the token of {} is revoked", args.name);
        cx.out.text(&says)?;
    }
    Ok(Exit::Done)
}
