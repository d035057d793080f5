//! `ops`: operations, as people read and settle them.

mod decide;
mod list;
mod show;

use super::args::OpsCommand;
use super::context::{Context, Desk, Keys};
use crate::domain::ids::OperationId;
use crate::error::{Exit, Failure};
use crate::ledger::Detail;
use crate::ledger::sqlite::OpenMode;
use crate::review::GateError;

pub(super) async fn run(cx: &Context, command: &OpsCommand) -> Result<Exit, Failure> {
    let (mode, keys) = match command {
        OpsCommand::List(_) | OpsCommand::Show(_) => (OpenMode::Read, Keys::IfThere),
        OpsCommand::Lookup(_) => (OpenMode::Review, Keys::Needed),
        OpsCommand::Close(close) if close.provider_ref.is_some() => {
            (OpenMode::Review, Keys::Needed)
        }
        OpsCommand::Close(_)
        | OpsCommand::Approve(_)
        | OpsCommand::Reject(_)
        | OpsCommand::Stop(_)
        | OpsCommand::Correct(_)
        | OpsCommand::Note(_) => (OpenMode::Review, Keys::IfThere),
    };
    let desk = cx.open(mode, keys).await?;
    let done = match command {
        OpsCommand::List(args) => list::run(cx, &desk, args).await,
        OpsCommand::Show(one) => show::run(cx, &desk, &one.op).await,
        OpsCommand::Lookup(one) => decide::lookup(cx, &desk, &one.op).await,
        decision => decide::run(cx, &desk, decision).await,
    };
    desk.ledger.close().await;
    done
}

/// The operation of this id.
async fn detail(desk: &Desk, id: &OperationId) -> Result<Detail, Failure> {
    let found = desk.ledger.detail(id).await?;
    found.ok_or_else(|| GateError::NoSuchOperation(id.clone()).into())
}
