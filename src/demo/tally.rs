//! Counting: what was wanted against what the provider really did.
//!
//! Owns: the arithmetic of effects and duplicates, the same for both clients. Never: asks samekey;
//! the effects come from the simulated provider. Tests: below.

use std::collections::{BTreeMap, BTreeSet};

use super::customers::Customer;
use crate::simulator::{EffectRecord, EffectSource};

/// An order and an amount in minor units: what tells refunds apart from outside.
type Kind = (String, i64);

/// How often each kind of refund is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    kinds: BTreeMap<Kind, u64>,
    total: u64,
}

impl Wanted {
    /// One more intent.
    pub fn add(&mut self, order: &str, amount: i64) {
        *self.kinds.entry((order.to_owned(), amount)).or_default() += 1;
        self.total += 1;
    }

    /// Everything that these customers want.
    pub fn of(customers: &[Customer]) -> Self {
        let mut wanted = Self::default();
        for customer in customers {
            for intent in &customer.intents {
                wanted.add(customer.order.as_str(), intent.amount);
            }
        }
        wanted
    }

    /// How many intents there are.
    pub fn intents(&self) -> u64 {
        self.total
    }
}

/// What a client made happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Refunds that took money, made for the client's requests.
    pub made: u64,
    /// Those beyond one per intent.
    pub duplicates: u64,
    /// What those took, minor units.
    pub overpaid: i64,
}

/// Counts a provider's effects. What somebody else refunded (a scenario's dashboard) is nobody's
/// duplicate. Intents of the same order and amount cannot be told apart from outside, so of `n`
/// wanted the first `n` are right and every further one is a duplicate.
pub(super) fn count(effects: &[EffectRecord], wanted: &Wanted) -> Effects {
    let mut kinds: BTreeMap<Kind, u64> = BTreeMap::new();
    for effect in effects {
        if effect.source == EffectSource::External {
            continue;
        }
        let order = effect.order_id.clone().unwrap_or_default();
        *kinds.entry((order, effect.amount)).or_default() += 1;
    }
    let orders: BTreeSet<&str> = wanted
        .kinds
        .keys()
        .map(|(order, _)| order.as_str())
        .collect();
    let mut all = Effects::default();
    for (kind, made) in kinds {
        // An order of an earlier run on a kept ledger, driven on by this one, was wanted once.
        let earlier = !orders.contains(kind.0.as_str());
        let allowed = wanted
            .kinds
            .get(&kind)
            .copied()
            .unwrap_or(u64::from(earlier));
        let beyond = made.saturating_sub(allowed);
        all.made += if earlier { beyond } else { made };
        all.duplicates += beyond;
        let times = i64::try_from(beyond).unwrap_or(i64::MAX);
        all.overpaid = all.overpaid.saturating_add(kind.1.saturating_mul(times));
    }
    all
}

/// The two lines under the screen's header: both clients, and who paid twice.
pub(super) fn scoreboard(wanted: &Wanted, ours: &Effects, naive: &Effects) -> Vec<String> {
    let line = |who: &str, effects: &Effects| {
        let (intents, made, twice) = (wanted.intents(), effects.made, effects.duplicates);
        format!("{who:<12} {intents} intents · {made} refunds · {twice} paid twice")
    };
    vec![line("samekey", ours), line("naive client", naive)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::DateTime;

    use super::*;
    use crate::simulator::RefundStatus;

    fn effect(order: &str, amount: i64, source: EffectSource) -> EffectRecord {
        EffectRecord {
            refund_id: "re_1".into(),
            payment: format!("pi_order_{order}"),
            charge: format!("ch_order_{order}"),
            order_id: Some(order.into()),
            amount,
            currency: "usd".into(),
            key: None,
            metadata: BTreeMap::new(),
            source,
            status: RefundStatus::Succeeded,
            at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn duplicates_are_effects_beyond_one_per_intent_r1() {
        let mut wanted = Wanted::default();
        wanted.add("4417", 3800);
        wanted.add("4417", 500);
        wanted.add("4424", 3800);
        wanted.add("4424", 3800);
        assert_eq!(wanted.intents(), 4);
        let effects = [
            effect("4417", 3800, EffectSource::Api),
            effect("4417", 3800, EffectSource::Api),
            effect("4417", 3800, EffectSource::Late),
            effect("4424", 3800, EffectSource::Api),
            effect("4424", 3800, EffectSource::Api),
        ];
        let counted = count(&effects, &wanted);
        assert_eq!((counted.made, counted.duplicates), (5, 2));
        assert_eq!(counted.overpaid, 7600);
        assert_eq!(count(&[], &wanted), Effects::default());
        assert_eq!(
            scoreboard(&wanted, &Effects::default(), &counted),
            [
                "samekey      4 intents · 0 refunds · 0 paid twice",
                "naive client 4 intents · 5 refunds · 2 paid twice",
            ]
        );
    }

    #[test]
    fn what_somebody_else_refunds_is_nobodys_duplicate() {
        let mut wanted = Wanted::default();
        wanted.add("1", 100);
        let effects = [
            effect("1", 100, EffectSource::External),
            effect("1", 100, EffectSource::Api),
            effect("1", 200, EffectSource::Api),
        ];
        let counted = count(&effects, &wanted);
        assert_eq!(counted.made, 2);
        assert_eq!(counted.duplicates, 1, "nobody wanted 200 of order 1");
    }

    #[test]
    fn an_earlier_runs_order_is_allowed_its_one_refund() {
        let mut wanted = Wanted::default();
        wanted.add("1", 100);
        let earlier = effect("0", 100, EffectSource::Api);
        let once = count(std::slice::from_ref(&earlier), &wanted);
        assert_eq!((once.made, once.duplicates), (0, 0));
        let twice = count(&[earlier.clone(), earlier], &wanted);
        assert_eq!(twice.duplicates, 1, "but never a second one");
    }
}
