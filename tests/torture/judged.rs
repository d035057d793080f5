//! The judge itself: each rule broken by hand in the provider's log, or by a provider that breaks its own
//! promise, is seen and named. A judge that sees nothing proves nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use crate::judge::judge;
use crate::place::Place;

/// What the judge says, if anything.
fn said(place: &Place) -> Option<String> {
    let judged = catch_unwind(AssertUnwindSafe(|| judge(place)));
    let why = judged.err()?;
    let text = why.downcast_ref::<String>().cloned();
    text.or(why.downcast_ref::<&str>().map(ToString::to_string))
}

/// The lines of an honest log, changed.
fn forged(place: &Place, change: impl Fn(Vec<Value>) -> Vec<Value>) -> Option<String> {
    let honest = std::fs::read_to_string(&place.log).expect("a log");
    let lines = honest
        .lines()
        .map(|l| serde_json::from_str(l).expect("JSON"));
    let lines: Vec<String> = change(lines.collect())
        .iter()
        .map(Value::to_string)
        .collect();
    std::fs::write(&place.log, lines.join("\n") + "\n").expect("written");
    let said = said(place);
    std::fs::write(&place.log, honest).expect("written");
    said
}

fn is(line: &Value, what: &str) -> bool {
    line["what"] == what && (what != "request" || line["method"] == "POST")
}

/// The lines of one kind once more, with a member changed.
fn again(mut lines: Vec<Value>, what: &str, member: &str, value: &Value) -> Vec<Value> {
    let more: Vec<Value> = lines.iter().filter(|l| is(l, what)).cloned().collect();
    for mut line in more {
        line[member] = value.clone();
        lines.push(line);
    }
    lines
}

/// The provider's log has each request before its effect and its reply, and each of them once.
#[test]
fn the_provider_logs_request_effect_and_reply_in_this_order() {
    let place = Place::new("honest");
    place.drive("4417", "first");
    let log = std::fs::read_to_string(&place.log).expect("a log");
    let lines = log
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).expect("JSON"));
    let all: Vec<Value> = lines.skip_while(|l| !is(l, "request")).collect();
    let kinds: Vec<&str> = all.iter().filter_map(|l| l["what"].as_str()).collect();
    assert_eq!(kinds, ["request", "effect", "reply"]);
    assert_eq!(all[0]["id"], all[2]["id"]);
    assert_eq!(
        (&all[1]["key"], &all[2]["status"]),
        (&all[0]["key"], &json!(200))
    );
}

/// I2, I3, I5, I11, I26.
#[test]
fn the_judge_sees_each_rule_broken_i2_i3_i5_i11_i26() {
    let place = Place::new("honest");
    place.drive("4417", "first");
    assert_eq!(said(&place), None);
    let same = |lines| again(lines, "request", "nth", &json!(2));
    let other_key = |lines| again(lines, "request", "key", &json!("another"));
    let other_bytes = |lines| again(lines, "request", "body_sha256", &json!("00"));
    let twice = |lines| again(lines, "effect", "refund_id", &json!("re_another"));
    let without = |lines: Vec<Value>| lines.into_iter().filter(|l| !is(l, "effect")).collect();
    for (rule, said) in [
        ("I5", forged(&place, same)),
        ("I2", forged(&place, other_key)),
        ("I3", forged(&place, other_bytes)),
        ("I11", forged(&place, twice)),
        ("succeeded without an effect", forged(&place, without)),
    ] {
        let said = said.unwrap_or_else(|| panic!("{rule} was not seen"));
        assert!(said.contains(rule), "{rule}: {said}");
    }
    place.acknowledged("lost", None);
    assert!(said(&place).is_some_and(|s| s.contains("I26")));
}

/// I11: a provider that ignores keys makes two of one retried request, and the judge sees it.
#[test]
fn the_judge_sees_a_provider_that_ignores_keys_i11() {
    let place = Place::new("ignores-keys");
    place.drive("4417", "first");
    place.come_to_rest();
    let said = said(&place).expect("two effects");
    assert!(said.contains("I11"), "{said}");
}
