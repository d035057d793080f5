//! The idempotency layer (S1–S13): what was answered to which key, and for how long.
//!
//! Owns: saved answers, conflicts while a request is executing, pruning, and counting how often a
//! key was sent. Never: executes anything or waits; an execution is instantaneous in the books
//! and merely *counts* as running until `busy_until`. Tests: below.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::wire::{ApiError, Fingerprint, Reply};

/// More keys than this are not kept at a time; the oldest is forgotten first.
const MAX_KEYS: usize = 1_000_000;

/// Account and key: the scope of S10.
pub(super) type Scope = (String, String);

#[derive(Debug)]
struct Entry {
    fingerprint: Fingerprint,
    reply: Reply,
    request_id: String,
    created: DateTime<Utc>,
    busy_until: DateTime<Utc>,
    conflicts: u32,
}

#[derive(Debug)]
pub(super) struct Keys {
    retention: TimeDelta,
    conflict_type: String,
    saved: BTreeMap<Scope, Entry>,
    sent: BTreeMap<Scope, u32>,
    /// Saved keys by age, for pruning.
    ages: BTreeMap<(DateTime<Utc>, u64), Scope>,
    serial: u64,
}

/// What a request with a key meets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nobody used the key, or it was pruned (S9): execute.
    Fresh,
    /// S3, S4: the saved answer again, with the id of the first request.
    Replay(Reply),
    /// S6, S7, S8.
    Refused(ApiError),
}

/// For how long a saved key counts as still executing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busy {
    pub time: Duration,
    pub conflicts: u32,
}

impl Keys {
    pub fn new(retention: Duration, conflict_type: String) -> Self {
        Self {
            retention: delta(retention),
            conflict_type,
            saved: BTreeMap::new(),
            sent: BTreeMap::new(),
            ages: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Counts a sending of the key: 1 for the first.
    pub fn count(&mut self, scope: &Scope, now: DateTime<Utc>) -> u32 {
        self.prune(now);
        if self.sent.len() >= MAX_KEYS && !self.sent.contains_key(scope) {
            return 1;
        }
        let sent = self.sent.entry(scope.clone()).or_default();
        *sent = sent.saturating_add(1);
        *sent
    }

    /// Looks the key up, after pruning what is at least as old as the retention (S9).
    pub fn look(&mut self, scope: &Scope, asked: &Fingerprint, now: DateTime<Utc>) -> Found {
        self.prune(now);
        let Some(entry) = self.saved.get_mut(scope) else {
            return Found::Fresh;
        };
        if let Some(error) = differs(&entry.fingerprint, asked, &scope.1) {
            return Found::Refused(error);
        }
        if entry.conflicts > 0 || now < entry.busy_until {
            entry.conflicts = entry.conflicts.saturating_sub(1);
            return Found::Refused(in_use(&scope.1, &self.conflict_type));
        }
        let mut reply = entry.reply.clone();
        let original = entry.request_id.clone();
        reply
            .headers
            .push(("idempotent-replayed".into(), "true".into()));
        reply.headers.push(("original-request".into(), original));
        Found::Replay(reply)
    }

    /// Saves the answer to the first request of a key (S3).
    pub fn save(
        &mut self,
        scope: Scope,
        fingerprint: Fingerprint,
        answer: (&Reply, &str),
        now: DateTime<Utc>,
        busy: Busy,
    ) {
        if self.saved.len() >= MAX_KEYS
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.saved.remove(&oldest);
        }
        self.serial = self.serial.saturating_add(1);
        self.ages.insert((now, self.serial), scope.clone());
        self.saved.insert(
            scope,
            Entry {
                fingerprint,
                reply: answer.0.clone(),
                request_id: answer.1.to_owned(),
                created: now,
                busy_until: after(now, delta(busy.time)),
                conflicts: busy.conflicts,
            },
        );
    }

    fn prune(&mut self, now: DateTime<Utc>) {
        while let Some(oldest) = self.ages.first_entry()
            && now - oldest.key().0 >= self.retention
        {
            let scope = oldest.remove();
            self.saved.remove(&scope);
            self.sent.remove(&scope);
        }
    }

    /// For `/_sim/state`.
    pub fn as_json(&self) -> Vec<Value> {
        let of = |(scope, entry): (&Scope, &Entry)| {
            json!({
                "account": scope.0,
                "key": scope.1,
                "endpoint": entry.fingerprint.endpoint,
                "status": entry.reply.status,
                "created_at": super::records::time(entry.created),
                "expires_at": super::records::time(after(entry.created, self.retention)),
            })
        };
        self.saved.iter().map(of).collect()
    }
}

/// S6 and S7: the same key with other parameters or on another endpoint.
fn differs(first: &Fingerprint, asked: &Fingerprint, key: &str) -> Option<ApiError> {
    if first.endpoint != asked.endpoint {
        let path = first.endpoint.split(' ').nth(1).unwrap_or_default();
        return Some(mismatch(format!(
            "Keys for idempotent requests can only be used for the same endpoint they were first \
             used for ('{path}'). Try using a key other than '{key}' if you meant to execute a \
             different request."
        )));
    }
    (first.body != asked.body).then(|| other_parameters(key))
}

/// S6: the message names the key.
pub(super) fn other_parameters(key: &str) -> ApiError {
    mismatch(format!(
        "Keys for idempotent requests can only be used with the same parameters they were first \
         used with. Try using a key other than '{key}' if you meant to execute a different \
         request."
    ))
}

fn mismatch(message: String) -> ApiError {
    ApiError::new(400, message).kind("idempotency_error")
}

/// S8: the type differs between sources, so it is configurable.
fn in_use(key: &str, kind: &str) -> ApiError {
    let message = format!(
        "There is currently another in-progress request using this Idempotency Key (that probably \
         means you submitted twice, and the other request is still going through): {key}. Please \
         try again later."
    );
    ApiError::new(409, message)
        .kind(kind)
        .code("idempotency_key_in_use")
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

fn after(start: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    start
        .checked_add_signed(by)
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn fingerprint(endpoint: &str, body: &'static str) -> Fingerprint {
        Fingerprint {
            endpoint: endpoint.to_owned(),
            body: body.into(),
        }
    }

    fn start() -> (Keys, Scope, Fingerprint, Reply, DateTime<Utc>) {
        let reply = Reply::json(500, &json!({"error": {}}));
        (
            Keys::new(DAY, "invalid_request_error".to_owned()),
            ("acct".to_owned(), "K".to_owned()),
            fingerprint("POST /v1/refunds", "amount=1"),
            reply,
            DateTime::<Utc>::UNIX_EPOCH,
        )
    }

    #[test]
    fn s3_s4_whatever_was_saved_is_replayed_and_marked() {
        let (mut keys, scope, print, reply, now) = start();
        assert_eq!(keys.look(&scope, &print, now), Found::Fresh);
        keys.save(
            scope.clone(),
            print.clone(),
            (&reply, "req_1"),
            now,
            Busy::default(),
        );
        let Found::Replay(again) = keys.look(&scope, &print, now) else {
            unreachable!("saved");
        };
        assert_eq!((again.status, &again.body), (500, &reply.body));
        assert!(
            again
                .headers
                .contains(&("idempotent-replayed".into(), "true".into()))
        );
    }

    #[test]
    fn s6_s7_other_parameters_and_other_endpoints_are_refused() {
        let (mut keys, scope, print, reply, now) = start();
        keys.save(
            scope.clone(),
            print,
            (&reply, "req_1"),
            now,
            Busy::default(),
        );
        for (asked, word) in [
            (
                fingerprint("POST /v1/refunds", "amount=2"),
                "same parameters",
            ),
            (fingerprint("POST /v1/other", "amount=1"), "same endpoint"),
        ] {
            let Found::Refused(error) = keys.look(&scope, &asked, now) else {
                unreachable!("mismatch");
            };
            assert_eq!(
                (error.status, error.kind.as_str()),
                (400, "idempotency_error")
            );
            assert!(error.message.contains(word) && error.message.contains("'K'"));
        }
    }

    #[test]
    fn s8_conflicts_last_as_long_as_the_execution_or_until_one_was_seen() {
        let (mut keys, scope, print, reply, now) = start();
        let busy = Busy {
            time: Duration::from_secs(5),
            conflicts: 1,
        };
        keys.save(scope.clone(), print.clone(), (&reply, "req_1"), now, busy);
        for second in [1, 4] {
            let seen = keys.look(&scope, &print, now + TimeDelta::seconds(second));
            let Found::Refused(error) = seen else {
                unreachable!("conflict");
            };
            assert_eq!(error.status, 409);
        }
        let later = keys.look(&scope, &print, now + TimeDelta::seconds(5));
        assert!(matches!(later, Found::Replay(_)));
    }

    #[test]
    fn s9_keys_are_pruned_at_exactly_their_retention() {
        let (mut keys, scope, print, reply, now) = start();
        assert_eq!(keys.count(&scope, now), 1);
        keys.save(
            scope.clone(),
            print.clone(),
            (&reply, "req_1"),
            now,
            Busy::default(),
        );
        let day = now + TimeDelta::days(1);
        let almost = day - TimeDelta::microseconds(1);
        assert!(matches!(
            keys.look(&scope, &print, almost),
            Found::Replay(_)
        ));
        assert_eq!(keys.look(&scope, &print, day), Found::Fresh);
        assert_eq!(keys.count(&scope, day), 1, "a new life");
    }

    #[test]
    fn s10_another_account_has_its_own_keys() {
        let (mut keys, scope, print, reply, now) = start();
        keys.save(
            scope,
            print.clone(),
            (&reply, "req_1"),
            now,
            Busy::default(),
        );
        let other = ("other".to_owned(), "K".to_owned());
        assert_eq!(keys.look(&other, &print, now), Found::Fresh);
    }
}
