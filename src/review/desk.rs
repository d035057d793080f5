//! The desk: claims, which tell others that somebody looks at a row, and snoozes, which put one off.
//! Neither decides anything, moves the version, or stops anybody else.

use super::{Decided, Gate, GateError};
use crate::domain::Instant;
use crate::domain::ids::OperationId;
use crate::domain::review_event::Person;

impl Gate {
    /// Claims a row for the tool's `claim_ttl`.
    ///
    /// # Errors
    /// Not a reviewer, or no such row.
    pub async fn claim(&self, id: &OperationId, by: &Person) -> Result<Decided, GateError> {
        let _ = (id, by);
        Err(GateError::Rule("claims are not built yet".into()))
    }

    /// Gives a claim back.
    ///
    /// # Errors
    /// Not a reviewer, no such row, or nobody claims it.
    pub async fn release(&self, id: &OperationId, by: &Person) -> Result<Decided, GateError> {
        let _ = (id, by);
        Err(GateError::Rule("claims are not built yet".into()))
    }

    /// Puts a row last in Review until then, or until its version moves.
    ///
    /// # Errors
    /// Not a reviewer, no such row, or a time that has passed.
    pub async fn snooze(
        &self,
        id: &OperationId,
        by: &Person,
        until: Instant,
    ) -> Result<Decided, GateError> {
        let _ = (id, by, until);
        Err(GateError::Rule("snoozing is not built yet".into()))
    }
}
