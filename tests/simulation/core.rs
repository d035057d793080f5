//! What all parts of one world share: true time, the log, what was seen, and the first violation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use samekey::clock::Clock;
use tokio::sync::{Notify, watch};

use crate::options::{Kind, Options, chance, dice};

/// How long a commit of another process takes to be noticed.
const NOTICED_AFTER: Duration = Duration::from_millis(150);

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A broken law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The law's name: `I3`, `L1`, `R41` …
    pub law: &'static str,
    pub what: String,
}

pub struct Core {
    pub options: Options,
    /// True time: the provider's, and the judge's.
    pub truth: Clock,
    /// Faults are over.
    pub healed: AtomicBool,
    log: Mutex<Vec<String>>,
    seen: Mutex<BTreeMap<&'static str, u64>>,
    violation: Mutex<Option<Violation>>,
    hints: Mutex<Hints>,
    dice: Mutex<ChaCha8Rng>,
}

/// Who is told that the ledger changed. A channel for each listener, because one channel wakes its
/// listeners in an order that cannot be repeated.
#[derive(Default)]
struct Hints {
    listeners: Vec<(usize, watch::Sender<u64>)>,
    /// Handles that will notice another one's commit, and when.
    due: BTreeMap<usize, Duration>,
    count: u64,
}

impl Core {
    pub fn new(options: Options) -> Self {
        Self {
            dice: Mutex::new(dice(options.seed, "hints")),
            options,
            truth: Clock::manual(crate::world::start()),
            healed: AtomicBool::new(false),
            log: Mutex::default(),
            seen: Mutex::default(),
            violation: Mutex::default(),
            hints: Mutex::default(),
        }
    }

    pub fn now(&self) -> Duration {
        self.truth.boot()
    }

    pub fn is_healed(&self) -> bool {
        self.healed.load(Ordering::SeqCst)
    }

    pub fn note(&self, line: impl AsRef<str>) {
        let at = self.now();
        let line = format!("{:>11.3}s {}", at.as_secs_f64(), line.as_ref());
        lock(&self.log).push(line);
    }

    pub fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// Counts something that must happen now and then, or the simulation proves less than it says.
    pub fn saw(&self, what: &'static str) {
        *lock(&self.seen).entry(what).or_default() += 1;
    }

    pub fn seen(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.seen).clone()
    }

    /// Only the first violation counts; what follows may be its consequence.
    pub fn violated(&self, law: &'static str, what: impl Into<String>) {
        let what = what.into();
        self.note(format!("VIOLATION {law}: {what}"));
        lock(&self.violation).get_or_insert(Violation { law, what });
    }

    pub fn violation(&self) -> Option<Violation> {
        lock(&self.violation).clone()
    }

    // --- the hint that something changed ---------------------------------------------------------

    pub fn listen(&self, handle: usize) -> watch::Receiver<u64> {
        let mut hints = lock(&self.hints);
        let (sender, receiver) = watch::channel(hints.count);
        hints.listeners.retain(|(_, s)| !s.is_closed());
        hints.listeners.push((handle, sender));
        receiver
    }

    /// Handle number `by` committed something.
    pub fn committed(&self, by: usize, handles: usize) {
        let at = self.now().saturating_add(NOTICED_AFTER);
        if self.options.has(Kind::HintsLost) && chance(&mut lock(&self.dice), 70) {
            return;
        }
        let mut hints = lock(&self.hints);
        for other in (0..handles).filter(|h| *h != by) {
            hints.due.entry(other).or_insert(at);
        }
        hints.tell(by);
    }

    pub fn next_hint(&self) -> Option<Duration> {
        lock(&self.hints).due.values().min().copied()
    }

    pub fn tell_due(&self) {
        let now = self.now();
        let mut hints = lock(&self.hints);
        let due: Vec<usize> = hints
            .due
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(h, _)| *h)
            .collect();
        for handle in due {
            hints.due.remove(&handle);
            hints.tell(handle);
        }
    }
}

impl Hints {
    fn tell(&mut self, handle: usize) {
        self.count += 1;
        for (_, listener) in self.listeners.iter().filter(|(h, _)| *h == handle) {
            listener.send_replace(self.count);
        }
    }
}

/// One process: it may be stopped for a while, or die, wherever it asks the outside for something.
pub struct Process {
    pub name: String,
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    dead: bool,
    stopped: bool,
    crossings: u64,
    /// At the so many-th crossing this happens.
    fate: Option<(u64, Fate)>,
    happened: Option<Fate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Dies,
    /// Stands still for so long (true time).
    Stops(Duration),
}

impl Process {
    pub fn new(name: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            state: Mutex::default(),
            wake: Notify::new(),
        })
    }

    /// `fate` meets it after so many more steps.
    pub fn doom(&self, after: u64, fate: Fate) {
        let mut state = lock(&self.state);
        state.fate = Some((state.crossings + after, fate));
    }

    /// A point where the process can be stopped or die.
    pub async fn step(&self) {
        {
            let mut state = lock(&self.state);
            state.crossings += 1;
            if let Some((at, fate)) = state.fate
                && state.crossings >= at
                && !state.dead
                && !state.stopped
            {
                state.fate = None;
                state.happened = Some(fate);
                state.dead = fate == Fate::Dies;
                state.stopped = fate != Fate::Dies;
            }
        }
        loop {
            let (dead, stopped) = {
                let state = lock(&self.state);
                (state.dead, state.stopped)
            };
            if dead {
                std::future::pending::<()>().await;
            }
            if !stopped {
                return;
            }
            self.wake.notified().await;
        }
    }

    /// What met it since the last question.
    pub fn happened(&self) -> Option<Fate> {
        lock(&self.state).happened.take()
    }

    pub fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    pub fn go_on(&self) {
        lock(&self.state).stopped = false;
        self.wake.notify_waiters();
    }
}
