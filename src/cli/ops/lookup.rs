//! `ops lookup`: asks the provider, through the gate, for one row or for several; prints the verdicts.

use serde_json::{Value, json};

use super::super::context::{Context, Desk};
use super::decide::print;
use crate::domain::evidence;
use crate::domain::ids::OperationId;
use crate::error::{Exit, Failure};
use crate::review::{Decided, GateError};

pub(super) async fn run(cx: &Context, desk: &Desk, ids: &[OperationId]) -> Result<Exit, Failure> {
    if let [id] = ids {
        one(cx, desk, id).await
    } else {
        several(cx, desk, ids).await
    }
}

async fn one(cx: &Context, desk: &Desk, id: &OperationId) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let answer = answered(id, gate.lookup(id, &person).await)?;
    let says = format!("{id}: {}", answer.says);
    print(cx, desk, id, "lookup", &says, None, false).await?;
    Ok(Exit::Done)
}

/// A provider that did not answer is a failure, though what was seen is kept.
fn answered(id: &OperationId, answer: Result<Decided, GateError>) -> Result<Decided, Failure> {
    let decided = answer?;
    if evidence::silence(&decided.op.evidence).is_none() {
        return Ok(decided);
    }
    let message = format!("{id}: {}", decided.says);
    Err(Failure::unreachable("provider_unreachable", message)
        .hint("try again later; `samekey ops show` keeps what was seen"))
}

/// One line per row, and the worst of the exit codes.
async fn several(cx: &Context, desk: &Desk, ids: &[OperationId]) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let answers = gate
        .lookup_many(ids, &person, |n, id, _| {
            tracing::info!(operation = %id, n, "looked up");
        })
        .await?;
    let mut worst = Exit::Done;
    let mut values = Vec::new();
    for (id, answer) in answers {
        let value = match answered(&id, answer) {
            Ok(decided) => {
                line(cx, &format!("{id}: {}", decided.says))?;
                json!({
                    "operation_id": id, "action": "lookup", "message": decided.says,
                    "verdict": decided.op.row.verdict, "error": Value::Null,
                })
            }
            Err(failure) => {
                let message = failure.message.trim_start_matches(&format!("{id}: "));
                line(cx, &format!("{id}: {message}"))?;
                if failure.exit as u8 > worst as u8 {
                    worst = failure.exit;
                }
                json!({
                    "operation_id": id, "action": "lookup", "message": message, "verdict": Value::Null,
                    "error": { "code": failure.code, "message": message, "hint": failure.hint },
                })
            }
        };
        values.push(value);
    }
    if cx.out.is_json() {
        cx.out.json(&values)?;
    }
    Ok(worst)
}

fn line(cx: &Context, text: &str) -> Result<(), Failure> {
    if cx.out.is_json() {
        return Ok(());
    }
    cx.out.text(text)
}
