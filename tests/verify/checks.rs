//! The cases of `alone` for the CHECKs: one for each, with a value that only this CHECK forbids and the
//! words by which `verify` names it.

use crate::cases::{Case, check, of, row};

pub const CHECKS: &[Case] = &[
    check(
        "stamps CHECK (mode IN",
        "UPDATE stamps SET mode = 'production'",
        "the mode of stripe is production",
    ),
    check(
        "operations CHECK (json_valid(identity))",
        row!("flying", "identity = 'no json'"),
        "identity",
    ),
    check(
        "operations CHECK (amount_cents BETWEEN",
        row!("flying", "amount_cents = 0"),
        "column amount_cents",
    ),
    check(
        "operations CHECK (currency GLOB",
        row!("flying", "currency = 'us1'"),
        "column currency",
    ),
    check(
        "operations CHECK (status IN ('open', 'unknown', 'succeeded', 'failed'))",
        row!("flying", "status = 'lost'"),
        "column status",
    ),
    check(
        "operations CHECK (effect IN",
        row!("flying", "effect = 'maybe'"),
        "column effect",
    ),
    check(
        "operations CHECK (held IN",
        row!("waiting", "held = 2"),
        "neither yes nor no",
    ),
    check(
        "operations CHECK (contradicted IN",
        row!("flying", "contradicted = 'x'"),
        "column contradicted",
    ),
    check(
        "operations CHECK (length(idempotency_key)",
        row!("flying", "idempotency_key = ''"),
        "column idempotency_key",
    ),
    check(
        "operations CHECK (length(request_hash)",
        row!("flying", "request_hash = 'abc'"),
        "the stored hash",
    ),
    check(
        "operations CHECK (attempts BETWEEN",
        row!("flying", "attempts = 7"),
        "the row counts 7 attempts",
    ),
    check(
        "operations CHECK (attempts_max BETWEEN",
        row!("flying", "attempts_max = 1001"),
        "the limit of attempts",
    ),
    check(
        "operations CHECK (last_outcome IN",
        row!("lost", "last_outcome = 'x'"),
        "column last_outcome",
    ),
    check(
        "operations CHECK (reason IN",
        row!("stopped", "reason = 'x'"),
        "column reason",
    ),
    check(
        "operations CHECK (failure IN",
        row!("refused", "failure = 'x'"),
        "column failure",
    ),
    check(
        "operations CHECK (verdict IN",
        row!("refunded", "verdict = 'sure'"),
        "column verdict",
    ),
    check(
        "operations CHECK (version >=",
        row!("flying", "version = 0"),
        "version",
    ),
    check(
        "operations CHECK (corrections >=",
        row!("flying", "corrections = -1"),
        "column corrections",
    ),
    check(
        "operations CHECK (audit_seq >=",
        row!("flying", "audit_seq = 0"),
        "audit entries, there are",
    ),
    check(
        "operations CHECK (proposal IS NULL OR",
        row!("flying", "proposal = 'no json'"),
        "column proposal",
    ),
    check(
        "operations CHECK ((amount_cents IS NULL)",
        row!("flying", "amount_cents = NULL"),
        "column amount_cents",
    ),
    check(
        "operations CHECK ((attempts = 0) = (first_authorised_at",
        row!("flying", "first_authorised_at = NULL"),
        "first or last authorisation is not that of its attempts",
    ),
    check(
        "operations CHECK ((attempts = 0) = (last_authorised_at",
        row!("flying", "last_authorised_at = NULL"),
        "first or last authorisation is not that of its attempts",
    ),
    check(
        "operations CHECK ((attempts = 0) = (key_expires_at",
        row!("flying", "key_expires_at = NULL"),
        "attempt 1 was authorised past the key's deadline",
    ),
    check(
        "operations CHECK ((status IN ('succeeded', 'failed')) =",
        row!("refunded", "closed_by = NULL"),
        "closed otherwise",
    ),
    check(
        "operations CHECK ((reason IS NULL)",
        row!("stopped", "unknown_at = NULL"),
        "it became unknown at another instant",
    ),
    check(
        "operations CHECK (status <> 'unknown' OR",
        row!("stopped", "reason = NULL, unknown_at = NULL"),
        "it became unknown at another instant",
    ),
    check(
        "operations CHECK (status <> 'failed' OR",
        row!("refused", "failure = NULL"),
        "a column was changed",
    ),
    check(
        "operations CHECK (held = 0 OR",
        row!("flying", "held = 1"),
        "a column was changed",
    ),
    check(
        "operations CHECK (updated_at >=",
        row!("flying", "updated_at = created_at - 1"),
        "the row changed at another instant than its audit",
    ),
    check(
        "operations CHECK ((claimed_until IS NULL)",
        row!("flying", "claimed_until = 5"),
        "a claim without its holder or its end",
    ),
    check(
        "attempts CHECK (attempt_no >=",
        concat!(
            "UPDATE attempts SET attempt_no = 0 WHERE operation_id = ",
            of!("flying")
        ),
        "attempt 1 is missing",
    ),
    check(
        "attempts CHECK (outcome IN",
        concat!(
            "UPDATE attempts SET outcome = 'x' WHERE operation_id = ",
            of!("refunded")
        ),
        "column outcome",
    ),
    check(
        "attempts CHECK (http_status BETWEEN",
        concat!(
            "UPDATE attempts SET http_status = 99 WHERE operation_id = ",
            of!("refunded")
        ),
        "attempt 1 did not end as the audit says",
    ),
    check(
        "attempts CHECK (replayed IN",
        concat!(
            "UPDATE attempts SET replayed = 2 WHERE operation_id = ",
            of!("refunded")
        ),
        "a flag of attempt 1 is neither yes nor no",
    ),
    check(
        "attempts CHECK (limiter IN",
        concat!(
            "UPDATE attempts SET limiter = 2 WHERE operation_id = ",
            of!("refunded")
        ),
        "a flag of attempt 1 is neither yes nor no",
    ),
    check(
        "attempts CHECK (already_refunded IN",
        concat!(
            "UPDATE attempts SET already_refunded = 2 WHERE operation_id = ",
            of!("refunded")
        ),
        "a flag of attempt 1 is neither yes nor no",
    ),
    check(
        "attempts CHECK ((finished_at IS NULL)",
        concat!(
            "UPDATE attempts SET finished_at = NULL WHERE operation_id = ",
            of!("refunded")
        ),
        "attempt 1 did not end as the audit says",
    ),
    check(
        "evidence CHECK (source IN",
        concat!(
            "UPDATE evidence SET source = 'rumour' WHERE operation_id = ",
            of!("refunded")
        ),
        "column source",
    ),
    check(
        "evidence CHECK (kind IN",
        concat!(
            "UPDATE evidence SET kind = 'rumour' WHERE operation_id = ",
            of!("refunded")
        ),
        "name different things",
    ),
    check(
        "evidence CHECK (json_valid(payload))",
        concat!(
            "UPDATE evidence SET payload = 'x' WHERE operation_id = ",
            of!("refunded")
        ),
        "column payload",
    ),
    check(
        "audit CHECK (seq >=",
        concat!(
            "UPDATE audit SET seq = 0 WHERE seq = 1 AND operation_id = ",
            of!("refunded")
        ),
        "audit entry 1",
    ),
    check(
        "audit CHECK (json_valid(detail))",
        concat!(
            "UPDATE audit SET detail = 'x' WHERE seq = 1 AND operation_id = ",
            of!("refunded")
        ),
        "audit entry 1",
    ),
    check(
        "audit CHECK (length(hash)",
        concat!(
            "UPDATE audit SET hash = 'abc' WHERE seq = 3 AND operation_id = ",
            of!("refunded")
        ),
        "its hash does not verify",
    ),
    check(
        "tool_calls CHECK (json_valid(arguments))",
        "UPDATE tool_calls SET arguments = 'x' WHERE call_id = 't1'",
        "the arguments of call t1",
    ),
    check(
        "tool_calls CHECK (length(arguments_hash)",
        "UPDATE tool_calls SET arguments_hash = 'x' WHERE call_id = 't1'",
        "the arguments of call t1",
    ),
    check(
        "tool_calls CHECK (state IN ('queued'",
        "UPDATE tool_calls SET state = 'lost' WHERE call_id = 'queued_1'",
        "column state",
    ),
    check(
        "tool_calls CHECK (result IS NULL OR",
        "UPDATE tool_calls SET result = 'x' WHERE call_id = 't1'",
        "column result",
    ),
    check(
        "tool_calls CHECK (delivery IN",
        "UPDATE tool_calls SET delivery = 'lost' WHERE call_id = 't1'",
        "column delivery",
    ),
    check(
        "tool_calls CHECK (joined IN",
        "UPDATE tool_calls SET joined = 2 WHERE call_id = 't1'",
        "joined is neither yes nor no",
    ),
    check(
        "tool_calls CHECK ((state IN",
        "UPDATE tool_calls SET state = 'queued' WHERE call_id = 't1'",
        "the state of call t1 of agent is not that of its answer",
    ),
    check(
        "tool_calls CHECK ((result IS NULL)",
        "UPDATE tool_calls SET executed_at = NULL WHERE call_id = 't1'",
        "the state of call t1 of agent is not that of its answer",
    ),
    check(
        "tool_calls CHECK (state <> 'running' OR",
        "UPDATE tool_calls SET engine = NULL WHERE call_id = 'flying_1'",
        "is running and nobody has it",
    ),
    check(
        "tool_calls CHECK ((delivery = 'delivered')",
        "UPDATE tool_calls SET delivered_at = 1 WHERE call_id = 't1'",
        "the state of call t1 of agent is not that of its answer",
    ),
    check(
        "tool_state CHECK (json_valid(circuit))",
        "INSERT INTO tool_state (tool, circuit) VALUES ('t', 'x')",
        "the circuit of t",
    ),
    check(
        "tool_state CHECK ((paused_by IS NULL)",
        "INSERT INTO tool_state (tool, circuit, paused_by) VALUES ('t', '{}', 'eve')",
        "the pause of t",
    ),
    check(
        "engines CHECK (stopped IN",
        "INSERT INTO engines VALUES ('e', 'h', 1, 1, 0, 1, 1, 2)",
        "engine e",
    ),
    check(
        "agents CHECK (name NOT IN",
        "UPDATE agents SET name = 'cli' WHERE revoked_at IS NULL",
        "has the name of samekey itself",
    ),
    check(
        "agents CHECK (length(token_id)",
        "UPDATE agents SET token_id = 'x' WHERE revoked_at IS NULL",
        "a token that is none",
    ),
    check(
        "agents CHECK (length(token_hash)",
        "UPDATE agents SET token_hash = 'x' WHERE revoked_at IS NULL",
        "a token that is none",
    ),
    check(
        "agents CHECK (tools IS NULL OR",
        "UPDATE agents SET tools = 'no json' WHERE revoked_at IS NULL",
        "a token that is none",
    ),
    check(
        "agents CHECK ((revoked_at IS NULL)",
        "UPDATE agents SET revoked_at = 1 WHERE revoked_at IS NULL",
        "a token that is none",
    ),
    check(
        "tallies CHECK (status IN",
        "INSERT INTO tallies VALUES ('lost', 1)",
        "counted as lost",
    ),
    check(
        "tallies CHECK (n >=",
        "UPDATE tallies SET n = -1 WHERE status = 'failed'",
        "the tally of the operations that are failed",
    ),
    check(
        "notices CHECK (event IN",
        "UPDATE notices SET event = 'x' WHERE notice_id = 1",
        "notice 1",
    ),
    check(
        "notices CHECK (state IN",
        "UPDATE notices SET state = 'x' WHERE notice_id = 1",
        "notice 1",
    ),
    check(
        "notices CHECK (tries >=",
        "UPDATE notices SET tries = -1 WHERE notice_id = 1",
        "notice 1",
    ),
    check(
        "provider_events CHECK (length(event_id)",
        "UPDATE provider_events SET event_id = '' WHERE state = 'waiting'",
        "is none that was ever received",
    ),
    check(
        "provider_events CHECK (length(type)",
        "UPDATE provider_events SET type = '' WHERE state = 'waiting'",
        "is none that was ever received",
    ),
    check(
        "provider_events CHECK (length(digest)",
        "UPDATE provider_events SET digest = 'abc' WHERE state = 'waiting'",
        "is none that was ever received",
    ),
    check(
        "provider_events CHECK (source IN",
        "UPDATE provider_events SET source = 'rumour' WHERE state = 'waiting'",
        "is none that was ever received",
    ),
    check(
        "provider_events CHECK (length(payload)",
        "UPDATE provider_events SET payload = zeroblob(262145) WHERE state = 'waiting'",
        "is none that was ever received",
    ),
    check(
        "provider_events CHECK (state IN ('received', 'waiting'",
        "UPDATE provider_events SET state = 'x' WHERE state = 'waiting'",
        "is none that was ever received",
    ),
    check(
        "provider_events CHECK (tries >=",
        "UPDATE provider_events SET tries = -1 WHERE state = 'waiting'",
        "is none that was ever received",
    ),
    check(
        "provider_events CHECK ((state IN",
        "UPDATE provider_events SET settled_at = NULL WHERE state = 'ignored'",
        "says neither when nor how",
    ),
    check(
        "provider_events CHECK (state IN ('received', 'processed')",
        "UPDATE provider_events SET reason = NULL WHERE state = 'waiting'",
        "says neither when nor how",
    ),
    check(
        "provider_events CHECK (state = 'ignored' OR",
        "UPDATE provider_events SET payload = x'' WHERE state = 'waiting'",
        "has lost its body",
    ),
    check(
        "provider_events CHECK (state <> 'processed' OR",
        "UPDATE provider_events SET operation_id = NULL WHERE state = 'processed'",
        "was taken in for no operation",
    ),
    check(
        "provider_events CHECK (state = 'acknowledged' OR coalesce",
        "UPDATE provider_events SET acknowledged_note = 'seen' WHERE state = 'waiting'",
        "does not say by whom",
    ),
    check(
        "provider_events CHECK (state <> 'acknowledged' OR",
        "UPDATE provider_events SET acknowledged_by = NULL WHERE state = 'acknowledged'",
        "does not say by whom",
    ),
    check(
        "event_tallies CHECK (state IN",
        "UPDATE event_tallies SET state = 'x' WHERE state = 'waiting'",
        "which is no state",
    ),
    check(
        "event_tallies CHECK (n >=",
        "UPDATE event_tallies SET n = -1 WHERE state = 'waiting'",
        "-1 events are counted",
    ),
    check(
        "event_readings CHECK (passed_over >=",
        "UPDATE event_readings SET passed_over = -1",
        "neither under way nor at an end",
    ),
    check(
        "watched CHECK (urgency IN",
        "UPDATE watched SET urgency = 7",
        "as if it were another kind of row",
    ),
    check(
        "watched CHECK (looks >=",
        "UPDATE watched SET looks = -1",
        "after -1 looks",
    ),
];
