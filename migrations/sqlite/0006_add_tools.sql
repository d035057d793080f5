-- Tools of every kind: a row may have no order and no amount, and what makes it itself is its identity alone.

-- All rows of an identity, settled ones too: a further equal call is answered by them.
CREATE INDEX operations_by_identity ON operations (tool, identity);
-- How many operations a tool began of late (caps as counts).
CREATE INDEX operations_by_tool ON operations (tool, created_at);

-- A row without an amount stands before the smallest one, and one without an order before the first: keysets
-- compare nothing with NULL.
DROP INDEX operations_by_amount;
DROP INDEX operations_by_order_name;
DROP INDEX operations_unknown;
CREATE INDEX operations_by_amount ON operations (status, coalesce(amount_cents, 0), created_at);
CREATE INDEX operations_by_order_name ON operations (status, coalesce(order_id, ''), created_at);
CREATE INDEX operations_unknown ON operations (unknown_at, -coalesce(amount_cents, 0)) WHERE status = 'unknown';

-- What an agent asked of a tool before, newest first: equal calls in a row are stopped.
CREATE INDEX tool_calls_by_agent ON tool_calls (agent, tool, accepted_at);
