//! With its guards in place the ledger itself refuses what `verify` would find: whatever each trigger
//! watches over, column by column. (Each guard by itself, and every CHECK: `alone`.)

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use sqlx::Connection;

use crate::{Fixture, raw, run};

/// Each statement is refused with its message, whatever client runs it.
async fn refused(cases: &[(&str, &str)]) {
    let fixture = Fixture::new().await;
    let mut conn = raw(&fixture.path).await;
    for (sql, why) in cases {
        let done = run(&mut conn, sql).await;
        let error = done.expect_err(sql);
        assert!(error.contains(why), "{sql}\n{error}");
    }
    conn.close().await.expect("closed");
    assert_eq!(fixture.verify().await.violations, [], "nothing was changed");
}

/// An update that is an honest step but for what `set` does.
fn step(order: &str, set: &str) -> String {
    format!("UPDATE operations SET audit_seq = audit_seq + 1, {set} WHERE order_id = '{order}'")
}

#[tokio::test]
async fn rows_are_never_deleted() {
    refused(&[
        ("DELETE FROM operations", "an operation is never deleted"),
        ("DELETE FROM attempts", "an attempt is never deleted"),
        ("DELETE FROM evidence", "evidence is never deleted"),
        (
            "DELETE FROM provider_objects",
            "an object stays with its operation",
        ),
        ("DELETE FROM audit", "the audit is never deleted"),
        (
            "DELETE FROM tool_calls",
            "an accepted call is never deleted",
        ),
        ("DELETE FROM notices", "a notice is never deleted"),
        (
            "DELETE FROM agents",
            "an agent is never deleted, only revoked",
        ),
        ("DELETE FROM provider_events", "an event is never deleted"),
    ])
    .await;
}

#[tokio::test]
async fn a_notice_says_what_it_said() {
    for set in [
        "event = 'resolved'",
        "subject = 'x'",
        "tool = 'x'",
        "operation_id = NULL",
        "mark = 'x'",
        "reason = 'x'",
        "at = at + 1",
        "tries = tries - 1",
    ] {
        let sql = format!("UPDATE notices SET {set} WHERE event = 'unknown'");
        refused(&[(&sql, "a notice says what it said")]).await;
    }
}

#[tokio::test]
async fn a_token_is_revoked_once_and_never_changes() {
    for set in [
        "name = 'x'",
        "token_id = '0123456789abcdef'",
        "token_hash = replace(token_hash, '0', '1')",
        "tools = NULL",
        "added_at = added_at + 1",
        "added_by = 'x'",
        "os_user = 'x'",
    ] {
        let says = "a token is revoked once and never changes otherwise";
        let sql = format!(
            "UPDATE agents SET revoked_at = 9, revoked_by = 'ann', {set} WHERE revoked_at IS NULL"
        );
        refused(&[(&sql, says)]).await;
        let sql = format!("UPDATE agents SET {set} WHERE revoked_at IS NOT NULL");
        refused(&[(&sql, says)]).await;
    }
    let again = "another token stands in its place";
    refused(&[
        ("REPLACE INTO agents SELECT * FROM agents WHERE revoked_at IS NULL", again),
        (
            "REPLACE INTO agents (name, token_id, token_hash, added_at, added_by, os_user)
             SELECT name, '0123456789abcdef', token_hash, 1, 'ann', 'ann' FROM agents WHERE revoked_at IS NULL",
            again,
        ),
    ])
    .await;
}

#[tokio::test]
async fn an_event_says_what_it_said_and_is_settled_once() {
    for set in [
        "event_id = 'x'",
        "provider = 'x'",
        "type = 'x'",
        "object_id = 'x'",
        "digest = replace(digest, '0', '1')",
        "source = 'listing'",
        "payload = x'00'",
        "payload = x''",
        "created_at = 1",
        "received_at = 1",
        "tries = tries - 1",
    ] {
        let sql = format!("UPDATE provider_events SET {set} WHERE state = 'waiting'");
        refused(&[(&sql, "an event says what it said")]).await;
    }
    let once = "an event is settled once";
    refused(&[
        ("UPDATE provider_events SET state = 'waiting', settled_at = NULL, reason = 'x' WHERE state = 'processed'", once),
        ("UPDATE provider_events SET reason = 'x' WHERE state = 'quarantined'", once),
        ("UPDATE provider_events SET state = 'received', reason = NULL WHERE state = 'waiting'", once),
        (
            "REPLACE INTO provider_events SELECT * FROM provider_events WHERE state = 'waiting'",
            "an event is stored once",
        ),
        (
            "REPLACE INTO provider_events (event_id, provider, type, digest, source, payload, received_at, next_at)
             SELECT event_id, provider, type, digest, source, x'00', received_at, next_at FROM provider_events LIMIT 1",
            "an event is stored once",
        ),
        ("UPDATE provider_events SET acknowledged_note = 'other' WHERE state = 'acknowledged'", once),
        ("UPDATE provider_events SET state = 'quarantined', acknowledged_by = NULL, acknowledged_user = NULL,
            acknowledged_at = NULL, acknowledged_note = NULL WHERE state = 'acknowledged'", once),
        ("UPDATE provider_events SET state = 'acknowledged', acknowledged_by = 'a', acknowledged_user = 'a',
            acknowledged_at = 1, acknowledged_note = 'x', reason = 'x' WHERE state = 'quarantined'", once),
        ("UPDATE provider_events SET state = 'acknowledged', acknowledged_by = 'a', acknowledged_user = 'a',
            acknowledged_at = 1, acknowledged_note = '' WHERE state = 'quarantined'", "CHECK"),
        ("UPDATE provider_events SET state = 'acknowledged', acknowledged_by = 'a', acknowledged_user = 'a',
            acknowledged_at = 1, acknowledged_note = 'x' WHERE state = 'processed'", "only a quarantined event is acknowledged"),
        ("UPDATE provider_events SET state = 'processed', settled_at = 1 WHERE state = 'waiting'", "CHECK"),
        ("UPDATE provider_events SET state = 'quarantined' WHERE state = 'waiting'", "CHECK"),
    ])
    .await;
}

#[tokio::test]
async fn rows_are_not_replaced_either() {
    let twin = |table: &str| format!("REPLACE INTO {table} SELECT * FROM {table}");
    refused(&[
        (&twin("operations"), "another operation stands in its place"),
        (&twin("attempts"), "an attempt is counted on its operation first"),
        (&twin("evidence"), "evidence never changes"),
        (&twin("audit"), "audit entries follow each other without a gap"),
        (&twin("tool_calls"), "an accepted call is never replaced"),
        // A clean new row on the place of an old one: its own, its key's, its effect's, its order's.
        (&clean("o.operation_id", "o.order_id"), "another operation stands in its place"),
        (&clean("'op_twin'", "o.order_id"), "another operation stands in its place"),
        (
            "REPLACE INTO attempts (operation_id, attempt_no, agent, call_id, authorised_at)
             SELECT operation_id, attempt_no, agent, call_id, authorised_at FROM attempts WHERE attempt_no = 1",
            "an attempt is counted on its operation first",
        ),
        (
            "REPLACE INTO audit SELECT audit_id, operation_id, seq, at, 'reviewer:eve', os_user, action, detail, hash
             FROM audit a WHERE seq = (SELECT max(seq) FROM audit b WHERE b.operation_id = a.operation_id)",
            "audit entries follow each other without a gap",
        ),
        (
            "UPDATE OR REPLACE operations SET audit_seq = audit_seq + 1,
             provider_ref = 're_lost_1200' WHERE order_id = 'stopped'",
            "an object belongs to one operation",
        ),
    ])
    .await;
}

fn clean(id: &str, order: &str) -> String {
    format!(
        "REPLACE INTO operations (operation_id, tool, identity, order_id, amount_cents, currency, provider, payment,
            status, effect, held, idempotency_key, request, request_hash, attempts, attempts_max, key_created_at,
            version, corrections, audit_seq, created_at, updated_at)
         SELECT {id}, tool, identity, {order}, amount_cents, currency, provider, payment, 'open', 'not_started', 0,
            lower(hex(randomblob(16))), request, request_hash, 0, attempts_max, key_created_at, 1, 0, 1, created_at, updated_at
         FROM operations o WHERE order_id = 'stopped'"
    )
}

#[tokio::test]
async fn an_object_that_is_taken_stays_where_it_is() {
    let fixture = Fixture::new().await;
    let mut conn = raw(&fixture.path).await;
    let sql = "REPLACE INTO provider_objects SELECT p.provider, p.provider_ref, o.operation_id
               FROM provider_objects p, operations o WHERE o.order_id = 'stopped'";
    run(&mut conn, sql).await.expect("ignored");
    conn.close().await.expect("closed");
    assert_eq!(fixture.verify().await.violations, []);
}

#[tokio::test]
async fn key_request_and_identity_never_change_i3() {
    for column in [
        "operation_id = 'op_x'",
        "tool = 'other'",
        "identity = '{}'",
        "order_id = 'x'",
        "amount_cents = 1",
        "currency = 'eur'",
        "provider = 'x'",
        "payment = 'pi_x'",
        "charge = 'ch_x'",
        "\"after\" = operation_id",
        "idempotency_key = 'k'",
        "request = x'00'",
        "request_hash = printf('%064d', 0)",
        "attempts_max = 9",
        "key_created_at = 0",
        "created_at = 0",
    ] {
        let why = "key, request and identity of an operation never change";
        refused(&[(&step("refunded", column), why)]).await;
    }
}

#[tokio::test]
async fn a_row_moves_by_one_audited_step_i23() {
    let why = "an operation moves forward by one audited step at a time";
    refused(&[
        (
            "UPDATE operations SET failure_text = 'x' WHERE order_id = 'refunded'",
            why,
        ),
        ("UPDATE operations SET audit_seq = audit_seq + 2", why),
        (&step("refunded", "version = version - 1"), why),
        (&step("refunded", "version = version + 2"), why),
        (&step("refunded", "corrections = 2"), why),
        (&step("refunded", "updated_at = updated_at - 1"), why),
        (
            &step("refunded", "key_expires_at = key_expires_at + 1"),
            why,
        ),
        (&step("refunded", "first_authorised_at = 1"), why),
        (&step("refunded", "provider_ref = 're_other'"), why),
        (&step("typed", "provider_ref = NULL"), why),
    ])
    .await;
}

#[tokio::test]
async fn statuses_follow_the_protocol_i20() {
    let why = "this change of status is not allowed";
    let open = "status = 'open', closed_at = NULL, closed_by = NULL";
    refused(&[
        (&step("refunded", open), why),
        (&step("refunded", "status = 'failed', failure = 'unavailable'"), why),
        (&step("refunded", "status = 'unknown', reason = 'stopped', unknown_at = 1, closed_at = NULL, closed_by = NULL"), why),
        (&step("stopped", "status = 'open'"), why),
        (&step("flying", "status = 'lost'"), why),
    ])
    .await;
}

#[tokio::test]
async fn attempts_are_counted_on_open_rows_before_the_deadline_i7_i10() {
    let why = "an attempt is counted only on an open row, before its key expires";
    let count = "attempts = attempts + 1, last_authorised_at = last_authorised_at + 1";
    refused(&[
        (&step("refunded", count), why),
        (&step("refunded", "attempts = attempts - 1"), why),
        (&step("stopped", count), why),
        (&step("waiting", "attempts = 1, first_authorised_at = 1, last_authorised_at = 1, key_expires_at = 9"), why),
        (&step("dead", "attempts = attempts + 1, last_authorised_at = key_expires_at"), why),
        (&step("flying", "attempts = attempts + 1, contradicted = 'second_effect', status = 'unknown', reason = 'stopped', unknown_at = 1"), why),
    ])
    .await;
}

#[tokio::test]
async fn attempts_end_once_and_are_counted_first_i23() {
    let ends = "an attempt gets its outcome once and never changes";
    let first = "an attempt is counted on its operation first";
    refused(&[
        ("UPDATE attempts SET outcome = 'not_sent' WHERE outcome IS NOT NULL", ends),
        ("UPDATE attempts SET call_id = 'x' WHERE finished_at IS NULL", ends),
        ("UPDATE attempts SET finished_at = NULL, outcome = NULL", ends),
        (
            "INSERT INTO attempts (operation_id, attempt_no, agent, call_id, authorised_at)
             SELECT operation_id, 2, 'a', 'c', last_authorised_at FROM operations WHERE order_id = 'refunded'",
            first,
        ),
        (
            "INSERT INTO attempts (operation_id, attempt_no, agent, call_id, authorised_at)
             SELECT operation_id, attempts, 'a', 'c', 1 FROM operations WHERE order_id = 'refunded'",
            first,
        ),
    ])
    .await;
}

#[tokio::test]
async fn history_never_changes_i23() {
    refused(&[
        ("UPDATE evidence SET source = 'webhook'", "evidence never changes"),
        ("UPDATE provider_objects SET operation_id = 'x'", "an object stays with its operation"),
        ("UPDATE audit SET actor = 'x'", "the audit never changes"),
        (
            "INSERT INTO audit (operation_id, seq, at, actor, os_user, action, detail, hash)
             SELECT operation_id, audit_seq + 1, 1, 'a', 'u', 'noted', '{}', printf('%064d', 0) FROM operations",
            "audit entries follow each other without a gap",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_row_starts_open_and_unsent() {
    let insert = |set: &str, value: &str| {
        format!(
            "CREATE TEMP TABLE twin AS SELECT * FROM operations WHERE order_id = 'waiting';
             UPDATE twin SET operation_id = 'op_new', idempotency_key = 'k', order_id = 'new', payment = 'pi_new',
                identity = '{{}}', version = 1, audit_seq = 1, held = 0;
             UPDATE twin SET {set} = {value};
             INSERT INTO operations SELECT * FROM twin"
        )
    };
    let why = "an operation starts open, unsent and unmarked";
    for (set, value) in [
        ("status", "'succeeded'"),
        ("attempts", "1"),
        ("version", "2"),
        ("audit_seq", "2"),
        ("corrections", "1"),
        ("contradicted", "'second_effect'"),
        ("provider_ref", "'re_x'"),
        ("effect", "'possible'"),
        ("proposal", "'{}'"),
    ] {
        refused(&[(&insert(set, value), why)]).await;
    }
}

#[tokio::test]
async fn calls_keep_what_they_asked_and_what_they_were_told_i24() {
    let asked = "a tool call never changes what it asked";
    let told = "an answer, once stored, never changes";
    refused(&[
        ("UPDATE tool_calls SET arguments = '{}'", asked),
        ("UPDATE tool_calls SET agent = 'x'", asked),
        ("UPDATE tool_calls SET operation_id = NULL WHERE operation_id IS NOT NULL", asked),
        ("UPDATE tool_calls SET result = '{}' WHERE state = 'answered'", told),
        ("UPDATE tool_calls SET result = NULL, executed_at = NULL, state = 'queued' WHERE state = 'answered'", told),
        ("UPDATE tool_calls SET executed_at = 1 WHERE state = 'answered'", told),
    ])
    .await;
}

#[tokio::test]
async fn money_is_whole_minor_units_i32() {
    let insert = |amount: &str, currency: &str| {
        format!(
            "INSERT INTO operations (operation_id, tool, identity, order_id, amount_cents, currency, provider,
                status, effect, held, idempotency_key, request, request_hash, attempts, attempts_max, key_created_at,
                version, corrections, audit_seq, created_at, updated_at)
             VALUES ('op_new', 't', '{{}}', 'new', {amount}, {currency}, 'stripe', 'open', 'not_started', 0,
                'k', x'', printf('%064d', 0), 0, 6, 1, 1, 0, 1, 1, 1)"
        )
    };
    refused(&[
        (
            &insert("1.5", "'usd'"),
            "cannot store REAL value in INTEGER column",
        ),
        (
            &insert("'abc'", "'usd'"),
            "cannot store TEXT value in INTEGER column",
        ),
        (&insert("0", "'usd'"), "CHECK constraint failed"),
        (
            &insert("1000000000000000", "'usd'"),
            "CHECK constraint failed",
        ),
        (&insert("1", "'USD'"), "CHECK constraint failed"),
        (&insert("1", "NULL"), "CHECK constraint failed"),
    ])
    .await;
}

#[tokio::test]
async fn a_state_without_its_audit_entry_does_not_commit_i23() {
    let fixture = Fixture::new().await;
    let mut conn = raw(&fixture.path).await;
    run(&mut conn, "PRAGMA foreign_keys = ON")
        .await
        .expect("a pragma");
    let done = run(&mut conn, &step("refunded", "failure_text = 'x'")).await;
    assert!(
        done.expect_err("no entry")
            .contains("FOREIGN KEY constraint failed")
    );
}
