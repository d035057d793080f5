-- The desk: who looks at a row, what was put off, how many rows each status has, and what people outside
-- have to hear.

-- One more kind of evidence, `reply`: what an attempt brought back after its engine had been given up. A
-- CHECK cannot be changed in place, so the table is made anew, with its guards.
CREATE TABLE evidence_with_replies (
    evidence_id  INTEGER PRIMARY KEY AUTOINCREMENT,
    operation_id TEXT    NOT NULL REFERENCES operations (operation_id),
    source       TEXT    NOT NULL CHECK (source IN ('attempt', 'review_lookup', 'engine_lookup', 'reconciler', 'webhook', 'typed_ref')),
    kind         TEXT    NOT NULL CHECK (kind IN ('object', 'scan', 'unreachable', 'reply')),
    provider_ref TEXT,
    payload      TEXT    NOT NULL CHECK (json_valid(payload)),
    observed_at  INTEGER NOT NULL
) STRICT;
INSERT INTO evidence_with_replies (evidence_id, operation_id, source, kind, provider_ref, payload, observed_at)
SELECT evidence_id, operation_id, source, kind, provider_ref, payload, observed_at FROM evidence;
DROP TABLE evidence;
ALTER TABLE evidence_with_replies RENAME TO evidence;
CREATE INDEX evidence_by_operation ON evidence (operation_id, evidence_id);
CREATE INDEX evidence_typed ON evidence (operation_id) WHERE source = 'typed_ref' AND kind = 'unreachable';
CREATE TRIGGER evidence_replaces_nothing BEFORE INSERT ON evidence
WHEN EXISTS (SELECT 1 FROM evidence WHERE evidence_id = NEW.evidence_id)
BEGIN SELECT RAISE(ABORT, 'evidence never changes'); END;
CREATE TRIGGER evidence_never_changes BEFORE UPDATE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence never changes'); END;
CREATE TRIGGER evidence_is_never_deleted BEFORE DELETE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence is never deleted'); END;

-- A claim warns others and blocks nobody; a snooze puts a row last in Review until then, or until it moves.
ALTER TABLE operations ADD COLUMN claimed_by TEXT;
ALTER TABLE operations ADD COLUMN claimed_until INTEGER CHECK ((claimed_until IS NULL) = (claimed_by IS NULL));
ALTER TABLE operations ADD COLUMN snoozed_until INTEGER;

-- How many operations each status has: counts that do not scan (`verify` counts them again).
CREATE TABLE tallies (
    status TEXT    NOT NULL PRIMARY KEY CHECK (status IN ('open', 'unknown', 'succeeded', 'failed')),
    n      INTEGER NOT NULL CHECK (n >= 0)
) STRICT;

INSERT INTO tallies (status, n)
SELECT s.value, (SELECT count(*) FROM operations o WHERE o.status = s.value)
FROM json_each('["open", "unknown", "succeeded", "failed"]') s;

CREATE TRIGGER operations_are_counted AFTER INSERT ON operations
BEGIN UPDATE tallies SET n = n + 1 WHERE status = NEW.status; END;

CREATE TRIGGER operations_are_counted_again AFTER UPDATE OF status ON operations WHEN NEW.status <> OLD.status
BEGIN
    UPDATE tallies SET n = n - 1 WHERE status = OLD.status;
    UPDATE tallies SET n = n + 1 WHERE status = NEW.status;
END;

-- What people outside have to hear, written in the transaction that makes it true. `mark` makes each event
-- of a subject one notice.
CREATE TABLE notices (
    notice_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    event        TEXT    NOT NULL CHECK (event IN ('unknown', 'resolved', 'key_expiring', 'contradicted', 'circuit_open', 'cap_reached')),
    subject      TEXT    NOT NULL,
    operation_id TEXT    REFERENCES operations (operation_id),
    mark         TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'sent', 'gave_up')),
    tries        INTEGER NOT NULL CHECK (tries >= 0),
    next_at      INTEGER NOT NULL,
    error        TEXT,
    UNIQUE (event, subject, mark)
) STRICT;
CREATE INDEX notices_pending ON notices (next_at) WHERE state = 'pending';

CREATE TRIGGER operations_tell_unknown AFTER UPDATE OF status ON operations
WHEN NEW.status = 'unknown' AND OLD.status <> 'unknown'
BEGIN
    INSERT INTO notices (event, subject, operation_id, mark, at, state, tries, next_at)
    VALUES ('unknown', NEW.operation_id, NEW.operation_id, NEW.version, NEW.updated_at, 'pending', 0, NEW.updated_at)
    ON CONFLICT (event, subject, mark) DO NOTHING;
END;

CREATE TRIGGER operations_tell_contradicted AFTER UPDATE OF contradicted ON operations
WHEN NEW.contradicted IS NOT NULL AND NEW.contradicted IS NOT OLD.contradicted
BEGIN
    INSERT INTO notices (event, subject, operation_id, mark, at, state, tries, next_at)
    VALUES ('contradicted', NEW.operation_id, NEW.operation_id, NEW.version, NEW.updated_at, 'pending', 0, NEW.updated_at)
    ON CONFLICT (event, subject, mark) DO NOTHING;
END;

-- Whoever got an answer before the end was told something else than the end; so was everybody where a
-- person corrected a closed row.
CREATE TRIGGER operations_tell_resolved AFTER UPDATE OF status ON operations
WHEN NEW.status IN ('succeeded', 'failed') AND NEW.status <> OLD.status
  AND (NEW.corrections <> OLD.corrections
       OR EXISTS (SELECT 1 FROM tool_calls c WHERE c.operation_id = NEW.operation_id AND c.executed_at IS NOT NULL))
BEGIN
    INSERT INTO notices (event, subject, operation_id, mark, at, state, tries, next_at)
    VALUES ('resolved', NEW.operation_id, NEW.operation_id, NEW.version, NEW.updated_at, 'pending', 0, NEW.updated_at)
    ON CONFLICT (event, subject, mark) DO NOTHING;
END;

CREATE TRIGGER notices_are_never_deleted BEFORE DELETE ON notices
BEGIN SELECT RAISE(ABORT, 'a notice is never deleted'); END;

CREATE TRIGGER notices_keep_what_they_are BEFORE UPDATE ON notices
WHEN NEW.event IS NOT OLD.event OR NEW.subject IS NOT OLD.subject OR NEW.operation_id IS NOT OLD.operation_id
  OR NEW.mark IS NOT OLD.mark OR NEW.at IS NOT OLD.at OR (OLD.state <> 'pending' AND NEW.state IS NOT OLD.state)
  OR NEW.tries < OLD.tries
BEGIN SELECT RAISE(ABORT, 'a notice says what it said'); END;

-- What the boards filter by and is rare among very many.
CREATE INDEX tool_calls_held ON tool_calls (state, accepted_at) WHERE state = 'held';
CREATE INDEX tool_calls_undelivered ON tool_calls (delivery, accepted_at) WHERE delivery IN ('pending', 'delivery_unknown');
CREATE INDEX audit_by_person ON audit (actor, audit_id) WHERE actor <> 'engine';
CREATE INDEX audit_by_action ON audit (action, audit_id) WHERE action NOT IN ('opened', 'authorised', 'finished');
-- The report reads operations by created_at: it needs an index that begins with it. `order:` on the queue
-- finds operations by order_id alone.
