//! The simulated provider: a stateful server that speaks Stripe's wire and goes wrong on order.
//!
//! Owns: the handle and its configuration; the parts are
//! - `http` the socket and the routes, `wire` requests and answers, `limits` who asks too much,
//!   `execution` a refund's way through the stages,
//! - `world`, `payments` and `disputes` the books, `keys` the idempotency layer, `state` all behind one lock,
//!   `time` the clock that came in and what was skipped,
//! - `reads`, `refunds`, `search`, `pages`, `objects` what endpoints read and say,
//! - `changes` what is worth an event, `events` their list, `webhooks` their queue and signature,
//!   `delivery` the task that sends them,
//! - `services` a help desk and a message channel, apart from all that,
//! - `scenario` the names of the faults, `script` and `step` their form as data, `fault` which
//!   request meets which, `records` what is reported, `journal` the same as a file.
//!
//! Never: reads the machine's clock (a [`Clock`] comes in), draws unseeded lots, or knows anything
//! about samekey's ledger and engine. Tests: beside the code and `tests/simulator/`.

mod changes;
mod delivery;
mod disputes;
mod events;
mod execution;
mod fault;
mod http;
mod ids;
mod journal;
mod keys;
mod limits;
mod objects;
mod pages;
mod payments;
mod reads;
mod records;
mod refunds;
mod scenario;
mod script;
mod search;
mod services;
mod state;
mod step;
mod time;
mod webhooks;
mod wire;
mod world;

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

pub use fault::{Fault, Faults, Plan, PlanError};
pub use records::{EffectRecord, EffectSource, Held, RequestRecord};
pub use scenario::Scenario;
pub use script::Script;
pub use services::{Made, Services, Trouble};
pub use step::RefundStatus;
pub use webhooks::{Retries, WebhookEndpoint};

use crate::clock::Clock;
use state::Shared;

/// How a simulator starts.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// What goes wrong.
    pub plan: Plan,
    /// Decides everything that is drawn.
    pub seed: u64,
    /// How long an honest answer takes (virtual time). A keyed request counts as executing for so
    /// long (S8).
    pub latency: Duration,
    /// How old a key gets before it is forgotten (S9).
    pub retention: Duration,
    /// The `type` of a 409 (S8): sources disagree.
    pub conflict_type: String,
    /// Who is told of events, if anybody.
    pub webhook: Option<WebhookEndpoint>,
    /// All time comes from here; it may be scaled or stand still.
    pub clock: Clock,
    /// A file to which every request, effect and reply is appended, a JSON object a line.
    pub log: Option<Arc<File>>,
}

impl SimConfig {
    /// A free port of this machine, no faults, seed 0, no latency, keys kept for 24 hours.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            plan: Plan::Honest,
            seed: 0,
            latency: Duration::ZERO,
            retention: Duration::from_hours(24),
            conflict_type: "invalid_request_error".to_owned(),
            webhook: None,
            clock,
            log: None,
        }
    }
}

/// A simulator without a socket: whoever has it brings the connections. It keeps events and sends
/// no webhooks.
#[derive(Clone, Debug)]
pub struct Unplugged(Arc<Shared>);

impl Unplugged {
    /// The books of a new simulator; `listen` is not looked at.
    ///
    /// # Errors
    /// If a scenario cannot be used.
    pub fn new(cfg: &SimConfig) -> Result<Self, PlanError> {
        Shared::new(cfg).map(|shared| Self(Arc::new(shared)))
    }

    /// Serves one connection, until it ends.
    pub fn serve(
        &self,
        io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        http::connection(io, peer, Arc::clone(&self.0))
    }

    /// As [`Simulator::effects`].
    #[must_use]
    pub fn effects(&self) -> Vec<EffectRecord> {
        self.0.state().0.effects()
    }

    /// As [`Simulator::requests`].
    #[must_use]
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.0.state().0.log.all()
    }

    /// From now on nothing goes wrong any more.
    pub fn heal(&self) {
        let (mut state, _) = self.0.state();
        state.faults = Faults::none();
        state.outage = None;
    }
}

/// A running simulator. Dropping it stops it too, without waiting.
#[derive(Debug)]
pub struct Simulator {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    /// Sends webhooks; ends when this is dropped.
    delivery: JoinSet<()>,
}

impl Simulator {
    /// Listens and serves in the background.
    ///
    /// # Errors
    /// If the address cannot be listened on, or (kind `InvalidInput`) a scenario or the webhooks'
    /// endpoint cannot be used.
    pub async fn start(cfg: SimConfig) -> io::Result<Self> {
        let unusable = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let shared = Shared::new(&cfg).map_err(|error| unusable(error.to_string()))?;
        let shared = Arc::new(shared);
        let mut delivery = JoinSet::new();
        if let Some(endpoint) = cfg.webhook {
            let client = delivery::client(&shared, &endpoint).map_err(unusable)?;
            delivery.spawn(delivery::run(Arc::clone(&shared), endpoint, client));
        }
        let listener = TcpListener::bind(cfg.listen).await?;
        let addr = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(http::serve(listener, Arc::clone(&shared), stopped));
        Ok(Self {
            addr,
            shared,
            stop: Some(stop),
            task,
            delivery,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://…` without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Every refund that took money, oldest first; [`EffectRecord::source`] tells whose it is.
    #[must_use]
    pub fn effects(&self) -> Vec<EffectRecord> {
        self.shared.state().0.effects()
    }

    /// The last hundred thousand requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.shared.state().0.log.all()
    }

    /// The signal that a reply is being held.
    #[must_use]
    pub fn held(&self) -> Held {
        self.shared.holds.watch()
    }

    /// Stops listening, cuts all connections and waits until they are gone.
    pub async fn stop(mut self) {
        self.delivery.shutdown().await;
        if let Some(stop) = self.stop.take() {
            // An error means that the server has ended already.
            let _ = stop.send(());
        }
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "the simulator ended badly");
        }
    }
}
