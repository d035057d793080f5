//! What a board reads, and how an answer gets on it.

use std::collections::BTreeMap;

use super::super::super::board::{Asking, Board, BoardAnswer, BoardLoaded, BoardQuery, Feed};
use super::super::super::effect::Effect;
use super::super::super::message::Edge;
use super::super::super::model::Model;
use super::super::super::selection::{Batch, List, Row};
use super::super::refit;
use crate::domain::Instant;
use crate::domain::tool_call::ToolCall;
use crate::ledger::{AuditQuery, CallPage, CallQuery};

/// Asks for a reading of the board that is shown; while one is on its way, for one more after it.
pub fn request(model: &mut Model) -> Vec<Effect> {
    let Some(board) = model.board else {
        return Vec::new();
    };
    let (now, second) = (model.now, model.second);
    let is_report = board == Board::Report;
    if is_report && !model.boards.report.is_due(now, second) {
        return Vec::new();
    }
    let reading = model.boards.reading_mut(board);
    if reading.in_flight {
        // A report has its own pace.
        reading.again |= !is_report;
        return Vec::new();
    }
    (reading.in_flight, reading.again) = (true, false);
    if is_report {
        model.boards.report.asked_at = Some(now);
    }
    let what = model.boards.query(board, now);
    ask(model, board, None, what)
}

fn ask(model: &Model, board: Board, edge: Option<Edge>, what: BoardQuery) -> Vec<Effect> {
    vec![Effect::Board(Box::new(Asking {
        board,
        generation: model.boards.reading(board).generation,
        edge,
        what,
    }))]
}

/// Further rows, where the cursor comes near the end of what is loaded.
pub fn want_more(model: &mut Model, board: Board) -> Vec<Effect> {
    let edge = match board {
        Board::Queue => model.boards.queue.list.wants().map(|w| w.edge),
        Board::Audit => model.boards.audit.list.wants().map(|w| w.edge),
        Board::Engine | Board::Report => None,
    };
    edge.map_or_else(Vec::new, |edge| more(model, board, edge))
}

pub fn more(model: &mut Model, board: Board, edge: Edge) -> Vec<Effect> {
    let ascending = edge != Edge::Below;
    let what = match model.boards.query(board, model.now) {
        BoardQuery::Calls(query, _) => {
            let list = &mut model.boards.queue.list;
            let after = list.wants().and_then(|w| w.after);
            list.fetching = Some(edge);
            let query = CallQuery {
                ascending,
                after: after.filter(|_| edge != Edge::Last),
                ..query
            };
            BoardQuery::Calls(query, Vec::new())
        }
        BoardQuery::Audit(query) => {
            let list = &mut model.boards.audit.list;
            let after = list.wants().and_then(|w| w.after);
            list.fetching = Some(edge);
            BoardQuery::Audit(AuditQuery {
                ascending,
                after: after.filter(|_| edge != Edge::Last),
                ..query
            })
        }
        BoardQuery::Engine | BoardQuery::Report(_) => return Vec::new(),
    };
    ask(model, board, Some(edge), what)
}

/// An answer arrived.
pub fn answered(model: &mut Model, answer: Asking<Result<BoardLoaded, String>>) -> Vec<Effect> {
    let Asking {
        board,
        generation,
        edge,
        what,
    } = answer;
    let reading = model.boards.reading_mut(board);
    let stale = generation != reading.generation;
    if stale && board != Board::Report {
        return Vec::new();
    }
    if edge.is_none() {
        reading.in_flight = false;
    }
    if !stale {
        take(model, board, edge, what);
    }
    let mut effects = want_more(model, board);
    if model.boards.reading(board).again && model.board == Some(board) {
        effects.extend(request(model));
    }
    effects
}

fn take(model: &mut Model, board: Board, edge: Option<Edge>, what: Result<BoardLoaded, String>) {
    let reading = model.boards.reading_mut(board);
    let before = reading.problem.take();
    let second = reading.as_of.map(|at| at.timestamp());
    let mut quiet = false;
    match what {
        Err(why) => {
            reading.problem = Some(why);
            match board {
                Board::Queue => model.boards.queue.list.fetching = None,
                Board::Audit => model.boards.audit.list.fetching = None,
                Board::Engine | Board::Report => {}
            }
        }
        Ok(loaded) => {
            // The header says it to the second.
            quiet = matches!(loaded.answer, BoardAnswer::Unchanged)
                && second == Some(loaded.as_of.timestamp());
            if edge.is_none() {
                reading.as_of = Some(loaded.as_of);
            }
            model.now = model.now.max(loaded.as_of);
            fill(model, board, edge, loaded);
        }
    }
    if before != model.boards.reading(board).problem {
        refit(model);
    } else if !quiet {
        model.touch();
    }
}

fn fill(model: &mut Model, board: Board, edge: Option<Edge>, loaded: BoardLoaded) {
    let (now, locked) = (model.now, model.dialog.is_some());
    let boards = &mut model.boards;
    match (loaded.answer, edge) {
        (BoardAnswer::Calls(page, others), None) => {
            let Feed { list, query, .. } = &mut boards.queue;
            refresh_calls(list, query, (page, others), locked, now);
        }
        (BoardAnswer::Calls(page, _), Some(edge)) => {
            boards.queue.list.extend(edge, batch(page.calls, page.more));
        }
        (BoardAnswer::Audit(page), None) => {
            // An entry never changes and never goes.
            let list = &mut boards.audit.list;
            list.renew(batch(page.rows, page.more), locked, now, |_| false);
        }
        (BoardAnswer::Audit(page), Some(edge)) => {
            boards.audit.list.extend(edge, batch(page.rows, page.more));
        }
        // What was read then is what there is now; a report says itself when it was read.
        (BoardAnswer::Unchanged, _) if board == Board::Engine => {
            boards.engine.view.as_of = Some(loaded.as_of);
        }
        (BoardAnswer::Unchanged, _) => {}
        (BoardAnswer::Engine(view), _) => boards.engine.take(view),
        (BoardAnswer::Report(report), _) => {
            boards.report.report = Some(report);
            boards.report.took = loaded.took;
        }
    }
}

fn refresh_calls(
    list: &mut List<ToolCall>,
    query: &CallQuery,
    (page, others): (CallPage, Vec<ToolCall>),
    locked: bool,
    now: Instant,
) {
    let fits = |call: &ToolCall| {
        query.state.is_none_or(|s| s == call.state)
            && query.delivery.is_none_or(|d| d == call.delivery)
    };
    let others: BTreeMap<_, ToolCall> = others.into_iter().map(|c| (c.id(), c)).collect();
    list.renew(batch(page.calls, page.more), locked, now, |call| {
        if let Some(other) = others.get(&call.id()) {
            *call = other.clone();
        }
        !fits(call)
    });
}

/// A page whose search always ends at its last row.
fn batch<R>(rows: Vec<R>, more: bool) -> Batch<R> {
    Batch {
        rows,
        more,
        next: None,
    }
}
