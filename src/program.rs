//! One run of an outside program: no shell, no input, only the environment it is given, bounded in time and
//! output, and ended with everything it started.
//!
//! Owns: starting, waiting, killing, reading what it said up to a bound. Never: decides what an exit status
//! or an output means. Tests: `tests/notify/`, `tests/stripe/orders.rs`.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::clock::Clock;
use crate::domain::text::SafeText;

/// Variables that a program inherits; everything else of the environment stays here (I30).
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];
/// Bytes of each stream that are kept; the rest is read and dropped.
pub const MAX_OUTPUT: usize = 2048;
/// How long output is waited for once the program has ended: something it left behind may hold on to it.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program's path, then its arguments.
    pub words: Vec<String>,
    /// All it gets of our environment.
    pub inherited: Vec<(String, String)>,
}

/// A program that ended within its time.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// What it wrote, as far as it was kept.
    pub out: Output,
    pub err: Output,
}

/// The beginning of a stream.
#[derive(Debug, Default)]
pub struct Output {
    pub bytes: Vec<u8>,
    /// Whether that is all of it, to its end.
    pub whole: bool,
}

impl Output {
    /// For a log: made harmless.
    #[must_use]
    pub fn shown(&self) -> SafeText {
        SafeText::new(String::from_utf8_lossy(&self.bytes).trim_end())
    }
}

impl Program {
    /// A program with what it inherits; `lookup` reads a variable of our environment.
    pub fn new(words: Vec<String>, lookup: impl Fn(&str) -> Option<String>) -> Self {
        let inherited = INHERITED
            .iter()
            .filter_map(|name| lookup(name).map(|value| ((*name).to_owned(), value)));
        Self {
            words,
            inherited: inherited.collect(),
        }
    }

    /// Runs it with these variables beside the inherited ones; at `limit` it is killed with all it started.
    ///
    /// # Errors
    /// It could not be started or did not end in time, as one sentence.
    pub async fn run(
        &self,
        variables: impl IntoIterator<Item = (&str, String)>,
        clock: &Clock,
        limit: Duration,
    ) -> Result<Ended, String> {
        let Some((path, arguments)) = self.words.split_first() else {
            return Err("the command has no words".to_owned());
        };
        let mut child = Command::new(path)
            .args(arguments)
            .env_clear()
            .envs(self.inherited.iter().map(|(name, value)| (name, value)))
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| {
                let why = crate::config::plain(&e);
                format!("the command cannot be started: {why}")
            })?;
        let mut group = Group(leader(&child));
        let mut output = tokio::spawn({
            let (out, err) = (child.stdout.take(), child.stderr.take());
            async move { tokio::join!(head(out), head(err)) }
        });
        let status = match clock.timeout(limit, child.wait()).await {
            Some(Ok(status)) => {
                group.0 = None;
                Ok(status)
            }
            Some(Err(e)) => Err(format!(
                "the command was lost: {}",
                crate::config::plain(&e)
            )),
            None => Err(format!(
                "the command did not end within {} s and was killed",
                limit.as_secs()
            )),
        };
        drop(group);
        // Real time: this waits for pipes, not for anything of the ledger's.
        let said = tokio::time::timeout(LAST_WORDS, &mut output).await;
        // Whatever was left behind keeps no pipe of ours open.
        output.abort();
        let (out, err) = said.ok().and_then(Result::ok).unwrap_or_default();
        status.map(|status| Ended { status, out, err })
    }
}

/// Ends a whole process group when dropped, unless its leader has been waited for: then its number may
/// be another's.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // It may be gone already, which is as good.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

fn leader(child: &Child) -> Option<Pid> {
    let id = child.id().and_then(|id| i32::try_from(id).ok())?;
    Pid::from_raw(id)
}

/// The beginning of a stream; the rest is read, so that its writer does not hang.
async fn head(stream: Option<impl AsyncRead + Unpin>) -> Output {
    let Some(mut stream) = stream else {
        return Output::default();
    };
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_OUTPUT).unwrap_or(u64::MAX);
    let begun = (&mut stream).take(most).read_to_end(&mut bytes).await;
    let rest = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    // What cannot be read is not said.
    let whole = begun.is_ok() && matches!(rest, Ok(0));
    Output { bytes, whole }
}
