//! Delivered is a fact of its own (R82, R85): noted once an answer was written, and by nobody before.
//!
//! *Written* means over HTTP: the system took the last byte of the response without an error (`line`); on
//! standard output: the line was flushed. That the caller read it is more than anyone can see from here:
//! `POST /v1/tool-calls/ID/ack` is the sure form. What is lost on the way to the ledger stays `pending`, is
//! never sent again by itself, and is delivered when it is asked for again. Tests: `tests/gateway/delivery.rs`.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::domain::ids::{AgentName, CallId};
use crate::ledger::SharedLedger;

/// Deliveries on their way to the ledger.
const MOST: usize = 4096;
/// Noted in one transaction.
const TOGETHER: usize = 64;

type Delivered = (AgentName, CallId);

/// For one answer: whoever writes it says so here.
#[derive(Debug)]
pub struct Receipt {
    call: Delivered,
    courier: mpsc::Sender<Delivered>,
}

impl Receipt {
    /// The answer was written without error.
    pub fn written(self) {
        if let Err(error) = self.courier.try_send(self.call) {
            tracing::warn!(%error, "a delivery was not noted: the call stays pending");
        }
    }
}

/// Where whoever makes an answer leaves its receipt for whoever writes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tray(Arc<Mutex<Option<Receipt>>>);

impl Tray {
    pub(super) fn with(receipt: Receipt) -> Self {
        Self(Arc::new(Mutex::new(Some(receipt))))
    }

    pub(super) fn put(&self, receipt: Receipt) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(receipt);
    }

    pub(super) fn take(&self) -> Option<Receipt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Notes deliveries in the ledger, several at a time.
pub(super) struct Courier {
    sender: mpsc::Sender<Delivered>,
    end: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Courier {
    pub(super) fn start(ledger: SharedLedger) -> Self {
        let (sender, receiver) = mpsc::channel(MOST);
        let (end, ended) = watch::channel(false);
        let task = tokio::spawn(note(ledger, receiver, ended));
        let task = Mutex::new(Some(task));
        Self { sender, end, task }
    }

    pub(super) fn receipt(&self, agent: &AgentName, call: &CallId) -> Receipt {
        Receipt {
            call: (agent.clone(), call.clone()),
            courier: self.sender.clone(),
        }
    }

    /// Notes what was written so far, and ends.
    pub(super) async fn end(&self) {
        self.end.send_replace(true);
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "noting deliveries ended badly");
        }
    }
}

async fn note(
    ledger: SharedLedger,
    mut receiver: mpsc::Receiver<Delivered>,
    mut ended: watch::Receiver<bool>,
) {
    let mut some = Vec::with_capacity(TOGETHER);
    loop {
        let closing = *ended.borrow();
        if closing {
            receiver.close();
        }
        let got = tokio::select! {
            got = receiver.recv_many(&mut some, TOGETHER) => got,
            _ = ended.wait_for(|end| *end), if !closing => continue,
        };
        if got == 0 {
            return;
        }
        if let Err(error) = ledger.serving().all_delivered(&some).await {
            tracing::warn!(%error, "deliveries were not noted: the calls stay pending");
        }
        some.clear();
    }
}
