//! Heads and bodies of agents' requests: who calls, which call it is, how long it may take, what it asks.
//!
//! Owns: how strictly each is read, and the bounds. Never: mends what is not right. Tests: below,
//! `tests/gateway/heads.rs`, `tests/gateway/bodies.rs`.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde_json::{Map, Value};

use super::json;
use super::problem::Problem;
use super::service::{Ask, MAX_ARGUMENTS};
use crate::domain::ids::CallId;

/// Largest body: arguments, and the little around them.
pub(super) const MAX_BODY: usize = MAX_ARGUMENTS + 8 * 1024;
/// For the whole body, real time.
const READ_TIME: Duration = Duration::from_secs(10);
/// Longest wait that `Prefer` can have.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(60);
/// Longest value of a header that is looked at.
const MAX_VALUE: usize = 1024;

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static PREFER: HeaderName = HeaderName::from_static("prefer");

/// The one value of a header; `None` where it is absent.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    let wrong = |what: &str| {
        let detail = format!("the header {name} {what}");
        Problem::bad("bad_header", detail)
    };
    if second.is_some() {
        return Err(wrong("stands there more than once"));
    }
    let Some(value) = first else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_| wrong("is not plain ASCII"))?;
    if text.len() > MAX_VALUE {
        return Err(wrong("is too long"));
    }
    Ok(Some(text))
}

/// The token of `Authorization: Bearer TOKEN`.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let without = || {
        Problem::unauthorised("send Authorization: Bearer TOKEN; `samekey agents add` gives one")
    };
    let value = one(headers, &header::AUTHORIZATION).map_err(|_| without())?;
    let (scheme, token) = value.and_then(|v| v.split_once(' ')).ok_or_else(without)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(token.trim_matches(' '))
    } else {
        Err(without())
    }
}

/// The call's id: `Idempotency-Key` as a quoted string (a structured field, as the IETF's draft has it)
/// or bare.
pub(super) fn call_id(headers: &HeaderMap) -> Result<CallId, Problem> {
    let Some(value) = one(headers, &IDEMPOTENCY_KEY)? else {
        let detail = "send Idempotency-Key: the call's own id, the same whenever the same call is sent again";
        return Err(Problem::bad("idempotency_key_missing", detail));
    };
    let wrong =
        |what: &str| Problem::bad("idempotency_key_invalid", format!("Idempotency-Key {what}"));
    let text = if value.starts_with('"') {
        unquoted(value).ok_or_else(|| wrong("is no quoted string"))?
    } else if value.bytes().all(is_bare) {
        value.to_owned()
    } else {
        return Err(wrong("holds a character that has to stand in quotes"));
    };
    let id = CallId::parse(&text).map_err(|e| wrong(&e.to_string()))?;
    // Outer spaces are not cut off in silence: what was sent names the call.
    if id.as_str() == text {
        Ok(id)
    } else {
        Err(wrong("begins or ends with a space"))
    }
}

/// Of a bare key: visible ASCII without what has a meaning in a structured field.
fn is_bare(b: u8) -> bool {
    b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b',' | b';')
}

/// The text of a structured field's string (RFC 8941, 3.3.3), alone.
fn unquoted(value: &str) -> Option<String> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped @ ('"' | '\\') => text.push(escaped),
                _ => return None,
            },
            '"' => return None,
            ' '..='~' => text.push(c),
            _ => return None,
        }
    }
    // A lone quotation mark is both prefix and suffix.
    (value.len() >= 2).then_some(text)
}

/// How long the caller would wait (RFC 7240), bounded. What is not understood is not preferred.
pub(super) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let values = headers
        .get_all(&PREFER)
        .iter()
        .filter_map(|v| v.to_str().ok());
    let mut preferences = values.flat_map(|v| v.split(','));
    let seconds = preferences.find_map(|preference| {
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        let value = value.trim().trim_matches('"');
        let digits =
            !value.is_empty() && value.len() < 10 && value.bytes().all(|b| b.is_ascii_digit());
        (name.trim().eq_ignore_ascii_case("wait") && digits).then(|| value.parse::<u64>().ok())?
    })?;
    Some(Duration::from_secs(seconds).min(MAX_WAIT))
}

/// Whether the body says that it is JSON in UTF-8.
fn is_json(headers: &HeaderMap) -> Result<bool, Problem> {
    let Some(kind) = one(headers, &header::CONTENT_TYPE)? else {
        return Ok(false);
    };
    let mut parts = kind.split(';').map(str::trim);
    let json = parts
        .next()
        .is_some_and(|t| t.eq_ignore_ascii_case("application/json"));
    let utf8 = parts.filter(|p| !p.is_empty()).all(|p| {
        let (name, value) = p.split_once('=').unwrap_or((p, ""));
        name.eq_ignore_ascii_case("charset")
            && value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    let plain = !headers.contains_key(header::CONTENT_ENCODING);
    Ok(json && utf8 && plain)
}

/// The raw body, bounded in size and time.
pub(super) async fn body(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    if !is_json(headers)? {
        let detail = "send the body as Content-Type: application/json, in UTF-8, not compressed";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Problem::new(status, "not_json_content", detail));
    }
    let whole = Limited::new(body, MAX_BODY).collect();
    match tokio::time::timeout(READ_TIME, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("the body is longer than {MAX_BODY} bytes");
            Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                detail,
            ))
        }
        Ok(Err(_)) => Err(Problem::bad("broken_off", "the body broke off")),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "the body came too slowly",
        )),
    }
}

/// What the body asks for, as the call of this id.
pub(super) fn ask(id: CallId, body: &[u8]) -> Result<Ask, Problem> {
    let value = json::read(body).map_err(|e| Problem::bad(e.code(), e.to_string()))?;
    let wrong = |detail: &str| Problem::bad("bad_request", detail);
    let Value::Object(mut members) = value else {
        return Err(wrong("the body must be an object with tool and arguments"));
    };
    let tool = text(&mut members, "tool")?.ok_or_else(|| wrong("tool is missing"))?;
    let session = text(&mut members, "session_id")?;
    let arguments = match members.remove("arguments") {
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(wrong("arguments must be an object")),
        None => return Err(wrong("arguments are missing")),
    };
    if let Some(name) = members.keys().next() {
        let detail =
            format!("{name:?} is not known here; the body has tool, arguments and session_id");
        return Err(Problem::bad("unknown_member", detail));
    }
    let named = |what: &str, e: crate::domain::text::TextError| wrong(&format!("{what} {e}"));
    Ok(Ask {
        id,
        tool: tool.parse().map_err(|e| named("tool", e))?,
        arguments,
        session: match session {
            Some(session) => Some(session.parse().map_err(|e| named("session_id", e))?),
            None => None,
        },
    })
}

fn text(members: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Problem> {
    match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Problem::bad("bad_request", format!("{name} must be text"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        let mut all = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
            all.append(name, value);
        }
        all
    }

    fn key(values: &[&str]) -> Option<String> {
        let id = call_id(&headers("idempotency-key", values));
        id.ok().map(|id| id.to_string())
    }

    #[test]
    fn a_call_id_is_quoted_or_bare_and_never_mended_r63() {
        for (sent, named) in [
            ("toolu_01", "toolu_01"),
            ("\"toolu_01\"", "toolu_01"),
            ("a/b:c?d=%e", "a/b:c?d=%e"),
            (r#""a \"b\" \\ c""#, r#"a "b" \ c"#),
            (r#""a,b;c""#, "a,b;c"),
        ] {
            assert_eq!(key(&[sent]).as_deref(), Some(named), "{sent}");
        }
        let long = "x".repeat(256);
        for bad in [
            "",
            "\"\"",
            "\"",
            "\"a",
            "a\"",
            "a b",
            "a,b",
            "a;b",
            "\" a\"",
            "\"a \"",
            "\"a\\n\"",
            "\"a\"b\"",
            "\"a\";x=1",
            "é",
            &long,
        ] {
            assert_eq!(key(&[bad]), None, "{bad:?}");
        }
        assert_eq!(key(&[]), None);
        assert_eq!(key(&["a", "a"]), None, "twice");
        assert!(key(&[&"x".repeat(255)]).is_some());
    }

    #[test]
    fn a_wait_is_whole_seconds_and_bounded() {
        let of = |values: &[&str]| wait(&headers("prefer", values)).map(|d| d.as_secs());
        for (values, seconds) in [
            (&["wait=5"][..], Some(5)),
            (&["respond-async, wait=5"], Some(5)),
            (&["respond-async", "Wait = \"7\"; x"], Some(7)),
            (&["wait=0"], Some(0)),
            (&["wait=999999"], Some(60)),
            (&["wait=-1"], None),
            (&["wait=1.5"], None),
            (&["wait"], None),
            (&["wait=99999999999999999999"], None),
            (&[], None),
        ] {
            assert_eq!(of(values), seconds, "{values:?}");
        }
    }

    #[test]
    fn only_plain_json_is_a_body() {
        let of = |value: &str| is_json(&headers("content-type", &[value])).unwrap_or(false);
        assert!(of("application/json") && of("Application/JSON; charset=UTF-8"));
        for bad in [
            "text/plain",
            "application/json; charset=latin1",
            "application/jsonp",
            "",
        ] {
            assert!(!of(bad), "{bad}");
        }
    }
}
