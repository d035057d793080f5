//! What a person may take away from an operation: its row as JSON, the provider's link. Only reads.

use super::Gate;
use crate::domain::ids::{ProviderName, ProviderRef};
use crate::domain::message::Language;
use crate::ledger::Detail;
use crate::ledger::view::{Lens, RowView};

impl Gate {
    /// The row as the contract writes it.
    #[must_use]
    pub fn row(&self, detail: &Detail) -> RowView {
        let url = |name: &ProviderName, id: &ProviderRef| self.url(name, id);
        RowView::of_detail(
            detail,
            Lens {
                terms: &self.terms,
                url: &url,
                now: self.clock.now(),
                // A row says nothing to customers.
                language: Language::default(),
            },
        )
    }

    /// Where a person finds a provider's object; none where the provider has no page for it or is not
    /// configured here.
    #[must_use]
    pub fn url(&self, provider: &ProviderName, id: &ProviderRef) -> Option<String> {
        self.providers.get(provider)?.url(id)
    }
}
