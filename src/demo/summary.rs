//! What a counted run came to: one JSON object (`contract.md`), or a table for people.
//!
//! Owns: both forms. Tests: below.

use std::fmt;

use serde::Serialize;

/// Operations by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OperationCounts {
    pub open: u64,
    pub unknown: u64,
    pub succeeded: u64,
    pub failed: u64,
}

/// The counts of a run. All but `elapsed_ms` are the same for the same seed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Tool calls that samekey accepted.
    pub calls: u64,
    /// Those that have their answer.
    pub answered: u64,
    /// Rows of this run.
    pub operations: OperationCounts,
    /// Requests that were counted before they were sent.
    pub attempts: u64,
    /// Things that customers wanted once.
    pub intents: u64,
    /// Refunds the provider made for samekey.
    pub provider_effects: u64,
    /// Those beyond one per intent.
    pub duplicate_effects: u64,
    /// Refunds it made for the naive client.
    pub naive_effects: u64,
    /// Those beyond one per intent.
    pub naive_duplicate_effects: u64,
    /// What an audit of the ledger found.
    pub violations: u64,
    /// Real time.
    pub elapsed_ms: u64,
    /// What was run; for people.
    #[serde(skip)]
    pub scenario: String,
    #[serde(skip)]
    pub seed: u64,
    /// What was paid too often, minor units; for people.
    #[serde(skip)]
    pub overpaid: i64,
    #[serde(skip)]
    pub naive_overpaid: i64,
}

fn dollars(minor: i64) -> String {
    format!("${}.{:02}", minor / 100, minor % 100)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ops = &self.operations;
        writeln!(
            f,
            "Scenario {}, seed {}: {} tool calls for {} things that customers wanted once ({}.{} s).\n",
            self.scenario,
            self.seed,
            self.calls,
            self.intents,
            self.elapsed_ms / 1000,
            self.elapsed_ms % 1000 / 100
        )?;
        writeln!(f, "{:<24}{:>12}{:>16}", "", "samekey", "naive client")?;
        let mut line = |what: &str, ours: String, naive: String| {
            writeln!(f, "{what:<24}{ours:>12}{naive:>16}")
        };
        line(
            "refunds made",
            self.provider_effects.to_string(),
            self.naive_effects.to_string(),
        )?;
        line(
            "paid more than once",
            self.duplicate_effects.to_string(),
            self.naive_duplicate_effects.to_string(),
        )?;
        line(
            "money paid twice",
            dollars(self.overpaid),
            dollars(self.naive_overpaid),
        )?;
        writeln!(
            f,
            "\nsamekey: {} refunded, {} failed, {} open, {} unknown and waiting for a person; {} of {} \
             calls answered, {} attempts; the ledger has {} violation{}.",
            ops.succeeded,
            ops.failed,
            ops.open,
            ops.unknown,
            self.answered,
            self.calls,
            self.attempts,
            self.violations,
            if self.violations == 1 { "" } else { "s" }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            calls: 60,
            answered: 60,
            operations: OperationCounts {
                open: 1,
                unknown: 4,
                succeeded: 35,
                failed: 2,
            },
            attempts: 77,
            intents: 43,
            provider_effects: 39,
            naive_effects: 51,
            naive_duplicate_effects: 9,
            naive_overpaid: 34_205,
            elapsed_ms: 4321,
            scenario: "mixed".into(),
            seed: 7,
            ..Summary::default()
        }
    }

    #[test]
    fn the_json_has_the_contracts_names_and_nothing_else() {
        let json = serde_json::to_string(&summary()).expect("JSON");
        assert_eq!(
            json,
            r#"{"calls":60,"answered":60,"operations":{"open":1,"unknown":4,"succeeded":35,"failed":2},"attempts":77,"intents":43,"provider_effects":39,"duplicate_effects":0,"naive_effects":51,"naive_duplicate_effects":9,"violations":0,"elapsed_ms":4321}"#
        );
    }

    #[test]
    fn people_see_both_clients_side_by_side() {
        let text = summary().to_string();
        let line = |what| text.lines().find(|l| l.starts_with(what)).expect("a line");
        let numbers = |what| {
            let words = line(what).split_whitespace().rev().take(2);
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(numbers("refunds made"), ["51", "39"]);
        assert_eq!(numbers("paid more than once"), ["9", "0"]);
        assert_eq!(numbers("money paid twice"), ["$342.05", "$0.00"]);
        assert!(text.contains("4 unknown and waiting for a person"));
        assert!(text.lines().all(|l| !l.ends_with(' ')), "no trailing space");
    }
}
