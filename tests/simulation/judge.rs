//! The judge: looks at the ledger after every commit and at every request that reaches the provider,
//! and knows true time, which nobody else does. Written from `invariants.md`, not from the code.

mod answers;
mod books;
mod sightings;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use samekey::domain::ids::OperationId;
use samekey::domain::tool_call::ToolCall;
use samekey::simulator::{EffectRecord, Unplugged};
use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Row, SqliteConnection};

use crate::core::{Core, lock};
use crate::store::Store;

/// What the judge knows of one operation.
#[derive(Clone, Debug)]
pub struct Known {
    pub order: String,
    pub amount: i64,
    pub key: String,
    pub status: String,
    pub contradicted: Option<String>,
    pub verdict: Option<String>,
    pub closed_by: Option<String>,
    pub provider_ref: Option<String>,
    pub held: bool,
    /// A further equal refund, asked for by name.
    after: Option<String>,
    /// Two persons closed it at some time: their names.
    closed_by_two: Option<String>,
    effect: String,
    pub opened: Duration,
    /// True time at which each attempt was asked for, and committed.
    attempts: Vec<(Duration, Duration)>,
    /// Requests with its key that were sent whole.
    posts: usize,
    body: Option<String>,
    closings: u32,
    ever_succeeded: bool,
    had_409: bool,
}

#[derive(Default)]
struct Facts {
    ops: BTreeMap<String, Known>,
    /// True time of the last question for permission to send.
    asked: BTreeMap<String, Duration>,
    answers: BTreeMap<(String, String), String>,
    leased: BTreeMap<(String, String), Duration>,
    accepted: BTreeMap<(String, String), Duration>,
    version: i64,
    audit: i64,
    last_token: Option<i64>,
    clock_accepted: bool,
}

pub struct Judge {
    core: Arc<Core>,
    provider: Unplugged,
    conn: Mutex<SqliteConnection>,
    facts: Mutex<Facts>,
}

/// A refund request as the wire carried it.
#[derive(Clone, Debug)]
pub struct Post {
    pub key: String,
    pub operation: String,
    pub body: String,
}

const NEWS: &str = "SELECT a.audit_id, a.at, a.actor, a.action, a.detail, a.seq, o.operation_id, o.order_id,
    o.amount_cents, o.idempotency_key, o.status, o.effect, o.contradicted, o.verdict, o.closed_by, o.provider_ref,
    o.held, o.attempts, o.\"after\" AS after_operation
    FROM audit a JOIN operations o ON o.operation_id = a.operation_id WHERE a.audit_id > ? ORDER BY a.audit_id";

impl Judge {
    pub fn new(
        core: Arc<Core>,
        provider: Unplugged,
        store: &Store,
        path: &std::path::Path,
    ) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .disable_statement_logging();
        let conn = store
            .block(options.connect())
            .expect("a connection for the judge");
        Self {
            core,
            provider,
            conn: Mutex::new(conn),
            facts: Mutex::default(),
        }
    }

    pub fn ops(&self) -> BTreeMap<String, Known> {
        lock(&self.facts).ops.clone()
    }

    pub fn effects(&self) -> Vec<EffectRecord> {
        self.provider.effects()
    }

    pub fn clock_accepted(&self) {
        lock(&self.facts).clock_accepted = true;
    }

    pub fn accepted(&self, agent: &str, call: &str) {
        let now = self.core.now();
        let key = (agent.to_owned(), call.to_owned());
        lock(&self.facts).accepted.entry(key).or_insert(now);
    }

    pub fn leased(&self, call: &ToolCall, epoch: i64) {
        if epoch > 1 {
            self.core.saw("a call taken over");
        }
        let key = (call.agent.to_string(), call.id.to_string());
        lock(&self.facts).leased.insert(key, self.core.now());
    }

    pub fn asks_to_send(&self, operation: &OperationId) {
        let now = self.core.now();
        lock(&self.facts).asked.insert(operation.to_string(), now);
    }

    /// Reads what was committed since the last look; answers whether anything was.
    pub fn look(&self, store: &Store, answers: bool) -> bool {
        let mut conn = lock(&self.conn);
        let version: i64 = store
            .block(sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut *conn))
            .expect("the judge reads");
        let mut facts = lock(&self.facts);
        if version == facts.version {
            return false;
        }
        facts.version = version;
        let news = sqlx::query(NEWS).bind(facts.audit).fetch_all(&mut *conn);
        let news = store.block(news).expect("the judge reads");
        let last = news.len();
        for (n, row) in news.iter().enumerate() {
            self.entry(&mut facts, row, n + 1 == last);
        }
        drop(conn);
        if answers || !news.is_empty() {
            self.read_answers(store, &mut facts);
        }
        self.effects_agree(&facts);
        true
    }

    fn entry(&self, facts: &mut Facts, row: &SqliteRow, newest: bool) {
        let core = &self.core;
        facts.audit = row.get("audit_id");
        let id: String = row.get("operation_id");
        let (action, actor): (String, String) = (row.get("action"), row.get("actor"));
        let detail: Value = serde_json::from_str(row.get("detail")).expect("JSON");
        let said = detail["status"].as_str().unwrap_or_default().to_owned();
        let now = core.now();
        let asked = facts.asked.get(&id).copied().unwrap_or(now);
        core.note(format!(
            "{} {action} by {actor}: {said}{}",
            short(&id),
            remark(&action, &detail)
        ));
        let known = facts.ops.entry(id.clone()).or_insert_with(|| Known {
            order: row.get("order_id"),
            amount: row.get("amount_cents"),
            key: row.get("idempotency_key"),
            status: "open".into(),
            contradicted: None,
            verdict: None,
            closed_by: None,
            provider_ref: None,
            held: false,
            after: row.get("after_operation"),
            closed_by_two: None,
            effect: String::new(),
            opened: now,
            attempts: Vec::new(),
            posts: 0,
            body: None,
            closings: 0,
            ever_succeeded: false,
            had_409: false,
        });
        let key: String = row.get("idempotency_key");
        if key != known.key {
            core.violated("I3", format!("{id}: the key changed"));
        }
        known.effect = row.get("effect");
        if action == "corrected" {
            core.saw("a correction");
        }
        self.moved(&id, known, &action, &actor, &said);
        if action == "authorised" {
            if known.status != "open" {
                core.violated("R41", format!("{id}: authorised while {}", known.status));
            }
            known.attempts.push((asked, now));
            let at: i64 = row.get("at");
            let gap = facts.last_token.map(|last| at - last);
            if !facts.clock_accepted && gap.is_some_and(|gap| gap < 200_000) {
                core.violated("I28", format!("two attempts within {gap:?} µs"));
            }
            facts.last_token = Some(at);
        }
        if action == "finished" {
            let server_error = detail["http_status"].as_i64().is_some_and(|s| s / 100 == 5);
            if server_error && detail["class"] != "server_error" {
                core.violated(
                    "I15",
                    format!("{id}: a 5xx was recorded as {}", detail["class"]),
                );
            }
            self.notice_outcome(&detail);
            let class = detail["class"].as_str().unwrap_or_default();
            known.had_409 |= class == "key_in_progress";
            if known.had_409 && class == "succeeded" {
                core.saw("a 409, then a success");
            }
        }
        known.ever_succeeded |= said == "succeeded";
        known.status = said;
        if newest {
            known.status = row.get("status");
        }
        let contradicted: Option<String> = row.get("contradicted");
        if newest && contradicted != known.contradicted {
            self.notice_contradiction(contradicted.as_deref());
        }
        known.contradicted = contradicted;
        known.verdict = row.get("verdict");
        known.closed_by = row.get("closed_by");
        if books::on_their_word(known) {
            known.closed_by_two.clone_from(&known.closed_by);
        }
        known.provider_ref = row.get("provider_ref");
        known.held = row.get::<i64, _>("held") != 0;
    }

    /// How a status may change, and by whom (I16, I18, I19, I20).
    fn moved(&self, id: &str, known: &mut Known, action: &str, actor: &str, said: &str) {
        let core = &self.core;
        let was = known.status.as_str();
        let by_person = actor.starts_with("reviewer:");
        if was == said {
            return;
        }
        let allowed = match (was, said) {
            ("open", "unknown" | "succeeded" | "failed") => true,
            ("unknown", "succeeded") => by_person || action == "finished" || action == "observed",
            ("unknown", "failed") => by_person && action == "closed",
            ("succeeded", "failed") | ("failed", "succeeded") => action == "corrected" && by_person,
            _ => false,
        };
        if !allowed {
            core.violated(
                "I16",
                format!("{id}: {action} by {actor}: {was} became {said}"),
            );
        }
        if said == "failed" && by_person && action == "closed" {
            self.closed_as_failed(id, known);
        }
        if matches!(said, "succeeded" | "failed") {
            if action != "corrected" {
                known.closings += 1;
            }
            if known.closings > 1 {
                core.violated("I18", format!("{id}: closed twice"));
            }
        }
        match (was, said, by_person) {
            ("unknown", "succeeded", false) => core.saw("unknown, then closed by late evidence"),
            ("unknown", "failed", true) => core.saw("unknown, then closed as failed by a person"),
            ("unknown", "succeeded", true) => {
                core.saw("unknown, then closed as succeeded by a person");
            }
            (_, "unknown", _) => {
                let made = self.provider.effects();
                let mut ours = made.iter().filter_map(|e| e.metadata.get("operation_id"));
                if ours.any(|of| of == id) {
                    core.saw("a row that became unknown with its effect made");
                } else {
                    core.saw("a row that became unknown without an effect");
                }
            }
            _ => {}
        }
    }

    /// One number, from the ledger as it is.
    pub fn count(&self, store: &Store, sql: &'static str) -> i64 {
        let mut conn = lock(&self.conn);
        let counted = sqlx::query_scalar(sql).fetch_one(&mut *conn);
        store.block(counted).expect("the judge counts")
    }
}

pub fn short(id: &str) -> &str {
    id.get(..9).unwrap_or(id)
}

fn remark(action: &str, detail: &Value) -> String {
    let text = |name: &str| detail[name].as_str().unwrap_or_default().to_owned();
    match action {
        "authorised" => format!(", attempt {}", detail["attempt"]),
        "finished" => format!(
            ", attempt {} {} {}",
            detail["attempt"],
            text("class"),
            text("error")
        ),
        "observed" => format!(", {} verdict {}", text("source"), text("verdict")),
        "swept" => format!(", {}", text("reason")),
        "opened" => format!(", call {} amount {}", text("call"), detail["amount_cents"]),
        _ => String::new(),
    }
}
