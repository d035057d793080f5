//! Every different operation once, under a number; and the one door to the domain: [`Book::ask`] puts an
//! event to the real `transition` and keeps the answer. The same question is asked once.
//!
//! Two operations get one number when no rule can tell them apart: texts and instants that only tell
//! history are dropped, versions count only as "the one looked at or an older one", evidence is reduced to
//! what verdicts are made of. `canonical` asserts that the rules see no difference.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use samekey::domain::Instant;
use samekey::domain::evidence::{self, Bearing, Evidence, Seen, Source};
use samekey::domain::opening::Got;
use samekey::domain::operation::{Operation, OperationRow};
use samekey::domain::policy::Terms;
use samekey::domain::transition::{Action, Next, Refusal, Step, transition};

use crate::builders::{at, money, new_row};
use crate::events::{Ask, event};
use crate::face::Face;
use crate::guards::Guard;
use crate::laws;
use crate::world::{HOURS, MONTH, Tick};

/// A number of an operation in the [`Book`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u32);

/// What an event did.
#[derive(Clone, Debug)]
pub struct Turn {
    pub op: OpId,
    pub next: Next,
    pub action: Action,
    /// The version moved.
    pub moved: bool,
    /// None of the laws of a single step is broken.
    pub lawful: bool,
}

type Answer = Result<Turn, Refusal>;

/// All operations met so far, and all questions.
pub struct Book {
    pub terms: Terms,
    /// The guard that is missing.
    pub off: Option<Guard>,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    ops: Vec<Arc<Operation>>,
    faces: Vec<Face>,
    index: HashMap<u64, Vec<u32>>,
    memo: HashMap<(OpId, Ask, Tick), Answer>,
    gets: HashMap<(Vec<OpId>, u16), Got>,
}

pub fn instant(tick: Tick) -> Instant {
    match tick {
        MONTH => at(36 * 86_400),
        HOURS => at(3 * 3_600),
        tick => at(u64::from(tick) * 300),
    }
}

impl Book {
    pub fn new(terms: Terms, off: Option<Guard>) -> Self {
        Self {
            terms,
            off,
            inside: Mutex::default(),
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("nobody panics with it")
    }

    /// Row number `row` as step 5 of the protocol writes it.
    pub fn open(&self, row: u8, amount: u16, held: bool) -> OpId {
        let fresh = OperationRow {
            attempts_max: self.terms.policy.max_per_operation,
            held,
            ..new_row(u128::from(row) + 1, "4417", money(i64::from(amount)))
        };
        self.inside().intern(&Operation {
            row: fresh,
            attempts: Vec::new(),
            evidence: Vec::new(),
        })
    }

    pub fn op(&self, id: OpId) -> Arc<Operation> {
        Arc::clone(&self.inside().ops[id.0 as usize])
    }

    pub fn face(&self, id: OpId) -> Face {
        self.inside().faces[id.0 as usize]
    }

    /// So many operations, and so many questions put to the domain.
    pub fn size(&self) -> (usize, usize) {
        let inside = self.inside();
        (inside.ops.len(), inside.memo.len())
    }

    /// Puts an event to the domain.
    pub fn ask(&self, id: OpId, ask: &Ask, now: Tick) -> Answer {
        let question = (id, ask.clone(), now);
        if let Some(known) = self.inside().memo.get(&question) {
            return known.clone();
        }
        let op = self.op(id);
        let answer = self
            .transition(&op, ask, instant(now))
            .map(|(step, lawful)| Turn {
                op: self.inside().intern(&canonical(&step.op, &self.terms)),
                next: step.next,
                action: step.audit.action,
                moved: step.op.row.version != op.row.version,
                lawful,
            });
        self.inside().memo.insert(question, answer.clone());
        answer
    }

    /// What step 3 finds for a call of that amount, with these rows: asked once.
    pub fn got(&self, question: (Vec<OpId>, u16), ask: impl FnOnce() -> Got) -> Got {
        if let Some(known) = self.inside().gets.get(&question) {
            return known.clone();
        }
        let got = ask();
        self.inside().gets.insert(question, got.clone());
        got
    }

    fn transition(&self, op: &Operation, ask: &Ask, now: Instant) -> Result<(Step, bool), Refusal> {
        let mut op = op.clone();
        let mut terms = self.terms.clone();
        let event = event(&op, ask);
        let Some(guard) = self.off else {
            let step = transition(&op, &event, &terms, now)?;
            let check = || laws::check(&op, &event, &step, &terms, now);
            let lawful = catch_unwind(AssertUnwindSafe(check)).is_ok();
            return Ok((step, lawful));
        };
        // The guard is missing: the question is put so that the domain cannot hold it.
        let event = guard.bend(&mut op, event, &mut terms);
        let step = transition(&op, &event, &terms, now)?;
        Ok((step, true))
    }
}

impl Inside {
    fn intern(&mut self, op: &Operation) -> OpId {
        let hash = digest(op);
        let known = self.index.entry(hash).or_default();
        if let Some(id) = known.iter().find(|id| *self.ops[**id as usize] == *op) {
            return OpId(*id);
        }
        let id = u32::try_from(self.ops.len()).expect("few enough");
        known.push(id);
        self.ops.push(Arc::new(op.clone()));
        self.faces.push(Face::of(op));
        OpId(id)
    }
}

/// Tells most operations apart; the rest is compared.
fn digest(op: &Operation) -> u64 {
    let mut hasher = DefaultHasher::new();
    let row = &op.row;
    row.id.hash(&mut hasher);
    (row.status, row.effect, row.held, row.attempts, row.version).hash(&mut hasher);
    (row.reason, row.failure, row.verdict, &row.closed_by).hash(&mut hasher);
    (&row.provider_ref, row.last_authorised_at, row.last_outcome).hash(&mut hasher);
    for attempt in &op.attempts {
        (&attempt.call, attempt.class()).hash(&mut hasher);
    }
    let mut rest = String::new();
    for e in &op.evidence {
        write!(rest, "{:?}{:?}", e.source, e.observed_at).expect("text");
        if let Seen::Object { object, bearing } = &e.seen {
            write!(rest, "{}{:?}{bearing:?}", object.id, object.status).expect("text");
        }
    }
    rest.hash(&mut hasher);
    hasher.finish()
}

/// `op` without what no rule asks for.
fn canonical(op: &Operation, terms: &Terms) -> Operation {
    let mut out = op.clone();
    let row = &mut out.row;
    let then = at(0);
    row.failure_text = None;
    row.updated_at = then;
    row.unknown_at = row.unknown_at.map(|_| then);
    row.closed_at = row.closed_at.map(|_| then);
    row.audit_seq = 1;
    row.corrections = row.corrections.min(2);
    let version = row.version;
    if let Some(proposal) = &mut row.proposal {
        // Bound to this version, or to one that is gone.
        proposal.version = if proposal.version == version { 2 } else { 1 };
        proposal.at = then;
    }
    row.version = 2;
    for attempt in &mut out.attempts {
        attempt.authorised_at = then;
        if let Some(result) = &mut attempt.result {
            result.finished_at = then;
            result.error = None;
            result.http_status = None;
        }
    }
    out.evidence = reduced(op);
    same_to_the_rules(op, &out, terms);
    out
}

/// The evidence that verdicts, silences and open fetches are made of, in one order.
fn reduced(op: &Operation) -> Vec<Evidence> {
    let entry = |source, seen, observed_at| Evidence {
        stored: true,
        source,
        seen,
        observed_at,
    };
    let then = at(0);
    let mut out = Vec::new();
    let typed =
        |e: &&Evidence| e.source == Source::TypedRef && !matches!(e.seen, Seen::Object { .. });
    if let Some(typed) = op.evidence.iter().rev().find(typed) {
        out.push(match typed.seen {
            Seen::Unreachable { .. } => entry(Source::TypedRef, unreachable(), then),
            _ => entry(Source::TypedRef, scan(then, false), then),
        });
    }
    let began = |e: &Evidence| match e.seen {
        Seen::Scan {
            began_at,
            complete: true,
        } => Some(began_at),
        _ => None,
    };
    // A scan also ends the silence that the typed id may have begun.
    match op.evidence.iter().filter_map(began).max() {
        Some(began_at) => out.push(entry(Source::EngineLookup, scan(began_at, true), then)),
        None => out.push(entry(Source::EngineLookup, scan(then, false), then)),
    }
    for (object, bearing) in evidence::objects(&op.evidence).into_values() {
        let object = object.clone();
        let created_at = then;
        let object = evidence::ProviderObject {
            created_at,
            ..object
        };
        out.push(entry(
            Source::Webhook,
            Seen::Object { object, bearing },
            then,
        ));
    }
    if let Some(silence) = evidence::silence(&op.evidence) {
        out.push(entry(Source::EngineLookup, unreachable(), silence.first));
        if silence.last != silence.first {
            out.push(entry(Source::EngineLookup, unreachable(), silence.last));
        }
    }
    out
}

fn scan(began_at: Instant, complete: bool) -> Seen {
    Seen::Scan { began_at, complete }
}

fn unreachable() -> Seen {
    let why = "no answer".into();
    Seen::Unreachable { why }
}

fn same_to_the_rules(op: &Operation, reduced: &Operation, terms: &Terms) {
    type Objects = Vec<(String, evidence::ObjectStatus, Bearing)>;
    let objects = |op: &Operation| -> Objects {
        evidence::objects(&op.evidence)
            .into_iter()
            .map(|(id, (o, b))| (id.to_string(), o.status, b))
            .collect()
    };
    assert_eq!(objects(op), objects(reduced));
    assert_eq!(op.awaits_fetch(), reduced.awaits_fetch());
    assert_eq!(op.derived_effect(), reduced.derived_effect());
    let silent = |op: &Operation| evidence::silence(&op.evidence);
    assert_eq!(silent(op), silent(reduced));
    let verdict = |op: &Operation| evidence::verdict(op, &terms.profile);
    assert_eq!(verdict(op), verdict(reduced));
}
