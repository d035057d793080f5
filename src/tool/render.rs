//! Templates: how arguments get into a request without leaving their place.
//!
//! Owns: what a template may do and what becomes of a value in a path, a header and a body. A body is JSON
//! whose texts are templates, filled in before it is written: no argument can end a text, a member or the
//! body. In a path everything but letters, digits, `-`, `_` and `~` is percent-encoded; in a header only
//! visible ASCII and spaces are let through. Undefined names are errors, time and size are bounded. Never:
//! includes files, calls functions, or sees a secret. Tests: below.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use minijinja::value::{Serde, Value as Filled};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};

use super::{OPERATION, REFERENCE};
use crate::domain::ids::OperationId;

/// Steps and bytes that one template may cost.
const FUEL: u64 = 20_000;
/// Longest template, bytes.
const MAX_TEMPLATE: usize = 4 * 1024;
/// Longest path, and longest value of a header, bytes.
const MAX_LINE: usize = 2 * 1024;
/// Largest body, bytes.
const MAX_BODY: usize = 64 * 1024;
/// Deepest body.
const MAX_DEPTH: usize = 16;

const PATH: &str = "path";
const HEADER: &str = "header";
const TEXT: &str = "text";

/// What templates may name.
pub(super) struct Context(Filled);

fn environment() -> Environment<'static> {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_fuel(Some(FUEL));
    env.add_filter("default", minijinja::filters::default);
    env.set_formatter(|out, state, value| {
        if value.is_none() || value.is_undefined() {
            let why = "a text of the request needs an argument that was not given";
            return Err(Error::new(ErrorKind::UndefinedError, why));
        }
        let text = value.to_string();
        let text = if state.name() == PATH {
            encoded(&text)
        } else {
            text
        };
        out.write_str(&text)
            .map_err(|e| Error::new(ErrorKind::WriteFailure, e.to_string()))
    });
    env
}

/// Percent-encoded; a dot too, so that no argument climbs out of its directory.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, b| {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'~') {
            out.push(char::from(b));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{b:02X}");
        }
        out
    })
}

impl Context {
    /// The arguments (canonical JSON) and the operation id; an argument of the schema that was not given is
    /// none.
    pub fn of(known: &BTreeSet<String>, operation: &OperationId, arguments: &str) -> Self {
        let given: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
        let mut all: Map<String, Value> = known.iter().map(|k| (k.clone(), Value::Null)).collect();
        all.extend(given);
        all.insert(OPERATION.into(), operation.as_str().into());
        Self(Serde(Value::Object(all)).into())
    }

    /// One object's id.
    pub fn reference(id: &str) -> Self {
        let all = Map::from_iter([(REFERENCE.to_owned(), Value::from(id))]);
        Self(Serde(Value::Object(all)).into())
    }

    fn render(&self, place: &'static str, template: &str) -> Result<String, String> {
        environment()
            .render_named_str(place, template, self.0.clone())
            .map_err(|e| said(&e))
    }

    pub fn path(&self, template: &str) -> Result<String, String> {
        let path = self.render(PATH, template)?;
        // What stands between the arguments was checked with the description.
        if path.len() > MAX_LINE {
            return Err("the request's path is too long".into());
        }
        Ok(path)
    }

    pub fn header(&self, template: &str) -> Result<String, String> {
        let text = self.render(HEADER, template)?;
        let visible = text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
        if !visible || text.len() > MAX_LINE {
            return Err("an argument holds what cannot stand in a header".into());
        }
        Ok(text)
    }

    pub fn body(&self, template: &Value) -> Result<String, String> {
        let body = self.fill(template)?.unwrap_or(Value::Null).to_string();
        if body.len() > MAX_BODY {
            return Err("the request is larger than 64 KiB".into());
        }
        Ok(body)
    }

    /// `None` where the whole place is an argument that was not given.
    fn fill(&self, template: &Value) -> Result<Option<Value>, String> {
        Ok(match template {
            Value::String(text) => match expression(text) {
                Some(expression) => {
                    let env = environment();
                    let value = env
                        .compile_expression(expression)
                        .and_then(|e| e.eval(self.0.clone()))
                        .map_err(|e| said(&e))?;
                    if value.is_none() || value.is_undefined() {
                        return Ok(None);
                    }
                    Some(serde_json::to_value(&value).map_err(|e| e.to_string())?)
                }
                None => Some(Value::String(self.render(TEXT, text)?)),
            },
            Value::Array(all) => {
                let all = all.iter().map(|v| self.fill(v));
                let all: Vec<Option<Value>> = all.collect::<Result<_, _>>()?;
                Some(Value::Array(all.into_iter().flatten().collect()))
            }
            Value::Object(all) => {
                let mut filled = Map::new();
                for (name, value) in all {
                    if let Some(value) = self.fill(value)? {
                        filled.insert(name.clone(), value);
                    }
                }
                Some(Value::Object(filled))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(template.clone()),
        })
    }
}

/// The first line of an error, without the template.
fn said(e: &Error) -> String {
    let detail = e
        .detail()
        .map_or_else(|| e.kind().to_string(), str::to_owned);
    detail.lines().next().unwrap_or_default().to_owned()
}

/// What stands in the braces of a text that is nothing else: its value keeps its type.
fn expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!inner.contains("{{") && !inner.contains("}}")).then_some(inner)
}

/// The names that a template uses.
pub(super) fn names(template: &str) -> Result<BTreeSet<String>, String> {
    if template.len() > MAX_TEMPLATE {
        return Err("is longer than 4 KiB".into());
    }
    if template.contains("{%") || template.contains("{#") {
        return Err("holds a statement or a comment; only {{ argument }} is allowed".into());
    }
    let env = environment();
    let parsed = env
        .template_from_named_str(TEXT, template)
        .map_err(|e| format!("cannot be read: {}", said(&e)))?;
    Ok(parsed.undeclared_variables(false).into_iter().collect())
}

/// The same of a path, whose fixed parts must be one.
pub(super) fn path_names(template: &str) -> Result<BTreeSet<String>, String> {
    let fixed = template.starts_with('/') && !template.starts_with("//");
    let mut outside = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        outside.push_str(before);
        rest = after.split_once("}}").map_or("", |(_, behind)| behind);
    }
    outside.push_str(rest);
    let clean = outside
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-._~/?&=%:,+[]".contains(&b));
    if !fixed || !clean || outside.contains("..") {
        return Err("must begin with one / and hold only what may stand in a path".into());
    }
    names(template)
}

/// The same of a body.
pub(super) fn body_names(body: &Value) -> Result<BTreeSet<String>, String> {
    fn walk(value: &Value, depth: usize, out: &mut BTreeSet<String>) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("is nested too deeply".into());
        }
        let deeper = depth.saturating_add(1);
        match value {
            Value::String(text) => out.extend(names(text)?),
            Value::Array(all) => {
                for value in all {
                    walk(value, deeper, out)?;
                }
            }
            Value::Object(all) => {
                for value in all.values() {
                    walk(value, deeper, out)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }
    let mut out = BTreeSet::new();
    walk(body, 0, &mut out).map(|()| out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn context(arguments: &Value) -> Context {
        let known = ["text", "count", "optional"].map(str::to_owned).into();
        let operation = OperationId::parse("op_1").expect("an id");
        Context::of(&known, &operation, &arguments.to_string())
    }

    /// R98: no argument leaves its place, whatever it spells.
    #[test]
    fn a_hostile_argument_stays_where_it_was_put() {
        let template = json!({"a": "x {{ text }} y", "b": "{{ text }}", "list": ["{{ text }}"], "op": "{{ operation_id }}"});
        for hostile in [
            r#"","admin":true,"x":""#,
            r#"\","admin":true"#,
            "{{ operation_id }}",
            "{% for a in b %}",
            "line\r\nX-Admin: 1",
            "\u{0}\u{7f}",
            "}}]]",
        ] {
            let filled = context(&json!({"text": hostile}))
                .body(&template)
                .expect("a body");
            let read: Value = serde_json::from_str(&filled).expect("JSON");
            let wanted = json!({"a": format!("x {hostile} y"), "b": hostile, "list": [hostile], "op": "op_1"});
            assert_eq!(read, wanted);
        }
    }

    #[test]
    fn a_path_keeps_its_shape() {
        for (hostile, wanted) in [
            ("../../admin", "/t/%2E%2E%2F%2E%2E%2Fadmin?x=1"),
            ("a?b=c&d#e", "/t/a%3Fb%3Dc%26d%23e?x=1"),
            ("a b\r\n", "/t/a%20b%0D%0A?x=1"),
            ("é", "/t/%C3%A9?x=1"),
        ] {
            let path = context(&json!({"text": hostile})).path("/t/{{ text }}?x=1");
            assert_eq!(path.as_deref(), Ok(wanted));
        }
        for bad in [
            "t",
            "//evil.example/",
            "/a/../b",
            "/a b",
            "http://x/",
            "/a#b",
            "/a\r\nb",
        ] {
            assert!(path_names(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_header_takes_no_line_break() {
        let header = |text: &str| context(&json!({"text": text})).header("v {{ text }}");
        assert_eq!(header("a b").as_deref(), Ok("v a b"));
        for bad in ["a\r\nX: 1", "a\nb", "\u{0}", "é"] {
            assert!(header(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn types_are_kept_and_what_was_not_given_is_left_out() {
        let template = json!({"n": "{{ count }}", "o": "{{ optional }}", "d": "{{ optional or 'none' }}", "fixed": 1});
        let body = context(&json!({"count": 3}))
            .body(&template)
            .expect("a body");
        assert_eq!(body, r#"{"d":"none","fixed":1,"n":3}"#);
        let text = context(&json!({})).body(&json!("for {{ optional }}"));
        assert!(text.expect_err("needs it").contains("not given"));
    }

    #[test]
    fn templates_are_bounded_and_name_only_what_there_is() {
        assert_eq!(
            names("{{ a }} {{ b|default('x') }}"),
            Ok(["a".into(), "b".into()].into())
        );
        for bad in [
            "{% set x = 1 %}",
            "{# c #}",
            "{{ a",
            "{{ a|upper }}{{",
            &"x".repeat(5000),
        ] {
            assert!(names(bad).is_err(), "{bad}");
        }
        let long = "x".repeat(40_000);
        let fuel = context(&json!({"text": long})).body(&json!("{{ text }}{{ text }} "));
        assert!(fuel.is_err(), "too large for one text");
        let deep = (0..20).fold(json!("x"), |inner, _| json!([inner]));
        assert!(body_names(&deep).is_err());
    }
}
