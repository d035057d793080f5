//! `ops close`, `approve`, `reject`, `stop`, `correct`, `note`: what a person decides about a row, always
//! through the gate of `review`.

use serde_json::json;

use super::super::args::{DecideArgs, OpsCommand};
use super::super::context::{Context, Desk};
use crate::domain::ids::{OperationId, ProviderRef};
use crate::domain::operation::{LookedAt, OperationRow};
use crate::domain::review_event::{Person, ReviewRefusal};
use crate::error::{Exit, Failure};
use crate::ledger::view::instant;
use crate::review::{self, Ask, GateError};

/// What a command asks of the gate.
struct Wish<'a> {
    /// The command's word.
    verb: &'static str,
    ask: Ask,
    with: &'a DecideArgs,
    typed: Option<ProviderRef>,
}

fn wish(command: &OpsCommand) -> Option<Wish<'_>> {
    let plain = |verb, ask, with| Wish {
        verb,
        ask,
        with,
        typed: None,
    };
    Some(match command {
        OpsCommand::Close(args) => Wish {
            typed: args.provider_ref.clone(),
            ..plain("close", Ask::Close(args.outcome), &args.decide)
        },
        OpsCommand::Approve(args) => plain("approve", Ask::Approve, args),
        OpsCommand::Reject(args) => plain("reject", Ask::Reject, args),
        OpsCommand::Stop(args) => plain("stop", Ask::Stop, args),
        OpsCommand::Correct(args) => plain("correct", Ask::Correct(args.outcome), &args.decide),
        OpsCommand::Note(args) => plain("note", Ask::Note, args),
        OpsCommand::List(_)
        | OpsCommand::Show(_)
        | OpsCommand::Lookup(_)
        | OpsCommand::Claim(_)
        | OpsCommand::Release(_)
        | OpsCommand::Snooze(_)
        | OpsCommand::Packet(_) => return None,
    })
}

pub(super) async fn run(cx: &Context, desk: &Desk, command: &OpsCommand) -> Result<Exit, Failure> {
    let Some(wish) = wish(command) else {
        return Err(Failure::usage("usage", "this is not a decision"));
    };
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let (id, note) = (&wish.with.op, wish.with.note.as_str());
    // A decision is bound to what was looked at in any case: to the version named, or to the row as it
    // was just read; an approval to what is printed here.
    let row = super::detail(desk, id).await?.op.row;
    let mut looked_at = LookedAt::of(&row);
    if let Some(version) = wish.with.expect_version {
        looked_at.version = version;
    }
    let version = looked_at.version;
    // A note is bound to nothing, unless its maker says so.
    let named = wish.with.expect_version.is_some();
    let bound = (wish.ask != Ask::Note || named).then_some(looked_at);
    if !named && bound.is_some() {
        cx.out.note(&format!("{id}: read at version {version}"));
    }
    if matches!(wish.ask, Ask::Approve | Ask::Reject)
        && let Some(what) = waits(desk, &row)
    {
        cx.out.note(&format!("{id}: what waits is {what}"));
    }
    if let Some(warning) = claimed(desk, &row, &person).filter(|_| wish.ask != Ask::Note) {
        cx.out.note(&format!("{id}: {warning}"));
    }
    let decided = gate
        .decide(id, wish.ask, &person, note, bound, wish.typed)
        .await;
    match decided {
        Ok(decided) => {
            let exit = if decided.proposed {
                Exit::No
            } else {
                Exit::Done
            };
            let proposed = decided.proposed;
            print(
                cx,
                desk,
                id,
                wish.verb,
                &decided.says,
                Some(version),
                proposed,
            )
            .await?;
            Ok(exit)
        }
        Err(GateError::Refused(same @ ReviewRefusal::ClosedSame { .. })) => {
            let says = format!("{id}: {same}; nothing was changed");
            print(cx, desk, id, wish.verb, &says, Some(version), false).await?;
            Ok(Exit::Done)
        }
        Err(e) => {
            let failure = Failure::from(e);
            let read = !named && wish.ask != Ask::Note && cx.out.is_json();
            Err(match failure.hint {
                None if read => failure.hint(format!("it was read at version {version}")),
                _ => failure,
            })
        }
    }
}

/// Who else claims the row, where somebody does: a claim warns, it never blocks.
fn claimed(desk: &Desk, row: &OperationRow, person: &Person) -> Option<String> {
    let by = row
        .claimed_by(desk.clock.now())
        .filter(|by| **by != person.name)?;
    let until = instant(row.claim.as_ref()?.until);
    Some(format!("{by} claims it until {until}; ask them first"))
}

/// What waits for a lead on the row, in one sentence: the very thing that is decided.
fn waits(desk: &Desk, row: &OperationRow) -> Option<String> {
    if row.held {
        let about = row.subject();
        return Some(match row.money {
            Some(money) => format!("the held row: {money}, {about}"),
            None => format!("the held row: {about}"),
        });
    }
    let (p, terms) = (row.proposal.as_ref()?, desk.terms.get(&row.tool)?);
    Some(format!("{}: {}", review::proposed(p, terms), p.note))
}

pub(super) async fn print(
    cx: &Context,
    desk: &Desk,
    id: &OperationId,
    verb: &str,
    says: &str,
    version_seen: Option<i64>,
    proposed: bool,
) -> Result<(), Failure> {
    if !cx.out.is_json() {
        return cx.out.text(says);
    }
    let detail = super::detail(desk, id).await?;
    cx.out.json(&json!({
        "operation_id": id, "action": verb, "proposed": proposed, "message": says,
        "version_seen": version_seen, "verdict": detail.op.row.verdict,
        "operation": desk.row_of(&detail),
    }))
}
