-- Who may call over the gateway, what each agent's calls reached, and how attempts went.

-- A token is 256 random bits that only its agent has; here lies its SHA-256. A row is never deleted, only
-- revoked, once: it is its own audit of who added it and who took it back. The names are the ones that
-- samekey calls by itself: the command line, and what drives an approved row.
CREATE TABLE agents (
    agent_no   INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL CHECK (name NOT IN ('samekey', 'cli')),
    token_id   TEXT    NOT NULL UNIQUE CHECK (length(token_id) = 16),
    token_hash TEXT    NOT NULL CHECK (length(token_hash) = 64),
    tools      TEXT    CHECK (tools IS NULL OR json_valid(tools)),
    added_at   INTEGER NOT NULL,
    added_by   TEXT    NOT NULL,
    os_user    TEXT    NOT NULL,
    revoked_at INTEGER,
    revoked_by TEXT,
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
) STRICT;
CREATE UNIQUE INDEX one_token_an_agent ON agents (name) WHERE revoked_at IS NULL;

CREATE TRIGGER agents_replace_nothing BEFORE INSERT ON agents
WHEN NEW.revoked_at IS NOT NULL
  OR EXISTS (SELECT 1 FROM agents WHERE agent_no = NEW.agent_no)
  OR EXISTS (SELECT 1 FROM agents WHERE token_id = NEW.token_id)
  OR EXISTS (SELECT 1 FROM agents WHERE name = NEW.name AND revoked_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'UNIQUE: another token stands in its place'); END;

CREATE TRIGGER agents_are_revoked_once BEFORE UPDATE ON agents
WHEN OLD.revoked_at IS NOT NULL OR NEW.revoked_at IS NULL OR NEW.agent_no IS NOT OLD.agent_no
  OR NEW.name IS NOT OLD.name OR NEW.token_id IS NOT OLD.token_id OR NEW.token_hash IS NOT OLD.token_hash
  OR NEW.tools IS NOT OLD.tools OR NEW.added_at IS NOT OLD.added_at OR NEW.added_by IS NOT OLD.added_by
  OR NEW.os_user IS NOT OLD.os_user
BEGIN SELECT RAISE(ABORT, 'a token is revoked once and never changes otherwise'); END;

CREATE TRIGGER agents_are_never_deleted BEFORE DELETE ON agents
BEGIN SELECT RAISE(ABORT, 'an agent is never deleted, only revoked'); END;

-- An agent's own operations, in the order of their ids; and its calls that have no answer yet, of which it
-- may have only so many.
CREATE INDEX tool_calls_of_agent ON tool_calls (agent, operation_id) WHERE operation_id IS NOT NULL;
CREATE INDEX tool_calls_waiting_of ON tool_calls (agent) WHERE state IN ('queued', 'running');

-- How many attempts of a provider ended in each class, by how long they took (authorised to finished, in
-- milliseconds, at most le_ms; the last of them holds the rest): counts that do not scan.
CREATE TABLE attempt_times (
    provider TEXT    NOT NULL,
    outcome  TEXT    NOT NULL,
    le_ms    INTEGER NOT NULL,
    n        INTEGER NOT NULL,
    total_ms INTEGER NOT NULL,
    PRIMARY KEY (provider, outcome, le_ms)
) STRICT;

CREATE TRIGGER attempts_are_timed AFTER UPDATE OF finished_at ON attempts
WHEN OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
BEGIN
    INSERT INTO attempt_times (provider, outcome, le_ms, n, total_ms)
    SELECT o.provider, NEW.outcome,
        CASE WHEN t.ms <= 50 THEN 50 WHEN t.ms <= 100 THEN 100 WHEN t.ms <= 250 THEN 250 WHEN t.ms <= 500 THEN 500
             WHEN t.ms <= 1000 THEN 1000 WHEN t.ms <= 2500 THEN 2500 WHEN t.ms <= 5000 THEN 5000
             WHEN t.ms <= 10000 THEN 10000 ELSE 999999999 END,
        1, t.ms
    FROM operations o, (SELECT max(0, (NEW.finished_at - NEW.authorised_at) / 1000) AS ms) t
    WHERE o.operation_id = NEW.operation_id
    ON CONFLICT (provider, outcome, le_ms) DO UPDATE SET n = n + 1, total_ms = total_ms + excluded.total_ms;
END;

INSERT INTO attempt_times (provider, outcome, le_ms, n, total_ms)
SELECT provider, outcome,
    CASE WHEN ms <= 50 THEN 50 WHEN ms <= 100 THEN 100 WHEN ms <= 250 THEN 250 WHEN ms <= 500 THEN 500
         WHEN ms <= 1000 THEN 1000 WHEN ms <= 2500 THEN 2500 WHEN ms <= 5000 THEN 5000
         WHEN ms <= 10000 THEN 10000 ELSE 999999999 END AS le,
    count(*), sum(ms)
FROM (SELECT o.provider, a.outcome, max(0, (a.finished_at - a.authorised_at) / 1000) AS ms
      FROM attempts a JOIN operations o USING (operation_id) WHERE a.finished_at IS NOT NULL)
GROUP BY provider, outcome, le;
