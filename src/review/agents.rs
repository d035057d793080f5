//! Who may call over the gateway: a lead gives an agent its token and takes it back.

use std::collections::BTreeSet;

use super::{Gate, GateError, by_role};
use crate::domain::agent::{self, KeptToken};
use crate::domain::guard::Role;
use crate::domain::ids::{AgentName, ToolName};
use crate::domain::review_event::Person;
use crate::ledger::NewAgent;

impl Gate {
    /// Gives an agent the token of which `token` is kept, for `tools` (without a list: for all).
    ///
    /// # Errors
    /// Not a lead, a name of samekey itself, a tool that is not configured, or an agent that has one.
    pub async fn add_agent(
        &self,
        name: &AgentName,
        tools: Option<BTreeSet<ToolName>>,
        token: KeptToken,
        by: &Person,
    ) -> Result<(), GateError> {
        by_role(by, Role::Lead)?;
        if agent::is_reserved(name) {
            return Err(GateError::ReservedAgent(name.clone()));
        }
        for tool in tools.iter().flatten() {
            self.terms(tool)?;
        }
        let new = NewAgent {
            name: name.clone(),
            token,
            tools,
            by: by.name.clone(),
        };
        if self.ledger.serving().add_agent(new).await? {
            Ok(())
        } else {
            Err(GateError::AgentThere(name.clone()))
        }
    }

    /// Takes an agent's token back: from now on it is nobody's. Calls that were accepted go on.
    ///
    /// # Errors
    /// Not a lead, or an agent that has no token.
    pub async fn revoke_agent(&self, name: &AgentName, by: &Person) -> Result<(), GateError> {
        by_role(by, Role::Lead)?;
        if self.ledger.serving().revoke_agent(name, &by.name).await? {
            Ok(())
        } else {
            Err(GateError::NoSuchAgent(name.clone()))
        }
    }
}
