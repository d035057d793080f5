//! Described tools through the real binary: checked, asked for, listed.

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
