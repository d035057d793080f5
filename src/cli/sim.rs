//! `sim`: the simulated provider alone, until it is told to stop.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::args::SimArgs;
use super::context::Context;
use crate::clock::Clock;
use crate::error::{Exit, Failure};
use crate::simulator::{Plan, Script, SimConfig, Simulator, WebhookEndpoint};

/// Largest scenario file, in bytes.
const MAX_FILE: u64 = 1 << 20;

pub(super) async fn run(cx: &Context, args: &SimArgs) -> Result<Exit, Failure> {
    let clock = if args.speed > 1 {
        Clock::scaled(args.speed)
    } else {
        cx.clock.clone()
    };
    let config = SimConfig {
        listen: args.listen,
        plan: plan(&args.scenario)?,
        seed: args.seed,
        latency: args.latency,
        log: args.log.as_deref().map(log).transpose()?,
        webhook: webhook(args)?,
        ..SimConfig::new(clock)
    };
    // Listened for before the address is printed: whoever reads it may stop us at once.
    let mut ends = Ends::new()?;
    let simulator = Simulator::start(config).await.map_err(|e| {
        let why = crate::config::plain(&e);
        Failure::unreachable("listen", format!("cannot listen on {}: {why}", args.listen))
            .hint("choose another --listen; port 0 picks a free one")
    })?;
    if cx.out.is_json() {
        let (listen, base_url) = (simulator.addr(), simulator.base_url());
        cx.out
            .json(&json!({ "listen": listen, "base_url": base_url }))?;
    } else {
        cx.out.text(&simulator.addr().to_string())?;
    }
    ends.wait().await;
    simulator.stop().await;
    Ok(Exit::Done)
}

/// A file that is only ever appended to.
fn log(path: &Path) -> Result<Arc<File>, Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map(Arc::new).map_err(|e| {
        let (name, why) = (path.display(), crate::config::plain(&e));
        Failure::unreachable("log", format!("the log {name} cannot be written: {why}"))
            .hint("name a file in a directory of your own")
    })
}

/// Who is told of events.
fn webhook(args: &SimArgs) -> Result<Option<WebhookEndpoint>, Failure> {
    let Some(url) = &args.webhook else {
        return Ok(None);
    };
    let endpoint = WebhookEndpoint::new(url, args.webhook_secret.clone());
    endpoint.map(Some).map_err(|why| {
        Failure::usage("webhook", why)
            .hint("write --webhook http://127.0.0.1:PORT/PATH --webhook-secret SECRET")
    })
}

/// A name, a name with a count, or a file of one's own.
pub(super) fn plan(scenario: &str) -> Result<Plan, Failure> {
    let (name, count) = match scenario.rsplit_once(':') {
        Some((name, count)) if count.bytes().all(|b| b.is_ascii_digit()) => (name, Some(count)),
        Some(_) | None => (scenario, None),
    };
    let is_file = name.contains('/')
        || Path::new(name)
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("toml"));
    let refused = |why: String| {
        Failure::usage("scenario", why).hint("`samekey demo --list` lists the scenarios")
    };
    if !is_file {
        return Plan::parse(scenario).map_err(|e| refused(e.to_string()));
    }
    let n = match count.map(str::parse::<u32>) {
        None => None,
        Some(Ok(n)) if n > 0 => Some(n),
        Some(_) => return Err(refused(format!("{scenario} has no count behind its colon"))),
    };
    let unreadable = |why: &str| refused(format!("the scenario file {name} cannot be read: {why}"));
    let meta = std::fs::metadata(name).map_err(|e| unreadable(&crate::config::plain(&e)))?;
    if !meta.is_file() || meta.len() > MAX_FILE {
        return Err(unreadable("it is not a file below 1 MiB"));
    }
    let text = std::fs::read_to_string(name).map_err(|e| unreadable(&crate::config::plain(&e)))?;
    let script = Script::parse(name, &text).map_err(|e| {
        Failure::usage("scenario", e.to_string()).hint("correct the file and start again")
    })?;
    Ok(Plan::Custom { script, n })
}

/// The signals that end a server.
pub(super) struct Ends {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Ends {
    pub(super) fn new() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind).map_err(|e| {
                let why = crate::config::plain(&e);
                Failure::unreachable("signal", format!("signals cannot be caught: {why}"))
            })
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
        })
    }

    pub(super) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
