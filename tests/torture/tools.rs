//! What the machine offers: tools that may be missing, a small disk, and how long a run may be.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// Longest time for anything that has no bound of its own, on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

static SKIPPED: AtomicUsize = AtomicUsize::new(0);

#[allow(
    clippy::disallowed_methods,
    reason = "the person who runs the tests says how long they may take"
)]
pub fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// Whether everything is wanted, not a covering part.
pub fn is_long() -> bool {
    asked("SAMEKEY_LONG").is_some()
}

/// So many of `all` spread evenly, or all of them in the long run.
pub fn some<T: Clone>(all: &[T], count: usize) -> Vec<T> {
    if is_long() || all.len() <= count {
        return all.to_vec();
    }
    (0..count)
        .map(|n| all[n * all.len() / count].clone())
        .collect()
}

/// Says loudly, past the test harness's capture, that something was not proven here.
pub fn skipped(what: &str, why: &str) {
    let count = SKIPPED.fetch_add(1, Ordering::SeqCst) + 1;
    let line = format!("\nSKIPPED ({count}): {what}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    assert!(asked("SAMEKEY_NO_SKIPS").is_none(), "{line}");
}

/// Says a figure past the test harness's capture.
pub fn figure(line: &str) {
    let _ = std::io::stderr().write_all(format!("torture: {line}\n").as_bytes());
}

fn works(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|s| s.success())
}

/// Whether the program dies and stands still where it is told to; a release build does not.
pub fn has_places(what: &str) -> bool {
    let has = cfg!(debug_assertions);
    if !has {
        skipped(what, "a release build has no places to die at");
    }
    has
}

/// Whether strace is here and may trace; where not, `what` is skipped.
pub fn has_strace(what: &str) -> bool {
    let may = works(Command::new("strace").args(["-f", "-o", "/dev/null", "true"]));
    if !may {
        skipped(what, "strace is not here or may not trace");
    }
    may
}

/// The library that shows a process another time; where there is none, `what` is skipped.
pub fn faketime(what: &str) -> Option<PathBuf> {
    let places = [
        "/usr/lib/x86_64-linux-gnu/faketime",
        "/usr/lib/aarch64-linux-gnu/faketime",
        "/usr/lib/faketime",
        "/usr/lib64/faketime",
    ];
    let found = places
        .iter()
        .map(|dir| Path::new(dir).join("libfaketimeMT.so.1"))
        .find(|p| p.exists());
    if found.is_none() {
        skipped(what, "libfaketime is not here");
    }
    found
}

/// A disk of a few megabytes.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None`, and said so, where nothing may be mounted.
    pub fn mount(what: &str, megabytes: u32) -> Option<Self> {
        let dir = tempfile::TempDir::new().expect("a directory");
        let size = format!("size={megabytes}m,mode=700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "samekey-torture"]);
        if works(mount.arg(dir.path())) {
            return Some(Self(dir));
        }
        skipped(what, "a tmpfs may not be mounted here");
        None
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Takes all the room there is, until the file is removed.
    pub fn fill(&self) -> PathBuf {
        let ballast = self.path("ballast");
        let mut file = std::fs::File::create(&ballast).expect("created");
        // Pages first, then the last bytes.
        for size in [4096, 1] {
            let part = vec![0_u8; size];
            while file.write_all(&part).is_ok() {}
        }
        ballast
    }

    /// As a disk that went bad is mounted again.
    pub fn make_read_only(&self, yes: bool) {
        let how = if yes { "remount,ro" } else { "remount,rw" };
        let done = works(Command::new("mount").args(["-o", how]).arg(self.0.path()));
        assert!(done, "mounted again as {how}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        works(Command::new("umount").arg("-l").arg(self.0.path()));
    }
}

/// Waits until `is` gives something, and fails with `what` where it never does.
pub fn wait_until<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + SOON;
    loop {
        if let Some(value) = is() {
            return value;
        }
        assert!(Instant::now() < until, "not within {SOON:?}: {what}");
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// The state of a process as `ps` shows it: `T` stopped; nothing where there is none.
pub fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Runs every case, several at a time: they mostly wait. A failure names its case.
pub fn each<T: Send + std::fmt::Debug>(cases: Vec<T>, at_once: usize, run: impl Fn(&T) + Sync) {
    let (give, take) = mpsc::channel();
    for case in cases {
        let _ = give.send(case);
    }
    drop(give);
    let take = Mutex::new(take);
    let next = || take.lock().ok().and_then(|t| t.recv().ok());
    std::thread::scope(|scope| {
        let work = || {
            while let Some(case) = next() {
                let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&case)));
                if let Err(why) = ran {
                    figure(&format!("FAILED: {case:?}"));
                    std::panic::resume_unwind(why);
                }
            }
        };
        let all: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        for one in all {
            one.join()
                .unwrap_or_else(|why| std::panic::resume_unwind(why));
        }
    });
}
