//! Rate limits, which run before the key layer and save nothing (S5, S21–S23).
//!
//! Owns: counting requests by second and reads by thirty days, in the simulator's time. Never:
//! waits; who asks too much is told so. Tests: `tests/simulator/`.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use hyper::Method;

use super::step::Allowance;
use super::wire::{ApiError, Call, Reply};

/// How long reads are counted together (S23).
const READS_OVER: TimeDelta = TimeDelta::days(30);

#[derive(Debug, Default)]
pub(super) struct Limiter {
    second: i64,
    all: u32,
    searches: u32,
    endpoints: BTreeMap<String, u32>,
    reads: u32,
    reads_since: DateTime<Utc>,
}

impl Limiter {
    /// Reads in the present thirty days.
    pub fn reads(&self) -> u32 {
        self.reads
    }

    /// Counts a request; an answer if it is one too many.
    pub fn count(&mut self, limits: &Allowance, call: &Call, now: DateTime<Utc>) -> Option<Reply> {
        if self.second != now.timestamp() {
            self.second = now.timestamp();
            (self.all, self.searches) = (0, 0);
            self.endpoints.clear();
        }
        if now - self.reads_since >= READS_OVER {
            (self.reads, self.reads_since) = (0, now);
        }
        let segment = |n: usize| call.segments.get(n).map_or("", String::as_str);
        let endpoint = format!("{} {}", call.method, segment(1));
        let of_endpoint = self.endpoints.entry(endpoint).or_default();
        for count in [&mut self.all, of_endpoint] {
            *count = count.saturating_add(1);
        }
        let of_endpoint = *of_endpoint;
        if segment(2) == "search" {
            self.searches = self.searches.saturating_add(1);
        }
        if call.method == Method::GET {
            self.reads = self.reads.saturating_add(1);
        }
        let over = |count: u32, limit: Option<u32>| limit.is_some_and(|l| count > l);
        let reason = if over(self.all, limits.per_second) {
            "global-rate"
        } else if over(of_endpoint, limits.per_endpoint) || over(self.searches, limits.searches) {
            "endpoint-rate"
        } else if call.method == Method::GET && over(self.reads, limits.reads) {
            "resource-specific"
        } else {
            return None;
        };
        let message = "Request rate limit exceeded. You can learn more about rate limits here \
                       https://stripe.com/docs/rate-limits.";
        let mut reply = ApiError::new(429, message).code("rate_limit").reply(call);
        let header = ("stripe-rate-limited-reason".into(), reason.into());
        reply.headers.push(header);
        Some(reply)
    }
}
