//! What a seed decides before anything happens: which kinds of faults there are, and the settings of
//! the world. The same seed and the same switched-off kinds give the same world.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use samekey::domain::policy::{Backoff, Caps, Profile, Rate, Terms, ToolPolicy};
use samekey::engine::EngineConfig;
use samekey::simulator::{Plan, Scenario};
use sha2::{Digest, Sha256};
use strum::VariantArray;

/// A stream of draws for one purpose; other purposes do not disturb it.
pub fn dice(seed: u64, purpose: &str) -> ChaCha8Rng {
    let mut hash = Sha256::new_with_prefix(seed.to_be_bytes());
    hash.update(purpose.as_bytes());
    ChaCha8Rng::from_seed(hash.finalize().into())
}

pub fn chance(dice: &mut ChaCha8Rng, percent: u32) -> bool {
    dice.random_range(0..100) < percent
}

pub fn pick<T: Copy>(dice: &mut ChaCha8Rng, from: &[T]) -> T {
    from[dice.random_range(0..from.len())]
}

pub fn between(dice: &mut ChaCha8Rng, from_ms: u64, to_ms: u64) -> Duration {
    Duration::from_millis(dice.random_range(from_ms..=to_ms))
}

/// A kind of fault, which a seed may have and the shrinker may take away.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    strum::VariantArray,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    // The network between samekey and the provider.
    ConnectRefused,
    RequestLost,
    /// Delivered after the client gave up, within the settle time.
    RequestLate,
    ReplyLost,
    ReplyLate,
    ReplyCut,
    ReplyGarbled,
    Unauthorised,
    /// Nobody reaches the provider for a while.
    Unreachable,
    /// No refund request arrives for a while; reads do.
    Blackout,
    // The provider.
    Silence,
    Conflict409,
    Saved500,
    Gateway502,
    Limit429,
    KeyMismatch,
    Refused,
    AlreadyRefunded,
    Forbidden403,
    PendingObject,
    FailsLater,
    WrongAmount,
    Outside,
    ManyOthers,
    Outage,
    // Promises of the provider that are not kept.
    CopiedMetadata,
    IgnoresKeys,
    // The ledger.
    CommitLost,
    CommitFails,
    LedgerBusy,
    LedgerSlow,
    RenewFails,
    /// Nobody is told that the ledger changed.
    HintsLost,
    // Clocks of the machines.
    Drift,
    StepSmall,
    StepHour,
    StepDay,
    // Processes.
    TwoEngines,
    Crash,
    Pause,
    /// Stopped between the committed attempt and its first byte.
    StopBeforeSending,
    LongPause,
    // Agents.
    AskAgain,
    OtherAmount,
    SameCallId,
    After,
    // People.
    Meddle,
    /// Somebody closes as failed as soon as it may be done.
    Eager,
    Stop,
    /// A row is stopped while its request is on the way.
    StopInFlight,
    Duel,
    ToolPause,
    // Limits of money.
    Approval,
    FourEyes,
    // Drawn apart, so that what a seed drew before they came is as it was.
    /// A request reaches the provider once more, within the settle time.
    RequestTwice,
    /// The engines also look at rows and list the provider's events.
    Reconcile,
}

impl Kind {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Percent of the seeds that have it.
    fn share(self) -> u32 {
        match self {
            Self::CopiedMetadata | Self::IgnoresKeys | Self::Unauthorised => 6,
            Self::Blackout => 5,
            Self::Outage | Self::StepHour | Self::StepDay | Self::Forbidden403 => 10,
            Self::StepSmall => 8,
            Self::LongPause | Self::ManyOthers | Self::KeyMismatch => 12,
            Self::TwoEngines | Self::AskAgain => 75,
            Self::Conflict409 | Self::StopInFlight => 45,
            Self::Silence | Self::Meddle | Self::Crash => 55,
            _ => 32,
        }
    }

    fn is_drawn_apart(self) -> bool {
        matches!(self, Self::RequestTwice | Self::Reconcile)
    }

    /// The provider breaks its word: the promise of one effect is void then.
    pub fn breaks_the_promise(self) -> bool {
        matches!(self, Self::CopiedMetadata | Self::IgnoresKeys)
    }
}

/// A guard of the protocol that the harness can take away, to see that the checkers notice.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray, strum::IntoStaticStr, strum::EnumString,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Guard {
    /// The engine's clocks stand still while its process is stopped, so that the check before the
    /// first byte sees no time pass (I9).
    CheckBeforeSending,
    /// A retry gets a key of its own (I3).
    OneKey,
    /// An unknown row is driven on (R41).
    NothingAfterUnknown,
    /// A commit in doubt counts as done (I8).
    CommitInDoubt,
    /// A 5xx is tried again (I15).
    ServerErrorEnds,
    /// People close as failed without the waiting period (I19).
    WaitBeforeFailed,
    /// A list that was not read to its end proves absence (I17).
    WholeListOnly,
    /// The provider is asked before the ledger (step 3).
    GetBeforeCheck,
}

impl Guard {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The faults under which it is needed.
    fn needs(self) -> &'static [Kind] {
        use Kind as K;
        match self {
            Self::CheckBeforeSending => &[K::StopBeforeSending],
            Self::OneKey => &[K::Silence],
            Self::NothingAfterUnknown => &[K::Saved500, K::Gateway502, K::AskAgain],
            Self::CommitInDoubt => &[K::CommitFails],
            Self::ServerErrorEnds => &[K::Saved500, K::Gateway502],
            Self::WaitBeforeFailed => &[K::Silence, K::RequestLate, K::Stop, K::Eager],
            Self::WholeListOnly => &[K::ManyOthers],
            Self::GetBeforeCheck => &[K::Silence, K::Unreachable, K::AskAgain],
        }
    }
}

/// The world of one seed.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub kinds: BTreeSet<Kind>,
    pub off: BTreeSet<Kind>,
    pub without: Option<Guard>,
    pub orders: usize,
    pub asks: usize,
    /// How long faults go on (true time).
    pub trouble: Duration,
    pub engine: EngineConfig,
    pub terms: Terms,
    pub latency: Duration,
    /// How much the clocks of engine 1, engine 2 and the desk run fast, in millionths.
    pub drift: [i64; 3],
}

impl Options {
    /// The world of a seed, without the kinds in `off`, and without the guard.
    pub fn derive(seed: u64, off: &BTreeSet<Kind>, without: Option<Guard>) -> Self {
        let (mut d, mut apart) = (dice(seed, "options"), dice(seed, "more options"));
        let drawn: Vec<Kind> = Kind::VARIANTS
            .iter()
            .copied()
            .filter(|kind| {
                let d = if kind.is_drawn_apart() {
                    &mut apart
                } else {
                    &mut d
                };
                chance(d, kind.share())
            })
            .collect();
        let needed = without.map_or(&[][..], Guard::needs);
        // Who is in a hurry meets a provider that does not answer.
        let hurried = drawn.contains(&Kind::Eager) && chance(&mut d, 40);
        let more: &[Kind] = if hurried {
            &[Kind::Unreachable, Kind::Stop, Kind::Silence]
        } else {
            &[]
        };
        let all = drawn.into_iter().chain(needed.iter().chain(more).copied());
        let kinds: BTreeSet<Kind> = all.filter(|k| !off.contains(k)).collect();
        let seconds = Duration::from_secs;
        let poll = seconds(pick(&mut d, &[30, 60]));
        let lease = poll * pick(&mut d, &[2, 3]);
        let engine = EngineConfig {
            workers: pick(&mut d, &[1, 2, 4]),
            lease,
            poll,
            call_timeout: seconds(pick(&mut d, &[40, 60, 120])),
            call_ttl: seconds(600),
            reconcile: kinds.contains(&Kind::Reconcile),
        };
        let settle_time = seconds(pick(&mut d, &[45, 90]));
        // Beyond its margin (send window, timeout, clock error) a key lives for a few minutes only,
        // so that its end is met.
        let retention = seconds(312) + seconds(pick(&mut d, &[100, 200, 400]));
        let drift = [(); 3].map(|()| d.random_range(-10_000..=10_000));
        let trouble = seconds(d.random_range(50..=200));
        let (mut orders, mut asks) = (d.random_range(1..=3), d.random_range(2..=7));
        let latency = between(&mut d, 0, 1500);
        if kinds.contains(&Kind::Blackout) {
            // Only failures of several operations in a row are an outage.
            (orders, asks) = (4, 9);
        }
        Self {
            seed,
            terms: terms(&kinds, settle_time, retention),
            drift: if kinds.contains(&Kind::Drift) {
                drift
            } else {
                [0; 3]
            },
            kinds,
            off: off.clone(),
            without,
            orders,
            asks,
            trouble,
            engine,
            latency,
        }
    }

    pub fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    pub fn lacks(&self, guard: Guard) -> bool {
        self.without == Some(guard)
    }

    /// Whether the provider keeps every promise of its profile.
    pub fn promise_holds(&self) -> bool {
        !self.kinds.iter().any(|k| k.breaks_the_promise())
    }

    /// What the simulated provider does with refund requests.
    pub fn plan(&self) -> Plan {
        use Scenario as S;
        let table = |honest: u32, later: bool| {
            let mut weights = vec![(honest, None)];
            let mut add = |kind, scenarios: &[Scenario]| {
                if self.has(kind) {
                    weights.extend(scenarios.iter().map(|s| (10, Some(*s))));
                }
            };
            add(
                Kind::Silence,
                &[S::TimeoutBeforeEffect, S::TimeoutAfterEffect],
            );
            add(Kind::ReplyLost, &[S::ResetAfterCommit]);
            add(Kind::ReplyLate, &[S::Slow]);
            add(Kind::Conflict409, &[S::Overlap409]);
            add(
                Kind::Saved500,
                &[S::Saved500WithEffect, S::Saved500WithoutEffect],
            );
            add(Kind::Gateway502, &[S::BadGateway]);
            add(Kind::Limit429, &[S::RateLimited, S::LockTimeout]);
            add(Kind::KeyMismatch, &[S::KeyMismatch]);
            add(Kind::Refused, &[S::Refused]);
            add(Kind::Forbidden403, &[S::PermissionDenied]);
            add(Kind::ReplyGarbled, &[S::GarbledReply]);
            add(Kind::WrongAmount, &[S::WrongAmountReply]);
            if !later {
                add(Kind::AlreadyRefunded, &[S::AlreadyRefunded]);
                add(Kind::PendingObject, &[S::PendingThenSucceeded]);
                add(
                    Kind::FailsLater,
                    &[S::PendingThenFailed, S::SucceededThenFailed],
                );
                add(Kind::Outside, &[S::ExternalRefund]);
                add(Kind::ManyOthers, &[S::MatchOnPage2]);
                add(Kind::Outage, &[S::Outage]);
                add(Kind::CopiedMetadata, &[S::CopiedMetadata]);
                add(Kind::IgnoresKeys, &[S::IgnoresKeys, S::PrunedKey]);
            }
            weights
        };
        Plan::Drawn {
            first: table(12, false),
            later: table(25, true),
        }
    }
}

fn terms(kinds: &BTreeSet<Kind>, settle_time: Duration, retention: Duration) -> Terms {
    let seconds = Duration::from_secs;
    let mut policy = ToolPolicy::refund("stripe".parse().expect("a provider"));
    policy.backoff = Backoff {
        base: Duration::from_millis(500),
        cap: seconds(8),
    };
    policy.lookup_cooldown = seconds(20);
    policy.approval_ttl = seconds(180);
    let over = |kind, limit| kinds.contains(&kind).then_some(limit);
    let caps = Caps {
        approve_over: over(Kind::Approval, 5_000),
        four_eyes_over: over(Kind::FourEyes, 3_000),
        ..Caps::default()
    };
    if caps != Caps::default() {
        policy.caps = BTreeMap::from([("usd".parse().expect("usd"), caps)]);
    }
    let profile = Profile {
        settle_time,
        retention,
        rate: Rate {
            count: 25,
            per: seconds(1),
        },
        ..Profile::stripe()
    };
    Terms { policy, profile }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |kinds: &BTreeSet<Kind>| {
            let names: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
            names.join(",")
        };
        writeln!(f, "  faults: {}", names(&self.kinds))?;
        if !self.off.is_empty() {
            writeln!(f, "  switched off: {}", names(&self.off))?;
        }
        let e = &self.engine;
        writeln!(
            f,
            "  {} orders, {} asks, {:?} of trouble; workers {}, lease {:?}, poll {:?}, call {:?}",
            self.orders, self.asks, self.trouble, e.workers, e.lease, e.poll, e.call_timeout
        )?;
        let p = &self.terms.profile;
        write!(
            f,
            "  settle {:?}, retention {:?}, latency {:?}, drift {:?} ppm",
            p.settle_time, p.retention, self.latency, self.drift
        )
    }
}
