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
