//! `clock accept`: a lead accepts the wall clock after a clock alarm.

use serde_json::json;

use super::args::ClockCommand;
use super::context::{Context, Keys};
use crate::error::{Exit, Failure};
use crate::ledger::sqlite::OpenMode;

pub(super) async fn run(cx: &Context, command: &ClockCommand) -> Result<Exit, Failure> {
    let ClockCommand::Accept = command;
    let desk = cx.open(OpenMode::Review, Keys::IfThere).await?;
    let gate = desk.gate()?;
    let person = desk.person(&gate)?;
    let was = desk.ledger.clock_alarm().await?;
    gate.accept_clock(&person).await?;
    desk.ledger.close().await;
    let says = if was {
        "the clock is accepted; engines send again"
    } else {
        "the clock is accepted; there was no alarm"
    };
    if cx.out.is_json() {
        cx.out.json(&json!({ "accepted": true, "alarm": was }))?;
    } else {
        cx.out.text(says)?;
    }
    Ok(Exit::Done)
}
