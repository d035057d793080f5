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
-- of a subject one notice. Whoever delivers it counts the try first and moves `next_at` behind its own time
-- limit: nobody else takes it meanwhile, and what a dead process took is taken again.
CREATE TABLE notices (
    notice_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    event        TEXT    NOT NULL CHECK (event IN ('unknown', 'resolved', 'key_expiring', 'contradicted', 'circuit_open', 'cap_reached')),
    subject      TEXT    NOT NULL,
    tool         TEXT    NOT NULL,
    operation_id TEXT    REFERENCES operations (operation_id),
    mark         TEXT    NOT NULL,
    reason       TEXT,
    at           INTEGER NOT NULL,
    state        TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'gave_up')),
    tries        INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at      INTEGER NOT NULL,
    command_at   INTEGER,
    webhook_at   INTEGER,
    error        TEXT,
    UNIQUE (event, subject, mark)
) STRICT;
CREATE INDEX notices_pending ON notices (event, next_at) WHERE state = 'pending';

CREATE TRIGGER operations_tell_unknown AFTER UPDATE OF status ON operations
WHEN NEW.status = 'unknown' AND OLD.status <> 'unknown'
BEGIN
    INSERT INTO notices (event, subject, tool, operation_id, mark, reason, at, next_at)
    VALUES ('unknown', NEW.operation_id, NEW.tool, NEW.operation_id, NEW.version, NEW.reason, NEW.updated_at, NEW.updated_at)
    ON CONFLICT (event, subject, mark) DO NOTHING;
END;

CREATE TRIGGER operations_tell_contradicted AFTER UPDATE OF contradicted ON operations
WHEN NEW.contradicted IS NOT NULL AND NEW.contradicted IS NOT OLD.contradicted
BEGIN
    INSERT INTO notices (event, subject, tool, operation_id, mark, reason, at, next_at)
    VALUES ('contradicted', NEW.operation_id, NEW.tool, NEW.operation_id, NEW.version, NEW.contradicted, NEW.updated_at, NEW.updated_at)
    ON CONFLICT (event, subject, mark) DO NOTHING;
END;

-- Whoever got an answer before the end was told something else than the end; so was everybody where a
-- person corrected a closed row. While a row is contradicted its callers hear `checking`: that is no end.
CREATE TRIGGER operations_tell_resolved AFTER UPDATE OF status, corrections ON operations
WHEN NEW.status IN ('succeeded', 'failed') AND NEW.contradicted IS NULL
  AND (NEW.corrections <> OLD.corrections
       OR (NEW.status <> OLD.status
           AND EXISTS (SELECT 1 FROM tool_calls c WHERE c.operation_id = NEW.operation_id AND c.executed_at IS NOT NULL)))
BEGIN
    INSERT INTO notices (event, subject, tool, operation_id, mark, reason, at, next_at)
    VALUES ('resolved', NEW.operation_id, NEW.tool, NEW.operation_id, NEW.version, NEW.failure, NEW.updated_at, NEW.updated_at)
    ON CONFLICT (event, subject, mark) DO NOTHING;
END;

CREATE TRIGGER notices_are_never_deleted BEFORE DELETE ON notices
BEGIN SELECT RAISE(ABORT, 'a notice is never deleted'); END;

CREATE TRIGGER notices_keep_what_they_are BEFORE UPDATE ON notices
WHEN NEW.notice_id IS NOT OLD.notice_id OR NEW.event IS NOT OLD.event OR NEW.subject IS NOT OLD.subject
  OR NEW.tool IS NOT OLD.tool OR NEW.operation_id IS NOT OLD.operation_id OR NEW.mark IS NOT OLD.mark
  OR NEW.reason IS NOT OLD.reason OR NEW.at IS NOT OLD.at OR (OLD.state <> 'pending' AND NEW.state IS NOT OLD.state)
  OR NEW.tries < OLD.tries
  OR (OLD.command_at IS NOT NULL AND NEW.command_at IS NOT OLD.command_at)
  OR (OLD.webhook_at IS NOT NULL AND NEW.webhook_at IS NOT OLD.webhook_at)
BEGIN SELECT RAISE(ABORT, 'a notice says what it said'); END;

-- Lists of a million rows: every page is read off an index, from where the page before ended. `status`
-- comes first in each, so that "all" is four ordered lists merged, and a row that is open or unknown
-- stands among few (the part that moves is small and in memory). What many rows share (an amount, one
-- attempt) is told apart by `created_at`, which never changes.
DROP INDEX operations_by_status;
DROP INDEX operations_by_update;
CREATE INDEX operations_by_status ON operations (status, updated_at);
CREATE INDEX operations_by_creation ON operations (status, created_at);
CREATE INDEX operations_by_amount ON operations (status, amount_cents, created_at);
CREATE INDEX operations_by_attempts ON operations (status, attempts, created_at);
CREATE INDEX operations_by_key_left ON operations (status, coalesce(key_expires_at, 9000000000000000), created_at);
CREATE INDEX operations_by_order_name ON operations (status, order_id, created_at);

-- The end of the id is what a person reads off the screen and types into the filter.
CREATE INDEX operations_by_token ON operations (substr(operation_id, -4));
-- Only rows that were ever unknown have a reason.
CREATE INDEX operations_by_reason ON operations (reason) WHERE reason IS NOT NULL;

-- Review, piece by piece in the order of its ranks; each index holds little more than what is listed.
DROP INDEX operations_contradicted;
DROP INDEX operations_proposed;
CREATE INDEX operations_contradicted ON operations (created_at) WHERE contradicted IS NOT NULL;
CREATE INDEX operations_keys_open ON operations (key_expires_at) WHERE status = 'open' AND provider_ref IS NULL;
CREATE INDEX operations_sent_open ON operations (coalesce(last_authorised_at, created_at)) WHERE status = 'open';
CREATE INDEX operations_unknown ON operations (unknown_at, -amount_cents) WHERE status = 'unknown';
CREATE INDEX operations_to_approve ON operations (created_at) WHERE held = 1 OR proposal IS NOT NULL;
CREATE INDEX operations_not_decidable ON operations (decidable_at) WHERE status = 'unknown';
CREATE INDEX operations_snoozed ON operations (snoozed_until) WHERE snoozed_until IS NOT NULL;
-- Has all that says whether an open row needs a person: they are counted at every reading.
CREATE INDEX operations_open ON operations (status, last_authorised_at, key_expires_at, provider_ref, effect, verdict,
    contradicted, operation_id) WHERE status = 'open';

-- Whether somebody waits for a row; and with the conversation, which every line of a list has.
CREATE INDEX tool_calls_waiting_on ON tool_calls (operation_id) WHERE state IN ('queued', 'running');
DROP INDEX tool_calls_by_operation;
CREATE INDEX tool_calls_by_operation ON tool_calls (operation_id, accepted_at, session_id);

-- Calls: by their own id (an agent's name is not always known), by tool, and the few whose answer waits
-- for approval or has not reached its caller.
CREATE INDEX tool_calls_by_id ON tool_calls (call_id);
CREATE INDEX tool_calls_by_tool ON tool_calls (tool, accepted_at);
CREATE INDEX tool_calls_held ON tool_calls (accepted_at) WHERE state = 'held';
CREATE INDEX tool_calls_undelivered ON tool_calls (delivery, accepted_at) WHERE delivery <> 'delivered';

-- History: who but the engine did something, and what is not done for every row. Both are read newest
-- first, which is the order of their row numbers.
CREATE INDEX audit_by_actor ON audit (actor) WHERE actor <> 'engine';
CREATE INDEX audit_by_action ON audit (action) WHERE action NOT IN ('opened', 'authorised', 'finished');
