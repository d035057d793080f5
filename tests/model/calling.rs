//! Calls and opening: three calls of one order, two of them equal, that two engines take at the same time;
//! one amount needs a lead.

use samekey::domain::policy::{Caps, Terms};

use crate::builders::with_caps;
use crate::events::What;
use crate::model::{Door, End, Scope};
use crate::places::Place;
use crate::search::explore;
use crate::world::Left;

fn small() -> Terms {
    let mut terms = with_caps(Caps {
        approve_over: Some(50),
        ..Caps::default()
    });
    terms.policy.max_per_call = 1;
    terms.policy.max_per_operation = 2;
    terms
}

pub fn calling() -> Scope {
    Scope {
        name: "calls and opening",
        terms: small(),
        engines: 2,
        calls: vec![38, 38, 80],
        opened: false,
        begin: &[],
        depth: None,
        long_depth: None,
        captured: 100,
        horizon: 0,
        jumps: &[],
        troubles: Left {
            looks: 1,
            ..Left::default()
        },
        doors: &[Door::In],
        ends: &[End::Done, End::BrokenWithout, End::Refused],
        strangers: &[],
        fates: false,
        whats: vec![What::Approve, What::Reject],
        places: &[
            Place::Refunded,
            Place::Repeat,
            Place::Unconfirmed,
            Place::Checking,
            Place::Held,
            Place::Failed,
            Place::Rejected,
            Place::Busy,
            Place::Joined,
            Place::TwoRows,
            Place::FailedHeld,
            Place::FailedClosed,
        ],
    }
}

#[test]
fn no_order_of_calls_breaks_a_law() {
    explore(calling());
}
