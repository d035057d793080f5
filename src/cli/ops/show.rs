//! `ops show`: one operation with its whole history, and what may be decided now.

use std::fmt::Write as _;

use super::super::context::{Context, Desk};
use super::super::table::{self, Column};
use crate::domain::guard::{self, Ruling};
use crate::domain::ids::OperationId;
use crate::domain::operation::Closing;
use crate::error::{Exit, Failure};
use crate::ledger::Detail;
use crate::ledger::view::{ClosingView, DetailView, RowView, instant, status_word};

pub(super) async fn run(cx: &Context, desk: &Desk, id: &OperationId) -> Result<Exit, Failure> {
    let detail = super::detail(desk, id).await?;
    let view = desk.detail(&detail);
    if cx.out.is_json() {
        cx.out.json(&view)?;
    } else {
        let mut text = text(&detail, &view);
        // Writing to a String cannot fail.
        let _ = corrections(&mut text, desk, &detail);
        cx.out.text(&text)?;
    }
    Ok(Exit::Done)
}

fn text(detail: &Detail, view: &DetailView) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = row(&mut out, detail, &view.row)
        .and_then(|()| attempts(&mut out, view))
        .and_then(|()| calls(&mut out, view))
        .and_then(|()| evidence(&mut out, view))
        .and_then(|()| audit(&mut out, view))
        .and_then(|()| closings(&mut out, &view.closings));
    out
}

fn row(out: &mut String, detail: &Detail, r: &RowView) -> std::fmt::Result {
    let money = detail.op.row.money;
    let effect: &str = detail.op.row.effect.into();
    let reason: Option<&str> = r.reason.map(Into::into);
    let failure = &detail.op.row.failure_text;
    let contradicted: Option<&str> = r.contradicted.map(Into::into);
    let proposal = r.proposal.as_ref().map(|p| {
        let decision: &str = p.decision.into();
        format!("{decision}, by {} until {}: {}", p.by, p.expires_at, p.note)
    });
    let claimed = r.claimed_by.as_ref().map(|by| {
        let until = detail.op.row.claim.as_ref().map(|c| instant(c.until));
        format!("by {by} until {}", until.unwrap_or_default())
    });
    writeln!(out, "{}  {}", r.operation_id, r.status_word)?;
    for (name, value) in [
        ("tool", Some(r.tool.to_string())),
        ("order", r.order_id.clone()),
        (
            "amount",
            money.map(|m| format!("{m} ({} minor units)", m.minor())),
        ),
        (
            "identity",
            r.order_id.is_none().then(|| r.identity.to_string()),
        ),
        ("payment", r.payment.clone()),
        ("charge", r.charge.clone()),
        ("after", r.after.as_ref().map(ToString::to_string)),
        ("effect", Some(effect.to_owned())),
        ("held", r.held.then(|| "waits for approval".to_owned())),
        ("reason", reason.map(str::to_owned)),
        ("failure", failure.as_ref().map(ToString::to_string)),
        ("contradicted", contradicted.map(str::to_owned)),
        ("verdict", r.verdict.map(|v| v.as_str().to_owned())),
        ("decidable at", r.decidable_at.clone()),
        ("proposal", proposal),
        ("claimed", claimed),
        ("snoozed", r.snoozed_until.clone()),
        (
            "attempts",
            Some(format!("{} of {}", r.attempts, r.attempts_max)),
        ),
        ("key", Some(r.idempotency_key.clone())),
        ("key expires", r.key_expires_at.clone()),
        ("provider", Some(r.provider.to_string())),
        (
            "provider ref",
            r.provider_ref.as_ref().map(ToString::to_string),
        ),
        ("link", r.provider_url.clone()),
        ("version", Some(r.version.to_string())),
        ("created", Some(r.created_at.clone())),
        ("updated", Some(r.updated_at.clone())),
        ("closed", r.closed_at.clone()),
        ("closed by", r.closed_by.clone()),
    ] {
        if let Some(value) = value {
            writeln!(out, "  {name:<13} {value}")?;
        }
    }
    Ok(())
}

fn section(
    out: &mut String,
    title: &str,
    columns: &[Column],
    rows: &[Vec<String>],
) -> std::fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    table::render(columns, rows)
        .lines()
        .try_for_each(|line| writeln!(out, "  {line}"))
}

fn attempts(out: &mut String, view: &DetailView) -> std::fmt::Result {
    let columns = [
        Column::Right("NO"),
        Column::Left("AUTHORISED"),
        Column::Left("OUTCOME"),
        Column::Right("HTTP"),
        Column::Left("REQUEST"),
        Column::Left("ERROR"),
    ];
    let rows = view.attempt_list.iter().map(|a| {
        vec![
            a.attempt_no.to_string(),
            a.authorised_at.clone(),
            a.outcome.map_or("in flight", |c| c.as_str()).to_owned(),
            a.http_status.map_or(String::new(), |s| s.to_string()),
            a.provider_request_id
                .as_ref()
                .map_or(String::new(), ToString::to_string),
            a.error.as_ref().map_or(String::new(), ToString::to_string),
        ]
    });
    section(out, "attempts", &columns, &rows.collect::<Vec<_>>())
}

fn calls(out: &mut String, view: &DetailView) -> std::fmt::Result {
    let columns = [
        Column::Left("CALL"),
        Column::Left("AGENT"),
        Column::Left("STATE"),
        Column::Left("ACCEPTED"),
        Column::Left("EXECUTED"),
        Column::Left("DELIVERED"),
        Column::Left("ANSWER"),
    ];
    let rows = view.calls.iter().map(|c| {
        let state: &str = c.state.into();
        vec![
            c.call_id.clone(),
            c.agent.clone(),
            state.to_owned(),
            c.accepted_at.clone(),
            c.executed_at.clone().unwrap_or_default(),
            c.delivered_at.clone().unwrap_or_default(),
            c.result.as_ref().map_or("", |r| r.status()).to_owned(),
        ]
    });
    section(out, "calls", &columns, &rows.collect::<Vec<_>>())
}

fn evidence(out: &mut String, view: &DetailView) -> std::fmt::Result {
    let columns = [
        Column::Left("SEEN"),
        Column::Left("SOURCE"),
        Column::Left("KIND"),
        Column::Left("OBJECT"),
        Column::Left("WHAT"),
    ];
    let rows = view.evidence.iter().map(|e| {
        let word = |name: &str| e.payload.get(name).and_then(|v| v.as_str());
        let complete = e
            .payload
            .get("complete")
            .and_then(serde_json::Value::as_bool);
        let what = match (word("status"), word("why"), complete) {
            (Some(status), _, _) => {
                format!("{status}, {}", word("bearing").unwrap_or("not ours"))
            }
            (None, Some(why), _) => why.to_owned(),
            (None, None, Some(true)) => "complete".to_owned(),
            (None, None, _) => "incomplete".to_owned(),
        };
        vec![
            e.observed_at.clone(),
            e.source.as_str().to_owned(),
            e.kind.to_owned(),
            e.provider_ref
                .as_ref()
                .map_or(String::new(), ToString::to_string),
            what,
        ]
    });
    section(out, "evidence", &columns, &rows.collect::<Vec<_>>())
}

fn audit(out: &mut String, view: &DetailView) -> std::fmt::Result {
    let columns = [
        Column::Right("SEQ"),
        Column::Left("AT"),
        Column::Left("BY"),
        Column::Left("ACTION"),
        Column::Left("NOTE"),
    ];
    let rows = view.audit.iter().map(|a| {
        let word = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        };
        vec![
            word(&a["seq"]),
            word(&a["at"]),
            word(&a["actor"]),
            word(&a["action"]),
            word(&a["detail"]["note"]),
        ]
    });
    section(out, "history", &columns, &rows.collect::<Vec<_>>())
}

fn closings(out: &mut String, closings: &[ClosingView]) -> std::fmt::Result {
    writeln!(out, "\nclosings")?;
    for c in closings {
        let says = match (&c.why_not, c.persons) {
            (Some(why), _) => format!("no: {why}"),
            (None, Some(1)) => "yes".to_owned(),
            (None, _) if c.needs_provider_ref => {
                "with the provider's id, and a second person".to_owned()
            }
            (None, _) => "with a second person".to_owned(),
        };
        writeln!(out, "  as {:<10} {says}", c.word)?;
    }
    Ok(())
}

/// Which corrections of a contradicted row are allowed now: the next step, where closing is none.
fn corrections(out: &mut String, desk: &Desk, detail: &Detail) -> std::fmt::Result {
    let row = &detail.op.row;
    let (Some(_), Some(terms)) = (row.contradicted, desk.terms.get(&row.tool)) else {
        return Ok(());
    };
    writeln!(
        out,
        "\ncorrections (a lead, with `samekey ops correct {}`)",
        row.id
    )?;
    for decision in [Some(Closing::Succeeded), Some(Closing::Failed), None] {
        let how = decision.map_or("as it is".to_owned(), |d| {
            format!("--as {}", status_word(d.status(), Some(terms)))
        });
        let says = match guard::correcting(&detail.op, decision, terms, desk.clock.now()) {
            Ruling::OnePerson => "yes".to_owned(),
            Ruling::SecondPerson { .. } => "with a second person".to_owned(),
            Ruling::Refused { why, .. } => format!("no: {why}"),
        };
        writeln!(out, "  {how:<13} {says}")?;
    }
    Ok(())
}
