//! Described tools: their descriptions (`describing`), the shipped ones against a simulated help desk and
//! message channel over real HTTP (`tickets`, `messages`), what they may cost (`limits`), and the real binary
//! (`cli`).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "a test fails by panicking, and builds its files by hand"
)]

#[path = "../common/cli.rs"]
mod binary;
mod cli;
mod describing;
mod kit;
mod limits;
mod messages;
mod tickets;
