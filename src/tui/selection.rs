//! A list and its one cursor.
//!
//! Owns: which rows are shown in which order, and that the cursor is an id, never a position (U1–U5):
//! of an operation, a tool call or an audit entry. Rows are updated where they stand; new ones are announced and shown when asked
//! for; one that leaves stays as a tombstone while the cursor is on it; the selected row keeps its
//! line on the screen. Never: reads the ledger. Tests: `tests/tui_properties.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::message::{Edge, Listed, Mark, Page, Tab};
use crate::domain::Instant;
use crate::domain::ids::OperationId;
use crate::domain::operation::{OperationRow, Status};

/// Something that can stand in a list.
pub trait Row: Clone {
    /// What it is called for as long as it exists.
    type Id: Clone + Ord + std::fmt::Debug;

    fn id(&self) -> Self::Id;

    /// Whether it is called so.
    fn is(&self, id: &Self::Id) -> bool;
}

impl Row for Listed {
    type Id = OperationId;

    fn id(&self) -> OperationId {
        self.row.id.clone()
    }

    fn is(&self, id: &OperationId) -> bool {
        self.row.id == *id
    }
}

/// Rows of one page: more than a screen, and no more to read at every change than needed.
pub const PAGE: u32 = 60;
/// Rows that a reading looks at for a filter that no index answers.
pub const SEARCH: u32 = 4_000;
/// The same for further rows, which nothing else waits for.
pub const SEARCH_ON: u32 = 20_000;
/// Most rows kept; beyond it the far end is dropped and read again when needed.
pub const MAX_ROWS: usize = 1_000;

/// A row on the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<R = Listed> {
    pub listed: R,
    /// It left the list and stays only because the cursor is on it.
    pub gone: bool,
}

impl<R> Entry<R> {
    fn new(listed: R) -> Self {
        let gone = false;
        Self { listed, gone }
    }
}

impl Entry {
    /// Its operation.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        &self.listed.row.id
    }
}

/// What a reading brought, in list order.
#[derive(Clone, Debug)]
pub struct Batch<R> {
    pub rows: Vec<R>,
    /// More may lie behind them.
    pub more: bool,
    /// Where the ledger ended its search, if that is not at the last row.
    pub next: Option<Mark>,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            more: false,
            next: None,
        }
    }
}

impl From<Page> for Batch<Listed> {
    fn from(page: Page) -> Self {
        Self {
            rows: page.rows,
            more: page.more,
            next: page.next,
        }
    }
}

/// Further rows that a list needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want<I = OperationId> {
    pub edge: Edge,
    /// Behind this row, or
    pub after: Option<I>,
    /// behind this place, which goes first.
    pub from: Option<Mark>,
}

/// A list as it is on the screen; of operations, where nothing else is said.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, not states of one machine"
)]
#[derive(Clone, Debug)]
pub struct List<R: Row = Listed> {
    entries: Vec<Entry<R>>,
    cursor: Option<R::Id>,
    /// Where the cursor goes with the first page, if that has it.
    wish: Option<R::Id>,
    /// The row to begin at, wherever in the list it is.
    seek: Option<R::Id>,
    offset: usize,
    height: usize,
    /// Nobody has touched the list: it moves by itself and the first row is marked.
    pub follow: bool,
    /// When the first row last changed while following.
    pub moved_at: Option<Instant>,
    /// Rows that would be shown by [`List::take_in`].
    pub new: usize,
    latest: Batch<R>,
    pub more_above: bool,
    pub more_below: bool,
    /// Where the ledger ended its search at each end, if that is not at the row that stands there.
    above: Option<Mark>,
    below: Option<Mark>,
    /// A further page is on its way.
    pub fetching: Option<Edge>,
    /// Something was read since the list was chosen.
    pub loaded: bool,
}

impl<R: Row> Default for List<R> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            cursor: None,
            wish: None,
            seek: None,
            offset: 0,
            height: 0,
            follow: false,
            moved_at: None,
            new: 0,
            latest: Batch::default(),
            more_above: false,
            more_below: false,
            above: None,
            below: None,
            fetching: None,
            loaded: false,
        }
    }
}

impl<R: Row> List<R> {
    /// An empty list that waits for its first page.
    #[must_use]
    pub fn new(height: usize, follow: bool) -> Self {
        Self {
            height,
            follow,
            ..Self::default()
        }
    }

    /// The same, with the cursor to be put on `cursor` if the list has it.
    #[must_use]
    pub fn at(height: usize, wish: Option<R::Id>) -> Self {
        Self {
            wish,
            height,
            ..Self::default()
        }
    }

    /// The same, beginning at `seek` however far from the head that is.
    #[must_use]
    pub fn around(height: usize, seek: R::Id) -> Self {
        Self {
            seek: Some(seek),
            height,
            ..Self::default()
        }
    }

    /// Rows on the screen.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    #[must_use]
    pub fn entries(&self) -> &[Entry<R>] {
        &self.entries
    }

    /// The id under the cursor.
    #[must_use]
    pub fn cursor(&self) -> Option<&R::Id> {
        self.cursor.as_ref()
    }

    /// The position of the cursor among the entries.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        let cursor = self.cursor.as_ref()?;
        self.position(cursor)
    }

    fn position(&self, id: &R::Id) -> Option<usize> {
        self.entries.iter().position(|e| e.listed.is(id))
    }

    /// The entry under the cursor: what `enter` opens and what is drawn reversed (U5).
    #[must_use]
    pub fn current(&self) -> Option<&Entry<R>> {
        self.index().and_then(|i| self.entries.get(i))
    }

    /// The first entry on the screen.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The entries on the screen.
    #[must_use]
    pub fn visible(&self) -> &[Entry<R>] {
        let end = self
            .offset
            .saturating_add(self.height)
            .min(self.entries.len());
        self.entries.get(self.offset..end).unwrap_or_default()
    }

    /// Ids of everything shown, to be read again; with the row that is sought.
    #[must_use]
    pub fn ids(&self) -> Vec<R::Id> {
        let shown = self.entries.iter().map(|e| e.listed.id());
        shown.chain(self.seek.clone()).collect()
    }

    /// How many rows the screen has for it.
    pub fn set_height(&mut self, height: usize) {
        self.height = height;
        self.show_cursor();
    }

    /// Takes a reading of the head of the list. `now_of` brings a shown row that is not in the page up
    /// to date and says whether it left the list; `locked`: a dialog is open, so nothing moves.
    pub fn renew(
        &mut self,
        batch: Batch<R>,
        locked: bool,
        now: Instant,
        mut now_of: impl FnMut(&mut R) -> bool,
    ) {
        let untouched = self.entries.iter().all(|e| e.gone) && self.cursor.is_none();
        let adopt = !self.loaded || untouched || self.follow;
        let searched = self.loaded && self.entries.is_empty() && batch.rows.is_empty();
        self.loaded = true;
        if searched && batch.more {
            // The search is further down already, or at its end.
            return;
        }
        if adopt && !locked {
            self.adopt(batch, now);
            return;
        }
        let rows = &batch.rows;
        let latest: BTreeMap<R::Id, &R> = rows.iter().map(|l| (l.id(), l)).collect();
        for entry in &mut self.entries {
            entry.gone = match latest.get(&entry.listed.id()) {
                Some(listed) => {
                    entry.listed = (*listed).clone();
                    false
                }
                None => now_of(&mut entry.listed),
            };
        }
        self.new = self.count_new(rows);
        self.latest = batch;
        if !locked {
            self.bury();
        }
    }

    /// Begins with `row` alone; what stands above and below is read next.
    fn stand_on(&mut self, row: R) {
        self.cursor = Some(row.id());
        self.entries = vec![Entry::new(row)];
        (self.offset, self.new) = (0, 0);
        (self.more_above, self.more_below, self.loaded) = (true, true, true);
    }

    /// New rows: in the page, not shown, and not merely behind the last row that is shown.
    fn count_new(&self, rows: &[R]) -> usize {
        if self.more_above {
            return 0;
        }
        let shown: BTreeSet<R::Id> = self.entries.iter().map(|e| e.listed.id()).collect();
        let last_shown = rows.iter().rposition(|l| shown.contains(&l.id()));
        let until = if self.more_below {
            last_shown.map_or(0, |i| i + 1)
        } else {
            rows.len()
        };
        rows.iter()
            .take(until)
            .filter(|l| !shown.contains(&l.id()))
            .count()
    }

    /// Shows the list as the ledger has it now; the cursor stays on its row while that exists.
    pub fn take_in(&mut self, now: Instant) {
        let latest = std::mem::take(&mut self.latest);
        if !latest.rows.is_empty() {
            self.adopt(latest, now);
        }
    }

    fn adopt(&mut self, batch: Batch<R>, now: Instant) {
        let (old, line) = (self.index().unwrap_or(0), self.line());
        self.entries = batch.rows.into_iter().map(Entry::new).collect();
        (self.more_above, self.more_below, self.new) = (false, batch.more, 0);
        (self.above, self.below) = (None, batch.next);
        self.latest = Batch::default();
        let first = self.entries.first().map(|e| e.listed.id());
        if let Some(wish) = self.wish.take() {
            self.cursor = Some(wish);
        }
        if self.follow {
            if self.cursor.is_some() && self.cursor != first {
                self.moved_at = Some(now);
            }
            self.cursor = first;
            self.offset = 0;
        } else if self.index().is_some() {
            self.keep_line(line);
        } else {
            let nearest = old.min(self.entries.len().saturating_sub(1));
            self.cursor = self.entries.get(nearest).map(|e| e.listed.id());
            self.keep_line(line);
        }
        self.show_cursor();
    }

    /// Removes what left the list, except under the cursor.
    pub fn bury(&mut self) {
        let line = self.line();
        let cursor = self.cursor.clone();
        self.entries
            .retain(|e| !e.gone || Some(e.listed.id()) == cursor);
        self.keep_line(line);
        self.show_cursor();
    }

    /// The screen line of the cursor.
    #[must_use]
    pub fn line(&self) -> usize {
        self.index().unwrap_or(0).saturating_sub(self.offset)
    }

    /// Scrolls so that the cursor is on `line` again (U3).
    fn keep_line(&mut self, line: usize) {
        if let Some(index) = self.index() {
            self.offset = index.saturating_sub(line);
        }
    }

    fn show_cursor(&mut self) {
        let height = self.height.max(1);
        if let Some(index) = self.index() {
            self.offset = self
                .offset
                .min(index)
                .max((index + 1).saturating_sub(height));
        }
        self.offset = self.offset.min(self.entries.len().saturating_sub(1));
    }

    /// Moves the cursor by so many rows; the person has the list in hand from now on.
    pub fn step(&mut self, by: isize) {
        self.follow = false;
        self.wish = None;
        if self.entries.is_empty() {
            return;
        }
        let last = self.entries.len() - 1;
        let target = self
            .index()
            .unwrap_or(0)
            .saturating_add_signed(by)
            .min(last);
        self.cursor = self.entries.get(target).map(|e| e.listed.id());
        self.bury();
    }

    /// Half the screen, at least one row.
    #[must_use]
    pub fn half(&self) -> isize {
        isize::try_from(self.height / 2).unwrap_or(1).max(1)
    }

    /// A screen less one row, so that one row stays in view.
    #[must_use]
    pub fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(1))
            .unwrap_or(1)
            .max(1)
    }

    /// To the first row; true where the rows above it have to be read again.
    pub fn to_top(&mut self, now: Instant) -> bool {
        if self.more_above {
            return true;
        }
        self.follow = false;
        self.take_in(now);
        self.cursor = self.entries.first().map(|e| e.listed.id());
        self.offset = 0;
        self.bury();
        false
    }

    /// To the last row that is loaded.
    pub fn to_bottom(&mut self) {
        self.step(isize::MAX);
    }

    /// Whether what the cursor was sent to is still on its way: the first page, or the end.
    #[must_use]
    pub fn awaits(&self) -> bool {
        !self.loaded || self.fetching == Some(Edge::Last)
    }

    /// Which further rows are needed now, and behind what they begin.
    #[must_use]
    pub fn wants(&self) -> Option<Want<R::Id>> {
        if self.fetching.is_some() {
            return None;
        }
        let index = self.index().unwrap_or(0);
        let near_end = index + self.height * 2 >= self.entries.len();
        let near_start = index < self.height * 2;
        let mut alive = self.entries.iter().filter(|e| !e.gone);
        let (edge, row, mark) = if self.more_below && near_end {
            (Edge::Below, alive.next_back(), &self.below)
        } else if self.more_above && near_start {
            (Edge::Above, alive.next(), &self.above)
        } else {
            return None;
        };
        let want = Want {
            edge,
            after: row.map(|e| e.listed.id()),
            from: mark.clone(),
        };
        (want.after.is_some() || want.from.is_some()).then_some(want)
    }

    /// Takes further rows, in list order.
    pub fn extend(&mut self, edge: Edge, batch: Batch<R>) {
        self.fetching = None;
        let known: BTreeSet<R::Id> = self.ids().into_iter().collect();
        let Batch { rows, more, next } = batch;
        let fresh = rows
            .into_iter()
            .filter(|l| edge == Edge::Last || !known.contains(&l.id()))
            .map(Entry::new);
        let line = self.line();
        match edge {
            Edge::Below => {
                self.entries.extend(fresh);
                (self.more_below, self.below) = (more, next);
                let surplus = self.entries.len().saturating_sub(MAX_ROWS).min(self.offset);
                if surplus > 0 {
                    self.entries.drain(..surplus);
                    (self.more_above, self.above, self.new) = (true, None, 0);
                }
            }
            Edge::Above => {
                let mut entries: Vec<Entry<R>> = fresh.collect();
                entries.append(&mut self.entries);
                if entries.len() > MAX_ROWS {
                    entries.truncate(MAX_ROWS);
                    (self.more_below, self.below) = (true, None);
                }
                self.entries = entries;
                (self.more_above, self.above) = (more, next);
            }
            Edge::Last => {
                self.entries = fresh.collect();
                (self.more_above, self.more_below, self.new) = (more, false, 0);
                (self.above, self.below) = (next, None);
                self.follow = false;
                self.cursor = self.entries.last().map(|e| e.listed.id());
            }
        }
        self.keep_line(line);
        self.show_cursor();
    }
}

impl List {
    /// Everything shown, to be read again where it moved: the ids, and the last audit entry of each;
    /// and the row that is sought.
    #[must_use]
    pub fn seen(&self) -> Vec<(OperationId, i64)> {
        let seen = |e: &Entry| (e.id().clone(), e.listed.row.audit_seq);
        let sought = self.seek.iter().map(|id| (id.clone(), 0));
        self.entries.iter().map(seen).chain(sought).collect()
    }

    /// Takes a reading of the head of the list, and those shown rows that moved and are not in it.
    pub fn refresh(
        &mut self,
        tab: Tab,
        page: Page,
        others: Vec<OperationRow>,
        locked: bool,
        now: Instant,
    ) {
        let others: BTreeMap<OperationId, OperationRow> =
            others.into_iter().map(|r| (r.id.clone(), r)).collect();
        match self.seek.take() {
            Some(id) if page.rows.iter().any(|l| l.is(&id)) => self.wish = Some(id),
            Some(id) => {
                if let Some(row) = others.get(&id) {
                    self.stand_on(Listed {
                        row: row.clone(),
                        driven: false,
                        sessions: Vec::new(),
                    });
                }
            }
            None => {}
        }
        let whole = !page.more && !self.more_above;
        self.renew(page.into(), locked, now, |listed| {
            if let Some(row) = others.get(&listed.row.id) {
                listed.row = row.clone();
            }
            // Beyond the page it may still be in the list: only its status can tell.
            whole || !fits(tab, &listed.row)
        });
    }
}

/// Whether a row's status belongs into a list.
fn fits(tab: Tab, row: &OperationRow) -> bool {
    match tab {
        Tab::All => true,
        Tab::Open => row.status == Status::Open,
        Tab::Unknown => row.status == Status::Unknown,
        Tab::Succeeded => row.status == Status::Succeeded,
        Tab::Failed => row.status == Status::Failed,
        Tab::Review => row.contradicted.is_some() || !row.status.is_closed(),
    }
}
