//! How a command fails: one plain sentence, a stable code, and the exit code.
//!
//! Owns: the exit codes of the contract. Never: prints, or knows the errors of other modules; which
//! of them leads to which exit code stands in `cli/failure.rs`. Tests: there, and
//! `tests/cli_bad_input.rs`.

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
    /// What is wrong; outside text in it is made harmless where it is printed.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Failure {
    /// The command ran and the answer is no.
    pub fn no(code: &'static str, message: impl Into<String>) -> Self {
        Self::of(Exit::No, code, message)
    }

    /// Wrong usage or configuration.
    pub fn usage(code: &'static str, message: impl Into<String>) -> Self {
        Self::of(Exit::Usage, code, message)
    }

    /// Ledger, provider or file system do not do their part.
    pub fn unreachable(code: &'static str, message: impl Into<String>) -> Self {
        Self::of(Exit::Unreachable, code, message)
    }

    /// Any exit code.
    pub fn of(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            hint: None,
        }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
