//! Configuration, reviewers, providers, terminal.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::super::context::Context;
use super::Check;
use crate::clock::Clock;
use crate::config::{Config, Env, Loaded, OrdersBy, open_file, plain, show_duration};
use crate::domain::guard::Role;
use crate::domain::ids::ProviderName;
use crate::domain::text::SafeText;
use crate::provider::{Purse, Reads, SharedProvider};

/// The smallest screen with everything that matters on it.
const SMALLEST: (u16, u16) = (60, 16);

/// The file, and who may decide.
pub(super) fn configuration(loaded: &Loaded) -> Vec<Check> {
    let file = loaded.path.display();
    let first = if loaded.present {
        Check::ok("configuration", format!("{file} is right"))
    } else {
        Check::ok("configuration", format!("{file} does not exist: defaults"))
    };
    let reviewers = &loaded.config.reviewers;
    let leads = reviewers.values().filter(|r| **r == Role::Lead).count();
    let second = match (reviewers.len(), leads) {
        (0, _) => Check::warn(
            "reviewers",
            "none are configured: the OS user alone decides, and nobody can be the second person",
        ),
        (_, 0) => Check::warn(
            "reviewers",
            "there is no lead: nobody can approve or correct",
        ),
        (1, _) => Check::warn("reviewers", "there is one: nobody can be the second person"),
        (n, leads) => Check::ok("reviewers", format!("{n}, of them {leads} leads")),
    };
    vec![first, second]
}

/// Promises, key and account of each provider.
pub(super) async fn providers(cx: &Context, config: &Config) -> Vec<Check> {
    if config.providers.is_empty() {
        let says = "none is configured: nothing can be sent; `samekey config init` shows how";
        return vec![Check::warn("provider", says)];
    }
    let mut checks = Vec::new();
    for (name, section) in &config.providers {
        let kind: &str = section.kind.into();
        let (retention, settle) = (section.profile.retention, section.profile.settle_time);
        checks.push(Check::ok(
            "provider",
            format!(
                "{name} ({kind}) keeps keys for {}, finishes requests within {}",
                show_duration(retention),
                show_duration(settle)
            ),
        ));
        checks.extend(orders(name, &section.resolve));
        match cx.provider(name, section, &config.tools) {
            Ok(provider) => {
                let mode = provider.mode();
                checks.push(Check::ok(
                    "secret",
                    format!("{name}: the key is there ({mode})"),
                ));
                let configured = section.account.as_deref();
                checks.push(account(&provider, configured, &cx.clock).await);
            }
            Err(failure) => {
                let hint = failure.hint.map_or(String::new(), |h| format!("; {h}"));
                checks.push(Check::fail(
                    "secret",
                    format!("{name}: {}{hint}", failure.message),
                ));
            }
        }
    }
    checks
}

/// Whoever knows which payment an order was paid with can be asked. Nothing is asked.
fn orders(provider: &ProviderName, by: &OrdersBy) -> Option<Check> {
    const NAME: &str = "orders";
    match by {
        OrdersBy::Search => None,
        OrdersBy::Table(path) => Some(match open_file(path) {
            Ok(_) => Check::ok(NAME, format!("{provider}: {} can be read", path.display())),
            Err(e) => {
                let (path, why) = (path.display(), plain(&e));
                Check::fail(NAME, format!("{provider}: {path} cannot be read: {why}"))
            }
        }),
        OrdersBy::Command(words) => {
            let program = Path::new(words.first()?);
            Some(Check::program(
                NAME,
                &format!("{provider}: the command"),
                program,
            ))
        }
    }
}

/// A person asks once, perhaps where there is no ledger yet that could keep a budget.
struct ByHand;

#[async_trait]
impl Purse for ByHand {
    async fn take(&self, _: &ProviderName) -> Result<Result<(), Duration>, SafeText> {
        Ok(Ok(()))
    }
}

fn one_read(provider: &SharedProvider, clock: &Clock) -> Reads {
    let name = provider.name().clone();
    Reads::new(Arc::new(ByHand), name, clock.clone(), clock.now())
}

/// A ledger is bound to an account; one that nobody can name protects less.
async fn account(provider: &SharedProvider, configured: Option<&str>, clock: &Clock) -> Check {
    const NAME: &str = "account";
    let who = provider.name();
    if let Some(account) = configured {
        return Check::ok(NAME, format!("{who}: {account} by configuration"));
    }
    let remedy = format!("set providers.{who}.account");
    match provider.account(&one_read(provider, clock)).await {
        Ok(Some(account)) => Check::ok(NAME, format!("{who}: {account}")),
        Ok(None) => Check::warn(
            NAME,
            format!("{who}: the provider does not name it; {remedy}"),
        ),
        Err(e) => Check::warn(
            NAME,
            format!("{who}: it cannot be asked for ({e}); {remedy}"),
        ),
    }
}

/// Whether the screen would be readable here.
pub(super) fn terminal(env: &Env) -> Vec<Check> {
    const NAME: &str = "terminal";
    if !std::io::stdout().is_terminal() {
        return vec![Check::ok(
            NAME,
            "standard output is none; the screen needs one",
        )];
    }
    let mut checks = Vec::new();
    if env.get("TERM").is_none_or(|t| t == "dumb") {
        checks.push(Check::warn(
            NAME,
            "TERM names no terminal that can move its cursor",
        ));
    }
    if let Ok((width, height)) = crossterm::terminal::size() {
        let says = format!("{width}x{height}");
        checks.push(if width < SMALLEST.0 || height < SMALLEST.1 {
            let (w, h) = SMALLEST;
            Check::warn(
                NAME,
                format!("{says} is small; {w}x{h} shows everything that matters"),
            )
        } else {
            Check::ok(NAME, says)
        });
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|v| env.get(v));
    let utf8 = locale.is_some_and(|l| {
        let l = l.to_lowercase();
        l.contains("utf-8") || l.contains("utf8")
    });
    if !utf8 {
        checks.push(Check::warn(
            NAME,
            "the locale is not UTF-8; use --ascii if signs are missing",
        ));
    }
    checks
}
