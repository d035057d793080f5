//! The guards of the protocol, each with a switch: switched off, the checker must find the schedule that
//! the guard is there for.
//!
//! The real functions stay as they are. A missing guard is a question put so that the domain cannot hold
//! it ([`Guard::bend`]), or a step of the engine, the ledger or a person left out (in the actions).

use std::time::Duration;

use samekey::domain::evidence::ProviderObject;
use samekey::domain::operation::{LookedAt, Operation, Status};
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::{ProviderKind, Terms};
use samekey::domain::transition::{Event, Lookup};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Window, deadline and lease are checked once more just before the first byte.
    SendTimeCheck,
    /// A retry sends the row's key, not a fresh one.
    SameKey,
    /// Nothing is authorised on a row that is not open.
    OpenOnly,
    /// Nothing is authorised on a held row.
    HeldFirst,
    /// Nothing is authorised while the order is contradicted.
    ContradictedBlocks,
    /// Nothing is authorised after the key's deadline.
    KeyDeadline,
    /// The key's deadline leaves room for the settle time.
    DeadlineLeavesSettleTime,
    /// So many attempts a call.
    CallCap,
    /// Only the holder of the lease authorises (owner and epoch).
    LeaseEpoch,
    /// An authorise whose commit failed sends nothing.
    CommitBeforeSend,
    /// A 5xx ends sending at once.
    FiveHundredEnds,
    /// A refusal after an undetermined attempt is not definite.
    DefiniteRefusal,
    /// A provider without keys is searched before anything is sent again.
    SearchFirst,
    /// A provider with neither keys nor search gets one request.
    OneRequest,
    /// Nobody fails a row before `decidable_at`, and no earlier list proves absence.
    WaitingPeriod,
    /// Only a list read to its end proves absence.
    CompleteList,
    /// Only what carries our operation id is ours.
    OurMark,
    /// A decision is on the version looked at.
    VersionLookedAt,
    /// A decision is written only where nobody moved first.
    CompareAndSet,
    /// Two people are two names.
    OtherPerson,
    /// Get before check: an open, unknown or refunded row of the identity answers.
    GetFirst,
    /// What is open here counts against the amount that is left.
    OpenRowsCount,
    /// The order must not have changed since the provider was read.
    MarkUnchanged,
    /// Assumption: the provider finishes within its stated time.
    ProviderBound,
    /// Assumption: between the last check and the first byte no minutes pass.
    PromptWrite,
    /// Assumption: a request that was refused is not carried out from a copy of it.
    CopiesShareRefusal,
}

impl Guard {
    /// Puts `event` so that the domain cannot hold this guard.
    pub fn bend(self, op: &mut Operation, event: Event, terms: &mut Terms) -> Event {
        match (self, event) {
            (Self::OpenOnly, event @ Event::Authorise(_)) => {
                op.row.status = Status::Open;
                event
            }
            (Self::HeldFirst, event @ Event::Authorise(_)) => {
                op.row.held = false;
                event
            }
            (Self::KeyDeadline, event @ (Event::Authorise(_) | Event::Swept)) => {
                op.row.key_expires_at = None;
                event
            }
            (Self::DeadlineLeavesSettleTime, Event::Authorise(facts)) => {
                // The deadline comes from the terms at the first authorise.
                terms.profile.retention += terms.profile.settle_time;
                Event::Authorise(facts)
            }
            (Self::SearchFirst, event @ Event::Authorise(_))
            | (
                Self::OneRequest,
                event @ (Event::Authorise(_) | Event::Finished { .. } | Event::Interrupted),
            ) => {
                terms.profile.kind = ProviderKind::Keyed;
                event
            }
            (Self::CallCap, event @ Event::Authorise(_)) => {
                terms.policy.max_per_call = u32::MAX;
                event
            }
            (Self::LeaseEpoch, Event::Authorise(mut facts)) => {
                facts.lease = true;
                Event::Authorise(facts)
            }
            (Self::ContradictedBlocks, Event::Authorise(mut facts)) => {
                facts.contradicted = false;
                Event::Authorise(facts)
            }
            (
                Self::FiveHundredEnds,
                Event::Finished {
                    attempt, outcome, ..
                },
            ) if outcome.class == OutcomeClass::ServerError => Event::Finished {
                attempt,
                outcome: Outcome::of(OutcomeClass::SideEffectUnknown),
                taken: false,
            },
            // A replayed refusal is the result of the key's only execution.
            (
                Self::DefiniteRefusal,
                Event::Finished {
                    attempt, outcome, ..
                },
            ) => Event::Finished {
                attempt,
                outcome: Outcome {
                    replayed: true,
                    ..outcome
                },
                taken: false,
            },
            (Self::WaitingPeriod, event @ (Event::Decided(_) | Event::Observed(_))) => {
                let profile = &mut terms.profile;
                for wait in [
                    &mut profile.send_window,
                    &mut profile.timeout,
                    &mut profile.settle_time,
                ] {
                    *wait = Duration::ZERO;
                }
                event
            }
            (Self::OurMark, Event::Observed(mut observed)) => {
                let id = &op.row.id;
                let claim = |o: &mut ProviderObject| o.operation = Some(id.clone());
                match &mut observed.seen {
                    Lookup::Listed { objects, .. } => {
                        for (object, _) in objects {
                            claim(object);
                        }
                    }
                    Lookup::One { object, .. } => claim(object),
                    Lookup::Unreachable { .. } => {}
                }
                Event::Observed(observed)
            }
            (Self::VersionLookedAt, Event::Decided(mut decision)) => {
                decision.looked_at = Some(LookedAt::of(&op.row));
                Event::Decided(decision)
            }
            (Self::OtherPerson, Event::Decided(mut decision)) => {
                if let Some(proposal) = &mut op.row.proposal {
                    proposal.by = "somebody".parse().expect("a name");
                }
                decision.by.alone = false;
                decision.looked_at = Some(LookedAt {
                    waiting: op.row.waiting(),
                    ..decision.looked_at.unwrap_or_else(|| LookedAt::of(&op.row))
                });
                Event::Decided(decision)
            }
            (_, event) => event,
        }
    }
}
