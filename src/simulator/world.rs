//! The provider's books: payments, refunds, disputes and the arithmetic between them.
//!
//! Owns: which refunds exist, what they became, and the rule that a charge never gives back more
//! than was captured (S31, S32). Never: speaks HTTP, knows keys or chooses faults; time comes in
//! as an argument. A payment is a pure function of its order, so asking about orders stores
//! nothing. What is worth an event goes through `changes`. Tests: below.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::changes::{Change, Request};
use super::disputes::Dispute;
use super::ids::{charge_id, draw, object_id, payment_id};
use super::objects;
use super::payments::{NewRefund, Payment, Refund};
use super::records::EffectSource;
use super::refunds::NewMetadata;
use super::state::seconds_after;
use super::step::{
    ChargeState, Course, DisputeCourse, FailureReason, RefundStatus, Setting, Verdict, WebhookFault,
};
use super::wire::ApiError;

/// Refunds of one world; more than this is a client gone wild.
const MAX_REFUNDS: usize = 1_000_000;

const DAY_S: i64 = 86_400;

#[derive(Debug)]
pub(super) struct World {
    pub(super) seed: u64,
    started: DateTime<Utc>,
    setting: Arc<Setting>,
    currency: Arc<str>,
    /// In order of creation.
    refunds: Vec<Refund>,
    of_order: BTreeMap<String, Vec<usize>>,
    by_id: BTreeMap<String, usize>,
    /// In order of creation; at most one for an order.
    pub(super) disputes: Vec<Dispute>,
    pub(super) dispute_of_order: BTreeMap<String, usize>,
    /// What happens by itself, and when; in that order.
    due: BTreeMap<(DateTime<Utc>, u64), Due>,
    serial: u64,
    /// What nobody has been told of yet.
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Due {
    Turns(usize, RefundStatus),
    Referenced(usize),
    Happens(Box<NewRefund>),
    Disputed(String, DisputeCourse, WebhookFault),
    Decided(String, Verdict),
}

impl World {
    pub fn new(seed: u64, started: DateTime<Utc>, setting: &Setting) -> Self {
        Self {
            seed,
            started,
            setting: Arc::new(setting.clone()),
            currency: setting.currency.as_str().into(),
            refunds: Vec::new(),
            of_order: BTreeMap::new(),
            by_id: BTreeMap::new(),
            disputes: Vec::new(),
            dispute_of_order: BTreeMap::new(),
            due: BTreeMap::new(),
            serial: 0,
            changes: Vec::new(),
        }
    }

    pub fn setting(&self) -> &Setting {
        &self.setting
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
            dispute: self.dispute_of(order).map(|d| d.id.clone()),
            setting: Arc::clone(&self.setting),
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

    /// Lets everything happen that was due by `now`, in order.
    pub fn settle(&mut self, now: DateTime<Utc>) {
        while let Some(first) = self.due.first_entry()
            && first.key().0 <= now
        {
            let ((at, _), due) = first.remove_entry();
            match due {
                Due::Turns(index, status) => self.turn(index, status, at),
                Due::Referenced(index) => self.change(index, at, None, |r| r.has_reference = true),
                Due::Happens(new) => {
                    if let Err(refused) = self.create(*new, at) {
                        tracing::debug!(?refused, "a late refund was refused");
                    }
                }
                Due::Disputed(order, course, webhook) => {
                    self.dispute(&order, course, webhook, at);
                }
                Due::Decided(id, verdict) => self.decide(&id, verdict, at),
            }
        }
    }

    /// When something happens by itself next.
    pub fn next_due(&self) -> Option<DateTime<Utc>> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// What has changed since this was asked last.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    fn due(&mut self, at: DateTime<Utc>, due: Due) {
        self.serial = self.serial.saturating_add(1);
        self.due.insert((at, self.serial), due);
    }

    /// A refund's status changes by itself; what is final already stays so.
    fn turn(&mut self, index: usize, status: RefundStatus, at: DateTime<Utc>) {
        let is_open = |r: &Refund| r.status.takes_money();
        if self.refunds.get(index).is_some_and(is_open) {
            self.change(index, at, None, |r| r.status = status);
        }
    }

    /// Changes a refund and tells of it.
    fn change(
        &mut self,
        index: usize,
        at: DateTime<Utc>,
        by: Option<&Request>,
        how: impl FnOnce(&mut Refund),
    ) {
        let Some(refund) = self.refunds.get_mut(index) else {
            return;
        };
        let before = refund.clone();
        how(refund);
        refund.moved_money |= refund.status.takes_money();
        let after = refund.clone();
        if before != after {
            let payment = self.payment(&after.order);
            let told = Change::updated(&before, &after, payment, at, by);
            self.changes.extend(told);
        }
    }

    /// Makes a refund, or says why not (S31–S33). On success its index.
    pub fn create(&mut self, new: NewRefund, now: DateTime<Utc>) -> Result<usize, ApiError> {
        let payment = self.payment(&new.order);
        let charge = charge_id(&new.order);
        let refused = |message: String| ApiError::new(400, message);
        match self.setting.charge {
            ChargeState::Captured => {}
            ChargeState::Uncaptured => {
                return Err(refused(format!(
                    "Charge {charge} has not been captured, so it cannot be refunded."
                )));
            }
            ChargeState::Failed => {
                let intent = payment_id(&new.order);
                return Err(refused(format!(
                    "This PaymentIntent ({intent}) does not have a successful charge to refund."
                )));
            }
        }
        if self.is_disputed(&new.order) {
            let message = format!("Charge {charge} has been charged back; cannot issue a refund.");
            return Err(refused(message).code("charge_disputed"));
        }
        let remaining = payment.captured().saturating_sub(payment.refunded);
        if remaining <= 0 {
            let message = format!("Charge {charge} has already been refunded.");
            return Err(refused(message).code("charge_already_refunded"));
        }
        let amount = new.amount.unwrap_or(remaining);
        if amount > remaining {
            let message = format!(
                "Refund amount ({}) is greater than unrefunded amount on charge ({})",
                shown(amount, &self.currency),
                shown(remaining, &self.currency)
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
        let course = new.course;
        if let Some(then) = course.then {
            self.due(seconds_after(now, course.after_s), Due::Turns(index, then));
        }
        if let Some(after_s) = course.reference_after_s {
            self.due(seconds_after(now, after_s), Due::Referenced(index));
        }
        let refund = Refund {
            id,
            order: new.order,
            amount,
            currency: Arc::clone(&self.currency),
            status: course.status,
            course,
            failure_reason: course.failure_reason,
            has_reference: false,
            reason: new.reason,
            metadata: new.metadata,
            created: now,
            key: new.key,
            source: new.source,
            moved_money: course.status.takes_money(),
            webhook: new.webhook,
        };
        self.refunds.push(refund.clone());
        let payment = self.payment(&refund.order);
        let told = Change::created(&refund, payment, now, new.request.as_ref());
        self.changes.extend(told);
        Ok(index)
    }

    /// Somebody refunds in the dashboard, once per order; what does not fit any more does not
    /// happen.
    pub fn external(&mut self, order: &str, amount: Option<i64>, now: DateTime<Utc>) {
        if self.of(order).any(|r| r.source == EffectSource::External) {
            return;
        }
        let payment = self.payment(order);
        let remaining = payment.captured().saturating_sub(payment.refunded);
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

    /// `new` will be made at `at`, with or without anybody waiting for it (S12).
    pub fn later(&mut self, new: NewRefund, at: DateTime<Utc>) {
        self.due(at, Due::Happens(Box::new(new)));
    }

    /// The charge of `order` will be disputed at `at`.
    pub fn dispute_later(
        &mut self,
        order: &str,
        course: DisputeCourse,
        webhook: WebhookFault,
        at: DateTime<Utc>,
    ) {
        self.due(at, Due::Disputed(order.to_owned(), course, webhook));
    }

    /// A dispute will be decided at `at`.
    pub(super) fn decide_later(&mut self, id: String, verdict: Verdict, at: DateTime<Utc>) {
        self.due(at, Due::Decided(id, verdict));
    }

    /// A dispute fails what is still pending (S30).
    pub(super) fn fail_pending(&mut self, order: &str, at: DateTime<Utc>) {
        for index in self.of_order.get(order).cloned().unwrap_or_default() {
            let pending = self.refunds.get(index).map(|r| r.status) == Some(RefundStatus::Pending);
            if pending {
                self.change(index, at, None, |r| {
                    r.status = RefundStatus::Failed;
                    r.failure_reason = FailureReason::ChargeForPendingRefundDisputed;
                });
            }
        }
    }

    /// Tells of a change that is not a refund's.
    pub(super) fn tell(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// S38: only a refund that requires action can be canceled.
    pub fn cancel(
        &mut self,
        id: &str,
        now: DateTime<Utc>,
        by: &Request,
    ) -> Result<Value, ApiError> {
        let (index, refund) = self.find(id)?;
        if refund.status != RefundStatus::RequiresAction {
            let status = refund.status.name();
            let message = format!("Refund {id} cannot be canceled in status {status}.");
            return Err(ApiError::new(400, message));
        }
        self.change(index, now, Some(by), |r| {
            r.status = RefundStatus::Canceled;
            r.failure_reason = FailureReason::MerchantRequest;
        });
        self.find(id).map(|(_, refund)| objects::refund(refund))
    }

    /// Sets and unsets metadata; nothing else of a refund can be changed.
    pub fn annotate(
        &mut self,
        id: &str,
        new: NewMetadata,
        now: DateTime<Utc>,
        by: &Request,
    ) -> Result<Value, ApiError> {
        let (index, _) = self.find(id)?;
        self.change(index, now, Some(by), |r| new.apply(&mut r.metadata));
        self.find(id).map(|(_, refund)| objects::refund(refund))
    }

    fn find(&self, id: &str) -> Result<(usize, &Refund), ApiError> {
        let index = self.by_id.get(id).copied();
        let found = index.and_then(|i| self.refunds.get(i).map(|r| (i, r)));
        found.ok_or_else(|| ApiError::missing("refund", "refund", id))
    }
}

fn external(order: &str, amount: Option<i64>, course: Course) -> NewRefund {
    NewRefund {
        order: order.to_owned(),
        amount,
        source: EffectSource::External,
        course,
        ..NewRefund::default()
    }
}

/// An amount as an error message has it: `$1.00`, `¥100`.
fn shown(amount: i64, currency: &str) -> String {
    match currency {
        "usd" => format!("${}.{:02}", amount / 100, amount % 100),
        "jpy" => format!("¥{amount}"),
        other => format!("{amount} {other} in its smallest unit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> (World, DateTime<Utc>) {
        let start = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        (World::new(1, start, &Setting::default()), start)
    }

    fn ours(amount: Option<i64>, course: Course) -> NewRefund {
        NewRefund {
            source: EffectSource::Api,
            ..external("o", amount, course)
        }
    }

    fn by() -> Request {
        Request {
            id: "req_1".to_owned(),
            key: None,
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
        assert_eq!(world.payment("o").refunded, 100_000);
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
            ..Course::default()
        };
        world.create(ours(None, course), now).expect("made");
        world.settle(now + TimeDelta::seconds(59));
        assert_eq!(world.payment("o").refunded, 100_000);
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
            ..Course::default()
        };
        world.create(ours(Some(5), course), now).expect("made");
        let id = world.refunds()[0].id.clone();
        world.cancel(&id, now, &by()).expect("canceled");
        assert!(world.cancel(&id, now, &by()).is_err(), "only once");
        world.settle(now + TimeDelta::seconds(60));
        assert_eq!(world.refunds()[0].status, RefundStatus::Canceled);
        assert_eq!(world.payment("o").refunded, 0);
    }

    #[test]
    fn payments_are_the_same_for_the_same_seed_and_older_than_a_day() {
        let (world, now) = world();
        let payment = world.payment("4417");
        assert_eq!(
            payment,
            World::new(1, now, &Setting::default()).payment("4417")
        );
        assert!(now - payment.created >= TimeDelta::days(1));
    }
}
