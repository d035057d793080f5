//! Clocks that are set while webhooks come in and an engine runs: nothing is taken at the wrong time, nothing
//! is lost, and no row is moved by it.

use std::time::Duration;

use chrono::TimeDelta;
use samekey::config::Secret;
use samekey::domain::operation::Status;
use samekey::engine::{Engine, EngineState};
use samekey::gateway::signature;

use crate::scripted::{Room, SECRET, post};

/// I27, F63, S53: with a clock that jumped, what the provider signs is too old or too young and is refused, so
/// that it comes again; once the clock is right the same event is taken and settles its row.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_under_a_live_intake_loses_nothing_i27_s53() {
    for step in [TimeDelta::days(1), TimeDelta::hours(-2)] {
        let room = Room::new().await;
        let id = room.world.unknown("toolu_01", "4417", 3800).await;
        let refund = room.refund_of(&id, "re_1", "succeeded").await;
        let event = room.event("evt_1", "refund.created", &refund);
        let gateway = room.gateway(&[SECRET]).await;
        let engine = Engine::start(room.deps());
        let mut health = engine.health();
        let running = health.wait_for(|h| h.state == EngineState::Running);
        running.await.expect("it runs");

        let body = event.to_string();
        let header = signature::sign(
            &Secret::new(SECRET),
            body.as_bytes(),
            room.world.clock.now(),
        );
        let headers = [("Stripe-Signature", header.as_str())];
        room.world.clock.step(step);
        assert!(room.world.ledger.clock_alarm().await.expect("read"));
        let (status, said) = post(gateway.addr(), &headers, body.as_bytes()).await;
        assert_eq!(status, 400, "{step}: {said}");
        for _ in 0..30 {
            room.world.wait(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(room.row(&id).await.status, Status::Unknown);
        assert_eq!(room.counts().await.received, 0);

        room.world.clock.step(-step);
        assert!(!room.world.ledger.clock_alarm().await.expect("read"));
        let (status, said) = post(gateway.addr(), &headers, body.as_bytes()).await;
        assert_eq!(status, 200, "{step}: {said}");
        for _ in 0..400 {
            room.world.wait(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(5)).await;
            if room.row(&id).await.status == Status::Succeeded {
                break;
            }
        }
        assert_eq!(room.row(&id).await.status, Status::Succeeded, "{step}");
        engine.stop(Duration::from_secs(5)).await;
        gateway.stop(Duration::from_secs(1)).await;
        room.is_honest().await;
    }
}
