//! How a command fails: one plain sentence, a stable code, and the exit code.
//!
//! Owns: the exit codes of the contract and which error leads to which. Never: prints. Tests:
//! below, and `tests/cli_bad_input.rs`.

use crate::config::{ConfigError, SecretError};
use crate::domain::review_event::ReviewRefusal;
use crate::domain::text::SafeText;
use crate::ledger::LedgerError;
use crate::review::GateError;

/// The exit codes of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The command ran and the answer is no.
    No = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// Ledger or provider unreachable.
    Unreachable = 3,
    /// Not permitted.
    NotPermitted = 4,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A command that did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub exit: Exit,
    /// Stable, for scripts: `not_answered`.
    pub code: &'static str,
    /// What is wrong; safe to print.
    pub message: SafeText,
    /// What to do.
    pub hint: Option<SafeText>,
}

impl Failure {
    /// The command ran and the answer is no.
    pub fn no(code: &'static str, message: impl AsRef<str>) -> Self {
        Self::of(Exit::No, code, message)
    }

    /// Wrong usage or configuration.
    pub fn usage(code: &'static str, message: impl AsRef<str>) -> Self {
        Self::of(Exit::Usage, code, message)
    }

    /// Ledger, provider or file system do not do their part.
    pub fn unreachable(code: &'static str, message: impl AsRef<str>) -> Self {
        Self::of(Exit::Unreachable, code, message)
    }

    fn of(exit: Exit, code: &'static str, message: impl AsRef<str>) -> Self {
        Self {
            exit,
            code,
            message: SafeText::new(message.as_ref()),
            hint: None,
        }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl AsRef<str>) -> Self {
        self.hint = Some(SafeText::new(hint.as_ref()));
        self
    }
}

impl From<ConfigError> for Failure {
    fn from(e: ConfigError) -> Self {
        Self::usage("config", e.to_string()).hint(&e.remedy)
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
            LedgerError::Unreachable(_) => Self::unreachable("ledger_unreachable", message)
                .hint("check the path given with --ledger, and `samekey doctor`"),
            LedgerError::Bound { .. } => Self::usage("ledger_bound", message),
            LedgerError::Constraint(_) => Self::no("refused", message),
            LedgerError::Damaged(_) => Self::unreachable("ledger_damaged", message)
                .hint("run `samekey verify`, and keep the file as it is"),
        }
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
            GateError::Refused(ref refusal) => Self::no(refusal_code(refusal), message),
            GateError::LookupBusy(_) => Self::no("lookup_busy", message),
            GateError::ReadBudget(_) => Self::no("read_budget", message),
            GateError::NoProvider(name) => Self::usage("no_provider", message)
                .hint(format!("add [providers.{name}] to the configuration")),
            GateError::NoTool(name) => Self::usage("no_tool", message)
                .hint(format!("add [tools.{name}] to the configuration")),
            GateError::Rule(_) => Self::no("refused", message),
            GateError::Ledger(e) => e.into(),
        }
    }
}

/// A stable word for each refusal of the rules.
fn refusal_code(refusal: &ReviewRefusal) -> &'static str {
    match refusal {
        ReviewRefusal::NoteMissing => "note_missing",
        ReviewRefusal::MovedOn { .. } => "moved_on",
        ReviewRefusal::NotPermitted { .. } => "not_permitted",
        ReviewRefusal::ClosedSame { .. } | ReviewRefusal::ClosedOther { .. } => "already_closed",
        ReviewRefusal::Refused { .. } => "refused",
        ReviewRefusal::NobodyElse => "nobody_else",
        ReviewRefusal::SamePerson(_) => "same_person",
        ReviewRefusal::NothingToApprove => "nothing_to_approve",
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

    #[test]
    fn a_message_cannot_drive_the_terminal_u50() {
        let failure = Failure::no("x", "a\u{1b}[2Jb").hint("c\u{202e}d");
        assert_eq!(failure.message.as_str(), "a␛[2Jb");
        assert_eq!(failure.hint.expect("hint").as_str(), "c�d");
    }
}
