//! `ops`: the row's JSON, member for member, and decisions with their exit codes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

#[path = "common/cli.rs"]
mod cli;

use std::io::Read as _;

use cli::{Home, simulator};
use samekey::simulator::Simulator;
use serde_json::{Value, json};

/// The contract's "Operation row as JSON", in its order.
const MEMBERS: &str = "operation_id tool identity order_id amount_cents currency payment charge after \
    status status_word effect held contradicted idempotency_key attempts attempts_max key_created_at \
    key_expires_at key_age_s reason verdict decidable_at provider provider_ref provider_url \
    last_outcome session_ids claimed_by snoozed_until proposal version created_at updated_at \
    unknown_at closed_at closed_by";
const REVIEWERS: &str = "[reviewers.anna]\nrole = \"reviewer\"\n[reviewers.ben]\nrole = \"lead\"\n\
    [reviewers.cleo]\nrole = \"lead\"\n[reviewers.vic]\nrole = \"viewer\"\n";

/// A home with one row after `scenario`, and the row's id.
async fn one(scenario: &str, more: &str) -> (Simulator, Home, String) {
    let sim = simulator(scenario).await;
    let home = Home::with_provider(&sim.base_url(), more);
    let result = home.json(&[
        "submit",
        "issue_refund",
        "--run",
        "--session",
        "s1",
        "--arg",
        "order_id=4417",
        "--arg",
        "amount=38.00",
        "--arg",
        "currency=usd",
    ]);
    let op = result["operation_id"].as_str().expect("an id").to_owned();
    (sim, home, op)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_has_the_members_of_the_contract() {
    let (sim, home, op) = one("saved-500-with-effect", "").await;
    let text = home.ok(0, &["ops", "list", "--json"]).stdout;
    let mut place = 0;
    for member in MEMBERS.split_whitespace() {
        let next = text[place..].find(&format!("\"{member}\":"));
        place += next.unwrap_or_else(|| panic!("{member} in the contract's order: {text}"));
    }
    let rows: Value = serde_json::from_str(&text).expect("one JSON array");
    let row = &rows[0];
    assert_eq!(
        row.as_object().expect("a row").len(),
        MEMBERS.split_whitespace().count()
    );
    assert_eq!(row["operation_id"], op.as_str());
    assert_eq!(
        row["identity"],
        json!({"amount_cents":3800,"order_id":"4417"})
    );
    assert_eq!(
        (&row["amount_cents"], &row["currency"]),
        (&json!(3800), &json!("usd"))
    );
    assert_eq!(
        (&row["status"], &row["status_word"]),
        (&json!("unknown"), &json!("unknown"))
    );
    assert_eq!(
        (&row["reason"], &row["effect"]),
        (&json!("server_error"), &json!("possible"))
    );
    assert_eq!(row["session_ids"], json!(["s1"]));
    for name in [
        "key_created_at",
        "key_expires_at",
        "unknown_at",
        "created_at",
        "decidable_at",
    ] {
        let at = row[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: {row}"));
        let shape: String = at
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{name}");
    }
    assert_eq!(
        (&row["closed_at"], &row["proposal"]),
        (&Value::Null, &Value::Null)
    );
    let shown = home.json(&["ops", "show", &op]);
    for member in MEMBERS.split_whitespace().filter(|m| *m != "key_age_s") {
        assert_eq!(shown[member], row[member], "{member}");
    }
    assert_eq!(shown["attempt_list"][0]["outcome"], "server_error");
    assert_eq!(shown["calls"][0]["result"]["status"], "checking");
    assert_eq!(shown["audit"].as_array().expect("audit").len(), 3);
    let closings = &shown["closings"];
    assert_eq!(closings[0]["as"], "refunded");
    assert_eq!(
        (&closings[0]["persons"], &closings[0]["needs_provider_ref"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(closings[1]["allowed"], false);
    assert_eq!(closings[1]["decidable_at"], row["decidable_at"]);
    sim.stop().await;
}

/// Lookup, close, close again: the whole life of an unknown row (I16, I19).
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_row_is_looked_up_and_closed() {
    let (sim, home, op) = one("saved-500-with-effect", "").await;
    let close = |outcome: &'static str| {
        [
            "ops",
            "close",
            op.as_str(),
            "--as",
            outcome,
            "--note",
            "seen",
            "--json",
        ]
        .map(str::to_owned)
    };
    let early = home.ok(1, &close("failed")).error();
    assert!(
        early["message"]
            .as_str()
            .expect("why")
            .contains("decidable at"),
        "I19: {early}"
    );
    home.ok(1, &close("refunded"));
    let looked = home.json(&["ops", "lookup", &op]);
    assert_eq!(looked["verdict"], "confirmed");
    assert_eq!(
        looked["operation"]["status"], "unknown",
        "a lookup closes nothing"
    );
    assert_eq!(
        home.ok(1, &["ops", "lookup", &op, "--json"]).error()["code"],
        "lookup_busy"
    );
    let stale = [
        &close("refunded")[..],
        &["--expect-version".to_owned(), "1".to_owned()],
    ]
    .concat();
    assert_eq!(home.ok(1, &stale).error()["code"], "moved_on", "I18");
    let closed = home.ok(0, &close("refunded")).json();
    assert_eq!(closed["version_seen"], looked["operation"]["version"]);
    assert_eq!(closed["operation"]["status_word"], "refunded");
    let again = home.ok(0, &close("succeeded")).json();
    assert!(
        again["message"].as_str().expect("says").contains("already"),
        "{again}"
    );
    assert_eq!(
        home.ok(1, &close("failed")).error()["code"],
        "already_closed"
    );
    let notes = home.json(&["ops", "show", &op]);
    assert_eq!(notes["notes"][0]["note"], "seen");
    assert_eq!(sim.effects().len(), 1, "closing never sends");
    home.ok(0, &["verify"]);
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_two_people_is_a_proposal_and_exit_1() {
    let (sim, home, op) = one("saved-500-with-effect", REVIEWERS).await;
    let object = sim
        .effects()
        .first()
        .map(|e| e.refund_id.clone())
        .expect("the refund");
    let by = |who: &'static str, rest: &[&str]| {
        let args = ["--reviewer", who, "--json", "ops"].map(str::to_owned);
        [
            &args[..],
            &rest.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ]
        .concat()
    };
    let propose = [
        "close",
        &op,
        "--as",
        "refunded",
        "--note",
        "in the dashboard",
        "--provider-ref",
        &object,
    ];
    home.ok(4, &by("vic", &propose));
    home.ok(4, &by("stranger", &propose));
    let proposed = home.ok(1, &by("anna", &propose)).json();
    assert_eq!(proposed["proposed"], true);
    assert_eq!(proposed["operation"]["proposal"]["by"], "anna");
    let approve = ["approve", &op, "--note", "I see it, too"];
    home.ok(4, &by("anna", &approve));
    let approved = home.ok(0, &by("ben", &approve)).json();
    assert_eq!(approved["operation"]["status"], "succeeded");
    assert_eq!(approved["operation"]["provider_ref"], object);
    assert_eq!(
        home.ok(1, &by("cleo", &approve)).error()["code"],
        "nothing_to_approve",
        "M28"
    );
    home.ok(0, &["verify"]);
    sim.stop().await;
}

/// Without reviewers a second person is refused, with the lines to add.
#[tokio::test(flavor = "multi_thread")]
async fn alone_the_second_person_is_refused() {
    let (sim, home, op) = one("saved-500-with-effect", "").await;
    let object = sim
        .effects()
        .first()
        .map(|e| e.refund_id.clone())
        .expect("the refund");
    let close = [
        "ops",
        "close",
        &op,
        "--as",
        "refunded",
        "--note",
        "x",
        "--provider-ref",
        &object,
    ];
    let ran = home.ok(1, &close);
    assert!(ran.stderr.contains("[reviewers."), "{ran:#?}");
    home.ok(4, &[&["--reviewer", "bob"][..], &close].concat());
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_row_is_approved_or_rejected_by_a_lead() {
    let caps = format!("[tools.issue_refund.caps.usd]\napprove_over_cents = 100\n{REVIEWERS}");
    let (sim, home, op) = one("honest", &caps).await;
    let decide = |who, verb| {
        [
            "--reviewer",
            who,
            "ops",
            verb,
            op.as_str(),
            "--note",
            "n",
            "--json",
        ]
        .map(str::to_owned)
    };
    home.ok(4, &decide("anna", "approve"));
    let rejected = home.ok(0, &decide("ben", "reject")).json();
    assert_eq!(rejected["operation"]["status"], "failed");
    assert!(sim.effects().is_empty());
    home.ok(1, &decide("ben", "approve"));
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_row_is_stopped_and_a_note_is_kept() {
    let (sim, home, op) = one(
        "reset-after-commit",
        "[tools.issue_refund]\nmax_per_call = 1\n",
    )
    .await;
    home.ok(0, &["ops", "note", &op, "--note", "asked the customer"]);
    let stopped = home.json(&["ops", "stop", &op, "--note", "enough"]);
    let row = &stopped["operation"];
    assert_eq!(
        (&row["status"], &row["reason"]),
        (&json!("unknown"), &json!("stopped"))
    );
    let shown = home.json(&["ops", "show", &op]);
    let notes: Vec<_> = shown["notes"]
        .as_array()
        .expect("notes")
        .iter()
        .map(|n| &n["note"])
        .collect();
    assert_eq!(notes, [&json!("asked the customer"), &json!("enough")]);
    assert_eq!(
        home.ok(1, &["ops", "correct", &op, "--note", "x", "--json"])
            .error()["code"],
        "refused"
    );
    let text = home.ok(0, &["ops", "show", &op]).stdout;
    for part in [
        "38.00",
        "3800 minor units",
        "stopped",
        "history",
        "closings",
        "enough",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_at_a_silent_provider_is_exit_3() {
    let (sim, home, op) = one("saved-500-with-effect", "").await;
    sim.stop().await;
    let error = home.ok(3, &["ops", "lookup", &op, "--json"]).error();
    assert_eq!(error["code"], "provider_unreachable");
    let shown = home.json(&["ops", "show", &op]);
    assert_eq!(
        shown["lookups"][0]["kind"], "unreachable",
        "it is evidence all the same"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_paged_and_end_quietly() {
    let sim = simulator("honest").await;
    let home = Home::with_provider(&sim.base_url(), "[tools.issue_refund]\nrate = \"1000/s\"\n");
    for order in ["a1", "a2", "b1"] {
        let order = format!("order_id={order}");
        home.json(&[
            "submit",
            "issue_refund",
            "--run",
            "--arg",
            &order,
            "--arg",
            "amount=1",
            "--arg",
            "currency=usd",
        ]);
    }
    let orders = |args: &[&str]| -> Vec<String> {
        let rows = home.json(&[&["ops", "list"], args].concat());
        let rows = rows.as_array().expect("an array").iter();
        rows.map(|r| r["order_id"].as_str().expect("an order").to_owned())
            .collect()
    };
    assert_eq!(orders(&["--order", "a2"]), ["a2"]);
    assert_eq!(
        orders(&["--status", "refunded", "--sort", "order"]).len(),
        3
    );
    assert_eq!(orders(&["--status", "unknown"]).len(), 0);
    assert_eq!(orders(&["--search", "a"]).len(), 2, "two orders begin so");
    assert_eq!(
        orders(&["--search", "order_"]).len(),
        3,
        "nothing begins so"
    );
    assert_eq!(orders(&["--search", "100%"]).len(), 0, "literally");
    let all = home.json(&["ops", "list", "--sort", "created"]);
    let first = orders(&["--sort", "created", "--limit", "1"]);
    let after = all[0]["operation_id"].as_str().expect("an id");
    let rest = orders(&["--sort", "created", "--after", after]);
    assert_eq!([first, rest].concat(), ["b1", "a2", "a1"]);
    let limited = home.ok(0, &["ops", "list", "--limit", "2"]);
    assert!(limited.stderr.contains("--after"), "{limited:#?}");
    assert_eq!(limited.stdout.lines().count(), 3);

    // A reader that goes away.
    let mut child = home
        .command(&["ops", "list", "--json"])
        .spawn()
        .expect("started");
    drop(child.stdout.take());
    let mut errors = String::new();
    child
        .stderr
        .take()
        .expect("stderr")
        .read_to_string(&mut errors)
        .expect("read");
    assert_eq!(child.wait().expect("ended").code(), Some(0), "{errors}");
    assert!(errors.is_empty(), "{errors}");
    sim.stop().await;
}
