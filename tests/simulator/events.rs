//! The list of events, by which missed webhooks are recovered (S47).

use super::*;

async fn ids(sim: &Simulator, query: &str) -> (Vec<String>, bool) {
    let list = get(sim, &format!("/v1/events?{query}")).await.json();
    let data = list["data"].as_array().cloned().unwrap_or_default();
    let ids = data
        .iter()
        .filter_map(|e| e["id"].as_str().map(str::to_owned));
    (ids.collect(), list["has_more"] == true)
}

#[tokio::test]
async fn events_are_listed_newest_first_by_type_time_and_page_s47() {
    let (sim, clock) = start("pending-then-failed").await;
    let start = clock.now().timestamp();
    for n in 0..3 {
        let body = format!("payment_intent=pi_order_{n}&amount=100");
        refund(&sim, &format!("k{n}"), &body).await;
        clock.advance(SECOND);
    }
    clock.advance(Duration::from_mins(10));
    let (all, more) = ids(&sim, "limit=100").await;
    assert_eq!((all.len(), more), (9, false));
    let (created, _) = ids(&sim, "type=refund.created").await;
    assert_eq!(created, [&all[6..]].concat(), "the oldest three");
    assert_eq!(ids(&sim, "type=refund.*&limit=100").await.0.len(), 6);
    let two = "types[]=refund.created&types[]=refund.failed";
    assert_eq!(ids(&sim, two).await.0.len(), 6);
    let since = format!("created[gte]={}&limit=100", start + 600);
    assert_eq!(ids(&sim, &since).await.0, all[..6]);
    let first = ids(&sim, "limit=4").await;
    assert_eq!(first, (all[..4].to_vec(), true));
    let second = format!("limit=5&starting_after={}", all[3]);
    assert_eq!(ids(&sim, &second).await, (all[4..].to_vec(), false));
    let before = format!("limit=1&ending_before={}", all[3]);
    assert_eq!(ids(&sim, &before).await, (vec![all[2].clone()], true));
    for wrong in [
        "type=x&types[]=y",
        "delivery_success=maybe",
        "order=4417",
        "limit=0",
    ] {
        assert_eq!(
            get(&sim, &format!("/v1/events?{wrong}")).await.status,
            400,
            "{wrong}"
        );
    }
    let one = get(&sim, &format!("/v1/events/{}", all[0])).await;
    assert_eq!(one.id(), all[0]);
    assert_eq!(get(&sim, "/v1/events/evt_x").await.status, 404);
}

#[tokio::test]
async fn events_can_be_read_for_thirty_days_s47() {
    let (sim, _) = start("honest").await;
    refund(&sim, "K", PAYMENT).await;
    let (all, _) = ids(&sim, "").await;
    advance(&sim, 30 * 86_400 - 1).await;
    assert_eq!(ids(&sim, "").await.0, all);
    advance(&sim, 1).await;
    assert!(ids(&sim, "").await.0.is_empty());
    assert_eq!(
        get(&sim, &format!("/v1/events/{}", all[0])).await.status,
        404
    );
    assert_eq!(sim.effects().len(), 1, "the refund stays");
}

#[tokio::test]
async fn without_an_endpoint_no_webhook_is_pending_s51() {
    let (sim, _) = start("honest").await;
    refund(&sim, "K", PAYMENT).await;
    let list = get(&sim, "/v1/events").await.json();
    assert_eq!(list["data"][0]["pending_webhooks"], 0);
}

/// The same seed gives the same ids, whatever arrives first.
#[tokio::test]
async fn ids_of_events_do_not_depend_on_arrival() {
    let run = |orders: [&'static str; 2]| async move {
        let (sim, _) = start("honest").await;
        for order in orders {
            refund(
                &sim,
                order,
                &format!("payment_intent=pi_order_{order}&amount=5"),
            )
            .await;
        }
        ids(&sim, "").await.0.into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(run(["a", "b"]).await, run(["b", "a"]).await);
}
