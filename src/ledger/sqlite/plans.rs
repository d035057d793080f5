//! How SQLite reads what the screen, the sweep and the counts ask for: no statement goes through a whole
//! large table, none sorts one. Plans depend on the schema alone (`ANALYZE` is never run), so an empty
//! ledger tells as well as one of a million rows.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _, SqliteConnection};

use super::open::MIGRATIONS;
use super::{
    calls, counts, events, feeds, listings, narrow, operations, pages, read, report, review_list,
    serving, store, watched,
};

async fn empty() -> SqliteConnection {
    let options = SqliteConnectOptions::new().in_memory(true);
    let mut conn = options.connect().await.expect("a connection");
    let made = MIGRATIONS.run_direct(None, &mut conn, false).await;
    made.expect("the schema");
    conn
}

async fn plan(conn: &mut SqliteConnection, sql: &str) -> Vec<String> {
    let mut explain = sqlx::QueryBuilder::<sqlx::Sqlite>::new("EXPLAIN QUERY PLAN ");
    explain.push(sql);
    let steps = explain.build().fetch_all(conn).await;
    let steps = steps.unwrap_or_else(|e| unreachable!("{sql}: {e}"));
    steps.iter().map(|step| step.get("detail")).collect()
}

/// Steps that read a whole table or index that may be large.
fn scans(plan: &[String]) -> Vec<&String> {
    // Providers, lists that were given, steps in between, tallies, and indexes of a few rows.
    const SMALL: [&str; 20] = [
        "whose",
        "j VIRTUAL TABLE",
        "json_each VIRTUAL TABLE",
        "(subquery",
        "p",
        "s",
        "u",
        "spelled",
        "providers",
        "CONSTANT ROW",
        "2 CONSTANT ROWS",
        "3 CONSTANT ROWS",
        "tallies",
        "one_in_flight",
        "evidence_typed",
        "operations_contradicted",
        "operations_to_approve",
        "operations_unknown",
        "operations_sent_open",
        "operations_snoozed",
    ];
    let small = |step: &str| {
        SMALL.iter().any(|s| {
            step.contains(&format!(" {s}")) && (s.len() > 1 || step == format!("SCAN {s}"))
        })
    };
    plan.iter()
        .filter(|step| step.starts_with("SCAN") && !small(step))
        .collect()
}

#[tokio::test]
async fn no_list_scans_or_sorts_a_large_table() {
    let mut conn = empty().await;
    let walks = pages::statements().into_iter();
    let all = walks
        .chain(review_list::statements())
        .chain(feeds::statements())
        .chain(report::statements())
        .chain([counts::COUNTED])
        .map(str::to_owned)
        .chain(narrow::statements());
    for sql in all {
        let plan = plan(&mut conn, &sql).await;
        assert_eq!(scans(&plan), Vec::<&String>::new(), "{sql}\n{plan:#?}");
        let sorts = plan
            .iter()
            .any(|step| step.contains("TEMP B-TREE FOR ORDER"));
        assert!(!sorts, "{sql}\n{plan:#?}");
        // From where the page before ended, not from the beginning of the status.
        let from_the_top = plan
            .iter()
            .any(|step| step.contains("operations_by_") && step.ends_with("(status=?)"));
        assert!(!from_the_top, "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn the_sweep_reads_what_is_open_and_no_more() {
    let mut conn = empty().await;
    let plan = plan(&mut conn, read::SWEEPABLE).await;
    assert_eq!(scans(&plan), Vec::<&String>::new(), "{plan:#?}");
}

/// The writer's lock is held meanwhile: every other process waits.
#[tokio::test]
async fn an_engine_finds_its_calls_among_those_without_an_answer() {
    let mut conn = empty().await;
    for sql in [calls::RUNNING, calls::WAITING] {
        let plan = plan(&mut conn, sql).await;
        let searched = plan.first().is_some_and(|step| {
            step.starts_with("SEARCH") && step.contains("tool_calls_waiting (state=?")
        });
        assert!(searched, "{sql}\n{plan:#?}");
    }
}

/// What an agent asks for costs what its own calls are, however many others there are.
#[tokio::test]
async fn an_agents_own_are_found_by_its_name() {
    let mut conn = empty().await;
    for (sql, index) in [
        (serving::ANSWERED_OF, "(agent=? AND call_id=?)"),
        (serving::WAITING_OF, "tool_calls_waiting_of (agent=?)"),
        (
            serving::OWN,
            "tool_calls_of_agent (agent=? AND operation_id>?)",
        ),
        (
            serving::OWN_ONE,
            "tool_calls_of_agent (agent=? AND operation_id=?)",
        ),
    ] {
        let plan = plan(&mut conn, sql).await;
        assert!(plan.iter().any(|s| s.contains(index)), "{sql}\n{plan:#?}");
        let large: Vec<_> = scans(&plan).into_iter().cloned().collect();
        assert_eq!(large, Vec::<String>::new(), "{sql}\n{plan:#?}");
        let sorts = plan.iter().any(|s| s.contains("TEMP B-TREE FOR ORDER"));
        assert!(!sorts, "{sql}\n{plan:#?}");
    }
}

/// Under the writer's lock: what a call may meet, what its tool began of late, and what an approved row was
/// asked for.
#[tokio::test]
async fn a_row_is_opened_by_the_indexes_of_order_payment_identity_and_tool() {
    let mut conn = empty().await;
    for (sql, indexes) in [
        (
            store::ORDER_ROWS,
            &[
                "operations_by_order (",
                "operations_by_payment (",
                "operations_by_identity (",
            ][..],
        ),
        (operations::COUNT_SINCE, &["operations_by_tool ("]),
        (calls::FIRST_ARGUMENTS, &["tool_calls_by_operation ("]),
        (calls::LATEST, &["tool_calls_by_agent ("]),
    ] {
        let plan = plan(&mut conn, sql).await;
        assert_eq!(scans(&plan), Vec::<&String>::new(), "{sql}\n{plan:#?}");
        for index in indexes {
            let searched = |s: &String| s.starts_with("SEARCH") && s.contains(index);
            assert!(plan.iter().any(searched), "{sql}\n{plan:#?}");
        }
    }
}

/// Each event that is taken costs the same, however many wait or were worked on before.
#[tokio::test]
async fn an_event_is_found_by_what_is_due_and_a_repeat_by_its_digest() {
    let mut conn = empty().await;
    for (sql, indexes) in [
        (events::IS_ANY_DUE, &["provider_events_due"][..]),
        (
            events::TAKE,
            &["provider_events_due", "provider_events_by_digest"],
        ),
    ] {
        let plan = plan(&mut conn, sql).await;
        assert!(!plan.iter().any(|s| s.contains("TEMP B-TREE")), "{plan:#?}");
        for index in indexes {
            let searched = |s: &String| s.starts_with("SEARCH") && s.contains(index);
            assert!(plan.iter().any(searched), "{sql}\n{plan:#?}");
        }
    }
}

/// Of the events only tallies are read, and lines by what they are; an event that is listed is held against
/// what is ours by indexes alone.
#[tokio::test]
async fn events_are_counted_and_known_without_going_through_them() {
    let mut conn = empty().await;
    for sql in [events::COUNTED, events::LINES, listings::IS_OURS] {
        let plan = plan(&mut conn, sql).await;
        let large = |s: &&String| {
            s.starts_with("SCAN")
                && !s.contains("event_tallies")
                && !s.contains("event_readings")
                && !s.contains("CONSTANT ROW")
        };
        assert_eq!(
            plan.iter().filter(large).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "{sql}\n{plan:#?}"
        );
        assert!(
            !plan.iter().any(|s| s.contains("TEMP B-TREE")),
            "{sql}\n{plan:#?}"
        );
    }
}

/// However many rows are due: one look into the index for each urgency, no sort of what is due.
#[tokio::test]
async fn the_row_that_is_due_first_is_found_by_whose_and_how_urgent_it_is() {
    let mut conn = empty().await;
    let plan = plan(&mut conn, watched::DUE).await;
    let by_index = |s: &String| {
        s.starts_with("SEARCH w")
            && s.contains("watched_due (provider=? AND urgency=? AND next_at<?)")
    };
    assert!(plan.iter().any(by_index), "{plan:#?}");
}

#[tokio::test]
async fn the_reconciler_reads_what_is_due_or_unsettled_and_no_more() {
    let mut conn = empty().await;
    for sql in [watched::DUE, watched::UNSETTLED] {
        let plan = plan(&mut conn, sql).await;
        assert_eq!(scans(&plan), Vec::<&String>::new(), "{sql}\n{plan:#?}");
    }
}

#[tokio::test]
async fn the_review_list_is_counted_without_reading_open_rows() {
    let mut conn = empty().await;
    let plan = plan(&mut conn, review_list::COUNT).await;
    let counted = plan.iter().find(|step| step.contains("operations_open"));
    assert!(
        counted.is_some_and(|step| step.contains("COVERING INDEX")),
        "{plan:#?}"
    );
}
