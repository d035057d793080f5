//! The report on the screen: which span, and when it is read again.

use std::time::Duration;

use super::BoardReading;
use crate::domain::report::{Report, ReportQuery};
use crate::domain::{Instant, earlier, since};

/// How far the report reaches back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::VariantArray)]
pub enum Span {
    Hour,
    #[default]
    Day,
    Week,
    All,
}

impl Span {
    /// As the switch writes it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "7d",
            Self::All => "all",
        }
    }

    /// The next longer or shorter one; itself at the end.
    #[must_use]
    pub fn next(self, longer: bool) -> Self {
        match (self, longer) {
            (Self::Hour | Self::Day, false) => Self::Hour,
            (Self::Hour, true) | (Self::Week, false) => Self::Day,
            (Self::Day, true) | (Self::All, false) => Self::Week,
            (Self::Week | Self::All, true) => Self::All,
        }
    }

    /// The question that is asked at `now`.
    #[must_use]
    pub fn query(self, now: Instant) -> ReportQuery {
        let length = match self {
            Self::Hour => Some(Duration::from_hours(1)),
            Self::Day => Some(Duration::from_hours(24)),
            Self::Week => Some(Duration::from_hours(24 * 7)),
            Self::All => None,
        };
        ReportQuery {
            since: length.map(|length| earlier(now, length)),
            until: now,
            tool: None,
        }
    }
}

/// A reading is not begun again before so many seconds …
const PAUSE: u32 = 5;
/// … and so many times as long as it took: a large ledger has other work.
const REST: u32 = 10;

/// The board.
#[derive(Clone, Debug, Default)]
pub struct ReportPage {
    pub span: Span,
    /// Of the present span.
    pub report: Option<Report>,
    /// When it was asked for, and how long the answer took.
    pub asked_at: Option<Instant>,
    pub took: Duration,
    /// Lines above the first one shown.
    pub scroll: usize,
    pub reading: BoardReading,
}

impl ReportPage {
    /// Whether it is time to read again; `second`: a real second in the clock's own time.
    #[must_use]
    pub fn is_due(&self, now: Instant, second: Duration) -> bool {
        let Some(asked_at) = self.asked_at else {
            return true;
        };
        let pause = second.saturating_mul(PAUSE);
        since(asked_at, now) >= pause.max(self.took.saturating_mul(REST))
    }
}
