//! Who is told of events, whether they could be, and what waits to be told.

use std::os::unix::fs::PermissionsExt as _;
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
        checks.push(command(Path::new(program)));
    }
    if section.webhook.is_some() {
        checks.push(match Outlets::new(section, &cx.env, &cx.clock) {
            Ok(_) => Check::ok(NAME, "the webhook's URL is there and well formed"),
            Err(e) => Check::fail(NAME, e.to_string()),
        });
    }
    checks
}

fn command(program: &Path) -> Check {
    let shown = program.display();
    match std::fs::metadata(program) {
        Ok(meta) if !meta.is_file() => Check::fail(NAME, format!("the command {shown} is no file")),
        Ok(meta) if meta.permissions().mode() & 0o111 == 0 => {
            let says = format!("the command {shown} is not executable; run chmod +x on it");
            Check::fail(NAME, says)
        }
        Ok(_) => Check::ok(NAME, format!("the command {shown} can be run")),
        Err(e) => {
            let why = crate::config::plain(&e);
            let says = format!("the command {shown} cannot be examined: {why}");
            Check::fail(NAME, says)
        }
    }
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
