//! JSON from outside, read so that it can mean one thing only: each member name once, not too deep.
//!
//! Readers disagree about which of two equal names counts; what is stored and what is sent could then
//! differ. Never: mends anything. Tests: below, `tests/gateway/bodies.rs`.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Deepest nesting of arrays and objects.
const MAX_DEPTH: u8 = 32;

/// Why a text is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotJson {
    #[error("the body is not UTF-8")]
    NotUtf8,
    #[error("the member {0} stands there twice")]
    Twice(String),
    #[error("arrays and objects lie deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("the body is not JSON: {0}")]
    Malformed(String),
}

impl NotJson {
    /// Its stable word.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::NotUtf8 => "not_utf8",
            Self::Twice(_) => "duplicate_member",
            Self::TooDeep => "too_deep",
            Self::Malformed(_) => "not_json",
        }
    }
}

/// Reads one value.
pub(super) fn read(bytes: &[u8]) -> Result<Value, NotJson> {
    let text = std::str::from_utf8(bytes).map_err(|_| NotJson::NotUtf8)?;
    let why = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_str(text);
    let strict = Strict {
        left: MAX_DEPTH,
        why: &why,
    };
    let read = strict
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    read.map_err(|error| {
        why.take()
            .unwrap_or_else(|| NotJson::Malformed(error.to_string()))
    })
}

#[derive(Clone, Copy)]
struct Strict<'w> {
    left: u8,
    why: &'w Cell<Option<NotJson>>,
}

impl Strict<'_> {
    fn below<E: Error>(self) -> Result<Self, E> {
        let Some(left) = self.left.checked_sub(1) else {
            self.why.set(Some(NotJson::TooDeep));
            return Err(E::custom("too deep"));
        };
        Ok(Self { left, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut a: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut all = Vec::new();
        while let Some(one) = a.next_element_seed(below)? {
            all.push(one);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut a: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut all = Map::new();
        while let Some(name) = a.next_key::<String>()? {
            if all.contains_key(&name) {
                let shown = crate::domain::text::SafeText::new(&name);
                self.why.set(Some(NotJson::Twice(shown.to_string())));
                return Err(A::Error::custom("a member stands there twice"));
            }
            let value = a.next_value_seed(below)?;
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn json_is_read_whole_and_in_one_way() {
        let text = r#" {"b":[1,-2,0.5,"x",null,true],"a":{"c":18446744073709551615}} "#;
        let value = read(text.as_bytes()).expect("JSON");
        assert_eq!(
            value,
            json!({"a":{"c":18_446_744_073_709_551_615_u64},"b":[1,-2,0.5,"x",null,true]})
        );
        assert_eq!(read(b"7").expect("JSON"), json!(7));
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        for (text, code) in [
            (&b"\xff\"a\""[..], "not_utf8"),
            (br#"{"a":1,"a":1}"#, "duplicate_member"),
            (br#"{"a":{"b":[{"c":1,"\u0063":2}]}}"#, "duplicate_member"),
            (deep(33).as_bytes(), "too_deep"),
            (deep(100_000).as_bytes(), "too_deep"),
            (b"", "not_json"),
            (b"{", "not_json"),
            (b"{} {}", "not_json"),
            (b"{'a':1}", "not_json"),
            (br#"{"a":01}"#, "not_json"),
            (br#"{"a":NaN}"#, "not_json"),
            (br#"{"a":1e999}"#, "not_json"),
            (br#"{"a":"\ud800"}"#, "not_json"),
            (b"{\"a\":\"\x01\"}", "not_json"),
        ] {
            let refused = read(text).expect_err("refused");
            assert_eq!(refused.code(), code, "{:?}", String::from_utf8_lossy(text));
        }
        assert!(read(deep(32).as_bytes()).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
