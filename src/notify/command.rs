//! One run of a program per notice: ids in its environment, no shell, no input, bounded in time.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use super::Missed;
use super::words::Told;
use crate::clock::Clock;
use crate::domain::text::SafeText;

/// Bytes of output that are logged, of each stream; the rest is read and dropped.
const MAX_OUTPUT: u64 = 2048;
/// How long output is waited for once the program has ended: something it left behind may hold on to it.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The program's path, then its arguments.
    pub words: Vec<String>,
    /// All it gets of our environment.
    pub inherited: Vec<(String, String)>,
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

pub(super) async fn run(
    program: &Program,
    told: &Told<'_>,
    clock: &Clock,
    limit: Duration,
) -> Result<(), Missed> {
    let Some((path, arguments)) = program.words.split_first() else {
        return Ok(());
    };
    let started = Command::new(path)
        .args(arguments)
        .env_clear()
        .envs(program.inherited.iter().map(|(name, value)| (name, value)))
        .envs(told.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = started.map_err(|e| {
        let why = crate::config::plain(&e);
        Missed::again(format!("the command cannot be started: {why}"))
    })?;
    let mut group = Group(leader(&child));
    let output = tokio::spawn({
        let (out, err) = (child.stdout.take(), child.stderr.take());
        async move { tokio::join!(head(out), head(err)) }
    });
    let ended = clock.timeout(limit, child.wait()).await;
    let outcome = match ended {
        Some(Ok(status)) => {
            group.0 = None;
            if status.success() {
                Ok(())
            } else {
                Err(Missed::again(format!("the command ended with {status}")))
            }
        }
        Some(Err(e)) => {
            let why = crate::config::plain(&e);
            Err(Missed::again(format!("the command was lost: {why}")))
        }
        None => Err(Missed::again(format!(
            "the command did not end within {} s and was killed",
            limit.as_secs()
        ))),
    };
    drop(group);
    // Real time: this waits for pipes, not for anything of the ledger's.
    if let Ok(Ok((out, err))) = tokio::time::timeout(LAST_WORDS, output).await
        && !(out.is_empty() && err.is_empty())
    {
        tracing::info!(stdout = %out, stderr = %err, "the command said");
    }
    outcome
}

fn leader(child: &Child) -> Option<Pid> {
    let id = child.id().and_then(|id| i32::try_from(id).ok())?;
    Pid::from_raw(id)
}

/// The beginning of a stream, made harmless; the rest is read, so that its writer does not hang.
async fn head(stream: Option<impl AsyncRead + Unpin>) -> SafeText {
    let Some(mut stream) = stream else {
        return SafeText::default();
    };
    let mut kept = Vec::new();
    let mut start = (&mut stream).take(MAX_OUTPUT);
    // What cannot be read is not said.
    let _ = start.read_to_end(&mut kept).await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    SafeText::new(String::from_utf8_lossy(&kept).trim_end())
}
