//! Whether an action can come to anything now, and why not: for the hints and the `:` line.
//!
//! Owns: these courtesies. Never: the last word, which the gate and the rules have; nothing here is a
//! rule about money. Tests: `tests/tui_overlays.rs`.

use super::action::{Access, Action};
use super::board::Board;
use super::keymap::{Context, TABLE};
use super::message::Tab;
use super::model::{Freshness, Model};
use crate::domain::guard::Ruling;
use crate::domain::operation::{Closing, OperationRow, Status};

const NO_NEWS: &str = "no new rows were announced";

/// Why `action` would come to nothing now; `None` where it may. What the rules said to the row in the
/// detail is part of it.
#[must_use]
pub fn why_not(model: &Model, action: Action) -> Option<String> {
    does_not_apply(model, action).or_else(|| {
        let row = &model.list.current()?.listed.row;
        match action {
            Action::CloseSucceeded => ruled_out(model, row, Closing::Succeeded),
            Action::CloseFailed => ruled_out(model, row, Closing::Failed),
            _ => None,
        }
    })
}

/// The same as far as page and list tell, without asking the rules: for the hints, which would
/// otherwise come and go with each reading.
#[must_use]
pub fn does_not_apply(model: &Model, action: Action) -> Option<String> {
    let page = model.page();
    let here = TABLE
        .iter()
        .any(|b| b.action == action && b.on.contains(&page));
    if !here {
        return Some(not_here(action).to_owned());
    }
    if writes(action) {
        if matches!(model.access, Access::ReadOnly) {
            return Some("read-only".to_owned());
        }
        if model.freshness() != Freshness::Fresh {
            return Some("the screen is out of date".to_owned());
        }
    }
    if let Some(why) = of_the_list(model, action) {
        return Some(why.to_owned());
    }
    if let (Some(board), Context::Board) = (model.board, page) {
        return of_the_board(model, board, action).map(str::to_owned);
    }
    if !about_a_row(action) {
        return None;
    }
    match model.list.current() {
        None => Some("no operation is selected".to_owned()),
        Some(entry) => of_the_row(&entry.listed.row, action).map(str::to_owned),
    }
}

fn not_here(action: Action) -> &'static str {
    match action {
        Action::PrevRow | Action::NextRow => "only in the detail",
        Action::Shorter | Action::Longer => "only in the report",
        _ => "not on this page",
    }
}

/// Whether it changes the ledger in the end.
fn writes(action: Action) -> bool {
    action.acts() || matches!(action, Action::Claim | Action::Snooze)
}

/// Whether it is about the row under the cursor.
fn about_a_row(action: Action) -> bool {
    let acts = action.acts() && action != Action::PauseTool;
    acts || matches!(
        action,
        Action::Open
            | Action::Wide
            | Action::Evidence
            | Action::Mark
            | Action::CopyId
            | Action::CopyKey
            | Action::CopyRef
            | Action::CopyJson
            | Action::Link
            | Action::Packet
            | Action::Claim
            | Action::Snooze
    )
}

fn of_the_list(model: &Model, action: Action) -> Option<&'static str> {
    match action {
        Action::Sort | Action::Reverse if model.tab == Tab::Review => {
            Some("Review has its own order")
        }
        Action::TakeIn if model.page() != Context::Board && model.list.new == 0 => Some(NO_NEWS),
        _ => None,
    }
}

fn of_the_board(model: &Model, board: Board, action: Action) -> Option<&'static str> {
    let boards = &model.boards;
    match action {
        Action::Open if boards.standing(board).is_none_or(|s| s.at == 0) => {
            Some("nothing to open is under the cursor")
        }
        Action::Filter if boards.filter_text(board).is_none() => Some("this page has no filter"),
        Action::Shorter | Action::Longer if board != Board::Report => Some("only in the report"),
        Action::TakeIn | Action::Follow if matches!(board, Board::Engine | Board::Report) => {
            Some("this page shows what is new by itself")
        }
        Action::TakeIn if boards.standing(board).is_none_or(|s| s.new == 0) => Some(NO_NEWS),
        Action::PauseTool if model.tool_under_cursor().is_none() => {
            Some("no tool is under the cursor")
        }
        _ => None,
    }
}

fn of_the_row(row: &OperationRow, action: Action) -> Option<&'static str> {
    let waits = row.held || row.proposal.is_some();
    Some(match action {
        Action::CopyRef if row.provider_ref.is_none() => "the provider's id is not known",
        Action::Claim | Action::Snooze if is_settled(row) => "it is settled",
        Action::Snooze if row.contradicted.is_some() => "a contradicted operation cannot wait",
        Action::Approve | Action::Reject if !waits => "nothing waits for approval",
        Action::CloseSucceeded | Action::CloseFailed if row.status.is_closed() => "it is closed",
        Action::CloseSucceeded | Action::CloseFailed if waits => "approve or reject it first",
        Action::Stop if row.status != Status::Open => "only an open operation can be stopped",
        Action::Stop if row.held => "approve or reject it",
        Action::Correct if row.contradicted.is_none() => "nothing contradicts it",
        _ => return None,
    })
}

fn is_settled(row: &OperationRow) -> bool {
    row.status.is_closed() && row.contradicted.is_none() && row.proposal.is_none()
}

/// What the rules said to a closing of just this version, if they were asked.
fn ruled_out(model: &Model, row: &OperationRow, closing: Closing) -> Option<String> {
    let view = model.detail_view()?;
    if view.detail.op.row.version != row.version {
        return None;
    }
    let rulings = view.closings.as_ref()?;
    match rulings.iter().find(|(c, _)| *c == closing) {
        Some((_, Ruling::Refused { why, .. })) => Some(why.clone()),
        _ => None,
    }
}
