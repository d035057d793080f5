//! The key map: one table that feeds dispatch, hints, help and the README.
//!
//! Owns: which key means what in which part of the screen. Never: carries anything out. Two actions
//! on one key is a start-up error. Tests: `tests/tui_rules.rs`.

mod table;

use super::action::Action;

pub use table::TABLE;

/// The key without its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    Char(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// A key that nothing is bound to.
    Other,
}

/// A key press, freed of what terminals report differently. Shift is part of the character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
}

impl Key {
    /// The key without modifiers.
    #[must_use]
    pub fn plain(code: Code) -> Self {
        Self {
            code,
            ctrl: false,
            alt: false,
        }
    }

    /// The character it would write into a text field.
    #[must_use]
    pub fn text(self) -> Option<char> {
        match self.code {
            Code::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }

    /// Reads `j`, `L`, `ctrl-d`, `enter`, `space`.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let (ctrl, word) = match word.strip_prefix("ctrl-") {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let code = match word {
            "enter" => Code::Enter,
            "esc" => Code::Esc,
            "tab" => Code::Tab,
            "backtab" => Code::BackTab,
            "backspace" => Code::Backspace,
            "delete" => Code::Delete,
            "up" => Code::Up,
            "down" => Code::Down,
            "left" => Code::Left,
            "right" => Code::Right,
            "home" => Code::Home,
            "end" => Code::End,
            "pgup" => Code::PageUp,
            "pgdn" => Code::PageDown,
            "space" => Code::Char(' '),
            _ => {
                let mut chars = word.chars();
                let first = chars.next()?;
                if chars.next().is_some() {
                    return None;
                }
                Code::Char(first)
            }
        };
        Some(Self {
            code,
            ctrl,
            alt: false,
        })
    }
}

/// The part of the screen that has the keys. A dialog has them all (U9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum Context {
    List,
    Detail,
    Filter,
    Dialog,
    Help,
    /// Queue, Engine, Audit, Report.
    Board,
    /// The `:` line.
    Palette,
    /// A short list to choose from: sort, snooze.
    Menu,
    /// A text over everything else.
    Pager,
}

/// One line of the key map.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub action: Action,
    /// Alternatives; each is one key or several separated by spaces.
    pub keys: &'static [&'static str],
    pub on: &'static [Context],
    /// For the help page and the README.
    pub help: &'static str,
    /// For the bottom line; empty where it is not shown there.
    pub hint: &'static str,
}

impl Binding {
    /// Its keys as help writes them; without one, its name on the `:` line.
    #[must_use]
    pub fn spelled(&self) -> String {
        if self.keys.is_empty() {
            return format!(":{}", self.action.name());
        }
        let keys: Vec<String> = self.keys.iter().map(|k| spelled(k)).collect();
        keys.join(" ")
    }
}

/// Two actions on one key, or a key that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    #[error("the key {keys:?} means both {first:?} and {second:?} in the {context:?} part")]
    Clash {
        context: Context,
        keys: String,
        first: Action,
        second: Action,
    },
    #[error("{0:?} is not a key")]
    NotAKey(String),
}

/// What a key means after those pressed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Action(Action),
    /// The beginning of a longer sequence.
    Pending,
    Nothing,
}

/// The key map, ready for dispatch.
#[derive(Clone, Debug)]
pub struct Keymap {
    chords: Vec<(Context, Vec<Key>, Action)>,
}

impl Keymap {
    /// The built-in table.
    ///
    /// # Errors
    /// Two actions on one key.
    pub fn new() -> Result<Self, KeymapError> {
        Self::of(TABLE)
    }

    /// Any table.
    ///
    /// # Errors
    /// Two actions on one key in one part of the screen (one sequence beginning another counts), or
    /// a word that is no key.
    pub fn of(table: &[Binding]) -> Result<Self, KeymapError> {
        let mut chords: Vec<(Context, Vec<Key>, Action)> = Vec::new();
        for binding in table {
            for spelled in binding.keys {
                let chord: Option<Vec<Key>> = spelled.split(' ').map(Key::parse).collect();
                let chord = chord.ok_or_else(|| KeymapError::NotAKey((*spelled).to_owned()))?;
                for context in binding.on {
                    let clash = chords.iter().find(|(c, other, _)| {
                        c == context && (other.starts_with(&chord) || chord.starts_with(other))
                    });
                    if let Some((_, _, first)) = clash {
                        return Err(KeymapError::Clash {
                            context: *context,
                            keys: (*spelled).to_owned(),
                            first: *first,
                            second: binding.action,
                        });
                    }
                    chords.push((*context, chord.clone(), binding.action));
                }
            }
        }
        Ok(Self { chords })
    }

    /// The meaning of `keys`, the last of them just pressed.
    #[must_use]
    pub fn meaning(&self, context: Context, keys: &[Key]) -> Meaning {
        let mut pending = false;
        for (c, chord, action) in &self.chords {
            if *c == context && chord.as_slice() == keys {
                return Meaning::Action(*action);
            }
            pending |= *c == context && chord.starts_with(keys);
        }
        if pending {
            Meaning::Pending
        } else {
            Meaning::Nothing
        }
    }
}

/// How a key is written on the screen: `g g` becomes `gg`.
#[must_use]
pub fn spelled(keys: &str) -> String {
    if keys.split(' ').all(|k| k.chars().count() == 1) {
        keys.replace(' ', "")
    } else {
        keys.replace("backtab", "shift-tab")
    }
}

/// The hints of a part of the screen: action, key and word.
pub fn hints(context: Context) -> impl Iterator<Item = (Action, String, &'static str)> {
    TABLE
        .iter()
        .filter(move |b| !b.hint.is_empty() && b.on.contains(&context))
        .filter_map(|b| Some((b.action, spelled(b.keys.first()?), b.hint)))
}

/// Keys and what they do, for the bindings that `belongs` chooses; neighbours with one text share a
/// line.
pub fn lines(belongs: impl Fn(&Binding) -> bool) -> Vec<(String, &'static str)> {
    let mut out: Vec<(String, &'static str)> = Vec::new();
    for binding in TABLE.iter().filter(|b| belongs(b)) {
        let keys = binding.spelled();
        match out.last_mut().filter(|(_, help)| *help == binding.help) {
            Some((all, _)) => {
                all.push(' ');
                all.push_str(&keys);
            }
            None => out.push((keys, binding.help)),
        }
    }
    out
}

/// The key map for the README: keys and what they do.
#[must_use]
pub fn key_table() -> Vec<(String, String)> {
    let all = lines(|_| true).into_iter();
    all.map(|(keys, help)| (keys, help.to_owned())).collect()
}
