//! How it is told: at least once, nearly always once, with bounded patience, in nobody's way.

use std::time::Duration;

use samekey::domain::notice::MAX_TRIES;
use samekey::ledger::{NoticeCounts, Went};
use samekey::notify::{Notifier, round};

use super::receiver::{Receiver, Reply};
use super::{common::*, notifier, settled, stored};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn what_answers_500_is_told_again_later() {
    for_each_store(async |w| {
        let receiver = Receiver::start(&[Reply::Status(500)]).await;
        let deps = notifier(&w, w.ledger.clone(), &receiver.line());
        w.unknown("t1", "4417", 3800).await;
        let first = round(&deps).await.expect("a round");
        assert!(first.trouble.expect("told").contains("500"));
        let pending = &stored(&w).await[0];
        assert_eq!((pending.state.as_str(), pending.tries), ("pending", 1));
        w.wait(seconds(61));
        assert_eq!(round(&deps).await.expect("a round").trouble, None);
        assert_eq!(receiver.got().len(), 2);
        assert_eq!(receiver.got()[0], receiver.got()[1]);
        assert_eq!(stored(&w).await[0].state, "sent");
    })
    .await;
}

#[tokio::test]
async fn a_receiver_may_ask_for_time() {
    for_each_store(async |w| {
        let receiver = Receiver::start(&[Reply::Wait(600)]).await;
        let deps = notifier(&w, w.ledger.clone(), &receiver.line());
        w.unknown("t1", "4417", 3800).await;
        round(&deps).await.expect("a round");
        w.wait(seconds(599));
        assert_eq!(round(&deps).await.expect("a round").taken, 0, "not before");
        w.wait(seconds(61));
        assert_eq!(round(&deps).await.expect("a round").taken, 1);
    })
    .await;
}

#[tokio::test]
async fn what_refuses_is_given_up_at_once_and_what_fails_after_bounded_tries_i33() {
    for_each_store(async |w| {
        let refuses = Receiver::start(&[Reply::Status(404), Reply::Status(302)]).await;
        let deps = notifier(&w, w.ledger.clone(), &refuses.line());
        w.unknown("t1", "1", 3800).await;
        w.unknown("t2", "2", 3800).await;
        round(&deps).await.expect("a round");
        for (n, status) in [(0, "404"), (1, "302")] {
            let given_up = &stored(&w).await[n];
            assert_eq!((given_up.state.as_str(), given_up.tries), ("gave_up", 1));
            assert!(given_up.error.as_ref().expect("why").contains(status));
        }

        let fails = Receiver::start(&[Reply::Status(500); 99]).await;
        let deps = notifier(&w, w.ledger.clone(), &fails.line());
        w.unknown("t3", "3", 3800).await;
        for _ in 0..40 {
            round(&deps).await.expect("a round");
            w.wait(seconds(2 * 3600 / 5));
        }
        let given_up = &stored(&w).await[2];
        assert_eq!(given_up.state, "gave_up");
        assert_eq!(fails.got().len(), MAX_TRIES as usize);
        let counts = w.ledger.notice_counts().await.expect("counted");
        let wanted = NoticeCounts {
            gave_up: 3,
            lost_lately: 3,
            ..NoticeCounts::default()
        };
        assert_eq!(counts, wanted);
    })
    .await;
}

#[tokio::test]
async fn of_two_notifiers_one_tells_each_notice() {
    for_each_store(async |w| {
        let receiver = Receiver::start(&[]).await;
        for n in 0..6 {
            settled(&w, &format!("t{n}"), &n.to_string()).await;
            // Or the circuit opens.
            w.refunded(&format!("r{n}"), &format!("1{n}"), 100).await;
        }
        let one = notifier(&w, w.ledger.clone(), &receiver.line());
        let two = notifier(&w, w.other().await, &receiver.line());
        let (one, two) = tokio::join!(round(&one), round(&two));
        let taken = one.expect("a round").taken + two.expect("a round").taken;
        assert_eq!((taken, receiver.got().len()), (12, 12));
        let mut ids: Vec<_> = receiver
            .got()
            .iter()
            .map(|g| g["notice_id"].as_i64())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 12, "each once");
        // Also while the first is still at it.
        let slow = Receiver::start(&[Reply::Hang]).await;
        let one = notifier(&w, w.ledger.clone(), &slow.line());
        let two = notifier(&w, w.other().await, &slow.line());
        w.unknown("t99", "99", 3800).await;
        let at_it = tokio::spawn(async move { round(&one).await });
        slow.has(1).await;
        assert_eq!(round(&two).await.expect("a round").taken, 0);
        at_it.abort();
    })
    .await;
}

#[tokio::test]
async fn what_a_dead_process_had_taken_is_told_by_another_l6() {
    for_each_store(async |w| {
        let id = w.unknown("t1", "4417", 3800).await;
        let dead = notifier(&w, w.ledger.clone(), "command = [\"/bin/true\"]");
        let lease = seconds(50);
        let taken = w.ledger.take_notice(&dead.events, lease).await;
        let taken = taken.expect("answered").expect("due");
        assert_eq!(taken.row.as_ref().map(|r| &r.id), Some(&id));
        // It is killed here. Nobody else has the notice until its time is over.
        let receiver = Receiver::start(&[]).await;
        let deps = notifier(&w, w.other().await, &receiver.line());
        w.wait(seconds(49));
        assert_eq!(round(&deps).await.expect("a round").taken, 0);
        w.wait(seconds(1));
        assert_eq!(round(&deps).await.expect("a round").taken, 1);
        assert_eq!(receiver.got().len(), 1);
        // And if it was only slow, its late word changes nothing.
        let late = Went::Later {
            wait: lease,
            why: "late".into(),
        };
        w.ledger.notice_went(&taken, late).await.expect("written");
        assert_eq!(stored(&w).await[0].state, "sent");
        assert_eq!(stored(&w).await[0].error, None);
    })
    .await;
}

#[tokio::test]
async fn old_news_is_no_news() {
    for_each_store(async |w| {
        w.unknown("t1", "1", 3800).await;
        w.wait(DAY + seconds(1));
        w.unknown("t2", "2", 3800).await;
        // Notifications are turned on only now.
        let receiver = Receiver::start(&[]).await;
        let deps = notifier(&w, w.ledger.clone(), &receiver.line());
        assert_eq!(round(&deps).await.expect("a round").taken, 1);
        assert_eq!(receiver.got()[0]["order_id"], "2");
        let states: Vec<_> = stored(&w).await.into_iter().map(|n| n.state).collect();
        assert_eq!(states, ["gave_up", "sent"]);
        let counts = w.ledger.notice_counts().await.expect("counted");
        assert_eq!(counts.lost_lately, 0, "nobody tried");
    })
    .await;
}

#[tokio::test]
async fn only_the_events_that_were_asked_for_are_told() {
    for_each_store(async |w| {
        let receiver = Receiver::start(&[]).await;
        let lines = format!("{}\non = [\"resolved\"]", receiver.line());
        let deps = notifier(&w, w.ledger.clone(), &lines);
        settled(&w, "t1", "4417").await;
        assert_eq!(round(&deps).await.expect("a round").taken, 1);
        assert_eq!(receiver.got()[0]["event"], "resolved");
        // Another process may be there for the other events.
        assert_eq!(stored(&w).await[0].state, "pending");
        // Until they are old; then nobody looks at them any more.
        w.wait(DAY + seconds(1));
        assert_eq!(round(&deps).await.expect("a round").taken, 0);
        assert_eq!(stored(&w).await[0].state, "gave_up");
    })
    .await;
}

#[tokio::test]
async fn a_hanging_receiver_holds_up_nobody_l5() {
    for_each_store(async |w| {
        let receiver = Receiver::start(&[Reply::Hang]).await;
        let deps = notifier(&w, w.other().await, &receiver.line());
        w.unknown("t1", "4417", 3800).await;
        let notifier = Notifier::start(deps, |_| {});
        receiver.has(1).await;
        // While the line hangs, refunds are made and decided on through the same ledger.
        let work = async {
            w.refunded("t2", "9", 500).await;
            settled(&w, "t3", "10").await;
        };
        let limit = Duration::from_secs(20);
        tokio::time::timeout(limit, work)
            .await
            .expect("not held up");
        assert_eq!(stored(&w).await[0].state, "pending");
        // It is given its time, and told again later; the others follow.
        w.wait(seconds(10));
        receiver.has(3).await;
        notifier.stop(limit).await;
        let events: Vec<_> = receiver.got().iter().map(|g| g["event"].clone()).collect();
        assert_eq!(events, ["unknown", "unknown", "resolved"]);
        assert_eq!(stored(&w).await[0].tries, 1);
    })
    .await;
}

#[tokio::test]
async fn trouble_is_told_and_so_is_its_end() {
    for_each_store(async |w| {
        let receiver = Receiver::start(&[Reply::Status(500)]).await;
        let deps = notifier(&w, w.ledger.clone(), &receiver.line());
        let (told, mut heard) = tokio::sync::watch::channel(None);
        w.unknown("t1", "4417", 3800).await;
        let notifier = Notifier::start(deps, move |trouble| {
            told.send_replace(trouble);
        });
        let trouble = heard.wait_for(Option::is_some).await.expect("told").clone();
        assert!(trouble.expect("trouble").contains("500"));
        let clock = w.clock.clone();
        let moving = tokio::spawn(async move {
            loop {
                clock.advance(Duration::from_secs(1));
                tokio::task::yield_now().await;
            }
        });
        heard.wait_for(Option::is_none).await.expect("told");
        moving.abort();
        notifier.stop(Duration::from_secs(5)).await;
        assert_eq!(stored(&w).await[0].state, "sent");
    })
    .await;
}

#[tokio::test]
async fn one_channel_is_not_told_twice_because_the_other_fails() {
    for_each_store(async |w| {
        let receiver = Receiver::start(&[Reply::Status(500), Reply::Status(500)]).await;
        let log = w.place.dir.path().join("log");
        let lines = format!(
            "command = [\"/bin/sh\", \"-c\", \"echo $SAMEKEY_EVENT >> {}\"]\n{}",
            log.display(),
            receiver.line()
        );
        let deps = notifier(&w, w.ledger.clone(), &lines);
        w.unknown("t1", "4417", 3800).await;
        for _ in 0..3 {
            round(&deps).await.expect("a round");
            w.wait(seconds(121));
        }
        assert_eq!(receiver.got().len(), 3);
        assert_eq!(std::fs::read_to_string(&log).expect("run"), "unknown\n");
        assert_eq!(stored(&w).await[0].state, "sent");
    })
    .await;
}
