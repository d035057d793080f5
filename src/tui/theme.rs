//! Colours by role, and the glyphs beside them.
//!
//! Owns: every colour of the screen, as the 16 ANSI colours, so that the terminal's own palette
//! decides what they look like. Never white or black text (U46): the default foreground is the one
//! that fits the background. A status is a glyph and a word, never a colour alone. Tests:
//! `tests/tui_rules.rs`.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

use crate::domain::operation::Status;

/// A theme by name.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum ThemeName {
    /// For dark backgrounds.
    #[default]
    Default,
    /// For light backgrounds.
    Light,
    /// No colour at all; what `NO_COLOR` asks for.
    Mono,
    /// Blue and yellow instead of green and red.
    Deuteranopia,
}

/// What a piece of the screen is, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum Role {
    Text,
    Dim,
    Strong,
    /// The row under the cursor, in the part that has the keys.
    Cursor,
    /// The same where another part has the keys.
    CursorAway,
    Key,
    Rule,
    /// Rules and frame where real money moves.
    RuleLive,
    /// The environment's name: simulator or test.
    Calm,
    /// The environment's name where real money moves.
    Live,
    Open,
    Unknown,
    Succeeded,
    Failed,
    Held,
    /// Something contradicts, or is refused.
    Alarm,
    Warn,
    Good,
}

/// A theme, ready to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    name: ThemeName,
    pub glyphs: Glyphs,
}

impl Theme {
    /// The theme of `name`; without colours it is mono whatever the name (U45).
    #[must_use]
    pub fn new(name: ThemeName, no_color: bool, ascii: bool) -> Self {
        Self {
            name: if no_color { ThemeName::Mono } else { name },
            glyphs: if ascii { ASCII } else { UNICODE },
        }
    }

    /// Whether only ASCII is drawn, but for what others wrote.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.glyphs == ASCII
    }

    /// Which one it is.
    #[must_use]
    pub fn name(&self) -> ThemeName {
        self.name
    }

    /// How `role` looks.
    #[must_use]
    pub fn style(&self, role: Role) -> Style {
        let mut style = Style::new().add_modifier(modifier(role));
        if let Some(color) = self.color(role) {
            style = style.fg(color);
        }
        style
    }

    fn color(&self, role: Role) -> Option<Color> {
        match self.name {
            ThemeName::Mono => None,
            ThemeName::Default => dark(role),
            ThemeName::Light => light(role),
            ThemeName::Deuteranopia => deuteranopia(role),
        }
    }
}

/// What holds in every theme, also without colours.
fn modifier(role: Role) -> Modifier {
    match role {
        Role::Text | Role::Rule | Role::Open | Role::Succeeded | Role::Good => Modifier::empty(),
        Role::Dim => Modifier::DIM,
        Role::Cursor => Modifier::REVERSED,
        Role::CursorAway => Modifier::UNDERLINED,
        Role::Live => Modifier::REVERSED.union(Modifier::BOLD),
        Role::Strong
        | Role::Key
        | Role::RuleLive
        | Role::Calm
        | Role::Unknown
        | Role::Failed
        | Role::Held
        | Role::Alarm
        | Role::Warn => Modifier::BOLD,
    }
}

fn dark(role: Role) -> Option<Color> {
    Some(match role {
        Role::Text | Role::Strong | Role::Dim | Role::Cursor | Role::CursorAway => return None,
        Role::Key | Role::Calm | Role::Open => Color::Cyan,
        Role::Rule => Color::DarkGray,
        Role::RuleLive | Role::Live | Role::Failed | Role::Alarm => Color::LightRed,
        Role::Unknown => Color::LightMagenta,
        Role::Succeeded | Role::Good => Color::Green,
        Role::Held | Role::Warn => Color::Yellow,
    })
}

fn light(role: Role) -> Option<Color> {
    Some(match role {
        Role::Text | Role::Strong | Role::Dim | Role::Cursor | Role::CursorAway => return None,
        Role::Key | Role::Calm | Role::Open => Color::Blue,
        Role::Rule => Color::DarkGray,
        Role::RuleLive | Role::Live | Role::Failed | Role::Alarm => Color::Red,
        Role::Unknown | Role::Held | Role::Warn => Color::Magenta,
        Role::Succeeded | Role::Good => Color::Green,
    })
}

fn deuteranopia(role: Role) -> Option<Color> {
    Some(match role {
        Role::Text | Role::Strong | Role::Dim | Role::Cursor | Role::CursorAway => return None,
        Role::Rule => Color::DarkGray,
        Role::Key | Role::Calm | Role::Open => Color::Cyan,
        Role::Succeeded | Role::Good => Color::LightBlue,
        Role::Unknown => Color::LightMagenta,
        Role::RuleLive | Role::Live | Role::Failed | Role::Alarm | Role::Held | Role::Warn => {
            Color::LightYellow
        }
    })
}

/// The signs of the screen: one set for terminals that have them, one in ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glyphs {
    pub cursor: &'static str,
    pub ellipsis: &'static str,
    /// Behind what is under way.
    pub wait: &'static str,
    pub rule: &'static str,
    pub bar: &'static str,
    pub dot: &'static str,
    pub dash: &'static str,
    pub sep: &'static str,
    pub down: &'static str,
    pub up: &'static str,
    pub open: &'static str,
    pub unknown: &'static str,
    pub succeeded: &'static str,
    pub failed: &'static str,
    pub held: &'static str,
    pub alarm: &'static str,
    pub gone: &'static str,
    /// A marked row.
    pub mark: &'static str,
    /// Somebody claims it.
    pub claimed: &'static str,
    /// Put off.
    pub snoozed: &'static str,
    /// What differs from our row.
    pub differs: &'static str,
    /// From nothing to most, for sparklines; the last one also fills bars.
    pub spark: [&'static str; 8],
    pub border: border::Set<'static>,
}

impl Glyphs {
    /// The sign of a status.
    #[must_use]
    pub fn status(&self, status: Status) -> &'static str {
        match status {
            Status::Open => self.open,
            Status::Unknown => self.unknown,
            Status::Succeeded => self.succeeded,
            Status::Failed => self.failed,
        }
    }
}

const UNICODE: Glyphs = Glyphs {
    cursor: "▸",
    ellipsis: "…",
    wait: "…",
    rule: "─",
    bar: "│",
    dot: "●",
    dash: "–",
    sep: "·",
    down: "▼",
    up: "▲",
    open: "○",
    unknown: "?",
    succeeded: "✓",
    failed: "✗",
    held: "‖",
    alarm: "!",
    gone: "×",
    mark: "◆",
    claimed: "@",
    snoozed: "z",
    differs: "≠",
    spark: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    border: border::PLAIN,
};

const ASCII: Glyphs = Glyphs {
    cursor: ">",
    ellipsis: "~",
    wait: "...",
    rule: "-",
    bar: "|",
    dot: "*",
    dash: "-",
    sep: "-",
    down: "v",
    up: "^",
    open: "o",
    unknown: "?",
    succeeded: "+",
    failed: "x",
    held: "=",
    alarm: "!",
    gone: "x",
    mark: "#",
    claimed: "@",
    snoozed: "z",
    differs: "!",
    spark: ["_", ".", ":", "-", "=", "+", "*", "#"],
    border: border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "-",
        horizontal_bottom: "-",
    },
};
