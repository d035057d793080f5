//! What a reply to a described tool's request means: the first rule that fits gives the class, and where
//! none does the effect is unknown.
//!
//! Owns: reading an object out of a reply or a lookup. Total: nothing here fails on any reply. Never: takes
//! a 2xx alone for a success, or a 4xx that no rule names for a refusal. Tests: `tests/tools/`.

use serde_json::Value;

use super::description::{LookupPart, OutcomePart, Statuses};
use super::paths::Path;
use crate::domain::Instant;
use crate::domain::evidence::{ObjectStatus, ProviderObject};
use crate::domain::ids::{OperationId, ProviderRef};
use crate::domain::money::Currency;
use crate::domain::outcome::{Expected, Outcome, OutcomeClass, classify_object};
use crate::domain::policy::ProviderKind;
use crate::domain::text::SafeText;

/// Most objects that a lookup may bring.
const MAX_OBJECTS: usize = 100;

/// A reply as it came.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    pub status: u16,
    /// `None`: broken off, too slow or too large.
    pub body: Option<&'a [u8]>,
    pub at: Instant,
}

/// One line of the mapping, ready for use.
#[derive(Debug)]
pub struct Rule {
    statuses: Statuses,
    found: Option<Path>,
    class: OutcomeClass,
    reference: Option<Path>,
    correlation: Option<Path>,
    amount: Option<Path>,
    currency: Option<Path>,
    why: Option<Path>,
    limiter: bool,
    follow_up: Option<SafeText>,
}

fn fits(statuses: &Statuses, status: u16) -> bool {
    match statuses {
        Statuses::One(one) => *one == status,
        Statuses::Several(all) => all.contains(&status),
        Statuses::Class(word) => {
            let class = word.strip_suffix("xx").and_then(|c| c.parse::<u16>().ok());
            class == Some(status / 100)
        }
    }
}

/// The statuses that a rule names, all of them.
fn all(statuses: &Statuses) -> Vec<u16> {
    (100..600).filter(|s| fits(statuses, *s)).collect()
}

impl Rule {
    /// Checks a line for a tool with or without money, of a provider of this kind.
    pub(super) fn new(part: &OutcomePart, money: bool, kind: ProviderKind) -> Result<Self, String> {
        let statuses = all(&part.status);
        if statuses.is_empty() {
            return Err("has no HTTP status; write 201, [200, 201] or \"2xx\"".into());
        }
        let class = match part.class.as_str() {
            "found" => OutcomeClass::Succeeded,
            word => word
                .parse()
                .map_err(|_| format!("has the class {word:?}, which is none"))?,
        };
        let only = |ok: fn(u16) -> bool| statuses.iter().all(|s| ok(*s));
        let sound = match class {
            OutcomeClass::Succeeded if part.class == "found" => only(|s| s == 409 || s / 100 == 2),
            OutcomeClass::Succeeded | OutcomeClass::Pending | OutcomeClass::EffectFailed => {
                only(|s| s / 100 == 2)
            }
            OutcomeClass::ValidationFailure
            | OutcomeClass::PermissionDenied
            | OutcomeClass::KeyMismatch
            | OutcomeClass::KeyInProgress => only(|s| s / 100 == 4),
            OutcomeClass::RetryableFailure => only(|s| s == 429),
            // A keyed provider saves its 5xx, so asking again tells nothing; any other is asked what exists.
            OutcomeClass::SideEffectUnknown => {
                kind != ProviderKind::Keyed || !statuses.iter().any(|s| s / 100 == 5)
            }
            OutcomeClass::ServerError => true,
            OutcomeClass::ReplyMismatch | OutcomeClass::NotSent => false,
        };
        if !sound {
            return Err(format!(
                "gives {} to statuses that do not say it",
                part.class
            ));
        }
        let claims = class.claims_object();
        if claims && part.reference.is_none() {
            return Err("needs ref: where the object's id stands".into());
        }
        if claims && money && (part.amount.is_none() || part.currency.is_none()) {
            return Err("needs amount and currency: the tool moves money".into());
        }
        if part.follow_up.is_some() && class != OutcomeClass::Succeeded {
            return Err("has a follow_up, which only a success can have".into());
        }
        if part.limiter && class != OutcomeClass::RetryableFailure {
            return Err("has limiter, which only retryable_failure can be".into());
        }
        Ok(Self {
            statuses: part.status.clone(),
            found: Path::optional(part.found.as_ref())?,
            class,
            reference: Path::optional(part.reference.as_ref())?,
            correlation: Path::optional(part.correlation.as_ref())?,
            amount: Path::optional(part.amount.as_ref())?,
            currency: Path::optional(part.currency.as_ref())?,
            why: Path::optional(part.why.as_ref())?,
            limiter: part.limiter,
            follow_up: part.follow_up.as_deref().map(SafeText::new),
        })
    }

    fn fits(&self, status: u16, body: &Value) -> bool {
        fits(&self.statuses, status) && self.found.as_ref().is_none_or(|p| p.finds(body))
    }

    /// The object of the reply: ours because it answers our own request, unless it names another owner.
    fn object(&self, body: &Value, operation: &OperationId, at: Instant) -> Option<ProviderObject> {
        let id = self.reference.as_ref()?.text(body)?;
        let owner = match &self.correlation {
            None => Some(operation.clone()),
            Some(path) => path.text(body).and_then(|id| OperationId::parse(&id).ok()),
        };
        let status = match self.class {
            OutcomeClass::Succeeded => ObjectStatus::Succeeded,
            OutcomeClass::EffectFailed => ObjectStatus::Failed,
            _ => ObjectStatus::Pending,
        };
        let (amount_minor, currency) = money(body, self.amount.as_ref(), self.currency.as_ref());
        Some(ProviderObject {
            id: ProviderRef::parse(&id).ok()?,
            operation: owner,
            payment: None,
            charge: None,
            amount_minor,
            currency,
            status,
            created_at: at,
            failure_reason: self.words(body),
        })
    }

    fn words(&self, body: &Value) -> Option<SafeText> {
        let text = self.why.as_ref()?.text(body)?;
        Some(SafeText::new(&text))
    }
}

fn money(
    body: &Value,
    amount: Option<&Path>,
    currency: Option<&Path>,
) -> (Option<i64>, Option<Currency>) {
    let minor = amount.and_then(|p| p.one(body)).and_then(Value::as_i64);
    let code = currency.and_then(|p| p.text(body));
    (minor, code.and_then(|c| c.parse().ok()))
}

/// The outcome of an attempt that was answered.
#[must_use]
pub fn outcome(rules: &[Rule], expected: &Expected<'_>, heard: &Heard<'_>) -> Outcome {
    let with_status = |outcome: Outcome| Outcome {
        http_status: Some(heard.status),
        ..outcome
    };
    let unknown =
        |why: &str| with_status(Outcome::of(OutcomeClass::SideEffectUnknown).because(why));
    let Some(bytes) = heard.body else {
        return with_status(broken(heard.status));
    };
    let body: Value = serde_json::from_slice(bytes).unwrap_or(Value::Null);
    let Some(rule) = rules.iter().find(|r| r.fits(heard.status, &body)) else {
        return with_status(unnamed(heard.status));
    };
    if rule.class.claims_object() {
        let Some(object) = rule.object(&body, expected.operation, heard.at) else {
            return unknown("the answer does not name the object where the tool says");
        };
        let class = classify_object(expected, &object);
        let error = match class {
            OutcomeClass::ReplyMismatch => Some(
                "the object in the answer is another operation's, or has another amount".into(),
            ),
            OutcomeClass::SideEffectUnknown => {
                Some("the object in the answer lacks our operation id".into())
            }
            OutcomeClass::EffectFailed => object.failure_reason.clone(),
            _ => rule.follow_up.clone(),
        };
        return with_status(Outcome {
            error,
            object: Some(object),
            ..Outcome::of(class)
        });
    }
    let words = rule.words(&body);
    with_status(Outcome {
        error: Some(words.unwrap_or_else(|| {
            SafeText::new(&format!("HTTP {} without a readable reason", heard.status))
        })),
        limiter: rule.limiter,
        ..Outcome::of(rule.class)
    })
}

/// An answer that broke off: only the status counts, and only against us.
fn broken(status: u16) -> Outcome {
    let class = if status / 100 == 5 {
        OutcomeClass::ServerError
    } else {
        OutcomeClass::SideEffectUnknown
    };
    Outcome::of(class).because(&format!(
        "the answer (HTTP {status}) broke off, came too slowly or was too large"
    ))
}

/// What no rule names. A 5xx is one by the protocol.
fn unnamed(status: u16) -> Outcome {
    let class = if status / 100 == 5 {
        OutcomeClass::ServerError
    } else {
        OutcomeClass::SideEffectUnknown
    };
    Outcome::of(class).because(&format!(
        "no rule of the tool names this answer (HTTP {status})"
    ))
}

/// How the objects of an operation are read out of an answer.
#[derive(Debug)]
pub struct Lookup {
    found: Path,
    id: Path,
    correlation: Path,
    state: Option<(Path, std::collections::BTreeMap<String, ObjectStatus>)>,
    amount: Option<Path>,
    currency: Option<Path>,
    more: Option<Path>,
    absent: Vec<u16>,
}

/// What an answer to a lookup shows.
#[derive(Debug, PartialEq, Eq)]
pub enum Shown {
    /// Everything there is, if `complete`.
    Objects {
        objects: Vec<ProviderObject>,
        complete: bool,
    },
    /// It says nothing.
    Nothing(SafeText),
}

impl Lookup {
    pub(super) fn new(part: &LookupPart, money: bool) -> Result<Self, String> {
        if part.state.is_some() == part.states.is_empty() {
            return Err("needs state and states together".into());
        }
        if money && (part.amount.is_none() || part.currency.is_none()) {
            return Err("needs amount and currency: the tool moves money".into());
        }
        if part.absent.iter().any(|s| ![404, 410].contains(s)) {
            return Err("may take only 404 and 410 for absent".into());
        }
        let state = Path::optional(part.state.as_ref())?;
        Ok(Self {
            found: Path::new(&part.found)?,
            id: Path::new(&part.id)?,
            correlation: Path::new(&part.correlation)?,
            state: state.map(|path| (path, part.states.clone())),
            amount: Path::optional(part.amount.as_ref())?,
            currency: Path::optional(part.currency.as_ref())?,
            more: Path::optional(part.more.as_ref())?,
            absent: part.absent.clone(),
        })
    }

    /// Reads the answer to the question for an operation's objects.
    #[must_use]
    pub fn shown(&self, operation: &OperationId, heard: &Heard<'_>) -> Shown {
        if self.absent.contains(&heard.status) {
            let (objects, complete) = (Vec::new(), true);
            return Shown::Objects { objects, complete };
        }
        let nothing = |why: &str| Shown::Nothing(SafeText::new(why));
        if heard.status / 100 != 2 {
            return nothing(&format!(
                "the lookup was answered with HTTP {}",
                heard.status
            ));
        }
        let Some(body) = heard
            .body
            .and_then(|b| serde_json::from_slice::<Value>(b).ok())
        else {
            return nothing("the answer to the lookup cannot be read");
        };
        let items = self.found.all(&body);
        let mut complete = items.len() <= MAX_OBJECTS && !self.goes_on(&body);
        let mut objects = Vec::new();
        for item in items.into_iter().take(MAX_OBJECTS) {
            match self.read(item, heard.at) {
                // The provider's search may be looser than ours: another's object is none of our business.
                Some(object) if object.operation.as_ref() == Some(operation) => {
                    objects.push(object);
                }
                Some(object) if object.operation.is_some() => {}
                // One that cannot be read may be ours.
                Some(_) | None => complete = false,
            }
        }
        Shown::Objects { objects, complete }
    }

    /// Reads the answer to the question for one object.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn one(&self, heard: &Heard<'_>) -> Result<Option<ProviderObject>, SafeText> {
        if [404, 410].contains(&heard.status) {
            return Ok(None);
        }
        let body = heard.body.filter(|_| heard.status / 100 == 2);
        let body = body.and_then(|b| serde_json::from_slice::<Value>(b).ok());
        body.and_then(|b| self.read(&b, heard.at))
            .map(Some)
            .ok_or_else(|| {
                SafeText::new(&format!(
                    "the object cannot be read (HTTP {})",
                    heard.status
                ))
            })
    }

    fn goes_on(&self, body: &Value) -> bool {
        self.more.as_ref().is_some_and(|p| p.finds(body))
    }

    fn read(&self, item: &Value, at: Instant) -> Option<ProviderObject> {
        let status = match &self.state {
            None => ObjectStatus::Succeeded,
            Some((path, states)) => {
                let word = path.text(item)?;
                states.get(&word).copied().unwrap_or(ObjectStatus::Other)
            }
        };
        let (amount_minor, currency) = money(item, self.amount.as_ref(), self.currency.as_ref());
        let owner = self.correlation.text(item);
        Some(ProviderObject {
            id: ProviderRef::parse(&self.id.text(item)?).ok()?,
            operation: owner.and_then(|id| OperationId::parse(&id).ok()),
            payment: None,
            charge: None,
            amount_minor,
            currency,
            status,
            created_at: at,
            failure_reason: None,
        })
    }
}
