//! The desk: claims, which tell others that somebody looks at a row, and snoozes, which put one off.
//! Neither decides anything, moves the version, or stops anybody else. Tests: `tests/review.rs`,
//! `tests/protocol/desk.rs`, `tests/cli_desk.rs`.

use super::{Decided, Gate, GateError};
use crate::domain::Instant;
use crate::domain::ids::OperationId;
use crate::domain::review_event::{Act, Decision, Person};
use crate::domain::text::SafeText;
use crate::domain::transition::{Event, Step};

impl Gate {
    /// Claims a row for the tool's `claim_ttl`; a running claim of somebody else is taken over, and
    /// said so.
    ///
    /// # Errors
    /// Not a reviewer, no such row, or a settled one.
    pub async fn claim(&self, id: &OperationId, by: &Person) -> Result<Decided, GateError> {
        let step = self.at_desk(id, by, Act::Claim).await?;
        let until = step.op.row.claim.as_ref().map(|c| clock(c.until));
        let from = step.audit.detail.get("from").and_then(|f| f.as_str());
        let from = from.map_or_else(String::new, |name| {
            format!("; taken over from {}", SafeText::new(name))
        });
        let says = format!("{id}: claimed until {}{from}", until.unwrap_or_default());
        Ok(decided(step, says))
    }

    /// Gives a claim back; somebody else's only as a lead.
    ///
    /// # Errors
    /// Not a reviewer, no such row, nobody claims it, or somebody else does.
    pub async fn release(&self, id: &OperationId, by: &Person) -> Result<Decided, GateError> {
        let step = self.at_desk(id, by, Act::Release).await?;
        let says = format!("{id}: nobody claims it any more");
        Ok(decided(step, says))
    }

    /// Puts a row last in Review until then, or until its version moves.
    ///
    /// # Errors
    /// Not a reviewer, no such row, a settled or contradicted one, or a time that has passed or lies
    /// more than seven days ahead.
    pub async fn snooze(
        &self,
        id: &OperationId,
        by: &Person,
        until: Instant,
    ) -> Result<Decided, GateError> {
        let step = self.at_desk(id, by, Act::Snooze { until }).await?;
        let says = format!(
            "{id}: put off until {}, or until it moves",
            until.format("%Y-%m-%d %H:%M:%SZ")
        );
        Ok(decided(step, says))
    }

    async fn at_desk(&self, id: &OperationId, by: &Person, act: Act) -> Result<Step, GateError> {
        // A row that is not there is said to be so, not found out by the ledger.
        self.operation(id).await?;
        let event = Event::Decided(Decision {
            by: by.clone(),
            note: SafeText::default(),
            looked_at: None,
            act,
        });
        self.apply(id, event).await
    }
}

fn decided(step: Step, says: String) -> Decided {
    Decided {
        op: step.op,
        proposed: false,
        says,
    }
}

fn clock(at: Instant) -> String {
    at.format("%H:%M:%SZ").to_string()
}
