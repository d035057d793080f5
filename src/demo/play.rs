//! How a customer's calls are made: one after the other, and overlapping only where it was planned.
//!
//! Owns: the sequence, which is the same for every client. Never: knows what a client does with a
//! call. Tests: below.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::DemoError;
use super::asks::{Ask, Cause};
use super::customers::Customer;
use crate::clock::Clock;
use crate::domain::ids::{OperationId, OrderId};
use crate::simulator::Held;

/// Something that can be asked for refunds: samekey, or the naive client.
#[async_trait]
pub(super) trait Client: Send + Sync {
    /// Makes the call and waits for its answer; returns the operation that it speaks of, where there
    /// is such a thing. `read` is false where the agent is gone before the answer comes.
    async fn ask(
        &self,
        order: &OrderId,
        ask: &Ask,
        after: Option<&OperationId>,
        read: bool,
    ) -> Result<Option<OperationId>, DemoError>;

    /// The provider's signal that a request is being held.
    fn held(&self) -> Held;
}

/// How long people and models take between two calls of one customer.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    pub clock: Clock,
    /// Nothing for counted runs.
    pub think: Duration,
}

/// Makes all calls of `customer`; `starts` hears of each just before it is made.
pub(super) async fn play(
    client: &dyn Client,
    customer: &Customer,
    pace: &Pace,
    starts: &(dyn Fn(&Ask) + Sync),
) -> Result<(), DemoError> {
    let mut last = None;
    let mut asks = customer.asks.iter().peekable();
    let mut first = true;
    while let Some(ask) = asks.next() {
        if !std::mem::take(&mut first) {
            pace.clock.sleep(pace.think).await;
        }
        let after = last.take().filter(|_| ask.names_previous);
        let twin = asks.next_if(|a| a.cause == Cause::Meanwhile);
        let read = asks.peek().is_none_or(|a| a.cause != Cause::AnswerLost);
        starts(ask);
        let done = Notify::new();
        let one = async {
            let told = client.ask(&customer.order, ask, after.as_ref(), read).await;
            done.notify_one();
            told
        };
        let other = async {
            let Some(twin) = twin else { return Ok(()) };
            let mut held = client.held();
            // Should the request never be held after all, the second call is simply the next one.
            tokio::select! {
                () = held.order(customer.order.as_str(), 1) => {}
                () = done.notified() => {}
            }
            starts(twin);
            client
                .ask(&customer.order, twin, None, true)
                .await
                .map(drop)
        };
        (last, ()) = tokio::try_join!(one, other)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::demo::customers::Customers;
    use crate::simulator::{Faults, Plan, SimConfig, Simulator};

    struct Notes {
        sim: Simulator,
        heard: Mutex<Vec<(String, Option<OperationId>)>>,
    }

    #[async_trait]
    impl Client for Notes {
        async fn ask(
            &self,
            _order: &OrderId,
            ask: &Ask,
            after: Option<&OperationId>,
            _read: bool,
        ) -> Result<Option<OperationId>, DemoError> {
            let mut heard = self.heard.lock().expect("lock");
            heard.push((ask.call.to_string(), after.cloned()));
            Ok(OperationId::parse(&format!("op_{}", ask.call)).ok())
        }

        fn held(&self) -> Held {
            self.sim.held()
        }
    }

    #[tokio::test]
    async fn every_call_is_made_once_in_order_and_a_further_equal_refund_names_the_one_before() {
        let clock = Clock::system();
        let sim = Simulator::start(SimConfig::new(clock.clone()))
            .await
            .expect("simulator");
        let notes = Notes {
            sim,
            heard: Mutex::default(),
        };
        let faults = Faults::new(&Plan::Mixed { n: None }, 4).expect("mixed");
        let batch = Customers::new(4, faults, None, 1)
            .batch(300)
            .expect("batch");
        let pace = Pace {
            clock,
            think: Duration::ZERO,
        };
        let starts = Mutex::new(0);
        for customer in &batch {
            let count = |_: &Ask| *starts.lock().expect("lock") += 1;
            play(&notes, customer, &pace, &count).await.expect("played");
        }
        let heard = notes.heard.into_inner().expect("lock");
        let asks: Vec<_> = batch.iter().flat_map(|c| &c.asks).collect();
        let ids: Vec<_> = asks.iter().map(|a| a.call.to_string()).collect();
        assert_eq!(heard.iter().map(|h| h.0.clone()).collect::<Vec<_>>(), ids);
        assert_eq!(starts.into_inner().expect("lock"), ids.len());
        let mut named = 0;
        for (at, ask) in asks.iter().enumerate() {
            let before = heard[at].1.as_ref();
            assert_eq!(before.is_some(), ask.names_previous);
            if let Some(before) = before {
                // The call before it, or the one before that where the last was a second agent's.
                assert!(
                    ids[..at]
                        .iter()
                        .rev()
                        .take(2)
                        .any(|id| *before.as_str() == format!("op_{id}"))
                );
                named += 1;
            }
        }
        assert!(named > 2, "{named}");
    }
}
