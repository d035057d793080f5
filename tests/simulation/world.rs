//! One world: a provider, a ledger file, one or two engines, a desk with people, and time. Everything
//! runs on one thread, room by room; time moves only when nobody has anything left to do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use samekey::clock::Clock;
use samekey::domain::ids::{ProviderName, ToolName};
use samekey::domain::policy::Profile;
use samekey::domain::{Instant, later};
use samekey::engine::{Engine, EngineDeps, EngineState, Lots};
use samekey::ledger::Ledger;
use samekey::provider::SharedProvider;
use samekey::provider::stripe::{Stripe, StripeConfig};
use samekey::simulator::{SimConfig, Unplugged};

use crate::core::{Core, Fate, Process};
use crate::judge::Judge;
use crate::ledger::SimLedger;
use crate::options::{Guard, Options, dice};
use crate::provider::SimProvider;
use crate::room::{Room, Timepiece};
use crate::store::{AllTerms, Disk, Place, Store};
use crate::wire::{Line, SimWire};

/// After more moves of time than this nothing gets done any more.
const MOST_MOVES: u64 = 40_000;
/// The desk's handle on the ledger, and its clock; engines have 0 and 1.
pub const DESK: usize = 2;

pub type Providers = Arc<BTreeMap<ProviderName, SharedProvider>>;

pub fn start() -> Instant {
    later(Instant::UNIX_EPOCH, Duration::from_secs(1_790_000_000))
}

pub fn tool() -> ToolName {
    "issue_refund".parse().expect("a tool")
}

/// What outlives every engine.
pub struct Ground {
    pub core: Arc<Core>,
    pub judge: Arc<Judge>,
    pub store: Arc<Store>,
    pub place: Place,
    pub wire: Arc<SimWire>,
    /// Clocks of the machines of engine 1, engine 2 and the desk.
    pub clocks: [Clock; 3],
}

impl Ground {
    /// A handle on the ledger for a process.
    fn ledger(&self, process: &Arc<Process>, handle: usize, terms: &AllTerms) -> Arc<SimLedger> {
        let clock = self.clocks[handle].clone();
        let purpose = format!("ledger of {}", process.name);
        Arc::new(SimLedger {
            inner: self.store.open(&self.place.path, terms, &clock),
            core: Arc::clone(&self.core),
            judge: Arc::clone(&self.judge),
            store: Arc::clone(&self.store),
            process: Arc::clone(process),
            clock,
            handle,
            dice: Mutex::new(dice(self.core.options.seed, &purpose)),
        })
    }

    fn providers(&self, process: &Arc<Process>, clock: &Clock, profile: &Profile) -> Providers {
        let name: ProviderName = "stripe".parse().expect("a provider");
        let config = StripeConfig {
            name: name.clone(),
            base_url: "http://127.0.0.1:4242".into(),
            api_key: samekey::config::Secret::new("sk_test_simulated"),
            api_version: "2026-08-26.dahlia".into(),
            profile: profile.clone(),
            account: None,
        };
        let line = Arc::new(Line(Arc::clone(&self.wire)));
        let provider: SharedProvider = Arc::new(SimProvider {
            inner: Stripe::over(config, clock.clone(), line).expect("an adapter"),
            core: Arc::clone(&self.core),
            process: Arc::clone(process),
        });
        Arc::new(BTreeMap::from([(name, provider)]))
    }
}

/// A running engine.
struct Running {
    room: Room,
    engine: Engine,
    /// Its own clock, where that is not its machine's.
    clock: Option<Clock>,
    /// Kept to be dropped where its connections may be closed.
    ledger: Arc<SimLedger>,
}

/// The desk, where agents' calls come in and people decide.
pub struct Desk {
    pub room: Room,
    pub ledger: Arc<SimLedger>,
    pub providers: Providers,
    pub terms: AllTerms,
}

pub struct World {
    pub ground: Ground,
    pub core: Arc<Core>,
    pub desk: Desk,
    provider_room: Room,
    engines: [Option<Running>; 2],
    timepieces: Vec<Timepiece>,
    terms: AllTerms,
    starts: u64,
    moves: u64,
    /// When a stopped or dead engine comes back (true time).
    back: [Option<Duration>; 2],
    dice: ChaCha8Rng,
}

impl World {
    pub fn new(options: Options, store: &Arc<Store>, disk: Disk) -> Self {
        let core = Arc::new(Core::new(options));
        let options = &core.options;
        let config = SimConfig {
            plan: options.plan(),
            seed: options.seed,
            latency: options.latency,
            retention: options.terms.profile.retention,
            ..SimConfig::new(core.truth.clone())
        };
        let provider = Unplugged::new(&config).expect("a provider");
        let place = store.place(disk);
        let judge = Judge::new(Arc::clone(&core), provider.clone(), store, &place.path);
        let provider_room = Room::new("provider");
        let judge = Arc::new(judge);
        let wire = Arc::new(SimWire {
            core: Arc::clone(&core),
            judge: Arc::clone(&judge),
            store: Arc::clone(store),
            provider,
            room: provider_room.runtime.handle().clone(),
            dice: Mutex::new(dice(options.seed, "wire")),
            unreachable: Mutex::default(),
            blackout: Mutex::default(),
            people: Mutex::default(),
        });
        let ground = Ground {
            core: Arc::clone(&core),
            judge,
            store: Arc::clone(store),
            place,
            wire,
            clocks: [(); 3].map(|()| Clock::manual(start())),
        };
        let terms: AllTerms = Arc::new(BTreeMap::from([(tool(), options.terms.clone())]));
        let room = Room::new("desk");
        let people = people_terms(options);
        let desk = Desk {
            ledger: ground.ledger(&room.process, DESK, &people),
            providers: ground.providers(
                &room.process,
                &ground.clocks[DESK],
                &options.terms.profile,
            ),
            terms: people,
            room,
        };
        let mut world = Self {
            dice: dice(options.seed, "world"),
            ground,
            desk,
            provider_room,
            engines: [None, None],
            timepieces: Vec::new(),
            terms,
            starts: 0,
            moves: 0,
            back: [None, None],
            core,
        };
        world.hang_clocks();
        world
    }

    fn hang_clocks(&mut self) {
        let drift = self.core.options.drift;
        let piece = |clock: &Clock, drift, process: &Arc<Process>| Timepiece {
            clock: clock.clone(),
            drift,
            process: Arc::clone(process),
            frozen_in_stops: false,
        };
        self.timepieces = vec![
            piece(&self.core.truth, 0, &self.provider_room.process),
            piece(
                &self.ground.clocks[DESK],
                drift[DESK],
                &self.desk.room.process,
            ),
        ];
        for (n, running) in self.engines.iter().enumerate() {
            // A machine's clock goes on when its engine is gone.
            let nobody = Process::new("nobody");
            let process = running.as_ref().map_or(&nobody, |r| &r.room.process);
            let clock = &self.ground.clocks[n];
            self.timepieces.push(piece(clock, drift[n], process));
            if let Some(clock) = running.as_ref().and_then(|r| r.clock.as_ref()) {
                self.timepieces.push(Timepiece {
                    frozen_in_stops: true,
                    ..piece(clock, drift[n], process)
                });
            }
        }
    }

    /// Starts an engine, as a new process on machine `n`.
    pub fn start_engine(&mut self, n: usize) {
        self.starts += 1;
        let room = Room::new(format!("engine {}.{}", n + 1, self.starts));
        let options = &self.core.options;
        let ledger = self.ground.ledger(&room.process, n, &self.terms);
        let machine = self.ground.clocks[n].clone();
        // Starts as late as its machine, and loses what it is stopped for.
        let own = options
            .lacks(Guard::CheckBeforeSending)
            .then(|| Clock::manual(machine.now()));
        let clock = own.clone().unwrap_or(machine);
        let deps = EngineDeps {
            ledger: Arc::clone(&ledger) as samekey::ledger::SharedLedger,
            providers: self
                .ground
                .providers(&room.process, &clock, &options.terms.profile),
            terms: Arc::clone(&self.terms),
            config: options.engine.clone(),
            clock,
            lots: Lots::seeded(
                options
                    .seed
                    .wrapping_mul(1_000_003)
                    .wrapping_add(self.starts),
            ),
        };
        self.core.note(format!("{} starts", room.process.name));
        let engine = {
            let _inside = room.runtime.enter();
            Engine::start(deps)
        };
        self.engines[n] = Some(Running {
            room,
            engine,
            clock: own,
            ledger,
        });
        self.back[n] = None;
        self.hang_clocks();
    }

    /// The engine's process is gone: its tasks are dropped wherever they are.
    pub fn kill_engine(&mut self, n: usize) {
        if let Some(running) = self.engines[n].take() {
            let Running {
                room,
                engine,
                ledger,
                clock: _,
            } = running;
            self.core.note(format!("{} is gone", room.process.name));
            drop((engine, room));
            self.ground.store.block(async move { drop(ledger) });
            self.hang_clocks();
        }
    }

    /// L8: takes nothing new, lets go of what it has, and ends.
    pub fn stop_engine(&mut self, n: usize) {
        let Some(running) = self.engines[n].take() else {
            return;
        };
        let Running {
            room,
            engine,
            ledger,
            clock: _,
        } = running;
        let health = engine.health();
        let limit = Duration::from_secs(3600);
        let stopping = room.runtime.spawn(engine.stop(limit));
        room.run();
        if !stopping.is_finished() || health.borrow().state != EngineState::Stopped {
            let state = health.borrow().state.clone();
            self.core
                .violated("L8", format!("an idle engine does not stop: {state:?}"));
        }
        drop(room);
        self.ground.store.block(async move { drop(ledger) });
        self.hang_clocks();
    }

    pub fn has_engine(&self, n: usize) -> bool {
        self.engines[n].is_some()
    }

    /// `fate` meets engine `n` after so many more of its steps.
    pub fn doom(&self, n: usize, after: u64, fate: Fate) {
        if let Some(running) = &self.engines[n] {
            running.room.process.doom(after, fate);
        }
    }

    /// Machine `n` sets its wall clock.
    pub fn step_clock(&self, n: usize, seconds: i64) {
        self.core.note(format!(
            "the clock of machine {} is set by {seconds} s",
            n + 1
        ));
        self.ground.clocks[n].step(chrono::TimeDelta::seconds(seconds));
    }

    /// Whether anybody's clock waits for a lead to accept it.
    pub fn clock_alarm(&self) -> bool {
        let engines = self.engines.iter().flatten().map(|r| &r.ledger);
        let mut all = engines.chain([&self.desk.ledger]);
        all.any(|ledger| {
            let asked = self.ground.store.block(ledger.inner.clock_alarm());
            asked.expect("the ledger answers")
        })
    }

    /// Machine `n`'s wall clock is set to true time, give or take its drift.
    pub fn set_clock_right(&self, n: usize) {
        let clock = &self.ground.clocks[n];
        let off = self.core.truth.now() - clock.now();
        if off.abs() > chrono::TimeDelta::seconds(30) {
            self.core
                .note(format!("the clock of machine {} is set right", n + 1));
            clock.step(off);
        }
    }

    /// Everybody runs until nobody can; what happened to processes on the way takes effect.
    pub fn settle(&mut self) {
        loop {
            let mut ran = false;
            for room in [&self.provider_room, &self.desk.room] {
                if room.is_ready() {
                    room.run();
                    ran = true;
                }
            }
            // Now one, now the other first.
            let first = usize::from(self.dice.random_bool(0.5));
            for n in [first, 1 - first] {
                let Some(running) = &self.engines[n] else {
                    continue;
                };
                if running.room.is_ready() && !running.room.process.is_stopped() {
                    running.room.run();
                    ran = true;
                }
                self.meet_fate(n);
            }
            if !ran {
                return;
            }
            if self.core.violation().is_some() {
                return;
            }
        }
    }

    fn meet_fate(&mut self, n: usize) {
        let Some(running) = &self.engines[n] else {
            return;
        };
        if let EngineState::Down(why) = &running.engine.health().borrow().state {
            self.core
                .violated("U32", format!("an engine is down: {why}"));
        }
        let name = &running.room.process.name;
        match running.room.process.happened() {
            None => {}
            Some(Fate::Dies) => {
                self.core.saw("a crash");
                self.kill_engine(n);
                let rest = Duration::from_millis(self.dice.random_range(1..40_000));
                self.back[n] = Some(self.core.now() + rest);
            }
            Some(Fate::Stops(length)) => {
                self.core.saw("an engine that was stopped for a while");
                self.core.note(format!("{name} is stopped for {length:?}"));
                self.back[n] = Some(self.core.now() + length);
            }
        }
    }

    /// Engines whose time has come are back.
    pub fn bring_back(&mut self) {
        for n in [0, 1] {
            if self.back[n].is_none_or(|at| at > self.core.now()) {
                continue;
            }
            self.back[n] = None;
            match &self.engines[n] {
                Some(running) => {
                    self.core
                        .note(format!("{} goes on", running.room.process.name));
                    running.room.process.go_on();
                }
                None => self.start_engine(n),
            }
        }
    }

    /// Moves time to whatever is due next, but not beyond `until`; answers false where nothing is due.
    pub fn advance(&mut self, until: Option<Duration>) -> bool {
        let now = self.core.now();
        let wakes = self.timepieces.iter().filter_map(Timepiece::next_wake);
        let back = self.back.iter().flatten().map(|at| at.saturating_sub(now));
        let hint = self.core.next_hint().map(|at| at.saturating_sub(now));
        let until = until.map(|at| at.saturating_sub(now));
        let Some(by) = wakes.chain(back).chain(hint).chain(until).min() else {
            return false;
        };
        for piece in &self.timepieces {
            piece.advance(by);
        }
        self.core.tell_due();
        self.bring_back();
        self.moves += 1;
        if self.moves > MOST_MOVES {
            self.core
                .violated("L3", "time moves and nothing comes to an end");
        }
        true
    }

    /// Runs until `until` (true time), or until something is violated.
    pub fn run_until(&mut self, until: Duration) {
        self.settle();
        while self.core.now() < until && self.core.violation().is_none() {
            self.advance(Some(until));
            self.settle();
        }
    }

    /// Lets a task of the desk come to its end; it may wait in virtual time.
    pub fn at_desk<T: Send + 'static>(
        &mut self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let task = self.desk.room.runtime.spawn(task);
        loop {
            self.settle();
            if task.is_finished() {
                return self.ground.store.block(task).ok();
            }
            if self.core.violation().is_some() || !self.advance(None) {
                return None;
            }
        }
    }

    /// A long time in which no engine runs.
    pub fn sleep_over(&mut self, length: Duration) {
        for n in [0, 1] {
            self.kill_engine(n);
        }
        self.run_until(self.core.now() + length);
        self.start_engine(0);
    }

    /// Nothing fails any more, everybody is back.
    pub fn heal(&mut self) {
        self.core.note("--- everything is healed ---");
        self.core
            .healed
            .store(true, std::sync::atomic::Ordering::SeqCst);
        self.ground.wire.provider.heal();
        for n in [0, 1] {
            if let Some(running) = &self.engines[n] {
                running.room.process.doom(u64::MAX / 2, Fate::Dies);
            }
            if self.back[n].is_some() {
                self.back[n] = Some(self.core.now());
            }
        }
        self.bring_back();
        if !self.has_engine(0) {
            self.start_engine(0);
        }
        if self.core.options.seed.is_multiple_of(2) {
            // One engine has to be enough for whatever the other one left.
            self.kill_engine(1);
        }
    }
}

/// The terms that people decide by.
fn people_terms(options: &Options) -> AllTerms {
    let mut terms = options.terms.clone();
    if options.lacks(Guard::WaitBeforeFailed) {
        terms.profile.settle_time = Duration::ZERO;
        terms.profile.timeout = Duration::ZERO;
        terms.profile.send_window = Duration::ZERO;
    }
    Arc::new(BTreeMap::from([(tool(), terms)]))
}

impl Drop for World {
    fn drop(&mut self) {
        for n in [0, 1] {
            self.kill_engine(n);
        }
    }
}
