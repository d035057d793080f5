//! The gateway: what comes in over HTTP.
//!
//! Owns: the socket and its bounds (`server`), the routes, signatures (`signature`) and the intake of the
//! provider's events (`webhook`). Never: decides about money, or does more for a request than to store what
//! it brought. This machine only: whoever wants it from outside puts a proxy with TLS in front.
//! Tests: `tests/webhooks/`.

mod server;
pub mod signature;
mod webhook;

pub use server::{Gateway, GatewayError};
pub use webhook::Endpoint;
