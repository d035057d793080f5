//! The queue: tool calls, newest first, with accepted, executed and delivered as three facts (R85).
//!
//! Newest first and nothing else: the order never changes, so no row moves while somebody aims; what
//! waits is `state:queued`.

use ratatui::Frame;
use ratatui::layout::Rect;
use serde_json::Value;

use super::super::format;
use super::super::model::Model;
use super::super::theme::Role;
use super::feed::{self, Column, left, right, time, time_width};
use crate::domain::tool_call::{CallState, Delivery, ToolCall, ToolResult};

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Call,
    Agent,
    Tool,
    /// The order it asks for, else the conversation it belongs to.
    Order,
    State,
    Accepted,
    Executed,
    Delivered,
    Answer,
    Operation,
}

/// Draws it.
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let queue = &model.boards.queue;
    let columns = columns(model, usize::from(area.width));
    let stamp_width = columns
        .iter()
        .find(|c| c.what == What::Accepted)
        .map_or(0, |c| c.width);
    let empty = if queue.filter_text.is_empty() {
        "No agent has called a tool yet. samekey submit queues a call."
    } else {
        "No call matches the filter. esc clears it."
    };
    let cell = |call: &ToolCall, what| cell(model, call, what, stamp_width);
    feed::draw(model, frame, area, &queue.list, &columns, cell, empty);
}

fn columns(model: &Model, width: usize) -> Vec<Column<What>> {
    let times = time_width(model, width >= 180);
    let all = vec![
        left(What::Call, "CALL", 12),
        left(What::Agent, "AGENT", 11),
        left(What::Tool, "TOOL", 12),
        left(What::Order, "ORDER", 8),
        left(What::State, "STATE", 10),
        right(What::Accepted, "ACCEPTED", times),
        right(What::Executed, "EXECUTED", times),
        right(What::Delivered, "DELIVERED", times.max(9)),
        left(What::Answer, "ANSWER", 11),
        left(What::Operation, "OPERATION", 9),
    ];
    let dropped = [
        What::Tool,
        What::Agent,
        What::Operation,
        What::Order,
        What::State,
        What::Answer,
    ];
    let grows = [
        (What::Call, 20),
        (What::Order, 12),
        (What::Agent, 16),
        (What::Call, 36),
        (What::Order, 24),
        (What::Agent, 24),
        (What::Tool, 24),
    ];
    feed::fitted(all, width, &dropped, &grows)
}

fn cell(model: &Model, call: &ToolCall, what: What, stamp_width: usize) -> (String, Role) {
    let glyphs = &model.theme.glyphs;
    let at = |at: Option<crate::domain::Instant>| match at {
        Some(at) => (time(model, at, stamp_width), Role::Text),
        None => (glyphs.dash.to_owned(), Role::Dim),
    };
    match what {
        What::Call => (call.id.to_string(), Role::Text),
        What::Agent => (call.agent.to_string(), Role::Text),
        What::Tool => (call.tool.to_string(), Role::Dim),
        What::Order => order(call),
        What::State => {
            let (glyph, role) = match call.state {
                CallState::Queued => (glyphs.open, Role::Warn),
                CallState::Running => (glyphs.dot, Role::Open),
                CallState::Held => (glyphs.held, Role::Held),
                CallState::Answered => (glyphs.sep, Role::Dim),
            };
            let word: &str = call.state.into();
            (format!("{glyph} {word}"), role)
        }
        What::Accepted => at(Some(call.accepted_at)),
        What::Executed => at(call.executed_at),
        What::Delivered => match (call.delivered_at, call.delivery) {
            (Some(delivered), _) => at(Some(delivered)),
            // Nobody knows whether the agent has it, and it is not told again (R86).
            (None, Delivery::DeliveryUnknown) => {
                (format!("{} unknown", glyphs.unknown), Role::Unknown)
            }
            (None, _) if call.executed_at.is_some() => ("pending".to_owned(), Role::Warn),
            (None, _) => at(None),
        },
        What::Answer => call
            .result
            .as_ref()
            .map_or_else(|| at(None), |r| (r.status().to_owned(), said(r))),
        What::Operation => match &call.operation {
            Some(id) => (format::short_id(id, glyphs.ellipsis), Role::Text),
            None => at(None),
        },
    }
}

fn order(call: &ToolCall) -> (String, Role) {
    let arguments: Option<Value> = serde_json::from_str(&call.arguments).ok();
    let order = arguments.as_ref().and_then(|a| a.get("order_id"));
    match (order.and_then(Value::as_str), &call.session) {
        (Some(order), _) => (order.to_owned(), Role::Text),
        (None, Some(session)) => (session.to_string(), Role::Dim),
        (None, None) => (String::new(), Role::Dim),
    }
}

fn said(result: &ToolResult) -> Role {
    match result {
        ToolResult::Done { .. } => Role::Succeeded,
        ToolResult::Unconfirmed { .. } => Role::Open,
        ToolResult::Checking { .. } => Role::Unknown,
        ToolResult::Held { .. } => Role::Held,
        ToolResult::Failed { .. } | ToolResult::Rejected { .. } => Role::Failed,
    }
}
