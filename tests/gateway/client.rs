//! A client that speaks HTTP by hand, and holds every answer it gets to the document.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::openapi;

/// Longest wait for an answer; a hang is a failure.
const LIMIT: Duration = Duration::from_secs(90);

#[derive(Clone, Debug)]
pub struct Answer {
    /// 0 where the connection ended without one.
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The code of a problem, whose form is checked with it.
    pub fn code(&self) -> String {
        let problem = self.json();
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        assert_eq!(problem["status"], self.status, "{self:?}");
        let code = problem["code"].as_str().expect("a code").to_owned();
        assert_eq!(problem["type"], format!("urn:samekey:problem:{code}"));
        assert!(problem["title"].is_string() && problem["detail"].is_string());
        code
    }
}

/// A connection that is kept.
pub struct Talk {
    pub socket: TcpStream,
    rest: Vec<u8>,
}

impl Talk {
    pub async fn to(addr: SocketAddr) -> Self {
        let socket = TcpStream::connect(addr).await.expect("connected");
        socket.set_nodelay(true).expect("no delay");
        Self {
            socket,
            rest: Vec::new(),
        }
    }

    /// Sends these bytes; a server that has refused already may have stopped reading.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).await.is_ok()
    }

    pub async fn read(&mut self) -> Answer {
        let answer = async {
            loop {
                if let Some((answer, used)) = whole(&self.rest) {
                    self.rest.drain(..used);
                    return answer;
                }
                match self.socket.read_buf(&mut self.rest).await {
                    Ok(n) if n > 0 => {}
                    _ => return nothing(),
                }
            }
        };
        let answer = tokio::time::timeout(LIMIT, answer).await;
        answer.expect("an answer or an end in time")
    }

    pub async fn ask(&mut self, request: &Ask<'_>) -> Answer {
        self.write(&request.bytes()).await;
        let answer = self.read().await;
        request.check(&answer);
        answer
    }
}

fn nothing() -> Answer {
    Answer {
        status: 0,
        headers: Vec::new(),
        body: String::new(),
    }
}

/// The answer at the front of the bytes, and how many they are.
fn whole(bytes: &[u8]) -> Option<(Answer, usize)> {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).expect("a head");
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().expect("a status");
    let headers: Vec<(String, String)> = lines
        .filter_map(|l| l.split_once(':'))
        .map(|(n, v)| (n.to_owned(), v.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(n, _)| n.eq_ignore_ascii_case("content-length"));
    let length: usize = length.map_or(0, |(_, n)| n.parse().expect("a length"));
    let body = bytes.get(end..end + length)?;
    let answer = Answer {
        status,
        headers,
        body: String::from_utf8(body.to_vec()).expect("UTF-8"),
    };
    Some((answer, end + length))
}

/// One request.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    pub method: &'a str,
    pub path: String,
    pub headers: Vec<(&'a str, String)>,
    pub body: Vec<u8>,
}

impl<'a> Ask<'a> {
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A tool call, with no header but what makes it JSON.
    pub fn call(body: &Value) -> Self {
        Self {
            method: "POST",
            path: "/v1/tool-calls".into(),
            headers: vec![("Content-Type", "application/json".into())],
            body: body.to_string().into_bytes(),
        }
    }

    /// A refund of so many cents of an order.
    pub fn refund(token: &str, key: &str, order: &str, cents: i64) -> Self {
        let arguments = json!({"order_id": order, "amount_cents": cents, "currency": "usd"});
        Self::call(&json!({"tool": "issue_refund", "arguments": arguments}))
            .by(token)
            .with("Idempotency-Key", key)
    }

    pub fn by(self, token: &str) -> Self {
        self.with("Authorization", format!("Bearer {token}"))
    }

    pub fn waiting(self, seconds: u64) -> Self {
        self.with("Prefer", format!("wait={seconds}"))
    }

    pub fn with(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    pub fn post(mut self) -> Self {
        self.method = "POST";
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: gateway\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.method == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        [head.as_bytes(), &self.body].concat()
    }

    /// Every answer is one of the document.
    fn check(&self, answer: &Answer) {
        if answer.status != 0 {
            openapi::documented(self.method, &self.path, answer.status);
        }
    }

    /// Over a connection of its own.
    pub async fn send(&self, addr: SocketAddr) -> Answer {
        Talk::to(addr).await.ask(self).await
    }
}
