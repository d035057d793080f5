//! The escape sequences in what a program wrote to its terminal.

use std::collections::BTreeMap;

/// One thing that a terminal acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `ESC [ parameters final`.
    Csi(String, char),
    /// `ESC ] text` up to its end.
    Osc(String),
    /// `ESC` and anything else.
    Other(char),
    /// A control character on its own, C1 included.
    Control(char),
    /// A character that reorders or hides text.
    Invisible(char),
}

/// Every sequence of `raw`, in order.
pub fn escapes(raw: &[u8]) -> Vec<Escape> {
    let text = String::from_utf8_lossy(raw);
    let mut chars = text.chars().peekable();
    let mut found = Vec::new();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => {
                    let mut parameters = String::new();
                    while let Some(p) = chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)) {
                        parameters.push(p);
                    }
                    found.push(Escape::Csi(parameters, chars.next().unwrap_or('\0')));
                }
                Some(']') => {
                    let mut osc = String::new();
                    while let Some(c) = chars.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}')) {
                        osc.push(c);
                    }
                    if chars.next() == Some('\u{1b}') {
                        chars.next();
                    }
                    found.push(Escape::Osc(osc));
                }
                other => found.push(Escape::Other(other.unwrap_or('\0'))),
            },
            '\r' | '\n' => {}
            c if c.is_control() => found.push(Escape::Control(c)),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' => {
                found.push(Escape::Invisible(c));
            }
            _ => {}
        }
    }
    found
}

/// How each private mode (`ESC [ ? n h` and `l`) was left, by its number.
pub fn modes(raw: &[u8]) -> BTreeMap<String, bool> {
    let mut modes = BTreeMap::new();
    for escape in escapes(raw) {
        if let Escape::Csi(parameters, on @ ('h' | 'l')) = escape
            && let Some(numbers) = parameters.strip_prefix('?')
        {
            modes.extend(numbers.split(';').map(|n| (n.to_owned(), on == 'h')));
        }
    }
    modes
}

#[test]
fn sequences_are_found() {
    let raw =
        "a\u{1b}[?25l\u{1b}[1;2Hb\u{1b}]9;x\u{1b}\\\u{1b}]52;c;y\u{7}\u{7}\u{9b}\u{202e}\u{1b}c";
    let csi = |p: &str, f| Escape::Csi(p.to_owned(), f);
    let osc = |t: &str| Escape::Osc(t.to_owned());
    assert_eq!(
        escapes(raw.as_bytes()),
        [
            csi("?25", 'l'),
            csi("1;2", 'H'),
            osc("9;x"),
            osc("52;c;y"),
            Escape::Control('\u{7}'),
            Escape::Control('\u{9b}'),
            Escape::Invisible('\u{202e}'),
            Escape::Other('c'),
        ]
    );
}
