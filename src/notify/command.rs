//! One run of a program per notice: ids in its environment, no shell, no input, bounded in time.

use std::time::Duration;

use super::Missed;
use super::words::Told;
use crate::clock::Clock;
use crate::program::Program;

pub(super) async fn run(
    program: &Program,
    told: &Told<'_>,
    clock: &Clock,
    limit: Duration,
) -> Result<(), Missed> {
    let ended = program.run(told.variables(), clock, limit).await;
    let ended = ended.map_err(Missed::again)?;
    if !(ended.out.bytes.is_empty() && ended.err.bytes.is_empty()) {
        tracing::info!(stdout = %ended.out.shown(), stderr = %ended.err.shown(), "the command said");
    }
    if ended.status.success() {
        Ok(())
    } else {
        let status = ended.status;
        Err(Missed::again(format!("the command ended with {status}")))
    }
}
