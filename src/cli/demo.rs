//! `demo`: everything in one process on a throw-away ledger.

use serde_json::json;

use super::args::DemoArgs;
use super::context::Context;
use super::screen;
use crate::demo::{self, DemoConfig};
use crate::error::{Exit, Failure};
use crate::simulator::Plan;

/// Calls of a counted run, unless the flag says otherwise.
const CALLS: u32 = 200;

pub(super) async fn run(cx: &Context, args: &DemoArgs) -> Result<Exit, Failure> {
    if args.list {
        return list(cx);
    }
    let mut config = config(cx, args)?;
    if args.headless {
        config.calls = args.calls.unwrap_or(CALLS);
        return headless(cx, config).await;
    }
    let (ascii, theme) = (args.ascii, args.theme.as_deref());
    // The demo has its own limits and providers; of the user's file only the screen counts.
    let ui = screen::options(cx, &cx.config()?.config, ascii, theme)?;
    if let Some((width, height)) = args.snapshot {
        let frame = demo::snapshot(config, ui, width, height).await?;
        cx.out.exact(&frame)?;
        return Ok(Exit::Done);
    }
    screen::needs_terminal("demo ")?;
    Box::pin(demo::interactive(config, ui)).await?;
    Ok(Exit::Done)
}

fn list(cx: &Context) -> Result<Exit, Failure> {
    if cx.out.is_json() {
        let all: Vec<_> = Plan::catalogue()
            .into_iter()
            .map(|(name, about)| json!({ "name": name, "about": about }))
            .collect();
        cx.out.json(&all)?;
    } else {
        cx.out.text(&demo::catalogue().join("\n"))?;
    }
    Ok(Exit::Done)
}

fn config(cx: &Context, args: &DemoArgs) -> Result<DemoConfig, Failure> {
    // Only what was said on this command line: a demo never runs on the ledger of one's work.
    let keep = match (&args.keep, &cx.global.ledger) {
        (Some(_), Some(_)) => {
            return Err(
                Failure::usage("usage", "--keep and --ledger both name the demo's ledger")
                    .hint("give one of them"),
            );
        }
        (Some(path), None) => Some(path.clone()),
        (None, Some(url)) => Some(crate::config::ledger_path(url).map_err(|what| {
            Failure::usage("ledger_url", format!("--ledger {what}"))
                .hint("write sqlite:/path/to/new.db")
        })?),
        (None, None) => None,
    };
    if let Some(dir) = keep.as_ref().and_then(|p| p.parent())
        && !dir.as_os_str().is_empty()
        && !dir.is_dir()
    {
        let message = format!("there is no directory {}", dir.display());
        return Err(Failure::usage("ledger_directory", message).hint("make it first"));
    }
    Ok(DemoConfig {
        scenario: Some(args.scenario.clone()),
        seed: args.seed,
        speed: args.speed,
        // None: as many as its own kind of run needs.
        calls: args.calls.unwrap_or(0),
        keep,
        rows: args.rows.unwrap_or(0),
        reconcile: args.reconcile,
    })
}

/// A counted run. The answer is no where the promise was broken.
async fn headless(cx: &Context, config: DemoConfig) -> Result<Exit, Failure> {
    let summary = demo::headless(config).await?;
    if cx.out.is_json() {
        cx.out.json(&summary)?;
    } else {
        cx.out.text(&summary.to_string())?;
    }
    Ok(if summary.violations > 0 {
        Exit::No
    } else {
        Exit::Done
    })
}
