//! What must be reachable ("sometimes"): a search that never gets anywhere proves nothing.

use std::sync::atomic::Ordering;

use samekey::domain::evidence::Verdict;
use samekey::domain::guard::{self, Ruling};
use samekey::domain::operation::{Closing, Contradiction, Operation, Status, UnknownReason};
use stateright::Property;

use crate::model::Protocol;
use crate::people::stands;
use crate::rows::instant;
use crate::world::{CallAt, Look, Said, World};

macro_rules! places {
    ($($place:ident $name:literal $reached:expr,)*) => {
        /// A place worth having been at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Place { $($place,)* }
        fn all() -> Vec<(Place, Property<Protocol>)> {
            vec![$((Place::$place, Property::sometimes($name, |m, w| {
                first(m, Place::$place, || {
                    let reached: fn(&Protocol, &World) -> bool = $reached;
                    reached(m, w)
                })
            })),)*]
        }
    };
}

places! {
    Refunded "a call hears refunded" |_, w| said(w, Said::Refunded),
    Repeat "a call hears refunded, again" |_, w| said(w, Said::Repeat),
    Unconfirmed "a call hears unconfirmed" |_, w| said(w, Said::Unconfirmed),
    Checking "a call hears checking" |_, w| said(w, Said::Checking),
    Held "a call hears held" |_, w| said(w, Said::Held),
    Failed "a call hears failed" |_, w| said(w, Said::Failed),
    Rejected "a call hears rejected" |_, w| said(w, Said::Rejected),
    Busy "a call hears that the order is busy" |_, w| said(w, Said::Busy),
    UnknownWithEffect "unknown, and it happened" |m, w| unknown(m, w, true),
    UnknownWithout "unknown, and it did not happen" |m, w| unknown(m, w, false),
    ServerError "unknown: 5xx" |m, w| because(m, w, UnknownReason::ServerError),
    Exhausted "unknown: attempts exhausted" |m, w| because(m, w, UnknownReason::AttemptsExhausted),
    Expired "unknown: key expired" |m, w| because(m, w, UnknownReason::KeyExpired),
    Undetermined "unknown: undetermined refusal" |m, w| because(m, w, UnknownReason::UndeterminedRefusal),
    Mismatch "unknown: key used by somebody else" |m, w| because(m, w, UnknownReason::KeyMismatch),
    Unproven "unknown: already refunded, nobody knows by whom" |m, w| because(m, w, UnknownReason::RefusalUnproven),
    TooLong "unknown: pending too long" |m, w| because(m, w, UnknownReason::PendingTooLong),
    Inconclusive "unknown: lookups said nothing" |m, w| because(m, w, UnknownReason::LookupInconclusive),
    NoKeys "unknown: a provider without keys" |m, w| because(m, w, UnknownReason::NoKeysAtProvider),
    StoppedByPerson "unknown: stopped" |m, w| because(m, w, UnknownReason::Stopped),
    TooEarly "closing as failed is refused: too early" |m, w| refused(m, w, Closing::Failed, "the last request may still"),
    ItHappened "closing as failed is refused: it did happen" |m, w| refused(m, w, Closing::Failed, "the provider has our refund"),
    FailedPending "closing as failed is refused: not final" |m, w| refused(m, w, Closing::Failed, "our refund at the provider is not final"),
    LookFirst "closing as failed is refused: look it up first" |m, w| refused(m, w, Closing::Failed, "look it up"),
    FailedOpen "closing as failed is refused: stop it first" |m, w| refused(m, w, Closing::Failed, "the row is open"),
    FailedInFlight "closing as failed is refused: in flight" |m, w| refused(m, w, Closing::Failed, "an attempt is in flight"),
    FailedHeld "closing as failed is refused: held" |m, w| refused(m, w, Closing::Failed, "the row is held"),
    FailedClosed "closing as failed is refused: closed" |m, w| refused(m, w, Closing::Failed, "the row is closed"),
    FailedByTwo "closing as failed needs a second person" |m, w| rules(m, w, Closing::Failed, |r| matches!(r, Ruling::SecondPerson { .. })),
    FailedByOne "one person may close as failed" |m, w| rules(m, w, Closing::Failed, |r| *r == Ruling::OnePerson),
    ItIsLost "closing as succeeded is refused: failed or canceled" |m, w| refused(m, w, Closing::Succeeded, "our refund at the provider failed"),
    SucceededPending "closing as succeeded is refused: not final" |m, w| refused(m, w, Closing::Succeeded, "our refund at the provider is not final"),
    NothingSent "closing as succeeded is refused: nothing was sent" |m, w| refused(m, w, Closing::Succeeded, "nothing was sent"),
    TypedByTwo "closing as succeeded needs an id and a second person" |m, w| rules(m, w, Closing::Succeeded, |r| *r == Ruling::SecondPerson { typed_ref: true }),
    MovedOn "a person looks at what has moved on" |_, w| w.people.iter().any(|l| matches!(l, Look::Stale(..))),
    ProposalWaits "a proposal waits" |m, w| rows(m, w, |op| op.row.proposal.is_some()),
    LateEffect "contradicted: an effect after failed" |m, w| contradicted(m, w, Contradiction::EffectAfterFailed),
    Returned "contradicted: failed after succeeded" |m, w| contradicted(m, w, Contradiction::FailedAfterSucceeded),
    TwoEffects "contradicted: a second effect" |m, w| contradicted(m, w, Contradiction::SecondEffect),
    WrongRef "contradicted: a typed id that does not match" |m, w| contradicted(m, w, Contradiction::RefMismatch),
    Corrected "a contradiction is corrected" |m, w| rows(m, w, |op| op.row.corrections > 0),
    Absent "proven absent" |m, w| rows(m, w, |op| op.row.verdict == Some(Verdict::Absent)),
    SecondAttempt "a second attempt has the first one's effect" |m, w| w.row_numbers().any(|r| {
        let row = &m.op(w, r).row;
        row.attempts > 1 && row.status == Status::Succeeded
    }),
    Joined "a call joins" |_, w| w.calls.iter().any(|c| c.state == CallAt::Joined),
    TwoRows "two rows of one order" |_, w| w.rows.len() > 1,
}

/// Whether `reached` holds for the first time, which is the nearest one.
fn first(model: &Protocol, place: Place, reached: impl Fn() -> bool) -> bool {
    let bit = 1_u64 << place as u64;
    if model.been.load(Ordering::Relaxed) & bit != 0 || !reached() {
        return false;
    }
    model.been.fetch_or(bit, Ordering::Relaxed);
    true
}

/// The places that this scope must reach.
pub fn properties(model: &Protocol) -> Vec<Property<Protocol>> {
    let wanted = |p: &(Place, _)| model.scope.places.contains(&p.0);
    let all = all().into_iter().filter(wanted);
    all.map(|(_, property)| property).collect()
}

fn said(world: &World, said: Said) -> bool {
    let heard = CallAt::Answered(said);
    world.calls.iter().any(|c| c.state == heard)
}

fn rows(model: &Protocol, world: &World, is: impl Fn(&Operation) -> bool) -> bool {
    world.rows.iter().any(|r| is(&model.book.op(r.op)))
}

fn unknown(model: &Protocol, world: &World, happened: bool) -> bool {
    world.row_numbers().any(|r| {
        let settled = !world.wires.iter().any(|w| w.row == r);
        let unknown = model.op(world, r).row.status == Status::Unknown;
        unknown && settled && stands(world, r) == happened
    })
}

fn because(model: &Protocol, world: &World, reason: UnknownReason) -> bool {
    rows(model, world, |op| op.row.reason == Some(reason))
}

fn contradicted(model: &Protocol, world: &World, how: Contradiction) -> bool {
    rows(model, world, |op| op.row.contradicted == Some(how))
}

fn rules(model: &Protocol, world: &World, closing: Closing, is: fn(&Ruling) -> bool) -> bool {
    let now = instant(world.now);
    let terms = &model.scope.terms;
    rows(model, world, |op| {
        is(&guard::closing(op, closing, terms, now))
    })
}

fn refused(model: &Protocol, world: &World, closing: Closing, because: &str) -> bool {
    let now = instant(world.now);
    let terms = &model.scope.terms;
    rows(model, world, |op| {
        match guard::closing(op, closing, terms, now) {
            Ruling::Refused { why, .. } => why.starts_with(because),
            Ruling::OnePerson | Ruling::SecondPerson { .. } => false,
        }
    })
}
