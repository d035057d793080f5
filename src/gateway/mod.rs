//! The gateway: what comes in over HTTP.
//!
//! Owns: the socket and its bounds (`server`), the routes, signatures (`signature`) and the intake of the
//! provider's events (`webhook`). Never: decides about money, or does more for a request than to store what
//! it brought. This machine only: whoever wants it from outside puts a proxy with TLS in front.
//! Tests: `tests/webhooks/`.

mod courier;
mod rates;
mod server;
mod service;
pub mod signature;
pub mod tools;
mod waiting;
mod webhook;

pub use courier::Receipt;
pub use server::{Gateway, GatewayError};
pub use service::{Ask, MAX_ARGUMENTS, Refused, Service, ServiceDeps, Submitted};
pub use webhook::Endpoint;
