//! The simulated customers and what their agents will ask for, decided before anything runs.
//!
//! Owns: intents (what a customer wants once), and the tool calls that are made for each. Everything
//! follows from the seed, the fault plan and the customer's number, so that samekey and the naive
//! client get the very same calls. Never: waits, sends, reads a clock, or tells samekey of an
//! intent. Tests: below.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::asks::{Ask, Cause, Writer};
use crate::domain::ids::OrderId;
use crate::domain::text::TextError;
use crate::simulator::{Fault, Faults};

/// The reference case: order 4417, $38.00 (R3, R13).
const FIRST_ORDER: u64 = 4417;
const FIRST_AMOUNT: i64 = 3800;
/// Requests that one tool call may send for its key (R45).
const PER_CALL: u32 = 3;

/// One thing that a customer wants once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intent {
    /// Minor units, usd.
    pub amount: i64,
}

/// A customer with one order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Customer {
    pub order: OrderId,
    pub intents: Vec<Intent>,
    /// In this order, each after the answer to the one before; [`Cause::Meanwhile`] overlaps it.
    pub asks: Vec<Ask>,
}

/// All customers there will ever be.
#[derive(Clone, Debug)]
pub(super) struct Customers {
    seed: u64,
    faults: Faults,
    /// The plan's faults go to the first N requests that arrive, whosever they are.
    limit: Option<u32>,
    /// Distinguishes the orders of a further run on a kept ledger.
    run: u32,
}

impl Customers {
    pub fn new(seed: u64, faults: Faults, limit: Option<u32>, run: u32) -> Self {
        Self {
            seed,
            faults,
            limit,
            run,
        }
    }

    /// The order of customer number `index`: 4417 first, then further ones, never the same twice.
    pub fn order(&self, index: u64) -> Result<OrderId, TextError> {
        let spread = if index == 0 {
            0
        } else {
            self.lots(index).random_range(0..7)
        };
        let number = index
            .saturating_mul(7)
            .saturating_add(spread)
            .saturating_add(FIRST_ORDER);
        if self.run <= 1 {
            OrderId::parse(&number.to_string())
        } else {
            OrderId::parse(&format!("{number}-{}", self.run))
        }
    }

    /// The name of the fault that a key's first request on the customer's order meets, if any.
    pub fn first_fault(&self, index: u64) -> Option<&'static str> {
        let order = self.order(index).ok()?;
        self.faults.pick(order.as_str(), 1).map(|f| f.name)
    }

    /// Customer number `index`.
    pub fn customer(&self, index: u64) -> Result<Customer, TextError> {
        let order = self.order(index)?;
        let mut lots = self.lots(index);
        // The first lot chose the order.
        let _: u64 = lots.random_range(0..7);
        let mut writer = Writer::new(index, order.clone(), self.run, lots)?;
        let mut intents = Vec::new();
        let amount = if index == 0 {
            FIRST_AMOUNT
        } else {
            writer.amount_other_than(0)
        };
        intents.push(Intent { amount });
        let unclear = self.unclear(index, &order);
        if index > 0 && writer.chance(6) {
            writer.ask(amount, 0, Cause::Slip)?;
        }
        writer.ask(amount, 0, Cause::Wanted)?;
        if self.limit.is_none() && self.meets_a_held_reply(&order) && writer.chance(25) {
            writer.meanwhile(amount)?;
        }
        writer.repeats(amount, 0, unclear)?;
        if index > 0 && writer.chance(16) {
            let equal = writer.chance(35);
            let second = if equal {
                amount
            } else {
                writer.amount_other_than(amount)
            };
            intents.push(Intent { amount: second });
            writer.ask(second, 1, Cause::Wanted)?;
            if equal {
                writer.name_previous();
            }
            if !equal {
                writer.repeats(second, 1, unclear)?;
            }
        }
        Ok(Customer {
            order,
            intents,
            asks: writer.asks,
        })
    }

    /// The first customers, with exactly `calls` tool calls in all.
    pub fn batch(&self, calls: u32) -> Result<Vec<Customer>, TextError> {
        let mut left = usize::try_from(calls).unwrap_or(usize::MAX);
        let mut all = Vec::new();
        for index in 0.. {
            if left == 0 {
                break;
            }
            let mut customer = self.customer(index)?;
            customer.asks.truncate(left);
            left = left.saturating_sub(customer.asks.len());
            // Nobody wants what is never asked for.
            let wanted = customer.asks.iter().map(|a| a.intent).max().unwrap_or(0);
            customer.intents.truncate(wanted.saturating_add(1));
            all.push(customer);
        }
        Ok(all)
    }

    fn lots(&self, index: u64) -> ChaCha8Rng {
        let mut lots = ChaCha8Rng::seed_from_u64(self.seed);
        lots.set_stream(index);
        lots
    }

    /// Whether the first tool call on this order ends without a clear reply. Where only the first N
    /// requests go wrong, customers come one by one and use them up.
    fn unclear(&self, index: u64, order: &OrderId) -> bool {
        let before = index.saturating_mul(u64::from(PER_CALL));
        (1..=PER_CALL)
            .map(|nth| {
                let arrives = before.saturating_add(u64::from(nth));
                let met = self.limit.is_none_or(|n| arrives <= u64::from(n));
                self.faults.pick(order.as_str(), nth).filter(|_| met)
            })
            .find_map(|fault| reply(fault.as_ref()))
            .unwrap_or(true)
    }

    /// Whether a second call can be started while the first request is held and still change
    /// nothing: the first call is sure to be settled before its own attempts are spent, so that
    /// nobody's timing decides how many requests are sent.
    fn meets_a_held_reply(&self, order: &OrderId) -> bool {
        let pick = |nth| self.faults.pick(order.as_str(), nth);
        let held = pick(1).filter(Fault::waits);
        // After an overlap the next request is a 409 in any case.
        let first_free = match held.as_ref().map(|f| f.name) {
            None => return false,
            Some("overlap-409") => 3,
            Some(_) => 2,
        };
        (first_free..=PER_CALL).any(|nth| pick(nth).is_none())
    }
}

/// Whether a usual client is left without a clear answer by the reply to a request; `None` where it
/// sends another one with the same key. Judged by the naive client's rules, in its favour: its
/// customers do not insist after an answer that it takes for good.
fn reply(fault: Option<&Fault>) -> Option<bool> {
    let Some(fault) = fault.filter(|f| !f.is_answered()) else {
        return Some(false);
    };
    match fault.name {
        // Saved: every further request with the key gets the same.
        "saved-500-with-effect" | "saved-500-without-effect" | "key-mismatch" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::tool_call::RefundArguments;
    use crate::simulator::Plan;

    fn customers(seed: u64) -> Customers {
        let faults = Faults::new(&Plan::Mixed { n: None }, seed).expect("mixed");
        Customers::new(seed, faults, None, 1)
    }

    #[test]
    fn the_same_seed_gives_the_same_customers_and_another_seed_others() {
        let batch = |seed| customers(seed).batch(300).expect("batch");
        assert_eq!(batch(7), batch(7));
        assert_ne!(batch(7), batch(8));
    }

    #[test]
    fn a_batch_has_exactly_as_many_calls_as_asked_for() {
        for calls in [0, 1, 2, 60, 500] {
            let batch = customers(3).batch(calls).expect("batch");
            let asks: Vec<_> = batch.iter().flat_map(|c| &c.asks).collect();
            assert_eq!(asks.len(), calls as usize);
            let ids: BTreeSet<_> = asks.iter().map(|a| &a.call).collect();
            assert_eq!(ids.len(), asks.len(), "every call has an id of its own");
            assert!(batch.iter().all(|c| !c.asks.is_empty()));
            let orders: BTreeSet<_> = batch.iter().map(|c| &c.order).collect();
            assert_eq!(orders.len(), batch.len(), "every customer has an order");
        }
    }

    #[test]
    fn the_first_customer_is_the_reference_case_r3() {
        let first = customers(1).customer(0).expect("customer");
        assert_eq!(first.order.as_str(), "4417");
        assert_eq!(first.intents, [Intent { amount: 3800 }]);
        assert_eq!(first.asks[0].agent.as_str(), "northwind");
        assert!(first.asks[0].call.as_str().starts_with("toolu_"));
    }

    #[test]
    fn every_call_reads_as_its_intent_in_whatever_spelling_f31() {
        let mut causes = BTreeSet::new();
        for customer in customers(5).batch(800).expect("batch") {
            for ask in &customer.asks {
                causes.insert(format!("{:?}", ask.cause));
                let value = serde_json::from_str(&ask.arguments).expect("JSON");
                match RefundArguments::parse(&value) {
                    Ok(args) => {
                        assert_ne!(ask.cause, Cause::Slip, "{}", ask.arguments);
                        assert_eq!(args.order, customer.order);
                        let intent = &customer.intents[ask.intent];
                        assert_eq!(args.money.minor(), intent.amount);
                    }
                    Err(why) => assert_eq!(ask.cause, Cause::Slip, "{}: {why}", ask.arguments),
                }
            }
        }
        assert_eq!(causes.len(), 5, "{causes:?}");
    }

    #[test]
    fn an_overlap_is_planned_only_where_the_first_request_is_held() {
        let all = customers(2);
        let mut seen = 0;
        for customer in all.batch(1000).expect("batch") {
            if customer.asks.iter().any(|a| a.cause == Cause::Meanwhile) {
                let first = all.faults.pick(customer.order.as_str(), 1);
                assert!(first.expect("a fault").waits());
                seen += 1;
            }
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn where_only_the_first_requests_go_wrong_only_the_first_customers_insist() {
        let plan = Plan::parse("timeout-after-effect:6").expect("plan");
        let faults = Faults::new(&plan, 1).expect("faults");
        let customers = Customers::new(1, faults, Some(6), 1);
        let unclear = |index| customers.unclear(index, &customers.order(index).expect("order"));
        assert_eq!([0, 1, 2, 9].map(unclear), [true, true, false, false]);
        let batch = customers.batch(200).expect("batch");
        let overlaps = batch
            .iter()
            .flat_map(|c| &c.asks)
            .filter(|a| a.cause == Cause::Meanwhile);
        assert_eq!(overlaps.count(), 0);
    }

    #[test]
    fn a_further_run_has_orders_of_its_own() {
        let faults = Faults::new(&Plan::Honest, 1).expect("honest");
        let second = Customers::new(1, faults, None, 2);
        let customer = second.customer(0).expect("customer");
        assert_eq!(customer.order.as_str(), "4417-2");
        assert!(customer.asks[0].call.as_str().ends_with("_2"));
    }
}
