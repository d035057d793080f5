//! The evidence: our row beside each object of the provider, what that proves, what is missing, which
//! closings are allowed, and where all of it comes from.
//!
//! Never: a rule of its own; `domain::findings` and `domain::guard` say what is so, this says it in
//! words.

use ratatui::text::Span;

use super::super::format;
use super::super::message::DetailView;
use super::super::model::Model;
use super::super::theme::Role;
use super::detail::section;
use super::facts;
use super::ink::span;
use super::timeline;
use crate::domain::evidence::{Bearing, ProviderObject, objects};
use crate::domain::findings::{self, Field, Missing, Proven};
use crate::domain::money::Currency;
use crate::domain::operation::OperationRow;
use crate::domain::policy::Terms;
use strum::VariantArray;

type Spans = Vec<Span<'static>>;

/// Columns of the sign and the name of a field.
const NAMES: usize = 14;
/// From this width on our value and the provider's stand side by side.
const BESIDE: usize = 76;
/// Columns of the word before a value where they stand one below the other.
const WHOSE: usize = 8;

/// All of it for a width.
pub fn lines(model: &Model, view: &DetailView, width: usize, out: &mut Vec<Spans>) {
    let op = &view.detail.op;
    let terms = model.tools.get(&op.row.tool);
    section(model, "OUR ROW BESIDE THE PROVIDER'S", out);
    let seen = objects(&op.evidence);
    if seen.is_empty() {
        told(model, Role::Dim, "No object was seen there.", width, out);
    }
    for (object, bearing) in seen.into_values() {
        beside(model, &op.row, object, bearing, width, out);
    }
    if let Some(terms) = terms {
        section(model, "PROVEN", out);
        let (role, text) = proven(model, view, terms);
        told(model, role, &text, width, out);
        section(model, "MISSING", out);
        for text in missing(model, view, terms) {
            told(model, Role::Text, &text, width, out);
        }
    }
    facts::closings(model, view, width, out);
    sources(model, view, width, out);
}

fn told(model: &Model, role: Role, text: &str, width: usize, out: &mut Vec<Spans>) {
    for line in format::wrap(text, width.saturating_sub(2)) {
        out.push(vec![span(&model.theme, role, format!(" {line}"))]);
    }
}

/// One object beside our row, field by field; a field that differs by sign and colour.
fn beside(
    model: &Model,
    row: &OperationRow,
    object: &ProviderObject,
    bearing: Bearing,
    width: usize,
    out: &mut Vec<Spans>,
) {
    let theme = &model.theme;
    let whose = match bearing {
        Bearing::Ours => "ours",
        Bearing::Ambiguous => "may be ours",
    };
    let wide = width >= BESIDE;
    let column = width.saturating_sub(NAMES + 2) / 2;
    if wide {
        let ours = format::cell("our row", column, false, "");
        let heads = format!(" {}{ours} the provider's, {whose}", " ".repeat(NAMES));
        out.push(vec![span(theme, Role::Dim, heads)]);
    } else {
        out.push(vec![span(
            theme,
            Role::Dim,
            format!(" {} ({whose})", object.id),
        )]);
    }
    for field in Field::VARIANTS {
        let Some((name, ours, theirs)) = values(model, row, object, *field) else {
            continue;
        };
        let (sign, role) = match findings::agrees(row, object, *field) {
            Some(true) => ("=", Role::Text),
            Some(false) => (theme.glyphs.differs, Role::Alarm),
            None => (" ", Role::Text),
        };
        let name = format::cell(&format!("{sign} {name}"), NAMES, false, "");
        let pairs = if wide {
            side_by_side(&ours, &theirs, column)
        } else {
            let room = width.saturating_sub(NAMES + WHOSE + 2);
            one_below_the_other(&ours, &theirs, room)
        };
        for (n, text) in pairs.into_iter().enumerate() {
            let name = if n == 0 {
                name.clone()
            } else {
                " ".repeat(NAMES)
            };
            let name_role = if role == Role::Alarm { role } else { Role::Dim };
            out.push(vec![
                span(theme, name_role, format!(" {name}")),
                span(theme, role, text),
            ]);
        }
    }
}

/// Both values in lines of two columns, neither of them cut.
fn side_by_side(ours: &str, theirs: &str, column: usize) -> Vec<String> {
    let (ours, theirs) = (format::wrap(ours, column), format::wrap(theirs, column));
    let lines = ours.len().max(theirs.len());
    let at = |lines: &[String], n: usize| lines.get(n).cloned().unwrap_or_default();
    (0..lines)
        .map(|n| {
            let left = format::cell(&at(&ours, n), column, false, "");
            format!("{left} {}", at(&theirs, n))
        })
        .collect()
}

fn one_below_the_other(ours: &str, theirs: &str, room: usize) -> Vec<String> {
    let mut out = Vec::new();
    for (whose, value) in [("ours", ours), ("theirs", theirs)] {
        for (n, line) in format::wrap(value, room).into_iter().enumerate() {
            let whose = format::cell(if n == 0 { whose } else { "" }, WHOSE, false, "");
            out.push(format!("{whose}{line}"));
        }
    }
    out
}

/// Name, our value and the provider's; none where neither has one.
fn values(
    model: &Model,
    row: &OperationRow,
    object: &ProviderObject,
    field: Field,
) -> Option<(&'static str, String, String)> {
    fn or_none(value: Option<impl ToString>) -> String {
        value.map_or_else(|| "none".to_owned(), |v| v.to_string())
    }
    let stamp = model.stamp();
    let reason = row.reason.map(<&str>::from).map(str::to_owned);
    let reason = reason.or_else(|| row.failure_text.as_ref().map(ToString::to_string));
    Some(match field {
        Field::Id => (
            "id",
            or_none(row.provider_ref.as_ref()),
            object.id.to_string(),
        ),
        Field::Payment => (
            "payment",
            or_none(row.payment.as_ref()),
            or_none(object.payment.as_ref()),
        ),
        Field::Amount => (
            "amount",
            row.money.map_or_else(|| "none".to_owned(), format::money),
            format::told(object, "none"),
        ),
        Field::Currency => (
            "currency",
            or_none(row.currency().map(Currency::code)),
            or_none(object.currency.map(Currency::code)),
        ),
        Field::Status => {
            let status: &str = object.status.into();
            let (ours, _) = super::table::status(model, row, false);
            ("status", ours, status.to_owned())
        }
        Field::Created => (
            "created",
            row.first_authorised_at.map_or_else(
                || "never sent".to_owned(),
                |at| format!("first sent {}", stamp.at(at)),
            ),
            stamp.at(object.created_at),
        ),
        Field::Operation => (
            "operation",
            row.id.to_string(),
            or_none(object.operation.as_ref()),
        ),
        Field::Reason if reason.is_none() && object.failure_reason.is_none() => return None,
        Field::Reason => (
            "reason",
            or_none(reason),
            or_none(object.failure_reason.as_ref()),
        ),
    })
}

fn proven(model: &Model, view: &DetailView, terms: &Terms) -> (Role, String) {
    let stamp = model.stamp();
    let (role, text) = match findings::proven(&view.detail.op, terms) {
        Proven::NothingSent => (
            Role::Good,
            "Nothing was sent, so nothing can have happened.",
        ),
        Proven::Nothing => (
            Role::Unknown,
            "Nothing yet: nobody knows whether it happened.",
        ),
        Proven::Happened => (Role::Good, "It happened once: our object succeeded."),
        Proven::HappenedTwice => (Role::Alarm, "It happened twice: two objects are ours."),
        Proven::NotFinal => (
            Role::Warn,
            "The provider accepted it; our object is not final.",
        ),
        Proven::Lost => (
            Role::Good,
            "It did not last: our object failed or was canceled, so the money did not move or came back.",
        ),
        Proven::Doubtful => (
            Role::Warn,
            "Nothing: something is there that may be ours, and a person has to look.",
        ),
        Proven::DidNotHappen { scan_began_at } => {
            let at = stamp.at(scan_began_at);
            let text = format!(
                "It did not happen: a complete lookup that began {at} found nothing of ours."
            );
            return (Role::Good, text);
        }
    };
    (role, text.to_owned())
}

fn missing(model: &Model, view: &DetailView, terms: &Terms) -> Vec<String> {
    let (op, stamp, now) = (&view.detail.op, model.stamp(), model.now);
    let row = &op.row;
    if row.held {
        return vec!["A lead's approval: A approves, D rejects.".to_owned()];
    }
    if row.proposal.is_some() {
        return vec!["Another lead's word on the proposal: A approves, D rejects.".to_owned()];
    }
    let all = findings::missing(op, terms, now).into_iter();
    let all: Vec<String> = all
        .map(|missing| match missing {
            Missing::Time { until } => format!(
                "Time: until {} ({}) a request may still take effect.",
                stamp.clock(until),
                format::left(until, now)
            ),
            Missing::Lookup { not_before } => match not_before.filter(|at| *at > now) {
                Some(at) => format!(
                    "A complete lookup that begins after {}: press L then.",
                    stamp.clock(at)
                ),
                None => "A complete lookup: press L first.".to_owned(),
            },
            Missing::Answer { silent_since } => format!(
                "The provider's answer: no lookup was answered since {}; press L again.",
                stamp.clock(silent_since)
            ),
            Missing::FinalStatus => {
                "The end of our object's way at the provider: press L later.".to_owned()
            }
            Missing::SecondPerson { typed_ref: true } => {
                "A second person: you propose with the provider's id, another lead decides."
                    .to_owned()
            }
            Missing::SecondPerson { typed_ref: false } => {
                "A second person: you propose, another lead decides.".to_owned()
            }
            Missing::Stop => {
                "It is open: an engine or the next call may still settle it; X stops it.".to_owned()
            }
        })
        .collect();
    if !all.is_empty() {
        return all;
    }
    let text = match (row.status.is_closed(), row.contradicted) {
        (true, None) => "Nothing: it is settled.",
        (_, Some(_)) => "A correction: press C.",
        (false, None) => "Nothing: one person can close it.",
    };
    vec![text.to_owned()]
}

/// Every piece of evidence with its source and time, oldest first.
fn sources(model: &Model, view: &DetailView, width: usize, out: &mut Vec<Spans>) {
    let (theme, stamp) = (&model.theme, model.stamp());
    section(model, "SOURCES", out);
    let evidence = &view.detail.op.evidence;
    if evidence.is_empty() {
        told(model, Role::Dim, "Nobody has looked yet.", width, out);
    }
    let times: Vec<String> = evidence.iter().map(|e| stamp.at(e.observed_at)).collect();
    let columns = times.iter().map(|t| format::width(t)).max().unwrap_or(0);
    for (entry, at) in evidence.iter().zip(times) {
        let at = format::cell(&at, columns, true, "");
        let source = format::cell(timeline::source(entry.source), NAMES, false, "");
        let room = width.saturating_sub(columns + NAMES + 4);
        let lines = format::wrap(&timeline::seen(entry), room);
        for (n, line) in lines.into_iter().enumerate() {
            let (at, source) = if n == 0 {
                (at.clone(), source.clone())
            } else {
                (" ".repeat(columns), " ".repeat(NAMES))
            };
            out.push(vec![
                span(theme, Role::Dim, format!(" {at}  ")),
                span(theme, Role::Dim, source),
                span(theme, Role::Text, format!(" {line}")),
            ]);
        }
    }
}
