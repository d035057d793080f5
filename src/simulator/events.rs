//! Events: what happened, kept for thirty days and listed (S47, S51).
//!
//! Owns: their ids, envelope, age and list. Never: sends one (`delivery.rs`) or decides what is
//! worth one (`changes.rs`). Tests: `tests/simulator/`.

use std::collections::{BTreeMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::changes::{Change, Request, Subject};
use super::ids::object_id;
use super::objects;
use super::pages::{Created, Page};
use super::refunds::only;
use super::step::WebhookFault;
use super::wire::{ApiError, Params};

/// The version whose form all objects have.
pub(super) const API_VERSION: &str = "2026-08-26.dahlia";

/// How long events can be read (S47).
const KEPT: TimeDelta = TimeDelta::days(30);
/// More than this are not kept; the oldest are forgotten first.
const MAX_EVENTS: usize = 200_000;

const LISTED_BY: [&str; 7] = [
    "type",
    "types",
    "delivery_success",
    "created",
    "limit",
    "starting_after",
    "ending_before",
];

/// What became of an event's webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Nobody wants webhooks.
    Unwanted,
    /// Not received, perhaps never.
    Pending,
    Received,
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub id: String,
    pub kind: &'static str,
    pub at: DateTime<Utc>,
    subject: Subject,
    previous: Option<Value>,
    by: Option<Request>,
    pub webhook: WebhookFault,
    pub delivery: Delivery,
}

impl Event {
    /// S51.
    pub fn as_json(&self) -> Value {
        let mut data = json!({ "object": self.subject.as_json() });
        if let (Value::Object(members), Some(previous)) = (&mut data, &self.previous) {
            members.insert("previous_attributes".into(), previous.clone());
        }
        let by = self.by.as_ref();
        json!({
            "api_version": API_VERSION,
            "created": self.at.timestamp(),
            "data": data,
            "id": self.id,
            "livemode": false,
            "object": "event",
            "pending_webhooks": u32::from(self.delivery == Delivery::Pending),
            "request": {
                "id": by.map(|r| &r.id),
                "idempotency_key": by.and_then(|r| r.key.as_ref()),
            },
            "type": self.kind,
        })
    }
}

#[derive(Debug)]
pub(super) struct Events {
    seed: u64,
    /// Oldest first.
    all: VecDeque<Event>,
    /// How often something happened to an order, so that ids do not depend on arrival.
    counts: BTreeMap<String, u32>,
    by_id: BTreeMap<String, u64>,
    /// The number of the oldest.
    first: u64,
}

impl Events {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            all: VecDeque::new(),
            counts: BTreeMap::new(),
            by_id: BTreeMap::new(),
            first: 0,
        }
    }

    /// Keeps an event of a change, and gives its id; `delivery` is what is known of its webhook.
    pub fn keep(&mut self, change: &Change, delivery: Delivery) -> String {
        while self.all.len() >= MAX_EVENTS
            || self.all.front().is_some_and(|e| change.at - e.at >= KEPT)
        {
            let Some(oldest) = self.all.pop_front() else {
                break;
            };
            self.by_id.remove(&oldest.id);
            self.first = self.first.saturating_add(1);
        }
        let count = self.counts.entry(change.order.clone()).or_default();
        *count = count.saturating_add(1);
        let nth = count.to_string();
        let id = object_id("evt_", self.seed, &["event", &change.order, &nth]);
        let number = self
            .first
            .saturating_add(u64::try_from(self.all.len()).unwrap_or(u64::MAX));
        self.by_id.insert(id.clone(), number);
        self.all.push_back(Event {
            id: id.clone(),
            kind: change.kind,
            at: change.at,
            subject: change.subject.clone(),
            previous: change.previous.clone(),
            by: change.by.clone(),
            webhook: change.webhook,
            delivery,
        });
        id
    }

    pub fn get(&self, id: &str) -> Option<&Event> {
        self.position(id).and_then(|at| self.all.get(at))
    }

    /// The event's webhook was received.
    pub fn received(&mut self, id: &str) {
        if let Some(event) = self.position(id).and_then(|at| self.all.get_mut(at)) {
            event.delivery = Delivery::Received;
        }
    }

    fn position(&self, id: &str) -> Option<usize> {
        let number = self.by_id.get(id)?.checked_sub(self.first)?;
        usize::try_from(number).ok()
    }

    /// `GET /v1/events/{id}`.
    pub fn one(&self, id: &str, now: DateTime<Utc>) -> Result<Value, ApiError> {
        let found = self.get(id).filter(|e| now - e.at < KEPT);
        let found = found.ok_or_else(|| ApiError::missing("event", "id", id))?;
        Ok(found.as_json())
    }

    /// `GET /v1/events`, newest first: by `type` (a `*` stands for the rest), `types[]`, `created`
    /// and `delivery_success`.
    pub fn list(&self, query: &Params, now: DateTime<Utc>) -> Result<Value, ApiError> {
        only(query, &LISTED_BY)?;
        let page = Page::parse(query)?;
        let created = Created::parse(query)?;
        let types: Vec<&str> = query
            .iter()
            .filter(|(name, _)| name.starts_with("types["))
            .map(|(_, value)| value)
            .collect();
        let one_type = query.get("type");
        if one_type.is_some() && !types.is_empty() {
            let message = "You may only specify one of these parameters: type, types.";
            return Err(ApiError::invalid("types", message));
        }
        let delivered = match query.get("delivery_success") {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(other) => {
                let message = format!("Invalid boolean: {other}");
                return Err(ApiError::invalid("delivery_success", message));
            }
        };
        let fits = |e: &&Event| {
            now - e.at < KEPT
                && created.includes(e.at.timestamp())
                && one_type.is_none_or(|wanted| matches(wanted, e.kind))
                && (types.is_empty() || types.contains(&e.kind))
                && delivered.is_none_or(|d| d == (e.delivery != Delivery::Pending))
        };
        let newest_first: Vec<&Event> = self.all.iter().rev().filter(fits).collect();
        let (on_page, has_more) = page.cut("event", &newest_first, |e| &e.id)?;
        let data: Vec<Value> = on_page.iter().map(|e| e.as_json()).collect();
        Ok(objects::list("/v1/events", &data, has_more))
    }
}

/// Whether an event type is the wanted one, or one of `charge.*`.
fn matches(wanted: &str, kind: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => kind.starts_with(beginning),
        None => kind == wanted,
    }
}
