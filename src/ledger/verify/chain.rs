//! The audit chain of one operation: numbers without a gap, hashes that verify, and a course of
//! statuses that the protocol allows (I7, I16, I18, I20, I23, I27).

use std::str::FromStr;

use super::Findings;
use super::pages::{Entry, History};
use crate::domain::attempt::Attempt;
use crate::domain::evidence::Seen;
use crate::domain::operation::Status;
use crate::domain::transition::Action;
use crate::ledger::audit::{self, Link};

/// How far instants may step back: a wall clock further off stops sending (I27).
const TOLERANCE_MICROS: i64 = 5 * 60 * 1_000_000;

/// The status an entry left behind.
pub(super) fn status(entry: &Entry) -> Option<Status> {
    entry.says("status").and_then(|s| Status::from_str(s).ok())
}

pub(super) fn action(entry: &Entry) -> Option<Action> {
    Action::from_str(&entry.action).ok()
}

pub(super) fn check(history: &History, clock_accepted: bool, found: &mut Findings) {
    links(history, found);
    course(history, found);
    if !clock_accepted {
        instants(history, found);
    }
}

fn links(history: &History, found: &mut Findings) {
    let id = Some(history.id.as_str());
    let mut before = "";
    let mut expected = 1;
    for entry in &history.audit {
        if entry.seq != expected {
            let what = format!("audit entry {expected} is missing");
            found.add(id, "I23", what);
            expected = entry.seq;
        } else if hash(&history.id, before, entry) != entry.hash {
            let what = format!(
                "audit entry {} ({}) was changed: its hash does not verify",
                entry.seq, entry.action
            );
            found.add(id, "I23", what);
        }
        before = &entry.hash;
        expected = expected.saturating_add(1);
    }
    let last = expected.saturating_sub(1);
    if let Some(op) = &history.op
        && op.row.audit_seq != last
    {
        let what = format!(
            "the row counts {} audit entries, there are {last}",
            op.row.audit_seq
        );
        found.add(id, "I23", what);
    }
}

fn hash(operation: &str, before: &str, entry: &Entry) -> String {
    audit::hash(
        before,
        &Link {
            operation,
            seq: entry.seq,
            at: entry.at,
            actor: &entry.actor,
            os_user: &entry.os_user,
            action: &entry.action,
            detail: &entry.raw_detail,
        },
    )
}

/// Each entry may follow the one before it.
fn course(history: &History, found: &mut Findings) {
    let id = Some(history.id.as_str());
    let mut before: Option<(Status, i64)> = None;
    for entry in &history.audit {
        let seq = entry.seq;
        let (Some(action), Some(status), Some(version)) =
            (action(entry), status(entry), entry.number("version"))
        else {
            let what = format!("audit entry {seq} ({}) cannot be read", entry.action);
            found.add(id, "I23", what);
            before = None;
            continue;
        };
        if (action == Action::Opened) != (seq == 1) || (seq == 1 && status != Status::Open) {
            let what = format!("audit entry {seq} is {}, {}", entry.action, status.as_str());
            found.add(id, "I23", what);
        }
        if let Some((was, old)) = before {
            if action == Action::Authorised && was != Status::Open {
                let what = format!(
                    "audit entry {seq} authorises an attempt of a row that is {}",
                    was.as_str()
                );
                found.add(id, "I7", what);
            }
            if !may_follow(was, status, action) {
                let rule = if was.is_closed() { "I20" } else { "I18" };
                let what = format!(
                    "audit entry {seq} ({}) takes the row from {} to {}",
                    entry.action,
                    was.as_str(),
                    status.as_str()
                );
                found.add(id, rule, what);
            }
            if version < old || version > old.saturating_add(1) {
                let what = format!("audit entry {seq} takes the version from {old} to {version}");
                found.add(id, "I18", what);
            }
            if was == Status::Unknown && status.is_closed() {
                exit_from_unknown(history, entry, action, found);
            }
        }
        before = Some((status, version));
    }
}

fn may_follow(was: Status, status: Status, action: Action) -> bool {
    match was {
        Status::Open => true,
        Status::Unknown => status != Status::Open,
        Status::Succeeded | Status::Failed => {
            was == status || (status.is_closed() && action == Action::Corrected)
        }
    }
}

/// Unknown is left only by a decision with a name and a ground, or by evidence (I16).
fn exit_from_unknown(history: &History, entry: &Entry, action: Action, found: &mut Findings) {
    let by_person = entry.actor.starts_with("reviewer:");
    let reasoned = || {
        let seen = entry.says("verdict").is_some() || entry.says("proposed_by").is_some();
        let nothing_sent = history
            .op
            .as_ref()
            .is_none_or(|op| op.attempts.iter().all(Attempt::without_effect));
        entry.says("note").is_some_and(|n| !n.trim().is_empty()) && (seen || nothing_sent)
    };
    let evident = || {
        let object = |seen: &Seen| matches!(seen, Seen::Object { .. });
        history
            .op
            .as_ref()
            .is_none_or(|op| op.evidence.iter().any(|e| object(&e.seen)))
    };
    let holds = match action {
        Action::Closed => by_person && reasoned(),
        Action::Finished | Action::Observed => !by_person && evident(),
        Action::Opened
        | Action::Authorised
        | Action::Swept
        | Action::NeverSent
        | Action::NoLongerFits
        | Action::Proposed
        | Action::Approved
        | Action::Rejected
        | Action::Stopped
        | Action::Corrected
        | Action::Noted
        | Action::Claimed
        | Action::Released
        | Action::Snoozed => false,
    };
    if !holds {
        let what = format!(
            "audit entry {} ({} by {}) leaves unknown without a named decision or evidence",
            entry.seq, entry.action, entry.actor
        );
        found.add(Some(&history.id), "I16", what);
    }
}

fn instants(history: &History, found: &mut Findings) {
    for pair in history.audit.windows(2) {
        if let [before, after] = pair
            && after.at < before.at.saturating_sub(TOLERANCE_MICROS)
        {
            let what = format!("audit entry {} is earlier than the one before", after.seq);
            found.add(Some(&history.id), "I27", what);
        }
    }
}
