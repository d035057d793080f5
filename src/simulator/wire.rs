//! What a request and an answer look like, without a socket.
//!
//! Owns: parameters, the error envelope (S19, S20), credentials. Never: waits, keeps state or
//! knows what a refund is. Tests: below.

use std::net::SocketAddr;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Map, Value, json};

use super::ids::{decode_hex, sha256_hex};
use super::step::Answer;

/// Longest idempotency key (S2).
const MAX_KEY: usize = 255;

/// The connection is to be closed without a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed without a reply")]
pub(super) struct Cut;

/// Form or query parameters in the order they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    pub fn parse(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    /// The last value of `name`; an empty one counts as not given, as at Stripe.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut named = self.0.iter().rev().filter(|(n, _)| n == name);
        named
            .next()
            .map(|(_, v)| v.as_str())
            .filter(|v| !v.is_empty())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    /// Whether `expand[]` asks for `path`.
    pub fn expands(&self, path: &str) -> bool {
        self.iter()
            .any(|(n, v)| n.starts_with("expand[") && v == path)
    }
}

/// One request, read completely.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub peer: SocketAddr,
    pub method: hyper::Method,
    pub path: String,
    pub segments: Vec<String>,
    pub query: Params,
    pub form: Params,
    pub key: Option<String>,
    /// The account the credentials belong to; `None` if they are missing or wrong.
    pub account: Option<String>,
    pub request_id: String,
    pub body_sha256: String,
    /// Method, path and raw parameters: what must not change under a key (S6, S7).
    pub fingerprint: Fingerprint,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub endpoint: String,
    pub body: Bytes,
}

impl Call {
    pub fn new(
        peer: SocketAddr,
        head: &hyper::http::request::Parts,
        body: Bytes,
        request_id: String,
    ) -> Self {
        let path = head.uri.path().to_owned();
        let segments = path.split('/').skip(1).map(|s| {
            // What cannot be decoded matches no route and no object.
            decode_hex(s, b'%').unwrap_or_default()
        });
        let key = head.headers.get("idempotency-key");
        Self {
            peer,
            method: head.method.clone(),
            segments: segments.collect(),
            query: Params::parse(head.uri.query().unwrap_or_default().as_bytes()),
            form: Params::parse(&body),
            key: key
                .map(|k| String::from_utf8_lossy(k.as_bytes()).into_owned())
                .filter(|k| !k.is_empty()),
            account: account(&head.headers),
            request_id,
            body_sha256: sha256_hex(&body),
            fingerprint: Fingerprint {
                endpoint: format!("{} {path}", head.method),
                body,
            },
            path,
        }
    }

    /// S2: keys have at most 255 characters.
    pub fn check_key(&self) -> Result<(), ApiError> {
        match &self.key {
            Some(key) if key.chars().count() > MAX_KEY => Err(ApiError::invalid(
                "Idempotency-Key",
                "The idempotency key may have at most 255 characters.",
            )),
            _ => Ok(()),
        }
    }
}

/// Any `sk_test_…` key, as Bearer token or as user of Basic, each its own account.
fn account(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, credentials) = value.split_once(' ')?;
    let key = if scheme.eq_ignore_ascii_case("bearer") {
        credentials.trim().to_owned()
    } else if scheme.eq_ignore_ascii_case("basic") {
        let decoded = decode_base64(credentials.trim())?;
        decoded.split(':').next().unwrap_or_default().to_owned()
    } else {
        return None;
    };
    key.strip_prefix("sk_test_")
        .filter(|rest| !rest.is_empty())?;
    let digest = sha256_hex(key.as_bytes());
    digest.get(..16).map(|d| format!("acct_{d}"))
}

fn decode_base64(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0_u32);
    for c in text.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.extend(u8::try_from((bits >> count) & 0xff));
            bits &= (1 << count) - 1;
        }
    }
    String::from_utf8(bytes).ok()
}

/// An answer, ready to be sent or to be saved under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Reply {
    pub fn json(status: u16, value: &Value) -> Self {
        let mut text = format!("{value:#}");
        text.push('\n');
        Self {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            body: text.into(),
        }
    }

    /// A scenario's answer.
    pub fn scripted(answer: &Answer, call: &Call) -> Self {
        let mut reply = match &answer.text {
            Some(text) => Self {
                status: answer.status,
                headers: vec![("content-type".into(), "text/html".into())],
                body: text.clone().into(),
            },
            None => ApiError {
                status: answer.status,
                kind: answer.kind.clone(),
                code: answer.code.clone(),
                param: None,
                message: answer.message.clone(),
            }
            .reply(call),
        };
        let headers = answer.headers.iter();
        reply
            .headers
            .extend(headers.map(|(n, v)| (n.clone(), v.clone())));
        reply
    }
}

/// An error in Stripe's envelope (S19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError {
    pub status: u16,
    pub kind: String,
    pub code: Option<String>,
    pub param: Option<String>,
    pub message: String,
}

impl ApiError {
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            kind: "invalid_request_error".to_owned(),
            code: None,
            param: None,
            message: message.into(),
        }
    }

    pub fn invalid(param: &str, message: impl Into<String>) -> Self {
        Self::new(400, message).param(param)
    }

    /// 404 for an object that is not there (S20, S33).
    pub fn missing(what: &str, param: &str, id: &str) -> Self {
        Self::new(404, format!("No such {what}: '{id}'"))
            .code("resource_missing")
            .param(param)
    }

    pub fn code(mut self, code: &str) -> Self {
        self.code = Some(code.to_owned());
        self
    }

    pub fn param(mut self, param: &str) -> Self {
        self.param = Some(param.to_owned());
        self
    }

    pub fn kind(mut self, kind: &str) -> Self {
        kind.clone_into(&mut self.kind);
        self
    }

    pub fn reply(&self, call: &Call) -> Reply {
        let mut error = Map::new();
        if let Some(code) = &self.code {
            let page = code.replace('_', "-");
            let doc_url = format!("https://stripe.com/docs/error-codes/{page}");
            error.insert("code".into(), json!(code));
            error.insert("doc_url".into(), json!(doc_url));
        }
        if let Some(param) = &self.param {
            error.insert("param".into(), json!(param));
        }
        let log = format!("https://dashboard.stripe.com/test/logs/{}", call.request_id);
        error.insert("message".into(), json!(self.message));
        error.insert("request_log_url".into(), json!(log));
        error.insert("type".into(), json!(self.kind));
        Reply::json(self.status, &json!({ "error": error }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(value: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().expect("header"));
        account(&headers)
    }

    #[test]
    fn test_keys_are_accepted_as_bearer_and_as_basic_user() {
        let bearer = with("Bearer sk_test_demo");
        assert!(bearer.is_some());
        // "sk_test_demo:" in base64
        assert_eq!(with("Basic c2tfdGVzdF9kZW1vOg=="), bearer);
        assert_ne!(with("Bearer sk_test_other"), bearer, "its own account");
        for wrong in [
            "Bearer sk_live_x",
            "Bearer sk_test_",
            "Basic !!",
            "Digest x",
            "x",
        ] {
            assert_eq!(with(wrong), None, "{wrong}");
        }
        assert_eq!(account(&HeaderMap::new()), None);
    }

    #[test]
    fn parameters_take_the_last_value_and_ignore_empty_ones() {
        let params = Params::parse(b"a=1&a=2&b=&expand[]=latest_charge&c=%F0%9F%98%80+x");
        assert_eq!(params.get("a"), Some("2"));
        assert_eq!(params.get("b"), None);
        assert_eq!(params.get("c"), Some("😀 x"));
        assert!(params.expands("latest_charge"));
    }
}
