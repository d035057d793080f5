//! Sending webhooks: one task, one connection at a time, over the program's own client.
//!
//! Owns: when a webhook leaves, and what counts as received (S54–S56). Never: holds the books'
//! lock while it waits, or holds up a request. Tests: `tests/simulator/`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::CONTENT_TYPE;

use super::state::Shared;
use super::step::WebhookFault;
use super::webhooks::{Waiting, WebhookEndpoint};
use crate::http::{Client, Exchange};

/// How long a receiver may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How long it sleeps at most; nothing is lost by waking for nothing.
const LONGEST_SLEEP: Duration = Duration::from_hours(24);

/// Sends what is due, for as long as it is polled.
pub(super) async fn run(shared: Arc<Shared>, endpoint: WebhookEndpoint, client: Client) {
    loop {
        // Before the books are looked at: what is added from here on is noticed.
        let news = shared.news.notified();
        while let Some((waiting, body, fault)) = next(&shared) {
            let arrived = post(&shared, &endpoint, &client, body, fault).await;
            settle(&shared, &endpoint, waiting, arrived);
        }
        let pause = pause(&shared);
        tokio::select! {
            biased;
            () = news => {}
            () = shared.clock.sleep(pause) => {}
        }
    }
}

/// Prepares the client.
///
/// # Errors
/// The machine has no root certificates, as one sentence.
pub(super) fn client(shared: &Shared, endpoint: &WebhookEndpoint) -> Result<Client, String> {
    Client::new(
        endpoint.origin.clone(),
        shared.clock.source().clone(),
        LIMIT,
    )
}

/// The next webhook that is due, with its body.
fn next(shared: &Shared) -> Option<(Waiting, Bytes, WebhookFault)> {
    let (mut state, now) = shared.state();
    loop {
        let waiting = state.queue.take(now)?;
        // An event that is too old to be kept is not sent either.
        if let Some(event) = state.events.get(&waiting.event) {
            let body = format!("{:#}", event.as_json());
            return Some((waiting, body.into(), event.webhook));
        }
    }
}

fn settle(shared: &Shared, endpoint: &WebhookEndpoint, waiting: Waiting, arrived: bool) {
    let (mut state, now) = shared.state();
    if arrived {
        state.queue.received = state.queue.received.saturating_add(1);
        state.events.received(&waiting.event);
    } else {
        state.queue.again(waiting, endpoint.retries, now);
    }
}

fn pause(shared: &Shared) -> Duration {
    let (state, now) = shared.state();
    let next = [state.queue.next_due(), state.world.next_due()];
    let next = next.into_iter().flatten().min();
    let wait = next.map(|at| (at - now).to_std().unwrap_or(Duration::ZERO));
    wait.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
}

/// One try, with a time and a signature of its own (S54). Only 2xx counts (S56).
async fn post(
    shared: &Shared,
    endpoint: &WebhookEndpoint,
    client: &Client,
    body: Bytes,
    fault: WebhookFault,
) -> bool {
    let signature = endpoint.signature(&body, shared.clock.shared(), fault);
    let request = Request::post(&endpoint.path)
        .header(CONTENT_TYPE, "application/json; charset=utf-8")
        .header("Stripe-Signature", signature)
        .body(Full::new(body));
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            tracing::warn!(%error, "a webhook cannot be asked for");
            return false;
        }
    };
    let line = match client.connect().await {
        Ok(line) => line,
        Err(why) => {
            tracing::debug!(why, "nobody takes webhooks");
            return false;
        }
    };
    match line.exchange(request).await {
        Exchange::Answered(reply) => (200..300).contains(&reply.status),
        Exchange::NotSent(why) | Exchange::Lost(why) => {
            tracing::debug!(why, "a webhook was not answered");
            false
        }
    }
}
