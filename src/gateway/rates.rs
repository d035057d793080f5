//! How fast agents may submit: a bucket for each agent and each tool, in this process.
//!
//! Unlike the ledger's rates, which space out what is sent to a provider, a submit rate allows a burst of
//! its count: an agent asks in bunches. Bounded: a bucket that is full again is forgotten. Tests: below,
//! `tests/gateway/limits.rs`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::domain::policy::Rate;

/// Buckets that are looked through for full ones when there are more.
const MANY: usize = 4096;

/// Buckets by name: until when (time since boot) each is spent.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<HashMap<String, Duration>>);

impl Rates {
    /// Takes one token of each of `names`, or none at all: then it says how long to wait for which.
    pub(super) fn take<'n>(
        &self,
        names: &[(&'n str, Rate)],
        now: Duration,
    ) -> Result<(), (&'n str, Duration)> {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.len() > MANY {
            spent.retain(|_, until| *until > now);
        }
        for (name, rate) in names {
            let until = spent.get(*name).copied().unwrap_or(now).max(now);
            let over = until
                .saturating_sub(now)
                .saturating_add(step(*rate))
                .saturating_sub(rate.per);
            if !over.is_zero() {
                return Err((name, over));
            }
        }
        for (name, rate) in names {
            let until = spent.entry((*name).to_owned()).or_insert(now);
            *until = (*until).max(now).saturating_add(step(*rate));
        }
        Ok(())
    }
}

fn step(rate: Rate) -> Duration {
    rate.per.checked_div(rate.count).unwrap_or(rate.per)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_the_count_and_then_its_pace_r97() {
        let rates = Rates::default();
        let per = Duration::from_secs(1);
        let (one, other) = (Rate { count: 4, per }, Rate { count: 100, per });
        let mut now = Duration::from_secs(1000);
        for _ in 0..4 {
            assert_eq!(rates.take(&[("tool", other), ("a", one)], now), Ok(()));
        }
        let refused = rates.take(&[("tool", other), ("a", one)], now);
        assert_eq!(refused, Err(("a", Duration::from_millis(250))));
        assert_eq!(rates.take(&[("b", one)], now), Ok(()), "each has its own");
        now += Duration::from_millis(249);
        assert!(rates.take(&[("a", one)], now).is_err());
        now += Duration::from_millis(1);
        assert_eq!(rates.take(&[("a", one)], now), Ok(()));
        assert!(rates.take(&[("a", one)], now).is_err());
    }

    #[test]
    fn what_is_full_again_is_forgotten_i33() {
        let rates = Rates::default();
        let rate = Rate {
            count: 1,
            per: Duration::from_millis(1),
        };
        for n in 0..20_000_u64 {
            let name = format!("agent:{n}");
            let taken = rates.take(&[(&name, rate)], Duration::from_millis(n));
            assert_eq!(taken, Ok(()));
        }
        assert!(rates.0.lock().expect("the buckets").len() <= MANY + 1);
    }
}
