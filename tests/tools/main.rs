//! Described tools: their descriptions (`describing`), the shipped ones against a simulated help desk and
//! message channel over real HTTP (`tickets`, `messages`), and what they may cost (`limits`).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "a test fails by panicking, and builds its files by hand"
)]

mod describing;
mod kit;
mod limits;
mod messages;
mod tickets;
