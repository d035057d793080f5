//! What is known of one operation: its facts, what may settle it, the provider's objects beside it.

use ratatui::text::Span;

use super::super::format;
use super::super::message::DetailView;
use super::super::model::Model;
use super::super::theme::Role;
use super::detail::section;
use super::ink::{self, span};
use crate::domain::evidence::{Bearing, ProviderObject, Verdict, objects};
use crate::domain::guard::Ruling;
use crate::domain::operation::{Closing, Effect, OperationRow, Status};

type Spans = Vec<Span<'static>>;

/// Columns of the names on the left.
const NAMES: usize = 11;

/// Name and value, as many values in a line as fit.
pub fn facts(model: &Model, view: &DetailView, width: usize, out: &mut Vec<Spans>) {
    let theme = &model.theme;
    for (name, values) in facts_of(model, view) {
        let text = values.join(&format!("  {}  ", theme.glyphs.sep));
        let room = width.saturating_sub(NAMES + 2);
        for (n, line) in format::wrap(&text, room).into_iter().enumerate() {
            let name = if n == 0 { name } else { "" };
            let name = format::cell(name, NAMES, false, "");
            out.push(vec![
                span(theme, Role::Dim, format!(" {name}")),
                span(theme, Role::Text, line),
            ]);
        }
    }
}

/// What it is about, and what it is at the provider.
fn what_of(model: &Model, row: &OperationRow, out: &mut Vec<(&'static str, Vec<String>)>) {
    let mut what = vec![row.tool.to_string(), row.provider.to_string()];
    what.extend(row.minor().map(|minor| format!("{minor} minor units")));
    if row.order_id.is_none() {
        what.push(row.subject());
    }
    out.push(("tool", what));
    let noun = model.noun(&row.tool);
    let mut there: Vec<String> = row.payment.iter().map(ToString::to_string).collect();
    there.extend(row.charge.iter().map(ToString::to_string));
    there.extend(row.provider_ref.iter().map(|r| format!("{noun} {r}")));
    if !there.is_empty() {
        let name = if row.payment.is_some() {
            "payment"
        } else {
            "object"
        };
        out.push((name, there));
    }
}

fn facts_of(model: &Model, view: &DetailView) -> Vec<(&'static str, Vec<String>)> {
    let op = &view.detail.op;
    let row = &op.row;
    let (now, stamp) = (model.now, model.stamp());
    let mut out = Vec::new();
    what_of(model, row, &mut out);
    let mut key = vec![format!("{} old", format::age(row.key_created_at, now))];
    if let Some(at) = row.key_expires_at.filter(|_| !row.status.is_closed()) {
        key.push(match format::left(at, now).as_str() {
            "over" => "its time is over".to_owned(),
            left => format!("{left} left"),
        });
    }
    key.push(row.key.to_string());
    out.push(("key", key));
    let verdict = row.verdict.map_or("no verdict", |v| v.as_str());
    let mut tries = vec![format!("{} of {}", row.attempts, row.attempts_max)];
    tries.push(format!("effect {}", effect(row)));
    tries.push(format!("evidence: {}", verdict.replace('_', " ")));
    out.push(("attempts", tries));
    let mut moved = vec![format!("opened {}", stamp.at(row.created_at))];
    moved.push(format!("updated {}", stamp.at(row.updated_at)));
    moved.push(format!("version {}", row.version));
    out.push(("row", moved));
    if let Some(at) = view
        .decidable_at
        .filter(|at| *at > now && !row.status.is_closed())
    {
        let when = format!("as failed {}, not before {}", stamp.at(at), stamp.clock(at));
        out.push(("decidable", vec![when]));
    }
    if let Some(claim) = row.claim.as_ref().filter(|c| now < c.until) {
        let until = format!("until {}", stamp.clock(claim.until));
        out.push(("claimed", vec![format!("by {}", claim.by), until]));
    }
    if let Some(until) = row.snoozed(now) {
        out.push(("put off", vec![format!("until {}", stamp.clock(until))]));
    }
    if let Some((engine, call)) = &view.detail.driver {
        out.push((
            "driven",
            vec![format!("by {engine}"), format!("for {call}")],
        ));
    }
    if let Some(text) = &row.failure_text {
        out.push(("why", vec![text.to_string()]));
    }
    if let (Some(at), Some(by)) = (row.closed_at, &row.closed_by) {
        out.push(("closed", vec![stamp.at(at), format!("by {by}")]));
    }
    if let Some(p) = &row.proposal {
        let expires = format!("expires {}", stamp.at(p.expires_at));
        let decision: &str = p.decision.into();
        let what = format!("{decision}, by {}: {}", p.by, p.note);
        out.push(("proposal", vec![what, expires]));
    }
    out
}

/// The effect in words. What is closed is not `possible` any more, though nobody may have proven it:
/// then it says whose word it is.
pub fn effect(row: &OperationRow) -> String {
    let engine = row.closed_by.as_deref() == Some("engine");
    let words = match (row.status, row.effect) {
        (Status::Failed, Effect::Possible) if engine => "none: the provider refused it",
        (Status::Failed, Effect::Possible) => "none, by a person's word",
        (Status::Succeeded, Effect::Possible) => "there, by a person's word",
        (_, Effect::Identified) if row.verdict == Some(Verdict::Refused) => {
            "identified, and lost there"
        }
        (_, effect) => return <&str>::from(effect).replace('_', " "),
    };
    words.to_owned()
}

/// What a person may do now, and why not the rest.
pub fn closings(model: &Model, view: &DetailView, width: usize, out: &mut Vec<Spans>) {
    let theme = &model.theme;
    let row = &view.detail.op.row;
    let title = if model.detail.evidence {
        "ALLOWED NOW"
    } else {
        "WHAT SETTLES IT"
    };
    section(model, title, out);
    let mut tell = |key: &str, what: &str, role: Role, text: &str| {
        let room = width.saturating_sub(NAMES + 4);
        for (n, line) in format::wrap(text, room).into_iter().enumerate() {
            let (key, what) = if n == 0 { (key, what) } else { ("", "") };
            out.push(vec![
                span(
                    theme,
                    Role::Key,
                    format!(" {}", format::cell(key, 2, false, "")),
                ),
                span(theme, Role::Text, format::cell(what, NAMES, false, "")),
                span(theme, role, line),
            ]);
        }
    };
    if row.status.is_closed() {
        match row.contradicted {
            Some(c) => tell("C", "correct", Role::Alarm, <&str>::from(c)),
            None => tell("", "", Role::Dim, "It is settled."),
        }
        return;
    }
    if row.held || row.proposal.is_some() {
        tell("A", "approve", Role::Text, "a lead; D rejects");
    }
    tell("L", "look up", Role::Text, "only reads, closes nothing");
    match &view.closings {
        None => tell(
            "",
            "",
            Role::Warn,
            "This tool is not configured here; nothing can be closed.",
        ),
        Some(closings) => {
            for (closing, ruling) in closings {
                let (key, word) = match closing {
                    Closing::Succeeded => ("R", view.word),
                    Closing::Failed => ("F", "failed"),
                };
                let (role, text) = ruling_text(model, ruling);
                tell(key, word, role, &text);
            }
        }
    }
    if row.status == Status::Open && !row.held {
        tell(
            "X",
            "stop",
            Role::Text,
            "nothing more is sent; a person settles it",
        );
    }
}

fn ruling_text(model: &Model, ruling: &Ruling) -> (Role, String) {
    match ruling {
        Ruling::OnePerson => (Role::Good, "you may: token and note".to_owned()),
        Ruling::SecondPerson { .. } if model.person.alone => {
            let text = "not here: it needs a second person, and no reviewers are configured";
            (Role::Dim, text.to_owned())
        }
        Ruling::SecondPerson { typed_ref } => {
            let id = if *typed_ref {
                " with the provider's id"
            } else {
                ""
            };
            (Role::Warn, format!("you propose{id}; another lead decides"))
        }
        Ruling::Refused { why, decidable_at } => {
            let when = match decidable_at {
                Some(at) if *at > model.now => {
                    format!(" (in {})", format::left(*at, model.now))
                }
                _ => String::new(),
            };
            (Role::Dim, format!("not now: {why}{when}"))
        }
    }
}

/// Our row beside what the provider has, the differing fields marked.
pub fn provider_objects(model: &Model, view: &DetailView, width: usize, out: &mut Vec<Spans>) {
    let (theme, op) = (&model.theme, &view.detail.op);
    let seen = objects(&op.evidence);
    if seen.is_empty() {
        return;
    }
    section(model, "AT THE PROVIDER", out);
    for (id, (object, bearing)) in seen {
        let status: &str = object.status.into();
        let whose = match bearing {
            Bearing::Ours => (Role::Good, "ours"),
            Bearing::Ambiguous => (Role::Warn, "may be ours"),
        };
        out.push(vec![
            span(theme, Role::Text, format!(" {id}  {status}  ")),
            span(theme, whose.0, whose.1),
        ]);
        let indent = || span(theme, Role::Text, " ".repeat(NAMES + 1));
        let mut spans = vec![indent()];
        for (name, value, same) in compared(&op.row, object, theme.glyphs.ellipsis) {
            let (sign, role) = if same {
                ("=", Role::Dim)
            } else {
                ("differs:", Role::Alarm)
            };
            let next = span(theme, role, format!("{name} {sign} {value}   "));
            if ink::width(&spans) + format::width(&next.content) > width && spans.len() > 1 {
                out.push(std::mem::replace(&mut spans, vec![indent()]));
            }
            spans.push(next);
        }
        out.push(spans);
    }
}

fn compared(
    row: &OperationRow,
    object: &ProviderObject,
    ellipsis: &str,
) -> [(&'static str, String, bool); 3] {
    let amount = format::told(object, "none");
    let same = row.same_money(object.amount_minor, object.currency);
    let payment = object.payment.as_ref();
    let owner = object.operation.as_ref();
    let none = || "none".to_owned();
    [
        ("amount", amount, same),
        (
            "payment",
            payment.map_or_else(none, ToString::to_string),
            object.payment == row.payment,
        ),
        (
            "operation",
            owner.map_or_else(none, |id| format::short_id(id, ellipsis)),
            owner == Some(&row.id),
        ),
    ]
}
