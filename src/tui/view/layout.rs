//! Where everything is: pure arithmetic over the size and a few flags.
//!
//! Owns: the sizes at which parts appear. Never: draws. `update` asks it too, so that the list knows
//! its height and a dialog knows whether it fits. Tests: `tests/tui_snapshots.rs`,
//! `tests/tui_properties.rs`.

use ratatui::layout::Rect;

use super::super::model::{Focus, Model};

/// Smallest screen that shows lists.
pub const MIN: (u16, u16) = (60, 16);
/// From here on everything is shown.
const FULL: (u16, u16) = (100, 28);
/// From this width on the detail stands beside the list.
const BESIDE: u16 = 150;
/// From this height on it stands below.
const BELOW: u16 = 36;

/// The parts of the screen; a part that is not shown is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    pub too_small: bool,
    pub header: Rect,
    pub banners: Rect,
    pub tabs: Rect,
    pub rule: Rect,
    /// Column heads and rows.
    pub table: Rect,
    pub detail: Rect,
    /// Instead of both, while a board is shown.
    pub board: Rect,
    /// The lower rule, with notices.
    pub footer: Rect,
    pub hints: Rect,
    rows: usize,
}

impl Regions {
    /// Rows of the list, also while the detail covers it.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether list and detail are both on the screen.
    #[must_use]
    pub fn both(&self) -> bool {
        !self.table.is_empty() && !self.detail.is_empty()
    }
}

/// The layout of `model`.
#[must_use]
pub fn of(model: &Model) -> Regions {
    let (width, height) = model.size;
    if width < MIN.0 || height < MIN.1 {
        return Regions {
            too_small: true,
            ..Regions::default()
        };
    }
    let full = width >= FULL.0 && height >= FULL.1;
    let most = match height {
        ..20 => 1,
        20..28 => 3,
        _ => 5,
    };
    let wanted = super::banner::lines(model, usize::from(width)).len();
    let banners = u16::try_from(wanted).unwrap_or(most).min(most);
    let mut y = 0;
    let mut take = |lines: u16| {
        let area = Rect::new(0, y, width, lines);
        y += lines;
        area
    };
    let header = take(1);
    let banners = take(banners);
    let tabs = take(1);
    let rule = take(u16::from(full));
    let top = y;
    let body = Rect::new(0, top, width, height.saturating_sub(top + 2));
    let footer = Rect::new(0, body.bottom(), width, 1);
    let hints = Rect::new(0, footer.bottom(), width, 1);
    let (list, pane) = split(body, width, height);
    let in_detail = model.focus == Focus::Detail;
    let (table, detail) = match pane {
        _ if model.board.is_some() => (Rect::default(), Rect::default()),
        Some(_) if in_detail && model.detail.wide => (Rect::default(), body),
        Some(pane) => (list, pane),
        None if in_detail => (Rect::default(), body),
        None => (list, Rect::default()),
    };
    Regions {
        too_small: false,
        header,
        banners,
        tabs,
        rule,
        table,
        detail,
        board: if model.board.is_some() {
            body
        } else {
            Rect::default()
        },
        footer,
        hints,
        rows: usize::from(list.height.saturating_sub(1)),
    }
}

fn split(body: Rect, width: u16, height: u16) -> (Rect, Option<Rect>) {
    if width >= BESIDE {
        let pane = (width * 2 / 5).min(90);
        let list = Rect {
            width: body.width - pane,
            ..body
        };
        let pane = Rect {
            x: list.right(),
            width: pane,
            ..body
        };
        (list, Some(pane))
    } else if height >= BELOW {
        let list = Rect {
            height: body.height * 2 / 5,
            ..body
        };
        let pane = Rect {
            y: list.bottom(),
            height: body.height - list.height,
            ..body
        };
        (list, Some(pane))
    } else {
        (body, None)
    }
}
