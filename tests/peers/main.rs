//! Programs that nobody here wrote, against ours. They are installed under `target/` where they are
//! missing, at the versions below; where that is not possible the test says so loudly and counts it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and the environment says how long it runs"
)]

mod agents;
#[path = "../common/install.rs"]
mod install;
mod simulator;

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

static SKIPPED: AtomicU32 = AtomicU32::new(0);

/// Says something even where the test runner keeps quiet about tests that pass.
fn say(line: &str) {
    // Not by a macro: those are captured.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A peer that could not be had. Never silent: the run shows what it did not prove.
fn skipped(what: &str, why: &str) {
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    say(&format!("SKIPPED: {what}: {why} (skipped so far: {count})"));
}
