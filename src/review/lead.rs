//! What a lead decides beside single rows: pausing a tool, accepting the clock.

use super::{Asked, Gate, GateError, Level, Subject, by_role};
use crate::domain::guard::Role;
use crate::domain::ids::ToolName;
use crate::domain::policy::Circuit;
use crate::domain::review_event::{Person, ReviewRefusal};
use crate::domain::text::SafeText;
use crate::ledger::ToolState;

impl Gate {
    /// Stops sending for a tool; lookups go on.
    ///
    /// # Errors
    /// Not a lead, no reason given, or a tool that is not configured here.
    pub async fn pause(&self, tool: &ToolName, by: &Person, why: &str) -> Result<(), GateError> {
        by_role(by, Role::Lead)?;
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
        by_role(by, Role::Lead)?;
        self.terms(tool)?;
        Ok(self.ledger.pause(tool, None).await?)
    }

    /// What pausing or resuming a tool would take. `paused` is what the person read: who paused it and
    /// why, or nobody.
    ///
    /// # Errors
    /// Not a lead, a tool that is not configured here, or one that was paused or resumed meanwhile.
    pub async fn ask_tool(
        &self,
        tool: &ToolName,
        paused: Option<&(String, String)>,
        by: &Person,
    ) -> Result<Asked, GateError> {
        by_role(by, Role::Lead)?;
        self.terms(tool)?;
        let state = self.tool_as_read(tool, paused).await?;
        let (level, will, will_not) = match &state.paused {
            None => (
                Level::Note,
                format!("{tool} sends nothing until a lead resumes it"),
                "lookups go on; what is in flight is not taken back",
            ),
            Some(_) => (
                Level::Plain,
                format!("{tool} sends again: its queued calls go out"),
                "closes nothing",
            ),
        };
        Ok(Asked {
            subject: Subject::Tool(state),
            level,
            will: vec![will],
            will_not,
            typed_ref: false,
        })
    }

    /// Pauses a tool that sends, or resumes one that is paused as the person read it; says what holds
    /// now.
    ///
    /// # Errors
    /// As [`Gate::ask_tool`], and a pause without a reason.
    pub async fn switch(
        &self,
        tool: &ToolName,
        paused: Option<&(String, String)>,
        by: &Person,
        why: &str,
    ) -> Result<String, GateError> {
        by_role(by, Role::Lead)?;
        self.tool_as_read(tool, paused).await?;
        if paused.is_some() {
            self.resume(tool, by).await?;
            Ok(format!("{tool} sends again"))
        } else {
            self.pause(tool, by, why).await?;
            Ok(format!("{tool} is paused; lookups go on"))
        }
    }

    /// The tool's state, if it is paused, or not, as the person read it.
    async fn tool_as_read(
        &self,
        tool: &ToolName,
        paused: Option<&(String, String)>,
    ) -> Result<ToolState, GateError> {
        let states = self.ledger.tools().await?;
        let state = states.into_iter().find(|s| s.tool == *tool);
        let state = state.unwrap_or_else(|| ToolState {
            tool: tool.clone(),
            paused: None,
            circuit: Circuit::default(),
        });
        if state.paused.as_ref() == paused {
            return Ok(state);
        }
        Err(GateError::Rule(match &state.paused {
            Some((by, why)) => format!("{tool} is paused by {by}: {why}; look again"),
            None => format!("{tool} is not paused any more; look again"),
        }))
    }

    /// Takes the wall clock as it is now for right, which ends a clock alarm.
    ///
    /// # Errors
    /// Not a lead.
    pub async fn accept_clock(&self, by: &Person) -> Result<(), GateError> {
        by_role(by, Role::Lead)?;
        Ok(self.ledger.accept_clock(&by.name).await?)
    }
}
