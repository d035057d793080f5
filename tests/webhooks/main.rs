//! Webhooks from the socket to the row: signatures and their attacks (`attacks`), bounds of the server
//! (`bounds`), what an event leads to in every order (`stories`), what was set
//! aside (`acknowledging`), any bytes at all (`arbitrary`), hostile
//! text in any member (`hostile`), clocks that are set (`clocks`), and the
//! real binary (`serving`), and the simulated provider's own webhooks
//! (`provider`).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "a test fails by panicking, and builds its requests by hand"
)]
#![allow(dead_code, reason = "the kit is shared with other tests")]

mod acknowledging;
mod arbitrary;
mod attacks;
mod bounds;
#[path = "../common/cli.rs"]
mod cli;
mod clocks;
mod hostile;
#[path = "../common/ledger.rs"]
mod ledger;
mod provider;
#[path = "../common/scripted.rs"]
mod scripted;
#[path = "../stripe/server.rs"]
mod server;
mod serving;
#[path = "../common/world.rs"]
mod shop;
mod stories;
