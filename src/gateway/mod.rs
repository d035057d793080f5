//! The gateway: what comes in over HTTP.
//!
//! Owns: the socket and its bounds (`server`, `line`), the agents' calls (`service` behind the routes of
//! `http`, read by `request` and `json`, refused as `problem`; or `mcp`, which `stdio` speaks too), their answers (`waiting`, `courier`), the
//! provider's events (`webhook`, `signature`), and what operators see (`observe`, `metrics`). Never: decides
//! about money, drives a call, or does more for a request than to store what it brought and to read what is
//! the caller's own. It speaks no TLS: beyond this machine it belongs behind a proxy that does.
//! Tests: `tests/gateway/`, `tests/webhooks/`.

mod courier;
mod http;
mod json;
mod line;
mod mcp;
mod metrics;
mod observe;
mod problem;
mod rates;
mod request;
mod server;
mod service;
pub mod signature;
mod stdio;
pub mod tools;
mod waiting;
mod webhook;

pub use courier::Receipt;
pub use http::OPENAPI;
pub use server::{Gateway, GatewayDeps, GatewayError};
pub use service::{Ask, MAX_ARGUMENTS, Refused, Service, ServiceDeps, Submitted};
pub use stdio::{StdioError, serve as serve_stdio};
pub use webhook::Endpoint;
