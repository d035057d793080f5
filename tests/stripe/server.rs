//! A TCP server that counts requests and answers each as it is told, byte by byte.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the server does with a connection once a request is read.
#[derive(Clone)]
pub enum Act {
    /// Writes these bytes and closes.
    Say(Vec<u8>),
    /// Resets the connection.
    Reset,
    /// Says these bytes, then nothing, until the client hangs up.
    Silence(Vec<u8>),
    /// Closes as soon as the connection is there, without reading.
    HangUp,
}

/// A whole JSON answer.
pub fn json(status: u16, body: &str) -> Act {
    answer(status, "Content-Type: application/json\r\n", body)
}

/// A whole answer with further headers (each line ended).
pub fn answer(status: u16, headers: &str, body: &str) -> Act {
    let length = body.len();
    Act::Say(
        format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
            .into_bytes(),
    )
}

/// One request as it came over the wire.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `GET /v1/refunds?…`
    pub line: String,
    /// Header lines, names in lower case.
    pub head: String,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|l| l.split_once(": "));
        lines.find(|(n, _)| *n == name).map(|(_, v)| v)
    }
}

/// The server. Its tasks end with the test's runtime.
pub struct Server {
    pub origin: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// How many connections were made, and how many requests read.
    counts: watch::Receiver<(usize, usize)>,
}

impl Server {
    /// Answers request by request with what `respond` says for its number and text.
    pub async fn start(respond: impl Fn(usize, &Seen) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (tell, counts) = watch::channel((0, 0));
        let (log, respond, tell) = (Arc::clone(&seen), Arc::new(respond), Arc::new(tell));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tell.send_modify(|(connections, _)| *connections += 1);
                let (log, respond, tell) = (log.clone(), respond.clone(), tell.clone());
                tokio::spawn(async move { serve(socket, &log, &*respond, &tell).await });
            }
        });
        Self {
            origin: format!("http://{address}"),
            seen,
            counts,
        }
    }

    /// Gives every request the same answer.
    pub async fn always(act: Act) -> Self {
        Self::start(move |_, _| act.clone()).await
    }

    pub fn requests(&self) -> Vec<Seen> {
        self.seen.lock().expect("log").clone()
    }

    /// Waits until so many connections were made and requests read.
    pub async fn reached(&self, connections: usize, requests: usize) {
        let mut counts = self.counts.clone();
        counts
            .wait_for(|(c, r)| *c >= connections && *r >= requests)
            .await
            .expect("server");
    }
}

async fn serve(
    mut socket: TcpStream,
    log: &Mutex<Vec<Seen>>,
    respond: &(impl Fn(usize, &Seen) -> Act + Send + Sync),
    tell: &watch::Sender<(usize, usize)>,
) {
    let nothing = Seen {
        line: String::new(),
        head: String::new(),
        body: String::new(),
    };
    if matches!(respond(usize::MAX, &nothing), Act::HangUp) {
        return;
    }
    let Some(request) = read(&mut socket).await else {
        return;
    };
    let number = {
        let mut log = log.lock().expect("log");
        log.push(request.clone());
        log.len()
    };
    tell.send_modify(|(_, requests)| *requests += 1);
    match respond(number, &request) {
        Act::Say(bytes) => {
            let _ = socket.write_all(&bytes).await;
            let _ = socket.shutdown().await;
            drain(&mut socket).await;
        }
        Act::Reset => socket.set_zero_linger().expect("linger"),
        Act::Silence(bytes) => {
            let _ = socket.write_all(&bytes).await;
            drain(&mut socket).await;
        }
        Act::HangUp => {}
    }
}

/// Reads until the client hangs up, so that closing does not turn into a reset.
async fn drain(socket: &mut TcpStream) {
    let mut buffer = [0; 4096];
    while socket.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
}

async fn read(socket: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let (line, head) = head.split_once("\r\n")?;
            let lines = head.lines().filter_map(|l| l.split_once(':'));
            let lines = lines.map(|(n, v)| [n.to_lowercase().as_str(), v.trim()].join(": "));
            let head = lines.collect::<Vec<_>>().join("\n");
            let seen = Seen {
                line: line.trim_end_matches(" HTTP/1.1").to_owned(),
                head,
                body: body.to_owned(),
            };
            let length = seen
                .header("content-length")
                .map_or(Some(0), |v| v.parse().ok())?;
            if body.len() >= length {
                return Some(seen);
            }
        }
        match socket.read(&mut buffer).await {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}
