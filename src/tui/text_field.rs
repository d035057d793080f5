//! One line of text being written.
//!
//! Owns: editing, its limit, and that nothing hostile gets in. Never: draws itself or commits
//! anything; Enter and Tab belong to whoever holds the field. Tests: `tests/tui_safety.rs`.

use tui_textarea::{CursorMove, TextArea};

use super::format;
use super::keymap::{Code, Key};

/// Most characters of a note.
const MAX_CHARS: usize = 500;

/// A line of text with a caret.
#[derive(Clone, Debug, Default)]
pub struct TextField {
    area: TextArea<'static>,
}

impl TextField {
    /// A field that holds `text` already.
    #[must_use]
    pub fn with(text: &str) -> Self {
        let mut field = Self::default();
        field.paste(text);
        field
    }

    /// What is written.
    #[must_use]
    pub fn text(&self) -> &str {
        self.area.lines().first().map_or("", String::as_str)
    }

    /// Columns before the caret.
    #[must_use]
    pub fn caret(&self) -> usize {
        let at = self.area.cursor().1;
        let before: String = self.text().chars().take(at).collect();
        format::width(&before)
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.area = TextArea::default();
    }

    /// Takes a key, and says whether it was one for a text field.
    pub fn key(&mut self, key: Key) -> bool {
        match (key.code, key.ctrl) {
            _ if key.alt => return false,
            (Code::Char(c), false) => self.insert(c),
            (Code::Backspace, _) | (Code::Char('h'), true) => {
                self.area.delete_char();
            }
            (Code::Delete, _) => {
                self.area.delete_next_char();
            }
            (Code::Char('w'), true) => {
                self.area.delete_word();
            }
            (Code::Char('u'), true) => {
                self.area.delete_line_by_head();
            }
            (Code::Char('k'), true) => {
                self.area.delete_line_by_end();
            }
            (Code::Left, _) => self.area.move_cursor(CursorMove::Back),
            (Code::Right, _) => self.area.move_cursor(CursorMove::Forward),
            (Code::Home, _) | (Code::Char('a'), true) => self.area.move_cursor(CursorMove::Head),
            (Code::End, _) | (Code::Char('e'), true) => self.area.move_cursor(CursorMove::End),
            _ => return false,
        }
        true
    }

    /// Takes pasted text: one line, without anything that acts.
    pub fn paste(&mut self, text: &str) {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for c in line.chars().take(MAX_CHARS) {
            self.insert(c);
        }
    }

    fn insert(&mut self, c: char) {
        if self.text().chars().count() >= MAX_CHARS {
            return;
        }
        // Line breaks come out of `clean` as visible marks, so the field stays one line.
        for c in format::clean(c.encode_utf8(&mut [0; 4])).chars() {
            self.area.insert_char(c);
        }
    }
}
