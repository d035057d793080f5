//! How much was closed lately, for the small picture in the header.
//!
//! Owns: a bounded row of counts, one for each span of a refresh, from what the readings told anyway.
//! Never: reads. Tests: `tests/tui_boards.rs`.

use std::collections::VecDeque;
use std::time::Duration;

use super::message::Counts;
use crate::domain::Instant;

/// Spans that are remembered.
const SPANS: usize = 5;

/// The latest counts.
#[derive(Clone, Debug, Default)]
pub struct Pulse {
    /// Closed in each span, oldest first.
    closed: VecDeque<u64>,
    /// The span that is under way, and what was closed when it was last looked at.
    at: Option<(i64, u64)>,
}

impl Pulse {
    /// Takes a reading: what was closed since the last one belongs to the span of now.
    pub fn beat(&mut self, counts: &Counts, as_of: Instant, refresh: Duration) {
        let total = counts.succeeded.saturating_add(counts.failed);
        let length = i64::try_from(refresh.as_micros()).unwrap_or(i64::MAX);
        let span = as_of.timestamp_micros() / length.max(1);
        let Some((last, before)) = self.at.replace((span, total)) else {
            return;
        };
        // A span in which nobody looked is one in which nothing is known to have been closed.
        let passed = usize::try_from(span.saturating_sub(last)).unwrap_or(0);
        for _ in 0..passed.min(SPANS) {
            self.closed.push_back(0);
        }
        if self.closed.is_empty() {
            self.closed.push_back(0);
        }
        if let Some(now) = self.closed.back_mut() {
            *now = now.saturating_add(total.saturating_sub(before));
        }
        let surplus = self.closed.len().saturating_sub(SPANS);
        self.closed.drain(..surplus);
    }

    /// Closed in each of the latest spans, oldest first; empty until there are two readings.
    #[must_use]
    pub fn closed(&self) -> Vec<u64> {
        self.closed.iter().copied().collect()
    }
}
