//! Rooms, in which tasks run when the world lets them, and the clocks on their walls.

use std::sync::Arc;
use std::time::Duration;

use samekey::clock::Clock;
use tokio::runtime::{Builder, Runtime};

use crate::core::Process;

/// A runtime of its own. Dropping it drops all its tasks, wherever they are.
pub struct Room {
    pub runtime: Runtime,
    pub process: Arc<Process>,
}

impl Room {
    pub fn new(name: impl Into<String>) -> Self {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build();
        Self {
            runtime: runtime.expect("a runtime"),
            process: Process::new(name),
        }
    }

    /// Whether somebody outside woke a task in here.
    pub fn is_ready(&self) -> bool {
        self.runtime.metrics().global_queue_depth() > 0
    }

    /// Lets everybody run who can: under paused time the sleep ends when nobody else can go on.
    pub fn run(&self) {
        let idle = Duration::from_millis(1);
        self.runtime
            .block_on(async { tokio::time::sleep(idle).await });
    }
}

/// A machine's clock against true time.
pub struct Timepiece {
    pub clock: Clock,
    /// How much it runs fast, in millionths.
    pub drift: i64,
    pub process: Arc<Process>,
    /// Stands still while its process is stopped: the mistake that `CheckBeforeSending` is about.
    pub frozen_in_stops: bool,
}

impl Timepiece {
    pub fn advance(&self, by: Duration) {
        if self.frozen_in_stops && self.process.is_stopped() {
            return;
        }
        let own = scaled(by, 1_000_000 + self.drift, 1_000_000);
        self.clock.advance(own);
    }

    /// When a sleeper is due, in true time, rounded up.
    pub fn next_wake(&self) -> Option<Duration> {
        if self.process.is_stopped() {
            return None;
        }
        let due = scaled(self.clock.next_wake()?, 1_000_000, 1_000_000 + self.drift);
        // Enough for what the divisions dropped.
        Some(due + Duration::from_micros(2))
    }
}

fn scaled(time: Duration, by: i64, of: i64) -> Duration {
    let micros = i128::try_from(time.as_micros()).expect("a short time");
    let scaled = micros * i128::from(by) / i128::from(of);
    Duration::from_micros(u64::try_from(scaled).expect("a short time"))
}
