//! `report`: figures of real refunds, as text, JSON and CSV.

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

use cli::{Home, simulator};
use serde_json::json;

/// A home with one refund per currency, one of them with an outcome that nobody knows.
async fn three() -> (samekey::simulator::Simulator, Home) {
    let sim = simulator("saved-500-with-effect:1").await;
    let home = Home::with_provider(&sim.base_url(), "");
    for (order, amount, currency) in [
        ("1", "38.00", "usd"),
        ("2", "12.50", "usd"),
        ("3", "7", "eur"),
    ] {
        home.run(&[
            "submit",
            "issue_refund",
            "--run",
            "--arg",
            &format!("order_id={order}"),
            "--arg",
            &format!("amount={amount}"),
            "--arg",
            &format!("currency={currency}"),
        ]);
    }
    (sim, home)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_three_forms_tell_the_same() {
    let (sim, home) = three().await;
    let report = home.json(&["report"]);
    let total = &report["total"];
    assert_eq!(total["unknown"], 1, "{report}");
    assert_eq!(
        total["operations"],
        total["unknown"].as_u64().unwrap()
            + total["succeeded"].as_u64().unwrap()
            + total["failed"].as_u64().unwrap()
    );
    let usd = total["money"]
        .as_array()
        .and_then(|all| all.iter().find(|m| m["currency"] == "usd"))
        .expect("dollars");
    assert_eq!(usd["at_risk_cents"], 3_800);
    assert_eq!(usd["refunded_cents"], 1_250);
    assert_eq!(report["slots"].as_array().map(Vec::len), Some(48));
    let id = report["oldest_unknown"]["operation_id"]
        .as_str()
        .expect("an id");

    let text = home.ok(0, &["report", "--since", "1h"]).stdout;
    assert!(text.contains(&format!("oldest unknown: {id}")), "{text}");
    assert!(
        text.lines()
            .any(|l| l.starts_with("all") && l.contains("USD") && l.contains("38.00")),
        "{text}"
    );

    let csv = home.ok(0, &["report", "--since", "all", "--csv"]).stdout;
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("measure,tool,currency,from,value,amount")
    );
    assert!(
        csv.contains("\nat_risk,issue_refund,USD,,3800,38.00\n"),
        "{csv}"
    );
    assert!(csv.contains("\nunknown,,,,1,\n"), "{csv}");
    assert!(lines.all(|l| l.matches(',').count() == 5), "{csv}");
    drop(sim);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_nobody_used_has_zeros() {
    let (sim, home) = three().await;
    let report = home.json(&["report", "--tool", "other"]);
    assert_eq!(report["total"]["operations"], 0);
    assert_eq!(report["tools"], json!([]));
    let text = home.ok(0, &["report", "--tool", "other"]).stdout;
    assert!(text.contains("all "), "{text}");
    drop(sim);
}

#[test]
fn a_wrong_span_is_wrong_usage() {
    let home = Home::new();
    for since in ["yesterday", "0s", "24", ""] {
        let ran = home.ok(2, &["report", "--since", since]);
        assert!(ran.stderr.contains("24h or all"), "{ran:?}");
    }
    home.ok(2, &["report", "--csv", "--json"]);
    let ran = home.ok(3, &["report"]);
    assert!(ran.stderr.contains("there is no ledger yet"), "{ran:?}");
}
