//! Authorising: everything that must hold is read in its own transaction, and a refusal takes
//! nothing (I6, I7, I10, I28).

use std::time::Duration;

use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::ids::OperationId;
use samekey::domain::operation::Status;
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::{Caps, Rate, Terms};
use samekey::domain::review_event::Act;
use samekey::domain::transition::{Lookup, Refusal};
use samekey::ledger::LeasedCall;

use crate::common::*;

#[tokio::test]
async fn an_attempt_is_counted_before_anything_is_sent_r49() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        assert_eq!(w.authorise(&id, &call).await, Ok(1));
        let other = w.other().await;
        let op = other.detail(&id).await.expect("read").expect("there").op;
        assert_eq!((op.row.attempts, op.in_flight()), (1, true));
        assert_eq!(op.row.first_authorised_at, Some(at(0)));
        let life = Duration::from_secs(24 * 3600 - (2 + 10 + 600 + 300));
        assert_eq!(
            op.row.key_expires_at,
            Some(samekey::domain::later(at(0), life))
        );
        assert_eq!(w.authorise(&id, &call).await, Err(Refusal::InFlight));
        w.end(&id, 1, lost()).await;
        w.wait(seconds(9));
        assert_eq!(w.authorise(&id, &call).await, Ok(2));
        let row = w.row(&id).await;
        assert_eq!(
            row.key_expires_at,
            Some(samekey::domain::later(at(0), life)),
            "counted from the first"
        );
        assert_eq!(row.last_authorised_at, Some(at(9)));
    })
    .await;
}

#[tokio::test]
async fn three_per_call_and_six_per_operation_over_restarts_i6() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        for _ in 0..3 {
            w.attempt(&id, &call, limited()).await;
        }
        assert_eq!(w.authorise(&id, &call).await, Err(Refusal::CallSpent));
        w.finish(&call).await;
        w.ledger.close().await;
        let again = World {
            ledger: w.other().await,
            ..w
        };
        let call = again.leased("t2", "4417", 3800).await;
        again.drive(&id, &call).await;
        for _ in 0..2 {
            again.attempt(&id, &call, limited()).await;
        }
        let last = again.attempt(&id, &call, limited()).await;
        assert_eq!(
            last.op.row.status,
            Status::Unknown,
            "R46: at the cap it is unknown"
        );
        let refused = again.authorise(&id, &call).await;
        assert_eq!(
            refused,
            Err(Refusal::NotOpen {
                status: Status::Unknown
            })
        );
    })
    .await;
}

#[tokio::test]
async fn without_its_lease_an_engine_sends_nothing_i25() {
    for_each_store(async |w| {
        let call = w.leased("t1", "4417", 3800).await;
        let id = w.opened(&call).await;
        assert_eq!(
            w.authorise(&id, &call).await,
            Err(Refusal::LeaseLost),
            "not driving it"
        );
        w.drive(&id, &call).await;
        w.wait(LEASE);
        assert_eq!(
            w.authorise(&id, &call).await,
            Err(Refusal::LeaseLost),
            "it ran out"
        );
        let other = w.second().await;
        let theirs = other.lease("t1").await.expect("free");
        other
            .ledger
            .drive(&id, &theirs, LEASE)
            .await
            .expect("driven");
        assert_eq!(
            w.authorise(&id, &call).await,
            Err(Refusal::LeaseLost),
            "another has it"
        );
        assert_eq!(other.authorise(&id, &theirs).await, Ok(1));
        assert_eq!(w.row(&id).await.attempts, 1);
    })
    .await;
}

#[tokio::test]
async fn a_held_row_waits_for_its_lead() {
    let mut held = terms();
    let caps = Caps {
        approve_over: Some(1_000),
        ..Caps::default()
    };
    held.policy.caps.insert(usd(), caps);
    for_each_store_with(held, async |w| {
        let call = w.leased("t1", "4417", 3800).await;
        let id = w.opened(&call).await;
        assert_eq!(w.authorise(&id, &call).await, Err(Refusal::Held));
    })
    .await;
}

#[tokio::test]
async fn what_the_provider_accepted_already_is_not_sent_again() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let outcome = pending(&w.row(&id).await);
        w.attempt(&id, &call, outcome).await;
        assert_eq!(w.authorise(&id, &call).await, Err(Refusal::Identified));
    })
    .await;
}

#[tokio::test]
async fn a_contradicted_row_stops_its_order_and_its_payment() {
    for_each_store(async |w| {
        // Both wait on the same order: one is pending, the other opened beside it.
        let (first, id) = w.driven("t1", "4417", 3800).await;
        let outcome = pending(&w.row(&id).await);
        w.attempt(&id, &first, outcome).await;
        let (second, beside) = w.driven("t2", "4417", 900).await;
        let row = w.row(&id).await;
        let twice = object(&row, "re_second", ObjectStatus::Succeeded);
        let event = Lookup::One {
            object: twice,
            taken: false,
        };
        w.observe(&id, Source::Webhook, event).await;
        assert_eq!(
            w.authorise(&beside, &second).await,
            Err(Refusal::Contradicted)
        );
        let (elsewhere, far) = w.driven("t3", "9", 900).await;
        assert_eq!(
            w.authorise(&far, &elsewhere).await,
            Ok(1),
            "other orders go on"
        );
    })
    .await;
}

#[tokio::test]
async fn a_paused_tool_sends_nothing_until_it_is_resumed() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let other = w.other().await;
        other
            .pause(&tool(), Some(("lea", "a bad day")))
            .await
            .expect("paused");
        assert_eq!(w.authorise(&id, &call).await, Err(Refusal::Paused));
        assert_eq!(w.row(&id).await.attempts, 0);
        w.ledger.pause(&tool(), None).await.expect("resumed");
        assert_eq!(w.authorise(&id, &call).await, Ok(1));
    })
    .await;
}

#[tokio::test]
async fn an_outage_opens_the_circuit_for_all_engines_and_one_trial_closes_it() {
    for_each_store(async |w| {
        for n in 0..3 {
            let (call, id) = w.driven(&format!("ill{n}"), &format!("ill{n}"), 100).await;
            w.attempt(&id, &call, lost()).await;
            if n < 2 {
                w.attempt(&id, &call, limited()).await;
            }
        }
        let other = w.second().await;
        let mut rows = Vec::new();
        for n in 0..2 {
            let call = other.leased(&format!("t{n}"), &n.to_string(), 100).await;
            let id = other.opened(&call).await;
            other.ledger.drive(&id, &call, LEASE).await.expect("driven");
            rows.push((call, id));
        }
        let [(a, first), (b, second)] = rows.as_slice() else {
            panic!("two rows");
        };
        assert_eq!(other.authorise(first, a).await, Err(Refusal::CircuitOpen));
        w.ledger.probed(&tool(), false).await.expect("noted");
        assert_eq!(other.authorise(first, a).await, Err(Refusal::CircuitOpen));
        w.ledger.probed(&tool(), true).await.expect("noted");
        assert_eq!(other.authorise(first, a).await, Ok(1), "the trial");
        assert_eq!(
            other.authorise(second, b).await,
            Err(Refusal::CircuitOpen),
            "one at a time"
        );
        let outcome = succeeded(&w.row(first).await);
        w.end(first, 1, outcome).await;
        assert_eq!(other.authorise(second, b).await, Ok(1), "closed again");
    })
    .await;
}

#[tokio::test]
async fn failed_connections_count_towards_the_circuit() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        for n in 0..5 {
            let op = samekey::domain::ids::OperationId::from_uuid(uuid::Uuid::from_u128(n % 3));
            w.ledger
                .connection_failed(&tool(), &op)
                .await
                .expect("noted");
        }
        assert_eq!(w.authorise(&id, &call).await, Err(Refusal::CircuitOpen));
        assert_eq!(w.row(&id).await.attempts, 0, "a connection is no attempt");
    })
    .await;
}

fn five_a_second() -> samekey::domain::policy::Terms {
    let mut terms = terms();
    terms.policy.rate = Rate {
        count: 5,
        per: Duration::from_secs(1),
    };
    terms
}

#[tokio::test]
async fn a_refusal_takes_no_token_of_the_rate() {
    for_each_store_with(five_a_second(), async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.ledger
            .pause(&tool(), Some(("lea", "wait")))
            .await
            .expect("paused");
        for _ in 0..10 {
            assert_eq!(w.authorise(&id, &call).await, Err(Refusal::Paused));
        }
        w.ledger.pause(&tool(), None).await.expect("resumed");
        assert_eq!(w.authorise(&id, &call).await, Ok(1));
        w.end(&id, 1, lost()).await;
        let wait = Duration::from_millis(200);
        assert_eq!(
            w.authorise(&id, &call).await,
            Err(Refusal::RateLimited { wait })
        );
        assert_eq!(w.row(&id).await.attempts, 1);
        w.wait(wait);
        assert_eq!(w.authorise(&id, &call).await, Ok(2));
    })
    .await;
}

#[tokio::test]
async fn all_engines_share_one_rate_i28_f56() {
    for_each_store_with(five_a_second(), async |w| {
        let hands = [w.hand(), w.second().await];
        let mut rows = Vec::new();
        for n in 0..20_usize {
            let hand = &hands[n % 2];
            let call = hand.leased(&format!("t{n}"), &n.to_string(), 100).await;
            let id = hand.opened(&call).await;
            hand.ledger.drive(&id, &call, LEASE).await.expect("driven");
            rows.push((n % 2, id, call));
        }
        let mut sent = 0;
        for _ in 0..100 {
            w.wait(Duration::from_millis(10));
            if let Some((hand, id, call)) = rows.last()
                && hands[*hand].authorise(id, call).await.is_ok()
            {
                sent += 1;
                rows.pop();
            }
        }
        assert_eq!(sent, 5, "in one second");
    })
    .await;
}

/// Two rows of the refund tool and one of a voucher tool at the same provider, driven by one engine.
async fn of_two_tools(w: &World, terms: Terms) -> (Hand, Vec<(LeasedCall, OperationId)>) {
    let voucher: samekey::domain::ids::ToolName = "issue_voucher".parse().expect("a tool");
    let mut both = (*w.terms).clone();
    both.insert(tool(), terms.clone());
    both.insert(voucher.clone(), terms);
    let hand = Hand {
        ledger: w.place.open(std::sync::Arc::new(both), &w.clock).await,
        engine: w.engine.clone(),
    };
    let mut rows = Vec::new();
    for (name, tool) in [("a", tool()), ("b", tool()), ("c", voucher)] {
        let call = samekey::ledger::NewCall {
            tool,
            ..new_call(name, name, 100)
        };
        hand.ledger.accept_call(call).await.expect("accepted");
        let call = hand.lease(name).await.expect("leased");
        let id = hand.opened(&call).await;
        hand.ledger.drive(&id, &call, LEASE).await.expect("driven");
        rows.push((call, id));
    }
    (hand, rows)
}

/// I28: what the provider takes is one budget for all its tools.
#[tokio::test]
async fn all_tools_share_the_rate_of_their_provider_i28() {
    for_each_store(async |w| {
        let mut terms = terms();
        terms.profile.rate = five_a_second().policy.rate;
        let (hand, rows) = of_two_tools(&w, terms).await;
        let [(a, first), _, (c, third)] = rows.as_slice() else {
            panic!("three rows");
        };
        assert_eq!(hand.authorise(first, a).await, Ok(1));
        let wait = Duration::from_millis(200);
        let limited = hand.authorise(third, c).await;
        assert_eq!(limited, Err(Refusal::RateLimited { wait }));
        w.wait(wait);
        assert_eq!(hand.authorise(third, c).await, Ok(1));
    })
    .await;
}

/// R97: a limit is a tool's own, also where two tools share a provider.
#[tokio::test]
async fn each_tool_has_a_rate_of_its_own_r97() {
    for_each_store(async |w| {
        let (hand, rows) = of_two_tools(&w, five_a_second()).await;
        let [(a, first), (b, second), (c, third)] = rows.as_slice() else {
            panic!("three rows");
        };
        assert_eq!(hand.authorise(first, a).await, Ok(1));
        let wait = Duration::from_millis(200);
        let limited = hand.authorise(second, b).await;
        assert_eq!(limited, Err(Refusal::RateLimited { wait }));
        assert_eq!(hand.authorise(third, c).await, Ok(1), "another tool");
    })
    .await;
}

#[tokio::test]
async fn the_key_is_not_sent_at_or_after_its_deadline_i10_f17() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.attempt(&id, &call, lost()).await;
        let deadline = w.row(&id).await.key_expires_at.expect("a deadline");
        let left = samekey::domain::since(w.clock.now(), deadline);
        w.wait(left.saturating_sub(Duration::from_micros(1)));
        let held = [call.clone()];
        let renewed = w.ledger.renew(&w.engine, LEASE, &held).await;
        assert_eq!(renewed.expect("renewed"), 1);
        assert_eq!(w.authorise(&id, &call).await, Ok(2), "a microsecond before");
        w.end(&id, 2, lost()).await;
        w.wait(Duration::from_micros(1));
        assert_eq!(w.authorise(&id, &call).await, Err(Refusal::KeyExpired));
        assert_eq!(
            w.ledger.sweepable().await.expect("listed"),
            vec![id.clone()]
        );
        let swept = w
            .apply(&id, samekey::domain::transition::Event::Swept)
            .await;
        assert_eq!(swept.expect("swept").op.row.status, Status::Unknown);
    })
    .await;
}

#[tokio::test]
async fn after_already_refunded_a_lookup_comes_first_s34() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let outcome = Outcome {
            already_refunded: true,
            ..http(OutcomeClass::ValidationFailure, 400)
        };
        w.attempt(&id, &call, outcome).await;
        assert_eq!(w.authorise(&id, &call).await, Err(Refusal::LookupFirst));
    })
    .await;
}

#[tokio::test]
async fn a_stopped_row_is_never_sent_again_r41() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.attempt(&id, &call, lost()).await;
        w.decide(&id, &ann(), Act::Stop).await.expect("stopped");
        let refused = w.authorise(&id, &call).await;
        assert_eq!(
            refused,
            Err(Refusal::NotOpen {
                status: Status::Unknown
            })
        );
    })
    .await;
}

#[tokio::test]
async fn many_authorise_at_once_and_one_attempt_is_counted_i13() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let mut tries = Vec::new();
        for _ in 0..8 {
            let (ledger, id, call) = (w.other().await, id.clone(), call.clone());
            tries.push(tokio::spawn(
                async move { ledger.authorise(&id, &call).await },
            ));
        }
        let mut counted = 0;
        for one in tries {
            match one.await.expect("ran").expect("answered") {
                Ok(_) => counted += 1,
                Err(refusal) => assert_eq!(refusal, Refusal::InFlight),
            }
        }
        assert_eq!((counted, w.row(&id).await.attempts), (1, 1));
    })
    .await;
}
