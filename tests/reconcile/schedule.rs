//! The schedule under a running engine: growing, paced, and shared by all engines of a ledger.

use std::time::Duration;

use chrono::TimeDelta;
use samekey::domain::later;
use samekey::domain::operation::Status;
use samekey::domain::watch::next_look;
use samekey::engine::{Engine, EngineState};

use crate::ledger::{at, stripe, terms};
use crate::scripted::Room;

/// 1, 2, 4 … minutes up to a day, and never past the moment from which absence can be proven; I16.
#[tokio::test]
async fn looks_at_an_unknown_row_grow_apart_and_never_end_i16() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let row = room.row(&id).await;
    let profile = terms().profile;
    let decidable = profile.decidable_at(row.last_authorised_at.expect("sent"));
    let mut now = at(60);
    let mut waits = Vec::new();
    for looks in 1..=20 {
        let next = next_look(&row, looks, &profile, now).expect("it never ends");
        waits.push((next - now).num_seconds());
        now = next;
    }
    assert_eq!(waits[..3], [60, 120, 240]);
    assert!(
        waits[3..].iter().all(|w| *w <= 86_400) && waits[19] == 86_400,
        "{waits:?}"
    );
    let mut instants = vec![at(60)];
    for wait in &waits {
        let last = *instants.last().expect("one");
        instants.push(later(
            last,
            Duration::from_secs(u64::try_from(*wait).expect("forward")),
        ));
    }
    assert!(
        instants.contains(&decidable),
        "the first look that proves something"
    );
}

/// A running engine looks at what is due by itself, and closes on `confirmed`.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_engine_looks_by_itself() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let refund = room.refund_of(&id, "re_1", "succeeded").await;
    room.shown().refunds.push(refund);
    let mut changes = room.world.ledger.changed();
    let engine = Engine::start(room.deps());
    let mut health = engine.health();
    let running = health.wait_for(|h| h.state == EngineState::Running);
    running.await.expect("it runs");
    room.world.wait(Duration::from_secs(61));
    while room.row(&id).await.status != Status::Succeeded {
        // The clock moves on as the tasks sleep on it.
        let change = tokio::time::timeout(Duration::from_millis(50), changes.changed());
        if change.await.is_err() {
            room.world.wait(Duration::from_secs(1));
        }
    }
    engine.stop(Duration::from_secs(5)).await;
    room.is_honest().await;
}

/// What a clock that cannot be trusted would note as listed is not noted: events made meanwhile would be
/// left out later; S47, I27.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_went_astray_does_not_move_where_events_are_listed_from_i27() {
    let room = Room::new().await;
    room.world.unknown("toolu_01", "4417", 3800).await;
    room.world.wait(Duration::from_secs(30));
    room.reconcile().await;
    let recovery = room.world.ledger.recovery();
    let before = recovery.events_from(&stripe()).await.expect("answered");
    let engine = Engine::start(room.deps());
    let mut health = engine.health();
    let running = health.wait_for(|h| h.state == EngineState::Running);
    running.await.expect("it runs");
    room.world.clock.step(TimeDelta::days(1));
    assert!(room.world.ledger.clock_alarm().await.expect("read"));
    // The listing that is due by the wrong clock says why it is not made.
    let mut troubles = Vec::new();
    for _ in 0..600 {
        room.world.wait(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(5)).await;
        troubles = room.counts().await.troubles;
        if !troubles.is_empty() {
            break;
        }
    }
    engine.stop(Duration::from_secs(5)).await;
    let why = troubles.first().map(|t| t.why.as_str());
    assert_eq!(why, Some("the clock cannot be trusted"));
    let after = recovery.events_from(&stripe()).await.expect("answered");
    assert_eq!(before, after);
}

/// Two engines on one ledger look at a row once: what one has taken the other leaves.
#[tokio::test]
async fn two_engines_do_not_look_at_a_row_twice() {
    let room = Room::new().await;
    let id = room.world.unknown("toolu_01", "4417", 3800).await;
    let other = room.world.other().await;
    room.world.wait(Duration::from_secs(61));
    let lease = Duration::from_secs(300);
    let mine = room.world.ledger.recovery().take_watched(None, lease).await;
    assert_eq!(
        mine.expect("answered").map(|w| w.operation),
        Some(id.clone())
    );
    let theirs = other.recovery().take_watched(None, lease).await;
    assert_eq!(theirs.expect("answered"), None);
    let nobody = "another".parse().expect("a name");
    // Whoever died over it does not keep it; of another provider there is nothing.
    room.world.wait(Duration::from_secs(301));
    let none = other.recovery().take_watched(Some(&nobody), lease).await;
    assert_eq!(none.expect("answered"), None);
    let theirs = other.recovery().take_watched(None, lease).await;
    assert_eq!(theirs.expect("answered").map(|w| w.operation), Some(id));
}
