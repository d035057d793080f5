//! What `update` wants done, and the tasks that do it.
//!
//! Owns: the closed [`Effect`] enum and [`Runner`], which reads the ledger and sends the answers back
//! through a bounded channel; what goes through the gate stands in `effect/acting.rs`. Never: draws, decides, or runs on the UI task (U43).
//! A panic in a task becomes an answer, so that the screen never waits for ever. Tests:
//! `tests/tui_terminal.rs`.

mod acting;
mod boards;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore, mpsc};

use super::action::{Frozen, Wish};
use super::board::{Asking, BoardQuery};
use super::message::{
    Around, DetailView, Edge, Engines, Failure, Loaded, Message, PageQuery, Standing, Told,
};
use crate::clock::Clock;
use crate::domain::guard;
use crate::domain::ids::{OperationId, ProviderRef, ToolName};
use crate::domain::policy::{CircuitState, Terms};
use crate::domain::{Instant, earlier};
use crate::ledger::{LedgerError, SharedLedger};
use crate::review::Gate;

/// How many of the review list's first rows are watched for the bell.
const WATCHED: u32 = 100;
/// An engine that was seen within this time lives.
const ALIVE: Duration = Duration::from_mins(1);

/// Something for the outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Load(Load),
    More {
        generation: u64,
        edge: Edge,
        query: Box<Query>,
    },
    Detail {
        serial: u64,
        id: OperationId,
    },
    /// A reading for a board.
    Board(Box<Asking<BoardQuery>>),
    Ask {
        serial: u64,
        frozen: Frozen,
    },
    Decide {
        serial: u64,
        frozen: Frozen,
        note: String,
        typed: Option<ProviderRef>,
    },
    /// One row or several, as frozen.
    Lookup {
        serial: u64,
        frozen: Frozen,
    },
    /// Pauses or resumes the frozen tool.
    Switch {
        serial: u64,
        frozen: Frozen,
        note: String,
    },
    /// Claims, gives back or puts off the frozen row.
    Desk {
        frozen: Frozen,
        wish: Wish,
    },
    /// A text that only ledger and gate can make.
    Tell {
        serial: u64,
        what: Told,
        ids: Vec<OperationId>,
    },
    /// To the terminal's clipboard.
    Copy(String),
    /// Bell and desktop notice, already harmless text.
    Ring(String),
    Suspend,
    Redraw,
    /// Begin to stop the engine, and the screen after it.
    Stop,
    /// Leave at once.
    Leave,
}

impl Effect {
    /// Whether it can change anything beyond the screen (U51).
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Self::Decide { .. } | Self::Lookup { .. } | Self::Switch { .. } | Self::Desk { .. }
        )
    }
}

/// A page query that can be compared.
#[derive(Clone, Debug)]
pub struct Query(pub PageQuery);

impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.0, &other.0);
        a.tab == b.tab
            && a.filter == b.filter
            && a.sort == b.sort
            && a.ascending == b.ascending
            && a.after == b.after
            && a.from == b.from
            && a.budget == b.budget
            && a.limit == b.limit
    }
}

/// How much is read beside the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing: a person waits for the list.
    Nothing,
    /// What is on the screen whatever its list is.
    Around,
    /// That, and the head of the review list, for the bell.
    AroundAndReview,
}

/// One reading of what the screen shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    pub generation: u64,
    pub query: Box<Query>,
    /// Rows on the screen, which are read even where they left the page, each with the number of its
    /// last audit entry: only those that moved since are read.
    pub shown: Vec<(OperationId, i64)>,
    pub beside: Beside,
}

/// A reading is not repeated where nothing was committed since; but some of it depends on the time
/// (what is urgent, which engines live), so that it is never older than this (real time).
const REREAD: Duration = Duration::from_secs(10);
/// Tasks that may wait for the ledger or a provider at once.
const TASKS: usize = 16;

/// Runs effects in tasks.
#[derive(Clone)]
pub struct Runner {
    slots: Arc<Semaphore>,
    pub ledger: SharedLedger,
    pub(super) gate: Gate,
    pub clock: Clock,
    pub(super) answers: mpsc::Sender<Message>,
    last: Arc<Mutex<Option<Last>>>,
    last_board: Arc<Mutex<Option<boards::Last>>>,
}

/// The last reading that was answered.
struct Last {
    load: Load,
    /// Of the ledger, from before it was read.
    version: i64,
    at: tokio::time::Instant,
}

impl Runner {
    /// A runner that sends its answers to `answers`.
    #[must_use]
    pub fn new(
        ledger: SharedLedger,
        gate: Gate,
        clock: Clock,
        answers: mpsc::Sender<Message>,
    ) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(TASKS)),
            ledger,
            gate,
            clock,
            answers,
            last: Arc::default(),
            last_board: Arc::default(),
        }
    }

    /// Starts the task for `effect`, if it is one for the ledger or the gate.
    pub fn start(&self, effect: Effect) {
        let runner = self.clone();
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            // A ledger that does not answer must not collect tasks for ever (I33).
            if let Some(message) = lost(&effect, "too many questions wait for the ledger") {
                let _ = self.answers.try_send(message);
            }
            return;
        };
        tokio::spawn(async move {
            let _slot = slot;
            // The inner task is never cancelled; its panic is an answer like any other.
            let lost = lost(&effect, "a task of the screen panicked; see the log");
            let task = tokio::spawn({
                let runner = runner.clone();
                async move { runner.answer(effect).await }
            });
            let answer = task.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a task of the screen ended badly");
                lost
            });
            if let Some(message) = answer {
                // Nobody listens any more once the screen is gone.
                let _ = runner.answers.send(message).await;
            }
        });
    }

    /// What `effect` leads to. Awaited directly by the snapshot.
    pub async fn answer(&self, effect: Effect) -> Option<Message> {
        match effect {
            Effect::Load(load) => Some(self.load(load).await),
            Effect::More {
                generation,
                edge,
                query,
            } => Some(self.more(generation, edge, query.0).await),
            Effect::Detail { serial, id } => {
                let result = self.detail(&id).await.map_err(|e| e.to_string());
                Some(Message::Detail { serial, id, result })
            }
            Effect::Board(asking) => Some(self.board(*asking).await),
            Effect::Ask { serial, frozen } => {
                let result = self.ask(&frozen).await.map(Box::new);
                Some(Message::Asked { serial, result })
            }
            Effect::Decide {
                serial,
                frozen,
                note,
                typed,
            } => {
                let result = self.decide(&frozen, &note, typed).await;
                Some(Message::Done { serial, result })
            }
            Effect::Lookup { serial, frozen } => {
                let result = self.look_up(serial, &frozen).await;
                Some(Message::Done { serial, result })
            }
            Effect::Switch {
                serial,
                frozen,
                note,
            } => {
                let result = self.switch(&frozen, &note).await;
                Some(Message::Done { serial, result })
            }
            Effect::Desk { frozen, wish } => {
                Some(Message::AtDesk(self.at_desk(&frozen, wish).await))
            }
            Effect::Tell { serial, what, ids } => {
                let result = self.tell(what, &ids).await;
                Some(Message::Told {
                    serial,
                    what,
                    result,
                })
            }
            Effect::Copy(_)
            | Effect::Ring(_)
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Stop
            | Effect::Leave => None,
        }
    }

    async fn load(&self, load: Load) -> Message {
        let generation = load.generation;
        match self.try_load(load).await {
            Ok(message) => message,
            Err(error) => Message::LoadFailed {
                generation,
                why: error.to_string(),
            },
        }
    }

    async fn try_load(&self, load: Load) -> Result<Message, LedgerError> {
        let (as_of, at) = (self.clock.now(), tokio::time::Instant::now());
        let version = self.ledger.version().await?;
        let same = |l: &Last| l.load == load && l.version == version && l.at.elapsed() < REREAD;
        if self.last.lock().await.as_ref().is_some_and(same) {
            let generation = load.generation;
            return Ok(Message::Unchanged { generation, as_of });
        }
        // Not held meanwhile: a key that begins another list does not wait for the reading of the old one.
        let loaded = self.read(load.clone(), as_of).await?;
        let mut last = self.last.lock().await;
        if last
            .as_ref()
            .is_none_or(|l| l.load.generation <= load.generation)
        {
            *last = Some(Last { load, version, at });
        }
        Ok(Message::Loaded(Box::new(loaded)))
    }

    async fn read(&self, load: Load, as_of: Instant) -> Result<Loaded, LedgerError> {
        // What has nothing to do with each other is read at the same time.
        let (page, around) =
            tokio::try_join!(self.ledger.page(&load.query.0), self.around(load.beside))?;
        let present: BTreeSet<&OperationId> = page.rows.iter().map(|l| &l.row.id).collect();
        let missing: Vec<(OperationId, i64)> = load
            .shown
            .into_iter()
            .filter(|(id, _)| !present.contains(id))
            .collect();
        let others = if missing.is_empty() {
            Vec::new()
        } else {
            self.ledger.moved(&missing).await?
        };
        let tools = page
            .rows
            .iter()
            .map(|l| &l.row.tool)
            .chain(others.iter().map(|r| &r.tool));
        let tools = self.tools(tools);
        Ok(Loaded {
            generation: load.generation,
            as_of,
            page,
            others,
            tools,
            around,
        })
    }

    async fn around(&self, beside: Beside) -> Result<Option<Around>, LedgerError> {
        if beside == Beside::Nothing {
            return Ok(None);
        }
        let (counts, review, engines, standing) = tokio::try_join!(
            self.ledger.counts(),
            self.review(beside == Beside::AroundAndReview),
            self.engines(),
            self.standing(),
        )?;
        Ok(Some(Around {
            counts,
            review,
            engines,
            standing,
        }))
    }

    /// The head of the review list, for the bell.
    async fn review(&self, wanted: bool) -> Result<Option<Vec<OperationId>>, LedgerError> {
        if !wanted {
            return Ok(None);
        }
        self.ledger.review_head(WATCHED).await.map(Some)
    }

    fn tools<'a>(&self, names: impl Iterator<Item = &'a ToolName>) -> BTreeMap<ToolName, Terms> {
        let names: BTreeSet<&ToolName> = names.collect();
        names
            .into_iter()
            .filter_map(|name| Some((name.clone(), self.gate.terms(name).ok()?.clone())))
            .collect()
    }

    /// Engines that told within the last minute that they live.
    async fn engines(&self) -> Result<Engines, LedgerError> {
        let since = earlier(self.clock.now(), ALIVE);
        let all = self.ledger.engines().await?;
        let alive = all.iter().filter(|e| !e.stopped && e.seen_at > since);
        Ok(alive.fold(Engines::default(), |sum, e| Engines {
            alive: sum.alive.saturating_add(1),
            workers: sum.workers.saturating_add(e.workers),
        }))
    }

    async fn standing(&self) -> Result<Vec<Standing>, LedgerError> {
        let tools = self.ledger.tools().await?.into_iter();
        let standing = tools.filter_map(|state| {
            let why = match (&state.paused, &state.circuit.state) {
                (Some((by, why)), _) => format!("paused by {by}: {why}; nothing is sent"),
                (None, CircuitState::Open { since, .. }) => format!(
                    "the provider has failed since {}; nothing is sent but a probe",
                    since.format("%H:%M:%SZ")
                ),
                (None, CircuitState::Trial { .. }) => {
                    "the provider answers again; one attempt at a time".to_owned()
                }
                (None, CircuitState::Closed) => return None,
            };
            Some(Standing {
                tool: state.tool,
                why,
                paused: state.paused,
            })
        });
        Ok(standing.collect())
    }

    async fn more(&self, generation: u64, edge: Edge, query: PageQuery) -> Message {
        let page = self.ledger.page(&query).await.map_err(|e| e.to_string());
        let result = page.map(|mut page| {
            if edge != Edge::Below {
                page.rows.reverse();
            }
            page
        });
        Message::More {
            generation,
            edge,
            result,
        }
    }

    async fn detail(&self, id: &OperationId) -> Result<Option<Box<DetailView>>, LedgerError> {
        let Some(detail) = self.ledger.detail(id).await? else {
            return Ok(None);
        };
        let terms = self.gate.terms(&detail.op.row.tool).ok();
        Ok(Some(Box::new(DetailView {
            closings: self.gate.closings(&detail.op).ok(),
            decidable_at: terms.and_then(|t| guard::decidable_at(&detail.op, t)),
            word: terms.map_or("succeeded", |t| t.policy.words.success),
            detail,
        })))
    }
}

/// The answer where the task itself is lost.
fn lost(effect: &Effect, why: &str) -> Option<Message> {
    let why = || why.to_owned();
    Some(match effect {
        Effect::Load(load) => Message::LoadFailed {
            generation: load.generation,
            why: why(),
        },
        Effect::More {
            generation, edge, ..
        } => Message::More {
            generation: *generation,
            edge: *edge,
            result: Err(why()),
        },
        Effect::Detail { serial, id } => Message::Detail {
            serial: *serial,
            id: id.clone(),
            result: Err(why()),
        },
        Effect::Board(asking) => boards::lost(asking, why()),
        Effect::Ask { serial, .. } => Message::Asked {
            serial: *serial,
            result: Err(why()),
        },
        Effect::Desk { .. } => Message::AtDesk(Err(why())),
        Effect::Decide { serial, .. }
        | Effect::Lookup { serial, .. }
        | Effect::Switch { serial, .. } => Message::Done {
            serial: *serial,
            result: Err(Failure {
                why: format!("{}; look at the row before you act again", why()),
                moved_to: None,
            }),
        },
        Effect::Tell { serial, what, .. } => Message::Told {
            serial: *serial,
            what: *what,
            result: Err(why()),
        },
        Effect::Copy(_)
        | Effect::Ring(_)
        | Effect::Suspend
        | Effect::Redraw
        | Effect::Stop
        | Effect::Leave => return None,
    })
}
