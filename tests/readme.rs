//! The README agrees with the program: its key table and its picture are made by it.
//!
//! `SAMEKEY_UPDATE=1 cargo test --test readme` writes both anew.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and this one is told by the environment to write"
)]

#[path = "common/tui.rs"]
mod kit;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use kit::{Stage, mixed_rows};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use samekey::domain::evidence::Verdict;
use samekey::engine::{EngineHealth, EngineState};
use samekey::tui::message::Message;

/// Cell size of the picture, pixels.
const CELL: (f64, f64) = (8.4, 17.0);
/// Ground and letters of a terminal in its usual colours.
const GROUND: &str = "#16181d";
const LETTERS: &str = "#d6d9e0";
/// The 16 ANSI colours, as a usual terminal shows them.
const ANSI: [&str; 16] = [
    "#1d1f21", "#cc6666", "#8fb573", "#d8a657", "#6f9fd8", "#b48ead", "#6fb3b8", "#c5c8c6",
    "#767c88", "#e67e80", "#a7c080", "#e6c384", "#8fb8ea", "#d3a4c8", "#8ccfd4", "#ffffff",
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Holds the file to `wanted`, or writes it where the environment says so.
fn hold(name: &str, is: &str, wanted: &str) {
    if std::env::var("SAMEKEY_UPDATE").is_ok() {
        std::fs::write(path(name), wanted).expect("written");
    } else {
        assert!(
            is == wanted,
            "{name} has to be made anew: SAMEKEY_UPDATE=1 cargo test --test readme"
        );
    }
}

#[test]
fn the_key_table_is_the_key_map() {
    let readme = std::fs::read_to_string(path("README.md")).expect("the README");
    let begin = "<!-- keys: begin (from src/tui/keymap.rs) -->\n";
    let (head, rest) = readme.split_once(begin).expect("where the table begins");
    let (_, tail) = rest
        .split_once("<!-- keys: end -->")
        .expect("where it ends");
    let table = samekey::tui::key_table().into_iter().fold(
        String::from("| key | does |\n|---|---|\n"),
        |mut table, (keys, help)| {
            let keys = keys.replace('|', "\\|");
            writeln!(table, "| `{keys}` | {help} |").expect("a line");
            table
        },
    );
    hold(
        "README.md",
        &readme,
        &format!("{head}{begin}{table}<!-- keys: end -->{tail}"),
    );
}

#[test]
fn the_picture_is_the_screen() {
    let mut rows = mixed_rows();
    rows[1].row.verdict = Some(Verdict::Ambiguous);
    let mut stage = Stage::open((120, 40), rows);
    stage.give(Message::Health(EngineHealth {
        state: EngineState::Running,
        workers: 8,
        busy: 3,
        alarm: None,
        ..EngineHealth::default()
    }));
    stage.keys("j enter");
    let picture = svg(&stage.draw());
    let is = std::fs::read_to_string(path("assets/screen.svg")).unwrap_or_default();
    hold("assets/screen.svg", &is, &picture);
}

fn colour(colour: Color, reset: &'static str) -> &'static str {
    let index = match colour {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        Color::Reset => return reset,
        other => panic!("{other:?} is not one of the 16 colours (U46)"),
    };
    ANSI[index]
}

/// Letters and ground of a cell, with reverse carried out.
fn paint(cell: &Cell) -> (&'static str, &'static str, bool) {
    let (letters, ground) = (colour(cell.fg, LETTERS), colour(cell.bg, GROUND));
    let bold = cell.modifier.contains(Modifier::BOLD);
    if cell.modifier.contains(Modifier::REVERSED) {
        (ground, letters, bold)
    } else if cell.modifier.contains(Modifier::DIM) {
        (ANSI[8], ground, bold)
    } else {
        (letters, ground, bold)
    }
}

/// A frame as a picture: a rectangle for each ground, a text for each run of one style.
fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let (width, height) = (
        f64::from(area.width) * CELL.0,
        f64::from(area.height) * CELL.1,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{:.0}\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n",
        width + 24.0,
        height + 24.0
    );
    for y in 0..area.height {
        let mut x = 0;
        while x < area.width {
            let style = paint(&buffer[(x, y)]);
            let start = x;
            let mut text = String::new();
            while x < area.width && paint(&buffer[(x, y)]) == style {
                text.push_str(buffer[(x, y)].symbol());
                x += 1;
            }
            run(&mut out, (start, y), x - start, style, &text);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn run(
    out: &mut String,
    at: (u16, u16),
    cells: u16,
    (letters, ground, bold): (&str, &str, bool),
    text: &str,
) {
    let left = 12.0 + f64::from(at.0) * CELL.0;
    let top = 12.0 + f64::from(at.1) * CELL.1;
    let width = f64::from(cells) * CELL.0;
    if ground != GROUND {
        let tall = CELL.1;
        writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{tall}\" fill=\"{ground}\"/>"
        )
        .expect("a line");
    }
    if text.trim().is_empty() {
        return;
    }
    let safe = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let weight = if bold { " font-weight=\"bold\"" } else { "" };
    writeln!(
        out,
        "<text x=\"{left:.1}\" y=\"{:.1}\" fill=\"{letters}\"{weight} xml:space=\"preserve\" \
         textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\">{safe}</text>",
        top + 13.0
    )
    .expect("a line");
}
