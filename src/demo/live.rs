//! The endless demo: customers come at a human pace until the screen is left.
//!
//! Owns: who comes when, and the scoreboard. Bounded: after [`MOST_CUSTOMERS`] nobody new comes.
//! Never: draws. Tests: below and `tests/demo.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::asks::Ask;
use super::customers::{Customer, Customers};
use super::limits::Limits;
use super::play::{Client, Pace, play};
use super::stage::{STOP_WITHIN, Stage};
use super::tally::{self, Wanted};
use super::{DemoConfig, DemoError};
use crate::clock::Clock;
use crate::config::os_user;
use crate::domain::ids::ReviewerName;
use crate::domain::review_event::Person;
use crate::engine::{Engine, EngineHealth};
use crate::ledger::SharedLedger;
use crate::review::Gate;
use crate::simulator::Plan;

/// Rows stay bounded: after so many customers the shop closes.
const MOST_CUSTOMERS: usize = 3000;
/// Between two customers (virtual time).
const NEXT_CUSTOMER: Duration = Duration::from_millis(700);
/// How often the scoreboard is counted (real time).
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// Every so many customers meet a fault that would otherwise be rare, so that within a minute there
/// is something of everything to see.
const SPOTLIGHT_EVERY: usize = 4;
const SPOTLIGHTS: [&str; 8] = [
    "saved-500-with-effect",
    "refused",
    "timeout-after-effect",
    "overlap-409",
    "wrong-amount-reply",
    "already-refunded",
    "saved-500-without-effect",
    "pending-then-succeeded",
];
/// How far ahead such a customer is looked for.
const LOOK_AHEAD: u64 = 500;

/// A running demo, with what the dashboard needs of it.
pub struct Demo {
    pub ledger: SharedLedger,
    pub gate: Gate,
    /// The OS user, as lead.
    pub person: Person,
    pub health: watch::Receiver<EngineHealth>,
    pub clock: Clock,
    /// Where the ledger is; `None` for a throw-away one.
    pub kept: Option<std::path::PathBuf>,
    /// Two short lines: samekey, and the naive client under the same calls.
    pub scoreboard: watch::Receiver<Vec<String>>,
    pub(super) running: Running,
}

/// What has to be stopped in the end.
pub(super) struct Running {
    stage: Arc<Stage>,
    engine: Option<Engine>,
    tasks: Vec<JoinHandle<()>>,
}

/// Starts everything and lets the customers come.
///
/// # Errors
/// A wrong scenario, or a ledger that is not a demo's.
pub async fn start(cfg: DemoConfig) -> Result<Demo, DemoError> {
    let mixed = matches!(cfg.plan()?, Plan::Mixed { .. });
    let stage = Stage::set(&cfg, |provider, plan| {
        Limits::live(provider, plan, cfg.speed)
    })
    .await?;
    let engine = stage.engine();
    let board = Arc::new(Board::default());
    let (lines, scoreboard) = watch::channel(board.lines(&stage));
    let stage = Arc::new(stage);
    let shop = tokio::spawn(open_shop(Arc::clone(&stage), Arc::clone(&board), mixed));
    let counting = tokio::spawn(count(Arc::clone(&stage), board, lines));
    let gate = gate(&stage)?;
    Ok(Demo {
        ledger: Arc::clone(&stage.ledger),
        person: gate.person(None)?,
        gate,
        health: engine.health(),
        clock: stage.limits.clock.clone(),
        kept: stage.is_kept().then(|| stage.path().to_path_buf()),
        scoreboard,
        running: Running {
            stage,
            engine: Some(engine),
            tasks: vec![shop, counting],
        },
    })
}

pub(super) fn gate(stage: &Stage) -> Result<Gate, DemoError> {
    Ok(Gate::new(
        Arc::clone(&stage.ledger),
        Arc::clone(&stage.providers),
        Arc::clone(&stage.terms),
        Arc::new(BTreeMap::new()),
        ReviewerName::parse(&os_user())?,
        stage.limits.clock.clone(),
    ))
}

impl Demo {
    /// Sends the customers home and stops everything; a throw-away ledger is gone afterwards.
    pub async fn stop(self) {
        self.running.stop().await;
    }
}

impl Running {
    /// No more customers, and the engine drained; the ledger can still be read.
    pub(super) async fn pause(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        for task in self.tasks.drain(..) {
            // Aborted, or it had ended.
            let _ = task.await;
        }
        if let Some(engine) = self.engine.take() {
            engine.stop(STOP_WITHIN).await;
        }
    }

    pub(super) async fn stop(mut self) {
        self.pause().await;
        // Customers that were sent home have let go of it.
        if let Some(stage) = Arc::into_inner(self.stage) {
            drop(stage.strike().await);
        }
    }
}

/// What was wanted so far, by both clients' customers, who are the same.
#[derive(Default)]
struct Board {
    wanted: Mutex<(BTreeSet<(String, usize)>, Wanted)>,
}

impl Board {
    fn starts(&self, customer: &Customer, ask: &Ask) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let order = customer.order.as_str();
        if let Some(intent) = customer.intents.get(ask.intent)
            && wanted.0.insert((order.to_owned(), ask.intent))
        {
            wanted.1.add(order, intent.amount);
        }
    }

    fn lines(&self, stage: &Stage) -> Vec<String> {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = wanted.1.clone();
        lines(stage, &wanted)
    }
}

/// The scoreboard of what both simulators did.
pub(super) fn lines(stage: &Stage, wanted: &Wanted) -> Vec<String> {
    let ours = tally::count(&stage.sim.effects(), wanted);
    let naive = tally::count(&stage.naive_sim.effects(), wanted);
    tally::scoreboard(wanted, &ours, &naive)
}

async fn count(stage: Arc<Stage>, board: Arc<Board>, lines: watch::Sender<Vec<String>>) {
    loop {
        tokio::time::sleep(COUNT_EVERY).await;
        let now = board.lines(&stage);
        lines.send_if_modified(|old| {
            let changed = *old != now;
            *old = now;
            changed
        });
    }
}

/// Lets one customer after another in.
async fn open_shop(stage: Arc<Stage>, board: Arc<Board>, mixed: bool) {
    let mut served = JoinSet::new();
    let mut casting = Casting::new(mixed);
    for _ in 0..MOST_CUSTOMERS {
        while served.len() >= stage.limits.at_a_time {
            served.join_next().await;
        }
        match stage.customers.customer(casting.next(&stage.customers)) {
            Ok(customer) => {
                served.spawn(serve(Arc::clone(&stage), Arc::clone(&board), customer));
            }
            Err(error) => tracing::warn!(%error, "a customer could not be made up"),
        }
        stage.limits.clock.sleep(NEXT_CUSTOMER).await;
    }
    while served.join_next().await.is_some() {}
}

async fn serve(stage: Arc<Stage>, board: Arc<Board>, customer: Customer) {
    let pace = Pace {
        clock: stage.limits.clock.clone(),
        think: stage.limits.think,
    };
    let starts = |ask: &Ask| board.starts(&customer, ask);
    let clients: [&dyn Client; 2] = [&*stage.desk, &*stage.naive];
    let [ours, naive] = clients.map(|client| play(client, &customer, &pace, &starts));
    let (ours, naive) = tokio::join!(ours, naive);
    for error in [ours, naive].into_iter().filter_map(Result::err) {
        tracing::warn!(order = %customer.order, %error, "a customer left early");
    }
}

/// Which customer comes next: one after the other, now and then one who meets a rare fault.
struct Casting {
    spotlights: bool,
    came: usize,
    next: u64,
    early: BTreeSet<u64>,
}

impl Casting {
    fn new(spotlights: bool) -> Self {
        Self {
            spotlights,
            came: 0,
            next: 0,
            early: BTreeSet::new(),
        }
    }

    fn next(&mut self, customers: &Customers) -> u64 {
        self.came += 1;
        while self.early.remove(&self.next) {
            self.next += 1;
        }
        let turn = self.came / SPOTLIGHT_EVERY;
        if self.spotlights && self.came.is_multiple_of(SPOTLIGHT_EVERY) {
            let wanted = SPOTLIGHTS
                .get(turn.saturating_sub(1) % SPOTLIGHTS.len())
                .copied();
            let found = (self.next + 1..self.next + LOOK_AHEAD)
                .find(|i| !self.early.contains(i) && customers.first_fault(*i) == wanted);
            if let Some(found) = found {
                self.early.insert(found);
                return found;
            }
        }
        let next = self.next;
        self.next += 1;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::Faults;

    #[test]
    fn everybody_comes_once_and_rare_faults_come_early() {
        let faults = Faults::new(&Plan::Mixed { n: None }, 3).expect("mixed");
        let customers = Customers::new(3, faults, None, 1);
        let mut casting = Casting::new(true);
        let came: Vec<u64> = (0..80).map(|_| casting.next(&customers)).collect();
        assert_eq!(came[0], 0, "order 4417 comes first");
        let once: BTreeSet<_> = came.iter().collect();
        assert_eq!(once.len(), came.len());
        let faults: Vec<_> = came
            .iter()
            .take(40)
            .filter_map(|i| customers.first_fault(*i))
            .collect();
        for rare in SPOTLIGHTS {
            assert!(faults.contains(&rare), "{rare}");
        }
    }
}
