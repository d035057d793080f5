//! Somebody who takes webhooks: remembers what came and answers as told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use hmac::{Hmac, Mac as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

/// Longest wait for something that has to come (real time).
const PATIENCE: Duration = Duration::from_secs(20);

/// A webhook as it came over the socket.
#[derive(Clone, Debug)]
pub struct Delivered {
    pub signature: String,
    pub body: String,
}

impl Delivered {
    pub fn event(&self) -> Value {
        serde_json::from_str(&self.body).expect("an event")
    }

    pub fn kind(&self) -> String {
        self.event()["type"].as_str().unwrap_or_default().to_owned()
    }

    /// The signature's time.
    pub fn at(&self) -> i64 {
        let first = self.signature.split(',').next().expect("a time");
        let at = first.strip_prefix("t=").expect("t first");
        at.parse().expect("seconds")
    }

    /// How many of its `v1` signatures are made with `secret` over time, dot and raw body.
    pub fn signed_with(&self, secret: &str) -> usize {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("a key");
        mac.update(format!("{}.{}", self.at(), self.body).as_bytes());
        let digest = mac.finalize().into_bytes();
        let hex: Vec<_> = digest.iter().map(|b| format!("{b:02x}")).collect();
        let hex = hex.concat();
        let all = self
            .signature
            .split(',')
            .filter_map(|p| p.strip_prefix("v1="));
        all.filter(|v| *v == hex).count()
    }
}

/// A receiver on loopback.
pub struct Receiver {
    addr: std::net::SocketAddr,
    got: mpsc::Receiver<Delivered>,
    answers: Arc<Mutex<VecDeque<u16>>>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let addr = listener.local_addr().expect("an address");
        let answers = Arc::new(Mutex::new(VecDeque::new()));
        let (send, got) = mpsc::channel(1000);
        let say = Arc::clone(&answers);
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.expect("accept");
                let Some(delivered) = read(&mut socket).await else {
                    continue;
                };
                let status = say.lock().expect("answers").pop_front().unwrap_or(200);
                let text = format!(
                    "HTTP/1.1 {status} X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\
                     Connection: close\r\n\r\n"
                );
                // The test may have seen enough.
                let _ = socket.write_all(text.as_bytes()).await;
                if send.send(delivered).await.is_err() {
                    return;
                }
            }
        });
        Self { addr, got, answers }
    }

    /// The next replies' statuses; 200 after them.
    pub fn answer(&self, statuses: &[u16]) {
        self.answers.lock().expect("answers").extend(statuses);
    }

    pub fn endpoint(&self, secrets: &[&str]) -> WebhookEndpoint {
        let secrets = secrets.iter().map(|s| (*s).to_owned()).collect();
        WebhookEndpoint::new(&self.url(), secrets).expect("an endpoint")
    }

    pub fn url(&self) -> String {
        format!("http://{}/webhooks/stripe", self.addr)
    }

    /// The next webhook.
    pub async fn next(&mut self) -> Delivered {
        let next = tokio::time::timeout(PATIENCE, self.got.recv()).await;
        next.expect("a webhook in time").expect("a receiver")
    }

    /// The next `n` webhooks' types.
    pub async fn kinds(&mut self, n: usize) -> Vec<String> {
        let mut all = Vec::new();
        while all.len() < n {
            all.push(self.next().await.kind());
        }
        all
    }

    /// Nothing that should not be there has come. Call it when the simulator has nothing to send.
    pub fn nothing(&mut self) {
        if let Ok(delivered) = self.got.try_recv() {
            panic!("{delivered:?} came");
        }
    }
}

async fn read(socket: &mut TcpStream) -> Option<Delivered> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let n = socket.read(&mut part).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&part[..n]);
        let text = String::from_utf8(bytes.clone()).ok()?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|l| l.split_once(": "));
            lines
                .find(|(n, _)| n.eq_ignore_ascii_case(name))
                .map(|(_, v)| v.to_owned())
        };
        let length: usize = header("content-length")?.parse().ok()?;
        if body.len() < length {
            continue;
        }
        assert!(head.starts_with("POST /webhooks/stripe HTTP/1.1"), "{head}");
        return Some(Delivered {
            signature: header("stripe-signature")?,
            body: body.to_owned(),
        });
    }
}
