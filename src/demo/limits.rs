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
const HOUR: Duration = Duration::from_secs(3600);

/// Speed of a counted run, if nothing else is asked for.
const COUNTED_SPEED: u32 = 20;
/// Faster than this, honest replies could meet the client's time limit, which must stay below the
/// thirty seconds of the scenario `slow`.
const MAX_COUNTED_SPEED: u32 = 40;
/// No time limit of a counted run is shorter than this in real time, on a busy machine too.
const REAL_TIMEOUT: Duration = Duration::from_millis(600);
/// The same for the time between counting an attempt and its first byte.
const REAL_SEND_WINDOW: Duration = Duration::from_secs(3);
/// Customers at a time of a counted run. Most of them wait for held replies, which costs nothing.
const COUNTED_CUSTOMERS: usize = 48;
/// Customers at a time on the screen.
const LIVE_CUSTOMERS: usize = 24;

/// Everything that limits a run.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// One scaled clock for engine, ledger, provider, agents and the naive client.
    pub clock: Clock,
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
        let speed = speed.unwrap_or(COUNTED_SPEED).clamp(1, MAX_COUNTED_SPEED);
        let profile = Profile {
            timeout: (12 * SECOND).max(REAL_TIMEOUT * speed),
            send_window: REAL_SEND_WINDOW * speed,
            rate: boundless(),
            read_rate: boundless(),
            ..Profile::stripe()
        };
        let policy = ToolPolicy {
            rate: boundless(),
            circuit: false,
            ..ToolPolicy::refund(provider)
        };
        let one_by_one = first(plan).is_some();
        let customers = |alone| if alone { 1 } else { COUNTED_CUSTOMERS };
        Self {
            clock: Clock::scaled(speed),
            terms: Terms { policy, profile },
            engine: EngineConfig {
                // A second agent must never wait for a worker.
                workers: 256,
                lease: 2 * HOUR,
                poll: 10 * SECOND,
                call_timeout: 12 * HOUR,
                call_ttl: 12 * HOUR,
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
        let outage = matches!(plan, Plan::First { scenario, .. } if *scenario == Scenario::Outage);
        let profile = Profile {
            rate: fifty,
            ..Profile::stripe()
        };
        let policy = ToolPolicy {
            rate: fifty,
            // So many faults among so few calls look like an outage; only a real one shall count.
            circuit: outage,
            ..ToolPolicy::refund(provider)
        };
        Self {
            clock: Clock::scaled(speed.unwrap_or(1)),
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
        Plan::Honest => None,
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
    fn honest_replies_have_time_and_late_ones_come_too_late_at_any_speed() {
        for speed in [None, Some(0), Some(1), Some(20), Some(40), Some(u32::MAX)] {
            let limits = counted("mixed", speed);
            let profile = &limits.terms.profile;
            let real = limits.clock.real(profile.timeout);
            assert!(real >= REAL_TIMEOUT, "{speed:?}: {real:?}");
            let late = limits.clock.real(30 * SECOND);
            assert!(
                late > real + Duration::from_millis(140),
                "{speed:?}: slow is slower"
            );
            assert!(limits.engine.call_timeout > 100 * profile.timeout);
        }
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
