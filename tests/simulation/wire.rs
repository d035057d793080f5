//! The network between samekey's adapter and the simulated provider, in memory: each connection passes
//! a middle that reads a whole request, then loses, delays, cuts or spoils it or its reply.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use samekey::provider::{Stream, Wire};
use samekey::simulator::Unplugged;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::Handle;

use crate::core::{Core, lock};
use crate::judge::{Judge, Post};
use crate::options::{Guard, Kind, between, chance};
use crate::people::{self, Hands};
use crate::store::Store;

/// A server closes a connection on which nothing is asked for so long.
const IDLE: Duration = Duration::from_secs(30);
const BUFFER: usize = 1 << 20;

pub struct SimWire {
    pub core: Arc<Core>,
    pub judge: Arc<Judge>,
    pub store: Arc<Store>,
    pub provider: Unplugged,
    /// Where the provider's side of a connection lives.
    pub room: Handle,
    pub dice: Mutex<ChaCha8Rng>,
    /// Until when nobody reaches the provider (true time).
    pub unreachable: Mutex<Duration>,
    /// Until when no refund request arrives.
    pub blackout: Mutex<Duration>,
    /// Who stops rows while their requests are on the way; taken away at the end.
    pub people: Mutex<Option<Hands>>,
}

/// What one exchange meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Luck {
    Fine,
    RequestLost,
    RequestLate(Duration),
    /// Once more, so long after its answer.
    RequestTwice(Duration),
    ReplyLost,
    ReplyLate(Duration),
    ReplyCut(u32),
    ReplyGarbled(u32),
    Unauthorised,
}

/// The same wire as one adapter has it.
pub struct Line(pub Arc<SimWire>);

#[async_trait]
impl Wire for Line {
    async fn dial(&self) -> io::Result<Box<dyn Stream>> {
        let wire = &self.0;
        if wire.is_unreachable() || wire.refuses() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (client, server) = tokio::io::duplex(BUFFER);
        wire.room.spawn(carry(Arc::clone(wire), server));
        Ok(Box::new(client))
    }
}

impl SimWire {
    fn is_unreachable(&self) -> bool {
        !self.core.is_healed() && self.core.now() < *lock(&self.unreachable)
    }

    /// A person who stops the row just now.
    fn perhaps_stopped(&self, post: &Post) {
        let kinds = &self.core.options;
        if !kinds.has(Kind::StopInFlight) || self.core.is_healed() {
            return;
        }
        let (hit, after) = {
            let d = &mut *lock(&self.dice);
            (chance(d, 30), between(d, 0, 3_000))
        };
        if let (true, Some(hands)) = (hit, lock(&self.people).clone()) {
            let room = hands.room.clone();
            room.spawn(people::stop(hands, post.operation.clone(), after));
        }
    }

    fn refuses(&self) -> bool {
        let has = self.core.options.has(Kind::ConnectRefused) && !self.core.is_healed();
        has && chance(&mut lock(&self.dice), 15)
    }

    fn luck(&self, posts: bool) -> Luck {
        if self.core.is_healed() {
            return Luck::Fine;
        }
        let options = &self.core.options;
        let mut dice = lock(&self.dice);
        let d = &mut *dice;
        let percent = if posts { 22 } else { 4 };
        let hit = |kind, d: &mut ChaCha8Rng| options.has(kind) && chance(d, percent);
        let settle = u64::try_from(options.terms.profile.settle_time.as_millis()).unwrap_or(0);
        if hit(Kind::RequestLost, d) {
            return Luck::RequestLost;
        }
        if posts && hit(Kind::RequestLate, d) {
            return Luck::RequestLate(between(d, 1, settle - 1));
        }
        if hit(Kind::ReplyLost, d) {
            return Luck::ReplyLost;
        }
        if hit(Kind::ReplyLate, d) {
            return Luck::ReplyLate(between(d, 100, 20_000));
        }
        if hit(Kind::ReplyCut, d) {
            return Luck::ReplyCut(d.random_range(0..1000));
        }
        if hit(Kind::ReplyGarbled, d) {
            return Luck::ReplyGarbled(d.random_range(0..1000));
        }
        if hit(Kind::Unauthorised, d) {
            return Luck::Unauthorised;
        }
        if posts && hit(Kind::RequestTwice, d) {
            return Luck::RequestTwice(between(d, 1, settle / 2));
        }
        Luck::Fine
    }
}

/// One connection, from its first byte to its last.
async fn carry(wire: Arc<SimWire>, mut client: DuplexStream) {
    let truth = wire.core.truth.clone();
    let asked = truth.timeout(IDLE, read_request(&mut client)).await;
    let Some(Some(request)) = asked else { return };
    let post = post_of(&request);
    if let Some(post) = &post {
        wire.judge.sent(&wire.store, post);
    }
    let dark = !wire.core.is_healed() && wire.core.now() < *lock(&wire.blackout);
    if wire.is_unreachable() || (dark && post.is_some()) {
        return;
    }
    if let Some(post) = &post {
        wire.perhaps_stopped(post);
    }
    let luck = wire.luck(post.is_some());
    if luck != Luck::Fine {
        wire.core.note(format!("wire: {luck:?}"));
    }
    match luck {
        Luck::RequestLost => return,
        Luck::RequestLate(by) => truth.sleep(by).await,
        Luck::Unauthorised => {
            let _ = client.write_all(&unauthorised()).await;
            return;
        }
        _ => truth.sleep(wire.core.options.latency / 4).await,
    }
    let Some(mut reply) = ask(&wire, &request, &mut client, luck).await else {
        return;
    };
    if post.is_some() {
        wire.judge.agree();
    }
    match luck {
        Luck::ReplyLost => return,
        Luck::ReplyLate(by) => truth.sleep(by).await,
        Luck::RequestTwice(after) if copied(&reply) => {
            let wire = Arc::clone(&wire);
            tokio::spawn(async move { copy(&wire, &request, after).await });
        }
        Luck::ReplyCut(at) => reply.truncate(part(reply.len(), at)),
        Luck::ReplyGarbled(at) => {
            let at = part(reply.len(), at);
            if let Some(byte) = reply.get_mut(at) {
                *byte = 0xff;
            }
        }
        _ => {}
    }
    let _ = client.write_all(&reply).await;
    let _ = client.shutdown().await;
}

/// Whether a copy of the request may still do something: it is an assumption that what refused a request
/// refuses its copies (`tests/model`, "assumptions cannot be dropped").
fn copied(reply: &[u8]) -> bool {
    let status = reply.get(9..12).unwrap_or_default();
    !status.starts_with(b"4") || status == b"409"
}

/// The request arrives once more, and nobody reads what comes back.
async fn copy(wire: &SimWire, request: &[u8], after: Duration) {
    wire.core.truth.sleep(after).await;
    let (mut near, far) = tokio::io::duplex(BUFFER);
    tokio::spawn(wire.provider.serve(far));
    if near.write_all(request).await.is_err() {
        return;
    }
    let _ = near.read_to_end(&mut Vec::new()).await;
    wire.core.saw("a request that arrived twice");
    wire.judge.agree();
}

fn part(length: usize, of_thousand: u32) -> usize {
    length * of_thousand as usize / 1000
}

/// Hands the request to the provider and reads its whole reply. What the provider does it does on
/// arrival; a client that is gone by then only misses the reply.
async fn ask(
    wire: &SimWire,
    request: &[u8],
    client: &mut DuplexStream,
    luck: Luck,
) -> Option<Vec<u8>> {
    let (mut near, far) = tokio::io::duplex(BUFFER);
    tokio::spawn(wire.provider.serve(far));
    near.write_all(request).await.ok()?;
    let mut reply = Vec::new();
    let mut byte = [0_u8; 1];
    let gone = async {
        if let Luck::RequestLate(_) = luck {
            // It left long ago; the provider still has its say.
            std::future::pending::<()>().await;
        }
        while client.read(&mut byte).await.is_ok_and(|n| n > 0) {}
    };
    tokio::select! {
        biased;
        read = near.read_to_end(&mut reply) => read.ok()?,
        () = gone => return None,
    };
    if wire.core.options.lacks(Guard::WholeListOnly) {
        // The first page claims to be the last.
        const MORE: &[u8] = br#""has_more": true"#;
        if let Some(at) = reply.windows(MORE.len()).position(|w| w == MORE) {
            reply[at..at + MORE.len()].copy_from_slice(br#""has_more":false"#);
        }
    }
    Some(reply)
}

/// A request's bytes: head, and as much body as it announces. `None` where the client hung up first.
async fn read_request(client: &mut DuplexStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 4096];
    loop {
        if let Some(length) = whole(&bytes)
            && bytes.len() >= length
        {
            return Some(bytes);
        }
        match client.read(&mut chunk).await {
            Ok(n) if n > 0 => bytes.extend_from_slice(&chunk[..n]),
            _ => return None,
        }
    }
}

fn whole(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let length = header(&head, "content-length").and_then(|v| v.parse::<usize>().ok());
    Some(end + length.unwrap_or(0))
}

fn header(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (n, value) = line.split_once(':')?;
        n.eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    })
}

fn post_of(request: &[u8]) -> Option<Post> {
    let text = String::from_utf8_lossy(request);
    let (head, body) = text.split_once("\r\n\r\n")?;
    if !head.starts_with("POST /v1/refunds ") {
        return None;
    }
    let form = form_urlencoded::parse(body.as_bytes());
    let operation = form
        .into_iter()
        .find(|(n, _)| n == "metadata[operation_id]");
    Some(Post {
        key: header(head, "idempotency-key").unwrap_or_else(|| "(none)  ".into()),
        operation: operation.map(|(_, v)| v.into_owned()).unwrap_or_default(),
        body: body.to_owned(),
    })
}

fn unauthorised() -> Vec<u8> {
    let body =
        r#"{"error":{"type":"invalid_request_error","message":"Invalid API Key provided."}}"#;
    let head = format!(
        "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}
