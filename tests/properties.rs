//! Properties of what comes from outside and decides about money: amounts, identities, texts, identifiers,
//! the configuration file. (Answers of providers: `tests/stripe/arbitrary.rs` and beside the classification.)

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use proptest::prelude::*;
use samekey::config::{Config, EXAMPLE};
use samekey::domain::identity::Identity;
use samekey::domain::ids::OrderId;
use samekey::domain::money::{Currency, MAX_MINOR, Money, MoneyError, decimal};
use samekey::domain::text::{MAX_CHARS, SafeText};
use samekey::domain::tool_call::RefundArguments;
use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization;

/// One currency for each number of decimals that money has.
const CURRENCIES: [(&str, u32); 5] = [("jpy", 0), ("usd", 2), ("isk", 2), ("kwd", 3), ("clf", 4)];

fn currency() -> impl Strategy<Value = (Currency, u32)> {
    prop::sample::select(CURRENCIES.to_vec())
        .prop_map(|(code, decimals)| (code.parse().expect("a currency"), decimals))
}

/// Whole numbers, the edges of their range as often as its middle.
fn any_minor() -> impl Strategy<Value = i64> {
    let edges = vec![
        i64::MIN,
        i64::MIN + 1,
        -1,
        0,
        1,
        99,
        100,
        MAX_MINOR - 1,
        MAX_MINOR,
        MAX_MINOR + 1,
        9_007_199_254_740_993,
        i64::MAX - 1,
        i64::MAX,
    ];
    prop_oneof![any::<i64>(), 1..10_000_i64, prop::sample::select(edges)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// I32, F29: an amount is taken exactly or not at all, whatever its size and currency.
    #[test]
    fn minor_units_are_exact_or_refused(minor in any_minor(), (currency, decimals) in currency()) {
        prop_assert_eq!(currency.exponent(), decimals);
        match Money::from_minor(minor, currency) {
            Ok(money) => {
                prop_assert!((1..=MAX_MINOR).contains(&minor));
                prop_assert_eq!(money.minor(), minor);
                prop_assert_eq!(Money::from_decimal(&money.decimal(), currency), Ok(money));
            }
            Err(MoneyError::NotPositive) => prop_assert!(minor <= 0),
            Err(error) => {
                prop_assert!(minor > MAX_MINOR, "{}", error);
                prop_assert_eq!(error, MoneyError::TooLarge);
            }
        }
    }

    /// What is shown of any number of minor units is that number with its point in place; also of sums.
    #[test]
    fn a_decimal_is_the_number_with_a_point(minor in any_minor(), (currency, decimals) in currency()) {
        let shown = decimal(minor, currency);
        let digits: i128 = shown.replace('.', "").parse().expect("digits");
        prop_assert_eq!(digits, i128::from(minor));
        let after = shown.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        prop_assert_eq!(after, usize::try_from(decimals).expect("few"));
    }

    /// F28, F29: decimal text has at most the currency's decimals; more are refused and never rounded.
    #[test]
    fn decimals_are_never_rounded(
        whole in 0..1_000_000_u32, fraction in "[0-9]{1,8}", (currency, decimals) in currency(),
    ) {
        let text = format!("{whole}.{fraction}");
        let read = Money::from_decimal(&text, currency);
        if fraction.len() > usize::try_from(decimals).expect("few") {
            prop_assert_eq!(read, Err(MoneyError::TooManyDecimals(decimals)));
        } else {
            let padded = format!("{fraction:0<width$}", width = usize::try_from(decimals).expect("few"));
            let minor: i64 = format!("{whole}{padded}").parse().expect("digits");
            prop_assert_eq!(read.ok().map(Money::minor), (minor > 0).then_some(minor));
        }
    }

    /// R20, F31: one effect has one identity, however its call was spelled and whatever else it says.
    #[test]
    fn one_identity_for_every_spelling(
        order in order_text(), minor in 1..=MAX_MINOR, (currency, _) in currency(),
        in_decimals in any::<bool>(), places in order_of_six(), upper in any::<bool>(),
        spaces in " {0,3}", form in 0..3_u8, more in 0..8_u8,
    ) {
        let money = Money::from_minor(minor, currency).expect("in range");
        let order = order.trim().to_owned();
        let spelled = match form {
            0 => order.clone(),
            1 => order.nfc().collect(),
            _ => order.nfd().collect(),
        };
        let code = if upper { currency.code() } else { currency.as_str().to_owned() };
        let amount = if in_decimals {
            ("amount", json!(money.decimal()))
        } else {
            ("amount_cents", json!(minor))
        };
        let said = [
            ("order_id", json!(format!("{spaces}{spelled}{spaces}"))),
            ("currency", json!(code)),
            amount,
            ("reason", json!("requested_by_customer")),
            ("payment_intent", json!("pi_1")),
            ("after", json!("op_5521")),
        ];
        let fields = places.iter().filter(|n| **n < 3 || more >> (**n - 3) & 1 == 1).map(|n| &said[*n]);
        let text = fields.map(|(k, v)| format!("{}:{v}", json!(k))).collect::<Vec<_>>();
        let arguments: Value = serde_json::from_str(&format!("{{{}}}", text.join(" , "))).expect("JSON");
        let args = RefundArguments::parse(&arguments).expect("valid arguments");
        let canonical: String = order.nfc().collect();
        prop_assert_eq!(args.order.as_str(), &canonical);
        let identity = Identity::refund(&args.order, args.money);
        // Canonical JSON: names sorted, nothing else, every digit as it was.
        let read: Value = serde_json::from_str(identity.as_str()).expect("JSON");
        prop_assert_eq!(&read, &json!({ "amount_cents": minor, "order_id": canonical }));
        prop_assert_eq!(identity.as_str(), read.to_string());
    }

    /// R32: another order or another amount is another identity.
    #[test]
    fn different_effects_have_different_identities(
        a in (order_text(), 1..=MAX_MINOR), b in (order_text(), 1..=MAX_MINOR),
        near in any::<bool>(),
    ) {
        let b = if near { (a.0.clone(), a.1 % MAX_MINOR + 1) } else { b };
        let usd = "usd".parse().expect("usd");
        let of = |(order, minor): &(String, i64)| {
            let order: OrderId = order.parse().expect("an order");
            let money = Money::from_minor(*minor, usd).expect("in range");
            (order.clone(), *minor, Identity::refund(&order, money))
        };
        let (a, b) = (of(&a), of(&b));
        prop_assert_eq!(a.2 == b.2, (a.0, a.1) == (b.0, b.1));
    }

    /// A number that is text, and a text that is a number, are other things; nothing is converted.
    #[test]
    fn numbers_and_texts_are_not_converted(
        minor in any_minor(), order in any::<i64>(), half in any::<f64>(),
    ) {
        let refused = |order: Value, name: &str, amount: Value| {
            let mut arguments = json!({ "currency": "usd" });
            arguments["order_id"] = order;
            arguments[name] = amount;
            RefundArguments::parse(&arguments).is_err()
        };
        let cents = "amount_cents";
        prop_assert!(refused(json!(order), cents, json!(1)));
        prop_assert!(refused(json!("1"), cents, json!(minor.to_string())));
        prop_assert!(refused(json!("1"), cents, json!(half)));
        prop_assert!(refused(json!("1"), "amount", json!(minor)));
    }

    /// Arguments of any shape are read or refused in one harmless sentence.
    #[test]
    fn no_arguments_panic(arguments in any_json()) {
        if let Err(error) = RefundArguments::parse(&arguments) {
            let says = error.to_string();
            prop_assert!(!says.is_empty() && says.chars().all(|c| !c.is_control()));
            prop_assert!(says.chars().count() <= MAX_CHARS + 1);
        }
    }

    /// I31, I33: any text becomes harmless and bounded; what is harmless already stays as it is.
    #[test]
    fn safe_text_is_harmless_bounded_and_stable(raw in hostile_text()) {
        let safe = SafeText::new(&raw);
        prop_assert!(safe.as_str().chars().count() <= MAX_CHARS + 1);
        prop_assert!(!safe.as_str().chars().any(|c| c.is_control() || acts(c)), "{:?}", safe);
        let read: SafeText = serde_json::from_value(json!(raw)).expect("text");
        prop_assert_eq!(&read, &safe, "the same through JSON");
        if safe.as_str().chars().count() <= MAX_CHARS {
            prop_assert_eq!(SafeText::new(safe.as_str()), safe);
        }
    }

    /// I31: an identifier is taken unchanged up to spaces and Unicode form, or refused; never mended.
    #[test]
    fn identifiers_are_taken_or_refused_never_mended(raw in hostile_text()) {
        if let Ok(order) = raw.parse::<OrderId>() {
            let same: String = raw.trim().nfc().collect();
            prop_assert_eq!(order.as_str(), &same);
            let safe = SafeText::new(order.as_str());
            prop_assert_eq!(safe.as_str(), order.as_str());
            prop_assert_eq!(order.as_str().parse::<OrderId>(), Ok(order.clone()));
        }
    }

    /// The configuration parser never panics; a refusal names a line of the file, or else the key.
    #[test]
    fn no_configuration_panics_and_every_refusal_names_its_place(text in configuration()) {
        match Config::parse(&text, "samekey.toml") {
            Ok(config) => {
                let shown = config.show();
                let again = Config::parse(&shown, "shown").expect("what is shown is valid");
                prop_assert_eq!(again.show(), shown);
            }
            Err(error) => {
                prop_assert!(error.line.is_some() || error.key.is_some(), "{}", error);
                if let Some(line) = error.line {
                    let lines = text.lines().count().max(1) + 1;
                    prop_assert!((1..=lines).contains(&line), "{}: line {}", text, line);
                }
                prop_assert!(!error.what.is_empty() && !error.remedy.is_empty());
                let says = error.to_string();
                prop_assert!(says.chars().all(|c| c == '\n' || !c.is_control()));
            }
        }
    }
}

/// In whatever order the arguments come.
fn order_of_six() -> impl Strategy<Value = Vec<usize>> {
    Just((0..6).collect::<Vec<_>>()).prop_shuffle()
}

/// Forms of one text are one order; texts that only look alike are not.
#[test]
fn looking_alike_is_not_being_the_same() {
    let usd = "usd".parse().expect("usd");
    let of = |text: &str| {
        let order: Result<OrderId, _> = text.parse();
        let money = Money::from_minor(3800, usd).expect("money");
        order.ok().map(|order| Identity::refund(&order, money))
    };
    let plain = of("4417").expect("an order");
    // Full-width, superscript, Arabic-Indic digits; a Cyrillic letter; a leading zero; other case.
    for other in ["４４１７", "441⁷", "٤٤١٧", "04417", "4417.0", "+4417"] {
        assert_ne!(of(other), Some(plain.clone()), "{other}");
    }
    assert_ne!(of("а-1"), of("a-1"), "Cyrillic");
    assert_ne!(of("A-1"), of("a-1"), "case");
    assert_eq!(
        of("caf\u{e9}"),
        of("cafe\u{301}"),
        "composed and decomposed"
    );
    assert_eq!(of("Å"), of("\u{212b}"), "the Ångström sign is that letter");
}

/// F30, M-range: a number beyond 2^53 is never rounded on its way in; it is text, or refused.
#[test]
fn a_number_beyond_two_to_the_53_is_never_rounded() {
    let parse = |text: &str| RefundArguments::parse(&serde_json::from_str(text).expect("JSON"));
    let big = r#"{"order_id":"9007199254740993","amount_cents":3800,"currency":"usd"}"#;
    let args = parse(big).expect("an order may be any text");
    assert_eq!(args.order.as_str(), "9007199254740993");
    let identity = Identity::refund(&args.order, args.money);
    assert!(identity.as_str().contains("\"9007199254740993\""));
    for amount in [
        "9007199254740993",
        "9007199254740992",
        "1e15",
        "3800.0",
        "\"3800\"",
    ] {
        let text = format!(r#"{{"order_id":"1","amount_cents":{amount},"currency":"usd"}}"#);
        let says = parse(&text).expect_err("refused").to_string();
        assert!(says.starts_with("amount_cents"), "{amount}: {says}");
    }
}

/// Order ids: plain ones, ones whose Unicode forms differ, ones that JSON has to escape.
fn order_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,20}",
        "[A-Za-z0-9#_./-]{1,30}",
        "[éüñçåÅ가각ố\"\\\\a-z]{1,12}",
    ]
}

fn hostile_text() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "\u{1b}[2J",
        "\u{1b}]52;c;AA\u{7}",
        "\u{9b}31m",
        "\u{202e}",
        "\u{200b}",
        "\u{feff}",
        "e\u{301}",
        "\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
        "\r\n",
        "\0",
        "\u{e0041}",
        "한",
        "👩‍👩‍👧",
        " ",
        "4417",
    ]);
    prop_oneof![
        any::<String>(),
        prop::collection::vec(nasty, 0..20).prop_map(|parts| parts.concat()),
        (".{1,3}", 500..3000_usize).prop_map(|(part, n)| part.repeat(n)),
    ]
}

/// Characters that act on a terminal without being control characters.
fn acts(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

fn any_json() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "order_id",
        "amount_cents",
        "amount",
        "currency",
        "payment_intent",
        "charge",
        "reason",
        "after",
        "amout",
    ]);
    let value = prop_oneof![
        any::<String>().prop_map(Value::from),
        any_minor().prop_map(Value::from),
        any::<f64>().prop_map(|n| json!(n)),
        prop::sample::select(vec![
            Value::Null,
            json!(true),
            json!([]),
            json!({}),
            json!("usd"),
            json!("38.00"),
            json!("4417"),
            json!(u64::MAX),
        ]),
    ];
    prop_oneof![
        value.clone(),
        prop::collection::hash_map(name, value, 0..6).prop_map(|fields| json!(fields)),
    ]
}

/// Text like a configuration: the example with lines left out, doubled, uncommented or cut; sections and
/// keys that exist with values that may not fit; and anything at all.
fn configuration() -> impl Strategy<Value = String> {
    let change = (any::<prop::sample::Index>(), 0..5_u8, ".{0,6}");
    let changed = prop::collection::vec(change, 0..6).prop_map(|changes| {
        let mut lines: Vec<String> = EXAMPLE.lines().map(str::to_owned).collect();
        for (place, what, text) in changes {
            let n = place.index(lines.len());
            match what {
                0 => drop(lines.remove(n)),
                1 => lines.insert(n, lines[n].clone()),
                2 => lines[n] = lines[n].replacen("# ", "", 1),
                3 => lines[n].push_str(&text),
                _ => lines[n] = lines[n].chars().skip(text.chars().count()).collect(),
            }
        }
        lines.join("\n")
    });
    let section = prop::sample::select(vec![
        "[engine]",
        "[providers.stripe]",
        "[tools.issue_refund]",
        "[tools.issue_refund.caps.usd]",
        "[reviewers.anna]",
        "[ui]",
        "[ledger]",
        "[nothing]",
        "",
    ]);
    let key = prop::sample::select(vec![
        "workers",
        "lease",
        "poll",
        "retention",
        "settle_time",
        "timeout",
        "rate",
        "role",
        "theme",
        "url",
        "max_amount_cents",
        "max_per_call",
        "backoff",
        "base_url",
        "x",
    ]);
    let value = prop_oneof![
        any_minor().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|s| json!(s).to_string()),
        "[0-9]{1,20}(ms|s|m|h|d)?".prop_map(|s| json!(s).to_string()),
        "[0-9]{1,12}/(s|m|h)".prop_map(|s| json!(s).to_string()),
        Just("{ amount = 5, window = \"1h\" }".to_owned()),
        Just("[]".to_owned()),
        ".{0,8}",
    ];
    let line = (section, key, value).prop_map(|(s, k, v)| format!("{s}\n{k} = {v}\n"));
    prop_oneof![
        changed,
        prop::collection::vec(line, 0..4).prop_map(|lines| lines.concat()),
        any::<String>(),
    ]
}
