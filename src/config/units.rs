//! How durations and rates are written: `"500ms"`, `"10s"`, `"24h"`; `"5/s"`.

use std::time::Duration;

use crate::domain::policy::Rate;

/// Milliseconds per unit, the longest first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];
/// Longest duration that can be configured: a year, in milliseconds.
const MAX_MS: u64 = 366 * 86_400_000;

/// A whole number and one unit.
///
/// # Errors
/// What is wrong, as the end of a sentence.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err("is not a duration: a whole number and a unit");
    }
    let Some((_, ms)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(if unit.is_empty() {
            "has no unit"
        } else {
            "has a unit other than ms, s, m, h or d"
        });
    };
    let total = number.parse::<u64>().ok().and_then(|n| n.checked_mul(*ms));
    match total {
        Some(total @ 0..=MAX_MS) => Ok(Duration::from_millis(total)),
        Some(_) | None => Err("is longer than a year"),
    }
}

/// A count from 1 and a unit: `5/s`, `100/m`, `1000/h`.
pub(super) fn rate(text: &str) -> Option<Rate> {
    let (count, unit) = text.split_once('/')?;
    let count = count.parse().ok().filter(|n| *n > 0)?;
    let (_, ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let per = Duration::from_millis(*ms);
    Some(Rate { count, per })
}

/// In the longest unit that shows it exactly.
#[must_use]
pub fn show_duration(d: Duration) -> String {
    let ms = u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    if ms == 0 {
        return "0s".to_owned();
    }
    let exact = |(_, unit): &&(&str, u64)| ms.is_multiple_of(*unit);
    // A day is shown as 24h: retention times are spoken of in hours.
    let fitting = UNITS
        .iter()
        .find(|u| exact(u) && !(u.0 == "d" && ms < 2 * u.1));
    let (name, unit) = fitting.copied().unwrap_or(("ms", 1));
    format!("{}{name}", ms / unit)
}

/// As it is written in the file.
#[must_use]
pub fn show_rate(rate: Rate) -> String {
    let ms = rate.per.as_millis();
    let unit = UNITS.iter().find(|(_, unit)| u128::from(*unit) == ms);
    let per = unit.map_or_else(|| show_duration(rate.per), |(name, _)| (*name).to_owned());
    format!("{}/{per}", rate.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_whole_number_and_one_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for bad in [
            "",
            "10",
            "s",
            "1.5s",
            "-1s",
            "10 s",
            "10sec",
            "1h30m",
            "99999d",
            "99999999999999999999s",
            "１s",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_are_a_count_per_unit() {
        let five = rate("5/s").expect("five a second");
        assert_eq!((five.count, five.per), (5, Duration::from_secs(1)));
        assert_eq!(show_rate(five), "5/s");
        for text in ["1/ms", "5/s", "100/m", "7/h", "3/d"] {
            assert_eq!(show_rate(rate(text).expect("a rate")), text);
        }
        for bad in ["5", "0/s", "/s", "5/", "5/2s", "-1/s", "5/s/s", "1.5/s"] {
            assert!(rate(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for text in ["0s", "500ms", "10s", "90s", "2m", "24h", "36h", "30d"] {
            let read = duration(text).expect("a duration");
            assert_eq!(show_duration(read), text);
        }
    }
}
