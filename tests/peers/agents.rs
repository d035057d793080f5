//! An agent built with a public framework, whose node is killed and run again from its first line; and the
//! official MCP SDK as a client.

use std::process::Command;

use super::simulator::{holds, script};
use super::{install, skipped};

const FRAMEWORK: [&str; 2] = ["langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2"];

/// The crash experiment: 20 crashes of the node (`SAMEKEY_CRASHES=200` by hand), none of them doubles a
/// refund through samekey, and how many do without it (R65, R67, R68, R100, F30, F32, F33).
#[test]
fn a_framework_whose_node_is_killed_pays_once_r65_r67_r68_r100_f30_f32() {
    let crashes = std::env::var("SAMEKEY_CRASHES").unwrap_or_else(|_| "20".into());
    match install::python(&FRAMEWORK) {
        Err(why) => skipped("an agent of LangGraph through the gateway", &why),
        Ok(python) => holds(
            "LangGraph, its node killed",
            Command::new(python)
                .arg(script("framework.py"))
                .arg(env!("CARGO_BIN_EXE_samekey"))
                .arg(crashes),
            8,
        ),
    }
}

const MCP: [&str; 1] = ["mcp==2.3.0"];

/// The official MCP Python SDK over a pipe and over HTTP: lists, annotations, calls, repeats, refusals,
/// and no key anywhere (R60, R62, R98).
#[test]
fn the_mcp_sdk_calls_tools_over_both_ways_r60_r62_r98() {
    match install::python(&MCP) {
        Err(why) => skipped("the MCP Python SDK against samekey", &why),
        Ok(python) => holds(
            "MCP Python SDK against samekey mcp and serve",
            Command::new(python)
                .arg(script("mcp_client.py"))
                .arg(env!("CARGO_BIN_EXE_samekey")),
            38,
        ),
    }
}
