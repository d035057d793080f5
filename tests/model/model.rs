//! The model: which steps are possible in a world, and where each leads. The steps themselves stand in
//! `engine`, `provider` and `people`; what must hold of them in `promises`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use samekey::domain::operation::{Operation, Status};
use samekey::domain::policy::{ProviderKind, Terms};
use samekey::domain::transition::{Next, Refusal};
use stateright::{Model, Property};

use crate::events::{Ask, What};
use crate::face::Face;
use crate::guards::Guard;
use crate::places::Place;
use crate::promises::{self, Law};
use crate::rows::{Book, Turn, instant};
use crate::world::{
    Call, CallAt, Engine, Fate, Left, Look, Mark, Row, Thing, Tick, Wire, WireAt, World,
};

/// What may happen in one search: a search of everything at once would never end.
#[derive(Clone, Debug)]
pub struct Scope {
    pub name: &'static str,
    pub terms: Terms,
    pub engines: usize,
    /// Amounts of the calls to come. Where `opened`, the first call's row exists already.
    pub calls: Vec<u16>,
    pub opened: bool,
    /// What has happened already.
    pub begin: &'static [Do],
    /// How many steps are followed; all where it says nothing. And in the long search.
    pub depth: Option<usize>,
    pub long_depth: Option<usize>,
    pub captured: u16,
    pub horizon: Tick,
    /// Jumps further on.
    pub jumps: &'static [Tick],
    pub troubles: Left,
    /// What the provider may do with a request.
    pub doors: &'static [Door],
    pub ends: &'static [End],
    /// What else may turn up at the provider.
    pub strangers: &'static [Mark],
    /// An accepted object may be pending, and a bank may return money.
    pub fates: bool,
    /// What people may decide; empty where nobody is there.
    pub whats: Vec<What>,
    /// Where the search must have been.
    pub places: &'static [Place],
}

/// How the provider receives a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Door {
    /// By its key: runs, replays, or is told to wait.
    In,
    Limited,
    Denied,
    Invalid,
    AlreadyRefunded,
    OtherParameters,
}

/// How a running request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    Done,
    Pending,
    BrokenWithEffect,
    BrokenWithout,
    Refused,
}

/// How a read of the provider ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    Complete,
    Partial,
    Unreachable,
}

/// One step. Engines, calls, rows, objects and people go by number, wires and keys by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Do {
    Call(u8),
    Get(u8, u8),
    ReadProvider(u8),
    Open(u8),
    Drive(u8, u8),
    NoRoom(u8),
    Authorise(u8),
    /// The commit fails and the engine sends all the same; only where that guard is missing.
    AuthoriseUncommitted(u8),
    Recheck(u8),
    Send(u8),
    Read(u8),
    Lose(u8),
    Record(u8),
    EngineLookup(u8, How),
    GiveUp(u8),
    Answer(u8),
    LeaseRunsOut(u8),
    Crash(u8),
    Copy(u8),
    Vanish(u8),
    Arrive(u8, Door),
    Finish(u8, End),
    Prune(u8),
    Become(u8, Fate),
    Stranger(Mark),
    Webhook(u8, Fate),
    BeginList(u8),
    BeginReconcile(u8),
    EndList(How),
    FetchTyped(u8, How),
    Look(u8, u8),
    Decide(u8, What),
    Sweep(u8),
    Interrupt(u8),
    Tick,
    Jump(Tick),
}

pub struct Protocol {
    pub scope: Scope,
    pub book: Book,
    /// The laws that are judged where a guard is missing; else all.
    pub judged: Option<&'static [Law]>,
    /// Laws broken and places reached already: only the first, nearest one is reported.
    pub met: AtomicU32,
    pub been: AtomicU64,
}

impl Protocol {
    pub fn new(scope: Scope) -> Self {
        Self::without(scope, None, None)
    }

    /// With a guard switched off, and the laws to be judged.
    pub fn without(scope: Scope, off: Option<Guard>, judged: Option<&'static [Law]>) -> Self {
        Self {
            book: Book::new(scope.terms.clone(), off),
            scope,
            judged,
            met: AtomicU32::default(),
            been: AtomicU64::default(),
        }
    }

    pub fn off(&self, guard: Guard) -> bool {
        self.book.off == Some(guard)
    }

    pub fn op(&self, world: &World, row: u8) -> Arc<Operation> {
        self.book.op(world.rows[usize::from(row)].op)
    }

    pub fn face(&self, world: &World, row: u8) -> Face {
        self.book.face(world.rows[usize::from(row)].op)
    }

    pub fn keyed(&self) -> bool {
        self.scope.terms.profile.kind == ProviderKind::Keyed
    }

    /// Whether an engine may take the row (the ledger's `drive`).
    pub fn drivable(&self, world: &World, row: u8) -> bool {
        let face = self.face(world, row);
        let open = face.status == Status::Open || self.off(Guard::OpenOnly);
        let free = !face.held || self.off(Guard::HeldFirst);
        open && free && !face.identified
    }

    /// Puts `ask` to the domain for row `row` and writes its answer. A refusal changes nothing.
    pub fn apply(&self, world: &mut World, row: u8, ask: &Ask) -> Result<Turn, Refusal> {
        let before = world.rows[usize::from(row)].op;
        let turn = self.book.ask(before, ask, world.now)?;
        self.write(world, row, ask, &turn);
        Ok(turn)
    }

    pub fn write(&self, world: &mut World, row: u8, ask: &Ask, turn: &Turn) {
        let before = self.op(world, row);
        let after = self.book.op(turn.op);
        promises::judge_step(self, world, row, ask, &before, turn);
        let at = &mut world.rows[usize::from(row)];
        let closes = !before.row.status.is_closed() && after.row.status.is_closed();
        let rewritten = before.row.status.is_closed() && self.off(Guard::CompareAndSet);
        if closes || (rewritten && after.row.status != before.row.status) {
            at.closings += 1;
        }
        if let Ask::Decided { what, .. } = ask
            && before.row.status != after.row.status
        {
            let word = after.row.status == Status::Succeeded || promises::on_their_word(&before);
            at.by_two = *what == What::Approve && word;
        }
        for look in &mut world.people {
            if turn.moved && *look == Look::Fresh(row) {
                let blind = self.off(Guard::CompareAndSet).then_some(at.op);
                *look = Look::Stale(row, blind);
            }
        }
        at.op = turn.op;
        if turn.next == Next::Due {
            let amount = u16::try_from(after.row.minor().expect("money")).expect("small amounts");
            world.calls.push(Call {
                amount,
                row: Some(row),
                state: CallAt::Queued,
            });
        }
    }

    /// Whether time may pass: nobody is held up beyond what is promised.
    fn may_tick(&self, world: &World, to: Tick) -> bool {
        let begun = world.rows.iter().any(|r| self.book.face(r.op).attempts > 0);
        let profile = &self.scope.terms.profile;
        let bound = profile.timeout + profile.settle_time;
        let in_time = |w: &Wire| {
            matches!(w.at, WireAt::Replied(_))
                || instant(to) - instant(w.sent)
                    <= chrono::TimeDelta::from_std(bound).expect("short")
        };
        let bounded = self.off(Guard::ProviderBound) || world.wires.iter().all(in_time);
        let cleared = |e: &Engine| matches!(e.at, crate::world::At::Cleared { .. });
        let prompt = self.off(Guard::PromptWrite) || !world.engines.iter().any(cleared);
        begun && bounded && prompt
    }

    fn time_actions(&self, world: &World, out: &mut Vec<Do>) {
        if world.now < self.scope.horizon && self.may_tick(world, world.now + 1) {
            out.push(Do::Tick);
        }
        for jump in self.scope.jumps {
            if *jump > world.now && self.may_tick(world, *jump) {
                out.push(Do::Jump(*jump));
            }
        }
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Do;

    fn init_states(&self) -> Vec<World> {
        let amount = self.scope.calls[0];
        let row = self.scope.opened.then(|| Row {
            op: self.book.open(0, amount, false),
            driver: None,
            sent: 0,
            closings: 0,
            by_two: false,
        });
        let call = |(n, amount): (usize, &u16)| Call {
            amount: *amount,
            row: row.map(|_| 0),
            state: if n == 0 {
                CallAt::Queued
            } else {
                CallAt::Ahead
            },
        };
        let world = World {
            now: 0,
            rows: row.into_iter().collect(),
            engines: vec![Engine::IDLE; self.scope.engines],
            calls: self.scope.calls.iter().enumerate().map(call).collect(),
            wires: Vec::new(),
            keys: Vec::new(),
            objects: Vec::new(),
            people: [Look::Away; 2],
            reading: None,
            left: self.scope.troubles,
            broken: 0,
        };
        let next = |world: World, action: &Do| self.next_state(&world, *action);
        let begun = self.scope.begin.iter().try_fold(world, next);
        vec![begun.expect("every step of the beginning changes something")]
    }

    fn actions(&self, world: &World, out: &mut Vec<Do>) {
        // What broke a law is not followed further.
        if world.broken != 0 {
            return;
        }
        self.engine_actions(world, out);
        self.provider_actions(world, out);
        self.people_actions(world, out);
        self.time_actions(world, out);
    }

    fn next_state(&self, last: &World, action: Do) -> Option<World> {
        let mut world = last.clone();
        let w = &mut world;
        match action {
            Do::Tick => w.now += 1,
            Do::Jump(to) => w.now = to,
            Do::Call(c) => w.calls[usize::from(c)].state = CallAt::Queued,
            Do::Get(e, c) => self.get(w, e, c),
            Do::ReadProvider(e) => self.read_provider(w, e),
            Do::Open(e) => self.open(w, e),
            Do::Drive(e, c) => self.drive(w, e, c),
            Do::NoRoom(e) => self.no_room(w, e)?,
            Do::Authorise(e) => self.authorise(w, e)?,
            Do::AuthoriseUncommitted(e) => self.authorise_uncommitted(w, e),
            Do::Recheck(e) => self.recheck(w, e),
            Do::Send(e) => self.send(w, e),
            Do::Read(e) => self.read(w, e),
            Do::Lose(e) => self.lose(w, e),
            Do::Record(e) => self.record(w, e),
            Do::EngineLookup(e, how) => self.engine_lookup(w, e, how)?,
            Do::GiveUp(e) => w.engines[usize::from(e)].at = crate::world::At::Done,
            Do::Answer(e) => self.answer(w, e),
            Do::LeaseRunsOut(e) => self.lease_runs_out(w, e),
            Do::Crash(e) => self.crash(w, e),
            Do::Copy(n) => self.copy(w, n),
            Do::Vanish(n) => {
                w.wires.remove(usize::from(n));
            }
            Do::Arrive(n, door) => self.arrive(w, n, door),
            Do::Finish(n, end) => self.finish(w, n, end),
            Do::Prune(n) => {
                w.keys.remove(usize::from(n));
            }
            Do::Become(o, fate) => {
                let object = &mut w.objects[usize::from(o)];
                object.was = Some(object.fate);
                object.fate = fate;
            }
            Do::Stranger(mark) => self.stranger(w, mark),
            Do::Webhook(o, fate) => {
                w.left.webhooks -= 1;
                let thing = Thing { fate, ..w.thing(o) };
                self.apply(w, crate::people::told(thing.mark), &Ask::Webhook(thing))
                    .ok()?;
            }
            Do::BeginList(r) => Self::begin_list(w, r, crate::world::Reader::Reviewer),
            Do::BeginReconcile(r) => Self::begin_list(w, r, crate::world::Reader::Reconciler),
            Do::EndList(how) => self.end_list(w, how)?,
            Do::FetchTyped(r, how) => self.fetch_typed(w, r, how)?,
            Do::Look(p, r) => {
                w.left.looks -= 1;
                w.people[usize::from(p)] = Look::Fresh(r);
            }
            Do::Decide(p, what) => self.decide(w, p, what)?,
            Do::Sweep(r) => {
                self.apply(w, r, &Ask::Swept).ok()?;
            }
            Do::Interrupt(r) => {
                self.apply(w, r, &Ask::Interrupted).ok()?;
            }
        }
        let mut world = world.tidy();
        if world == *last {
            return None;
        }
        let judged = |w: &World| (w.rows.clone(), w.objects.len(), w.keys.len(), w.wires.len());
        if judged(&world) != judged(last) || matches!(action, Do::Become(..)) {
            promises::judge_world(self, &mut world);
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises::properties(self)
    }
}
