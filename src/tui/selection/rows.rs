//! What stands in a list: rows with an id, pages of them, and which further ones are wanted.

use super::super::message::{Edge, Listed, Mark, Page};
use crate::domain::ids::OperationId;

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

/// A row on the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<R = Listed> {
    pub listed: R,
    /// It left the list and stays only because the cursor is on it.
    pub gone: bool,
}

impl<R> Entry<R> {
    pub(super) fn new(listed: R) -> Self {
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

/// A page of whatever the list is of.
#[derive(Clone, Debug)]
pub struct Rows<R> {
    pub rows: Vec<R>,
    /// More may follow, and
    pub more: bool,
    /// from there, if that is not behind the last row.
    pub next: Option<Mark>,
}

impl<R> Default for Rows<R> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            more: false,
            next: None,
        }
    }
}

impl From<Page> for Rows<Listed> {
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
