//! What a described tool may cost: counts, risk.

use samekey::domain::operation::Status;
use samekey::domain::tool_call::{RejectClass, ToolResult};
use samekey::simulator::Trouble;
use serde_json::json;

use crate::kit::Room;

/// R95, R97: a tool without money has its cap as a count, set for the tool itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_without_money_is_capped_by_a_count_r95_r97() {
    let room = Room::with("max_operations = { count = 2, window = \"24h\" }").await;
    let ask = async |n: usize| {
        let ticket = json!({ "customer": "a", "subject": format!("s{n}"), "text": "t" });
        room.ask("create_ticket", &format!("t{n}"), &ticket).await
    };
    assert_eq!(ask(1).await.status(), "created");
    assert_eq!(ask(2).await.status(), "created");
    let third = ask(3).await;
    let ToolResult::Rejected { class, reason, .. } = &third else {
        panic!("{third:?}");
    };
    assert_eq!(*class, RejectClass::RateLimited);
    assert!(reason.as_str().contains("2 operations"), "{reason}");
    assert_eq!(room.services.creates(), 2);
    let message = json!({ "conversation": "c", "to": "a", "text": "t" });
    let other = room.ask("send_message", "m1", &message).await;
    assert_eq!(other.status(), "sent", "R97: per tool");
}

/// R93, R98: what is of high risk waits for a lead, whatever it costs.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_high_risk_is_held_r93_r98() {
    let text = include_str!("../../assets/tools/create_ticket.toml");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("risky.toml");
    let risky = text.replace("risk = \"low\"", "risk = \"high\"");
    let risky = risky.replace("fetch = \"/tickets/{{ ref }}\"\n", "");
    std::fs::write(&path, risky).expect("written");
    let more = format!(
        "[tools.risky]\nprovider = \"helpdesk\"\ndescription = \"{}\"\n",
        path.display()
    );
    let room = Room::with(&more).await;
    let ticket = json!({ "customer": "a", "subject": "s", "text": "t" });
    let told = room.ask("risky", "r1", &ticket).await;
    assert_eq!(told.status(), "held");
    let row = room.only().await.op.row;
    assert!(row.held && row.status == Status::Open);
    assert_eq!(room.services.creates(), 0);
}

fn refused(result: &ToolResult) -> bool {
    matches!(
        result,
        ToolResult::Rejected {
            class: RejectClass::RateLimited,
            ..
        }
    )
}

/// R96, M45: an agent that asks for the same refused thing again and again is answered without sending from
/// the sixth time on, by whichever engine; another question goes through, and starts the count again.
#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_in_a_row_are_stopped_and_others_are_not_r96_m45() {
    let room = Room::new().await;
    let same = json!({ "customer": "a", "subject": "s", "text": "t" });
    room.services.then(&[Trouble::Refused; 12]);
    for n in 0..5 {
        let told = room.ask("create_ticket", &format!("t{n}"), &same).await;
        assert_eq!(told.status(), "failed");
    }
    for n in 5..8 {
        let told = room.ask("create_ticket", &format!("t{n}"), &same).await;
        assert!(refused(&told), "{told:?}");
    }
    assert_eq!(
        room.services.creates(),
        5,
        "call 6 and what follows send nothing"
    );
    let other = json!({ "customer": "a", "subject": "another", "text": "t" });
    let told = room.ask("create_ticket", "o1", &other).await;
    assert_eq!((told.status(), room.services.creates()), ("failed", 6));
    let told = room.ask("create_ticket", "t9", &same).await;
    assert_eq!((told.status(), room.services.creates()), ("failed", 7));
}

/// R96: many different calls are no avalanche of equal ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_different_calls_is_not_stopped_r96() {
    let room = Room::with("max_identical_calls = 2").await;
    for n in 0..8 {
        let ticket = json!({ "customer": "a", "subject": format!("s{n}"), "text": "t" });
        let made = room.ask("create_ticket", &format!("t{n}"), &ticket).await;
        assert_eq!(made.status(), "created");
    }
    assert_eq!(room.services.tickets().len(), 8);
}
