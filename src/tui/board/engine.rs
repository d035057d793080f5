//! Engines, tools and providers as the ledger has them.

use std::collections::BTreeSet;

use super::BoardReading;
use crate::domain::ids::{ProviderName, ToolName};
use crate::domain::policy::Terms;
use crate::domain::{Instant, since};
use crate::ledger::{BucketSeen, EngineSeen, EventCounts, NoticeCounts, ToolState};

/// What the ledger knows of engines and of the limits they share.
#[derive(Clone, Debug, Default)]
pub struct EngineView {
    /// When it was read; waits are counted from here.
    pub as_of: Option<Instant>,
    /// Newest first, those that live before those that are gone.
    pub engines: Vec<EngineSeen>,
    /// By name.
    pub tools: Vec<ToolView>,
    pub buckets: Vec<BucketSeen>,
    /// What people outside have to hear.
    pub notices: NoticeCounts,
    /// What the provider told.
    pub events: EventCounts,
}

/// A tool that is configured here, or that the ledger has something of.
#[derive(Clone, Debug)]
pub struct ToolView {
    pub tool: ToolName,
    /// Empty: it was never paused and its circuit is closed.
    pub state: Option<ToolState>,
    /// Empty: it is not configured in this process.
    pub terms: Option<Terms>,
}

impl EngineView {
    /// The wait for the next token of a rate, in the reading's own time; zero where one is there.
    #[must_use]
    pub fn wait(&self, kind: &str, name: &str) -> std::time::Duration {
        let bucket = self.buckets.iter().find(|b| {
            let (of, named) = b.name.split_once(':').unwrap_or_default();
            of == kind && named == name
        });
        match (bucket, self.as_of) {
            (Some(bucket), Some(as_of)) => since(as_of, bucket.full_at),
            _ => std::time::Duration::ZERO,
        }
    }

    /// The providers of the tools, each once, with the terms that name it.
    #[must_use]
    pub fn providers(&self) -> Vec<(&ProviderName, &Terms)> {
        let mut seen = BTreeSet::new();
        let terms = self.tools.iter().filter_map(|t| t.terms.as_ref());
        terms
            .map(|t| (&t.policy.provider, t))
            .filter(|(name, _)| seen.insert(*name))
            .collect()
    }
}

/// The board: what was read, and the tool under the cursor.
#[derive(Clone, Debug, Default)]
pub struct EngineRoom {
    pub view: EngineView,
    pub cursor: Option<ToolName>,
    /// Lines above the first one shown.
    pub scroll: usize,
    pub reading: BoardReading,
}

impl EngineRoom {
    /// Takes a reading; the cursor stays on its tool while that is there.
    pub fn take(&mut self, view: EngineView) {
        self.view = view;
        if self.index().is_none() {
            self.cursor = self.view.tools.first().map(|t| t.tool.clone());
        }
    }

    /// The tool under the cursor by its place.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        let cursor = self.cursor.as_ref()?;
        self.view.tools.iter().position(|t| t.tool == *cursor)
    }

    /// Moves the cursor by so many tools; false where there is none in that direction.
    pub fn step(&mut self, by: isize) -> bool {
        let at = self.index().unwrap_or(0);
        let target = at.checked_add_signed(by);
        let tool = target.and_then(|i| self.view.tools.get(i));
        match tool.map(|t| t.tool.clone()) {
            Some(tool) => {
                self.cursor = Some(tool);
                true
            }
            None => false,
        }
    }

    /// Puts the cursor on the first or the last tool.
    pub fn to_end(&mut self, last: bool) {
        let tools = &self.view.tools;
        let tool = if last { tools.last() } else { tools.first() };
        self.cursor = tool.map(|t| t.tool.clone());
    }
}
