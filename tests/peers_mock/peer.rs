//! A running peer, and what anybody can ask of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{install, skipped};

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(30);

/// A server of its own for one test; ends with it.
pub struct Peer {
    child: Child,
    pub at: Address,
}

/// Where it listens.
#[derive(Clone, Copy)]
pub struct Address(pub SocketAddr);

impl Peer {
    /// `localstripe`, or `None` where it cannot be had, which is said loudly.
    pub fn localstripe(what: &str) -> Option<Self> {
        let packages = [
            "localstripe==1.15.10",
            "aiohttp==3.14.5",
            "python-dateutil==2.9.0.post0",
        ];
        match install::python(&packages) {
            Ok(python) => Some(Self::start(
                Command::new(python).arg(here("serve_localstripe.py")),
            )),
            Err(why) => {
                skipped(what, &why);
                None
            }
        }
    }

    /// `stripe-stateful-mock`, as above.
    pub fn stateful(what: &str) -> Option<Self> {
        match install::node("stripe-stateful-mock@0.0.16") {
            Ok(dir) => {
                let modules = dir.join("node_modules");
                let mut command = Command::new("node");
                Some(Self::start(
                    command
                        .arg(here("serve_stateful.cjs"))
                        .env("NODE_PATH", modules),
                ))
            }
            Err(why) => {
                skipped(what, &why);
                None
            }
        }
    }

    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("its port");
        let port: u16 = line.trim().parse().expect("a port");
        let peer = Self {
            child,
            at: Address(SocketAddr::from(([127, 0, 0, 1], port))),
        };
        peer.at.until_it_answers();
        peer
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peers_mock")
        .join(name)
}

impl Address {
    /// It prints its port before it serves.
    fn until_it_answers(self) {
        for _ in 0..500 {
            if TcpStream::connect(self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not listen");
    }

    /// One request with these bytes; the whole answer.
    pub fn exchange(self, request: &[u8]) -> Vec<u8> {
        let mut socket = TcpStream::connect(self.0).expect("connected");
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        socket.write_all(request).expect("sent");
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).expect("an answer");
        answer
    }

    fn ask(self, method: &str, path: &str, key: &str, form: &[(&str, &str)]) -> (u16, Value) {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let key = match key {
            "" => String::new(),
            key => format!("Idempotency-Key: {key}\r\n"),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Authorization: Bearer sk_test_seed_123\r\n{key}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = String::from_utf8(self.exchange(request.as_bytes())).expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        (status.parse().expect("a number"), body)
    }

    pub fn get(self, path: &str) -> (u16, Value) {
        self.ask("GET", path, "", &[])
    }

    /// A POST with a key, or without where it is empty.
    pub fn post(self, path: &str, key: &str, form: &[(&str, &str)]) -> (u16, Value) {
        self.ask("POST", path, key, form)
    }

    /// The refunds of a payment as it lists them.
    pub fn refunds(self, of: &str) -> Vec<Value> {
        let field = if of.starts_with("pi_") {
            "payment_intent"
        } else {
            "charge"
        };
        let (status, list) = self.get(&format!("/v1/refunds?{field}={of}&limit=100"));
        assert_eq!(status, 200, "{list}");
        list["data"].as_array().expect("a list").clone()
    }
}
