//! The allowances of the ledger as what reads of a provider are paid from.
//!
//! Owns: nothing but the way from a ledger to [`Reads`]. Tests: `tests/stripe/budget.rs`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::domain::ids::ProviderName;
use crate::domain::later;
use crate::domain::text::SafeText;
use crate::ledger::{ReadFor, SharedLedger};
use crate::provider::{Purse, Reads};

struct OfLedger(SharedLedger, ReadFor);

#[async_trait]
impl Purse for OfLedger {
    async fn take(&self, provider: &ProviderName) -> Result<Result<(), Duration>, SafeText> {
        let took = self.0.take_read(provider, self.1).await;
        took.map_err(|error| error.to_string().into())
    }
}

/// Reads of a provider for somebody who has so much time, out of the ledger's allowance for it.
#[must_use]
pub fn reads(
    ledger: &SharedLedger,
    clock: &Clock,
    provider: &ProviderName,
    reads_for: ReadFor,
    time: Duration,
) -> Reads {
    let purse = Arc::new(OfLedger(Arc::clone(ledger), reads_for));
    let until = later(clock.now(), time);
    Reads::new(purse, provider.clone(), clock.clone(), until)
}
