//! Walking a TOML file, so that every refusal knows its line and key.
//!
//! A [`Section`] hands out its keys one by one; what nobody asked for is unknown and refused.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::units;
use super::{ConfigError, show_duration};
use crate::domain::policy::Rate;
use crate::domain::text::SafeText;

/// The file, for error messages.
#[derive(Clone, Copy)]
pub(super) struct Doc<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Doc<'_> {
    fn line(&self, offset: usize) -> usize {
        let before = self.text.get(..offset).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    pub fn error(
        &self,
        offset: usize,
        key: &str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ConfigError {
        ConfigError {
            file: self.file.to_owned(),
            line: Some(self.line(offset)),
            key: (!key.is_empty()).then(|| SafeText::new(key).to_string()),
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

/// Reads the text as TOML.
pub(super) fn toml(doc: Doc<'_>) -> Result<Spanned<DeTable<'_>>, ConfigError> {
    DeTable::parse(doc.text).map_err(|e| {
        let offset = e.span().map_or(0, |s| s.start);
        let why = SafeText::new(e.message().lines().next().unwrap_or_default());
        doc.error(
            offset,
            "",
            format!("this is not TOML: {why}"),
            "correct the line; `samekey config init` writes an example",
        )
    })
}

/// A table of the file.
pub(super) struct Section<'a> {
    doc: Doc<'a>,
    /// Dotted name; empty at the root.
    pub path: String,
    at: usize,
    left: BTreeMap<String, (usize, &'a Spanned<DeValue<'a>>)>,
}

/// A value and its key.
pub(super) struct Value<'a> {
    doc: Doc<'a>,
    pub key: String,
    at: usize,
    is: &'a DeValue<'a>,
}

impl<'a> Section<'a> {
    pub fn new(doc: Doc<'a>, path: String, at: usize, table: &'a DeTable<'a>) -> Self {
        let entries = table.iter().map(|(k, v)| {
            let key = k.get_ref().clone().into_owned();
            (key, (k.span().start, v))
        });
        Self {
            doc,
            path,
            at,
            left: entries.collect(),
        }
    }

    fn dotted(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Hands out a key, if the file has it.
    pub fn take(&mut self, key: &str) -> Option<Value<'a>> {
        let (at, value) = self.left.remove(key)?;
        Some(Value {
            doc: self.doc,
            key: self.dotted(key),
            at,
            is: value.get_ref(),
        })
    }

    /// Hands out all keys, for tables whose keys are names.
    pub fn take_all(&mut self) -> Vec<(String, Value<'a>)> {
        let names: Vec<String> = self.left.keys().cloned().collect();
        names
            .into_iter()
            .filter_map(|name| self.take(&name).map(|v| (name, v)))
            .collect()
    }

    /// An error about the section as a whole, or about `key` of it.
    pub fn error(&self, what: impl Into<String>, remedy: impl Into<String>) -> ConfigError {
        self.doc.error(self.at, &self.path, what, remedy)
    }

    /// Refuses what nobody asked for; `known` are the keys of this section and `later` those that
    /// exist but not in this version.
    pub fn finish(self, known: &[&str], later: &[&str]) -> Result<(), ConfigError> {
        let first = self.left.iter().min_by_key(|(_, (at, _))| *at);
        let Some((key, (at, _))) = first else {
            return Ok(());
        };
        let dotted = self.dotted(key);
        let (what, remedy) = if later.contains(&key.as_str()) {
            (
                "is not in this version, which would ignore it",
                "remove the line".to_owned(),
            )
        } else if ["api_key", "secret", "secret_key", "webhook_secret"].contains(&key.as_str()) {
            let name = if key == "webhook_secret" {
                key
            } else {
                "api_key"
            };
            (
                "is not known; a secret never stands in this file",
                format!(
                    "remove it and name its environment variable as {name}_env, or its file as {name}_file"
                ),
            )
        } else if let Some(meant) = nearest(key, known) {
            ("is not known", format!("write {meant}"))
        } else {
            ("is not known", format!("known here: {}", known.join(", ")))
        };
        Err(self.doc.error(*at, &dotted, what, remedy))
    }
}

impl<'a> Value<'a> {
    pub fn error(&self, what: impl Into<String>, remedy: impl Into<String>) -> ConfigError {
        self.doc.error(self.at, &self.key, what, remedy)
    }

    /// The last part of the key.
    pub fn name(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or_default()
    }

    fn is_a(&self) -> &'static str {
        self.is.type_str()
    }

    pub fn table(&self) -> Result<Section<'a>, ConfigError> {
        match self.is.as_table() {
            Some(table) => Ok(Section::new(self.doc, self.key.clone(), self.at, table)),
            None => Err(self.error(
                format!("is a {}, not a table", self.is_a()),
                format!("write [{}] on a line of its own", self.key),
            )),
        }
    }

    /// The same as JSON.
    pub fn json(&self) -> serde_json::Value {
        json(self.is)
    }

    /// Text with nothing in it, which switches a default off.
    pub fn is_empty_text(&self) -> bool {
        self.is.as_str().is_some_and(str::is_empty)
    }

    pub fn text(&self) -> Result<&'a str, ConfigError> {
        match self.is.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.error("is empty", "give it a value or remove the line")),
            None => Err(self.error(
                format!("is a {}, not text", self.is_a()),
                format!("put it in quotes: {} = \"…\"", self.name()),
            )),
        }
    }

    /// A list of at most `most` lines of text, each of at most `longest` characters.
    pub fn texts(&self, most: usize, longest: usize) -> Result<Vec<SafeText>, ConfigError> {
        let remedy = format!("write {} = [\"…\", \"…\"]", self.name());
        let Some(list) = self.is.as_array() else {
            let what = format!("is a {}, not a list", self.is_a());
            return Err(self.error(what, remedy));
        };
        if list.len() > most {
            let what = format!("has {} entries", list.len());
            return Err(self.error(what, format!("keep at most {most}")));
        }
        list.iter()
            .map(|entry| match entry.get_ref().as_str() {
                Some(text) if text.trim().is_empty() => {
                    Err(self.error("has an empty entry", "give it words or remove it"))
                }
                Some(text) if text.chars().count() > longest => {
                    let what = format!("has an entry of more than {longest} characters");
                    Err(self.error(what, "make it shorter"))
                }
                Some(text) => Ok(SafeText::new(text.trim())),
                None => Err(self.error("has an entry that is not text", remedy.clone())),
            })
            .collect()
    }

    /// The values of a list, each with its place in the key.
    pub fn list(&self) -> Result<Vec<Value<'a>>, ConfigError> {
        let Some(list) = self.is.as_array() else {
            return Err(self.error(
                format!("is a {}, not a list", self.is_a()),
                format!("put it in brackets: {} = [\"…\"]", self.name()),
            ));
        };
        let values = list.iter().enumerate().map(|(n, value)| Value {
            doc: self.doc,
            key: format!("{}[{n}]", self.key),
            at: value.span().start,
            is: value.get_ref(),
        });
        Ok(values.collect())
    }

    pub fn duration(&self, allowed: RangeInclusive<Duration>) -> Result<Duration, ConfigError> {
        let example = format!("write a whole number and a unit: {} = \"10s\"", self.name());
        let Some(text) = self.is.as_str() else {
            return Err(self.error("has no unit", example));
        };
        let d = units::duration(text).map_err(|what| self.error(what, example))?;
        if allowed.contains(&d) {
            return Ok(d);
        }
        let (low, high) = (
            show_duration(*allowed.start()),
            show_duration(*allowed.end()),
        );
        Err(self.error(
            format!("is {}, out of range", show_duration(d)),
            format!("choose from {low} to {high}"),
        ))
    }

    pub fn rate(&self) -> Result<Rate, ConfigError> {
        self.is
            .as_str()
            .and_then(units::rate)
            .ok_or_else(|| self.error("is not a rate", format!("write {} = \"5/s\"", self.name())))
    }

    pub fn integer(&self, allowed: RangeInclusive<i64>) -> Result<i64, ConfigError> {
        let remedy = format!(
            "write a whole number from {} to {} without quotes",
            allowed.start(),
            allowed.end()
        );
        let number = self
            .is
            .as_integer()
            .and_then(|n| i64::from_str_radix(n.as_str(), n.radix()).ok());
        match number {
            Some(n) if allowed.contains(&n) => Ok(n),
            Some(n) => Err(self.error(format!("is {n}, out of range"), remedy)),
            None => Err(self.error("is not a whole number", remedy)),
        }
    }

    pub fn count(&self, most: u32) -> Result<u32, ConfigError> {
        let n = self.integer(1..=i64::from(most))?;
        u32::try_from(n).map_err(|_| self.error("is out of range", "choose a smaller number"))
    }

    /// One of a closed set of words.
    pub fn word<T: std::str::FromStr>(&self, words: &[&str]) -> Result<T, ConfigError> {
        let text = self.text()?;
        text.parse().map_err(|_| {
            self.error(
                format!("is {:?}", SafeText::new(text).as_str()),
                format!("choose one of {}", words.join(", ")),
            )
        })
    }

    /// A name or id, as `domain::ids` takes it.
    pub fn id<T>(&self) -> Result<T, ConfigError>
    where
        T: std::str::FromStr<Err = crate::domain::text::TextError>,
    {
        self.text()?
            .parse()
            .map_err(|e| self.error(format!("{e}"), "choose another name"))
    }
}

/// A value of the file as JSON; a date is its text.
fn json(value: &DeValue<'_>) -> serde_json::Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().into(),
        DeValue::Float(n) => n.as_str().parse::<f64>().ok().into(),
        DeValue::Boolean(yes) => (*yes).into(),
        DeValue::Datetime(at) => at.to_string().into(),
        DeValue::Array(all) => all.iter().map(|v| json(v.get_ref())).collect(),
        DeValue::Table(all) => all
            .iter()
            .map(|(k, v)| (k.get_ref().to_string(), json(v.get_ref())))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// A known key that the user probably meant: at most two letters away.
fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|k| (distance(key, k), *k))
        .filter(|(d, _)| *d <= 2)
        .min()
        .map(|(_, k)| k)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (y, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let swap = corner + usize::from(x != *y);
            corner = *cell;
            left = swap.min(corner + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_is_recognised() {
        let known = ["timeout", "rate", "retention"];
        assert_eq!(nearest("timout", &known), Some("timeout"));
        assert_eq!(nearest("retentoin", &known), Some("retention"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
