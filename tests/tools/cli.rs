//! Described tools through the real binary: checked, asked for, listed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use samekey::simulator::Services;
use serde_json::{Value, json};

use crate::binary::Home;

const TOKEN: &str = "hd_token_never_shown";

fn home(origin: &str) -> Home {
    let mut home = Home::new();
    home.config(&format!(
        r#"
        [providers.helpdesk]
        kind = "http"
        base_url = "{origin}"
        api_key_env = "HELPDESK_TOKEN"
        keys = "lookup"
        settle_time = "1s"
        [tools.create_ticket]
        provider = "helpdesk"
        description = "create_ticket"
        "#
    ));
    home.set("HELPDESK_TOKEN", TOKEN);
    home
}

/// The seed's support agent on the command line: one ticket, asked for twice; a row without order and amount
/// says so with null; the token is nowhere (R80, I30).
#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_submitted_listed_and_audited() {
    let services = Services::start().await.expect("a port");
    let home = home(&services.origin());
    let submit = [
        "submit",
        "create_ticket",
        "--arg",
        "customer=anna@example.com",
        "--arg",
        "subject=Where is my parcel?",
        "--arg",
        "text=Order 4417.",
        "--run",
    ];
    let made = home.json(&submit);
    assert_eq!(
        (&made["status"], &made["ticket_id"]),
        (&json!("created"), &json!("1")),
        "{made}"
    );
    assert_eq!(
        made["customer_message"],
        "Your request has been carried out."
    );
    let again = home.json(&submit);
    assert_eq!(
        (&again["repeat"], &again["ticket_id"]),
        (&json!(true), &json!("1"))
    );
    assert_eq!(services.creates(), 1);
    let rows = home.json(&["ops", "list"]);
    let row = &rows[0];
    assert_eq!(row["status_word"], "created");
    for name in ["order_id", "amount_cents", "currency", "payment", "charge"] {
        assert_eq!(row[name], Value::Null, "{name}");
    }
    let id = row["operation_id"].as_str().expect("an id");
    let shown = home.ok(0, &["ops", "show", id]);
    assert!(
        shown.stdout.contains("anna@example.com"),
        "{}",
        shown.stdout
    );
    home.ok(0, &["ops", "list"]);
    home.ok(0, &["verify"]);
    for ran in [shown, home.ok(0, &["config", "show"])] {
        assert!(!format!("{ran:?}").contains(TOKEN), "I30");
    }
}

/// A described tool is offered to models with its own schema and `after`, and called like any other (R64, R98).
#[tokio::test(flavor = "multi_thread")]
async fn a_described_tool_is_offered_over_mcp_r64_r98() {
    let services = Services::start().await.expect("a port");
    let home = home(&services.origin());
    let arguments =
        json!({"customer": "anna@example.com", "subject": "Where?", "text": "Order 4417."});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let mut child = home
        .command(&["mcp"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("started");
    let mut to = child.stdin.take().expect("its input");
    let mut from = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut ask = |id: u32, method: &str, params: &Value| -> Value {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(to, "{line}").expect("written");
        let said = from.next().expect("a line").expect("text");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["id"], id, "{said}");
        said["result"].clone()
    };
    ask(1, "initialize", &hello);
    let listed = ask(2, "tools/list", &json!({}));
    let tools = listed["tools"].as_array().expect("tools");
    let ticket = tools.iter().find(|t| t["name"] == "create_ticket");
    let properties = &ticket.expect("it is offered")["inputSchema"]["properties"];
    for name in ["customer", "subject", "text", "after"] {
        assert!(properties[name].is_object(), "{name}: {properties}");
    }
    let call = json!({"name": "create_ticket", "arguments": arguments});
    let made = ask(3, "tools/call", &call);
    assert_eq!(made["structuredContent"]["status"], "created", "{made}");
    let again = ask(4, "tools/call", &call);
    assert_eq!(again["structuredContent"]["repeat"], true, "{again}");
    drop(to);
    child.wait().expect("it ended");
    assert_eq!(services.creates(), 1);
    let state = home.json(&["ops", "list"]);
    assert_eq!(state.as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_check_runs_the_samples_of_all_or_of_one() {
    let home = home("http://127.0.0.1:9");
    let all = home.json(&["tools", "check"]);
    let names: Vec<_> = all
        .as_array()
        .expect("all")
        .iter()
        .map(|t| &t["tool"])
        .collect();
    assert_eq!(names, ["create_ticket", "send_message"]);
    let one = home.json(&["tools", "check", "send_message"]);
    assert_eq!(
        (&one[0]["wrong"], one[0]["samples"].as_u64() > Some(5)),
        (&json!([]), true)
    );
    let none = home.ok(2, &["tools", "check", "magic"]);
    assert!(none.stderr.contains("magic"), "{}", none.stderr);
}
