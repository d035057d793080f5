//! What agents are told of each tool: its name, what it does, and the JSON Schema of its arguments.
//!
//! Owns: the schema files, the same for HTTP and MCP. Never: checks arguments (step 2 of the protocol
//! does, for every way in). Tests: `tests/gateway/schema.rs`, which holds each schema to the check.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Serialize;
use serde_json::Value;

use crate::domain::agent::Agent;
use crate::domain::ids::ToolName;
use crate::domain::policy::Terms;

/// The schema of `issue_refund`, JSON text.
pub const ISSUE_REFUND: &str = include_str!("../../assets/tools/issue_refund.schema.json");

/// A tool as agents see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolOffer {
    pub name: ToolName,
    pub title: &'static str,
    pub description: &'static str,
    /// JSON Schema 2020-12 of the arguments.
    pub input_schema: &'static Value,
}

/// The tools that this agent may use, by name.
#[must_use]
pub fn offers(terms: &BTreeMap<ToolName, Terms>, agent: &Agent) -> Vec<ToolOffer> {
    let tools = terms.keys().filter(|tool| agent.may_use(tool));
    tools.filter_map(offer).collect()
}

fn offer(tool: &ToolName) -> Option<ToolOffer> {
    static REFUND: OnceLock<Value> = OnceLock::new();
    (tool.as_str() == "issue_refund").then(|| ToolOffer {
        name: tool.clone(),
        title: "Issue a refund",
        description: "Refunds a customer's order, once. Asking again for the same order and amount is safe: \
             it never pays twice and answers with the first refund's result. Say to the customer only what \
             `customer_message` says; `checking`, `unconfirmed` and `held` are neither success nor failure.",
        input_schema: REFUND
            .get_or_init(|| serde_json::from_str(ISSUE_REFUND).unwrap_or(Value::Bool(false))),
    })
}
