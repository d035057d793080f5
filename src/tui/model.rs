//! Everything the screen knows, as data.
//!
//! Owns: the state that `update` changes and `view` draws. Never: does anything; there are no
//! components with hidden state, and a dialog is data like the rest. Tests: all `tests/tui_*.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::FixedOffset;

use super::action::{Access, Asked, Frozen, LookedAt, Person};
use super::board::{Board, Boards};
use super::format::{Stamp, Times};
use super::keymap::{Context, Key, Keymap};
use super::menu::Menu;
use super::message::{
    Counts, DetailView, EngineHealth, Engines, Filter, PageQuery, Sort, Standing, Tab,
};
use super::pager::Pager;
use super::palette::Palette;
use super::pulse::Pulse;
use super::query::Fault;
use super::selection::{List, PAGE, SEARCH};
use super::text_field::TextField;
use super::theme::{Role, Theme};
use crate::domain::ids::{OperationId, ToolName};
use crate::domain::operation::{Effect, OperationRow};
use crate::domain::policy::Terms;
use crate::domain::{Instant, later, since};

/// Where the screen is, for the header and every dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The provider's configured name; empty where none is configured.
    pub provider: String,
    /// `simulator`, `test` or `live`.
    pub mode: String,
    /// The ledger's file name.
    pub ledger: String,
    /// What is missing here, such as a provider.
    pub notice: Option<String>,
}

impl Environment {
    /// Whether real money moves.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.mode.eq_ignore_ascii_case("live")
    }

    /// What a person types in a live dialog: `live stripe`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.mode, self.provider)
            .trim()
            .to_lowercase()
    }
}

/// How the screen begins. Everything that does not change later, and the time.
#[derive(Clone, Debug)]
pub struct Setup {
    pub environment: Environment,
    pub person: Person,
    pub access: Access,
    pub theme: Theme,
    pub keymap: Keymap,
    /// The local zone.
    pub zone: FixedOffset,
    pub times: Times,
    /// Time between two readings, in the clock's own time.
    pub refresh: Duration,
    /// A real second in the clock's own time, which a demo may scale.
    pub second: Duration,
    pub bell: bool,
    /// Notes that `ctrl-t` offers.
    pub templates: Vec<String>,
    /// Lists begin by following (the demo, which is there to be watched).
    pub follow: bool,
    pub now: Instant,
    pub size: (u16, u16),
}

/// Which part of the main screen has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    #[default]
    List,
    Detail,
}

/// How old the screen is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Nothing was read yet.
    Never,
    Fresh,
    /// More than three refreshes were missed: nobody may act on this (U20).
    Stale,
    /// More than ten.
    Old,
}

/// The detail of the operation under the cursor.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, not states of one machine"
)]
#[derive(Clone, Debug, Default)]
pub struct DetailPane {
    /// What was read last; drawn only while the cursor is on it.
    pub view: Option<Box<DetailView>>,
    /// The ledger has no such operation, or could not be read.
    pub problem: Option<String>,
    pub scroll: usize,
    pub serial: u64,
    pub in_flight: bool,
    /// Something moved while an answer was on its way.
    pub again: bool,
    /// Over the whole screen even where it would fit beside the list.
    pub wide: bool,
    /// The evidence is shown instead of the timeline.
    pub evidence: bool,
}

/// The filter line while it is being written.
#[derive(Clone, Debug)]
pub struct FilterEdit {
    pub field: TextField,
    pub fault: Option<Fault>,
}

/// A field of a dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldName {
    Token,
    Ref,
    Environment,
    Note,
}

/// What has the focus in a dialog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DialogFocus {
    #[default]
    Cancel,
    /// The field of that number.
    Field(usize),
}

/// How far a dialog is.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    /// The gate has not answered yet.
    Asking,
    Open,
    /// The row, or what waits on it, is this now: it has to be read again.
    MovedOn(LookedAt),
    /// Given to the gate; the ledger has not answered.
    Committing,
    /// Not done, because.
    Refused(String),
}

/// A question to the person, with everything it is about frozen.
#[derive(Clone, Debug)]
pub struct Dialog {
    pub frozen: Frozen,
    pub serial: u64,
    pub stage: Stage,
    /// The gate's answer.
    pub asked: Option<Box<Asked>>,
    pub fields: Vec<(FieldName, TextField)>,
    pub focus: DialogFocus,
    /// A frame with it has been on the screen; keys from before are dropped (U7).
    pub shown: bool,
    /// What is missing, after somebody tried to confirm.
    pub missing: Option<&'static str>,
    /// How many of the rows were looked up, once that has begun.
    pub progress: Option<(usize, usize)>,
}

/// One line for the person, for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    pub role: Role,
    pub until: Instant,
}

/// Which rows have rung, so that each rings once.
#[derive(Clone, Debug, Default)]
pub struct Rung {
    pub ids: BTreeSet<OperationId>,
    /// The first reading rings for nobody.
    pub armed: bool,
}

/// What is read, and what is on its way.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Moves with every change of the query; answers of an older one are dropped (U27).
    pub generation: u64,
    pub in_flight: bool,
    /// Something changed meanwhile: read again at once.
    pub again: bool,
    pub as_of: Option<Instant>,
    /// When what is around the list was read.
    pub around_as_of: Option<Instant>,
    /// Why the last reading failed.
    pub problem: Option<String>,
    pub paused: bool,
}

/// A text that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    pub serial: u64,
    /// What it is about.
    pub ids: Vec<OperationId>,
}

/// Leaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quitting {
    pub since: Instant,
}

/// The whole screen.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, not states of one machine"
)]
#[derive(Clone, Debug)]
pub struct Model {
    pub environment: Environment,
    pub person: Person,
    pub access: Access,
    pub theme: Theme,
    pub keymap: Keymap,
    pub zone: FixedOffset,
    pub times: Times,
    pub refresh: Duration,
    pub second: Duration,
    pub bell: bool,
    pub templates: Vec<String>,
    pub follow: bool,
    pub now: Instant,
    pub size: (u16, u16),
    pub tab: Tab,
    /// The board that is shown instead of the list, if one is.
    pub board: Option<Board>,
    pub boards: Boards,
    /// How much was closed lately.
    pub pulse: Pulse,
    pub filter: Filter,
    /// The filter as written.
    pub filter_text: String,
    pub filter_edit: Option<FilterEdit>,
    pub sort: Sort,
    pub ascending: bool,
    pub list: List,
    pub counts: Option<Counts>,
    pub tools: BTreeMap<ToolName, Terms>,
    pub engines: Engines,
    pub standing: Vec<Standing>,
    pub reading: Reading,
    pub focus: Focus,
    pub detail: DetailPane,
    pub dialog: Option<Dialog>,
    /// A text that waits for esc: why something was refused, a link, a packet.
    pub popup: Option<Pager>,
    /// The `:` line, while it is open.
    pub palette: Option<Palette>,
    /// The menu that is open.
    pub menu: Option<Menu>,
    /// Marked rows: for copying, export and lookups, never for closing (U18). They are ids, so they
    /// outlast every refresh, sort, filter and list, until esc.
    pub marks: BTreeSet<OperationId>,
    /// How far the help is scrolled, while it is open.
    pub help: Option<usize>,
    pub notice: Option<Notice>,
    pub health: EngineHealth,
    pub scoreboard: Vec<String>,
    pub rung: Rung,
    /// Keys of an unfinished sequence.
    pub keys: Vec<Key>,
    /// ctrl-c was pressed once.
    pub interrupted: bool,
    pub quitting: Option<Quitting>,
    /// Moves with every change that can be seen; a frame is drawn when it moved.
    pub revision: u64,
    /// Serial of the latest question to the gate.
    pub serial: u64,
    /// The latest text that was asked for: a link, a packet, JSON.
    pub telling: Telling,
}

impl Model {
    /// The screen before anything was read.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let mut model = Self {
            environment: setup.environment,
            person: setup.person,
            access: setup.access,
            theme: setup.theme,
            keymap: setup.keymap,
            zone: setup.zone,
            times: setup.times,
            refresh: setup.refresh,
            second: setup.second,
            bell: setup.bell,
            templates: setup.templates,
            follow: setup.follow,
            now: setup.now,
            size: setup.size,
            tab: Tab::Review,
            board: None,
            boards: Boards::default(),
            pulse: Pulse::default(),
            filter: Filter::default(),
            filter_text: String::new(),
            filter_edit: None,
            sort: Sort::default(),
            ascending: false,
            list: List::new(0, setup.follow),
            counts: None,
            tools: BTreeMap::new(),
            engines: Engines::default(),
            standing: Vec::new(),
            reading: Reading::default(),
            focus: Focus::List,
            detail: DetailPane::default(),
            dialog: None,
            popup: None,
            palette: None,
            menu: None,
            marks: BTreeSet::new(),
            help: None,
            notice: None,
            health: EngineHealth::default(),
            scoreboard: Vec::new(),
            rung: Rung::default(),
            keys: Vec::new(),
            interrupted: false,
            quitting: None,
            revision: 1,
            serial: 0,
            telling: Telling::default(),
        };
        model.fit();
        model
    }

    /// Gives the list the height that the layout has for it.
    pub fn fit(&mut self) {
        let regions = super::view::layout::of(self);
        self.list.set_height(regions.rows());
        if self.board.is_some() {
            let height = usize::from(regions.board.height.saturating_sub(1));
            self.boards.queue.list.set_height(height);
            self.boards.audit.list.set_height(height);
        }
    }

    /// Says `text` on the lower rule for eight seconds.
    pub fn say(&mut self, role: Role, text: impl Into<String>) {
        self.notice = Some(Notice {
            text: text.into(),
            role,
            until: later(self.now, self.second.saturating_mul(8)),
        });
        self.touch();
    }

    /// Something that can be seen changed.
    pub fn touch(&mut self) {
        self.revision = self.revision.wrapping_add(1);
    }

    /// The part of the screen that has the keys: what lies over the others has them all (U9).
    #[must_use]
    pub fn context(&self) -> Context {
        if self.dialog.is_some() {
            Context::Dialog
        } else if self.popup.is_some() {
            Context::Pager
        } else if self.palette.is_some() {
            Context::Palette
        } else if self.menu.is_some() {
            Context::Menu
        } else if self.help.is_some() {
            Context::Help
        } else if self.filter_edit.is_some() {
            Context::Filter
        } else {
            self.page()
        }
    }

    /// The page below everything that lies over it.
    #[must_use]
    pub fn page(&self) -> Context {
        match self.focus {
            Focus::List if self.board.is_some() => Context::Board,
            Focus::List => Context::List,
            Focus::Detail => Context::Detail,
        }
    }

    /// Whether something is about the row under the cursor, so that no row may move (U3).
    #[must_use]
    pub fn holds_still(&self) -> bool {
        self.dialog.is_some() || self.palette.is_some() || self.menu.is_some()
    }

    /// The query of the present list, from its head.
    #[must_use]
    pub fn query(&self) -> PageQuery {
        PageQuery {
            tab: self.tab,
            filter: self.filter.clone(),
            sort: self.sort,
            // Review has its own order.
            ascending: self.ascending && self.tab != Tab::Review,
            limit: PAGE,
            budget: Some(SEARCH),
            ..PageQuery::default()
        }
    }

    /// When what the screen shows was read: the older of the list's and the board's reading. A report
    /// carries its own.
    #[must_use]
    pub fn as_of(&self) -> Option<Instant> {
        let list = self.reading.as_of?;
        let board = self.board.filter(|b| *b != Board::Report);
        let board = board.and_then(|b| self.boards.reading(b).as_of);
        Some(board.map_or(list, |b| b.min(list)))
    }

    /// Whether the head of what is shown is being read.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        let board = self.board.filter(|b| *b != Board::Report);
        self.reading.in_flight || board.is_some_and(|b| self.boards.reading(b).in_flight)
    }

    /// Whether what belongs on the screen after the last key is still on its way. What is read ahead, or
    /// anew because something changed, is not waited for.
    #[must_use]
    pub fn waits(&self) -> bool {
        let list = match self.board {
            None => self.list.awaits() || self.detail.in_flight,
            Some(Board::Queue) => self.boards.queue.list.awaits(),
            Some(Board::Audit) => self.boards.audit.list.awaits(),
            Some(b @ (Board::Engine | Board::Report)) => {
                self.boards.reading(b).as_of.is_none() && self.boards.reading(b).in_flight
            }
        };
        list && self.reading.problem.is_none()
    }

    /// The tool under the cursor of the engine board.
    #[must_use]
    pub fn tool_under_cursor(&self) -> Option<ToolName> {
        let engine = self.board == Some(Board::Engine);
        self.boards.engine.cursor.clone().filter(|_| engine)
    }

    /// How old what the screen shows is.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        let Some(as_of) = self.as_of() else {
            return Freshness::Never;
        };
        let age = since(as_of, self.now);
        if age > self.refresh.saturating_mul(10) {
            Freshness::Old
        } else if age > self.refresh.saturating_mul(3) {
            Freshness::Stale
        } else {
            Freshness::Fresh
        }
    }

    /// The writer of instants.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp {
            times: self.times,
            zone: self.zone,
            now: self.now,
        }
    }

    /// The tool's own word for a succeeded row.
    #[must_use]
    pub fn word(&self, tool: &ToolName) -> &'static str {
        let terms = self.tools.get(tool);
        terms.map_or("succeeded", |t| t.policy.words.success)
    }

    /// What the tool's effect is called in a sentence.
    #[must_use]
    pub fn noun(&self, tool: &ToolName) -> &'static str {
        let terms = self.tools.get(tool);
        terms.map_or("object", |t| t.policy.words.noun)
    }

    /// From when the row may be closed as failed, where that lies ahead (I19).
    #[must_use]
    pub fn decidable_at(&self, row: &OperationRow) -> Option<Instant> {
        let last = row.last_authorised_at?;
        let at = self.tools.get(&row.tool)?.profile.decidable_at(last);
        (at > self.now && row.effect != Effect::NotStarted).then_some(at)
    }

    /// The detail, if it is that of the operation under the cursor.
    #[must_use]
    pub fn detail_view(&self) -> Option<&DetailView> {
        let view = self.detail.view.as_deref()?;
        (Some(&view.detail.op.row.id) == self.list.cursor()).then_some(view)
    }
}
