//! Seeing what others commit: within a few milliseconds where the system tells of writes (Linux), and by
//! a slow poll everywhere, which is then the safety net.
//!
//! Owns: the connection that sees whether anything was committed, the hint that something changed, and
//! cutting back the log from time to time. Tests: `tests/ledger/pages.rs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

use super::open::{options, pragma};
use super::{files, store};
use crate::ledger::LedgerError;

/// How often others' commits are looked for where nothing tells of them.
const POLL: Duration = Duration::from_millis(150);
/// The same where something does.
const SAFETY_NET: Duration = Duration::from_secs(1);
/// A commit is written before it can be seen: it has to reach the disk, which a busy one takes its time
/// for. After a sign of one it is looked for, at first at once and then at twice the distance each time,
/// up to the second of these, until it shows or the third is over (what was rolled back never shows).
const FIRST_LOOK: Duration = Duration::from_millis(1);
const WIDEST_LOOK: Duration = Duration::from_millis(16);
const LOOK_FOR: Duration = Duration::from_secs(2);
/// Between two cuts of the log.
const CUT_EVERY: Duration = Duration::from_secs(30);

/// A connection that never writes: `data_version` tells it whether any other one did.
pub(super) struct Eye(Mutex<Option<SqliteConnection>>);

impl Eye {
    pub(super) fn new(conn: SqliteConnection) -> Self {
        Self(Mutex::new(Some(conn)))
    }

    /// Another number whenever anything was committed since.
    pub(super) async fn version(&self) -> Result<i64, LedgerError> {
        match &mut *self.0.lock().await {
            Some(conn) => pragma(conn, "PRAGMA data_version").await,
            None => Err(LedgerError::Unreachable("it is closed".into())),
        }
    }

    pub(super) async fn close(&self) {
        if let Some(conn) = self.0.lock().await.take() {
            // Nothing was written; a failure to close loses nothing.
            let _ = conn.close().await;
        }
    }
}

/// Cuts the log of the ledger at `path` back from time to time, if nobody reads it just then. Its own
/// connection: a cut waits for the disk, and neither hints nor readings wait for that.
pub(super) async fn cut(path: PathBuf) {
    let log = files::beside(&path, "-wal");
    loop {
        sleep(CUT_EVERY).await;
        if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0)
            && let Err(error) = cut_once(&path).await
        {
            tracing::debug!(%error, "checkpoint");
        }
    }
}

async fn cut_once(path: &Path) -> Result<(), LedgerError> {
    // It gives way at once: a checkpoint that waits for a reader would hold up every writer.
    let options = options(path).busy_timeout(Duration::from_millis(50));
    let mut conn = options.connect().await.map_err(store::failed)?;
    let cut = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut conn);
    cut.await.map_err(store::failed)?;
    conn.close().await.map_err(store::failed)
}

/// Turns commits, also of other processes, into the hint that something changed. `log` is the file that
/// every commit is written to.
pub(super) async fn watch(eye: Arc<Eye>, log: PathBuf, changed: watch::Sender<u64>) {
    let mut ear = Ear::at(&log);
    let mut seen = None;
    loop {
        let (mut wait, mut sign_at) = (Duration::ZERO, Instant::now());
        loop {
            tokio::select! {
                () = sleep(wait) => {}
                () = ear.sign() => (wait, sign_at) = (Duration::ZERO, Instant::now()),
            }
            match eye.version().await {
                Ok(version) if seen.replace(version) != Some(version) => {
                    changed.send_modify(|n| *n = n.wrapping_add(1));
                    break;
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "watching the ledger"),
            }
            if !ear.heard || sign_at.elapsed() > LOOK_FOR {
                break;
            }
            wait = (wait * 2).clamp(FIRST_LOOK, WIDEST_LOOK);
        }
        ear.heard = false;
        // Where nobody waits for the hint, nothing is looked for each time the log is written to.
        let nobody = changed.is_closed();
        let patience = if nobody || ear.is_deaf() {
            POLL
        } else {
            SAFETY_NET
        };
        tokio::select! {
            () = ear.sign(), if !nobody => {}
            () = sleep(patience) => {}
        }
    }
}

/// Hears that the log was written to.
struct Ear {
    /// Read as a pipe is: bytes that come when there is something to tell.
    #[cfg(target_os = "linux")]
    inotify: Option<tokio::net::unix::pipe::Receiver>,
    /// Since it was last asked.
    heard: bool,
}

#[cfg(target_os = "linux")]
impl Ear {
    /// Deaf where the system has no more watches to give.
    fn at(log: &std::path::Path) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        use tokio::net::unix::pipe::Receiver;
        let watched = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .and_then(|fd| add_watch(&fd, log, WatchFlags::MODIFY).map(|_| fd))
            .map_err(std::io::Error::from)
            .and_then(Receiver::from_owned_fd_unchecked);
        if let Err(error) = &watched {
            tracing::debug!(%error, "the ledger is watched by polling");
        }
        Self {
            inotify: watched.ok(),
            heard: false,
        }
    }

    fn is_deaf(&self) -> bool {
        self.inotify.is_none()
    }

    /// Waits for the next write. What it says is thrown away: that there was one is all.
    async fn sign(&mut self) {
        let Some(inotify) = &self.inotify else {
            return std::future::pending().await;
        };
        let mut events = [0_u8; 4096];
        let told = inotify.readable().await;
        while inotify.try_read(&mut events).is_ok_and(|n| n > 0) {}
        self.heard = true;
        if let Err(error) = told {
            tracing::debug!(%error, "the ledger is watched by polling");
            self.inotify = None;
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Ear {
    fn at(_: &std::path::Path) -> Self {
        Self { heard: false }
    }

    fn is_deaf(&self) -> bool {
        true
    }

    async fn sign(&mut self) {
        std::future::pending().await
    }
}
