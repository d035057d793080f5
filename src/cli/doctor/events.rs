//! What the provider tells: whether its webhooks can be checked, and what of them waits or was quarantined.

use std::path::Path;
use std::sync::Arc;

use super::super::context::Context;
use super::Check;
use crate::config::Config;
use crate::ledger::sqlite::{OpenMode, SqliteLedger};
use crate::ledger::{EventCounts, Ledger as _, LedgerError};

const NAME: &str = "webhooks";

/// Each provider's secret is there; without one nothing is taken, which is safe and slow.
pub(super) fn secrets(cx: &Context, config: &Config) -> Vec<Check> {
    let checks = config.providers.iter().map(|(name, section)| {
        let Some(source) = &section.webhook_secret else {
            let says =
                format!("{name}: none are taken; webhook_secret_env would let `serve` take them");
            return Check::ok(NAME, says);
        };
        match source.read_several(&cx.env) {
            Ok(secrets) => Check::ok(NAME, format!("{name}: {}", there(secrets.len()))),
            Err(e) => Check::fail(NAME, format!("{name}: {e}; {}", e.remedy())),
        }
    });
    checks.collect()
}

fn there(secrets: usize) -> String {
    match secrets {
        1 => "the secret is there".to_owned(),
        n => format!("{n} secrets are there"),
    }
}

/// What waits, and what was quarantined.
pub(super) async fn inbox(cx: &Context, config: &Config, ledger: &Path) -> Vec<Check> {
    if !ledger.exists() {
        return Vec::new();
    }
    match counts(cx, config, ledger).await {
        Ok(counts) if counts.is_empty() => Vec::new(),
        Ok(counts) => told(&counts),
        // What is wrong with the ledger is said elsewhere.
        Err(_) => Vec::new(),
    }
}

async fn counts(cx: &Context, config: &Config, path: &Path) -> Result<EventCounts, LedgerError> {
    let location = format!("sqlite:{}", path.display());
    let terms = Arc::new(config.terms());
    let ledger = SqliteLedger::open(&location, OpenMode::Read, terms, cx.clock.clone()).await?;
    let counts = ledger.recovery().event_counts().await;
    ledger.close().await;
    counts
}

fn told(counts: &EventCounts) -> Vec<Check> {
    let says = format!(
        "{} processed, {} ignored, {} waiting, {} quarantined",
        counts.processed,
        counts.ignored,
        counts.waiting.saturating_add(counts.received),
        counts.quarantined
    );
    let mut checks = vec![if counts.waiting > 0 || counts.quarantined > 0 {
        let says = format!(
            "{says}; `samekey events list` names them, `samekey events acknowledge` is for those that were seen, \
             `samekey reconcile --once` tries again what waits"
        );
        Check::warn("events", says)
    } else {
        Check::ok("events", says)
    }];
    checks.extend(counts.troubles.iter().map(|trouble| {
        let says = format!(
            "{}: they cannot be listed: {}",
            trouble.provider, trouble.why
        );
        Check::warn("events", says)
    }));
    checks
}
