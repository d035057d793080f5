//! What a dialog is about: one row with everything a person has to see, several rows, or a tool.

use super::super::super::action::{Ask, Subject, Target};
use super::super::super::format;
use super::super::super::model::{Dialog, Model};
use super::super::super::theme::Role;
use super::super::table;
use super::{Spans, named};
use crate::domain::operation::{Closing, Operation, OperationRow, Proposal};
use crate::domain::policy::CircuitState;
use crate::ledger::ToolState;

/// Rows named one by one; of more it says how many.
const NAMED_ROWS: usize = 6;

pub(super) fn subject(
    model: &Model,
    dialog: &Dialog,
    subject: &Subject,
    width: usize,
    out: &mut Vec<Spans>,
) {
    match subject {
        Subject::Row(op) => row(model, dialog, op, width, out),
        Subject::Rows(all) => rows(model, all, width, out),
        Subject::Tool(state) => tool(model, state, width, out),
    }
}

/// What somebody should know before they confirm, one line each: others are at it, or marks that this
/// is not about.
pub(super) fn warnings(model: &Model, dialog: &Dialog) -> Vec<String> {
    let Target::Row { ask, .. } = dialog.frozen.target() else {
        return Vec::new();
    };
    let mut out = Vec::new();
    let row = dialog.asked.as_ref().and_then(|a| match &a.subject {
        Subject::Row(op) => Some(&op.row),
        Subject::Rows(_) | Subject::Tool(_) => None,
    });
    if let Some(claim) = row.and_then(|r| r.claim.as_ref())
        && model.now < claim.until
        && claim.by != model.person.name
    {
        let left = format::left(claim.until, model.now);
        out.push(format!(
            "claimed by {} for another {left}: ask them first",
            claim.by
        ));
    }
    if !model.marks.is_empty() && *ask != Ask::Note {
        let marks = model.marks.len();
        out.push(format!(
            "only this row; the {marks} marked are for lookups alone"
        ));
    }
    out
}

fn rows(model: &Model, rows: &[OperationRow], width: usize, out: &mut Vec<Spans>) {
    let ellipsis = model.theme.glyphs.ellipsis;
    let count = format!("{} marked, looked up one after another", rows.len());
    named(model, "rows", &count, Role::Strong, width, out);
    for row in rows.iter().take(NAMED_ROWS) {
        let (status, role) = table::status(model, row, false);
        let line = format!(
            "{}  {}  {}  {status}",
            format::short_id(&row.id, ellipsis),
            row.subject(),
            row.money.map_or_else(String::new, format::money)
        );
        let line = format::fit(&line, width.saturating_sub(super::NAMES), ellipsis);
        named(model, "", &line, role, width, out);
    }
    if let Some(more) = rows.len().checked_sub(NAMED_ROWS).filter(|n| *n > 0) {
        named(
            model,
            "",
            &format!("and {more} more"),
            Role::Text,
            width,
            out,
        );
    }
}

fn tool(model: &Model, state: &ToolState, width: usize, out: &mut Vec<Spans>) {
    named(model, "tool", state.tool.as_str(), Role::Strong, width, out);
    let (now, role) = match &state.paused {
        Some((by, why)) => (format!("paused by {by}: {why}"), Role::Warn),
        None => ("sends".to_owned(), Role::Text),
    };
    named(model, "now", &now, role, width, out);
    let circuit = match &state.circuit.state {
        CircuitState::Closed => "closed",
        CircuitState::Open { .. } => "open: the provider fails",
        CircuitState::Trial { .. } => "one attempt at a time",
    };
    named(model, "circuit", circuit, Role::Text, width, out);
}

/// Everything a person has to see before deciding (point 4 of "Acting is safe").
fn row(model: &Model, dialog: &Dialog, op: &Operation, width: usize, out: &mut Vec<Spans>) {
    let row = &op.row;
    let theme = &model.theme;
    let mut tell = |name, text: String, role| named(model, name, &text, role, width, out);
    tell("operation", row.id.to_string(), Role::Strong);
    if let Some(money) = row.money {
        let minor = format!(
            "{}  =  {} minor units of {}",
            format::money(money),
            money.minor(),
            money.currency()
        );
        tell("amount", minor, Role::Strong);
    }
    let sep = theme.glyphs.sep;
    let payment = row
        .payment
        .as_ref()
        .map_or_else(String::new, |p| format!("  {sep}  {p}"));
    let (name, about) = match &row.order_id {
        Some(order) => ("order", order.to_string()),
        None => ("identity", row.subject()),
    };
    tell(
        name,
        format!("{about}  {sep}  {}{payment}", row.tool),
        Role::Text,
    );
    let (status, role) = table::status(model, row, false);
    let reason = table::reason(row);
    let version = dialog.frozen.looked_at().map_or(row.version, |l| l.version);
    tell(
        "status",
        format!("{status}  {reason}  (version {version})"),
        role,
    );
    let last = row.last_outcome.map_or("none", |o| o.as_str());
    let mut attempts = format!("{} of {}, last: {last}", row.attempts, row.attempts_max);
    if op.in_flight() {
        attempts.push_str(", ONE IN FLIGHT");
    }
    tell("attempts", attempts, Role::Text);
    let left = match row.key_expires_at {
        Some(at) if at <= model.now => "its time is over".to_owned(),
        Some(at) => format!("{} left", format::left(at, model.now)),
        None => "never sent".to_owned(),
    };
    let key = format!("{} old, {left}", format::age(row.key_created_at, model.now));
    tell("key", key, Role::Text);
    let verdict = row.verdict.map_or("none", |v| v.as_str()).replace('_', " ");
    let seen = op.evidence.last().map_or_else(String::new, |e| {
        format!(", last seen {}", model.stamp().at(e.observed_at))
    });
    let effect = super::super::facts::effect(row);
    let evidence = format!("{verdict}{seen}  {sep}  effect {effect}");
    tell("evidence", evidence, Role::Text);
    if let Some(p) = &row.proposal {
        tell("proposal", proposal(model, row, p), Role::Text);
    }
}

fn proposal(model: &Model, row: &OperationRow, p: &Proposal) -> String {
    let decision = match p.decision {
        Closing::Succeeded => model.word(&row.tool),
        Closing::Failed => "failed",
    };
    let how = if p.correction {
        "correct to"
    } else {
        "close as"
    };
    let id = p
        .provider_ref
        .as_ref()
        .map_or_else(String::new, |id| format!(" with {id}"));
    let at = model.stamp().at(p.at);
    format!("{how} {decision}{id}, by {} {at}: {}", p.by, p.note)
}
