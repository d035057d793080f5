//! `mcp`: MCP on standard input and output, with an engine in the same process unless `--no-engine`.
//! The agent is whoever runs it, as with `submit`. Standard output carries the protocol and nothing else.
//! Tests: `tests/gateway/mcp.rs`.

use super::args::McpArgs;
use super::context::{Context, Desk, Keys};
use super::screen::{DRAIN, LAST_NOTICE, deps, notifier};
use super::sim::Ends;
use super::submit::AGENT;
use crate::domain::agent::Agent;
use crate::domain::ids::AgentName;
use crate::engine::Engine;
use crate::error::{Exit, Failure};
use crate::gateway::{Service, serve_stdio};
use crate::ledger::sqlite::OpenMode;

pub(super) async fn run(cx: &Context, args: &McpArgs) -> Result<Exit, Failure> {
    let mut ends = Ends::new()?;
    let (mode, keys) = if args.no_engine {
        (OpenMode::Submit, Keys::IfThere)
    } else {
        (OpenMode::Engine, Keys::Needed)
    };
    let desk = cx.open(mode, keys).await?;
    let done = serve(cx, args, &desk, &mut ends).await;
    desk.ledger.close().await;
    done
}

async fn serve(
    cx: &Context,
    args: &McpArgs,
    desk: &Desk,
    ends: &mut Ends,
) -> Result<Exit, Failure> {
    if !args.no_engine && desk.providers.is_empty() {
        return Err(
            Failure::usage("no_provider", "no provider is configured").hint(
                "add [providers.stripe], or leave the driving to `samekey serve` with --no-engine",
            ),
        );
    }
    let engine = (!args.no_engine).then(|| Engine::start(deps(desk)));
    let notifier = engine.as_ref().and_then(|e| notifier(cx, desk, e));
    let service = Service::start(super::serve::service(desk));
    let agent = Agent {
        name: AgentName::parse(AGENT)
            .map_err(|e| Failure::usage("agent", format!("{AGENT} {e}")))?,
        tools: None,
    };
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let spoken = tokio::select! {
        spoken = serve_stdio(service.clone(), agent, input, output) => spoken,
        () = ends.wait() => Ok(()),
    };
    service.end().await;
    let notices = async {
        if let Some(notifier) = notifier {
            notifier.stop(LAST_NOTICE).await;
        }
    };
    let engine = async {
        if let Some(engine) = engine {
            engine.stop(DRAIN).await;
        }
    };
    tokio::join!(engine, notices);
    match spoken {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(Failure::usage("mcp", error.to_string())
            .hint("this command speaks MCP on standard input and output; an MCP client starts it")),
    }
}
