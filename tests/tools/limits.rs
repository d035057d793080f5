//! What a described tool may cost: counts, risk.

use samekey::domain::operation::Status;
use samekey::domain::tool_call::{RejectClass, ToolResult};
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
