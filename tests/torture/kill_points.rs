//! Killed at each named place (`src/kill.rs`), against each way in which the provider answers.

use std::time::{Duration, Instant};

use crate::judge::judge;
use crate::place::{Place, leave, was_killed};
use crate::tools::{each, figure, has_places, is_long, wait_until};

/// Each place on a call's way, in its order. At the first and the last two, `submit` is in the middle of its
/// own work; everywhere else it may as well be the engine that dies.
const PLACES: [&str; 10] = [
    "accepted",
    "opened",
    "connected",
    "authorised",
    "mid-body",
    "sent",
    "answered",
    "saved",
    "finished",
    "printed",
];

/// How long an engine that is told to end may take: the stop's own limit, and writing down the rest.
const SHUTDOWN: Duration = Duration::from_secs(20);

/// How the provider answers, and which pass of a place that is passed more than once meets that answer.
const OUTCOMES: [(&str, u32); 7] = [
    ("honest", 1),
    ("timeout-after-effect", 1),
    ("timeout-before-effect", 1),
    ("saved-500-with-effect", 1),
    ("saved-500-without-effect", 1),
    // The second request meets the first one still running.
    ("overlap-409", 2),
    ("refused", 1),
];

#[derive(Clone, Copy, Debug)]
struct Case {
    place: &'static str,
    scenario: &'static str,
    nth: u32,
    /// The engine dies, not the `submit` that drives its own call.
    engine: bool,
}

fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (p, place) in PLACES.into_iter().enumerate() {
        let submit_only = matches!(place, "accepted" | "finished" | "printed");
        let once = submit_only || place == "opened";
        for (o, (scenario, nth)) in OUTCOMES.into_iter().enumerate() {
            let turn = !submit_only && (p + o) % 3 == 2;
            for engine in [false, true] {
                let wanted =
                    (is_long() && !(engine && submit_only)) || (covers(p, o) && engine == turn);
                if wanted {
                    all.push(Case {
                        place,
                        scenario,
                        nth: if once { 1 } else { nth },
                        engine,
                    });
                }
            }
        }
    }
    all
}

/// The normal run's part: each place with an answer that is good, and with two others in turn; the engine
/// dies in every third, where it can.
fn covers(place: usize, outcome: usize) -> bool {
    outcome == 0 || (outcome + 2 * place) % 3 == 1
}

/// I5, I11, I15, I24, I26, L2, F05, F32, F44, R59: dead anywhere, started again, at rest: one effect at most, no call
/// lost, no row that claims too much. Then the agent asks again (R12).
#[test]
fn killed_anywhere_on_its_way_a_refund_stays_one_i5_i11_i26() {
    if !has_places("killed at each place (I5, I11, I26)") {
        return;
    }
    let cases = cases();
    let count = cases.len();
    each(cases, 8, |case| killed(*case));
    figure(&format!("{count} kills at places, each judged twice"));
}

fn killed(case: Case) {
    let place = Place::new(case.scenario);
    let at = format!("{}:{}", case.place, case.nth);
    if case.engine {
        place.queue("4417", "first");
        let mut engine = place.engine(&[("SAMEKEY_KILL_AT", &at)]);
        let ended = engine.exit(crate::tools::SOON);
        assert!(was_killed(&ended), "it was to die at {at}: {ended:?}");
    } else {
        let mut submit = place.submit("4417", "first", &["--run", "--json"]);
        let ended = place.ask("first", submit.env("SAMEKEY_KILL_AT", &at));
        assert!(ended.was_killed(), "it was to die at {at}: {ended:#?}");
    }
    let books = place.come_to_rest();
    assert!(books.call("first").is_some(), "I26: stored before {at}");
    judge(&place);

    // The same call again has the same answer, whoever gave it (I24); a further one adds nothing (R12).
    let again = place.drive("4417", "first");
    assert!(!again.word().is_empty(), "{again:#?}");
    place.drive("4417", "second");
    place.come_to_rest();
    let sum = judge(&place);
    assert_eq!(sum.operations, 1, "one intent, one row");
}

/// I29, F73, F74: killed between making a ledger and naming it, or under the lock of an upgrade, the next
/// process does it all.
#[test]
fn killed_while_making_or_upgrading_a_ledger_the_next_one_does_it_i29() {
    if !has_places("killed while a ledger is made (I29)") {
        return;
    }
    for at in ["made", "upgrading"] {
        let place = Place::new("honest");
        if at == "upgrading" {
            crate::ledger::make_old(&place.ledger);
        }
        let mut submit = place.submit("4417", "first", &["--run", "--json"]);
        let ended = place.ask("first", submit.env("SAMEKEY_KILL_AT", at));
        assert!(ended.was_killed(), "{at}: {ended:#?}");
        assert_eq!(place.posts(), 0, "{at}");
        let ended = place.drive("4417", "second");
        assert_eq!(ended.word(), "refunded", "{at}: {ended:#?}");
        judge(&place);
    }
}

/// L3, L5, F47: killed in the last attempt that the operation has, the row is swept to `unknown`, and nothing
/// else waits for it.
#[test]
fn killed_in_the_last_attempt_the_row_is_swept_and_blocks_nobody_l3_l5_f47() {
    if !has_places("killed in the last attempt (L3, F47)") {
        return;
    }
    // No effect, or the provider's list of events would settle the row.
    let place = Place::new("timeout-before-effect:6");
    assert_eq!(place.drive("4417", "first").word(), "unconfirmed");
    let mut submit = place.submit("4417", "second", &["--run", "--json"]);
    let ended = place.ask("second", submit.env("SAMEKEY_KILL_AT", "sent:3"));
    assert!(ended.was_killed(), "{ended:#?}");
    place.queue("4418", "other");
    let books = place.come_to_rest();
    let of = |order: &str| books.ops.iter().find(|o| o.order == order).expect("a row");
    assert_eq!(of("4417").attempts, 6);
    assert_eq!(of("4417").status, "unknown");
    assert_eq!(of("4417").reason.as_deref(), Some("attempts_exhausted"));
    assert_eq!(of("4418").status, "succeeded");
    assert_eq!(judge(&place).effects, 1);
}

/// L8: told to end while a request is in flight, it ends in its bound, and what it cut off is taken over.
#[test]
fn told_to_end_amid_a_request_it_ends_and_nothing_is_lost_l8() {
    let place = Place::new("timeout-after-effect:1");
    let engine = place.engine(&[]);
    place.queue("4417", "first");
    wait_until("the provider has it", || (place.posts() > 0).then_some(()));
    assert_eq!(place.books().in_flight, 1, "amid the request");
    let told = Instant::now();
    leave(engine);
    let took = told.elapsed();
    // What is in flight may take its timeout, and writing down what was cut off a few seconds.
    assert!(took < SHUTDOWN, "L8: it took {took:?}");
    assert_eq!(place.books().in_flight, 0, "nothing is left in the air");
    place.come_to_rest();
    assert_eq!(judge(&place).effects, 1);
}
