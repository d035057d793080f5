//! `kill -9` at random moments, under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rustix::process::Signal;

use crate::judge::judge;
use crate::place::{Place, Settings, was_killed};
use crate::tools::{asked, figure, is_long};

/// Callers at work all the time.
const CALLERS: u64 = 3;
/// After so many the next ledger is begun: five attempts that end badly in a row open the circuit, and then
/// nothing is sent any more.
const KILLS_A_LEDGER: u64 = 5;
const SCENARIOS: [&str; 4] = [
    "mixed",
    "honest",
    "timeout-after-effect:9",
    "reset-after-commit:9",
];

fn number(name: &str) -> Option<u64> {
    asked(name)?.parse().ok()
}

/// I5, I11, I24–I26, F32, F44, R59: the engine is killed again and again while agents ask, some of them
/// twice for the same refund and some driving their own call until they are killed too; the provider
/// answers in every way it knows.
#[test]
fn killed_at_random_under_load_nothing_is_paid_twice_or_lost_i11_i26() {
    let kills = number("SAMEKEY_KILLS").unwrap_or(if is_long() { 1_000 } else { 20 });
    let seed = number("SAMEKEY_SEED").unwrap_or_else(|| rand::rng().random_range(0..1_000_000));
    figure(&format!(
        "{kills} random kills with SAMEKEY_SEED={seed} SAMEKEY_KILLS={kills}"
    ));
    let mut total = crate::judge::Sum::default();
    let mut amid = 0;
    for round in 0..kills.div_ceil(KILLS_A_LEDGER) {
        let lot = (kills - round * KILLS_A_LEDGER).min(KILLS_A_LEDGER);
        let scenario = SCENARIOS[usize::try_from(round).unwrap_or(0) % SCENARIOS.len()];
        let settings = Settings {
            timeout: "300ms",
            ..Settings::default()
        };
        let place = Place::with(scenario, settings);
        amid += tortured(&place, lot, seed + round);
        place.come_to_rest();
        total.add(&judge(&place));
    }
    figure(&format!(
        "{kills} random kills, {amid} of them amid the work, no rule broken: {total:?}"
    ));
    assert!(amid > 0, "no kill met anything unfinished");
    assert!(total.effects > 0, "the load did something");
}

/// Kills so many engines under load; answers how many left something unfinished behind.
fn tortured(place: &Place, kills: u64, seed: u64) -> u64 {
    let mut amid = 0;
    let over = AtomicBool::new(false);
    let calls = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (over, calls) = (&over, &calls);
            scope.spawn(move || {
                let mut lots = StdRng::seed_from_u64(seed * 1_000 + caller);
                while !over.load(Ordering::SeqCst) {
                    let nth = calls.fetch_add(1, Ordering::SeqCst);
                    ask(place, nth, &mut lots);
                }
            });
        }
        let mut lots = StdRng::seed_from_u64(seed);
        let killing = std::panic::AssertUnwindSafe(|| {
            for _ in 0..kills {
                let mut engine = place.engine(&[]);
                // The times of the kills are what is drawn here; nothing waits for anything.
                std::thread::sleep(Duration::from_millis(lots.random_range(20..900)));
                engine.signal(Signal::KILL);
                let ended = engine.exit(crate::tools::SOON);
                assert!(was_killed(&ended), "it ended by itself: {ended:?}");
                let unfinished = place.try_books().is_some_and(|b| !b.are_quiet());
                amid += u64::from(unfinished);
            }
        });
        let killed = std::panic::catch_unwind(killing);
        over.store(true, Ordering::SeqCst);
        if let Err(why) = killed {
            std::panic::resume_unwind(why);
        }
    });
    amid
}

/// One call: of a new order, or of one that was asked about lately; left to the engine, or driven here.
fn ask(place: &Place, nth: usize, lots: &mut StdRng) {
    let order = if lots.random_ratio(1, 3) {
        nth.saturating_sub(lots.random_range(1..8))
    } else {
        nth
    };
    let (order, call) = (format!("{}", 10_000 + order), format!("call_{nth}"));
    let drives = lots.random_ratio(1, 5);
    let how: &[&str] = if drives {
        &["--run", "--json"]
    } else {
        &["--json"]
    };
    let child = place.submit(&order, &call, how).spawn().expect("started");
    if drives && lots.random_ratio(1, 2) {
        std::thread::sleep(Duration::from_millis(lots.random_range(5..250)));
        crate::place::signal(child.id(), Signal::KILL);
    }
    place.heard(&call, child);
    // Agents think between two calls.
    std::thread::sleep(Duration::from_millis(lots.random_range(20..120)));
}
