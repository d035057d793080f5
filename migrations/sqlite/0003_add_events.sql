-- The provider's events, as they came in, and the rows that are looked after until nothing about them can
-- change any more.

-- Stored before the provider hears that it arrived: it sends nothing twice after a 2xx (S57). What an event
-- says never changes; its state moves from `received` or `waiting` to an end, and stays there. An ignored
-- event is about somebody else's refund: its body is not ours to keep.
CREATE TABLE provider_events (
    event_no     INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id     TEXT    NOT NULL UNIQUE CHECK (length(event_id) BETWEEN 1 AND 255),
    provider     TEXT    NOT NULL,
    type         TEXT    NOT NULL CHECK (length(type) BETWEEN 1 AND 100),
    object_id    TEXT,
    digest       TEXT    NOT NULL CHECK (length(digest) = 64),
    source       TEXT    NOT NULL CHECK (source IN ('webhook', 'listing')),
    payload      BLOB    NOT NULL CHECK (length(payload) <= 262144),
    created_at   INTEGER,
    received_at  INTEGER NOT NULL,
    state        TEXT    NOT NULL DEFAULT 'received' CHECK (state IN ('received', 'waiting', 'processed', 'ignored', 'quarantined')),
    reason       TEXT,
    operation_id TEXT    REFERENCES operations (operation_id),
    tries        INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at      INTEGER NOT NULL,
    settled_at   INTEGER,
    CHECK ((state IN ('processed', 'ignored', 'quarantined')) = (settled_at IS NOT NULL)),
    CHECK (state IN ('received', 'processed') OR reason IS NOT NULL),
    CHECK (state = 'ignored' OR length(payload) > 0),
    CHECK (state <> 'processed' OR operation_id IS NOT NULL)
) STRICT;
CREATE INDEX provider_events_due ON provider_events (next_at) WHERE state IN ('received', 'waiting');
CREATE INDEX provider_events_by_state ON provider_events (state, received_at);
CREATE INDEX provider_events_by_digest ON provider_events (digest);
CREATE INDEX provider_events_by_operation ON provider_events (operation_id) WHERE operation_id IS NOT NULL;

CREATE TRIGGER provider_events_start_received BEFORE INSERT ON provider_events
WHEN NEW.state <> 'received' OR NEW.reason IS NOT NULL OR NEW.operation_id IS NOT NULL OR NEW.tries <> 0
BEGIN SELECT RAISE(ABORT, 'an event begins as it was received'); END;

CREATE TRIGGER provider_events_replace_nothing BEFORE INSERT ON provider_events
WHEN EXISTS (SELECT 1 FROM provider_events WHERE event_id = NEW.event_id)
  OR EXISTS (SELECT 1 FROM provider_events WHERE event_no = NEW.event_no)
BEGIN SELECT RAISE(ABORT, 'UNIQUE: an event is stored once'); END;

CREATE TRIGGER provider_events_keep_what_they_say BEFORE UPDATE ON provider_events
WHEN NEW.event_no IS NOT OLD.event_no OR NEW.event_id IS NOT OLD.event_id OR NEW.provider IS NOT OLD.provider
  OR NEW.type IS NOT OLD.type OR NEW.object_id IS NOT OLD.object_id OR NEW.digest IS NOT OLD.digest
  OR NEW.source IS NOT OLD.source OR NEW.created_at IS NOT OLD.created_at OR NEW.received_at IS NOT OLD.received_at
  OR NEW.tries < OLD.tries
  OR (NEW.payload IS NOT OLD.payload AND NOT (NEW.state = 'ignored' AND length(NEW.payload) = 0))
  OR (OLD.operation_id IS NOT NULL AND NEW.operation_id IS NOT OLD.operation_id)
BEGIN SELECT RAISE(ABORT, 'an event says what it said'); END;

CREATE TRIGGER provider_events_end_once BEFORE UPDATE ON provider_events
WHEN OLD.settled_at IS NOT NULL OR NEW.state = 'received' AND OLD.state <> 'received'
BEGIN SELECT RAISE(ABORT, 'an event is settled once'); END;

CREATE TRIGGER provider_events_are_never_deleted BEFORE DELETE ON provider_events
BEGIN SELECT RAISE(ABORT, 'an event is never deleted'); END;

-- Up to when each provider's events were listed to the end, and why the latest listing failed, if it did.
CREATE TABLE event_readings (
    provider TEXT    NOT NULL PRIMARY KEY,
    read_to  INTEGER,
    read_at  INTEGER NOT NULL,
    trouble  TEXT
) STRICT;

-- When the reconciler looks at a row next. Every row that was sent is enrolled by the row itself; it leaves
-- when nothing about it is expected to change any more. A schedule, not history.
CREATE TABLE watched (
    operation_id TEXT    NOT NULL PRIMARY KEY REFERENCES operations (operation_id),
    looks        INTEGER NOT NULL DEFAULT 0 CHECK (looks >= 0),
    next_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX watched_due ON watched (next_at);

-- A minute after an attempt its driver has either an answer or needs help.
CREATE TRIGGER operations_are_watched AFTER UPDATE OF attempts, provider_ref ON operations
WHEN NEW.status = 'open' AND (NEW.attempts > OLD.attempts OR (NEW.provider_ref IS NOT NULL AND OLD.provider_ref IS NULL))
BEGIN
    INSERT INTO watched (operation_id, looks, next_at) VALUES (NEW.operation_id, 0, NEW.updated_at + 60000000)
    ON CONFLICT (operation_id) DO UPDATE SET looks = 0, next_at = excluded.next_at;
END;

-- What became unknown is looked at soon; what was closed is looked at again the day after (M6).
CREATE TRIGGER operations_are_watched_on AFTER UPDATE OF status ON operations
WHEN NEW.status <> OLD.status AND NEW.attempts > 0
BEGIN
    INSERT INTO watched (operation_id, looks, next_at)
    VALUES (NEW.operation_id, 0, NEW.updated_at + CASE NEW.status WHEN 'unknown' THEN 60000000 ELSE 86400000000 END)
    ON CONFLICT (operation_id) DO UPDATE SET looks = 0, next_at = excluded.next_at;
END;

-- What was sent before there was a reconciler: unsettled rows at once, closed ones within their thirty days.
INSERT INTO watched (operation_id, next_at)
SELECT operation_id, updated_at FROM operations WHERE status IN ('open', 'unknown') AND attempts > 0
UNION ALL
SELECT operation_id, closed_at + 86400000000 FROM operations
WHERE status IN ('succeeded', 'failed') AND attempts > 0
  AND closed_at > (SELECT max(updated_at) FROM operations) - 2592000000000;
