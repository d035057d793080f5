//! A text over everything else: why something was refused, a link, a support packet.
//!
//! Owns: the text, how far it is scrolled, and what `y` copies of it. Never: more than a text.
//! Tests: `tests/tui_overlays.rs`.

/// A text that waits for esc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pager {
    pub title: String,
    /// Lines as they were written; the view wraps them.
    pub text: String,
    /// Lines above the first one on the screen.
    pub scroll: usize,
    /// What `y` copies, where there is something to copy.
    pub copy: Option<String>,
}

impl Pager {
    /// A text to read.
    #[must_use]
    pub fn new(title: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            text: text.into(),
            ..Self::default()
        }
    }

    /// The same, with `copy` for `y`.
    #[must_use]
    pub fn copying(self, copy: impl Into<String>) -> Self {
        Self {
            copy: Some(copy.into()),
            ..self
        }
    }
}
