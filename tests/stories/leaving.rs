//! Every way out: quitting with something in flight, signals, and a terminal that is gone.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::escapes::modes;
use crate::pty::{Pty, cpu_of};
use crate::stage::{SMALL, SOON, Stage, state, wait_until};

/// The provider makes the first refund and says nothing; an engine that died is missed soon.
const SILENT: &str = "timeout-after-effect:1";
const SETTINGS: &str = "[engine]\nlease = \"2s\"\npoll = \"100ms\"\n[ui]\nrefresh = \"60s\"\n";
/// The engine's time to stop, and the time to write down what was cut off, on a busy machine.
const DRAIN: Duration = Duration::from_secs(12);

/// The screen with its engine, whose one request waits for an answer.
fn in_flight() -> (Stage, Pty) {
    let stage = Stage::with(SILENT, SETTINGS);
    let pty = Pty::spawn(stage.command(&[]), SMALL);
    pty.wait_for("0/8");
    stage.queue("4417");
    pty.wait("one in flight", |s| s.contents().contains("flight 1"));
    wait_until("the provider has it", || {
        (stage.sim.effects().len() == 1).then_some(())
    });
    (stage, pty)
}

fn is_in_flight(text: &str) -> bool {
    text.contains("flight ") && !text.contains("flight 0")
}

fn assert_restored(pty: &Pty) {
    for (mode, on) in modes(&pty.raw()) {
        assert_eq!(on, mode == "25", "mode {mode} was left {on}");
    }
    assert!(pty.is_cooked());
}

/// The next engine finishes what was left behind, under the same key: one refund.
fn assert_nothing_lost(stage: &Stage) {
    let mut pty = Pty::spawn(stage.command(&[]), SMALL);
    pty.wait_for("4 Succeeded 1");
    pty.keys("q");
    assert!(pty.exit(SOON).success());
    let rows = stage.everything();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["status"], "succeeded");
    assert_eq!(stage.sim.effects().len(), 1, "one refund");
    let attempts = rows[0]["attempt_list"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    stage.verify();
}

#[test]
fn q_with_one_in_flight_shows_progress_ends_in_time_and_loses_nothing_u55() {
    let (stage, mut pty) = in_flight();
    pty.keys("q");
    pty.wait_for("stopping for");
    assert!(pty.exit(DRAIN).success());
    assert_restored(&pty);
    assert_nothing_lost(&stage);
}

#[test]
fn a_second_ctrl_c_leaves_at_once_and_says_what_is_left_u55() {
    let (stage, mut pty) = in_flight();
    pty.keys("q");
    pty.wait_for("stopping for");
    pty.keys("ctrl-c");
    assert!(pty.exit(Duration::from_secs(3)).success());
    assert_restored(&pty);
    let text = pty.wait_for("samekey left at once: 1 attempts in flight");
    assert!(
        text.contains("recorded") || text.contains("interrupted"),
        "{text}"
    );
    assert_nothing_lost(&stage);
}

#[test]
fn ctrl_c_is_asked_twice_before_anything_ends() {
    let stage = Stage::new("honest");
    stage.refund("4417");
    let mut pty = stage.watch(SMALL);
    pty.wait_for("4 Succeeded 1");
    pty.keys("ctrl-c");
    pty.wait_for("ctrl-c again quits");
    pty.keys("ctrl-c");
    assert!(pty.exit(SOON).success());
    assert_restored(&pty);
}

#[test]
fn the_demo_quits_in_time_while_calls_time_out_u55() {
    let stage = Stage::new("honest");
    let args = ["demo", "--scenario", "timeout-before-effect"];
    let mut pty = Pty::spawn(stage.command(&args), SMALL);
    pty.wait("some in flight", |s| is_in_flight(&s.contents()));
    pty.keys("q");
    pty.wait_for("stopping for");
    assert!(pty.exit(DRAIN).success());
    assert_restored(&pty);
}

#[test]
fn sigterm_drains_and_restores_the_terminal_u29_u55() {
    let (stage, mut pty) = in_flight();
    pty.signal(Signal::TERM);
    pty.wait_for("stopping for");
    assert!(pty.exit(DRAIN).success());
    assert_restored(&pty);
    assert_nothing_lost(&stage);
}

#[test]
fn sighup_ends_it_soon_and_restores_the_terminal_u29_u33() {
    let (stage, mut pty) = in_flight();
    pty.signal(Signal::HUP);
    assert!(pty.exit(Duration::from_secs(4)).success());
    assert_restored(&pty);
    assert_nothing_lost(&stage);
}

/// A terminal of its own for the program, until this is killed.
#[test]
#[ignore = "run by the story below, on a terminal"]
fn a_terminal_that_will_vanish() {
    let [home, controlling] = ["SAMEKEY_STORY_HOME", "SAMEKEY_STORY_CONTROLLING"]
        .map(|name| std::env::vars().find(|(n, _)| n == name).map(|(_, v)| v));
    let home = home.expect("the story's home");
    let mut command = Pty::command(env!("CARGO_BIN_EXE_samekey"));
    command.args(["demo", "--scenario", "timeout-before-effect"]);
    command.cwd(&home);
    command.env("HOME", &home);
    command.env("TMPDIR", &home);
    // Without one there is no SIGHUP: only looking can tell that the terminal is gone.
    command.set_controlling_tty(controlling.is_some());
    let inner = Pty::spawn(command, SMALL);
    inner.wait("some in flight", |s| is_in_flight(&s.contents()));
    println!("\ninner process {} is ready", inner.pid().as_raw_nonzero());
    inner.wait("the end", |_| false);
}

fn vanish(controlling: bool) {
    let stage = Stage::new("honest");
    let mut command = Pty::command(std::env::current_exe().expect("this program"));
    let name = "leaving::a_terminal_that_will_vanish";
    command.args([name, "--exact", "--ignored", "--nocapture"]);
    command.env("SAMEKEY_STORY_HOME", stage.home.path(""));
    if controlling {
        command.env("SAMEKEY_STORY_CONTROLLING", "1");
    }
    let mut host = Pty::spawn(command, SMALL);
    let text = host.wait_for("is ready");
    let pid: u32 = text
        .split("inner process ")
        .nth(1)
        .and_then(|t| t.split_whitespace().next()?.parse().ok())
        .expect("a process id");
    let before = cpu_of(pid).expect("it runs");
    host.signal(Signal::KILL);
    host.exit(SOON);
    let gone = Instant::now();
    let mut used = before;
    while state(pid).is_some_and(|s| s != 'Z') {
        used = cpu_of(pid).unwrap_or(used);
        if gone.elapsed() > Duration::from_secs(4) {
            let raw = i32::try_from(pid).expect("an id");
            let _ = kill_process(Pid::from_raw(raw).expect("an id"), Signal::KILL);
            panic!("still running after {:?}", gone.elapsed());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let (took, burnt) = (gone.elapsed(), used.saturating_sub(before));
    println!("gone after {took:?}, {burnt:?} of processor time");
    assert!(
        burnt < took / 2 + Duration::from_millis(300),
        "{burnt:?} in {took:?}"
    );
}

#[test]
fn a_vanished_terminal_ends_it_within_two_seconds_without_burning_a_core_u33() {
    vanish(false);
}

#[test]
fn a_hung_up_terminal_ends_it_within_two_seconds_without_burning_a_core_u33() {
    vanish(true);
}
