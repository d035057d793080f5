//! Time that is counted in rounds of the scheduler.
//!
//! In a counted run an honest reply must never meet the client's time limit, on a busy machine
//! either. A clock that follows real time cannot promise that: where the process gets the processor
//! for a tenth of a second in a whole one, time runs and work does not. So this clock moves by a fixed
//! step each time its task comes round. Between two of its turns everything else that could run has
//! had a turn too, so a time limit is a number of turns, many more than an honest exchange takes,
//! whatever else the machine does. While all wait for held replies, the rounds are short and the
//! clock runs fast.
//!
//! Owns: moving that clock. Tests: below, and `tests/demo.rs`, whose counts depend on it.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::clock::Clock;

/// The shortest round (real time).
const ROUND: Duration = Duration::from_millis(4);

/// Moves a manual clock until it is dropped.
#[derive(Debug)]
pub(super) struct Rounds(JoinHandle<()>);

impl Rounds {
    /// Moves `clock` at most `speed` times as fast as real time.
    pub fn start(clock: Clock, speed: u32) -> Self {
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(ROUND).await;
                clock.advance(ROUND.saturating_mul(speed));
            }
        }))
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stall_of_everything_costs_one_step_and_no_more() {
        let clock = Clock::manual(Clock::system().now());
        let _rounds = Rounds::start(clock.clone(), 40);
        clock.sleep(Duration::from_secs(1)).await;
        let before = clock.boot();
        // The only thread does something else for fifty rounds.
        std::thread::sleep(ROUND * 50);
        tokio::task::yield_now().await;
        let passed = clock.boot().saturating_sub(before);
        assert!(passed <= ROUND * 40 * 2, "{passed:?}");
    }
}
