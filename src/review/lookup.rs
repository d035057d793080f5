//! Guarded lookups: a named reviewer, one at a time per operation across all processes, a cooldown, the
//! provider's read budget. Only reads; closes nothing, for one row or for several.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Asked, Decided, Gate, GateError, Level, Subject, by_role};
use crate::domain::evidence::Source;
use crate::domain::guard::Role;
use crate::domain::ids::{Actor, OperationId, ProviderName, ProviderRef};
use crate::domain::operation::Operation;
use crate::domain::review_event::{Fetched, Person, TypedRef};
use crate::domain::transition::{Event, Lookup, Observed};
use crate::engine;
use crate::ledger::{LedgerError, ReadFor, Stamp, mark_taken};
use crate::provider::{Reads, SharedProvider};

/// Most rows of one wish: what a person can still look through.
pub const MOST_LOOKUPS: usize = 20;
/// A first read further away than this is refused instead of waited for.
const LONGEST_READ_WAIT: Duration = Duration::from_secs(1);
/// The last read of a lookup is sent within this. With its own time limits it has ended before the ledger holds
/// a lookup that did not for lost (two minutes).
const LOOKUP_TIME: Duration = Duration::from_secs(90);

/// Each row once, in the order asked for, if they are few enough.
fn few(ids: &[OperationId]) -> Result<Vec<OperationId>, GateError> {
    let mut known = BTreeSet::new();
    let ids: Vec<_> = ids.iter().filter(|id| known.insert(*id)).cloned().collect();
    match ids.len() {
        0 => Err(GateError::Rule("no row is marked".into())),
        asked if asked > MOST_LOOKUPS => Err(GateError::TooMany { asked }),
        _ => Ok(ids),
    }
}

impl Gate {
    /// A guarded lookup: one at a time, a cooldown, the read budget; only reads; closes nothing.
    ///
    /// # Errors
    /// Why it may not run now.
    pub async fn lookup(&self, id: &OperationId, by: &Person) -> Result<Decided, GateError> {
        by_role(by, Role::Reviewer)?;
        let op = self.operation(id).await?;
        let provider = self.provider(&op.row.provider)?;
        self.bound(provider).await?;
        self.ledger.begin_lookup(id, &by.name).await??;
        let reads = match self.paid_reads(&op.row.provider).await {
            Ok(reads) => reads,
            Err(error) => {
                self.ledger.end_lookup(id).await?;
                return Err(error);
            }
        };
        let seen = provider.lookup(&op.row, &reads).await;
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

    /// What looking up several rows would take: how many, and the form of the requests.
    ///
    /// # Errors
    /// None, or more than [`MOST_LOOKUPS`]; not a reviewer; a row that is gone or has no provider here.
    pub async fn ask_lookups(&self, ids: &[OperationId], by: &Person) -> Result<Asked, GateError> {
        by_role(by, Role::Reviewer)?;
        let ids = few(ids)?;
        let rows = self.ledger.rows(&ids).await?;
        if let Some(gone) = ids.iter().find(|id| rows.iter().all(|r| r.id != **id)) {
            return Err(GateError::NoSuchOperation(gone.clone()));
        }
        let mut will = vec![format!(
            "for each of the {} rows, one after another:",
            rows.len()
        )];
        if let Some(first) = rows.first() {
            will.extend(self.provider(&first.provider)?.lookup_requests(first));
        }
        Ok(Asked {
            subject: Subject::Rows(rows),
            level: Level::Plain,
            will,
            will_not: "only reads; closes nothing, whatever it finds",
            typed_ref: false,
        })
    }

    /// Looks up several rows, one after another; `each` hears of every answer as it comes. A row that
    /// is refused does not stop the others.
    ///
    /// # Errors
    /// None, or more than [`MOST_LOOKUPS`]; not a reviewer.
    pub async fn lookup_many(
        &self,
        ids: &[OperationId],
        by: &Person,
        mut each: impl FnMut(usize, &OperationId, &Result<Decided, GateError>) + Send,
    ) -> Result<Vec<(OperationId, Result<Decided, GateError>)>, GateError> {
        by_role(by, Role::Reviewer)?;
        let mut answers = Vec::new();
        for id in few(ids)? {
            let answer = self.lookup(&id, by).await;
            each(answers.len().saturating_add(1), &id, &answer);
            answers.push((id, answer));
        }
        Ok(answers)
    }

    /// Whether the provider configured here is the one this ledger was sent to: the answers of another
    /// one would prove nothing (I17).
    async fn bound(&self, provider: &SharedProvider) -> Result<(), GateError> {
        let known = self.ledger.stamps().await?;
        let stamp = Stamp {
            provider: provider.name().clone(),
            origin: provider.origin(),
            account: None,
            mode: provider.mode().to_owned(),
        };
        Ok(stamp.fits(&known)?)
    }

    /// Reads of the provider's budget, the first one paid: a short wait for it is waited out. What a long list
    /// needs beyond is waited for within the time that a lookup may take.
    async fn paid_reads(&self, provider: &ProviderName) -> Result<Reads, GateError> {
        let reads = engine::reads(
            &self.ledger,
            &self.clock,
            provider,
            ReadFor::Look,
            LOOKUP_TIME,
        );
        match reads.prepay(LONGEST_READ_WAIT).await {
            Ok(Ok(())) => Ok(reads),
            Ok(Err(wait)) => Err(GateError::ReadBudget(wait)),
            Err(why) => Err(LedgerError::Unreachable(why.to_string()).into()),
        }
    }

    /// Fetches a typed provider id: what it is, or that nobody could tell.
    pub(super) async fn fetch(
        &self,
        op: &Operation,
        id: ProviderRef,
    ) -> Result<TypedRef, GateError> {
        let provider = self.provider(&op.row.provider)?;
        self.bound(provider).await?;
        let reads = self.paid_reads(&op.row.provider).await?;
        let fetched = match provider.fetch(&id, &reads).await {
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
}
