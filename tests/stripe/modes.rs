//! Test and real money stay apart: a key, a payment or a ledger of another mode, origin or account is refused
//! before anything is sent, in one sentence (S10, S40).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use samekey::clock::Clock;
use samekey::config::Secret;
use samekey::domain::evidence::ProviderObject;
use samekey::domain::ids::{ProviderName, ProviderRef};
use samekey::domain::opening::Resolved;
use samekey::domain::operation::OperationRow;
use samekey::domain::policy::Profile;
use samekey::domain::text::SafeText;
use samekey::domain::transition::Lookup;
use samekey::ledger::Stamp;
use samekey::provider::stripe::{Stripe, StripeConfig, StripeConfigError};
use samekey::provider::{Asked, Provider, ReadError, Reads, Ready, ResolveError, ResolveQuery};
use serde_json::json;

use crate::VERSION;
use crate::cli::{Home, KEY, simulator};
use crate::common::world::{World, refund, terms};
use crate::desk::{Desk, honest};
use crate::reads;

fn configured(base_url: &str, key: &str) -> Result<Stripe, StripeConfigError> {
    let config = StripeConfig {
        name: "stripe".parse().expect("a name"),
        base_url: base_url.into(),
        api_key: Secret::new(key),
        api_version: VERSION.into(),
        profile: Profile::stripe(),
        account: None,
    };
    Stripe::new(config, Clock::system())
}

/// A provider of whatever place that counts what is asked of it and answers nothing.
struct Counted {
    inner: Stripe,
    asked: Arc<AtomicU32>,
}

impl Counted {
    fn ask(&self) -> ReadError {
        self.asked.fetch_add(1, Ordering::SeqCst);
        ReadError("it was asked".into())
    }
}

#[async_trait]
impl Provider for Counted {
    fn name(&self) -> &ProviderName {
        self.inner.name()
    }
    fn profile(&self) -> &Profile {
        self.inner.profile()
    }
    fn origin(&self) -> String {
        self.inner.origin()
    }
    fn mode(&self) -> &'static str {
        self.inner.mode()
    }
    async fn account(&self, _: &Reads) -> Result<Option<String>, ReadError> {
        Err(self.ask())
    }
    async fn resolve(&self, _: &ResolveQuery, _: &Reads) -> Result<Resolved, ResolveError> {
        Err(ResolveError::Unreadable(self.ask().0))
    }
    fn request(&self, asked: &Asked<'_>) -> Result<Vec<u8>, SafeText> {
        self.inner.request(asked)
    }
    async fn connect(&self) -> Result<Box<dyn Ready>, ReadError> {
        Err(self.ask())
    }
    async fn lookup(&self, _: &OperationRow, _: &Reads) -> Lookup {
        Lookup::Unreachable { why: self.ask().0 }
    }
    fn lookup_requests(&self, _: &OperationRow) -> Vec<String> {
        Vec::new()
    }
    async fn fetch(&self, _: &ProviderRef, _: &Reads) -> Result<Option<ProviderObject>, ReadError> {
        Err(self.ask())
    }
    async fn probe(&self, _: &Reads) -> bool {
        self.ask();
        false
    }
    fn url(&self, _: &ProviderRef) -> Option<String> {
        None
    }
}

/// S10: each mode's ledger refuses each other mode's key, and nothing is asked of the provider, not even
/// whose account it is.
#[tokio::test]
async fn a_ledger_of_one_mode_refuses_the_keys_of_the_others_s10() {
    let places = [
        ("simulator", "http://127.0.0.1:9", "sk_test_a"),
        ("test", "https://api.stripe.com", "sk_test_a"),
        ("live", "https://api.stripe.com", "sk_live_a"),
        ("live", "https://proxy.example", "rk_live_a"),
    ];
    for (stamped, origin, _) in places {
        for (mode, base_url, key) in places {
            let asked = Arc::new(AtomicU32::new(0));
            let inner = configured(base_url, key).expect("valid");
            assert_eq!(inner.mode(), mode);
            let counted = Counted {
                inner,
                asked: Arc::clone(&asked),
            };
            let world = World::with(Arc::new(counted), terms(), Clock::scaled(20)).await;
            let stamp = Stamp {
                provider: "stripe".parse().expect("a name"),
                origin: origin.into(),
                account: None,
                mode: stamped.into(),
            };
            world.ledger.bind(&stamp).await.expect("bound");
            let said = world.ask("t1", &refund("4417", 3800)).await;
            assert_eq!(said.status(), "rejected", "{said:?}");
            let said = format!("{said:?}");
            let same = (stamped, origin) == (mode, base_url);
            assert_eq!(
                asked.load(Ordering::SeqCst) > 0,
                same,
                "{stamped} {mode}: {said}"
            );
            let sentence = format!("the ledger was written for stripe ({stamped}, ");
            assert_eq!(said.contains(&sentence), !same, "{said}");
            assert!(
                same || said.contains(&format!("this configuration is stripe ({mode}, ")),
                "{said}"
            );
        }
    }
}

/// A second provider of another mode is refused by the same ledger: no order is refunded half in play money.
#[tokio::test]
async fn all_providers_of_a_ledger_are_of_one_mode_s10() {
    let stamp = |provider: &str, mode: &str| Stamp {
        provider: provider.parse().expect("a name"),
        origin: "https://api.stripe.com".into(),
        account: None,
        mode: mode.into(),
    };
    let known = [stamp("stripe", "test")];
    stamp("stripe", "test").fits(&known).expect("the same");
    stamp("other", "test")
        .fits(&known)
        .expect("another of the same mode");
    for mode in ["live", "simulator"] {
        stamp("other", mode).fits(&known).expect_err(mode);
    }
    stamp("any", "live").fits(&[]).expect("a new ledger");
}

/// A live key never leaves for this machine, encrypted or not, by whatever name.
#[test]
fn a_live_key_is_never_sent_to_a_simulator_s10() {
    for here in [
        "http://127.0.0.1:4242",
        "http://localhost:4242",
        "http://[::1]:4242",
        "https://127.0.0.1:4242",
        "https://localhost",
    ] {
        for key in ["sk_live_a", "rk_live_a"] {
            let refused = configured(here, key).err().expect(here).to_string();
            assert!(
                refused.contains("not sent to a simulator") && !refused.contains(key),
                "{refused}"
            );
        }
        assert_eq!(
            configured(here, "sk_test_a").expect(here).mode(),
            "simulator"
        );
    }
}

/// S40: the refund has no mode, its payment has. A payment of the other mode is refused before a row is opened.
#[tokio::test]
async fn a_payment_of_the_other_mode_is_refused_s40() {
    for (charge, payment, refused) in [
        (json!(true), json!(null), true),
        (json!(null), json!(true), true),
        (json!(true), json!(false), true),
        (json!(false), json!(false), false),
        (json!(null), json!(null), false),
    ] {
        let mut world = reads::World::new();
        world.charge["livemode"] = charge;
        world.payment["livemode"] = payment;
        let (resolved, _) = reads::resolve(world, None, None, "4417").await;
        let Err(ResolveError::Refused(why)) = resolved else {
            assert!(!refused && resolved.is_ok(), "{resolved:?}");
            continue;
        };
        let says = "this payment is of live mode and the configured key of test mode";
        assert!(refused && why.as_str().contains(says), "{why}");
    }
}

/// S10: the ledger learns its account at the first send and refuses another one afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_of_one_account_refuses_another_s10() {
    let desk = Desk::new(|_, seen, books| honest(seen, books)).await;
    let stamp = Stamp {
        provider: "stripe".parse().expect("a name"),
        origin: desk.server.origin.clone(),
        account: Some("acct_other".into()),
        mode: "simulator".into(),
    };
    desk.world.ledger.bind(&stamp).await.expect("bound");
    let said = desk.ask("t1").await;
    assert_eq!(said.status(), "rejected");
    assert!(format!("{said:?}").contains("acct_other"), "{said:?}");
    let seen: Vec<_> = desk.server.requests().into_iter().map(|s| s.line).collect();
    assert_eq!(seen, ["GET /v1/account"]);
}

/// S10, by the program itself: its ledger has seen the simulator, and then the configuration is a live one.
/// One sentence says so, and nothing is opened. (Nothing is sent either: this runs without a network.)
#[tokio::test(flavor = "multi_thread")]
async fn a_simulators_ledger_refuses_a_live_configuration_s10() {
    let sim = simulator("honest").await;
    let mut home = Home::with_provider(&sim.base_url(), "");
    let ask = |order: &'static str| {
        let args = [
            "submit",
            "issue_refund",
            "--run",
            "--json",
            "--arg",
            "amount=38.00",
            "--arg",
        ];
        [&args[..], &["currency=usd", "--arg", order]].concat()
    };
    assert_eq!(home.ok(0, &ask("order_id=1")).json()["status"], "refunded");
    home.config("[providers.stripe]\nbase_url = \"https://api.stripe.com\"\n");
    for (key, mode) in [("sk_live_never_shown_1", "live"), (KEY, "test")] {
        home.set("STRIPE_API_KEY", key);
        let said = home.ok(1, &ask("order_id=2"));
        let result = said.json();
        assert_eq!(result["status"], "rejected", "{result}");
        let reason = result["reason"].as_str().expect("a reason");
        assert!(
            reason.contains("the ledger was written for stripe (simulator, "),
            "{reason}"
        );
        assert!(
            reason.contains(&format!("this configuration is stripe ({mode}, ")),
            "{reason}"
        );
        assert!(
            !said.stdout.contains(key) && !said.stderr.contains(key),
            "I30"
        );
    }
    assert_eq!(
        home.json(&["ops", "list"]).as_array().map(Vec::len),
        Some(1)
    );
    // A live key with the simulator's address does not even get that far.
    let mut home = Home::with_provider(&sim.base_url(), "");
    home.set("STRIPE_API_KEY", "sk_live_never_shown_1");
    let refused = home.ok(2, &ask("order_id=3"));
    assert!(
        refused
            .stderr
            .contains("a live key is not sent to a simulator"),
        "{refused:?}"
    );
    sim.stop().await;
}

/// S10, the reverse: a ledger that was written with a live key refuses the simulator, which hears nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_live_ledger_refuses_a_simulator_s10() {
    let sim = simulator("honest").await;
    let home = Home::with_provider(&sim.base_url(), "");
    let queue = [
        "submit",
        "issue_refund",
        "--arg",
        "order_id=1",
        "--arg",
        "amount=1",
        "--arg",
        "currency=usd",
    ];
    home.ok(0, &queue);
    let terms = Arc::new(std::collections::BTreeMap::new());
    let path = format!("sqlite:{}", home.ledger().display());
    let mode = samekey::ledger::sqlite::OpenMode::Engine;
    let ledger = samekey::ledger::sqlite::SqliteLedger::open(&path, mode, terms, Clock::system());
    let ledger = ledger.await.expect("the ledger");
    let stamp = Stamp {
        provider: "stripe".parse().expect("a name"),
        origin: "https://api.stripe.com".into(),
        account: Some("acct_1".into()),
        mode: "live".into(),
    };
    samekey::ledger::Ledger::bind(&ledger, &stamp)
        .await
        .expect("bound");
    samekey::ledger::Ledger::close(&ledger).await;
    let said = home
        .ok(1, &[&queue[..], &["--run", "--json"]].concat())
        .json();
    let reason = said["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("written for stripe (live, acct_1)"),
        "{reason}"
    );
    assert!(
        reason.contains("this configuration is stripe (simulator, "),
        "{reason}"
    );
    assert!(sim.requests().is_empty(), "{:?}", sim.requests());
    sim.stop().await;
}
