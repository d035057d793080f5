//! Terminal events in our own words.
//!
//! Owns: the one normaliser of presses, repeats and releases (U16), and telling a burst from typing
//! (U14). Never: decides what a key means. Tests: `tests/tui_rules.rs`.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::keymap::{Code, Key};
use super::message::Message;

/// More writing keys than this in one read were pasted, not typed.
const BURST: usize = 16;

/// The messages of all events that were read at once.
#[must_use]
pub fn messages(events: Vec<Event>) -> Vec<Message> {
    let writing = events
        .iter()
        .filter(|e| matches!(e, Event::Key(k) if key(k).is_some_and(writes)))
        .count();
    let burst = writing > BURST;
    events
        .into_iter()
        .filter_map(|event| match event {
            Event::Key(event) => Some(Message::Key {
                key: key(&event)?,
                repeat: event.kind == KeyEventKind::Repeat,
                burst,
            }),
            Event::Paste(text) => Some(Message::Paste(text)),
            Event::Resize(width, height) => Some(Message::Resize { width, height }),
            // The mouse is never captured, and whether somebody looks changes nothing (U39, U57).
            Event::Mouse(_) | Event::FocusGained | Event::FocusLost => None,
        })
        .collect()
}

/// Motion may be held down at any speed; letters and Enter may not.
fn writes(key: Key) -> bool {
    let motion = matches!(key.code, Code::Char('j' | 'k'));
    matches!(key.code, Code::Char(_) | Code::Enter) && !key.ctrl && !motion
}

/// The key of a press or repeat; a release is none.
#[must_use]
pub fn key(event: &KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let code = match event.code {
        KeyCode::Char(c) => Code::Char(c),
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Tab if event.modifiers.contains(KeyModifiers::SHIFT) => Code::BackTab,
        KeyCode::Tab => Code::Tab,
        KeyCode::BackTab => Code::BackTab,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        _ => Code::Other,
    };
    Some(Key {
        code,
        ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
        alt: event.modifiers.contains(KeyModifiers::ALT),
    })
}
