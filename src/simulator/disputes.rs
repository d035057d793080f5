//! Disputes: a customer takes the charge back through the bank (S33, S69).
//!
//! Owns: their state and what they do to refunds. Never: decides when one is opened (a scenario
//! does). Tests: `tests/simulator/`.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::changes::{Change, Subject};
use super::ids::{object_id, order_of_charge, order_of_payment};
use super::objects;
use super::pages::{Created, Page};
use super::refunds::{LISTED_BY, only};
use super::state::seconds_after;
use super::step::{DisputeCourse, Setting, Verdict, WebhookFault};
use super::wire::{ApiError, Params};
use super::world::World;

/// A dispute of a whole charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dispute {
    pub id: String,
    pub order: String,
    pub created: DateTime<Utc>,
    /// `None`: open.
    pub verdict: Option<Verdict>,
    pub setting: Arc<Setting>,
    pub webhook: WebhookFault,
}

impl Dispute {
    /// The word on the wire.
    pub fn status(&self) -> &'static str {
        match self.verdict {
            None => "needs_response",
            Some(Verdict::Won) => "won",
            Some(Verdict::Lost) => "lost",
        }
    }
}

impl World {
    pub fn dispute_of(&self, order: &str) -> Option<&Dispute> {
        let index = self.dispute_of_order.get(order);
        index.and_then(|i| self.disputes.get(*i))
    }

    /// Whether a dispute keeps the charge from being refunded; one that was won does not.
    pub fn is_disputed(&self, order: &str) -> bool {
        let dispute = self.dispute_of(order);
        dispute.is_some_and(|d| d.verdict != Some(Verdict::Won))
    }

    /// The customer disputes the order's charge; once.
    pub fn dispute(
        &mut self,
        order: &str,
        course: DisputeCourse,
        webhook: WebhookFault,
        at: DateTime<Utc>,
    ) {
        if self.dispute_of(order).is_some() {
            return;
        }
        let dispute = Dispute {
            id: object_id("du_", self.seed, &["dispute", order]),
            order: order.to_owned(),
            created: at,
            verdict: None,
            setting: Arc::new(self.setting().clone()),
            webhook,
        };
        if let Some(verdict) = course.then {
            let decided = seconds_after(at, course.then_after_s);
            self.decide_later(dispute.id.clone(), verdict, decided);
        }
        let index = self.disputes.len();
        self.dispute_of_order.insert(order.to_owned(), index);
        self.disputes.push(dispute.clone());
        for kind in ["charge.dispute.created", "charge.dispute.funds_withdrawn"] {
            self.tell(about(kind, &dispute, at));
        }
        self.fail_pending(order, at);
    }

    pub(super) fn decide(&mut self, id: &str, verdict: Verdict, at: DateTime<Utc>) {
        let open = |d: &&mut Dispute| d.id == id && d.verdict.is_none();
        let Some(dispute) = self.disputes.iter_mut().find(open) else {
            return;
        };
        dispute.verdict = Some(verdict);
        let dispute = dispute.clone();
        self.tell(about("charge.dispute.closed", &dispute, at));
        if verdict == Verdict::Won {
            self.tell(about("charge.dispute.funds_reinstated", &dispute, at));
        }
    }
}

fn about(kind: &'static str, dispute: &Dispute, at: DateTime<Utc>) -> Change {
    Change {
        kind,
        at,
        order: dispute.order.clone(),
        webhook: dispute.webhook,
        subject: Subject::Dispute(dispute.clone()),
        previous: None,
        by: None,
    }
}

/// `GET /v1/disputes`, newest first.
pub(super) fn list(world: &World, query: &Params) -> Result<Value, ApiError> {
    only(query, &LISTED_BY)?;
    let page = Page::parse(query)?;
    let created = Created::parse(query)?;
    let of_payment = query.get("payment_intent").map(order_of_payment);
    let of_charge = query.get("charge").map(order_of_charge);
    let fits = |d: &&Dispute| {
        let order = Some(&d.order);
        of_payment.as_ref().is_none_or(|o| o.as_ref() == order)
            && of_charge.as_ref().is_none_or(|o| o.as_ref() == order)
            && created.includes(d.created.timestamp())
    };
    let newest_first: Vec<&Dispute> = world.disputes.iter().rev().filter(fits).collect();
    let (on_page, has_more) = page.cut("dispute", &newest_first, |d| &d.id)?;
    let data: Vec<Value> = on_page.iter().map(|d| objects::dispute(d)).collect();
    Ok(objects::list("/v1/disputes", &data, has_more))
}

/// `GET /v1/disputes/{id}`.
pub(super) fn one(world: &World, id: &str) -> Result<Value, ApiError> {
    let found = world.disputes.iter().find(|d| d.id == id);
    let found = found.ok_or_else(|| ApiError::missing("dispute", "dispute", id))?;
    Ok(objects::dispute(found))
}
