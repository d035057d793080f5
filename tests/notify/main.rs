//! Telling people outside: what is told, to whom, how often, and that nothing else waits for it. On a
//! real ledger and a clock the test moves; the receivers are a server on this machine and programs.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

#[path = "../common/ledger.rs"]
mod common;

mod commands;
mod delivering;
mod receiver;
mod told;

use samekey::config::{Config, Env};
use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::ids::OperationId;
use samekey::domain::message::Language;
use samekey::domain::operation::Status;
use samekey::domain::transition::Lookup;
use samekey::ledger::SharedLedger;
use samekey::notify::{NotifyDeps, Outlets, Place};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::common::*;

/// A notifier on `ledger`, as `[notify]` with these lines configures it.
fn notifier(w: &World, ledger: SharedLedger, lines: &str) -> NotifyDeps {
    notifier_in(w, ledger, lines, &Env::fixed([("PATH", "/usr/bin:/bin")]))
}

fn notifier_in(w: &World, ledger: SharedLedger, lines: &str, env: &Env) -> NotifyDeps {
    let config = Config::parse(&format!("[notify]\n{lines}\n"), "samekey.toml");
    let section = config.expect("right").notify.expect("a section");
    NotifyDeps {
        ledger,
        outlets: Outlets::new(&section, env, &w.clock).expect("usable"),
        events: section.on,
        place: Place {
            provider: "stripe".into(),
            mode: "test".into(),
            ledger: "ledger.db".into(),
        },
        language: Language::En,
        clock: w.clock.clone(),
    }
}

/// A notice as it stands in the ledger.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
struct Stored {
    event: String,
    state: String,
    tries: i64,
    error: Option<String>,
}

/// All notices, in the order in which they were written.
async fn stored(w: &World) -> Vec<Stored> {
    let options = SqliteConnectOptions::new()
        .filename(w.place.path())
        .disable_statement_logging();
    let mut conn = options.connect().await.expect("a connection");
    let sql = "SELECT event, state, tries, error FROM notices ORDER BY notice_id";
    let rows = sqlx::query_as(sql).fetch_all(&mut conn).await;
    conn.close().await.expect("closed");
    rows.expect("the notices")
}

/// The events that were written, in their order.
async fn events(w: &World) -> Vec<String> {
    stored(w).await.into_iter().map(|n| n.event).collect()
}

/// News from the provider of the row's own object.
async fn news(w: &World, id: &OperationId, status: ObjectStatus) {
    let row = w.row(id).await;
    let event = Lookup::One {
        object: object(&row, &refund_id(&row), status),
        taken: false,
    };
    w.observe(id, Source::Webhook, event).await;
}

/// A row that became unknown and turned out to be refunded.
async fn settled(w: &World, call: &str, order: &str) -> OperationId {
    let id = w.unknown(call, order, 3800).await;
    news(w, &id, ObjectStatus::Succeeded).await;
    assert_eq!(w.row(&id).await.status, Status::Succeeded);
    id
}
