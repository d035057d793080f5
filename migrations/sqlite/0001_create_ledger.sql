-- The ledger. Instants are whole microseconds UTC; ids, keys and JSON are text.
-- What the code should never ask for, the tables refuse by themselves (protocol.md, "Status and effect").

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;

CREATE TABLE stamps (
    provider TEXT NOT NULL PRIMARY KEY,
    origin   TEXT NOT NULL,
    account  TEXT,
    mode     TEXT NOT NULL CHECK (mode IN ('simulator', 'test', 'live'))
) STRICT;

CREATE TABLE operations (
    operation_id        TEXT    NOT NULL PRIMARY KEY,
    tool                TEXT    NOT NULL,
    identity            TEXT    NOT NULL CHECK (json_valid(identity)),
    order_id            TEXT,
    amount_cents        INTEGER CHECK (amount_cents BETWEEN 1 AND 999999999999999),
    currency            TEXT    CHECK (currency GLOB '[a-z][a-z][a-z]'),
    provider            TEXT    NOT NULL,
    payment             TEXT,
    charge              TEXT,
    "after"             TEXT    REFERENCES operations (operation_id),
    status              TEXT    NOT NULL CHECK (status IN ('open', 'unknown', 'succeeded', 'failed')),
    effect              TEXT    NOT NULL CHECK (effect IN ('not_started', 'possible', 'identified', 'absent')),
    held                INTEGER NOT NULL CHECK (held IN (0, 1)),
    approved_by         TEXT,
    contradicted        TEXT    CHECK (contradicted IN ('failed_after_succeeded', 'effect_after_failed', 'second_effect', 'ref_mismatch')),
    idempotency_key     TEXT    NOT NULL UNIQUE CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    request             BLOB    NOT NULL,
    request_hash        TEXT    NOT NULL CHECK (length(request_hash) = 64),
    attempts            INTEGER NOT NULL CHECK (attempts BETWEEN 0 AND attempts_max),
    attempts_max        INTEGER NOT NULL CHECK (attempts_max BETWEEN 1 AND 1000),
    key_created_at      INTEGER NOT NULL,
    key_expires_at      INTEGER,
    first_authorised_at INTEGER,
    last_authorised_at  INTEGER,
    last_outcome        TEXT    CHECK (last_outcome IN ('succeeded', 'pending', 'effect_failed', 'reply_mismatch', 'validation_failure', 'permission_denied', 'retryable_failure', 'key_in_progress', 'side_effect_unknown', 'server_error', 'key_mismatch', 'not_sent')),
    reason              TEXT    CHECK (reason IN ('server_error', 'attempts_exhausted', 'key_expired', 'key_mismatch', 'reply_mismatch', 'undetermined_refusal', 'refusal_unproven', 'lookup_inconclusive', 'no_keys_at_provider', 'pending_too_long', 'second_effect', 'stopped')),
    failure             TEXT    CHECK (failure IN ('validation_failure', 'permission_denied', 'effect_failed', 'unavailable')),
    failure_text        TEXT,
    verdict             TEXT    CHECK (verdict IN ('second_effect', 'confirmed', 'pending', 'refused', 'ambiguous', 'absent')),
    decidable_at        INTEGER,
    provider_ref        TEXT,
    pending_since       INTEGER,
    version             INTEGER NOT NULL CHECK (version >= 1),
    corrections         INTEGER NOT NULL CHECK (corrections >= 0),
    audit_seq           INTEGER NOT NULL CHECK (audit_seq >= 1),
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    unknown_at          INTEGER,
    closed_at           INTEGER,
    closed_by           TEXT,
    proposal            TEXT    CHECK (proposal IS NULL OR json_valid(proposal)),

    CHECK ((amount_cents IS NULL) = (currency IS NULL)),
    CHECK ((attempts = 0) = (first_authorised_at IS NULL)),
    CHECK ((attempts = 0) = (last_authorised_at IS NULL)),
    CHECK ((attempts = 0) = (key_expires_at IS NULL)),
    CHECK ((status IN ('succeeded', 'failed')) = (closed_at IS NOT NULL AND closed_by IS NOT NULL)),
    CHECK ((reason IS NULL) = (unknown_at IS NULL)),
    CHECK (status <> 'unknown' OR reason IS NOT NULL),
    CHECK (status <> 'failed' OR failure IS NOT NULL),
    CHECK (held = 0 OR (status = 'open' AND attempts = 0 AND proposal IS NULL)),
    CHECK (updated_at >= created_at),
    -- Every state of a row has its audit entry, or the transaction does not commit (I23).
    FOREIGN KEY (operation_id, audit_seq) REFERENCES audit (operation_id, seq) DEFERRABLE INITIALLY DEFERRED
) STRICT;

CREATE UNIQUE INDEX one_open_operation ON operations (tool, identity) WHERE status IN ('open', 'unknown');
CREATE UNIQUE INDEX one_open_order ON operations (tool, order_id) WHERE status IN ('open', 'unknown') AND provider_ref IS NULL AND order_id IS NOT NULL;
CREATE UNIQUE INDEX one_open_payment ON operations (provider, payment) WHERE status IN ('open', 'unknown') AND provider_ref IS NULL AND payment IS NOT NULL;
CREATE UNIQUE INDEX one_object_one_operation ON operations (provider, provider_ref) WHERE provider_ref IS NOT NULL;
CREATE INDEX operations_by_order ON operations (tool, order_id, created_at);
CREATE INDEX operations_by_payment ON operations (provider, payment, created_at);
CREATE INDEX operations_by_status ON operations (status, updated_at, operation_id);
CREATE INDEX operations_by_update ON operations (updated_at, operation_id);
CREATE INDEX operations_by_money ON operations (tool, currency, created_at);
CREATE INDEX operations_contradicted ON operations (contradicted) WHERE contradicted IS NOT NULL;
CREATE INDEX operations_proposed ON operations (status) WHERE proposal IS NOT NULL;

CREATE TRIGGER operations_are_never_deleted BEFORE DELETE ON operations
BEGIN SELECT RAISE(ABORT, 'an operation is never deleted'); END;

CREATE TRIGGER operations_keep_what_they_are BEFORE UPDATE ON operations
WHEN NEW.operation_id IS NOT OLD.operation_id OR NEW.tool IS NOT OLD.tool OR NEW.identity IS NOT OLD.identity
  OR NEW.order_id IS NOT OLD.order_id OR NEW.amount_cents IS NOT OLD.amount_cents OR NEW.currency IS NOT OLD.currency
  OR NEW.provider IS NOT OLD.provider OR NEW.payment IS NOT OLD.payment OR NEW.charge IS NOT OLD.charge
  OR NEW."after" IS NOT OLD."after" OR NEW.idempotency_key IS NOT OLD.idempotency_key OR NEW.request IS NOT OLD.request
  OR NEW.request_hash IS NOT OLD.request_hash OR NEW.attempts_max IS NOT OLD.attempts_max
  OR NEW.key_created_at IS NOT OLD.key_created_at OR NEW.created_at IS NOT OLD.created_at
BEGIN SELECT RAISE(ABORT, 'key, request and identity of an operation never change'); END;

CREATE TRIGGER operations_move_forward BEFORE UPDATE ON operations
WHEN NEW.audit_seq <> OLD.audit_seq + 1
  OR NEW.version NOT IN (OLD.version, OLD.version + 1)
  OR NEW.attempts NOT IN (OLD.attempts, OLD.attempts + 1)
  OR NEW.corrections NOT IN (OLD.corrections, OLD.corrections + 1)
  OR NEW.updated_at < OLD.updated_at
  OR (OLD.key_expires_at IS NOT NULL AND NEW.key_expires_at IS NOT OLD.key_expires_at)
  OR (OLD.first_authorised_at IS NOT NULL AND NEW.first_authorised_at IS NOT OLD.first_authorised_at)
  OR (OLD.provider_ref IS NOT NULL AND NEW.provider_ref IS NOT OLD.provider_ref
      -- A wrong id that a person typed leaves the row with the correction, and with nothing else.
      AND NOT (OLD.contradicted IS 'ref_mismatch' AND NEW.contradicted IS NULL AND NEW.corrections = OLD.corrections + 1))
BEGIN SELECT RAISE(ABORT, 'an operation moves forward by one audited step at a time'); END;

CREATE TRIGGER operations_keep_to_their_statuses BEFORE UPDATE ON operations
WHEN NEW.status <> OLD.status AND NOT (
       (OLD.status = 'open' AND NEW.status IN ('unknown', 'succeeded', 'failed'))
    OR (OLD.status = 'unknown' AND NEW.status IN ('succeeded', 'failed'))
    OR (OLD.status IN ('succeeded', 'failed') AND NEW.status IN ('succeeded', 'failed')
        AND OLD.contradicted IS NOT NULL AND NEW.contradicted IS NULL AND NEW.corrections = OLD.corrections + 1))
BEGIN SELECT RAISE(ABORT, 'this change of status is not allowed'); END;

CREATE TRIGGER operations_authorise_only_while_open BEFORE UPDATE ON operations
WHEN NEW.attempts <> OLD.attempts AND NOT (
    OLD.status = 'open' AND NEW.status = 'open' AND OLD.held = 0 AND NEW.held = 0
    AND OLD.contradicted IS NULL AND OLD.provider_ref IS NULL
    AND (OLD.key_expires_at IS NULL OR NEW.last_authorised_at < OLD.key_expires_at))
BEGIN SELECT RAISE(ABORT, 'an attempt is counted only on an open row, before its key expires'); END;

CREATE TRIGGER operations_start_clean BEFORE INSERT ON operations
WHEN NEW.status <> 'open' OR NEW.attempts <> 0 OR NEW.version <> 1 OR NEW.audit_seq <> 1 OR NEW.corrections <> 0
  OR NEW.contradicted IS NOT NULL OR NEW.provider_ref IS NOT NULL OR NEW.effect <> 'not_started' OR NEW.proposal IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an operation starts open, unsent and unmarked'); END;

-- REPLACE deletes rows without any delete trigger: what it would push aside is refused here.
CREATE TRIGGER operations_replace_nothing BEFORE INSERT ON operations
WHEN EXISTS (SELECT 1 FROM operations WHERE operation_id = NEW.operation_id)
  OR EXISTS (SELECT 1 FROM operations WHERE idempotency_key = NEW.idempotency_key)
  OR EXISTS (SELECT 1 FROM operations WHERE tool = NEW.tool AND identity = NEW.identity AND status IN ('open', 'unknown'))
  OR EXISTS (SELECT 1 FROM operations WHERE tool = NEW.tool AND order_id = NEW.order_id
             AND status IN ('open', 'unknown') AND provider_ref IS NULL)
  OR EXISTS (SELECT 1 FROM operations WHERE provider = NEW.provider AND payment = NEW.payment
             AND status IN ('open', 'unknown') AND provider_ref IS NULL)
BEGIN SELECT RAISE(ABORT, 'UNIQUE: another operation stands in its place'); END;

CREATE TRIGGER operations_share_no_object BEFORE UPDATE OF provider_ref ON operations
WHEN EXISTS (SELECT 1 FROM operations WHERE provider = NEW.provider AND provider_ref = NEW.provider_ref
             AND operation_id <> NEW.operation_id)
BEGIN SELECT RAISE(ABORT, 'UNIQUE: an object belongs to one operation'); END;

CREATE TABLE attempts (
    operation_id        TEXT    NOT NULL REFERENCES operations (operation_id),
    attempt_no          INTEGER NOT NULL CHECK (attempt_no >= 1),
    agent               TEXT    NOT NULL,
    call_id             TEXT    NOT NULL,
    authorised_at       INTEGER NOT NULL,
    finished_at         INTEGER,
    outcome             TEXT    CHECK (outcome IN ('succeeded', 'pending', 'effect_failed', 'reply_mismatch', 'validation_failure', 'permission_denied', 'retryable_failure', 'key_in_progress', 'side_effect_unknown', 'server_error', 'key_mismatch', 'not_sent')),
    http_status         INTEGER CHECK (http_status BETWEEN 100 AND 999),
    provider_request_id TEXT,
    error               TEXT,
    replayed            INTEGER NOT NULL DEFAULT 0 CHECK (replayed IN (0, 1)),
    limiter             INTEGER NOT NULL DEFAULT 0 CHECK (limiter IN (0, 1)),
    already_refunded    INTEGER NOT NULL DEFAULT 0 CHECK (already_refunded IN (0, 1)),
    PRIMARY KEY (operation_id, attempt_no),
    CHECK ((finished_at IS NULL) = (outcome IS NULL))
) STRICT;

-- One attempt of an operation is in flight at a time.
CREATE UNIQUE INDEX one_in_flight ON attempts (operation_id) WHERE finished_at IS NULL;

CREATE TRIGGER attempts_are_counted_first BEFORE INSERT ON attempts
WHEN NEW.finished_at IS NOT NULL OR NOT EXISTS (
    SELECT 1 FROM operations o WHERE o.operation_id = NEW.operation_id
       AND o.attempts = NEW.attempt_no AND o.last_authorised_at = NEW.authorised_at)
  OR EXISTS (SELECT 1 FROM attempts WHERE operation_id = NEW.operation_id AND attempt_no >= NEW.attempt_no)
  OR EXISTS (SELECT 1 FROM attempts WHERE operation_id = NEW.operation_id AND finished_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'an attempt is counted on its operation first'); END;

CREATE TRIGGER attempts_end_once BEFORE UPDATE ON attempts
WHEN OLD.finished_at IS NOT NULL OR NEW.finished_at IS NULL OR NEW.operation_id IS NOT OLD.operation_id
  OR NEW.attempt_no IS NOT OLD.attempt_no OR NEW.agent IS NOT OLD.agent OR NEW.call_id IS NOT OLD.call_id
  OR NEW.authorised_at IS NOT OLD.authorised_at
BEGIN SELECT RAISE(ABORT, 'an attempt gets its outcome once and never changes'); END;

CREATE TRIGGER attempts_are_never_deleted BEFORE DELETE ON attempts
BEGIN SELECT RAISE(ABORT, 'an attempt is never deleted'); END;

CREATE TABLE evidence (
    evidence_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    operation_id TEXT    NOT NULL REFERENCES operations (operation_id),
    source       TEXT    NOT NULL CHECK (source IN ('attempt', 'review_lookup', 'engine_lookup', 'reconciler', 'webhook', 'typed_ref')),
    kind         TEXT    NOT NULL CHECK (kind IN ('object', 'scan', 'unreachable')),
    provider_ref TEXT,
    payload      TEXT    NOT NULL CHECK (json_valid(payload)),
    observed_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX evidence_by_operation ON evidence (operation_id, evidence_id);
CREATE INDEX evidence_typed ON evidence (operation_id) WHERE source = 'typed_ref' AND kind = 'unreachable';

CREATE TRIGGER evidence_replaces_nothing BEFORE INSERT ON evidence
WHEN EXISTS (SELECT 1 FROM evidence WHERE evidence_id = NEW.evidence_id)
BEGIN SELECT RAISE(ABORT, 'evidence never changes'); END;
CREATE TRIGGER evidence_never_changes BEFORE UPDATE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence never changes'); END;
CREATE TRIGGER evidence_is_never_deleted BEFORE DELETE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence is never deleted'); END;

-- A provider's object belongs to one operation (protocol.md, "Evidence").
CREATE TABLE provider_objects (
    provider     TEXT NOT NULL,
    provider_ref TEXT NOT NULL,
    operation_id TEXT NOT NULL REFERENCES operations (operation_id),
    PRIMARY KEY (provider, provider_ref)
) STRICT;

-- Whoever has it keeps it; coming second is no error (`taken` is told apart before).
CREATE TRIGGER provider_objects_replace_nothing BEFORE INSERT ON provider_objects
WHEN EXISTS (SELECT 1 FROM provider_objects WHERE provider = NEW.provider AND provider_ref = NEW.provider_ref)
BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER provider_objects_never_change BEFORE UPDATE ON provider_objects
BEGIN SELECT RAISE(ABORT, 'an object stays with its operation'); END;
CREATE TRIGGER provider_objects_are_never_deleted BEFORE DELETE ON provider_objects
BEGIN SELECT RAISE(ABORT, 'an object stays with its operation'); END;

CREATE TABLE audit (
    audit_id     INTEGER PRIMARY KEY AUTOINCREMENT,
    operation_id TEXT    NOT NULL REFERENCES operations (operation_id),
    seq          INTEGER NOT NULL CHECK (seq >= 1),
    at           INTEGER NOT NULL,
    actor        TEXT    NOT NULL,
    os_user      TEXT    NOT NULL,
    action       TEXT    NOT NULL,
    detail       TEXT    NOT NULL CHECK (json_valid(detail)),
    hash         TEXT    NOT NULL CHECK (length(hash) = 64),
    UNIQUE (operation_id, seq)
) STRICT;

CREATE TRIGGER audit_has_no_gap BEFORE INSERT ON audit
WHEN NOT EXISTS (SELECT 1 FROM operations o WHERE o.operation_id = NEW.operation_id AND o.audit_seq = NEW.seq)
  OR (NEW.seq > 1 AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.operation_id = NEW.operation_id AND a.seq = NEW.seq - 1))
  OR EXISTS (SELECT 1 FROM audit a WHERE a.operation_id = NEW.operation_id AND a.seq >= NEW.seq)
  OR EXISTS (SELECT 1 FROM audit a WHERE a.audit_id = NEW.audit_id)
BEGIN SELECT RAISE(ABORT, 'audit entries follow each other without a gap'); END;

CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit never changes'); END;
CREATE TRIGGER audit_is_never_deleted BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is never deleted'); END;

CREATE TABLE tool_calls (
    agent          TEXT    NOT NULL,
    call_id        TEXT    NOT NULL,
    tool           TEXT    NOT NULL,
    arguments      TEXT    NOT NULL CHECK (json_valid(arguments)),
    arguments_hash TEXT    NOT NULL CHECK (length(arguments_hash) = 64),
    session_id     TEXT,
    operation_id   TEXT    REFERENCES operations (operation_id),
    state          TEXT    NOT NULL CHECK (state IN ('queued', 'running', 'held', 'answered')),
    result         TEXT    CHECK (result IS NULL OR json_valid(result)),
    accepted_at    INTEGER NOT NULL,
    begun_at       INTEGER,
    executed_at    INTEGER,
    delivered_at   INTEGER,
    delivery       TEXT    NOT NULL CHECK (delivery IN ('pending', 'delivered', 'delivery_unknown')),
    joined         INTEGER NOT NULL DEFAULT 0 CHECK (joined IN (0, 1)),
    engine         TEXT,
    epoch          INTEGER NOT NULL DEFAULT 0,
    lease_until    INTEGER,
    PRIMARY KEY (agent, call_id),
    CHECK ((state IN ('answered', 'held')) = (result IS NOT NULL)),
    CHECK ((result IS NULL) = (executed_at IS NULL)),
    CHECK (state <> 'running' OR (engine IS NOT NULL AND lease_until IS NOT NULL AND begun_at IS NOT NULL)),
    CHECK ((delivery = 'delivered') = (delivered_at IS NOT NULL))
) STRICT;
CREATE INDEX tool_calls_waiting ON tool_calls (state, accepted_at) WHERE state IN ('queued', 'running');
CREATE INDEX tool_calls_by_operation ON tool_calls (operation_id, accepted_at);
CREATE INDEX tool_calls_by_session ON tool_calls (session_id);
CREATE INDEX tool_calls_by_acceptance ON tool_calls (accepted_at);

CREATE TRIGGER tool_calls_replace_nothing BEFORE INSERT ON tool_calls
WHEN EXISTS (SELECT 1 FROM tool_calls WHERE agent = NEW.agent AND call_id = NEW.call_id)
BEGIN SELECT RAISE(ABORT, 'UNIQUE: an accepted call is never replaced'); END;

CREATE TRIGGER tool_calls_keep_what_they_are BEFORE UPDATE ON tool_calls
WHEN NEW.agent IS NOT OLD.agent OR NEW.call_id IS NOT OLD.call_id OR NEW.tool IS NOT OLD.tool
  OR NEW.arguments IS NOT OLD.arguments OR NEW.arguments_hash IS NOT OLD.arguments_hash
  OR NEW.session_id IS NOT OLD.session_id OR NEW.accepted_at IS NOT OLD.accepted_at
  OR (OLD.operation_id IS NOT NULL AND NEW.operation_id IS NOT OLD.operation_id)
BEGIN SELECT RAISE(ABORT, 'a tool call never changes what it asked'); END;

CREATE TRIGGER tool_calls_keep_their_answer BEFORE UPDATE ON tool_calls
WHEN OLD.result IS NOT NULL AND (NEW.result IS NOT OLD.result OR NEW.executed_at IS NOT OLD.executed_at
  OR NEW.state IS NOT OLD.state)
BEGIN SELECT RAISE(ABORT, 'an answer, once stored, never changes'); END;

CREATE TRIGGER tool_calls_are_never_deleted BEFORE DELETE ON tool_calls
BEGIN SELECT RAISE(ABORT, 'an accepted call is never deleted'); END;

-- Leases: an engine's right to drive a row. Not history, not audited.
CREATE TABLE drives (
    operation_id TEXT    NOT NULL PRIMARY KEY REFERENCES operations (operation_id),
    agent        TEXT    NOT NULL,
    call_id      TEXT    NOT NULL,
    engine       TEXT    NOT NULL,
    epoch        INTEGER NOT NULL,
    until        INTEGER NOT NULL
) STRICT;

CREATE TABLE tool_state (
    tool          TEXT NOT NULL PRIMARY KEY,
    paused_by     TEXT,
    paused_reason TEXT,
    circuit       TEXT NOT NULL CHECK (json_valid(circuit)),
    CHECK ((paused_by IS NULL) = (paused_reason IS NULL))
) STRICT;

CREATE TABLE buckets (
    name    TEXT    NOT NULL PRIMARY KEY,
    full_at INTEGER NOT NULL
) STRICT;

CREATE TABLE lookups (
    operation_id TEXT    NOT NULL PRIMARY KEY REFERENCES operations (operation_id),
    reviewer     TEXT    NOT NULL,
    began_at     INTEGER NOT NULL,
    ended_at     INTEGER
) STRICT;

CREATE TABLE engines (
    engine     TEXT    NOT NULL PRIMARY KEY,
    host       TEXT    NOT NULL,
    pid        INTEGER NOT NULL,
    workers    INTEGER NOT NULL,
    in_flight  INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    stopped    INTEGER NOT NULL CHECK (stopped IN (0, 1))
) STRICT;

-- For people with an SQL client: the instants as text.
CREATE VIEW operations_text AS
SELECT operation_id, tool, order_id, amount_cents, currency, payment, status, effect, held, contradicted, attempts,
       reason, verdict, provider_ref, version, closed_by,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', key_expires_at / 1e6, 'unixepoch') AS key_expires_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', unknown_at / 1e6, 'unixepoch') AS unknown_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', closed_at / 1e6, 'unixepoch') AS closed_at
FROM operations;

CREATE VIEW audit_text AS
SELECT operation_id, seq, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') AS at, actor, os_user, action, detail
FROM audit;
