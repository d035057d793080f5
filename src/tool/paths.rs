//! Places in a reply, as `JSONPath` (RFC 9535).

use serde_json::Value;
use serde_json_path::JsonPath;

/// A place in JSON.
#[derive(Clone, Debug)]
pub(super) struct Path(JsonPath);

impl Path {
    pub fn new(text: &str) -> Result<Self, String> {
        JsonPath::parse(text)
            .map(Self)
            .map_err(|e| format!("has the JSONPath {text:?}, which cannot be read: {e}"))
    }

    pub fn optional(text: Option<&String>) -> Result<Option<Self>, String> {
        text.map(|t| Self::new(t)).transpose()
    }

    /// Whether there is anything but null and false.
    pub fn finds(&self, value: &Value) -> bool {
        let nodes = self.0.query(value);
        nodes
            .iter()
            .any(|v| !v.is_null() && **v != Value::Bool(false))
    }

    /// All that is there.
    pub fn all<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        self.0.query(value).all()
    }

    /// The one value there; `None` where there is none or several.
    pub fn one<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let mut all = self.all(value).into_iter();
        match (all.next(), all.next()) {
            (Some(only), None) => Some(only),
            (_, _) => None,
        }
    }

    /// The one text or whole number there, as text.
    pub fn text(&self, value: &Value) -> Option<String> {
        match self.one(value)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(n) if n.is_i64() || n.is_u64() => Some(n.to_string()),
            Value::Number(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        }
    }
}
