//! The real binary in a home of its own: nothing of the machine's configuration or environment gets
//! in, and nothing stays.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]
#![allow(dead_code, reason = "each test file uses its own part")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use samekey::clock::Clock;
use samekey::simulator::{Plan, SimConfig, Simulator};
use serde_json::Value;
use tempfile::TempDir;

/// Longest run of one command; a hang is a failure, not a wait.
const LIMIT: Duration = Duration::from_secs(60);
/// A key that no output may ever contain (I30).
pub const KEY: &str = "sk_test_never_shown_7f3a";

/// A home with its configuration and ledger.
pub struct Home {
    dir: TempDir,
    vars: Vec<(String, String)>,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    /// Empty: no configuration, no ledger, no key.
    pub fn new() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        Self {
            dir,
            vars: Vec::new(),
        }
    }

    /// Configured for a provider at `base_url`, with a key, and with `more` behind its section.
    pub fn with_provider(base_url: &str, more: &str) -> Self {
        let mut home = Self::new();
        home.config(&format!(
            "[providers.stripe]\nbase_url = \"{base_url}\"\n{more}"
        ));
        home.set("STRIPE_API_KEY", KEY);
        home
    }

    /// Sets a variable of every later command.
    pub fn set(&mut self, name: &str, value: &str) {
        self.vars.push((name.to_owned(), value.to_owned()));
    }

    /// Writes the default configuration file.
    pub fn config(&self, text: &str) {
        let path = self.path(".config/samekey.toml");
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// A path in this home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The default ledger.
    pub fn ledger(&self) -> PathBuf {
        self.path(".local/share/samekey/ledger.db")
    }

    /// A command, ready to start.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_samekey"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.dir.path())
            .envs(self.vars.iter().map(|(k, v)| (k, v)))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        let child = self.command(args).spawn().expect("started");
        Ran::of(finish(child))
    }

    /// Runs a command that must exit with `code`.
    pub fn ok<S: AsRef<OsStr> + std::fmt::Debug>(&self, code: i32, args: &[S]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, code, "{args:?}\n{ran:#?}");
        ran
    }

    /// The value that a command prints with `--json` and exit code 0.
    pub fn json(&self, args: &[&str]) -> Value {
        self.ok(0, &[args, &["--json"]].concat()).json()
    }
}

/// Waits within the limit, so that a hanging command fails its test.
fn finish(child: Child) -> Output {
    let pid = child.id();
    let (done, waited) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let out = child.wait_with_output().expect("its output");
        // The receiver is gone only after the limit.
        let _ = done.send(());
        out
    });
    if waited.recv_timeout(LIMIT).is_err() {
        let pid = rustix::process::Pid::from_raw(pid.try_into().expect("a process id"));
        let killed = pid.map(|p| rustix::process::kill_process(p, rustix::process::Signal::KILL));
        panic!("the command did not end within {LIMIT:?} ({killed:?})");
    }
    waiter.join().expect("the waiting thread")
}

impl Ran {
    fn of(out: Output) -> Self {
        Self {
            code: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8(out.stdout).expect("UTF-8"),
            stderr: String::from_utf8(out.stderr).expect("UTF-8"),
        }
    }

    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }

    /// The error on standard error as JSON.
    pub fn error(&self) -> Value {
        let all: Value =
            serde_json::from_str(&self.stderr).unwrap_or_else(|e| panic!("{e}: {self:#?}"));
        all["error"].clone()
    }
}

/// A simulated provider on a free port of this machine.
pub async fn simulator(scenario: &str) -> Simulator {
    let config = SimConfig {
        plan: Plan::parse(scenario).expect("a scenario"),
        ..SimConfig::new(Clock::system())
    };
    Simulator::start(config).await.expect("it listens")
}

/// Whether `text` holds nothing that acts on a terminal (I31).
pub fn is_inert(text: &str) -> bool {
    let acts = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    !text.contains(acts)
}

/// The name of a path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
