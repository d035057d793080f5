//! What agents need: their tokens, and MCP on a pipe.

use clap::{Args, Subcommand};

use crate::domain::ids::{AgentName, ToolName};

/// `mcp`.
#[derive(Clone, Debug, Args)]
pub struct McpArgs {
    /// Only queue calls: an engine of another process drives them
    #[arg(long)]
    pub no_engine: bool,
}

/// `agents`.
#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// Give an agent a token, which is shown once
    Add(AddAgentArgs),
    /// The agents and what each may use; tokens are not kept
    List,
    /// Take an agent's token back; calls that were accepted go on
    Revoke(RevokeAgentArgs),
}

/// `agents add`.
#[derive(Clone, Debug, Args)]
pub struct AddAgentArgs {
    /// The agent's name; its call ids belong to it
    pub name: AgentName,
    /// A tool that it may use; without any, all
    #[arg(long = "tool", value_name = "T")]
    pub tools: Vec<ToolName>,
}

/// `agents revoke`.
#[derive(Clone, Debug, Args)]
pub struct RevokeAgentArgs {
    /// The agent's name
    pub name: AgentName,
}
