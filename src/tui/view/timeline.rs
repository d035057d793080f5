//! What happened to an operation, in order: calls, attempts, evidence, decisions and notes.
//!
//! Owns: the merge of the four histories and the sentence for each entry. Never: decides anything.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::format::{self, Stamp};
use super::super::message::{AuditRow, DetailView};
use super::super::theme::Role;
use crate::domain::attempt::Attempt;
use crate::domain::evidence::{Bearing, Evidence, Seen, Source};
use crate::domain::tool_call::ToolCall;
use crate::domain::{Instant, since};

/// One entry.
pub struct Entry {
    pub at: Instant,
    /// `call`, `attempt`, `evidence`, `decision`, `note`.
    pub kind: &'static str,
    pub role: Role,
    pub text: String,
}

/// All entries, oldest first.
pub fn entries(view: &DetailView, stamp: Stamp) -> Vec<Entry> {
    let detail = &view.detail;
    let mut all: Vec<Entry> = Vec::new();
    all.extend(detail.calls.iter().flat_map(call));
    all.extend(detail.op.attempts.iter().map(attempt));
    all.extend(detail.op.evidence.iter().filter_map(evidence));
    all.extend(detail.audit.iter().filter_map(|row| audit(row, stamp)));
    all.sort_by_key(|e| e.at);
    all
}

fn call(call: &ToolCall) -> Vec<Entry> {
    let session = call
        .session
        .as_ref()
        .map_or_else(String::new, |s| format!(", session {s}"));
    let mut out = vec![Entry {
        at: call.accepted_at,
        kind: "call",
        role: Role::Text,
        text: format!("{} accepted from {}{session}", call.id, call.agent),
    }];
    if let (Some(at), Some(result)) = (call.executed_at, &call.result) {
        let delivery = match call.delivered_at {
            Some(_) => "delivered",
            None => match call.delivery {
                crate::domain::tool_call::Delivery::DeliveryUnknown => "delivery unknown",
                _ => "not delivered yet",
            },
        };
        out.push(Entry {
            at,
            kind: "call",
            role: Role::Dim,
            text: format!("{} answered {}, {delivery}", call.id, result.status()),
        });
    }
    out
}

fn attempt(attempt: &Attempt) -> Entry {
    let mut parts = Vec::new();
    let role = match &attempt.result {
        None => {
            parts.push("in flight".to_owned());
            Role::Open
        }
        Some(result) => {
            parts.push(result.class.as_str().to_owned());
            if let Some(status) = result.http_status {
                parts.push(format!("HTTP {status}"));
            }
            if let Some(id) = &result.request_id {
                parts.push(id.as_str().to_owned());
            }
            if result.replayed {
                parts.push("replayed".to_owned());
            }
            if result.limiter {
                parts.push("by a limiter".to_owned());
            }
            let took = since(attempt.authorised_at, result.finished_at);
            parts.push(match took.as_millis() {
                ms @ ..=999 => format!("{ms} ms"),
                ms => format!("{}.{} s", ms / 1_000, ms / 100 % 10),
            });
            if let Some(error) = &result.error {
                parts.push(error.as_str().to_owned());
            }
            if result.class.is_undetermined() {
                Role::Unknown
            } else {
                Role::Text
            }
        }
    };
    Entry {
        at: attempt.authorised_at,
        kind: "attempt",
        role,
        text: format!(
            "{}: {} (by {})",
            attempt.number,
            parts.join(", "),
            attempt.call
        ),
    }
}

fn evidence(evidence: &Evidence) -> Option<Entry> {
    // What an attempt's own reply said stands with the attempt.
    if evidence.source == Source::Attempt && matches!(evidence.seen, Seen::Object { .. }) {
        return None;
    }
    let (source, text) = (source(evidence.source), seen(evidence));
    Some(Entry {
        at: evidence.observed_at,
        kind: "evidence",
        role: Role::Text,
        text: format!("{source}: {text}"),
    })
}

/// Where evidence comes from, in words.
pub fn source(source: Source) -> &'static str {
    match source {
        Source::ReviewLookup => "review lookup",
        Source::EngineLookup => "engine lookup",
        Source::TypedRef => "typed id",
        other => other.as_str(),
    }
}

/// What was seen, in a sentence.
pub fn seen(evidence: &Evidence) -> String {
    match &evidence.seen {
        Seen::Object { object, bearing } => {
            let whose = match bearing {
                Bearing::Ours => "ours",
                Bearing::Ambiguous => "may be ours",
            };
            let status: &str = object.status.into();
            let amount = match format::told(object, "") {
                none if none.is_empty() => none,
                amount => format!("{amount}, "),
            };
            format!("{} {status}, {amount}{whose}", object.id)
        }
        Seen::Scan { complete: true, .. } => {
            "the payment's refunds were read to the end".to_owned()
        }
        // One object was fetched by its id; no list was read.
        Seen::Scan { .. } if evidence.source == Source::TypedRef => {
            "the provider answered for the id that was typed".to_owned()
        }
        Seen::Scan {
            complete: false, ..
        } => "the list could not be read to the end".to_owned(),
        Seen::Unreachable { why } => format!("no answer: {why}"),
        Seen::Reply {
            attempt,
            class,
            http_status,
            request_id,
            ..
        } => {
            let status = http_status.map_or_else(String::new, |s| format!(", HTTP {s}"));
            let id = request_id
                .as_ref()
                .map_or_else(String::new, |id| format!(", {id}"));
            format!("late reply to attempt {attempt}: {class}{status}{id}")
        }
    }
}

/// Decisions and notes; what attempts and evidence tell already is left to them.
fn audit(row: &AuditRow, stamp: Stamp) -> Option<Entry> {
    let (kind, role) = match row.action.as_str() {
        "authorised" | "finished" | "observed" => return None,
        "noted" => ("note", Role::Text),
        "claimed" | "released" | "snoozed" => ("desk", Role::Dim),
        "opened" | "swept" => ("row", Role::Dim),
        _ => ("decision", Role::Strong),
    };
    let mut text = if kind == "note" {
        row.actor.clone()
    } else {
        format!("{} by {}", row.action.replace('_', " "), row.actor)
    };
    // Writing to a String cannot fail.
    if let Some(decision) = row.detail.get("decision").and_then(Value::as_str) {
        let _ = write!(text, " as {decision}");
    }
    let until = row.detail.get("until").and_then(Value::as_str);
    if let Some(until) = until.and_then(|text| text.parse().ok()) {
        let _ = write!(text, " until {}", stamp.clock(until));
    }
    if let Some(note) = row.detail.get("note").and_then(Value::as_str) {
        let _ = write!(text, ": {note}");
    }
    Some(Entry {
        at: row.at,
        kind,
        role,
        text,
    })
}
