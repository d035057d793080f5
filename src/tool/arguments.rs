//! The arguments of a described tool: checked against its schema, and told apart by its identity.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use super::Tool;
use super::description::Description;
use crate::domain::arguments::Arguments;
use crate::domain::identity::{Field, Identity};
use crate::domain::ids::OrderId;
use crate::domain::key::hex_digest;
use crate::domain::money::{Currency, Money};
use crate::domain::text::{SafeText, TextError, plain};
use crate::domain::tool_call::ArgumentError;

/// Largest arguments, bytes of canonical JSON.
const MAX_ARGUMENTS: usize = 32 * 1024;
/// Longest text of an identity field, in characters.
const MAX_FIELD: usize = 255;
/// The argument that every tool has: which succeeded operation a further equal one follows.
pub(super) const AFTER: &str = "after";

/// The arguments that the schema names; also that the description's own parts name some of them.
pub(super) fn known(text: &Description) -> Result<BTreeSet<String>, String> {
    let closed = text.schema.get("additionalProperties") == Some(&Value::Bool(false));
    let object = text.schema.get("type") == Some(&Value::String("object".into()));
    let properties = text.schema.get("properties").and_then(Value::as_object);
    let Some(properties) = properties.filter(|_| closed && object) else {
        return Err("schema must be of type object, name its properties and set additionalProperties = false".into());
    };
    let required: BTreeSet<&str> = text
        .schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let typed = |name: &str, types: &[&str]| {
        let of = properties.get(name).and_then(|p| p.get("type"));
        let of = of.and_then(Value::as_str).unwrap_or_default();
        required.contains(name) && types.contains(&of)
    };
    if text.identity.is_empty() {
        return Err(
            "identity is empty: it names the arguments that make two calls the same".into(),
        );
    }
    for name in &text.identity {
        if !typed(name, &["string", "integer"]) {
            return Err(format!(
                "identity names {name}, which is no required argument of type string or integer"
            ));
        }
    }
    for (part, name, of) in [
        ("order", &text.order, "string"),
        ("amount", &text.amount, "integer"),
        ("currency", &text.currency, "string"),
    ] {
        if let Some(name) = name.as_ref().filter(|name| !typed(name, &[of])) {
            return Err(format!(
                "{part} names {name}, which is no required argument of type {of}"
            ));
        }
    }
    if text.amount.is_some() != text.currency.is_some() {
        return Err("amount and currency come together".into());
    }
    if properties.contains_key(AFTER) {
        return Err("schema names after, which every tool has".into());
    }
    Ok(properties.keys().cloned().collect())
}

/// The schema, compiled; references lead nowhere outside.
pub(super) fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .map_err(|e| format!("schema cannot be used: {}", SafeText::new(&e.to_string())))
}

fn wrong(why: impl AsRef<str>) -> ArgumentError {
    ArgumentError(SafeText::new(why.as_ref()))
}

impl Tool {
    /// A text of the command line as the schema has the argument; what does not convert stays text, and is
    /// refused in the schema's words.
    #[must_use]
    pub fn typed(&self, name: &str, text: &str) -> Value {
        let of = self.text.schema.get("properties").and_then(|p| p.get(name));
        let of = of.and_then(|p| p.get("type")).and_then(Value::as_str);
        let read = match of {
            Some("integer") => text.parse::<i64>().ok().map(Value::from),
            Some("number") => text.parse::<f64>().ok().map(Value::from),
            Some("boolean") => text.parse::<bool>().ok().map(Value::from),
            _ => None,
        };
        read.unwrap_or_else(|| Value::from(text))
    }

    /// Reads and checks the arguments of a call (step 2 of the protocol).
    ///
    /// # Errors
    /// One sentence that names the argument at fault.
    pub fn arguments(&self, given: &Value) -> Result<Arguments, ArgumentError> {
        let Value::Object(map) = given else {
            return Err(wrong("the arguments must be a JSON object"));
        };
        // JSON null is an argument that is not given.
        let mut map: serde_json::Map<String, Value> = map
            .iter()
            .filter(|(_, v)| !v.is_null())
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let after = match map.remove(AFTER) {
            None => None,
            Some(Value::String(id)) => Some(id.parse().map_err(|e| wrong(format!("after {e}")))?),
            Some(_) => return Err(wrong("after must be text")),
        };
        let value = Value::Object(map);
        if let Some(error) = self.schema.iter_errors(&value).next() {
            let at = error.instance_path().to_string();
            let at = at.trim_start_matches('/');
            let why = error.to_string();
            return Err(wrong(if at.is_empty() {
                why
            } else {
                format!("{at}: {why}")
            }));
        }
        let body = value.to_string();
        if body.len() > MAX_ARGUMENTS {
            return Err(wrong("the arguments are larger than 32 KiB"));
        }
        let text = &self.text;
        Ok(Arguments {
            identity: self.identity(&value)?,
            order: text
                .order
                .as_ref()
                .map(|name| {
                    OrderId::parse(said(&value, name)).map_err(|e| wrong(format!("{name} {e}")))
                })
                .transpose()?,
            money: self.money(&value)?,
            payment: None,
            charge: None,
            reason: None,
            after,
            body,
        })
    }

    fn identity(&self, value: &Value) -> Result<Identity, ArgumentError> {
        let mut fields = BTreeMap::new();
        for name in &self.text.identity {
            let field = match value.get(name) {
                Some(Value::Number(n)) => Field::Number(
                    n.as_i64()
                        .ok_or_else(|| wrong(format!("{name} is too large a number")))?,
                ),
                Some(Value::String(raw)) => {
                    Field::Text(canonical(raw).ok_or_else(|| wrong(format!("{name} is empty")))?)
                }
                _ => return Err(wrong(format!("{name} is missing"))),
            };
            fields.insert(name.as_str(), field);
        }
        Ok(Identity::new(&fields))
    }

    fn money(&self, value: &Value) -> Result<Option<Money>, ArgumentError> {
        let (Some(amount), Some(currency)) = (&self.text.amount, &self.text.currency) else {
            return Ok(None);
        };
        let code: Currency = said(value, currency)
            .parse()
            .map_err(|e| wrong(format!("{currency} {e}")))?;
        let minor = value.get(amount).and_then(Value::as_i64);
        let minor = minor.ok_or_else(|| wrong(format!("{amount} must be whole minor units")))?;
        Money::from_minor(minor, code)
            .map(Some)
            .map_err(|e| wrong(format!("{amount} {e}")))
    }
}

/// A text as it is compared: in one spelling, and long or many-lined ones by their digest.
fn canonical(raw: &str) -> Option<String> {
    match plain(raw, MAX_FIELD) {
        Ok(text) => Some(text),
        Err(TextError::Empty) => None,
        Err(TextError::TooLong { .. } | TextError::Hostile) => {
            let text: String = raw.trim().nfc().collect();
            Some(format!("sha256:{}", hex_digest(text.as_bytes())))
        }
    }
}

fn said<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
