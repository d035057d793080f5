//! What calls were answered: once, never changed, and never more than their row (I24, L1).

use std::time::Duration;

use samekey::domain::tool_call::{RejectClass, ToolResult};
use serde_json::Value;
use sqlx::Row;

use super::{Facts, Judge, short};
use crate::core::lock;
use crate::store::Store;

impl Judge {
    pub(super) fn read_answers(&self, store: &Store, facts: &mut Facts) {
        let sql = "SELECT agent, call_id, result, arguments FROM tool_calls WHERE result IS NOT NULL ORDER BY rowid";
        let mut conn = lock(&self.conn);
        let rows = store.block(sqlx::query(sql).fetch_all(&mut *conn));
        for row in rows.expect("the judge reads") {
            let key: (String, String) = (row.get("agent"), row.get("call_id"));
            let text: String = row.get("result");
            match facts.answers.get(&key) {
                Some(known) if *known == text => continue,
                Some(known) => {
                    let what = format!("the answer of {} was {known} and is {text}", key.1);
                    self.core.violated("I24", what);
                    continue;
                }
                None => {}
            }
            let result: ToolResult = serde_json::from_str(&text).expect("an answer");
            let status = result.status();
            let of = result.operation().map_or("", |o| short(o.as_str()));
            let why = match &result {
                ToolResult::Rejected { reason, .. } => reason.as_str(),
                _ => "",
            };
            self.core
                .note(format!("{} is answered {status} {of}{why}", key.1));
            self.answered(facts, &key, &result, row.get("arguments"));
            facts.answers.insert(key, text);
        }
    }

    /// I24: an answer claims no more than its row, at the instant in which it is stored.
    fn answered(
        &self,
        facts: &Facts,
        key: &(String, String),
        result: &ToolResult,
        arguments: &str,
    ) {
        let core = &self.core;
        let row = result.operation().and_then(|id| facts.ops.get(id.as_str()));
        let holds = match (result, row) {
            (ToolResult::Rejected { class, reason, .. }, _) => {
                self.rejected(facts, key, *class, reason.as_str(), arguments);
                true
            }
            (_, None) => false,
            (ToolResult::Done { repeat, .. }, Some(r)) => {
                if *repeat {
                    core.saw("a stored result given again");
                }
                (r.status == "succeeded" && r.contradicted.is_none())
                    || (*repeat && r.ever_succeeded)
            }
            (ToolResult::Failed { .. }, Some(r)) => {
                r.status == "failed" && r.contradicted.is_none()
            }
            (ToolResult::Checking { .. }, Some(r)) => {
                r.status != "open" || r.contradicted.is_some()
            }
            (ToolResult::Held { .. }, Some(r)) => r.status == "open" && r.held,
            (ToolResult::Unconfirmed { .. }, Some(r)) => r.status == "open" && !r.held,
        };
        if !holds {
            let row = row.map(|r| (&r.status, &r.contradicted));
            core.violated(
                "I24",
                format!("{} is answered {result:?}, the row is {row:?}", key.1),
            );
        }
    }

    /// "Nothing was done" is wrong where the effect asked for was on its way before the call began.
    fn rejected(
        &self,
        facts: &Facts,
        key: &(String, String),
        class: RejectClass,
        reason: &str,
        arguments: &str,
    ) {
        let asked: Value = serde_json::from_str(arguments).expect("JSON");
        let Some(began) = facts.leased.get(key) else {
            return;
        };
        if reason.contains("waited too long")
            || class == RejectClass::OrderBusy
            || !asked["after"].is_null()
        {
            return;
        }
        for (id, op) in &facts.ops {
            let same = asked["order_id"] == op.order.as_str() && asked["amount_cents"] == op.amount;
            let alive = matches!(op.status.as_str(), "open" | "unknown") && op.opened < *began;
            if same && alive {
                let what = format!(
                    "{} is rejected ({reason}) although {id} is {}",
                    key.1, op.status
                );
                self.core.violated("I24", what);
            }
        }
    }

    /// Accepted calls that have no answer, with the true time of their acceptance.
    pub fn unanswered(&self) -> Vec<((String, String), Duration)> {
        let facts = lock(&self.facts);
        let open = facts
            .accepted
            .iter()
            .filter(|(key, _)| !facts.answers.contains_key(*key));
        open.map(|(key, at)| (key.clone(), *at)).collect()
    }
}
