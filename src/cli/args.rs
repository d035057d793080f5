//! The command line: every command, flag and its help. Tests: `tests/cli_bad_input.rs`.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the help text, which shows backticks as they are"
)]

mod agents;
mod ops;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::domain::ids::{
    AgentName, CallId, EventId, ProviderName, ReviewerName, SessionId, ToolName,
};
use crate::domain::tool_call::CallState;

pub use agents::{AddAgentArgs, AgentsCommand, McpArgs, RevokeAgentArgs};
pub use ops::{
    CloseArgs, CorrectArgs, DecideArgs, ListArgs, LookupArgs, OneOp, OpsCommand, SnoozeArgs,
};

/// One intended side effect stays one, however often an AI agent asks for it; a person settles what
/// nobody knows.
///
/// Without a command: the live screen on the ledger, with the engine that drives queued calls.
#[derive(Debug, Parser)]
#[command(
    name = "samekey",
    version,
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 done, 1 the answer is no, 2 wrong usage or configuration, 3 ledger or provider unreachable, 4 not permitted.\nEnvironment: SAMEKEY_LEDGER, SAMEKEY_CONFIG and SAMEKEY_REVIEWER stand for the flags; SAMEKEY_LOG filters log lines; NO_COLOR."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(flatten)]
    pub screen: ScreenArgs,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// The ledger, `sqlite:PATH` [env: SAMEKEY_LEDGER] [default: samekey/ledger.db in the data directory]
    #[arg(long, global = true, value_name = "URL", help_heading = "Global")]
    pub ledger: Option<String>,
    /// The configuration [env: SAMEKEY_CONFIG] [default: samekey.toml in the configuration directory]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global")]
    pub config: Option<PathBuf>,
    /// Who acts [env: SAMEKEY_REVIEWER] [default: the OS user]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Global")]
    pub reviewer: Option<ReviewerName>,
    /// Print JSON
    #[arg(long, global = true, help_heading = "Global")]
    pub json: bool,
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global"
    )]
    pub color: Color,
    /// Say less
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Global")]
    pub quiet: u8,
    /// Say more
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Global")]
    pub verbose: u8,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// Flags of the live screen.
#[derive(Clone, Debug, Default, Args)]
pub struct ScreenArgs {
    /// Only watch and decide; another process drives the calls
    #[arg(long)]
    pub no_engine: bool,
    /// Only look; nothing can be changed
    #[arg(long)]
    pub read_only: bool,
    /// Print one frame as text and end, for example 80x24
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub snapshot: Option<(u16, u16)>,
    /// Draw with ASCII characters alone
    #[arg(long)]
    pub ascii: bool,
    /// Colours: default, light, mono or deuteranopia
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
}

impl ScreenArgs {
    /// The first flag that is set, by name; none of them goes with a command.
    #[must_use]
    pub fn first_set(&self) -> Option<&'static str> {
        [
            (self.no_engine, "--no-engine"),
            (self.read_only, "--read-only"),
            (self.snapshot.is_some(), "--snapshot"),
            (self.ascii, "--ascii"),
            (self.theme.is_some(), "--theme"),
        ]
        .into_iter()
        .find_map(|(set, name)| set.then_some(name))
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Everything in one process on a throw-away ledger: provider, agents, faults, screen
    Demo(DemoArgs),
    /// Queue one tool call and print its id
    Submit(SubmitArgs),
    /// Operations: list, show, look up, decide
    #[command(subcommand)]
    Ops(OpsCommand),
    /// Tool calls: accepted, executed, delivered
    #[command(subcommand)]
    Calls(CallsCommand),
    /// The tools and their limits; pausing stops sends, not lookups
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// The tokens of agents that call over the gateway
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// The simulated provider alone
    Sim(SimArgs),
    /// The engine without a screen, the gateway for agents, and the provider's webhooks
    Serve(ServeArgs),
    /// MCP on standard input and output, for a client that starts it
    Mcp(McpArgs),
    /// Look at every unsettled row once, and fetch the events that were missed; only reads at the provider
    Reconcile(ReconcileArgs),
    /// The provider's events that wait or were set aside
    #[command(subcommand)]
    Events(EventsCommand),
    /// What happened: outcomes, money, time to resolution
    Report(ReportArgs),
    /// Audit the ledger against every invariant; read-only
    Verify,
    /// Check the environment
    Doctor,
    /// The wall clock
    #[command(subcommand)]
    Clock(ClockCommand),
    /// The configuration: check, show, init
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the completions of a shell, to be put where it looks for them
    Completions {
        /// bash, elvish, fish, powershell or zsh
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print the man page: `samekey man | man -l -`
    Man,
}

/// `demo`.
#[derive(Clone, Debug, Args)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub struct DemoArgs {
    /// What goes wrong; `--list` names them all
    #[arg(long, value_name = "NAME", default_value = "mixed")]
    pub scenario: String,
    /// List the scenarios and end
    #[arg(long)]
    pub list: bool,
    /// Same seed, same faults
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// One clock for engine and provider, so many times as fast
    #[arg(long, value_name = "X", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub speed: Option<u32>,
    /// Fill the ledger with so many rows first
    #[arg(long, value_name = "N")]
    pub rows: Option<u32>,
    /// Also look at rows that nobody asks about, as a real engine does
    #[arg(long)]
    pub reconcile: bool,
    /// No screen: run to quiescence and print a summary
    #[arg(long)]
    pub headless: bool,
    /// How many calls the agents make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub calls: Option<u32>,
    /// Print one frame as text and end, for example 80x24
    #[arg(long, value_name = "WxH", value_parser = size, conflicts_with = "headless")]
    pub snapshot: Option<(u16, u16)>,
    /// Keep the ledger in this new file
    #[arg(long, value_name = "FILE")]
    pub keep: Option<PathBuf>,
    /// Draw with ASCII characters alone
    #[arg(long)]
    pub ascii: bool,
    /// Colours: default, light, mono or deuteranopia
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
}

/// `submit`.
#[derive(Clone, Debug, Args)]
pub struct SubmitArgs {
    /// The tool, for example issue_refund
    pub tool: String,
    /// One argument; the value is text, converted by the tool's schema
    #[arg(long = "arg", value_name = "K=V")]
    pub args: Vec<String>,
    /// All arguments, as one JSON object
    #[arg(long, value_name = "JSON")]
    pub json_args: Option<String>,
    /// The call's id; the same id with the same arguments is the same call
    #[arg(long, value_name = "ID")]
    pub call_id: Option<CallId>,
    /// The conversation it belongs to
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionId>,
    /// Wait so many seconds for a running engine's answer and print it
    #[arg(long, value_name = "SECS", conflicts_with = "run", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub wait: Option<u64>,
    /// Drive this one call in this process, and nothing else
    #[arg(long)]
    pub run: bool,
}

/// `calls`.
#[derive(Debug, Subcommand)]
pub enum CallsCommand {
    /// Tool calls, newest first
    List(CallListArgs),
    /// One tool call
    Show(CallShowArgs),
}

/// `calls list`.
#[derive(Clone, Debug, Args)]
pub struct CallListArgs {
    /// queued, running, held or answered
    #[arg(long, value_name = "S", value_parser = state)]
    pub state: Option<CallState>,
    /// Calls of this tool
    #[arg(long, value_name = "T")]
    pub tool: Option<ToolName>,
    /// Calls that reached a row of this order
    #[arg(long, value_name = "O")]
    pub order: Option<crate::domain::ids::OrderId>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,
}

/// `calls show`.
#[derive(Clone, Debug, Args)]
pub struct CallShowArgs {
    /// The call's id
    pub id: CallId,
    /// Whose call it is; ids belong to their agent
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub agent: AgentName,
}

/// `tools`.
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// The tools, their limits, and whether they send
    List,
    /// Validate tools that are described, and run the sample replies kept beside them
    Check(CheckArgs),
    /// Stop sending for a tool; lookups go on
    Pause(PauseArgs),
    /// Send again
    Resume(PauseArgs),
}

/// `tools check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The tool; without it every described one
    pub tool: Option<String>,
}

/// `tools pause` and `tools resume`.
#[derive(Clone, Debug, Args)]
pub struct PauseArgs {
    /// The tool
    pub tool: ToolName,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}

/// `report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// Operations opened within this time, such as 1h, 24h or 7d; or all
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = since)]
    pub since: Since,
    /// Operations of this tool
    #[arg(long, value_name = "T")]
    pub tool: Option<ToolName>,
    /// Print CSV, one figure a line
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

/// How far a report reaches back; empty: to the beginning of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since(pub Option<std::time::Duration>);

/// `sim`.
#[derive(Clone, Debug, Args)]
pub struct SimArgs {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// What goes wrong for the first N refund requests: NAME, NAME:N or a FILE of your own
    #[arg(long, value_name = "NAME[:N]|FILE", default_value = "honest")]
    pub scenario: String,
    /// Where the provider's webhooks go, for example http://127.0.0.1:7717/webhooks/stripe
    #[arg(long, value_name = "URL", requires = "webhook_secret")]
    pub webhook: Option<String>,
    /// What signs them; given twice, both do, as while a secret is being replaced
    #[arg(long, value_name = "SECRET", requires = "webhook")]
    pub webhook_secret: Vec<String>,
    /// How long an honest answer takes, for example 20ms
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub latency: std::time::Duration,
    /// Decides everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Its clock runs so many times as fast
    #[arg(long, value_name = "X", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub speed: u32,
    /// Append every request, effect and reply to this file, a JSON object a line
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// `serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Where to listen, on this machine; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7717")]
    pub listen: SocketAddr,
}

/// `reconcile`.
#[derive(Clone, Debug, Args)]
pub struct ReconcileArgs {
    /// One run, and its result
    #[arg(long, required = true)]
    pub once: bool,
}

/// `events`.
#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// The events that wait, were set aside or were acknowledged
    List,
    /// Note that you have seen an event that was set aside; it is not counted any more
    Acknowledge(AcknowledgeArgs),
}

/// `events acknowledge`.
#[derive(Clone, Debug, Args)]
pub struct AcknowledgeArgs {
    /// The event's id
    pub id: EventId,
    /// Why nothing has to follow from it, or what did
    #[arg(long, value_name = "TEXT")]
    pub note: String,
    /// Whose event, where several providers have one of this id
    #[arg(long, value_name = "P")]
    pub provider: Option<ProviderName>,
}

/// `clock`.
#[derive(Debug, Subcommand)]
pub enum ClockCommand {
    /// A lead accepts the wall clock as it is now, after a clock alarm
    Accept,
}

/// `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say whether the configuration is right
    Check,
    /// Print what is in force, defaults included; secrets stay where they are
    Show,
    /// Write a commented example; never over an existing file
    Init,
}

fn size(text: &str) -> Result<(u16, u16), String> {
    const LARGEST: u16 = 1000;
    let parts = text.split_once(['x', 'X', '×']);
    let parsed = parts.and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    parsed
        .filter(|(w, h)| *w <= LARGEST && *h <= LARGEST)
        .ok_or_else(|| format!("write columns x rows up to {LARGEST}, as in 80x24"))
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    crate::config::duration(text).map_err(|why| format!("it {why}; write 20ms, 10s or 2m"))
}

fn since(text: &str) -> Result<Since, String> {
    if text == "all" {
        return Ok(Since(None));
    }
    let span =
        crate::config::duration(text).map_err(|why| format!("it {why}; write 24h or all"))?;
    if span.is_zero() {
        return Err("a span of no length has no operations; write 24h or all".to_owned());
    }
    Ok(Since(Some(span)))
}

fn word<T: std::str::FromStr>(text: &str, words: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("choose one of {words}"))
}

fn state(text: &str) -> Result<CallState, String> {
    word(text, "queued, running, held, answered")
}
