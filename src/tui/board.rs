//! The pages that are not lists of operations: what each of them remembers.
//!
//! Owns: which board is shown, each board's rows and cursor (an id, never a position, U1), how old
//! they are, and where esc leads from an operation that was opened on a board. Never: reads the
//! ledger. Tests: `tests/tui_boards.rs`.

mod engine;
pub mod filter;
mod report;

pub use engine::{EngineRoom, EngineView, ToolView};
pub use report::{ReportPage, Span};

use std::time::Duration;

use super::message::{Edge, Filter, Tab};
use super::selection::{List, PAGE, Row};
use crate::domain::Instant;
use crate::domain::ids::{AgentName, CallId, OperationId};
use crate::domain::report::{Report, ReportQuery};
use crate::domain::tool_call::{CallState, Delivery, ToolCall};
use crate::ledger::{AuditPage, AuditQuery, Audited, CallPage, CallQuery};

/// A page that is not a list of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum Board {
    /// Tool calls: accepted, executed, delivered.
    Queue,
    /// Engines, tools, rates and circuits.
    Engine,
    /// The history of all operations.
    Audit,
    /// Outcomes, money, time to resolution.
    Report,
}

/// A page of the tab bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    List(Tab),
    Board(Board),
}

/// All pages in the order of their keys, `1` to `9` and `0`.
pub const PLACES: [Place; 10] = [
    Place::List(Tab::Review),
    Place::List(Tab::Open),
    Place::List(Tab::Unknown),
    Place::List(Tab::Succeeded),
    Place::List(Tab::Failed),
    Place::List(Tab::All),
    Place::Board(Board::Queue),
    Place::Board(Board::Engine),
    Place::Board(Board::Audit),
    Place::Board(Board::Report),
];

/// What a board wants to know of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardQuery {
    /// A page of calls, and shown ones that are not final, which are read even where they left it.
    Calls(CallQuery, Vec<(AgentName, CallId)>),
    Audit(AuditQuery),
    Engine,
    Report(ReportQuery),
}

/// One reading for a board.
#[derive(Clone, Debug)]
pub struct BoardLoaded {
    /// When the reading began; nothing in it is younger.
    pub as_of: Instant,
    /// How long it took.
    pub took: Duration,
    pub answer: BoardAnswer,
}

/// What the ledger told.
#[derive(Clone, Debug)]
pub enum BoardAnswer {
    /// Nothing was committed since the last reading, so that this is still true.
    Unchanged,
    Calls(CallPage, Vec<ToolCall>),
    Audit(AuditPage),
    Engine(EngineView),
    Report(Report),
}

/// A question to the ledger for a board, or its answer: they carry the same marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking<T> {
    pub board: Board,
    /// Moves with every change of the query; answers of an older one change nothing (U27).
    pub generation: u64,
    /// Further rows instead of the head.
    pub edge: Option<Edge>,
    pub what: T,
}

/// How far the reading of a board is.
#[derive(Clone, Debug, Default)]
pub struct BoardReading {
    pub generation: u64,
    pub in_flight: bool,
    /// Something changed meanwhile: read again at once.
    pub again: bool,
    /// When the last reading began.
    pub as_of: Option<Instant>,
    /// Why the last reading failed.
    pub problem: Option<String>,
}

/// A board that is a long list, with its filter.
#[derive(Clone, Debug)]
pub struct Feed<R: Row, Q> {
    pub list: List<R>,
    pub query: Q,
    /// The filter as written.
    pub filter_text: String,
    pub reading: BoardReading,
}

impl<R: Row, Q: Default> Default for Feed<R, Q> {
    fn default() -> Self {
        Self {
            list: List::default(),
            query: Q::default(),
            filter_text: String::new(),
            reading: BoardReading::default(),
        }
    }
}

/// How a long list stands, for the lower rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The cursor's row from 1, of so many that are loaded; 0 where there is none.
    pub at: usize,
    pub loaded: usize,
    pub more_above: bool,
    pub more_below: bool,
    /// Rows that were announced.
    pub new: usize,
    pub follows: bool,
}

impl Standing {
    fn of<R: Row>(list: &List<R>) -> Self {
        Self {
            at: list.index().map_or(0, |i| i + 1),
            loaded: list.entries().len(),
            more_above: list.more_above,
            more_below: list.more_below,
            new: list.new,
            follows: list.follow && list.loaded,
        }
    }
}

/// Where esc leads from an operation that was opened on a board.
#[derive(Clone, Debug)]
pub struct Origin {
    pub board: Board,
    pub tab: Tab,
    pub filter: Filter,
    pub filter_text: String,
    pub cursor: Option<OperationId>,
}

/// What all boards remember.
#[derive(Clone, Debug, Default)]
pub struct Boards {
    pub queue: Feed<ToolCall, CallQuery>,
    pub engine: EngineRoom,
    pub audit: Feed<Audited, AuditQuery>,
    pub report: ReportPage,
    pub origin: Option<Origin>,
}

impl Boards {
    /// How far the reading of `board` is.
    #[must_use]
    pub fn reading(&self, board: Board) -> &BoardReading {
        match board {
            Board::Queue => &self.queue.reading,
            Board::Engine => &self.engine.reading,
            Board::Audit => &self.audit.reading,
            Board::Report => &self.report.reading,
        }
    }

    /// The same, to be changed.
    pub fn reading_mut(&mut self, board: Board) -> &mut BoardReading {
        match board {
            Board::Queue => &mut self.queue.reading,
            Board::Engine => &mut self.engine.reading,
            Board::Audit => &mut self.audit.reading,
            Board::Report => &mut self.report.reading,
        }
    }

    /// The filter of `board` as written; nothing where it has none.
    #[must_use]
    pub fn filter_text(&self, board: Board) -> Option<&str> {
        match board {
            Board::Queue => Some(&self.queue.filter_text),
            Board::Audit => Some(&self.audit.filter_text),
            Board::Engine | Board::Report => None,
        }
    }

    /// Where the cursor stands in a long list, and what was announced; nothing on other boards.
    #[must_use]
    pub fn standing(&self, board: Board) -> Option<Standing> {
        match board {
            Board::Queue => Some(Standing::of(&self.queue.list)),
            Board::Audit => Some(Standing::of(&self.audit.list)),
            Board::Engine | Board::Report => None,
        }
    }

    /// What `board` asks at `now`.
    #[must_use]
    pub fn query(&self, board: Board, now: Instant) -> BoardQuery {
        match board {
            Board::Queue => {
                let query = CallQuery {
                    limit: PAGE,
                    ..self.queue.query.clone()
                };
                BoardQuery::Calls(query, self.unfinished())
            }
            Board::Engine => BoardQuery::Engine,
            Board::Audit => BoardQuery::Audit(AuditQuery {
                limit: PAGE,
                ..self.audit.query.clone()
            }),
            Board::Report => BoardQuery::Report(self.report.span.query(now)),
        }
    }

    /// Shown calls that can still change.
    fn unfinished(&self) -> Vec<(AgentName, CallId)> {
        let shown = self.queue.list.entries().iter().map(|e| &e.listed);
        shown.filter(|c| !is_final(c)).map(Row::id).collect()
    }
}

/// An answered and delivered call never changes again.
fn is_final(call: &ToolCall) -> bool {
    matches!(call.state, CallState::Answered | CallState::Held)
        && call.delivery == Delivery::Delivered
}

impl Row for ToolCall {
    type Id = (AgentName, CallId);

    fn id(&self) -> (AgentName, CallId) {
        (self.agent.clone(), self.id.clone())
    }

    fn is(&self, (agent, id): &(AgentName, CallId)) -> bool {
        self.id == *id && self.agent == *agent
    }
}

impl Row for Audited {
    type Id = i64;

    fn id(&self) -> i64 {
        self.audit_id
    }

    fn is(&self, id: &i64) -> bool {
        self.audit_id == *id
    }
}
