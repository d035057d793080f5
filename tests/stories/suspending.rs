//! ctrl-z under a shell with job control.

use rustix::process::{Pid, Signal, kill_process};

use crate::escapes::modes;
use crate::pty::Pty;
use crate::stage::{SMALL, SOON, Stage, child_of, selected, state, wait_until};

/// A shell that runs the program as a job; without line editing, so that at its prompt the terminal
/// is as cooked as it can be.
fn shell(stage: &Stage, args: &str) -> (Pty, u32) {
    let mut command = Pty::command("bash");
    command.args(["--norc", "--noprofile", "--noediting", "-i"]);
    command.env("PS1", "prompt> ");
    let mut pty = Pty::spawn(stage.at_home(command), SMALL);
    pty.wait_for("prompt> ");
    pty.send(format!("{} {args}\r", env!("CARGO_BIN_EXE_samekey")));
    pty.wait_for("ORDER");
    let bash = u32::try_from(pty.pid().as_raw_nonzero().get()).expect("an id");
    let pid = wait_until("the program", || child_of(bash, "samekey"));
    (pty, pid)
}

/// The screen but for ages and the time of day.
fn steady(text: &str) -> Vec<String> {
    let row = |l: &str| l.chars().take(40).collect::<String>().trim_end().to_owned();
    text.lines().skip(1).map(row).collect()
}

#[test]
fn ctrl_z_stops_it_with_a_sane_terminal_and_fg_draws_the_same_again_u34() {
    let stage = Stage::with("saved-500-with-effect", "[ui]\nrefresh = \"60s\"\n");
    stage.refund("4417");
    let (mut pty, pid) = shell(&stage, "--no-engine");
    pty.wait("the row", |s| selected(s).contains("? unknown"));
    let before = steady(&pty.text());
    for _ in 0..2 {
        let from = pty.raw().len();
        pty.keys("ctrl-z");
        pty.wait_raw("Stopped", from);
        wait_until("stopped", || (state(pid) == Some('T')).then_some(()));
        wait_until("cooked", || pty.is_cooked().then_some(()));
        for (mode, on) in modes(&pty.raw()) {
            assert_eq!(on, mode == "25", "mode {mode} was left {on}");
        }
        let from = pty.raw().len();
        pty.send("fg\r");
        pty.wait_raw("ORDER", from);
        pty.wait("the same frame", |s| steady(&s.contents()) == before);
        assert!(pty.screen().alternate_screen() && !pty.is_cooked());
    }
    pty.keys("enter");
    pty.wait_for("TIMELINE");
    pty.keys("esc");
    pty.wait_gone("TIMELINE");
    pty.keys("q");
    pty.wait("the prompt", |s| !s.alternate_screen());
    // The screen is left a moment before the modes are.
    wait_until("cooked", || pty.is_cooked().then_some(()));
}

/// Suspended in the middle of a call, until its lease is over and another engine has finished it:
/// then nothing is sent a second time, and nothing is overwritten.
#[test]
fn suspended_mid_call_and_overtaken_it_sends_nothing_more_u56() {
    let settings = "[engine]\nlease = \"1s\"\npoll = \"100ms\"\n[ui]\nrefresh = \"60s\"\n";
    let stage = Stage::with("timeout-after-effect:1", settings);
    let (mut pty, pid) = shell(&stage, "");
    stage.queue("4417");
    pty.wait("one in flight", |s| s.contents().contains("flight 1"));
    wait_until("the provider has it", || {
        (stage.sim.effects().len() == 1).then_some(())
    });
    pty.keys("ctrl-z");
    wait_until("stopped", || (state(pid) == Some('T')).then_some(()));

    let mut other = Pty::spawn(stage.command(&[]), SMALL);
    other.wait_for("4 Succ 1");
    other.keys("q");
    assert!(other.exit(SOON).success());
    let sent = refunds(&stage);
    let rows = stage.everything();

    let from = pty.raw().len();
    pty.send("fg\r");
    pty.wait_raw("ORDER", from);
    pty.wait_for("4 Succ 1");
    pty.keys("q");
    pty.wait("the prompt", |s| !s.alternate_screen());
    wait_until("it ended", || state(pid).is_none().then_some(()));
    assert_eq!(refunds(&stage), sent, "nothing was sent again");
    assert_eq!(stage.everything(), rows, "and nothing overwritten");
    assert_eq!(stage.sim.effects().len(), 1);
    stage.verify();
}

/// Requests to make a refund that reached the provider.
fn refunds(stage: &Stage) -> usize {
    let all = stage.sim.requests();
    all.iter().filter(|r| r.method == "POST").count()
}

/// A stop that nobody asked the screen about leaves the terminal raw; going on draws it all anew.
#[test]
fn stopped_from_outside_it_draws_again_when_it_goes_on_u34() {
    let stage = Stage::with("saved-500-with-effect", "[ui]\nrefresh = \"60s\"\n");
    stage.refund("4417");
    let (mut pty, pid) = shell(&stage, "--no-engine");
    pty.wait("the row", |s| selected(s).contains("? unknown"));
    let raw = i32::try_from(pid).expect("an id");
    let process = Pid::from_raw(raw).expect("an id");
    let from = pty.raw().len();
    kill_process(process, Signal::TSTP).expect("signalled");
    pty.wait_raw("Stopped", from);
    let from = pty.raw().len();
    pty.send("fg\r");
    pty.wait_raw("ORDER", from);
    pty.wait("the row", |s| selected(s).contains("? unknown"));
    pty.keys("q");
    pty.wait_raw("prompt> ", from);
}
