//! `serve`: the engine without a screen, the gateway for agents' calls and the intake of the provider's
//! webhooks, until it is told to stop. Tests: `tests/webhooks/serving.rs`, `tests/gateway/serving.rs`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;

use super::args::ServeArgs;
use super::context::{Context, Desk, Keys};
use super::screen::{DRAIN, LAST_NOTICE, deps, notifier};
use super::sim::Ends;
use crate::engine::{Engine, EngineHealth, EngineState};
use crate::error::{Exit, Failure};
use crate::gateway::{Endpoint, Gateway, GatewayDeps, GatewayError, ServiceDeps};
use crate::ledger::sqlite::OpenMode;

/// How long connections may go on when it ends.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

pub(super) async fn run(cx: &Context, args: &ServeArgs) -> Result<Exit, Failure> {
    let beyond = !args.listen.ip().is_loopback();
    if beyond && !cx.ledger_at(&cx.config()?.config)?.path.exists() {
        // Without a ledger nobody has a token: nothing is begun.
        return Err(GatewayError::NotLoopback(args.listen).into());
    }
    // Listened for before the address is printed: whoever reads it may stop us at once.
    let mut ends = Ends::new()?;
    let desk = cx.open(OpenMode::Engine, Keys::Needed).await?;
    let served = serve(cx, args, &desk, &mut ends).await;
    desk.ledger.close().await;
    served
}

async fn serve(
    cx: &Context,
    args: &ServeArgs,
    desk: &Desk,
    ends: &mut Ends,
) -> Result<Exit, Failure> {
    if desk.providers.is_empty() {
        return Err(Failure::usage("no_provider", "no provider is configured")
            .hint("add [providers.stripe]; `samekey config init` shows how"));
    }
    let endpoints = endpoints(cx, desk)?;
    let takes_webhooks = !endpoints.is_empty();
    // The engine first, so that what it says is known; it takes nothing before the ledger is checked.
    let engine = Engine::start(deps(desk));
    let deps = GatewayDeps {
        service: service(desk),
        endpoints,
        health: Some(engine.health()),
    };
    let mut gateway = match Gateway::start(args.listen, deps).await {
        Ok(gateway) => gateway,
        Err(error) => {
            engine.stop(DRAIN).await;
            return Err(error.into());
        }
    };
    let notifier = notifier(cx, desk, &engine);
    let addr = gateway.addr();
    if !addr.ip().is_loopback() {
        // Also with --json: whoever starts it so has to know.
        tracing::warn!(%addr, "others can reach this address, and it speaks no TLS");
        cx.out.note(&format!(
            "warning: {addr} can be reached by others, and what is said there is not encrypted: put a proxy with TLS in front"
        ));
    }
    if cx.out.is_json() {
        let said = json!({ "listen": addr, "webhooks": takes_webhooks });
        cx.out.json(&said)?;
    } else {
        cx.out.text(&addr.to_string())?;
        if !takes_webhooks {
            cx.out
                .note("no webhook_secret_env is configured: webhooks are not taken");
        }
    }
    let mut health = engine.health();
    let down = over(ends, &mut health, &mut gateway).await;
    // What arrives is stored to the end; then what is in flight is finished (L8).
    gateway.stop(LAST_REQUESTS).await;
    let notices = async {
        if let Some(notifier) = notifier {
            notifier.stop(LAST_NOTICE).await;
        }
    };
    tokio::join!(engine.stop(DRAIN), notices);
    down.map_or(Ok(Exit::Done), Err)
}

/// Waits until it is told to end, or a part of it is down: whoever started it has to know of that, not only
/// who reads the log.
async fn over(
    ends: &mut Ends,
    health: &mut watch::Receiver<EngineHealth>,
    gateway: &mut Gateway,
) -> Option<Failure> {
    let addr = gateway.addr();
    let (code, says) = tokio::select! {
        () = ends.wait() => return None,
        why = down(health) => ("engine_down", format!("the engine is down: {why}")),
        why = gateway.ended() => {
            ("gateway_down", format!("the gateway on {addr} is down: {why}"))
        }
    };
    let hint = "`samekey doctor` says what is wrong; start it again";
    Some(Failure::unreachable(code, says).hint(hint))
}

/// Waits until the engine is down; says why.
async fn down(health: &mut watch::Receiver<EngineHealth>) -> String {
    let found = health
        .wait_for(|h| matches!(h.state, EngineState::Down(_)))
        .await;
    match found.map(|h| h.state.clone()) {
        Ok(EngineState::Down(why)) => why,
        Ok(_) | Err(_) => "its tasks are gone".to_owned(),
    }
}

/// What agents' calls need.
pub(super) fn service(desk: &Desk) -> ServiceDeps {
    ServiceDeps {
        ledger: Arc::clone(&desk.ledger),
        terms: Arc::clone(&desk.terms),
        providers: Arc::clone(&desk.providers),
        clock: desk.clock.clone(),
        language: desk.language(),
        limits: desk.loaded.config.gateway.clone(),
    }
}

/// The providers whose webhooks are taken: those with a secret.
fn endpoints(cx: &Context, desk: &Desk) -> Result<Vec<Endpoint>, Failure> {
    let mut all = Vec::new();
    for (name, section) in &desk.loaded.config.providers {
        if let (Some(source), Some(provider)) = (&section.webhook_secret, desk.providers.get(name))
        {
            let provider = Arc::clone(provider);
            let secrets = source.read_several(&cx.env)?;
            all.push(Endpoint { provider, secrets });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::ledger::sqlite::SqliteLedger;

    /// L8, M5: an intake that died while the engine goes on ends the program with 3 and one sentence.
    #[tokio::test]
    async fn a_dead_intake_is_noticed_m5() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("ledger.db").display().to_string();
        let clock = Clock::system();
        let ledger = SqliteLedger::open(&path, OpenMode::Engine, Arc::default(), clock.clone());
        let ledger = Arc::new(ledger.await.expect("a ledger"));
        let addr = ([127, 0, 0, 1], 0).into();
        let service = ServiceDeps {
            ledger,
            terms: Arc::default(),
            providers: Arc::default(),
            clock,
            language: crate::domain::message::Language::default(),
            limits: crate::domain::agent::SubmitLimits::default(),
        };
        let deps = GatewayDeps {
            service,
            endpoints: Vec::new(),
            health: None,
        };
        let gateway = Gateway::start(addr, deps).await;
        let mut gateway = gateway.expect("it listens");
        let mut ends = Ends::new().expect("signals");
        let (_alive, mut health) = watch::channel(EngineHealth::default());
        gateway.break_down();
        let failure = over(&mut ends, &mut health, &mut gateway).await;
        let failure = failure.expect("it is over");
        assert_eq!(
            (failure.exit, failure.code),
            (Exit::Unreachable, "gateway_down")
        );
        assert!(failure.message.contains("the gateway on 127.0.0.1:"));
        // What is left of it is stopped without waiting for what is not there.
        gateway.stop(LAST_REQUESTS).await;
    }
}
