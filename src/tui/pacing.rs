//! When the screen draws and when it reads.
//!
//! Owns: both paces. A key is drawn at once, with its answer if that comes within 8 ms, and so is the
//! answer; changes at most 30 times a second; nothing where nothing changed. The ledger is read at the
//! first hint, then at most 30 times a second and, but for a burst, a quarter of the time. Never: waits itself. Tests: below.

use std::time::Duration;

use tokio::time::Instant;

/// Between two frames that only changes ask for, and between two readings.
pub(super) const FRAME: Duration = Duration::from_millis(33);
/// Time for the answer to a key to be in the same frame as the key.
const SETTLE: Duration = Duration::from_millis(8);
/// So long after a key an answer is taken for the answer to that key.
const ANSWERS: Duration = Duration::from_millis(500);
/// Of this much time one part is for reading.
const PARTS: u32 = 4;
/// Reading that may be saved up for a burst of changes.
const SAVED: Duration = Duration::from_millis(100);
/// When the next frame is drawn.
pub(super) struct Drawing {
    /// The revision that is drawn.
    revision: u64,
    last: Instant,
    pub(super) due: Option<Instant>,
    /// A person waits for it.
    urgent: bool,
    /// When the last key came.
    key: Option<Instant>,
}

impl Drawing {
    pub(super) fn new() -> Self {
        Self {
            revision: 0,
            last: Instant::now(),
            due: None,
            urgent: true,
            key: None,
        }
    }

    /// The model is as it is now; `waits`: an answer to what was asked last is on its way.
    pub(super) fn plan(&mut self, revision: u64, waits: bool) {
        if revision == self.revision {
            self.due = None;
            return;
        }
        let now = Instant::now();
        let from = self.key.filter(|_| self.urgent).unwrap_or(now);
        // What comes later than that is drawn as it comes.
        let settled = if waits { now.max(from + SETTLE) } else { now };
        let wanted = if self.urgent {
            settled
        } else {
            settled.max(self.last + FRAME)
        };
        // Never later than it was planned, or a flood would put it off; at once where all is there.
        let due = self.due.map_or(wanted, |due| due.min(wanted));
        self.due = Some(due);
    }

    pub(super) fn drawn(&mut self, revision: u64) {
        (self.revision, self.last) = (revision, Instant::now());
        (self.due, self.urgent) = (None, false);
    }

    pub(super) fn typed(&mut self) {
        (self.key, self.urgent) = (Some(Instant::now()), true);
    }

    /// An answer came: to a key, if there was one a moment ago.
    pub(super) fn answered(&mut self) {
        self.urgent |= self.key.is_some_and(|key| key.elapsed() < ANSWERS);
    }
}

/// When the ledger is read next.
pub(super) struct Reading {
    /// It changed and was not read since.
    pub(super) hinted: bool,
    /// When the reading on its way began.
    began: Option<Instant>,
    /// From when on [`SAVED`] is there for reading: what was read since pushes it ahead.
    saved_at: Instant,
    /// It rests until then.
    pub(super) rest: Instant,
}

impl Reading {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            hinted: false,
            began: None,
            saved_at: now,
            rest: now,
        }
    }

    /// Whether nothing is on its way.
    pub(super) fn is_over(&self) -> bool {
        self.began.is_none()
    }

    /// Whether a reading is on its way now. However long one takes, the ledger is left alone for three
    /// times as long, if not at once, then before long.
    pub(super) fn is(&mut self, in_flight: bool) {
        match (in_flight, self.began) {
            (true, None) => self.began = Some(Instant::now()),
            (false, Some(began)) => {
                let spent = began.elapsed().saturating_mul(PARTS);
                self.saved_at = self.saved_at.max(began) + spent;
                let spare = SAVED.saturating_mul(PARTS);
                let paid = self.saved_at.checked_sub(spare).unwrap_or(began);
                self.rest = paid.max(began + FRAME);
                self.began = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn changes_are_drawn_thirty_times_a_second_and_a_flood_puts_no_frame_off() {
        let mut drawing = Drawing::new();
        drawing.drawn(1);
        let began = Instant::now();
        for revision in 2..30 {
            drawing.plan(revision, true);
            advance(MS).await;
        }
        assert_eq!(drawing.due, Some(began + FRAME));
        drawing.drawn(30);
        drawing.plan(30, false);
        assert_eq!(drawing.due, None, "nothing changed, nothing is drawn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_and_its_answer_are_drawn_at_once() {
        let mut drawing = Drawing::new();
        drawing.drawn(1);
        drawing.typed();
        drawing.plan(2, true);
        assert_eq!(
            drawing.due,
            Some(Instant::now() + SETTLE),
            "with its answer"
        );
        drawing.plan(3, false);
        assert_eq!(drawing.due, Some(Instant::now()), "there it is");
        drawing.drawn(3);
        advance(20 * MS).await;
        drawing.answered();
        drawing.plan(4, true);
        assert_eq!(
            drawing.due,
            Some(Instant::now()),
            "a slow answer is one too, and waits for nothing more"
        );
        drawing.drawn(4);
        advance(ANSWERS).await;
        drawing.answered();
        drawing.plan(5, false);
        assert_eq!(
            drawing.due,
            Some(Instant::now()),
            "nothing was drawn lately"
        );
        drawing.drawn(5);
        drawing.answered();
        drawing.plan(6, false);
        assert_eq!(drawing.due, Some(Instant::now() + FRAME));
    }

    #[tokio::test(start_paused = true)]
    async fn the_ledger_is_read_at_once_thirty_times_a_second_and_a_quarter_of_the_time() {
        let mut reading = Reading::new();
        assert!(reading.rest <= Instant::now());
        let begin = Instant::now();
        let mut read = Duration::ZERO;
        for took in [
            MS,
            20 * MS,
            20 * MS,
            20 * MS,
            40 * MS,
            100 * MS,
            20 * MS,
            20 * MS,
        ] {
            tokio::time::sleep_until(reading.rest).await;
            reading.is(true);
            assert!(!reading.is_over());
            advance(took).await;
            reading.is(false);
            read += took;
            let since = begin.elapsed();
            assert!(reading.rest >= begin + FRAME);
            assert!(
                read <= SAVED + 100 * MS + since / PARTS,
                "{read:?} of {since:?}"
            );
        }
        // After a burst it is paid back.
        tokio::time::sleep_until(reading.rest).await;
        assert!(begin.elapsed() + SAVED * PARTS >= read * PARTS);
    }
}
