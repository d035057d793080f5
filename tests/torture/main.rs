//! Torture of real processes: the real binary on real files, a provider in a process of its own that keeps
//! its own log, and everything that can happen to a process: killed at each place and at random, stopped
//! past its lease and past the key's deadline, a full, read-only, failing or damaged disk, clocks that are
//! set, too few descriptors, too little memory, many processes at once.
//!
//! After each story one judge (`judge`) holds the provider's log against the ledger. The engine without a
//! caller is the program's own screen on a pseudo-terminal; a single call is `submit --run`.
//!
//! The normal run takes a covering part; `SAMEKEY_LONG=1` takes everything, and `SAMEKEY_KILLS=N` sets the
//! number of random kills, `SAMEKEY_SEED=N` their times. What a missing tool keeps from running is said
//! on standard error as `SKIPPED`, with a count; with `SAMEKEY_NO_SKIPS=1` it fails.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it measured"
)]

#[path = "../common/cli.rs"]
mod cli;
#[path = "../common/pty.rs"]
mod pty;

mod judge;
mod ledger;
mod place;
mod tools;

mod clocks;
mod crowds;
mod damage;
mod disks;
mod failing;
mod judged;
mod kill_points;
mod limits;
mod order;
mod random_kills;
mod snapshot;
mod stops;
