//! A room for webhooks and the reconciler: a ledger on a clock that the test moves, the real Stripe adapter,
//! and a provider on a socket that shows exactly the objects and events that the test put there. Used
//! beside `common/ledger.rs` and `stripe/server.rs`, which the test crate names `ledger` and `server`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use samekey::config::Secret;
use samekey::domain::Instant;
use samekey::domain::agent::SubmitLimits;
use samekey::domain::ids::OperationId;
use samekey::domain::message::Language;
use samekey::domain::operation::OperationRow;
use samekey::engine::{EngineConfig, EngineDeps, Lots, Reconciled, reconcile, work_off_events};
use samekey::gateway::{Endpoint, Gateway, GatewayDeps, ServiceDeps, signature};
use samekey::ledger::{EventCounts, SharedLedger, Stamp};
use samekey::provider::SharedProvider;
use samekey::provider::stripe::{Stripe, StripeConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::ledger::{Place, Store, World, stripe, terms};
use crate::server::{Act, Seen, Server, json as answer};

pub const SECRET: &str = "whsec_the_endpoints_own_secret";
const API_KEY: &str = "sk_test_4eC39HqLyjWDarjtT1zdp7dc";
pub const ACCOUNT: &str = "acct_1";

/// What the provider shows.
pub struct Shown {
    /// Oldest first.
    pub refunds: Vec<Value>,
    pub events: Vec<Value>,
    pub account: &'static str,
    /// Every answer is a 503.
    pub down: bool,
    /// Events may not be listed with this key.
    pub no_events: bool,
    /// The list of events has another page behind every page, each with new events of somebody else.
    pub endless: bool,
    /// Ids of refunds that cannot be fetched yet.
    pub hidden: Vec<&'static str>,
    /// Entries of one page of a list, whatever is asked for.
    pub page: usize,
}

pub struct Room {
    pub world: World,
    pub provider: SharedProvider,
    pub server: Server,
    shown: Arc<Mutex<Shown>>,
}

impl Room {
    /// A ledger that was sent from once, so that it is bound to its provider.
    pub async fn new() -> Self {
        let shown = Arc::new(Mutex::new(Shown {
            refunds: Vec::new(),
            events: Vec::new(),
            account: ACCOUNT,
            down: false,
            no_events: false,
            endless: false,
            hidden: Vec::new(),
            page: 100,
        }));
        let state = Arc::clone(&shown);
        let server =
            Server::start(move |_, seen| respond(&state.lock().expect("state"), seen)).await;
        let world = World::new(Place::new(Store::Sqlite), terms()).await;
        let config = StripeConfig {
            name: stripe(),
            base_url: server.origin.clone(),
            api_key: Secret::new(API_KEY),
            api_version: "2026-08-26.dahlia".into(),
            profile: terms().profile,
            account: None,
        };
        let adapter = Stripe::new(config, world.clock.clone()).expect("a configuration");
        let provider: SharedProvider = Arc::new(adapter);
        let room = Self {
            world,
            provider,
            server,
            shown,
        };
        room.bind(ACCOUNT).await;
        room
    }

    async fn bind(&self, account: &str) {
        let stamp = Stamp {
            provider: stripe(),
            origin: self.provider.origin(),
            account: Some(account.into()),
            mode: "simulator".into(),
        };
        self.world.ledger.bind(&stamp).await.expect("bound");
    }

    pub fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().expect("state")
    }

    pub fn deps(&self) -> EngineDeps {
        EngineDeps {
            ledger: Arc::clone(&self.world.ledger),
            providers: Arc::new(BTreeMap::from([(stripe(), Arc::clone(&self.provider))])),
            terms: Arc::clone(&self.world.terms),
            config: EngineConfig {
                reconcile: true,
                ..EngineConfig::default()
            },
            clock: self.world.clock.clone(),
            lots: Lots::default(),
        }
    }

    /// One run of the reconciler over everything.
    pub async fn reconcile(&self) -> Reconciled {
        reconcile(self.deps()).await.expect("a run")
    }

    /// Works on the events that are due, and looks at nothing else.
    pub async fn work_off(&self) -> u64 {
        work_off_events(self.deps()).await.expect("worked off")
    }

    pub async fn gateway(&self, secrets: &[&str]) -> Gateway {
        let endpoint = Endpoint {
            provider: Arc::clone(&self.provider),
            secrets: secrets.iter().map(|s| Secret::new(*s)).collect(),
        };
        self.gateway_with(vec![endpoint]).await
    }

    pub async fn gateway_with(&self, endpoints: Vec<Endpoint>) -> Gateway {
        let (addr, clock) = (([127, 0, 0, 1], 0).into(), self.world.clock.clone());
        let ledger = Arc::clone(&self.world.ledger);
        let started = Gateway::start(addr, for_webhooks(ledger, endpoints, clock)).await;
        started.expect("it listens")
    }

    /// Delivers an event as the provider does, right now.
    pub async fn deliver(&self, gateway: &Gateway, event: &Value) -> u16 {
        let body = event.to_string();
        let header = self.signed(SECRET, body.as_bytes());
        post(
            gateway.addr(),
            &[("Stripe-Signature", &header)],
            body.as_bytes(),
        )
        .await
        .0
    }

    pub fn signed(&self, secret: &str, body: &[u8]) -> String {
        signature::sign(&Secret::new(secret), body, self.world.clock.now())
    }

    pub async fn row(&self, id: &OperationId) -> OperationRow {
        self.world.row(id).await
    }

    pub async fn counts(&self) -> EventCounts {
        let counts = self.world.ledger.recovery().event_counts().await;
        counts.expect("counts")
    }

    /// The refund that a row's request makes.
    pub async fn refund_of(&self, id: &OperationId, refund: &str, status: &str) -> Value {
        let row = self.row(id).await;
        self.refund(&row, refund, status)
    }

    pub fn refund(&self, row: &OperationRow, refund: &str, status: &str) -> Value {
        json!({
            "id": refund, "object": "refund", "amount": row.minor(), "currency": "usd",
            "created": self.seconds(), "status": status, "payment_intent": row.payment,
            "charge": format!("ch_{}", row.order_id.as_ref().expect("an order")), "failure_reason": null,
            "metadata": {"operation_id": row.id, "order_id": row.order_id},
        })
    }

    fn seconds(&self) -> i64 {
        self.world.clock.now().timestamp()
    }

    /// An event about `object`, made now.
    pub fn event(&self, id: &str, kind: &str, object: &Value) -> Value {
        json!({
            "id": id, "object": "event", "type": kind, "created": self.seconds(), "livemode": false,
            "api_version": "2026-08-26.dahlia", "pending_webhooks": 1,
            "request": {"id": "req_1", "idempotency_key": null}, "data": {"object": object},
        })
    }

    /// The ledger keeps every law that can be read off it, and no secret.
    pub async fn is_honest(&self) {
        let now = self.world.clock.now();
        let report = samekey::ledger::verify::verify_at(&self.world.place.path(), now).await;
        assert_eq!(report.expect("a report").violations, []);
    }
}

/// The charge of a refund, as an event shows it.
/// What a gateway needs for webhooks alone: no tool can be called.
pub fn for_webhooks(
    ledger: SharedLedger,
    endpoints: Vec<Endpoint>,
    clock: samekey::clock::Clock,
) -> GatewayDeps {
    GatewayDeps {
        service: ServiceDeps {
            ledger,
            terms: Arc::default(),
            providers: Arc::default(),
            clock,
            language: Language::default(),
            limits: SubmitLimits::default(),
        },
        endpoints,
        health: None,
    }
}

pub fn charge_of(refund: &Value) -> Value {
    json!({
        "id": refund["charge"], "object": "charge", "payment_intent": refund["payment_intent"],
        "amount": 100_000, "amount_refunded": refund["amount"], "refunded": false,
    })
}

pub fn with(event: &Value, changes: &Value) -> Value {
    let mut event = event.clone();
    for (key, value) in changes.as_object().expect("an object") {
        event[key] = value.clone();
    }
    event
}

fn respond(shown: &Shown, seen: &Seen) -> Act {
    if shown.down {
        return answer(503, r#"{"error":{"type":"api_error","message":"down"}}"#);
    }
    let target = seen.line.strip_prefix("GET ").unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let missing = || {
        answer(
            404,
            r#"{"error":{"type":"invalid_request_error","code":"resource_missing","message":"no such thing"}}"#,
        )
    };
    match path {
        "/v1/account" => answer(
            200,
            &json!({"id": shown.account, "object": "account"}).to_string(),
        ),
        "/v1/events" if shown.no_events => answer(
            403,
            r#"{"error":{"type":"invalid_request_error","message":"this key may not read events"}}"#,
        ),
        "/v1/events" if shown.endless => endless(shown, &query),
        "/v1/events" => {
            let bound = |name: &str| query.get(name).and_then(|v| v.parse::<i64>().ok());
            let (from, to) = (bound("created[gte]"), bound("created[lt]"));
            let wanted = |e: &&Value| {
                let at = e["created"].as_i64();
                at >= from && at < to
            };
            list(shown.events.iter().filter(wanted), &query, shown.page)
        }
        "/v1/refunds" => {
            let of = query.get("payment_intent").cloned().unwrap_or_default();
            let wanted = |r: &&Value| r["payment_intent"] == json!(of);
            list(shown.refunds.iter().filter(wanted), &query, shown.page)
        }
        _ => match path.strip_prefix("/v1/refunds/") {
            Some(id) if shown.hidden.contains(&id) => missing(),
            Some(id) => match shown.refunds.iter().find(|r| r["id"] == json!(id)) {
                Some(refund) => answer(200, &refund.to_string()),
                None => missing(),
            },
            None => missing(),
        },
    }
}

/// Another page of strangers behind each one; what the test put there comes with the first.
fn endless(shown: &Shown, query: &BTreeMap<String, String>) -> Act {
    let after = query.get("starting_after").map(String::as_str);
    let page = after.and_then(|id| {
        id.strip_prefix("evt_endless_")?
            .split('_')
            .next()?
            .parse::<u64>()
            .ok()
    });
    let page = page.map_or(0, |n| n + 1);
    let created = query["created[gte]"].parse::<i64>().expect("a second");
    let mut all: Vec<Value> = if page == 0 {
        shown.events.clone()
    } else {
        Vec::new()
    };
    for n in 0..shown.page {
        let refund = json!({
            "id": format!("re_other_{page}_{n}"), "object": "refund", "amount": 3800, "currency": "usd",
            "created": created, "status": "succeeded", "payment_intent": "pi_other", "charge": "ch_other",
            "metadata": {"operation_id": "op_of_another_shop"},
        });
        all.push(json!({
            "id": format!("evt_endless_{page}_{n}"), "object": "event", "type": "refund.created",
            "created": created, "livemode": false, "request": null, "data": {"object": refund},
        }));
    }
    answer(
        200,
        &json!({"object": "list", "data": all, "has_more": true}).to_string(),
    )
}

/// Newest first, from behind `starting_after` on.
fn list<'a>(
    all: impl DoubleEndedIterator<Item = &'a Value>,
    query: &BTreeMap<String, String>,
    page: usize,
) -> Act {
    let mut rest: Vec<&Value> = all.rev().collect();
    if let Some(after) = query.get("starting_after") {
        let at = rest.iter().position(|v| v["id"] == json!(after));
        rest.drain(..=at.expect("a known cursor"));
    }
    let more = rest.len() > page;
    rest.truncate(page);
    answer(
        200,
        &json!({"object": "list", "data": rest, "has_more": more}).to_string(),
    )
}

/// One POST to the route for webhooks, byte by byte as given; status and body of the answer.
pub async fn post(addr: SocketAddr, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut head = format!(
        "POST /webhooks/stripe HTTP/1.1\r\nHost: {addr}\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    send(addr, &[head.as_bytes(), body].concat()).await
}

/// Sends these bytes and reads to the end.
pub async fn send(addr: SocketAddr, bytes: &[u8]) -> (u16, String) {
    let mut socket = TcpStream::connect(addr).await.expect("connected");
    // A server that has refused already may have stopped reading.
    let _ = socket.write_all(bytes).await;
    read(&mut socket).await
}

pub async fn read(socket: &mut TcpStream) -> (u16, String) {
    let mut answer = Vec::new();
    // A connection is kept between requests: the answer's end is where its head says.
    let whole = async {
        while !is_whole(&answer) && socket.read_buf(&mut answer).await.is_ok_and(|n| n > 0) {}
    };
    let _ = tokio::time::timeout(Duration::from_secs(60), whole).await;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).and_then(|s| s.parse().ok());
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.unwrap_or(0), body.to_owned())
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|l| l.strip_prefix("content-length:"));
    length.is_some_and(|n| n.trim().parse().is_ok_and(|n: usize| body.len() >= n))
}

/// Whether an instant is within a moment of another.
pub fn about(one: Instant, other: Instant) -> bool {
    (one - other).num_seconds().abs() <= 1
}
