//! An operation being changed: taking evidence in, what evidence does by itself, closing, and the
//! finished step with its version and audit number.
//!
//! The shared inside of [`super::transition`] and [`super::review_event`]; nobody else sees it.
//! Never decides whether an event is allowed. Tests: `tests/protocol.rs`.

use serde_json::{Value, json};

use super::Instant;
use super::attempt::Attempt;
use super::evidence::{
    self, Bearing, Evidence, ObjectStatus, ProviderObject, Seen, Source, Verdict,
};
use super::ids::Actor;
use super::operation::{Contradiction, FailureClass, Operation, Status, UnknownReason};
use super::policy::Terms;
use super::text::SafeText;
use super::transition::{Action, AuditEntry, Next, Step};

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

    pub(super) fn see_object(&mut self, source: Source, object: &ProviderObject, taken: bool) {
        if let Some(bearing) = object.bearing(&self.op.row, taken) {
            // An object once seen as ours stays ours: a later reading cannot disown it.
            let once_ours = evidence::objects(&self.op.evidence)
                .get(&object.id)
                .is_some_and(|(_, b)| *b == Bearing::Ours);
            let bearing = if once_ours { Bearing::Ours } else { bearing };
            self.see(
                source,
                Seen::Object {
                    object: object.clone(),
                    bearing,
                },
            );
        }
    }

    /// Adds evidence, unless it only repeats what is known: evidence per row stays bounded (I33).
    pub(super) fn see(&mut self, source: Source, seen: Seen) {
        let repeats = match &seen {
            Seen::Object { object, bearing } => evidence::objects(&self.op.evidence)
                .get(&object.id)
                .is_some_and(|known| *known == (object, *bearing)),
            Seen::Scan { complete, .. } => {
                !complete || self.op.row.verdict.is_some_and(|v| v == Verdict::Absent)
            }
            Seen::Unreachable { .. } => evidence::unreachable_since(&self.op.evidence).is_some(),
        };
        // A scan after silence must be kept: it ends the time of being unreachable.
        let ends_silence = matches!(seen, Seen::Scan { .. })
            && evidence::unreachable_since(&self.op.evidence).is_some();
        if !repeats || ends_silence {
            let observed_at = self.now;
            self.op.evidence.push(Evidence {
                stored: false,
                source,
                seen,
                observed_at,
            });
        }
    }

    /// Recomputes what follows from attempts and evidence.
    pub(super) fn reassess(&mut self, terms: &Terms) {
        self.op.row.verdict = evidence::verdict(&self.op, &terms.profile);
        self.op.row.effect = self.op.derived_effect();
        if self.op.row.provider_ref.is_none() {
            self.op.row.provider_ref = self.op.our_object();
        }
    }

    /// What new evidence does by itself: closes on `confirmed`, follows our own pending object,
    /// flags what contradicts (the protocol's "Pending", "Contradicted" and "Late news").
    pub(super) fn absorb(&mut self, actor: &Actor, source: Source) -> Next {
        let known = evidence::objects(&self.before.evidence);
        let now_seen = evidence::objects(&self.op.evidence);
        if known == now_seen {
            return Next::Nothing;
        }
        let verdict = self.op.row.verdict;
        let may_close = source.may_close();
        match (self.op.row.status, verdict) {
            (Status::Open, Some(Verdict::SecondEffect)) => {
                self.op.row.contradicted = Some(Contradiction::SecondEffect);
                self.unknown(UnknownReason::SecondEffect)
            }
            (_, Some(Verdict::SecondEffect)) => self.flag(Contradiction::SecondEffect),
            (Status::Open | Status::Unknown, Some(Verdict::Confirmed)) if may_close => {
                self.succeed(actor)
            }
            (Status::Open, Some(Verdict::Refused)) if may_close => {
                let why = self.our_failure();
                self.fail(actor, FailureClass::EffectFailed, why)
            }
            (Status::Open, Some(Verdict::Pending | Verdict::Confirmed | Verdict::Refused)) => {
                self.op.row.pending_since.get_or_insert(self.now);
                Next::EndCall
            }
            (Status::Succeeded, Some(Verdict::Refused)) => {
                self.flag(Contradiction::FailedAfterSucceeded)
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
            .find(|o| matches!(o.status, ObjectStatus::Failed | ObjectStatus::Canceled))?;
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
        Next::Settled
    }

    pub(super) fn unknown(&mut self, reason: UnknownReason) -> Next {
        let row = &mut self.op.row;
        row.status = Status::Unknown;
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
    let objects: Vec<_> = evidence::objects(&op.evidence)
        .into_iter()
        .map(|(id, (object, bearing))| (id.clone(), object.status, bearing))
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
