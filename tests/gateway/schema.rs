//! The schema of a tool and its own check say the same: what the schema refuses is refused, what the check
//! takes the schema takes too.

use proptest::prelude::*;
use samekey::domain::tool_call::RefundArguments;
use samekey::gateway::tools::ISSUE_REFUND;
use serde_json::{Map, Value, json};

fn schema() -> Value {
    serde_json::from_str(ISSUE_REFUND).expect("JSON")
}

/// As much of JSON Schema as the file uses; anything else in it fails the test.
fn fits(schema: &Value, value: &Value) -> bool {
    let rules = schema.as_object().expect("a schema");
    rules.iter().all(|(word, rule)| match word.as_str() {
        "$schema" | "title" | "description" => true,
        "type" => match rule {
            Value::String(kind) => is(kind, value),
            kinds => kinds
                .as_array()
                .expect("kinds")
                .iter()
                .any(|k| is(k.as_str().expect("a kind"), value)),
        },
        "enum" => rule.as_array().expect("values").contains(value),
        "minLength" => value
            .as_str()
            .is_none_or(|t| t.chars().count() >= number(rule)),
        "maxLength" => value
            .as_str()
            .is_none_or(|t| t.chars().count() <= number(rule)),
        "minimum" => value
            .as_i64()
            .is_none_or(|n| n >= rule.as_i64().expect("a number")),
        "maximum" => value
            .as_i64()
            .is_none_or(|n| n <= rule.as_i64().expect("a number")),
        "pattern" => value
            .as_str()
            .is_none_or(|t| matches(rule.as_str().expect("a pattern"), t)),
        "required" => rule
            .as_array()
            .expect("names")
            .iter()
            .all(|n| value.get(n.as_str().expect("a name")).is_some()),
        "oneOf" => {
            rule.as_array()
                .expect("schemas")
                .iter()
                .filter(|s| fits(s, value))
                .count()
                == 1
        }
        "properties" => value.as_object().is_none_or(|members| {
            members
                .iter()
                .all(|(name, v)| rule.get(name).is_none_or(|s| fits(s, v)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|members| {
            members
                .keys()
                .all(|name| rules["properties"].get(name).is_some())
        }),
        other => panic!("{other} is not understood here"),
    })
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "string" => value.is_string(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("{other} is not understood here"),
    }
}

fn number(rule: &Value) -> usize {
    usize::try_from(rule.as_u64().expect("a number")).expect("small")
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern {
        "^[A-Za-z]{3}$" => text.len() == 3 && text.bytes().all(|b| b.is_ascii_alphabetic()),
        "^[0-9]+(\\.[0-9]+)?$" => {
            let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
            text.split_once('.')
                .map_or(digits(text), |(a, b)| digits(a) && digits(b))
        }
        other => panic!("{other} is not understood here"),
    }
}

fn checked(arguments: &Value) -> Result<(), String> {
    RefundArguments::parse(arguments)
        .map(drop)
        .map_err(|e| e.to_string())
}

#[test]
fn the_schema_and_the_check_name_the_same_arguments() {
    let schema = schema();
    let base = json!({"order_id": "4417", "amount_cents": 3800, "currency": "usd"});
    assert!(fits(&schema, &base) && checked(&base).is_ok());
    for name in schema["properties"].as_object().expect("properties").keys() {
        let mut with = base.clone();
        with[name] = json!(7.5);
        let why = checked(&with).expect_err(name);
        assert!(!why.contains("unknown argument"), "{name}: {why}");
    }
    let known = checked(&json!({"nothing": 1})).expect_err("refused");
    for name in known.rsplit("takes ").next().expect("names").split(", ") {
        assert!(schema["properties"].get(name).is_some(), "{name}");
    }
    for name in schema["required"].as_array().expect("names") {
        let mut without = base.clone();
        without
            .as_object_mut()
            .expect("members")
            .remove(name.as_str().expect("a name"));
        assert!(checked(&without).is_err() && !fits(&schema, &without));
    }
    for reason in schema["properties"]["reason"]["enum"]
        .as_array()
        .expect("reasons")
    {
        let mut with = base.clone();
        with["reason"] = reason.clone();
        assert!(checked(&with).is_ok(), "{reason}");
    }
}

fn member() -> impl Strategy<Value = (&'static str, Value)> {
    let name = prop::sample::select(vec![
        "order_id",
        "amount_cents",
        "amount",
        "currency",
        "payment_intent",
        "charge",
        "reason",
        "after",
        "x",
    ]);
    let value = prop_oneof![
        Just(json!("4417")),
        Just(json!("usd")),
        Just(json!("JPY")),
        Just(json!("38.00")),
        Just(json!("0.5")),
        Just(json!("-1")),
        Just(json!("")),
        Just(json!(3800)),
        Just(json!(0)),
        Just(json!(-3)),
        Just(json!(1.5)),
        Just(json!(null)),
        Just(json!(true)),
        Just(json!([])),
        Just(json!("duplicate")),
        Just(json!("x".repeat(256))),
        Just(json!(999_999_999_999_999_i64)),
        Just(json!(1_000_000_000_000_000_i64)),
        "[ -~]{0,8}".prop_map(Value::from),
    ];
    (name, value)
}

proptest! {
    /// The check is the law (a currency has to exist, an id to be plain); the schema may be wider, but
    /// takes all that the check takes.
    #[test]
    fn what_the_check_takes_the_schema_takes(members in prop::collection::vec(member(), 0..5), good in any::<bool>()) {
        let mut map = Map::new();
        if good {
            map.insert("order_id".into(), json!("4417"));
            map.insert("currency".into(), json!("usd"));
            map.insert("amount_cents".into(), json!(100));
        }
        for (name, value) in members {
            map.insert(name.into(), value);
        }
        let arguments = Value::Object(map);
        // JSON null is an argument that is not given: the schema says so where it may be.
        let given: Map<String, Value> = arguments.as_object().expect("members").iter()
            .filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
        if checked(&arguments).is_ok() {
            prop_assert!(fits(&schema(), &Value::Object(given)), "{arguments}");
        }
    }
}
