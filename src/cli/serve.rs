//! `serve`: the engine without a screen, the gateway for agents' calls and the intake of the provider's
//! webhooks, until it is told to stop. Tests: `tests/webhooks/serving.rs`, `tests/gateway/serving.rs`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::args::ServeArgs;
use super::context::{Context, Desk, Keys};
use super::screen::{DRAIN, LAST_NOTICE, deps, notifier};
use super::sim::Ends;
use crate::engine::{Engine, EngineState};
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
    let gateway = match Gateway::start(args.listen, deps).await {
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
    let down = tokio::select! {
        () = ends.wait() => None,
        found = health.wait_for(|h| matches!(h.state, EngineState::Down(_))) => {
            found.ok().map(|h| h.state.clone())
        }
    };
    // What arrives is stored to the end; then what is in flight is finished (L8).
    gateway.stop(LAST_REQUESTS).await;
    let notices = async {
        if let Some(notifier) = notifier {
            notifier.stop(LAST_NOTICE).await;
        }
    };
    tokio::join!(engine.stop(DRAIN), notices);
    match down {
        Some(EngineState::Down(why)) => Err(Failure::unreachable(
            "engine_down",
            format!("the engine is down: {why}"),
        )
        .hint("`samekey doctor` says what is wrong")),
        Some(_) | None => Ok(Exit::Done),
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
