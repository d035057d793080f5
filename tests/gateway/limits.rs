//! Limits of what agents may submit, per agent and per tool (R95–R97): 429 with when to come again.

use std::time::Duration;

use samekey::domain::agent::SubmitLimits;
use samekey::domain::policy::Rate;

use crate::client::{Ask, Talk};
use crate::hall::{Hall, wide};

fn slow(count: u32) -> Rate {
    let per = Duration::from_hours(1);
    Rate { count, per }
}

/// A runaway agent is stopped, and nobody else with it (R96).
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_has_a_rate_of_its_own_r95_r96() {
    let limits = SubmitLimits {
        rate: slow(3),
        ..wide()
    };
    let hall = Hall::open("honest", limits, false).await;
    let (one, two) = (hall.agent("one", &[]).await, hall.agent("two", &[]).await);
    let mut talk = Talk::to(hall.addr).await;
    for n in 0..3 {
        let ask = Ask::refund(&one, &format!("k{n}"), &n.to_string(), 100);
        assert_eq!(talk.ask(&ask).await.status, 202);
    }
    let refused = talk.ask(&Ask::refund(&one, "k3", "3", 100)).await;
    assert_eq!(
        (refused.status, refused.code()),
        (429, "rate_limited".into())
    );
    let after: u64 = refused
        .header("retry-after")
        .expect("when")
        .parse()
        .expect("seconds");
    assert!((1100..=1200).contains(&after), "{after}");
    // Nothing was stored; another agent goes on; reading is free.
    assert!(hall.known("one", "k3").await.is_none());
    assert_eq!(
        talk.ask(&Ask::refund(&two, "k", "9", 100)).await.status,
        202
    );
    assert_eq!(
        talk.ask(&Ask::get("/v1/tool-calls/k0").by(&one))
            .await
            .status,
        200
    );
    hall.end().await;
}

/// Per tool, and not only for the whole service (R97).
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_has_a_rate_over_all_agents_r97() {
    let limits = SubmitLimits {
        tool_rate: slow(2),
        ..wide()
    };
    let hall = Hall::open("honest", limits, false).await;
    let (one, two) = (hall.agent("one", &[]).await, hall.agent("two", &[]).await);
    assert_eq!(
        Ask::refund(&one, "k", "1", 100)
            .send(hall.addr)
            .await
            .status,
        202
    );
    assert_eq!(
        Ask::refund(&two, "k", "2", 100)
            .send(hall.addr)
            .await
            .status,
        202
    );
    for token in [&one, &two] {
        let refused = Ask::refund(token, "k3", "3", 100).send(hall.addr).await;
        assert_eq!(
            (refused.status, refused.code()),
            (429, "rate_limited".into())
        );
    }
    hall.end().await;
}

/// The queue is bounded per agent; a call that is in it is still known, whatever its length (I33).
#[tokio::test(flavor = "multi_thread")]
async fn an_agents_queue_is_bounded_i33() {
    let limits = SubmitLimits {
        max_waiting: 2,
        ..wide()
    };
    let hall = Hall::open("honest", limits, false).await;
    let (one, two) = (hall.agent("one", &[]).await, hall.agent("two", &[]).await);
    for n in 0..2 {
        let ask = Ask::refund(&one, &format!("k{n}"), &n.to_string(), 100);
        assert_eq!(ask.send(hall.addr).await.status, 202);
    }
    let refused = Ask::refund(&one, "k2", "2", 100).send(hall.addr).await;
    assert_eq!((refused.status, refused.code()), (429, "queue_full".into()));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(
        Ask::refund(&one, "k0", "0", 100)
            .send(hall.addr)
            .await
            .status,
        409
    );
    assert_eq!(
        Ask::refund(&two, "k", "9", 100)
            .send(hall.addr)
            .await
            .status,
        202
    );
    hall.end().await;
}
