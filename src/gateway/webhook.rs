//! `POST /webhooks/stripe`: the provider tells what happened.
//!
//! Owns: that nothing unsigned gets further than the signature, that what is signed is stored before it
//! is acknowledged (S57), and the answers. Never: works on an event (the engine does), or answers 2xx for
//! what is not stored. Tests: `tests/webhooks/`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::signature::{self, Refused};
use crate::clock::Clock;
use crate::config::Secret;
use crate::domain::provider_event::EventRead;
use crate::ledger::{EventSource, MAX_EVENT, NewEvent, SharedLedger};
use crate::provider::SharedProvider;

/// For the whole body, real time.
const READ_TIME: Duration = Duration::from_secs(10);

/// A provider whose events are taken, and the secrets they may be signed with.
#[derive(Clone)]
pub struct Endpoint {
    pub provider: SharedProvider,
    /// Never empty; several while a secret is being exchanged (S54).
    pub secrets: Vec<Secret>,
}

/// What the route needs.
pub(super) struct Intake {
    pub ledger: SharedLedger,
    pub endpoints: Vec<Endpoint>,
    pub clock: Clock,
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Not {
    Empty,
    TooLarge,
    TooSlow,
    Broken,
    Signed(Refused),
    Stored,
}

impl IntoResponse for Not {
    fn into_response(self) -> Response {
        let (status, title) = match self {
            Self::Empty => (StatusCode::BAD_REQUEST, "the body is empty".to_owned()),
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body is too large".to_owned(),
            ),
            Self::TooSlow => (
                StatusCode::REQUEST_TIMEOUT,
                "the body came too slowly".to_owned(),
            ),
            Self::Broken => (StatusCode::BAD_REQUEST, "the body broke off".to_owned()),
            Self::Signed(why) => (StatusCode::BAD_REQUEST, why.to_string()),
            Self::Stored => (
                StatusCode::SERVICE_UNAVAILABLE,
                "it could not be stored; send it again".to_owned(),
            ),
        };
        let body = serde_json::json!({ "title": title, "status": status.as_u16() });
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (status, kind, body.to_string()).into_response()
    }
}

/// The route.
pub(super) async fn receive(State(intake): State<Arc<Intake>>, request: Request<Body>) -> Response {
    match take(&intake, request).await {
        Ok(new) => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            let body = serde_json::json!({ "received": true, "new": new });
            (StatusCode::OK, kind, body.to_string()).into_response()
        }
        Err(not) => {
            tracing::warn!(?not, "a webhook was not taken");
            not.into_response()
        }
    }
}

/// Stores what the provider sent; whether it was new.
async fn take(intake: &Intake, request: Request<Body>) -> Result<bool, Not> {
    let (head, body) = request.into_parts();
    let body = read(body).await?;
    // Judged by the time of its receipt, whenever it is worked on (F63).
    let now = intake.clock.now();
    let mut headers = head.headers.get_all("stripe-signature").iter();
    let (Some(header), None) = (headers.next(), headers.next()) else {
        return Err(Not::Signed(Refused::Missing));
    };
    let header = header
        .to_str()
        .map_err(|_| Not::Signed(Refused::Malformed))?;
    let endpoint = signed_for(&intake.endpoints, header, &body, now).map_err(Not::Signed)?;
    let provider = &endpoint.provider;
    let read = provider.read_event(&body);
    let kept = provider.storable(&body);
    if read == EventRead::Other {
        // Of another kind: it is acknowledged so that it does not come again.
        return Ok(false);
    }
    let event = NewEvent::of(provider.name(), EventSource::Webhook, &read, &kept);
    let event = event.ok_or(Not::TooLarge)?;
    let stored = intake.ledger.recovery().accept_event(event).await;
    stored.map_err(|error| {
        tracing::error!(%error, "a webhook could not be stored");
        Not::Stored
    })
}

/// Whose event it is, by the secret that it was signed with.
fn signed_for<'a>(
    endpoints: &'a [Endpoint],
    header: &str,
    body: &[u8],
    now: crate::domain::Instant,
) -> Result<&'a Endpoint, Refused> {
    let mut refused = Refused::Wrong;
    for endpoint in endpoints {
        match signature::verify(&endpoint.secrets, header, body, now) {
            Ok(()) => return Ok(endpoint),
            Err(why) => refused = why,
        }
    }
    Err(refused)
}

/// The raw body, bounded in size and time. It is never unpacked: what is signed is what was sent.
async fn read(body: Body) -> Result<Bytes, Not> {
    let whole = Limited::new(body, MAX_EVENT).collect();
    match tokio::time::timeout(READ_TIME, whole).await {
        Ok(Ok(body)) => Some(body.to_bytes())
            .filter(|bytes| !bytes.is_empty())
            .ok_or(Not::Empty),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Not::TooLarge),
        Ok(Err(_)) => Err(Not::Broken),
        Err(_) => Err(Not::TooSlow),
    }
}
