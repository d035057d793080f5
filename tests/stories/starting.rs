//! From a shell and back to it.

use std::time::Duration;

use portable_pty::CommandBuilder;
use rustix::termios::Termios;

use crate::cli::Home;
use crate::escapes::{Escape, escapes, modes};
use crate::pty::Pty;
use crate::stage::{SMALL, Stage, files};

/// A shell that waits for Enter, runs the program, tells its exit code, and waits again: so the
/// terminal can be looked at before and after, with a mode that is not everybody's default.
fn in_a_shell(stage: &Stage, args: &[&str]) -> CommandBuilder {
    let mut command = Pty::command("sh");
    let script = "stty -ixon; echo typed before; read x; \"$@\"; echo \"exit code $?\"; read x";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_samekey")]);
    command.args(args);
    stage.at_home(command)
}

fn flags(modes: &Termios) -> String {
    format!(
        "{:?} {:?} {:?} {:?}",
        modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes
    )
}

/// F89: whoever died before left the terminal raw and silent; afterwards a shell can use it.
#[test]
fn started_in_a_raw_terminal_it_leaves_a_sane_one_f89() {
    let stage = Stage::new("honest");
    stage.refund("4417");
    let mut command = Pty::command("sh");
    let script = "stty raw -echo; \"$@\"; echo \"exit code $?\"; read x";
    command.args([
        "-c",
        script,
        "sh",
        env!("CARGO_BIN_EXE_samekey"),
        "--no-engine",
    ]);
    let mut pty = Pty::spawn(stage.at_home(command), SMALL);
    pty.wait_for("ORDER");
    pty.keys("q");
    pty.wait_for("exit code 0");
    assert!(pty.is_cooked(), "{}", flags(&pty.termios()));
}

#[test]
fn the_demo_starts_and_q_leaves_the_terminal_as_it_was_u29_u39_u40() {
    let stage = Stage::new("honest");
    let mut pty = Pty::spawn(in_a_shell(&stage, &["demo"]), SMALL);
    pty.wait_for("typed before");
    let before = flags(&pty.termios());
    pty.send("\n");
    pty.wait("header and rows", |screen| {
        let text = screen.contents();
        let header = text.lines().next().unwrap_or_default();
        header.contains("SIMULATOR") && text.contains("op_…")
    });
    assert!(pty.screen().alternate_screen() && !pty.is_cooked());
    assert_eq!(files(&stage.home.path("tmp")).len(), 1, "its own ledger");
    pty.keys("q");
    pty.wait_for("exit code 0");
    assert_eq!(flags(&pty.termios()), before);
    let screen = pty.screen();
    assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    assert!(
        screen.contents().contains("typed before"),
        "what was there is there again"
    );
    let raw = pty.raw();
    for (mode, on) in modes(&raw) {
        // The cursor is the one mode that is on outside.
        assert_eq!(on, mode == "25", "U40: mode {mode} was left {on}");
        assert!(
            ["25", "1049", "2004", "2026"].contains(&mode.as_str()),
            "U39: nobody asked for mode {mode}"
        );
    }
    let asks = |e: &Escape| match e {
        // Reports of device and cursor, keyboard protocols, key pads.
        Escape::Csi(p, end) => {
            matches!(end, 'c' | 'n' | 'u' | 't' | 'q') || p.starts_with(['>', '<', '='])
        }
        Escape::Osc(text) => text.contains('?'),
        Escape::Other(_) => true,
        Escape::Control(_) | Escape::Invisible(_) => false,
    };
    let asked: Vec<_> = escapes(&raw).into_iter().filter(asks).collect();
    assert!(
        asked.is_empty(),
        "U31: the terminal is asked nothing: {asked:?}"
    );
    assert!(
        files(&stage.home.path("tmp")).is_empty(),
        "the throw-away ledger is gone"
    );
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let home = Home::new();
    for args in [&[][..], &["demo"], &["--no-engine"]] {
        let ran = home.ok(2, args);
        assert!(ran.stderr.contains("terminal"), "{ran:?}");
        assert!(ran.stderr.contains("--snapshot"), "{ran:?}");
        assert_eq!(ran.stdout, "");
    }
    assert!(!home.ledger().exists(), "nothing was made");
}

#[test]
fn a_page_of_20x5_still_shows_the_unknown_count_and_how_to_quit_u37() {
    let stage = Stage::new("saved-500-with-effect");
    stage.refund("4417");
    let mut pty = stage.watch((20, 5));
    pty.wait_for("unknown 1");
    pty.wait_for("q quits");
    pty.keys("q");
    assert!(pty.exit(Duration::from_secs(10)).success());
}
