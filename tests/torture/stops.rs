//! Stopped (SIGSTOP) in the middle of a call, past the send window, the lease or the key's deadline, while
//! others go on (proof.md (e)).

use std::process::Child;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rustix::process::Signal;

use crate::judge::judge;
use crate::ledger::{Books, Held};
use crate::place::{Ended, Place, Settings, scenario, signal, stopped};
use crate::tools::{figure, has_places, is_long, wait_until};

/// A `submit` that drives its call and stands still at a place.
struct Zombie {
    child: Child,
}

impl Zombie {
    fn at(place: &Place, at: &str) -> Self {
        let mut submit = place.submit("4417", "zombie", &["--run", "--json"]);
        let child = submit.env("SAMEKEY_STOP_AT", at).spawn().expect("started");
        stopped(child.id());
        Self { child }
    }

    /// It goes on, to its end.
    fn wakes(self, place: &Place) -> Ended {
        signal(self.child.id(), Signal::CONT);
        place.heard("zombie", self.child)
    }
}

/// The outcomes of the only row's attempts, as `ops show` has them.
fn outcomes(place: &Place) -> Vec<String> {
    let op = place.books().only().id.clone();
    let shown = place.home.json(&["ops", "show", &op]);
    let all = shown["attempt_list"].as_array().expect("its attempts");
    let class = |a: &serde_json::Value| a["outcome"].as_str().unwrap_or_default().to_owned();
    all.iter().map(class).collect()
}

const STOPPED: &str = "stopped at a place (I9, I10, I25)";

/// A timeout that outlasts every stop: what decides is the lease.
const LEASE: Settings = Settings {
    lease: "1s",
    timeout: "30s",
    window: "60s",
    retention: "24h",
};

/// I9, I25 (e1), F42, M17: it counted its attempt and stood still until another engine had the call and
/// finished it. Awake again it sends nothing and changes nothing.
#[test]
fn stopped_before_the_first_byte_until_others_finished_it_sends_nothing_i9_i25() {
    if !has_places(STOPPED) {
        return;
    }
    let place = Place::with("honest", LEASE);
    let zombie = Zombie::at(&place, "authorised");
    assert_eq!(place.posts(), 0);
    let books = place.come_to_rest_without(&zombie.child);
    assert_eq!(books.only().status, "succeeded");
    let before = format!("{:?}", place.books().ops);
    let ended = zombie.wakes(&place);
    assert_eq!(
        ended.word(),
        "refunded",
        "it hears what others did: {ended:#?}"
    );
    assert_eq!(place.posts(), 1, "I9: only the other engine's");
    assert_eq!(format!("{:?}", place.books().ops), before, "I25");
    assert_eq!(judge(&place).effects, 1);
}

/// I9, I15 (e3): the same, and what the other engine got was a 500: nobody knows, so nothing more is sent.
#[test]
fn stopped_before_the_first_byte_until_nobody_knew_it_sends_nothing_i15() {
    if !has_places(STOPPED) {
        return;
    }
    let place = Place::with("saved-500-with-effect", LEASE);
    let zombie = Zombie::at(&place, "authorised");
    let books = place.come_to_rest_without(&zombie.child);
    assert_eq!(books.only().status, "unknown");
    let ended = zombie.wakes(&place);
    assert_eq!(ended.word(), "checking", "{ended:#?}");
    assert_eq!(place.posts(), 1, "I15");
    assert_eq!(place.books().only().status, "unknown", "I16");
    judge(&place);
}

/// I25 (e2), R59: the same after its last byte. The other engine meets the saved answer, and the late one
/// overwrites nothing.
#[test]
fn stopped_after_its_last_byte_its_late_answer_overwrites_nothing_i25() {
    if !has_places(STOPPED) {
        return;
    }
    let place = Place::with("honest", LEASE);
    let zombie = Zombie::at(&place, "sent");
    wait_until("the provider has it", || (place.posts() == 1).then_some(()));
    assert_eq!(place.overtakes(&zombie.child).word(), "refunded");
    let books = place.books();
    assert_eq!(
        (books.only().status.as_str(), books.only().attempts),
        ("succeeded", 2)
    );
    let before = format!("{:?}", place.books().ops);
    let ended = zombie.wakes(&place);
    assert_eq!(ended.word(), "refunded", "{ended:#?}");
    assert_eq!(format!("{:?}", place.books().ops), before);
    assert_eq!(judge(&place).effects, 1);
}

/// I15, I16 (e3): meanwhile another engine got a 500, so nobody knows; the zombie's late 200 of ours is
/// proof and closes the row. Nothing more is sent.
#[test]
fn a_late_success_of_a_stopped_engine_closes_what_nobody_knew_i16() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let steps = "[[step]]\n[[step]]\n[step.answer]\nstatus = 500\ntype = \"api_error\"\nmessage = \"No.\"\n";
    let file = scenario(dir.path(), steps);
    if !has_places(STOPPED) {
        return;
    }
    let place = Place::with(crate::cli::text(&file), LEASE);
    let zombie = Zombie::at(&place, "sent");
    wait_until("the provider has it", || (place.posts() == 1).then_some(()));
    assert_eq!(place.overtakes(&zombie.child).word(), "checking");
    assert_eq!(place.books().only().status, "unknown");
    let ended = zombie.wakes(&place);
    assert_eq!(ended.word(), "refunded", "its own call: {ended:#?}");
    let other = place.books().call("other").and_then(|c| c.result.clone());
    let word = other.as_ref().map(|r| &r["status"]);
    assert_eq!(word, Some(&"checking".into()), "the answer was given (I24)");
    assert_eq!(place.books().only().status, "succeeded", "its proof counts");
    assert_eq!(place.posts(), 2);
    assert_eq!(judge(&place).effects, 1);
}

/// I10 (e4), F17: stopped past the key's deadline, with a lease and a window that would still hold: nothing
/// leaves, then or later.
#[test]
fn stopped_past_the_keys_deadline_nothing_is_sent_i10() {
    // Window, timeout, settle time and clock error are taken off: the key lives for two seconds.
    let settings = Settings {
        lease: "1h",
        timeout: "1s",
        window: "60s",
        retention: "364s",
    };
    if !has_places(STOPPED) {
        return;
    }
    let place = Place::with("honest", settings);
    let zombie = Zombie::at(&place, "authorised");
    let deadline = place.books().only().key_expires_at.expect("a deadline");
    wait_until("the deadline passes", || {
        (samekey::clock::Clock::system().now().timestamp_micros() > deadline).then_some(())
    });
    let ended = zombie.wakes(&place);
    assert!(!ended.word().is_empty(), "{ended:#?}");
    place.drive("4417", "later");
    let books = place.come_to_rest();
    assert_eq!(place.posts(), 0, "I10");
    assert_ne!(books.only().status, "succeeded");
    judge(&place);
}

/// I9: stopped for longer than the send window, with everything else in order: the attempt is noted
/// as not sent, and the next one sends.
#[test]
fn stopped_past_the_send_window_that_attempt_is_not_sent_i9() {
    let settings = Settings {
        lease: "1h",
        timeout: "5s",
        window: "300ms",
        ..Settings::default()
    };
    if !has_places(STOPPED) {
        return;
    }
    let place = Place::with("honest", settings);
    let zombie = Zombie::at(&place, "authorised");
    // By the clock of the machine, as the engine's own.
    let since = std::time::Instant::now();
    wait_until("the window passes", || {
        (since.elapsed() > Duration::from_millis(400)).then_some(())
    });
    let ended = zombie.wakes(&place);
    assert_eq!(ended.word(), "refunded", "{ended:#?}");
    assert_eq!(outcomes(&place), ["not_sent", "succeeded"]);
    assert_eq!(place.posts(), 1);
    judge(&place);
}

/// I25 (e5), F53: the ledger is held by somebody for longer than the lease while a request is in
/// flight: its outcome is written once it may be, and others add nothing.
#[test]
fn a_ledger_held_past_the_lease_amid_a_request_loses_no_outcome_i25() {
    if !has_places(STOPPED) {
        return;
    }
    let place = Place::with("honest", LEASE);
    let zombie = Zombie::at(&place, "answered");
    let held = Held::begin(&place.ledger, &["BEGIN IMMEDIATE"]);
    signal(zombie.child.id(), Signal::CONT);
    let since = std::time::Instant::now();
    wait_until("the lease is over", || {
        (since.elapsed() > Duration::from_millis(1_500)).then_some(())
    });
    let other = place.submit("4417", "other", &["--run", "--json"]).spawn();
    held.let_go();
    let ended = place.heard("zombie", zombie.child);
    assert!(!ended.word().is_empty(), "{ended:#?}");
    place.heard("other", other.expect("started"));
    place.come_to_rest();
    assert_eq!(judge(&place).effects, 1);
}

/// I9, I11, I25, F42: two engines under load, either of which is stopped at random, also past its lease.
#[test]
fn engines_stopped_at_random_pay_nothing_twice_i11_i25() {
    let rounds = if is_long() { 200 } else { 8 };
    let place = Place::new("honest");
    let mut lots = StdRng::seed_from_u64(7);
    let engines = [place.engine(&[]), place.engine(&[])];
    for round in 0..rounds {
        for nth in 0..3 {
            let order = 5_000 + round * 2 + nth;
            place.queue(&order.to_string(), &format!("call_{round}_{nth}"));
        }
        let engine = &engines[lots.random_range(0..2)];
        engine.signal(Signal::STOP);
        let short = lots.random_ratio(1, 2);
        let ms = if short {
            lots.random_range(5..200)
        } else {
            lots.random_range(900..1_600)
        };
        std::thread::sleep(Duration::from_millis(ms));
        engine.signal(Signal::CONT);
    }
    place.rests(&engines[0]);
    engines.into_iter().for_each(crate::place::leave);
    let sum = judge(&place);
    figure(&format!("{rounds} random stops of two engines: {sum:?}"));
}

impl Place {
    /// Another call for the same refund, driven by a process that does nothing else: no list of events may
    /// settle the row first.
    fn overtakes(&self, zombie: &Child) -> Ended {
        let ended = self.ask(
            "other",
            &mut self.submit("4417", "other", &["--run", "--json"]),
        );
        assert_eq!(
            crate::tools::state(zombie.id()),
            Some('T'),
            "it stood still"
        );
        ended
    }

    /// As [`Place::come_to_rest`], by another process than the stopped one.
    fn come_to_rest_without(&self, zombie: &Child) -> Books {
        let books = self.come_to_rest();
        assert_eq!(
            crate::tools::state(zombie.id()),
            Some('T'),
            "it stood still"
        );
        books
    }
}
