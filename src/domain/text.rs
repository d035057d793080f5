//! Outside text, made harmless once, at the border.
//!
//! [`SafeText`] is what a provider, an agent or a person wrote, fit for a terminal, a log and a
//! line of JSON (I31, U49, F92). Identifiers are stricter: [`plain`] refuses what [`SafeText`]
//! would have to change, because a changed identifier names something else.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Most characters kept of one outside string.
pub const MAX_CHARS: usize = 2_000;
/// Combining marks kept on one base character; more is a flood, not a language.
const MAX_MARKS: usize = 4;

/// Text without control, bidirectional or zero-width characters, at most [`MAX_CHARS`] long.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SafeText(String);

impl SafeText {
    /// Makes `raw` harmless: what could act on a terminal becomes a visible mark.
    #[must_use]
    pub fn new(raw: &str) -> Self {
        let mut out = String::new();
        let mut marks = 0_usize;
        let mut chars = raw.chars();
        for c in chars.by_ref().take(MAX_CHARS) {
            if is_combining_mark(c) {
                marks = marks.saturating_add(1);
                if marks > MAX_MARKS {
                    continue;
                }
            } else {
                marks = 0;
            }
            out.push(harmless(c));
        }
        if chars.next().is_some() {
            out.push('…');
        }
        Self(out)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing is left to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl fmt::Display for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for SafeText {
    fn from(raw: &str) -> Self {
        Self::new(raw)
    }
}

impl From<String> for SafeText {
    fn from(raw: String) -> Self {
        Self::new(&raw)
    }
}

impl<'de> Deserialize<'de> for SafeText {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(|s| Self::new(&s))
    }
}

/// The visible stand-in of a character that could act on a terminal, or the character itself.
fn harmless(c: char) -> char {
    match c {
        '\u{0}'..='\u{1f}' => char::from_u32(u32::from(c).saturating_add(0x2400)).unwrap_or('�'),
        '\u{7f}' => '␡',
        _ if acts(c) => '�',
        _ => c,
    }
}

/// C1 controls, bidirectional controls, zero-width, tag and variation characters.
fn acts(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Why an identifier is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("is empty")]
    Empty,
    #[error("is longer than {max} characters")]
    TooLong { max: usize },
    #[error("contains a control, bidirectional or zero-width character")]
    Hostile,
}

/// An identifier from outside: outer spaces removed, Unicode form C (two spellings of one name
/// are one name, F31), nothing that acts on a terminal, at most `max` characters.
///
/// # Errors
/// [`TextError`] says which of these does not hold.
pub fn plain(raw: &str, max: usize) -> Result<String, TextError> {
    // Bounded before it is normalised, so that a flood costs nothing.
    if raw.len() > max.saturating_mul(8).saturating_add(64) {
        return Err(TextError::TooLong { max });
    }
    let text: String = raw.trim().nfc().collect();
    if text.is_empty() {
        Err(TextError::Empty)
    } else if text.chars().count() > max {
        Err(TextError::TooLong { max })
    } else if SafeText::new(&text).as_str() != text {
        Err(TextError::Hostile)
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_acts_on_a_terminal_becomes_a_visible_mark_u49() {
        let raw = "a\u{1b}]52;c;AA\u{7}b\u{9b}2J\u{202e}x\u{200b}y\u{7f}\n";
        let safe = SafeText::new(raw);
        assert_eq!(safe.as_str(), "a␛]52;c;AA␇b�2J�x�y␡␊");
    }

    #[test]
    fn a_flood_of_combining_marks_is_cut() {
        let raw = format!("e{}", "\u{301}".repeat(500));
        assert_eq!(SafeText::new(&raw).as_str().chars().count(), 5);
    }

    #[test]
    fn identifiers_are_trimmed_composed_and_refused_when_hostile_f31() {
        assert_eq!(plain(" caf\u{65}\u{301} ", 20), Ok("café".into()));
        assert_eq!(plain("  ", 20), Err(TextError::Empty));
        assert_eq!(plain("44\u{202e}17", 20), Err(TextError::Hostile));
        assert_eq!(plain("44\n17", 20), Err(TextError::Hostile));
        assert_eq!(
            plain(&"9".repeat(21), 20),
            Err(TextError::TooLong { max: 20 })
        );
    }

    proptest! {
        #[test]
        fn safe_text_is_safe_and_making_it_safe_again_changes_nothing_i31(raw in ".{0,300}") {
            let safe = SafeText::new(&raw);
            prop_assert!(safe.as_str().chars().all(|c| !c.is_control() && !acts(c)));
            prop_assert_eq!(SafeText::new(safe.as_str()), safe);
        }
    }
}
