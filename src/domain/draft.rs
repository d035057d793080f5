//! An operation being changed: taking evidence in, what evidence does by itself, closing, and the
//! finished step with its version and audit number.
//!
//! The shared inside of [`super::transition`] and [`super::review_event`]; nobody else sees it.
//! Never decides whether an event is allowed. Tests: `tests/protocol/`.

use serde_json::{Value, json};

use super::attempt::Attempt;
use super::evidence::{self, Bearing, Evidence, ProviderObject, Seen, Silence, Source, Verdict};
use super::ids::Actor;
use super::operation::{Contradiction, FailureClass, Operation, Status, UnknownReason};
use super::outcome::{Outcome, OutcomeClass};
use super::policy::Terms;
use super::text::SafeText;
use super::transition::{Action, AuditEntry, Next, Step};
use super::{Instant, later};

/// Entries of one row up to which an unanswered automatic lookup begins another silence.
const MOST_EVIDENCE: usize = 1_000;

/// An operation being changed, with what it was before.
pub(super) struct Draft {
    before: Operation,
    pub(super) op: Operation,
    pub(super) now: Instant,
}

impl Draft {
    pub(super) fn new(op: &Operation, now: Instant) -> Self {
        Self {
            before: op.clone(),
            op: op.clone(),
            now,
        }
    }

    /// Takes an object in; answers whether it is ours.
    pub(super) fn see_object(
        &mut self,
        source: Source,
        object: &ProviderObject,
        taken: bool,
        terms: &Terms,
    ) -> bool {
        let known = evidence::states(&self.op.evidence).get(&object.id).copied();
        let bearing = match (known, object.bearing(&self.op.row, taken)) {
            // An object once seen as ours stays ours: a later reading cannot disown it.
            (Some((_, Bearing::Ours)), _) => Bearing::Ours,
            (_, Some(bearing)) => bearing,
            (_, None) => return false,
        };
        // A late event or a replayed answer does not take a newer reading back (F61).
        let old_news = source.may_lag()
            && known
                .is_some_and(|(status, b)| b == bearing && object.status.stage() < status.stage());
        if !old_news {
            let object = object.clone();
            self.see(source, Seen::Object { object, bearing }, terms);
        }
        bearing == Bearing::Ours
    }

    /// Adds evidence, unless it only repeats what is known: evidence per row stays bounded (I33).
    pub(super) fn see(&mut self, source: Source, seen: Seen, terms: &Terms) {
        let evidence = &self.op.evidence;
        let silence = evidence::silence(evidence);
        let proves = |seen| evidence::proves_absence(seen, &self.op.row, &terms.profile);
        let tells = match &seen {
            Seen::Object { object, bearing } => {
                evidence::states(evidence).get(&object.id) != Some(&(object.status, *bearing))
            }
            // The first proof of absence, or the end of a silence.
            Seen::Scan { .. } => {
                source.by_person()
                    || silence.is_some()
                    || (proves(&seen)
                        && evidence::states(evidence).is_empty()
                        && !evidence.iter().any(|e| proves(&e.seen)))
            }
            Seen::Unreachable { .. } => source.by_person() || self.silence_grows(silence, terms),
            Seen::Reply { attempt, .. } => !evidence
                .iter()
                .any(|e| matches!(&e.seen, Seen::Reply { attempt: a, .. } if a == attempt)),
        };
        if tells {
            let observed_at = self.now;
            self.op.evidence.push(Evidence {
                stored: false,
                source,
                seen,
                observed_at,
            });
        }
    }

    /// Of a silence two unanswered lookups are kept: the first, and the one that shows that it lasted.
    /// Past the bound no silence begins by itself, which only makes closing harder (I33).
    fn silence_grows(&self, silence: Option<Silence>, terms: &Terms) -> bool {
        let settle = terms.profile.settle_time;
        match silence {
            None => self.op.evidence.len() < MOST_EVIDENCE,
            Some(known) => !known.lasted(settle) && self.now >= later(known.first, settle),
        }
    }

    /// Keeps what came back for an attempt that had been given up; `false` where that has been told.
    pub(super) fn see_reply(
        &mut self,
        attempt: u32,
        class: OutcomeClass,
        outcome: &Outcome,
        terms: &Terms,
    ) -> bool {
        let before = self.op.evidence.len();
        let reply = Seen::Reply {
            attempt,
            class,
            http_status: outcome.http_status,
            request_id: outcome.request_id.clone(),
            error: outcome.error.clone(),
        };
        self.see(Source::Attempt, reply, terms);
        self.op.evidence.len() > before
    }

    /// Whether row, attempts and evidence are as they were.
    pub(super) fn says_nothing_new(&self) -> bool {
        self.before == self.op
    }

    /// Recomputes what follows from attempts and evidence.
    pub(super) fn reassess(&mut self, terms: &Terms) {
        self.op.row.verdict = evidence::verdict(&self.op, &terms.profile);
        self.op.row.effect = self.op.derived_effect();
        if self.op.row.provider_ref.is_none() {
            self.op.row.provider_ref = self.op.our_object();
        }
    }

    /// What evidence does by itself: closes on `confirmed`, follows our own pending object, flags
    /// what contradicts (the protocol's "Pending", "Contradicted" and "Late news"). `ours` says that
    /// this very evidence showed our object.
    ///
    /// Closing does not ask whether the object is new: a review lookup may have seen it first, and
    /// that one closes nothing. Flagging does: repeated news of an acknowledged contradiction is none.
    pub(super) fn absorb(&mut self, actor: &Actor, source: Source, ours: bool) -> Next {
        if ours && source.may_close() {
            match (self.op.row.status, self.op.row.verdict) {
                (Status::Open | Status::Unknown, Some(Verdict::Confirmed)) => {
                    return self.succeed(actor);
                }
                (Status::Open, Some(Verdict::Refused)) => {
                    let why = self.our_failure();
                    return self.fail(actor, FailureClass::EffectFailed, why);
                }
                (Status::Open | Status::Unknown | Status::Succeeded | Status::Failed, _) => {}
            }
        }
        if evidence::states(&self.before.evidence) == evidence::states(&self.op.evidence) {
            return Next::Nothing;
        }
        // Closed on the word of a person, the row may hold another object than the one that is ours.
        let holds_ours = self.op.row.provider_ref == self.op.our_object();
        let was_wrong = self.op.row.contradicted == Some(Contradiction::RefMismatch);
        match (self.op.row.status, self.op.row.verdict) {
            (Status::Open, Some(Verdict::SecondEffect)) => {
                self.op.row.contradicted = Some(Contradiction::SecondEffect);
                self.unknown(UnknownReason::SecondEffect)
            }
            (_, Some(Verdict::SecondEffect)) => self.flag(Contradiction::SecondEffect),
            (Status::Open, Some(Verdict::Pending | Verdict::Confirmed | Verdict::Refused)) => {
                self.op.row.pending_since.get_or_insert(self.now);
                // An object of ours exists: there is nothing left to approve, nor to reject.
                self.op.row.held = false;
                Next::EndCall
            }
            (Status::Succeeded, Some(Verdict::Refused)) if holds_ours => {
                self.flag(Contradiction::FailedAfterSucceeded)
            }
            (Status::Succeeded, Some(Verdict::Confirmed | Verdict::Pending))
                if !holds_ours && !was_wrong =>
            {
                self.flag(Contradiction::SecondEffect)
            }
            (Status::Failed, Some(Verdict::Confirmed | Verdict::Pending)) => {
                self.flag(Contradiction::EffectAfterFailed)
            }
            (Status::Open | Status::Unknown | Status::Succeeded | Status::Failed, _) => {
                Next::Nothing
            }
        }
    }

    fn our_failure(&self) -> Option<SafeText> {
        let seen = evidence::objects(&self.op.evidence);
        let failed = seen
            .values()
            .map(|(o, _)| *o)
            .find(|o| o.status.is_lost())?;
        let why = failed
            .failure_reason
            .as_ref()
            .map_or("no reason given", SafeText::as_str);
        Some(SafeText::new(&format!(
            "the provider's refund {} failed: {why}",
            failed.id
        )))
    }

    fn flag(&mut self, contradiction: Contradiction) -> Next {
        self.op.row.contradicted = Some(contradiction);
        Next::Nothing
    }

    pub(super) fn succeed(&mut self, by: &Actor) -> Next {
        // A correction may turn a failed row round.
        self.op.row.failure = None;
        self.op.row.failure_text = None;
        self.close(Status::Succeeded, by)
    }

    pub(super) fn fail(
        &mut self,
        by: &Actor,
        failure: FailureClass,
        why: Option<SafeText>,
    ) -> Next {
        self.op.row.failure = Some(failure);
        self.op.row.failure_text = why;
        self.close(Status::Failed, by)
    }

    fn close(&mut self, status: Status, by: &Actor) -> Next {
        let row = &mut self.op.row;
        row.status = status;
        row.closed_at = Some(self.now);
        row.closed_by = Some(by.to_string());
        row.held = false;
        row.proposal = None;
        row.claim = None;
        row.snoozed_until = None;
        Next::Settled
    }

    pub(super) fn unknown(&mut self, reason: UnknownReason) -> Next {
        let row = &mut self.op.row;
        row.status = Status::Unknown;
        row.held = false;
        row.reason = Some(reason);
        row.unknown_at = Some(self.now);
        Next::Settled
    }

    /// The finished step. The version moves with what decisions are bound to, and with nothing else.
    pub(super) fn step(
        mut self,
        terms: &Terms,
        actor: Actor,
        action: Action,
        detail: Value,
        next: Next,
    ) -> Step {
        self.reassess(terms);
        if bound_to_version(&self.before) != bound_to_version(&self.op) {
            self.op.row.version = self.op.row.version.saturating_add(1);
            // What was put off has become another row: it is looked at again.
            self.op.row.snoozed_until = None;
        }
        let row = &mut self.op.row;
        row.audit_seq = row.audit_seq.saturating_add(1);
        row.updated_at = self.now.max(row.updated_at);
        let mut detail = detail;
        if let Value::Object(map) = &mut detail {
            map.insert("status".into(), json!(row.status));
            map.insert("version".into(), json!(row.version));
        }
        Step {
            op: self.op,
            audit: AuditEntry {
                actor,
                action,
                detail,
            },
            next,
        }
    }
}

/// What the version moves with: status, flags, verdict, attempts, and the set and state of objects.
fn bound_to_version(op: &Operation) -> impl PartialEq + use<> {
    let row = &op.row;
    let objects: Vec<_> = evidence::states(&op.evidence)
        .into_iter()
        .map(|(id, state)| (id.clone(), state))
        .collect();
    let attempts: Vec<_> = op.attempts.iter().map(Attempt::class).collect();
    let flags = (
        row.status,
        row.held,
        row.contradicted,
        row.corrections,
        row.reason,
    );
    (flags, row.verdict, attempts, objects)
}
