//! A home with a ledger and a simulated provider, and the program on a terminal over it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use samekey::simulator::Simulator;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::cli::{Home, KEY, simulator, text};
use crate::pty::Pty;

pub const SMALL: (u16, u16) = (80, 24);
pub const LARGE: (u16, u16) = (120, 40);
/// Room for a whole history.
pub const TALL: (u16, u16) = (120, 70);
/// Longest time for anything that has no bound of its own.
pub const SOON: Duration = Duration::from_secs(20);

/// Two people, and a screen that by itself reads so seldom that what appears on it was hinted at.
const PEOPLE: &str = "[reviewers.anna]\nrole = \"lead\"\n[reviewers.ben]\nrole = \"lead\"\n\
    [ui]\nrefresh = \"60s\"\n";

pub struct Stage {
    pub home: Home,
    pub sim: Simulator,
    /// Who acts, where people are configured.
    person: Option<&'static str>,
    runtime: Runtime,
}

impl Stage {
    /// A provider that goes wrong by `scenario`; anna is at the keyboard.
    pub fn new(scenario: &str) -> Self {
        Self::with(scenario, PEOPLE)
    }

    /// The same with other settings; they begin in the provider's section.
    pub fn with(scenario: &str, settings: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let sim = runtime.block_on(simulator(scenario));
        let mut home = Home::with_provider(&sim.base_url(), settings);
        let person = settings.contains("[reviewers.anna]").then_some("anna");
        if let Some(name) = person {
            home.set("SAMEKEY_REVIEWER", name);
        }
        Self {
            home,
            sim,
            person,
            runtime,
        }
    }

    /// Asks for a refund on `order` and drives the call to its end; the operation's id.
    pub fn refund(&self, order: &str) -> String {
        let result = self.home.ok(0, &submit(order, &["--run", "--json"])).json();
        result["operation_id"].as_str().expect("an id").to_owned()
    }

    /// Leaves a refund on `order` to whatever engine there is.
    pub fn queue(&self, order: &str) {
        self.home.ok(0, &submit(order, &[]));
    }

    /// The screen without an engine.
    pub fn watch(&self, size: (u16, u16)) -> Pty {
        Pty::spawn(self.command(&["--no-engine"]), size)
    }

    /// The program in this home.
    pub fn command(&self, args: &[&str]) -> CommandBuilder {
        let mut command = Pty::command(env!("CARGO_BIN_EXE_samekey"));
        command.args(args);
        self.at_home(command)
    }

    /// Any program in this home.
    pub fn at_home(&self, mut command: CommandBuilder) -> CommandBuilder {
        let tmp = self.home.path("tmp");
        std::fs::create_dir_all(&tmp).expect("made");
        command.cwd(self.home.path(""));
        command.env("HOME", self.home.path(""));
        command.env("TMPDIR", tmp);
        command.env("STRIPE_API_KEY", KEY);
        if let Some(name) = self.person {
            command.env("SAMEKEY_REVIEWER", name);
        }
        command
    }

    /// An operation with its whole history.
    pub fn show(&self, op: &str) -> Value {
        self.home.json(&["ops", "show", op])
    }

    /// Everything the ledger knows but for what only grows older.
    pub fn everything(&self) -> Vec<Value> {
        let rows = self.home.json(&["ops", "list"]);
        let ids = rows.as_array().expect("rows").iter();
        ids.map(|row| {
            let mut shown = self.show(row["operation_id"].as_str().expect("an id"));
            shown.as_object_mut().expect("a row").remove("key_age_s");
            shown
        })
        .collect()
    }

    /// The ledger holds every invariant.
    pub fn verify(&self) {
        self.home.ok(0, &["verify"]);
    }

    /// Runs statements on the ledger, as another process could.
    pub fn sql(&self, statements: &[&'static str]) -> Held {
        let url = format!("sqlite:{}", text(&self.home.ledger()));
        let connection = self.runtime.block_on(async {
            use sqlx::Connection as _;
            let mut connection = sqlx::SqliteConnection::connect(&url).await.expect("opened");
            for statement in statements {
                let done = sqlx::query(*statement).execute(&mut connection).await;
                done.unwrap_or_else(|e| panic!("{statement}: {e}"));
            }
            connection
        });
        Held(Some(connection))
    }
}

/// A connection that keeps what it began until it is let go.
pub struct Held(Option<sqlx::SqliteConnection>);

impl Held {
    /// Closes it; what it had not committed is rolled back.
    pub fn let_go(mut self, stage: &Stage) {
        use sqlx::Connection as _;
        if let Some(connection) = self.0.take() {
            stage.runtime.block_on(connection.close()).expect("closed");
        }
    }
}

fn submit<'a>(order: &'a str, more: &[&'a str]) -> Vec<String> {
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
    ];
    fixed.iter().chain(more).map(|s| (*s).to_owned()).collect()
}

/// The end of an operation id, which confirms.
pub fn token(op: &str) -> &str {
    &op[op.len() - 4..]
}

/// What is on the screen as one line of words, without frames and line ends.
pub fn words(screen: &vt100::Screen) -> String {
    let text = screen.contents().replace('│', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The operation that the open dialog is about.
pub fn asked_about(dialog: &str) -> String {
    let id = dialog.split("operation   ").nth(1).expect("an operation");
    id.split_whitespace().next().expect("its id").to_owned()
}

/// The line of the screen that the cursor is on.
pub fn selected(screen: &vt100::Screen) -> String {
    let (line, _) = screen.cursor_position();
    let lines = screen.contents();
    lines
        .lines()
        .nth(line.into())
        .unwrap_or_default()
        .to_owned()
}

/// Fills in token and note of an open dialog, so that only the confirming key is left.
pub fn fill_in(pty: &mut Pty, op: &str, note: &str) {
    pty.keys(&format!("tab '{}' tab '{note}'", token(op)));
    pty.wait("the note", |s| s.contents().contains(&format!("[{note} ")));
}

/// Waits until `is` gives something.
pub fn wait_until<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + SOON;
    loop {
        if let Some(it) = is() {
            return it;
        }
        assert!(Instant::now() < until, "not within {SOON:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The third field of `/proc/PID/stat`: `R`, `S`, `T` …; nothing where there is no such process.
pub fn state(pid: u32) -> Option<char> {
    stat(pid)?.first()?.chars().next()
}

/// The fields of `/proc/PID/stat` behind the name.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}

/// The processes that `parent` started and that are called `name`.
pub fn child_of(parent: u32, name: &str) -> Option<u32> {
    let all = std::fs::read_dir("/proc").ok()?;
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|pid: &u32| {
            let is_child = stat(*pid).is_some_and(|s| s.get(1) == Some(&parent.to_string()));
            let command = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            is_child && command.is_ok_and(|c| c.trim_end() == name)
        })
}

/// Files of `dir`, by name.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir)
        .map(|dir| dir.filter_map(|e| Some(e.ok()?.path())).collect())
        .unwrap_or_default();
    all.sort();
    all
}
