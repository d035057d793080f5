//! Which error of which module leads to which exit code, code word and hint.

use crate::config::{ConfigError, SecretError};
use crate::demo::DemoError;
use crate::domain::review_event::ReviewRefusal;
use crate::engine::EngineError;
use crate::error::{Exit, Failure};
use crate::gateway::GatewayError;
use crate::ledger::LedgerError;
use crate::provider::described::DescribedConfigError;
use crate::provider::stripe::StripeConfigError;
use crate::review::GateError;
use crate::tui::TuiError;

impl From<ConfigError> for Failure {
    fn from(e: ConfigError) -> Self {
        let message = e.to_string();
        Self::usage("config", message).hint(e.remedy)
    }
}

impl From<SecretError> for Failure {
    fn from(e: SecretError) -> Self {
        Self::usage("secret", e.to_string()).hint(e.remedy())
    }
}

impl From<LedgerError> for Failure {
    fn from(e: LedgerError) -> Self {
        let message = e.to_string();
        match e {
            LedgerError::NotALedger(_) => Self::unreachable("not_a_ledger", message)
                .hint("name a samekey ledger with --ledger"),
            // Its sentence says what to do where that is known.
            LedgerError::Unreachable(_) => Self::unreachable("ledger_unreachable", message),
            LedgerError::Bound { .. } => Self::usage("ledger_bound", message),
            LedgerError::Constraint(_) => Self::no("refused", message),
            LedgerError::Damaged(_) => Self::unreachable("ledger_damaged", message)
                .hint("run `samekey verify`, and keep the file as it is"),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(e: EngineError) -> Self {
        let message = e.to_string();
        match e {
            EngineError::Ledger(e) => e.into(),
            EngineError::NoSuchCall => Self::no("no_such_call", message),
            EngineError::NotAnswered => Self::no("not_answered", message),
        }
    }
}

impl From<GatewayError> for Failure {
    fn from(e: GatewayError) -> Self {
        match e {
            GatewayError::NotLoopback(_) => Self::usage("listen", e.to_string()).hint(
                "listen on 127.0.0.1 or [::1] behind a proxy with TLS, or give an agent its token first: `samekey agents add NAME`",
            ),
            GatewayError::Ledger(error) => error.into(),
            GatewayError::Listen { addr, error } => {
                let why = crate::config::plain(&error);
                Self::unreachable("listen", format!("cannot listen on {addr}: {why}"))
                    .hint("choose another --listen; port 0 picks a free one")
            }
        }
    }
}

impl From<TuiError> for Failure {
    fn from(e: TuiError) -> Self {
        Self::usage("screen", e.to_string())
            .hint("`samekey --snapshot 80x24` prints one frame as text")
    }
}

impl From<DemoError> for Failure {
    fn from(e: DemoError) -> Self {
        if e.is_usage() {
            Self::usage("demo", e.to_string()).hint("`samekey demo --list` lists the scenarios")
        } else {
            Self::unreachable("demo", e.to_string())
        }
    }
}

impl From<DescribedConfigError> for Failure {
    fn from(e: DescribedConfigError) -> Self {
        Self::usage("provider", e.to_string())
            .hint("correct the provider's section; `samekey config check` reads it")
    }
}

impl From<StripeConfigError> for Failure {
    fn from(e: StripeConfigError) -> Self {
        Self::usage("provider", format!("the provider cannot be used: {e}"))
            .hint("correct its section; `samekey config show` prints it")
    }
}

impl From<GateError> for Failure {
    fn from(e: GateError) -> Self {
        let message = e.to_string();
        match e {
            GateError::NoSuchOperation(_) => Self::no("no_such_operation", message)
                .hint("`samekey ops list` shows their ids; give the whole id"),
            GateError::UnknownReviewer(_) => {
                Self::of(Exit::NotPermitted, "unknown_reviewer", message)
                    .hint("name a configured reviewer with --reviewer, or leave it out")
            }
            GateError::NotPermitted { .. }
            | GateError::Refused(ReviewRefusal::NotPermitted { .. }) => {
                Self::of(Exit::NotPermitted, "not_permitted", message)
                    .hint("ask somebody with that role")
            }
            GateError::Refused(ReviewRefusal::ClaimOfAnother(_)) => {
                Self::of(Exit::NotPermitted, "not_permitted", message)
                    .hint("a claim blocks nothing; `ops claim` takes it over")
            }
            GateError::Refused(ref refusal) => Self::no(refusal_code(refusal), message),
            GateError::LookupBusy(_) => Self::no("lookup_busy", message),
            GateError::ReadBudget(_) => Self::no("read_budget", message),
            GateError::NoProvider(name) => Self::usage("no_provider", message)
                .hint(format!("add [providers.{name}] to the configuration")),
            GateError::NoTool(name) => Self::usage("no_tool", message)
                .hint(format!("add [tools.{name}] to the configuration")),
            GateError::ReservedAgent(_) => {
                Self::usage("reserved_agent", message).hint("choose another name")
            }
            GateError::AgentThere(_) => Self::no("agent_exists", message)
                .hint("`samekey agents revoke` takes it back; then add the agent again"),
            GateError::NoSuchAgent(_) => {
                Self::no("no_such_agent", message).hint("`samekey agents list` shows them")
            }
            GateError::TooMany { .. } => Self::usage("too_many", message).hint("name fewer rows"),
            GateError::Rule(_) => Self::no("refused", message),
            GateError::Ledger(e) => e.into(),
        }
    }
}

/// A stable word for each refusal of the rules.
fn refusal_code(refusal: &ReviewRefusal) -> &'static str {
    match refusal {
        ReviewRefusal::NoteMissing => "note_missing",
        ReviewRefusal::VersionMissing => "version_missing",
        ReviewRefusal::MovedOn { .. } => "moved_on",
        ReviewRefusal::NotPermitted { .. } | ReviewRefusal::ClaimOfAnother(_) => "not_permitted",
        ReviewRefusal::ClosedSame { .. } | ReviewRefusal::ClosedOther { .. } => "already_closed",
        ReviewRefusal::Refused { .. } => "refused",
        ReviewRefusal::NobodyElse => "nobody_else",
        ReviewRefusal::SamePerson(_) => "same_person",
        ReviewRefusal::NothingToApprove => "nothing_to_approve",
        ReviewRefusal::WaitingMissing => "waiting_missing",
        ReviewRefusal::WaitsOther(_) => "waits_other",
        ReviewRefusal::NotClaimed => "not_claimed",
        ReviewRefusal::ProposalStale(_) => "proposal_stale",
        ReviewRefusal::Expired => "expired",
        ReviewRefusal::ProposalWaits(_) => "proposal_waits",
        ReviewRefusal::RefMissing => "ref_missing",
        ReviewRefusal::RefWrong { .. } => "ref_wrong",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::guard::Role;

    #[test]
    fn each_kind_of_error_has_its_exit_code() {
        let name = || "anna".parse().expect("a name");
        let cases: [(Failure, Exit); 5] = [
            (
                LedgerError::Unreachable("gone".into()).into(),
                Exit::Unreachable,
            ),
            (
                LedgerError::Bound {
                    stamped: "a".into(),
                    configured: "b".into(),
                }
                .into(),
                Exit::Usage,
            ),
            (
                GateError::UnknownReviewer(name()).into(),
                Exit::NotPermitted,
            ),
            (
                GateError::Refused(ReviewRefusal::NotPermitted {
                    needed: Role::Lead,
                    name: name(),
                    has: Role::Viewer,
                })
                .into(),
                Exit::NotPermitted,
            ),
            (
                GateError::Refused(ReviewRefusal::NobodyElse).into(),
                Exit::No,
            ),
        ];
        for (failure, exit) in cases {
            assert_eq!(failure.exit, exit, "{failure}");
        }
    }
}
