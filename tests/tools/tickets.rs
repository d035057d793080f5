//! `create_ticket` against a desk that honours no keys and can be searched by our id.

use samekey::domain::operation::{Effect, FailureClass, Status};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::tool_call::ToolResult;
use samekey::simulator::Trouble;
use serde_json::{Value, json};

use crate::kit::{Room, TOKEN};

fn ticket() -> Value {
    json!({ "customer": "anna@example.com", "subject": "Where is my parcel?", "text": "Order 4417." })
}

fn named(result: &ToolResult) -> Option<(String, String)> {
    match result {
        ToolResult::Done { object, .. } => {
            object.as_ref().map(|o| (o.name.clone(), o.id.to_string()))
        }
        _ => None,
    }
}

/// The desk's first ticket, as an answer names it.
fn first() -> (String, String) {
    ("ticket_id".to_owned(), "1".to_owned())
}

/// R62, R67: one intent is one ticket, in whatever order the arguments come; a row without order and
/// money has none made up.
#[tokio::test(flavor = "multi_thread")]
async fn one_question_is_one_ticket_r62() {
    let room = Room::new().await;
    let made = room.ask("create_ticket", "t1", &ticket()).await;
    assert_eq!((made.status(), named(&made)), ("created", Some(first())));
    let reordered = json!({ "text": "The same, in other words.", "subject": " Where is my parcel?",
        "customer": "anna@example.com", "priority": null });
    let again = room.ask("create_ticket", "t2", &reordered).await;
    assert!(
        matches!(&again, ToolResult::Done { repeat: true, .. }),
        "{again:?}"
    );
    assert_eq!(named(&again), Some(first()));
    assert_eq!(
        (room.services.tickets().len(), room.services.creates()),
        (1, 1)
    );
    let row = room.only().await.op.row;
    assert_eq!(
        (row.order_id, row.money, row.payment, row.charge),
        (None, None, None, None)
    );
    assert_eq!(row.effect, Effect::Identified);
    let made = &room.services.tickets()[0];
    assert_eq!(made.correlation, row.id.as_str(), "R77: it carries our id");
    assert_eq!(made.body["priority"], "normal");
}

/// R80, R81, R75, F35, F37: the ticket was made and its answer lost; it is looked for before anything else,
/// attached, and the same call hears of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_looked_for_and_attached_r80_r81_f35_f37() {
    for trouble in [
        Trouble::TimeoutAfter,
        Trouble::BadGatewayAfter,
        Trouble::Garbled,
    ] {
        let room = Room::new().await;
        room.services.then(&[trouble]);
        let made = room.ask("create_ticket", "t1", &ticket()).await;
        assert_eq!(
            (made.status(), named(&made)),
            ("created", Some(first())),
            "{trouble:?}"
        );
        let there = (room.services.tickets().len(), room.services.creates());
        assert_eq!(there, (1, 1), "{trouble:?}");
        assert!(room.services.lookups() >= 1);
        let op = room.only().await.op;
        assert_eq!(op.attempts.len(), 1);
        let class = op.attempts[0].result.as_ref().map(|r| r.class);
        assert_eq!(class, Some(OutcomeClass::SideEffectUnknown));
        assert_eq!(op.row.status, Status::Succeeded);
    }
}

/// R73, R76, R81: nothing was made and nobody can know it yet: no second create before a search that began
/// late enough found nothing; then the next call makes the one ticket.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_again_before_a_search_says_that_nothing_exists_r76() {
    let room = Room::new().await;
    room.services.then(&[Trouble::TimeoutBefore]);
    let told = room.ask("create_ticket", "t1", &ticket()).await;
    assert_eq!(told.status(), "unconfirmed");
    let told = room.ask("create_ticket", "t2", &ticket()).await;
    assert_eq!((told.status(), room.services.creates()), ("unconfirmed", 1));
    room.settle().await;
    let told = room.ask("create_ticket", "t3", &ticket()).await;
    assert_eq!(
        (told.status(), room.services.creates()),
        ("unconfirmed", 1),
        "this one looked"
    );
    let made = room.ask("create_ticket", "t4", &ticket()).await;
    assert_eq!((made.status(), named(&made)), ("created", Some(first())));
    assert_eq!(
        (room.services.tickets().len(), room.services.creates()),
        (1, 2)
    );
}

/// F37: a search that lags behind proves nothing; what shows up late is attached.
#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_that_shows_up_late_is_attached_and_not_made_again_f37() {
    let room = Room::new().await;
    room.services.then(&[Trouble::Unindexed]);
    let told = room.ask("create_ticket", "t1", &ticket()).await;
    assert_eq!(told.status(), "unconfirmed");
    let told = room.ask("create_ticket", "t2", &ticket()).await;
    assert_eq!(told.status(), "unconfirmed");
    room.services.index();
    let made = room.ask("create_ticket", "t3", &ticket()).await;
    assert_eq!((made.status(), named(&made)), ("created", Some(first())));
    assert_eq!(
        (room.services.tickets().len(), room.services.creates()),
        (1, 1)
    );
}

/// F36: a 409 that names our ticket is that ticket.
#[tokio::test(flavor = "multi_thread")]
async fn what_exists_already_is_linked_f36() {
    let room = Room::new().await;
    room.services.then(&[Trouble::Conflict]);
    let made = room.ask("create_ticket", "t1", &ticket()).await;
    assert_eq!((made.status(), named(&made)), ("created", Some(first())));
    assert_eq!(room.services.creates(), 1);
}

/// F38, R92: half done is done, with what is left for a person on record; nothing is made again.
#[tokio::test(flavor = "multi_thread")]
async fn a_partial_success_is_one_with_something_left_to_do_f38_r92() {
    let room = Room::new().await;
    room.services.then(&[Trouble::Partial]);
    let made = room.ask("create_ticket", "t1", &ticket()).await;
    assert_eq!(made.status(), "created");
    let op = room.only().await.op;
    let left = op.attempts[0].result.as_ref().and_then(|r| r.error.clone());
    assert!(
        left.expect("what is left")
            .as_str()
            .contains("assign it by hand")
    );
    let again = room.ask("create_ticket", "t2", &ticket()).await;
    assert_eq!((again.status(), room.services.creates()), ("created", 1));
}

/// R70, R72, R74: each class has its branch: a refusal ends it, a limiter is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_final_and_a_limiter_is_waited_for_r70_r72() {
    let room = Room::new().await;
    room.services.then(&[Trouble::Refused]);
    let told = room.ask("create_ticket", "t1", &ticket()).await;
    assert!(
        matches!(
            told,
            ToolResult::Failed {
                class: FailureClass::ValidationFailure,
                ..
            }
        ),
        "{told:?}"
    );
    assert_eq!(room.services.creates(), 1);
    room.services.then(&[Trouble::Limited, Trouble::Limited]);
    let other = json!({ "customer": "ben@example.com", "subject": "s", "text": "t" });
    let made = room.ask("create_ticket", "t2", &other).await;
    assert_eq!((made.status(), room.services.creates()), ("created", 4));
    assert_eq!(room.services.tickets().len(), 1);
}

/// R98: what the schema does not know never leaves; the sentence names the argument.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_rejected_before_anything_is_sent_r98() {
    let room = Room::new().await;
    let mut wrong = Vec::new();
    for (name, value) in [
        ("admin", json!(true)),
        ("priority", json!("highest")),
        ("subject", json!("")),
        ("text", json!(7)),
    ] {
        let mut arguments = ticket();
        arguments[name] = value;
        wrong.push((name, arguments));
    }
    wrong.push(("customer", json!({ "subject": "s", "text": "t" })));
    for (n, (name, arguments)) in wrong.iter().enumerate() {
        let told = room.ask("create_ticket", &format!("t{n}"), arguments).await;
        let ToolResult::Rejected { reason, .. } = &told else {
            panic!("{told:?}");
        };
        assert!(reason.as_str().contains(name), "{reason}");
    }
    assert_eq!(room.services.creates(), 0);
    assert!(room.all().await.is_empty());
}

/// I30, F08: the token is on every request and nowhere else; a provider without keys is shown none.
#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_sent_and_never_stored_i30() {
    let room = Room::new().await;
    room.ask("create_ticket", "t1", &ticket()).await;
    let headers = room.services.headers(0);
    let of = |name: &str| {
        headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.clone())
    };
    assert_eq!(of("authorization"), Some(format!("Bearer {TOKEN}")));
    let key = room.only().await.op.row.key.to_string();
    assert!(!headers.iter().any(|(_, value)| value.contains(&key)));
    for entry in std::fs::read_dir(room.dir.path()).expect("the folder") {
        let bytes = std::fs::read(entry.expect("a file").path()).expect("its bytes");
        let found = bytes.windows(TOKEN.len()).any(|w| w == TOKEN.as_bytes());
        assert!(!found, "no file of the ledger holds the token");
    }
}
