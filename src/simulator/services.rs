//! A help desk and a message channel, simulated over real HTTP: what described tools are proven against.
//!
//! Owns: their books and what goes wrong on order. Neither honours a key, and the desk makes a second ticket
//! for a second request, whatever id it carries: who asks twice has two. Never: knows anything about samekey.
//! Tests: `tests/tools/`.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinHandle, JoinSet};

/// Most objects that are kept.
const MAX_OBJECTS: usize = 100_000;

/// What goes wrong with one create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing happens, and no answer comes.
    TimeoutBefore,
    /// It happens, and no answer comes: the client has to hang up.
    TimeoutAfter,
    /// It happens, and the answer is a 502.
    BadGatewayAfter,
    /// Nothing happens, and the answer is a 503.
    UnavailableBefore,
    /// It happens, and the answer says that it was there already.
    Conflict,
    /// It happens, but not all of it.
    Partial,
    /// 429, before anything else.
    Limited,
    /// 422.
    Refused,
    /// It happens, and the answer is no JSON.
    Garbled,
    /// It happens, and does not show in searches until [`Services::index`].
    Unindexed,
}

/// A ticket or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub id: String,
    /// The id that its maker sent along.
    pub correlation: String,
    /// The body it was made of.
    pub body: Value,
    indexed: bool,
}

#[derive(Debug, Default)]
struct Books {
    tickets: Vec<Made>,
    messages: Vec<Made>,
    troubles: VecDeque<Trouble>,
    creates: usize,
    lookups: usize,
    /// Headers of the creates, by name.
    headers: Vec<Vec<(String, String)>>,
}

#[derive(Debug, Default)]
struct Shared {
    books: Mutex<Books>,
    arrived: Notify,
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Both services at one address.
#[derive(Debug)]
pub struct Services {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Services {
    /// Starts on a free port of this machine.
    ///
    /// # Errors
    /// No port is to be had.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let routes = Router::new()
            .route("/tickets", post(create_ticket).get(find_tickets))
            .route("/tickets/{id}", get(one_ticket))
            .route("/messages", post(send_message).get(find_messages))
            .route("/health", get(|| async { StatusCode::NO_CONTENT }))
            .with_state(Arc::clone(&shared));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(listener, routes, stopped));
        Ok(Self {
            address,
            shared,
            stop: Some(stop),
            task,
        })
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What goes wrong with the next creates, one each.
    pub fn then(&self, troubles: &[Trouble]) {
        self.shared.books().troubles.extend(troubles);
    }

    #[must_use]
    pub fn tickets(&self) -> Vec<Made> {
        self.shared.books().tickets.clone()
    }

    #[must_use]
    pub fn messages(&self) -> Vec<Made> {
        self.shared.books().messages.clone()
    }

    /// Creates that arrived, with or without effect.
    #[must_use]
    pub fn creates(&self) -> usize {
        self.shared.books().creates
    }

    /// Questions that arrived.
    #[must_use]
    pub fn lookups(&self) -> usize {
        self.shared.books().lookups
    }

    /// The headers of the create number `n`, names in small letters.
    #[must_use]
    pub fn headers(&self, n: usize) -> Vec<(String, String)> {
        self.shared
            .books()
            .headers
            .get(n)
            .cloned()
            .unwrap_or_default()
    }

    /// Everything shows in searches from now on.
    pub fn index(&self) {
        let mut books = self.shared.books();
        let Books {
            tickets, messages, ..
        } = &mut *books;
        for made in tickets.iter_mut().chain(messages) {
            made.indexed = true;
        }
    }

    /// Waits for the next create.
    pub async fn arrived(&self) {
        self.shared.arrived.notified().await;
    }

    /// Ends it.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = self.task.await;
    }
}

/// Accepts connections until `stop` fires or is dropped; then closes all of them.
async fn serve(listener: TcpListener, routes: Router, mut stop: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((socket, _)) = accepted else {
            continue;
        };
        let routes = TowerToHyperService::new(routes.clone());
        connections.spawn(async move {
            // A client that hangs up ends its request, answered or not.
            let talk = http1::Builder::new().serve_connection(TokioIo::new(socket), routes);
            let _ = talk.await;
        });
        while connections.try_join_next().is_some() {}
    }
    connections.shutdown().await;
}

/// Which of the two books.
#[derive(Clone, Copy)]
enum Kind {
    Ticket,
    Message,
}

impl Kind {
    fn correlation(self) -> &'static str {
        match self {
            Self::Ticket => "external_id",
            Self::Message => "reference",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ticket => "ticket",
            Self::Message => "message",
        }
    }

    fn shown(self, made: &Made) -> Value {
        json!({ "id": made.id, self.correlation(): made.correlation })
    }
}

fn list(kind: Kind, books: &mut Books) -> &mut Vec<Made> {
    match kind {
        Kind::Ticket => &mut books.tickets,
        Kind::Message => &mut books.messages,
    }
}

fn answer(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = [("content-type", "application/json")];
    (status, headers, body.to_string()).into_response()
}

fn error(status: u16, why: &str) -> Response {
    answer(status, &json!({ "error": why }))
}

/// No answer: the client has to hang up.
async fn silence() -> Response {
    std::future::pending().await
}

fn known(headers: &HeaderMap) -> bool {
    let token = headers.get("authorization").and_then(|v| v.to_str().ok());
    token.is_some_and(|t| t.len() > "Bearer ".len() && t.starts_with("Bearer "))
}

async fn create_ticket(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    create(&shared, Kind::Ticket, &headers, &body).await
}

async fn send_message(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    create(&shared, Kind::Message, &headers, &body).await
}

async fn create(shared: &Shared, kind: Kind, headers: &HeaderMap, body: &[u8]) -> Response {
    let (trouble, made) = {
        let mut books = shared.books();
        books.creates = books.creates.saturating_add(1);
        let named = headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        });
        let named = named.collect();
        books.headers.push(named);
        let trouble = books.troubles.pop_front();
        let before = [
            Some(Trouble::TimeoutBefore),
            Some(Trouble::UnavailableBefore),
            Some(Trouble::Limited),
            Some(Trouble::Refused),
        ];
        let made = if before.contains(&trouble) || !known(headers) {
            None
        } else {
            book(&mut books, kind, body, trouble != Some(Trouble::Unindexed))
        };
        (trouble, made)
    };
    shared.arrived.notify_one();
    if !known(headers) {
        return error(401, "no token");
    }
    match (trouble, made) {
        (Some(Trouble::TimeoutBefore), _)
        | (Some(Trouble::TimeoutAfter | Trouble::Unindexed), Some(_)) => silence().await,
        (Some(Trouble::UnavailableBefore), _) => error(503, "try later"),
        (Some(Trouble::Limited), _) => error(429, "slow down"),
        (Some(Trouble::Refused), _) => error(422, "the subject is not allowed"),
        (_, None) => error(400, "the body cannot be read"),
        (Some(Trouble::BadGatewayAfter), Some(_)) => answer(502, &Value::Null),
        (Some(Trouble::Garbled), Some(_)) => (StatusCode::CREATED, "<html>").into_response(),
        (Some(Trouble::Conflict), Some(made)) => {
            answer(409, &json!({ kind.name(): kind.shown(&made) }))
        }
        (Some(Trouble::Partial), Some(made)) => {
            let mut shown = kind.shown(&made);
            shown["warnings"] = json!(["no agent is free"]);
            answer(201, &json!({ kind.name(): shown }))
        }
        (None, Some(made)) => answer(201, &json!({ kind.name(): kind.shown(&made) })),
    }
}

fn book(books: &mut Books, kind: Kind, body: &[u8], indexed: bool) -> Option<Made> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let correlation = body.get(kind.correlation())?.as_str()?.to_owned();
    let all = list(kind, books);
    if all.len() >= MAX_OBJECTS {
        return None;
    }
    let number = all.len().saturating_add(1);
    let id = match kind {
        Kind::Ticket => number.to_string(),
        Kind::Message => format!("m-{number}"),
    };
    let made = Made {
        id,
        correlation,
        body,
        indexed,
    };
    all.push(made.clone());
    Some(made)
}

async fn find_tickets(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    find(&shared, Kind::Ticket, query.as_deref(), &headers)
}

async fn find_messages(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    find(&shared, Kind::Message, query.as_deref(), &headers)
}

fn find(shared: &Shared, kind: Kind, query: Option<&str>, headers: &HeaderMap) -> Response {
    let mut books = shared.books();
    books.lookups = books.lookups.saturating_add(1);
    if !known(headers) {
        return error(401, "no token");
    }
    let wanted = form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find(|(name, _)| name == kind.correlation())
        .map(|(_, value)| value.into_owned());
    let Some(wanted) = wanted else {
        return error(400, "name what is looked for");
    };
    let found: Vec<Value> = list(kind, &mut books)
        .iter()
        .filter(|m| m.indexed && m.correlation == wanted)
        .map(|m| kind.shown(m))
        .collect();
    let name = match kind {
        Kind::Ticket => "tickets",
        Kind::Message => "messages",
    };
    answer(200, &json!({ name: found }))
}

async fn one_ticket(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let mut books = shared.books();
    books.lookups = books.lookups.saturating_add(1);
    if !known(&headers) {
        return error(401, "no token");
    }
    match books.tickets.iter().find(|t| t.id == id) {
        Some(made) => answer(200, &Kind::Ticket.shown(made)),
        None => error(404, "there is no such ticket"),
    }
}
