//! What all processes on a ledger share: clock, lookups, read budget, provider, engines.

use std::time::Duration;

use samekey::clock::Clock;
use samekey::domain::later;
use samekey::domain::operation::{Status, UnknownReason};
use samekey::domain::policy::Rate;
use samekey::domain::transition::{Event, Refusal};
use samekey::ledger::{EngineSeen, LedgerError, LookupBusy, ReadFor, Stamp};

use crate::common::*;

#[tokio::test]
async fn one_lookup_at_a_time_and_a_cooldown_over_all_processes() {
    for_each_store(async |w| {
        let id = w.unknown("t1", "4417", 3800).await;
        let elsewhere = w.unknown("t2", "9", 100).await;
        let other = w.other().await;
        assert_eq!(
            w.ledger
                .begin_lookup(&id, &ann().name)
                .await
                .expect("answered"),
            Ok(())
        );
        let busy = other
            .begin_lookup(&id, &lea().name)
            .await
            .expect("answered");
        assert_eq!(busy, Err(LookupBusy::Running { by: "ann".into() }));
        let free = other
            .begin_lookup(&elsewhere, &lea().name)
            .await
            .expect("answered");
        assert_eq!(free, Ok(()), "another operation");
        w.wait(seconds(10));
        w.ledger.end_lookup(&id).await.expect("ended");
        let soon = other
            .begin_lookup(&id, &lea().name)
            .await
            .expect("answered");
        let (wait, again_at) = (seconds(20), later(w.clock.now(), seconds(20)));
        let cooldown = LookupBusy::Cooldown { wait, again_at };
        assert_eq!(soon, Err(cooldown.clone()));
        let asked = other.lookup_busy(&id).await.expect("answered");
        assert_eq!(asked, Some(cooldown), "asking takes nothing");
        w.wait(seconds(20));
        assert_eq!(
            other
                .begin_lookup(&id, &lea().name)
                .await
                .expect("answered"),
            Ok(())
        );
        // Its process dies; after two minutes another may look.
        w.wait(seconds(119));
        let busy = w
            .ledger
            .begin_lookup(&id, &ann().name)
            .await
            .expect("answered");
        assert_eq!(busy, Err(LookupBusy::Running { by: "lea".into() }));
        w.wait(seconds(1));
        assert_eq!(
            w.ledger
                .begin_lookup(&id, &ann().name)
                .await
                .expect("answered"),
            Ok(())
        );
    })
    .await;
}

#[tokio::test]
async fn all_processes_share_the_read_budget_i22() {
    let mut slow = terms();
    slow.profile.read_rate = Rate {
        count: 5,
        per: Duration::from_secs(1),
    };
    slow.profile.rate = Rate {
        count: 10,
        per: Duration::from_secs(1),
    };
    for_each_store_with(slow, async |w| {
        let other = w.other().await;
        assert_eq!(
            w.ledger
                .take_read(&stripe(), ReadFor::Look)
                .await
                .expect("answered"),
            Ok(())
        );
        let wait = Duration::from_millis(200);
        assert_eq!(
            other
                .take_read(&stripe(), ReadFor::Look)
                .await
                .expect("answered"),
            Err(wait)
        );
        w.wait(wait);
        assert_eq!(
            other
                .take_read(&stripe(), ReadFor::Look)
                .await
                .expect("answered"),
            Ok(())
        );
        // A call's own reads are paid for with what it sends.
        let call = other.take_read(&stripe(), ReadFor::Call).await;
        assert_eq!(call.expect("answered"), Ok(()));
        let next = w.ledger.take_read(&stripe(), ReadFor::Call).await;
        assert_eq!(next.expect("answered"), Err(Duration::from_millis(100)));
        let unknown = w
            .ledger
            .take_read(&"nobody".parse().expect("a name"), ReadFor::Look)
            .await;
        assert!(unknown.is_err());
    })
    .await;
}

fn stamp(origin: &str, account: Option<&str>, mode: &str) -> Stamp {
    Stamp {
        provider: stripe(),
        origin: origin.into(),
        account: account.map(Into::into),
        mode: mode.into(),
    }
}

#[tokio::test]
async fn a_ledger_is_bound_to_origin_account_and_mode() {
    for_each_store(async |w| {
        let api = "https://api.stripe.com";
        let bind = async |s: Stamp| w.ledger.bind(&s).await;
        bind(stamp(api, None, "test")).await.expect("bound");
        bind(stamp(api, Some("acct_1"), "test"))
            .await
            .expect("the account is learnt later");
        bind(stamp(api, None, "test"))
            .await
            .expect("not known is not another");
        for other in [
            stamp(api, Some("acct_1"), "live"),
            stamp(api, Some("acct_2"), "test"),
            stamp("http://127.0.0.1:9", Some("acct_1"), "test"),
            Stamp {
                provider: "other".parse().expect("a name"),
                ..stamp(api, None, "live")
            },
        ] {
            let refused = bind(other.clone()).await.expect_err("another");
            assert!(
                matches!(refused, LedgerError::Bound { .. }),
                "{other:?}: {refused}"
            );
        }
        let stamps = w.other().await.stamps().await.expect("read");
        assert_eq!(stamps, [stamp(api, Some("acct_1"), "test")]);
    })
    .await;
}

#[tokio::test]
async fn another_simulator_is_another_provider() {
    for_each_store(async |w| {
        let first = stamp("http://127.0.0.1:1", None, "simulator");
        w.ledger.bind(&first).await.expect("bound");
        for origin in ["http://127.0.0.1:2", "https://api.stripe.com"] {
            let mode = if origin.starts_with("https") {
                "test"
            } else {
                "simulator"
            };
            let other = w.ledger.bind(&stamp(origin, None, mode)).await;
            assert!(matches!(other, Err(LedgerError::Bound { .. })), "{other:?}");
        }
        w.ledger.bind(&first).await.expect("still bound");
    })
    .await;
}

#[tokio::test]
async fn a_clock_that_ran_back_stops_sending_and_sweeping_until_it_is_accepted_i27() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.attempt(&id, &call, lost()).await;
        w.wait(seconds(3600));
        let call = w.hand().lease("t1").await.expect("free");
        w.drive(&id, &call).await;
        assert!(!w.ledger.clock_alarm().await.expect("read"));
        // Another process, on a machine whose clock is behind.
        let late = Clock::manual(at(3600 - 301));
        let behind = w.place.open(std::sync::Arc::clone(&w.terms), &late).await;
        assert!(behind.clock_alarm().await.expect("read"));
        let refused = behind.authorise(&id, &call).await.expect("answered");
        assert_eq!(refused.expect_err("refused"), Refusal::ClockAlarm);
        let swept = behind.apply(&id, Event::Swept).await.expect("answered");
        assert_eq!(swept.expect_err("refused"), Refusal::ClockAlarm);
        assert_eq!(w.row(&id).await.attempts, 1, "and no row is changed");
        // Nor does it shorten or lengthen anything that is measured by the ledger's clock.
        let none = behind
            .lease_calls(&engine(5), LEASE, 10)
            .await
            .expect("answered");
        assert_eq!(none.len(), 0);
        behind.accept_clock(&lea().name).await.expect("accepted");
        assert!(!behind.clock_alarm().await.expect("read"));
    })
    .await;
}

#[tokio::test]
async fn a_clock_a_little_behind_the_mark_goes_on_in_the_ledgers_time_i27() {
    for_each_store(async |w| {
        w.wait(seconds(3600));
        w.accept("t1", "4417", 3800).await;
        let late = Clock::manual(at(3600 - 200));
        let behind = w.place.open(std::sync::Arc::clone(&w.terms), &late).await;
        assert!(!behind.clock_alarm().await.expect("read"));
        let accepted = behind
            .accept_call(new_call("t2", "9", 100))
            .await
            .expect("accepted");
        let samekey::ledger::Accepted::New(call) = accepted else {
            panic!("it is new");
        };
        assert_eq!(
            call.accepted_at,
            at(3600),
            "never behind what was written already"
        );
    })
    .await;
}

#[tokio::test]
async fn engines_are_seen_by_all_and_forgotten_after_a_day() {
    for_each_store(async |w| {
        let seen = |n: u128, in_flight| EngineSeen {
            engine: engine(n),
            host: "here".into(),
            pid: 7,
            workers: 8,
            in_flight,
            started_at: at(0),
            seen_at: at(0),
            stopped: false,
        };
        w.ledger.engine_seen(&seen(1, 0)).await.expect("noted");
        w.wait(seconds(5));
        w.ledger.engine_seen(&seen(1, 3)).await.expect("noted");
        let other = w.other().await;
        let engines = other.engines().await.expect("read");
        let known: Vec<_> = engines.iter().map(|e| (e.in_flight, e.seen_at)).collect();
        assert_eq!(known, [(3, at(5))]);
        w.wait(seconds(24 * 3600 + 1));
        other.engine_seen(&seen(2, 0)).await.expect("noted");
        let engines = w.ledger.engines().await.expect("read");
        assert_eq!(
            engines.iter().map(|e| e.engine.clone()).collect::<Vec<_>>(),
            [engine(2)]
        );
    })
    .await;
}

#[tokio::test]
async fn a_tools_pause_names_who_and_why() {
    for_each_store(async |w| {
        w.ledger
            .pause(&tool(), Some(("lea", "a bad day")))
            .await
            .expect("paused");
        let tools = w.other().await.tools().await.expect("read");
        let paused = tools.first().and_then(|t| t.paused.clone());
        assert_eq!(paused, Some(("lea".into(), "a bad day".into())));
        w.ledger.pause(&tool(), None).await.expect("resumed");
        let tools = w.ledger.tools().await.expect("read");
        assert_eq!(tools.first().map(|t| t.paused.clone()), Some(None));
    })
    .await;
}

/// I27, I10: after a clock that ran ahead is corrected and accepted, rates hold nothing up, and a key
/// whose deadline it wrote is not sent any more.
#[tokio::test]
async fn an_accepted_correction_frees_the_rates_and_retires_the_keys() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.wait(seconds(3 * 3600));
        let call = match w.hand().lease("t1").await {
            Some(call) => call,
            None => call,
        };
        w.drive(&id, &call).await;
        w.attempt(&id, &call, lost()).await;
        let true_clock = Clock::manual(at(60));
        let now = w
            .place
            .open(std::sync::Arc::clone(&w.terms), &true_clock)
            .await;
        assert!(now.clock_alarm().await.expect("read"));
        now.accept_clock(&lea().name).await.expect("accepted");
        let swept = now.apply(&id, Event::Swept).await.expect("answered");
        assert!(swept.is_ok(), "its deadline cannot be trusted: {swept:?}");
        assert_eq!(w.row(&id).await.reason, Some(UnknownReason::KeyExpired));
        let provider = w.row(&id).await.provider;
        let read = now
            .take_read(&provider, ReadFor::Look)
            .await
            .expect("answered");
        assert_eq!(read, Ok(()));
    })
    .await;
}

/// I27: a wall clock that is set back a little neither stops the ledger's time nor stretches anything that
/// is measured by it: leases end, rates refill, deadlines come.
#[tokio::test]
async fn the_ledgers_time_goes_on_while_the_wall_clock_is_behind() {
    for_each_store(async |w| {
        let accepted = async |name: &str| match w.accept(name, name, 100).await {
            samekey::ledger::Accepted::New(call) => call.accepted_at,
            other => panic!("{other:?}"),
        };
        w.wait(seconds(3600));
        assert_eq!(accepted("1").await, at(3600));
        let call = w.hand().lease("1").await.expect("free");
        w.clock.step(chrono::TimeDelta::seconds(-200));
        assert!(!w.ledger.clock_alarm().await.expect("read"), "near enough");
        w.wait(seconds(10));
        assert_eq!(accepted("2").await, at(3610));
        let other = w.second().await;
        w.wait(LEASE);
        assert_eq!(accepted("3").await, at(3640));
        let taken = other.lease("1").await.expect("its time is over");
        assert_eq!(taken.epoch, call.epoch + 1);
    })
    .await;
}

/// Step 9, L3: a row that was never sent and whose call ended while the clock could not be trusted is
/// closed by the sweep, and stands in nobody's way.
#[tokio::test]
async fn a_row_left_by_a_clock_alarm_is_swept() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let sweepable = async || w.ledger.sweepable().await.expect("listed");
        assert_eq!(sweepable().await, [], "its call is waiting");
        let early = w.apply(&id, Event::NeverSent).await;
        assert_eq!(early.expect_err("refused"), Refusal::NothingDue);
        w.clock.step(chrono::TimeDelta::hours(1));
        assert_eq!(w.finish(&call).await.status(), "unconfirmed");
        let refused = w.apply(&id, Event::NeverSent).await;
        assert_eq!(refused.expect_err("refused"), Refusal::ClockAlarm);
        w.clock.step(chrono::TimeDelta::hours(-1));
        assert_eq!(sweepable().await, std::slice::from_ref(&id));
        let swept = w.apply(&id, Event::NeverSent).await.expect("closed");
        assert_eq!(swept.op.row.status, Status::Failed);
        assert_eq!(sweepable().await, []);
    })
    .await;
}
