//! The naive client: what a usual integration does without samekey, under the very same calls.
//!
//! It is meant to be fair, not a straw man. It validates arguments as samekey does. It sends an
//! idempotency key, waits exactly as long as samekey for a reply, and within one tool call it
//! retries timeouts, broken connections, unreadable replies, 409, 429 and 5xx with the same key, up
//! to three times with growing pauses, as the common client libraries do; a clear refusal it takes
//! for an answer. Then it tells the model what it knows: refunded, or failed. Its one fault is the
//! usual one (R15): the key belongs to the tool call. When the customer writes "try again", when the
//! model did not see the answer, when a second agent asks at the same time, the call is a new one
//! and so is the key, and the provider has no way to know that it was meant once.
//!
//! Owns: that loop and a small HTTP client. Never: touches the ledger. Tests: below.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use uuid::Uuid;

use super::DemoError;
use super::asks::Ask;
use super::play::Client;
use crate::clock::Clock;
use crate::domain::ids::{OperationId, OrderId};
use crate::domain::tool_call::RefundArguments;
use crate::simulator::Held;

/// Requests within one tool call, all with its key.
const TRIES: u32 = 3;
/// Largest reply that is read.
const MAX_BODY: usize = 1024 * 1024;
/// First pause between two requests; it doubles.
const PAUSE: Duration = Duration::from_millis(500);

/// A client with a fresh key for every tool call.
#[derive(Clone, Debug)]
pub(super) struct Naive {
    pub provider: SocketAddr,
    pub clock: Clock,
    /// Longest wait for a reply, the same as samekey's.
    pub timeout: Duration,
    pub held: Held,
}

/// What the model is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Refunded,
    Failed,
    /// The arguments were no good; nothing was sent.
    Invalid,
}

/// What one request came to.
enum Reply {
    Refunded,
    Refused,
    /// Worth another try with the same key.
    Unclear,
}

impl Naive {
    /// One tool call.
    pub async fn refund(&self, order: &OrderId, arguments: &str) -> Told {
        let read = serde_json::from_str::<Value>(arguments);
        let Some(args) = read.ok().and_then(|v| RefundArguments::parse(&v).ok()) else {
            return Told::Invalid;
        };
        // The fault: a key of the call, not of what is meant.
        let key = Uuid::new_v4().to_string();
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("payment_intent", &format!("pi_order_{order}"))
            .append_pair("amount", &args.money.minor().to_string())
            .append_pair("metadata[order_id]", order.as_str())
            .finish();
        for attempt in 0..TRIES {
            if attempt > 0 {
                self.clock.sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
            }
            let sent = self.clock.timeout(self.timeout, self.send(&key, &body));
            match sent.await.flatten().unwrap_or(Reply::Unclear) {
                Reply::Refunded => return Told::Refunded,
                Reply::Refused => return Told::Failed,
                Reply::Unclear => {}
            }
        }
        Told::Failed
    }

    /// One request over one connection; `None` where no whole reply came back.
    async fn send(&self, key: &str, body: &str) -> Option<Reply> {
        let stream = TcpStream::connect(self.provider).await.ok()?;
        stream.set_nodelay(true).ok()?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        let request = Request::post("/v1/refunds")
            .header("Host", self.provider.to_string())
            .header("Authorization", "Bearer sk_test_naive")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Idempotency-Key", key)
            .header("Connection", "close")
            .body(Full::<Bytes>::from(body.to_owned()))
            .ok()?;
        let talk = async {
            let answer = sender.send_request(request).await.ok()?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), MAX_BODY).collect().await;
            Some((status, body.ok()?.to_bytes()))
        };
        tokio::pin!(talk, connection);
        let (status, body) = tokio::select! {
            biased;
            out = &mut talk => out?,
            // Ended by the other side: what was read of the answer is in `talk` already.
            _ = &mut connection => talk.await?,
        };
        Some(match status {
            200..=299 if serde_json::from_slice::<Value>(&body).is_ok() => Reply::Refunded,
            200..=299 | 409 | 429 | 500.. => Reply::Unclear,
            _ => Reply::Refused,
        })
    }
}

#[async_trait]
impl Client for Naive {
    async fn ask(
        &self,
        order: &OrderId,
        ask: &Ask,
        _after: Option<&OperationId>,
        _read: bool,
    ) -> Result<Option<OperationId>, DemoError> {
        self.refund(order, &ask.arguments).await;
        Ok(None)
    }

    fn held(&self) -> Held {
        self.held.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::{Plan, SimConfig, Simulator};

    const ARGUMENTS: &str = r#"{"order_id":"4417","amount":"38.00","currency":"usd"}"#;

    async fn start(plan: &str) -> (Simulator, Naive, OrderId) {
        // Ten seconds of the client are a quarter of a second here.
        let clock = Clock::scaled(40);
        let sim = Simulator::start(SimConfig {
            plan: Plan::parse(plan).expect("plan"),
            ..SimConfig::new(clock.clone())
        });
        let sim = sim.await.expect("simulator");
        let naive = Naive {
            provider: sim.addr(),
            clock,
            timeout: Duration::from_secs(10),
            held: sim.held(),
        };
        (sim, naive, OrderId::parse("4417").expect("order"))
    }

    #[tokio::test]
    async fn within_one_call_it_keeps_its_key_and_pays_once() {
        for (plan, told) in [
            ("honest", Told::Refunded),
            ("timeout-after-effect:1", Told::Refunded),
            ("reset-after-commit:2", Told::Refunded),
            ("overlap-409:1", Told::Refunded),
            ("rate-limited:2", Told::Refunded),
            ("saved-500-with-effect", Told::Failed),
            ("garbled-reply:1", Told::Refunded),
        ] {
            let (sim, naive, order) = start(plan).await;
            assert_eq!(naive.refund(&order, ARGUMENTS).await, told, "{plan}");
            assert_eq!(sim.effects().len(), 1, "{plan}");
        }
    }

    #[tokio::test]
    async fn r15_asked_again_it_pays_again() {
        let (sim, naive, order) = start("timeout-after-effect:3").await;
        assert_eq!(naive.refund(&order, ARGUMENTS).await, Told::Failed);
        assert_eq!(
            sim.effects().len(),
            1,
            "it happened, and the model was told it failed"
        );
        assert_eq!(naive.refund(&order, ARGUMENTS).await, Told::Refunded);
        assert_eq!(sim.effects().len(), 2, "a new key, a second refund");
        let keys: std::collections::BTreeSet<_> =
            sim.requests().into_iter().filter_map(|r| r.key).collect();
        assert_eq!(keys.len(), 2);
    }

    #[tokio::test]
    async fn a_refusal_and_bad_arguments_are_not_retried() {
        let (sim, naive, order) = start("refused").await;
        assert_eq!(naive.refund(&order, ARGUMENTS).await, Told::Failed);
        assert_eq!(naive.refund(&order, "{}").await, Told::Invalid);
        assert_eq!(sim.requests().len(), 1);
    }
}
