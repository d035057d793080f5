//! What is wrong with a request, as RFC 9457 `application/problem+json`.
//!
//! Owns: one code for each cause, which never changes, with its status and title. Never: shows what lies
//! behind (a path, a statement, another agent's). Tests: `tests/gateway/`, `tests/gateway/openapi.rs`.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::service::{MAX_ARGUMENTS, Refused};
use crate::domain::text::SafeText;
use crate::ledger::LedgerError;

/// What is wrong. `code` is stable; `detail` is one sentence for people.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: SafeText,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl AsRef<str>) -> Self {
        Self {
            status,
            code,
            detail: SafeText::new(detail.as_ref()),
            headers: Vec::new(),
        }
    }

    /// 400.
    pub(super) fn bad(code: &'static str, detail: impl AsRef<str>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// 404.
    pub(super) fn missing(code: &'static str, detail: impl AsRef<str>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }

    pub(super) fn unauthorised(detail: &str) -> Self {
        let problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorised", detail);
        problem.with(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"samekey\""),
        )
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    fn again_in(self, wait: Duration) -> Self {
        // Whole seconds, and never too early.
        let seconds = wait.as_millis().div_ceil(1000).max(1);
        let seconds = HeaderValue::from(u32::try_from(seconds).unwrap_or(u32::MAX));
        self.with(header::RETRY_AFTER, seconds)
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        tracing::error!(%error, "the ledger did not answer the gateway");
        let detail = "the ledger cannot be used just now; ask again, with the same call id";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ledger_unavailable",
            detail,
        )
        .again_in(Duration::from_secs(1))
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let says = refused.to_string();
        match refused {
            Refused::NoSuchTool(_) => Self::missing("no_such_tool", says),
            Refused::NotPermitted { .. } => {
                Self::new(StatusCode::FORBIDDEN, "tool_not_permitted", says)
            }
            Refused::ReservedId => Self::bad("reserved_call_id", says),
            Refused::TooLong => {
                let detail = format!("the arguments are longer than {MAX_ARGUMENTS} bytes");
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
            }
            Refused::Reused => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "call_id_reused", says),
            Refused::Rate { wait, .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", says).again_in(wait)
            }
            Refused::QueueFull { wait, .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", says).again_in(wait)
            }
            Refused::Ledger(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let body = json!({
            "type": format!("urn:samekey:problem:{}", self.code),
            "title": title, "status": self.status.as_u16(), "code": self.code, "detail": self.detail,
        });
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        let headers: HeaderMap = self.headers.into_iter().collect();
        (self.status, headers, kind, body.to_string()).into_response()
    }
}
