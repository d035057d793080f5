//! Descriptions: what is refused and why, and that the shipped ones do what their samples say.

use samekey::config::Config;
use samekey::domain::policy::ProviderKind;
use samekey::tool::Tool;
use samekey::tool::description::Description;
use samekey::tool::samples::Samples;
use samekey::tool::shipped::ALL;
use serde_json::json;

use crate::kit::file;

const ORIGIN: &str = "http://127.0.0.1:9";

/// Every shipped description reads its sample replies as the file beside it says (R74, R75).
#[test]
fn the_shipped_tools_read_their_samples_r74_r75() {
    for shipped in ALL {
        let text = Description::parse(shipped.description).expect(shipped.name);
        let samples = Samples::parse(shipped.samples).expect(shipped.name);
        assert!(samples.replies.len() > 5, "{}", shipped.name);
        let tool = Tool::new(text, ProviderKind::None).expect(shipped.name);
        assert_eq!(samples.run(&tool), Vec::<String>::new(), "{}", shipped.name);
    }
}

/// A sample that says otherwise is noticed.
#[test]
fn a_sample_that_does_not_hold_is_named() {
    let shipped = ALL[0];
    let text = Description::parse(shipped.description).expect("a description");
    let tool = Tool::new(text, ProviderKind::Lookup).expect("a tool");
    let mut samples = Samples::parse(shipped.samples).expect("samples");
    samples.replies[0].reference = Some("78".into());
    samples.replies[1].follow_up = false;
    samples.lookups[1].complete = false;
    samples.arguments = json!({});
    let wrong = samples.run(&tool);
    assert_eq!(wrong.len(), 4, "{wrong:?}");
}

fn changed(from: &str, to: &str) -> Result<Tool, String> {
    let text = ALL[0].description;
    assert!(text.contains(from), "{from}");
    let text = Description::parse(&text.replacen(from, to, 1))?;
    Tool::new(text, ProviderKind::Lookup)
}

/// R63, R90, R98: a description that cannot be kept is refused before anything is sent.
#[test]
fn a_description_that_cannot_be_kept_is_refused_r63() {
    for (from, to, says) in [
        ("additionalProperties = false", "", "additionalProperties"),
        (
            "\"customer\", \"subject\"]\n\n[schema]",
            "\"nobody\"]\n\n[schema]",
            "nobody",
        ),
        (
            "success_word = \"created\"",
            "success_word = \"checking\"",
            "success_word",
        ),
        (
            "result_id = \"ticket_id\"",
            "result_id = \"operation_id\"",
            "result_id",
        ),
        ("{{ text }}", "{{ words }}", "words"),
        ("{{ text }}", "{% if text %}{% endif %}", "statement"),
        ("\"{{ operation_id }}\"", "\"fixed\"", "operation_id"),
        ("path = \"/tickets\"", "path = \"//evil.example/\"", "path"),
        (
            "path = \"/tickets\"",
            "path = \"/tickets\"\nheaders = { Authorization = \"x\" }",
            "Authorization",
        ),
        (
            "path = \"/tickets\"",
            "path = \"/tickets\"\nmethod = \"GET\"",
            "method",
        ),
        ("class = \"found\"", "class = \"magic\"", "magic"),
        ("status = 409", "status = 404", "found"),
        ("status = [400, 422]", "status = 200", "validation_failure"),
        ("status = 429", "status = 500", "retryable_failure"),
        ("ref = \"$.ticket.id\"", "", "ref"),
        ("$.ticket.id", "$.[", "JSONPath"),
        ("more = \"$.next_page\"", "absent = [500]", "absent"),
        ("?external_id={{ operation_id }}", "?all=1", "operation_id"),
        ("risk = \"low\"", "risk = \"none\"", "none"),
        (
            "noun = \"ticket\"",
            "noun = \"ticket\"\nretries = 3",
            "retries",
        ),
    ] {
        let why = changed(from, to).expect_err(to);
        assert!(why.contains(says), "{to}: {why}");
    }
    let text = ALL[0].description;
    let keyed = Tool::new(Description::parse(text).expect("read"), ProviderKind::Keyed);
    assert!(
        keyed.is_err(),
        "R63: without its key nothing is sent to a keyed provider"
    );
    let looked = text.split("[lookup]").next().expect("the part before");
    let looked = Tool::new(
        Description::parse(looked).expect("read"),
        ProviderKind::Lookup,
    );
    assert!(looked.expect_err("no lookup").contains("lookup"));
}

/// The configuration names the line, and reads back what it shows.
#[test]
fn a_configured_tool_reads_back_and_a_wrong_one_names_its_line() {
    let text = file(ORIGIN, "max_operations = { count = 9, window = \"1h\" }");
    let config = Config::parse(&text, "samekey.toml").expect("a configuration");
    let shown = Config::parse(&config.show(), "shown.toml").expect("reads back");
    assert_eq!(
        (&shown.tools, &shown.providers),
        (&config.tools, &config.providers)
    );
    for (from, to, says) in [
        ("keys = \"lookup\"", "", "keys"),
        ("keys = \"lookup\"", "keys = \"keyed\"", "retention"),
        ("settle_time = \"60s\"", "", "settle_time"),
        ("description = \"create_ticket\"", "", "description"),
        (
            "description = \"create_ticket\"",
            "description = \"magic\"",
            "shipped",
        ),
        ("provider = \"helpdesk\"", "", "provider"),
        ("[tools.create_ticket]", "[tools.issue_refund]", "http"),
        (
            "keys = \"none\"",
            "keys = \"keyed\"\nretention = \"24h\"",
            "key_header",
        ),
        ("[tools.create_ticket]", "[tools.\"bad name\"]", "letters"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        let error = Config::parse(&changed, "samekey.toml").expect_err(to);
        let all = format!("{error} {}", error.remedy);
        assert!(all.contains(says) && error.line.is_some(), "{to}: {all}");
    }
}

/// A description may stand in the tool's own section.
#[test]
fn a_description_may_stand_in_its_section() {
    let table: toml::Table = ALL[1].description.parse().expect("TOML");
    let mut text = file(ORIGIN, "");
    let at = text.find("[tools.send_message]").expect("the section");
    text.truncate(at);
    text.push_str("[tools.notify_customer]\nprovider = \"channel\"\n");
    for (key, value) in &table {
        if !value.is_table() && !value.is_array() {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    text.push_str("identity = [\"to\", \"text\"]\n");
    text.push_str("schema = { type = \"object\", additionalProperties = false, required = [\"to\", \"text\"], properties = { to = { type = \"string\" }, text = { type = \"string\" } } }\n");
    text.push_str("request = { path = \"/messages\", body = { reference = \"{{ operation_id }}\", to = \"{{ to }}\", text = \"{{ text }}\" } }\n");
    text.push_str("outcomes = [{ status = 201, class = \"succeeded\", ref = \"$.message.id\" }]\n");
    let config = Config::parse(&text, "samekey.toml").expect("a configuration");
    let shown = Config::parse(&config.show(), "shown.toml").expect("reads back");
    assert_eq!(shown.tools, config.tools);
    let tool = &config.tools[&"notify_customer".parse().expect("a name")];
    tool.arguments(&json!({ "to": "a", "text": "b" }))
        .expect("taken");
    tool.arguments(&json!({ "to": "a" })).expect_err("refused");
}
