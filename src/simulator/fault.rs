//! Which refund request meets which fault.
//!
//! Owns: [`Plan`] (what a user asked for) and [`Faults`] (the same, ready to answer). Never:
//! reads the time or draws lots: a fault depends on seed, order and how often the key was sent,
//! only the limit `N` of a plan counts arrivals. Tests: below.

use std::collections::BTreeMap;

use super::ids::draw;
use super::scenario::Scenario;
use super::script::{Body, Frame, Script};
use super::step::Step;

const MIXED: &str = "mixed";
const HONEST: &str = "honest";
const CUSTOM: &str = "custom";
const MIXED_SOURCE: &str = include_str!("../../assets/scenarios/mixed.toml");

/// Which refund requests go wrong, and how. `n` limits it to the first `n` that arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Plan {
    /// Nothing goes wrong.
    #[default]
    Honest,
    /// One scenario for every order.
    First {
        /// The scenario.
        scenario: Scenario,
        /// The first `n` refund requests, or all.
        n: Option<u32>,
    },
    /// Each order and each sending of a key its own scenario, by seed.
    Mixed {
        /// The first `n` refund requests, or all.
        n: Option<u32>,
    },
    /// As [`Plan::Mixed`], with weights of one's own; `None` is an honest answer.
    Drawn {
        /// For the first request of a key.
        first: Vec<(u32, Option<Scenario>)>,
        /// For every later one.
        later: Vec<(u32, Option<Scenario>)>,
    },
    /// A scenario from a user's file.
    Custom {
        /// Its steps.
        script: Script,
        /// The first `n` refund requests, or all.
        n: Option<u32>,
    },
}

/// Why a plan is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No scenario of that name.
    #[error("there is no scenario \"{name}\"; known are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// All names, comma-separated.
        known: String,
    },
    /// The part after the colon is not a count.
    #[error("\"{text}\" is not a number of requests; write NAME or NAME:N with N from 1")]
    Count {
        /// What was written.
        text: String,
    },
    /// A scenario file that cannot be used.
    #[error("scenario {name}{}: {detail}", line.map_or(String::new(), |l| format!(", line {l}")))]
    Script {
        /// The scenario or file.
        name: String,
        /// Where in the file, from 1, if it is one place.
        line: Option<usize>,
        /// What is wrong with it, and what to do.
        detail: String,
    },
}

impl PlanError {
    pub(super) fn unknown(name: &str) -> Self {
        let mut known: Vec<&str> = Scenario::ALL.iter().map(|s| s.name()).collect();
        known.push(MIXED);
        Self::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        }
    }
}

impl Plan {
    /// Reads `NAME` or `NAME:N`; `honest` is a name too.
    ///
    /// # Errors
    /// If the name is unknown (the error lists the known ones), or `N` is not a count.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let (name, n) = match text.split_once(':') {
            None => (text, None),
            Some((name, count)) => {
                let n = count.parse::<u32>().ok().filter(|n| *n > 0);
                let n = n.ok_or_else(|| PlanError::Count {
                    text: count.to_owned(),
                })?;
                (name, Some(n))
            }
        };
        match name {
            HONEST => Ok(Self::Honest),
            MIXED => Ok(Self::Mixed { n }),
            _ => Ok(Self::First {
                scenario: name.parse()?,
                n,
            }),
        }
    }

    /// Name and one sentence for every scenario that can be asked for, `mixed` included.
    #[must_use]
    pub fn catalogue() -> Vec<(&'static str, String)> {
        let mut all: Vec<_> = Scenario::ALL
            .iter()
            .map(|s| (s.name(), s.about()))
            .collect();
        let mixed = mixed().map(|m| m.about).unwrap_or_default();
        all.push((MIXED, mixed));
        all
    }
}

/// A plan that is ready to answer.
#[derive(Clone, Debug)]
pub struct Faults {
    seed: u64,
    limit: Option<u32>,
    arrived: u32,
    frame: Box<Frame>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Honest,
    One(&'static str, Script),
    Mixed(Mixed),
}

impl Kind {
    fn of(name: &'static str, script: Script) -> Result<Self, PlanError> {
        match &script.body {
            Body::Steps(_) => Ok(Self::One(name, script)),
            Body::Mix { first, later } => Ok(Self::Mixed(Mixed {
                first: table(first)?,
                later: table(later)?,
            })),
        }
    }
}

/// The fault that one request meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The scenario's name; `custom` for a user's file.
    pub name: &'static str,
    /// With it the fault lasts so long for everybody, see [`Script`].
    pub(super) window_s: Option<u32>,
    pub(super) step: Step,
}

impl Fault {
    /// Whether the reply to this request comes late or never, so that another request can overlap
    /// with it. [`super::Held`] signals these.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.step.waits()
    }

    /// Whether a client gets the result of its request, refused or not, while it still waits.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.step.is_answered()
    }
}

impl Faults {
    /// Makes a plan ready.
    ///
    /// # Errors
    /// If a scenario file cannot be used.
    pub fn new(plan: &Plan, seed: u64) -> Result<Self, PlanError> {
        let (script, limit) = match plan {
            Plan::Honest | Plan::Drawn { .. } => (None, None),
            Plan::First { scenario, n } => (Some((scenario.name(), scenario.script()?)), *n),
            Plan::Mixed { n } => (Some((MIXED, mixed()?)), *n),
            Plan::Custom { script, n } => (Some((CUSTOM, script.clone())), *n),
        };
        let frame = script.as_ref().map(|(_, s)| s.frame.clone());
        let kind = match (script, plan) {
            (Some((name, script)), _) => Kind::of(name, script)?,
            (None, Plan::Drawn { first, later }) => Kind::Mixed(Mixed::of(first, later)?),
            (None, _) => Kind::Honest,
        };
        Ok(Self {
            seed,
            limit,
            arrived: 0,
            frame: frame.unwrap_or_default(),
            kind,
        })
    }

    /// Nothing goes wrong.
    pub(super) fn none() -> Self {
        Self {
            seed: 0,
            limit: None,
            arrived: 0,
            frame: Box::default(),
            kind: Kind::Honest,
        }
    }

    /// What holds whatever is asked.
    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The fault for the `nth` (from 1) request of a key on `order`; pure. The plan's `N` is not
    /// looked at.
    #[must_use]
    pub fn pick(&self, order: &str, nth: u32) -> Option<Fault> {
        match &self.kind {
            Kind::Honest => None,
            Kind::One(name, script) => Some(Fault {
                name,
                window_s: script.frame.window_s,
                step: script.step(nth),
            }),
            Kind::Mixed(mixed) => mixed.pick(self.seed, order, nth),
        }
    }

    /// Counts a refund request that arrives and picks its fault.
    pub(super) fn arrive(&mut self, order: &str, nth: u32) -> Option<Fault> {
        if self.exhausted() {
            return None;
        }
        self.arrived = self.arrived.saturating_add(1);
        self.pick(order, nth)
    }

    /// Whether the plan's first `N` requests have all arrived.
    pub(super) fn exhausted(&self) -> bool {
        self.limit.is_some_and(|n| self.arrived >= n)
    }
}

fn mixed() -> Result<Script, PlanError> {
    Script::parse(MIXED, MIXED_SOURCE)
}

/// Weights of other scenarios, each of which takes part with its first step.
#[derive(Clone, Debug)]
struct Mixed {
    first: Vec<(u32, Option<Fault>)>,
    later: Vec<(u32, Option<Fault>)>,
}

impl Mixed {
    fn of(
        first: &[(u32, Option<Scenario>)],
        later: &[(u32, Option<Scenario>)],
    ) -> Result<Self, PlanError> {
        let table = |weights: &[(u32, Option<Scenario>)]| {
            let entry = |(weight, scenario): &(u32, Option<Scenario>)| {
                Ok((*weight, scenario.map(fault).transpose()?))
            };
            weights.iter().map(entry).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            first: table(first)?,
            later: table(later)?,
        })
    }

    fn pick(&self, seed: u64, order: &str, nth: u32) -> Option<Fault> {
        let table = if nth <= 1 { &self.first } else { &self.later };
        let total: u64 = table.iter().map(|(weight, _)| u64::from(*weight)).sum();
        let mut left = draw(seed, &["mixed", order, &nth.to_string()]) % total.max(1);
        for (weight, fault) in table {
            if left < u64::from(*weight) {
                return fault.clone();
            }
            left -= u64::from(*weight);
        }
        None
    }
}

fn table(weights: &BTreeMap<String, u32>) -> Result<Vec<(u32, Option<Fault>)>, PlanError> {
    weights
        .iter()
        .map(|(name, weight)| Ok((*weight, mixable(name)?.map(fault).transpose()?)))
        .collect()
}

/// What takes part in a mix under this name; `None` is an honest answer.
pub(super) fn mixable(name: &str) -> Result<Option<Scenario>, PlanError> {
    if name == HONEST {
        return Ok(None);
    }
    name.parse().map(Some)
}

/// A scenario's first step.
fn fault(scenario: Scenario) -> Result<Fault, PlanError> {
    let script = scenario.script()?;
    Ok(Fault {
        name: scenario.name(),
        window_s: script.frame.window_s,
        step: script.step(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(seed: u64) -> Faults {
        Faults::new(&Plan::Mixed { n: None }, seed).expect("mixed")
    }

    fn name(fault: Option<Fault>) -> &'static str {
        fault.map_or(HONEST, |f| f.name)
    }

    #[test]
    fn plans_are_read_and_wrong_ones_explained() {
        assert_eq!(
            Plan::parse("slow:3"),
            Ok(Plan::First {
                scenario: Scenario::Slow,
                n: Some(3)
            })
        );
        assert_eq!(Plan::parse("mixed"), Ok(Plan::Mixed { n: None }));
        assert_eq!(Plan::parse("honest"), Ok(Plan::Honest));
        let unknown = Plan::parse("slowly").expect_err("unknown").to_string();
        assert!(
            unknown.contains("slow, ") && unknown.contains("mixed"),
            "{unknown}"
        );
        for text in ["slow:0", "slow:", "slow:-1", "slow:x"] {
            assert!(
                matches!(Plan::parse(text), Err(PlanError::Count { .. })),
                "{text}"
            );
        }
        assert_eq!(Plan::catalogue().len(), Scenario::ALL.len() + 1);
    }

    #[test]
    fn mixed_depends_on_seed_order_and_sending_only() {
        let (a, b, other) = (mixed(7), mixed(7), mixed(8));
        let all = |f: &Faults| -> Vec<&str> {
            (0..300)
                .flat_map(|o| (1..4).map(move |n| (o, n)))
                .map(|(o, n)| name(f.pick(&o.to_string(), n)))
                .collect()
        };
        assert_eq!(all(&a), all(&b));
        assert_ne!(all(&a), all(&other));
    }

    #[test]
    fn mixed_is_honest_for_about_half_and_leaves_out_what_the_contract_says() {
        let faults = mixed(1);
        let first: Vec<_> = (0..2000)
            .map(|o| name(faults.pick(&o.to_string(), 1)))
            .collect();
        let share = |n: &str| first.iter().filter(|f| **f == n).count();
        assert!((850..1150).contains(&share(HONEST)), "{}", share(HONEST));
        assert!(share("timeout-after-effect") > 100);
        assert!(share("saved-500-with-effect") > 20 && share("overlap-409") > 20);
        for left_out in [
            "outage",
            "permission-denied",
            "ignores-keys",
            "pruned-key",
            "copied-metadata",
            "external-refund",
        ] {
            assert_eq!(share(left_out), 0, "{left_out}");
        }
    }

    #[test]
    fn the_first_n_are_counted_by_arrival() {
        let plan = Plan::parse("bad-gateway:2").expect("plan");
        let mut faults = Faults::new(&plan, 0).expect("faults");
        let seen: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|o| name(faults.arrive(o, 1)))
            .collect();
        assert_eq!(seen, ["bad-gateway", "bad-gateway", HONEST]);
    }
}
