//! The support packet: what the provider's support needs to find a request, and nothing secret.
//!
//! Owns: which facts leave the house: ids, times, statuses, amounts, our evidence in words. Never: the
//! key (only its fingerprint), notes, names of people, agents or conversations, or text that somebody
//! outside wrote beyond ids. In Markdown every outside word stands in a code span it cannot leave.
//! Tests: `tests/packet.rs`.

use std::fmt::Write as _;

use chrono::SecondsFormat;
use serde_json::{Value, json};

use crate::domain::Instant;
use crate::domain::attempt::Attempt;
use crate::domain::evidence::{Bearing, Evidence, ProviderObject, Seen, Source, Verdict, objects};
use crate::domain::operation::{Contradiction, Operation, OperationRow};
use crate::domain::text::SafeText;
use crate::ledger::Detail;

/// What goes to the provider's support: request ids, times, the key's fingerprint, our evidence.
#[derive(Clone, Debug)]
pub struct Packet(Value);

impl Packet {
    /// The packet of an operation as it stands at `now`.
    #[must_use]
    pub fn of(detail: &Detail, now: Instant) -> Self {
        let op = &detail.op;
        let row = &op.row;
        let seen = objects(&op.evidence);
        Self(json!({
            "operation_id": row.id,
            "made_at": at(now),
            "provider": row.provider,
            "payment": row.payment,
            "charge": row.charge,
            "order_id": row.order_id,
            "amount": row.money.map(|m| m.to_string()),
            "amount_cents": row.minor(),
            "currency": row.currency(),
            "status": row.status,
            "reason": row.reason,
            "contradicted": row.contradicted,
            "effect": row.effect,
            "verdict": row.verdict,
            "provider_ref": row.provider_ref,
            "key_fingerprint": row.key.fingerprint(),
            "request_hash": row.request_hash,
            "requests": op.attempts.iter().map(|a| request(a, &op.evidence)).collect::<Vec<_>>(),
            "objects": seen.values().map(|(o, b)| object(o, *b)).collect::<Vec<_>>(),
            "evidence": op.evidence.iter().filter_map(in_words).collect::<Vec<_>>(),
            "asks": asks(op),
        }))
    }

    #[must_use]
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// For a ticket or a mail.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let p = &self.0;
        writeln!(out, "# A refund whose outcome we have to know\n")?;
        for (name, member) in [
            ("our operation", "operation_id"),
            ("payment", "payment"),
            ("charge", "charge"),
            ("order", "order_id"),
            ("amount", "amount"),
            ("minor units", "amount_cents"),
            ("refund", "provider_ref"),
            ("idempotency key (fingerprint)", "key_fingerprint"),
            ("request body (SHA-256)", "request_hash"),
            ("stands as", "status"),
            ("because", "reason"),
            ("contradicted", "contradicted"),
            ("written", "made_at"),
        ] {
            if let Some(value) = p.get(member).filter(|v| !v.is_null()) {
                writeln!(out, "- {name}: {}", code(value))?;
            }
        }
        table(
            out,
            "Requests we sent",
            &p["requests"],
            &[
                ("No", "attempt_no"),
                ("sent", "sent_at"),
                ("ended", "ended_at"),
                ("HTTP", "http_status"),
                ("request id", "request_id"),
                ("replayed", "replayed"),
                ("seen as", "outcome"),
            ],
        )?;
        table(
            out,
            "Refunds we saw at your side",
            &p["objects"],
            &[
                ("id", "id"),
                ("status", "status"),
                ("minor units", "amount_cents"),
                ("currency", "currency"),
                ("payment", "payment"),
                ("created", "created_at"),
                ("whose", "whose"),
            ],
        )?;
        list(out, "What we saw", &p["evidence"], true)?;
        list(out, "What we ask", &p["asks"], false)
    }
}

fn at(at: Instant) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn request(a: &Attempt, evidence: &[Evidence]) -> Value {
    let late = evidence.iter().find_map(|e| match &e.seen {
        Seen::Reply {
            attempt,
            http_status,
            request_id,
            ..
        } if *attempt == a.number => Some((*http_status, request_id.clone())),
        _ => None,
    });
    let r = a.result.as_ref();
    let (late_status, late_id) = late.unwrap_or_default();
    json!({
        "attempt_no": a.number,
        "sent_at": at(a.authorised_at),
        "ended_at": r.map(|r| at(r.finished_at)),
        "http_status": r.and_then(|r| r.http_status).or(late_status),
        "request_id": r.and_then(|r| r.request_id.clone()).or(late_id),
        "replayed": r.is_some_and(|r| r.replayed),
        "outcome": r.map_or("in flight", |r| r.class.as_str()),
    })
}

fn object(o: &ProviderObject, bearing: Bearing) -> Value {
    json!({
        "id": o.id, "status": o.status, "amount_cents": o.amount_minor, "currency": o.currency,
        "payment": o.payment, "created_at": at(o.created_at),
        "whose": match bearing {
            Bearing::Ours => "ours, by its metadata",
            Bearing::Ambiguous => "may be ours",
        },
    })
}

/// One entry of the evidence as a sentence, without anybody's own words.
fn in_words(e: &Evidence) -> Option<String> {
    let who = match e.source {
        Source::Attempt => "the reply to our request",
        Source::ReviewLookup | Source::EngineLookup | Source::Reconciler => "a lookup",
        Source::Webhook => "an event",
        Source::TypedRef => "a refund id given by a person",
    };
    let what = match &e.seen {
        Seen::Object { object, .. } => {
            let status: &str = object.status.into();
            format!("showed {} as {status}", object.id)
        }
        Seen::Scan { complete: true, .. } => "read the payment's refunds to the end".to_owned(),
        // Of a typed id: the one object was read, which its decision tells.
        Seen::Scan { .. } if e.source == Source::TypedRef => return None,
        Seen::Scan { .. } => "could not read the payment's refunds to the end".to_owned(),
        Seen::Unreachable { .. } => "got no answer".to_owned(),
        Seen::Reply { attempt, class, .. } => {
            format!("to attempt {attempt} came late, as {class}")
        }
    };
    Some(format!("{}: {who} {what}", at(e.observed_at)))
}

/// What support is asked, by what we do not know.
fn asks(op: &Operation) -> Vec<String> {
    let row: &OperationRow = &op.row;
    let mut asks = Vec::new();
    match (row.contradicted, row.verdict) {
        (Some(Contradiction::SecondEffect), _) | (_, Some(Verdict::SecondEffect)) => {
            asks.push("Why do two refunds stand on one idempotency key, and which one is meant?");
        }
        (Some(Contradiction::FailedAfterSucceeded), _) | (_, Some(Verdict::Refused)) => {
            asks.push(
                "Did the refund named above fail for good, and when did the money come back?",
            );
        }
        (_, Some(Verdict::Pending)) => {
            asks.push("When will the refund named above be final?");
        }
        (_, Some(Verdict::Confirmed)) => {
            asks.push("Does the refund named above belong to the requests listed here?");
        }
        (_, Some(Verdict::Ambiguous)) => {
            asks.push(
                "Which of the refunds listed here was made by the requests listed here, if any?",
            );
        }
        (_, Some(Verdict::Absent) | None) => {
            asks.push(
                "Did any of the requests listed here make a refund? If so: its id, status and time.",
            );
        }
    }
    if !op.attempts.is_empty() && !row.status.is_closed() {
        asks.push("Can any of these requests still take effect? If not: since when not?");
    }
    asks.into_iter().map(str::to_owned).collect()
}

/// A value as a code span that nothing in it can end: no backtick, no column, no line.
fn code(value: &Value) -> String {
    let text = match value {
        Value::String(text) => SafeText::new(text).as_str().to_owned(),
        other => other.to_string(),
    };
    let text = text.replace('`', "'").replace('|', "\u{a6}");
    if text.trim().is_empty() {
        return "–".to_owned();
    }
    format!("`{text}`")
}

fn table(
    out: &mut String,
    title: &str,
    rows: &Value,
    columns: &[(&str, &str)],
) -> std::fmt::Result {
    let Some(rows) = rows.as_array().filter(|rows| !rows.is_empty()) else {
        return Ok(());
    };
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    writeln!(out, "\n## {title}\n\n| {} |", names.join(" | "))?;
    writeln!(out, "|{}", " --- |".repeat(columns.len()))?;
    for row in rows {
        let cells: Vec<_> = columns
            .iter()
            .map(|(_, member)| match row.get(member) {
                None | Some(Value::Null) => "–".to_owned(),
                Some(value) => code(value),
            })
            .collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

/// Sentences, one a line; `spans`: they hold words from outside.
fn list(out: &mut String, title: &str, lines: &Value, spans: bool) -> std::fmt::Result {
    let Some(lines) = lines.as_array().filter(|lines| !lines.is_empty()) else {
        return Ok(());
    };
    writeln!(out, "\n## {title}\n")?;
    for line in lines {
        match line.as_str().filter(|_| !spans) {
            Some(ours) => writeln!(out, "- {ours}")?,
            None => writeln!(out, "- {}", code(line))?,
        }
    }
    Ok(())
}
