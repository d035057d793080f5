//! `ops`: operations, as people read and settle them.

mod decide;
mod desk;
mod list;
mod lookup;
mod show;

use super::args::OpsCommand;
use super::context::{Context, Desk, Keys};
use crate::domain::ids::OperationId;
use crate::error::{Exit, Failure};
use crate::ledger::Detail;
use crate::ledger::sqlite::OpenMode;
use crate::review::GateError;
use crate::review::packet::Packet;

pub(super) async fn run(cx: &Context, command: &OpsCommand) -> Result<Exit, Failure> {
    let (mode, keys) = match command {
        OpsCommand::List(_) | OpsCommand::Show(_) | OpsCommand::Packet(_) => {
            (OpenMode::Read, Keys::IfThere)
        }
        OpsCommand::Lookup(_) => (OpenMode::Review, Keys::Needed),
        OpsCommand::Close(close) if close.provider_ref.is_some() => {
            (OpenMode::Review, Keys::Needed)
        }
        OpsCommand::Close(_)
        | OpsCommand::Approve(_)
        | OpsCommand::Reject(_)
        | OpsCommand::Stop(_)
        | OpsCommand::Correct(_)
        | OpsCommand::Note(_)
        | OpsCommand::Claim(_)
        | OpsCommand::Release(_)
        | OpsCommand::Snooze(_) => (OpenMode::Review, Keys::IfThere),
    };
    let desk = cx.open(mode, keys).await?;
    let done = match command {
        OpsCommand::List(args) => list::run(cx, &desk, args).await,
        OpsCommand::Show(one) => show::run(cx, &desk, &one.op).await,
        OpsCommand::Packet(one) => packet(cx, &desk, &one.op).await,
        OpsCommand::Lookup(args) => lookup::run(cx, &desk, &args.ops).await,
        OpsCommand::Claim(one) => desk::claim(cx, &desk, &one.op).await,
        OpsCommand::Release(one) => desk::release(cx, &desk, &one.op).await,
        OpsCommand::Snooze(args) => desk::snooze(cx, &desk, args).await,
        decision => decide::run(cx, &desk, decision).await,
    };
    desk.ledger.close().await;
    done
}

/// What the provider's support needs.
async fn packet(cx: &Context, desk: &Desk, id: &OperationId) -> Result<Exit, Failure> {
    let packet = Packet::of(&detail(desk, id).await?, desk.clock.now());
    if cx.out.is_json() {
        cx.out.json(packet.json())?;
    } else {
        cx.out.text(&packet.markdown())?;
    }
    Ok(Exit::Done)
}

/// The operation of this id.
async fn detail(desk: &Desk, id: &OperationId) -> Result<Detail, Failure> {
    let found = desk.ledger.detail(id).await?;
    found.ok_or_else(|| GateError::NoSuchOperation(id.clone()).into())
}
