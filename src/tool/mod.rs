//! Described tools: what a tool of the configuration takes, what it sends and how its replies are read.
//!
//! Owns: the form of a description ([`description`]), its arguments ([`arguments`]), its templates
//! ([`render`]), the mapping of replies and lookups ([`reply`]), and the descriptions that come with the
//! program ([`shipped`]). Pure: the same arguments give the same bytes, and the same reply the same class.
//! Never: connects, decides what follows from a class, or fetches a schema. Tests: beside each file, and
//! `tests/tools/`.

mod arguments;
pub mod description;
mod paths;
mod render;
pub mod reply;
pub mod samples;
pub mod shipped;
pub mod stored;

use std::collections::BTreeSet;

use crate::domain::ids::OperationId;
use crate::domain::policy::{ProviderKind, Words};
use crate::domain::recovery::Recovery;
use crate::domain::tool_result::RESERVED;
use description::{Description, LookupPart};
use reply::Rule;
use stored::Stored;

/// Names that a tool may not set: the connection's own, and the provider's secret.
const OWN_HEADERS: [&str; 8] = [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "user-agent",
    "cookie",
];
/// What every template may name besides the arguments.
const OPERATION: &str = "operation_id";
/// What the template of a single object may name.
const REFERENCE: &str = "ref";

/// A description that was checked, ready for use.
#[derive(Debug)]
pub struct Tool {
    text: Description,
    schema: jsonschema::Validator,
    /// The arguments that the schema knows.
    known: BTreeSet<String>,
    rules: Vec<Rule>,
    lookup: Option<reply::Lookup>,
    words: Words,
    recovery: Recovery,
}

impl PartialEq for Tool {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
impl Eq for Tool {}

impl Tool {
    /// Checks a description for a provider of this kind.
    ///
    /// # Errors
    /// What is wrong, as one sentence that names the part.
    pub fn new(text: Description, kind: ProviderKind) -> Result<Self, String> {
        let known = arguments::known(&text)?;
        let schema = arguments::validator(&text.schema)?;
        let words = words(&text)?;
        let rules = text
            .outcomes
            .iter()
            .enumerate()
            .map(|(n, part)| {
                Rule::new(part, text.amount.is_some(), kind)
                    .map_err(|e| format!("outcomes[{n}] {e}"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let lookup = text
            .lookup
            .as_ref()
            .map(|part| reply::Lookup::new(part, text.amount.is_some()))
            .transpose()
            .map_err(|e| format!("lookup {e}"))?;
        let mut tool = Self {
            recovery: Recovery::default(),
            schema,
            known,
            rules,
            lookup,
            words,
            text,
        };
        tool.templates(kind)?;
        tool.recovery = Recovery::new(&tool.text.recovery, kind, tool.lookup.is_some())?;
        Ok(tool)
    }

    /// What it is for, in one sentence.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.text.about
    }

    /// The JSON Schema of its arguments as callers see it: with `after`, which every tool takes.
    #[must_use]
    pub fn schema(&self) -> serde_json::Value {
        let mut schema = self.text.schema.clone();
        if let Some(properties) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) {
            let after = serde_json::json!({
                "type": "string",
                "description": "The newest equal operation, where one more is really wanted"
            });
            properties.insert(arguments::AFTER.to_owned(), after);
        }
        schema
    }

    /// The description that it was made of.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.text
    }

    /// How it speaks of its effect.
    #[must_use]
    pub fn words(&self) -> Words {
        self.words
    }

    /// Its own recovery branches.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// How its replies are read.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// How its objects are looked up.
    #[must_use]
    pub fn lookup(&self) -> Option<&reply::Lookup> {
        self.lookup.as_ref()
    }

    /// The exact bytes of the request of an operation with these canonical arguments.
    ///
    /// # Errors
    /// One sentence: a template needs an argument that was not given, or the request is too large.
    pub fn request(&self, operation: &OperationId, arguments: &str) -> Result<Vec<u8>, String> {
        let part = &self.text.request;
        let context = render::Context::of(&self.known, operation, arguments);
        let path = context.path(&part.path)?;
        let mut headers = Vec::new();
        for (name, template) in &part.headers {
            headers.push((name.as_str(), context.header(template)?));
        }
        let body = part.body.as_ref().map(|b| context.body(b)).transpose()?;
        Stored::write(part.method.as_str(), &path, &headers, body.as_deref())
    }

    /// The path of the request that looks for an operation's objects.
    ///
    /// # Errors
    /// As [`Tool::request`].
    #[must_use]
    pub fn lookup_path(&self, operation: &OperationId) -> Option<Result<String, String>> {
        let part = self.text.lookup.as_ref()?;
        let context = render::Context::of(&BTreeSet::new(), operation, "{}");
        Some(context.path(&part.path))
    }

    /// The path of the request that reads one object by its id.
    #[must_use]
    pub fn fetch_path(&self, reference: &str) -> Option<Result<String, String>> {
        let template = self.text.lookup.as_ref()?.fetch.as_ref()?;
        Some(render::Context::reference(reference).path(template))
    }

    /// Every template names what there is, and the promises of the provider's kind can be kept.
    fn templates(&self, kind: ProviderKind) -> Result<(), String> {
        let part = &self.text.request;
        if !["POST", "PUT", "PATCH"].contains(&part.method.as_str()) {
            return Err("request.method must be POST, PUT or PATCH".into());
        }
        let mut names = self.known.clone();
        names.insert(OPERATION.into());
        let mut used = BTreeSet::new();
        let mut look = |what: &str, found: Result<BTreeSet<String>, String>| {
            let found = found.map_err(|e| format!("{what} {e}"))?;
            if let Some(name) = found.iter().find(|n| !names.contains(*n)) {
                return Err(format!(
                    "{what} names {name}, which is no argument of the schema"
                ));
            }
            used.extend(found);
            Ok(())
        };
        look("request.path", render::path_names(&part.path))?;
        for (name, template) in &part.headers {
            self.may_set(name)?;
            look("request.headers", render::names(template))?;
        }
        if let Some(body) = &part.body {
            look("request.body", render::body_names(body))?;
        }
        let says_who = used.contains(OPERATION);
        match (kind, &self.text.key_header, &self.text.lookup) {
            (ProviderKind::Keyed, None, _) => {
                Err("key_header is missing: the provider is keyed, and the key has to be sent".into())
            }
            (ProviderKind::Lookup, _, None) => {
                Err("lookup is missing: the provider is asked for what exists before anything is sent again".into())
            }
            (ProviderKind::Lookup, _, _) if !says_who => Err(
                "request does not send operation_id, by which its objects are found again".into(),
            ),
            (_, Some(name), _) if self.may_set(name).is_err() => {
                Err("key_header is no header that may be set".into())
            }
            (_, _, Some(lookup)) => look_for(lookup),
            (_, _, None) => Ok(()),
        }
    }

    fn may_set(&self, name: &str) -> Result<(), String> {
        let token = !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let lower = name.to_ascii_lowercase();
        let key = self.text.key_header.as_deref();
        let is_key = key.is_some_and(|k| k.eq_ignore_ascii_case(name));
        if !token || OWN_HEADERS.contains(&lower.as_str()) {
            return Err(format!("request.headers may not set {name}"));
        }
        if is_key && self.text.request.headers.contains_key(name) {
            return Err(format!(
                "request.headers sets {name}, which carries the key"
            ));
        }
        Ok(())
    }
}

fn look_for(part: &LookupPart) -> Result<(), String> {
    let names = render::path_names(&part.path).map_err(|e| format!("lookup.path {e}"))?;
    if names.iter().any(|n| n != OPERATION) || !names.contains(OPERATION) {
        return Err("lookup.path must ask by operation_id, and by nothing else".into());
    }
    if let Some(fetch) = &part.fetch {
        let names = render::path_names(fetch).map_err(|e| format!("lookup.fetch {e}"))?;
        if names.iter().any(|n| n != REFERENCE) || !names.contains(REFERENCE) {
            return Err("lookup.fetch must ask by ref, and by nothing else".into());
        }
    }
    Ok(())
}

/// The tool's words, which stand beside the contract's own.
fn words(text: &Description) -> Result<Words, String> {
    let word = |w: &str| {
        !w.is_empty() && w.len() <= 40 && w.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    let (success, object) = (text.success_word.as_str(), text.result_id.as_str());
    if !word(success) || RESERVED.contains(&success) || ["open", "unknown"].contains(&success) {
        return Err("success_word must be one word of its own, such as created or sent".into());
    }
    let taken = ["operation_id", "call_id", "_id"];
    if !word(object) || !object.ends_with("_id") || taken.contains(&object) {
        return Err(
            "result_id must be a name of its own that ends in _id, such as ticket_id".into(),
        );
    }
    if !word(&text.noun) {
        return Err("noun must be one word, such as ticket".into());
    }
    Ok(Words {
        success: leaked(success),
        object: leaked(object),
        noun: leaked(&text.noun),
    })
}

/// Words live as long as the program: they are read once, with the configuration.
fn leaked(word: &str) -> &'static str {
    Box::leak(word.to_owned().into_boxed_str())
}
