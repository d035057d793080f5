//! The command line: one file per command, one door to standard output (`output`).
//!
//! Owns: flags, exit codes, text and JSON for people and scripts. Never: decides about money (that is
//! `domain`), changes a row but through `review`, or writes to standard output but through
//! [`output::Output`]. Tests: `tests/cli_*.rs`.

pub mod args;
pub mod context;
pub mod output;

mod agents;
mod calls;
mod clock;
mod config;
mod demo;
mod doctor;
mod events;
mod failure;
mod manual;
mod mcp;
mod ops;
mod reconcile;
mod report;
mod screen;
mod serve;
mod sim;
mod submit;
mod table;
mod tools;
mod usage;
mod verify;

use std::ffi::OsString;

use args::{Cli, Command};
use context::Context;
use output::Output;

use crate::clock::Clock;
use crate::config::{Env, Paths};
use crate::error::{Exit, Failure};
use crate::telemetry::{self, LogForm, LogTo, Verbosity};

/// Parses, runs and reports; the whole program but for its runtime.
pub async fn main(args: Vec<OsString>) -> Exit {
    let cli = match usage::parse(&args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let out = Output::new(cli.global.json, cli.global.quiet > 0);
    let cx = Context {
        global: cli.global.clone(),
        env: Env::process(),
        out,
        clock: Clock::system(),
    };
    // On the heap: the screen's state is large.
    match Box::pin(run(&cx, cli)).await {
        Ok(exit) => exit,
        Err(failure) => {
            cx.out.failure(&failure);
            failure.exit
        }
    }
}

async fn run(cx: &Context, cli: Cli) -> Result<Exit, Failure> {
    if let (Some(flag), true) = (cli.screen.first_set(), cli.command.is_some()) {
        let message = format!("{flag} belongs to the screen and goes with no command");
        return Err(Failure::usage("usage", message).hint("put flags of a command behind it"));
    }
    start_log(cx, &cli)?;
    match cli.command {
        None => Box::pin(screen::run(cx, &cli.screen)).await,
        Some(Command::Demo(args)) => Box::pin(demo::run(cx, &args)).await,
        Some(Command::Submit(args)) => submit::run(cx, &args).await,
        Some(Command::Ops(command)) => ops::run(cx, &command).await,
        Some(Command::Calls(command)) => calls::run(cx, &command).await,
        Some(Command::Tools(command)) => tools::run(cx, &command).await,
        Some(Command::Agents(command)) => agents::run(cx, &command).await,
        Some(Command::Sim(args)) => sim::run(cx, &args).await,
        Some(Command::Serve(args)) => serve::run(cx, &args).await,
        Some(Command::Mcp(args)) => mcp::run(cx, &args).await,
        Some(Command::Reconcile(args)) => reconcile::run(cx, &args).await,
        Some(Command::Events(command)) => events::run(cx, &command).await,
        Some(Command::Report(args)) => report::run(cx, &args).await,
        Some(Command::Verify) => verify::run(cx).await,
        Some(Command::Doctor) => doctor::run(cx).await,
        Some(Command::Clock(command)) => clock::run(cx, &command).await,
        Some(Command::Config(command)) => config::run(cx, &command),
        Some(Command::Completions { shell }) => manual::completions(cx, shell),
        Some(Command::Man) => manual::page(cx),
    }
}

/// Log lines go to a file while the screen is up, else to standard error.
fn start_log(cx: &Context, cli: &Cli) -> Result<(), Failure> {
    let has_screen = match &cli.command {
        None => cli.screen.snapshot.is_none(),
        Some(Command::Demo(demo)) => !demo.headless && !demo.list && demo.snapshot.is_none(),
        Some(_) => false,
    };
    let up = i8::try_from(cli.global.verbose).unwrap_or(3).min(3);
    let silent = cli.global.quiet > 0 || (cli.global.json && up == 0);
    let verbosity = Verbosity(if silent { -1 } else { up });
    let filter = cx.env.get("SAMEKEY_LOG");
    let file = if has_screen {
        Some(Paths::of_user()?.log)
    } else {
        None
    };
    let to = file.as_deref().map_or(LogTo::Stderr, LogTo::File);
    let form = if cx.global.json {
        LogForm::Json
    } else {
        LogForm::Text
    };
    telemetry::init(to, form, verbosity, filter.as_deref()).map_err(|e| {
        let message = format!("logging cannot start: {}", crate::config::plain(&e));
        Failure::usage("log", message).hint("check SAMEKEY_LOG and the state directory")
    })
}
