//! The agents' way to samekey: accept the call, wait for its answer, take it.
//!
//! Owns: what a gateway would do for a model. Never: reads a row or knows an intent. Tests:
//! `tests/demo.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

use super::DemoError;
use super::asks::Ask;
use super::play::Client;
use crate::clock::Clock;
use crate::domain::ids::{OperationId, OrderId, ToolName};
use crate::domain::tool_call::ToolResult;
use crate::ledger::{Accepted, NewCall, SharedLedger};
use crate::simulator::Held;

/// At most so often an agent looks for its answer (real time); every commit wakes all who wait.
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// Without a wake-up it looks all the same (real time).
const LOOK_ANYWAY: Duration = Duration::from_secs(1);
/// An answer that takes longer (virtual time) will not come.
const GIVE_UP: Duration = Duration::from_hours(13);

/// samekey, as agents see it.
pub(super) struct Desk {
    pub ledger: SharedLedger,
    pub tool: ToolName,
    pub clock: Clock,
    pub held: Held,
    pub accepted: AtomicU64,
    pub answered: AtomicU64,
}

impl Desk {
    pub fn new(ledger: SharedLedger, tool: ToolName, clock: Clock, held: Held) -> Self {
        Self {
            ledger,
            tool,
            clock,
            held,
            accepted: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }
    }

    async fn answer(&self, ask: &Ask) -> Result<ToolResult, DemoError> {
        let mut changed = self.ledger.changed();
        loop {
            changed.mark_unchanged();
            let call = self.ledger.call(&ask.agent, &ask.call).await?;
            if let Some(result) = call.and_then(|c| c.result) {
                return Ok(result);
            }
            something(&mut changed).await;
        }
    }
}

async fn something(changed: &mut watch::Receiver<u64>) {
    tokio::time::sleep(LOOK_EVERY).await;
    tokio::select! {
        _ = changed.changed() => {}
        () = tokio::time::sleep(LOOK_ANYWAY) => {}
    }
}

/// The arguments as a gateway passes them on: one spelling of the JSON, and `after` where the model
/// names an earlier refund.
fn canonical(arguments: &str, after: Option<&OperationId>) -> Result<String, DemoError> {
    let mut value: Value = serde_json::from_str(arguments)?;
    if let (Value::Object(members), Some(after)) = (&mut value, after) {
        members.insert("after".into(), Value::from(after.as_str()));
    }
    Ok(value.to_string())
}

#[async_trait]
impl Client for Desk {
    async fn ask(
        &self,
        _order: &OrderId,
        ask: &Ask,
        after: Option<&OperationId>,
        read: bool,
    ) -> Result<Option<OperationId>, DemoError> {
        let call = NewCall {
            id: ask.call.clone(),
            agent: ask.agent.clone(),
            tool: self.tool.clone(),
            arguments: canonical(&ask.arguments, after)?,
            session: Some(ask.session.clone()),
        };
        match self.ledger.accept_call(call).await? {
            Accepted::New(_) => self.accepted.fetch_add(1, Ordering::Relaxed),
            Accepted::Known(_) | Accepted::Conflict => {
                return Err(DemoError::KnownCall(ask.call.clone()));
            }
        };
        let answer = self.clock.timeout(GIVE_UP, self.answer(ask)).await;
        let result = answer.ok_or_else(|| DemoError::Unanswered(ask.call.clone()))??;
        self.answered.fetch_add(1, Ordering::Relaxed);
        if read {
            self.ledger.delivered(&ask.agent, &ask.call).await?;
        }
        Ok(result.operation().cloned())
    }

    fn held(&self) -> Held {
        self.held.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_one_spelling_and_may_name_the_refund_before() {
        let one = canonical(r#"{"b" : 1,  "a":"x"}"#, None).expect("JSON");
        let two = canonical(r#"{"a":"x","b":1}"#, None).expect("JSON");
        assert_eq!(one, two);
        let op = OperationId::parse("op_1").expect("id");
        let named = canonical("{}", Some(&op)).expect("JSON");
        assert_eq!(named, r#"{"after":"op_1"}"#);
    }
}
