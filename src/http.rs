//! One request over one fresh connection: the only HTTP client of the program, for providers and
//! for those who are told of events.
//!
//! Owns: connecting (TCP, TLS, HTTP/1.1), the time limits, the bounds on what comes back, and the
//! proof whether a byte may have left. Never: keeps or reuses a connection, resends, follows a
//! redirect, or asks the environment for a proxy (I12, F85–F87). Tests: `tests/stripe/`, `tests/notify/`.

mod origin;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use self::origin::Origin;
use crate::clock::Clock;
use crate::kill;

/// Largest body that is read; larger ones count as broken off (I33).
const MAX_BODY: usize = 2 * 1024 * 1024;
/// Largest header section that is read.
const MAX_HEADERS: usize = 64 * 1024;

/// What one exchange came to.
#[derive(Debug)]
pub enum Exchange {
    /// Not one byte was handed to the connection.
    NotSent(String),
    /// A byte may have left, and no status came back.
    Lost(String),
    /// A status came back.
    Answered(Reply),
}

/// An answer: its head, and its body where it came whole.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    /// `None`: broken off, too slow or too large.
    pub body: Option<Bytes>,
}

impl Reply {
    /// A header's text, where it is there exactly once.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        let first = all.next()?;
        if all.next().is_some() {
            return None;
        }
        first.to_str().ok().map(str::trim)
    }
}

/// How to reach one origin.
#[derive(Clone)]
pub struct Client {
    origin: Origin,
    tls: Option<TlsConnector>,
    wire: Option<Arc<dyn Wire>>,
    clock: Clock,
    /// Longest time for connecting, and again for the exchange.
    limit: Duration,
}

impl Client {
    /// Prepares TLS where the origin needs it.
    ///
    /// # Errors
    /// The machine has no root certificates, as one sentence.
    pub fn new(origin: Origin, clock: Clock, limit: Duration) -> Result<Self, String> {
        let tls = origin.is_tls().then(tls_connector).transpose()?;
        Ok(Self {
            origin,
            tls,
            wire: None,
            clock,
            limit,
        })
    }

    /// The same over another wire than TCP; an encrypted origin is never reached that way.
    #[must_use]
    pub fn over(mut self, wire: Arc<dyn Wire>) -> Self {
        if !self.origin.is_tls() {
            self.wire = Some(wire);
        }
        self
    }

    /// Longest time for one step of talking to it.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Where it connects to.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// A fresh connection. Nothing of a request has been sent.
    ///
    /// # Errors
    /// Why there is none, as one sentence.
    pub async fn connect(&self) -> Result<Line, String> {
        self.clock
            .timeout(self.limit, self.dial())
            .await
            .unwrap_or_else(|| Err(format!("connecting to {} took too long", self.origin)))
    }

    async fn dial(&self) -> Result<Line, String> {
        let failed = |e: &dyn fmt::Display| format!("no connection to {}: {e}", self.origin);
        let stream: Box<dyn Stream> = match (&self.wire, &self.tls) {
            (Some(wire), _) => wire.dial().await.map_err(|e| failed(&e))?,
            (None, None) => Box::new(self.tcp().await.map_err(|e| failed(&e))?),
            (None, Some(tls)) => {
                let tcp = self.tcp().await.map_err(|e| failed(&e))?;
                let name =
                    ServerName::try_from(self.origin.name().to_owned()).map_err(|e| failed(&e))?;
                Box::new(tls.connect(name, tcp).await.map_err(|e| failed(&e))?)
            }
        };
        let written = Arc::new(AtomicBool::new(false));
        let io = TokioIo::new(Watched {
            stream,
            written: Arc::clone(&written),
        });
        let (sender, connection) = http1::Builder::new()
            .max_header_size(MAX_HEADERS)
            .handshake(io)
            .await
            .map_err(|e| failed(&e))?;
        let host = HeaderValue::try_from(self.origin.authority()).map_err(|e| failed(&e))?;
        Ok(Line {
            sender,
            connection,
            written,
            host,
            clock: self.clock.clone(),
            limit: self.limit,
        })
    }

    /// Resolves once, and connects to the first address that answers.
    async fn tcp(&self) -> io::Result<TcpStream> {
        let found = tokio::net::lookup_host((self.origin.name(), self.origin.port())).await?;
        // Plain text goes to this machine only, whatever a name server says (F67).
        let addresses: Vec<SocketAddr> = found
            .filter(|a| self.origin.is_tls() || a.ip().is_loopback())
            .collect();
        let share = self.limit / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no usable address");
        for address in addresses {
            match self.clock.timeout(share, TcpStream::connect(address)).await {
                Some(Ok(stream)) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Some(Err(e)) => last = e,
                None => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }
}

/// TLS with ring and the machine's own root certificates. No early data: what is sent early can be
/// replayed by the network.
fn tls_connector() -> Result<TlsConnector, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err("this machine has no root certificates; install ca-certificates".into());
    }
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// One connection, good for one request.
pub struct Line {
    sender: http1::SendRequest<Full<Bytes>>,
    connection: http1::Connection<TokioIo<Watched>, Full<Bytes>>,
    written: Arc<AtomicBool>,
    host: HeaderValue,
    clock: Clock,
    limit: Duration,
}

impl Line {
    /// Sends `request` and reads its answer, both within the limit; the connection is gone then.
    pub async fn exchange(self, mut request: Request<Full<Bytes>>) -> Exchange {
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.host);
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("samekey/", env!("CARGO_PKG_VERSION"))),
        );
        let (mut sender, clock, limit, written) =
            (self.sender, self.clock, self.limit, self.written);
        let began = clock.boot();
        let talk = async move {
            let head = match clock.timeout(limit, sender.send_request(request)).await {
                Some(Ok(head)) => head,
                Some(Err(e)) => return without_answer(&written, &e),
                None => return without_answer(&written, &"no answer within the time limit"),
            };
            let (parts, body) = head.into_parts();
            let left = limit.saturating_sub(clock.boot().saturating_sub(began));
            let body = clock
                .timeout(left, Limited::new(body, MAX_BODY).collect())
                .await;
            Exchange::Answered(Reply {
                status: parts.status.as_u16(),
                headers: parts.headers,
                body: body.and_then(Result::ok).map(Collected::to_bytes),
            })
        };
        drive(self.connection, talk).await
    }
}

/// Runs the connection for as long as `talk` needs it, and drops both.
async fn drive<C: Future, T: Future>(connection: C, talk: T) -> T::Output {
    let (mut connection, mut talk) = (pin!(connection), pin!(talk));
    let mut running = true;
    loop {
        tokio::select! {
            biased;
            out = &mut talk => return out,
            _ = &mut connection, if running => running = false,
        }
    }
}

/// What it means that no status came: only our own record of writes proves that nothing left.
fn without_answer(written: &AtomicBool, why: &dyn fmt::Display) -> Exchange {
    if written.load(Ordering::Acquire) {
        Exchange::Lost(why.to_string())
    } else {
        Exchange::NotSent(why.to_string())
    }
}

/// What connections to a plain-text origin are made of where that is not TCP: simulations keep the wire
/// in memory.
#[async_trait]
pub trait Wire: Send + Sync {
    /// A fresh connection.
    ///
    /// # Errors
    /// There is none to be had.
    async fn dial(&self) -> io::Result<Box<dyn Stream>>;
}

/// TCP, TLS, or what a [`Wire`] made.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream that remembers whether anything was ever handed to it for sending.
struct Watched {
    stream: Box<dyn Stream>,
    written: Arc<AtomicBool>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Noted before the write: a write that failed may have sent a part.
        self.written.store(true, Ordering::Release);
        let wrote = Pin::new(&mut self.stream).poll_write(cx, kill::share(buf));
        if let Poll::Ready(Ok(count)) = &wrote {
            kill::wrote(buf, *count);
        }
        wrote
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
