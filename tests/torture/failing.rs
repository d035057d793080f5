//! The n-th write or sync of the ledger fails, or the process dies in it, for every n (as SQLite tests
//! itself): strace stands in for the disk.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::judge::judge;
use crate::ledger;
use crate::place::Place;
use crate::tools::{each, figure, has_strace, some};

/// What happens in the n-th system call.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It fails once with this error.
    Error(&'static str),
    /// The process is killed when it makes the call.
    Kill,
}

impl Fault {
    fn injected(self, calls: &str, nth: usize) -> String {
        match self {
            Self::Error(error) => format!("inject={calls}:error={error}:when={nth}"),
            Self::Kill => format!("inject={calls}:signal=SIGKILL:when={nth}"),
        }
    }
}

const WRITES: &str = "pwrite64";
const SYNCS: &str = "fsync,fdatasync";

/// How often a `submit --run` makes the calls on the file.
fn count(place: &Place, calls: &str, file: &Path, call: &str) -> usize {
    let trace = place.home.path("counted");
    let (file, trace_name) = (crate::cli::text(file), crate::cli::text(&trace));
    let filter = format!("trace={calls}");
    let strace = [
        "strace", "-f", "-qq", "-P", file, "-e", &filter, "-o", trace_name,
    ];
    let more = ["--run", "--json"];
    place.ask(call, &mut place.submit_under(&strace, call, call, &more));
    let text = std::fs::read(&trace).expect("a trace");
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .filter(|l| !l.contains("resumed>"))
        .filter(|l| l.contains('('))
        .count()
}

/// A `submit --run` whose n-th call on the file meets the fault; answers whether it did: another run may make
/// fewer of them than the one that was counted.
fn broken(place: &Place, calls: &str, file: &Path, fault: Fault, nth: usize) -> bool {
    let log = place.home.path("injected");
    let (trace, inject) = (format!("trace={calls}"), fault.injected(calls, nth));
    let file = crate::cli::text(file);
    let strace = [
        "strace",
        "-f",
        "-qq",
        "-o",
        crate::cli::text(&log),
        "-P",
        file,
        "-e",
        &trace,
        "-e",
        &inject,
    ];
    let more = ["--run", "--json"];
    let mut submit: Command = place.submit_under(&strace, "4417", "first", &more);
    let ended = place.ask("first", &mut submit);
    assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
    match fault {
        Fault::Kill => ended.was_killed(),
        Fault::Error(_) => {
            let said = std::fs::read(&log).expect("a trace");
            String::from_utf8_lossy(&said).contains("(INJECTED)")
        }
    }
}

/// Says how many faults were met. A few may come too late; where most do, nothing is proven.
fn counted(met: &AtomicUsize, made: usize, what: &str) {
    let met = met.load(Ordering::SeqCst);
    figure(&format!("{met} of {made} {what}"));
    assert!(met * 4 >= made * 3, "only {met} of {made} {what}");
}

fn proven(place: &Place) {
    place.come_to_rest();
    judge(place);
    let again = place.drive("4417", "second");
    assert!(!again.word().is_empty(), "{again:#?}");
    place.come_to_rest();
    assert!(judge(place).operations <= 1);
}

/// I5, I8, I26: whichever write or sync of the log fails, or is the last thing the process does, nothing
/// is sent that is not counted, and nothing that was acknowledged is lost.
#[test]
fn whichever_write_or_sync_of_the_log_fails_nothing_is_sent_uncounted_i5_i8() {
    if !has_strace("every write and sync of the log fails once (I5, I8)") {
        return;
    }
    let faults = [
        (WRITES, Fault::Error("ENOSPC")),
        (SYNCS, Fault::Error("EIO")),
        (WRITES, Fault::Kill),
        (SYNCS, Fault::Kill),
    ];
    let mut cases = Vec::new();
    for (calls, fault) in faults {
        let place = Place::new("honest");
        place.drive("1", "warm");
        let wal = place.home.path(".local/share/samekey/ledger.db-wal");
        let total = count(&place, calls, &wal, "counted");
        assert!(total > 5, "{calls} are seen: {total}");
        let all: Vec<usize> = (1..=total).collect();
        cases.extend(some(&all, 4).into_iter().map(|nth| (calls, fault, nth)));
    }
    let (made, met) = (cases.len(), AtomicUsize::new(0));
    each(cases, 4, |(calls, fault, nth)| {
        let place = Place::new("honest");
        place.home.ok(
            0,
            &[
                "submit",
                "issue_refund",
                "--arg",
                "order_id=x",
                "--call-id",
                "warm",
            ],
        );
        let wal = place.home.path(".local/share/samekey/ledger.db-wal");
        let hit = broken(&place, calls, &wal, *fault, *nth);
        met.fetch_add(usize::from(hit), Ordering::SeqCst);
        proven(&place);
    });
    counted(&met, made, "failed or fatal writes and syncs of the log");
}

/// I26, F72 (proof.md (c), "inside checkpoint"): killed at a write or sync of the ledger's own file, which
/// only a checkpoint makes, nothing is lost.
#[test]
fn killed_inside_a_checkpoint_nothing_is_lost_i26() {
    if !has_strace("killed inside a checkpoint (I26)") {
        return;
    }
    let place = Place::new("honest");
    place.drive("1", "warm");
    let mut cases = Vec::new();
    for calls in [WRITES, SYNCS] {
        let total = count(&place, calls, &place.ledger, &format!("counted_{calls}"));
        assert!(total > 0, "{calls} are seen");
        let all: Vec<usize> = (1..=total).collect();
        cases.extend(some(&all, 4).into_iter().map(|nth| (calls, nth)));
    }
    let (made, met) = (cases.len(), AtomicUsize::new(0));
    each(cases, 4, |(calls, nth)| {
        let place = Place::new("honest");
        place.drive("1", "warm");
        let hit = broken(&place, calls, &place.ledger, Fault::Kill, *nth);
        met.fetch_add(usize::from(hit), Ordering::SeqCst);
        place.come_to_rest();
        assert_eq!(
            judge(&place).effects,
            2,
            "both were made before the checkpoint"
        );
    });
    counted(&met, made, "kills inside a checkpoint");
}

/// I29, F73, F74 (proof.md (c), "inside migration"): killed at any write while a ledger is made or an old one
/// is upgraded, the next process finishes it.
#[test]
fn killed_inside_a_migration_the_next_process_finishes_it_i29() {
    if !has_strace("killed inside a migration (I29)") {
        return;
    }
    let mut cases = Vec::new();
    for (old, suffix) in [(false, ".new-wal"), (false, ".new"), (true, "-wal")] {
        let place = Place::new("honest");
        let file = touched(&place, old, suffix);
        let total = count(&place, WRITES, &file, "counted");
        assert!(total > 0, "writes of {suffix} are seen");
        // An old ledger's log is also written by everything behind the upgrade.
        let all: Vec<usize> = (1..=total.min(40)).collect();
        cases.extend(some(&all, 4).into_iter().map(|nth| (old, suffix, nth)));
    }
    let (made, met) = (cases.len(), AtomicUsize::new(0));
    each(cases, 4, |(old, suffix, nth)| {
        let place = Place::new("honest");
        let file = touched(&place, *old, suffix);
        let hit = broken(&place, WRITES, &file, Fault::Kill, *nth);
        met.fetch_add(usize::from(hit), Ordering::SeqCst);
        let ended = place.drive("1", "later");
        assert_eq!(ended.word(), "refunded", "{ended:#?}");
        let fresh = Place::new("honest");
        fresh.drive("1", "made");
        assert_eq!(ledger::schema(&place.ledger), ledger::schema(&fresh.ledger));
        place.come_to_rest();
        judge(&place);
    });
    counted(&met, made, "kills inside a migration");
}

/// The file that is written while a ledger is made (beside its place) or upgraded.
fn touched(place: &Place, old: bool, suffix: &str) -> std::path::PathBuf {
    if old {
        ledger::make_old(&place.ledger);
    }
    let name = format!("{}{suffix}", crate::cli::text(&place.ledger));
    name.into()
}
