//! Lists of Stripe's, page by page (S42): the refunds of a payment, and the page of any list.
//!
//! Owns: how a list is gone through, once for all of them: entry by entry, so that one that cannot be read
//! spoils no other, and from the last readable id on. Never: says that a list was read to its end when it
//! was not. Tests: `tests/stripe/reads.rs`, `tests/reconcile/missed.rs`.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read::{Reader, list_path};
use super::wire::{self, Page, Refund};
use crate::domain::evidence::ProviderObject;
use crate::domain::ids::{ChargeId, PaymentId, ProviderRef};
use crate::domain::text::SafeText;
use crate::provider::{ReadError, Reads};

/// Most pages of one listing; what lies beyond makes it incomplete (I33).
const MAX_PAGES: usize = 100;

/// The refunds of one payment.
pub(super) struct Listing {
    pub objects: Vec<ProviderObject>,
    /// Whether the list was read to its end and every entry was readable.
    pub complete: bool,
}

/// The entries of one page, as they are.
pub(super) struct Entries {
    pub all: Vec<Box<RawValue>>,
    pub next: Next,
}

/// What follows a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    End,
    /// The id of the last entry that has a readable one.
    After(ProviderRef),
    /// There is more, and no id on the page leads on.
    Lost,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

impl Reader {
    /// One page of the list at `first`, behind `after`; `None` where the provider does not know that entry.
    pub(super) async fn entries(
        &self,
        first: &str,
        after: Option<&str>,
        reads: &Reads,
    ) -> Result<Option<Entries>, ReadError> {
        let path = match after {
            None => first.to_owned(),
            Some(id) => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                let query = query.append_pair("starting_after", id).finish();
                format!("{first}&{query}")
            }
        };
        let page: Result<Option<Page<Box<RawValue>>>, _> = self.object(&path, reads).await;
        // The query tells a reader nothing.
        let short = path.split('?').next().unwrap_or_default();
        let page =
            page.map_err(|why| ReadError(SafeText::new(&why.0.as_str().replace(&path, short))))?;
        Ok(page.map(|page| {
            let next = next(&page, after);
            let all = page.data;
            Entries { all, next }
        }))
    }

    /// The refunds of a payment, all pages.
    ///
    /// # Errors
    /// Not even the first page could be read.
    pub(super) async fn list(
        &self,
        payment: &PaymentId,
        charge: Option<&ChargeId>,
        reads: &Reads,
    ) -> Result<Listing, ReadError> {
        let first = list_path(payment, charge);
        let mut listing = Listing {
            objects: Vec::new(),
            complete: false,
        };
        let (mut seen, mut readable) = (BTreeSet::new(), true);
        let mut cursor: Option<ProviderRef> = None;
        for _ in 0..MAX_PAGES {
            let after = cursor.as_ref().map(ProviderRef::as_str);
            let page = match self.entries(&first, after, reads).await {
                Ok(Some(page)) => page,
                Ok(None) if cursor.is_none() => {
                    let why = "GET /v1/refunds: the provider knows no such list";
                    return Err(ReadError(self.shown(why)));
                }
                Err(e) if cursor.is_none() => return Err(e),
                // Cut off by the provider, by the budget or by the time there was: incomplete.
                Ok(None) | Err(_) => return Ok(listing),
            };
            for entry in &page.all {
                let refund = wire::parse::<Refund>(entry.get().as_bytes());
                match refund.and_then(|refund| refund.read()) {
                    Some(object) if seen.insert(object.id.clone()) => listing.objects.push(object),
                    // Pages overlap when something new came in meanwhile.
                    Some(_) => {}
                    None => readable = false,
                }
            }
            match page.next {
                Next::After(id) => cursor = Some(id),
                Next::End => {
                    listing.complete = readable;
                    return Ok(listing);
                }
                Next::Lost => return Ok(listing),
            }
        }
        Ok(listing)
    }
}

/// A list that does not move on has no end.
fn next(page: &Page<Box<RawValue>>, after: Option<&str>) -> Next {
    if !page.has_more {
        return Next::End;
    }
    let id = |entry: &str| {
        let id = wire::parse::<Id>(entry.as_bytes())?.id;
        wire::name(&id, ProviderRef::parse)
    };
    let last = page.data.iter().rev().find_map(|e| id(e.get()));
    last.filter(|id| after != Some(id.as_str()))
        .map_or(Next::Lost, Next::After)
}
