//! `ops lookup`, `close`, `approve`, `reject`, `stop`, `correct`, `note`: what a person does to a row,
//! always through the gate of `review`.

use serde_json::json;

use super::super::args::{DecideArgs, OpsCommand};
use super::super::context::{Context, Desk};
use crate::domain::evidence;
use crate::domain::ids::{OperationId, ProviderRef};
use crate::domain::review_event::ReviewRefusal;
use crate::error::{Exit, Failure};
use crate::review::{Ask, Decided, GateError};

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
        OpsCommand::List(_) | OpsCommand::Show(_) | OpsCommand::Lookup(_) => return None,
    })
}

pub(super) async fn run(cx: &Context, desk: &Desk, command: &OpsCommand) -> Result<Exit, Failure> {
    let Some(wish) = wish(command) else {
        return Err(Failure::usage("usage", "this is not a decision"));
    };
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let (id, note) = (&wish.with.op, wish.with.note.as_str());
    // A decision is bound to a version in any case: to the one looked at, or to the one just read.
    let version = match wish.with.expect_version {
        Some(version) => version,
        None => super::detail(desk, id).await?.op.row.version,
    };
    // A note is bound to nothing, unless its maker says so.
    let bound = match wish.ask {
        Ask::Note => wish.with.expect_version,
        _ => Some(version),
    };
    if wish.with.expect_version.is_none() && bound.is_some() {
        cx.out.note(&format!("{id}: read at version {version}"));
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
            let read = wish.with.expect_version.is_none() && bound.is_some() && cx.out.is_json();
            Err(match failure.hint {
                None if read => failure.hint(format!("it was read at version {version}")),
                _ => failure,
            })
        }
    }
}

/// Asks the provider, through the gate; prints the verdict.
pub(super) async fn lookup(cx: &Context, desk: &Desk, id: &OperationId) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let decided = gate.lookup(id, &person).await?;
    let Decided { op, says, .. } = decided;
    if evidence::unreachable_since(&op.evidence).is_some() {
        return Err(
            Failure::unreachable("provider_unreachable", format!("{id}: {says}"))
                .hint("try again later; `samekey ops show` keeps what was seen"),
        );
    }
    print(
        cx,
        desk,
        id,
        "lookup",
        &format!("{id}: {says}"),
        None,
        false,
    )
    .await?;
    Ok(Exit::Done)
}

async fn print(
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
