//! `send_message` over a channel that honours no keys and cannot be searched.

use samekey::domain::evidence::{ObjectStatus, ProviderObject, Source};
use samekey::domain::ids::Actor;
use samekey::domain::operation::{Status, UnknownReason};
use samekey::domain::tool_call::{Delivery, ToolResult};
use samekey::domain::transition::{Event, Lookup, Observed};
use samekey::simulator::Trouble;
use serde_json::{Value, json};

use crate::kit::Room;

fn message() -> Value {
    json!({ "conversation": "chat-1", "to": "+15550100", "text": "Your parcel\nis on its way." })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_sent_once_and_the_same_words_again_are_the_same_message_r62() {
    let room = Room::new().await;
    let sent = room.ask("send_message", "m1", &message()).await;
    assert_eq!(sent.status(), "sent");
    assert_eq!(
        sent.object().map(ToString::to_string).as_deref(),
        Some("m-1")
    );
    let again = room.ask("send_message", "m2", &message()).await;
    assert!(
        matches!(again, ToolResult::Done { repeat: true, .. }),
        "{again:?}"
    );
    let mut other = message();
    other["text"] = json!("Your parcel\nhas arrived.");
    assert_eq!(
        room.ask("send_message", "m3", &other).await.status(),
        "sent"
    );
    assert_eq!(room.services.messages().len(), 2);
    assert_eq!(room.services.messages()[0].body["text"], message()["text"]);
}

/// F34, F39, R84, R86–R88: the message left and its answer was lost; whether the customer has it stays
/// unknown, and nothing is ever sent again by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_never_sent_again_f34_f39_r86_r87() {
    for trouble in [
        Trouble::TimeoutAfter,
        Trouble::TimeoutBefore,
        Trouble::Garbled,
        Trouble::Limited,
    ] {
        let room = Room::new().await;
        room.services.then(&[trouble]);
        let told = room.ask("send_message", "m1", &message()).await;
        assert_eq!(told.status(), "checking", "{trouble:?}");
        let row = room.only().await.op.row;
        assert_eq!(row.status, Status::Unknown);
        assert_eq!(
            row.reason,
            Some(UnknownReason::NoKeysAtProvider),
            "{trouble:?}"
        );
        for n in 2..5 {
            let again = room.ask("send_message", &format!("m{n}"), &message()).await;
            assert_eq!(again.status(), "checking");
        }
        assert_eq!(room.services.creates(), 1, "{trouble:?}");
    }
}

/// R82, R85, R86, R88, M42: sent and delivered are two facts. In doubt the call stays `delivery_unknown`,
/// whoever reads its answer; what shows up later ends the doubt, and nothing is sent again.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_in_doubt_stays_so_until_evidence_ends_it_r82_r86_m42() {
    let room = Room::new().await;
    room.services.then(&[Trouble::TimeoutAfter]);
    room.ask("send_message", "m1", &message()).await;
    let agent = "northwind".parse().expect("an agent");
    let id = "m1".parse().expect("a call id");
    let known = async || {
        let call = room.ledger.call(&agent, &id).await.expect("read");
        call.expect("known")
    };
    assert_eq!(known().await.delivery, Delivery::DeliveryUnknown);
    room.ledger.delivered(&agent, &id).await.expect("noted");
    assert_eq!(
        known().await.delivery,
        Delivery::DeliveryUnknown,
        "whoever reads the answer says nothing of the message"
    );
    let row = room.only().await.op.row;
    let made = &room.services.messages()[0];
    let object = ProviderObject {
        id: made.id.parse().expect("an id"),
        operation: Some(row.id.clone()),
        payment: None,
        charge: None,
        amount_minor: None,
        currency: None,
        status: ObjectStatus::Succeeded,
        created_at: row.updated_at,
        failure_reason: None,
    };
    let observed = Observed {
        source: Source::Reconciler,
        actor: Actor::Reconciler,
        seen: Lookup::One {
            object,
            taken: false,
        },
    };
    let event = Event::Observed(observed);
    let done = room.ledger.apply(&row.id, event).await.expect("written");
    done.expect("it is news");
    let call = known().await;
    assert_eq!(call.delivery, Delivery::Delivered);
    assert!(
        call.accepted_at <= call.executed_at.expect("executed"),
        "R85"
    );
    assert!(call.executed_at <= call.delivered_at, "R85");
    assert_eq!(room.services.creates(), 1);
}
