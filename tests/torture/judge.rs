//! The judge: the provider's own log against the ledger. Written from `invariants.md`, not from the code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::DateTime;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::ledger::{Books, Op};
use crate::place::Place;

/// A row's last request may be on its way when another process writes down that nobody knows.
const ON_ITS_WAY: i64 = 5_000_000;

/// The provider's log.
#[derive(Debug, Default)]
struct Log {
    /// Requests with a key.
    posts: Vec<Value>,
    effects: Vec<Value>,
}

impl Log {
    fn read(path: &Path) -> Self {
        let mut log = Self::default();
        let text = std::fs::read_to_string(path).expect("the provider's log");
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a whole line");
            match line["what"].as_str() {
                Some("request") if line["method"] == "POST" => log.posts.push(line),
                Some("effect") if line["source"] != "external" => log.effects.push(line),
                _ => {}
            }
        }
        log
    }
}

/// What a judged place came to.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    pub calls: usize,
    pub operations: usize,
    pub posts: usize,
    pub effects: usize,
    /// How often each word was answered.
    pub answers: BTreeMap<String, usize>,
}

impl Sum {
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.operations += other.operations;
        self.posts += other.posts;
        self.effects += other.effects;
        for (word, count) in &other.answers {
            *self.answers.entry(word.clone()).or_default() += count;
        }
    }
}

/// Holds the provider's log against the ledger, at rest.
///
/// # Panics
/// Where a rule does not hold; the message names it.
pub fn judge(place: &Place) -> Sum {
    let books = place.books();
    assert!(books.are_quiet(), "not at rest: {books:#?}");
    let log = Log::read(&place.log);
    let all = format!("{books:#?}\n{log:#?}");
    let by_key: BTreeMap<&str, &Op> = books.ops.iter().map(|o| (o.key.as_str(), o)).collect();
    keys_and_bytes_stay(&log, &by_key, &all);
    one_effect_per_intent(&log, &by_key, &all);
    for op in &books.ops {
        sent_only_what_was_counted(op, &log, &all);
        the_status_is_true(op, &log, &all);
    }
    no_call_is_lost(place, &books, &all);
    place.verify();
    let mut answers = BTreeMap::new();
    for result in books.calls.iter().filter_map(|c| c.result.as_ref()) {
        let word = text(result, "status").to_owned();
        *answers.entry(word).or_default() += 1;
    }
    Sum {
        calls: books.calls.len(),
        operations: books.ops.len(),
        posts: log.posts.len(),
        effects: log.effects.len(),
        answers,
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// I2, I3: every key that the provider saw is a row's, and every request with it has the row's bytes.
fn keys_and_bytes_stay(log: &Log, by_key: &BTreeMap<&str, &Op>, all: &str) {
    for post in &log.posts {
        let op = by_key.get(text(post, "key"));
        let op = op.unwrap_or_else(|| panic!("I2: a key that no row has: {post}\n{all}"));
        let mut hash = String::new();
        for byte in Sha256::digest(&op.body) {
            use std::fmt::Write as _;
            let _ = write!(hash, "{byte:02x}");
        }
        assert_eq!(hash, text(post, "body_sha256"), "I3: other bytes\n{all}");
    }
}

/// I11: whatever was asked for one order (always the same refund), it was made at most once, with the key
/// and the name of its own row.
fn one_effect_per_intent(log: &Log, by_key: &BTreeMap<&str, &Op>, all: &str) {
    let mut orders = BTreeSet::new();
    for effect in &log.effects {
        let order = text(effect, "order_id").to_owned();
        assert!(orders.insert(order), "I11: made twice: {effect}\n{all}");
        let op = by_key.get(text(effect, "key"));
        let op = op.unwrap_or_else(|| panic!("I2: an effect of no row: {effect}\n{all}"));
        let named = text(&effect["metadata"], "operation_id");
        assert_eq!(named, op.id, "I3: one key, one operation\n{all}");
        assert_eq!(effect["amount"], op.amount, "I32\n{all}");
    }
}

/// I5, I7, I15: no more requests than committed attempts, and none once nobody knows.
fn sent_only_what_was_counted(op: &Op, log: &Log, all: &str) {
    let posts: Vec<_> = log
        .posts
        .iter()
        .filter(|p| text(p, "key") == op.key)
        .collect();
    let counted = usize::try_from(op.attempts).expect("a count");
    let (id, sent) = (&op.id, posts.len());
    assert!(
        sent <= counted,
        "I5: {id}: {sent} sent, {counted} counted\n{all}"
    );
    assert!(op.attempts <= 6, "I6: {id}\n{all}");
    for post in posts {
        let at = DateTime::parse_from_rfc3339(text(post, "at")).expect("an instant");
        let late = op
            .unknown_at
            .is_some_and(|unknown| at.timestamp_micros() > unknown + ON_ITS_WAY);
        assert!(!late, "I15: {id}: sent after it was unknown: {post}\n{all}");
    }
}

/// I14, I16: what the row says is what the provider did.
fn the_status_is_true(op: &Op, log: &Log, all: &str) {
    let made = log.effects.iter().find(|e| text(e, "key") == op.key);
    let id = &op.id;
    match op.status.as_str() {
        "failed" => assert!(made.is_none(), "{id}: failed with an effect\n{all}"),
        "succeeded" => {
            let made = made.unwrap_or_else(|| panic!("{id}: succeeded without an effect\n{all}"));
            let named = op.provider_ref.as_deref();
            assert_eq!(named, made["refund_id"].as_str(), "{id}\n{all}");
        }
        "unknown" => assert!(op.reason.is_some(), "{id}\n{all}"),
        other => assert_eq!(other, "open", "{id}\n{all}"),
    }
}

/// I24, I26: every acknowledged call is there and answered, with what was told, and with no more than the
/// rows hold.
fn no_call_is_lost(place: &Place, books: &Books, all: &str) {
    for asked in place.asked() {
        let call = books.call(&asked.call);
        let call = call.unwrap_or_else(|| panic!("I26: lost: {asked:?}\n{all}"));
        let result = call.result.as_ref().expect("answered");
        if let Some(told) = &asked.told {
            for name in ["status", "operation_id", "refund_id"] {
                assert_eq!(told.get(name), result.get(name), "I24: {asked:?}\n{all}");
            }
        }
    }
    for call in &books.calls {
        let Some(result) = &call.result else { continue };
        let named = text(result, "operation_id");
        let op = books.ops.iter().find(|o| o.id == named);
        let status = op.map_or("", |o| o.status.as_str());
        let holds = match text(result, "status") {
            "refunded" => status == "succeeded",
            "failed" => status == "failed",
            "rejected" => true,
            _ => op.is_some(),
        };
        assert!(holds, "I24: {call:?}\n{all}");
    }
}
