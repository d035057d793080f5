-- What the events of a provider left open: they are told apart by provider, a person can acknowledge one that
-- was set aside, they are counted without a scan, a listing goes on where it was broken off, and the schedule
-- of looks is found by provider and urgency.

-- The same table with an id and its provider as its key: two providers may use the same id. `acknowledged` is
-- where a quarantined event goes when a person has seen it: who, when and why stay with it.
DROP TRIGGER provider_events_start_received;
DROP TRIGGER provider_events_replace_nothing;
DROP TRIGGER provider_events_keep_what_they_say;
DROP TRIGGER provider_events_end_once;
DROP TRIGGER provider_events_are_never_deleted;
DROP INDEX provider_events_due;
DROP INDEX provider_events_by_state;
DROP INDEX provider_events_by_digest;
DROP INDEX provider_events_by_operation;
ALTER TABLE provider_events RENAME TO provider_events_before;

CREATE TABLE provider_events (
    event_no     INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id     TEXT    NOT NULL CHECK (length(event_id) BETWEEN 1 AND 255),
    provider     TEXT    NOT NULL,
    type         TEXT    NOT NULL CHECK (length(type) BETWEEN 1 AND 100),
    object_id    TEXT,
    digest       TEXT    NOT NULL CHECK (length(digest) = 64),
    source       TEXT    NOT NULL CHECK (source IN ('webhook', 'listing')),
    payload      BLOB    NOT NULL CHECK (length(payload) <= 262144),
    created_at   INTEGER,
    received_at  INTEGER NOT NULL,
    state        TEXT    NOT NULL DEFAULT 'received' CHECK (state IN ('received', 'waiting', 'processed', 'ignored', 'quarantined', 'acknowledged')),
    reason       TEXT,
    operation_id TEXT    REFERENCES operations (operation_id),
    tries        INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_at      INTEGER NOT NULL,
    settled_at   INTEGER,
    acknowledged_by   TEXT,
    acknowledged_user TEXT,
    acknowledged_at   INTEGER,
    acknowledged_note TEXT,
    UNIQUE (event_id, provider),
    CHECK ((state IN ('processed', 'ignored', 'quarantined', 'acknowledged')) = (settled_at IS NOT NULL)),
    CHECK (state IN ('received', 'processed') OR reason IS NOT NULL),
    CHECK (state = 'ignored' OR length(payload) > 0),
    CHECK (state <> 'processed' OR operation_id IS NOT NULL),
    CHECK (state = 'acknowledged' OR coalesce(acknowledged_by, acknowledged_user, acknowledged_at, acknowledged_note) IS NULL),
    CHECK (state <> 'acknowledged' OR (length(acknowledged_by) > 0 AND acknowledged_user IS NOT NULL AND acknowledged_at IS NOT NULL AND length(acknowledged_note) > 0) IS TRUE)
) STRICT;

INSERT INTO provider_events (event_no, event_id, provider, type, object_id, digest, source, payload, created_at,
    received_at, state, reason, operation_id, tries, next_at, settled_at)
SELECT event_no, event_id, provider, type, object_id, digest, source, payload, created_at,
    received_at, state, reason, operation_id, tries, next_at, settled_at
FROM provider_events_before ORDER BY event_no;
DROP TABLE provider_events_before;

CREATE INDEX provider_events_due ON provider_events (next_at) WHERE state IN ('received', 'waiting');
CREATE INDEX provider_events_by_state ON provider_events (state, received_at);
CREATE INDEX provider_events_by_digest ON provider_events (digest);
CREATE INDEX provider_events_by_operation ON provider_events (operation_id) WHERE operation_id IS NOT NULL;

CREATE TRIGGER provider_events_start_received BEFORE INSERT ON provider_events
WHEN NEW.state <> 'received' OR NEW.reason IS NOT NULL OR NEW.operation_id IS NOT NULL OR NEW.tries <> 0
BEGIN SELECT RAISE(ABORT, 'an event begins as it was received'); END;

CREATE TRIGGER provider_events_replace_nothing BEFORE INSERT ON provider_events
WHEN EXISTS (SELECT 1 FROM provider_events WHERE provider = NEW.provider AND event_id = NEW.event_id)
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

-- A quarantined event has one way left, and takes along how it was settled.
CREATE TRIGGER provider_events_end_once BEFORE UPDATE ON provider_events
WHEN NEW.state = 'received' AND OLD.state <> 'received'
  OR OLD.settled_at IS NOT NULL AND NOT (
    OLD.state = 'quarantined' AND NEW.state = 'acknowledged' AND NEW.settled_at IS OLD.settled_at
    AND NEW.reason IS OLD.reason AND NEW.operation_id IS OLD.operation_id AND NEW.tries IS OLD.tries
    AND NEW.next_at IS OLD.next_at AND NEW.payload IS OLD.payload)
BEGIN SELECT RAISE(ABORT, 'an event is settled once'); END;

CREATE TRIGGER provider_events_acknowledge_what_is_quarantined BEFORE UPDATE ON provider_events
WHEN NEW.state = 'acknowledged' AND OLD.state NOT IN ('quarantined', 'acknowledged')
BEGIN SELECT RAISE(ABORT, 'only a quarantined event is acknowledged'); END;

CREATE TRIGGER provider_events_are_never_deleted BEFORE DELETE ON provider_events
BEGIN SELECT RAISE(ABORT, 'an event is never deleted'); END;

-- How many events each state has: counts that do not scan (`verify` counts them again).
CREATE TABLE event_tallies (
    state TEXT    NOT NULL PRIMARY KEY CHECK (state IN ('received', 'waiting', 'processed', 'ignored', 'quarantined', 'acknowledged')),
    n     INTEGER NOT NULL CHECK (n >= 0)
) STRICT;

INSERT INTO event_tallies (state, n)
SELECT s.value, (SELECT count(*) FROM provider_events e WHERE e.state = s.value)
FROM json_each('["received", "waiting", "processed", "ignored", "quarantined", "acknowledged"]') s;

CREATE TRIGGER provider_events_are_counted AFTER INSERT ON provider_events
BEGIN UPDATE event_tallies SET n = n + 1 WHERE state = NEW.state; END;

CREATE TRIGGER provider_events_are_counted_again AFTER UPDATE OF state ON provider_events WHEN NEW.state <> OLD.state
BEGIN
    UPDATE event_tallies SET n = n - 1 WHERE state = OLD.state;
    UPDATE event_tallies SET n = n + 1 WHERE state = NEW.state;
END;

-- A listing that has not come to its end: the span it reads, newest first, and the last event it has read.
-- `passed_over` counts the listed events that named nothing of ours and were not kept.
ALTER TABLE event_readings ADD COLUMN span_from INTEGER;
ALTER TABLE event_readings ADD COLUMN span_to INTEGER;
ALTER TABLE event_readings ADD COLUMN after_event TEXT;
ALTER TABLE event_readings ADD COLUMN passed_over INTEGER NOT NULL DEFAULT 0 CHECK (passed_over >= 0);

-- The schedule, by whose and how urgent: 0 unknown, 1 open, 2 closed. What is due is found at once, however
-- much of it there is and however long another provider has been silent.
DROP TRIGGER operations_are_watched;
DROP TRIGGER operations_are_watched_on;
DROP INDEX watched_due;
ALTER TABLE watched RENAME TO watched_before;

CREATE TABLE watched (
    operation_id TEXT    NOT NULL PRIMARY KEY REFERENCES operations (operation_id),
    provider     TEXT    NOT NULL,
    urgency      INTEGER NOT NULL CHECK (urgency IN (0, 1, 2)),
    looks        INTEGER NOT NULL DEFAULT 0 CHECK (looks >= 0),
    next_at      INTEGER NOT NULL
) STRICT;

INSERT INTO watched (operation_id, provider, urgency, looks, next_at)
SELECT operation_id, provider, CASE status WHEN 'unknown' THEN 0 WHEN 'open' THEN 1 ELSE 2 END, looks, next_at
FROM watched_before JOIN operations USING (operation_id);
DROP TABLE watched_before;

-- First looks that are overdue when this ledger last ran would all be due at once: they are spread over
-- 400 ms each, unknown rows first, in the order of their random ids; closed rows go on with the next of their days.
UPDATE watched SET next_at = spread.at FROM (
    SELECT w.operation_id AS id, ran.at + 400000 * row_number() OVER (ORDER BY w.urgency, w.operation_id) AS at
    FROM watched w, (SELECT coalesce((SELECT value FROM meta WHERE name = 'clock_mark'),
        (SELECT max(updated_at) FROM operations)) AS at) ran
    WHERE w.looks = 0 AND w.urgency < 2 AND w.next_at <= ran.at) spread
WHERE watched.operation_id = spread.id;

UPDATE watched SET looks = marks.looks, next_at = marks.at FROM (
    SELECT w.operation_id AS id, min(o.closed_at + d.value * 86400000000) AS at, min(d.key) AS looks
    FROM watched w JOIN operations o USING (operation_id) JOIN json_each('[1, 2, 4, 8, 16, 30]') d
    WHERE w.looks = 0 AND w.urgency = 2 AND o.closed_at + d.value * 86400000000
        > coalesce((SELECT value FROM meta WHERE name = 'clock_mark'), (SELECT max(updated_at) FROM operations))
    GROUP BY w.operation_id) marks
WHERE watched.operation_id = marks.id;

CREATE INDEX watched_due ON watched (provider, urgency, next_at);

-- A minute after an attempt its driver has either an answer or needs help.
CREATE TRIGGER operations_are_watched AFTER UPDATE OF attempts, provider_ref ON operations
WHEN NEW.status = 'open' AND (NEW.attempts > OLD.attempts OR (NEW.provider_ref IS NOT NULL AND OLD.provider_ref IS NULL))
BEGIN
    INSERT INTO watched (operation_id, provider, urgency, looks, next_at)
    VALUES (NEW.operation_id, NEW.provider, 1, 0, NEW.updated_at + 60000000)
    ON CONFLICT (operation_id) DO UPDATE SET looks = 0, next_at = excluded.next_at, urgency = 1;
END;

-- What became unknown is looked at soon; what was closed is looked at again the day after (M6).
CREATE TRIGGER operations_are_watched_on AFTER UPDATE OF status ON operations
WHEN NEW.status <> OLD.status AND NEW.attempts > 0
BEGIN
    INSERT INTO watched (operation_id, provider, urgency, looks, next_at)
    VALUES (NEW.operation_id, NEW.provider, CASE NEW.status WHEN 'unknown' THEN 0 ELSE 2 END, 0,
        NEW.updated_at + CASE NEW.status WHEN 'unknown' THEN 60000000 ELSE 86400000000 END)
    ON CONFLICT (operation_id) DO UPDATE SET looks = 0, next_at = excluded.next_at, urgency = excluded.urgency;
END;
