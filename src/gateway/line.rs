//! The line to one client: how long it may take to read an answer, and when an answer was written.
//!
//! Owns: the socket of a connection. An answer is *written* when the system has taken its last byte
//! without an error; then its receipt is handed in. Never: knows what is in it. Tests:
//! `tests/gateway/delivery.rs`, `tests/gateway/clients.rs`.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::courier::{Receipt, Tray};

/// For a client to take what was written for it, from the first byte that had to wait.
const WRITE_TIME: Duration = Duration::from_secs(15);

/// Receipts of answers that are in the connection's buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Slips(Arc<Mutex<Vec<Receipt>>>);

impl Slips {
    fn add(&self, receipt: Receipt) {
        self.lock().push(receipt);
    }

    fn hand_in(&self) {
        let written = std::mem::take(&mut *self.lock());
        written.into_iter().for_each(Receipt::written);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Receipt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's socket.
#[derive(Debug)]
pub(super) struct Line {
    socket: TcpStream,
    slips: Slips,
    /// Runs while something waits to be written.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Line {
    pub(super) fn new(socket: TcpStream, slips: Slips) -> Self {
        Self {
            socket,
            slips,
            patience: None,
        }
    }

    /// What could not be written yet waits; a client that reads nothing is hung up on.
    fn waits<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let patience = self
            .patience
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_TIME)));
        ready!(patience.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.socket).poll_write(cx, buf) {
            Poll::Pending => self.waits(cx),
            done @ Poll::Ready(_) => done,
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.socket).poll_write_vectored(cx, bufs) {
            Poll::Pending => self.waits(cx),
            done @ Poll::Ready(_) => done,
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// Called once the connection's buffer is empty: all that was in it is with the system.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = ready!(Pin::new(&mut self.socket).poll_flush(cx));
        if done.is_ok() {
            self.patience = None;
            self.slips.hand_in();
        }
        Poll::Ready(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// The body of an answer: its receipt goes to the line with its last piece.
pub(super) struct Answer {
    body: Body,
    tray: Option<Tray>,
    slips: Slips,
}

impl Answer {
    pub(super) fn new(body: Body, tray: Option<Tray>, slips: Slips) -> Self {
        Self { body, tray, slips }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let whole = match &frame {
            Some(Ok(_)) => self.body.is_end_stream(),
            Some(Err(_)) => false,
            None => true,
        };
        if whole && let Some(receipt) = self.tray.take().and_then(|tray| tray.take()) {
            self.slips.add(receipt);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
