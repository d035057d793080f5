//! What the program tells its operator about itself: log lines, to standard error or a private file.
//!
//! Owns: where log lines go and how many of them. Never: writes to a terminal that shows the screen
//! (U36), or logs a secret (`config::Secret` prints as a stand-in, I30). Tests: below.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// A log file of this size is set aside at the next start; one older generation is kept.
const MAX_LOG: u64 = 16 << 20;

/// Where log lines go.
#[derive(Clone, Copy, Debug)]
pub enum LogTo<'a> {
    /// Standard error, for commands.
    Stderr,
    /// A file, while the screen is up.
    File(&'a Path),
}

/// How a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    Text,
    /// One JSON object a line.
    Json,
}

/// How much is logged: -1 for `-q`, 0, and one more for each `-v`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verbosity(pub i8);

impl Verbosity {
    fn level(self, to: LogTo<'_>) -> &'static str {
        match (self.0, to) {
            (..=-1, LogTo::Stderr) => "off",
            // A command says in its own words what went wrong.
            (0, LogTo::Stderr) | (..=-1, LogTo::File(_)) => "error",
            (0, LogTo::File(_)) | (1, _) => "samekey=info,warn",
            (2, _) => "samekey=debug,info",
            (3.., _) => "trace",
        }
    }
}

/// Starts logging, once per process. `filter` is the value of `SAMEKEY_LOG` and wins over
/// `verbosity`.
///
/// # Errors
/// A log file that cannot be made private, or a filter that cannot be read.
pub fn init(
    to: LogTo<'_>,
    form: LogForm,
    verbosity: Verbosity,
    filter: Option<&str>,
) -> io::Result<()> {
    let wanted = filter.unwrap_or_else(|| verbosity.level(to));
    let filter = EnvFilter::try_new(wanted)
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
    match to {
        LogTo::Stderr => start(filter, form, io::stderr),
        LogTo::File(path) => start(filter, form, Mutex::new(open(path)?)),
    }
    Ok(())
}

fn start<W>(filter: EnvFilter, form: LogForm, writer: W)
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(false);
    // A second start (tests in one process) keeps the first.
    let _ = match form {
        LogForm::Text => log.try_init(),
        LogForm::Json => log.json().flatten_event(true).try_init(),
    };
}

/// Opens the log for appending: directory 0700, file 0600, whatever the umask says.
fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    if std::fs::metadata(path).is_ok_and(|m| m.len() > MAX_LOG) {
        std::fs::rename(path, path.with_extension("log.old"))?;
    }
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    // An older file may have been made with another mode.
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    file.set_permissions(private)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn the_log_is_private_and_bounded_i30_i33() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state/samekey.log");
        open(&path)
            .expect("opened")
            .write_all(b"x")
            .expect("written");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .expect("mode");
        let file = open(&path).expect("opened again");
        assert_eq!(file.metadata().expect("meta").mode() & 0o777, 0o600);
        assert_eq!(file.metadata().expect("meta").len(), 1, "appended to");
        file.set_len(MAX_LOG + 1).expect("grown");
        let fresh = open(&path).expect("opened anew");
        assert_eq!(fresh.metadata().expect("meta").len(), 0);
        assert!(path.with_extension("log.old").exists());
    }

    #[test]
    fn verbosity_chooses_the_level() {
        let file = LogTo::File(Path::new("/x"));
        assert_eq!(Verbosity(-1).level(LogTo::Stderr), "off");
        assert_eq!(Verbosity(0).level(LogTo::Stderr), "error");
        assert_eq!(Verbosity(0).level(file), "samekey=info,warn");
        assert_eq!(Verbosity(3).level(file), "trace");
    }
}
