//! Limits as data: what a tool may spend, when a circuit opens, how fast a bucket refills; with what a
//! provider promises ([`Profile`]) they are the terms of an operation. Pure: the same numbers give the
//! same answer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ids::{OperationId, OrderId, ProviderName};
use super::money::Currency;
use super::outcome::OutcomeClass;
pub use super::profile::{Profile, ProviderKind};
use super::recovery::{Branch, Recovery};
use super::{Instant, later};

/// Exponential backoff with full jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub base: Duration,
    pub cap: Duration,
}

impl Backoff {
    /// The wait before retry number `retry` (1, 2, …): a point between zero and
    /// `min(cap, base · 2^(retry-1))`, chosen by `lot` from 0 to `u32::MAX`; never less than the
    /// provider asked for, and then spread above that, so that throttled clients do not come back
    /// in the same instant (F57).
    #[must_use]
    pub fn wait(self, retry: u32, retry_after: Option<Duration>, lot: u32) -> Duration {
        let factor = 2_u32.saturating_pow(retry.saturating_sub(1).min(16));
        let ceiling = self.base.saturating_mul(factor).min(self.cap);
        let micros = u64::try_from(ceiling.as_micros()).unwrap_or(u64::MAX);
        let jitter = u128::from(micros)
            .saturating_mul(u128::from(lot))
            .checked_div(u128::from(u32::MAX))
            .and_then(|m| u64::try_from(m).ok())
            .unwrap_or(micros);
        // A wish beyond the call's time ends the call; the bound only keeps the sum in range.
        let asked = retry_after
            .unwrap_or_default()
            .min(Duration::from_hours(24));
        asked.saturating_add(Duration::from_micros(jitter))
    }
}

/// So many per span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub count: u32,
    pub per: Duration,
}

/// The state of one rate bucket: the instant until which its allowance is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub full_at: Instant,
}

impl Rate {
    /// Takes one token, or says how long to wait. No window of length `per` ever sees more than
    /// `count` (I28): tokens are spaced evenly, with no burst beyond one.
    ///
    /// # Errors
    /// The time until the next token.
    pub fn take(self, bucket: Option<Bucket>, now: Instant) -> Result<Bucket, Duration> {
        let step = self.per.checked_div(self.count).unwrap_or(self.per);
        let free_at = bucket.map_or(now, |b| b.full_at);
        if free_at <= now {
            Ok(Bucket {
                full_at: later(now, step),
            })
        } else {
            Err(super::since(now, free_at))
        }
    }
}

/// Whether an equal refund after a success needs naming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// The stored result answers; a further one is opened with `after` (R62).
    Answer,
    /// The seed's bare rule: an equal call after a success opens a new operation (R24).
    Open,
}

/// Money limits in one currency, minor units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Largest single amount.
    pub max_amount: Option<i64>,
    /// Largest sum opened within the window.
    pub max_total: Option<(i64, Duration)>,
    /// Above this a lead approves before anything is sent.
    pub approve_over: Option<i64>,
    /// Above this two people close, unless evidence decides.
    pub four_eyes_over: Option<i64>,
}

/// How a tool speaks of its effect. Read once with the configuration, hence static.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Its own word for `succeeded`: refunded, created, sent.
    pub success: &'static str,
    /// The result's name of the provider's object: `refund_id`, `ticket_id`.
    pub object: &'static str,
    /// What the effect is called in a sentence: refund, ticket, message.
    pub noun: &'static str,
}

impl Words {
    /// Those of `issue_refund`.
    pub const REFUND: Self = Self {
        success: "refunded",
        object: "refund_id",
        noun: "refund",
    };
}

/// A tool's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPolicy {
    pub provider: ProviderName,
    /// How the tool speaks of its effect.
    pub words: Words,
    pub max_per_call: u32,
    pub max_per_operation: u32,
    pub backoff: Backoff,
    pub rate: Rate,
    /// Whether failures in a row open the tool's circuit. Always, but for the demo's counted runs:
    /// there the failures are planned and their order of arrival must not change the counts.
    pub circuit: bool,
    pub repeat: Repeat,
    pub lookup_cooldown: Duration,
    /// How long a reviewer's claim counts.
    pub claim_ttl: Duration,
    pub approval_ttl: Duration,
    /// Per currency; once any is set, a currency without its own is rejected.
    pub caps: BTreeMap<Currency, Caps>,
    /// Whether its effect is itself a delivery, of which nobody may know whether it arrived (R82).
    pub delivers: bool,
    /// Its own recovery branches; empty where the protocol's hold.
    pub recovery: Recovery,
    /// Equal calls of one agent in a row that send; the next is answered without sending (R96). None: no
    /// end, for counted runs.
    pub max_identical_calls: Option<u32>,
    /// Whether a lead approves every operation before anything is sent: its risk is high (R93, R98).
    pub approve_all: bool,
    /// Most operations opened within a window; for tools without money what `caps` are for others.
    pub max_operations: Option<(u32, Duration)>,
}

impl ToolPolicy {
    /// The defaults of `issue_refund`.
    #[must_use]
    pub fn refund(provider: ProviderName) -> Self {
        Self {
            provider,
            words: Words::REFUND,
            max_per_call: 3,
            max_per_operation: 6,
            backoff: Backoff {
                base: Duration::from_millis(500),
                cap: Duration::from_secs(8),
            },
            rate: Rate {
                count: 5,
                per: Duration::from_secs(1),
            },
            circuit: true,
            repeat: Repeat::Answer,
            lookup_cooldown: Duration::from_secs(30),
            claim_ttl: Duration::from_mins(15),
            approval_ttl: Duration::from_hours(24),
            caps: BTreeMap::new(),
            delivers: false,
            recovery: Recovery::default(),
            max_identical_calls: Some(5),
            approve_all: false,
            max_operations: None,
        }
    }
}

/// A tool's limits and its provider's promises, as every rule needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    pub policy: ToolPolicy,
    pub profile: Profile,
}

impl Terms {
    /// The recovery branch of an outcome (R90).
    #[must_use]
    pub fn branch(&self, class: OutcomeClass) -> Branch {
        self.policy.recovery.branch(class, self.profile.kind)
    }

    /// Whether the provider is searched before anything is sent again after doubt.
    #[must_use]
    pub fn searches_first(&self) -> bool {
        self.branch(OutcomeClass::SideEffectUnknown) == Branch::LookUp
            || self.branch(OutcomeClass::KeyInProgress) == Branch::LookUp
    }
}

/// Failures in a row that open a circuit, and over how many operations.
const CIRCUIT_FAILURES: usize = 5;
const CIRCUIT_OPERATIONS: usize = 3;
/// How often an open circuit is probed, with a read-only request.
pub const PROBE_EVERY: Duration = Duration::from_secs(30);
/// Orders in a row refused with 403 that pause a tool.
const CREDENTIAL_ORDERS: usize = 3;

/// A tool's circuit and credential watch. Shared by all engines through the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circuit {
    /// Operations of the latest failures in a row, newest last, at most five.
    pub failures: Vec<OperationId>,
    pub state: CircuitState,
    /// Orders of the latest 403s in a row, each once.
    pub denied: Vec<OrderId>,
}

/// Whether a circuit lets attempts through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// Attempts pass.
    #[default]
    Closed,
    /// Nothing is authorised; a read-only probe is due at `probe_at`.
    Open { since: Instant, probe_at: Instant },
    /// A probe succeeded: one attempt at a time.
    Trial {
        since: Instant,
        operation: Option<OperationId>,
    },
}

/// What an attempt or a connection told about the provider's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// A reply that is neither 5xx nor 429.
    Well,
    /// Connection failure, timeout, 5xx or 429.
    Ill,
    /// Nothing can be told (nothing was sent).
    Unclear,
}

impl Circuit {
    /// After one more attempt or failed connection of `operation`.
    #[must_use]
    pub fn after(&self, operation: &OperationId, health: Health, now: Instant) -> Self {
        let mut next = self.clone();
        match health {
            Health::Unclear => {
                if let CircuitState::Trial {
                    operation: held, ..
                } = &mut next.state
                    && held.as_ref() == Some(operation)
                {
                    *held = None;
                }
            }
            Health::Well => {
                next.failures.clear();
                // A late reply does not close an open circuit: a probe has to succeed first.
                if let CircuitState::Trial { .. } = next.state {
                    next.state = CircuitState::Closed;
                }
            }
            Health::Ill => {
                next.failures.push(operation.clone());
                let surplus = next.failures.len().saturating_sub(CIRCUIT_FAILURES);
                next.failures.drain(..surplus);
                let mut distinct: Vec<_> = next.failures.iter().collect();
                distinct.sort();
                distinct.dedup();
                let tripped =
                    next.failures.len() >= CIRCUIT_FAILURES && distinct.len() >= CIRCUIT_OPERATIONS;
                let open = CircuitState::Open {
                    since: now,
                    probe_at: later(now, PROBE_EVERY),
                };
                next.state = match next.state {
                    CircuitState::Closed if tripped => open,
                    CircuitState::Trial { .. } => open,
                    CircuitState::Closed => CircuitState::Closed,
                    CircuitState::Open { since, probe_at } => {
                        CircuitState::Open { since, probe_at }
                    }
                };
            }
        }
        next
    }

    /// After a read-only probe.
    #[must_use]
    pub fn probed(&self, succeeded: bool, now: Instant) -> Self {
        let mut next = self.clone();
        if let CircuitState::Open { since, .. } = next.state {
            next.state = if succeeded {
                CircuitState::Trial {
                    since,
                    operation: None,
                }
            } else {
                CircuitState::Open {
                    since,
                    probe_at: later(now, PROBE_EVERY),
                }
            };
        }
        next
    }

    /// Whether an attempt of `operation` may be authorised, and the circuit once it is.
    #[must_use]
    pub fn admit(&self, operation: &OperationId) -> Option<Self> {
        match &self.state {
            CircuitState::Closed => Some(self.clone()),
            CircuitState::Open { .. }
            | CircuitState::Trial {
                operation: Some(_), ..
            } => None,
            CircuitState::Trial {
                since,
                operation: None,
            } => Some(Self {
                state: CircuitState::Trial {
                    since: *since,
                    operation: Some(operation.clone()),
                },
                ..self.clone()
            }),
        }
    }

    /// Whether calls that would open a row are turned away.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.state, CircuitState::Closed)
    }

    /// Notes a 401 (`unauthorised`), a 403 or any other reply; answers whether the tool must be
    /// paused because its credentials do not work.
    #[must_use]
    pub fn credentials(&self, status: u16, order: Option<&OrderId>) -> (Self, bool) {
        let mut next = self.clone();
        match (status, order) {
            (401, _) => (next, true),
            (403, Some(order)) => {
                if !next.denied.contains(order) {
                    next.denied.push(order.clone());
                }
                let pause = next.denied.len() >= CREDENTIAL_ORDERS;
                if pause {
                    next.denied.clear();
                }
                (next, pause)
            }
            _ => {
                next.denied.clear();
                (next, false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        later(Instant::UNIX_EPOCH, Duration::from_secs(seconds))
    }
    fn op(n: u128) -> OperationId {
        OperationId::from_uuid(uuid::Uuid::from_u128(n))
    }

    #[test]
    fn backoff_has_full_jitter_and_waits_as_long_as_asked_f57() {
        let b = Backoff {
            base: Duration::from_millis(500),
            cap: Duration::from_secs(8),
        };
        assert_eq!(b.wait(1, None, 0), Duration::ZERO);
        assert_eq!(b.wait(1, None, u32::MAX), Duration::from_millis(500));
        assert_eq!(b.wait(3, None, u32::MAX), Duration::from_secs(2));
        assert_eq!(b.wait(40, None, u32::MAX), Duration::from_secs(8));
        assert!(b.wait(1, Some(Duration::from_secs(3)), 7) >= Duration::from_secs(3));
        assert_eq!(
            b.wait(1, Some(Duration::from_secs(90)), 0),
            Duration::from_secs(90)
        );
        assert!(b.wait(1, Some(Duration::MAX), u32::MAX) <= Duration::from_secs(86_401));
    }

    #[test]
    fn a_rate_never_lets_more_than_its_count_into_a_window_i28() {
        let rate = Rate {
            count: 5,
            per: Duration::from_secs(1),
        };
        let (mut bucket, mut now, mut taken) = (None, at(0), Vec::new());
        while taken.len() < 50 {
            match rate.take(bucket, now) {
                Ok(next) => {
                    bucket = Some(next);
                    taken.push(now);
                }
                Err(wait) => now = later(now, wait),
            }
        }
        for window in taken.windows(6) {
            let [first, .., last] = window else {
                panic!("six")
            };
            assert!(super::super::since(*first, *last) >= Duration::from_secs(1));
        }
    }

    #[test]
    fn five_failures_over_three_operations_open_the_circuit() {
        let mut c = Circuit::default();
        for n in [1, 1, 1, 1, 1] {
            c = c.after(&op(n), Health::Ill, at(0));
        }
        assert!(!c.is_open(), "one bad operation is no outage");
        c = c
            .after(&op(2), Health::Ill, at(0))
            .after(&op(3), Health::Ill, at(1));
        assert!(c.is_open() && c.admit(&op(9)).is_none());
        c = c.probed(false, at(31)).probed(true, at(61));
        let trial = c.admit(&op(4)).expect("one attempt");
        assert!(trial.admit(&op(5)).is_none(), "one at a time");
        assert!(
            trial
                .after(&op(4), Health::Ill, at(62))
                .admit(&op(5))
                .is_none()
        );
        assert!(!trial.after(&op(4), Health::Well, at(62)).is_open());
    }

    #[test]
    fn one_401_or_three_403s_over_orders_pause_the_tool() {
        let order = |n: u8| OrderId::parse(&n.to_string()).expect("order");
        let c = Circuit::default();
        assert!(c.credentials(401, None).1);
        let (c, first) = c.credentials(403, Some(&order(1)));
        let (c, same) = c.credentials(403, Some(&order(1)));
        let (c, second) = c.credentials(403, Some(&order(2)));
        assert!(!first && !same && !second);
        let (again, back) = c.credentials(403, Some(&order(1)));
        assert!(!back, "two orders taking turns are not three");
        assert!(again.credentials(403, Some(&order(3))).1);
        assert!(c.credentials(403, Some(&order(3))).1);
        let (reset, _) = c.credentials(200, Some(&order(3)));
        assert!(!reset.credentials(403, Some(&order(4))).1);
    }
}
