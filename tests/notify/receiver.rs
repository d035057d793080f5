//! A webhook's other end: keeps what it got and answers as it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A server on a free port of this machine.
pub struct Receiver {
    port: u16,
    inner: Arc<Inner>,
    task: JoinHandle<()>,
}

struct Inner {
    /// Head and body of every request, in the order of arrival.
    got: watch::Sender<Vec<(String, Value)>>,
    /// Answers to come; then 200 for ever.
    answers: Mutex<VecDeque<Reply>>,
}

/// What it does with a request.
#[derive(Clone, Copy)]
pub enum Reply {
    Status(u16),
    /// 503 and a wish.
    Wait(u32),
    /// Nothing: the line stays open.
    Hang,
}

impl Receiver {
    pub async fn start(answers: &[Reply]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let inner = Arc::new(Inner {
            got: watch::channel(Vec::new()).0,
            answers: Mutex::new(answers.iter().copied().collect()),
        });
        let task = tokio::spawn({
            let inner = Arc::clone(&inner);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, Arc::clone(&inner)));
                }
            }
        });
        Self { port, inner, task }
    }

    /// Its line in `[notify]`.
    pub fn line(&self) -> String {
        format!("webhook = \"{}\"", self.url())
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook/T0K3N?x=1", self.port)
    }

    pub fn got(&self) -> Vec<Value> {
        let got = self.inner.got.borrow();
        got.iter().map(|(_, body)| body.clone()).collect()
    }

    pub fn heads(&self) -> Vec<String> {
        let got = self.inner.got.borrow();
        got.iter().map(|(head, _)| head.clone()).collect()
    }

    /// Waits until so many requests have come.
    pub async fn has(&self, n: usize) {
        let mut got = self.inner.got.subscribe();
        got.wait_for(|got| got.len() >= n)
            .await
            .expect("it listens");
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, inner: Arc<Inner>) {
    let Some((head, body)) = request(&mut stream).await else {
        return;
    };
    let answer = inner.answers.lock().expect("answers").pop_front();
    inner.got.send_modify(|got| got.push((head, body)));
    let (status, more) = match answer.unwrap_or(Reply::Status(200)) {
        Reply::Status(status) => (status, String::new()),
        Reply::Wait(seconds) => (503, format!("retry-after: {seconds}\r\n")),
        Reply::Hang => return std::future::pending().await,
    };
    let reply = format!("HTTP/1.1 {status} x\r\n{more}content-length: 0\r\n\r\n");
    // The other end may be gone, which its test will notice.
    let _ = stream.write_all(reply.as_bytes()).await;
}

async fn request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|l| {
            l.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        if body.len() >= length.unwrap_or(0) {
            let body = serde_json::from_str(body).expect("JSON");
            return Some((head.to_owned(), body));
        }
    }
}
