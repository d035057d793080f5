//! A wire between samekey and a peer that hands everything on as it is, and loses an answer where it is told.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::peer::Address;

/// What becomes of a refund request.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Through,
    /// The peer has it and answers; nobody hears.
    AnswerLost,
}

/// A refund request as it came by.
#[derive(Clone, Debug)]
pub struct Refund {
    pub key: String,
    pub body: String,
}

pub struct Proxy {
    pub origin: String,
    seen: Arc<Mutex<Vec<Refund>>>,
}

impl Proxy {
    /// Before the peer; `way` decides over the n-th refund request (from 1), and may ask the peer for something
    /// first.
    pub fn before(
        peer: Address,
        way: impl Fn(usize, &Refund) -> Way + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, way) = (Arc::clone(&seen), Arc::new(way));
        // Ends with the test's process.
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (log, way) = (Arc::clone(&log), Arc::clone(&way));
                std::thread::spawn(move || carry(socket, peer, &log, &*way));
            }
        });
        Self { origin, seen }
    }

    /// The refund requests that came by.
    pub fn refunds(&self) -> Vec<Refund> {
        self.seen.lock().expect("a log").clone()
    }

    /// That all of them were one and the same.
    pub fn same(&self) {
        let all = self.refunds();
        for refund in &all {
            assert_eq!(
                (&refund.key, &refund.body),
                (&all[0].key, &all[0].body),
                "I3"
            );
        }
    }
}

fn carry(
    mut socket: TcpStream,
    peer: Address,
    log: &Mutex<Vec<Refund>>,
    way: &(impl Fn(usize, &Refund) -> Way + Send + Sync),
) {
    let Some((head, body)) = read(&mut socket) else {
        return;
    };
    let way = if head.starts_with("POST /v1/refunds ") {
        let key = header(&head, "idempotency-key").unwrap_or_default();
        let refund = Refund {
            key,
            body: body.clone(),
        };
        let number = {
            let mut log = log.lock().expect("a log");
            log.push(refund.clone());
            log.len()
        };
        way(number, &refund)
    } else {
        Way::Through
    };
    // The peer is to close, so that its answer has an end.
    let (line, rest) = head.split_once("\r\n").expect("a request line");
    let request = format!("{line}\r\nConnection: close\r\n{rest}\r\n\r\n{body}");
    let answer = peer.exchange(request.as_bytes());
    match way {
        Way::Through => {
            let _ = socket.write_all(&answer);
        }
        Way::AnswerLost => {}
    }
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|l| l.split_once(": "));
    let found = lines.find(|(n, _)| n.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().to_owned())
}

/// Head (without its end) and body of a request.
fn read(socket: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = String::from_utf8_lossy(&bytes).split_once("\r\n\r\n") {
            let length = header(head, "content-length");
            let length = length.map_or(Some(0), |v| v.parse().ok())?;
            if body.len() >= length {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        match socket.read(&mut buffer) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}
