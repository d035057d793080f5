//! A whole engine with a ledger of its own before a server that keeps one payment and answers each refund
//! as its test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use samekey::clock::Clock;
use samekey::config::Secret;
use samekey::domain::operation::OperationRow;
use samekey::domain::policy::Terms;
use samekey::domain::tool_call::ToolResult;
use samekey::provider::stripe::{Stripe, StripeConfig};
use serde_json::{Value, json};

use crate::common::world::{World, refund, terms};
use crate::server::{Act, Seen, Server, answer, json as reply};
use crate::{API_KEY, VERSION};

/// What the provider keeps, and what it says to the n-th refund request (from 1).
type Answers = dyn Fn(usize, &Seen, &Books) -> Act + Send + Sync;

/// The refunds that its list shows, newest first, and whether the list can be read.
#[derive(Default)]
pub struct Books {
    refunds: Mutex<Vec<Value>>,
    mute: Mutex<bool>,
}

impl Books {
    /// The list shows this one, too.
    pub fn keep(&self, refund: Value) {
        self.refunds.lock().expect("books").insert(0, refund);
    }

    /// From now on lists cannot be read.
    pub fn mute(&self) {
        *self.mute.lock().expect("books") = true;
    }

    /// Changes a member of every refund.
    pub fn change(&self, member: &str, to: &Value) {
        for refund in self.refunds.lock().expect("books").iter_mut() {
            refund[member] = to.clone();
        }
    }
}

/// The refund that `seen` asks for.
pub fn made(seen: &Seen, id: &str, status: &str) -> Value {
    let form: BTreeMap<String, String> = form_urlencoded::parse(seen.body.as_bytes())
        .into_owned()
        .collect();
    json!({
        "object": "refund", "id": id, "amount": form["amount"].parse::<i64>().expect("amount"),
        "currency": "usd", "created": 1_790_000_000, "status": status,
        "payment_intent": form["payment_intent"], "charge": "ch_1",
        "metadata": {"operation_id": form["metadata[operation_id]"], "order_id": form["metadata[order_id]"]},
    })
}

/// The honest answer to a refund request; the list shows it.
pub fn honest(seen: &Seen, books: &Books) -> Act {
    // Each payment's refund is one of its own (I17).
    let id = if seen.body.contains("pi_1") {
        "re_1"
    } else {
        "re_2"
    };
    let refund = made(seen, id, "succeeded");
    books.keep(refund.clone());
    reply(200, &refund.to_string())
}

/// A refusal.
pub fn fault(status: u16, kind: &str, code: &str) -> Act {
    advised(status, "", kind, code)
}

/// A refusal with further headers (each line ended).
pub fn advised(status: u16, headers: &str, kind: &str, code: &str) -> Act {
    let error = json!({"error": {"type": kind, "code": code, "message": "no"}});
    answer(status, headers, &error.to_string())
}

/// The engine, its ledger and the server.
pub struct Desk {
    pub server: Server,
    pub world: World,
    pub books: Arc<Books>,
}

impl Desk {
    /// On a fast clock; no answer of the server is too late.
    pub async fn new(
        answers: impl Fn(usize, &Seen, &Books) -> Act + Send + Sync + 'static,
    ) -> Self {
        Self::with(Clock::scaled(20), terms(), answers).await
    }

    pub async fn with(
        clock: Clock,
        mut terms: Terms,
        answers: impl Fn(usize, &Seen, &Books) -> Act + Send + Sync + 'static,
    ) -> Self {
        terms.profile.timeout = Duration::from_secs(400);
        let books = Arc::new(Books::default());
        let server = serve(Arc::clone(&books), Arc::new(answers)).await;
        let config = StripeConfig {
            name: terms.policy.provider.clone(),
            base_url: server.origin.clone(),
            api_key: Secret::new(API_KEY),
            api_version: VERSION.into(),
            profile: terms.profile.clone(),
            account: None,
        };
        let stripe = Stripe::new(config, clock.clone()).expect("a valid configuration");
        let world = World::with(Arc::new(stripe), terms, clock).await;
        Self {
            server,
            world,
            books,
        }
    }

    /// Asks for 38.00 USD of order 4417.
    pub async fn ask(&self, call: &str) -> ToolResult {
        self.world.ask(call, &refund("4417", 3800)).await
    }

    /// The refund requests.
    pub fn posts(&self) -> Vec<Seen> {
        let mut seen = self.server.requests();
        seen.retain(|s| s.line == "POST /v1/refunds");
        seen
    }

    /// The only row.
    pub async fn row(&self) -> OperationRow {
        self.world.only().await.op.row
    }

    /// That all requests were one and the same: one key, the same bytes.
    pub fn same(&self) {
        let posts = self.posts();
        for post in &posts {
            assert_eq!(
                post.header("idempotency-key"),
                posts[0].header("idempotency-key")
            );
            assert_eq!((&post.head, &post.body), (&posts[0].head, &posts[0].body));
        }
    }
}

async fn serve(books: Arc<Books>, answers: Arc<Answers>) -> Server {
    let posts = Mutex::new(0);
    Server::start(move |_, seen| {
        if seen.line.is_empty() {
            return Act::Reset;
        }
        let path = seen.line.split_once(' ').map_or("", |(_, path)| path);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if seen.line.starts_with("POST ") {
            let mut posts = posts.lock().expect("a count");
            *posts += 1;
            return answers(*posts, seen, &books);
        }
        let order = |query: &str| query.split("%3A%27").nth(1).map(|q| q.replace("%27", ""));
        match path {
            "/v1/account" => reply(200, r#"{"object":"account","id":"acct_1"}"#),
            "/v1/payment_intents/search" => {
                let order = order(query.split('&').next().unwrap_or_default());
                let payment = payment(&order.unwrap_or_default());
                let list = json!({"object": "search_result", "data": [payment], "has_more": false});
                reply(200, &list.to_string())
            }
            "/v1/charges/ch_1" => reply(200, &charge("pi_1").to_string()),
            "/v1/refunds" if *books.mute.lock().expect("books") => reply(503, "{}"),
            "/v1/refunds" => {
                let mut refunds = books.refunds.lock().expect("books").clone();
                let of = |r: &Value| {
                    r["payment_intent"]
                        .as_str()
                        .is_some_and(|p| query.contains(p))
                };
                refunds.retain(of);
                let list = json!({"object": "list", "data": refunds, "has_more": false});
                reply(200, &list.to_string())
            }
            p if p.starts_with("/v1/payment_intents/pi_") => {
                let id = p.trim_start_matches("/v1/payment_intents/");
                let order = if id == "pi_1" { "4417" } else { "4418" };
                reply(200, &payment(order).to_string())
            }
            p if p.starts_with("/v1/charges/") => reply(200, &charge("pi_2").to_string()),
            _ => fault(404, "invalid_request_error", "resource_missing"),
        }
    })
    .await
}

/// `pi_1` is order 4417's payment, `pi_2` any other's.
fn payment(order: &str) -> Value {
    let (id, charge) = if order == "4417" {
        ("pi_1", "ch_1")
    } else {
        ("pi_2", "ch_2")
    };
    json!({
        "object": "payment_intent", "id": id, "latest_charge": charge, "livemode": false,
        "metadata": {"order_id": order},
    })
}

fn charge(payment: &str) -> Value {
    let id = if payment == "pi_1" { "ch_1" } else { "ch_2" };
    json!({
        "object": "charge", "id": id, "currency": "usd", "amount": 10_000, "livemode": false,
        "amount_captured": 10_000, "amount_refunded": 0, "captured": true, "status": "succeeded",
        "disputed": false, "payment_intent": payment, "metadata": {},
    })
}
