//! Resolving an order and looking up a refund: only GET, without a key, to the end or not at all.

use samekey::clock::Clock;
use samekey::domain::evidence::ObjectStatus;
use samekey::domain::ids::{ChargeId, OrderId, PaymentId, ProviderRef};
use samekey::domain::key::IdempotencyKey;
use samekey::domain::opening::Resolved;
use samekey::domain::transition::Lookup;
use samekey::provider::{Provider as _, ResolveError, ResolveQuery};
use serde_json::{Value, json};

use crate::server::{Act, Seen, Server, json as reply};
use crate::{API_KEY, free, now, row, stripe};

pub fn refund(id: &str, amount: i64, operation: Option<&str>) -> Value {
    json!({
        "object": "refund", "id": id, "amount": amount, "currency": "usd", "created": 1_790_000_001,
        "status": "succeeded", "payment_intent": "pi_1", "charge": "ch_1",
        "metadata": operation.map_or(json!({}), |o| json!({"operation_id": o})),
    })
}

pub fn list(data: &[Value], has_more: bool) -> Act {
    reply(
        200,
        &json!({"object": "list", "data": data, "has_more": has_more}).to_string(),
    )
}

fn missing() -> Act {
    let error = json!({"error": {"type": "invalid_request_error", "code": "resource_missing"}});
    reply(404, &error.to_string())
}

/// A payment `pi_1` of order 4417 with its charge `ch_1`, changed by `edit`.
pub struct World {
    pub payment: Value,
    pub charge: Value,
    pub refunds: Vec<Value>,
    pub found: Vec<Value>,
}

impl World {
    pub fn new() -> Self {
        let payment = json!({
            "object": "payment_intent", "id": "pi_1", "latest_charge": "ch_1",
            "metadata": {"order_id": "4417"},
        });
        Self {
            charge: json!({
                "object": "charge", "id": "ch_1", "currency": "usd", "amount": 10_000,
                "amount_captured": 10_000, "amount_refunded": 0, "captured": true, "paid": true,
                "status": "succeeded", "disputed": false, "payment_intent": "pi_1", "metadata": {},
            }),
            found: vec![payment.clone()],
            payment,
            refunds: Vec::new(),
        }
    }

    pub fn answer(&self, seen: &Seen) -> Act {
        let path = seen.line.trim_start_matches("GET ");
        if path.starts_with("/v1/payment_intents/search?") {
            return list(&self.found, false);
        }
        match path {
            "/v1/payment_intents/pi_1" => reply(200, &self.payment.to_string()),
            "/v1/charges/ch_1" => reply(200, &self.charge.to_string()),
            p if p.starts_with("/v1/refunds?") => list(&self.refunds, false),
            _ => missing(),
        }
    }
}

/// What the adapter resolves in `world`, and the requests it made.
pub async fn resolve(
    world: World,
    payment: Option<&str>,
    charge: Option<&str>,
    order: &str,
) -> (Result<Resolved, ResolveError>, Vec<Seen>) {
    let server = Server::start(move |_, seen| world.answer(seen)).await;
    let stripe = stripe(&server.origin, &Clock::system());
    let query = ResolveQuery {
        order: OrderId::parse(order).expect("order"),
        payment: payment.map(|p| PaymentId::parse(p).expect("payment")),
        charge: charge.map(|c| ChargeId::parse(c).expect("charge")),
    };
    let resolved = stripe.resolve(&query, &free()).await;
    (resolved, server.requests())
}

async fn refused(world: World, payment: Option<&str>, charge: Option<&str>, order: &str) -> String {
    match resolve(world, payment, charge, order).await.0 {
        Err(ResolveError::Refused(why)) => why.to_string(),
        other => panic!("refused, not {other:?}"),
    }
}

#[tokio::test]
async fn an_order_is_resolved_from_intent_charge_or_search_with_all_refunds() {
    for (payment, charge) in [
        (Some("pi_1"), None),
        (None, Some("ch_1")),
        (Some("pi_1"), Some("ch_1")),
        (None, None),
    ] {
        let mut world = World::new();
        let mut failed = refund("re_3", 500, None);
        failed["status"] = json!("failed");
        let mut pending = refund("re_2", 700, None);
        pending["status"] = json!("pending");
        world.refunds = vec![failed, pending, refund("re_1", 1000, Some("op_1"))];
        let (resolved, seen) = resolve(world, payment, charge, "4417").await;
        let resolved = resolved.expect("resolves");
        assert_eq!(resolved.payment.as_str(), "pi_1");
        assert_eq!(resolved.charge.as_ref().map(ChargeId::as_str), Some("ch_1"));
        assert_eq!(
            (resolved.captured_minor, resolved.refunded_minor),
            (10_000, 1700)
        );
        let ids: Vec<_> = resolved.refunds.iter().map(ProviderRef::as_str).collect();
        assert_eq!(ids, ["re_2", "re_1"]);
        for request in &seen {
            assert!(request.line.starts_with("GET "), "I22");
            assert_eq!(request.header("idempotency-key"), None, "F08, M34");
            assert!(request.header("authorization").is_some() && request.body.is_empty());
        }
    }
}

/// F07, F08, M34: one adapter sends, reads and sends something else; each key is on its own request and on
/// nothing else, and only refunds are sent with one.
#[tokio::test]
async fn a_key_is_on_its_own_request_only_f08_m34() {
    let server = Server::start(|_, seen| match seen.line.as_str() {
        "POST /v1/refunds" => reply(200, &refund("re_1", 3800, Some("op_5521")).to_string()),
        _ => list(&[refund("re_1", 3800, Some("op_5521"))], false),
    })
    .await;
    let stripe = stripe(&server.origin, &Clock::system());
    let first = row(&stripe);
    let mut second = row(&stripe);
    second.key = IdempotencyKey::from_uuid(uuid::Uuid::from_u128(7));
    for row in [&first, &second] {
        stripe.connect().await.expect("connects").send(row).await;
        stripe.lookup(row, &free()).await;
        stripe.probe(&free()).await;
    }
    let seen = server.requests();
    let keys: Vec<_> = seen
        .iter()
        .filter_map(|s| Some((s.line.as_str(), s.header("idempotency-key")?)))
        .collect();
    let (a, b) = (first.key.to_string(), second.key.to_string());
    let wanted = [
        ("POST /v1/refunds", a.as_str()),
        ("POST /v1/refunds", b.as_str()),
    ];
    assert_eq!(keys, wanted);
    assert!(seen.len() >= 6, "{}", seen.len());
}

#[tokio::test]
async fn the_larger_of_two_refunded_sums_counts() {
    let mut world = World::new();
    world.charge["amount_refunded"] = json!(4000);
    world.refunds = vec![refund("re_1", 1000, None)];
    let (resolved, _) = resolve(world, Some("pi_1"), None, "4417").await;
    assert_eq!(resolved.expect("resolves").refunded_minor, 4000);
}

#[tokio::test]
async fn a_search_escapes_the_order_and_takes_exactly_one_s43() {
    let order = r"O'Hara\7";
    let mut world = World::new();
    world.payment["metadata"]["order_id"] = json!(order);
    world.found = vec![world.payment.clone()];
    let (resolved, seen) = resolve(world, None, None, order).await;
    resolved.expect("resolves");
    let query = "metadata%5B%27order_id%27%5D%3A%27O%5C%27Hara%5C%5C7%27";
    assert!(seen[0].line.contains(query), "{}", seen[0].line);

    let mut two = World::new();
    two.found.push(two.payment.clone());
    assert!(
        refused(two, None, None, "4417")
            .await
            .contains("several payments")
    );
    let mut none = World::new();
    none.found.clear();
    assert!(
        refused(none, None, None, "4417")
            .await
            .contains("no payment of order 4417")
    );
    let mut loose = World::new();
    loose.found[0]["metadata"]["order_id"] = json!("4417-b");
    assert!(
        refused(loose, None, None, "4417")
            .await
            .contains("no payment")
    );
}

#[tokio::test]
async fn a_payment_of_another_order_or_unknown_is_refused() {
    let world = World::new;
    assert!(
        refused(world(), Some("pi_1"), None, "9")
            .await
            .contains("another order")
    );
    assert!(
        refused(world(), None, Some("ch_1"), "9")
            .await
            .contains("another order")
    );
    assert!(
        refused(world(), Some("pi_9"), None, "4417")
            .await
            .contains("no payment_intent pi_9")
    );
    assert!(
        refused(world(), None, Some("ch_9"), "4417")
            .await
            .contains("no charge ch_9")
    );
    assert!(
        refused(world(), Some("pi_2"), Some("ch_1"), "4417")
            .await
            .contains("not of that")
    );
    let mut unmarked = world();
    unmarked.payment["metadata"] = json!({});
    let (resolved, _) = resolve(unmarked, Some("pi_1"), None, "4417").await;
    assert!(
        resolved.is_ok(),
        "an order id is checked where it is present"
    );
    let mut unpaid = world();
    unpaid.payment["latest_charge"] = Value::Null;
    assert!(
        refused(unpaid, Some("pi_1"), None, "4417")
            .await
            .contains("nothing was paid")
    );
}

#[tokio::test]
async fn what_cannot_be_refunded_is_refused_with_the_reason_m39() {
    for (field, value, says) in [
        ("status", json!("pending"), "pending"),
        ("status", json!("failed"), "failed"),
        ("captured", json!(false), "not captured"),
        ("disputed", json!(true), "disputed"),
    ] {
        let mut world = World::new();
        world.charge[field] = value;
        let why = refused(world, Some("pi_1"), None, "4417").await;
        assert!(why.contains(says), "{why}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_unreadable_and_never_a_guess() {
    let mut cases = Vec::new();
    let mut broken = World::new();
    broken.charge["amount_captured"] = json!("lots");
    cases.push(broken);
    let mut strange = World::new();
    strange.refunds = vec![refund("re_1", -5, None)];
    cases.push(strange);
    let mut foreign = World::new();
    foreign.refunds = vec![refund("re_1", 5, None)];
    foreign.refunds[0]["payment_intent"] = json!("pi_2");
    cases.push(foreign);
    let mut swapped = World::new();
    swapped.payment["id"] = json!("pi_2");
    cases.push(swapped);
    for world in cases {
        let (resolved, _) = resolve(world, Some("pi_1"), None, "4417").await;
        assert!(
            matches!(resolved, Err(ResolveError::Unreadable(_))),
            "{resolved:?}"
        );
    }
    for act in [
        reply(500, "{}"),
        reply(429, r#"{"error":{"code":"rate_limit"}}"#),
        reply(404, "<html>"),
        reply(200, "<html>"),
        Act::Say(Vec::new()),
        Act::Reset,
    ] {
        let server = Server::always(act).await;
        let stripe = stripe(&server.origin, &Clock::system());
        let query = ResolveQuery {
            order: OrderId::parse("4417").expect("order"),
            payment: PaymentId::parse("pi_1").ok(),
            charge: None,
        };
        let resolved = stripe.resolve(&query, &free()).await;
        assert!(
            matches!(resolved, Err(ResolveError::Unreadable(_))),
            "{resolved:?}"
        );
        assert_eq!(server.requests().len(), 1, "reads are not resent either");
    }
}

#[tokio::test]
async fn a_charge_without_an_intent_is_its_own_payment() {
    let mut world = World::new();
    world.charge["payment_intent"] = Value::Null;
    world.refunds = vec![refund("re_1", 1000, None)];
    world.refunds[0]["payment_intent"] = Value::Null;
    let (resolved, seen) = resolve(world, None, Some("ch_1"), "4417").await;
    let resolved = resolved.expect("resolves");
    assert_eq!(
        (resolved.payment.as_str(), resolved.refunded_minor),
        ("ch_1", 1000)
    );
    assert_eq!(seen[1].line, "GET /v1/refunds?charge=ch_1&limit=100");
}

#[tokio::test]
async fn a_lookup_reads_every_page_and_keeps_what_bears_on_the_row() {
    let server = Server::start(|number, _| match number {
        1 => list(
            &[
                refund("re_5", 3800, Some("op_9")),
                refund("re_4", 100, None),
            ],
            true,
        ),
        2 => list(
            &[refund("re_4", 100, None), refund("re_3", 3800, None)],
            true,
        ),
        _ => list(
            &[
                refund("re_2", 3800, Some("op_5521")),
                refund("re_1", 1, Some("op_5521")),
            ],
            false,
        ),
    })
    .await;
    let clock = Clock::manual(now());
    let stripe = stripe(&server.origin, &clock);
    let row = row(&stripe);
    let Lookup::Listed {
        began_at,
        complete,
        objects,
    } = stripe.lookup(&row, &free()).await
    else {
        panic!("listed")
    };
    assert_eq!((began_at, complete), (now(), true));
    let ids: Vec<_> = objects
        .iter()
        .map(|(o, taken)| (o.id.as_str(), *taken))
        .collect();
    assert_eq!(ids, [("re_3", false), ("re_2", false), ("re_1", false)]);
    let lines: Vec<_> = server.requests().iter().map(|s| s.line.clone()).collect();
    let first = "GET /v1/refunds?payment_intent=pi_1&limit=100";
    assert_eq!(
        lines,
        [
            first.into(),
            format!("{first}&starting_after=re_4"),
            format!("{first}&starting_after=re_3")
        ]
    );
    let shown = format!(
        "GET {}/v1/refunds?payment_intent=pi_1&limit=100",
        server.origin
    );
    assert_eq!(stripe.lookup_requests(&row), [shown]);
    assert!(
        server
            .requests()
            .iter()
            .all(|s| s.header("idempotency-key").is_none()),
        "I22"
    );
}

#[tokio::test]
async fn a_list_that_breaks_off_or_never_ends_proves_no_absence() {
    let complete = |lookup: Lookup| match lookup {
        Lookup::Listed { complete, .. } => complete,
        other => panic!("listed, not {other:?}"),
    };
    let page = || list(&[refund("re_1", 1, None)], true);
    let breaks = Server::start(move |n, _| if n == 1 { page() } else { reply(429, "{}") }).await;
    let circle = Server::start(move |_, _| page()).await;
    let empty = Server::always(list(&[], true)).await;
    let unreadable = Server::always(list(&[refund("re_1", -1, None)], false)).await;
    let endless = Server::start(|n, _| list(&[refund(&format!("re_{n}"), 1, None)], true)).await;
    for (server, requests) in [
        (&breaks, 2),
        (&circle, 2),
        (&empty, 1),
        (&unreadable, 1),
        (&endless, 100),
    ] {
        let stripe = stripe(&server.origin, &Clock::system());
        assert!(!complete(stripe.lookup(&row(&stripe), &free()).await));
        assert_eq!(server.requests().len(), requests, "I33");
    }
    for act in [
        reply(503, ""),
        reply(403, r#"{"error":{"message":"no"}}"#),
        reply(404, "<html>"),
    ] {
        let server = Server::always(act).await;
        let stripe = stripe(&server.origin, &Clock::system());
        let lookup = stripe.lookup(&row(&stripe), &free()).await;
        assert!(matches!(lookup, Lookup::Unreachable { .. }), "{lookup:?}");
    }
}

#[tokio::test]
async fn one_refund_is_fetched_by_its_id_s41() {
    let server = Server::start(|_, seen| match seen.line.as_str() {
        "GET /v1/refunds/re_1" => reply(200, &refund("re_1", 3800, Some("op_5521")).to_string()),
        "GET /v1/refunds/re_2" => reply(200, &refund("re_1", 3800, None).to_string()),
        "GET /v1/refunds/re_4" => reply(500, "{}"),
        _ => missing(),
    })
    .await;
    let stripe = stripe(&server.origin, &Clock::system());
    let id = |raw| ProviderRef::parse(raw).expect("id");
    let object = stripe
        .fetch(&id("re_1"), &free())
        .await
        .expect("read")
        .expect("known");
    assert_eq!(object.status, ObjectStatus::Succeeded);
    assert!(
        stripe.fetch(&id("re_2"), &free()).await.is_err(),
        "another refund than asked for"
    );
    assert_eq!(stripe.fetch(&id("re_3"), &free()).await, Ok(None));
    assert!(stripe.fetch(&id("re_4"), &free()).await.is_err());
    assert_eq!(stripe.fetch(&id("../account"), &free()).await, Ok(None));
    assert_eq!(stripe.fetch(&id(".."), &free()).await, Ok(None));
    let lines: Vec<_> = server.requests().into_iter().map(|s| s.line).collect();
    assert_eq!(
        lines.last().map(String::as_str),
        Some("GET /v1/refunds/..%2Faccount")
    );
}

#[tokio::test]
async fn probe_and_account_tell_whether_and_as_whom_we_are_heard() {
    let well = Server::start(|_, seen| match seen.line.as_str() {
        "GET /v1/account" => reply(200, r#"{"object":"account","id":"acct_1"}"#),
        _ => list(&[], false),
    })
    .await;
    let healthy = stripe(&well.origin, &Clock::system());
    assert!(healthy.probe(&free()).await);
    assert_eq!(healthy.account(&free()).await, Ok(Some("acct_1".into())));
    let restricted = Server::always(reply(403, r#"{"error":{"message":"no"}}"#)).await;
    let restricted = stripe(&restricted.origin, &Clock::system());
    assert_eq!(
        restricted.account(&free()).await,
        Ok(None),
        "where it can be known"
    );
    let leak = format!(r#"{{"error":{{"message":"Invalid API Key: {API_KEY}"}}}}"#);
    let denied = Server::always(reply(401, &leak)).await;
    let denied = stripe(&denied.origin, &Clock::system());
    assert!(!denied.probe(&free()).await);
    let error = denied.account(&free()).await.expect_err("denied");
    assert!(!error.to_string().contains("4eC39"), "I30");
    let lookup = denied.lookup(&row(&denied), &free()).await;
    assert!(!format!("{lookup:?}").contains("4eC39"), "I30");
}
