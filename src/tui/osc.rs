//! What the screen tells the terminal besides frames: the bell, desktop notices, the clipboard.
//!
//! Owns: the bytes of these sequences, and that nothing in them can end one early (U53, U50). Never:
//! asks the terminal for anything (U31), or sends a hyperlink (OSC 8): cells of a frame are drawn
//! piece by piece, so a link could stay open over other people's text. Tests: `tests/tui_rules.rs`,
//! `tests/tui_overlays.rs`.

use super::format;

/// Most characters of a desktop notice.
const MAX_NOTICE: usize = 120;
/// Most bytes for the clipboard before they are encoded: xterm and those after it take about 75 kB of
/// encoded text and drop the rest, or all of it.
pub const MAX_CLIPBOARD: usize = 56_000;

/// What is known of the terminal beforehand, from the environment; it is never asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// A pane of tmux, which keeps to itself what is not wrapped.
    pub tmux: bool,
    /// Its notices are OSC 777 (urxvt, foot, and everything built on VTE) instead of OSC 9. Never both:
    /// terminals that know both would tell everything twice.
    pub osc_777: bool,
}

impl Habits {
    /// What the environment's variables tell.
    #[must_use]
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let term = variable("TERM").unwrap_or_default();
        Self {
            tmux: variable("TMUX").is_some(),
            osc_777: variable("VTE_VERSION").is_some()
                || term.starts_with("rxvt")
                || term.starts_with("foot"),
        }
    }

    /// The sequence, so that the terminal behind tmux gets it where tmux is set to let it through.
    fn wrapped(self, sequence: &str) -> String {
        if self.tmux {
            let inner = sequence.replace('\u{1b}', "\u{1b}\u{1b}");
            format!("\u{1b}Ptmux;{inner}\u{1b}\\")
        } else {
            sequence.to_owned()
        }
    }
}

/// The bytes of bell and desktop notice, with nothing in them that could end it early (U53).
#[must_use]
pub fn notice(text: &str, habits: Habits) -> String {
    let text: String = format::clean(text).chars().take(MAX_NOTICE).collect();
    let sequence = if habits.osc_777 {
        // It has fields between semicolons.
        let field = text.replace(';', ",");
        format!("\u{1b}]777;notify;samekey;{field}\u{1b}\\")
    } else {
        format!("\u{1b}]9;{text}\u{1b}\\")
    };
    format!("\u{7}{}", habits.wrapped(&sequence))
}

/// The bytes that hand `text` to the terminal's clipboard (OSC 52), free of what could act where it
/// is pasted; `None` where a terminal would not take that much. tmux takes them for its own buffer, or
/// passes the wrapped ones on, whichever it is set to.
#[must_use]
pub fn clipboard(text: &str, habits: Habits) -> Option<String> {
    let text = format::clean_lines(text);
    if text.len() > MAX_CLIPBOARD {
        return None;
    }
    let plain = format!("\u{1b}]52;c;{}\u{1b}\\", base64(text.as_bytes()));
    Some(if habits.tmux {
        format!("{plain}{}", habits.wrapped(&plain))
    } else {
        plain
    })
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |n: usize| u32::from(three.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let sign = SIGNS.get((bits >> (18 - 6 * n) & 63) as usize);
            out.push(match sign {
                Some(sign) if n <= three.len() => char::from(*sign),
                _ => '=',
            });
        }
    }
    out
}
