//! Sample replies kept beside a description, and what each must mean: `tools check` and the tests run them.

use serde::Deserialize;
use serde_json::Value;

use super::Tool;
use super::reply::{self, Heard, Shown};
use super::stored::Stored;
use crate::domain::Instant;
use crate::domain::ids::OperationId;
use crate::domain::outcome::{Expected, OutcomeClass};

/// The operation that samples are about.
pub const OPERATION: &str = "op_sample";

/// A file of samples.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    /// Arguments that the tool must take.
    pub arguments: Value,
    pub replies: Vec<ReplySample>,
    #[serde(default)]
    pub lookups: Vec<LookupSample>,
}

/// A reply to a request of the operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplySample {
    pub name: String,
    pub status: u16,
    /// JSON, or the text that came instead of it.
    pub body: Value,
    pub class: OutcomeClass,
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    #[serde(default)]
    pub follow_up: bool,
}

/// An answer to the question what exists.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupSample {
    pub name: String,
    pub status: u16,
    pub body: Value,
    /// The ids of ours; none where the answer says nothing.
    pub found: Option<Vec<String>>,
    #[serde(default)]
    pub complete: bool,
}

impl Samples {
    /// Reads a file.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    /// Runs all of them; each line says what is not as the file has it.
    #[must_use]
    pub fn run(&self, tool: &Tool) -> Vec<String> {
        let mut wrong = Vec::new();
        let operation = match OperationId::parse(OPERATION) {
            Ok(operation) => operation,
            Err(e) => return vec![e.to_string()],
        };
        let money = match tool.arguments(&self.arguments) {
            Err(e) => {
                wrong.push(format!("the sample arguments are refused: {e}"));
                None
            }
            Ok(args) => {
                match tool.request(&operation, &args.body) {
                    Err(e) => wrong.push(format!("the sample arguments make no request: {e}")),
                    Ok(bytes) if Stored::parse(&bytes).is_none() => {
                        wrong.push("the request cannot be read back".to_owned());
                    }
                    Ok(_) => {}
                }
                args.money
            }
        };
        let expected = Expected {
            operation: &operation,
            payment: None,
            money,
        };
        wrong.extend(self.replies.iter().filter_map(|r| r.wrong(tool, &expected)));
        wrong.extend(
            self.lookups
                .iter()
                .filter_map(|l| l.wrong(tool, &operation)),
        );
        wrong
    }
}

fn bytes(body: &Value) -> Vec<u8> {
    match body {
        Value::Null => Vec::new(),
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

impl ReplySample {
    fn wrong(&self, tool: &Tool, expected: &Expected<'_>) -> Option<String> {
        let body = bytes(&self.body);
        let heard = Heard {
            status: self.status,
            body: Some(&body),
            at: Instant::UNIX_EPOCH,
        };
        let outcome = reply::outcome(tool.rules(), expected, &heard);
        let id = outcome.object.as_ref().map(|o| o.id.to_string());
        let name = &self.name;
        if outcome.class != self.class {
            return Some(format!(
                "reply {name:?} is {}, not {}",
                outcome.class, self.class
            ));
        }
        if self.reference.is_some() && id != self.reference {
            return Some(format!(
                "reply {name:?} names the object {id:?}, not {:?}",
                self.reference
            ));
        }
        let follows = outcome.class == OutcomeClass::Succeeded && outcome.error.is_some();
        (follows != self.follow_up).then(|| {
            format!(
                "reply {name:?} has a follow-up: {follows}, not {}",
                self.follow_up
            )
        })
    }
}

impl LookupSample {
    fn wrong(&self, tool: &Tool, operation: &OperationId) -> Option<String> {
        let name = &self.name;
        let Some(lookup) = tool.lookup() else {
            return Some(format!("lookup {name:?}: the tool has none"));
        };
        let body = bytes(&self.body);
        let heard = Heard {
            status: self.status,
            body: Some(&body),
            at: Instant::UNIX_EPOCH,
        };
        let (found, complete) = match lookup.shown(operation, &heard) {
            Shown::Nothing(_) => (None, false),
            Shown::Objects { objects, complete } => {
                let ids = objects.iter().map(|o| o.id.to_string());
                (Some(ids.collect::<Vec<_>>()), complete)
            }
        };
        let same = found == self.found && complete == self.complete;
        (!same).then(|| format!("lookup {name:?} shows {found:?}, complete: {complete}"))
    }
}
