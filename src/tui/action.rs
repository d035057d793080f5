//! What a person can ask of the screen, and what an action key freezes.
//!
//! Owns: the closed list of actions, which of them act, and [`Frozen`], the only thing that may lead
//! to a write. Never: decides whether something is allowed (`review` does). Tests:
//! `tests/tui_safety.rs`, `tests/tui_rules.rs`.

pub use crate::domain::review_event::Person;
pub use crate::review::{Ask, Asked, Decided, Level};

use crate::domain::Instant;
use crate::domain::ids::OperationId;
use crate::domain::operation::{Closing, Contradiction, OperationRow, Status};

/// One thing a key can mean. Lower case looks, upper case acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::VariantArray, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Action {
    Down,
    Up,
    HalfDown,
    HalfUp,
    PageDown,
    PageUp,
    Top,
    Bottom,
    /// Opens the operation under the cursor; never acts (U12).
    Open,
    /// One layer back.
    Back,
    PrevRow,
    NextRow,
    Review,
    OpenRows,
    Unknown,
    Succeeded,
    Failed,
    All,
    /// The boards: tool calls, engines, audit, report.
    Queue,
    Engine,
    Audit,
    Report,
    NextTab,
    PrevTab,
    Filter,
    /// The `:` line: every action by its name.
    Palette,
    Sort,
    Reverse,
    /// Shows the rows that were announced.
    TakeIn,
    /// Lets the list move by itself until the next key.
    Follow,
    Pause,
    Times,
    Wide,
    /// Timeline or evidence, in the detail.
    Evidence,
    /// Marks the row for copy, export and lookups; never for closing (U18).
    Mark,
    CopyId,
    CopyKey,
    CopyRef,
    CopyJson,
    /// Copies what the pager shows.
    CopyText,
    /// Shows the provider's link.
    Link,
    /// Shows the support packet.
    Packet,
    /// Claims the row, or gives it back.
    Claim,
    Snooze,
    Help,
    Redraw,
    Quit,
    Interrupt,
    Suspend,
    Apply,
    NextField,
    PrevField,
    /// Enter inside a dialog: the next field, or Cancel where Cancel has the focus.
    Proceed,
    /// Reads the row again after it moved on.
    Reread,
    /// Commits what the dialog shows.
    Commit,
    /// The next note template, in a note field.
    Template,
    Lookup,
    CloseSucceeded,
    CloseFailed,
    Stop,
    Approve,
    Reject,
    Correct,
    Note,
    /// Pauses or resumes a tool.
    PauseTool,
}

impl Action {
    /// Its name on the `:` line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it asks for something that leaves the screen: these keys are frozen to a row.
    #[must_use]
    pub fn acts(self) -> bool {
        matches!(
            self,
            Self::Lookup
                | Self::CloseSucceeded
                | Self::CloseFailed
                | Self::Stop
                | Self::Approve
                | Self::Reject
                | Self::Correct
                | Self::Note
                | Self::PauseTool
        )
    }

    /// What it asks of the gate on `row`.
    #[must_use]
    pub fn ask(self, row: &OperationRow) -> Option<Ask> {
        Some(match self {
            Self::Lookup => Ask::Lookup,
            Self::CloseSucceeded => Ask::Close(Closing::Succeeded),
            Self::CloseFailed => Ask::Close(Closing::Failed),
            Self::Stop => Ask::Stop,
            Self::Approve => Ask::Approve,
            Self::Reject => Ask::Reject,
            Self::Correct => Ask::Correct(correction(row)),
            Self::Note => Ask::Note,
            _ => return None,
        })
    }
}

/// The correction that a contradiction calls for; without a decision a second effect is
/// acknowledged.
fn correction(row: &OperationRow) -> Option<Closing> {
    match (row.contradicted?, row.status) {
        (Contradiction::FailedAfterSucceeded | Contradiction::RefMismatch, _) => {
            Some(Closing::Failed)
        }
        (Contradiction::EffectAfterFailed, _) | (Contradiction::SecondEffect, Status::Failed) => {
            Some(Closing::Succeeded)
        }
        (Contradiction::SecondEffect, _) => None,
    }
}

/// What a person wants of the desk for a row. It decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Others see who looks at it.
    Claim,
    Release,
    /// Last in Review until then.
    Snooze(Instant),
}

/// Whether this screen may act at all.
#[derive(Clone, Debug)]
pub enum Access {
    /// `--read-only`: without a [`Permit`] no [`Frozen`] can exist, and without that no write (U51).
    ReadOnly,
    Acting(Permit),
}

impl Access {
    /// From the option.
    #[must_use]
    pub fn of(read_only: bool) -> Self {
        if read_only {
            Self::ReadOnly
        } else {
            Self::Acting(Permit(()))
        }
    }
}

/// The right to freeze a target. Made by [`Access::of`] only.
#[derive(Clone, Debug)]
pub struct Permit(());

impl Permit {
    /// Freezes what an action key was pressed on; nothing later reads the cursor again (U2).
    #[must_use]
    pub fn freeze(
        &self,
        operation: OperationId,
        version: i64,
        ask: Ask,
        by: Person,
        environment: String,
    ) -> Frozen {
        Frozen {
            operation,
            version,
            ask,
            by,
            environment,
        }
    }
}

/// Operation, version, action, reviewer and environment at the moment of the key press.
#[derive(Clone, Debug, PartialEq)]
pub struct Frozen {
    operation: OperationId,
    version: i64,
    ask: Ask,
    by: Person,
    environment: String,
}

impl Frozen {
    #[must_use]
    pub fn operation(&self) -> &OperationId {
        &self.operation
    }

    /// The version of the row that the person looked at.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.version
    }

    #[must_use]
    pub fn ask(&self) -> Ask {
        self.ask
    }

    #[must_use]
    pub fn by(&self) -> &Person {
        &self.by
    }

    /// The environment's name as the header showed it.
    #[must_use]
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// The same target after the person has read the row again at `version`.
    #[must_use]
    pub fn reread(&self, version: i64) -> Self {
        Self {
            version,
            ..self.clone()
        }
    }

    /// Whether the action decides about money; a lookup reads and a note only tells.
    #[must_use]
    pub fn is_money(&self) -> bool {
        !matches!(self.ask, Ask::Lookup | Ask::Note)
    }
}
