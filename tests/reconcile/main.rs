//! The reconciler: looks (`looks`), missed events (`missed`) and lists that do not end (`endless`), the schedule under a running engine
//! (`schedule`), and `samekey reconcile --once` (`cli`).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "a test fails by panicking, and builds its requests by hand"
)]
#![allow(dead_code, reason = "the kit is shared with other tests")]

#[path = "../common/cli.rs"]
mod binary;
mod cli;
mod endless;
#[path = "../common/ledger.rs"]
mod ledger;
mod looks;
mod missed;
mod schedule;
#[path = "../common/scripted.rs"]
mod scripted;
#[path = "../stripe/server.rs"]
mod server;
