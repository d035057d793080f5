//! The real program before servers that speak like Stripe and that nobody here wrote: `stripe-stateful-mock`
//! (npm), which honours keys, and `localstripe` (Python), which ignores them and lets a charge be refunded
//! without limit. They are installed under `target/` where they are missing, at fixed versions; where that is
//! not possible the test says so loudly, counts it, and fails with `SAMEKEY_NO_SKIPS=1`.
//!
//! What each of them cannot do is asserted in its file: should it learn it, the test says so.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../common/cli.rs"]
mod cli;
#[path = "../common/install.rs"]
mod install;
mod localstripe;
mod peer;
mod proxy;
mod stateful;

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::cli::{Home, KEY, Ran};
use crate::proxy::Proxy;

static SKIPPED: AtomicU32 = AtomicU32::new(0);

/// A peer that could not be had. Never silent: the run shows what it did not prove.
fn skipped(what: &str, why: &str) {
    let count = SKIPPED.fetch_add(1, Ordering::SeqCst) + 1;
    let line = format!("SKIPPED: {what}: {why} (skipped so far: {count})\n");
    // Not by a macro: those are captured.
    let _ = std::io::stderr().write_all(line.as_bytes());
    #[allow(clippy::disallowed_methods, reason = "an option of the test run")]
    let strict = std::env::var("SAMEKEY_NO_SKIPS").is_ok_and(|v| !v.is_empty());
    assert!(!strict, "{line}");
}

/// samekey, configured for the peer behind the proxy.
struct Shop {
    home: Home,
    proxy: Proxy,
}

impl Shop {
    /// `resolve` is the value of that setting; `{home}` in it is the home's path.
    fn new(proxy: Proxy, resolve: &str, files: &[(&str, &str)]) -> Self {
        let mut home = Home::new();
        for (name, text) in files {
            let path = home.path(name);
            std::fs::write(&path, text).expect("written");
            let mode =
                <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
            std::fs::set_permissions(&path, mode).expect("its mode");
        }
        let place = home.path("").display().to_string();
        let resolve = resolve.replace("{home}", place.trim_end_matches('/'));
        let origin = &proxy.origin;
        home.config(&format!(
            "[providers.stripe]\nbase_url = \"{origin}\"\nresolve = {resolve}\n"
        ));
        home.set("STRIPE_API_KEY", KEY);
        Self { home, proxy }
    }

    /// Asks for so much of the order: exit code and result.
    fn ask(&self, order: &str, cents: u32) -> (i32, Value) {
        let order = format!("order_id={order}");
        let amount = format!("amount_cents={cents}");
        let args = ["submit", "issue_refund", "--run", "--json", "--arg"];
        let ran = self.home.run(
            &[
                &args[..],
                &[&order, "--arg", &amount, "--arg", "currency=usd"],
            ]
            .concat(),
        );
        let Ran { code, .. } = ran;
        (code, ran.json())
    }

    /// The only row, with its history.
    fn only(&self) -> Value {
        let rows = self.home.json(&["ops", "list"]);
        let rows = rows.as_array().expect("rows");
        assert_eq!(rows.len(), 1, "{rows:?}");
        let id = rows[0]["operation_id"].as_str().expect("an id");
        self.home.json(&["ops", "show", id])
    }

    /// A person looks it up.
    fn look(&self) -> Value {
        let id = self.only()["operation_id"]
            .as_str()
            .expect("an id")
            .to_owned();
        self.home.json(&["ops", "lookup", &id]);
        self.only()
    }

    /// So many refund requests were sent, all the same, and the books of samekey hold.
    fn sent(&self, count: usize) {
        assert_eq!(self.proxy.refunds().len(), count);
        self.proxy.same();
        self.home.ok(0, &["verify"]);
    }
}
