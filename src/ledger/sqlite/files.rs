//! The files of a ledger: where they are, who may read them, on what kind of disk.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::ledger::LedgerError;

/// The path in a ledger's location: `sqlite:PATH`, `sqlite://PATH` or a bare path.
///
/// # Errors
/// A location of another kind, or none.
pub fn path(location: &str) -> Result<PathBuf, LedgerError> {
    if location.starts_with("postgres:") || location.starts_with("postgresql:") {
        let why = "PostgreSQL ledgers are not in this version; use sqlite:PATH";
        return Err(LedgerError::NotALedger(why.into()));
    }
    let bare = location.strip_prefix("sqlite:").unwrap_or(location);
    let bare = bare.strip_prefix("//").unwrap_or(bare);
    if bare.is_empty() {
        return Err(LedgerError::NotALedger(format!(
            "{location:?} names no file"
        )));
    }
    Ok(PathBuf::from(bare))
}

/// Refuses a directory that is not there and a file system that other machines share
/// (WAL needs shared memory; F83).
pub(super) fn check_place(path: &Path) -> Result<(), LedgerError> {
    let dir = directory(path);
    if !dir.is_dir() {
        let why = format!(
            "the directory {} is not there; create it first",
            dir.display()
        );
        return Err(LedgerError::Unreachable(why));
    }
    let statfs = rustix::fs::statfs(dir)
        .map_err(|e| LedgerError::Unreachable(format!("{}: {e}", dir.display())))?;
    match network_name(u64::try_from(statfs.f_type).unwrap_or(0)) {
        Some(name) => Err(LedgerError::Unreachable(format!(
            "{} is on {name}; a ledger needs a local disk",
            dir.display()
        ))),
        None => Ok(()),
    }
}

/// The name of a network file system, by its magic number in `statfs(2)`.
#[must_use]
pub fn network_name(magic: u64) -> Option<&'static str> {
    match magic & 0xffff_ffff {
        0x6969 => Some("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some("SMB"),
        0x6573_5546 => Some("FUSE"),
        0x0102_1997 => Some("9p"),
        0x00c3_6400 => Some("Ceph"),
        _ => None,
    }
}

/// Whether the file holds an SQLite database; `None` where it does not exist or is empty.
pub(in crate::ledger) fn is_sqlite(path: &Path) -> Result<Option<bool>, LedgerError> {
    let mut head = [0_u8; 16];
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(LedgerError::Unreachable(format!("{}: {e}", path.display()))),
    };
    match file.metadata() {
        Ok(meta) if meta.is_dir() => return Ok(Some(false)),
        Ok(meta) if meta.len() == 0 => return Ok(None),
        Ok(_) | Err(_) => {}
    }
    match file.read_exact(&mut head) {
        Ok(()) => Ok(Some(head == *b"SQLite format 3\0")),
        Err(_) => Ok(Some(false)),
    }
}

/// An empty file readable by its owner alone, in place of whatever a killed maker left there; SQLite
/// gives the sidecars the same mode (F80).
pub(super) fn start_afresh(path: &Path) -> Result<(), LedgerError> {
    for old in [
        path.to_path_buf(),
        beside(path, "-wal"),
        beside(path, "-shm"),
        beside(path, "-journal"),
    ] {
        match std::fs::remove_file(&old) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                let why = format!("{} cannot be removed: {e}", old.display());
                return Err(LedgerError::Unreachable(why));
            }
            Ok(()) | Err(_) => {}
        }
    }
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    file.map(drop).map_err(|e| cannot_be_created(path, &e))
}

fn cannot_be_created(path: &Path, error: &std::io::Error) -> LedgerError {
    LedgerError::Unreachable(match error.kind() {
        std::io::ErrorKind::StorageFull => super::store::FULL.to_owned(),
        _ => format!("{} cannot be created: {error}", path.display()),
    })
}

/// Gives a finished file its name, durably: the name must survive power loss as the content does.
pub(super) fn move_whole(from: &Path, to: &Path) -> Result<(), LedgerError> {
    std::fs::rename(from, to)
        .and_then(|()| File::open(directory(to))?.sync_all())
        .map_err(|e| cannot_be_created(to, &e))
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        Some(_) | None => Path::new("."),
    }
}

/// Takes the owner-only mode where an older file is more open.
pub(super) fn make_private(path: &Path) {
    for name in [
        path.to_path_buf(),
        beside(path, "-wal"),
        beside(path, "-shm"),
    ] {
        let open = std::fs::metadata(&name).is_ok_and(|m| m.permissions().mode() & 0o077 != 0);
        if open && let Err(error) = std::fs::set_permissions(&name, Permissions::from_mode(0o600)) {
            tracing::warn!(%error, "the ledger's files are readable by others");
        }
    }
}

/// `ledger.db` → `ledger.db-wal`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Holds the lock under which a ledger is created or upgraded (F73); sqlx's migrator takes none.
pub(super) async fn migration_lock(path: &Path) -> Result<File, LedgerError> {
    let name = beside(path, ".lock");
    let open = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&name);
    let file = open.map_err(|e| cannot_be_created(&name, &e))?;
    let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    match locked {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(e)) => Err(LedgerError::Unreachable(format!("{}: {e}", name.display()))),
        Err(e) => Err(LedgerError::Unreachable(e.to_string())),
    }
}
