//! The demo as a whole: both clients over real HTTP, counted, and counted again.
#![allow(clippy::expect_used, reason = "a test says what it needed and stops")]

use std::time::Duration;

use samekey::demo::{DemoConfig, DemoError, Summary, catalogue, headless, snapshot, start};
use samekey::tui::UiOptions;

fn config(seed: u64, calls: u32) -> DemoConfig {
    DemoConfig {
        seed,
        calls,
        ..DemoConfig::default()
    }
}

async fn run(config: DemoConfig) -> Summary {
    headless(config).await.expect("a run to its end")
}

/// Everything but the time it took.
fn counts(summary: Summary) -> Summary {
    Summary {
        elapsed_ms: 0,
        ..summary
    }
}

/// R1, I1: however often it is asked for, one intent is refunded at most once; the naive client under
/// the same faults and calls pays some of them twice.
async fn pays_once_and_counts_the_same_twice(seed: u64) {
    let first = run(config(seed, 60)).await;
    assert_eq!((first.calls, first.answered), (60, 60));
    assert_eq!(first.duplicate_effects, 0);
    assert_eq!(first.violations, 0);
    assert!(first.naive_duplicate_effects > 0, "{first}");
    assert!(first.operations.succeeded > 0, "{first}");
    assert!(first.provider_effects <= first.intents);
    let second = run(config(seed, 60)).await;
    assert_eq!(counts(first), counts(second), "same seed, same counts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r1_seed_1_pays_once_and_counts_the_same_twice() {
    pays_once_and_counts_the_same_twice(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r1_seed_2_pays_once_and_counts_the_same_twice() {
    pays_once_and_counts_the_same_twice(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r1_seed_3_pays_once_and_counts_the_same_twice() {
    pays_once_and_counts_the_same_twice(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_faults_only_lost_answers_make_the_naive_client_pay_twice_r62() {
    let honest = DemoConfig {
        scenario: Some("honest".into()),
        ..config(5, 40)
    };
    let summary = run(honest).await;
    assert_eq!(summary.provider_effects, summary.intents, "{summary}");
    assert_eq!(summary.operations.succeeded, summary.intents);
    assert_eq!(summary.attempts, summary.intents);
    assert!(summary.naive_duplicate_effects > 0, "{summary}");
}

#[tokio::test]
async fn a_wrong_scenario_and_a_strangers_file_are_usage_errors() {
    let unknown = DemoConfig {
        scenario: Some("nonsense".into()),
        ..config(1, 1)
    };
    let error = headless(unknown).await.expect_err("refused");
    assert!(
        error.is_usage() && error.to_string().contains("mixed"),
        "{error}"
    );
    let dir = tempfile::tempdir().expect("directory");
    let file = dir.path().join("notes.txt");
    std::fs::write(&file, "not a ledger, but mine").expect("written");
    let kept = DemoConfig {
        keep: Some(file.clone()),
        ..config(1, 1)
    };
    let error = headless(kept).await.expect_err("refused");
    assert!(
        matches!(error, DemoError::NotADemo(_)) && error.is_usage(),
        "{error}"
    );
    let left = std::fs::read_to_string(&file).expect("still there");
    assert_eq!(left, "not a ledger, but mine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_ledger_takes_a_further_run_with_orders_of_its_own_and_prefilled_rows() {
    let dir = tempfile::tempdir().expect("directory");
    let kept = || DemoConfig {
        keep: Some(dir.path().join("demo.db")),
        scenario: Some("honest".into()),
        rows: 120,
        ..config(9, 12)
    };
    let first = run(kept()).await;
    assert!(
        first.provider_effects > 0 && first.violations == 0,
        "{first}"
    );
    let second = run(kept()).await;
    assert_eq!(
        counts(first),
        counts(second),
        "counted are the rows of the run alone"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_screen_rows_soon_turn_refunded_failed_and_unknown() {
    let mut demo = start(DemoConfig {
        speed: Some(10),
        ..config(1, 0)
    })
    .await
    .expect("a demo");
    let began = demo.clock.now();
    let mut changed = demo.ledger.changed();
    loop {
        let counts = demo.ledger.counts().await.expect("counts");
        if counts.succeeded >= 5 && counts.failed >= 1 && counts.unknown >= 1 {
            break;
        }
        let passed = (demo.clock.now() - began).num_minutes();
        assert!(passed < 10, "{counts:?}");
        changed.changed().await.expect("an open ledger");
    }
    let board = demo
        .scoreboard
        .wait_for(|lines| !lines[0].contains(" 0 refunds"));
    let board = tokio::time::timeout(Duration::from_secs(30), board).await;
    let board = board.expect("in time").expect("a scoreboard").clone();
    assert!(
        board[0].starts_with("samekey") && board[0].ends_with(" 0 paid twice"),
        "{board:?}"
    );
    assert!(board[1].starts_with("naive client"), "{board:?}");
    assert_eq!(demo.kept, None);
    demo.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_one_frame_after_a_counted_run() {
    let demo = DemoConfig {
        scenario: Some("saved-500-with-effect:2".into()),
        ..config(4, 10)
    };
    let frame = snapshot(demo, UiOptions::default(), 120, 30)
        .await
        .expect("a frame");
    assert_eq!(frame.lines().count(), 30);
    assert!(frame.contains("SIMULATOR stripe"), "{frame}");
    assert!(frame.contains("0 paid twice"), "{frame}");
    assert!(frame.contains("unknown"), "{frame}");
}

#[test]
fn the_catalogue_has_a_line_for_every_scenario() {
    let lines = catalogue();
    assert!(lines.len() > 20);
    assert!(lines.iter().any(|l| l.starts_with("mixed ")));
    assert!(lines.iter().all(|l| l.ends_with('.')));
}
