//! The attack table for webhooks (`proof.md` (f)), row by row.

use std::time::Duration;

use samekey::config::Secret;
use samekey::domain::operation::Status;
use samekey::gateway::signature;
use samekey::ledger::EventCounts;
use serde_json::{Value, json};

use crate::scripted::{Room, SECRET, post, send, with};

/// A row that is unknown, and the event that would settle it.
async fn tempting(room: &Room) -> (samekey::domain::ids::OperationId, Value) {
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    let event = room.event("evt_1", "refund.created", &refund);
    (id, event)
}

/// Forged webhook: 400, and nothing is stored; S52, F65.
#[tokio::test]
async fn what_is_not_signed_by_the_provider_is_refused_and_not_stored_s52_f65() {
    let room = Room::new().await;
    let (id, event) = tempting(&room).await;
    let gateway = room.gateway(&[SECRET]).await;
    let body = event.to_string();
    let good = room.signed(SECRET, body.as_bytes());
    let legacy = good.replace("v1=", "v0=");
    let shown = good.replace("v1=", "v1= ");
    let other = room.signed("whsec_somebody_elses", body.as_bytes());
    let empty = room.signed("", body.as_bytes());
    let half = good.get(..good.len() - 2).expect("a part");
    let cases: [(&str, Vec<(&str, &str)>); 9] = [
        ("no header", vec![]),
        ("an empty header", vec![("Stripe-Signature", "")]),
        ("another secret", vec![("Stripe-Signature", &other)]),
        ("an empty secret", vec![("Stripe-Signature", &empty)]),
        (
            "only the legacy scheme",
            vec![("Stripe-Signature", &legacy)],
        ),
        ("half a signature", vec![("Stripe-Signature", half)]),
        ("a space in it", vec![("Stripe-Signature", &shown)]),
        ("another header's name", vec![("X-Signature", &good)]),
        (
            "two headers",
            vec![("Stripe-Signature", &good), ("Stripe-Signature", &other)],
        ),
    ];
    for (what, headers) in cases {
        let (status, said) = post(gateway.addr(), &headers, body.as_bytes()).await;
        assert_eq!(status, 400, "{what}: {said}");
        assert!(!said.contains("whsec_"), "{what}: {said} (I30)");
    }
    room.reconcile().await;
    assert_eq!(room.row(&id).await.status, Status::Unknown);
    assert_eq!(room.counts().await, EventCounts::default());
    // The same, honestly signed, does it: the refusals above were not for another reason.
    assert_eq!(room.deliver(&gateway, &event).await, 200);
    room.reconcile().await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
    room.is_honest().await;
}

/// While a secret is exchanged both are good, and one matching signature of several is enough; S54.
#[tokio::test]
async fn two_secrets_and_two_signatures_are_good_during_a_roll_s54() {
    let room = Room::new().await;
    let gateway = room.gateway(&[SECRET, "whsec_the_new_one"]).await;
    for (n, secret) in [SECRET, "whsec_the_new_one"].into_iter().enumerate() {
        let refund = json!({"id": "re_x", "object": "refund", "n": n});
        let event = room.event(&format!("evt_{n}"), "refund.created", &refund);
        let body = event.to_string();
        // The provider signs with every active secret, known here or not.
        let unknown = room.signed("whsec_not_known_here", body.as_bytes());
        let (_, unknown) = unknown.split_once(',').expect("a signature");
        let header = format!("{},{unknown}", room.signed(secret, body.as_bytes()));
        let sent = post(
            gateway.addr(),
            &[("Stripe-Signature", &header)],
            body.as_bytes(),
        )
        .await;
        assert_eq!(sent.0, 200, "{sent:?}");
    }
    assert_eq!(room.counts().await.received, 2);
}

/// Without a secret there is no such route; F65.
#[tokio::test]
async fn without_a_secret_the_route_is_absent_f65() {
    let room = Room::new().await;
    let (_, event) = tempting(&room).await;
    let gateway = room.gateway_with(Vec::new()).await;
    assert_eq!(room.deliver(&gateway, &event).await, 404);
    let health = send(gateway.addr(), b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(health, (200, "ok\n".to_owned()));
    assert_eq!(room.counts().await, EventCounts::default());
}

/// Replay: 300 s are good on both sides, 301 s are not; S53, F65.
#[tokio::test]
async fn an_old_or_future_signature_is_refused_on_both_sides_s53_f65() {
    let room = Room::new().await;
    let gateway = room.gateway(&[SECRET]).await;
    let now = room.world.clock.now();
    for (n, (offset, wanted)) in [
        (-301, 400),
        (-300, 200),
        (300, 200),
        (301, 400),
        (-1_000_000, 400),
    ]
    .into_iter()
    .enumerate()
    {
        let refund = json!({"id": "re_x", "object": "refund"});
        let event = room.event(&format!("evt_{n}"), "refund.created", &refund);
        let body = event.to_string();
        let at = now + chrono::TimeDelta::seconds(offset);
        let header = signature::sign(&Secret::new(SECRET), body.as_bytes(), at);
        let sent = post(
            gateway.addr(),
            &[("Stripe-Signature", &header)],
            body.as_bytes(),
        )
        .await;
        assert_eq!(sent.0, wanted, "{offset}: {sent:?}");
    }
    assert_eq!(room.counts().await.received, 2);
}

/// The same event id twice is stored once; the same effect under another id is a note; S56, F04, F06.
#[tokio::test]
async fn a_repeat_is_stored_once_and_another_id_is_a_note_s56_f04_f06() {
    let room = Room::new().await;
    let (id, event) = tempting(&room).await;
    let gateway = room.gateway(&[SECRET]).await;
    for _ in 0..3 {
        assert_eq!(room.deliver(&gateway, &event).await, 200);
    }
    assert_eq!(room.counts().await.received, 1);
    let twin = with(&event, &json!({"id": "evt_2"}));
    assert_eq!(room.deliver(&gateway, &twin).await, 200);
    room.reconcile().await;
    let before = room.world.op(&id).await;
    assert_eq!(before.row.status, Status::Succeeded);
    // After everything was worked on, a redelivery changes nothing either.
    assert_eq!(room.deliver(&gateway, &event).await, 200);
    room.reconcile().await;
    assert_eq!(room.world.op(&id).await, before);
    assert_eq!(room.counts().await.processed, 2);
    room.is_honest().await;
}

/// The raw bytes are what is signed; S52, F64.
#[tokio::test]
async fn a_body_that_was_written_anew_is_refused_f64() {
    let room = Room::new().await;
    let (_, event) = tempting(&room).await;
    let gateway = room.gateway(&[SECRET]).await;
    let header = room.signed(SECRET, event.to_string().as_bytes());
    let pretty = serde_json::to_string_pretty(&event).expect("JSON");
    let spaced = event.to_string() + " ";
    for body in [pretty.as_bytes(), spaced.as_bytes()] {
        let sent = post(gateway.addr(), &[("Stripe-Signature", &header)], body).await;
        assert_eq!(sent.0, 400, "{sent:?}");
    }
    // The provider's own spelling, whatever it is, is right.
    let header = room.signed(SECRET, pretty.as_bytes());
    let sent = post(
        gateway.addr(),
        &[("Stripe-Signature", &header)],
        pretty.as_bytes(),
    )
    .await;
    assert_eq!(sent.0, 200, "{sent:?}");
}

/// Verified against its receipt: what was in time then is good ten minutes later; F63, S57.
#[tokio::test]
async fn an_event_is_judged_by_its_receipt_however_late_it_is_worked_on_f63_s57() {
    let room = Room::new().await;
    let (id, event) = tempting(&room).await;
    let gateway = room.gateway(&[SECRET]).await;
    assert_eq!(room.deliver(&gateway, &event).await, 200);
    assert_eq!(
        room.row(&id).await.status,
        Status::Unknown,
        "stored, and not worked on"
    );
    room.world.wait(Duration::from_secs(600));
    room.reconcile().await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
}

/// Real money at a ledger of tests, or another account: set aside; I17.
#[tokio::test]
async fn another_mode_or_account_is_quarantined_i17() {
    let room = Room::new().await;
    let (id, event) = tempting(&room).await;
    let gateway = room.gateway(&[SECRET]).await;
    let live = with(&event, &json!({"id": "evt_live", "livemode": true}));
    let other = with(&event, &json!({"id": "evt_other", "account": "acct_2"}));
    for event in [live, other] {
        assert_eq!(room.deliver(&gateway, &event).await, 200);
    }
    room.reconcile().await;
    assert_eq!(room.row(&id).await.status, Status::Unknown);
    assert!(room.world.op(&id).await.evidence.is_empty());
    let counts = room.counts().await;
    assert_eq!((counts.quarantined, counts.processed), (2, 0));
    // Its own account by name is its own.
    let own = with(&event, &json!({"account": crate::scripted::ACCOUNT}));
    assert_eq!(room.deliver(&gateway, &own).await, 200);
    room.reconcile().await;
    assert_eq!(room.row(&id).await.status, Status::Succeeded);
    room.is_honest().await;
}

/// Our id in the metadata with other money or another payment is not ours: seen, and set aside; I17, F23.
#[tokio::test]
async fn our_id_on_other_money_or_another_charge_proves_nothing_i17_f23() {
    for change in [
        json!({"amount": 3801}),
        json!({"currency": "eur"}),
        json!({"payment_intent": "pi_order_other"}),
    ] {
        let room = Room::new().await;
        let (id, event) = tempting(&room).await;
        let gateway = room.gateway(&[SECRET]).await;
        let mut event = event;
        let refund = with(&event["data"]["object"], &change);
        event["data"]["object"] = refund;
        assert_eq!(room.deliver(&gateway, &event).await, 200);
        room.reconcile().await;
        let row = room.row(&id).await;
        assert_eq!(
            (row.status, row.provider_ref),
            (Status::Unknown, None),
            "{change}"
        );
        assert_eq!(room.counts().await.quarantined, 1, "{change}");
        let lines = room.world.ledger.recovery().event_lines(10).await;
        let lines = lines.expect("lines");
        assert_eq!(
            lines.first().and_then(|l| l.operation.clone()),
            Some(id),
            "it is named"
        );
        room.is_honest().await;
    }
}
