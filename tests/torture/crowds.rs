//! Many processes on one ledger: starting at the same moment, and at work together.

use rustix::process::Signal;

use crate::judge::judge;
use crate::ledger;
use crate::place::{Place, leave, was_killed};
use crate::tools::is_long;

/// I1, I11, I29, F02, F73: five processes start at once on a ledger that is not there yet, or that is of the
/// first release, and all ask for the same refund: all are answered, one upgraded, one effect.
#[test]
fn five_processes_starting_at_once_make_one_ledger_and_one_effect_i1_i29_f73() {
    let rounds = if is_long() { 30 } else { 3 };
    let fresh = Place::new("honest");
    fresh.drive("1", "made");
    let newest = ledger::schema(&fresh.ledger);
    for round in 0..rounds {
        for old in [false, true] {
            let place = Place::new("honest");
            if old {
                ledger::make_old(&place.ledger);
                assert_eq!(ledger::schema(&place.ledger), 1);
            }
            let start = |n| {
                let call = format!("call_{n}");
                let mut submit = place.submit("4417", &call, &["--run", "--json"]);
                (call, submit.spawn().expect("started"))
            };
            let children: Vec<_> = (0..5).map(start).collect();
            for (call, child) in children {
                let ended = place.heard(&call, child);
                assert_eq!(ended.word(), "refunded", "{round} old={old}: {ended:#?}");
            }
            assert_eq!(ledger::schema(&place.ledger), newest);
            let sum = judge(&place);
            assert_eq!((sum.calls, sum.operations, sum.effects), (5, 1, 1));
        }
    }
}

/// I1, I11, I25, F02, F44, F50: a screen with its engine, two further engines and a screen without one, on one
/// file; one engine is killed amid the work and the last call is answered by the others.
#[test]
fn a_screen_and_two_engines_on_one_file_share_the_work_i1_i11() {
    let place = Place::new("timeout-after-effect:2");
    place.drive("1", "made");
    let mut engines = vec![place.engine(&[]), place.engine(&[]), place.engine(&[])];
    let watcher = crate::pty::Pty::spawn(
        place.screen(&[env!("CARGO_BIN_EXE_samekey"), "--no-engine"], &[]),
        (120, 40),
    );
    for n in 0..24 {
        // Each refund is asked for twice, by two calls.
        place.queue(&(300 + n / 2).to_string(), &format!("call_{n}"));
        if n == 12 {
            let mut killed = engines.remove(0);
            killed.signal(Signal::KILL);
            let ended = killed.exit(crate::tools::SOON);
            assert!(was_killed(&ended), "it was at work till then: {ended:?}");
        }
    }
    place.rests(&engines[0]);
    watcher.wait("the list", |s| s.contents().contains("Succ"));
    leave(watcher);
    engines.into_iter().for_each(leave);
    let sum = judge(&place);
    assert_eq!((sum.calls, sum.operations), (25, 13), "{sum:?}");
}
