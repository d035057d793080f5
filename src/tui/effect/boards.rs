//! Reads the ledger for a board, where anything was committed since the last time.

use std::time::Duration;

use super::super::board::{Asking, BoardAnswer, BoardLoaded, BoardQuery, EngineView, ToolView};
use super::super::message::{Edge, Message};
use super::{ALIVE, REREAD, Runner};
use crate::domain::ids::ToolName;
use crate::domain::{earlier, since};
use crate::ledger::LedgerError;

/// The last reading of the head of a board that was answered.
pub(super) struct Last {
    asking: Asking<BoardQuery>,
    /// Of the ledger, from before it was read.
    version: i64,
    at: tokio::time::Instant,
}

/// A report's span moves with every question; its generation tells one span from another.
fn asks_the_same(a: &Asking<BoardQuery>, b: &Asking<BoardQuery>) -> bool {
    match (&a.what, &b.what) {
        (BoardQuery::Report(_), BoardQuery::Report(_)) => a.generation == b.generation,
        _ => a == b,
    }
}

/// Something of a board depends on the time, so that it is never older than this (real time): which
/// engines live; what leaves the span of a report, which is long.
fn reread(asking: &Asking<BoardQuery>) -> Duration {
    match asking.what {
        BoardQuery::Report(_) => Duration::from_mins(1),
        _ => REREAD,
    }
}

impl Runner {
    pub(super) async fn board(&self, asking: Asking<BoardQuery>) -> Message {
        let as_of = self.clock.now();
        let read = self.changed_board(&asking).await;
        let result = read.map_err(|e| e.to_string()).map(|answer| BoardLoaded {
            as_of,
            took: since(as_of, self.clock.now()),
            answer,
        });
        answer(&asking, result)
    }

    async fn changed_board(&self, asking: &Asking<BoardQuery>) -> Result<BoardAnswer, LedgerError> {
        let at = tokio::time::Instant::now();
        let version = self.ledger.version().await?;
        let same = |last: &Last| {
            last.version == version
                && asks_the_same(&last.asking, asking)
                && last.at.elapsed() < reread(asking)
        };
        if self.last_board.lock().await.as_ref().is_some_and(same) {
            return Ok(BoardAnswer::Unchanged);
        }
        let answer = self.read_board(&asking.what, asking.edge).await?;
        if asking.edge.is_none() {
            let asking = asking.clone();
            *self.last_board.lock().await = Some(Last {
                asking,
                version,
                at,
            });
        }
        Ok(answer)
    }

    async fn read_board(
        &self,
        query: &BoardQuery,
        edge: Option<Edge>,
    ) -> Result<BoardAnswer, LedgerError> {
        // Rows above and the end of a list are read in reverse order.
        let reversed = edge.is_some_and(|e| e != Edge::Below);
        Ok(match query {
            BoardQuery::Calls(query, shown) => {
                let mut page = self.ledger.calls(query).await?;
                let missing: Vec<_> = shown
                    .iter()
                    .filter(|(agent, id)| {
                        !page.calls.iter().any(|c| c.id == *id && c.agent == *agent)
                    })
                    .cloned()
                    .collect();
                let others = if missing.is_empty() {
                    Vec::new()
                } else {
                    self.ledger.calls_of(&missing).await?
                };
                if reversed {
                    page.calls.reverse();
                }
                BoardAnswer::Calls(page, others)
            }
            BoardQuery::Audit(query) => {
                let mut page = self.ledger.audit(query).await?;
                if reversed {
                    page.rows.reverse();
                }
                BoardAnswer::Audit(page)
            }
            BoardQuery::Engine => BoardAnswer::Engine(self.engine_view().await?),
            BoardQuery::Report(query) => BoardAnswer::Report(self.ledger.report(query).await?),
        })
    }

    async fn engine_view(&self) -> Result<EngineView, LedgerError> {
        let as_of = self.clock.now();
        let mut engines = self.ledger.engines().await?;
        let since = earlier(as_of, ALIVE);
        engines.sort_by_key(|e| {
            (
                e.stopped || e.seen_at <= since,
                std::cmp::Reverse(e.seen_at),
            )
        });
        let states = self.ledger.tools().await?;
        let terms = self.gate.all_terms();
        let mut names: Vec<&ToolName> =
            terms.keys().chain(states.iter().map(|s| &s.tool)).collect();
        names.sort();
        names.dedup();
        let tools = names.into_iter().map(|tool| ToolView {
            tool: tool.clone(),
            state: states.iter().find(|s| s.tool == *tool).cloned(),
            terms: terms.get(tool).cloned(),
        });
        Ok(EngineView {
            as_of: Some(as_of),
            tools: tools.collect(),
            buckets: self.ledger.buckets().await?,
            notices: self.ledger.notice_counts().await?,
            events: self.ledger.recovery().event_counts().await?,
            engines,
        })
    }
}

fn answer(asking: &Asking<BoardQuery>, what: Result<BoardLoaded, String>) -> Message {
    Message::Board(Box::new(Asking {
        board: asking.board,
        generation: asking.generation,
        edge: asking.edge,
        what,
    }))
}

/// The answer where the task itself is lost.
pub(super) fn lost(asking: &Asking<BoardQuery>, why: String) -> Message {
    answer(asking, Err(why))
}
