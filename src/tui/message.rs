//! Everything that can happen to the screen: one closed enum.
//!
//! Owns: the shapes in which the outside reaches `update`. Never: has behaviour. The time comes in
//! by [`Message::Tick`]; every asynchronous answer carries the generation or serial it was asked
//! under, so that a late one changes nothing (U27).

use std::collections::BTreeMap;

pub use crate::engine::{EngineHealth, EngineState};
pub use crate::ledger::query::{
    AuditRow, Counts, Detail, Filter, Listed, Mark, Page, PageQuery, Sort, Tab,
};

use super::action::{Asked, LookedAt};
use super::board::{Asking, BoardLoaded};
use super::keymap::Key;
use crate::domain::Instant;
use crate::domain::guard::Ruling;
use crate::domain::ids::{OperationId, ToolName};
use crate::domain::operation::{Closing, OperationRow};
use crate::domain::policy::Terms;

/// What happened.
#[derive(Debug)]
pub enum Message {
    /// It is `now`. Comes before every other message that depends on the time.
    Tick(Instant),
    /// A key; `repeat` where the terminal can tell that it is held, `burst` where so many came at
    /// once that nobody typed them (U14).
    Key {
        key: Key,
        repeat: bool,
        burst: bool,
    },
    Paste(String),
    Resize {
        width: u16,
        height: u16,
    },
    /// A frame of the present model is on the screen.
    Drawn,
    /// The ledger says that something changed: a hint, without content.
    LedgerChanged,
    /// The slow poll behind the hints.
    RefreshDue,
    Loaded(Box<Loaded>),
    /// Asked anew, the ledger says that nothing was committed since the last reading, so that this is
    /// still true `as_of` now.
    Unchanged {
        generation: u64,
        as_of: Instant,
    },
    /// The ledger could not be read.
    LoadFailed {
        generation: u64,
        why: String,
    },
    More {
        generation: u64,
        edge: Edge,
        result: Result<Page, String>,
    },
    Detail {
        serial: u64,
        id: OperationId,
        result: Result<Option<Box<DetailView>>, String>,
    },
    /// What a board asked for.
    Board(Box<Asking<Result<BoardLoaded, String>>>),
    Asked {
        serial: u64,
        result: Result<Box<Asked>, String>,
    },
    /// So many of the rows were looked up.
    Progress {
        serial: u64,
        done: usize,
        of: usize,
    },
    Done {
        serial: u64,
        result: Result<Done, Failure>,
    },
    /// A claim or a snooze was written, or not and why.
    AtDesk(Result<Done, String>),
    /// A text that was asked for.
    Told {
        serial: u64,
        what: Told,
        result: Result<String, String>,
    },
    Health(EngineHealth),
    Scoreboard(Vec<String>),
    /// SIGTERM: leave, without asking.
    Terminate,
    /// The process was stopped and goes on.
    Resumed,
}

/// A text about operations that only the ledger and the gate can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The row as the contract writes it; of several rows a JSON array. For the clipboard.
    Json,
    /// Where a person finds the provider's objects, one line each.
    Link,
    /// What the provider's support needs.
    Packet,
}

/// One reading of the ledger.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub generation: u64,
    /// When the reading began; nothing on the screen is younger.
    pub as_of: Instant,
    pub page: Page,
    /// Shown rows that are not in the page, as they are now; those that moved since they were read.
    pub others: Vec<OperationRow>,
    /// The terms of the tools on the screen, as far as they are configured here.
    pub tools: BTreeMap<ToolName, Terms>,
    /// Where asked for.
    pub around: Option<Around>,
}

/// What is on the screen whatever its list is.
#[derive(Clone, Debug)]
pub struct Around {
    pub counts: Counts,
    /// The first ids of the review list, where asked for.
    pub review: Option<Vec<OperationId>>,
    /// Engines that live, of whatever process.
    pub engines: Engines,
    /// Tools that send nothing now, and why.
    pub standing: Vec<Standing>,
}

/// A tool that stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub tool: ToolName,
    pub why: String,
    /// Who paused it and why, where somebody did.
    pub paused: Option<(String, String)>,
}

/// Engines as the ledger has seen them lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engines {
    pub alive: u32,
    pub workers: u32,
}

/// Where further rows are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Below,
    /// Read in reverse order; put back in order before they are shown.
    Above,
    /// The end of the whole list, read in reverse order.
    Last,
}

/// One operation as the detail shows it.
#[derive(Clone, Debug)]
pub struct DetailView {
    pub detail: Detail,
    /// Which closings are allowed now, and why not the others; empty where the tool is not
    /// configured here.
    pub closings: Option<[(Closing, Ruling); 2]>,
    pub decidable_at: Option<Instant>,
    /// The tool's own word for `succeeded`.
    pub word: &'static str,
}

/// What was carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The one row it was about.
    pub operation: Option<OperationId>,
    /// Stored as a proposal; a second person has to decide.
    pub proposed: bool,
    /// One sentence.
    pub says: String,
    /// Rows that were not looked up, and why not.
    pub left: Vec<(OperationId, String)>,
}

/// Why a decision was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub why: String,
    /// The row as it is now, where it moved on.
    pub moved_to: Option<LookedAt>,
}
