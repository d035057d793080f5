//! Events that were set aside: a person notes to have seen one. Nothing follows from it for any row; what the
//! event says stays as it is, with who has seen it beside it. Tests: `tests/webhooks/acknowledging.rs`.

use super::{Gate, GateError, by_role};
use crate::domain::guard::Role;
use crate::domain::ids::{EventId, ProviderName};
use crate::domain::review_event::{Person, ReviewRefusal};
use crate::domain::text::SafeText;

impl Gate {
    /// Acknowledges a quarantined event: it is not counted as one any more. Once, and for good.
    ///
    /// # Errors
    /// Not a reviewer, no note, no such event, one of several providers, or one that is not quarantined.
    pub async fn acknowledge_event(
        &self,
        id: &EventId,
        provider: Option<&ProviderName>,
        by: &Person,
        note: &str,
    ) -> Result<String, GateError> {
        by_role(by, Role::Reviewer)?;
        let note = SafeText::new(note);
        if note.is_empty() {
            return Err(ReviewRefusal::NoteMissing.into());
        }
        let recovery = self.ledger.recovery();
        match recovery
            .acknowledge_event(id, provider, &by.name, &note)
            .await?
        {
            Ok(()) => Ok(format!("{id}: acknowledged by {}", by.name)),
            Err(why) => Err(GateError::Rule(format!("{id}: {why}"))),
        }
    }
}
