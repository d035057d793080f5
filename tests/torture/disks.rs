//! Disks that are full or read-only.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::judge::judge;
use crate::ledger::is_free;
use crate::place::{Place, Settings, leave, stopped};
use crate::pty::cpu_of;
use crate::tools::{SOON, SmallDisk, wait_until};

fn on(disk: &SmallDisk) -> Place {
    Place::at("honest", Settings::default(), Some(disk.path("ledger.db")))
}

/// I5, I26, F81, F82 (proof.md (c), "disk full"): a call that cannot be stored is not accepted; an engine on a full
/// disk sends nothing, does not spin, and goes on by itself when there is room again.
#[test]
fn on_a_full_disk_nothing_is_accepted_or_sent_and_it_recovers_i5_i26() {
    let Some(disk) = SmallDisk::mount("a full disk (I5, I26)", 6) else {
        return;
    };
    let place = on(&disk);
    place.drive("1", "made");
    let engine = place.engine(&[]);
    engine.wait_for("Succ 1");
    let pid = u32::try_from(engine.pid().as_raw_nonzero().get()).expect("an id");
    wait_until("it is stopped between two writes", || {
        engine.signal(Signal::STOP);
        // Told is not stopped yet.
        stopped(pid);
        let between = is_free(&place.ledger);
        if !between {
            engine.signal(Signal::CONT);
        }
        between.then_some(())
    });
    for n in 0..4 {
        place.queue(&format!("44{n}"), &format!("before_{n}"));
    }
    let ballast = disk.fill();
    for n in 0..5 {
        let call = format!("refused_{n}");
        let ended = place.ask(&call, &mut place.submit("9", &call, &["--json"]));
        let refused = ended.status.code().is_some_and(|c| c != 0) && ended.told.is_none();
        assert!(refused, "not accepted: {ended:#?}");
        assert!(ended.stderr.contains("error"), "and it says so: {ended:#?}");
    }
    engine.signal(Signal::CONT);
    engine.wait("the alarm", |s| s.contents().contains("the disk is full"));
    assert_eq!(place.posts(), 1, "nothing counted, nothing sent");
    let (used, since) = (cpu_of(pid), Instant::now());
    wait_until("a moment passes", || {
        (since.elapsed() > Duration::from_millis(1_500)).then_some(())
    });
    let spent = cpu_of(pid)
        .zip(used)
        .map(|(now, then)| now.saturating_sub(then));
    assert!(
        spent.is_some_and(|s| s < Duration::from_millis(900)),
        "a hot loop: {spent:?}"
    );
    std::fs::remove_file(ballast).expect("room again");
    let books = place.rests(&engine);
    leave(engine);
    assert_eq!(books.ops.len(), 5);
    assert!(books.calls.iter().all(|c| !c.id.starts_with("refused")));
    assert_eq!(judge(&place).effects, 5);
}

/// F81, I26: every program that starts on a disk that is full already says so in one sentence, and what to do;
/// nothing is accepted or sent. With room it goes on with what was accepted before.
#[test]
fn starting_on_a_full_disk_is_one_clear_sentence_f81() {
    let Some(disk) = SmallDisk::mount("starting on a full disk (F81)", 6) else {
        return;
    };
    let place = on(&disk);
    let says_so = |said: &str| {
        assert!(said.contains("the disk is full; make room"), "{said}");
        assert!(
            !said.contains("I/O") && !said.contains("panicked"),
            "{said}"
        );
    };
    // No ledger is there yet, and then one is.
    for before in [None, Some("before")] {
        if let Some(call) = before {
            place.queue("4417", call);
        }
        let ballast = disk.fill();
        let ended = place.ask("b", &mut place.submit("9", "b", &["--run", "--json"]));
        assert!(!ended.status.success() && ended.told.is_none());
        says_so(&ended.stderr);
        for command in [&["ops", "list"][..], &["verify"], &["--snapshot", "80x24"]] {
            let ran = place.home.run(command);
            assert_ne!(ran.code, 0, "{command:?}: {ran:#?}");
            if before.is_some() {
                says_so(&ran.stderr);
                assert_eq!(ran.stderr.lines().count(), 1, "{ran:#?}");
            }
        }
        let mut engine = place.engine(&[]);
        engine.exit(SOON);
        says_so(&engine.text().replace(['\n', '\r'], " ").replace("  ", " "));
        std::fs::remove_file(ballast).expect("room again");
    }
    assert_eq!(place.posts(), 0);
    place.come_to_rest();
    assert_eq!(judge(&place).effects, 1);
}

/// I5, I11, F81: room runs out while an engine is at work; what was in flight is known in the end.
#[test]
fn a_disk_that_fills_up_amid_the_work_loses_nothing_i5_i11() {
    let Some(disk) = SmallDisk::mount("a disk that fills up (I5, I11)", 12) else {
        return;
    };
    let place = on(&disk);
    let engine = place.engine(&[]);
    let until = Instant::now() + SOON;
    let mut accepted = 0;
    for n in 0..40 {
        let call = format!("call_{n}");
        let how: &[&str] = if n % 4 == 0 {
            &["--run", "--json"]
        } else {
            &["--json"]
        };
        let child = place.submit(&(70 + n).to_string(), &call, how).spawn();
        let ballast = (n % 8 == 5).then(|| disk.fill());
        let ended = place.heard(&call, child.expect("started"));
        accepted += u32::from(ended.told.is_some());
        if let Some(ballast) = ballast {
            std::fs::remove_file(ballast).expect("room again");
        }
        assert!(Instant::now() < until, "too slow");
    }
    place.rests(&engine);
    leave(engine);
    assert!(accepted > 20, "most were accepted: {accepted}");
    judge(&place);
}

/// I26 (proof.md (c), "read-only file system"): nothing is accepted, nothing is sent, every command says why in
/// one sentence, and what was stored is there when the disk may be written again.
#[test]
fn on_a_read_only_disk_every_command_says_why_and_nothing_is_sent_i26() {
    let Some(disk) = SmallDisk::mount("a read-only file system (I26)", 4) else {
        return;
    };
    let place = on(&disk);
    place.queue("4417", "before");
    disk.make_read_only(true);
    for how in [&["--json"][..], &["--run", "--json"]] {
        let ended = place.ask("refused", &mut place.submit("9", "refused", how));
        assert!(
            !ended.status.success() && ended.told.is_none(),
            "{ended:#?}"
        );
        assert!(ended.stderr.contains("error"), "{ended:#?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
    }
    for command in [&["ops", "list"][..], &["verify"], &["--snapshot", "80x24"]] {
        let ran = place.home.run(command);
        assert!(
            ran.code == 0 || !ran.stderr.is_empty(),
            "{command:?}: {ran:#?}"
        );
        assert!(!ran.stderr.contains("panicked"), "{command:?}: {ran:#?}");
    }
    let mut engine = place.engine(&[]);
    engine.exit(SOON);
    let said = engine.text();
    assert!(said.contains("ledger") || said.contains("read"), "{said}");
    assert_eq!(place.posts(), 0);
    disk.make_read_only(false);
    place.come_to_rest();
    assert_eq!(judge(&place).effects, 1);
}

/// I5, I26, F81: the same as a full disk where nothing may be mounted: no file may grow beyond a limit.
#[test]
fn with_files_that_may_not_grow_nothing_is_sent_uncounted_i5() {
    let place = Place::new("honest");
    place.queue("4417", "before");
    // Blocks of 512 bytes; the signal that would end the process is ignored, so that writes fail instead.
    for blocks in ["0", "8", "40", "200", "600", "900"] {
        let script = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
        let call = format!("limited_{blocks}");
        let shell = ["sh", "-c", script, blocks];
        let mut submit = place.submit_under(&shell, "4418", &call, &["--run", "--json"]);
        let ended = place.ask(&call, &mut submit);
        assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
    }
    place.come_to_rest();
    judge(&place);
}
