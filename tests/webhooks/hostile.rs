//! Hostile text in every member of what the provider says: nothing of it reaches the ledger as it was, and
//! whoever prints it prints something harmless (I31, I33).

use std::time::Duration;

use samekey::domain::operation::Status;
use serde_json::{Value, json};

use crate::cli::is_inert;
use crate::scripted::{Room, SECRET, with};

fn hostile() -> [Value; 4] {
    let long = "x".repeat(100_000);
    [
        json!("\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}5m\r\nEND"),
        json!("\u{202e}desrever\u{2066}\u{200b}"),
        json!(long),
        json!({ long: ["\u{1b}[2J"] }),
    ]
}

/// I31, I33: each member of a listed and of a sent refund, and of the event around it.
#[tokio::test]
async fn hostile_text_in_any_member_is_kept_out_i31_i33() {
    let members = [
        "id",
        "object",
        "amount",
        "currency",
        "created",
        "status",
        "payment_intent",
        "charge",
        "failure_reason",
        "metadata",
    ];
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let gateway = room.gateway(&[SECRET]).await;
    let refund = room.refund_of(&id, "re_1", "failed").await;
    let mut n = 0;
    for bad in hostile() {
        for member in members {
            n += 1;
            let refund = with(&refund, &json!({ member: bad }));
            room.shown().refunds = vec![refund.clone()];
            let event = room.event(&format!("evt_{n}"), "refund.failed", &refund);
            assert_eq!(room.deliver(&gateway, &event).await, 200, "{member}");
            room.work_off().await;
            room.world.wait(Duration::from_secs(61));
            room.reconcile().await;
        }
        for member in ["id", "account", "created", "livemode", "request", "type"] {
            n += 1;
            let event = room.event(&format!("evt_{n}"), "refund.failed", &refund);
            let event = with(&event, &json!({ member: bad }));
            assert_eq!(room.deliver(&gateway, &event).await, 200, "{member}");
            room.work_off().await;
        }
        let operation = with(
            &refund,
            &json!({"metadata": {"operation_id": bad, "order_id": bad}}),
        );
        room.shown().refunds = vec![operation];
        room.reconcile().await;
    }
    assert_ne!(room.row(&id).await.status, Status::Succeeded);
    let lines = room.world.ledger.recovery().event_lines(100).await;
    for line in lines.expect("lines") {
        let all = format!(
            "{} {} {:?}",
            line.id,
            line.kind,
            line.reason.map(|r| r.to_string())
        );
        assert!(is_inert(&all) && all.len() < 2_000, "{all:?}");
    }
    for trouble in room.counts().await.troubles {
        assert!(is_inert(trouble.why.as_str()), "{:?}", trouble.why);
    }
    // What audits a ledger looks at every text in it.
    room.is_honest().await;
}
