//! Hand-made models for the tests of the screen: rows, a small world that answers effects, and key
//! scripts such as `"j j enter L"`.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::collections::BTreeMap;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use samekey::domain::attempt::{Attempt, AttemptResult};
use samekey::domain::evidence::{
    Bearing, Evidence, ObjectStatus, ProviderObject, Seen, Source, Verdict,
};
use samekey::domain::guard::{self, Role};
use samekey::domain::identity::Identity;
use samekey::domain::ids::*;
use samekey::domain::key::IdempotencyKey;
use samekey::domain::money::Money;
use samekey::domain::operation::*;
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::policy::{Circuit, Profile, Terms, ToolPolicy};
use samekey::domain::report::{Fact, Fold};
use samekey::domain::tool_call::{CallState, Delivery, ToolCall, ToolResult};
use samekey::domain::{Instant, earlier, later};
use samekey::ledger::{AuditPage, AuditQuery, Audited, CallPage, CallQuery, ToolState};
use samekey::tui::action::{Access, Ask, Asked, Level, Person, Subject, Target};
use samekey::tui::board::{Asking, Board, BoardAnswer, BoardLoaded, BoardQuery, EngineView};
use samekey::tui::effect::{Beside, Effect};
use samekey::tui::format::Times;
use samekey::tui::keymap::{Key, Keymap};
use samekey::tui::message::*;
use samekey::tui::model::{Environment, Model, Setup};
use samekey::tui::selection::Row as _;
use samekey::tui::theme::{Theme, ThemeName};
use samekey::tui::update::{start, update};
use samekey::tui::view::view;
use uuid::Uuid;

/// 2026-03-14 14:03:22 UTC: the moment at which every test takes place.
pub fn now() -> Instant {
    Instant::from_timestamp(1_773_497_002, 0).expect("an instant")
}

pub fn ago(seconds: u64) -> Instant {
    earlier(now(), Duration::from_secs(seconds))
}

pub fn ahead(seconds: u64) -> Instant {
    later(now(), Duration::from_secs(seconds))
}

pub fn op_id(n: u128) -> OperationId {
    OperationId::from_uuid(Uuid::from_u128(n))
}

pub fn name<T: std::str::FromStr>(raw: &str) -> T {
    raw.parse().ok().expect("a name")
}

pub fn person(role: Role) -> Person {
    Person {
        name: name("ann"),
        role,
        alone: false,
    }
}

pub fn terms() -> Terms {
    Terms {
        policy: ToolPolicy::refund(name("stripe")),
        profile: Profile::stripe(),
    }
}

/// A refund row; everything else is set by the test.
pub fn row(n: u128, order: &str, minor: i64, currency: &str, status: Status) -> OperationRow {
    let money = Money::from_minor(minor, name(currency)).expect("money");
    let order_id: OrderId = name(order);
    let sent = ago(3 * 3600 + 720);
    OperationRow {
        id: op_id(n),
        tool: name("issue_refund"),
        identity: Identity::refund(&order_id, money),
        payment: Some(name(&format!("pi_order_{order}"))),
        order_id: Some(order_id),
        money: Some(money),
        provider: name("stripe"),
        charge: None,
        after: None,
        status,
        effect: Effect_::Possible,
        held: false,
        approved_by: None,
        contradicted: None,
        key: IdempotencyKey::from_uuid(Uuid::from_u128(0xc41f_0000 + n)),
        request: Vec::new(),
        request_hash: "00".into(),
        attempts: 3,
        attempts_max: 6,
        key_created_at: sent,
        key_expires_at: Some(later(sent, Duration::from_secs(24 * 3600 - 312))),
        first_authorised_at: Some(sent),
        last_authorised_at: Some(sent),
        last_outcome: Some(OutcomeClass::SideEffectUnknown),
        reason: None,
        failure: None,
        failure_text: None,
        verdict: None,
        provider_ref: None,
        pending_since: None,
        version: 7,
        corrections: 0,
        audit_seq: 9,
        created_at: sent,
        updated_at: ago(120),
        unknown_at: None,
        closed_at: None,
        closed_by: None,
        proposal: None,
        claim: None,
        snoozed_until: None,
    }
}

/// The seed's row: order 4417, $38.00, unknown after a server error.
pub fn unknown(n: u128) -> OperationRow {
    OperationRow {
        last_outcome: Some(OutcomeClass::ServerError),
        reason: Some(UnknownReason::ServerError),
        unknown_at: Some(ago(120)),
        ..row(n, "4417", 3800, "usd", Status::Unknown)
    }
}

pub fn listed(row: OperationRow) -> Listed {
    Listed {
        row,
        driven: false,
        sessions: Vec::new(),
    }
}

/// The rows of the picture in the design: one of each kind.
pub fn mixed_rows() -> Vec<Listed> {
    let rows = vec![
        OperationRow {
            contradicted: Some(Contradiction::FailedAfterSucceeded),
            verdict: Some(Verdict::Refused),
            provider_ref: Some(name("re_9")),
            closed_at: Some(ago(7_200)),
            closed_by: Some("engine".into()),
            ..row(0x1e09, "4402", 12_900, "usd", Status::Succeeded)
        },
        unknown(0x5521),
        OperationRow {
            verdict: Some(Verdict::Absent),
            reason: Some(UnknownReason::AttemptsExhausted),
            attempts: 6,
            ..row(0x5533, "4425", 1_234_500, "usd", Status::Unknown)
        },
        OperationRow {
            held: true,
            attempts: 0,
            effect: Effect_::NotStarted,
            key_expires_at: None,
            first_authorised_at: None,
            last_authorised_at: None,
            last_outcome: None,
            ..row(0x5538, "4430", 95_000, "usd", Status::Open)
        },
        OperationRow {
            attempts: 1,
            key_created_at: ago(12),
            key_expires_at: Some(ahead(86_040)),
            updated_at: ago(1),
            ..row(0x5540, "4431", 5_000, "jpy", Status::Open)
        },
        OperationRow {
            provider_ref: Some(name("re_1a2b3c")),
            verdict: Some(Verdict::Confirmed),
            closed_at: Some(ago(300)),
            closed_by: Some("engine".into()),
            attempts: 2,
            ..row(0x5511, "4409", 2_500, "usd", Status::Succeeded)
        },
        OperationRow {
            failure: Some(FailureClass::ValidationFailure),
            failure_text: Some("the charge was disputed".into()),
            closed_at: Some(ago(400)),
            closed_by: Some("engine".into()),
            attempts: 1,
            ..row(0x5509, "4408", 1_999, "eur", Status::Failed)
        },
    ];
    let mut rows: Vec<Listed> = rows.into_iter().map(listed).collect();
    if let Some(open) = rows.get_mut(4) {
        open.driven = true;
    }
    rows
}

pub fn counts() -> Counts {
    Counts {
        review: 4,
        open: 12,
        unknown: 3,
        succeeded: 8_412,
        failed: 97,
        queued: 5,
        running: 3,
        in_flight: 3,
    }
}

/// A full history of the seed's row.
pub fn detail(row: OperationRow) -> DetailView {
    let op = operation(row);
    let terms = terms();
    let id = op.row.id.clone();
    let call = |n: u32, secs: u64, result: ToolResult| ToolCall {
        id: name(&format!("toolu_0{n}")),
        agent: name("northwind"),
        tool: name("issue_refund"),
        arguments: "{}".into(),
        arguments_hash: "00".into(),
        session: Some(name("chat-77")),
        operation: Some(id.clone()),
        state: CallState::Answered,
        result: Some(result),
        accepted_at: ago(secs),
        begun_at: Some(ago(secs - 1)),
        executed_at: Some(ago(secs - 40)),
        delivered_at: Some(ago(secs - 40)),
        delivery: Delivery::Delivered,
    };
    let unconfirmed = ToolResult::Unconfirmed {
        operation_id: id.clone(),
        object: None,
        note: "not yet".into(),
    };
    let checking = ToolResult::Checking {
        operation_id: id.clone(),
        object: None,
        note: "checking".into(),
    };
    let audit =
        |seq: i64, secs: u64, actor: &str, action: &str, detail: serde_json::Value| AuditRow {
            seq,
            at: ago(secs),
            actor: actor.into(),
            os_user: "ann".into(),
            action: action.into(),
            detail,
            hash: "00".into(),
        };
    DetailView {
        closings: Some(
            [Closing::Succeeded, Closing::Failed]
                .map(|c| (c, guard::closing(&op, c, &terms, now()))),
        ),
        decidable_at: guard::decidable_at(&op, &terms),
        word: "refunded",
        detail: Detail {
            calls: vec![call(1, 11_520, unconfirmed), call(2, 400, checking)],
            audit: vec![
                audit(1, 11_520, "engine", "opened", serde_json::json!({})),
                audit(
                    9,
                    90,
                    "reviewer:bob",
                    "noted",
                    serde_json::json!({"note": "asked the bank, they call back", "role": "reviewer"}),
                ),
            ],
            driver: None,
            op,
        },
    }
}

pub fn operation(row: OperationRow) -> Operation {
    let result = |class, status: Option<u16>, took: u64, secs: u64| AttemptResult {
        finished_at: ago(secs - took),
        class,
        http_status: status,
        request_id: status.map(|s| format!("req_{s}").as_str().into()),
        error: None,
        replayed: status == Some(500),
        limiter: false,
        already_refunded: false,
    };
    let attempt = |number: u32, secs: u64, result| Attempt {
        agent: "northwind".parse().expect("agent"),
        number,
        call: name(if number < 3 { "toolu_01" } else { "toolu_02" }),
        authorised_at: ago(secs),
        result: Some(result),
    };
    let attempts = vec![
        attempt(
            1,
            11_519,
            result(OutcomeClass::SideEffectUnknown, None, 10, 11_519),
        ),
        attempt(
            2,
            11_500,
            result(OutcomeClass::KeyInProgress, Some(409), 1, 11_500),
        ),
        attempt(3, 399, result(OutcomeClass::ServerError, Some(500), 1, 399)),
    ];
    let scan = Evidence {
        stored: true,
        source: Source::ReviewLookup,
        seen: Seen::Scan {
            began_at: ago(110),
            complete: true,
        },
        observed_at: ago(110),
    };
    let object = Evidence {
        stored: true,
        source: Source::EngineLookup,
        seen: Seen::Object {
            object: ProviderObject {
                id: name("re_77"),
                operation: None,
                payment: row.payment.clone(),
                charge: None,
                amount_minor: row.minor(),
                currency: row.currency(),
                status: ObjectStatus::Succeeded,
                created_at: ago(11_000),
                failure_reason: None,
            },
            bearing: Bearing::Ambiguous,
        },
        observed_at: ago(100),
    };
    let evidence = if row.verdict == Some(Verdict::Ambiguous) {
        vec![scan, object]
    } else {
        vec![scan]
    };
    let attempts = attempts
        .into_iter()
        .take(row.attempts as usize)
        .collect::<Vec<_>>();
    Operation {
        row,
        attempts,
        evidence,
    }
}

pub fn asked(op: Operation, level: Level, ask: Ask) -> Asked {
    asked_about(Subject::Row(Box::new(op)), level, Some(ask))
}

/// The gate's answer; without an ask it is about a tool.
pub fn asked_about(subject: Subject, level: Level, ask: Option<Ask>) -> Asked {
    Asked {
        subject,
        level,
        will: match ask {
            Some(Ask::Lookup) => vec![
                "GET /v1/refunds?payment_intent=pi_order_4417&limit=100".into(),
                "GET /v1/payment_intents/pi_order_4417".into(),
            ],
            Some(Ask::Note) => vec!["a note in the audit of this row".into()],
            Some(_) => vec!["status: failed, closed by ann".into()],
            None => vec!["issue_refund sends nothing until a lead resumes it".into()],
        },
        will_not: if ask == Some(Ask::Lookup) {
            "only reads; closes nothing"
        } else {
            "does not call the provider"
        },
        typed_ref: level == Level::SecondPerson && ask == Some(Ask::Close(Closing::Succeeded)),
    }
}

pub fn environment(mode: &str) -> Environment {
    Environment {
        provider: "stripe".into(),
        mode: mode.into(),
        ledger: "ledger.db".into(),
        notice: None,
    }
}

pub fn setup(size: (u16, u16)) -> Setup {
    Setup {
        environment: environment("test"),
        person: person(Role::Reviewer),
        access: Access::of(false),
        theme: Theme::new(ThemeName::Default, false, false),
        keymap: Keymap::new().expect("a key map"),
        zone: chrono::FixedOffset::east_opt(2 * 3600).expect("a zone"),
        times: Times::Relative,
        refresh: Duration::from_secs(1),
        second: Duration::from_secs(1),
        bell: true,
        templates: vec!["seen at the bank".into(), "asked support".into()],
        follow: false,
        now: now(),
        size,
    }
}

/// A screen over a small world: it answers what reads, and keeps what would write.
pub struct Stage {
    pub model: Model,
    pub rows: Vec<Listed>,
    pub counts: Counts,
    /// Effects that nobody answered yet: everything that asks or writes.
    pub waiting: Vec<Effect>,
    /// The ledger does not answer.
    pub deaf: bool,
    pub standing: Vec<Standing>,
    pub boards: BoardWorld,
    /// Questions of boards wait, those of lists are answered.
    pub deaf_boards: bool,
    /// Questions that boards asked.
    asked: Vec<Board>,
}

/// What the ledger would tell the boards.
#[derive(Clone, Debug, Default)]
pub struct BoardWorld {
    /// Newest first.
    pub calls: Vec<ToolCall>,
    /// Newest first.
    pub audit: Vec<Audited>,
    pub engine: EngineView,
    pub facts: Vec<Fact>,
    pub oldest_unknown: Option<(OperationId, Instant)>,
}

impl BoardWorld {
    fn answer(&self, asking: &Asking<BoardQuery>, now: Instant) -> Message {
        let reversed = asking.edge.is_some_and(|e| e != Edge::Below);
        let answer = match &asking.what {
            BoardQuery::Calls(query, shown) => {
                let mut page = self.calls(query);
                let others = self.calls.iter().filter(|c| {
                    shown.contains(&c.id()) && !page.calls.iter().any(|p| p.id() == c.id())
                });
                let others = others.cloned().collect();
                if reversed {
                    page.calls.reverse();
                }
                BoardAnswer::Calls(page, others)
            }
            BoardQuery::Audit(query) => {
                let mut page = self.audit(query);
                if reversed {
                    page.rows.reverse();
                }
                BoardAnswer::Audit(page)
            }
            BoardQuery::Engine => BoardAnswer::Engine(EngineView {
                as_of: Some(now),
                ..self.engine.clone()
            }),
            BoardQuery::Report(query) => {
                let mut fold = Fold::new(query, query.since.unwrap_or_else(|| ago(86_400 * 30)));
                let within = |f: &&Fact| query.since.is_none_or(|since| f.created_at >= since);
                for fact in self.facts.iter().filter(within) {
                    fold.add(fact);
                }
                BoardAnswer::Report(fold.report(self.oldest_unknown.clone()))
            }
        };
        Message::Board(Box::new(Asking {
            board: asking.board,
            generation: asking.generation,
            edge: asking.edge,
            what: Ok(BoardLoaded {
                as_of: now,
                took: Duration::from_millis(40),
                answer,
            }),
        }))
    }

    fn calls(&self, query: &CallQuery) -> CallPage {
        let fits = |c: &&ToolCall| {
            query.state.is_none_or(|s| s == c.state)
                && query.delivery.is_none_or(|d| d == c.delivery)
                && query.tool.as_ref().is_none_or(|t| *t == c.tool)
                && query
                    .session
                    .as_ref()
                    .is_none_or(|s| Some(s) == c.session.as_ref())
        };
        let mut calls: Vec<ToolCall> = self.calls.iter().filter(fits).cloned().collect();
        if query.ascending {
            calls.reverse();
        }
        if let Some(after) = &query.after {
            let at = calls.iter().position(|c| c.id() == *after);
            calls = calls.split_off(at.map_or(0, |i| i + 1));
        }
        let more = calls.len() > query.limit as usize;
        calls.truncate(query.limit as usize);
        CallPage { calls, more }
    }

    fn audit(&self, query: &AuditQuery) -> AuditPage {
        let fits = |a: &&Audited| {
            query
                .operation
                .as_ref()
                .is_none_or(|o| *o == a.operation_id)
                && query.actor.as_ref().is_none_or(|w| *w == a.entry.actor)
                && query.action.as_ref().is_none_or(|w| *w == a.entry.action)
        };
        let mut rows: Vec<Audited> = self.audit.iter().filter(fits).cloned().collect();
        if query.ascending {
            rows.reverse();
        }
        if let Some(after) = query.after {
            let at = rows.iter().position(|a| a.audit_id == after);
            rows = rows.split_off(at.map_or(0, |i| i + 1));
        }
        let more = rows.len() > query.limit as usize;
        rows.truncate(query.limit as usize);
        AuditPage { rows, more }
    }
}

impl Stage {
    pub fn new(setup: Setup, rows: Vec<Listed>) -> Self {
        let mut stage = Self {
            model: Model::new(setup),
            rows,
            counts: counts(),
            waiting: Vec::new(),
            deaf: false,
            standing: Vec::new(),
            boards: BoardWorld::default(),
            deaf_boards: false,
            asked: Vec::new(),
        };
        let effects = start(&mut stage.model);
        stage.serve(effects);
        stage
    }

    pub fn open(size: (u16, u16), rows: Vec<Listed>) -> Self {
        Self::new(setup(size), rows)
    }

    /// A message, and everything that follows from it.
    pub fn give(&mut self, message: Message) {
        let effects = update(&mut self.model, message);
        self.serve(effects);
    }

    fn serve(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let mut deaf = self.deaf;
            if let Effect::Board(asking) = &effect {
                self.asked.push(asking.board);
                deaf |= self.deaf_boards;
            }
            match self.answer(&effect) {
                Some(message) if !deaf => self.give(message),
                _ => self.waiting.push(effect),
            }
        }
    }

    fn around(&self, review: bool) -> Around {
        Around {
            counts: self.counts,
            review: review.then(|| {
                let head = PageQuery {
                    tab: Tab::Review,
                    limit: 100,
                    ..PageQuery::default()
                };
                let rows = self.page(&head).rows.into_iter();
                rows.map(|l| l.row.id).collect()
            }),
            engines: Engines::default(),
            standing: self.standing.clone(),
        }
    }

    fn answer(&self, effect: &Effect) -> Option<Message> {
        match effect {
            Effect::Load(load) => {
                let page = self.page(&load.query.0);
                let present: Vec<_> = page.rows.iter().map(|l| l.row.id.clone()).collect();
                let others = self
                    .rows
                    .iter()
                    .map(|l| l.row.clone())
                    .filter(|r| {
                        load.shown.iter().any(|(id, _)| *id == r.id) && !present.contains(&r.id)
                    })
                    .collect();
                Some(Message::Loaded(Box::new(Loaded {
                    generation: load.generation,
                    as_of: self.model.now,
                    page,
                    others,
                    tools: BTreeMap::from([(name("issue_refund"), terms())]),
                    around: (load.beside != Beside::Nothing)
                        .then(|| self.around(load.beside == Beside::AroundAndReview)),
                })))
            }
            Effect::More {
                generation,
                edge,
                query,
            } => {
                let mut page = self.page(&query.0);
                if *edge != Edge::Below {
                    page.rows.reverse();
                }
                Some(Message::More {
                    generation: *generation,
                    edge: *edge,
                    result: Ok(page),
                })
            }
            Effect::Board(asking) => Some(self.boards.answer(asking, self.model.now)),
            Effect::Detail { serial, id } => {
                let found = self.rows.iter().find(|l| l.row.id == *id);
                Some(Message::Detail {
                    serial: *serial,
                    id: id.clone(),
                    result: Ok(found.map(|l| Box::new(detail(l.row.clone())))),
                })
            }
            _ => None,
        }
    }

    /// What the ledger tells a board now.
    pub fn boards_answer(&self, asking: &Asking<BoardQuery>) -> Message {
        self.boards.answer(asking, self.model.now)
    }

    /// How often a board asked the ledger.
    pub fn asked_boards(&self, board: Board) -> usize {
        self.asked.iter().filter(|b| **b == board).count()
    }

    /// The ledger's paging, over the rows as they stand; `ascending` turns them round.
    fn page(&self, query: &PageQuery) -> Page {
        let fits = |row: &OperationRow| match query.tab {
            Tab::All => true,
            Tab::Review => row.contradicted.is_some() || !row.status.is_closed(),
            Tab::Open => row.status == Status::Open,
            Tab::Unknown => row.status == Status::Unknown,
            Tab::Succeeded => row.status == Status::Succeeded,
            Tab::Failed => row.status == Status::Failed,
        };
        let mut rows: Vec<Listed> = self.rows.iter().filter(|l| fits(&l.row)).cloned().collect();
        if query.ascending {
            rows.reverse();
        }
        if let Some(after) = &query.after {
            let at = rows.iter().position(|l| l.row.id == *after);
            rows = rows.split_off(at.map_or(0, |i| i + 1));
        }
        let more = rows.len() > query.limit as usize;
        rows.truncate(query.limit as usize);
        Page {
            rows,
            more,
            next: None,
        }
    }

    /// A script: keys separated by spaces, or `'text'` typed letter by letter.
    pub fn keys(&mut self, script: &str) -> &mut Self {
        for word in script.split(' ').filter(|w| !w.is_empty()) {
            match word.strip_prefix('\'').and_then(|w| w.strip_suffix('\'')) {
                Some(text) => text.chars().for_each(|c| self.key(&c.to_string())),
                None => self.key(word),
            }
        }
        self
    }

    pub fn key(&mut self, word: &str) {
        let key = Key::parse(word).unwrap_or_else(|| panic!("{word:?} is no key"));
        self.give(Message::Key {
            key,
            repeat: false,
            burst: false,
        });
    }

    /// Lets time pass without the ledger being read.
    pub fn pass(&mut self, seconds: u64) {
        let later = later(self.model.now, Duration::from_secs(seconds));
        self.give(Message::Tick(later));
    }

    pub fn refresh(&mut self) {
        self.give(Message::RefreshDue);
    }

    /// The gate answers the question that waits.
    pub fn gate_asks(&mut self, level: Level) {
        let (serial, frozen) = self
            .waiting
            .iter()
            .rev()
            .find_map(|e| match e {
                Effect::Ask { serial, frozen } => Some((*serial, frozen.clone())),
                _ => None,
            })
            .expect("a question to the gate");
        let row = |id: &OperationId| {
            let found = self.rows.iter().find(|l| l.row.id == *id);
            found.expect("the row").row.clone()
        };
        let subject = match frozen.target() {
            Target::Row { operation: id, .. } | Target::Desk(id) => {
                Subject::Row(Box::new(operation(row(id))))
            }
            Target::Rows(ids) => Subject::Rows(ids.iter().map(row).collect()),
            Target::Tool { tool, paused } => Subject::Tool(ToolState {
                tool: tool.clone(),
                paused: paused.clone(),
                circuit: Circuit::default(),
            }),
        };
        let asked = asked_about(subject, level, frozen.ask());
        self.give(Message::Asked {
            serial,
            result: Ok(Box::new(asked)),
        });
    }

    /// The gate answers a question that is not about one row.
    pub fn gate_answers(&mut self, asked: Asked) {
        let serial = self.model.dialog.as_ref().expect("a question").serial;
        self.give(Message::Asked {
            serial,
            result: Ok(Box::new(asked)),
        });
        self.draw();
    }

    /// Opens a dialog and has it drawn once.
    pub fn dialog(&mut self, keys: &str, level: Level) {
        self.keys(keys);
        self.gate_asks(level);
        self.draw();
    }

    /// One frame, as the loop would draw it.
    pub fn draw(&mut self) -> Buffer {
        let buffer = buffer(&self.model);
        self.give(Message::Drawn);
        buffer
    }

    pub fn text(&self) -> String {
        let (width, height) = self.model.size;
        samekey::tui::frame_text(&self.model, width, height)
    }

    /// The text that was asked for last arrives.
    pub fn told(&mut self, result: Result<&str, &str>) {
        let asked = self.waiting.iter().rev().find_map(|e| match e {
            Effect::Tell { serial, what, .. } => Some((*serial, *what)),
            _ => None,
        });
        let (serial, what) = asked.expect("a text that was asked for");
        let result = result.map(str::to_owned).map_err(str::to_owned);
        self.give(Message::Told {
            serial,
            what,
            result,
        });
    }

    /// What was sent to the terminal's clipboard, in order.
    pub fn copied(&self) -> Vec<&str> {
        let copies = self.waiting.iter().filter_map(|e| match e {
            Effect::Copy(text) => Some(text.as_str()),
            _ => None,
        });
        copies.collect()
    }

    /// Effects that would write.
    pub fn writes(&self) -> Vec<&Effect> {
        self.waiting.iter().filter(|e| e.writes()).collect()
    }

    pub fn done(&mut self, result: Result<&str, Failure>) {
        let dialog = self.model.dialog.as_ref().expect("a dialog");
        let serial = dialog.serial;
        let operation = dialog.frozen.operation().cloned();
        self.give(Message::Done {
            serial,
            result: result.map(|says| Done {
                operation,
                says: says.to_owned(),
                ..Done::default()
            }),
        });
    }
}

pub fn buffer(model: &Model) -> Buffer {
    let (width, height) = model.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal
        .draw(|frame| view(model, frame))
        .expect("a frame")
        .buffer
        .clone()
}

/// Where the terminal's cursor is after drawing.
pub fn cursor(model: &Model) -> (u16, u16) {
    let (width, height) = model.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| view(model, frame)).expect("a frame");
    let position = terminal.get_cursor_position().expect("a cursor");
    (position.x, position.y)
}

pub use samekey::domain::operation::Effect as Effect_;
