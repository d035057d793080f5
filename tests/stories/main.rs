//! Stories on the real program in a pseudo-terminal, read through a terminal emulator: start, act,
//! be typed at, race, watch, be hung up, suspended and resized, and be told hostile text.
//!
//! Each story is named after the rule it proves (U rows of the fault table). Nothing waits for a
//! fixed time: every step waits until the screen, the ledger or the process is as it should be.
//! Not here: a panic of the screen (U29, U32), since the program has no switch to break itself;
//! `tests/tui_terminal.rs` proves it on the same screen with a child that panics.

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

mod escapes;
mod stage;

mod deciding;
mod drawing;
mod hostile;
mod leaving;
mod racing;
mod secrets;
mod starting;
mod suspending;
mod telling;
mod typing;
mod watching;
