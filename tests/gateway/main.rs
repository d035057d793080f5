//! The gateway through real sockets, with the real engine and a simulated provider: agents and their
//! tokens (`agents`), calls (`calls`, `bodies`), their answers' way back (`delivery`), limits (`limits`),
//! clients that misbehave (`clients`), what operators see (`observe`), the document (`openapi`) and the
//! schemas (`schema`), MCP (`mcp`), many clients at once (`load`), and the real binary (`serving`).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::format_push_string,
    reason = "a test fails by panicking, builds its requests by hand, and says how fast it was"
)]
#![allow(dead_code, reason = "the kit is shared with other tests")]

mod agents;
mod bodies;
mod calls;
#[path = "../common/cli.rs"]
mod cli;
mod client;
mod clients;
mod delivery;
mod hall;
mod limits;
mod load;
mod mcp;
mod observe;
mod openapi;
mod schema;
mod serving;
#[path = "../common/world.rs"]
mod world;
