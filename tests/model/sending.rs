//! Sending and keys: two engines on one row, requests that come late, twice or never, lost leases and
//! crashes at every step, a provider that forgets the key.

use samekey::domain::policy::{ProviderKind, Terms};

use crate::builders::terms;
use crate::model::{Door, End, Scope};
use crate::places::Place;
use crate::search::explore;
use crate::world::{HOURS, Left, Mark};

fn small(kind: ProviderKind) -> Terms {
    let mut terms = terms(kind);
    terms.policy.max_per_call = 2;
    terms.policy.max_per_operation = 3;
    terms.profile.retention = std::time::Duration::from_mins(25);
    terms
}

pub fn sending() -> Scope {
    Scope {
        name: "sending and keys",
        terms: small(ProviderKind::Keyed),
        engines: 2,
        calls: vec![38, 38],
        opened: true,
        begin: &[],
        depth: Some(15),
        long_depth: Some(19),
        captured: 100,
        horizon: 6,
        jumps: &[],
        troubles: Left {
            crashes: 1,
            copies: 1,
            ..Left::default()
        },
        doors: &[Door::In, Door::Denied],
        ends: &[
            End::Done,
            End::BrokenWithEffect,
            End::BrokenWithout,
            End::Refused,
        ],
        strangers: &[],
        fates: false,
        whats: vec![],
        places: &[
            Place::Refunded,
            Place::Unconfirmed,
            Place::Checking,
            Place::Failed,
            Place::UnknownWithEffect,
            Place::UnknownWithout,
            Place::ServerError,
            Place::Exhausted,
            Place::Expired,
            Place::Undetermined,
            Place::SecondAttempt,
            Place::Joined,
        ],
    }
}

#[test]
fn no_schedule_of_sending_breaks_a_law() {
    assert!(explore(sending()) >= 100_000, "too small a search");
}

/// One engine, all the time there is.
pub fn ageing() -> Scope {
    Scope {
        name: "keys growing old",
        depth: None,
        long_depth: None,
        engines: 1,
        horizon: 7,
        troubles: Left::default(),
        doors: &[Door::In],
        ends: &[End::Done, End::Refused],
        places: &[Place::Expired],
        ..sending()
    }
}

#[test]
fn no_schedule_of_ageing_keys_breaks_a_law() {
    explore(ageing());
}

/// Webhooks and the reconciler bring news while engines are still at it.
fn news() -> Scope {
    Scope {
        name: "news while sending",
        depth: Some(14),
        long_depth: Some(17),
        horizon: 1,
        troubles: Left {
            crashes: 1,
            lookups: 1,
            webhooks: 1,
            ..Left::default()
        },
        doors: &[Door::In],
        ends: &[End::Done, End::Pending, End::BrokenWithEffect],
        fates: true,
        places: &[
            Place::Refunded,
            Place::Checking,
            Place::Unconfirmed,
            Place::Failed,
            Place::ServerError,
            Place::Returned,
        ],
        ..sending()
    }
}

#[test]
fn no_news_while_sending_breaks_a_law() {
    explore(news());
}

/// Everything a provider can say, and a refund that somebody else made.
fn refusing() -> Scope {
    Scope {
        name: "refusals",
        depth: None,
        long_depth: None,
        engines: 1,
        horizon: 0,
        troubles: Left {
            crashes: 1,
            strangers: 1,
            ..Left::default()
        },
        doors: &[
            Door::In,
            Door::Limited,
            Door::Denied,
            Door::Invalid,
            Door::AlreadyRefunded,
            Door::OtherParameters,
        ],
        ends: &[End::Done, End::Pending, End::BrokenWithout, End::Refused],
        strangers: &[Mark::Unmarked(0)],
        places: &[
            Place::Failed,
            Place::Undetermined,
            Place::Mismatch,
            Place::Unproven,
            Place::Exhausted,
        ],
        ..sending()
    }
}

#[test]
fn no_refusal_breaks_a_law() {
    explore(refusing());
}

/// A provider that honours no keys, but can be searched: nothing is sent twice before a search. A request
/// that were copied on its way would be two effects there, whatever anybody does: there are no copies.
pub fn searchable() -> Scope {
    Scope {
        name: "a provider to be searched",
        depth: None,
        long_depth: None,
        terms: Terms {
            profile: terms(ProviderKind::Lookup).profile,
            ..small(ProviderKind::Lookup)
        },
        troubles: Left {
            crashes: 1,
            ..Left::default()
        },
        horizon: 3,
        jumps: &[HOURS],
        doors: &[Door::In],
        ends: &[End::Done, End::BrokenWithout],
        places: &[Place::Absent, Place::Inconclusive, Place::SecondAttempt],
        ..sending()
    }
}

#[test]
fn no_search_breaks_a_law() {
    explore(searchable());
}

/// A provider with neither keys nor search: one request leaves, and no more.
pub fn bare() -> Scope {
    Scope {
        name: "a bare provider",
        depth: None,
        long_depth: None,
        terms: small(ProviderKind::None),
        troubles: Left {
            crashes: 1,
            ..Left::default()
        },
        horizon: 2,
        doors: &[Door::In, Door::Limited],
        ends: &[End::Done, End::BrokenWithout],
        places: &[Place::NoKeys, Place::Refunded],
        ..sending()
    }
}

#[test]
fn no_bare_provider_breaks_a_law() {
    explore(bare());
}
