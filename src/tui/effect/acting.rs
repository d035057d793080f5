//! What a person does on the screen, through the gate: questions, decisions, lookups, tools, the desk.
//! Only a frozen target gets here, and with it only what its kind allows.

use std::collections::BTreeMap;

use super::super::action::{Ask, Asked, Frozen, LookedAt, Target, Wish};
use super::super::message::{Done, Failure, Message};
use super::Runner;
use crate::domain::evidence;
use crate::domain::ids::{OperationId, ProviderRef};
use crate::domain::review_event::ReviewRefusal;
use crate::review::{Decided, GateError};

/// A frozen target that its effect cannot be about: a fault of the screen, never of the person.
const NOT_THIS: &str = "this was not asked about such a target";

impl Runner {
    pub(super) async fn ask(&self, frozen: &Frozen) -> Result<Asked, String> {
        let by = frozen.by();
        let (id, asked) = match frozen.target() {
            Target::Row { operation, ask, .. } => {
                let asked = self.gate.ask(operation, *ask, by).await;
                (Some(operation), asked)
            }
            Target::Rows(ids) => (None, self.gate.ask_lookups(ids, by).await),
            Target::Tool { tool, paused } => {
                (None, self.gate.ask_tool(tool, paused.as_ref(), by).await)
            }
            Target::Desk(_) => return Err(NOT_THIS.into()),
        };
        match asked {
            Ok(asked) => Ok(asked),
            Err(error) => Err(self.failure(id, &error).await.why),
        }
    }

    pub(super) async fn decide(
        &self,
        frozen: &Frozen,
        note: &str,
        typed: Option<ProviderRef>,
    ) -> Result<Done, Failure> {
        let Target::Row {
            operation,
            looked_at,
            ask,
        } = frozen.target()
        else {
            return Err(not_this());
        };
        // A note says nothing about the row's state, so nobody can come too late with it.
        let looked_at = (*ask != Ask::Note).then(|| looked_at.clone());
        let by = frozen.by();
        let decided = self
            .gate
            .decide(operation, *ask, by, note, looked_at, typed)
            .await;
        self.done(operation, decided).await
    }

    pub(super) async fn look_up(&self, serial: u64, frozen: &Frozen) -> Result<Done, Failure> {
        let by = frozen.by();
        match frozen.target() {
            Target::Row {
                operation,
                ask: Ask::Lookup,
                ..
            } => {
                let decided = self.gate.lookup(operation, by).await;
                self.done(operation, decided).await
            }
            Target::Rows(ids) => {
                let of = ids.len();
                let answers = self.answers.clone();
                // Progress that finds the channel full is told by the next.
                let each = move |done, _: &OperationId, _: &Result<Decided, GateError>| {
                    let _ = answers.try_send(Message::Progress { serial, done, of });
                };
                match self.gate.lookup_many(ids, by, each).await {
                    Ok(answers) => Ok(several(answers)),
                    Err(error) => Err(self.failure(None, &error).await),
                }
            }
            Target::Row { .. } | Target::Desk(_) | Target::Tool { .. } => Err(not_this()),
        }
    }

    pub(super) async fn switch(&self, frozen: &Frozen, note: &str) -> Result<Done, Failure> {
        let Target::Tool { tool, paused } = frozen.target() else {
            return Err(not_this());
        };
        let by = frozen.by();
        match self.gate.switch(tool, paused.as_ref(), by, note).await {
            Ok(says) => Ok(Done {
                says,
                ..Done::default()
            }),
            Err(error) => Err(self.failure(None, &error).await),
        }
    }

    pub(super) async fn at_desk(&self, frozen: &Frozen, wish: Wish) -> Result<Done, String> {
        let Target::Desk(id) = frozen.target() else {
            return Err(NOT_THIS.into());
        };
        let by = frozen.by();
        let done = match wish {
            Wish::Claim => self.gate.claim(id, by).await,
            Wish::Release => self.gate.release(id, by).await,
            Wish::Snooze(until) => self.gate.snooze(id, by, until).await,
        };
        self.done(id, done).await.map_err(|failure| failure.why)
    }

    async fn done(
        &self,
        id: &OperationId,
        decided: Result<Decided, GateError>,
    ) -> Result<Done, Failure> {
        match decided {
            Ok(decided) => Ok(Done {
                operation: Some(decided.op.row.id),
                proposed: decided.proposed,
                says: decided.says,
                left: Vec::new(),
            }),
            Err(error) => Err(self.failure(Some(id), &error).await),
        }
    }

    /// A lost race names who won and when (U23).
    async fn failure(&self, id: Option<&OperationId>, error: &GateError) -> Failure {
        let mut why = error.to_string();
        let mut moved_to = None;
        let GateError::Refused(refusal) = error else {
            return Failure { why, moved_to };
        };
        let row = match id {
            Some(id) => self.ledger.rows(std::slice::from_ref(id)).await,
            None => Ok(Vec::new()),
        };
        let row = row.ok().and_then(|mut rows| rows.pop());
        match (refusal, row) {
            (ReviewRefusal::MovedOn { .. } | ReviewRefusal::WaitsOther(_), Some(row)) => {
                moved_to = Some(LookedAt::of(&row));
            }
            (ReviewRefusal::ClosedSame { .. } | ReviewRefusal::ClosedOther { .. }, Some(row)) => {
                if let Some(at) = row.closed_at {
                    why = format!("{why} (at {})", at.format("%Y-%m-%d %H:%M:%SZ"));
                }
            }
            _ => {}
        }
        Failure { why, moved_to }
    }
}

fn not_this() -> Failure {
    Failure {
        why: NOT_THIS.into(),
        moved_to: None,
    }
}

/// How often each verdict was found, and what could not be looked up.
fn several(answers: Vec<(OperationId, Result<Decided, GateError>)>) -> Done {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut left = Vec::new();
    let mut looked = 0_usize;
    for (id, answer) in answers {
        match answer {
            Ok(decided) if evidence::silence(&decided.op.evidence).is_some() => {
                left.push((id, decided.says));
            }
            Ok(decided) => {
                let verdict = decided.op.row.verdict.map_or("no verdict", |v| v.as_str());
                let known = found.entry(verdict.replace('_', " ")).or_default();
                *known = known.saturating_add(1);
                looked = looked.saturating_add(1);
            }
            Err(error) => left.push((id, error.to_string())),
        }
    }
    let found: Vec<_> = found
        .iter()
        .map(|(word, n)| format!("{n} {word}"))
        .collect();
    let says = if found.is_empty() {
        "none was looked up".to_owned()
    } else {
        format!("{looked} looked up: {}", found.join(", "))
    };
    Done {
        says,
        left,
        ..Done::default()
    }
}
