-- The desk: who looks at a row, what was put off, how many rows each status has, and what people outside
-- have to hear.

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
