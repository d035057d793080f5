//! Review: the only way a person changes anything.
//!
//! Owns: who somebody is and may do, and carrying a decision into the ledger with its note and what its
//! maker looked at. `asking` is the look before the leap, `lookup` the guarded lookups, `desk` claims
//! and snoozes, `events` what was set aside, `lead` tools and the clock, `agents` who may call, `packet`
//! what the provider's support needs. Never: sends
//! anything but reads to a provider. The screen and the CLI both come through here. Tests:
//! `tests/review.rs`, `tests/gate.rs`, `tests/cli_ops.rs`, `tests/cli_desk.rs`, `tests/wire.rs`,
//! `tests/protocol/deciding.rs`.

mod agents;
mod asking;
mod desk;
mod events;
mod lead;
mod lookup;
pub mod packet;
mod showing;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::Clock;
use crate::domain::guard::{self, Role, Ruling};
use crate::domain::ids::{
    AgentName, OperationId, ProviderName, ProviderRef, ReviewerName, ToolName,
};
use crate::domain::operation::{Closing, LookedAt, Operation, OperationRow, Proposal, Waiting};
use crate::domain::policy::Terms;
use crate::domain::review_event::{Act, Decision, Person, ReviewRefusal, may_close};
use crate::domain::text::SafeText;
use crate::domain::transition::{Event, Next, Refusal, Step};
use crate::ledger::{LedgerError, LookupBusy, SharedLedger, ToolState};
use crate::provider::SharedProvider;

pub use lookup::MOST_LOOKUPS;

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
    #[error("{0} is an agent of samekey itself")]
    ReservedAgent(AgentName),
    #[error("agent {0} has a token already")]
    AgentThere(AgentName),
    #[error("agent {0} has no token")]
    NoSuchAgent(AgentName),
    #[error("{asked} rows are marked; at most {MOST_LOOKUPS} are looked up at once")]
    TooMany { asked: usize },
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

/// What a question is about.
#[derive(Clone, Debug)]
pub enum Subject {
    Row(Box<Operation>),
    /// To be looked up; nothing else is ever done to several rows at once (U18).
    Rows(Vec<OperationRow>),
    Tool(ToolState),
}

/// The gate's answer before anything is done.
#[derive(Clone, Debug)]
pub struct Asked {
    pub subject: Subject,
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

    /// The terms of all tools that are configured here.
    #[must_use]
    pub fn all_terms(&self) -> &BTreeMap<ToolName, Terms> {
        &self.terms
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
        let requests = if ask == Ask::Lookup {
            by_role(by, Role::Reviewer)?;
            if let Some(busy) = self.ledger.lookup_busy(id).await? {
                return Err(busy.into());
            }
            self.provider(&op.row.provider)?.lookup_requests(&op.row)
        } else {
            Vec::new()
        };
        asking::asked(op, ask, by, terms, requests, self.clock.now())
    }

    /// Carries out a decision that the person confirmed on what they `looked_at`.
    ///
    /// # Errors
    /// The refusal of the rules, with nothing changed.
    pub async fn decide(
        &self,
        id: &OperationId,
        ask: Ask,
        by: &Person,
        note: &str,
        looked_at: Option<LookedAt>,
        typed: Option<ProviderRef>,
    ) -> Result<Decided, GateError> {
        let op = self.operation(id).await?;
        let act = match ask {
            Ask::Lookup => return Err(GateError::Rule("a lookup is not a decision".into())),
            Ask::Close(decision) => {
                let typed = match typed {
                    Some(id) if decision == Closing::Succeeded => {
                        // Nothing is read at the provider for what will be refused anyway.
                        by_role(by, Role::Reviewer)?;
                        let terms = self.terms(&op.row.tool)?;
                        may_close(&op, decision, by, terms, self.clock.now())?;
                        Some(self.fetch(&op, id).await?)
                    }
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
        // The step succeeds only if this is what was read (`Decision::looked_at`).
        let waited = looked_at.as_ref().and_then(|l| l.waiting.clone());
        let proposal = op.row.proposal.filter(|p| {
            let mark = Waiting::Proposal(p.mark());
            waited.as_ref() == Some(&mark)
        });
        let event = Event::Decided(Decision {
            by: by.clone(),
            note: SafeText::new(note),
            looked_at,
            act,
        });
        let step = self.apply(id, event).await?;
        let proposed = step.next == Next::Proposed;
        let says = says(&step, ask, self.terms(&op.row.tool)?, proposal.as_ref());
        Ok(Decided {
            op: step.op,
            proposed,
            says,
        })
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
        Closing::Succeeded => terms.policy.words.success,
        Closing::Failed => "failed",
    }
}

/// What is proposed, in one piece: `refunded, proposed by anna at 2026-01-31 14:03:22Z`.
#[must_use]
pub fn proposed(p: &Proposal, terms: &Terms) -> String {
    let word = word(terms, p.decision);
    let how = if p.correction {
        format!("a correction to {word}")
    } else {
        word.to_owned()
    };
    let id = p
        .provider_ref
        .as_ref()
        .map_or_else(String::new, |id| format!(" with {id}"));
    let at = p.at.format("%Y-%m-%d %H:%M:%SZ");
    format!("{how}{id}, proposed by {} at {at}", p.by)
}

fn by_role(by: &Person, needed: Role) -> Result<(), GateError> {
    if by.role >= needed {
        return Ok(());
    }
    Err(GateError::NotPermitted {
        needed,
        name: by.name.clone(),
        has: by.role,
    })
}

fn says(step: &Step, ask: Ask, terms: &Terms, decided: Option<&Proposal>) -> String {
    let id = &step.op.row.id;
    let status = step.op.row.status.as_str();
    let what = decided.map_or_else(
        || "the held row".to_owned(),
        |p| format!("({})", proposed(p, terms)),
    );
    match (ask, step.next) {
        (_, Next::Proposed) => format!("{id}: proposed; another lead has to approve it"),
        (Ask::Close(closing), _) => format!("{id}: closed as {}", word(terms, closing)),
        (Ask::Stop, _) => format!("{id}: stopped; it is unknown now and nothing more is sent"),
        (Ask::Approve, Next::Due) => format!("{id}: approved; an engine sends it"),
        (Ask::Approve, _) => format!("{id}: approved {what}; it is {status}"),
        (Ask::Reject, _) => format!("{id}: rejected {what}"),
        (Ask::Correct(_), _) => format!("{id}: corrected; it is {status}"),
        (Ask::Note, _) => format!("{id}: noted"),
        (Ask::Lookup, _) => format!("{id}: looked up"),
    }
}
