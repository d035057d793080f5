//! The one door to standard output, and the one to standard error.
//!
//! Results go to the first, everything else to the second. Outside text cannot act on the terminal
//! through either (I31, U50): text is made harmless, JSON keeps it exactly, escaped. A reader that
//! goes away (`| head`) ends the output quietly.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::domain::text::SafeText;
use crate::error::Failure;

/// Where a command's words go.
#[derive(Debug)]
pub struct Output {
    json: bool,
    quiet: bool,
    /// The reader of standard output is gone.
    gone: AtomicBool,
}

impl Output {
    /// For `--json` and `--quiet`.
    #[must_use]
    pub fn new(json: bool, quiet: bool) -> Self {
        let gone = AtomicBool::new(false);
        Self { json, quiet, gone }
    }

    /// Whether results are printed as JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether nobody reads any more; long outputs stop then.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Prints lines of text.
    ///
    /// # Errors
    /// Standard output cannot be written to, for another reason than a reader that is gone.
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        self.write(&harmless(text))
    }

    /// Prints one value as JSON, indented as little as possible: one line.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn json<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        self.write(&to_json(value)?)
    }

    /// Prints one value of a longer JSON text, behind `mark`.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn json_part<T: Serialize>(&self, mark: &str, value: &T) -> Result<(), Failure> {
        self.write(&format!("{mark}{}", to_json(value)?))
    }

    /// Prints what is exactly so already, such as a frame of the screen.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn exact(&self, text: &str) -> Result<(), Failure> {
        self.write(text)
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        if self.is_gone() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush());
        match written {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.gone.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(e) => Err(Failure::unreachable(
                "output",
                format!(
                    "the result could not be printed: {}",
                    crate::config::plain(&e)
                ),
            )),
        }
    }

    /// A remark beside the result, on standard error; with `--json` only errors go there.
    pub fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            self.to_stderr(&harmless(text));
        }
    }

    /// Why the command failed, on standard error: one sentence, or one JSON object.
    pub fn failure(&self, failure: &Failure) {
        if self.json {
            let error = Told {
                code: failure.code,
                message: &failure.message,
                hint: failure.hint.as_deref(),
            };
            if let Ok(text) = to_json(&BTreeMap::from([("error", error)])) {
                self.to_stderr(&text);
            }
        } else {
            let hint = failure.hint.as_ref().map(|h| format!("; {h}"));
            let sentence = format!("error: {}{}", failure.message, hint.unwrap_or_default());
            self.to_stderr(SafeText::new(&sentence).as_str());
        }
    }

    #[allow(clippy::unused_self, reason = "the door is this type")]
    fn to_stderr(&self, text: &str) {
        // There is nowhere left to say that standard error is gone.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// An error as the contract has it.
#[derive(Serialize)]
struct Told<'a> {
    code: &'static str,
    message: &'a str,
    hint: Option<&'a str>,
}

/// Each line with what could act on a terminal made visible.
fn harmless(text: &str) -> String {
    let lines: Vec<_> = text
        .lines()
        .map(|l| SafeText::new(l).as_str().trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// JSON that no terminal acts on: what [`SafeText`] would change is escaped, which every reader
/// undoes.
fn to_json<T: Serialize>(value: &T) -> Result<String, Failure> {
    let text = serde_json::to_string(value)
        .map_err(|e| Failure::unreachable("output", format!("the result is no JSON: {e}")))?;
    let acts = |c: char| {
        let mut buffer = [0; 4];
        let alone: &str = c.encode_utf8(&mut buffer);
        (c == '\u{7f}' || !c.is_ascii()) && SafeText::new(alone).as_str() != alone
    };
    if !text.contains(acts) {
        return Ok(text);
    }
    let mut out = String::with_capacity(text.len().saturating_add(16));
    for c in text.chars() {
        if acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_text_acts_on_the_terminal_u50() {
        assert_eq!(harmless("a\u{1b}[2J\nb\u{202e}c  "), "a␛[2J\nb�c");
    }

    #[test]
    fn json_is_exact_and_inert_i31() {
        let hostile = "a\u{1b}[2J \u{9b}31m \u{202e} \u{e0041} é 漢";
        let text = to_json(&json!({ "order": hostile })).expect("JSON");
        assert!(text.chars().all(|c| !c.is_control()), "{text}");
        assert!(!text.contains('\u{202e}') && text.contains("é 漢"));
        let back: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back["order"], hostile);
    }
}
