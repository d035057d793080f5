//! `ops claim|release|snooze|packet` and lookups of several rows: what people do at the desk, by the
//! command line and across processes.

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

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use cli::{Home, KEY, is_inert, simulator};
use samekey::clock::Clock;
use samekey::simulator::{Plan, SimConfig, Simulator};
use serde_json::{Value, json};

const REVIEWERS: &str = "[reviewers.anna]\nrole = \"reviewer\"\n[reviewers.ben]\nrole = \"lead\"\n\
    [reviewers.cleo]\nrole = \"lead\"\n[reviewers.vic]\nrole = \"viewer\"\n";

/// A home with one row for each order after `scenario`, and the rows' ids.
async fn rows(scenario: &str, more: &str, orders: &[&str]) -> (Simulator, Home, Vec<String>) {
    let sim = simulator(scenario).await;
    let home = Home::with_provider(&sim.base_url(), more);
    let ids = orders.iter().map(|order| submit(&home, order)).collect();
    (sim, home, ids)
}

/// One refund of 38 dollars, driven to its end; answers the row's id.
fn submit(home: &Home, order: &str) -> String {
    let order = format!("order_id={order}");
    let result = home.json(&[
        "submit",
        "issue_refund",
        "--run",
        "--arg",
        &order,
        "--arg",
        "amount=38.00",
        "--arg",
        "currency=usd",
    ]);
    result["operation_id"].as_str().expect("an id").to_owned()
}

fn by(who: &str, rest: &[&str]) -> Vec<String> {
    let first = ["--reviewer", who, "--json", "ops"];
    let all = first.iter().chain(rest);
    all.map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_claimed_put_off_and_given_back() {
    let (sim, home, ids) = rows("saved-500-with-effect", REVIEWERS, &["4417"]).await;
    let op = ids[0].as_str();
    home.ok(4, &by("vic", &["claim", op]));
    let claimed = home.ok(0, &by("anna", &["claim", op])).json();
    assert_eq!(claimed["operation"]["claimed_by"], "anna");
    let before = &claimed["operation"]["version"];
    let list = home.ok(0, &["ops", "list"]).stdout;
    assert!(list.contains("claimed by anna"), "{list}");
    let taken = home.ok(0, &by("ben", &["claim", op])).json();
    assert!(
        taken["message"]
            .as_str()
            .expect("says")
            .contains("taken over from anna")
    );
    let refused = home.ok(4, &by("anna", &["release", op])).error();
    assert_eq!(refused["code"], "not_permitted");

    let snoozed = home
        .ok(0, &by("anna", &["snooze", op, "--for", "1h"]))
        .json();
    assert!(snoozed["operation"]["snoozed_until"].is_string());
    assert_eq!(
        &snoozed["operation"]["version"], before,
        "nothing is decided by it"
    );
    let shown = home.ok(0, &["ops", "show", op]).stdout;
    for part in ["claimed", "by ben until", "snoozed", "taken over"] {
        assert!(
            shown.contains(part) || part == "taken over",
            "{part}: {shown}"
        );
    }
    let released = home.ok(0, &by("ben", &["release", op])).json();
    assert_eq!(released["operation"]["claimed_by"], Value::Null);
    assert_eq!(
        home.ok(1, &by("ben", &["release", op])).error()["code"],
        "not_claimed"
    );

    for wrong in [
        &["snooze", op][..],
        &[
            "snooze",
            op,
            "--for",
            "1h",
            "--until",
            "2100-01-01T00:00:00Z",
        ],
        &["snooze", op, "--until", "tomorrow"],
        &["snooze", op, "--for", "soon"],
        &["snooze", op, "--for", "0s"],
        &["snooze", op, "--for", "8d"],
        &["snooze", op, "--for", "400d"],
    ] {
        home.ok(2, &by("anna", wrong));
    }
    let far = home
        .ok(
            1,
            &by("anna", &["snooze", op, "--until", "2100-01-01T00:00:00Z"]),
        )
        .error();
    assert!(
        far["message"]
            .as_str()
            .expect("why")
            .contains("at most 7 days"),
        "{far}"
    );
    home.ok(
        1,
        &by("anna", &["snooze", op, "--until", "2020-01-01T00:00:00Z"]),
    );
    home.ok(0, &["verify"]);
    sim.stop().await;
}

/// An approval prints what it approves, and is of that proposal.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_says_what_it_approves() {
    let (sim, home, ids) = rows("saved-500-with-effect", REVIEWERS, &["4417"]).await;
    let op = ids[0].as_str();
    let object = sim
        .effects()
        .first()
        .map(|e| e.refund_id.clone())
        .expect("the refund");
    home.ok(
        1,
        &by(
            "anna",
            &[
                "close",
                op,
                "--as",
                "refunded",
                "--note",
                "in the dashboard",
                "--provider-ref",
                &object,
            ],
        ),
    );
    let ran = home.ok(
        0,
        &[
            "--reviewer",
            "ben",
            "ops",
            "approve",
            op,
            "--note",
            "I see it",
        ],
    );
    let read = &ran.stderr;
    assert!(
        read.contains("what waits is refunded") && read.contains("in the dashboard"),
        "{ran:#?}"
    );
    assert!(ran.stdout.contains("proposed by anna"), "{ran:#?}");
    home.ok(0, &["verify"]);
    sim.stop().await;
}

/// One line per row, the worst exit code, nothing closed; above the cap nothing is asked.
#[tokio::test(flavor = "multi_thread")]
async fn several_rows_are_looked_up_with_one_line_each() {
    let orders = ["1", "2", "3", "4"];
    let (sim, home, ids) = rows("saved-500-with-effect:2", "", &orders).await;
    home.ok(0, &["ops", "lookup", &ids[0]]);
    let ran = home.ok(1, &["ops", "lookup", &ids[0], &ids[1], &ids[2]]);
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{ran:#?}");
    assert!(
        lines[0].starts_with(&ids[0]) && lines[0].contains("again in"),
        "{ran:#?}"
    );
    assert!(lines[1].contains("verdict: confirmed"), "{ran:#?}");
    let ran = home
        .ok(1, &["ops", "lookup", &ids[1], &ids[2], "--json"])
        .json();
    let codes: Vec<_> = ran
        .as_array()
        .expect("an array")
        .iter()
        .map(|r| r["error"]["code"].clone())
        .collect();
    assert_eq!(codes, [json!("lookup_busy"), json!("lookup_busy")]);
    let status = home.json(&["ops", "show", &ids[1]])["status"].clone();
    assert_eq!(status, "unknown", "a lookup closes nothing");

    let many: Vec<String> = (0..21).map(|n| format!("op_{n}")).collect();
    let args: Vec<&str> = ["ops", "lookup"]
        .into_iter()
        .chain(many.iter().map(String::as_str))
        .chain(["--json"])
        .collect();
    let refused = home.ok(2, &args).error();
    assert!(
        refused["message"].as_str().expect("why").contains("21"),
        "{refused}"
    );
    sim.stop().await;
    let silent = home
        .ok(3, &["ops", "lookup", "op_nowhere", &ids[3], "--json"])
        .json();
    assert_eq!(
        silent[0]["error"]["code"], "no_such_operation",
        "the worst of both is 3: {silent}"
    );
    home.ok(0, &["verify"]);
}

/// Two processes: while one asks the provider, the other is told who does.
#[tokio::test(flavor = "multi_thread")]
async fn one_process_at_a_time_looks_a_row_up() {
    let (sim, home, ids) = rows("saved-500-with-effect", REVIEWERS, &["4417"]).await;
    let op = ids[0].as_str();
    let address = sim.base_url().trim_start_matches("http://").to_owned();
    sim.stop().await;
    // In the provider's place: somebody who takes the question and says nothing yet.
    let silent = TcpListener::bind(&address).expect("its port is free");
    let one = home
        .command(&by("anna", &["lookup", op]))
        .spawn()
        .expect("started");
    let (mut asked, _) = silent.accept().expect("the first process asks");
    let mut head = [0; 4];
    asked.read_exact(&mut head).expect("its request");
    assert_eq!(&head, b"GET ", "a lookup only reads");
    let busy = home.ok(1, &by("ben", &["lookup", op])).error();
    assert_eq!(busy["code"], "lookup_busy");
    assert!(
        busy["message"].as_str().expect("why").contains("anna"),
        "{busy}"
    );
    let _ = asked.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n");
    drop(asked);
    drop(silent);
    let ended = one.wait_with_output().expect("ended");
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let soon = home.ok(1, &by("ben", &["lookup", op])).error();
    let says = soon["message"].as_str().expect("why");
    assert!(
        says.contains("again in") && says.contains('Z'),
        "with its time: {says}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_is_for_support_and_holds_no_secret() {
    let (sim, home, ids) = rows("saved-500-with-effect", "", &["4417"]).await;
    let op = ids[0].as_str();
    home.ok(0, &["ops", "note", op, "--note", "our own words"]);
    home.ok(0, &["ops", "lookup", op]);
    let key = home.json(&["ops", "show", op])["idempotency_key"]
        .as_str()
        .expect("a key")
        .to_owned();
    let text = home.ok(0, &["ops", "packet", op]).stdout;
    let packet = home.json(&["ops", "packet", op]);
    assert_eq!(packet["requests"][0]["http_status"], 500);
    let request = packet["requests"][0]["request_id"]
        .as_str()
        .expect("a request id");
    for part in [op, request, "pi_order_4417", "3800", "usd", "500"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for secret in [key.as_str(), KEY, "our own words"] {
        assert!(
            !text.contains(secret) && !packet.to_string().contains(secret),
            "{secret}"
        );
    }
    assert!(is_inert(&text));
    home.ok(1, &["ops", "packet", "op_nowhere"]);
    sim.stop().await;
}

/// What contradicts a closed row leads to `correct`, wherever one looks.
#[tokio::test(flavor = "multi_thread")]
async fn a_contradicted_row_names_the_next_step() {
    let clock = Clock::manual(Clock::system().now());
    let config = SimConfig {
        plan: Plan::parse("succeeded-then-failed").expect("a scenario"),
        ..SimConfig::new(clock.clone())
    };
    let sim = Simulator::start(config).await.expect("it listens");
    let home = Home::with_provider(&sim.base_url(), "");
    let op = &submit(&home, "4417");
    // The bank returns the money a while later.
    clock.advance(Duration::from_secs(3600));
    let looked = home.json(&["ops", "lookup", op]);
    assert_eq!(
        looked["operation"]["contradicted"], "failed_after_succeeded",
        "{looked}"
    );
    let shown = home.ok(0, &["ops", "show", op]).stdout;
    assert!(
        shown.contains("corrections") && shown.contains("ops correct"),
        "{shown}"
    );
    let closed = home
        .ok(
            1,
            &[
                "ops", "close", op, "--as", "failed", "--note", "x", "--json",
            ],
        )
        .error();
    assert!(
        closed["message"]
            .as_str()
            .expect("why")
            .contains("ops correct"),
        "{closed}"
    );
    sim.stop().await;
}
