//! What a lead decides beside single rows: pausing a tool, accepting the clock.

use super::{Gate, GateError};
use crate::domain::guard::Role;
use crate::domain::ids::ToolName;
use crate::domain::review_event::{Person, ReviewRefusal};
use crate::domain::text::SafeText;

impl Gate {
    /// Stops sending for a tool; lookups go on.
    ///
    /// # Errors
    /// Not a lead, no reason given, or a tool that is not configured here.
    pub async fn pause(&self, tool: &ToolName, by: &Person, why: &str) -> Result<(), GateError> {
        lead(by)?;
        self.terms(tool)?;
        let why = SafeText::new(why);
        if why.is_empty() {
            return Err(ReviewRefusal::NoteMissing.into());
        }
        let by = (by.name.as_str(), why.as_str());
        Ok(self.ledger.pause(tool, Some(by)).await?)
    }

    /// Sends again for a tool, also after its credentials were refused.
    ///
    /// # Errors
    /// Not a lead, or a tool that is not configured here.
    pub async fn resume(&self, tool: &ToolName, by: &Person) -> Result<(), GateError> {
        lead(by)?;
        self.terms(tool)?;
        Ok(self.ledger.pause(tool, None).await?)
    }

    /// Takes the wall clock as it is now for right, which ends a clock alarm.
    ///
    /// # Errors
    /// Not a lead.
    pub async fn accept_clock(&self, by: &Person) -> Result<(), GateError> {
        lead(by)?;
        Ok(self.ledger.accept_clock(&by.name).await?)
    }
}

fn lead(by: &Person) -> Result<(), GateError> {
    if by.role >= Role::Lead {
        return Ok(());
    }
    Err(GateError::NotPermitted {
        needed: Role::Lead,
        name: by.name.clone(),
        has: by.role,
    })
}
