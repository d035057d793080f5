//! Review: the only way a person changes anything.
//!
//! Owns: who somebody is and may do, the look before the leap, guarded lookups, and carrying a
//! decision into the ledger with its note and version. Never: sends anything but reads to a
//! provider. The screen and the CLI both come through here. Tests: `tests/cli_ops.rs`, `tests/wire.rs`,
//! `tests/protocol/deciding.rs`.

mod asking;
mod desk;
mod lead;
pub mod packet;
mod showing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::domain::evidence::Source;
use crate::domain::guard::{self, Role, Ruling};
use crate::domain::ids::Actor;
use crate::domain::ids::{OperationId, ProviderName, ProviderRef, ReviewerName, ToolName};
use crate::domain::operation::{Closing, Operation};
use crate::domain::policy::Terms;
use crate::domain::review_event::{Act, Decision, Fetched, Person, ReviewRefusal, TypedRef};
use crate::domain::text::SafeText;
use crate::domain::transition::{Event, Lookup, Next, Observed, Refusal, Step};
use crate::ledger::{LedgerError, LookupBusy, SharedLedger, mark_taken};
use crate::provider::SharedProvider;

/// A read token further away than this is refused instead of waited for.
const LONGEST_READ_WAIT: Duration = Duration::from_secs(1);
/// How often somebody else may take the token first.
const READ_WAITS: u32 = 5;

/// Why the gate did not do it.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error("there is no operation {0}")]
    NoSuchOperation(OperationId),
    #[error("{0} is not among the configured reviewers")]
    UnknownReviewer(ReviewerName),
    #[error("this needs the role {needed}; {name} is {has}")]
    NotPermitted {
        needed: Role,
        name: ReviewerName,
        has: Role,
    },
    #[error(transparent)]
    Refused(#[from] ReviewRefusal),
    #[error(transparent)]
    LookupBusy(#[from] LookupBusy),
    #[error("the provider's read budget is used up; again in {} s", .0.as_secs().saturating_add(1))]
    ReadBudget(std::time::Duration),
    #[error("provider {0} is not configured here, so nothing can be looked up")]
    NoProvider(ProviderName),
    #[error("tool {0} is not configured here")]
    NoTool(ToolName),
    #[error("{0}")]
    Rule(String),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// An action a person can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    Lookup,
    Close(Closing),
    Approve,
    Reject,
    Stop,
    Correct(Option<Closing>),
    Note,
}

/// How much a person has to do to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A key that is not the asking one.
    Plain,
    /// A note.
    Note,
    /// The end of the operation id typed, and a note.
    TokenAndNote,
    /// The same; and then another person decides.
    SecondPerson,
}

/// The gate's answer before anything is done.
#[derive(Clone, Debug)]
pub struct Asked {
    pub op: Operation,
    pub level: Level,
    /// What will be written, or sent for a lookup; one line each.
    pub will: Vec<String>,
    /// What will not be done.
    pub will_not: &'static str,
    /// The provider's id has to be typed.
    pub typed_ref: bool,
}

/// What a decision led to.
#[derive(Clone, Debug)]
pub struct Decided {
    pub op: Operation,
    /// Stored as a proposal; a second person has to decide.
    pub proposed: bool,
    /// One sentence.
    pub says: String,
}

/// The gate.
#[derive(Clone)]
pub struct Gate {
    ledger: SharedLedger,
    providers: Arc<BTreeMap<ProviderName, SharedProvider>>,
    terms: Arc<BTreeMap<ToolName, Terms>>,
    reviewers: Arc<BTreeMap<ReviewerName, Role>>,
    os_user: ReviewerName,
    clock: Clock,
}

impl Gate {
    /// A gate over a ledger. `reviewers` as configured; empty means the OS user alone, as lead.
    #[must_use]
    pub fn new(
        ledger: SharedLedger,
        providers: Arc<BTreeMap<ProviderName, SharedProvider>>,
        terms: Arc<BTreeMap<ToolName, Terms>>,
        reviewers: Arc<BTreeMap<ReviewerName, Role>>,
        os_user: ReviewerName,
        clock: Clock,
    ) -> Self {
        Self {
            ledger,
            providers,
            terms,
            reviewers,
            os_user,
            clock,
        }
    }

    /// Who `name` is; without a name the OS user.
    ///
    /// # Errors
    /// A name that is not configured, or any name but the OS user's where nobody is.
    pub fn person(&self, name: Option<&ReviewerName>) -> Result<Person, GateError> {
        let name = name.unwrap_or(&self.os_user).clone();
        if self.reviewers.is_empty() {
            return if name == self.os_user {
                Ok(Person {
                    name,
                    role: Role::Lead,
                    alone: true,
                })
            } else {
                Err(GateError::UnknownReviewer(name))
            };
        }
        match self.reviewers.get(&name) {
            Some(role) => Ok(Person {
                name,
                role: *role,
                alone: false,
            }),
            None => Err(GateError::UnknownReviewer(name)),
        }
    }

    /// The terms of an operation's tool.
    ///
    /// # Errors
    /// A tool that is not configured here.
    pub fn terms(&self, tool: &ToolName) -> Result<&Terms, GateError> {
        self.terms
            .get(tool)
            .ok_or_else(|| GateError::NoTool(tool.clone()))
    }

    /// Which closings are allowed now, and why not the others.
    ///
    /// # Errors
    /// A tool that is not configured here.
    pub fn closings(&self, op: &Operation) -> Result<[(Closing, Ruling); 2], GateError> {
        let terms = self.terms(&op.row.tool)?;
        let now = self.clock.now();
        Ok([Closing::Succeeded, Closing::Failed].map(|c| (c, guard::closing(op, c, terms, now))))
    }

    /// Looks before the leap: refused because, or what it takes. Changes nothing.
    ///
    /// # Errors
    /// The reason, in a sentence for a person.
    pub async fn ask(&self, id: &OperationId, ask: Ask, by: &Person) -> Result<Asked, GateError> {
        let op = self.operation(id).await?;
        let terms = self.terms(&op.row.tool)?;
        let requests = match ask {
            Ask::Lookup => self.provider(&op.row.provider)?.lookup_requests(&op.row),
            Ask::Close(_)
            | Ask::Approve
            | Ask::Reject
            | Ask::Stop
            | Ask::Correct(_)
            | Ask::Note => Vec::new(),
        };
        asking::asked(op, ask, by, terms, requests, self.clock.now())
    }

    /// Carries out a decision that the person confirmed on `version`.
    ///
    /// # Errors
    /// The refusal of the rules, with nothing changed.
    pub async fn decide(
        &self,
        id: &OperationId,
        ask: Ask,
        by: &Person,
        note: &str,
        version: Option<i64>,
        typed: Option<ProviderRef>,
    ) -> Result<Decided, GateError> {
        let op = self.operation(id).await?;
        let act = match ask {
            Ask::Lookup => return Err(GateError::Rule("a lookup is not a decision".into())),
            Ask::Close(decision) => {
                let typed = match typed {
                    Some(id) if decision == Closing::Succeeded => Some(self.fetch(&op, id).await?),
                    Some(_) | None => None,
                };
                Act::Close { decision, typed }
            }
            Ask::Approve => Act::Approve { caps: None },
            Ask::Reject => Act::Reject,
            Ask::Stop => Act::Stop,
            Ask::Correct(decision) => Act::Correct { decision },
            Ask::Note => Act::Note,
        };
        let note = SafeText::new(note);
        let event = Event::Decided(Decision {
            by: by.clone(),
            note,
            version,
            act,
        });
        let step = self.apply(id, event).await?;
        let proposed = step.next == Next::Proposed;
        let says = says(&step, ask, self.terms(&op.row.tool)?);
        Ok(Decided {
            op: step.op,
            proposed,
            says,
        })
    }

    /// A guarded lookup: one at a time, a cooldown, the read budget; only reads; closes nothing.
    ///
    /// # Errors
    /// Why it may not run now.
    pub async fn lookup(&self, id: &OperationId, by: &Person) -> Result<Decided, GateError> {
        if by.role < Role::Reviewer {
            let needed = Role::Reviewer;
            return Err(GateError::NotPermitted {
                needed,
                name: by.name.clone(),
                has: by.role,
            });
        }
        let op = self.operation(id).await?;
        let provider = self.provider(&op.row.provider)?;
        self.bound(provider).await?;
        self.ledger.begin_lookup(id, &by.name).await??;
        if let Err(error) = self.read_token(&op.row.provider).await {
            self.ledger.end_lookup(id).await?;
            return Err(error);
        }
        let seen = provider.lookup(&op.row).await;
        let observed = Observed {
            source: Source::ReviewLookup,
            actor: Actor::Reviewer(by.name.clone()),
            seen: seen.clone(),
        };
        let step = self.apply(id, Event::Observed(observed)).await;
        self.ledger.end_lookup(id).await?;
        let step = step?;
        let says = match (&seen, step.op.row.verdict) {
            (Lookup::Unreachable { why }, _) => format!("the provider did not answer: {why}"),
            (_, Some(verdict)) => format!("verdict: {}", verdict.as_str()),
            (_, None) => {
                "nothing of ours was found; too early to prove that nothing exists".to_owned()
            }
        };
        Ok(Decided {
            op: step.op,
            proposed: false,
            says,
        })
    }

    /// Whether the provider configured here is the one this ledger was sent to: the answers of another
    /// one would prove nothing (I17).
    async fn bound(&self, provider: &SharedProvider) -> Result<(), GateError> {
        let stamps = self.ledger.stamps().await?;
        let stamp = stamps.iter().find(|s| s.provider == *provider.name());
        match stamp {
            Some(s) if s.origin != provider.origin() || s.mode != provider.mode() => {
                Err(GateError::Ledger(LedgerError::Bound {
                    stamped: format!("{} ({}) at {}", s.provider, s.mode, s.origin),
                    configured: format!(
                        "{} ({}) at {}",
                        provider.name(),
                        provider.mode(),
                        provider.origin()
                    ),
                }))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// One read of the provider's budget; a short wait is waited out.
    async fn read_token(&self, provider: &ProviderName) -> Result<(), GateError> {
        for _ in 0..READ_WAITS {
            match self.ledger.take_read(provider).await? {
                Ok(()) => return Ok(()),
                Err(wait) if wait > LONGEST_READ_WAIT => return Err(GateError::ReadBudget(wait)),
                Err(wait) => self.clock.sleep(wait).await,
            }
        }
        Err(GateError::ReadBudget(LONGEST_READ_WAIT))
    }

    async fn operation(&self, id: &OperationId) -> Result<Operation, GateError> {
        let detail = self.ledger.detail(id).await?;
        detail
            .map(|d| d.op)
            .ok_or_else(|| GateError::NoSuchOperation(id.clone()))
    }

    fn provider(&self, name: &ProviderName) -> Result<&SharedProvider, GateError> {
        self.providers
            .get(name)
            .ok_or_else(|| GateError::NoProvider(name.clone()))
    }

    async fn fetch(&self, op: &Operation, id: ProviderRef) -> Result<TypedRef, GateError> {
        let provider = self.provider(&op.row.provider)?;
        self.bound(provider).await?;
        let fetched = match provider.fetch(&id).await {
            Ok(Some(object)) => {
                let refs = [object.id.clone()];
                let owners = self.ledger.owners(&op.row.provider, &refs).await?;
                let marked = mark_taken(vec![object], &owners, &op.row.id).pop();
                marked.map_or(Fetched::NotFound, |(object, taken)| Fetched::Object {
                    object,
                    taken,
                })
            }
            Ok(None) => Fetched::NotFound,
            Err(_) => Fetched::Unreachable,
        };
        Ok(TypedRef { id, fetched })
    }

    async fn apply(&self, id: &OperationId, event: Event) -> Result<Step, GateError> {
        match self.ledger.apply(id, event).await? {
            Ok(step) => Ok(step),
            Err(Refusal::Review(refusal)) => Err(GateError::Refused(refusal)),
            Err(other) => Err(GateError::Rule(other.to_string())),
        }
    }
}

/// The tool's own word for a closing.
#[must_use]
pub fn word(terms: &Terms, closing: Closing) -> &'static str {
    match closing {
        Closing::Succeeded => terms.policy.success_word,
        Closing::Failed => "failed",
    }
}

fn says(step: &Step, ask: Ask, terms: &Terms) -> String {
    let id = &step.op.row.id;
    match (ask, step.next) {
        (_, Next::Proposed) => format!("{id}: proposed; another lead has to approve it"),
        (Ask::Close(closing), _) => format!("{id}: closed as {}", word(terms, closing)),
        (Ask::Stop, _) => format!("{id}: stopped; it is unknown now and nothing more is sent"),
        (Ask::Approve, Next::Due) => format!("{id}: approved; an engine sends it"),
        (Ask::Approve, _) => format!("{id}: approved; it is {}", step.op.row.status.as_str()),
        (Ask::Reject, _) => format!("{id}: rejected"),
        (Ask::Correct(_), _) => format!("{id}: corrected; it is {}", step.op.row.status.as_str()),
        (Ask::Note, _) => format!("{id}: noted"),
        (Ask::Lookup, _) => format!("{id}: looked up"),
    }
}
