//! The row and its attempts against what the audit entries say of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Findings;
use super::chain::{action, status};
use super::pages::{Entry, History};
use crate::domain::attempt::Attempt;
use crate::domain::identity::{Field, Identity};
use crate::domain::key::hex_digest;
use crate::domain::operation::{Operation, OperationRow, Status};
use crate::domain::transition::Action;
use crate::ledger::audit;
use crate::ledger::row::micros;

pub(super) fn check(history: &History, clock_accepted: bool, found: &mut Findings) {
    let Some(op) = &history.op else { return };
    let before = found.list.len();
    as_opened(op, &history.audit, found);
    attempts(op, &history.audit, found);
    attempts_in_time(op, clock_accepted, found);
    if let Some(last) = history.audit.last() {
        as_left(op, last, &history.audit, found);
        let known = |n: usize| last.number("evidence") == i64::try_from(n).ok();
        if last.number("evidence").is_some() && !known(op.evidence.len()) {
            let what = "evidence was deleted or added past the ledger";
            found.add(Some(&history.id), "I23", what);
        }
        // Whatever no check above has a name for.
        let digest = last.says("row");
        let changed = digest.is_some_and(|d| d != audit::row_digest(&op.row));
        if changed && found.list.len() == before && op.row.audit_seq == last.seq {
            let what = "the row is not as its last audit entry left it: a column was changed";
            found.add(Some(&history.id), "I23", what);
        }
    }
}

/// Key, request, identity, amount and limits are those of the row's opening (I3, I4).
fn as_opened(op: &Operation, audit: &[Entry], found: &mut Findings) {
    let row = &op.row;
    let mut wrong = |rule, what: &str| found.add(Some(row.id.as_str()), rule, what);
    if hex_digest(&row.request) != row.request_hash {
        wrong("I3", "the request's bytes do not have the stored hash");
    }
    if !names_itself(row) {
        let what = "order and amount are not those of the row's identity";
        wrong("I4", what);
    }
    let Some(opened) = audit.first().filter(|e| action(e) == Some(Action::Opened)) else {
        return;
    };
    let said = [
        (
            "key_fingerprint",
            json!(row.key.fingerprint()),
            "I3",
            "the key",
        ),
        (
            "request_hash",
            json!(row.request_hash),
            "I3",
            "the request's hash",
        ),
        (
            "identity",
            json!(row.identity.as_str()),
            "I3",
            "the identity",
        ),
        ("provider", json!(row.provider), "I3", "the provider"),
        ("payment", json!(row.payment), "I3", "the payment"),
        ("charge", json!(row.charge), "I3", "the charge"),
        ("after", json!(row.after), "I3", "the forerunner (after)"),
        ("amount_cents", json!(row.minor()), "I4", "the amount"),
        ("currency", json!(row.currency()), "I4", "the currency"),
        (
            "attempts_max",
            json!(row.attempts_max),
            "I6",
            "the limit of attempts",
        ),
    ];
    for (name, now, rule, what) in said {
        if opened.detail.get(name).is_some_and(|then| *then != now) {
            wrong(
                rule,
                &format!("{what} is not the one the row was opened with"),
            );
        }
    }
    if micros(row.created_at) != opened.at || micros(row.key_created_at) != opened.at {
        wrong("I3", "the row was not created when the audit says so");
    }
}

/// Whether the identity says the order and the amount that the row has. Of another tool than a refund only
/// what its identity names can be held against the row.
fn names_itself(row: &OperationRow) -> bool {
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, Field>>(row.identity.as_str()) else {
        return false;
    };
    if let (Some(order), Some(money), Some(_)) = (&row.order_id, row.money, &row.payment) {
        return Identity::refund(order, money) == row.identity;
    }
    let same = |name: &str, ours: Option<Field>| {
        fields
            .get(name)
            .is_none_or(|said| ours.is_none_or(|ours| *said == ours))
    };
    let order = row.order_id.as_ref();
    same("order_id", order.map(|o| Field::Text(o.to_string())))
        && same("amount_cents", row.minor().map(Field::Number))
}

/// Each attempt stands in the audit, and each that the audit names is there (I6, I23).
fn attempts(op: &Operation, audit: &[Entry], found: &mut Findings) {
    let row = &op.row;
    let id = Some(row.id.as_str());
    let count = u32::try_from(op.attempts.len()).unwrap_or(u32::MAX);
    if row.attempts != count {
        let what = format!(
            "the row counts {} attempts, there are {count}",
            row.attempts
        );
        found.add(id, "I6", what);
    }
    if count > row.attempts_max {
        let what = format!("{count} attempts where {} are allowed", row.attempts_max);
        found.add(id, "I6", what);
    }
    for (number, attempt) in (1_u32..).zip(&op.attempts) {
        if attempt.number != number {
            let what = format!("attempt {number} is missing");
            found.add(id, "I6", what);
            break;
        }
    }
    let known = |number| op.attempts.iter().any(|a| i64::from(a.number) == number);
    for entry in audit {
        if action(entry) == Some(Action::Authorised)
            && let Some(number) = entry.number("attempt").filter(|n| !known(*n))
        {
            let what = format!("attempt {number} was authorised and its row is gone");
            found.add(id, "I6", what);
        }
    }
    for attempt in &op.attempts {
        audited(attempt, id, audit, found);
    }
}

/// One entry authorised the attempt, and one (or none yet) ended it, both as its row says.
fn audited(attempt: &Attempt, id: Option<&str>, audit: &[Entry], found: &mut Findings) {
    let number = attempt.number;
    let named = |wanted: Action| -> Vec<&Entry> {
        let mine = |e: &&Entry| {
            action(e) == Some(wanted) && e.number("attempt") == Some(i64::from(number))
        };
        // A late answer is evidence, not a second end.
        let late = |e: &&Entry| e.detail.get("late") == Some(&Value::Bool(true));
        audit.iter().filter(mine).filter(|e| !late(e)).collect()
    };
    match named(Action::Authorised).as_slice() {
        [e] if e.at == micros(attempt.authorised_at)
            && e.says("call") == Some(attempt.call.as_str()) => {}
        [_] => {
            let what = format!("attempt {number} is not as the audit authorised it");
            found.add(id, "I23", what);
        }
        _ => {
            let what = format!("attempt {number} has not exactly one audit entry");
            found.add(id, "I23", what);
        }
    }
    if !ended_so(attempt, &named(Action::Finished)) {
        let what = format!("attempt {number} did not end as the audit says");
        found.add(id, "I23", what);
    }
}

fn ended_so(attempt: &Attempt, ends: &[&Entry]) -> bool {
    match (&attempt.result, ends) {
        (None, []) => true,
        (Some(result), [end]) => {
            let detail = |name: &str| end.detail.get(name).unwrap_or(&Value::Null);
            end.at == micros(result.finished_at)
                && *detail("class") == json!(result.class)
                && *detail("http_status") == json!(result.http_status)
                && *detail("request_id") == json!(result.request_id)
                && *detail("replayed") == json!(result.replayed)
                && *detail("error") == json!(result.error)
        }
        (None, [..]) | (Some(_), _) => false,
    }
}

/// Nothing was authorised once the row had left open, nor at or past the key's deadline (I7, I10). After a
/// clock was accepted that had run back, the order of the audit alone tells before from after.
fn attempts_in_time(op: &Operation, clock_accepted: bool, found: &mut Findings) {
    let row = &op.row;
    let id = Some(row.id.as_str());
    for attempt in &op.attempts {
        let (number, at) = (attempt.number, attempt.authorised_at);
        if row.key_expires_at.is_none_or(|deadline| at >= deadline) {
            let what = format!("attempt {number} was authorised past the key's deadline");
            found.add(id, "I10", what);
        }
        let left = match (row.unknown_at, row.closed_at) {
            (Some(unknown), Some(closed)) => Some(unknown.min(closed)),
            (unknown, closed) => unknown.or(closed),
        };
        if !clock_accepted && left.is_some_and(|left| at > left) {
            let what = format!("attempt {number} was authorised after the row had left open");
            found.add(id, "I7", what);
        }
    }
    let first = op.attempts.first().map(|a| a.authorised_at);
    let last = op.attempts.last().map(|a| a.authorised_at);
    if row.first_authorised_at != first || row.last_authorised_at != last {
        let what = "first or last authorisation is not that of its attempts";
        found.add(id, "I10", what);
    }
    if row.last_outcome.is_some() != op.attempts.iter().any(|a| a.result.is_some()) {
        found.add(id, "I23", "the last outcome is not that of its attempts");
    }
}

/// Status, version and closing are those of the audit's end (I18, I20, I23).
fn as_left(op: &Operation, last: &Entry, audit: &[Entry], found: &mut Findings) {
    let row = &op.row;
    let id = Some(row.id.as_str());
    if let Some(said) = status(last).filter(|said| *said != row.status) {
        let what = format!(
            "the row is {}, its audit ends with {}",
            row.status.as_str(),
            said.as_str()
        );
        found.add(id, if said.is_closed() { "I20" } else { "I23" }, what);
        return;
    }
    if last.number("version").is_some_and(|v| v != row.version) {
        let what = format!("version {} is not the one its audit ends with", row.version);
        found.add(id, "I18", what);
    }
    let corrections = audit
        .iter()
        .filter(|e| action(e) == Some(Action::Corrected))
        .count();
    if usize::try_from(row.corrections).ok() != Some(corrections) {
        let what = format!(
            "the row counts {} corrections, its audit {corrections}",
            row.corrections
        );
        found.add(id, "I18", what);
    }
    let latest = audit.iter().map(|e| e.at).max();
    if latest.is_some_and(|at| at != micros(row.updated_at)) {
        found.add(
            id,
            "I23",
            "the row changed at another instant than its audit",
        );
    }
    left_open_when(op, audit, found);
}

/// The instants of becoming unknown and of closing, and who closed, are those of an entry.
fn left_open_when(op: &Operation, audit: &[Entry], found: &mut Findings) {
    let row = &op.row;
    let id = Some(row.id.as_str());
    let mut before = Status::Open;
    let (mut unknown_at, mut closings) = (None, Vec::new());
    for entry in audit {
        let Some(now) = status(entry) else { return };
        if now == Status::Unknown && before != Status::Unknown {
            unknown_at = Some(entry.at);
        }
        let corrected = action(entry) == Some(Action::Corrected);
        if now.is_closed() && (!before.is_closed() || corrected) {
            closings.push(entry);
        }
        before = now;
    }
    if row.unknown_at.map(micros) != unknown_at {
        found.add(
            id,
            "I16",
            "it became unknown at another instant than its audit says",
        );
    }
    let Some(closed_at) = row.closed_at.map(micros) else {
        return;
    };
    let by = row.closed_by.as_deref().unwrap_or_default();
    let named = |e: &&Entry| e.at == closed_at && by.ends_with(&e.actor);
    if !closings.iter().any(named) {
        found.add(id, "I18", "it was closed otherwise than its audit says");
    }
}
