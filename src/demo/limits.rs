//! The demo's own clock, limits and time limits. They are not the product's defaults: a counted run
//! must give the same counts for the same seed, so nothing in it may depend on who is faster.
//!
//! Owns: those numbers and why. Tests: below.

use std::time::Duration;

use crate::clock::Clock;
use crate::domain::ids::ProviderName;
use crate::domain::policy::{Profile, Rate, Terms, ToolPolicy};
use crate::engine::EngineConfig;
use crate::simulator::{Plan, Scenario};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

/// Most that a counted run's clock moves in one round is so many times real time; a time limit of ten
/// seconds is then some sixty rounds.
const COUNTED_SPEED: u32 = 40;
/// The same for the scenario `outage`, whose ten minutes must outlast the run.
const OUTAGE_SPEED: u32 = 8;
/// Customers at a time of a counted run. Most of them wait for held replies, which costs nothing.
const COUNTED_CUSTOMERS: usize = 64;
/// Customers at a time on the screen.
const LIVE_CUSTOMERS: usize = 24;

/// Everything that limits a run.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// One clock for engine, ledger, provider, agents and the naive client.
    pub clock: Clock,
    /// Where the clock does not move by itself: how many times as fast as real time it is moved at
    /// most, see [`super::rounds`].
    pub rounds: Option<u32>,
    pub terms: Terms,
    pub engine: EngineConfig,
    /// How long an honest reply takes (virtual).
    pub latency: Duration,
    /// How long customers and models take between two calls (virtual).
    pub think: Duration,
    /// Customers that samekey serves at a time.
    pub at_a_time: usize,
    /// Customers that the naive client serves at a time.
    pub naive_at_a_time: usize,
}

impl Limits {
    /// For a counted run: circuit, rates and the time of a call are out of reach.
    pub fn counted(provider: ProviderName, plan: &Plan, speed: Option<u32>) -> Self {
        let profile = Profile {
            // A slow disk must not turn an attempt into one that was never sent.
            send_window: HOUR,
            rate: boundless(),
            read_rate: boundless(),
            ..Profile::stripe()
        };
        let policy = ToolPolicy {
            rate: boundless(),
            circuit: false,
            max_identical_calls: None,
            ..ToolPolicy::refund(provider)
        };
        let one_by_one = first(plan).is_some();
        let most = if is_outage(plan) {
            OUTAGE_SPEED
        } else {
            COUNTED_SPEED
        };
        let customers = |alone| if alone { 1 } else { COUNTED_CUSTOMERS };
        Self {
            clock: Clock::manual(Clock::system().now()),
            rounds: Some(speed.unwrap_or(COUNTED_SPEED).clamp(1, most)),
            terms: Terms { policy, profile },
            engine: EngineConfig {
                // A second agent must never wait for a worker.
                workers: 256,
                lease: 2 * HOUR,
                poll: 10 * SECOND,
                call_timeout: 12 * HOUR,
                call_ttl: 12 * HOUR,
                reconcile: false,
            },
            latency: Duration::ZERO,
            think: Duration::ZERO,
            at_a_time: customers(one_by_one || watches_arrivals(plan)),
            naive_at_a_time: customers(one_by_one),
        }
    }

    /// For the screen: a few calls a second, and time to watch them.
    pub fn live(provider: ProviderName, plan: &Plan, speed: Option<u32>) -> Self {
        let fifty = Rate {
            count: 50,
            per: SECOND,
        };
        let profile = Profile {
            rate: fifty,
            ..Profile::stripe()
        };
        let policy = ToolPolicy {
            rate: fifty,
            // So many faults among so few calls look like an outage; only a real one shall count.
            circuit: is_outage(plan),
            ..ToolPolicy::refund(provider)
        };
        Self {
            clock: Clock::scaled(speed.unwrap_or(1)),
            rounds: None,
            terms: Terms { policy, profile },
            engine: EngineConfig {
                workers: 16,
                ..EngineConfig::default()
            },
            latency: Duration::from_millis(400),
            think: 4 * SECOND,
            at_a_time: LIVE_CUSTOMERS,
            naive_at_a_time: LIVE_CUSTOMERS,
        }
    }
}

fn is_outage(plan: &Plan) -> bool {
    matches!(plan, Plan::First { scenario, .. } if *scenario == Scenario::Outage)
}

/// More than any run can use.
fn boundless() -> Rate {
    Rate {
        count: 1_000_000,
        per: SECOND,
    }
}

/// The N of a plan whose faults go to the first N requests that arrive: then customers come one by
/// one, or arrival would decide who is hit.
pub(super) fn first(plan: &Plan) -> Option<u32> {
    match plan {
        Plan::Honest | Plan::Drawn { .. } => None,
        Plan::First { n, .. } | Plan::Mixed { n } | Plan::Custom { n, .. } => *n,
    }
}

/// Whether samekey itself draws conclusions from what arrives first: credentials that fail on three
/// orders pause the tool, and an outage begins with the first refund request.
fn watches_arrivals(plan: &Plan) -> bool {
    matches!(
        plan,
        Plan::First {
            scenario: Scenario::PermissionDenied | Scenario::Outage,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(plan: &str, speed: Option<u32>) -> Limits {
        let provider = ProviderName::parse("stripe").expect("name");
        Limits::counted(provider, &Plan::parse(plan).expect("plan"), speed)
    }

    #[test]
    fn a_counted_run_is_never_too_fast_for_honest_replies_nor_too_slow_for_late_ones() {
        for (asked, speed) in [(None, 40), (Some(0), 1), (Some(7), 7), (Some(u32::MAX), 40)] {
            assert_eq!(counted("mixed", asked).rounds, Some(speed));
        }
        let limits = counted("mixed", None);
        let profile = &limits.terms.profile;
        assert!(profile.timeout < 30 * SECOND, "`slow` is slower");
        assert!(limits.engine.call_timeout > 100 * profile.timeout);
        assert!(!limits.terms.policy.circuit);
    }

    #[test]
    fn customers_come_one_by_one_where_arrival_would_decide() {
        assert_eq!(counted("mixed", None).at_a_time, COUNTED_CUSTOMERS);
        for plan in ["slow:3", "mixed:5", "outage", "permission-denied"] {
            assert_eq!(counted(plan, None).at_a_time, 1, "{plan}");
        }
        assert_eq!(counted("outage", None).naive_at_a_time, COUNTED_CUSTOMERS);
    }
}
