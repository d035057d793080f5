//! Properties: hostile text, any size, any order of messages.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[path = "common/tui.rs"]
mod kit;

use kit::*;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use samekey::domain::ids::OperationId;
use samekey::domain::operation::{OperationRow, Status};
use samekey::engine::{EngineHealth, EngineState};
use samekey::tui::action::Level;
use samekey::tui::effect::Effect;
use samekey::tui::format;
use samekey::tui::keymap::{Key, TABLE};
use samekey::tui::message::{Failure, Listed, Message};
use samekey::tui::query;

/// Characters that act on a terminal or lie about what is shown.
fn forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

fn assert_harmless(buffer: &Buffer) {
    for cell in &buffer.content {
        let symbol = cell.symbol();
        assert!(!symbol.chars().any(forbidden), "{symbol:?} in a cell");
    }
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut columns = 0;
        let mut hidden = 0;
        for x in buffer.area.left()..buffer.area.right() {
            if hidden > 0 {
                hidden -= 1;
                continue;
            }
            let width = format::width(buffer[(x, y)].symbol()).max(1);
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
        "\u{1b}]52;c;AA\u{7}",
        "\u{9b}31m",
        "\u{202e}",
        "\u{200b}",
        "\u{feff}",
        "日本語",
        "é",
        "e\u{301}",
        "👩‍👩‍👧",
        "🇩🇪",
        "\t",
        "\r\n",
        "\u{0}",
        "ﷺ",
        "a",
        " ",
        "%s",
        "\u{e0041}",
        "░",
        "\u{1160}",
        "ก็็็็็็",
    ]);
    prop::collection::vec(nasty, 0..40).prop_map(|parts| parts.concat())
}

/// Text in every place where text from outside can stand.
fn hostile_rows(text: &str) -> Vec<Listed> {
    let id = |prefix: &str| {
        let safe = samekey::domain::text::SafeText::new(text)
            .as_str()
            .to_owned();
        format!("{prefix}{}", safe.chars().take(100).collect::<String>())
    };
    let mut rows = mixed_rows();
    for (n, listed) in rows.iter_mut().enumerate() {
        let row = &mut listed.row;
        if n != 1 {
            row.id = OperationId::parse(&id(&format!("op_{n}_"))).expect("an id");
        }
        row.order_id = Some(name(&id("o")));
        row.tool = name(&id("t"));
        row.provider_ref = Some(name(&id("re_")));
        row.failure_text = Some(text.into());
        // These come from the ledger as they are.
        row.closed_by = Some(text.to_owned());
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn hostile_text_never_breaks_a_frame_u49_u51_u54(
        text in hostile(), width in 1_u16..200, height in 1_u16..60, keys in 0..9_usize,
    ) {
        let mut setup = setup((width, height));
        setup.environment.ledger = text.clone();
        setup.environment.notice = Some(text.clone());
        let mut stage = Stage::new(setup, hostile_rows(&text));
        stage.give(Message::Scoreboard(vec![text.clone(), text.clone()]));
        stage.give(Message::Health(EngineHealth {
            state: EngineState::Down(text.clone()), workers: 8, busy: 1, alarm: None,
            notices: Some(text.clone()),
        }));
        stage.keys("6 j");
        match keys {
            0 => {}
            1 => { stage.keys("enter"); }
            2 => stage.dialog("F", Level::TokenAndNote),
            3 => { stage.keys("/"); stage.give(Message::Paste(text.clone())); stage.keys("enter"); }
            4 => { stage.keys(":"); stage.give(Message::Paste(text.clone())); }
            5 => { stage.keys("z"); }
            6 => { stage.keys("e G"); }
            7 => { stage.keys("o"); stage.told(Ok(&text)); stage.keys("G"); }
            _ => {
                stage.keys("F");
                let serial = stage.model.dialog.as_ref().map_or(0, |d| d.serial);
                stage.give(Message::Asked { serial, result: Err(text.clone()) });
            }
        }
        if let (2, Some(dialog)) = (keys, &stage.model.dialog) {
            let serial = dialog.serial;
            stage.give(Message::Paste(text.clone()));
            stage.keys("tab tab");
            stage.give(Message::Paste(text.clone()));
            assert_harmless(&buffer(&stage.model));
            stage.give(Message::Done {
                serial, result: Err(Failure { why: text.clone(), moved_to: None }),
            });
        }
        assert_harmless(&buffer(&stage.model));
    }

    #[test]
    fn no_size_panics_u37(width in 0_u16..=200, height in 0_u16..=60, over in 0..7_usize) {
        let mut stage = Stage::open((200, 60), mixed_rows());
        match over {
            0 => stage.dialog("j F", Level::TokenAndNote),
            1 => { stage.keys("j :"); }
            2 => { stage.keys("j z"); }
            3 => { stage.keys("6 s"); }
            4 => { stage.keys("j o"); stage.told(Ok(&"a long line of a text\n".repeat(80))); }
            5 => { stage.keys("j e enter"); }
            _ => {}
        }
        // First a frame of a terminal whose size the model does not know yet.
        let model = &stage.model;
        let _ = samekey::tui::frame_text(model, width, height);
        stage.give(Message::Resize { width, height });
        assert_harmless(&buffer(&stage.model));
        stage.keys("G");
        let _ = buffer(&stage.model);
    }

    #[test]
    fn the_selected_operation_stays_while_it_exists_u1_u3(
        changes in prop::collection::vec((0..6_u8, 0..40_usize), 1..100), start in 0..30_usize,
    ) {
        let row = |n: u128| listed(row(n, &n.to_string(), 100, "usd", Status::Open));
        let mut stage = Stage::open((80, 24), (0..30).map(row).collect());
        stage.keys("6");
        for _ in 0..start {
            stage.keys("j");
        }
        let id = stage.model.list.cursor().cloned().expect("a cursor");
        let line = stage.model.list.line();
        let mut next = 1_000;
        for (kind, at) in changes {
            let rows = &mut stage.rows;
            let at = at.min(rows.len().saturating_sub(1));
            match kind {
                0 => { rows.insert(at, row(next)); next += 1; }
                1 if rows.len() > 1 && rows[at].row.id != id => { rows.remove(at); }
                2 => rows.reverse(),
                3 => rows.rotate_left(at),
                4 => rows[at].row.version += 1,
                _ => {}
            }
            stage.refresh();
            prop_assert_eq!(stage.model.list.cursor(), Some(&id));
            // Rows above may have left altogether; then the cursor cannot stay that far down.
            prop_assert!(stage.model.list.line() <= line);
            let above = stage.model.list.index().expect("listed");
            prop_assert_eq!(stage.model.list.line(), line.min(above));
        }
        stage.keys(".");
        prop_assert_eq!(stage.model.list.cursor(), Some(&id));
        let ids = stage.model.list.ids();
        let now: Vec<OperationId> = stage.rows.iter().map(|l| l.row.id.clone()).collect();
        prop_assert_eq!(ids, now, "taken in, it is the ledger's list");
    }

    #[test]
    fn any_order_of_messages_is_survived(
        script in prop::collection::vec((0..15_u8, 0..1_000_usize), 0..120),
    ) {
        let words: Vec<&str> = TABLE.iter().flat_map(|b| b.keys).flat_map(|k| k.split(' ')).collect();
        let mut stage = Stage::open((100, 30), mixed_rows());
        for (kind, n) in script {
            match kind {
                0..=4 => {
                    let key = Key::parse(words[n % words.len()]).expect("a key");
                    stage.give(Message::Key { key, repeat: n % 7 == 0, burst: n % 11 == 0 });
                }
                5 => stage.give(Message::Resize {
                    width: u16::try_from(n % 210).expect("small"), height: u16::try_from(n % 61).expect("small"),
                }),
                6 => stage.pass((n % 5) as u64),
                7 => stage.refresh(),
                8 => { stage.draw(); }
                9 => stage.deaf = !stage.deaf,
                10 => {
                    let n = n % stage.rows.len().max(1);
                    if let Some(listed) = stage.rows.get_mut(n) {
                        listed.row.version += 1;
                        listed.row.status = Status::Unknown;
                    }
                }
                11 => stage.rows.insert(0, listed(unknown(0x9000 + n as u128))),
                13 => {
                    let tells = |e: &Effect| matches!(e, Effect::Tell { .. });
                    if stage.waiting.iter().any(tells) {
                        let text = "a line\n".repeat(n % 90);
                        stage.told(if n % 3 == 0 { Err("no") } else { Ok(&text) });
                    }
                }
                12 => {
                    let asking = stage.model.dialog.as_ref().is_some_and(|d| d.asked.is_none());
                    if asking {
                        stage.gate_asks(Level::TokenAndNote);
                    }
                }
                _ => stage.give(Message::Paste("text\u{1b}".into())),
            }
            let list = &stage.model.list;
            prop_assert_eq!(list.cursor().is_some(), !list.entries().is_empty());
            prop_assert!(list.cursor().is_none() || list.index().is_some());
            prop_assert!(list.visible().iter().any(|e| Some(e.id()) == list.cursor())
                || list.entries().is_empty() || list.height() == 0);
            assert_harmless(&buffer(&stage.model));
        }
    }

    /// However a person gets there: Enter opens, chooses, goes on or cancels, and never decides.
    #[test]
    fn enter_leads_to_no_decision_on_any_screen_u12(
        script in prop::collection::vec(0..1_000_usize, 0..60), drawn: bool,
    ) {
        let words: Vec<&str> = TABLE.iter().flat_map(|b| b.keys).flat_map(|k| k.split(' ')).collect();
        let mut stage = Stage::open((100, 30), mixed_rows());
        for n in script {
            let word = words[n % words.len()];
            // Confirming is what this key is for, and the one way to write.
            if word != "ctrl-y" {
                stage.keys(word);
            }
            if stage.model.dialog.as_ref().is_some_and(|d| d.asked.is_none()) {
                stage.gate_asks(Level::TokenAndNote);
            }
            if drawn {
                stage.draw();
            }
            stage.keys("enter");
            let decided = stage.waiting.iter().any(|e| {
                matches!(e, Effect::Decide { .. } | Effect::Lookup { .. })
            });
            prop_assert!(!decided);
        }
    }

    /// What lies over the page has all the keys: nothing below it changes.
    #[test]
    fn an_overlay_has_all_the_keys_u9(
        which in 0..4_usize, script in prop::collection::vec(0..1_000_usize, 0..60),
    ) {
        let words: Vec<&str> = TABLE.iter().flat_map(|b| b.keys).flat_map(|k| k.split(' ')).collect();
        let mut stage = Stage::open((100, 30), mixed_rows());
        stage.keys("6 j j");
        match which {
            0 => { stage.keys(":"); }
            1 => { stage.keys("z"); }
            2 => { stage.keys("s"); }
            _ => { stage.keys("o"); stage.told(Ok("a text")); }
        }
        stage.draw();
        let below = |stage: &Stage| {
            let model = &stage.model;
            (
                model.list.cursor().cloned(), model.list.offset(), model.tab, model.focus,
                model.marks.clone(), model.sort, model.dialog.is_some(), model.quitting.is_some(),
            )
        };
        let before = (below(&stage), stage.waiting.len());
        for n in script {
            let word = words[n % words.len()];
            if ["enter", "esc", "ctrl-c", "ctrl-z", "ctrl-l", "q"].contains(&word) {
                continue;
            }
            stage.keys(word);
            // `y` copies the text that is shown: the one thing that goes out.
            stage.waiting.retain(|e| !matches!(e, Effect::Copy(_)));
            prop_assert_eq!((below(&stage), stage.waiting.len()), before.clone(), "{}", word);
        }
    }

    #[test]
    fn no_filter_line_panics(line in "\\PC{0,80}") {
        let _ = query::parse(&line);
    }

    #[test]
    fn text_fits_and_is_clean(text in hostile(), columns in 0..60_usize) {
        let cut = format::fit(&text, columns, "…");
        prop_assert!(format::width(&cut) <= columns);
        prop_assert!(!cut.chars().any(forbidden));
        for line in format::wrap(&text, columns) {
            prop_assert!(format::width(&line) <= columns.max(1));
        }
        prop_assert_eq!(format::width(&format::cell(&text, columns, true, "…")), columns);
    }
}

#[test]
fn a_huge_screen_is_drawn_u38() {
    let stage = Stage::open((500, 200), mixed_rows());
    assert_harmless(&buffer(&stage.model));
}

#[test]
fn a_row_of_the_longest_texts_is_drawn() {
    let long = "x".repeat(255);
    let rows = vec![listed(OperationRow {
        id: name(&format!("op_{}", "f".repeat(252))),
        order_id: Some(name(&long)),
        tool: name(&long),
        ..unknown(1)
    })];
    let mut stage = Stage::open((60, 16), rows);
    stage.keys("enter");
    assert_harmless(&buffer(&stage.model));
    stage.dialog("F", Level::TokenAndNote);
    assert_harmless(&buffer(&stage.model));
}
