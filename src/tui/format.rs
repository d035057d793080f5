//! Everything that becomes text on the screen: money, times, ids, and text from outside.
//!
//! Owns: the second of two sanitisers (the first stands at the border, see `domain::text`) and the
//! only place that cuts text to a width. Never: reads the time or the model. Tests:
//! `tests/tui_rules.rs`, `tests/tui_properties.rs`.

use std::time::Duration;

use chrono::{FixedOffset, TimeZone};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::domain::evidence::ProviderObject;
use crate::domain::ids::OperationId;
use crate::domain::money::{Currency, Money, decimal};
use crate::domain::text::{MAX_CHARS, SafeText};
use crate::domain::{Instant, since};

/// How instants are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// `2m ago`.
    #[default]
    Relative,
    /// `14:03:22Z`.
    Utc,
    /// `16:03:22+02:00`.
    Local,
}

impl Times {
    /// Relative, then UTC, then local, then relative again.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Relative => Self::Utc,
            Self::Utc => Self::Local,
            Self::Local => Self::Relative,
        }
    }
}

/// Text that can be put into a cell: whatever could act on a terminal is a visible mark (I31, U49).
#[must_use]
pub fn clean(text: &str) -> String {
    SafeText::new(text).as_str().to_owned()
}

/// [`clean`] for a text of any length; its lines stay lines.
#[must_use]
pub fn clean_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, line) in text.lines().enumerate() {
        if n > 0 {
            out.push('\n');
        }
        // A single outside string has a bound; a whole text is cleaned in pieces below it.
        let chars: Vec<char> = line.chars().collect();
        for piece in chars.chunks(MAX_CHARS) {
            out.push_str(&clean(&piece.iter().collect::<String>()));
        }
    }
    out
}

/// Columns that `text` takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// Clean text, cut to `max` columns with `ellipsis` where it is longer. Never wider (U47).
#[must_use]
pub fn fit(text: &str, max: usize, ellipsis: &str) -> String {
    let text = clean(text);
    if width(&text) <= max {
        return text;
    }
    let room = max.saturating_sub(width(ellipsis));
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += UnicodeWidthStr::width(grapheme);
        if used > room {
            break;
        }
        out.push_str(grapheme);
    }
    if width(ellipsis) <= max {
        out.push_str(ellipsis);
    }
    out
}

/// [`fit`], filled with spaces to exactly `columns`.
#[must_use]
pub fn cell(text: &str, columns: usize, right: bool, ellipsis: &str) -> String {
    let text = fit(text, columns, ellipsis);
    let fill = " ".repeat(columns.saturating_sub(width(&text)));
    if right {
        format!("{fill}{text}")
    } else {
        format!("{text}{fill}")
    }
}

/// Clean text in lines of at most `max` columns, broken at spaces where there are some; a word that
/// is longer than a line begins where the line before it ends.
#[must_use]
pub fn wrap(text: &str, max: usize) -> Vec<String> {
    let max = max.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in clean(text).split_whitespace() {
        let columns = width(word);
        let gap = usize::from(used > 0);
        if used + gap + columns <= max || (columns > max && used + gap < max) {
            used += gap;
            put(&mut lines, &" ".repeat(gap));
        } else {
            lines.push(String::new());
            used = 0;
        }
        for grapheme in word.graphemes(true) {
            let columns = UnicodeWidthStr::width(grapheme);
            // A sign wider than the line itself has no place anywhere.
            let (grapheme, columns) = if columns > max {
                ("?", 1)
            } else {
                (grapheme, columns)
            };
            if used + columns > max {
                lines.push(String::new());
                used = 0;
            }
            put(&mut lines, grapheme);
            used += columns;
        }
    }
    lines
}

fn put(lines: &mut [String], text: &str) {
    if let Some(last) = lines.last_mut() {
        last.push_str(text);
    }
}

/// `op_…5521`: the beginning says what it is, the end is what a person types.
#[must_use]
pub fn short_id(id: &OperationId, ellipsis: &str) -> String {
    let text = id.as_str();
    if text.chars().count() <= 9 {
        return clean(text);
    }
    let prefix = text.split_inclusive('_').next().filter(|p| p.len() <= 4);
    clean(&format!(
        "{}{ellipsis}{}",
        prefix.unwrap_or_default(),
        id.token()
    ))
}

/// `USD 1,234.00`.
#[must_use]
pub fn money(money: Money) -> String {
    minor(money.minor(), money.currency())
}

/// Minor units of a currency as [`money`], also for sums and what is no positive amount.
#[must_use]
pub fn minor(minor: impl Into<i128>, currency: Currency) -> String {
    format!("{} {}", currency.code(), grouped(&decimal(minor, currency)))
}

/// What an object tells of its amount.
#[must_use]
pub fn told(object: &ProviderObject, nothing: &str) -> String {
    match (object.amount_minor, object.currency) {
        (Some(amount), Some(currency)) => minor(amount, currency),
        (Some(amount), None) => amount.to_string(),
        (None, _) => nothing.to_owned(),
    }
}

/// Thousands separated by commas.
#[must_use]
pub fn grouped(number: &str) -> String {
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let mut out = String::new();
    let digits = whole.chars().filter(char::is_ascii_digit).count();
    let mut seen = 0;
    for c in whole.chars() {
        out.push(c);
        if c.is_ascii_digit() {
            seen += 1;
            let after = digits - seen;
            if after > 0 && after.is_multiple_of(3) {
                out.push(',');
            }
        }
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A span of time in its two largest units: `12s`, `2m`, `3h12m`, `5d4h`.
#[must_use]
pub fn span(duration: Duration) -> String {
    let s = duration.as_secs();
    let (d, h, m) = (s / 86_400, s / 3_600 % 24, s / 60 % 60);
    match (d, h, m) {
        (0, 0, 0) => format!("{s}s"),
        (0, 0, m) if m < 10 && !s.is_multiple_of(60) => format!("{m}m{}s", s % 60),
        (0, 0, m) => format!("{m}m"),
        (0, h, 0) => format!("{h}h"),
        (0, h, m) => format!("{h}h{m}m"),
        (d, 0, _) => format!("{d}d"),
        (d, h, _) if d < 100 => format!("{d}d{h}h"),
        (d, _, _) => format!("{d}d"),
    }
}

/// How long something took: hundredths of a second where it was short.
#[must_use]
pub fn took(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ ..10_000 => format!("{}.{:02}s", ms / 1_000, ms / 10 % 100),
        _ => span(duration),
    }
}

/// How long ago.
#[must_use]
pub fn age(then: Instant, now: Instant) -> String {
    span(since(then, now))
}

/// How long until; `over` where it has passed.
#[must_use]
pub fn left(until: Instant, now: Instant) -> String {
    if until <= now {
        "over".to_owned()
    } else {
        span(since(now, until))
    }
}

/// Numbers as a row of marks, at most `columns` of them: neighbours are added up where there are more.
/// Nothing is the lowest mark, anything at all a higher one.
#[must_use]
pub fn spark(values: &[u64], columns: usize, marks: &[&str; 8]) -> String {
    let each = values.len().div_ceil(columns.max(1)).max(1);
    let sums: Vec<u64> = values
        .chunks(each)
        .map(|c| c.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)))
        .collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let mark = |n: u64| {
        let level = u128::from(n) * 7 / u128::from(most);
        let level = usize::try_from(level).unwrap_or(7);
        marks[level.max(usize::from(n > 0)).min(7)]
    };
    sums.into_iter().map(mark).collect()
}

/// A writer of instants: one for the whole screen, so that all carry the same zone (U25).
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    pub times: Times,
    pub zone: FixedOffset,
    pub now: Instant,
}

impl Stamp {
    /// An instant, with the zone always beside it; the day where it is another one.
    #[must_use]
    pub fn at(&self, at: Instant) -> String {
        match self.times {
            Times::Relative if at > self.now => format!("in {}", left(at, self.now)),
            Times::Relative => format!("{} ago", age(at, self.now)),
            Times::Utc => {
                let day = at.date_naive() != self.now.date_naive();
                let form = if day { "%m-%d %H:%M:%SZ" } else { "%H:%M:%SZ" };
                at.format(form).to_string()
            }
            Times::Local => {
                let (at, now) = (
                    self.zone.from_utc_datetime(&at.naive_utc()),
                    self.zone.from_utc_datetime(&self.now.naive_utc()),
                );
                let day = at.date_naive() != now.date_naive();
                let form = if day {
                    "%m-%d %H:%M:%S%:z"
                } else {
                    "%H:%M:%S%:z"
                };
                at.format(form).to_string()
            }
        }
    }

    /// An instant as a time of day, also where ages are shown.
    #[must_use]
    pub fn clock(&self, at: Instant) -> String {
        let times = match self.times {
            Times::Relative => Times::Utc,
            other => other,
        };
        Self { times, ..*self }.at(at)
    }
}
