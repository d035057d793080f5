//! Objects have the members and types of the provider's own fixtures, nested ones included.

use serde_json::Map;

use super::*;

/// Members that later versions of the API have and the fixtures do not, by where they are.
const LATER: &[&str] = &[
    "refund.customer",
    "refund.customer_account",
    "refund.payment_method",
    "refund.destination_details.card.reference_status",
    "refund.destination_details.card.reference_type",
    "charge.outcome.risk_level",
    "charge.payment_method_details.card.authorization_code",
    "charge.payment_method_details.card.network_transaction_id",
    "charge.payment_method_details.card.transaction_link_id",
    "payment_intent.customer_account",
    "payment_intent.managed_payments",
];

/// Members whose content depends on what was paid or asked, not on the form.
const FREE: &[&str] = &[
    "metadata",
    "payment_method_options",
    "fraud_details",
    "data.object",
];

fn fixtures() -> Value {
    let text = include_str!("../fixtures/stripe-fixtures.json");
    serde_json::from_str(text).expect("fixtures")
}

/// Every member of theirs is here with the same type wherever both have a value, and nothing else
/// is here but what is listed.
fn compare(path: &str, theirs: &Value, ours: &Value, wrong: &mut Vec<String>) {
    let (Value::Object(theirs), Value::Object(ours)) = (theirs, ours) else {
        return;
    };
    for (name, value) in theirs {
        let path = format!("{path}.{name}");
        if FREE.iter().any(|free| path.ends_with(free)) {
            continue;
        }
        match ours.get(name) {
            None => wrong.push(format!("{path} is missing")),
            Some(own) => {
                let both = !own.is_null() && !value.is_null();
                if both && std::mem::discriminant(own) != std::mem::discriminant(value) {
                    wrong.push(format!("{path} has another type"));
                }
                compare(&path, value, own, wrong);
            }
        }
    }
    for name in ours.keys().filter(|name| !theirs.contains_key(*name)) {
        let path = format!("{path}.{name}");
        if !LATER.contains(&path.as_str()) {
            wrong.push(format!("{path} is not theirs"));
        }
    }
}

fn same(name: &str, theirs: &Value, ours: &Value) {
    let mut wrong = Vec::new();
    compare(name, theirs, ours, &mut wrong);
    assert!(ours.is_object() && wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn refund_charge_and_payment_have_the_members_of_the_fixtures_s25_s40() {
    let (sim, _) = start("honest").await;
    let fixtures = fixtures();
    let made = refund(&sim, "K", PAYMENT).await.json();
    let read = get(
        &sim,
        &format!("/v1/refunds/{}", made["id"].as_str().expect("id")),
    )
    .await;
    assert_eq!(read.json(), made);
    same("refund", &fixtures["refund"], &made);
    let charge = get(&sim, "/v1/charges/ch_order_4417").await.json();
    same("charge", &fixtures["charge"], &charge);
    let path = "/v1/payment_intents/pi_order_4417";
    let intent = get(&sim, path).await.json();
    same("payment_intent", &fixtures["payment_intent"], &intent);
    let expanded = get(&sim, &format!("{path}?expand[]=latest_charge"))
        .await
        .json();
    same("charge", &fixtures["charge"], &expanded["latest_charge"]);
}

#[tokio::test]
async fn events_have_the_members_of_the_fixtures_and_carry_whole_objects_s51() {
    let (sim, _) = start("honest").await;
    let fixtures = fixtures();
    refund(&sim, "K", PAYMENT).await;
    let list = get(&sim, "/v1/events").await.json();
    for event in list["data"].as_array().expect("events") {
        let mut plain = event.clone();
        plain["data"]
            .as_object_mut()
            .map(|data| data.remove("previous_attributes"));
        same("event", &fixtures["event"], &plain);
        let object = &event["data"]["object"];
        let name = object["object"].as_str().expect("a kind");
        same(name, &fixtures[name], object);
    }
}

/// The fixtures have a list inside a charge, and no error; its members are S19's.
#[tokio::test]
async fn lists_and_errors_have_their_members_s19_s42_s46() {
    let (sim, _) = start("honest").await;
    refund(&sim, "K", PAYMENT).await;
    let theirs = &fixtures()["charge"]["refunds"];
    for path in [
        "/v1/refunds",
        "/v1/events",
        "/v1/disputes",
        "/v1/charges?payment_intent=pi_order_4417",
    ] {
        let list = get(&sim, path).await.json();
        same("list", theirs, &list);
        assert_eq!(list["object"], "list");
        assert!(path.starts_with(list["url"].as_str().expect("a path")));
    }
    let charge = get(&sim, "/v1/charges/ch_order_4417").await.json();
    assert_eq!(
        charge["refunds"]["data"],
        json!([]),
        "S46: never to be relied on"
    );
    let envelope: Map<String, Value> = [
        "type",
        "code",
        "message",
        "param",
        "doc_url",
        "request_log_url",
    ]
    .iter()
    .map(|name| ((*name).to_owned(), json!("")))
    .collect();
    let error = get(&sim, "/v1/refunds/re_x").await.json();
    same("error", &json!({ "error": envelope }), &error);
}
