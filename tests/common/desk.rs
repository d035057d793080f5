//! A desk of reviewers before a real ledger with rows that nobody knows the outcome of.

use std::sync::Arc;
use std::time::Duration;

use samekey::clock::Clock;
use samekey::domain::guard::Role;
use samekey::domain::ids::{OperationId, ReviewerName};
use samekey::domain::operation::{Closing, LookedAt};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::policy::{Caps, Profile, Rate, Terms};
use samekey::domain::review_event::{Person, ReviewRefusal};
use samekey::domain::transition::Lookup;
use samekey::ledger::PageQuery;
use samekey::ledger::verify::verify_at;
use samekey::review::{Ask, Gate, GateError};

use super::provider::{FakeProvider, Script};
use super::world::{World, refund, terms};

pub const PEOPLE: [(&str, Role); 4] = [
    ("ann", Role::Reviewer),
    ("ben", Role::Lead),
    ("cleo", Role::Lead),
    ("vic", Role::Viewer),
];

/// The defaults, without rates: the clock stands still.
pub fn still_terms() -> Terms {
    let boundless = Rate {
        count: u32::MAX,
        per: Duration::from_nanos(1),
    };
    let mut terms = terms();
    terms.policy.rate = boundless;
    terms.profile = Profile {
        rate: boundless,
        read_rate: boundless,
        ..Profile::stripe()
    };
    terms
}

pub fn four_eyes() -> Terms {
    let mut terms = still_terms();
    let caps = Caps {
        four_eyes_over: Some(1),
        ..Caps::default()
    };
    terms.policy.caps.insert("usd".parse().expect("usd"), caps);
    terms
}

pub struct Desk {
    pub world: World,
    pub provider: Arc<FakeProvider>,
    pub gate: Gate,
    pub rows: Vec<OperationId>,
}

impl Desk {
    /// So many unknown rows that may be decided, and the gate before them.
    pub async fn of(terms: Terms, rows: usize) -> Self {
        let broken = vec![Script::Class(OutcomeClass::ServerError); rows];
        let provider = FakeProvider::new(broken);
        let clock = Clock::manual(Clock::system().now());
        let world = World::with(provider.clone(), terms, clock).await;
        for n in 0..rows {
            let result = world
                .ask(&format!("c{n}"), &refund(&n.to_string(), 3800))
                .await;
            assert_eq!(result.status(), "checking");
            world.clock.advance(Duration::from_secs(60));
        }
        world.clock.advance(Duration::from_secs(3600));
        // The attempts have arrived; from here on it is told of lookups.
        provider.arrived.notified().await;
        let query = PageQuery {
            limit: 100,
            ..PageQuery::default()
        };
        let page = world.ledger.page(&query).await.expect("a page");
        let mut rows: Vec<_> = page.rows.into_iter().map(|l| l.row.id).collect();
        rows.reverse();
        let gate = world.gate(&PEOPLE);
        Self {
            world,
            provider,
            gate,
            rows,
        }
    }

    pub fn is(&self, name: &str) -> Person {
        let name: ReviewerName = name.parse().expect("a name");
        self.gate.person(Some(&name)).expect("configured")
    }

    pub fn first(&self) -> &OperationId {
        self.rows.first().expect("a row")
    }

    pub async fn seen(&self, id: &OperationId) -> Option<LookedAt> {
        let rows = self.world.ledger.rows(std::slice::from_ref(id)).await;
        Some(LookedAt::of(rows.expect("read").first().expect("known")))
    }

    /// A complete list without anything, read now.
    pub fn nothing_there(&self) {
        self.provider.lookup_gives(Lookup::Listed {
            began_at: self.world.clock.now(),
            complete: true,
            objects: Vec::new(),
        });
    }

    /// Before the leap the gate says what deciding says, word for word.
    pub async fn refuses(&self, ask: Ask, by: &str) -> GateError {
        let (id, by) = (self.first(), self.is(by));
        let seen = self.seen(id).await;
        let asked = self.gate.ask(id, ask, &by).await.expect_err("no dialog");
        let decided = self.gate.decide(id, ask, &by, "note", seen, None).await;
        let decided = decided.expect_err("refused").to_string();
        assert_eq!(asked.to_string(), decided, "{ask:?}");
        asked
    }

    pub async fn propose(&self) {
        let (id, ann) = (self.first(), self.is("ann"));
        let seen = self.seen(id).await;
        let failed = Ask::Close(Closing::Failed);
        let done = self
            .gate
            .decide(id, failed, &ann, "absent", seen, None)
            .await;
        assert!(done.expect("decided").proposed);
    }

    /// The ledger is whole, chain and rows.
    pub async fn holds(self) {
        let path = self.world.dir.path().join("ledger.db");
        let now = self.world.clock.now();
        self.world.ledger.close().await;
        let report = verify_at(&path, now).await.expect("a report");
        assert!(report.violations.is_empty(), "{:#?}", report.violations);
    }
}

pub fn rule(error: &GateError) -> &ReviewRefusal {
    match error {
        GateError::Refused(refusal) => refusal,
        other => panic!("not by the rules: {other:?}"),
    }
}
