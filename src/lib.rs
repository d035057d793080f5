//! samekey: one intended side effect stays one, however often an AI agent asks for it.

pub mod clock;
pub mod simulator;
