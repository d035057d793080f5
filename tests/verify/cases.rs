//! The cases of `alone` but for the CHECKs: one for each trigger, unique index and key of the schema, with
//! a write that only this guard forbids and the words by which `verify` names what it does.

/// A guard, and what it is there for.
pub struct Case {
    /// How the guard's name begins: of a trigger or index its own, else the table and the constraint.
    pub guard: &'static str,
    /// Guards that would refuse the same write before it.
    pub past: &'static [&'static str],
    /// The damage.
    pub write: &'static str,
    pub says: Says,
    /// What `verify` says of the rows; empty where a row cannot tell, and only the guard is missed.
    pub finds: &'static str,
}

impl Case {
    pub fn is_of(&self, name: &str) -> bool {
        let whole = !self.guard.contains(' ');
        if whole {
            name == self.guard
        } else {
            name.starts_with(self.guard)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// These words.
    This(&'static str),
    /// Its own text, as SQLite tells it.
    Itself,
    /// It refuses nothing: it sees to it that the write does no damage.
    Nothing,
}

const fn trigger(
    guard: &'static str,
    says: &'static str,
    write: &'static str,
    finds: &'static str,
) -> Case {
    Case {
        guard,
        past: &[],
        write,
        says: Says::This(says),
        finds,
    }
}

const fn keeper(guard: &'static str, write: &'static str, finds: &'static str) -> Case {
    Case {
        guard,
        past: &[],
        write,
        says: Says::Nothing,
        finds,
    }
}

pub const fn check(guard: &'static str, write: &'static str, finds: &'static str) -> Case {
    Case {
        guard,
        past: &[],
        write,
        says: Says::Itself,
        finds,
    }
}

const fn unique(
    guard: &'static str,
    past: &'static [&'static str],
    write: &'static str,
    finds: &'static str,
) -> Case {
    Case {
        guard,
        past,
        write,
        says: Says::Itself,
        finds,
    }
}

/// A clean new row, made from the one of order `stopped` with what `$id`, `$identity`, `$order` and
/// `$payment` say.
macro_rules! another {
    ($verb:literal, $id:literal, $identity:literal, $order:literal, $payment:literal, $key:literal) => {
        concat!(
            $verb,
            " INTO operations (operation_id, tool, identity, order_id, amount_cents, currency, provider, payment,
                status, effect, held, idempotency_key, request, request_hash, attempts, attempts_max, key_created_at,
                version, corrections, audit_seq, created_at, updated_at)
             SELECT ", $id, ", tool, ", $identity, ", ", $order, ", amount_cents, currency, provider, ", $payment, ",
                'open', 'not_started', 0, ", $key, ", request, request_hash, 0, attempts_max, created_at + 1, 1, 0, 1,
                created_at + 1, created_at + 1
             FROM operations o WHERE order_id = 'stopped'"
        )
    };
}

/// An update that is an honest step but for what it sets.
macro_rules! step {
    ($order:literal, $set:literal) => {
        concat!(
            "UPDATE operations SET audit_seq = audit_seq + 1, ",
            $set,
            " WHERE order_id = '",
            $order,
            "'"
        )
    };
}

/// A change of one operation's row, whatever guards it.
macro_rules! row {
    ($order:literal, $set:literal) => {
        concat!(
            "UPDATE operations SET ",
            $set,
            " WHERE order_id = '",
            $order,
            "'"
        )
    };
}

/// The id of the operation of an order.
macro_rules! of {
    ($order:literal) => {
        concat!(
            "(SELECT operation_id FROM operations WHERE order_id = '",
            $order,
            "')"
        )
    };
}

pub const TRIGGERS: &[Case] = &[
    trigger(
        "operations_are_never_deleted",
        "an operation is never deleted",
        "DELETE FROM operations WHERE order_id = 'refunded'",
        "refers to a row of operations that is not there",
    ),
    trigger(
        "operations_keep_what_they_are",
        "key, request and identity of an operation never change",
        step!("refunded", "amount_cents = 9900"),
        "the amount is not the one",
    ),
    trigger(
        "operations_move_forward",
        "an operation moves forward by one audited step at a time",
        row!("absent", "failure_text = 'somebody else did it'"),
        "a column was changed",
    ),
    trigger(
        "operations_keep_to_their_statuses",
        "this change of status is not allowed",
        step!("refunded", "status = 'failed', failure = 'unavailable'"),
        "the row is failed, its audit ends with succeeded",
    ),
    trigger(
        "operations_authorise_only_while_open",
        "an attempt is counted only on an open row, before its key expires",
        step!("stopped", "attempts = attempts + 1, last_authorised_at = last_authorised_at + 1"),
        "the row counts 2 attempts, there are 1",
    ),
    trigger(
        "operations_start_clean",
        "an operation starts open, unsent and unmarked",
        "CREATE TEMP TABLE twin AS SELECT * FROM operations WHERE order_id = 'refunded';
         UPDATE twin SET operation_id = 'op_new', idempotency_key = '00000000-0000-4000-8000-000000000001',
            order_id = 'new', payment = 'pi_new', identity = '{}', provider_ref = 're_new';
         INSERT INTO operations SELECT * FROM twin",
        "nothing shows that the provider's object re_new",
    ),
    trigger(
        "operations_replace_nothing",
        "another operation stands in its place",
        another!("REPLACE", "'op_twin'", "identity", "'twin'", "'pi_twin'", "'00000000-0000-4000-8000-000000000001'"),
        "refers to a row of operations that is not there",
    ),
    trigger(
        "operations_share_no_object",
        "an object belongs to one operation",
        "UPDATE OR REPLACE operations SET audit_seq = audit_seq + 1, provider_ref = 're_lost_1200'
         WHERE order_id = 'stopped'",
        "its provider's object is kept as another operation's",
    ),
    keeper(
        "operations_are_counted",
        another!("INSERT", "'op_twin'", "'{}'", "'twin'", "'pi_twin'", "'00000000-0000-4000-8000-000000000001'"),
        "operations are counted as open",
    ),
    keeper(
        "operations_are_counted_again",
        step!("stopped", "status = 'failed', failure = 'unavailable', closed_at = 1, closed_by = 'eve'"),
        "operations are counted as unknown",
    ),
    // Who was never told cannot be read off the rows: a ledger may be older than its notices.
    keeper(
        "operations_tell_unknown",
        step!("flying", "status = 'unknown', reason = 'stopped', unknown_at = 1"),
        "",
    ),
    keeper(
        "operations_tell_contradicted",
        step!("refunded", "contradicted = 'second_effect'"),
        "",
    ),
    keeper(
        "operations_tell_resolved",
        step!("stopped", "status = 'failed', failure = 'unavailable', closed_at = 1, closed_by = 'eve'"),
        "",
    ),
    trigger(
        "attempts_are_counted_first",
        "an attempt is counted on its operation first",
        concat!(
            "INSERT INTO attempts (operation_id, attempt_no, agent, call_id, authorised_at, finished_at, outcome)
             SELECT operation_id, 2, agent, call_id, authorised_at, finished_at, outcome FROM attempts
             WHERE operation_id = ", of!("refunded")
        ),
        "the row counts 1 attempts, there are 2",
    ),
    trigger(
        "attempts_end_once",
        "an attempt gets its outcome once and never changes",
        concat!(
            "UPDATE attempts SET outcome = 'not_sent' WHERE attempt_no = 1 AND operation_id = ", of!("lost")
        ),
        "attempt 1 did not end as the audit says",
    ),
    trigger(
        "attempts_are_never_deleted",
        "an attempt is never deleted",
        concat!("DELETE FROM attempts WHERE attempt_no = 2 AND operation_id = ", of!("lost")),
        "attempt 2 was authorised and its row is gone",
    ),
    trigger(
        "evidence_replaces_nothing",
        "evidence never changes",
        concat!(
            "REPLACE INTO evidence SELECT evidence_id, operation_id, source, kind, provider_ref,
                replace(payload, 'succeeded', 'failed'), observed_at
             FROM evidence WHERE operation_id = ", of!("refunded")
        ),
        "the verdict is confirmed, the evidence says refused",
    ),
    trigger(
        "evidence_never_changes",
        "evidence never changes",
        concat!(
            "UPDATE evidence SET payload = replace(payload, 'succeeded', 'failed')
             WHERE operation_id = ", of!("refunded")
        ),
        "the verdict is confirmed, the evidence says refused",
    ),
    trigger(
        "evidence_is_never_deleted",
        "evidence is never deleted",
        concat!("DELETE FROM evidence WHERE kind = 'scan' AND operation_id = ", of!("absent")),
        "evidence was deleted or added",
    ),
    keeper(
        "provider_objects_replace_nothing",
        concat!(
            "REPLACE INTO provider_objects SELECT provider, provider_ref, ", of!("stopped"), "
             FROM provider_objects WHERE operation_id = ", of!("refunded")
        ),
        "its provider's object is kept as another operation's",
    ),
    trigger(
        "provider_objects_never_change",
        "an object stays with its operation",
        concat!(
            "UPDATE provider_objects SET operation_id = ", of!("stopped"), " WHERE operation_id = ", of!("refunded")
        ),
        "its provider's object is kept as another operation's",
    ),
    trigger(
        "provider_objects_are_never_deleted",
        "an object stays with its operation",
        concat!("DELETE FROM provider_objects WHERE operation_id = ", of!("refunded")),
        "an object that is not kept so",
    ),
    trigger(
        "audit_has_no_gap",
        "audit entries follow each other without a gap",
        concat!(
            "INSERT INTO audit (operation_id, seq, at, actor, os_user, action, detail, hash)
             SELECT operation_id, seq + 2, at, actor, os_user, 'noted', '{}', hash FROM audit
             WHERE seq = 3 AND operation_id = ", of!("refunded")
        ),
        "audit entry 4 is missing",
    ),
    trigger(
        "audit_never_changes",
        "the audit never changes",
        concat!("UPDATE audit SET actor = 'reviewer:eve' WHERE seq = 1 AND operation_id = ", of!("refunded")),
        "audit entry 1 (opened) was changed",
    ),
    trigger(
        "audit_is_never_deleted",
        "the audit is never deleted",
        concat!("DELETE FROM audit WHERE seq = 2 AND operation_id = ", of!("refunded")),
        "audit entry 2 is missing",
    ),
    trigger(
        "tool_calls_replace_nothing",
        "an accepted call is never replaced",
        "REPLACE INTO tool_calls SELECT agent, call_id, tool, replace(arguments, '3800', '3900'), arguments_hash,
            session_id, operation_id, state, result, accepted_at, begun_at, executed_at, delivered_at, delivery,
            joined, engine, epoch, lease_until
         FROM tool_calls WHERE call_id = 't1'",
        "the arguments of call t1 of agent were changed",
    ),
    trigger(
        "tool_calls_keep_what_they_are",
        "a tool call never changes what it asked",
        "UPDATE tool_calls SET arguments = replace(arguments, '3800', '3900') WHERE call_id = 't1'",
        "the arguments of call t1 of agent were changed",
    ),
    trigger(
        "tool_calls_keep_their_answer",
        "an answer, once stored, never changes",
        "UPDATE tool_calls SET result = json_set(result, '$.refund_id', 're_other') WHERE call_id = 't1'",
        "is answered refunded",
    ),
    trigger(
        "tool_calls_are_never_deleted",
        "an accepted call is never deleted",
        "DELETE FROM tool_calls WHERE call_id = 't1'",
        "call t1, which spent attempt 1, is gone",
    ),
    // Nor can it be read off them who was told and is not known any more.
    trigger(
        "agents_replace_nothing",
        "UNIQUE: another token stands in its place",
        "INSERT INTO agents (name, token_id, token_hash, added_at, added_by, os_user, revoked_at, revoked_by)
         VALUES ('desk', '00000000000000ff', replace(hex(zeroblob(32)), '0', 'b'), 1, 'ann', 'ann', 2, 'ann')",
        "",
    ),
    // What a token was before it was changed cannot be read off the rows.
    trigger(
        "agents_are_revoked_once",
        "a token is revoked once and never changes otherwise",
        "UPDATE agents SET tools = NULL WHERE name = 'desk' AND revoked_at IS NULL",
        "",
    ),
    trigger(
        "agents_are_never_deleted",
        "an agent is never deleted, only revoked",
        "DELETE FROM agents",
        "",
    ),
    keeper(
        "attempts_are_timed",
        concat!(
            "UPDATE attempts SET finished_at = authorised_at + 7000, outcome = 'not_sent' WHERE operation_id = ",
            of!("flying"), " AND finished_at IS NULL"
        ),
        "attempts are counted as not_sent",
    ),
    trigger("notices_are_never_deleted", "a notice is never deleted", "DELETE FROM notices", ""),
    trigger(
        "notices_keep_what_they_are",
        "a notice says what it said",
        concat!("UPDATE notices SET operation_id = ", of!("calm"), " WHERE event = 'unknown'"),
        "is about another subject than its operation",
    ),
    trigger(
        "provider_events_start_received",
        "an event begins as it was received",
        "INSERT INTO provider_events (event_id, provider, type, object_id, digest, source, payload, received_at, next_at,
            state, operation_id, settled_at)
         SELECT 'evt_made_up', provider, type, 're_made_up', digest, source, payload, received_at, next_at, 'processed',
            operation_id, settled_at FROM provider_events WHERE state = 'processed'",
        "has no evidence of its object",
    ),
    trigger(
        "provider_events_replace_nothing",
        "an event is stored once",
        "REPLACE INTO provider_events (event_id, provider, type, digest, source, payload, received_at, next_at)
         SELECT event_id, provider, 'x', digest, source, x'00', received_at, next_at FROM provider_events
         WHERE state = 'quarantined'",
        "is none that was ever received",
    ),
    trigger(
        "provider_events_keep_what_they_say",
        "an event says what it said",
        "UPDATE provider_events SET type = 'x' WHERE state = 'waiting'",
        "is none that was ever received",
    ),
    trigger(
        "provider_events_end_once",
        "an event is settled once",
        "UPDATE provider_events SET settled_at = received_at - 1 WHERE state = 'processed'",
        "was settled before it was received",
    ),
    Case {
        guard: "provider_events_acknowledge_what_is_quarantined",
        past: &[],
        write: "UPDATE provider_events SET state = 'acknowledged', settled_at = received_at - 1, reason = 'x',
            acknowledged_by = 'ann', acknowledged_user = 'ann', acknowledged_at = 1, acknowledged_note = 'seen'
            WHERE state = 'waiting'",
        says: Says::This("only a quarantined event is acknowledged"),
        finds: "was settled before it was received",
    },
    keeper(
        "provider_events_are_counted",
        "INSERT INTO provider_events (event_id, provider, type, digest, source, payload, received_at, next_at)
         SELECT 'evt_new', provider, type, digest, source, payload, received_at, next_at FROM provider_events LIMIT 1",
        "events are counted as received",
    ),
    keeper(
        "provider_events_are_counted_again",
        "UPDATE provider_events SET state = 'ignored', settled_at = received_at WHERE state = 'waiting'",
        "events are counted as ignored",
    ),
    // A ledger may never have heard of the event, and may be older than its schedule. (What is counted is told
    // of, but only while the tallies are left alone.)
    trigger(
        "provider_events_are_never_deleted",
        "an event is never deleted",
        "DELETE FROM provider_events",
        "",
    ),
    keeper(
        "operations_are_watched",
        step!("flying", "provider_ref = 're_new'"),
        "",
    ),
    keeper(
        "operations_are_watched_on",
        step!("flying", "status = 'unknown', reason = 'stopped', unknown_at = 1"),
        "",
    ),
];

pub const UNIQUE: &[Case] = &[
    unique(
        "one_open_operation",
        &["operations_replace_nothing"],
        another!("INSERT", "'op_twin'", "identity", "'twin'", "'pi_twin'", "'00000000-0000-4000-8000-000000000001'"),
        "open at the same time for the same effect as",
    ),
    unique(
        "one_open_order",
        &["operations_replace_nothing"],
        another!("INSERT", "'op_twin'", "'{}'", "order_id", "'pi_twin'", "'00000000-0000-4000-8000-000000000001'"),
        "open at the same time on the same order as",
    ),
    unique(
        "one_open_payment",
        &["operations_replace_nothing"],
        another!("INSERT", "'op_twin'", "'{}'", "'twin'", "payment", "'00000000-0000-4000-8000-000000000001'"),
        "open at the same time on the same payment as",
    ),
    unique(
        "one_object_one_operation",
        &["operations_share_no_object"],
        step!("stopped", "provider_ref = 're_lost_1200'"),
        "its provider's object is also that of",
    ),
    unique(
        "one_token_an_agent",
        &["agents_replace_nothing"],
        "INSERT INTO agents (name, token_id, token_hash, added_at, added_by, os_user)
         SELECT name, '00000000000000ff', token_hash, 1, 'ann', 'ann' FROM agents WHERE revoked_at IS NULL",
        "has more than one token",
    ),
    unique(
        "one_in_flight",
        &["attempts_are_counted_first"],
        concat!(
            "INSERT INTO attempts (operation_id, attempt_no, agent, call_id, authorised_at)
             SELECT operation_id, 2, agent, call_id, authorised_at FROM attempts WHERE operation_id = ", of!("flying")
        ),
        "the row counts 1 attempts, there are 2",
    ),
];

pub const KEYS: &[Case] = &[
    unique(
        "operations PRIMARY KEY (operation_id)",
        &[],
        another!("INSERT", "(SELECT operation_id FROM operations WHERE order_id = 'refunded')", "'{}'", "'twin'", "'pi_twin'", "'00000000-0000-4000-8000-000000000001'"),
        "the operation is there more than once",
    ),
    unique(
        "operations UNIQUE (idempotency_key)",
        &[],
        another!("INSERT", "'op_twin'", "'{}'", "'twin'", "'pi_twin'", "idempotency_key"),
        "its key is also that of",
    ),
    unique(
        "attempts PRIMARY KEY (operation_id, attempt_no)",
        &[],
        concat!("INSERT INTO attempts SELECT * FROM attempts WHERE operation_id = ", of!("refunded")),
        "the row counts 1 attempts, there are 2",
    ),
    unique(
        "provider_objects PRIMARY KEY (provider, provider_ref)",
        &[],
        concat!(
            "INSERT INTO provider_objects SELECT provider, provider_ref, ", of!("stopped"), "
             FROM provider_objects WHERE operation_id = ", of!("refunded")
        ),
        "its provider's object is kept as another operation's",
    ),
    unique(
        "audit UNIQUE (operation_id, seq)",
        &[],
        concat!(
            "INSERT INTO audit (operation_id, seq, at, actor, os_user, action, detail, hash)
             SELECT operation_id, seq, at, actor, os_user, action, detail, hash FROM audit
             WHERE seq = 2 AND operation_id = ", of!("refunded")
        ),
        "audit entr",
    ),
    unique(
        "tool_calls PRIMARY KEY (agent, call_id)",
        &[],
        "INSERT INTO tool_calls SELECT * FROM tool_calls WHERE call_id = 't1'",
        "call t1 of agent is there more than once",
    ),
    unique(
        "stamps PRIMARY KEY (provider)",
        &[],
        "INSERT INTO stamps SELECT provider, 'https://elsewhere', account, mode FROM stamps",
        "stamps has stripe more than once",
    ),
    unique(
        "meta PRIMARY KEY (name)",
        &[],
        "INSERT INTO meta SELECT name, value - 1 FROM meta",
        "meta has clock_mark more than once",
    ),
    unique(
        "drives PRIMARY KEY (operation_id)",
        &[],
        "INSERT INTO drives SELECT operation_id, agent, call_id, 'eng_other', epoch, until FROM drives",
        "it is driven twice",
    ),
    unique(
        "tool_state PRIMARY KEY (tool)",
        &[],
        "INSERT INTO tool_state (tool, circuit) VALUES ('t', '{}'), ('t', '{}')",
        "tool_state has t more than once",
    ),
    unique(
        "buckets PRIMARY KEY (name)",
        &[],
        "INSERT INTO buckets VALUES ('b', 1), ('b', 2)",
        "buckets has b more than once",
    ),
    unique(
        "lookups PRIMARY KEY (operation_id)",
        &[],
        concat!(
            "INSERT INTO lookups (operation_id, reviewer, began_at) VALUES (", of!("lost"), ", 'ann', 1), (",
            of!("lost"), ", 'lea', 1)"
        ),
        "it is looked up twice",
    ),
    unique(
        "engines PRIMARY KEY (engine)",
        &[],
        "INSERT INTO engines VALUES ('e', 'h', 1, 1, 0, 1, 1, 0), ('e', 'h', 2, 1, 0, 1, 1, 0)",
        "engines has e more than once",
    ),
    unique(
        "tallies PRIMARY KEY (status)",
        &[],
        "INSERT INTO tallies SELECT status, n + 1 FROM tallies WHERE status = 'failed'",
        "tallies has failed more than once",
    ),
    unique(
        "notices UNIQUE (event, subject, mark)",
        &[],
        "INSERT INTO notices (event, subject, tool, operation_id, mark, at, next_at)
         SELECT event, subject, tool, operation_id, mark, at, next_at FROM notices WHERE event = 'unknown' LIMIT 1",
        "is told more than once",
    ),
    unique(
        "provider_events UNIQUE (event_id, provider)",
        &[],
        "INSERT INTO provider_events (event_id, provider, type, digest, source, payload, received_at, next_at)
         SELECT event_id, provider, type, digest, source, x'00', received_at, next_at FROM provider_events
         WHERE state = 'quarantined'",
        "is there more than once",
    ),
    unique(
        "event_tallies PRIMARY KEY (state)",
        &[],
        "INSERT INTO event_tallies SELECT state, n FROM event_tallies WHERE state = 'ignored'",
        "event_tallies has ignored more than once",
    ),
    unique(
        "event_readings PRIMARY KEY (provider)",
        &[],
        "INSERT INTO event_readings (provider, read_to, read_at) VALUES ('p', 1, 1), ('p', 2, 2)",
        "event_readings has p more than once",
    ),
    unique(
        "agents UNIQUE (token_id)",
        &[],
        "INSERT INTO agents (name, token_id, token_hash, added_at, added_by, os_user)
         SELECT 'twin', token_id, token_hash, 1, 'ann', 'ann' FROM agents WHERE revoked_at IS NULL",
        "is there more than once",
    ),
    unique(
        "attempt_times PRIMARY KEY (provider, outcome, le_ms)",
        &[],
        "INSERT INTO attempt_times SELECT * FROM attempt_times",
        "attempts are counted as",
    ),
    unique(
        "watched PRIMARY KEY (operation_id)",
        &[],
        concat!("INSERT INTO watched SELECT operation_id, provider, urgency, 7, 1 FROM watched WHERE operation_id = ", of!("stopped")),
        "it is watched 2 times",
    ),
];

pub(crate) use {of, row};
