//! The order of system calls: what is promised is on the disk before anybody is told or asked.

use std::path::Path;

use crate::judge::judge;
use crate::place::{Place, Settings};
use crate::tools::has_strace;

/// One system call, where it began or where it ended.
#[derive(Debug)]
struct Event {
    thread: String,
    name: String,
    /// Descriptor with what it stands for, and the rest.
    rest: String,
    begins: bool,
    ends: bool,
}

/// Reads `strace -f -yy -o`.
fn events(trace: &Path) -> Vec<Event> {
    let text = std::fs::read(trace).expect("a trace");
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(event).collect()
}

fn event(line: &str) -> Option<Event> {
    let (thread, call) = line.split_once(' ')?;
    let call = call.trim_start();
    let resumed = call.strip_prefix("<... ");
    let (name, rest) = match resumed {
        Some(call) => call.split_once(" resumed>")?,
        None => call.split_once('(')?,
    };
    Some(Event {
        thread: thread.to_owned(),
        name: name.to_owned(),
        rest: rest.to_owned(),
        begins: resumed.is_none(),
        ends: !rest.contains("<unfinished ...>"),
    })
}

/// Walks through a trace and remembers what of the log is not on the disk yet.
#[derive(Default)]
struct Disk {
    /// Written to the log since its last sync began.
    dirty: bool,
    /// Syncs of the log that have begun and not ended, by thread; whether writes came behind them.
    syncing: Vec<String>,
    syncs: usize,
    writes: usize,
}

impl Disk {
    fn see(&mut self, event: &Event) {
        let sync = matches!(event.name.as_str(), "fsync" | "fdatasync");
        if event.begins && event.rest.contains("-wal>") {
            if event.name == "pwrite64" {
                self.dirty = true;
                self.writes += 1;
            }
            if sync {
                self.syncing.push(event.thread.clone());
            }
        }
        if sync && event.ends && event.rest.ends_with("= 0") {
            let known = self.syncing.iter().position(|t| *t == event.thread);
            if let Some(at) = known {
                self.syncing.remove(at);
                // One writer, which waits for its sync.
                self.dirty = false;
                self.syncs += 1;
            }
        }
    }

    fn is_safe(&self) -> bool {
        !self.dirty && self.syncing.is_empty()
    }
}

const CALLS: &str =
    "trace=connect,write,writev,sendto,sendmsg,pwrite64,fsync,fdatasync,rename,renameat,renameat2";

fn traced(place: &Place, call: &str, more: &[&str]) -> Vec<Event> {
    let trace = place.home.path("trace");
    let file = crate::cli::text(&trace);
    let strace = ["strace", "-f", "-yy", "-s", "64", "-e", CALLS, "-o", file];
    let ended = place.ask(call, &mut place.submit_under(&strace, "4417", call, more));
    assert!(ended.status.success(), "{ended:#?}");
    events(&trace)
}

/// A lease that is not renewed meanwhile, so that every write is a step of the call.
fn patient() -> Place {
    let settings = Settings {
        lease: "10m",
        timeout: "20s",
        window: "20s",
        ..Settings::default()
    };
    Place::with("honest", settings)
}

fn posts(event: &Event) -> bool {
    let sends = ["write", "writev", "sendto", "sendmsg"].contains(&event.name.as_str());
    sends && event.begins && event.rest.contains("TCP") && event.rest.contains("\"POST /v1/refunds")
}

/// The name of the socket that a call is about: `9<TCP:[127.0.0.1:1->127.0.0.1:2]>`.
fn socket(event: &Event) -> &str {
    event.rest.split(['<', '(', ',']).next().unwrap_or_default()
}

/// I2, I5, I26 (proof.md (c), "order proof"): when the first byte of the refund leaves, everything that was
/// written to the ledger's log is on the disk, and the attempt was written after the connection was made.
#[test]
fn the_attempt_is_on_the_disk_before_its_first_byte_leaves_i2_i5() {
    if !has_strace("the WAL is synced before the first byte (I2, I5)") {
        return;
    }
    let place = patient();
    let events = traced(&place, "first", &["--run", "--json"]);
    let sent: Vec<usize> = (0..events.len()).filter(|n| posts(&events[*n])).collect();
    assert_eq!(sent.len(), 1, "I12: one attempt, one request");
    let mut disk = Disk::default();
    let post = sent[0];
    let connected = events[..post]
        .iter()
        .rposition(|e| e.name == "connect" && e.begins && socket(e) == socket(&events[post]));
    let connected = connected.expect("connected before");
    for event in &events[..connected] {
        disk.see(event);
    }
    let before = (disk.writes, disk.syncs);
    for event in &events[connected..post] {
        disk.see(event);
    }
    assert!(disk.is_safe(), "written and not synced when it was sent");
    assert!(
        before.1 > 0 && disk.writes > before.0,
        "counted after the connection was made"
    );
    assert!(disk.syncs > before.1, "and synced before the first byte");
    judge(&place);
}

/// I26: nobody is told that a call is accepted, or what it came to, before that is on the disk. A new
/// ledger has its name only once it is there as a whole.
#[test]
fn what_is_told_is_on_the_disk_before_i26() {
    if !has_strace("what is acknowledged is synced before (I26)") {
        return;
    }
    for how in [&["--json"][..], &["--run", "--json"]] {
        let place = patient();
        let events = traced(&place, "first", how);
        let mut disk = Disk::default();
        let mut told = 0;
        let mut named = false;
        for event in &events {
            disk.see(event);
            if event.name.starts_with("rename") && event.rest.contains("ledger.db.new") {
                named = true;
                assert!(
                    disk.syncs > 0 && disk.is_safe(),
                    "named before it was synced"
                );
            }
            let speaks = event.name == "write" && event.begins && event.rest.starts_with("1<");
            if speaks {
                told += 1;
                assert!(
                    named && disk.is_safe(),
                    "told before it was synced: {event:?}"
                );
            }
        }
        assert!(told > 0, "it said something");
        place.come_to_rest();
        judge(&place);
    }
}
