//! Against `localstripe`: keys are ignored and a charge can be refunded without limit, so the promise that
//! everything rests on is broken. The second effect must be found and flagged, and nothing more be sent.
//!
//! It cannot replay, conflict or refuse a used key, has no search, no account and no request ids, and its
//! charges have no `amount_captured`; so orders are resolved by a table here.

use serde_json::{Value, json};

use crate::Shop;
use crate::peer::{Address, Peer};
use crate::proxy::{Proxy, Way};

/// A paid payment of 25.00 with its order in a table.
fn paid(at: Address, order: &str) -> (String, String) {
    let card = [
        ("type", "card"),
        ("card[number]", "4242424242424242"),
        ("card[exp_month]", "12"),
        ("card[exp_year]", "2030"),
        ("card[cvc]", "123"),
    ];
    let (_, method) = at.post("/v1/payment_methods", "", &card);
    let form = [
        ("amount", "2500"),
        ("currency", "usd"),
        ("payment_method", method["id"].as_str().expect("a method")),
        ("confirm", "true"),
        ("metadata[order_id]", order),
    ];
    let (status, payment) = at.post("/v1/payment_intents", "", &form);
    assert_eq!(
        (status, &payment["status"]),
        (200, &json!("succeeded")),
        "{payment}"
    );
    let id = payment["id"].as_str().expect("an id").to_owned();
    (id.clone(), format!("order_id,payment\n{order},{id}\n"))
}

fn shop(at: Address, table: &str, way: impl Fn(usize) -> Way + Send + Sync + 'static) -> Shop {
    let proxy = Proxy::before(at, move |n, _| way(n));
    let resolve = "{ table = \"{home}/orders.csv\" }";
    Shop::new(proxy, resolve, &[("orders.csv", table)])
}

/// That two objects of this operation are there, seen from outside.
fn effects(at: Address, payment: &str, operation: &Value) -> usize {
    let refunds = at.refunds(payment);
    assert!(
        refunds
            .iter()
            .all(|r| r["metadata"]["operation_id"] == *operation),
        "{refunds:?}"
    );
    refunds.len()
}

#[test]
fn what_it_cannot_do() {
    let Some(peer) = Peer::localstripe("what localstripe cannot do") else {
        return;
    };
    let at = peer.at;
    let (payment, _) = paid(at, "1");
    let refund = |amount: &str| {
        at.post(
            "/v1/refunds",
            "one-key",
            &[("payment_intent", &payment), ("amount", amount)],
        )
    };
    let (first, again, other) = (refund("700"), refund("700"), refund("99999"));
    assert_eq!(
        (first.0, again.0, other.0),
        (200, 200, 200),
        "no key, no limit"
    );
    assert_ne!(first.1["id"], again.1["id"], "it does not replay");
    for path in ["/v1/account", "/v1/payment_intents/search?query=x"] {
        assert_eq!(at.get(path).0, 404, "{path}");
    }
    let (_, charge) = at.get(&format!(
        "/v1/charges/{}",
        first.1["charge"].as_str().expect("a charge")
    ));
    assert_eq!(charge.get("amount_captured"), None);
}

/// One refund, asked for twice, is one; more than was captured is refused by samekey, since this provider
/// would not refuse it.
#[test]
fn one_refund_is_one_and_the_limit_is_ours() {
    let Some(peer) = Peer::localstripe("one refund at localstripe") else {
        return;
    };
    let (payment, table) = paid(peer.at, "4417");
    let shop = shop(peer.at, &table, |_| Way::Through);
    let (code, first) = shop.ask("4417", 700);
    assert_eq!((code, &first["status"]), (0, &json!("refunded")), "{first}");
    let (code, again) = shop.ask("4417", 700);
    assert_eq!((code, &again["repeat"]), (0, &json!(true)), "{again}");
    assert_eq!(again["refund_id"], first["refund_id"]);
    for cents in [1801, 2500, 99_999] {
        let (code, more) = shop.ask("4417", cents);
        assert_eq!((code, &more["status"]), (1, &json!("rejected")), "{more}");
    }
    let (code, unknown) = shop.ask("4418", 700);
    assert_eq!(
        (code, &unknown["status"]),
        (1, &json!("rejected")),
        "{unknown}"
    );
    assert_eq!(effects(peer.at, &payment, &first["operation_id"]), 1);
    shop.sent(1);
}

/// The first answer is lost and the key is ignored: two refunds. The row was closed by the second one; the
/// first look finds both, flags the row, and the order stands still.
#[test]
fn a_second_effect_behind_a_closed_row_is_found_and_flagged_m36_m59() {
    let Some(peer) = Peer::localstripe("a second effect behind a closed row") else {
        return;
    };
    let (payment, table) = paid(peer.at, "4417");
    let shop = shop(peer.at, &table, |n| {
        if n == 1 {
            Way::AnswerLost
        } else {
            Way::Through
        }
    });
    let (_, said) = shop.ask("4417", 700);
    assert_eq!(said["status"], "refunded", "{said}");
    let row = shop.only();
    assert_eq!(
        (&row["attempts"], &row["contradicted"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(
        effects(peer.at, &payment, &row["operation_id"]),
        2,
        "it did it twice"
    );

    let row = shop.look();
    assert_eq!(
        (&row["status"], &row["contradicted"]),
        (&json!("succeeded"), &json!("second_effect"))
    );
    assert_eq!(row["verdict"], "second_effect");
    for cents in [700, 100] {
        let (_, said) = shop.ask("4417", cents);
        assert_eq!(said["status"], "checking", "{said}");
    }
    assert_eq!(effects(peer.at, &payment, &row["operation_id"]), 2);
    shop.sent(2);
}

/// All answers of a call are lost: three refunds, and a row that nobody may close as failed. One look finds
/// them, and the row is a person's.
#[test]
fn several_effects_of_an_open_row_make_it_a_persons_m36() {
    let Some(peer) = Peer::localstripe("several effects of an open row") else {
        return;
    };
    let (payment, table) = paid(peer.at, "4417");
    let shop = shop(peer.at, &table, |_| Way::AnswerLost);
    let (_, said) = shop.ask("4417", 700);
    assert_eq!(said["status"], "unconfirmed", "{said}");
    assert_eq!(shop.only()["status"], "open");

    let row = shop.look();
    assert_eq!(
        (&row["status"], &row["reason"]),
        (&json!("unknown"), &json!("second_effect"))
    );
    assert_eq!(row["verdict"], "second_effect");
    let id = row["operation_id"].as_str().expect("an id");
    let close = [
        "ops",
        "close",
        id,
        "--as",
        "failed",
        "--note",
        "nothing seen",
        "--json",
    ];
    let refused = shop.home.ok(1, &close);
    assert!(refused.stderr.contains("error"), "{refused:?}");
    for cents in [700, 100] {
        let (code, said) = shop.ask("4417", cents);
        assert_ne!((code, &said["status"]), (0, &json!("refunded")), "{said}");
    }
    assert_eq!(effects(peer.at, &payment, &row["operation_id"]), 3);
    shop.sent(3);
}
