//! The small pure parts: key map, filter language, formats, themes, input.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyEventState, KeyModifiers};
use ratatui::style::{Color, Modifier};
use samekey::domain::Instant;
use samekey::domain::ids::OperationId;
use samekey::domain::money::Money;
use samekey::domain::operation::UnknownReason;
use samekey::tui::action::Action;
use samekey::tui::format::{self, Stamp, Times};
use samekey::tui::input;
use samekey::tui::keymap::{Binding, Code, Context, Key, Keymap, KeymapError, Meaning, TABLE};
use samekey::tui::message::{Message, Tab};
use samekey::tui::osc::{Habits, notice};
use samekey::tui::query::{Parsed, parse};
use samekey::tui::theme::{Role, Theme, ThemeName};
use samekey::tui::{frame_text, key_table};
use strum::VariantArray;

#[path = "common/tui.rs"]
mod kit;

// --- key map -------------------------------------------------------------------------------------

#[test]
fn no_key_means_two_things_and_every_action_has_one() {
    let keymap = Keymap::new().expect("no clash");
    for action in Action::VARIANTS {
        assert!(
            TABLE.iter().any(|b| b.action == *action),
            "{action:?} has no key"
        );
    }
    let key = |word| Key::parse(word).expect("a key");
    assert_eq!(keymap.meaning(Context::List, &[key("g")]), Meaning::Pending);
    let gg = keymap.meaning(Context::List, &[key("g"), key("g")]);
    assert_eq!(gg, Meaning::Action(Action::Top));
    assert_eq!(
        keymap.meaning(Context::Dialog, &[key("F")]),
        Meaning::Nothing
    );
}

#[test]
fn two_actions_on_one_key_is_a_start_up_error() {
    let mut table: Vec<Binding> = TABLE.to_vec();
    table.push(Binding {
        action: Action::Follow,
        keys: &["g"],
        on: &[Context::List],
        help: "",
        hint: "",
    });
    let clash = Keymap::of(&table).expect_err("g begins g g");
    assert!(matches!(
        clash,
        KeymapError::Clash {
            context: Context::List,
            first: Action::Top,
            second: Action::Follow,
            ..
        }
    ));
}

#[test]
fn lower_case_looks_and_upper_case_acts() {
    for binding in TABLE
        .iter()
        .filter(|b| b.action.acts() && b.action != Action::Note)
    {
        let upper = |k: &str| k.len() == 1 && k.chars().all(char::is_uppercase);
        assert!(
            binding.keys.iter().all(|k| upper(k)),
            "{:?}",
            binding.action
        );
    }
    for binding in TABLE.iter().filter(|b| !b.action.acts()) {
        let upper: Vec<_> = binding
            .keys
            .iter()
            .filter(|k| k.len() == 1 && k.chars().all(char::is_uppercase))
            .collect();
        let looks = matches!(binding.action, Action::Bottom | Action::Reverse);
        assert!(upper.is_empty() || looks, "{:?}", binding.action);
    }
}

#[test]
fn help_and_readme_come_from_the_same_table() {
    let mut stage = kit::Stage::open((80, 60), kit::mixed_rows());
    stage.keys("?");
    let text = stage.text();
    for (keys, help) in key_table() {
        assert!(text.contains(keys.split(' ').next().expect("a key")));
        let shown: String = help.chars().take(40).collect();
        assert!(text.contains(&shown), "{help:?} is missing\n{text}");
    }
    assert!(key_table().contains(&("L".into(), "look it up at the provider (only reads)".into())));
}

// --- filter --------------------------------------------------------------------------------------

#[test]
fn a_filter_line_reads_all_its_qualifiers() {
    let parsed = parse(
        "status:unknown tool:issue_refund order:4417 session:chat call:toolu_01 key:c41f \
         ref:re_1 reason:server_error age>2h left<30m amount>usd38.00 some text",
    )
    .expect("all known");
    let f = parsed.filter;
    assert_eq!(parsed.tab, Some(Tab::Unknown));
    assert_eq!(f.tool.as_deref(), Some("issue_refund"));
    assert_eq!(f.order.as_deref(), Some("4417"));
    assert_eq!(f.session.as_deref(), Some("chat"));
    assert_eq!(f.call.as_deref(), Some("toolu_01"));
    assert_eq!(f.key.as_deref(), Some("c41f"));
    assert_eq!(f.provider_ref.as_deref(), Some("re_1"));
    assert_eq!(f.reason, Some(UnknownReason::ServerError));
    assert_eq!(f.age_over, Some(Duration::from_hours(2)));
    assert_eq!(f.left_under, Some(Duration::from_mins(30)));
    assert_eq!(f.amount_over, Some(3_800));
    assert_eq!(f.text.as_deref(), Some("some text"));
}

#[test]
fn an_amount_is_never_a_guess_u19() {
    let amount = |word: &str| parse(word).map(|p| p.filter.amount_over);
    assert_eq!(amount("amount>3800"), Ok(Some(3_800)));
    assert_eq!(
        amount("amount>jpy500"),
        Ok(Some(500)),
        "no factor of 100 for yen"
    );
    assert_eq!(amount("amount>KWD1.234"), Ok(Some(1_234)));
    for wrong in [
        "amount>38.00",
        "amount>-5",
        "amount>jpy5.5",
        "amount>€5",
        "amount>1e3",
    ] {
        assert!(amount(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_wrong_word_is_named_by_its_place() {
    for (line, start, width, says) in [
        ("order:4417 status:unknwon", 11, 14, "no such status"),
        ("  age>soon", 2, 8, "a number and a unit"),
        ("left>3h", 0, 7, "write left<"),
        ("colour:red", 0, 10, "no such qualifier"),
        ("order: 4417", 0, 6, "needs a value"),
        ("age>99999999999999999999d", 0, 25, "a number and a unit"),
        ("age>999999d", 0, 11, "too long"),
        ("注文 reason:x", 5, 8, "no such reason"),
    ] {
        let fault = parse(line).expect_err(line);
        assert_eq!((fault.start, fault.width), (start, width), "{line}");
        assert!(fault.says.contains(says), "{line}: {}", fault.says);
    }
}

#[test]
fn quotes_hold_words_together_and_other_signs_are_text() {
    let parsed = parse("order:\"a b\" \"two words\" 12:30 %_ it's").expect("fine");
    assert_eq!(parsed.filter.order.as_deref(), Some("a b"));
    assert_eq!(
        parsed.filter.text.as_deref(),
        Some("two words 12:30 %_ it's")
    );
    assert_eq!(parse("").expect("nothing"), Parsed::default());
    assert_eq!(
        parse("\"open quote").expect("fine").filter.text.as_deref(),
        Some("open quote")
    );
}

// --- formats -------------------------------------------------------------------------------------

#[test]
fn money_is_grouped_and_exact_u19() {
    let money = |minor, code: &str| {
        let currency = code.parse().expect("a currency");
        format::money(Money::from_minor(minor, currency).expect("money"))
    };
    assert_eq!(money(3_800, "usd"), "USD 38.00");
    assert_eq!(money(5_000, "jpy"), "JPY 5,000");
    assert_eq!(money(1_234_567, "kwd"), "KWD 1,234.567");
    assert_eq!(money(1, "usd"), "USD 0.01");
    assert_eq!(
        money(999_999_999_999_999, "usd"),
        "USD 9,999,999,999,999.99"
    );
    assert_eq!(
        format::minor(-123_456, "usd".parse().expect("usd")),
        "USD -1,234.56"
    );
}

#[test]
fn spans_of_time_have_two_units_at_most() {
    for (seconds, text) in [
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (125, "2m5s"),
        (600, "10m"),
        (661, "11m"),
        (3_600, "1h"),
        (11_520, "3h12m"),
        (86_400, "1d"),
        (360_000, "4d4h"),
        (86_400 * 400, "400d"),
    ] {
        assert_eq!(format::span(Duration::from_secs(seconds)), text);
    }
    assert!(!format::span(Duration::MAX).is_empty());
}

#[test]
fn ids_are_short_and_end_with_the_token() {
    let id = OperationId::parse("op_00000000000000000000000000005521").expect("an id");
    assert_eq!(format::short_id(&id, "…"), "op_…5521");
    assert_eq!(
        format::short_id(&OperationId::parse("op_7").expect("an id"), "…"),
        "op_7"
    );
}

#[test]
fn text_is_cut_by_columns_not_by_bytes_u47() {
    assert_eq!(format::fit("日本語", 5, "…"), "日本…");
    assert_eq!(format::fit("日本語", 4, "…"), "日…");
    assert_eq!(format::fit("abc", 0, "…"), "");
    assert_eq!(format::cell("ab", 4, true, "…"), "  ab");
    assert_eq!(format::wrap("one two  three", 7), ["one two", "three"]);
    assert_eq!(format::wrap("abcdefgh", 3), ["abc", "def", "gh"]);
    assert_eq!(format::wrap("a bcdefgh", 4), ["a bc", "defg", "h"]);
    assert_eq!(format::wrap("日", 1), ["?"]);
    assert_eq!(format::wrap("", 10), [""]);
}

#[test]
fn the_zone_stands_beside_every_instant_u25() {
    let now = Instant::from_timestamp(1_773_497_002, 0).expect("an instant");
    let stamp = |times| Stamp {
        times,
        zone: chrono::FixedOffset::east_opt(19_800).expect("a zone"),
        now,
    };
    let then = now - chrono::TimeDelta::seconds(125);
    assert_eq!(stamp(Times::Relative).at(then), "2m5s ago");
    assert_eq!(stamp(Times::Utc).at(then), "14:01:17Z");
    assert_eq!(stamp(Times::Local).at(then), "19:31:17+05:30");
    let day = now - chrono::TimeDelta::days(2);
    assert_eq!(stamp(Times::Utc).at(day), "03-12 14:03:22Z");
    assert_eq!(stamp(Times::Relative).clock(then), "14:01:17Z");
}

#[test]
fn a_desktop_notice_cannot_end_early_u53() {
    let osc_9 = Habits::default();
    let text = notice("op\u{7}\u{1b}\\\u{1b}]52;c;AA\u{9c}x", osc_9);
    assert_eq!(text, "\u{7}\u{1b}]9;op␇␛\\␛]52;c;AA�x\u{1b}\\");
    assert!(notice(&"x".repeat(5_000), osc_9).chars().count() < 130);
    // The other form has fields, so a semicolon must not begin one.
    let osc_777 = Habits {
        osc_777: true,
        ..osc_9
    };
    let text = notice("a;b\u{7}\u{1b}\\", osc_777);
    assert_eq!(text, "\u{7}\u{1b}]777;notify;samekey;a,b␇␛\\\u{1b}\\");
    assert!(notice(&"x;".repeat(5_000), osc_777).chars().count() < 155);
}

#[test]
fn a_terminal_is_known_by_its_environment_and_told_once() {
    let habits = |vars: &[(&str, &str)]| {
        Habits::of(|name| {
            let found = vars.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    };
    assert_eq!(habits(&[("TERM", "xterm-256color")]), Habits::default());
    for vars in [
        [("TERM", "rxvt-unicode-256color")],
        [("TERM", "foot")],
        [("VTE_VERSION", "7600")],
    ] {
        assert!(habits(&vars).osc_777, "{vars:?}");
        assert_eq!(notice("x", habits(&vars)).matches('\u{1b}').count(), 2);
    }
    // tmux passes on only what is wrapped for it, with every escape doubled.
    let tmux = habits(&[
        ("TERM", "tmux-256color"),
        ("TMUX", "/tmp/tmux-1/default,1,0"),
    ]);
    assert_eq!(
        notice("x", tmux),
        "\u{7}\u{1b}Ptmux;\u{1b}\u{1b}]9;x\u{1b}\u{1b}\\\u{1b}\\"
    );
}

// --- themes --------------------------------------------------------------------------------------

#[test]
fn themes_use_the_16_colours_and_never_white_or_black_u46() {
    for name in ThemeName::VARIANTS {
        let theme = Theme::new(*name, false, false);
        for role in Role::VARIANTS {
            let style = theme.style(*role);
            assert_eq!(style.bg, None, "{name:?} {role:?}");
            match style.fg {
                None => {}
                Some(
                    Color::Rgb(..) | Color::Indexed(_) | Color::White | Color::Black | Color::Gray,
                ) => panic!("{name:?} {role:?}"),
                Some(_) => assert_ne!(*name, ThemeName::Mono),
            }
        }
    }
}

#[test]
fn without_colour_every_theme_is_mono_and_the_cursor_is_still_reversed_u45() {
    for name in ThemeName::VARIANTS {
        let theme = Theme::new(*name, true, false);
        assert_eq!(theme.name(), ThemeName::Mono);
        let cursor = theme.style(Role::Cursor);
        assert!(cursor.add_modifier.contains(Modifier::REVERSED));
    }
}

#[test]
fn red_and_green_are_told_apart_by_neither_colour_in_deuteranopia() {
    let theme = Theme::new(ThemeName::Deuteranopia, false, false);
    for role in Role::VARIANTS {
        let color = theme.style(*role).fg;
        let red_green = [Color::Red, Color::LightRed, Color::Green, Color::LightGreen];
        assert!(color.is_none_or(|c| !red_green.contains(&c)), "{role:?}");
    }
    assert_ne!(
        theme.style(Role::Succeeded).fg,
        theme.style(Role::Failed).fg
    );
}

#[test]
fn the_ascii_screen_is_ascii() {
    let mut setup = kit::setup((160, 50));
    setup.theme = Theme::new(ThemeName::Default, false, true);
    let mut rows = kit::mixed_rows();
    rows[1].row.failure_text = Some("a\u{1b}[2Jb".into());
    let mut stage = kit::Stage::new(setup, rows);
    let check = |stage: &kit::Stage| {
        let text = stage.text();
        let odd: String = text.chars().filter(|c| !c.is_ascii()).collect();
        assert_eq!(odd, "", "{text}");
    };
    check(&stage);
    stage.keys("6 j enter");
    check(&stage);
    assert!(stage.text().contains("a?[2Jb"), "{}", stage.text());
    stage.keys("w ?");
    check(&stage);
    stage.keys("esc / 'status:x' enter");
    check(&stage);
    stage.keys("esc F");
    check(&stage);
    stage.gate_asks(samekey::tui::action::Level::TokenAndNote);
    stage.draw();
    check(&stage);
    stage.keys("tab '5521' tab 'seen' ctrl-y");
    assert!(stage.text().contains("closing..."));
    check(&stage);
}

#[test]
fn a_screen_too_small_still_tells_the_unknown_and_how_to_quit() {
    let mut stage = kit::Stage::open((80, 24), kit::mixed_rows());
    stage.give(Message::Resize {
        width: 40,
        height: 10,
    });
    let text = frame_text(&stage.model, 40, 10);
    assert!(text.contains("unknown 3") && text.contains("q quits"));
    stage.keys("q");
    assert!(stage.model.quitting.is_some());
}

// --- input ---------------------------------------------------------------------------------------

fn event(code: KeyCode, modifiers: KeyModifiers, kind: KeyEventKind) -> Event {
    Event::Key(KeyEvent {
        code,
        modifiers,
        kind,
        state: KeyEventState::NONE,
    })
}

#[test]
fn press_repeat_and_release_go_through_one_normaliser_u16() {
    let none = KeyModifiers::NONE;
    let messages = input::messages(vec![
        event(KeyCode::Char('j'), none, KeyEventKind::Press),
        event(KeyCode::Char('j'), none, KeyEventKind::Repeat),
        event(KeyCode::Char('j'), none, KeyEventKind::Release),
        event(KeyCode::Char('L'), KeyModifiers::SHIFT, KeyEventKind::Press),
        event(KeyCode::Tab, KeyModifiers::SHIFT, KeyEventKind::Press),
        event(
            KeyCode::Char('y'),
            KeyModifiers::CONTROL,
            KeyEventKind::Press,
        ),
        Event::FocusLost,
    ]);
    let keys: Vec<(Key, bool)> = messages
        .iter()
        .map(|m| match m {
            Message::Key { key, repeat, .. } => (*key, *repeat),
            other => panic!("{other:?}"),
        })
        .collect();
    let key = |word| Key::parse(word).expect("a key");
    assert_eq!(
        keys,
        [
            (key("j"), false),
            (key("j"), true),
            (key("L"), false),
            (Key::plain(Code::BackTab), false),
            (key("ctrl-y"), false),
        ]
    );
}

#[test]
fn a_burst_is_what_nobody_types_u14() {
    let press = |c: char| event(KeyCode::Char(c), KeyModifiers::NONE, KeyEventKind::Press);
    let burst = |text: &str| {
        let messages = input::messages(text.chars().map(press).collect());
        matches!(messages.first(), Some(Message::Key { burst: true, .. }))
    };
    assert!(!burst("jjL"));
    assert!(!burst(&"j".repeat(200)), "a held motion key on a slow line");
    assert!(burst("Refund for the customer, please"));
}
