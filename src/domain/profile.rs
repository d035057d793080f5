//! What a provider promises about repeats, as data: the shipped profiles are TOML in `assets/profiles`.
//!
//! Owns: their form, what makes one unusable, and the two deadlines that follow from one. Never: guesses a
//! promise. Without a stated settle time no design can make "failed" safe, so a file that leaves one out
//! is refused. Tests: below, and `tests/stripe/profiles.rs` against the simulated provider.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::policy::Rate;
use super::text::SafeText;
use super::{Instant, later};

/// The profiles that come with the program, by name.
pub const SHIPPED: &[(&str, &str)] = &[(
    "stripe-v1",
    include_str!("../../assets/profiles/stripe-v1.toml"),
)];

/// Clock error allowed for in the key's deadline.
const CLOCK_ERROR: Duration = Duration::from_mins(5);
/// Longest of a profile's times; longer ones are a slip of the pen.
const LONGEST: Duration = Duration::from_hours(366 * 24);
/// Characters of our own keys (UUIDs).
const OUR_KEY: u16 = 36;

/// What a provider can do about repeats (the table "Tools differ" of the protocol).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Honours an idempotency key for `retention`.
    Keyed,
    /// No keys, but searchable by our correlation id.
    Lookup,
    /// Neither.
    None,
}

/// What a provider promises, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub kind: ProviderKind,
    /// How long keys are kept, counted from the first request (R35).
    pub retention: Duration,
    /// Most characters of a key; they are visible ASCII (S2).
    pub longest_key: u16,
    /// Longest time between counting an attempt and its first byte.
    pub send_window: Duration,
    /// Longest wait for an answer.
    pub timeout: Duration,
    /// The provider's bound to finish a request whose client has gone.
    pub settle_time: Duration,
    /// How far lookups may lag behind writes.
    pub lookup_lag: Duration,
    /// Whether a replayed refusal is the result of the key's only execution.
    pub saved_results_are_final: bool,
    /// Statuses whose answers are saved under the key, always.
    pub always_saved: BTreeSet<u16>,
    /// Statuses whose answers are never saved: a later request may be carried out.
    pub never_saved: BTreeSet<u16>,
    /// Attempts it takes, over all tools and engines.
    pub rate: Rate,
    /// Reads that lookups and reconciling may spend.
    pub read_rate: Rate,
}

/// Why a profile cannot be used: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    #[error("the profile is not of the known form: {0}")]
    Form(SafeText),
    #[error("the profile's {0} is zero, or longer than a year")]
    Time(&'static str),
    #[error("the profile's {0} is zero")]
    Rate(&'static str),
    #[error("the profile keeps keys for less than sending, settling and clock error take")]
    Retention,
    #[error("the profile's keys are too short for ours, which have {OUR_KEY} characters")]
    Key,
    #[error("the profile's saved statuses are no HTTP statuses, or both always and never saved")]
    Saves,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "about")]
    _about: String,
    kind: ProviderKind,
    timeout_ms: u64,
    send_window_ms: u64,
    settle_time_s: u64,
    lookup_lag_s: u64,
    rate_per_s: u32,
    read_rate_per_s: u32,
    keys: Keys,
    saves: Saves,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    retention_s: u64,
    longest: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saves {
    #[serde(rename = "final")]
    is_final: bool,
    always: BTreeSet<u16>,
    never: BTreeSet<u16>,
}

impl Profile {
    /// Reads a profile and checks that it can be worked with.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let file: File = toml::from_str(text)
            .map_err(|e| ProfileError::Form(e.message().lines().next().unwrap_or("").into()))?;
        let second = Duration::from_secs(1);
        let rate = |count| Rate { count, per: second };
        let profile = Self {
            kind: file.kind,
            retention: Duration::from_secs(file.keys.retention_s),
            longest_key: file.keys.longest,
            send_window: Duration::from_millis(file.send_window_ms),
            timeout: Duration::from_millis(file.timeout_ms),
            settle_time: Duration::from_secs(file.settle_time_s),
            lookup_lag: Duration::from_secs(file.lookup_lag_s),
            saved_results_are_final: file.saves.is_final,
            always_saved: file.saves.always,
            never_saved: file.saves.never,
            rate: rate(file.rate_per_s),
            read_rate: rate(file.read_rate_per_s),
        };
        profile.check().map(|()| profile)
    }

    /// Whether the promises can be worked with at all.
    fn check(&self) -> Result<(), ProfileError> {
        for (name, time) in [
            ("send_window", self.send_window),
            ("timeout", self.timeout),
            ("settle_time", self.settle_time),
        ] {
            if time.is_zero() || time > LONGEST {
                return Err(ProfileError::Time(name));
            }
        }
        for (name, time) in [
            ("lookup_lag", self.lookup_lag),
            ("retention", self.retention),
        ] {
            if time > LONGEST {
                return Err(ProfileError::Time(name));
            }
        }
        for (name, rate) in [("rate", self.rate), ("read_rate", self.read_rate)] {
            if rate.count == 0 {
                return Err(ProfileError::Rate(name));
            }
        }
        let start = Instant::UNIX_EPOCH;
        if self.kind == ProviderKind::Keyed {
            if self.key_expires_at(start) <= start {
                return Err(ProfileError::Retention);
            }
            if self.longest_key < OUR_KEY {
                return Err(ProfileError::Key);
            }
        }
        let mut all = self.always_saved.union(&self.never_saved);
        if all.any(|s| !(200..=599).contains(s))
            || !self.always_saved.is_disjoint(&self.never_saved)
        {
            return Err(ProfileError::Saves);
        }
        Ok(())
    }

    /// Stripe API v1 as documented (S2, S3, S5, S9, S22, S23, S44).
    #[must_use]
    pub fn stripe() -> Self {
        static STRIPE: LazyLock<Profile> = LazyLock::new(|| {
            let text = SHIPPED.first().map_or("", |(_, text)| text);
            Profile::parse(text).unwrap_or_else(|_| Profile::promising_nothing())
        });
        STRIPE.clone()
    }

    /// A provider of which nothing but its kind and its settle time is known; without keys none is kept.
    #[must_use]
    pub fn plain(kind: ProviderKind, settle_time: Duration) -> Self {
        let second = Duration::from_secs(1);
        let rate = Rate {
            count: 5,
            per: second,
        };
        Self {
            kind,
            // Where no key is honoured, none runs out: the row's own limits end it.
            retention: match kind {
                ProviderKind::Keyed => Duration::ZERO,
                ProviderKind::Lookup | ProviderKind::None => LONGEST,
            },
            longest_key: 255,
            send_window: Duration::from_secs(2),
            timeout: Duration::from_secs(10),
            settle_time,
            lookup_lag: Duration::ZERO,
            saved_results_are_final: false,
            always_saved: BTreeSet::new(),
            never_saved: BTreeSet::new(),
            rate,
            read_rate: rate,
        }
    }

    /// What is left where a shipped file could not be read (a test holds that it can): at most one attempt,
    /// and nothing is ever proven absent.
    fn promising_nothing() -> Self {
        let second = Duration::from_secs(1);
        let rate = Rate {
            count: 1,
            per: second,
        };
        Self {
            kind: ProviderKind::None,
            retention: Duration::ZERO,
            longest_key: 0,
            send_window: second,
            timeout: second,
            settle_time: LONGEST,
            lookup_lag: LONGEST,
            saved_results_are_final: false,
            always_saved: BTreeSet::new(),
            never_saved: BTreeSet::new(),
            rate,
            read_rate: rate,
        }
    }

    /// Whether the provider takes this as a key (S2).
    #[must_use]
    pub fn takes_key(&self, key: &str) -> bool {
        let longest = usize::from(self.longest_key);
        !key.is_empty() && key.len() <= longest && key.bytes().all(|b| b.is_ascii_graphic())
    }

    /// Whether an answer with this status may be the saved one of an earlier request. Where the provider
    /// says that it never saves such an answer, a mark that claims it is not believed (S5).
    #[must_use]
    pub fn may_be_replayed(&self, status: u16) -> bool {
        !self.never_saved.contains(&status)
    }

    /// When a key first authorised at `first` may no longer be sent (I10). A request that leaves just
    /// before may be given up by us and still be carried out within the settle time: the provider must
    /// keep the key for as long, or that late request would be a second effect (I11).
    #[must_use]
    pub fn key_expires_at(&self, first: Instant) -> Instant {
        let margin = self
            .send_window
            .saturating_add(self.timeout)
            .saturating_add(self.settle_time)
            .saturating_add(CLOCK_ERROR);
        later(first, self.retention.saturating_sub(margin))
    }

    /// From when nothing authorised at `last` can still take effect unseen: closings as failed and
    /// scans that prove absence begin after it (I19).
    #[must_use]
    pub fn decidable_at(&self, last: Instant) -> Instant {
        let wait = self
            .send_window
            .saturating_add(self.timeout)
            .saturating_add(self.settle_time)
            .saturating_add(self.lookup_lag);
        later(last, wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        later(Instant::UNIX_EPOCH, Duration::from_secs(seconds))
    }

    #[test]
    fn every_shipped_profile_reads_and_stripes_is_the_first() {
        for (name, text) in SHIPPED {
            let read = Profile::parse(text);
            assert!(read.is_ok(), "{name}: {read:?}");
        }
        let (name, text) = SHIPPED[0];
        assert_eq!(
            (name, Profile::parse(text)),
            ("stripe-v1", Ok(Profile::stripe()))
        );
        assert_eq!(Profile::stripe().kind, ProviderKind::Keyed);
    }

    #[test]
    fn a_profile_that_cannot_be_worked_with_is_refused_in_one_sentence() {
        let text = SHIPPED[0].1;
        for (from, to, says) in [
            ("kind = \"keyed\"", "kind = \"magic\"", "known form"),
            ("settle_time_s = 600", "", "known form"),
            (
                "settle_time_s = 600",
                "settle_time_s = 0",
                "settle_time is zero",
            ),
            ("settle_time_s = 600", "settle_time_s = -1", "known form"),
            (
                "settle_time_s = 600",
                "settle_time_s = 86_400",
                "keeps keys",
            ),
            (
                "timeout_ms = 10_000",
                "timeout_ms = 10_000\nretries = 2",
                "known form",
            ),
            (
                "timeout_ms = 10_000",
                "timeout_ms = 99999999999999",
                "timeout",
            ),
            (
                "lookup_lag_s = 0",
                "lookup_lag_s = 99999999999",
                "lookup_lag",
            ),
            ("rate_per_s = 25", "rate_per_s = 0", "rate is zero"),
            ("retention_s = 86_400", "retention_s = 900", "keeps keys"),
            ("longest = 255", "longest = 35", "too short"),
            (
                "always = [200, 402, 500]",
                "always = [200, 409]",
                "both always and never",
            ),
            (
                "never = [401, 409, 429]",
                "never = [99]",
                "no HTTP statuses",
            ),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let why = Profile::parse(&changed).expect_err(to).to_string();
            assert!(why.contains(says) && !why.contains('\n'), "{to}: {why}");
        }
        assert!(Profile::parse("").is_err());
    }

    #[test]
    fn without_a_readable_profile_nothing_is_promised() {
        let p = Profile::promising_nothing();
        assert_eq!(p.kind, ProviderKind::None);
        assert_eq!(p.key_expires_at(at(0)), at(0), "I10: never sent again");
        assert!(p.decidable_at(at(0)) > at(700 * 24 * 3600), "I19");
        assert!(!p.takes_key("k"));
    }

    #[test]
    fn a_key_is_not_sent_in_its_last_minutes_i10() {
        let p = Profile::stripe();
        let left = crate::domain::since(p.key_expires_at(at(0)), at(24 * 3600));
        assert_eq!(
            left,
            Duration::from_secs(2 + 10 + 600 + 300),
            "send window, timeout, settle time, clock error"
        );
        assert_eq!(p.decidable_at(at(0)), at(2 + 10 + 600));
        // What leaves at the last moment has ended while the key is still known, however slow (I11).
        for settle in [0, 1, 600, 7200] {
            let slow = Profile {
                settle_time: Duration::from_secs(settle),
                ..Profile::stripe()
            };
            let leaves = slow.key_expires_at(at(0));
            let ended = later(leaves, slow.timeout + slow.settle_time);
            assert!(
                ended < later(at(0), slow.retention),
                "settle time {settle} s"
            );
        }
    }
}
