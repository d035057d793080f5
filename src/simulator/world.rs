//! The provider's books: payments, refunds and the arithmetic between them.
//!
//! Owns: which refunds exist, what they became, and the rule that a charge never gives back more
//! than was captured (S31, S32). Never: speaks HTTP, knows keys or chooses faults; time comes in
//! as an argument. A payment is a pure function of its order, so asking about orders stores
//! nothing. Webhooks will be made from the changes that happen here. Tests: below.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::ids::{charge_id, draw, object_id};
use super::records::EffectSource;
use super::script::{Course, RefundStatus};
use super::state::seconds_after;
use super::wire::ApiError;

/// What every order's charge captured, in minor units.
pub(super) const CAPTURED: i64 = 100_000;

/// The currency of every charge.
pub(super) const CURRENCY: &str = "usd";

/// Refunds of one world; more than this is a client gone wild.
const MAX_REFUNDS: usize = 1_000_000;

const DAY_S: i64 = 86_400;

/// A refund object and what the simulator knows about it besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refund {
    pub id: String,
    pub order: String,
    pub amount: i64,
    pub status: RefundStatus,
    pub reason: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub created: DateTime<Utc>,
    pub key: Option<String>,
    pub source: EffectSource,
    /// Whether it ever took money from the charge.
    pub moved_money: bool,
}

/// What somebody wants refunded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewRefund {
    pub order: String,
    /// `None`: all that remains (S26).
    pub amount: Option<i64>,
    pub reason: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub key: Option<String>,
    pub source: EffectSource,
    pub course: Course,
}

/// How an order's payment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Payment {
    pub order: String,
    pub created: DateTime<Utc>,
    pub refunded: i64,
    pub disputed: bool,
}

#[derive(Debug)]
pub(super) struct World {
    seed: u64,
    started: DateTime<Utc>,
    /// In order of creation.
    refunds: Vec<Refund>,
    of_order: BTreeMap<String, Vec<usize>>,
    by_id: BTreeMap<String, usize>,
    disputed: BTreeSet<String>,
    /// What happens by itself, and when.
    due: Vec<(DateTime<Utc>, Event)>,
}

#[derive(Clone, Debug)]
enum Event {
    Turns(usize, RefundStatus),
    Happens(Box<NewRefund>),
}

impl World {
    pub fn new(seed: u64, started: DateTime<Utc>) -> Self {
        Self {
            seed,
            started,
            refunds: Vec::new(),
            of_order: BTreeMap::new(),
            by_id: BTreeMap::new(),
            disputed: BTreeSet::new(),
            due: Vec::new(),
        }
    }

    /// The payment of an order; it was made between one and thirty days before the start.
    pub fn payment(&self, order: &str) -> Payment {
        let age = draw(self.seed, &["age", order]) % 2_505_600;
        let age = TimeDelta::seconds(DAY_S.saturating_add(i64::try_from(age).unwrap_or(0)));
        let refunded = self.of(order).filter(|r| r.status.takes_money());
        Payment {
            order: order.to_owned(),
            created: self.started - age,
            refunded: refunded.map(|r| r.amount).sum(),
            disputed: self.disputed.contains(order),
        }
    }

    /// All refunds, oldest first.
    pub fn refunds(&self) -> &[Refund] {
        &self.refunds
    }

    /// The refunds of an order, oldest first.
    pub fn of(&self, order: &str) -> impl DoubleEndedIterator<Item = &Refund> {
        let indexes = self.of_order.get(order).map(Vec::as_slice);
        indexes
            .unwrap_or_default()
            .iter()
            .filter_map(|i| self.refunds.get(*i))
    }

    pub fn refund(&self, id: &str) -> Option<&Refund> {
        self.by_id.get(id).and_then(|i| self.refunds.get(*i))
    }

    /// Lets everything happen that was due by `now`.
    pub fn settle(&mut self, now: DateTime<Utc>) {
        while let Some(next) = self.due.iter().position(|(at, _)| *at <= now) {
            let (at, event) = self.due.remove(next);
            match event {
                Event::Turns(index, status) => {
                    if let Some(refund) = self.refunds.get_mut(index)
                        && refund.status != RefundStatus::Canceled
                    {
                        refund.status = status;
                    }
                }
                Event::Happens(new) => {
                    if let Err(refused) = self.create(*new, at) {
                        tracing::debug!(?refused, "a late refund was refused");
                    }
                }
            }
        }
    }

    /// Makes a refund, or says why not (S31–S33). On success its index.
    pub fn create(&mut self, new: NewRefund, now: DateTime<Utc>) -> Result<usize, ApiError> {
        let payment = self.payment(&new.order);
        let charge = charge_id(&new.order);
        if payment.disputed {
            let message = format!("Charge {charge} has been charged back; cannot issue a refund.");
            return Err(ApiError::new(400, message).code("charge_disputed"));
        }
        let remaining = CAPTURED.saturating_sub(payment.refunded);
        if remaining <= 0 {
            let message = format!("Charge {charge} has already been refunded.");
            return Err(ApiError::new(400, message).code("charge_already_refunded"));
        }
        let amount = new.amount.unwrap_or(remaining);
        if amount > remaining {
            let message = format!(
                "Refund amount (${}) is greater than unrefunded amount on charge (${})",
                dollars(amount),
                dollars(remaining)
            );
            return Err(ApiError::invalid("amount", message));
        }
        self.add(new, amount, now)
    }

    fn add(&mut self, new: NewRefund, amount: i64, now: DateTime<Utc>) -> Result<usize, ApiError> {
        let index = self.refunds.len();
        if index >= MAX_REFUNDS {
            let full = ApiError::new(503, "The simulator holds no more refunds; start a new one.");
            return Err(full.kind("api_error"));
        }
        let of_order = self.of_order.entry(new.order.clone()).or_default();
        let nth = of_order.len().to_string();
        // By order, not by arrival: the same seed gives the same ids.
        let id = object_id("re_", self.seed, &["refund", &new.order, &nth]);
        of_order.push(index);
        self.by_id.insert(id.clone(), index);
        if let Some(then) = new.course.then {
            let at = seconds_after(now, new.course.after_s);
            self.due.push((at, Event::Turns(index, then)));
        }
        self.refunds.push(Refund {
            id,
            order: new.order,
            amount,
            status: new.course.status,
            reason: new.reason,
            metadata: new.metadata,
            created: now,
            key: new.key,
            source: new.source,
            moved_money: new.course.status.takes_money(),
        });
        Ok(index)
    }

    /// Somebody refunds in the dashboard, once per order; what does not fit any more does not
    /// happen.
    pub fn external(&mut self, order: &str, amount: Option<i64>, now: DateTime<Utc>) {
        if self.of(order).any(|r| r.source == EffectSource::External) {
            return;
        }
        let remaining = CAPTURED.saturating_sub(self.payment(order).refunded);
        let amount = amount.map(|a| a.min(remaining));
        let course = Course::default();
        if let Err(refused) = self.create(external(order, amount, course), now) {
            tracing::debug!(?refused, "an external refund was refused");
        }
    }

    /// Failed refunds of somebody else: they fill the list and take no money.
    pub fn fail_many(&mut self, order: &str, count: u32, now: DateTime<Utc>) {
        let course = Course {
            status: RefundStatus::Failed,
            ..Course::default()
        };
        for _ in 0..count {
            // Refused only when the world is full.
            let _ = self.add(external(order, Some(1), course), 1, now);
        }
    }

    /// The customer disputes the order's charge (S33, S69).
    pub fn dispute(&mut self, order: &str) {
        self.disputed.insert(order.to_owned());
    }

    /// `new` will be made at `at`, with or without anybody waiting for it (S12).
    pub fn later(&mut self, new: NewRefund, at: DateTime<Utc>) {
        self.due.push((at, Event::Happens(Box::new(new))));
    }

    /// S38: only a refund that requires action can be canceled.
    pub fn cancel(&mut self, id: &str) -> Result<&Refund, ApiError> {
        let refund = self.by_id.get(id).and_then(|i| self.refunds.get_mut(*i));
        let refund = refund.ok_or_else(|| ApiError::missing("refund", "refund", id))?;
        if refund.status != RefundStatus::RequiresAction {
            let status = refund.status.name();
            let message = format!("Refund {id} cannot be canceled in status {status}.");
            return Err(ApiError::new(400, message));
        }
        refund.status = RefundStatus::Canceled;
        Ok(refund)
    }
}

fn external(order: &str, amount: Option<i64>, course: Course) -> NewRefund {
    NewRefund {
        order: order.to_owned(),
        amount,
        reason: None,
        metadata: BTreeMap::new(),
        key: None,
        source: EffectSource::External,
        course,
    }
}

fn dollars(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> (World, DateTime<Utc>) {
        let start = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        (World::new(1, start), start)
    }

    fn ours(amount: Option<i64>, course: Course) -> NewRefund {
        NewRefund {
            source: EffectSource::Api,
            ..external("o", amount, course)
        }
    }

    #[test]
    fn s31_partial_refunds_add_up_and_never_exceed_the_charge() {
        let (mut world, now) = world();
        for amount in [60_000, 30_000] {
            world
                .create(ours(Some(amount), Course::default()), now)
                .expect("fits");
        }
        let over = world.create(ours(Some(10_001), Course::default()), now);
        let over = over.expect_err("S32");
        assert_eq!(over.param.as_deref(), Some("amount"));
        assert!(over.message.contains("($100.01)") && over.message.contains("($100.00)"));
        world
            .create(ours(None, Course::default()), now)
            .expect("S26: the rest");
        assert_eq!(world.payment("o").refunded, CAPTURED);
        let none = world.create(ours(Some(1), Course::default()), now);
        let none = none.expect_err("S32: nothing remains");
        assert_eq!(none.code.as_deref(), Some("charge_already_refunded"));
    }

    #[test]
    fn s36_a_failed_refund_gives_the_money_back() {
        let (mut world, now) = world();
        let course = Course {
            status: RefundStatus::Succeeded,
            then: Some(RefundStatus::Failed),
            after_s: 60,
        };
        world.create(ours(None, course), now).expect("made");
        world.settle(now + TimeDelta::seconds(59));
        assert_eq!(world.payment("o").refunded, CAPTURED);
        world.settle(now + TimeDelta::seconds(60));
        assert_eq!(world.payment("o").refunded, 0);
        assert!(world.refunds()[0].moved_money);
    }

    #[test]
    fn s12_a_late_refund_happens_by_the_clock() {
        let (mut world, now) = world();
        world.later(
            ours(Some(5), Course::default()),
            now + TimeDelta::seconds(9),
        );
        world.settle(now);
        assert_eq!(world.of("o").count(), 0);
        world.settle(now + TimeDelta::seconds(9));
        assert_eq!(world.payment("o").refunded, 5);
    }

    #[test]
    fn s38_only_requires_action_can_be_canceled() {
        let (mut world, now) = world();
        let course = Course {
            status: RefundStatus::RequiresAction,
            then: Some(RefundStatus::Succeeded),
            after_s: 60,
        };
        world.create(ours(Some(5), course), now).expect("made");
        let id = world.refunds()[0].id.clone();
        world.cancel(&id).expect("canceled");
        assert!(world.cancel(&id).is_err(), "only once");
        world.settle(now + TimeDelta::seconds(60));
        assert_eq!(world.refunds()[0].status, RefundStatus::Canceled);
        assert_eq!(world.payment("o").refunded, 0);
    }

    #[test]
    fn payments_are_the_same_for_the_same_seed_and_older_than_a_day() {
        let (world, now) = world();
        let payment = world.payment("4417");
        assert_eq!(payment, World::new(1, now).payment("4417"));
        assert!(now - payment.created >= TimeDelta::days(1));
    }
}
