//! The filter line: words with qualifiers, read into a ledger filter.
//!
//! Owns: the little language behind `/` and where exactly a word is wrong. Never: reads the ledger.
//! Money is minor units, or a decimal with its currency; a bare decimal is refused, because it would
//! be a guess (U19). Tests: `tests/tui_rules.rs`.

use std::time::Duration;

use super::format;
use super::message::{Filter, Tab};
use crate::domain::money::{Currency, Money};
use crate::domain::operation::UnknownReason;

/// What a filter line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// `status:` chooses the list.
    pub tab: Option<Tab>,
    pub filter: Filter,
}

/// A word that cannot be read, and where it stands (columns).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{says}")]
pub struct Fault {
    pub start: usize,
    pub width: usize,
    pub says: String,
}

/// The qualifiers, for the hint under the line.
pub const QUALIFIERS: &str =
    "status: tool: order: session: call: key: ref: reason: age> left< amount>  or any text";

/// Reads a filter line.
///
/// # Errors
/// The first word that cannot be read.
pub fn parse(line: &str) -> Result<Parsed, Fault> {
    let mut parsed = Parsed::default();
    let mut text: Vec<String> = Vec::new();
    each(line, |name, value| {
        match name {
            Some(name) => set(&mut parsed, name, value)?,
            None => text.push(value.to_owned()),
        }
        Ok(())
    })?;
    let text = text.join(" ");
    if !text.trim().is_empty() {
        parsed.filter.text = Some(text);
    }
    Ok(parsed)
}

/// Gives `take` each word of `line`: its qualifier, if it has one, and its value. What `take` says is
/// wrong stands under the word.
///
/// # Errors
/// The first word that cannot be read.
pub fn each(
    line: &str,
    mut take: impl FnMut(Option<&str>, &str) -> Result<(), String>,
) -> Result<(), Fault> {
    for word in words(line) {
        let (name, value) = match qualifier(&word.raw) {
            Some((name, value)) => (Some(name), value.replace('"', "")),
            None => (None, word.raw.replace('"', "")),
        };
        let taken = match name.filter(|_| value.is_empty()) {
            Some(name) => Err(format!("{name} needs a value")),
            None => take(name, &value),
        };
        taken.map_err(|says| Fault {
            start: word.start,
            width: word.width.max(1),
            says,
        })?;
    }
    Ok(())
}

struct Word {
    start: usize,
    width: usize,
    raw: String,
}

/// Splits at spaces that are not between double quotes.
fn words(line: &str) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut raw = String::new();
    let (mut quoted, mut start, mut at) = (false, 0, 0);
    for c in line.chars().chain([' ']) {
        let columns = format::width(&c.to_string());
        quoted ^= c == '"';
        if c == ' ' && (!quoted || at >= format::width(line)) {
            if !raw.is_empty() {
                out.push(Word {
                    start,
                    width: at - start,
                    raw: std::mem::take(&mut raw),
                });
            }
            start = at + columns;
        } else {
            raw.push(c);
        }
        at += columns;
    }
    out
}

const NAMES: [&str; 11] = [
    "status:", "tool:", "order:", "session:", "call:", "key:", "ref:", "reason:", "age>", "left<",
    "amount>",
];

/// The qualifier and the rest; a word such as `http://x` with an unknown one is free text only where
/// the part before the sign is no plain word.
fn qualifier(raw: &str) -> Option<(&str, &str)> {
    let end = raw.find([':', '<', '>'])?;
    let (name, value) = raw.split_at(end + 1);
    let word = !name[..end].is_empty() && name[..end].chars().all(|c| c.is_ascii_alphabetic());
    word.then_some((name, value))
}

fn set(parsed: &mut Parsed, name: &str, value: &str) -> Result<(), String> {
    let filter = &mut parsed.filter;
    let text = || Some(value.to_owned());
    match name {
        "status:" => parsed.tab = Some(status(value)?),
        "tool:" => filter.tool = text(),
        "order:" => filter.order = text(),
        "session:" => filter.session = text(),
        "call:" => filter.call = text(),
        "key:" => filter.key = text(),
        "ref:" => filter.provider_ref = text(),
        "reason:" => filter.reason = Some(reason(value)?),
        "age>" => filter.age_over = Some(duration(value)?),
        "left<" => filter.left_under = Some(duration(value)?),
        "amount>" => filter.amount_over = Some(amount(value)?),
        _ => {
            let same = name.trim_end_matches([':', '<', '>']);
            let near = NAMES
                .iter()
                .find(|n| n.trim_end_matches([':', '<', '>']) == same);
            return Err(match near {
                Some(right) => format!("write {right}"),
                None => format!("no such qualifier: {}", NAMES.join(" ")),
            });
        }
    }
    Ok(())
}

fn status(value: &str) -> Result<Tab, String> {
    let value = if value == "refunded" {
        "succeeded"
    } else {
        value
    };
    value
        .parse()
        .map_err(|_| "no such status: open unknown succeeded failed review all".to_owned())
}

fn reason(value: &str) -> Result<UnknownReason, String> {
    value.parse().map_err(|_| {
        let all: Vec<&str> = <UnknownReason as strum::VariantArray>::VARIANTS
            .iter()
            .map(Into::into)
            .collect();
        format!("no such reason: {}", all.join(" "))
    })
}

/// `90s`, `15m`, `2h`, `3d`.
fn duration(value: &str) -> Result<Duration, String> {
    let wrong = || "write a number and a unit: 90s 15m 2h 3d".to_owned();
    let unit = value.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = value
        .strip_suffix(unit)
        .and_then(|n| n.parse().ok())
        .ok_or_else(wrong)?;
    // Ten years: far beyond any row, and no time can overflow with it.
    number
        .checked_mul(seconds)
        .filter(|s| *s <= 10 * 365 * 86_400)
        .map(Duration::from_secs)
        .ok_or_else(|| "is too long; at most 3650d".to_owned())
}

/// `3800` (minor units) or `usd38.00`.
fn amount(value: &str) -> Result<i64, String> {
    if value.bytes().all(|b| b.is_ascii_digit()) {
        return value.parse().map_err(|_| "is too large".to_owned());
    }
    let wrong = || "write minor units (amount>3800) or a currency (amount>usd38.00)".to_owned();
    let (code, number) = value.split_at_checked(3).ok_or_else(wrong)?;
    let currency: Currency = code.parse().map_err(|_| wrong())?;
    Money::from_decimal(number, currency)
        .map(Money::minor)
        .map_err(|e| e.to_string())
}
