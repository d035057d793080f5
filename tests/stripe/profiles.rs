//! Each shipped profile against the simulated provider: what it says of keys, of what is saved and of lists
//! is what happens (S1–S5, S9, S44). A profile whose provider is not simulated is none.

use std::time::Duration;

use samekey::clock::Clock;
use samekey::domain::policy::Profile;
use samekey::domain::profile::SHIPPED;
use samekey::simulator::{Plan, SimConfig, Simulator};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::now;

/// A provider on a clock that stands still.
async fn simulator(plan: &str) -> (Simulator, Clock) {
    let clock = Clock::manual(now());
    let config = SimConfig {
        plan: Plan::parse(plan).expect("a plan"),
        ..SimConfig::new(clock.clone())
    };
    (Simulator::start(config).await.expect("it listens"), clock)
}

#[derive(Debug, PartialEq)]
struct Said {
    status: u16,
    replayed: bool,
    body: Value,
}

async fn say(sim: &Simulator, head: &str, body: &str) -> Said {
    let mut socket = TcpStream::connect(sim.addr()).await.expect("connected");
    let length = body.len();
    let request = format!(
        "{head}Host: x\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut text = String::new();
    socket.read_to_string(&mut text).await.expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status");
    Said {
        status: status.parse().expect("a number"),
        replayed: head.to_lowercase().contains("idempotent-replayed: true"),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    }
}

/// A refund of 1.00 under this key.
async fn post(sim: &Simulator, key: &str) -> Said {
    post_as(sim, key, "Authorization: Bearer sk_test_a\r\n").await
}

async fn post_as(sim: &Simulator, key: &str, authorization: &str) -> Said {
    let head = format!("POST /v1/refunds HTTP/1.1\r\n{authorization}Idempotency-Key: {key}\r\n");
    say(sim, &head, "payment_intent=pi_order_1&amount=100").await
}

fn shipped() -> impl Iterator<Item = (&'static str, Profile)> {
    SHIPPED
        .iter()
        .map(|(name, text)| (*name, Profile::parse(text).expect("a profile")))
}

/// S9: a key is honoured for the whole retention, and only our own deadline is before its end.
#[tokio::test]
async fn keys_are_kept_for_the_stated_retention_s9() {
    for (name, profile) in shipped() {
        let (sim, clock) = simulator("honest").await;
        let first = post(&sim, "k").await;
        assert_eq!((first.status, first.replayed), (200, false), "{name}");
        let second = Duration::from_secs(1);
        clock.advance(profile.retention.saturating_sub(second));
        let again = post(&sim, "k").await;
        assert_eq!(
            (again.body, again.replayed),
            (first.body.clone(), true),
            "{name}"
        );
        assert!(
            profile.key_expires_at(now()) < clock.now(),
            "ours ended before (I10)"
        );
        clock.advance(second);
        let fresh = post(&sim, "k").await;
        assert!(
            !fresh.replayed && fresh.body["id"] != first.body["id"],
            "{name}: {fresh:?}"
        );
        assert_eq!(sim.effects().len(), 2);
        sim.stop().await;
    }
}

/// S2: as long as it says and no longer; a longer one does nothing.
#[tokio::test]
async fn keys_have_the_stated_form_s2() {
    for (name, profile) in shipped() {
        let (sim, _) = simulator("honest").await;
        let longest = "k".repeat(profile.longest_key.into());
        assert!(profile.takes_key(&longest));
        assert_eq!(post(&sim, &longest).await.status, 200, "{name}");
        let longer = format!("{longest}k");
        assert!(!profile.takes_key(&longer));
        assert_eq!(post(&sim, &longer).await.status, 400, "{name}");
        assert_eq!(sim.effects().len(), 1);
        sim.stop().await;
    }
}

/// S3, S4: what is always saved comes again, the same, marked, and without a second effect.
#[tokio::test]
async fn what_is_always_saved_is_replayed_s3_s4() {
    for (name, profile) in shipped() {
        let mut seen = std::collections::BTreeSet::new();
        for plan in [
            "honest",
            "refused",
            "saved-500-with-effect",
            "saved-500-without-effect",
            "pending-then-succeeded",
        ] {
            let (sim, _) = simulator(plan).await;
            let first = post(&sim, "k").await;
            assert!(profile.may_be_replayed(first.status), "{name} {plan}");
            for _ in 0..3 {
                let again = post(&sim, "k").await;
                assert_eq!(
                    (again.status, &again.body),
                    (first.status, &first.body),
                    "{name} {plan}"
                );
                assert!(again.replayed, "{name} {plan}");
            }
            assert!(sim.effects().len() <= 1, "{name} {plan}");
            seen.insert(first.status);
            sim.stop().await;
        }
        // 402 is a card's refusal, of which refunds have none here.
        let unseen: Vec<_> = profile.always_saved.difference(&seen).collect();
        assert!(unseen.iter().all(|s| **s == 402), "{name}: {unseen:?}");
    }
}

/// S5: what is never saved is carried out when it is asked again, and leaves no mark.
#[tokio::test]
async fn what_is_never_saved_is_carried_out_later_s5() {
    for (name, profile) in shipped() {
        let mut seen = std::collections::BTreeSet::new();
        for plan in ["rate-limited:1", "lock-timeout:1", "bad-gateway:1"] {
            let (sim, clock) = simulator(plan).await;
            let first = post(&sim, "k").await;
            assert!(first.status >= 400 && !first.replayed, "{name} {plan}");
            seen.insert(first.status);
            let mut last = first;
            for _ in 0..20 {
                clock.advance(Duration::from_secs(60));
                last = post(&sim, "k").await;
                if last.status == 200 {
                    break;
                }
                assert!(!last.replayed, "{name} {plan}: {last:?}");
            }
            assert_eq!((last.status, last.replayed), (200, false), "{name} {plan}");
            assert_eq!(sim.effects().len(), 1, "{name} {plan}");
            sim.stop().await;
        }
        let (sim, _) = simulator("honest").await;
        let stranger = post_as(&sim, "k", "").await;
        seen.insert(stranger.status);
        assert_eq!((stranger.status, stranger.replayed), (401, false), "{name}");
        assert_eq!(post(&sim, "k").await.status, 200, "{name}");
        sim.stop().await;
        // 409 is shown by overlapping requests in tests/simulator/keys.rs: here the clock stands still.
        let unseen: Vec<_> = profile.never_saved.difference(&seen).collect();
        assert!(unseen.iter().all(|s| **s == 409), "{name}: {unseen:?}");
    }
}

/// S44: a list shows a refund once the stated lag is over.
#[tokio::test]
async fn a_list_shows_what_was_made_after_the_stated_lag_s44() {
    for (name, profile) in shipped() {
        let (sim, clock) = simulator("honest").await;
        let made = post(&sim, "k").await;
        clock.advance(profile.lookup_lag);
        let head = "GET /v1/refunds?payment_intent=pi_order_1&limit=100 HTTP/1.1\r\n\
                    Authorization: Bearer sk_test_a\r\n";
        let list = say(&sim, head, "").await;
        assert_eq!(list.body["data"][0]["id"], made.body["id"], "{name}");
        // S1: a key has no effect on reading.
        let keyed = say(&sim, &format!("{head}Idempotency-Key: k\r\n"), "").await;
        assert_eq!((keyed.status, keyed.replayed), (200, false));
        sim.stop().await;
    }
}
