//! The ledger's words against the provider's books and the wire: what was sent, when, under which key, and
//! what came of it (I2–I12, I19).

use std::collections::BTreeMap;
use std::time::Duration;

use samekey::simulator::{EffectRecord, EffectSource};

use super::{Facts, Judge, Known, Post, short};
use crate::core::lock;
use crate::options::Kind;
use crate::store::Store;

impl Judge {
    /// A whole refund request has left samekey (I2, I3, I5, I9, I10, I12).
    pub fn sent(&self, store: &Store, post: &Post) {
        self.look(store, false);
        let core = &self.core;
        let profile = &core.options.terms.profile;
        let now = core.now();
        let mut facts = lock(&self.facts);
        let id = &post.operation;
        core.note(format!("{} sent under {}", short(id), &post.key[..8]));
        let Some(known) = facts.ops.get_mut(id) else {
            core.violated("I5", format!("{id} was sent and is in no ledger"));
            return;
        };
        if known.key != post.key {
            core.violated(
                "I3",
                format!("{id} was sent under another key than its own"),
            );
        }
        if known.body.get_or_insert_with(|| post.body.clone()) != &post.body {
            core.violated("I3", format!("{id} was sent with other bytes"));
        }
        known.posts += 1;
        let Some((asked, committed)) = known
            .attempts
            .get(known.posts.wrapping_sub(1)..)
            .and_then(<[_]>::last)
        else {
            let (posts, counted) = (known.posts, known.attempts.len());
            let law = if known.status == "open" { "I5" } else { "R41" };
            let what = format!(
                "{id} is {}: request {posts} of {counted} counted attempts",
                known.status
            );
            core.violated(law, what);
            return;
        };
        // Connections are made before; what is left is a write.
        let late = now.saturating_sub(*asked);
        let slack = Duration::from_millis(50);
        if late > profile.send_window + slack {
            core.violated(
                "I9",
                format!("{id} was sent {late:?} after it was authorised"),
            );
        }
        if let Some((_, first)) = known.attempts.first() {
            let age = now.saturating_sub(*first);
            if age + profile.timeout > profile.retention {
                core.violated("I10", format!("{id} was sent with a key {age:?} old"));
            }
        }
        if known.status != "open" && *committed < now {
            core.saw("a request on its way when its row was settled");
        }
    }

    /// I19, in true time. A clock may run ahead within its tolerance.
    pub(super) fn closed_as_failed(&self, id: &str, known: &Known) {
        let options = &self.core.options;
        let profile = &options.terms.profile;
        if known.effect == "not_started" {
            return;
        }
        let Some((asked, _)) = known.attempts.last() else {
            return;
        };
        let wait = profile.send_window + profile.timeout + profile.settle_time;
        let waited = self.core.now().saturating_sub(*asked);
        let slack = waited / 40 + Duration::from_millis(1);
        if waited + slack < wait && !options.has(Kind::StepSmall) {
            let what =
                format!("{id}: closed as failed {waited:?} after its last attempt, not {wait:?}");
            self.core.violated("I19", what);
        }
    }

    /// I11 and the words "failed" and "succeeded", against what the provider really did.
    pub fn agree(&self) {
        self.effects_agree(&lock(&self.facts));
    }

    pub(super) fn effects_agree(&self, facts: &Facts) {
        let core = &self.core;
        if !core.options.promise_holds() {
            return;
        }
        let effects = self.provider.effects();
        let mut made: BTreeMap<&str, Vec<&EffectRecord>> = BTreeMap::new();
        for effect in effects
            .iter()
            .filter(|e| e.source != EffectSource::External)
        {
            let id = effect
                .metadata
                .get("operation_id")
                .map_or("", String::as_str);
            made.entry(id).or_default().push(effect);
        }
        for (id, made) in &made {
            if made.len() > 1 {
                core.violated("I11", format!("{id} has {} effects", made.len()));
            }
            let Some(op) = facts.ops.get(*id) else {
                core.violated("I5", format!("an effect of {id}, which is in no ledger"));
                continue;
            };
            let alive = made.iter().any(|e| e.status.takes_money());
            // Two persons may close on their word where nothing can be known; then it is theirs.
            let on_their_word = on_their_word(op);
            if op.status == "failed" && alive && op.contradicted.is_none() && !on_their_word {
                core.violated(
                    "failed-with-effect",
                    format!("{id} is failed and the refund exists"),
                );
            }
        }
        self.equal_calls_agree(facts, &made);
        for (id, op) in facts.ops.iter().filter(|(_, op)| op.status == "succeeded") {
            let named = op.provider_ref.as_deref();
            let there = effects
                .iter()
                .any(|e| Some(e.refund_id.as_str()) == named && e.amount == op.amount);
            let on_their_word = on_their_word(op);
            if !there && op.contradicted.is_none() && !on_their_word {
                core.violated(
                    "succeeded-without-effect",
                    format!("{id} is succeeded, no refund {named:?}"),
                );
            }
        }
    }

    /// R21: calls for the same refund have one effect together, however many rows there are; unless one was
    /// asked for by name (`after`), or people closed a row on their word.
    fn equal_calls_agree(&self, facts: &Facts, made: &BTreeMap<&str, Vec<&EffectRecord>>) {
        let mut paid: BTreeMap<(&str, i64), &str> = BTreeMap::new();
        for (id, op) in &facts.ops {
            let alive = |m: &&Vec<&EffectRecord>| m.iter().any(|e| e.status.takes_money());
            let stands = made.get(id.as_str()).as_ref().is_some_and(alive);
            if !stands || op.after.is_some() || op.closed_by_two.is_some() {
                continue;
            }
            if let Some(other) = paid.insert((&op.order, op.amount), id) {
                let (one, two) = (short(other), short(id));
                self.core
                    .violated("R21", format!("{one} and {two} are one refund, made twice"));
            }
        }
    }
}

/// Two persons closed it: their names are both there.
pub(super) fn on_their_word(op: &Known) -> bool {
    op.closed_by.as_deref().is_some_and(|by| by.contains(", "))
}
