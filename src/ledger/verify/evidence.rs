//! What evidence says, recomputed with the rules of `domain`. Where a rule depends on the
//! configuration (whether a scan came late enough to prove absence), only what holds under every
//! configuration is asked.

use super::Findings;
use super::pages::{Entry, History};
use crate::domain::evidence::{self, Bearing, Seen, Verdict};
use crate::domain::ids::ProviderRef;
use crate::domain::operation::{Effect, Operation};
use crate::domain::policy::Profile;

pub(super) fn check(history: &History, clock_accepted: bool, found: &mut Findings) {
    let Some(op) = &history.op else { return };
    verdict(op, found);
    effect(op, found);
    provider_ref(op, &history.audit, found);
    if !clock_accepted {
        instants(op, found);
    }
}

fn verdict(op: &Operation, found: &mut Findings) {
    let row = &op.row;
    let id = Some(row.id.as_str());
    if evidence::objects(&op.evidence).is_empty() {
        let scanned = op.evidence.iter().any(|e| {
            let Seen::Scan { began_at, complete } = e.seen else {
                return false;
            };
            complete && row.last_authorised_at.is_none_or(|last| began_at >= last)
        });
        match row.verdict {
            None => {}
            Some(Verdict::Absent) if scanned => {}
            Some(other) => {
                let what = format!("the verdict {} has no evidence", other.as_str());
                found.add(id, "I17", what);
            }
        }
        return;
    }
    let said = evidence::verdict(op, &Profile::stripe());
    if said != row.verdict {
        let word = |v: Option<Verdict>| v.map_or("none", Verdict::as_str);
        let what = format!(
            "the verdict is {}, the evidence says {}",
            word(row.verdict),
            word(said)
        );
        found.add(id, "I17", what);
    }
}

fn effect(op: &Operation, found: &mut Findings) {
    let said = op.derived_effect();
    if said != op.row.effect {
        let what = format!(
            "the effect is {}, attempts and evidence say {}",
            word(op.row.effect),
            word(said)
        );
        found.add(Some(op.row.id.as_str()), "I17", what);
    }
}

fn word(effect: Effect) -> &'static str {
    effect.into()
}

/// The provider's object is one that evidence showed as ours, or one that a person typed (I17).
fn provider_ref(op: &Operation, audit: &[Entry], found: &mut Findings) {
    let id = Some(op.row.id.as_str());
    let seen = evidence::objects(&op.evidence);
    let ours = |r: &ProviderRef| seen.get(r).is_some_and(|(_, b)| *b == Bearing::Ours);
    match &op.row.provider_ref {
        Some(object) => {
            let typed = audit.iter().any(|e| {
                let proposal = e.detail.get("proposal").and_then(|p| p.get("provider_ref"));
                proposal.and_then(|p| p.as_str()) == Some(object.as_str())
            });
            if !ours(object) && !typed {
                let what = format!("nothing shows that the provider's object {object} is its own");
                found.add(id, "I17", what);
            }
        }
        None => {
            if op.our_object().is_some() {
                found.add(id, "I17", "it does not name the object that is its own");
            }
        }
    }
    if op.evidence.len() > usize::from(u16::MAX) {
        found.add(id, "I33", "its evidence has no bound");
    }
}

/// Evidence of the row's own effect cannot be older than the row (I27).
fn instants(op: &Operation, found: &mut Findings) {
    let early = |at| at < op.row.created_at;
    if op.evidence.iter().any(|e| early(e.observed_at)) {
        let what = "evidence was observed before the row was opened";
        found.add(Some(op.row.id.as_str()), "I27", what);
    }
}
