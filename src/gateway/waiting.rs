//! Waiting for answers: one task asks the ledger for all that are waited for, whenever it has changed.
//!
//! However many wait, a change costs one reading. The ledger's hint wakes; a slow look is the safety net
//! (L6). Never: keeps a waiter whose client is gone. Tests: `tests/gateway/`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

use crate::domain::ids::{AgentName, CallId};
use crate::domain::tool_call::ToolCall;
use crate::ledger::SharedLedger;

/// Between two looks, however much changes.
const PACE: Duration = Duration::from_millis(15);
/// The safety net behind the ledger's hint.
const POLL: Duration = Duration::from_secs(1);
/// Calls that are waited for at a time; whoever comes then is told to ask again.
const MOST: usize = 8192;

type Name = (AgentName, CallId);
type Waiters = HashMap<Name, Vec<oneshot::Sender<ToolCall>>>;

/// Who waits for what.
#[derive(Default)]
struct Board {
    waiters: Mutex<Waiters>,
    came: Notify,
}

/// The waiting room.
pub(super) struct Waiting {
    board: Arc<Board>,
    closed: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Waiting {
    pub(super) fn start(ledger: SharedLedger) -> Self {
        let board = Arc::new(Board::default());
        let (closed, _) = watch::channel(false);
        let task = tokio::spawn(look(Arc::clone(&board), ledger));
        Self {
            board,
            closed,
            task,
        }
    }

    /// The call with its answer, if it comes within `limit` (real time) and before the end.
    pub(super) async fn answer(
        &self,
        agent: &AgentName,
        id: &CallId,
        limit: Duration,
    ) -> Option<ToolCall> {
        let mut closed = self.closed.subscribe();
        let coming = self.board.join((agent.clone(), id.clone()))?;
        let answer = async {
            tokio::select! {
                answer = coming => answer.ok(),
                _ = closed.wait_for(|closed| *closed) => None,
            }
        };
        tokio::time::timeout(limit, answer).await.ok().flatten()
    }

    /// Nobody waits any longer.
    pub(super) fn close(&self) {
        self.closed.send_replace(true);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, name: Name) -> Option<oneshot::Receiver<ToolCall>> {
        let mut waiters = self.lock();
        if waiters.len() >= MOST && !waiters.contains_key(&name) {
            return None;
        }
        let (sender, coming) = oneshot::channel();
        waiters.entry(name).or_default().push(sender);
        drop(waiters);
        self.came.notify_one();
        Some(coming)
    }

    /// What is still waited for.
    fn names(&self) -> Vec<Name> {
        let mut waiters = self.lock();
        waiters.retain(|_, all| {
            all.retain(|sender| !sender.is_closed());
            !all.is_empty()
        });
        waiters.keys().cloned().collect()
    }

    fn tell(&self, call: &ToolCall) {
        let name = (call.agent.clone(), call.id.clone());
        let told = self.lock().remove(&name);
        for sender in told.into_iter().flatten() {
            // Whoever left meanwhile asks again.
            let _ = sender.send(call.clone());
        }
    }
}

async fn look(board: Arc<Board>, ledger: SharedLedger) {
    let mut changed = ledger.changed();
    loop {
        changed.mark_unchanged();
        let names = board.names();
        if names.is_empty() {
            board.came.notified().await;
            continue;
        }
        match ledger.serving().answered_of(&names).await {
            Ok(calls) => calls.iter().for_each(|call| board.tell(call)),
            Err(error) => tracing::warn!(%error, "answers that are waited for could not be read"),
        }
        tokio::time::sleep(PACE).await;
        tokio::select! {
            // Either wakes; the ledger is asked again in any case.
            _ = changed.changed() => {}
            () = board.came.notified() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}
