//! Every way out: quitting with something in flight, signals, and a terminal that is gone.

use std::io::Read;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use portable_pty::{ChildKiller, PtyPair, PtySize, native_pty_system};
use rustix::process::Signal;
use serde_json::Value;

use crate::escapes::modes;
use crate::pty::{Pty, cpu_of};
use crate::stage::{SMALL, SOON, Stage, wait_until};

/// The provider makes the first refund and says nothing; an engine that died is missed soon.
const SILENT: &str = "timeout-after-effect:1";
const SETTINGS: &str = "[engine]\nlease = \"2s\"\npoll = \"100ms\"\n[ui]\nrefresh = \"60s\"\n";
/// The engine's time to stop, and the time to write down what was cut off, on a busy machine.
const DRAIN: Duration = Duration::from_secs(12);
/// Two seconds where nobody can see it any more, and as much again for a busy machine.
const UNSEEN: Duration = Duration::from_secs(4);

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

/// The next engine finishes what was left behind: under the same key, or because a look at the provider or its
/// own list of events shows the refund first. One refund either way.
fn assert_nothing_lost(stage: &Stage) {
    let mut pty = Pty::spawn(stage.command(&[]), SMALL);
    pty.wait_for("4 Succ 1");
    pty.keys("q");
    assert!(pty.exit(SOON).success());
    let rows = stage.everything();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["status"], "succeeded");
    assert_eq!(stage.sim.effects().len(), 1, "one refund");
    let attempts = rows[0]["attempt_list"].as_array().expect("attempts");
    let evidence = rows[0]["evidence"].as_array().expect("evidence");
    let told = |e: &Value| e["source"] == "webhook" || e["source"] == "reconciler";
    let told = evidence.iter().any(told);
    let told = told && attempts.len() == 1;
    assert!(told || attempts.len() == 2, "{:#}", rows[0]);
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
    pty.wait_for("4 Succ 1");
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
    assert!(pty.exit(UNSEEN).success());
    assert_restored(&pty);
    assert_nothing_lost(&stage);
}

/// Reads a terminal, nobody else holding it, until it shows what `is` wants.
fn read_until(reader: &mut dyn Read, parser: &mut vt100::Parser, is: impl Fn(&str) -> bool) {
    let mut buffer = [0; 16 * 1024];
    while !is(&parser.screen().contents()) {
        let read = reader.read(&mut buffer).unwrap_or(0);
        let text = parser.screen().contents();
        assert!(read > 0, "it ended too soon\n{text}");
        parser.process(&buffer[..read]);
    }
}

/// Closes the terminal under the program while one request is in flight. Without a controlling
/// terminal there is no SIGHUP: only looking can tell that it is gone.
fn vanish(controlling: bool) {
    let stage = Stage::with(SILENT, SETTINGS);
    let pair = native_pty_system().openpty(PtySize {
        rows: SMALL.1,
        cols: SMALL.0,
        ..PtySize::default()
    });
    let PtyPair { slave, master } = pair.expect("a pseudo-terminal");
    let mut command = stage.command(&[]);
    command.set_controlling_tty(controlling);
    let mut child = slave.spawn_command(command).expect("a child");
    drop(slave);
    let watchdog = Watchdog::over(child.clone_killer());
    let mut reader = master.try_clone_reader().expect("a reader");
    let mut parser = vt100::Parser::new(SMALL.1, SMALL.0, 0);
    read_until(&mut reader, &mut parser, |text| text.contains("0/8"));
    stage.queue("4417");
    read_until(&mut reader, &mut parser, |text| text.contains("flight 1"));
    wait_until("the provider has it", || {
        (stage.sim.effects().len() == 1).then_some(())
    });
    let pid = child.process_id().expect("a process");
    let before = cpu_of(pid).expect("it runs");
    drop((reader, master));

    let gone = Instant::now();
    let mut used = before;
    let status = loop {
        used = cpu_of(pid).unwrap_or(used);
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    drop(watchdog);
    let (took, burnt) = (gone.elapsed(), used.saturating_sub(before));
    println!("gone after {took:?}, {burnt:?} of processor time");
    assert!(status.success(), "{status:?}");
    assert!(took < UNSEEN, "{took:?}");
    assert!(burnt < Duration::from_millis(500), "{burnt:?}");
    assert_nothing_lost(&stage);
}

/// Kills a process that hangs, so that reading its terminal ends.
struct Watchdog {
    _ended: mpsc::Sender<()>,
}

impl Watchdog {
    fn over(mut child: Box<dyn ChildKiller + Send + Sync>) -> Self {
        let (sender, ended) = mpsc::channel();
        std::thread::spawn(move || {
            if ended.recv_timeout(2 * SOON) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = child.kill();
            }
        });
        Self { _ended: sender }
    }
}

#[test]
fn a_vanished_terminal_ends_it_within_two_seconds_without_burning_a_core_u33() {
    vanish(false);
}

#[test]
fn a_hung_up_terminal_ends_it_within_two_seconds_without_burning_a_core_u33() {
    vanish(true);
}
