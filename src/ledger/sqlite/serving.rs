//! The gateway's steps on SQLite. Tests: `tests/gateway/`, plans in `plans`.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;

use super::read::reader;
use super::{Inner, SqliteLedger, Tx, calls, store};
use crate::domain::agent::Agent;
use crate::domain::ids::{AgentName, CallId, OperationId, ReviewerName, ToolName};
use crate::domain::tool_call::ToolCall;
use crate::ledger::row::{self, Columns, micros, to_json};
use crate::ledger::serving::{AgentSeen, AttemptTimes, NewAgent, OwnPage, Serving};
use crate::ledger::{LedgerError, Listed};

#[async_trait]
impl Serving for SqliteLedger {
    async fn add_agent(&self, new: NewAgent) -> Result<bool, LedgerError> {
        self.write(move |mut tx| Box::pin(async move { add(&mut tx, new).await }))
            .await
    }

    async fn revoke_agent(&self, name: &AgentName, by: &ReviewerName) -> Result<bool, LedgerError> {
        let (name, by) = (name.clone(), by.clone());
        self.write(move |mut tx| Box::pin(async move { revoke(&mut tx, &name, &by).await }))
            .await
    }

    async fn agents(&self) -> Result<Vec<AgentSeen>, LedgerError> {
        self.read(|inner| async move { agents(&inner).await }).await
    }

    async fn agent_of(&self, token_id: &str) -> Result<Option<(Agent, String)>, LedgerError> {
        let id = token_id.to_owned();
        self.read(|inner| async move { agent_of(&inner, &id).await })
            .await
    }

    async fn waiting_of(&self, agent: &AgentName, at_most: u32) -> Result<u32, LedgerError> {
        let agent = agent.clone();
        self.read(move |inner| async move { waiting_of(&inner, &agent, at_most).await })
            .await
    }

    async fn all_delivered(&self, calls: &[(AgentName, CallId)]) -> Result<(), LedgerError> {
        let calls = calls.to_vec();
        self.write(move |mut tx| {
            Box::pin(async move {
                for (agent, id) in &calls {
                    calls::delivered(&mut tx, agent, id).await?;
                }
                Ok(())
            })
        })
        .await
    }

    async fn own_operations(
        &self,
        agent: &AgentName,
        after: Option<&OperationId>,
        limit: u32,
    ) -> Result<OwnPage, LedgerError> {
        let (agent, after) = (agent.clone(), after.cloned());
        self.read(move |inner| async move { own(&inner, &agent, after, limit).await })
            .await
    }

    async fn own_operation(
        &self,
        agent: &AgentName,
        operation: &OperationId,
    ) -> Result<Option<Listed>, LedgerError> {
        let (agent, operation) = (agent.clone(), operation.clone());
        self.read(move |inner| async move {
            let mut conn = reader(&inner.readers).await?;
            let found = sqlx::query(OWN_ONE)
                .bind(agent.as_str())
                .bind(operation.as_str())
                .bind(micros(inner.clock.now()))
                .fetch_optional(&mut *conn)
                .await
                .map_err(store::failed)?;
            found.as_ref().map(listed).transpose()
        })
        .await
    }

    async fn answered_of(
        &self,
        calls: &[(AgentName, CallId)],
    ) -> Result<Vec<ToolCall>, LedgerError> {
        let calls = to_json(&calls)?;
        self.read(move |inner| async move {
            let mut conn = reader(&inner.readers).await?;
            let rows = sqlx::query(ANSWERED_OF)
                .bind(calls)
                .fetch_all(&mut *conn)
                .await
                .map_err(store::failed)?;
            rows.iter().map(row::call).collect()
        })
        .await
    }

    async fn attempt_times(&self) -> Result<Vec<AttemptTimes>, LedgerError> {
        self.read(|inner| async move { attempt_times(&inner).await })
            .await
    }

    async fn writable(&self) -> Result<(), LedgerError> {
        // The transaction takes the writer's lock; what wrote nothing is rolled back.
        self.write(|_tx| Box::pin(async move { Ok(()) })).await
    }
}

async fn add(tx: &mut Tx<'_>, new: NewAgent) -> Result<bool, LedgerError> {
    let sql = "SELECT count(*) FROM agents WHERE name = ? AND revoked_at IS NULL";
    let there: i64 = sqlx::query_scalar(sql)
        .bind(new.name.as_str())
        .fetch_one(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    if there > 0 {
        return Ok(false);
    }
    let sql = "INSERT INTO agents (name, token_id, token_hash, tools, added_at, added_by, os_user)
               VALUES (?, ?, ?, ?, ?, ?, ?)";
    sqlx::query(sql)
        .bind(new.name.as_str())
        .bind(&new.token.id)
        .bind(&new.token.hash)
        .bind(new.tools.as_ref().map(to_json).transpose()?)
        .bind(micros(tx.now))
        .bind(new.by.as_str())
        .bind(tx.os_user)
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(true)
}

async fn revoke(tx: &mut Tx<'_>, name: &AgentName, by: &ReviewerName) -> Result<bool, LedgerError> {
    let sql =
        "UPDATE agents SET revoked_at = ?, revoked_by = ? WHERE name = ? AND revoked_at IS NULL";
    let done = sqlx::query(sql)
        .bind(micros(tx.now))
        .bind(by.as_str())
        .bind(name.as_str())
        .execute(&mut *tx.conn)
        .await
        .map_err(store::failed)?;
    Ok(done.rows_affected() > 0)
}

async fn agents(inner: &Arc<Inner>) -> Result<Vec<AgentSeen>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let rows = sqlx::query("SELECT * FROM agents ORDER BY agent_no DESC LIMIT 1000")
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let seen = rows.iter().map(|found| {
        let c = Columns(found);
        let revoked_by = c.opt("revoked_by", Columns::word)?;
        Ok(AgentSeen {
            agent: agent(&c)?,
            added_at: c.at("added_at")?,
            added_by: c.word("added_by")?,
            revoked: c.opt("revoked_at", Columns::at)?.zip(revoked_by),
        })
    });
    seen.collect()
}

fn agent(c: &Columns<'_>) -> Result<Agent, LedgerError> {
    let tools: Option<BTreeSet<ToolName>> = c.opt("tools", Columns::json)?;
    Ok(Agent {
        name: c.word("name")?,
        tools,
    })
}

async fn agent_of(
    inner: &Arc<Inner>,
    token_id: &str,
) -> Result<Option<(Agent, String)>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let sql =
        "SELECT name, tools, token_hash FROM agents WHERE token_id = ? AND revoked_at IS NULL";
    let found = sqlx::query(sql)
        .bind(token_id)
        .fetch_optional(&mut *conn)
        .await
        .map_err(store::failed)?;
    let read = |found: &SqliteRow| {
        let c = Columns(found);
        Ok((agent(&c)?, c.text("token_hash")?))
    };
    found.as_ref().map(read).transpose()
}

/// The index is named: it has an agent's calls without an answer, and no others.
pub(super) const WAITING_OF: &str = "SELECT count(*) FROM (
    SELECT 1 FROM tool_calls INDEXED BY tool_calls_waiting_of
    WHERE state IN ('queued', 'running') AND agent = ? LIMIT ?)";

async fn waiting_of(
    inner: &Arc<Inner>,
    agent: &AgentName,
    at_most: u32,
) -> Result<u32, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let n: i64 = sqlx::query_scalar(WAITING_OF)
        .bind(agent.as_str())
        .bind(at_most)
        .fetch_one(&mut *conn)
        .await
        .map_err(store::failed)?;
    Ok(u32::try_from(n).unwrap_or(u32::MAX))
}

/// The order of the join is written down: a look for each of the given calls.
pub(super) const ANSWERED_OF: &str = "SELECT c.* FROM json_each(?1) j
    CROSS JOIN tool_calls c ON c.agent = j.value ->> 0 AND c.call_id = j.value ->> 1 WHERE c.result IS NOT NULL";

/// `?1` agent, `?2` behind this id, `?3` now, `?4` how many. Ids first, off the index; then their rows.
pub(super) const OWN: &str = "SELECT o.*,
        EXISTS (SELECT 1 FROM drives d WHERE d.operation_id = o.operation_id AND d.until > ?3) AS driven,
        (SELECT json_group_array(DISTINCT session_id) FROM tool_calls c
         WHERE c.operation_id = o.operation_id AND c.agent = ?1 AND session_id IS NOT NULL) AS sessions
    FROM (SELECT DISTINCT operation_id FROM tool_calls INDEXED BY tool_calls_of_agent
          WHERE operation_id IS NOT NULL AND agent = ?1 AND operation_id > ?2 ORDER BY operation_id LIMIT ?4) p
    CROSS JOIN operations o ON o.operation_id = p.operation_id";
/// The same of one id, `?2`.
pub(super) const OWN_ONE: &str = "SELECT o.*,
        EXISTS (SELECT 1 FROM drives d WHERE d.operation_id = o.operation_id AND d.until > ?3) AS driven,
        (SELECT json_group_array(DISTINCT session_id) FROM tool_calls c
         WHERE c.operation_id = o.operation_id AND c.agent = ?1 AND session_id IS NOT NULL) AS sessions
    FROM operations o WHERE o.operation_id = ?2 AND EXISTS (
        SELECT 1 FROM tool_calls c INDEXED BY tool_calls_of_agent
        WHERE c.operation_id IS NOT NULL AND c.agent = ?1 AND c.operation_id = ?2)";

async fn own(
    inner: &Arc<Inner>,
    agent: &AgentName,
    after: Option<OperationId>,
    limit: u32,
) -> Result<OwnPage, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let limit = limit.clamp(1, 1000);
    let rows = sqlx::query(OWN)
        .bind(agent.as_str())
        .bind(after.as_ref().map_or("", OperationId::as_str))
        .bind(micros(inner.clock.now()))
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let more = rows.len() > limit as usize;
    let rows = rows.iter().take(limit as usize).map(listed);
    Ok(OwnPage {
        rows: rows.collect::<Result<_, _>>()?,
        more,
    })
}

fn listed(found: &SqliteRow) -> Result<Listed, LedgerError> {
    let c = Columns(found);
    Ok(Listed {
        row: row::operation(found)?,
        driven: c.flag("driven")?,
        sessions: c.json("sessions")?,
    })
}

/// At most a few lines for each provider and class.
async fn attempt_times(inner: &Arc<Inner>) -> Result<Vec<AttemptTimes>, LedgerError> {
    let mut conn = reader(&inner.readers).await?;
    let sql = "SELECT * FROM attempt_times ORDER BY provider, outcome, le_ms LIMIT 10000";
    let rows = sqlx::query(sql)
        .fetch_all(&mut *conn)
        .await
        .map_err(store::failed)?;
    let times = rows.iter().map(|found| {
        let c = Columns(found);
        Ok(AttemptTimes {
            provider: c.word("provider")?,
            outcome: c.word("outcome")?,
            le_ms: c.int("le_ms")?.unsigned_abs(),
            count: c.int("n")?.unsigned_abs(),
            total_ms: c.int("total_ms")?.unsigned_abs(),
        })
    });
    times.collect()
}
