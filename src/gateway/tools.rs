//! What agents are told of each tool: its name, what it does, and the JSON Schema of its arguments.
//!
//! Owns: what is said of each, the same for HTTP and MCP: of `issue_refund` from its schema file, of a described
//! tool from its description. Never: checks arguments (step 2 of the protocol
//! does, for every way in). Tests: `tests/gateway/schema.rs`, which holds each schema to the check.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::domain::agent::Agent;
use crate::domain::ids::{ProviderName, ToolName};
use crate::domain::policy::Terms;
use crate::provider::SharedProvider;

/// The schema of `issue_refund`, JSON text.
pub const ISSUE_REFUND: &str = include_str!("../../assets/tools/issue_refund.schema.json");

/// What every model is told.
const HONEST: &str = "the first result is the answer. Say to the customer only what `customer_message` says; \
    `checking`, `unconfirmed` and `held` are neither success nor failure.";

/// A tool as agents see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolOffer {
    pub name: ToolName,
    pub title: String,
    pub description: String,
    /// JSON Schema 2020-12 of the arguments.
    pub input_schema: Value,
}

/// The tools that this agent may use, by name.
#[must_use]
pub fn offers(
    terms: &BTreeMap<ToolName, Terms>,
    providers: &BTreeMap<ProviderName, SharedProvider>,
    agent: &Agent,
) -> Vec<ToolOffer> {
    let tools = terms.iter().filter(|(tool, _)| agent.may_use(tool));
    let offers =
        tools.filter_map(|(tool, terms)| offer(tool, providers.get(&terms.policy.provider)));
    offers.collect()
}

fn offer(tool: &ToolName, provider: Option<&SharedProvider>) -> Option<ToolOffer> {
    if let Some((about, input_schema)) = provider.and_then(|p| p.describes(tool)) {
        return Some(ToolOffer {
            name: tool.clone(),
            title: tool.as_str().replace('_', " "),
            description: format!(
                "{about} Asking again for the same is safe: it is done once, and {HONEST}"
            ),
            input_schema,
        });
    }
    (tool.as_str() == "issue_refund").then(|| ToolOffer {
        name: tool.clone(),
        title: "Issue a refund".to_owned(),
        description: format!(
            "Refunds a customer's order, once. Asking again for the same order and amount is safe: it never pays \
             twice and {HONEST}"
        ),
        input_schema: serde_json::from_str(ISSUE_REFUND).unwrap_or(Value::Bool(false)),
    })
}
