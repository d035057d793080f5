//! The form of a scenario file: either steps, or a mix of other scenarios.
//!
//! Owns: reading such a file, the checks that make it safe to run, and saying where a bad one is
//! wrong. Never: carries a step out (`execution.rs`). Tests: below, and `tests/simulator/` runs
//! every scenario over HTTP.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::fault::{PlanError, mixable};
use super::step::{Allowance, ReadFault, Setting, Step};

/// A scenario's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// One sentence for a list of scenarios.
    pub about: String,
    pub(super) frame: Box<Frame>,
    pub(super) body: Body,
}

/// What holds from the start to the end, whatever is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    /// With it the fault lasts this long (virtual time) from the first refund request and hits
    /// reads too, which get the first step's answer.
    pub window_s: Option<u32>,
    /// Keys are forgotten at this age instead of the configured one (S9).
    pub retention_s: Option<u32>,
    pub world: Setting,
    pub read: ReadFault,
    pub limits: Allowance,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// What happens to the first, second … request of a key. The last step repeats for all
    /// further ones. At least one.
    Steps(Vec<Step>),
    /// Relative weights of other scenarios (`honest` is one), for the first and for every later
    /// request of a key.
    Mix {
        first: BTreeMap<String, u32>,
        later: BTreeMap<String, u32>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    window_s: Option<u32>,
    retention_s: Option<u32>,
    #[serde(default)]
    world: Setting,
    #[serde(default)]
    read: ReadFault,
    #[serde(default)]
    limits: Allowance,
    #[serde(default, rename = "step")]
    steps: Vec<Spanned<Step>>,
    first: Option<BTreeMap<String, u32>>,
    later: Option<BTreeMap<String, u32>>,
}

impl Script {
    /// Reads a scenario file; `name` is only for the error.
    ///
    /// # Errors
    /// If the text is not a scenario, or one that could not be carried out: in one sentence, with
    /// the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, PlanError> {
        let fail = |at: Option<usize>, detail: &str| PlanError::Script {
            name: name.to_owned(),
            line: at.map(|at| line(text, at)),
            detail: one_line(detail),
        };
        let file: File =
            toml::from_str(text).map_err(|e| fail(e.span().map(|s| s.start), e.message()))?;
        let whole = |what| fail(None, what);
        file.check().map_err(whole)?;
        let mixed = file.first.iter().chain(&file.later);
        for name in mixed.flat_map(BTreeMap::keys) {
            mixable(name).map_err(|e| fail(None, &e.to_string()))?;
        }
        for step in &file.steps {
            let at = Some(step.span().start);
            step.get_ref().check().map_err(|what| fail(at, what))?;
        }
        let body = match (file.first, file.later) {
            (Some(first), Some(later)) => Body::Mix { first, later },
            (_, _) => Body::Steps(file.steps.into_iter().map(Spanned::into_inner).collect()),
        };
        Ok(Self {
            about: file.about,
            frame: Box::new(Frame {
                window_s: file.window_s,
                retention_s: file.retention_s,
                world: file.world,
                read: file.read,
                limits: file.limits,
            }),
            body,
        })
    }

    /// The step for the `nth` (from 1) request of a key; honest for a mix.
    pub(super) fn step(&self, nth: u32) -> Step {
        let Body::Steps(steps) = &self.body else {
            return Step::default();
        };
        let index = usize::try_from(nth.saturating_sub(1)).unwrap_or(usize::MAX);
        steps
            .get(index)
            .or(steps.last())
            .cloned()
            .unwrap_or_default()
    }
}

impl File {
    fn check(&self) -> Result<(), &'static str> {
        match (&self.first, &self.later) {
            (None, None) if self.steps.is_empty() => {
                return Err("nothing happens in it; add [[step]], or [first] and [later]");
            }
            (None, None) => {}
            (Some(_), Some(_)) if !self.steps.is_empty() => {
                return Err("it has both steps and a mix; keep [[step]], or [first] and [later]");
            }
            (Some(first), Some(later)) => {
                let weight = |table: &BTreeMap<String, u32>| table.values().any(|w| *w > 0);
                if !weight(first) || !weight(later) {
                    return Err("[first] and [later] each need a weight above 0");
                }
            }
            (Some(_), None) | (None, Some(_)) => {
                return Err("a mix needs [first] and [later]; add the other one");
            }
        }
        let answered = |step: &Spanned<Step>| step.get_ref().answer.is_some();
        if self.window_s.is_some() && !self.steps.iter().all(answered) {
            return Err("window_s needs an answer in every step; add [step.answer]");
        }
        if let Some(answer) = &self.read.answer {
            answer.check()?;
        }
        self.world.check()
    }
}

/// The line, from 1, in which byte `at` is.
fn line(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.matches('\n').count().saturating_add(1)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::Scenario;

    #[test]
    fn the_last_step_repeats() {
        let script = Scenario::Overlap409.script().expect("script");
        assert_eq!(script.step(1).conflicts, 1);
        assert_eq!(script.step(2), script.step(9));
        assert_eq!(script.step(2), Step::default(), "honest");
    }

    #[test]
    fn files_that_cannot_be_carried_out_are_refused_in_one_sentence_with_the_line() {
        for (text, line, words) in [
            ("about = 'x'", None, "add [[step]]"),
            ("about = 'x'\nstep = []", None, "add [[step]]"),
            (
                "about = 'x'\n[[step]]\neffect = false",
                Some(2),
                "reply = \"hold\"",
            ),
            (
                "about = 'x'\n[[step]]\n[[step]]\nsaved = true",
                Some(3),
                "[step.answer]",
            ),
            (
                "about = 'x'\n[[step]]\nlate_s = 3",
                Some(2),
                "effect = false",
            ),
            ("about = 'x'\n[[step]]\nnewer = 5000", Some(2), "at most"),
            (
                "about = 'x'\n[[step]]\nansver = 5",
                Some(3),
                "unknown field `ansver`",
            ),
            (
                "about = 'x'\n\n[[step]]\nkeys = 'lost'",
                Some(4),
                "unknown variant",
            ),
            (
                "about = 'x'\n[[step]]\nanswer = { status = 9 }",
                Some(2),
                "HTTP status",
            ),
            (
                "about = 'x'\n[[step]]\nrefund = { after_s = 9 }",
                Some(2),
                "turns into",
            ),
            ("about = 'x'\n[first]\nslow = 1", None, "the other one"),
            ("about = 'x'\n[first]\n[later]\nslow = 1", None, "above 0"),
            (
                "about = 'x'\n[first]\nslow = 1\n[later]\nslowly = 1",
                None,
                "no scenario \"slowly\"",
            ),
            (
                "about = 'x'\n[world]\ncurrency = 'USD'\n[[step]]",
                None,
                "three small letters",
            ),
            ("about = 'x\n", Some(1), "string"),
        ] {
            let error = Script::parse("f.toml", text).expect_err(text).to_string();
            let place = line.map_or("f.toml: ".to_owned(), |l| format!("f.toml, line {l}: "));
            assert!(
                error.contains(&place) && error.contains(words),
                "{text}: {error}"
            );
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_file_may_mix_others() {
        let text = "about = 'x'\n[first]\nslow = 1\n[later]\nhonest = 1";
        let script = Script::parse("test", text).expect("a mix");
        assert!(matches!(script.body, Body::Mix { .. }));
    }
}
