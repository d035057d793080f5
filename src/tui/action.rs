//! What a person can ask of the screen, and what an action key freezes.
//!
//! Owns: the closed list of actions, which of them act, and [`Frozen`], the only thing that may lead
//! to a write. Never: decides whether something is allowed (`review` does). Tests:
//! `tests/tui_safety.rs`, `tests/tui_rules.rs`.

pub use crate::domain::operation::LookedAt;
pub use crate::domain::review_event::Person;
pub use crate::review::{Ask, Asked, Level, Subject};

use crate::domain::Instant;
use crate::domain::ids::{OperationId, ToolName};
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
    /// A shorter, a longer span of the report.
    Shorter,
    Longer,
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

    /// Whether it is done at once, without a dialog: it decides nothing, but others see it.
    #[must_use]
    pub fn is_desk(self) -> bool {
        matches!(self, Self::Claim | Self::Snooze)
    }

    /// What it asks of the gate on `row`; nothing for what is about a tool.
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
    pub fn freeze(&self, target: Target, by: Person, environment: String) -> Frozen {
        Frozen {
            target,
            by,
            environment,
        }
    }
}

/// What an action is about. To several rows only reading is ever done (U18).
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// One row as it was looked at, and what is asked about it.
    Row {
        operation: OperationId,
        looked_at: LookedAt,
        ask: Ask,
    },
    /// Marked rows, to be looked up one after another.
    Rows(Vec<OperationId>),
    /// One row, for a claim or a snooze.
    Desk(OperationId),
    /// A tool, and who has paused it and why, as the screen showed it; paused by nobody it is to be
    /// paused, else resumed.
    Tool {
        tool: ToolName,
        paused: Option<(String, String)>,
    },
}

/// What the desk is to do with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Claim,
    Release,
    Snooze(Instant),
}

/// Target, reviewer and environment at the moment of the key press.
#[derive(Clone, Debug, PartialEq)]
pub struct Frozen {
    target: Target,
    by: Person,
    environment: String,
}

impl Frozen {
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The one row it is about.
    #[must_use]
    pub fn operation(&self) -> Option<&OperationId> {
        match &self.target {
            Target::Row { operation, .. } | Target::Desk(operation) => Some(operation),
            Target::Rows(_) | Target::Tool { .. } => None,
        }
    }

    /// The rows it is about.
    #[must_use]
    pub fn operations(&self) -> Vec<OperationId> {
        match &self.target {
            Target::Row { operation, .. } | Target::Desk(operation) => vec![operation.clone()],
            Target::Rows(rows) => rows.clone(),
            Target::Tool { .. } => Vec::new(),
        }
    }

    /// What the person had before their eyes.
    #[must_use]
    pub fn looked_at(&self) -> Option<&LookedAt> {
        match &self.target {
            Target::Row { looked_at, .. } => Some(looked_at),
            Target::Rows(_) | Target::Desk(_) | Target::Tool { .. } => None,
        }
    }

    /// What is asked about a row, or about several.
    #[must_use]
    pub fn ask(&self) -> Option<Ask> {
        match &self.target {
            Target::Row { ask, .. } => Some(*ask),
            Target::Rows(_) => Some(Ask::Lookup),
            Target::Desk(_) | Target::Tool { .. } => None,
        }
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

    /// The same target after the person has read the row again as it is now.
    #[must_use]
    pub fn reread(&self, now: LookedAt) -> Self {
        let mut again = self.clone();
        if let Target::Row { looked_at, .. } = &mut again.target {
            *looked_at = now;
        }
        again
    }

    /// Whether the action decides about money, or whether money is sent; a lookup reads, a note and a
    /// claim only tell.
    #[must_use]
    pub fn is_money(&self) -> bool {
        match &self.target {
            Target::Row { ask, .. } => !matches!(ask, Ask::Lookup | Ask::Note),
            Target::Tool { .. } => true,
            Target::Rows(_) | Target::Desk(_) => false,
        }
    }
}
