//! The screen on a real pseudo-terminal, over a real ledger and a provider in memory: terminal
//! modes on every way out, signals, job control, quitting, and a decision from key to audit.
//!
//! Each story starts this very test program again, in one of the ignored tests below, as the child.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

mod common;
#[path = "common/pty.rs"]
mod pty;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use common::provider::{FakeProvider, Script};
use common::world::{World, refund, terms};
use pty::Pty;
use rustix::process::Signal;
use samekey::clock::Clock;
use samekey::domain::guard::Role;
use samekey::domain::ids::ReviewerName;
use samekey::domain::outcome::OutcomeClass;
use samekey::engine::{EngineHealth, EngineState};
use samekey::ledger::SharedLedger;
use samekey::provider::SharedProvider;
use samekey::tui::{Environment, TuiDeps, UiOptions, run, snapshot};
use tokio::sync::watch;

const SIZE: (u16, u16) = (80, 24);
const SOON: Duration = Duration::from_secs(10);

// --- the child -----------------------------------------------------------------------------------

struct Child {
    world: World,
    provider: Arc<FakeProvider>,
    health: watch::Sender<EngineHealth>,
}

impl Child {
    /// Three orders after a 500, nothing found at the provider.
    async fn new() -> Self {
        let failed = Script::Class(OutcomeClass::ServerError);
        let provider = FakeProvider::new([failed.clone(), failed.clone(), failed]);
        let world = World::with(
            Arc::clone(&provider) as SharedProvider,
            terms(),
            Clock::system(),
        )
        .await;
        for (n, order) in ["4417", "4418", "4419"].into_iter().enumerate() {
            world
                .ask(&format!("toolu_{n}"), &refund(order, 3_800))
                .await;
        }
        let (health, _) = watch::channel(EngineHealth {
            state: EngineState::Running,
            workers: 8,
            busy: 0,
            alarm: None,
            ..EngineHealth::default()
        });
        Self {
            world,
            provider,
            health,
        }
    }

    fn deps(&self, ui: UiOptions) -> TuiDeps {
        let gate = self
            .world
            .gate(&[("ann", Role::Reviewer), ("lea", Role::Lead)]);
        let ann = ReviewerName::parse("ann").expect("a name");
        TuiDeps {
            ledger: Arc::clone(&self.world.ledger) as SharedLedger,
            person: gate.person(Some(&ann)).expect("a reviewer"),
            gate,
            health: self.health.subscribe(),
            environment: Environment {
                provider: "stripe".into(),
                mode: "simulator".into(),
                ledger: "ledger.db".into(),
                notice: None,
            },
            clock: self.world.clock.clone(),
            ui,
            scoreboard: None,
        }
    }
}

fn screen(ui: UiOptions, stop: impl AsyncFnOnce(watch::Sender<EngineHealth>)) {
    if !std::io::stdout().is_terminal() {
        // Somebody runs the ignored tests by themselves.
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let child = Child::new().await;
        let deps = child.deps(ui);
        let health = child.health.clone();
        run(deps, async move || stop(health).await)
            .await
            .expect("a screen");
    });
}

#[test]
#[ignore = "run by the stories, on a terminal"]
fn child_plain() {
    screen(UiOptions::default(), async |_| {});
}

#[test]
#[ignore = "run by the stories, on a terminal"]
fn child_mono() {
    let ui = UiOptions {
        no_color: true,
        ..UiOptions::default()
    };
    screen(ui, async |_| {});
}

#[test]
#[ignore = "run by the stories, on a terminal"]
fn child_that_panics_on_the_screen() {
    screen(UiOptions::default(), async |_| panic!("the screen broke"));
}

#[test]
#[ignore = "run by the stories, on a terminal"]
fn child_whose_task_panics() {
    screen(UiOptions::default(), async |health| {
        let task = tokio::spawn(async { panic!("a worker broke") });
        assert!(task.await.is_err());
        let down = EngineState::Down("a worker broke".into());
        health.send_modify(|h| h.state = down);
        std::future::pending::<()>().await;
    });
}

#[test]
#[ignore = "run by the stories, on a terminal"]
fn child_that_never_stops() {
    screen(UiOptions::default(), async |health| {
        health.send_modify(|h| h.state = EngineState::Draining);
        std::future::pending::<()>().await;
    });
}

fn child(name: &str) -> portable_pty::CommandBuilder {
    let mut command = Pty::command(std::env::current_exe().expect("this program"));
    command.args([name, "--exact", "--ignored", "--nocapture"]);
    command.env("NO_COLOR", "1");
    command
}

fn start(name: &str) -> Pty {
    let pty = Pty::spawn(child(name), SIZE);
    pty.wait_for("3 Unk 3");
    pty.wait_for("? unknown");
    pty
}

/// Everything that was turned on is off again.
fn assert_restored(pty: &Pty) {
    for (on, off) in [
        ("\u{1b}[?1049h", "\u{1b}[?1049l"),
        ("\u{1b}[?2004h", "\u{1b}[?2004l"),
        ("\u{1b}[?25l", "\u{1b}[?25h"),
        ("\u{1b}[?2026h", "\u{1b}[?2026l"),
    ] {
        let raw = String::from_utf8_lossy(&pty.raw()).into_owned();
        let (last_on, last_off) = (raw.rfind(on), raw.rfind(off));
        assert!(
            last_on.is_some() && last_off > last_on,
            "{on:?} {last_on:?} {last_off:?}"
        );
    }
    assert!(pty.is_cooked());
}

// --- the stories ---------------------------------------------------------------------------------

#[test]
fn it_starts_and_quits_and_leaves_the_terminal_as_it_was_u29_u39_u40() {
    let mut pty = start("child_plain");
    assert!(!pty.is_cooked(), "raw while it runs");
    for mouse in ["1000h", "1002h", "1003h", "1006h"] {
        assert_eq!(pty.count(&format!("\u{1b}[?{mouse}")), 0, "no mouse");
    }
    assert_eq!(
        pty.count("\u{1b}[c"),
        0,
        "U31: the terminal is asked nothing"
    );
    pty.keys("q");
    assert!(pty.exit(SOON).success());
    assert_restored(&pty);
}

#[test]
fn a_panic_of_the_screen_is_readable_and_leaves_the_terminal_as_it_was_u29() {
    let mut pty = start("child_that_panics_on_the_screen");
    pty.keys("q");
    assert!(!pty.exit(SOON).success());
    assert_restored(&pty);
    assert!(pty.text().contains("the screen broke"), "{}", pty.text());
}

#[test]
fn a_panic_in_the_background_leaves_the_screen_alone_u32() {
    let mut pty = start("child_whose_task_panics");
    pty.keys("q");
    let text = pty.wait_for("! DOWN");
    assert!(text.contains("1 Rev 3"), "{text}");
    assert_eq!(
        pty.count("panicked at"),
        0,
        "nothing is written over the screen"
    );
    pty.keys("ctrl-c");
    assert!(pty.exit(SOON).success());
    assert_restored(&pty);
}

#[test]
fn sigterm_and_sighup_end_it_properly() {
    for signal in [Signal::TERM, Signal::HUP] {
        let mut pty = start("child_plain");
        pty.signal(signal);
        assert!(pty.exit(SOON).success());
        assert_restored(&pty);
    }
}

/// A terminal of its own for another child, until it is killed.
#[test]
#[ignore = "run by the stories, on a terminal"]
fn child_that_is_a_terminal() {
    if !std::io::stdout().is_terminal() {
        return;
    }
    let mut command = child("child_plain");
    // No controlling terminal, so no SIGHUP: only looking can tell that it is gone.
    command.set_controlling_tty(false);
    let inner = Pty::spawn(command, SIZE);
    inner.wait_for("? unknown");
    println!("inner process {} is ready", inner.pid().as_raw_nonzero());
    inner.wait("the end", |_| false);
}

#[test]
fn a_vanished_terminal_ends_it_within_two_seconds_u33() {
    let mut host = Pty::spawn(child("child_that_is_a_terminal"), SIZE);
    let text = host.wait_for("is ready");
    let pid: u32 = text
        .split("inner process ")
        .nth(1)
        .and_then(|t| t.split_whitespace().next())
        .and_then(|t| t.parse().ok())
        .expect("a process id");
    // What it still does for its start is not looked at.
    let mut before = pty::cpu_of(pid).expect("it runs");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(250));
        let now = pty::cpu_of(pid).expect("it runs");
        if std::mem::replace(&mut before, now) == now {
            break;
        }
    }
    host.signal(Signal::KILL);
    host.exit(SOON);
    let mut used = before;
    for _ in 0..250 {
        match pty::cpu_of(pid) {
            None => {
                // A loop that spins until it is stopped takes two seconds.
                let used = used.saturating_sub(before);
                assert!(used < Duration::from_millis(500), "{used:?}");
                return;
            }
            Some(now) => used = now,
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("still running");
}

fn shell() -> portable_pty::CommandBuilder {
    let mut command = Pty::command("bash");
    command.args(["--norc", "--noprofile", "-i"]);
    command
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_fg_draws_the_same_again_u34() {
    let mut pty = Pty::spawn(shell(), SIZE);
    pty.send("PS1='ready$ '; set -m\r");
    pty.wait("a prompt", |s| {
        s.contents().lines().any(|l| l.starts_with("ready$ "))
    });
    let program = std::env::current_exe().expect("this program");
    let line = format!(
        "{} child_plain --exact --ignored --nocapture\r",
        program.display()
    );
    pty.send(line);
    pty.wait_for("? unknown");
    let before = pty.settle(Duration::from_millis(300));
    let from = pty.raw().len();
    pty.keys("ctrl-z");
    pty.wait_raw("Stopped", from);
    assert!(pty.raw()[from..].windows(8).any(|w| w == b"\x1b[?1049l"));
    let from = pty.raw().len();
    pty.send("fg\r");
    pty.wait_raw("? unknown", from);
    let after = pty.settle(Duration::from_millis(300));
    // Ages and the time of day go on.
    let steady = |text: &str| -> Vec<String> {
        let cut = |l: &str| l.chars().take(40).collect();
        text.lines().skip(1).map(cut).collect()
    };
    assert_eq!(steady(&before), steady(&after));
    pty.keys("j q");
    pty.wait_raw("ready$ ", from);
}

#[test]
fn a_resize_clears_once_and_nothing_else_does_u42() {
    let mut pty = start("child_plain");
    pty.settle(Duration::from_millis(200));
    let clears = pty.count("\u{1b}[2J");
    pty.keys("j");
    pty.wait("the cursor", |s| s.cursor_position().0 == 4);
    assert_eq!(pty.count("\u{1b}[2J"), clears);
    pty.resize(120, 40);
    pty.wait_for("as of");
    assert_eq!(pty.count("\u{1b}[2J"), clears + 1);
    pty.resize(30, 8);
    pty.wait_for("unknown 3");
}

#[test]
fn without_colour_the_selected_row_is_still_reversed_u45() {
    let pty = start("child_mono");
    pty.wait("a row reversed from end to end, without colour", |screen| {
        let (line, _) = screen.cursor_position();
        (0..60).all(|column| {
            let cell = screen.cell(line, column).expect("a cell");
            cell.inverse() && cell.fgcolor() == vt100::Color::Default
        })
    });
}

#[test]
fn two_hundred_enters_a_paste_and_a_burst_change_nothing_u7_u13_u14() {
    let mut pty = start("child_plain");
    pty.paste("LRFqy\n");
    pty.wait_for("the paste was ignored");
    pty.send("\r".repeat(200));
    pty.wait_for("TIMELINE");
    pty.keys("esc");
    pty.wait_gone("TIMELINE");
    pty.send("LRFy\n");
    pty.wait_for("[ Cancel ]");
    pty.send("\r".repeat(200));
    pty.wait_gone("[ Cancel ]");
    let text = pty.wait_for("TIMELINE");
    assert!(text.contains("no verdict"), "nothing was looked up\n{text}");
}

#[test]
fn a_lookup_and_a_note_from_key_to_audit() {
    let mut pty = start("child_plain");
    pty.keys("j L");
    let text = pty.wait_for("[ Cancel ]");
    assert!(text.contains("only reads"), "{text}");
    pty.keys("ctrl-y");
    pty.wait_gone("[ Cancel ]");
    pty.keys("enter");
    pty.wait_for("TIMELINE");
    pty.keys("n");
    pty.wait_for("[ Cancel ]");
    pty.keys("tab 'asked' space 'the' space 'bank' ctrl-y");
    pty.wait_gone("[ Cancel ]");
    pty.wait_for("noted");
    pty.keys("G");
    let text = pty.wait_for("reviewer:ann: asked the bank");
    assert!(text.contains("review lookup"), "{text}");
}

#[test]
fn a_proposal_asks_for_the_token_the_id_and_a_note() {
    let mut pty = start("child_plain");
    pty.keys("R");
    let text = pty.wait_for("[ Cancel ]");
    assert!(text.contains("a proposal to close as refunded"), "{text}");
    let token = text
        .split("type ")
        .nth(1)
        .and_then(|t| t.split_whitespace().next())
        .expect("a token")
        .to_owned();
    pty.keys(&format!("tab '{token}' tab 're_{token}' tab 'seen' ctrl-y"));
    // The provider knows no such refund: the gate says so, and nothing was written.
    let text = pty.wait_for("Not done");
    assert!(text.contains("does not prove it"), "{text}");
    pty.keys("enter");
    pty.wait_gone("[ Cancel ]");
}

#[test]
fn quitting_shows_progress_and_ctrl_c_says_what_is_left_u55() {
    let mut pty = start("child_that_never_stops");
    pty.keys("q");
    pty.wait_for("stopping for");
    pty.wait_for("draining");
    pty.keys("ctrl-c");
    assert!(pty.exit(Duration::from_secs(2)).success());
    assert_restored(&pty);
    assert!(
        pty.text().contains("samekey left at once"),
        "{}",
        pty.text()
    );
}

#[test]
fn an_engine_that_does_not_stop_has_five_seconds() {
    let mut pty = start("child_that_never_stops");
    pty.keys("q");
    pty.wait_for("draining");
    assert!(pty.exit(Duration::from_secs(8)).success());
    assert!(pty.text().contains("samekey left at once"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_race_names_the_winner_and_a_moved_row_its_version_u23() {
    use samekey::domain::operation::Closing;
    use samekey::tui::action::{Access, Ask, LookedAt, Target};
    use samekey::tui::effect::{Effect, Runner};
    use samekey::tui::message::{Failure, Message};

    let child = Child::new().await;
    let gate = child
        .world
        .gate(&[("ann", Role::Reviewer), ("lea", Role::Lead)]);
    let name = |n| ReviewerName::parse(n).expect("a name");
    let (ann, lea) = (
        gate.person(Some(&name("ann"))).expect("ann"),
        gate.person(Some(&name("lea"))).expect("lea"),
    );
    let query = samekey::ledger::PageQuery {
        limit: 1,
        ..samekey::ledger::PageQuery::default()
    };
    let page = child.world.ledger.page(&query).await;
    let row = page.expect("a page").rows.remove(0).row;
    let Access::Acting(permit) = Access::of(false) else {
        panic!("not read-only")
    };
    let (sender, _answers) = tokio::sync::mpsc::channel(1);
    let clock = child.world.clock.clone();
    let runner = Runner::new(Arc::clone(&child.world.ledger), gate.clone(), clock, sender);
    let decide = async |version| {
        let target = Target::Row {
            operation: row.id.clone(),
            looked_at: LookedAt {
                version,
                ..LookedAt::of(&row)
            },
            ask: Ask::Close(Closing::Succeeded),
        };
        let effect = Effect::Decide {
            serial: 1,
            frozen: permit.freeze(target, ann.clone(), "simulator stripe".into()),
            note: "seen".into(),
            typed: None,
        };
        match runner.answer(effect).await {
            Some(Message::Done {
                result: Err(failure),
                ..
            }) => failure,
            other => panic!("{other:?}"),
        }
    };
    let moved: Failure = decide(row.version - 1).await;
    assert_eq!(moved.moved_to, Some(LookedAt::of(&row)));

    // Lea finds it at the provider and closes; Ann comes too late.
    let found = common::provider::refund_of(&row);
    child
        .provider
        .lookup_gives(samekey::domain::transition::Lookup::Listed {
            began_at: child.world.clock.now(),
            complete: true,
            objects: vec![(found, false)],
        });
    let looked = gate.lookup(&row.id, &lea).await.expect("looked up");
    let seen = Some(LookedAt::of(&looked.op.row));
    let closed = gate
        .decide(
            &row.id,
            Ask::Close(Closing::Succeeded),
            &lea,
            "found it",
            seen,
            None,
        )
        .await
        .expect("closed");
    let lost = decide(closed.op.row.version).await;
    assert_eq!(lost.moved_to, None);
    assert!(
        lost.why.contains("reviewer:lea") && lost.why.contains("(at 2"),
        "{lost:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_away_comes_from_the_ledger_as_the_contract_writes_it() {
    use samekey::tui::effect::{Effect, Runner};
    use samekey::tui::message::{Message, Told};

    let child = Child::new().await;
    let gate = child.world.gate(&[("ann", Role::Reviewer)]);
    let query = samekey::ledger::PageQuery {
        limit: 2,
        ..samekey::ledger::PageQuery::default()
    };
    let page = child.world.ledger.page(&query).await.expect("a page");
    let rows: Vec<_> = page.rows.into_iter().map(|l| l.row).collect();
    let (sender, _answers) = tokio::sync::mpsc::channel(1);
    let clock = child.world.clock.clone();
    let runner = Runner::new(Arc::clone(&child.world.ledger), gate, clock, sender);
    let tell = async |what, rows: &[samekey::domain::operation::OperationRow]| {
        let effect = Effect::Tell {
            serial: 7,
            what,
            ids: rows.iter().map(|r| r.id.clone()).collect(),
        };
        assert!(!effect.writes(), "it only reads");
        match runner.answer(effect).await {
            Some(Message::Told {
                serial: 7, result, ..
            }) => result,
            other => panic!("{other:?}"),
        }
    };
    let one = tell(Told::Json, &rows[..1]).await.expect("JSON");
    assert!(
        one.starts_with("{\"operation_id\":") && !one.contains('\n'),
        "{one}"
    );
    let value: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(value["idempotency_key"], rows[0].key.to_string());
    let both = tell(Told::Json, &rows).await.expect("JSON");
    let value: serde_json::Value = serde_json::from_str(&both).expect("JSON");
    assert_eq!(value.as_array().map(Vec::len), Some(2));
    assert_eq!(value[1]["operation_id"], rows[1].id.as_str());
    // Nothing of it was seen at the provider, so there is no page to show.
    assert_eq!(tell(Told::Link, &rows[..1]).await.expect("links"), "");
    let packet = tell(Told::Packet, &rows[..1]).await.expect("a packet");
    assert!(packet.contains(rows[0].id.as_str()) && !packet.contains(&rows[0].key.to_string()));

    // Once it is seen there, each object has its line.
    let found = common::provider::refund_of(&rows[0]);
    let id = found.id.clone();
    child
        .provider
        .lookup_gives(samekey::domain::transition::Lookup::Listed {
            began_at: child.world.clock.now(),
            complete: true,
            objects: vec![(found, false)],
        });
    let gate = child.world.gate(&[("ann", Role::Reviewer)]);
    let ann = ReviewerName::parse("ann").expect("a name");
    let ann = gate.person(Some(&ann)).expect("ann");
    gate.lookup(&rows[0].id, &ann).await.expect("looked up");
    assert_eq!(
        tell(Told::Link, &rows[..1]).await.expect("links"),
        format!("https://provider.example/refunds/{id}")
    );
}

#[test]
fn y_i_hands_the_id_to_the_terminal_s_clipboard_and_draws_nothing_odd_u50() {
    let mut pty = start("child_plain");
    pty.keys("y i");
    let text = pty.wait_for("sent to the terminal's clipboard");
    pty.wait_raw("\u{1b}]52;c;b3B", 0);
    assert_eq!(pty.count("\u{1b}]52;"), 1);
    assert!(!text.contains("52;c;"), "the terminal took it");
    pty.keys("q");
    assert!(pty.exit(SOON).success());
    assert_restored(&pty);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_reads_once_and_is_text() {
    let child = Child::new().await;
    let text = snapshot(child.deps(UiOptions::default()), 160, 40)
        .await
        .expect("a frame");
    assert!(
        text.contains("SIMULATOR stripe") && text.contains("3 Unknown 3"),
        "{text}"
    );
    assert!(
        text.contains("TIMELINE"),
        "the detail stands beside the list\n{text}"
    );
    assert!(text.lines().all(|l| l == l.trim_end()));
}
