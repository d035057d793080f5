//! What happened in a span of time, in figures: operations by outcome, money, time to resolution.
//!
//! Owns: what counts where, the sums, and how a percentile is taken. Never: reads, mixes currencies,
//! or keeps more than four bytes of a closed operation, so that a million of them fit. Tests: below,
//! and `tests/ledger/report.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ids::{OperationId, ToolName};
use super::money::{Currency, Money};
use super::operation::{Effect, Status};
use super::{Instant, later, since};

/// Slots of a span, whatever its length.
pub const SLOTS: u32 = 48;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// Upper bounds of the classes of the histogram; one class without a bound follows.
pub const CLASSES: [Duration; 9] = [
    SECOND,
    SECOND.saturating_mul(5),
    SECOND.saturating_mul(30),
    MINUTE.saturating_mul(2),
    MINUTE.saturating_mul(10),
    HOUR,
    HOUR.saturating_mul(6),
    HOUR.saturating_mul(24),
    HOUR.saturating_mul(24 * 7),
];

/// Which operations a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportQuery {
    /// Opened since then; empty: from the beginning of the ledger.
    pub since: Option<Instant>,
    /// The moment it is made.
    pub until: Instant,
    pub tool: Option<ToolName>,
}

/// One operation, as much of it as a report needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub tool: ToolName,
    pub status: Status,
    pub effect: Effect,
    pub contradicted: bool,
    /// Empty where no money is meant.
    pub money: Option<Money>,
    pub attempts: u32,
    pub created_at: Instant,
    pub unknown_at: Option<Instant>,
    /// Of the last closing: a correction closes anew.
    pub closed_at: Option<Instant>,
}

/// Operations opened in a span of time, as they stand now.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Empty: from the beginning of the ledger.
    pub since: Option<Instant>,
    pub until: Instant,
    pub total: Figures,
    pub tools: BTreeMap<ToolName, Figures>,
    /// The unknown row of the whole ledger that has waited longest, and since when: one that was
    /// opened before the span waits all the same.
    pub oldest_unknown: Option<(OperationId, Instant)>,
    /// The span in [`SLOTS`] equal slots, oldest first.
    pub slots: Vec<Slot>,
    /// How long a slot is.
    pub slot: Duration,
    /// Resolved operations by time to resolution: the upper bound of each class (the last has none),
    /// and how many.
    pub histogram: Vec<(Option<Duration>, u64)>,
}

/// The figures of one tool, or of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub open: u64,
    pub unknown: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// Of the closed ones, those that evidence contradicts.
    pub contradicted: u64,
    /// Attempts of all of them.
    pub attempts: u64,
    /// By currency, never mixed.
    pub money: BTreeMap<Currency, Sums>,
    /// From opening to closing, to a hundredth of a second; empty where nothing is resolved. What is
    /// contradicted is not resolved.
    pub p50: Option<Duration>,
    pub p95: Option<Duration>,
}

/// Minor units. Each operation is in exactly one of them, so together they are all the money asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Succeeded, and nothing contradicts.
    pub refunded: i128,
    /// Open or unknown with an effect that is possible or not final, or contradicted.
    pub at_risk: i128,
    /// Failed: the customer got nothing.
    pub refused: i128,
    /// Open or unknown, and certainly without an effect so far.
    pub waiting: i128,
}

/// One slot of the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub from: Instant,
    pub opened: u64,
    /// Of those, unknown now or at some time.
    pub unknown: u64,
    pub failed: u64,
}

impl Figures {
    /// All operations.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.open
            .saturating_add(self.unknown)
            .saturating_add(self.succeeded)
            .saturating_add(self.failed)
    }

    /// Attempts per operation in hundredths; empty where there is no operation.
    #[must_use]
    pub fn attempts_each(&self) -> Option<u64> {
        let hundredfold = self.attempts.saturating_mul(100);
        hundredfold.checked_div(self.operations())
    }

    fn count(&mut self, fact: &Fact) {
        let count = match fact.status {
            Status::Open => &mut self.open,
            Status::Unknown => &mut self.unknown,
            Status::Succeeded => &mut self.succeeded,
            Status::Failed => &mut self.failed,
        };
        *count = count.saturating_add(1);
        self.contradicted = self
            .contradicted
            .saturating_add(u64::from(fact.contradicted));
        self.attempts = self.attempts.saturating_add(u64::from(fact.attempts));
        let Some(money) = fact.money else {
            return;
        };
        let sums = self.money.entry(money.currency()).or_default();
        let sum = match (fact.contradicted, fact.status, fact.effect) {
            (true, _, _) => &mut sums.at_risk,
            (false, Status::Succeeded, _) => &mut sums.refunded,
            (false, Status::Failed, _) => &mut sums.refused,
            (false, Status::Open | Status::Unknown, Effect::Possible | Effect::Identified) => {
                &mut sums.at_risk
            }
            (false, Status::Open | Status::Unknown, Effect::NotStarted | Effect::Absent) => {
                &mut sums.waiting
            }
        };
        *sum = sum.saturating_add(i128::from(money.minor()));
    }

    fn add(&mut self, other: &Self) {
        let add = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        add(&mut self.open, other.open);
        add(&mut self.unknown, other.unknown);
        add(&mut self.succeeded, other.succeeded);
        add(&mut self.failed, other.failed);
        add(&mut self.contradicted, other.contradicted);
        add(&mut self.attempts, other.attempts);
        for (currency, b) in &other.money {
            let a = self.money.entry(*currency).or_default();
            a.refunded = a.refunded.saturating_add(b.refunded);
            a.at_risk = a.at_risk.saturating_add(b.at_risk);
            a.refused = a.refused.saturating_add(b.refused);
            a.waiting = a.waiting.saturating_add(b.waiting);
        }
    }
}

/// Adds operations up, one at a time and in any order.
#[derive(Debug)]
pub struct Fold {
    since: Option<Instant>,
    until: Instant,
    /// Figures, and times to resolution in hundredths of a second (up to 497 days).
    tools: BTreeMap<ToolName, (Figures, Vec<u32>)>,
    slots: Vec<Slot>,
    slot: Duration,
    classes: Vec<u64>,
}

impl Fold {
    /// Nothing added yet. `begins`: where the first slot begins, which is `query.since` or else the
    /// ledger's first operation.
    #[must_use]
    pub fn new(query: &ReportQuery, begins: Instant) -> Self {
        let span = since(begins, query.until);
        let slot = span.checked_div(SLOTS).unwrap_or_default();
        let slot = slot.max(Duration::from_micros(1));
        let from = |n: u32| later(begins, slot.saturating_mul(n));
        Self {
            since: query.since,
            until: query.until,
            tools: BTreeMap::new(),
            slots: (0..SLOTS)
                .map(|n| Slot {
                    from: from(n),
                    opened: 0,
                    unknown: 0,
                    failed: 0,
                })
                .collect(),
            slot,
            classes: vec![0; CLASSES.len().saturating_add(1)],
        }
    }

    /// One more operation.
    pub fn add(&mut self, fact: &Fact) {
        self.place(fact);
        let (figures, times) = self.tools.entry(fact.tool.clone()).or_default();
        figures.count(fact);
        if let Some(closed_at) = fact.closed_at.filter(|_| !fact.contradicted) {
            let took = since(fact.created_at, closed_at);
            times.push(u32::try_from(took.as_millis() / 10).unwrap_or(u32::MAX));
            let class = CLASSES.iter().position(|bound| took <= *bound);
            let class = class.unwrap_or(CLASSES.len());
            if let Some(count) = self.classes.get_mut(class) {
                *count = count.saturating_add(1);
            }
        }
    }

    /// Into its slot; one from outside the span (a clock ran back) into the nearest.
    fn place(&mut self, fact: &Fact) {
        let after = self.slots.partition_point(|s| s.from <= fact.created_at);
        let Some(slot) = self.slots.get_mut(after.saturating_sub(1)) else {
            return;
        };
        slot.opened = slot.opened.saturating_add(1);
        let was_unknown = u64::from(fact.unknown_at.is_some());
        slot.unknown = slot.unknown.saturating_add(was_unknown);
        let failed = u64::from(fact.status == Status::Failed);
        slot.failed = slot.failed.saturating_add(failed);
    }

    /// The figures of everything that was added.
    #[must_use]
    pub fn report(self, oldest_unknown: Option<(OperationId, Instant)>) -> Report {
        let mut total = Figures::default();
        let mut all_times = Vec::new();
        let mut tools = BTreeMap::new();
        for (tool, (mut figures, mut times)) in self.tools {
            total.add(&figures);
            (figures.p50, figures.p95) = (percentile(&mut times, 50), percentile(&mut times, 95));
            all_times.append(&mut times);
            tools.insert(tool, figures);
        }
        total.p50 = percentile(&mut all_times, 50);
        total.p95 = percentile(&mut all_times, 95);
        let bounds = CLASSES.into_iter().map(Some).chain([None]);
        Report {
            since: self.since,
            until: self.until,
            total,
            tools,
            oldest_unknown,
            slots: self.slots,
            slot: self.slot,
            histogram: bounds.zip(self.classes).collect(),
        }
    }
}

/// The nearest rank: the smallest time that at least `percent` of all do not exceed.
fn percentile(times: &mut [u32], percent: usize) -> Option<Duration> {
    let rank = times.len().saturating_mul(percent).div_ceil(100);
    let index = rank.checked_sub(1)?;
    let (_, hundredths, _) = times.select_nth_unstable(index);
    Some(Duration::from_millis(
        u64::from(*hundredths).saturating_mul(10),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Instant {
        later(
            Instant::UNIX_EPOCH,
            Duration::from_secs(1_000_000 + seconds),
        )
    }

    fn query(until: u64) -> ReportQuery {
        ReportQuery {
            since: Some(at(0)),
            until: at(until),
            tool: None,
        }
    }

    fn fact(status: Status, effect: Effect, minor: i64, currency: &str) -> Fact {
        let money = Money::from_minor(minor, currency.parse().expect("a currency"));
        Fact {
            tool: "issue_refund".parse().expect("a tool"),
            status,
            effect,
            contradicted: false,
            money: Some(money.expect("money")),
            attempts: 1,
            created_at: at(0),
            unknown_at: None,
            closed_at: status.is_closed().then(|| at(2)),
        }
    }

    fn report(until: u64, facts: &[Fact]) -> Report {
        let mut fold = Fold::new(&query(until), at(0));
        for fact in facts {
            fold.add(fact);
        }
        fold.report(None)
    }

    fn sums(refunded: i128, at_risk: i128, refused: i128, waiting: i128) -> Sums {
        Sums {
            refunded,
            at_risk,
            refused,
            waiting,
        }
    }

    #[test]
    fn every_kind_of_row_counts_in_one_sum_r4_r41() {
        use Effect::{Absent, Identified, NotStarted, Possible};
        let table = [
            (Status::Succeeded, Identified, false, sums(7, 0, 0, 0)),
            (Status::Succeeded, Identified, true, sums(0, 7, 0, 0)),
            (Status::Failed, Absent, false, sums(0, 0, 7, 0)),
            (Status::Failed, Identified, true, sums(0, 7, 0, 0)),
            (Status::Failed, NotStarted, false, sums(0, 0, 7, 0)),
            (Status::Open, NotStarted, false, sums(0, 0, 0, 7)),
            (Status::Open, Possible, false, sums(0, 7, 0, 0)),
            (Status::Open, Identified, false, sums(0, 7, 0, 0)),
            (Status::Open, Absent, false, sums(0, 0, 0, 7)),
            (Status::Unknown, Possible, false, sums(0, 7, 0, 0)),
            (Status::Unknown, NotStarted, false, sums(0, 0, 0, 7)),
            (Status::Unknown, Identified, false, sums(0, 7, 0, 0)),
        ];
        for (status, effect, contradicted, wanted) in table {
            let one = Fact {
                contradicted,
                ..fact(status, effect, 7, "usd")
            };
            let report = report(60, &[one]);
            let usd = "usd".parse().expect("usd");
            assert_eq!(report.total.money[&usd], wanted, "{status:?} {effect:?}");
            assert_eq!(report.total.operations(), 1);
            assert_eq!(report.total.contradicted, u64::from(contradicted));
        }
    }

    #[test]
    fn currencies_are_never_mixed_u19() {
        let done = |minor, code| fact(Status::Succeeded, Effect::Identified, minor, code);
        let all = [done(3_800, "usd"), done(5_000, "jpy"), done(1_234, "kwd")];
        let money = report(60, &all).total.money;
        let shown: Vec<String> = money
            .iter()
            .map(|(c, s)| format!("{c} {}", super::super::money::decimal(s.refunded, *c)))
            .collect();
        assert_eq!(shown, ["jpy 5000", "kwd 1.234", "usd 38.00"]);
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let hundredths = |n: u32| Duration::from_millis(u64::from(n) * 10);
        let table: [(&[u32], u32, u32); 5] = [
            (&[5], 5, 5),
            (&[1, 9], 1, 9),
            (&[3, 1, 2], 2, 3),
            (&[10, 20, 30, 40], 20, 40),
            (&[0, 0, 0, 0], 0, 0),
        ];
        for (times, p50, p95) in table {
            assert_eq!(
                percentile(&mut times.to_vec(), 50),
                Some(hundredths(p50)),
                "{times:?}"
            );
            assert_eq!(percentile(&mut times.to_vec(), 95), Some(hundredths(p95)));
        }
        let mut hundred: Vec<u32> = (1..=100).rev().collect();
        assert_eq!(percentile(&mut hundred, 50), Some(hundredths(50)));
        assert_eq!(percentile(&mut hundred, 95), Some(hundredths(95)));
        assert_eq!(percentile(&mut [], 50), None);
    }

    #[test]
    fn zero_rows_are_zeros_and_nothing_divided() {
        let report = report(48, &[]);
        assert_eq!(report.total, Figures::default());
        assert_eq!(report.total.attempts_each(), None);
        assert!(report.tools.is_empty());
        assert_eq!(report.slots.len(), 48);
        assert_eq!(report.histogram.iter().map(|(_, n)| n).sum::<u64>(), 0);
        let nowhere = Fold::new(&query(0), at(0)).report(None);
        assert_eq!(nowhere.slots.len(), 48, "a span of no length");
    }

    #[test]
    fn a_contradicted_row_is_not_resolved_and_a_corrected_one_is_by_its_correction() {
        let contradicted = Fact {
            contradicted: true,
            ..fact(Status::Succeeded, Effect::Identified, 7, "usd")
        };
        let report_ = report(60, &[contradicted]);
        assert_eq!(report_.total.p50, None);
        assert_eq!(report_.histogram.iter().map(|(_, n)| n).sum::<u64>(), 0);
        // A person corrected it a day later: from then on it is failed, and that took a day.
        let corrected = Fact {
            closed_at: Some(at(86_400)),
            ..fact(Status::Failed, Effect::Absent, 7, "usd")
        };
        let report = report(60, &[corrected]);
        assert_eq!(report.total.p50, Some(Duration::from_hours(24)));
        assert_eq!(report.histogram[7], (Some(Duration::from_hours(24)), 1));
    }

    #[test]
    fn slots_are_equal_and_what_lies_outside_goes_into_the_nearest() {
        let opened = |secs| Fact {
            created_at: at(secs),
            closed_at: None,
            unknown_at: Some(at(secs)),
            ..fact(Status::Unknown, Effect::Possible, 7, "usd")
        };
        let report = report(48, &[opened(0), opened(1), opened(47), opened(500)]);
        assert_eq!(report.slot, Duration::from_secs(1));
        let shown: Vec<u64> = report.slots.iter().map(|s| s.opened).collect();
        assert_eq!((shown[0], shown[1], shown[2], shown[47]), (1, 1, 0, 2));
        assert_eq!(report.slots[47].unknown, 2);
    }

    #[test]
    fn the_total_is_the_sum_of_the_tools() {
        let mine = fact(Status::Succeeded, Effect::Identified, 100, "usd");
        let theirs = Fact {
            tool: "ship_again".parse().expect("a tool"),
            attempts: 4,
            ..fact(Status::Open, Effect::Possible, 50, "usd")
        };
        let report = report(60, &[mine, theirs]);
        assert_eq!(report.tools.len(), 2);
        assert_eq!(report.total.operations(), 2);
        assert_eq!(report.total.attempts_each(), Some(250));
        let usd = "usd".parse().expect("usd");
        assert_eq!(report.total.money[&usd], sums(100, 50, 0, 0));
    }

    proptest! {
        #[test]
        fn no_money_is_lost_or_counted_twice(
            rows in prop::collection::vec((0..4_usize, 0..4_usize, any::<bool>(), 1..=super::super::money::MAX_MINOR), 0..50),
        ) {
            let statuses = [Status::Open, Status::Unknown, Status::Succeeded, Status::Failed];
            let effects = [Effect::NotStarted, Effect::Possible, Effect::Identified, Effect::Absent];
            let facts: Vec<Fact> = rows
                .iter()
                .map(|(s, e, c, minor)| Fact { contradicted: *c, ..fact(statuses[*s], effects[*e], *minor, "usd") })
                .collect();
            let report = report(60, &facts);
            let asked: i128 = rows.iter().map(|r| i128::from(r.3)).sum();
            let told: i128 = report.total.money.values()
                .map(|s| s.refunded + s.at_risk + s.refused + s.waiting).sum();
            prop_assert_eq!(asked, told);
            prop_assert_eq!(report.total.operations(), rows.len() as u64);
            prop_assert_eq!(report.slots.iter().map(|s| s.opened).sum::<u64>(), rows.len() as u64);
        }
    }
}
