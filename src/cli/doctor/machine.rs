//! What the ledger lies on, and the clocks.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::{statfs, statvfs};

use super::super::context::Context;
use super::Check;
use crate::config::Config;
use crate::ledger::Ledger as _;
use crate::ledger::sqlite::{OpenMode, SqliteLedger};

/// File systems that are shared over a network or through another process, by the magic number of
/// `statfs(2)`. Their locks do not hold what `SQLite` needs.
#[rustfmt::skip]
const SHARED: [(u32, &str); 16] = [
    (0x6969, "NFS"), (0x517B, "SMB"), (0xFE53_4D42, "SMB2"), (0xFF53_4D42, "CIFS"),
    (0x6573_5546, "FUSE"), (0x0102_1997, "9p"), (0x00C3_6400, "Ceph"), (0x5346_414F, "AFS"),
    (0x7375_7245, "Coda"), (0x564C, "NCP"), (0x0116_1970, "GFS2"), (0x7461_636F, "OCFS2"),
    (0x0BD0_0BD0, "Lustre"), (0x4750_4653, "GPFS"), (0x786F_4256, "vboxsf"), (0x0BAC_BACB, "BeeGFS"),
];
/// File systems that forget everything when the machine stops.
const FORGETFUL: [(u32, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58F6, "ramfs")];
const LITTLE_SPACE: u64 = 1 << 30;
const NO_SPACE: u64 = 64 << 20;
/// 2025-01-01: a wall clock before it was never set.
const SET_SINCE: i64 = 1_735_689_600;

/// The file system and the space on it.
pub(super) fn place(ledger: &Path) -> Vec<Check> {
    let here = Path::new(".");
    let dir = ledger.parent().filter(|d| !d.as_os_str().is_empty());
    // A directory that is made later is judged by the nearest one that is there.
    let mut dir = dir.unwrap_or(here);
    while !dir.exists() {
        dir = dir.parent().unwrap_or(here);
    }
    vec![file_system(dir), space(dir)]
}

fn file_system(dir: &Path) -> Check {
    const NAME: &str = "file system";
    let magic = match statfs(dir) {
        // The type is signed or unsigned by platform; the number is a 32-bit one everywhere.
        Ok(stat) => u32::try_from(i128::from(stat.f_type) & 0xFFFF_FFFF).unwrap_or(0),
        Err(e) => return Check::fail(NAME, format!("{} cannot be examined: {e}", dir.display())),
    };
    let named = |list: &[(u32, &'static str)]| list.iter().find(|(m, _)| *m == magic).map(|l| l.1);
    if let Some(name) = named(&SHARED) {
        let says = format!(
            "{} is on {name}; put the ledger on a local disk",
            dir.display()
        );
        return Check::fail(NAME, says);
    }
    if let Some(name) = named(&FORGETFUL) {
        let says = format!("{} is on {name}, which a restart empties", dir.display());
        return Check::warn(NAME, says);
    }
    Check::ok(NAME, format!("{} is on a local disk", dir.display()))
}

fn space(dir: &Path) -> Check {
    const NAME: &str = "free space";
    let free = match statvfs(dir) {
        Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
        Err(e) => return Check::fail(NAME, format!("{} cannot be examined: {e}", dir.display())),
    };
    let says = format!("{} left on {}", show_bytes(free), dir.display());
    match free {
        ..NO_SPACE => Check::fail(NAME, says),
        NO_SPACE..LITTLE_SPACE => Check::warn(NAME, says),
        LITTLE_SPACE.. => Check::ok(NAME, says),
    }
}

/// The wall clock by itself, and against the ledger's mark and the boot clock (I27).
pub(super) async fn clocks(cx: &Context, config: &Config, ledger: &Path) -> Vec<Check> {
    const NAME: &str = "clock";
    let now = cx.clock.now();
    if now.timestamp() < SET_SINCE {
        let says = format!(
            "the wall clock says {}; it was never set",
            now.format("%Y-%m-%d")
        );
        return vec![Check::fail(NAME, says)];
    }
    if !ledger.exists() {
        let says = "the wall clock is set; there is no ledger to compare it with";
        return vec![Check::ok(NAME, says)];
    }
    let location = format!("sqlite:{}", ledger.display());
    let terms = Arc::new(config.terms());
    // Not as a reader: the ledger moves its mark when it is asked.
    let opened = SqliteLedger::open(&location, OpenMode::Review, terms, cx.clock.clone()).await;
    let alarm = match opened {
        Ok(ledger) => {
            let alarm = ledger.clock_alarm().await;
            ledger.close().await;
            alarm
        }
        Err(e) => Err(e),
    };
    vec![match alarm {
        Ok(false) => Check::ok(NAME, "wall clock, boot clock and ledger agree"),
        Ok(true) => Check::fail(
            NAME,
            "the wall clock ran away from the ledger's or the boot clock; set it right, then a lead runs `samekey clock accept`",
        ),
        Err(e) => Check::fail(NAME, format!("the ledger's clock cannot be read: {e}")),
    }]
}

/// Bytes as people read them.
pub(super) fn show_bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    units
        .iter()
        .find(|(shift, _)| bytes >> shift > 0)
        .map_or(format!("{bytes} B"), |(shift, unit)| {
            format!("{} {unit}", bytes >> shift)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_their_unit() {
        assert_eq!(show_bytes(0), "0 B");
        assert_eq!(show_bytes(2048), "2 KiB");
        assert_eq!(show_bytes(71 << 30), "71 GiB");
    }

    #[test]
    fn a_missing_directory_is_judged_by_the_one_above() {
        let checks = place(Path::new("/nowhere-at-all/x/ledger.db"));
        assert_eq!(checks.len(), 2);
        assert!(checks.iter().all(|c| !c.says.contains("nowhere")));
    }
}
