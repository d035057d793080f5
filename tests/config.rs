//! Configuration: defaults, the example file, and refusals that name line, key and remedy.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use std::time::Duration;

use samekey::config::{Config, ConfigError, EXAMPLE, KeySource};
use samekey::domain::guard::Role;
use samekey::domain::policy::{Profile, Repeat};
use samekey::domain::text::SafeText;

const FILE: &str = "samekey.toml";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, FILE)
}

fn refused(text: &str) -> ConfigError {
    match parse(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error,
    }
}

#[test]
fn an_empty_file_has_the_defaults_of_the_contract() {
    let c = parse("").expect("empty is fine");
    assert_eq!((c.engine.workers, c.engine.poll.as_secs()), (8, 1));
    assert_eq!(c.engine.lease, Duration::from_secs(30));
    assert_eq!(c.engine.call_timeout, Duration::from_secs(120));
    assert_eq!(c.engine.call_ttl, Duration::from_secs(3600));
    assert!(c.providers.is_empty() && c.reviewers.is_empty());
    let tool = c.tools.first_key_value().expect("issue_refund").1;
    let p = &tool.policy;
    assert_eq!((p.max_per_call, p.max_per_operation), (3, 6), "R45");
    assert_eq!(p.repeat, Repeat::Answer);
    assert_eq!(p.approval_ttl, Duration::from_secs(24 * 3600));
    assert_eq!(p.claim_ttl, Duration::from_secs(15 * 60));
    assert_eq!(c.ui.refresh, Duration::from_secs(1));
}

#[test]
fn a_provider_without_keys_is_stripe_with_the_documented_promises() {
    let c = parse("[providers.stripe]").expect("enough");
    let p = c.providers.first_key_value().expect("stripe").1;
    assert_eq!(p.base_url, "https://api.stripe.com");
    assert_eq!(p.api_key, Some(KeySource::Env("STRIPE_API_KEY".into())));
    assert_eq!(p.profile, Profile::stripe());
}

#[test]
fn the_example_is_accepted_also_with_every_line_active() {
    let c = parse(EXAMPLE).expect("the example");
    assert_eq!(c.show(), parse("[providers.stripe]").expect("bare").show());
    let active: String = EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || is_key(rest) => rest,
            _ => line,
        })
        .fold(String::new(), |out, line| out + line + "\n");
    let c = parse(&active).expect("every line is right");
    assert_eq!(c.reviewers.len(), 2);
    let refunds = c
        .tools
        .iter()
        .find(|(name, _)| name.as_str() == "issue_refund");
    let caps = &refunds.expect("tool").1.policy.caps;
    let usd = caps.values().next().expect("usd");
    assert_eq!(usd.max_amount, Some(50_000));
}

/// Whether a comment of the example is a key, not a sentence.
fn is_key(line: &str) -> bool {
    line.split_once(" = ")
        .is_some_and(|(k, _)| k.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
}

#[test]
fn the_values_of_the_example_are_the_defaults() {
    let defaults = |section: &str| {
        let lines = EXAMPLE.lines().skip_while(|l| !l.ends_with(section));
        let keys = lines.skip(1).take_while(|l| l.starts_with("# "));
        keys.filter_map(|l| l.strip_prefix("# ").filter(|k| is_key(k)))
            .filter(|l| !l.starts_with("account") && !l.starts_with("webhook_secret"))
            .fold(format!("{section}\n"), |out, line| out + line + "\n")
    };
    let bare = parse("[providers.stripe]").expect("bare").show();
    for section in ["[engine]", "[tools.issue_refund]", "[ui]"] {
        let text = format!("[providers.stripe]\n{}", defaults(section));
        assert_eq!(parse(&text).expect("valid").show(), bare, "{section}");
    }
    let text = defaults("[providers.stripe]");
    assert_eq!(parse(&text).expect("valid").show(), bare);
}

#[test]
fn what_is_shown_reads_back_to_the_same() {
    let text = r#"
        [ledger]
        url = "sqlite:/var/lib/x/ledger.db"
        [engine]
        workers = 2
        lease = "90s"
        [providers.shop]
        base_url = "http://127.0.0.1:4242/"
        api_key_file = "/run/keys/a \"b\""
        settle_time = "500ms"
        account = "acct_1"
        resolve = { command = ["/usr/bin/find \"it\"", "{order_id}"] }
        [providers.other]
        resolve = { table = "/var/lib/x/orders.toml" }
        [tools.issue_refund]
        provider = "shop"
        repeat = "open"
        rate = "100/m"
        [tools.issue_refund.caps.usd]
        max_amount_cents = 10
        max_total_cents = { amount = 100, window = "24h" }
        approve_over_cents = 5
        [tools.issue_refund.caps.JPY]
        [reviewers."anna müller"]
        role = "lead"
        [notify]
        command = ["/usr/bin/tell", "a \"b\""]
        webhook_file = "/run/hook"
        webhook_format = "slack"
        on = ["resolved", "unknown", "unknown"]
        timeout = "3s"
        [ui]
        theme = "mono"
        timezone = "local"
        language = "ru"
    "#;
    let shown = parse(text).expect("valid").show();
    assert_eq!(parse(&shown).expect("reads back").show(), shown);
    let c = parse(&shown).expect("reads back");
    assert_eq!(c.reviewers.values().next(), Some(&Role::Lead));
    let terms = c.terms();
    let terms = terms.values().next().expect("terms");
    assert_eq!(terms.profile.settle_time, Duration::from_millis(500));
    assert_eq!(terms.policy.repeat, Repeat::Open);
    let none = Config::default().show();
    assert_eq!(parse(&none).expect("reads back").show(), none);
}

/// Bounded, and harmless wherever they are drawn.
#[test]
fn note_templates_are_few_short_and_safe() {
    let c = parse("[ui]\nnote_templates = [\" asked the bank \", \"a\\u001b[2Jb\"]").expect("two");
    let notes: Vec<_> = c.ui.note_templates.iter().map(SafeText::as_str).collect();
    assert_eq!(notes, ["asked the bank", "a␛[2Jb"]);
    let shown = c.show();
    assert_eq!(parse(&shown).expect("reads back").show(), shown);
    let many = vec!["\"x\""; 21].join(", ");
    assert!(
        refused(&format!("[ui]\nnote_templates = [{many}]"))
            .remedy
            .contains("at most 20")
    );
    let long = "x".repeat(201);
    assert!(
        refused(&format!("[ui]\nnote_templates = [\"{long}\"]"))
            .what
            .contains("200")
    );
}

/// The text of a file, and of its error the line, the key, a part of what is wrong and a part of
/// the remedy.
type Mistake = (
    &'static str,
    usize,
    &'static str,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const MISTAKES: &[Mistake] = &[
    ("[engine]\nworkerz = 8", 2, "engine.workerz", "not known", "write workers"),
    ("colour = 1", 1, "colour", "not known", "known here"),
    ("\n\n[notify]", 3, "notify", "nobody to tell", "webhook_env"),
    ("[ledger]\nbusy_timeout = \"5s\"", 2, "ledger.busy_timeout", "not in this version", "remove"),
    ("[providers.stripe]\nread_rate = 5", 2, "providers.stripe.read_rate", "not a rate", "5/s"),
    ("[providers.stripe]\nwebhook_secret_env = \"whsec_abc\"", 2, "providers.stripe.webhook_secret_env", "looks like a key", "name of the variable"),
    ("[providers.stripe]\nwebhook_secret_env = \"\"", 2, "providers.stripe.webhook_secret_env", "is empty", ""),
    ("[providers.stripe]\nwebhook_secret_env = \"X\"\nwebhook_secret_file = \"/x\"", 3, "providers.stripe.webhook_secret_file", "stands beside webhook_secret_env", "keep one"),
    ("[providers.stripe]\nwebhook_secret = \"whsec_abc\"", 2, "providers.stripe.webhook_secret", "never stands in this file", "webhook_secret_env"),
    ("[providers.stripe]\nresolve = \"magic\"", 2, "providers.stripe.resolve", "not known", "orders.csv"),
    ("[providers.stripe]\nresolve = {}", 2, "providers.stripe.resolve", "neither table nor command", "orders.csv"),
    ("[providers.stripe]\nresolve = { table = \"orders.csv\" }", 2, "providers.stripe.resolve.table", "absolute", "from /"),
    ("[providers.stripe]\nresolve = { command = [\"find\"] }", 2, "providers.stripe.resolve.command[0]", "absolute", "/path/to/program"),
    ("[providers.stripe]\nresolve = { command = \"/bin/find\" }", 2, "providers.stripe.resolve.command", "not a list", "brackets"),
    ("[providers.stripe]\nresolve = { table = \"/a\", command = [\"/b\"] }", 2, "providers.stripe.resolve.command", "beside table", "keep one"),
    ("[providers.stripe]\nresolve = { table = \"/a\", shell = true }", 2, "providers.stripe.resolve.shell", "not known", "table, command"),
    ("[tools.issue_refund]\nmax_identical_calls = 0", 2, "tools.issue_refund.max_identical_calls", "out of range", "from 1 to"),
    ("[tools.issue_refund]\nrecovery = { server_error = \"retry_same_key\" }", 2, "tools.issue_refund.recovery", "laxer", "stricter"),
    ("[tools.issue_refund]\nrecovery = { server_error = \"ask_person\" }", 2, "tools.issue_refund.recovery", "says nothing of", "every class"),
    ("[ui]\nkeys = \"x\"", 2, "ui.keys", "not in this version", "remove"),
    ("[ui]\nlanguage = \"de\"", 2, "ui.language", "de", "en, ru"),
    ("[notify]\ncommand = \"/bin/x\"", 2, "notify.command", "not a list", "brackets"),
    ("[notify]\ncommand = []", 2, "notify.command", "is empty", "/path/to/program"),
    ("[notify]\ncommand = [\"x\"]", 2, "notify.command[0]", "absolute", "/path/to/program"),
    ("[notify]\ncommand = [\"/x\", 1]", 2, "notify.command[1]", "not text", "quotes"),
    ("[notify]\nwebhook = \"https://hooks.slack.com/services/T/B/X\"", 2, "notify.webhook", "is a secret", "webhook_env"),
    ("[notify]\nwebhook = \"http://10.0.0.1/x\"", 2, "notify.webhook", "https", "webhook_env"),
    ("[notify]\nwebhook_env = \"https://hooks.slack.com/x\"", 2, "notify.webhook_env", "not the name", "SAMEKEY_WEBHOOK"),
    ("[notify]\nwebhook_env = \"A\"\nwebhook_file = \"/b\"", 3, "notify.webhook_file", "another webhook", "keep one"),
    ("[notify]\nwebhook_file = \"b\"", 2, "notify.webhook_file", "absolute", "/"),
    ("[notify]\ncommand = [\"/x\"]\nwebhook_format = \"json\"", 3, "notify.webhook_format", "webhook", "remove"),
    ("[notify]\nwebhook_env = \"A\"\nwebhook_format = \"xml\"", 3, "notify.webhook_format", "xml", "slack, json"),
    ("[notify]\nwebhook_env = \"A\"\non = [\"uknown\"]", 3, "notify.on[0]", "uknown", "cap_reached"),
    ("[notify]\nwebhook_env = \"A\"\non = []", 3, "notify.on", "is empty", "[notify]"),
    ("[notify]\nwebhook_env = \"A\"\ntimeout = \"5m\"", 3, "notify.timeout", "out of range", "1s"),
    ("[notify]\nslack = true\ncommand = [\"/x\"]", 2, "notify.slack", "not known", "webhook"),
    ("[ui]\nnote_templates = \"x\"", 2, "ui.note_templates", "not a list", "[\"…\", \"…\"]"),
    ("[ui]\nnote_templates = [\"a\", 1]", 2, "ui.note_templates", "not text", "[\"…\", \"…\"]"),
    ("[ui]\nnote_templates = [\"a\", \" \"]", 2, "ui.note_templates", "empty entry", "words"),
    ("[tools.issue_refund]\nclaim_ttl = \"0s\"", 2, "tools.issue_refund.claim_ttl", "out of range", "from 1s"),
    ("[engine]\nlease = 30", 2, "engine.lease", "no unit", "lease = \"10s\""),
    ("[engine]\nlease = \"30\"", 2, "engine.lease", "no unit", "lease = \"10s\""),
    ("[engine]\nlease = \"30 sec\"", 2, "engine.lease", "unit other than", "\"10s\""),
    ("[engine]\nlease = \"0s\"", 2, "engine.lease", "out of range", "from 1s"),
    ("[engine]\nworkers = \"8\"", 2, "engine.workers", "not a whole number", "without quotes"),
    ("[engine]\nworkers = 0", 2, "engine.workers", "out of range", "from 1"),
    ("[engine]\nworkers = 8.5", 2, "engine.workers", "not a whole number", "whole number"),
    ("[engine]\npoll = \"30s\"\nlease = \"5s\"", 1, "engine", "poll 30s and lease 5s", "shorter"),
    ("engine = 3", 1, "engine", "not a table", "[engine]"),
    ("[providers.stripe]\nkind = \"adyen\"", 2, "providers.stripe.kind", "adyen", "stripe"),
    ("[providers.stripe]\nbase_url = \"ftp://x\"", 2, "providers.stripe.base_url", "not http", "scheme"),
    ("[providers.stripe]\nbase_url = \"https://a/b\"", 2, "providers.stripe.base_url", "more than", "scheme"),
    ("[providers.stripe]\nbase_url = \"https://u:p@a\"", 2, "providers.stripe.base_url", "password", "scheme"),
    ("[providers.stripe]\napi_key = \"sk_live_1\"", 2, "providers.stripe.api_key", "never stands", "api_key_env"),
    ("[providers.stripe]\napi_key_env = \"sk_live_1\"", 2, "providers.stripe.api_key_env", "looks like a key", "name of the variable"),
    ("[providers.stripe]\napi_key_env = \"A B\"", 2, "providers.stripe.api_key_env", "not the name", "STRIPE_API_KEY"),
    ("[providers.stripe]\napi_key_env = \"A\"\napi_key_file = \"/b\"", 3, "providers.stripe.api_key_file", "beside", "one of the two"),
    ("[providers.stripe]\napi_key_file = \"b\"", 2, "providers.stripe.api_key_file", "absolute", "from /"),
    ("[providers.stripe]\nretention = \"5m\"", 1, "providers.stripe", "margin of 912s", "really keeps"),
    ("[tools.send_mail]", 1, "tools.send_mail", "no provider", "issue_refund"),
    ("[tools.issue_refund]\nprovider = \"paypal\"", 2, "tools.issue_refund.provider", "not configured", "[providers.paypal]"),
    ("[tools.issue_refund]\nmax_per_call = 7", 1, "tools.issue_refund", "above max_per_operation 6", "lower"),
    ("[tools.issue_refund]\nbackoff = { base = \"9s\" }", 2, "tools.issue_refund.backoff", "below base", "cap"),
    ("[tools.issue_refund]\nrate = \"5\"", 2, "tools.issue_refund.rate", "not a rate", "5/s"),
    ("[tools.issue_refund]\nrepeat = \"ask\"", 2, "tools.issue_refund.repeat", "not known", "answer, open"),
    ("[tools.issue_refund.caps.xyz]", 1, "tools.issue_refund.caps.xyz", "ISO 4217", "usd"),
    ("[tools.issue_refund.caps.usd]\nmax_amount_cents = -1", 2, "tools.issue_refund.caps.usd.max_amount_cents", "out of range", "from 1"),
    ("[tools.issue_refund.caps.usd]\nmax_amount_cents = 10.5", 2, "tools.issue_refund.caps.usd.max_amount_cents", "whole", "whole"),
    ("[tools.issue_refund.caps.usd]\nmax_amount_cents = 10\napprove_over_cents = 11", 1, "tools.issue_refund.caps.usd", "never apply", "lower"),
    ("[tools.issue_refund.caps.usd]\nmax_amount_cents = 10\nmax_total_cents = { amount = 5, window = \"1h\" }", 1, "tools.issue_refund.caps.usd", "below max_amount_cents", "raise"),
    ("[tools.issue_refund.caps.usd]\nmax_total_cents = { amount = 5 }", 2, "tools.issue_refund.caps.usd.max_total_cents", "both amount and window", "window"),
    ("[tools.issue_refund.caps]\nUSD = {}\nusd = {}", 3, "tools.issue_refund.caps.usd", "twice", "one section"),
    ("[reviewers.anna]", 1, "reviewers.anna", "no role", "role ="),
    ("[reviewers.anna]\nrole = \"boss\"", 2, "reviewers.anna.role", "not known", "lead"),
    ("[ledger]\nurl = \"postgres://x/y\"", 2, "ledger.url", "PostgreSQL", "sqlite:"),
    ("[ledger]\nurl = \"sqlite:ledger.db\"", 2, "ledger.url", "absolute", "sqlite:/"),
    ("[ledger]\nurl = \"sqlite::memory:\"", 2, "ledger.url", "no file", "sqlite:/"),
    ("[ui]\ntheme = \"neon\"", 2, "ui.theme", "neon", "deuteranopia"),
    ("[ui]\ntimezone = \"CET\"", 2, "ui.timezone", "CET", "utc, local"),
];

#[test]
fn every_mistake_names_its_line_key_and_remedy() {
    for (text, line, key, what, remedy) in MISTAKES {
        let e = refused(text);
        assert_eq!(e.line, Some(*line), "{text}: {e}");
        assert_eq!(e.key.as_deref(), Some(*key), "{text}: {e}");
        assert!(e.what.contains(what), "{text}: {e}");
        assert!(e.remedy.contains(remedy), "{text}: {}", e.remedy);
        let place = format!("{FILE}:{line}: ");
        assert!(e.to_string().starts_with(&place), "{e}");
        assert!(!e.to_string().contains("sk_live"), "I30: {e}");
        assert!(!e.to_string().contains("services/"), "I30: {e}");
    }
}

#[test]
fn what_is_not_toml_names_its_line() {
    let e = refused("[engine]\nworkers = = 8");
    assert_eq!((e.line, e.key.as_deref()), (Some(2), None));
    assert!(e.what.starts_with("this is not TOML"), "{e}");
    assert_eq!(refused("[a]\n[a]\n").line, Some(2), "a repeated section");
}

#[test]
fn a_tool_whose_provider_is_called_otherwise_is_told_so() {
    let e = refused("[providers.shop]");
    assert!(e.to_string().contains("tools.issue_refund.provider"), "{e}");
    assert!(e.remedy.contains("provider = \"shop\""), "{}", e.remedy);
}

#[test]
fn a_named_file_must_exist_and_the_default_need_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let absent = dir.path().join("none.toml");
    let loaded = Config::load(None, &absent).expect("defaults");
    assert!(!loaded.present && loaded.config.providers.is_empty());
    let e = Config::load(Some(&absent), &absent).expect_err("named");
    assert!(e.to_string().contains("none.toml"), "{e}");
    let e = Config::load(Some(dir.path()), &absent).expect_err("a directory");
    assert!(e.to_string().contains("not a configuration file"), "{e}");
    std::fs::write(&absent, "[engine]\nworkers = 1").expect("written");
    let loaded = Config::load(None, &absent).expect("now it is there");
    assert!(loaded.present && loaded.config.engine.workers == 1);
}
