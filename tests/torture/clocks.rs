//! Clocks that are wrong from the start, or set while a request is in flight. libfaketime moves the wall
//! clock of one process; its boot clock goes on as before.

use std::path::{Path, PathBuf};

use crate::judge::judge;
use crate::place::{Ended, Place, Settings, leave, signal, stopped};
use crate::tools::{faketime, has_places, wait_until};

/// The variables that show a process another wall clock.
fn shown<'a>(library: &'a Path, time: (&'static str, &'a str)) -> Vec<(&'static str, &'a str)> {
    vec![
        ("LD_PRELOAD", crate::cli::text(library)),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("FAKETIME_NO_CACHE", "1"),
        time,
    ]
}

/// A refund of an order, asked and driven in a process whose wall clock is off.
fn drive_at(place: &Place, library: &Path, off: &str, order: &str, call: &str) -> Ended {
    let mut submit = place.submit(order, call, &["--run", "--json"]);
    submit.envs(shown(library, ("FAKETIME", off)));
    place.ask(call, &mut submit)
}

/// Whether this library does here what it is for.
fn works(place: &Place, library: &Path) -> bool {
    let mut date = std::process::Command::new("date");
    date.arg("+%Y").env_clear();
    date.envs(shown(library, ("FAKETIME", "-40y")));
    let said = date.output().expect("date");
    let year = String::from_utf8_lossy(&said.stdout);
    let moved = year.trim().parse::<i32>().is_ok_and(|y| y < 2_000);
    if !moved {
        crate::tools::skipped(
            "clocks that are set (I10, I27)",
            "libfaketime moves no clock",
        );
    }
    moved && place.ledger.is_absolute()
}

/// I27 (proof.md (c), "clock"): two hours behind the ledger's mark nothing is sent and no row changes; the
/// right clock goes on as if nothing had been.
#[test]
fn with_a_clock_two_hours_behind_nothing_is_sent_i27() {
    let Some(library) = faketime("a clock two hours behind (I27)") else {
        return;
    };
    let place = Place::new("timeout-after-effect:3");
    if !works(&place, &library) {
        return;
    }
    assert_eq!(place.drive("4417", "before").word(), "unconfirmed");
    let (sent, rows) = (place.posts(), format!("{:?}", place.books().ops));
    for (order, call) in [("4417", "same"), ("4418", "other")] {
        let ended = drive_at(&place, &library, "-2h", order, call);
        assert!(
            ["rejected", "unconfirmed"].contains(&ended.word()),
            "{ended:#?}"
        );
    }
    assert_eq!(place.posts(), sent, "I27");
    assert_eq!(
        format!("{:?}", place.books().ops),
        rows,
        "I27: no row changes"
    );
    assert_eq!(place.drive("4417", "after").word(), "refunded");
    place.come_to_rest();
    assert_eq!(judge(&place).effects, 1);
}

/// I10, I16, I27, F17: a process that starts a day and an hour later sends nothing with the old key and makes
/// the row `unknown`. With the right clock again, the ledger is ahead: nothing is sent until a lead accepts
/// the clock.
#[test]
fn a_day_and_an_hour_later_the_key_is_never_sent_i10() {
    let Some(library) = faketime("a clock 25 hours ahead (I10)") else {
        return;
    };
    let place = Place::new("timeout-after-effect:3");
    if !works(&place, &library) {
        return;
    }
    assert_eq!(place.drive("4417", "before").word(), "unconfirmed");
    assert_eq!(place.posts(), 3);
    let ended = drive_at(&place, &library, "+25h", "4417", "late");
    assert_eq!(ended.word(), "checking", "{ended:#?}");
    let books = place.books();
    assert_eq!(books.only().reason.as_deref(), Some("key_expired"));
    let ended = place.drive("4418", "ahead");
    assert_eq!(ended.word(), "rejected", "the ledger is ahead: {ended:#?}");
    assert_eq!(place.posts(), 3, "I10, I27");
    place.home.ok(0, &["clock", "accept"]);
    assert_eq!(place.drive("4418", "accepted").word(), "refunded");
    assert_eq!(place.drive("4417", "again").word(), "checking", "I16");
    assert_eq!(place.posts(), 4);
    place.come_to_rest();
    assert_eq!(judge(&place).effects, 2);
}

/// A wall clock that a file says, and that can be set while the process runs.
struct Setting(PathBuf);

impl Setting {
    fn new(place: &Place) -> Self {
        let setting = Self(place.home.path("wall-clock"));
        setting.set("+0");
        setting
    }

    /// Whole or not at all: the process reads the file at any moment.
    fn set(&self, off: &str) {
        let new = self.0.with_extension("new");
        std::fs::write(&new, off).expect("written");
        std::fs::rename(&new, &self.0).expect("named");
    }

    fn name(&self) -> &str {
        crate::cli::text(&self.0)
    }
}

/// I9, I10, I27: the clock is set, back or far ahead, while a request is in flight: its outcome is written
/// down, and nothing more is sent until the clock is right again; then all goes on.
#[test]
fn a_clock_set_amid_a_request_stops_sending_until_it_is_right_i27() {
    let Some(library) = faketime("a clock set amid a request (I27)") else {
        return;
    };
    for off in ["-2h", "+25h"] {
        let settings = Settings {
            timeout: "2s",
            ..Settings::default()
        };
        let place = Place::with("timeout-after-effect:1", settings);
        if !works(&place, &library) {
            return;
        }
        let setting = Setting::new(&place);
        let file = ("FAKETIME_TIMESTAMP_FILE", setting.name());
        let engine = place.engine(&shown(&library, file));
        place.queue("4417", "first");
        wait_until("one in flight", || (place.posts() == 1).then_some(()));
        setting.set(off);
        engine.wait("the alarm", |s| s.contents().contains("clock"));
        wait_until("its outcome is written", || {
            (place.books().in_flight == 0).then_some(())
        });
        place.queue("4418", "second");
        let answered = wait_until("the other call is answered", || {
            place.books().call("second").and_then(|c| c.result.clone())
        });
        assert_eq!(answered["status"], "rejected", "{off}");
        assert_eq!(place.posts(), 1, "{off}: nothing more is sent");
        setting.set("+0");
        place.queue("4417", "third");
        let books = place.rests(&engine);
        leave(engine);
        assert_eq!(books.only().status, "succeeded", "{off}");
        assert_eq!(judge(&place).effects, 1, "{off}");
    }
}

/// I9, I10 (proof.md (c)): a process that stood still between counting and sending wakes 25 hours later by its
/// wall clock alone; window and lease still hold, and it sends nothing.
#[test]
fn woken_25_hours_later_by_the_wall_clock_it_sends_nothing_i10() {
    let what = "woken 25 hours later (I10)";
    let Some(library) = faketime(what).filter(|_| has_places(what)) else {
        return;
    };
    let settings = Settings {
        lease: "1h",
        window: "60s",
        ..Settings::default()
    };
    let place = Place::with("honest", settings);
    if !works(&place, &library) {
        return;
    }
    let setting = Setting::new(&place);
    let mut submit = place.submit("4417", "first", &["--run", "--json"]);
    submit.env("SAMEKEY_STOP_AT", "authorised");
    submit.envs(shown(&library, ("FAKETIME_TIMESTAMP_FILE", setting.name())));
    let child = submit.spawn().expect("started");
    stopped(child.id());
    setting.set("+25h");
    signal(child.id(), rustix::process::Signal::CONT);
    let ended = place.heard("first", child);
    assert!(!ended.word().is_empty(), "{ended:#?}");
    assert_eq!(place.posts(), 0, "I10");
    judge(&place);
}
