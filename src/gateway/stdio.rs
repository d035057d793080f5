//! MCP on standard input and output: one client, which is whoever runs the program.
//!
//! Owns: the two streams, of which the second carries the protocol and nothing else, and that an answer
//! counts as delivered once its line was flushed. Tests: `tests/gateway/mcp.rs`.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use rmcp::ServiceExt as _;
use rmcp::model::RequestId;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};

use super::courier::Receipt;
use super::mcp::{Handler, Speaker};
use super::service::Service;
use crate::domain::agent::Agent;

/// Longest line of a client.
const MAX_LINE: usize = 1024 * 1024;
/// Receipts of answers that were never written, at most.
const MOST: usize = 1024;

/// Why there is no conversation.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error("the client did not begin as MCP begins: {0}")]
    Begin(String),
    #[error("the conversation broke off: {0}")]
    Broken(String),
}

/// Speaks with `agent` until `input` ends.
///
/// # Errors
/// Whoever is there does not speak MCP, or the server's task failed.
pub async fn serve<R, W>(
    service: Service,
    agent: Agent,
    input: R,
    output: W,
) -> Result<(), StdioError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let desk = Desk::default();
    let keep = {
        let desk = desk.clone();
        Arc::new(move |id: RequestId, receipt| desk.keep(id.to_string(), receipt))
    };
    let lines = Lines {
        output,
        desk,
        line: Vec::new(),
    };
    let handler = Handler::new(service, Speaker::Pipe(agent, keep));
    let transport = AsyncRwTransport::new(input, lines).with_max_line_length(MAX_LINE);
    let running = handler.serve(transport).await;
    let running = running.map_err(|e| StdioError::Begin(e.to_string()))?;
    let ended = running.waiting().await;
    ended
        .map(drop)
        .map_err(|e| StdioError::Broken(e.to_string()))
}

/// Receipts by the request that they answer, and those whose line is in the buffer.
#[derive(Clone, Default)]
struct Desk(Arc<Mutex<Slips>>);

#[derive(Default)]
struct Slips {
    kept: HashMap<String, Receipt>,
    buffered: Vec<Receipt>,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Slips> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, request: String, receipt: Receipt) {
        let mut slips = self.lock();
        if slips.kept.len() < MOST {
            slips.kept.insert(request, receipt);
        }
    }

    /// The line of this request's answer is in the buffer.
    fn buffered(&self, request: &str) {
        let mut slips = self.lock();
        let receipt = slips.kept.remove(request);
        slips.buffered.extend(receipt);
    }

    fn flushed(&self) {
        let written = std::mem::take(&mut self.lock().buffered);
        written.into_iter().for_each(Receipt::written);
    }
}

/// Sees which answers go out.
struct Lines<W> {
    output: W,
    desk: Desk,
    /// The line that is being written.
    line: Vec<u8>,
}

/// As much of a line as says which request it answers.
#[derive(Deserialize)]
struct Reply {
    id: Option<RequestId>,
}

impl<W> Lines<W> {
    fn wrote(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let reply = serde_json::from_slice::<Reply>(&line);
                if let Some(id) = reply.ok().and_then(|r| r.id) {
                    self.desk.buffered(&id.to_string());
                }
            }
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Lines<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = ready!(Pin::new(&mut self.output).poll_write(cx, buf))?;
        self.wrote(buf.get(..wrote).unwrap_or_default());
        Poll::Ready(Ok(wrote))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.output).poll_flush(cx))?;
        self.desk.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(cx)
    }
}
