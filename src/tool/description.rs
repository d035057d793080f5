//! The form of a description: a table of the configuration, or a file of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::evidence::ObjectStatus;

/// How bad a wrong or a double call is (R98).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Risk {
    /// Can be taken back.
    Low,
    /// A nuisance.
    #[default]
    Medium,
    /// Cannot be taken back and costs: a lead approves every operation.
    High,
}

/// What a tool takes, sends and hears.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// One sentence for people and models.
    pub about: String,
    #[serde(default)]
    pub risk: Risk,
    /// The status of a success: created, sent.
    pub success_word: String,
    /// The result's name of the provider's object.
    pub result_id: String,
    /// What the effect is called in a sentence.
    pub noun: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// The arguments that make two calls the same effect.
    pub identity: Vec<String>,
    /// The argument that names the order, if one does.
    pub order: Option<String>,
    /// The argument that holds minor units, and the one that holds their currency.
    pub amount: Option<String>,
    pub currency: Option<String>,
    pub request: RequestPart,
    /// The header that carries the idempotency key.
    pub key_header: Option<String>,
    pub outcomes: Vec<OutcomePart>,
    pub lookup: Option<LookupPart>,
    /// Whether the effect is itself a delivery: sent and delivered are then two facts (R82).
    #[serde(default)]
    pub delivers: bool,
    /// Outcome class → recovery branch, where it is stricter than the protocol.
    #[serde(default)]
    pub recovery: BTreeMap<String, String>,
}

/// The request of every attempt.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestPart {
    #[serde(default = "post")]
    pub method: String,
    /// A template below the provider's `base_url`.
    pub path: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// JSON whose texts are templates.
    pub body: Option<Value>,
}

fn post() -> String {
    "POST".into()
}

/// Which statuses a rule is for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Statuses {
    One(u16),
    Several(Vec<u16>),
    /// `"2xx"`.
    Class(String),
}

/// One line of the mapping from replies to outcome classes. The first that fits counts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomePart {
    pub status: Statuses,
    /// A `JSONPath` that must find something.
    #[serde(rename = "where")]
    pub found: Option<String>,
    /// An outcome class of the protocol, or `found`: it exists already and is ours.
    pub class: String,
    /// Where the object's id stands.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// Where our operation id stands, if the reply repeats it.
    pub correlation: Option<String>,
    pub amount: Option<String>,
    pub currency: Option<String>,
    /// Where the provider says why.
    pub why: Option<String>,
    /// The refusal of a limiter that stands before any effect.
    #[serde(default)]
    pub limiter: bool,
    /// It happened, but not all of it: what a person has to do yet (R92).
    pub follow_up: Option<String>,
}

/// How the objects of an operation are found.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupPart {
    /// A template that asks by `operation_id`.
    pub path: String,
    /// A template that reads one object by `ref`.
    pub fetch: Option<String>,
    /// Where the objects stand in the answer.
    pub found: String,
    /// Within an object: its id, our operation id, its state.
    pub id: String,
    pub correlation: String,
    pub state: Option<String>,
    /// The provider's words for states; without a state an object has happened.
    #[serde(default)]
    pub states: BTreeMap<String, ObjectStatus>,
    pub amount: Option<String>,
    pub currency: Option<String>,
    /// Finds something where the list goes on: then it proves no absence.
    pub more: Option<String>,
    /// Statuses that say that there is nothing.
    #[serde(default)]
    pub absent: Vec<u16>,
}

impl Description {
    /// Reads a file.
    ///
    /// # Errors
    /// Why it is none, as one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |span| {
                text.get(..span.start)
                    .map_or(1, |before| before.matches('\n').count().saturating_add(1))
            });
            let why = e.message().lines().next().unwrap_or_default();
            format!("line {line}: {why}")
        })
    }
}
