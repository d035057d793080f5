//! Sizes and colours.

use std::time::Duration;

use crate::escapes::{Escape, escapes};
use crate::pty::Pty;
use crate::stage::{LARGE, SMALL, SOON, Stage, selected, token};

type Shows = fn(&str) -> bool;

const CLEAR: &str = "\u{1b}[2J";
const FRAME: &str = "\u{1b}[?2026h";

/// Frames that begin with an empty screen. (One that shrinks says so twice, in the same update.)
fn clearing_frames(pty: &Pty) -> usize {
    let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
    raw.split(FRAME)
        .filter(|frame| frame.contains(CLEAR))
        .count()
}

#[test]
fn every_size_is_drawn_and_only_a_resize_clears_u37_u42() {
    let stage = Stage::new("saved-500-with-effect");
    stage.refund("4417");
    let op = stage.refund("4418");
    let mut pty = stage.watch((200, 60));
    pty.wait_for("TIMELINE");
    pty.keys("j");
    pty.wait("the second row", |s| selected(s).contains("4418"));
    let start = clearing_frames(&pty);
    pty.keys("k j k j");
    stage.home.ok(0, &["ops", "note", &op, "--note", "seen it"]);
    pty.wait_for("anna: seen it");
    assert_eq!(clearing_frames(&pty), start, "none in steady state");

    let sizes: [((u16, u16), Shows); 5] = [
        ((60, 16), |t| t.contains("ORDER") && !t.contains("TIMELINE")),
        ((20, 5), |t| {
            t.contains("unknown 2") && t.contains("q quits")
        }),
        ((1, 1), |t| t.trim() == "…"),
        ((60, 16), |t| t.contains("ORDER")),
        ((200, 60), |t| t.contains("TIMELINE")),
    ];
    for (n, ((columns, lines), shows)) in sizes.into_iter().enumerate() {
        let from = pty.raw().len();
        pty.resize(columns, lines);
        pty.wait_raw(CLEAR, from);
        pty.wait(&format!("{columns}x{lines}"), |s| shows(&s.contents()));
        assert_eq!(clearing_frames(&pty), start + n + 1, "one for each resize");
    }
    pty.wait("the cursor stayed", |s| selected(s).contains(token(&op)));
    pty.resize(20, 5);
    pty.wait_for("q quits");
    pty.keys("q");
    assert!(pty.exit(SOON).success());
    assert_eq!(pty.count("panicked"), 0);
}

/// The selected row is reversed as a whole, in one go, and nothing has a colour.
#[test]
fn no_color_keeps_the_selected_row_visible_u45() {
    let stage = Stage::new("saved-500-with-effect");
    let op = stage.refund("4417");
    let mut command = stage.command(&["--no-engine"]);
    command.env("NO_COLOR", "1");
    let mut pty = Pty::spawn(command, SMALL);
    pty.wait("the row", |s| selected(s).contains("? unknown"));
    let screen = pty.screen();
    let (line, _) = screen.cursor_position();
    for column in 0..SMALL.0 {
        assert!(
            screen.cell(line, column).expect("a cell").inverse(),
            "{column}"
        );
        let other = screen.cell(line + 1, column).expect("a cell");
        assert!(!other.inverse(), "{column}");
    }
    let raw = String::from_utf8(pty.raw()).expect("UTF-8");
    let before = raw.find(token(&op)).expect("the row");
    let reverse = raw[..before].rfind("\u{1b}[7m").expect("reversed");
    let between = &raw[reverse + 4..before];
    assert!(
        !between.contains("\u{1b}[0m") && !between.contains("\u{1b}[27m"),
        "{between:?}"
    );
    for escape in escapes(raw.as_bytes()) {
        if let Escape::Csi(parameters, 'm') = escape {
            for n in parameters.split(';').filter_map(|n| n.parse::<u16>().ok()) {
                let coloured = matches!(n, 30..=38 | 40..=48 | 90..=107);
                assert!(!coloured, "{parameters}");
            }
        }
    }
    pty.keys("q");
    assert!(pty.exit(Duration::from_secs(10)).success());
}

#[test]
fn with_colours_the_selected_row_has_one_style_u45() {
    let stage = Stage::new("saved-500-with-effect");
    stage.refund("4417");
    let pty = stage.watch(LARGE);
    pty.wait("the row", |s| selected(s).contains("? unknown"));
    let screen = pty.screen();
    let (line, _) = screen.cursor_position();
    let style = |column| {
        let cell = screen.cell(line, column).expect("a cell");
        (cell.inverse(), cell.fgcolor(), cell.bgcolor())
    };
    assert!((0..LARGE.0).all(|c| style(c) == style(0)));
    assert!(style(0).0 || style(0).2 != vt100::Color::Default);
}
