//! The read budget: one token for each GET, whatever the question (S22, S23); a lookup that it cuts short proves
//! nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use samekey::clock::Clock;
use samekey::domain::ids::{ProviderName, ProviderRef};
use samekey::domain::text::SafeText;
use samekey::domain::transition::Lookup;
use samekey::provider::{NextPage, Provider as _, Purse, Reads, ResolveError, ResolveQuery};
use serde_json::{Value, json};

use crate::reads::{World, list, refund};
use crate::server::{Act, Server, json as reply};
use crate::{now, row, stripe};

/// A page's answer and what must follow from it.
type Follows = (Act, fn(&NextPage) -> bool);

/// So many tokens; the next one is a day away.
struct Few {
    left: AtomicUsize,
    taken: AtomicUsize,
}

#[async_trait]
impl Purse for Few {
    async fn take(&self, _: &ProviderName) -> Result<Result<(), Duration>, SafeText> {
        let less = |n: usize| n.checked_sub(1);
        let took = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        if took.is_ok() {
            self.taken.fetch_add(1, Ordering::SeqCst);
        }
        Ok(took.map(drop).map_err(|_| Duration::from_hours(24)))
    }
}

fn few(tokens: usize) -> (Arc<Few>, Reads) {
    let purse = Arc::new(Few {
        left: tokens.into(),
        taken: 0.into(),
    });
    let clock = Clock::system();
    let until = clock.now() + chrono::TimeDelta::minutes(1);
    let name = ProviderName::parse("stripe").expect("a name");
    let reads = Reads::new(Arc::clone(&purse) as Arc<dyn Purse>, name, clock, until);
    (purse, reads)
}

/// Three pages of refunds, none of them ours.
async fn three_pages() -> Server {
    Server::start(|_, seen| {
        let page = ["re_1", "re_2"]
            .into_iter()
            .position(|last| seen.line.ends_with(&format!("starting_after={last}")))
            .map_or(0, |n| n + 1);
        let id = format!("re_{}", page + 1);
        list(&[refund(&id, 1, Some("op_other"))], page < 2)
    })
    .await
}

/// S22, S23: a lookup of three pages costs three, and every other question what it sends.
#[tokio::test]
async fn every_get_is_paid_for_s22_s23() {
    let server = three_pages().await;
    let stripe = stripe(&server.origin, &Clock::system());
    let (purse, reads) = few(100);
    let lookup = stripe.lookup(&row(&stripe), &reads).await;
    assert!(matches!(lookup, Lookup::Listed { complete: true, .. }));
    assert_eq!(purse.taken.load(Ordering::SeqCst), 3);
    stripe.probe(&reads).await;
    let _ = stripe.account(&reads).await;
    let id = ProviderRef::parse("re_1").expect("an id");
    let _ = stripe.fetch(&id, &reads).await;
    let _ = stripe.events((now(), now()), None, &reads).await;
    let paid = purse.taken.load(Ordering::SeqCst);
    assert_eq!((paid, server.requests().len()), (7, 7));
}

/// S22: resolving an order pays for the search, the payment, its charge and the list.
#[tokio::test]
async fn resolving_pays_for_each_of_its_gets_s22() {
    let world = World::new();
    let server = Server::start(move |_, seen| world.answer(seen)).await;
    let stripe = stripe(&server.origin, &Clock::system());
    let query = ResolveQuery {
        order: "4417".parse().expect("an order"),
        payment: None,
        charge: None,
    };
    let (purse, reads) = few(100);
    stripe.resolve(&query, &reads).await.expect("resolved");
    let all = server.requests().len();
    assert_eq!((purse.taken.load(Ordering::SeqCst), all), (4, 4));
    // Without the last token nothing is known of what was refunded, so that nothing may be opened.
    for tokens in 0..4 {
        let (_, reads) = few(tokens);
        let cut = stripe.resolve(&query, &reads).await;
        assert!(matches!(cut, Err(ResolveError::Unreadable(_))), "{cut:?}");
    }
    assert_eq!(server.requests().len(), all + 1 + 2 + 3);
}

/// I17, S22: what the budget cuts short is an incomplete scan; without the first page it is no scan at all.
#[tokio::test]
async fn a_lookup_that_the_budget_cuts_short_is_incomplete_i17() {
    let server = three_pages().await;
    let stripe = stripe(&server.origin, &Clock::system());
    for tokens in [1, 2] {
        let (_, reads) = few(tokens);
        let cut = stripe.lookup(&row(&stripe), &reads).await;
        let Lookup::Listed { complete, .. } = cut else {
            panic!("{cut:?}");
        };
        assert!(!complete, "{tokens} pages were read");
    }
    let (_, reads) = few(0);
    let none = stripe.lookup(&row(&stripe), &reads).await;
    assert!(matches!(none, Lookup::Unreachable { .. }), "{none:?}");
    assert_eq!(server.requests().len(), 3, "1 + 2 + 0");
}

/// S42, S68: an entry that cannot be read leads on by the one before it; the scan is incomplete then.
#[tokio::test]
async fn an_unreadable_last_entry_does_not_end_a_list_s42_s68() {
    let bad = json!({"object": "refund", "id": 7});
    let server = Server::start(move |n, _| match n {
        1 => list(&[refund("re_2", 1, None), bad.clone()], true),
        _ => list(&[refund("re_1", 3800, Some("op_5521"))], false),
    })
    .await;
    let stripe = stripe(&server.origin, &Clock::system());
    let (_, reads) = few(9);
    let seen = stripe.lookup(&row(&stripe), &reads).await;
    let Lookup::Listed {
        complete, objects, ..
    } = seen
    else {
        panic!("{seen:?}");
    };
    assert_eq!(
        (complete, objects.len()),
        (false, 1),
        "ours is found all the same"
    );
}

/// S47: a page without any readable id says so, and a cursor that is gone is told apart from an outage.
#[tokio::test]
async fn a_page_of_events_says_how_it_goes_on_s47() {
    let after = "evt_0".parse().expect("an id");
    let gone = r#"{"error":{"type":"invalid_request_error","code":"resource_missing"}}"#;
    let event = |id: Value| json!({"object": "event", "id": id});
    let cases: [Follows; 6] = [
        (list(&[event(json!("evt_1"))], false), |n| {
            *n == NextPage::End
        }),
        (
            list(&[event(json!("evt_1")), event(json!(null))], true),
            |n| matches!(n, NextPage::After(id) if id.as_str() == "evt_1"),
        ),
        (list(&[event(json!(1)), json!([])], true), |n| {
            matches!(n, NextPage::Lost(_))
        }),
        (list(&[event(json!("evt_0"))], true), |n| {
            matches!(n, NextPage::Lost(_))
        }),
        (reply(404, gone), |n| *n == NextPage::Anew),
        (reply(400, gone), |n| *n == NextPage::Anew),
    ];
    for (n, (act, is)) in cases.into_iter().enumerate() {
        let server = Server::always(act).await;
        let stripe = stripe(&server.origin, &Clock::system());
        let (_, reads) = few(9);
        let page = stripe.events((now(), now()), Some(&after), &reads).await;
        let page = page.expect("a page");
        assert!(is(&page.next), "{n}: {page:?}");
    }
    let server = Server::always(reply(503, "")).await;
    let stripe = stripe(&server.origin, &Clock::system());
    let (_, reads) = few(9);
    let down = stripe.events((now(), now()), Some(&after), &reads).await;
    assert!(down.is_err());
}
