//! Short lists to choose from: the order of a list, and how long a row is put off.
//!
//! Owns: the choices as data, safest first, and when each of them would end. Never: acts on a letter
//! (`j k enter esc` is all it knows), reads the time, or carries a choice out. Tests:
//! `tests/tui_overlays.rs`.

use std::time::Duration;

use chrono::{Days, FixedOffset, NaiveTime, TimeZone};
use strum::VariantArray;

use super::action::Frozen;
use super::format::{self, Stamp};
use super::message::Sort;
use crate::domain::{Instant, later};

/// A menu that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Menu {
    pub title: String,
    /// Never empty.
    pub choices: Vec<Choice>,
    /// Which of them is under the cursor.
    pub at: usize,
    /// The row that a choice is about, frozen when the menu opened (U2).
    pub target: Option<Frozen>,
    /// A frame with it has been on the screen; Enter from before chooses nothing (U7).
    pub shown: bool,
}

/// One line of a menu.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub label: String,
    /// What it comes to.
    pub hint: String,
    pub pick: Pick,
    /// It holds already.
    pub present: bool,
}

/// What a choice means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    Sort(Sort),
    /// Put off until then.
    Snooze(Instant),
}

impl Menu {
    /// The orders of a list, with the cursor on the present one.
    #[must_use]
    pub fn sort(present: Sort) -> Self {
        let choices: Vec<Choice> = Sort::VARIANTS
            .iter()
            .map(|sort| Choice {
                label: sort_word(*sort),
                hint: sort_hint(*sort).to_owned(),
                pick: Pick::Sort(*sort),
                present: *sort == present,
            })
            .collect();
        Self {
            title: "order of the list".to_owned(),
            at: choices.iter().position(|c| c.present).unwrap_or(0),
            choices,
            target: None,
            shown: false,
        }
    }

    /// How long a row may be put off, the shortest first. `decidable_at`: from when it can be closed
    /// as failed, where that lies ahead.
    #[must_use]
    pub fn snooze(
        target: Frozen,
        decidable_at: Option<Instant>,
        stamp: Stamp,
        ellipsis: &str,
    ) -> Self {
        let id = target.operation();
        let id = id.map_or_else(String::new, |id| format::short_id(id, ellipsis));
        let choices = snoozes(stamp.now, stamp.zone, decidable_at)
            .into_iter()
            .map(|(label, until)| Choice {
                label,
                hint: format!("in {}", format::left(until, stamp.now)),
                pick: Pick::Snooze(until),
                present: false,
            })
            .collect();
        Self {
            title: format!("put off {id}"),
            choices,
            at: 0,
            target: Some(target),
            shown: false,
        }
    }

    /// Moves the cursor, stopping at both ends.
    pub fn step(&mut self, by: isize) {
        let last = self.choices.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }

    /// The choice under the cursor.
    #[must_use]
    pub fn chosen(&self) -> Option<&Choice> {
        self.choices.get(self.at)
    }
}

/// The word of an order, as the screen writes it.
#[must_use]
pub fn sort_word(sort: Sort) -> String {
    <&str>::from(sort).replace('_', " ")
}

fn sort_hint(sort: Sort) -> &'static str {
    match sort {
        Sort::Updated => "when something last happened",
        Sort::Created => "when the key was made",
        Sort::Amount => "minor units, whatever the currency",
        Sort::Attempts => "how often it was tried",
        Sort::KeyLeft => "how long the key still holds",
        Sort::Order => "by the order's name",
    }
}

/// When a row may be looked at again, soonest first: these times, and the one from which it can be
/// decided where that lies ahead.
#[must_use]
pub fn snoozes(
    now: Instant,
    zone: FixedOffset,
    decidable_at: Option<Instant>,
) -> Vec<(String, Instant)> {
    let mut all = vec![
        ("15 minutes".to_owned(), later(now, Duration::from_mins(15))),
        ("1 hour".to_owned(), later(now, Duration::from_hours(1))),
        ("4 hours".to_owned(), later(now, Duration::from_hours(4))),
    ];
    let ahead = decidable_at.filter(|at| *at > now);
    all.extend(ahead.map(|at| ("until it can be decided".to_owned(), at)));
    // With the zone beside it, whatever zone the other times are in (U25).
    all.extend(tomorrow(now, zone).map(|at| (format!("tomorrow 09:00{zone}"), at)));
    all.sort_by_key(|(_, at)| *at);
    all
}

/// Tomorrow at 09:00 in the screen's zone.
fn tomorrow(now: Instant, zone: FixedOffset) -> Option<Instant> {
    let here = zone.from_utc_datetime(&now.naive_utc());
    let day = here.date_naive().checked_add_days(Days::new(1))?;
    let nine = day.and_time(NaiveTime::from_hms_opt(9, 0, 0)?);
    Some(zone.from_local_datetime(&nine).single()?.to_utc())
}
