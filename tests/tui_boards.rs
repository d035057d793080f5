//! The boards of the screen: queue, engine, audit, report. What they look like at the four sizes, that
//! their cursor is an id, and that late or failed readings claim nothing.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[path = "common/tui.rs"]
mod kit;
#[path = "common/ledger.rs"]
mod world;

use std::sync::Arc;
use std::time::Duration;

use kit::*;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use samekey::domain::ids::{EngineId, ToolName};
use samekey::domain::money::Money;
use samekey::domain::operation::Status;
use samekey::domain::policy::{Circuit, CircuitState};
use samekey::domain::report::Fact;
use samekey::domain::text::SafeText;
use samekey::domain::tool_call::{CallState, Delivery, RejectClass, ToolCall, ToolResult};
use samekey::engine::{EngineHealth, EngineState};
use samekey::ledger::{Audited, BucketSeen, CallQuery, EngineSeen, ToolState, Trouble};
use samekey::review::Gate;
use samekey::tui::board::{Asking, Board, BoardAnswer, BoardQuery, Span, ToolView};
use samekey::tui::effect::{Effect, Runner};
use samekey::tui::format::{self, Times};
use samekey::tui::message::{AuditRow, Edge, Message, Tab};
use samekey::tui::model::{Focus, Freshness};
use samekey::tui::theme::{Theme, ThemeName};
use serde_json::json;
use uuid::Uuid;

const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 40), (200, 60)];

/// A call that was accepted so many seconds ago and has got no further.
fn call(n: u32, secs: u64) -> ToolCall {
    ToolCall {
        id: name(&format!("toolu_{n:04}")),
        agent: name("northwind"),
        tool: name("issue_refund"),
        arguments:
            json!({ "order_id": format!("{}", 4400 + n), "amount_cents": 3800, "currency": "usd" })
                .to_string(),
        arguments_hash: "00".into(),
        session: Some(name("chat-77")),
        operation: None,
        state: CallState::Queued,
        result: None,
        accepted_at: ago(secs),
        begun_at: None,
        executed_at: None,
        delivered_at: None,
        delivery: Delivery::Pending,
    }
}

fn answered(n: u32, secs: u64, result: ToolResult, delivery: Delivery) -> ToolCall {
    let delivered = delivery == Delivery::Delivered;
    ToolCall {
        operation: result.operation().cloned(),
        state: if matches!(result, ToolResult::Held { .. }) {
            CallState::Held
        } else {
            CallState::Answered
        },
        result: Some(result),
        begun_at: Some(ago(secs - 1)),
        executed_at: Some(ago(secs - 2)),
        delivered_at: delivered.then(|| ago(secs - 3)),
        delivery,
        ..call(n, secs)
    }
}

fn refunded(n: u128) -> ToolResult {
    ToolResult::Done {
        operation_id: op_id(n),
        word: "refunded".into(),
        object: Some(samekey::domain::tool_call::Named {
            name: "refund_id".into(),
            id: name("re_1"),
        }),
        repeat: false,
    }
}

/// One call of each kind, newest first.
fn calls() -> Vec<ToolCall> {
    let checking = ToolResult::Checking {
        operation_id: op_id(0x5521),
        object: None,
        note: "a colleague is checking".into(),
    };
    let held = ToolResult::Held {
        operation_id: op_id(0x5538),
        note: "a person has to approve".into(),
    };
    let rejected = ToolResult::rejected(RejectClass::OrderBusy, "the order has an open refund");
    vec![
        call(9, 2),
        ToolCall {
            state: CallState::Running,
            begun_at: Some(ago(5)),
            operation: Some(op_id(0x5540)),
            ..call(8, 6)
        },
        answered(7, 40, refunded(0x5511), Delivery::Pending),
        answered(6, 90, refunded(0x5511), Delivery::DeliveryUnknown),
        answered(5, 400, checking, Delivery::Delivered),
        answered(4, 4_000, held, Delivery::Delivered),
        answered(3, 90_000, rejected, Delivery::Delivered),
    ]
}

fn entry(
    id: i64,
    op: u128,
    secs: u64,
    actor: &str,
    action: &str,
    detail: serde_json::Value,
) -> Audited {
    Audited {
        audit_id: id,
        operation_id: op_id(op),
        entry: AuditRow {
            seq: id,
            at: ago(secs),
            actor: actor.into(),
            os_user: "ann".into(),
            action: action.into(),
            detail,
            hash: "00".into(),
        },
    }
}

fn audit() -> Vec<Audited> {
    vec![
        entry(
            9,
            0x5521,
            30,
            "reviewer:bob",
            "noted",
            json!({"status": "unknown", "note": "asked the bank, they call back"}),
        ),
        entry(
            8,
            0x5509,
            60,
            "reviewer:ann",
            "closed",
            json!({"status": "failed", "decision": "failed", "verdict": "absent", "note": "nothing at the provider"}),
        ),
        entry(
            7,
            0x5521,
            399,
            "engine",
            "finished",
            json!({"status": "unknown", "attempt": 3, "class": "server_error", "http_status": 500}),
        ),
        entry(
            6,
            0x5521,
            400,
            "engine",
            "authorised",
            json!({"status": "open", "attempt": 3}),
        ),
        entry(
            5,
            0x5511,
            90_000,
            "engine",
            "opened",
            json!({"status": "open"}),
        ),
    ]
}

fn tools() -> Vec<ToolView> {
    let state = |tool: &str, paused: Option<(&str, &str)>, circuit: CircuitState| ToolState {
        tool: name(tool),
        paused: paused.map(|(by, why)| (by.to_owned(), why.to_owned())),
        circuit: Circuit {
            state: circuit,
            ..Circuit::default()
        },
    };
    let seen = |tool: &str, state: Option<ToolState>, known: bool| ToolView {
        tool: name(tool),
        state,
        terms: known.then(terms),
    };
    let open = CircuitState::Open {
        since: ago(300),
        probe_at: ahead(12),
    };
    vec![
        seen("issue_refund", None, true),
        seen(
            "old_refund",
            Some(state("old_refund", None, CircuitState::Closed)),
            false,
        ),
        seen(
            "partial_refund",
            Some(state(
                "partial_refund",
                Some(("lea", "the bank is down")),
                open,
            )),
            true,
        ),
    ]
}

fn engines() -> Vec<EngineSeen> {
    let engine = |n: u128, seen: u64, stopped| EngineSeen {
        engine: EngineId::from_uuid(Uuid::from_u128(n)),
        host: "desk-1".into(),
        pid: 4_711,
        workers: 8,
        in_flight: 3,
        started_at: ago(7_200),
        seen_at: ago(seen),
        stopped,
    };
    vec![
        engine(0xab12, 1, false),
        engine(0xab11, 4_000, false),
        engine(0xab10, 9_000, true),
    ]
}

fn fact(n: u64, status: Status, currency: &str, took: u64) -> Fact {
    Fact {
        tool: name("issue_refund"),
        status,
        effect: if status == Status::Failed {
            Effect_::Absent
        } else {
            Effect_::Possible
        },
        contradicted: false,
        money: Money::from_minor(3_800 + i64::try_from(n).expect("small"), name(currency)).ok(),
        attempts: 1 + u32::try_from(n % 3).expect("small"),
        created_at: ago(n * 700),
        unknown_at: (status == Status::Unknown).then(|| ago(n * 700)),
        closed_at: status
            .is_closed()
            .then(|| ago((n * 700).saturating_sub(took))),
    }
}

fn facts() -> Vec<Fact> {
    let mut facts: Vec<Fact> = (1..100)
        .map(|n| match n % 10 {
            0 => fact(n, Status::Unknown, "usd", 0),
            1 => fact(n, Status::Failed, "jpy", 3),
            2 => fact(n, Status::Open, "kwd", 0),
            _ => fact(n, Status::Succeeded, "usd", n),
        })
        .collect();
    facts[3].contradicted = true;
    facts[4].tool = name("partial_refund");
    facts
}

fn stage_of(setup: samekey::tui::model::Setup) -> Stage {
    let mut stage = Stage::new(setup, mixed_rows());
    stage.boards = BoardWorld {
        calls: calls(),
        audit: audit(),
        facts: facts(),
        oldest_unknown: Some((op_id(0x5521), ago(3 * 86_400))),
        ..BoardWorld::default()
    };
    stage.boards.engine.tools = tools();
    stage.boards.engine.engines = engines();
    stage.boards.engine.notices.pending = 2;
    stage.boards.engine.notices.sent = 1_204;
    stage.boards.engine.buckets = vec![
        bucket("tool:issue_refund", 150),
        bucket("provider:stripe", 0),
        bucket("read:stripe", 1_200),
    ];
    stage.give(Message::Health(EngineHealth {
        state: EngineState::Running,
        workers: 8,
        busy: 3,
        alarm: None,
        notices: None,
    }));
    stage
}

fn bucket(name: &str, ahead_ms: i64) -> BucketSeen {
    BucketSeen {
        name: name.into(),
        full_at: now() + chrono::TimeDelta::milliseconds(ahead_ms),
    }
}

fn stage(size: (u16, u16)) -> Stage {
    stage_of(setup(size))
}

fn snap(name: &str, stage: &Stage) {
    let (width, height) = stage.model.size;
    insta::assert_snapshot!(format!("{name}_{width}x{height}"), stage.text());
}

/// What waits or was quarantined of the provider's events is in sight, once there is any (M5).
#[test]
fn the_providers_events_are_counted_on_the_engine_page_m5() {
    let mut quiet = stage((120, 40));
    quiet.keys("8");
    assert!(!quiet.text().contains("EVENTS"));
    let mut stage = stage((120, 40));
    let events = &mut stage.boards.engine.events;
    (events.waiting, events.ignored, events.quarantined) = (1, 12, 2);
    events.troubles.push(Trouble {
        provider: "stripe".parse().expect("a name"),
        why: "HTTP 403".into(),
    });
    stage.keys("8");
    let text = stage.text();
    for wanted in [
        "1 waiting",
        "12 ignored",
        "2 quarantined",
        "events cannot be listed: HTTP 403",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

/// However small the terminal: nothing is drawn outside of it, nothing acts on it, and the events can be scrolled
/// to (U26, I31).
#[test]
fn the_events_fit_into_the_smallest_terminals_i31() {
    for size in [(20, 5), (40, 10), (60, 16), (1, 1)] {
        let mut stage = stage(size);
        let events = &mut stage.boards.engine.events;
        (events.waiting, events.quarantined) = (u64::MAX / 2, 1_234_567);
        events.troubles.push(Trouble {
            provider: "stripe".parse().expect("a name"),
            why: format!("\u{1b}[2J\u{202e}{}", "x".repeat(100_000))
                .as_str()
                .into(),
        });
        stage.keys("8");
        let mut all = stage.text();
        for _ in 0..40 {
            stage.keys("pgdn");
            let text = stage.text();
            assert!(
                text.lines().count() <= usize::from(size.1),
                "{size:?}: {text}"
            );
            let wide =
                |line: &str| unicode_width::UnicodeWidthStr::width(line) > usize::from(size.0);
            assert!(!text.lines().any(wide), "{size:?}: {text}");
            let acts =
                |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}');
            assert!(!text.contains(acts), "{size:?}");
            stage.draw();
            all.push_str(&text);
        }
        if size.0 >= 60 {
            assert!(
                all.contains("EVENTS") && all.contains("cannot be listed"),
                "{all}"
            );
        }
    }
}

// --- pictures ---------------------------------------------------------------------------------------

#[test]
fn every_board_at_every_size() {
    for size in SIZES {
        for (key, name) in [
            ("7 j", "queue"),
            ("8 j j", "engine"),
            ("9", "audit"),
            ("0", "report"),
        ] {
            let mut stage = stage(size);
            stage.keys(key);
            snap(name, &stage);
        }
    }
}

#[test]
fn empty_boards_say_what_they_wait_for() {
    for (key, says) in [
        ("7", "No agent has called a tool yet"),
        ("8", "No engine has run on this ledger yet"),
        ("9", "Nothing has happened yet"),
        ("0", "No operation was opened in this span"),
    ] {
        let mut stage = Stage::open((80, 24), Vec::new());
        stage.keys(key);
        assert!(stage.text().contains(says), "{}", stage.text());
    }
}

#[test]
fn ascii_boards_have_no_other_signs() {
    for key in ["7", "8", "9", "0"] {
        let mut setup = setup((200, 60));
        setup.theme = Theme::new(ThemeName::Default, false, true);
        let mut stage = stage_of(setup);
        stage.keys(key);
        // Two readings, so that the header has its picture.
        stage.pass(2);
        stage.counts.succeeded += 5;
        stage.refresh();
        let text = stage.text().replace('·', "-");
        let foreign: String = text.chars().filter(|c| !c.is_ascii()).collect();
        assert_eq!(foreign, "", "{text}");
    }
}

#[test]
fn mono_boards_have_no_colour() {
    for key in ["7 j", "8", "9", "0"] {
        let mut setup = setup((120, 40));
        setup.theme = Theme::new(ThemeName::Default, true, false);
        let mut stage = stage_of(setup);
        stage.keys(key);
        for cell in &buffer(&stage.model).content {
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
        }
    }
}

/// The style of the first place where `text` is drawn.
fn style_of(stage: &Stage, text: &str) -> (Color, Modifier) {
    let buffer = buffer(&stage.model);
    let wanted: Vec<String> = text.chars().map(String::from).collect();
    for y in 0..buffer.area.height {
        for x in 0..buffer.area.width {
            let fits = wanted
                .iter()
                .zip(x..)
                .all(|(symbol, x)| buffer.cell((x, y)).is_some_and(|c| c.symbol() == symbol));
            if fits {
                return (buffer[(x, y)].fg, buffer[(x, y)].modifier);
            }
        }
    }
    panic!("{text:?} is not on the screen\n{}", stage.text());
}

#[test]
fn what_needs_an_eye_has_its_colour() {
    let mut stage = stage((120, 40));
    stage.keys("7");
    assert_eq!(
        style_of(&stage, "○ queued").1,
        Modifier::REVERSED,
        "the cursor"
    );
    stage.keys("j");
    assert_eq!(style_of(&stage, "○ queued").0, Color::Yellow);
    assert_eq!(
        style_of(&stage, "? unknown").0,
        Color::LightMagenta,
        "delivery (R86)"
    );
    assert_eq!(style_of(&stage, "checking").0, Color::LightMagenta);
    assert_eq!(style_of(&stage, "rejected").0, Color::LightRed);
    assert_eq!(style_of(&stage, "refunded").0, Color::Green);
    stage.keys("8");
    assert_eq!(style_of(&stage, "‖ paused").0, Color::Yellow);
    assert_eq!(style_of(&stage, "in 0.15s").1, Modifier::REVERSED);
    assert_eq!(style_of(&stage, "× gone").0, Color::Yellow);
    assert_eq!(style_of(&stage, "● lives").0, Color::Green);
    stage.keys("9");
    assert_eq!(style_of(&stage, "failed, as failed").0, Color::LightRed);
    stage.keys("0");
    assert_eq!(style_of(&stage, " 24h ").1, Modifier::REVERSED);
    assert_eq!(style_of(&stage, "? op_…5521").0, Color::LightMagenta);
    let tab = style_of(&stage, "0 Report");
    assert_eq!(tab.1, Modifier::REVERSED, "the tab bar shows where one is");
}

// --- the tab bar --------------------------------------------------------------------------------------

#[test]
fn all_ten_pages_fit_with_their_counts() {
    for (width, wanted) in [
        (60, "1 Rev 4 2O 12 3U 3 4S 8412 5F 97 6A 8524 7Q 5 8E 9A 0R"),
        (
            80,
            "1 Rev 4 2 Open 12 3 Unk 3 4 Succ 8412 5 Fail 97 6 All 8524 7Q 5 8E 9A 0R",
        ),
        (
            120,
            "1 Review 4 2 Open 12 3 Unknown 3 4 Succeeded 8,412 5 Failed 97 6 All 8,524 7 Queue 5 8 Engine 9 Audit 0 Report",
        ),
        (
            200,
            "1 Review 4 2 Open 12 3 Unknown 3 4 Succeeded 8,412 5 Failed 97 6 All 8,524 7 Queue 5 8 Engine 9 Audit 0 Report",
        ),
    ] {
        let stage = stage((width, 24));
        let text = stage.text();
        let line = text.lines().nth(1).expect("the tabs").replace('│', " ");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.join(" "), wanted);
    }
}

#[test]
fn tab_goes_round_through_all_pages() {
    let mut stage = stage((100, 30));
    let mut seen = Vec::new();
    for _ in 0..10 {
        seen.push((stage.model.board, stage.model.tab));
        stage.keys("tab");
    }
    assert_eq!(stage.model.board, None);
    assert_eq!(stage.model.tab, Tab::Review);
    let boards: Vec<Board> = seen.iter().filter_map(|(b, _)| *b).collect();
    assert_eq!(
        boards,
        [Board::Queue, Board::Engine, Board::Audit, Board::Report]
    );
    stage.keys("backtab");
    assert_eq!(stage.model.board, Some(Board::Report));
    stage.keys("backtab backtab backtab backtab");
    assert_eq!((stage.model.board, stage.model.tab), (None, Tab::All));
}

// --- opening and going back ---------------------------------------------------------------------------

#[test]
fn enter_opens_the_calls_operation_and_esc_goes_back_to_where_one_was() {
    let mut stage = stage((120, 40));
    stage.keys("/ 'order:4417' enter");
    let (filter, cursor) = (
        stage.model.filter_text.clone(),
        stage.model.list.cursor().cloned(),
    );
    stage.keys("7 j j j j enter");
    assert_eq!(stage.model.board, None);
    assert_eq!(
        (stage.model.tab, stage.model.focus),
        (Tab::All, Focus::Detail)
    );
    assert_eq!(stage.model.list.cursor(), Some(&op_id(0x5521)));
    let view = stage.model.detail_view().expect("its detail");
    assert_eq!(view.detail.op.row.id, op_id(0x5521));
    stage.keys("esc");
    assert_eq!(stage.model.board, Some(Board::Queue));
    let call = stage.model.boards.queue.list.current().expect("the call");
    assert_eq!(call.listed.id.as_str(), "toolu_0005");
    // The list behind is as it was.
    stage.keys("esc");
    assert_eq!((stage.model.board, stage.model.tab), (None, Tab::Review));
    assert_eq!(stage.model.filter_text, filter);
    assert_eq!(stage.model.list.cursor(), cursor.as_ref());
}

#[test]
fn an_operation_far_down_the_list_is_opened_with_its_neighbours() {
    let row = |n: u128| listed(row(n, &n.to_string(), 100, "usd", Status::Open));
    let mut stage = Stage::open((80, 24), (1..900).map(row).collect());
    stage.boards.audit = vec![entry(1, 600, 5, "engine", "opened", json!({}))];
    stage.keys("9 enter");
    assert_eq!(stage.model.list.cursor(), Some(&op_id(600)));
    assert!(stage.model.detail_view().is_some());
    stage.keys("left");
    assert_eq!(
        stage.model.list.cursor(),
        Some(&op_id(599)),
        "the one above"
    );
    stage.keys("right right");
    assert_eq!(
        stage.model.list.cursor(),
        Some(&op_id(601)),
        "the one below"
    );
    stage.refresh();
    assert_eq!(stage.model.list.cursor(), Some(&op_id(601)));
    assert!(stage.model.list.current().is_some_and(|e| !e.gone));
}

#[test]
fn a_call_without_an_operation_shows_its_answer() {
    let mut stage = stage((80, 24));
    stage.keys("7 G enter");
    let text = stage.text();
    assert!(
        text.contains("order_busy") && text.contains("an open refund"),
        "{text}"
    );
    stage.keys("esc");
    assert_eq!(stage.model.board, Some(Board::Queue));
    stage.keys("g g enter");
    assert!(stage.text().contains("It is not answered yet."));
}

#[test]
fn enter_and_acting_keys_write_nothing_on_a_board_u12() {
    for board in ["7", "8", "9", "0"] {
        let mut stage = stage((100, 30));
        stage.keys(board);
        stage.keys("R F X L A D C n c z enter");
        assert!(stage.waiting.is_empty(), "{board}: {:?}", stage.waiting);
        assert!(stage.model.dialog.is_none());
    }
}

#[test]
fn the_command_line_acts_on_no_row_that_a_board_hides_u12() {
    use samekey::tui::action::Action;
    for action in <Action as strum::VariantArray>::VARIANTS {
        let looks = matches!(action, Action::PauseTool | Action::Open)
            || !(action.acts() || ["mark", "copy-id", "claim", "snooze"].contains(&action.name()));
        if looks {
            continue;
        }
        let mut stage = stage((100, 30));
        stage.keys("7 :");
        for letter in action.name().chars() {
            stage.key(&letter.to_string());
        }
        stage.keys("enter");
        assert!(stage.waiting.is_empty(), "{action:?}: {:?}", stage.waiting);
        assert!(
            stage.model.dialog.is_none() && stage.model.menu.is_none(),
            "{action:?}"
        );
        assert!(stage.model.marks.is_empty(), "{action:?}");
    }
}

// --- the filter ---------------------------------------------------------------------------------------

#[test]
fn a_filter_stands_per_board_and_esc_clears_it_before_it_leaves() {
    let mut stage = stage((100, 30));
    stage.keys("7 / 'state:queued' enter");
    assert_eq!(stage.model.boards.queue.list.entries().len(), 1);
    assert!(stage.text().contains("filter state:queued"));
    stage.keys("9");
    assert_eq!(stage.model.boards.audit.list.entries().len(), 5);
    stage.keys("/ 'actor:bob' space 'action:noted' enter");
    assert_eq!(stage.model.boards.audit.list.entries().len(), 1);
    stage.keys("7");
    assert_eq!(stage.model.boards.queue.filter_text, "state:queued");
    stage.keys("esc");
    assert_eq!(stage.model.boards.queue.list.entries().len(), 7);
    assert_eq!(stage.model.board, Some(Board::Queue));
    stage.keys("esc");
    assert_eq!(stage.model.board, None);
}

#[test]
fn what_is_wrong_stands_under_the_word() {
    use samekey::tui::board::filter;
    let table = [
        (Board::Queue, "tool:x state:qeued", 7, "no such state"),
        (Board::Queue, "delivery:lost", 0, "no such delivery"),
        (Board::Queue, "status:open", 0, "no such qualifier: state:"),
        (Board::Queue, "4417", 0, "write one of state:"),
        (Board::Queue, "order:", 0, "order: needs a value"),
        (
            Board::Audit,
            "action:closed actor:",
            14,
            "actor: needs a value",
        ),
        (Board::Audit, "note:x", 0, "no such qualifier: op:"),
        (Board::Audit, "ann", 0, "write one of op:"),
    ];
    for (board, line, start, says) in table {
        let fault = filter::fault(board, line).expect(line);
        assert_eq!(fault.start, start, "{line}");
        assert!(fault.says.starts_with(says), "{line}: {}", fault.says);
    }
    let query = filter::calls("state:held delivery:unknown tool:t order:1 session:\"a b\"");
    let query = query.expect("all of them");
    assert_eq!(query.state, Some(CallState::Held));
    assert_eq!(query.delivery, Some(Delivery::DeliveryUnknown));
    assert_eq!(query.session, Some(name("a b")));
    let query = filter::audit("op_1 actor:engine action:Closed").expect("all of them");
    assert_eq!(
        (query.operation, query.actor.as_deref()),
        (Some(name("op_1")), Some("engine"))
    );
    assert_eq!(query.action.as_deref(), Some("closed"));
    let mut stage = stage((80, 24));
    stage.keys("7 / 'state:qeued' enter");
    assert!(
        stage.text().contains("^^^^^^^^^^^ no such state"),
        "{}",
        stage.text()
    );
    assert!(stage.model.filter_edit.is_some());
}

// --- the cursor ---------------------------------------------------------------------------------------

#[test]
fn new_calls_are_announced_and_not_put_under_the_eyes_u3() {
    let mut stage = stage((80, 24));
    stage.keys("7 j j");
    let (id, line) = (
        stage.model.boards.queue.list.cursor().cloned(),
        stage.model.boards.queue.list.line(),
    );
    for n in 20..23 {
        stage.boards.calls.insert(0, call(n, 0));
    }
    stage.refresh();
    assert!(stage.text().contains("+3 new"), "{}", stage.text());
    assert_eq!(stage.model.boards.queue.list.line(), line);
    stage.keys(".");
    assert_eq!(stage.model.boards.queue.list.cursor().cloned(), id);
    assert_eq!(stage.model.boards.queue.list.entries().len(), 10);
    stage.keys("f");
    stage.boards.calls.insert(0, call(30, 0));
    stage.refresh();
    let first = stage.model.boards.queue.list.current().expect("a call");
    assert_eq!(first.listed.id.as_str(), "toolu_0030", "following");
}

#[test]
fn a_call_that_left_the_filter_stays_as_a_tombstone_under_the_cursor() {
    let mut stage = stage((80, 24));
    stage.keys("7 / 'state:queued' enter");
    stage.boards.calls[0] = answered(9, 4, refunded(1), Delivery::Delivered);
    stage.refresh();
    let entry = stage.model.boards.queue.list.current().expect("the call");
    assert!(entry.gone && entry.listed.state == CallState::Answered);
    assert!(stage.text().contains('×'), "{}", stage.text());
}

#[test]
fn both_ends_of_a_long_queue_are_reached_by_pages() {
    let mut stage = stage((80, 24));
    stage.boards.calls = (0..3_000).map(|n| call(9_999 - n, u64::from(n))).collect();
    stage.keys("7");
    for _ in 0..40 {
        stage.keys("pgdn");
    }
    let at = |stage: &Stage| {
        let entry = stage.model.boards.queue.list.current();
        entry.expect("a call").listed.id.to_string()
    };
    let moved = format!("toolu_{}", 9_999 - 40 * 18);
    assert_eq!(at(&stage), moved, "a page is 18 rows");
    assert!(stage.model.boards.queue.list.entries().len() <= 1_000);
    stage.keys("G");
    assert_eq!(at(&stage), "toolu_7000");
    for _ in 0..100 {
        stage.keys("pgup");
    }
    assert_eq!(
        at(&stage),
        format!("toolu_{}", 7_000 + 100 * 18),
        "and up again"
    );
    stage.keys("g g");
    assert_eq!(at(&stage), "toolu_9999");
}

#[test]
fn the_terminals_cursor_is_on_the_selected_row_u48() {
    for (keys, line) in [("7 j", 4), ("9 j j", 5), ("8", 5), ("8 j", 6)] {
        let mut stage = stage((80, 24));
        stage.keys(keys);
        assert_eq!(cursor(&stage.model), (0, line), "{keys}\n{}", stage.text());
    }
}

#[test]
fn the_tool_under_the_cursor_is_named_and_stays() {
    let mut stage = stage((80, 24));
    assert_eq!(stage.model.tool_under_cursor(), None);
    stage.keys("8 j j");
    let tool: ToolName = name("partial_refund");
    assert_eq!(stage.model.tool_under_cursor().as_ref(), Some(&tool));
    stage.boards.engine.tools.remove(0);
    stage.refresh();
    assert_eq!(stage.model.tool_under_cursor().as_ref(), Some(&tool));
    stage.keys("7");
    assert_eq!(
        stage.model.tool_under_cursor(),
        None,
        "only where it can be seen"
    );
}

// --- readings -----------------------------------------------------------------------------------------

/// The latest question of a board that nobody answered.
fn asked(stage: &Stage) -> Effect {
    let effect = stage
        .waiting
        .iter()
        .rev()
        .find(|e| matches!(e, Effect::Board(_)));
    effect.expect("a question").clone()
}

#[test]
fn a_late_answer_of_an_old_filter_changes_nothing_u27() {
    let mut stage = stage((80, 24));
    stage.deaf = true;
    stage.keys("7");
    let Effect::Board(old) = asked(&stage) else {
        panic!("a board's question")
    };
    stage.keys("/ 'state:queued' enter");
    stage.deaf = false;
    let late = stage.boards_answer(&old);
    stage.give(late);
    assert!(!stage.model.boards.queue.list.loaded);
    let Effect::Board(new) = asked(&stage) else {
        panic!("a board's question")
    };
    let answer = stage.boards_answer(&new);
    stage.give(answer);
    assert_eq!(stage.model.boards.queue.list.entries().len(), 1);
}

#[test]
fn the_header_is_as_old_as_the_board_u20() {
    let mut stage = stage((120, 40));
    stage.keys("7");
    assert_eq!(stage.model.freshness(), Freshness::Fresh);
    // The lists go on being read, the board is not answered.
    for _ in 0..5 {
        stage.pass(1);
        stage.deaf_boards = true;
        stage.refresh();
    }
    assert_eq!(stage.model.freshness(), Freshness::Stale);
    assert!(stage.text().contains("STALE"), "{}", stage.text());
    stage.keys("1");
    assert_eq!(stage.model.freshness(), Freshness::Fresh, "the list is not");
}

#[test]
fn a_board_that_cannot_be_read_says_so_and_keeps_what_it_has() {
    let mut stage = stage((80, 24));
    stage.keys("7");
    stage.deaf_boards = true;
    stage.refresh();
    let Effect::Board(asking) = asked(&stage) else {
        panic!("a board's question")
    };
    stage.give(Message::Board(Box::new(samekey::tui::board::Asking {
        board: asking.board,
        generation: asking.generation,
        edge: asking.edge,
        what: Err("the ledger cannot be reached: disk I/O error".into()),
    })));
    assert!(stage.text().contains("disk I/O error"), "{}", stage.text());
    assert!(stage.text().contains("toolu_0009"));
    stage.deaf_boards = false;
    stage.refresh();
    assert!(!stage.text().contains("disk I/O error"));
}

#[test]
fn the_report_is_read_only_while_it_is_shown_and_at_its_own_pace() {
    let mut stage = stage((80, 24));
    let reads = |stage: &Stage| stage.asked_boards(Board::Report);
    stage.pass(60);
    stage.refresh();
    assert_eq!(reads(&stage), 0, "nobody looks at it");
    stage.keys("0");
    assert_eq!(reads(&stage), 1);
    for _ in 0..4 {
        stage.pass(1);
        stage.refresh();
    }
    assert_eq!(reads(&stage), 1, "it was read four seconds ago");
    stage.pass(1);
    stage.refresh();
    assert_eq!(reads(&stage), 2);
    // A slow one rests ten times as long as it took.
    stage.model.boards.report.took = Duration::from_secs(3);
    stage.pass(29);
    stage.refresh();
    assert_eq!(reads(&stage), 2);
    stage.pass(1);
    stage.refresh();
    assert_eq!(reads(&stage), 3);
    stage.keys("7");
    stage.pass(3_600);
    stage.refresh();
    assert_eq!(reads(&stage), 3);
}

#[test]
fn one_pass_over_the_ledger_at_a_time_whatever_span_is_chosen() {
    let mut stage = stage((80, 24));
    stage.deaf_boards = true;
    stage.keys("0 ] ] ] [");
    assert_eq!(stage.model.boards.report.span, Span::Week);
    assert_eq!(stage.asked_boards(Board::Report), 1);
    stage.deaf_boards = false;
    let Effect::Board(old) = asked(&stage) else {
        panic!("a board's question")
    };
    let late = stage.boards_answer(&old);
    stage.give(late);
    let report = stage.model.boards.report.report.as_ref().expect("the week");
    assert_eq!(
        report.since,
        Some(ago(7 * 86_400)),
        "not the day that was asked for first"
    );
    assert_eq!(stage.asked_boards(Board::Report), 2);
}

/// What a real ledger tells a board.
async fn told(runner: &Runner, board: Board, edge: Option<Edge>, what: BoardQuery) -> BoardAnswer {
    let asking = Asking {
        board,
        generation: 1,
        edge,
        what,
    };
    let effect = Effect::Board(Box::new(asking));
    assert!(!effect.writes(), "it only reads");
    match runner.answer(effect).await {
        Some(Message::Board(answer)) => answer.what.expect("the ledger answers").answer,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn boards_are_read_off_a_real_ledger_and_only_where_it_changed() {
    let w = world::World::new(world::Place::new(world::Store::Sqlite), world::terms()).await;
    for n in 0..3 {
        w.refunded(&format!("call{n}"), &n.to_string(), 100).await;
        w.wait(Duration::from_secs(1));
    }
    let gate = Gate::new(
        Arc::clone(&w.ledger),
        Arc::default(),
        Arc::clone(&w.terms),
        Arc::default(),
        name("ann"),
        w.clock.clone(),
    );
    let (sender, _answers) = tokio::sync::mpsc::channel(1);
    let runner = Runner::new(Arc::clone(&w.ledger), gate, w.clock.clone(), sender);
    let query = CallQuery {
        limit: 2,
        ..CallQuery::default()
    };
    let head = || BoardQuery::Calls(query.clone(), vec![(name("agent"), name("call0"))]);
    let ids = |answer: BoardAnswer| match answer {
        BoardAnswer::Calls(page, others) => {
            let ids = |calls: Vec<ToolCall>| calls.iter().map(|c| c.id.to_string()).collect();
            (ids(page.calls), ids(others))
        }
        other => panic!("{other:?}"),
    };
    let (calls, others): (Vec<String>, Vec<String>) =
        ids(told(&runner, Board::Queue, None, head()).await);
    assert_eq!(calls, ["call2", "call1"], "newest first");
    assert_eq!(others, ["call0"], "shown, and not in the page");
    let again = told(&runner, Board::Queue, None, head()).await;
    assert!(matches!(again, BoardAnswer::Unchanged), "{again:?}");
    w.accept("new", "9", 100).await;
    let (calls, _): (Vec<String>, Vec<String>) =
        ids(told(&runner, Board::Queue, None, head()).await);
    assert_eq!(calls, ["new", "call2"]);
    let last = CallQuery {
        ascending: true,
        ..query.clone()
    };
    let last = BoardQuery::Calls(last, Vec::new());
    let (calls, _): (Vec<String>, Vec<String>) =
        ids(told(&runner, Board::Queue, Some(Edge::Last), last).await);
    assert_eq!(calls, ["call1", "call0"], "the end, in list order");

    let BoardAnswer::Engine(view) = told(&runner, Board::Engine, None, BoardQuery::Engine).await
    else {
        panic!("the engine board")
    };
    assert_eq!(view.tools.len(), 1);
    assert!(view.tools[0].terms.is_some());
    let report = BoardQuery::Report(Span::All.query(w.clock.now()));
    let BoardAnswer::Report(report) = told(&runner, Board::Report, None, report).await else {
        panic!("a report")
    };
    assert_eq!(report.total.succeeded, 3);
}

#[test]
fn times_are_in_the_chosen_format_on_every_board_u25() {
    let mut setup = setup((200, 60));
    setup.times = Times::Utc;
    let mut stage = stage_of(setup);
    stage.keys("7");
    assert!(stage.text().contains("14:03:20Z") && stage.text().contains("03-13 13:03:22Z"));
    stage.keys("t");
    assert!(stage.text().contains("16:03:20+02:00"));
    stage.keys("9");
    assert!(stage.text().contains("16:02:52+02:00"));
    stage.keys("8");
    assert!(stage.text().contains("16:03:21+02:00"));
}

#[test]
fn the_header_shows_how_much_was_closed_lately() {
    let mut stage = stage((200, 60));
    let header = |stage: &Stage| stage.text().lines().next().expect("a header").to_owned();
    assert!(!header(&stage).contains('▁'), "one reading is no movement");
    for closed in [0, 8, 0, 4] {
        stage.pass(1);
        stage.counts.succeeded += closed;
        stage.refresh();
    }
    assert!(
        header(&stage).contains("in flight 3  ▁█▁▄"),
        "{}",
        header(&stage)
    );
    for _ in 0..20 {
        stage.pass(1);
        stage.refresh();
    }
    assert_eq!(stage.model.pulse.closed(), [0; 5], "bounded");
}

#[test]
fn marks_tell_nothing_from_little() {
    let marks = ["0", "1", "2", "3", "4", "5", "6", "7"];
    assert_eq!(format::spark(&[0, 1, 1_000], 9, &marks), "017");
    assert_eq!(format::spark(&[0, 0], 9, &marks), "00");
    assert_eq!(
        format::spark(&[1, 1, 2, 2], 2, &marks),
        "37",
        "neighbours added up"
    );
    assert_eq!(format::spark(&[], 9, &marks), "");
    assert_eq!(format::spark(&[u64::MAX, u64::MAX], 0, &marks), "7");
}

// --- properties ---------------------------------------------------------------------------------------

fn assert_within(buffer: &Buffer) {
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut columns = 0;
        let mut hidden = 0;
        for x in buffer.area.left()..buffer.area.right() {
            if hidden > 0 {
                hidden -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            assert!(
                !symbol.chars().any(char::is_control),
                "{symbol:?} in a cell"
            );
            let width = format::width(symbol).max(1);
            columns += width;
            hidden = width - 1;
        }
        assert!(
            columns <= usize::from(buffer.area.width),
            "line {y} is too wide"
        );
    }
}

fn hostile() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "\u{1b}[2J",
        "\u{9b}31m",
        "\u{202e}",
        "\u{200b}",
        "日本語",
        "👩‍👩‍👧",
        "\t",
        "\r\n",
        "\u{0}",
        "ﷺ",
        "a",
        " ",
    ]);
    prop::collection::vec(nasty, 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn hostile_text_and_any_size_break_no_board_u37_u49(
        text in hostile(), width in 0_u16..200, height in 0_u16..60, key in 0..4_usize, enter: bool,
    ) {
        let safe: String = SafeText::new(&text).as_str().chars().take(80).collect();
        let id = format!("x{safe}");
        let mut stage = stage((200, 60));
        for call in &mut stage.boards.calls {
            call.arguments = json!({ "order_id": text }).to_string();
            (call.tool, call.session) = (name(&id), Some(name(&id)));
        }
        stage.boards.calls[0].agent = name(&id);
        for entry in &mut stage.boards.audit {
            (entry.entry.actor, entry.entry.action) = (text.clone(), text.clone());
            entry.entry.os_user.clone_from(&text);
            entry.entry.detail = json!({ "note": text, "status": text });
        }
        for tool in &mut stage.boards.engine.tools {
            tool.tool = name(&id);
            if let Some(state) = &mut tool.state {
                state.paused = Some((text.clone(), text.clone()));
            }
        }
        for engine in &mut stage.boards.engine.engines {
            engine.host.clone_from(&text);
        }
        stage.boards.facts[0].tool = name(&id);
        stage.give(Message::Health(EngineHealth {
            state: EngineState::Down(text.clone()), workers: 8, busy: 1, alarm: Some(text.clone()),
            notices: None,
        }));
        stage.keys(["7", "8", "9", "0"][key]);
        assert_within(&buffer(&stage.model));
        stage.give(Message::Resize { width, height });
        assert_within(&buffer(&stage.model));
        stage.keys("G j");
        if enter {
            stage.keys("g g enter");
        }
        assert_within(&buffer(&stage.model));
    }

    #[test]
    fn the_selected_call_stays_selected_u1_u5(
        changes in prop::collection::vec((0..4_u8, 0..40_usize), 1..60), start in 0..30_usize,
    ) {
        let mut stage = stage((80, 24));
        stage.boards.calls = (0..30).map(|n| call(500 - n, u64::from(n))).collect();
        stage.keys("7");
        for _ in 0..start {
            stage.keys("j");
        }
        let id = stage.model.boards.queue.list.cursor().cloned().expect("a cursor");
        let line = stage.model.boards.queue.list.line();
        let mut next = 1_000;
        for (kind, at) in changes {
            let calls = &mut stage.boards.calls;
            let at = at % calls.len();
            match kind {
                0 => { calls.insert(0, call(next, 0)); next += 1; }
                1 => { calls[at].state = CallState::Running; }
                2 => {
                    let old = calls[at].clone();
                    calls[at] = ToolCall { id: old.id, accepted_at: old.accepted_at, ..answered(1, 40, refunded(1), Delivery::Delivered) };
                }
                _ => { stage.keys("7"); }
            }
            stage.refresh();
            let list = &stage.model.boards.queue.list;
            prop_assert_eq!(list.cursor(), Some(&id));
            prop_assert_eq!(list.line(), line);
            // What is drawn reversed is what enter opens.
            let y = u16::try_from(list.line() + 3).expect("small");
            let drawn = buffer(&stage.model);
            prop_assert!(drawn[(0, y)].modifier.contains(Modifier::REVERSED));
        }
        stage.keys(".");
        prop_assert_eq!(stage.model.boards.queue.list.cursor(), Some(&id));
        let shown: Vec<String> = stage.model.boards.queue.list.entries().iter().map(|e| e.listed.id.to_string()).collect();
        let wanted: Vec<String> = stage.boards.calls.iter().map(|c| c.id.to_string()).collect();
        prop_assert_eq!(shown, wanted, "taken in, it is the ledger's list");
    }
}
