//! The names of all scenarios; what they do stands in `assets/scenarios/*.toml`.
//!
//! Owns: the list of names and the way to their files. Never: decides which request meets which
//! fault (`fault.rs`).
//! Tests: below, and `tests/simulator/` runs every one over HTTP.

use std::fmt;
use std::str::FromStr;

use super::fault::PlanError;
use super::script::Script;

macro_rules! scenarios {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// A named fault; `mixed` is a [`super::Plan`] of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Scenario {
            $(#[doc = $name] $variant,)+
        }

        impl Scenario {
            /// Every scenario, first those of the outside contract in its order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in flags, files and records.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            fn source(self) -> &'static str {
                match self {
                    $(Self::$variant => {
                        include_str!(concat!("../../assets/scenarios/", $name, ".toml"))
                    })+
                }
            }
        }
    };
}

scenarios! {
    TimeoutBeforeEffect = "timeout-before-effect",
    TimeoutAfterEffect = "timeout-after-effect",
    ResetAfterCommit = "reset-after-commit",
    Slow = "slow",
    Overlap409 = "overlap-409",
    Saved500WithEffect = "saved-500-with-effect",
    Saved500WithoutEffect = "saved-500-without-effect",
    BadGateway = "bad-gateway",
    RateLimited = "rate-limited",
    LockTimeout = "lock-timeout",
    KeyMismatch = "key-mismatch",
    PrunedKey = "pruned-key",
    Refused = "refused",
    AlreadyRefunded = "already-refunded",
    PermissionDenied = "permission-denied",
    PendingThenSucceeded = "pending-then-succeeded",
    PendingThenFailed = "pending-then-failed",
    SucceededThenFailed = "succeeded-then-failed",
    WebhookLost = "webhook-lost",
    WebhookLate = "webhook-late",
    WebhookEarly = "webhook-early",
    WebhookDuplicate = "webhook-duplicate",
    WebhookOutOfOrder = "webhook-out-of-order",
    ExternalRefund = "external-refund",
    CopiedMetadata = "copied-metadata",
    MatchOnPage2 = "match-on-page-2",
    IgnoresKeys = "ignores-keys",
    GarbledReply = "garbled-reply",
    WrongAmountReply = "wrong-amount-reply",
    Outage = "outage",
    // Beyond the outside contract, for what else S61 to S69 ask for.
    WebhookWrongSecret = "webhook-wrong-secret",
    WebhookOldTimestamp = "webhook-old-timestamp",
    BalanceTooLow = "balance-too-low",
    RequiresActionThenCanceled = "requires-action-then-canceled",
    DisputeWhilePending = "dispute-while-pending",
    TwoCandidates = "two-candidates",
    LateEffect = "late-effect",
    StaleList = "stale-list",
    PagingLimited = "paging-limited",
    LookupForbidden = "lookup-forbidden",
    RateLimits = "rate-limits",
    ZeroDecimal = "zero-decimal",
}

impl Scenario {
    /// One sentence for `demo --list`.
    #[must_use]
    pub fn about(self) -> String {
        self.script().map(|s| s.about.clone()).unwrap_or_default()
    }

    /// The steps of this scenario.
    pub(super) fn script(self) -> Result<Script, PlanError> {
        Script::parse(self.name(), self.source())
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scenario {
    type Err = PlanError;

    fn from_str(name: &str) -> Result<Self, PlanError> {
        Self::ALL
            .iter()
            .copied()
            .find(|s| s.name() == name)
            .ok_or_else(|| PlanError::unknown(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_file_can_be_carried_out_and_says_what_it_does() {
        for scenario in Scenario::ALL {
            let script = scenario.script().expect("a script");
            assert!(script.about.ends_with('.'), "{scenario}: one sentence");
            assert_eq!(scenario.name().parse::<Scenario>().ok(), Some(*scenario));
        }
    }
}
