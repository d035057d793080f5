//! `samekey reconcile --once`: what it prints and how it ends.

use crate::binary::{Home, simulator};

const ARGS: &str = r#"{"order_id":"4417","amount_cents":3800,"currency":"usd"}"#;

/// A row that a 500 left unknown is found, closed and told; contract "reconcile --once".
#[tokio::test(flavor = "multi_thread")]
async fn one_run_closes_what_exists_and_says_so() {
    let provider = simulator("saved-500-with-effect:1").await;
    let home = Home::with_provider(&provider.base_url(), "");
    let asked = home.json(&["submit", "issue_refund", "--json-args", ARGS, "--run"]);
    assert_eq!(asked["status"], "checking", "{asked}");
    let told = home.json(&["reconcile", "--once"]);
    assert_eq!(told["looked"], 1, "{told}");
    assert_eq!(told["matched"][0]["status"], "succeeded", "{told}");
    assert_eq!(told["matched"][0]["verdict"], "confirmed");
    for none in [
        "unmatched",
        "ambiguous",
        "contradicted",
        "ageing",
        "unanswered",
    ] {
        assert_eq!(
            told[none].as_array().map(Vec::len),
            Some(0),
            "{none}: {told}"
        );
    }
    let row = &home.json(&["ops", "list"])[0];
    assert_eq!(
        (row["status"].as_str(), row["closed_by"].as_str()),
        (Some("succeeded"), Some("reconciler"))
    );
    let text = home.ok(0, &["reconcile", "--once"]).stdout;
    assert!(text.starts_with("0 looked at: 0 matched"), "{text}");
    home.ok(0, &["verify"]);
    provider.stop().await;
}

/// Without an effect nothing is closed; without a provider it says so with 3; without `--once` it is 2.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_closed_and_silence_is_exit_3() {
    let provider = simulator("saved-500-without-effect:1").await;
    let home = Home::with_provider(&provider.base_url(), "");
    home.ok(3, &["reconcile", "--once"]);
    home.json(&["submit", "issue_refund", "--json-args", ARGS, "--run"]);
    let told = home.json(&["reconcile", "--once"]);
    assert_eq!(told["unmatched"][0]["status"], "unknown", "{told}");
    assert_eq!(home.json(&["ops", "list"])[0]["status"], "unknown");
    provider.stop().await;
    let silent = home.ok(3, &["reconcile", "--once", "--json"]).json();
    assert_eq!(
        silent["unanswered"].as_array().map(Vec::len),
        Some(1),
        "{silent}"
    );
    home.ok(2, &["reconcile"]);
}

/// A row that evidence contradicts is told for as long as it is, although it is closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_contradicted_row_is_named_until_it_is_corrected() {
    let provider = simulator("copied-metadata:1").await;
    let home = Home::with_provider(&provider.base_url(), "timeout = \"1s\"\n");
    home.run(&["submit", "issue_refund", "--json-args", ARGS, "--run"]);
    home.json(&["reconcile", "--once"]);
    let told = home.json(&["reconcile", "--once"]);
    let named = &told["contradicted"][0];
    assert_eq!(named["contradicted"], "second_effect", "{told}");
    let id = named["operation_id"].as_str().expect("an id");
    let correct = ["ops", "correct", id, "--note", "two refunds"];
    home.ok(0, &correct);
    let told = home.json(&["reconcile", "--once"]);
    assert_eq!(
        told["contradicted"].as_array().map(Vec::len),
        Some(0),
        "{told}"
    );
    home.ok(0, &["verify"]);
    provider.stop().await;
}
