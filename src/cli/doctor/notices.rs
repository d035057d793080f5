//! Who is told of events, whether they could be, and what waits to be told.

use std::path::Path;
use std::sync::Arc;

use super::super::context::Context;
use super::Check;
use crate::config::Config;
use crate::ledger::sqlite::{OpenMode, SqliteLedger};
use crate::ledger::{Ledger as _, NoticeCounts};
use crate::notify::Outlets;

const NAME: &str = "notify";

/// The command is a program, the webhook's URL is there and understood. Nothing is sent.
pub(super) fn outlets(cx: &Context, config: &Config) -> Vec<Check> {
    let Some(section) = &config.notify else {
        let says = "nobody outside is told of anything; [notify] would";
        return vec![Check::ok(NAME, says)];
    };
    let mut checks = Vec::new();
    if let Some(program) = section.command.as_ref().and_then(|words| words.first()) {
        checks.push(Check::program(NAME, "the command", Path::new(program)));
    }
    if section.webhook.is_some() {
        checks.push(match Outlets::new(section, &cx.env, &cx.clock) {
            Ok(_) => Check::ok(NAME, "the webhook's URL is there and well formed"),
            Err(e) => Check::fail(NAME, e.to_string()),
        });
    }
    checks
}

/// What waits, and what was given up.
pub(super) async fn outbox(cx: &Context, config: &Config, ledger: &Path) -> Vec<Check> {
    if config.notify.is_none() || !ledger.exists() {
        return Vec::new();
    }
    let location = format!("sqlite:{}", ledger.display());
    let terms = Arc::new(config.terms());
    let opened = SqliteLedger::open(&location, OpenMode::Read, terms, cx.clock.clone()).await;
    let counts = match opened {
        Ok(ledger) => {
            let counts = ledger.notice_counts().await;
            ledger.close().await;
            counts
        }
        Err(e) => Err(e),
    };
    vec![match counts {
        Ok(counts) => waiting(counts),
        Err(e) => Check::warn("notices", format!("they cannot be counted: {e}")),
    }]
}

fn waiting(counts: NoticeCounts) -> Check {
    let NoticeCounts {
        pending,
        sent,
        gave_up,
        lost_lately,
    } = counts;
    let says = format!("{pending} wait, {sent} were told, {gave_up} were given up");
    if lost_lately > 0 {
        let says = format!("{says}, {lost_lately} of today in vain; the screen's log says why");
        Check::warn("notices", says)
    } else {
        Check::ok("notices", says)
    }
}
