//! What was done to a ledger past its guards is named, with the operation and the rule.

use samekey::ledger::verify::{Violation, verify_at};
use sqlx::Connection;

use crate::{Fixture, damage, raw, run};

/// Damages the operation of `order` and expects the finding; nothing else may be found.
async fn named(order: &str, sql: &str, rule: &str, what: &str) {
    let fixture = Fixture::new().await;
    let id = fixture.operation(order).await;
    damage(&fixture.path, &sql.replace("$OP", &format!("'{id}'"))).await;
    let report = fixture.verify().await;
    let hit = |v: &Violation| {
        v.operation.as_ref() == Some(&id) && v.rule == rule && v.what.contains(what)
    };
    assert!(
        report.violations.iter().any(hit),
        "{rule} of {id} is not named: {:#?}",
        report.violations
    );
    let elsewhere = |v: &&Violation| v.operation.as_ref() != Some(&id);
    assert_eq!(report.violations.iter().find(elsewhere), None);
}

#[tokio::test]
async fn a_deleted_attempt_i6() {
    let sql = "DELETE FROM attempts WHERE operation_id = $OP AND attempt_no = 2";
    named(
        "lost",
        sql,
        "I6",
        "attempt 2 was authorised and its row is gone",
    )
    .await;
}

#[tokio::test]
async fn a_deleted_attempt_that_the_row_no_longer_counts_i6() {
    let sql = "DELETE FROM attempts WHERE operation_id = $OP AND attempt_no = 3;
               UPDATE operations SET attempts = 2 WHERE operation_id = $OP";
    named(
        "lost",
        sql,
        "I6",
        "attempt 3 was authorised and its row is gone",
    )
    .await;
}

#[tokio::test]
async fn an_attempt_nobody_authorised_i23() {
    let sql = "INSERT INTO attempts (operation_id, attempt_no, agent, call_id, authorised_at, finished_at, outcome)
               SELECT operation_id, 2, agent, call_id, authorised_at, finished_at, outcome FROM attempts WHERE operation_id = $OP;
               UPDATE operations SET attempts = 2 WHERE operation_id = $OP";
    named(
        "refunded",
        sql,
        "I23",
        "attempt 2 has not exactly one audit entry",
    )
    .await;
}

#[tokio::test]
async fn a_changed_outcome_i23() {
    let sql =
        "UPDATE attempts SET outcome = 'not_sent' WHERE operation_id = $OP AND attempt_no = 1";
    named(
        "lost",
        sql,
        "I23",
        "attempt 1 did not end as the audit says",
    )
    .await;
}

#[tokio::test]
async fn an_attempt_past_the_keys_deadline_i10() {
    let sql = "UPDATE operations SET key_expires_at = first_authorised_at WHERE operation_id = $OP";
    named("refunded", sql, "I10", "past the key's deadline").await;
}

#[tokio::test]
async fn a_changed_key_i3() {
    let sql = "UPDATE operations SET idempotency_key = '00000000-0000-4000-8000-000000000000' WHERE operation_id = $OP";
    named("refunded", sql, "I3", "the key is not the one").await;
}

#[tokio::test]
async fn a_key_of_two_operations_i2() {
    let sql = "UPDATE operations SET idempotency_key =
               (SELECT min(idempotency_key) FROM operations WHERE operation_id <> $OP) WHERE operation_id = $OP";
    let fixture = Fixture::new().await;
    let id = fixture.operation("refunded").await;
    damage(&fixture.path, &format!("PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(sql, 'TEXT    NOT NULL UNIQUE CHECK (length(idempotency_key)', 'TEXT    NOT NULL CHECK (length(idempotency_key)') WHERE name = 'operations';
        DELETE FROM sqlite_schema WHERE name = 'sqlite_autoindex_operations_2';
        PRAGMA writable_schema = RESET; {}", sql.replace("$OP", &format!("'{id}'")))).await;
    let rules: Vec<_> = fixture.verify().await.violations;
    assert!(rules.iter().any(|v| v.rule == "I2"), "{rules:#?}");
    let table = |v: &Violation| {
        v.what
            .contains("table operations is not as the migrations make it")
    };
    assert!(rules.iter().any(table), "{rules:#?}");
}

#[tokio::test]
async fn changed_request_bytes_i3() {
    let sql =
        "UPDATE operations SET request = CAST('amount=9900' AS BLOB) WHERE operation_id = $OP";
    named("refunded", sql, "I3", "do not have the stored hash").await;
}

#[tokio::test]
async fn a_changed_request_with_its_hash_i3() {
    let sql = "UPDATE operations SET request = x'', request_hash =
               'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' WHERE operation_id = $OP";
    named("refunded", sql, "I3", "the request's hash is not the one").await;
}

#[tokio::test]
async fn a_changed_amount_i4() {
    let sql = "UPDATE operations SET amount_cents = 9900 WHERE operation_id = $OP";
    named("refunded", sql, "I4", "the amount is not the one").await;
}

#[tokio::test]
async fn a_changed_currency_i4() {
    let sql = "UPDATE operations SET currency = 'eur' WHERE operation_id = $OP";
    named("refunded", sql, "I4", "the currency is not the one").await;
}

#[tokio::test]
async fn money_that_is_none_i32() {
    let sql = "UPDATE operations SET currency = 'zzz' WHERE operation_id = $OP";
    named("refunded", sql, "I32", "column currency").await;
    let sql = "UPDATE operations SET amount_cents = -5 WHERE operation_id = $OP";
    named("refunded", sql, "I32", "column amount_cents").await;
}

#[tokio::test]
async fn a_reopened_row_i20() {
    let sql = "UPDATE operations SET status = 'open', closed_at = NULL, closed_by = NULL WHERE operation_id = $OP";
    named(
        "refunded",
        sql,
        "I20",
        "the row is open, its audit ends with succeeded",
    )
    .await;
}

#[tokio::test]
async fn a_changed_status_i20() {
    let sql = "UPDATE operations SET status = 'succeeded' WHERE operation_id = $OP";
    named(
        "refused",
        sql,
        "I20",
        "the row is succeeded, its audit ends with failed",
    )
    .await;
}

#[tokio::test]
async fn an_unknown_row_that_was_just_closed_i16() {
    let sql =
        "UPDATE operations SET status = 'failed', failure = 'unavailable', closed_at = updated_at,
               closed_by = 'reviewer:eve' WHERE operation_id = $OP";
    named(
        "stopped",
        sql,
        "I23",
        "the row is failed, its audit ends with unknown",
    )
    .await;
}

#[tokio::test]
async fn a_changed_version_i18() {
    let sql = "UPDATE operations SET version = version + 1 WHERE operation_id = $OP";
    named("refunded", sql, "I18", "is not the one its audit ends with").await;
}

#[tokio::test]
async fn whoever_closed_it_was_changed_i18() {
    let sql = "UPDATE operations SET closed_by = 'reviewer:eve' WHERE operation_id = $OP";
    named("absent", sql, "I18", "closed otherwise").await;
}

#[tokio::test]
async fn any_other_column_i23() {
    for set in [
        "reason = 'stopped', unknown_at = unknown_at",
        "failure_text = 'somebody else did it'",
        "approved_by = 'eve'",
        "pending_since = 1",
    ] {
        let sql = format!("UPDATE operations SET {set} WHERE operation_id = $OP");
        named("absent", &sql, "I23", "a column was changed").await;
    }
}

#[tokio::test]
async fn an_edited_audit_entry_i23() {
    let sql = "UPDATE audit SET detail = replace(detail, 'dashboard', 'dreams')
               WHERE operation_id = $OP AND action = 'closed'";
    named("absent", sql, "I23", "its hash does not verify").await;
    let sql = "UPDATE audit SET actor = 'reviewer:eve' WHERE operation_id = $OP AND seq = 1";
    named("refunded", sql, "I23", "audit entry 1 (opened) was changed").await;
}

#[tokio::test]
async fn a_deleted_audit_tail_i23() {
    let sql = "DELETE FROM audit WHERE operation_id = $OP AND seq = (SELECT max(seq) FROM audit WHERE operation_id = $OP)";
    named("refunded", sql, "I23", "audit entries, there are 2").await;
}

#[tokio::test]
async fn a_deleted_audit_entry_in_between_i23() {
    let sql = "DELETE FROM audit WHERE operation_id = $OP AND seq = 2";
    named("refunded", sql, "I23", "audit entry 2 is missing").await;
}

#[tokio::test]
async fn deleted_and_altered_evidence_i17() {
    let sql = "DELETE FROM evidence WHERE operation_id = $OP; DELETE FROM provider_objects WHERE operation_id = $OP";
    named(
        "refunded",
        sql,
        "I17",
        "the verdict confirmed has no evidence",
    )
    .await;
    let sql = "DELETE FROM evidence WHERE operation_id = $OP AND kind = 'scan'";
    named("absent", sql, "I23", "evidence was deleted or added").await;
    let sql = "UPDATE evidence SET payload = replace(payload, 'succeeded', 'failed') WHERE operation_id = $OP";
    named(
        "refunded",
        sql,
        "I17",
        "the verdict is confirmed, the evidence says refused",
    )
    .await;
}

#[tokio::test]
async fn another_operations_object_i17() {
    let sql = "UPDATE operations SET provider_ref = 're_foreign' WHERE operation_id = $OP";
    named(
        "refunded",
        sql,
        "I17",
        "nothing shows that the provider's object re_foreign",
    )
    .await;
    let sql = "DELETE FROM provider_objects WHERE operation_id = $OP";
    named("refunded", sql, "I17", "an object that is not kept so").await;
}

#[tokio::test]
async fn a_second_open_row_i1() {
    // Also where its order and payment are others: the effect is what counts.
    let fixture = Fixture::new().await;
    let first = fixture.operation("stopped").await;
    let sql = "CREATE TEMP TABLE twin AS SELECT * FROM operations WHERE operation_id = $OP;
        UPDATE twin SET operation_id = 'op_twin', idempotency_key = '11111111-0000-4000-8000-000000000000',
            created_at = created_at + 1;
        INSERT INTO operations SELECT * FROM twin";
    damage(&fixture.path, &sql.replace("$OP", &format!("'{first}'"))).await;
    let report = fixture.verify().await;
    let twice: Vec<&Violation> = report
        .violations
        .iter()
        .filter(|v| v.rule == "I1")
        .collect();
    assert_eq!(twice.len(), 3, "effect, order and payment: {twice:#?}");
    assert!(
        twice
            .iter()
            .all(|v| v.operation.as_deref() == Some("op_twin") && v.what.contains(&first))
    );
    let index = |v: &&Violation| v.what == "the index one_open_operation is missing";
    assert!(report.violations.iter().any(|v| index(&v)), "{report:#?}");
}

#[tokio::test]
async fn a_result_that_says_more_than_the_row_i24() {
    let sql = "UPDATE tool_calls SET result = '{\"status\":\"refunded\",\"operation_id\":' || '\"' || $OP || '\"}' WHERE operation_id = $OP";
    for order in ["stopped", "refused", "never"] {
        named(
            order,
            sql,
            "I24",
            "is answered refunded, which the row was not at that time",
        )
        .await;
    }
    let sql = "UPDATE tool_calls SET result = replace(result, 'refunded', 'unconfirmed'),
               result = json_set(replace(result, 'refunded', 'unconfirmed'), '$.note', 'n') WHERE operation_id = $OP";
    named("refunded", sql, "I24", "is answered unconfirmed").await;
    let sql = "UPDATE tool_calls SET result = json_set(result, '$.refund_id', 're_other') WHERE operation_id = $OP";
    named("refunded", sql, "I24", "is answered refunded").await;
}

#[tokio::test]
async fn changed_arguments_i24() {
    let sql = "UPDATE tool_calls SET arguments = replace(arguments, '3800', '3900') WHERE operation_id = $OP";
    named(
        "refunded",
        sql,
        "I24",
        "the arguments of call t1 of agent were changed",
    )
    .await;
}

#[tokio::test]
async fn a_secret_and_a_hostile_character_anywhere_i30_i31() {
    let sql = "UPDATE attempts SET error = 'No such key: sk_live_51HabcXYZ' WHERE operation_id = $OP AND attempt_no = 1";
    named("lost", sql, "I30", "attempts.error holds a secret").await;
    let sql = "UPDATE attempts SET error = 'a' || char(27) || ']0;title' WHERE operation_id = $OP AND attempt_no = 1";
    named(
        "lost",
        sql,
        "I31",
        "attempts.error holds a character that acts",
    )
    .await;
    let sql = "UPDATE tool_calls SET arguments = replace(arguments, 'usd', 'rk_live_51Habc') WHERE operation_id = $OP";
    named(
        "refunded",
        sql,
        "I30",
        "tool_calls.arguments holds a secret",
    )
    .await;
}

#[tokio::test]
async fn what_cannot_be_read_is_a_finding_i32() {
    let sql = "UPDATE operations SET status = 'lost' WHERE operation_id = $OP";
    let fixture = Fixture::new().await;
    let id = fixture.operation("refunded").await;
    damage(&fixture.path, &sql.replace("$OP", &format!("'{id}'"))).await;
    let report = fixture.verify().await;
    let hit = |v: &Violation| v.operation.as_ref() == Some(&id) && v.what.contains("column status");
    assert!(report.violations.iter().any(hit), "{report:#?}");
}

#[tokio::test]
async fn an_operation_whose_row_is_gone_is_named_by_its_orphans() {
    let fixture = Fixture::new().await;
    let id = fixture.operation("refunded").await;
    damage(
        &fixture.path,
        &format!("DELETE FROM operations WHERE operation_id = '{id}'"),
    )
    .await;
    let report = fixture.verify().await;
    let orphan = |v: &Violation| {
        v.operation.as_ref() == Some(&id) && v.rule == "integrity" && v.what.contains("attempts")
    };
    assert!(report.violations.iter().any(orphan), "{report:#?}");
}

#[tokio::test]
async fn every_missing_or_altered_guard_is_named() {
    let fixture = Fixture::new().await;
    let mut conn = raw(&fixture.path).await;
    let guards: Vec<(String, String)> = sqlx::query_as(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'index', 'view') AND sql IS NOT NULL",
    )
    .fetch_all(&mut conn)
    .await
    .expect("the guards");
    assert!(guards.len() > 30, "{}", guards.len());
    for (kind, name) in &guards {
        run(&mut conn, &format!("DROP {kind} {name}"))
            .await
            .expect("dropped");
    }
    run(
        &mut conn,
        "CREATE TRIGGER behind_our_back AFTER UPDATE ON operations BEGIN SELECT 1; END",
    )
    .await
    .expect("made");
    let report = fixture.verify().await;
    for (kind, name) in &guards {
        let what = format!("the {kind} {name} is missing");
        assert!(
            report
                .violations
                .iter()
                .any(|v| v.rule == "schema" && v.what == what),
            "{what}"
        );
    }
    let own = |v: &Violation| {
        v.what
            .contains("behind_our_back is not one of the migrations")
    };
    assert!(report.violations.iter().any(own));
    assert_eq!(
        report.violations.len(),
        guards.len() + 1,
        "nothing else is wrong"
    );
}

#[tokio::test]
async fn a_missing_table_or_column_is_a_finding_not_a_refusal() {
    for (sql, what) in [
        ("DROP TABLE buckets", "the table buckets is missing"),
        ("DROP TABLE attempts", "the rows were not checked"),
        (
            "ALTER TABLE engines DROP COLUMN host",
            "the table engines is not as the migrations make it",
        ),
        (
            "ALTER TABLE audit DROP COLUMN os_user",
            "the rows were not checked",
        ),
        (
            "DELETE FROM _sqlx_migrations",
            "migration 1 was not applied",
        ),
        (
            "UPDATE _sqlx_migrations SET checksum = x'00'",
            "migration 1 is not the one of this samekey",
        ),
        (
            "INSERT INTO _sqlx_migrations SELECT 999, description, installed_on, success, checksum, execution_time FROM _sqlx_migrations WHERE version = 1",
            "migration 999 is unknown",
        ),
        (
            "PRAGMA application_id = 7",
            "does not say that it is a ledger",
        ),
    ] {
        let fixture = Fixture::new().await;
        let mut conn = raw(&fixture.path).await;
        let others: Vec<String> = sqlx::query_scalar(
            "SELECT 'DROP ' || type || ' ' || name FROM sqlite_schema WHERE type IN ('trigger', 'view')",
        )
        .fetch_all(&mut conn)
        .await
        .expect("triggers and views");
        for sql in others {
            run(&mut conn, &sql).await.expect("dropped");
        }
        run(&mut conn, sql).await.expect(sql);
        let report = fixture.verify().await;
        assert!(
            report.violations.iter().any(|v| v.what.contains(what)),
            "{sql}: {report:#?}"
        );
    }
}

#[tokio::test]
async fn a_broken_file_is_a_finding() {
    let fixture = Fixture::new().await;
    let mut conn = raw(&fixture.path).await;
    run(&mut conn, "PRAGMA wal_checkpoint(TRUNCATE)")
        .await
        .expect("checkpoint");
    conn.close().await.expect("closed");
    let mut bytes = std::fs::read(&fixture.path).expect("read");
    // The schema's first page stays whole.
    for page in bytes.chunks_mut(4096).skip(3).step_by(2) {
        page.fill(0xa5);
    }
    std::fs::write(&fixture.path, bytes).expect("written");
    let report = fixture.verify().await;
    assert!(
        report.violations.iter().any(|v| v.rule == "integrity"),
        "{report:#?}"
    );
}

#[tokio::test]
async fn a_deleted_call_i24() {
    let sql = "DELETE FROM tool_calls WHERE operation_id = $OP";
    named("lost", sql, "I24", "is gone").await;
}

#[tokio::test]
async fn a_call_whose_engine_is_gone_is_stale() {
    let fixture = Fixture::new().await;
    let later = fixture.now + chrono::TimeDelta::hours(2);
    let report = verify_at(&fixture.path, later).await.expect("a report");
    let id = fixture.operation("flying").await;
    let stale: Vec<_> = report
        .violations
        .iter()
        .filter(|v| v.rule == "stale")
        .collect();
    assert_eq!(stale.len(), report.violations.len());
    assert_eq!(stale.first().and_then(|v| v.operation.as_ref()), Some(&id));
}

#[tokio::test]
async fn a_course_that_the_protocol_does_not_know_i7_i16_i18_i27() {
    let sql =
        "UPDATE audit SET action = 'authorised' WHERE operation_id = $OP AND action = 'noted'";
    named(
        "stopped",
        sql,
        "I7",
        "authorises an attempt of a row that is unknown",
    )
    .await;
    let sql = "UPDATE audit SET actor = 'engine' WHERE operation_id = $OP AND action = 'closed'";
    named(
        "absent",
        sql,
        "I16",
        "leaves unknown without a named decision or evidence",
    )
    .await;
    let sql = "UPDATE audit SET detail = json_set(detail, '$.verdict', NULL) WHERE operation_id = $OP AND action = 'closed'";
    named("absent", sql, "I16", "(closed by reviewer:ann)").await;
    let sql = "UPDATE audit SET detail = json_set(detail, '$.version', 9) WHERE operation_id = $OP AND seq = 2";
    named("refunded", sql, "I18", "takes the version from 1 to 9").await;
    let sql = "UPDATE audit SET detail = json_set(detail, '$.status', 'open') WHERE operation_id = $OP AND action = 'noted'";
    named("stopped", sql, "I18", "takes the row from unknown to open").await;
    let sql = "UPDATE audit SET at = at - 400000000 WHERE operation_id = $OP AND seq = 3";
    named("refunded", sql, "I27", "audit entry 3 is earlier").await;
}

/// Findings that concern no operation.
async fn general(sql: &str) -> Vec<String> {
    let fixture = Fixture::new().await;
    damage(&fixture.path, sql).await;
    let report = fixture.verify().await;
    report.violations.into_iter().map(|v| v.what).collect()
}

#[tokio::test]
async fn a_tally_that_is_not_that_of_the_rows_or_is_gone() {
    let found = general("UPDATE tallies SET n = n + 2 WHERE status = 'failed'").await;
    assert!(
        matches!(found.as_slice(), [one] if one.contains("operations are counted as failed")),
        "{found:?}"
    );
    let found = general("DELETE FROM tallies WHERE status = 'open'").await;
    assert!(
        matches!(found.as_slice(), [one] if one.contains("that are open is missing")),
        "{found:?}"
    );
}

#[tokio::test]
async fn times_of_attempts_that_are_not_those_of_the_rows() {
    let found = general("UPDATE attempt_times SET n = n + 2 WHERE outcome = 'succeeded'").await;
    assert!(
        matches!(found.as_slice(), [one] if one.contains("attempts are counted as succeeded")),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_tally_of_events_that_is_not_theirs_or_is_gone() {
    for sql in [
        "UPDATE event_tallies SET n = n + 2 WHERE state = 'ignored'",
        "DELETE FROM event_tallies WHERE state = 'ignored'",
    ] {
        let found = general(sql).await;
        assert!(
            matches!(found.as_slice(), [one] if one.contains("events are counted as ignored")),
            "{found:?}"
        );
    }
}

#[tokio::test]
async fn a_schedule_of_another_provider_and_a_listing_without_a_span() {
    let sql = "UPDATE watched SET provider = 'other' WHERE operation_id = $OP";
    named("stopped", sql, "integrity", "or of another provider").await;
    let found = general("UPDATE event_readings SET after_event = 'evt_1'").await;
    assert!(
        matches!(found.as_slice(), [one] if one.contains("neither under way nor at an end")),
        "{found:?}"
    );
}

#[tokio::test]
async fn an_event_without_its_evidence_its_body_or_its_end() {
    let sql = "UPDATE provider_events SET object_id = 're_other' WHERE operation_id = $OP";
    named("hook", sql, "I17", "has no evidence of its object").await;
    let sql = "UPDATE provider_events SET payload = x'' WHERE operation_id = $OP";
    named("hook", sql, "integrity", "has lost its body").await;
    let sql = "UPDATE provider_events SET settled_at = received_at - 1 WHERE operation_id = $OP";
    named("hook", sql, "integrity", "settled before it was received").await;
    let found =
        general("UPDATE provider_events SET settled_at = NULL WHERE state = 'ignored'").await;
    assert!(
        found
            .iter()
            .any(|what| what.contains("neither when nor how")),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_notice_about_somebody_else_and_hostile_text_in_one() {
    let told = "INSERT INTO notices (tool, event, subject, operation_id, mark, at, state, tries, next_at, error)";
    let sql = format!(
        "{told} SELECT 'issue_refund', 'unknown', 'op_other', $OP, 'x', 1, 'pending', 0, 1, NULL"
    );
    named("lost", &sql, "integrity", "another subject").await;
    let sql = format!(
        "{told} SELECT 'issue_refund', 'resolved', $OP, $OP, 'y', 1, 'gave_up', 3, 1, char(27) || '[2J'"
    );
    named("lost", &sql, "I31", "notices.error").await;
    let sql = format!(
        "{told} VALUES ('issue_refund', 'resolved', 'op_gone', 'op_gone', 'z', 1, 'pending', 0, 1, NULL)"
    );
    let found = general(&sql).await;
    assert!(
        matches!(found.as_slice(), [one] if one.contains("a row of notices refers to")),
        "{found:?}"
    );
}
