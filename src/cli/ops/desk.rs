//! `ops claim`, `release`, `snooze`: who looks at a row, and what is put off.

use super::super::args::SnoozeArgs;
use super::super::context::{Context, Desk};
use super::decide::print;
use crate::domain::ids::OperationId;
use crate::domain::later;
use crate::error::{Exit, Failure};
use crate::review::Decided;

pub(super) async fn claim(cx: &Context, desk: &Desk, id: &OperationId) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let done = gate.claim(id, &person).await?;
    told(cx, desk, id, "claim", &done).await
}

pub(super) async fn release(cx: &Context, desk: &Desk, id: &OperationId) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let done = gate.release(id, &person).await?;
    told(cx, desk, id, "release", &done).await
}

pub(super) async fn snooze(cx: &Context, desk: &Desk, args: &SnoozeArgs) -> Result<Exit, Failure> {
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let span = args.span.unwrap_or_default();
    let until = args.until.unwrap_or_else(|| later(desk.clock.now(), span));
    let done = gate.snooze(&args.op, &person, until).await?;
    told(cx, desk, &args.op, "snooze", &done).await
}

async fn told(
    cx: &Context,
    desk: &Desk,
    id: &OperationId,
    verb: &str,
    done: &Decided,
) -> Result<Exit, Failure> {
    print(cx, desk, id, verb, &done.says, None, false).await?;
    Ok(Exit::Done)
}
