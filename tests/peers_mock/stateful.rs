//! Against `stripe-stateful-mock`: it honours keys (saves, replays, refuses other parameters) and keeps the
//! sums of a charge. Its replay is of another content type than the first answer and carries the mark.
//!
//! It has charges only: no payment intents, so no search (orders are resolved by a command here), no account,
//! no pending refunds, no events. It answers one request at a time, so keys never overlap (409), and forgets no
//! key. It lists oldest first.

use serde_json::{Value, json};

use crate::Shop;
use crate::peer::{Address, Peer};
use crate::proxy::{Proxy, Refund, Way};

/// A charge of 25.00 of this order.
fn charged(at: Address, order: &str) -> String {
    let form = [
        ("amount", "2500"),
        ("currency", "usd"),
        ("source", "tok_visa"),
        ("metadata[order_id]", order),
    ];
    let (status, charge) = at.post("/v1/charges", "", &form);
    assert_eq!(status, 200, "{charge}");
    charge["id"].as_str().expect("an id").to_owned()
}

fn shop(
    at: Address,
    charge: &str,
    way: impl Fn(usize, &Refund) -> Way + Send + Sync + 'static,
) -> Shop {
    let script = format!("#!/bin/sh\n[ \"$1\" = 4417 ] && echo {charge}\nexit 0\n");
    let resolve = "{ command = [\"{home}/find\", \"{order_id}\"] }";
    Shop::new(Proxy::before(at, way), resolve, &[("find", &script)])
}

#[test]
fn what_it_cannot_do() {
    let Some(peer) = Peer::stateful("what stripe-stateful-mock cannot do") else {
        return;
    };
    for path in [
        "/v1/account",
        "/v1/payment_intents/pi_1",
        "/v1/payment_intents/search",
        "/v1/events",
    ] {
        let (status, said) = peer.at.get(path);
        let words = said["error"]["message"].as_str().expect("words");
        assert!(
            status == 404 && words.contains("No matching path"),
            "{path}: {said}"
        );
    }
}

/// S3, S4, S25, S42: one refund of a charge, asked for twice, is one; an unknown order is nobody's.
#[test]
fn one_refund_of_a_charge_is_one_s25() {
    let Some(peer) = Peer::stateful("one refund at stripe-stateful-mock") else {
        return;
    };
    let charge = charged(peer.at, "4417");
    let shop = shop(peer.at, &charge, |_, _| Way::Through);
    let (code, first) = shop.ask("4417", 700);
    assert_eq!((code, &first["status"]), (0, &json!("refunded")), "{first}");
    let (_, again) = shop.ask("4417", 700);
    assert_eq!(
        (&again["repeat"], &again["refund_id"]),
        (&json!(true), &first["refund_id"])
    );
    assert_eq!(shop.ask("4418", 700).1["status"], "rejected");
    assert_eq!(shop.ask("4417", 1801).1["status"], "rejected");
    let refunds = peer.at.refunds(&charge);
    assert_eq!((refunds.len(), &refunds[0]["id"]), (1, &first["refund_id"]));
    assert_eq!(
        refunds[0]["metadata"]["operation_id"],
        first["operation_id"]
    );
    let row = shop.look();
    assert_eq!(
        (&row["verdict"], &row["charge"]),
        (&json!("confirmed"), &json!(charge))
    );
    let request = row["attempt_list"][0]["provider_request_id"].as_str();
    assert!(
        request.is_some_and(|id| id.starts_with("req_")),
        "S19: {row}"
    );
    shop.sent(1);
}

/// S3, S4: the first answer is lost; the second request gets the same refund again, marked, as `text/html`.
#[test]
fn a_lost_answer_is_replayed_and_stays_one_effect_s3_s4() {
    let Some(peer) = Peer::stateful("a replay of stripe-stateful-mock") else {
        return;
    };
    let charge = charged(peer.at, "4417");
    let shop = shop(peer.at, &charge, |n, _| {
        if n < 3 { Way::AnswerLost } else { Way::Through }
    });
    let (_, said) = shop.ask("4417", 700);
    assert_eq!(said["status"], "refunded", "{said}");
    let row = shop.only();
    let attempts = row["attempt_list"].as_array().expect("attempts");
    let replayed: Vec<_> = attempts.iter().map(|a| &a["replayed"]).collect();
    assert_eq!(replayed, [&json!(false), &json!(false), &json!(true)]);
    let refunds = peer.at.refunds(&charge);
    assert_eq!((refunds.len(), &refunds[0]["id"]), (1, &said["refund_id"]));
    shop.sent(3);
}

/// S6: somebody used our key for another refund before: an incident, at once, and nothing more is sent.
#[test]
fn a_key_that_somebody_used_is_refused_by_it_and_stops_us_s6() {
    let Some(peer) = Peer::stateful("a used key at stripe-stateful-mock") else {
        return;
    };
    let charge = charged(peer.at, "4417");
    let (at, of) = (peer.at, charge.clone());
    let shop = shop(at, &charge, move |_, refund| {
        let (status, _) = at.post(
            "/v1/refunds",
            &refund.key,
            &[("charge", &of), ("amount", "100")],
        );
        assert_eq!(status, 200);
        Way::Through
    });
    for _ in 0..2 {
        assert_eq!(shop.ask("4417", 700).1["status"], "checking");
    }
    let row = shop.only();
    assert_eq!(
        (&row["reason"], &row["status"]),
        (&json!("key_mismatch"), &json!("unknown"))
    );
    assert!(
        !row["attempt_list"]
            .to_string()
            .contains(row["idempotency_key"].as_str().expect("a key"))
    );
    shop.sent(1);
}

/// S32, S34: between our look and our request somebody refunded all of it, or most of it. Its refusals are
/// definite: ours is not in its list.
#[test]
fn what_others_refunded_meanwhile_is_a_refusal_s32_s34() {
    for (taken, says) in [
        ("2500", "already"),
        ("2000", "greater than unrefunded amount"),
    ] {
        let Some(peer) = Peer::stateful("refusals of stripe-stateful-mock") else {
            return;
        };
        let charge = charged(peer.at, "4417");
        let (at, of) = (peer.at, charge.clone());
        let shop = shop(at, &charge, move |_, _| {
            let (status, _) = at.post(
                "/v1/refunds",
                "theirs",
                &[("charge", &of), ("amount", taken)],
            );
            assert_eq!(status, 200);
            Way::Through
        });
        let (code, said) = shop.ask("4417", 700);
        assert_eq!((code, &said["status"]), (1, &json!("failed")), "{said}");
        assert!(
            said["reason"].as_str().expect("a reason").contains(says),
            "{said}"
        );
        let refunds = peer.at.refunds(&charge);
        assert!(
            refunds.len() == 1 && refunds[0]["metadata"] == json!({}),
            "{refunds:?}"
        );
        shop.sent(1);
    }
}

/// S3, F20: the refund was made, its answer was lost, and then the rest was refunded by somebody else. The key
/// still answers with ours.
#[test]
fn a_replay_counts_even_when_nothing_is_left_s3() {
    let Some(peer) = Peer::stateful("a replay after everything was refunded") else {
        return;
    };
    let charge = charged(peer.at, "4417");
    let (at, of) = (peer.at, charge.clone());
    let shop = shop(at, &charge, move |n, _| {
        if n == 1 {
            return Way::AnswerLost;
        }
        let rest = at.post(
            "/v1/refunds",
            "theirs",
            &[("charge", &of), ("amount", "1800")],
        );
        assert_eq!(rest.0, 200);
        Way::Through
    });
    let (_, said) = shop.ask("4417", 700);
    assert_eq!(said["status"], "refunded", "{said}");
    let ours = |r: &&Value| r["metadata"]["operation_id"] == said["operation_id"];
    assert_eq!(peer.at.refunds(&charge).iter().filter(ours).count(), 1);
    shop.sent(2);
}
