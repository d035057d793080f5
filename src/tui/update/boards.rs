//! What a key does on a board; [`reading`] what a board reads, and how an answer gets on it.
//!
//! A board never acts but for a tool's pause; it opens operations, which is where people act.

mod reading;

pub use reading::{answered, request};

use super::super::action::Action;
use super::super::board::{Board, Feed, Origin, filter};
use super::super::effect::Effect;
use super::super::message::{Edge, Tab};
use super::super::model::{Focus, Model};
use super::super::pager::Pager;
use super::super::selection::{List, Row};
use super::super::theme::Role;
use super::super::view;
use super::{keys, reading as lists, refit};
use crate::domain::Instant;
use crate::domain::ids::OperationId;
use crate::domain::tool_call::ToolCall;
use crate::ledger::{AuditQuery, CallQuery};
use reading::{more, want_more};

// --- showing and leaving ----------------------------------------------------------------------------

/// Shows a board as it was left, and reads it again.
pub fn show(model: &mut Model, board: Board) -> Vec<Effect> {
    model.boards.origin = None;
    turn_to(model, board);
    request(model)
}

fn turn_to(model: &mut Model, board: Board) {
    model.board = Some(board);
    model.focus = Focus::List;
    model.detail.wide = false;
    refit(model);
}

/// The lists have the screen again.
pub fn leave(model: &mut Model) {
    model.board = None;
    model.boards.origin = None;
    refit(model);
}

/// From an operation that was opened on a board back to where one was.
pub fn come_back(model: &mut Model) -> Vec<Effect> {
    let Some(origin) = model.boards.origin.take() else {
        return Vec::new();
    };
    model.tab = origin.tab;
    (model.filter, model.filter_text) = (origin.filter, origin.filter_text);
    turn_to(model, origin.board);
    // The list behind is as it was, and read with the board.
    lists::begin(model, List::at(model.list.height(), origin.cursor))
}

fn open_operation(model: &mut Model, board: Board, id: OperationId) -> Vec<Effect> {
    let origin = Origin {
        board,
        tab: model.tab,
        filter: std::mem::take(&mut model.filter),
        filter_text: std::mem::take(&mut model.filter_text),
        cursor: model.list.cursor().cloned(),
    };
    leave(model);
    model.boards.origin = Some(origin);
    (model.tab, model.focus) = (Tab::All, Focus::Detail);
    (model.detail.scroll, model.detail.problem) = (0, None);
    let list = List::around(model.list.height(), id);
    let effects = lists::begin(model, list);
    refit(model);
    effects
}

// --- keys -------------------------------------------------------------------------------------------

/// What `action` does on `board`; nothing where it does the same everywhere.
pub fn run(model: &mut Model, board: Board, action: Action) -> Option<Vec<Effect>> {
    Some(match action {
        Action::Back => back(model, board, true),
        Action::Quit => back(model, board, false),
        Action::Open => open(model, board),
        Action::Filter => match model.boards.filter_text(board).map(str::to_owned) {
            Some(text) => keys::edit_filter(model, &text),
            None => not_here(model, "this page has no filter"),
        },
        Action::Shorter | Action::Longer if board == Board::Report => {
            span(model, action == Action::Longer)
        }
        Action::TakeIn | Action::Follow => match board {
            Board::Queue | Board::Audit => settle(model, board, action),
            Board::Engine | Board::Report => {
                not_here(model, "this page shows what is new by itself")
            }
        },
        Action::Down
        | Action::Up
        | Action::HalfDown
        | Action::HalfUp
        | Action::PageDown
        | Action::PageUp
        | Action::Top
        | Action::Bottom => moved(model, board, action),
        Action::Sort
        | Action::Reverse
        | Action::Wide
        | Action::Shorter
        | Action::Longer
        | Action::PrevRow
        | Action::NextRow
        | Action::Evidence
        | Action::Mark
        | Action::CopyId
        | Action::CopyKey
        | Action::CopyRef
        | Action::CopyJson
        | Action::Link
        | Action::Packet
        | Action::Claim
        | Action::Snooze => not_here(model, "not on this page"),
        _ if action.acts() && action != Action::PauseTool => {
            not_here(model, "not on this page: open the operation first")
        }
        _ => return None,
    })
}

fn not_here(model: &mut Model, why: &str) -> Vec<Effect> {
    model.say(Role::Warn, why);
    Vec::new()
}

/// One layer back: the filter goes first, then the board.
fn back(model: &mut Model, board: Board, unfilter: bool) -> Vec<Effect> {
    let filtered = model
        .boards
        .filter_text(board)
        .is_some_and(|t| !t.is_empty());
    if filtered && unfilter {
        return match board {
            Board::Queue => requery(model, board, CallQuery::default(), String::new(), queue),
            Board::Audit => requery(model, board, AuditQuery::default(), String::new(), audit),
            Board::Engine | Board::Report => Vec::new(),
        };
    }
    leave(model);
    lists::want_detail(model)
}

/// `enter`: the operation of the row under the cursor; never acts (U12).
fn open(model: &mut Model, board: Board) -> Vec<Effect> {
    let boards = &model.boards;
    let id = match board {
        Board::Queue => match boards.queue.list.current().map(|e| &e.listed) {
            Some(call) if call.operation.is_none() => {
                model.popup = Some(answer_of(call));
                model.touch();
                return Vec::new();
            }
            call => call.and_then(|c| c.operation.clone()),
        },
        Board::Audit => boards
            .audit
            .list
            .current()
            .map(|e| e.listed.operation_id.clone()),
        Board::Engine | Board::Report => None,
    };
    match id {
        Some(id) => open_operation(model, board, id),
        None => Vec::new(),
    }
}

/// What a call without an operation was told.
fn answer_of(call: &ToolCall) -> Pager {
    let text = match &call.result {
        Some(result) => serde_json::to_string(result).unwrap_or_default(),
        None => "It is not answered yet.".to_owned(),
    };
    let title = format!("call {}: no operation", call.id);
    Pager::new(title, format!("{text}\nIt asked: {}", call.arguments))
}

fn span(model: &mut Model, longer: bool) -> Vec<Effect> {
    let page = &mut model.boards.report;
    let next = page.span.next(longer);
    if next == page.span {
        return Vec::new();
    }
    page.span = next;
    (page.report, page.asked_at, page.scroll) = (None, None, 0);
    page.reading.generation = page.reading.generation.wrapping_add(1);
    // One pass over the ledger at a time: the next begins when the last has ended.
    page.reading.again = page.reading.in_flight;
    model.touch();
    request(model)
}

/// Shows what was announced, or lets the list move by itself.
fn settle(model: &mut Model, board: Board, action: Action) -> Vec<Effect> {
    let now = model.now;
    let follow = action == Action::Follow;
    let follows = match board {
        Board::Queue => taken_in(&mut model.boards.queue.list, follow, now),
        _ => taken_in(&mut model.boards.audit.list, follow, now),
    };
    if follows {
        model.say(Role::Key, "following: the list moves until the next key");
    }
    model.touch();
    request(model)
}

fn taken_in<R: Row>(list: &mut List<R>, follow: bool, now: Instant) -> bool {
    list.follow = follow && !list.follow;
    list.take_in(now);
    list.follow
}

fn moved(model: &mut Model, board: Board, action: Action) -> Vec<Effect> {
    let now = model.now;
    model.touch();
    match board {
        Board::Queue => {
            let step = move_cursor(&mut model.boards.queue.list, action, now);
            go_on(model, board, step)
        }
        Board::Audit => {
            let step = move_cursor(&mut model.boards.audit.list, action, now);
            go_on(model, board, step)
        }
        Board::Engine => {
            move_tool(model, action);
            Vec::new()
        }
        Board::Report => {
            let limit = view::report_scroll_limit(model);
            let page = usize::from(view::layout::of(model).board.height.saturating_sub(1));
            let scroll = model.boards.report.scroll.min(limit);
            model.boards.report.scroll = keys::scrolled(scroll, limit, page, action);
            Vec::new()
        }
    }
}

/// What a move of the cursor needs.
#[derive(Clone, Copy)]
enum Step {
    /// Perhaps further rows near it.
    Near,
    /// The end of the list.
    End,
    /// The list from its head.
    Head,
}

fn move_cursor<R: Row>(list: &mut List<R>, action: Action, now: Instant) -> Step {
    match action {
        Action::Down => list.step(1),
        Action::Up => list.step(-1),
        Action::HalfDown => list.step(list.half()),
        Action::HalfUp => list.step(-list.half()),
        Action::PageDown => list.step(list.page()),
        Action::PageUp => list.step(-list.page()),
        Action::Bottom if list.more_below => return Step::End,
        Action::Bottom => list.to_bottom(),
        Action::Top if list.to_top(now) => return Step::Head,
        _ => {}
    }
    Step::Near
}

fn go_on(model: &mut Model, board: Board, step: Step) -> Vec<Effect> {
    match step {
        Step::Near => want_more(model, board),
        Step::End => more(model, board, Edge::Last),
        Step::Head => {
            let height = usize::from(view::layout::of(model).board.height.saturating_sub(1));
            match board {
                Board::Queue => model.boards.queue.list = List::new(height, false),
                _ => model.boards.audit.list = List::new(height, false),
            }
            anew(model, board)
        }
    }
}

/// The cursor stands on tools; beyond the first and the last one the page scrolls.
fn move_tool(model: &mut Model, action: Action) {
    let limit = view::engine_scroll_limit(model);
    let page = usize::from(view::layout::of(model).board.height.saturating_sub(1));
    let room = &mut model.boards.engine;
    room.scroll = room.scroll.min(limit);
    if matches!(action, Action::Top | Action::Bottom) {
        room.to_end(action == Action::Bottom);
    }
    let on_tool = match action {
        Action::Down => room.step(1),
        Action::Up => room.step(-1),
        _ => false,
    };
    if on_tool {
        let line = view::engine_cursor_line(model);
        let room = &mut model.boards.engine;
        room.scroll = room
            .scroll
            .min(line)
            .max((line + 1).saturating_sub(page + 1));
    } else {
        room.scroll = keys::scrolled(room.scroll, limit, page, action);
    }
}

// --- the filter -------------------------------------------------------------------------------------

/// Takes the filter line into force, or says what is wrong with it.
pub fn apply(model: &mut Model, board: Board) -> Vec<Effect> {
    let Some(edit) = &mut model.filter_edit else {
        return Vec::new();
    };
    let text = edit.field.text().trim().to_owned();
    if let Some(fault) = filter::fault(board, edit.field.text()) {
        edit.fault = Some(fault);
        model.touch();
        return Vec::new();
    }
    (model.filter_edit, model.notice) = (None, None);
    match (board, filter::calls(&text), filter::audit(&text)) {
        (Board::Queue, Ok(query), _) => requery(model, board, query, text, queue),
        (Board::Audit, _, Ok(query)) => requery(model, board, query, text, audit),
        _ => Vec::new(),
    }
}

fn queue(model: &mut Model) -> &mut Feed<ToolCall, CallQuery> {
    &mut model.boards.queue
}

fn audit(model: &mut Model) -> &mut Feed<crate::ledger::Audited, AuditQuery> {
    &mut model.boards.audit
}

/// Begins another list; the cursor stays on its row if the new list has it.
fn requery<R: Row, Q>(
    model: &mut Model,
    board: Board,
    query: Q,
    text: String,
    feed: fn(&mut Model) -> &mut Feed<R, Q>,
) -> Vec<Effect> {
    let feed = feed(model);
    (feed.query, feed.filter_text) = (query, text);
    feed.list = List::at(feed.list.height(), feed.list.cursor().cloned());
    anew(model, board)
}

/// Reads a list from its head; answers for the old one will be dropped.
fn anew(model: &mut Model, board: Board) -> Vec<Effect> {
    let reading = model.boards.reading_mut(board);
    reading.generation = reading.generation.wrapping_add(1);
    (reading.in_flight, reading.again, reading.as_of) = (false, false, None);
    model.touch();
    request(model)
}
