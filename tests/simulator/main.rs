//! The simulator over real HTTP: what `stripe-wire` promises, by S number, and every scenario.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

mod events;
mod faults;
mod keys;
mod limits;
mod objects;
mod program;
mod reads;
mod receiver;
mod refunds;
mod server;
mod webhooks;

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use samekey::clock::Clock;
use samekey::simulator::{
    EffectSource, Plan, RefundStatus, Retries, Scenario, Script, SimConfig, Simulator,
    WebhookEndpoint,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const AUTH: &str = "Authorization: Bearer sk_test_demo\r\n";

const PAYMENT: &str = "payment_intent=pi_order_4417&amount=3800&metadata[operation_id]=op_1";

const SECOND: Duration = Duration::from_secs(1);

/// A reply as it came over the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut pairs = lines.filter_map(|l| l.split_once(": "));
        let found = pairs.find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    fn replayed(&self) -> bool {
        self.header("Idempotent-Replayed") == Some("true")
    }

    fn error(&self, member: &str) -> String {
        let body = self.json();
        body["error"][member]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends raw bytes; `None` if the connection closes without a reply.
async fn raw(sim: &Simulator, request: String) -> Option<Answer> {
    let mut socket = TcpStream::connect(sim.addr()).await.expect("connect");
    socket.write_all(request.as_bytes()).await.expect("write");
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

fn post_text(path: &str, key: Option<&str>, body: &str) -> String {
    let key = key.map_or(String::new(), |k| format!("Idempotency-Key: {k}\r\n"));
    format!(
        "POST {path} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n{AUTH}{key}\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn post(sim: &Simulator, key: Option<&str>, body: &str) -> Option<Answer> {
    raw(sim, post_text("/v1/refunds", key, body)).await
}

async fn refund(sim: &Simulator, key: &str, body: &str) -> Answer {
    post(sim, Some(key), body).await.expect("a reply")
}

async fn get(sim: &Simulator, path: &str) -> Answer {
    let text = format!("GET {path} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n{AUTH}\r\n");
    raw(sim, text).await.expect("a reply")
}

/// Sends a refund and hangs up as soon as the simulator signals that the reply is held.
async fn post_and_hang_up(sim: &Simulator, key: &str, body: &str, nth: u32) {
    let mut held = sim.held();
    let mut socket = TcpStream::connect(sim.addr()).await.expect("connect");
    let text = post_text("/v1/refunds", Some(key), body);
    socket.write_all(text.as_bytes()).await.expect("write");
    held.key(key, nth).await;
    drop(socket);
    held.none().await;
}

fn clock() -> Clock {
    Clock::manual(DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000))
}

async fn start(plan: &str) -> (Simulator, Clock) {
    start_plan(Plan::parse(plan).expect("plan"), None).await
}

async fn start_file(text: &str) -> (Simulator, Clock) {
    start_plan(file(text), None).await
}

fn file(text: &str) -> Plan {
    let script = Script::parse("test", text).expect("script");
    Plan::Custom { script, n: None }
}

async fn start_plan(plan: Plan, webhook: Option<WebhookEndpoint>) -> (Simulator, Clock) {
    let clock = clock();
    let cfg = SimConfig {
        plan,
        webhook,
        ..SimConfig::new(clock.clone())
    };
    (Simulator::start(cfg).await.expect("start"), clock)
}

/// Lets the simulator's own time, and nobody else's, go on.
async fn advance(sim: &Simulator, seconds: u64) -> Answer {
    let body = json!({ "seconds": seconds }).to_string();
    raw(sim, post_text("/_sim/advance", None, &body))
        .await
        .expect("a reply")
}
