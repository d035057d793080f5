//! Default places of files, opening one that a setting names, and who the user is.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use etcetera::{BaseStrategy as _, choose_base_strategy};
use rustix::fs::{Mode, OFlags};

use super::{ConfigError, Env};

const APP: &str = "samekey";

/// Where things are when nobody says otherwise (the XDG directories on Linux).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// `samekey.toml` in the user's configuration directory.
    pub config: PathBuf,
    /// `samekey/ledger.db` in the user's data directory.
    pub ledger: PathBuf,
    /// `samekey/samekey.log` in the user's state directory.
    pub log: PathBuf,
}

/// Opens a file that a setting names, for reading. What is no file is refused: a pipe that nobody writes
/// to would be waited for without end.
///
/// # Errors
/// It cannot be opened, or is no file.
pub(crate) fn open_file(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if meta.is_file() {
        Ok((file, meta))
    } else {
        Err(io::Error::other("it is no file"))
    }
}

impl Paths {
    /// The user's own.
    ///
    /// # Errors
    /// No home directory.
    pub fn of_user() -> Result<Self, ConfigError> {
        let base = choose_base_strategy().map_err(|_| ConfigError {
            file: "HOME".to_owned(),
            line: None,
            key: None,
            what: "there is no home directory".to_owned(),
            remedy: "set HOME, or give --ledger and --config".to_owned(),
        })?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Ok(Self {
            config: base.config_dir().join("samekey.toml"),
            ledger: base.data_dir().join(APP).join("ledger.db"),
            log: state.join(APP).join("samekey.log"),
        })
    }
}

/// The file behind a ledger URL: `sqlite:PATH`, `sqlite://PATH` or a bare path.
///
/// # Errors
/// What is wrong with it, as the end of a sentence that begins with its name.
pub fn ledger_path(url: &str) -> Result<PathBuf, String> {
    let (scheme, rest) = match url.split_once(':') {
        Some((scheme, rest)) if scheme.len() > 1 && !scheme.contains('/') => (scheme, rest),
        Some(_) | None => ("sqlite", url),
    };
    match scheme {
        "sqlite" => {}
        "postgres" | "postgresql" => {
            return Err("is on PostgreSQL, which is not in this version".to_owned());
        }
        _ => return Err("is not a sqlite: address".to_owned()),
    }
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() || path.starts_with(":memory:") {
        return Err("names no file; a ledger has to survive a crash".to_owned());
    }
    if url.contains(['?', '#', '\0']) {
        return Err("has options behind its path, which is not supported".to_owned());
    }
    Ok(PathBuf::from(path))
}

/// The name of the user who runs this process, by its user id; a claim that the audit records.
#[must_use]
pub fn os_user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let by_id = std::fs::read_to_string(Path::new("/etc/passwd"))
        .ok()
        .and_then(|users| name_of(uid, &users));
    by_id
        .or_else(|| Env::process().get("USER"))
        .unwrap_or_else(|| format!("uid-{uid}"))
}

fn name_of(uid: u32, users: &str) -> Option<String> {
    let uid = uid.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid && !name.is_empty()).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_a_file() {
        let ok = |url: &str| ledger_path(url).map(|p| p.display().to_string());
        assert_eq!(ok("sqlite:/a/b.db"), Ok("/a/b.db".to_owned()));
        assert_eq!(ok("sqlite:///a/b.db"), Ok("/a/b.db".to_owned()));
        assert_eq!(ok("sqlite:b.db"), Ok("b.db".to_owned()));
        assert_eq!(ok("./b.db"), Ok("./b.db".to_owned()));
        for bad in [
            "sqlite:",
            "sqlite::memory:",
            "sqlite:a?mode=rwc",
            "postgres://db/x",
            "mysql://db/x",
            "",
        ] {
            assert!(ok(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_user_is_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n";
        assert_eq!(name_of(1000, users).as_deref(), Some("anna"));
        assert_eq!(name_of(1, users), None);
    }
}
