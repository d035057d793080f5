//! How a model writes the arguments of one and the same refund (F31), and how it gets them wrong.
//!
//! Owns: the JSON text of a call. Never: changes what is meant. Tests: `customers.rs`, which reads
//! every spelling back.

use rand::Rng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

/// Arguments that mean: refund `amount` (minor units, usd) of `order`.
pub(super) fn right(lots: &mut ChaCha8Rng, order: &str, amount: i64) -> String {
    let mut members = vec![order_id(lots, order), money(lots, amount), currency(lots)];
    if lots.random_range(0..100) < 30 {
        members.push(("reason", json!("requested_by_customer").to_string()));
    }
    written(lots, members)
}

/// Arguments that no tool should accept.
pub(super) fn wrong(lots: &mut ChaCha8Rng, order: &str, amount: i64) -> String {
    let order_id = order_id(lots, order);
    let usd = currency(lots);
    let members = match lots.random_range(0..6) {
        0 => vec![
            order_id,
            usd,
            ("amount_cents", amount.to_string()),
            ("amount", json!(decimal(amount)).to_string()),
        ],
        // A bare number would be rounded somewhere.
        1 => vec![order_id, usd, ("amount", decimal(amount))],
        2 => vec![order_id, ("amount_cents", amount.to_string())],
        3 => vec![
            order_id,
            usd,
            (
                "amount",
                json!(decimal(amount).replace('.', ",")).to_string(),
            ),
        ],
        4 => vec![
            ("order_id", "null".to_owned()),
            usd,
            ("amount_cents", amount.to_string()),
        ],
        _ => vec![order_id, usd, ("amout", json!(decimal(amount)).to_string())],
    };
    written(lots, members)
}

type Member = (&'static str, String);

fn order_id(lots: &mut ChaCha8Rng, order: &str) -> Member {
    let text = match lots.random_range(0..5) {
        0 => json!(format!(" {order} ")),
        _ => json!(order),
    };
    ("order_id", text.to_string())
}

fn money(lots: &mut ChaCha8Rng, amount: i64) -> Member {
    match lots.random_range(0..3) {
        0 => ("amount", json!(decimal(amount)).to_string()),
        _ => ("amount_cents", amount.to_string()),
    }
}

fn currency(lots: &mut ChaCha8Rng) -> Member {
    let text = ["usd", "usd", "USD"][lots.random_range(0..3)];
    ("currency", json!(text).to_string())
}

fn decimal(amount: i64) -> String {
    format!("{}.{:02}", amount / 100, amount % 100)
}

fn written(lots: &mut ChaCha8Rng, mut members: Vec<Member>) -> String {
    members.shuffle(lots);
    let (colon, comma) = match lots.random_range(0..3) {
        0 => (":", ","),
        1 => (": ", ", "),
        _ => (" : ", " ,\n  "),
    };
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| format!("\"{name}\"{colon}{value}"))
        .collect();
    format!("{{{}}}", members.join(comma))
}
