//! One place to be tortured: a home with a ledger, and a provider in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;

use portable_pty::CommandBuilder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli::{Home, KEY, Ran, text};
use crate::ledger::{self, Books};
use crate::pty::Pty;
use crate::tools::{SOON, state, wait_until};

const BIN: &str = env!("CARGO_BIN_EXE_samekey");
const SIZE: (u16, u16) = (80, 24);

/// The times that a story is about.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub lease: &'static str,
    pub timeout: &'static str,
    pub window: &'static str,
    pub retention: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: "1s",
            timeout: "500ms",
            window: "2s",
            retention: "24h",
        }
    }
}

impl Settings {
    /// The rest of the configuration, from within the provider's section on.
    fn text(&self) -> String {
        let Self {
            lease,
            timeout,
            window,
            retention,
        } = self;
        format!(
            "timeout = \"{timeout}\"\nsend_window = \"{window}\"\nretention = \"{retention}\"\n\
             settle_time = \"1s\"\nrate = \"1000/s\"\nread_rate = \"1000/s\"\n\
             [tools.issue_refund]\nrate = \"1000/s\"\nbackoff = {{ base = \"20ms\", cap = \"60ms\" }}\n\
             [engine]\nlease = \"{lease}\"\npoll = \"50ms\"\n[ui]\nrefresh = \"60s\"\n"
        )
    }
}

/// A call that somebody was told is accepted.
#[derive(Clone, Debug)]
pub struct Asked {
    pub call: String,
    /// The answer that was printed, if one was.
    pub told: Option<Value>,
}

pub struct Place {
    pub home: Home,
    pub ledger: PathBuf,
    /// The provider's own words.
    pub log: PathBuf,
    sim: Child,
    asked: Mutex<Vec<Asked>>,
}

impl Place {
    /// A provider that goes wrong by `scenario`, a name or a file.
    pub fn new(scenario: &str) -> Self {
        Self::with(scenario, Settings::default())
    }

    pub fn with(scenario: &str, settings: Settings) -> Self {
        Self::at(scenario, settings, None)
    }

    /// With the ledger somewhere else.
    pub fn at(scenario: &str, settings: Settings, ledger: Option<PathBuf>) -> Self {
        let mut home = Home::new();
        let log = home.path("provider.jsonl");
        let mut sim = Command::new(BIN)
            .args(["sim", "--scenario", scenario, "--log", text(&log)])
            .env_clear()
            .env("HOME", home.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a provider");
        let mut address = String::new();
        let out = sim.stdout.take().expect("its output");
        let read = BufReader::new(out).read_line(&mut address);
        read.expect("its address");
        home.config(&format!(
            "[providers.stripe]\nbase_url = \"http://{}\"\n{}",
            address.trim(),
            settings.text()
        ));
        home.set("STRIPE_API_KEY", KEY);
        let ledger = match ledger {
            Some(path) => {
                home.set("SAMEKEY_LEDGER", &format!("sqlite:{}", text(&path)));
                path
            }
            None => home.ledger(),
        };
        std::fs::create_dir_all(home.path("tmp")).expect("made");
        std::fs::create_dir_all(ledger.parent().expect("a parent")).expect("made");
        Self {
            home,
            ledger,
            log,
            sim,
            asked: Mutex::default(),
        }
    }

    /// `submit` of the one refund of an order.
    pub fn submit(&self, order: &str, call: &str, more: &[&str]) -> Command {
        self.home.command(&asks(order, call, more))
    }

    /// The same behind another program's arguments, as `strace … samekey submit …`.
    pub fn submit_under(
        &self,
        program: &[&str],
        order: &str,
        call: &str,
        more: &[&str],
    ) -> Command {
        let mut inner = vec![BIN.to_owned()];
        inner.extend(asks(order, call, more));
        let mut command = self.home.command(&inner);
        // The same environment and pipes for another program.
        let vars: Vec<_> = command
            .get_envs()
            .filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned())))
            .collect();
        command = Command::new(program[0]);
        command
            .args(&program[1..])
            .args(&inner)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(vars)
            .current_dir(self.home.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a `submit` to whatever end, and notes what it acknowledged.
    pub fn ask(&self, call: &str, command: &mut Command) -> Ended {
        let child = command.spawn().expect("started");
        self.heard(call, child)
    }

    /// Waits for a `submit`, and notes what it acknowledged.
    pub fn heard(&self, call: &str, child: Child) -> Ended {
        let out = child.wait_with_output().expect("its output");
        let stdout = String::from_utf8(out.stdout).expect("UTF-8");
        let told: Option<Value> = serde_json::from_str(stdout.trim()).ok();
        if let Some(told) = &told {
            let told = told.get("status").is_some().then(|| told.clone());
            self.acknowledged(call, told);
        }
        Ended {
            status: out.status,
            told,
            stderr: String::from_utf8(out.stderr).expect("UTF-8"),
        }
    }

    pub fn acknowledged(&self, call: &str, told: Option<Value>) {
        let call = call.to_owned();
        self.asked
            .lock()
            .expect("the list")
            .push(Asked { call, told });
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("the list").clone()
    }

    /// Leaves a call to whatever engine there is.
    pub fn queue(&self, order: &str, call: &str) {
        let ended = self.ask(call, &mut self.submit(order, call, &["--json"]));
        assert!(ended.status.success(), "{ended:#?}");
    }

    /// Asks and drives the call in a process of its own.
    pub fn drive(&self, order: &str, call: &str) -> Ended {
        self.ask(call, &mut self.submit(order, call, &["--run", "--json"]))
    }

    /// The program with its engine, on a terminal.
    pub fn engine(&self, vars: &[(&str, &str)]) -> Pty {
        self.engine_under(&[], vars)
    }

    /// The same behind another program's arguments.
    pub fn engine_under(&self, program: &[&str], vars: &[(&str, &str)]) -> Pty {
        let words: Vec<&str> = program.iter().copied().chain([BIN]).collect();
        Pty::spawn(self.screen(&words, vars), SIZE)
    }

    /// A command on a terminal in this home.
    pub fn screen(&self, words: &[&str], vars: &[(&str, &str)]) -> CommandBuilder {
        let mut command = Pty::command(words[0]);
        command.args(&words[1..]);
        command.cwd(self.home.path(""));
        command.env("HOME", self.home.path(""));
        command.env("TMPDIR", self.home.path("tmp"));
        command.env("STRIPE_API_KEY", KEY);
        command.env("SAMEKEY_LEDGER", format!("sqlite:{}", text(&self.ledger)));
        for (name, value) in vars {
            command.env(name, value);
        }
        command
    }

    /// What the ledger holds; nothing where it cannot be read just now.
    pub fn try_books(&self) -> Option<Books> {
        ledger::read(&self.ledger).ok()
    }

    pub fn books(&self) -> Books {
        wait_until("the ledger can be read", || self.try_books())
    }

    /// Starts an engine and lets it work until every call is answered and nothing is in flight.
    pub fn come_to_rest(&self) -> Books {
        let engine = self.engine(&[]);
        let books = self.rests(&engine);
        leave(engine);
        books
    }

    /// Waits until every call is answered and nothing is in flight.
    pub fn rests(&self, engine: &Pty) -> Books {
        let mut last = None;
        let until = std::time::Instant::now() + SOON;
        loop {
            if let Some(books) = self.try_books() {
                if books.are_quiet() {
                    return books;
                }
                last = Some(books);
            }
            let late = std::time::Instant::now() >= until;
            assert!(!late, "no rest: {last:#?}\n{}", engine.text());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// The requests for refunds that the provider has read so far.
    pub fn posts(&self) -> usize {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines()
            .filter(|l| l.contains("\"method\":\"POST\""))
            .count()
    }

    /// `verify` finds nothing.
    pub fn verify(&self) -> Ran {
        self.home.ok(0, &["verify"])
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.sim.kill();
        let _ = self.sim.wait();
    }
}

/// How a `submit` ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// What it printed, where that is JSON.
    pub told: Option<Value>,
    pub stderr: String,
}

impl Ended {
    /// The word of the answer; empty where none was given.
    pub fn word(&self) -> &str {
        let told = self.told.as_ref().and_then(|t| t["status"].as_str());
        told.unwrap_or_default()
    }

    pub fn was_killed(&self) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        // A shell or strace passes the signal on in its own way.
        self.status.signal() == Some(9) || self.status.code() == Some(137)
    }
}

fn asks(order: &str, call: &str, more: &[&str]) -> Vec<String> {
    let order = format!("order_id={order}");
    let fixed = [
        "submit",
        "issue_refund",
        "--arg",
        &order,
        "--arg",
        "amount=38.00",
        "--arg",
        "currency=usd",
        "--call-id",
        call,
    ];
    fixed.iter().chain(more).map(|s| (*s).to_owned()).collect()
}

/// Whether a program on a terminal was ended by `kill -9`, and not by itself.
pub fn was_killed(ended: &portable_pty::ExitStatus) -> bool {
    ended.signal() == Some("Killed")
}

/// Ends an engine as a service manager does.
pub fn leave(mut engine: Pty) {
    engine.signal(Signal::TERM);
    engine.exit(SOON);
}

pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("an id")).expect("an id");
    kill_process(pid, signal).expect("signalled");
}

/// Waits until a process stands still, as a stop place makes it.
pub fn stopped(pid: u32) {
    wait_until("it stands still", || {
        (state(pid) == Some('T')).then_some(())
    });
}

/// A scenario file of a story's own.
pub fn scenario(dir: &Path, steps: &str) -> PathBuf {
    let path = dir.join("scenario.toml");
    let text = format!("about = \"A story's own.\"\n{steps}");
    std::fs::write(&path, text).expect("written");
    path
}
