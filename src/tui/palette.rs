//! The `:` line: every action of a page by its name, also those without a key.
//!
//! Owns: which actions there are, in which order, and what a few letters of a name mean. Never: runs
//! one, or knows more names than the key map. Tests: `tests/tui_overlays.rs`.

use super::action::Action;
use super::keymap::{Binding, Context, TABLE};
use super::text_field::TextField;

/// The line while it is open.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    pub field: TextField,
    /// The action under the cursor; without one the first that matches.
    chosen: Option<Action>,
}

impl Palette {
    /// What matches the letters, best first.
    #[must_use]
    pub fn commands(&self) -> Vec<&'static Binding> {
        matching(self.field.text())
    }

    /// The command that Enter would run.
    #[must_use]
    pub fn chosen(&self) -> Option<&'static Binding> {
        let commands = self.commands();
        let chosen = commands.iter().find(|b| Some(b.action) == self.chosen);
        chosen.or(commands.first()).copied()
    }

    /// Moves the cursor by so many commands, stopping at both ends.
    pub fn step(&mut self, by: isize) {
        let commands = self.commands();
        let action = self.chosen().map(|b| b.action);
        let at = commands.iter().position(|b| Some(b.action) == action);
        let last = commands.len().saturating_sub(1);
        let next = at.unwrap_or(0).saturating_add_signed(by).min(last);
        self.chosen = commands.get(next).map(|b| b.action);
    }

    /// The letters changed: the best match is the one under the cursor again.
    pub fn retyped(&mut self) {
        self.chosen = None;
    }
}

/// Every action of a page in the order of the key map, what only moves the cursor after the others.
fn all() -> Vec<&'static Binding> {
    let pages = [Context::List, Context::Detail, Context::Board];
    let mut all: Vec<&Binding> = TABLE
        .iter()
        .filter(|b| pages.iter().any(|page| b.on.contains(page)))
        .filter(|b| !matches!(b.action, Action::Palette | Action::Back))
        .collect();
    all.sort_by_key(|b| moves(b.action));
    all
}

/// What only moves the cursor: by name nobody looks for it.
fn moves(action: Action) -> bool {
    use Action as A;
    matches!(
        action,
        A::Down | A::Up | A::HalfDown | A::HalfUp | A::PageDown | A::PageUp
    ) || matches!(action, A::Top | A::Bottom | A::PrevRow | A::NextRow)
}

/// The commands that the letters of `query` may mean. What is written out in full comes first, then
/// what has the letters in its name, then what has them in its description; of these, acting ones
/// after the others, however well they match (U10).
#[must_use]
pub fn matching(query: &str) -> Vec<&'static Binding> {
    let query = query.trim().to_lowercase();
    let rank = |b: &Binding| {
        let name = b.action.name();
        if let Some(gaps) = gaps(&query, name) {
            return Some((name != query, false, b.action.acts(), gaps));
        }
        let told = b.help.to_lowercase().contains(&query);
        told.then_some((true, true, b.action.acts(), 0))
    };
    let all = all().into_iter();
    let mut found: Vec<_> = all.filter_map(|b| Some((rank(b)?, b))).collect();
    // Stable, so that equals keep the order of the key map.
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, b)| b).collect()
}

/// How many letters of `name` lie before and between those of `query`, which has to be within it in
/// order; spaces in the query stand for the hyphens of names.
fn gaps(query: &str, name: &str) -> Option<usize> {
    let mut rest = name.chars();
    let mut gaps = 0;
    for wanted in query.chars().map(|c| if c == ' ' { '-' } else { c }) {
        gaps += rest.position(|c| c == wanted)?;
    }
    Some(gaps)
}
