//! `submit`: queue one tool call; perhaps wait for its answer, or drive it in this process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::args::SubmitArgs;
use super::context::{Context, Desk, Keys};
use crate::config::Config;
use crate::domain::ids::{AgentName, CallId, ToolName};
use crate::domain::text::SafeText;
use crate::domain::tool_call::{ToolCall, ToolResult};
use crate::engine::{EngineDeps, Lots, run_call};
use crate::error::{Exit, Failure};
use crate::kill;
use crate::ledger::sqlite::OpenMode;
use crate::ledger::view::ResultView;
use crate::ledger::{Accepted, NewCall};
use crate::tool::Tool;

/// The agent in whose name the command line calls.
pub(super) const AGENT: &str = "cli";
/// Most bytes of arguments.
const MAX_ARGUMENTS: usize = 64 * 1024;
/// The safety net behind the ledger's hint that something changed.
const POLL: Duration = Duration::from_secs(1);

pub(super) async fn run(cx: &Context, args: &SubmitArgs) -> Result<Exit, Failure> {
    // Whatever is wrong with the command itself is said before anything is stored.
    let loaded = cx.config()?;
    let tool = known_tool(&loaded.config, &args.tool)?;
    if args.run && loaded.config.providers.is_empty() {
        let file = loaded.path.display();
        let hint = format!("add [providers.stripe] to {file}, or try `samekey demo`");
        return Err(Failure::usage("no_provider", "no provider is configured").hint(hint));
    }
    let described = loaded.config.tools.get(&tool);
    let described = described.and_then(|t| t.described.as_ref());
    let arguments = arguments(args, described.map(|d| d.tool.as_ref()))?;
    let call = NewCall {
        id: call_id(args)?,
        agent: AgentName::parse(AGENT)
            .map_err(|e| Failure::usage("agent", format!("{AGENT} {e}")))?,
        tool,
        arguments: arguments.to_string(),
        session: args.session.clone(),
    };
    let (mode, keys) = if args.run {
        (OpenMode::Engine, Keys::Needed)
    } else {
        (OpenMode::Submit, Keys::IfThere)
    };
    let desk = cx.open(mode, keys).await?;
    let done = submit(cx, &desk, args, call, &arguments).await;
    desk.ledger.close().await;
    done
}

async fn submit(
    cx: &Context,
    desk: &Desk,
    args: &SubmitArgs,
    call: NewCall,
    arguments: &Value,
) -> Result<Exit, Failure> {
    let (agent, id) = (call.agent.clone(), call.id.clone());
    let stored = match desk.ledger.accept_call(call).await? {
        Accepted::New(call) | Accepted::Known(call) => call,
        Accepted::Conflict => {
            let message = format!("the call id {id} was used with other arguments");
            return Err(Failure::no("call_id_conflict", message)
                .hint("leave --call-id out, or give another"));
        }
    };
    kill::point("accepted");
    let result = if args.run {
        run_call(deps(desk), &agent, &id).await?
    } else if let Some(seconds) = args.wait {
        wait(desk, &agent, &id, Duration::from_secs(seconds)).await?
    } else {
        return queued(cx, desk, &stored, arguments);
    };
    kill::point("finished");
    let view = ResultView::of(&result, &stored.tool, &stored.arguments, desk.language());
    print(cx, &view)?;
    kill::point("printed");
    if !cx.out.is_gone() {
        desk.ledger.delivered(&agent, &id).await?;
    }
    Ok(exit(&result))
}

fn queued(cx: &Context, desk: &Desk, call: &ToolCall, arguments: &Value) -> Result<Exit, Failure> {
    let tool = desk.loaded.config.tools.get(&call.tool);
    if let Some(Err(why)) = tool.map(|t| t.arguments(arguments)) {
        cx.out.note(&format!("the call will be rejected: {why}"));
    }
    if cx.out.is_json() {
        cx.out
            .json(&json!({ "call_id": call.id, "state": call.state }))?;
    } else {
        cx.out.text(call.id.as_str())?;
    }
    Ok(Exit::Done)
}

fn deps(desk: &Desk) -> EngineDeps {
    EngineDeps {
        ledger: Arc::clone(&desk.ledger),
        providers: Arc::clone(&desk.providers),
        terms: Arc::clone(&desk.terms),
        config: desk.loaded.config.engine.clone(),
        clock: desk.clock.clone(),
        lots: Lots::default(),
    }
}

/// A running engine's answer.
async fn wait(
    desk: &Desk,
    agent: &AgentName,
    id: &CallId,
    limit: Duration,
) -> Result<ToolResult, Failure> {
    let mut changed = desk.ledger.changed();
    let answer = async {
        loop {
            let call = desk.ledger.call(agent, id).await?;
            if let Some(result) = call.and_then(|c| c.result) {
                return Ok(result);
            }
            // Either wakes; the ledger is asked again in any case.
            let _ = desk.clock.timeout(POLL, changed.changed()).await;
        }
    };
    desk.clock.timeout(limit, answer).await.unwrap_or_else(|| {
        let message = format!("call {id} was not answered within {} s", limit.as_secs());
        Err(Failure::no("not_answered", message).hint(format!(
            "see `samekey calls show {id}`; is an engine running?"
        )))
    })
}

fn print(cx: &Context, result: &ResultView) -> Result<(), Failure> {
    if cx.out.is_json() {
        return cx.out.json(result);
    }
    let value = serde_json::to_value(result).unwrap_or_default();
    let lines: Vec<String> = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key}: {text}"),
            other => format!("{key}: {other}"),
        })
        .collect();
    // The status first; the rest in the order of the alphabet.
    let (status, rest): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|l| l.starts_with("status: "));
    cx.out.text(&[status, rest].concat().join("\n"))
}

/// 0 where the answer is the refund's state; 1 where there will be none.
fn exit(result: &ToolResult) -> Exit {
    match result {
        ToolResult::Done { .. }
        | ToolResult::Unconfirmed { .. }
        | ToolResult::Checking { .. }
        | ToolResult::Held { .. } => Exit::Done,
        ToolResult::Failed { .. } | ToolResult::Rejected { .. } => Exit::No,
    }
}

fn known_tool(config: &Config, name: &str) -> Result<ToolName, Failure> {
    if let Some(tool) = config.tools.keys().find(|t| t.as_str() == name) {
        return Ok(tool.clone());
    }
    let known: Vec<_> = config.tools.keys().map(ToolName::as_str).collect();
    let message = format!("there is no tool {:?}", SafeText::new(name).as_str());
    Err(Failure::usage("unknown_tool", message).hint(format!("known: {}", known.join(", "))))
}

fn call_id(args: &SubmitArgs) -> Result<CallId, Failure> {
    let wrong = |e: &str| Failure::usage("call_id", format!("the call id {e}"));
    match &args.call_id {
        Some(id) if id.as_str().starts_with("approval:") => {
            Err(wrong("begins with approval:, which is reserved").hint("give another"))
        }
        Some(id) => Ok(id.clone()),
        None => {
            let id = format!("cli_{}", uuid::Uuid::new_v4().simple());
            CallId::parse(&id).map_err(|e| wrong(&e.to_string()))
        }
    }
}

/// The arguments of the call: canonical once printed, since the map is sorted.
fn arguments(args: &SubmitArgs, tool: Option<&Tool>) -> Result<Value, Failure> {
    let wrong = |message: String| Failure::usage("arguments", message);
    let mut all = match &args.json_args {
        Some(text) if text.len() > MAX_ARGUMENTS => {
            return Err(wrong(format!(
                "--json-args is longer than {MAX_ARGUMENTS} bytes"
            )));
        }
        Some(text) => serde_json::from_str::<Once>(text)
            .map(|once| once.0)
            .map_err(|e| {
                wrong(format!("--json-args is not a JSON object: {e}"))
                    .hint("write it as in '{\"order_id\":\"4417\"}'")
            })?,
        None => Map::new(),
    };
    for pair in &args.args {
        let Some((key, text)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let shown = SafeText::new(pair);
            return Err(
                wrong(format!("--arg {:?} is not K=V", shown.as_str())).hint("write order_id=4417")
            );
        };
        if text.len() > MAX_ARGUMENTS {
            return Err(wrong(format!("the value of --arg {key} is too long")));
        }
        if all.insert(key.to_owned(), typed(key, text, tool)).is_some() {
            return Err(wrong(format!("the argument {key} is given twice")).hint("give it once"));
        }
    }
    Ok(Value::Object(all))
}

/// A text value as the tool's schema has it. What does not convert stays text: the tool's own check
/// then rejects the call in its own words.
fn typed(key: &str, text: &str, tool: Option<&Tool>) -> Value {
    if let Some(tool) = tool {
        return tool.typed(key, text);
    }
    match (key, text.parse::<i64>()) {
        ("amount_cents", Ok(number)) => Value::from(number),
        _ => Value::from(text),
    }
}

/// A JSON object that has each name once; readers disagree about which of two would count.
struct Once(Map<String, Value>);

impl<'de> serde::Deserialize<'de> for Once {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> serde::de::Visitor<'de> for Names {
            type Value = Once;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut a: A) -> Result<Once, A::Error> {
                let mut map = Map::new();
                while let Some((name, value)) = a.next_entry::<String, Value>()? {
                    if map.insert(name, value).is_some() {
                        return Err(serde::de::Error::custom("a name stands there twice"));
                    }
                }
                Ok(Once(map))
            }
        }
        d.deserialize_map(Names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str], json: Option<&str>) -> Result<String, Failure> {
        let args = SubmitArgs {
            tool: "issue_refund".into(),
            args: args.iter().map(ToString::to_string).collect(),
            json_args: json.map(ToOwned::to_owned),
            call_id: None,
            session: None,
            wait: None,
            run: false,
        };
        arguments(&args, None).map(|v| v.to_string())
    }

    #[test]
    fn arguments_are_typed_by_the_schema_and_canonical_f31() {
        let text = of(
            &["order_id=4417", "currency=usd", "amount_cents=3800"],
            None,
        );
        let json = of(
            &["order_id=4417"],
            Some(r#" { "currency" : "usd",  "amount_cents": 3800 } "#),
        );
        let canonical = r#"{"amount_cents":3800,"currency":"usd","order_id":"4417"}"#;
        assert_eq!(text.expect("valid"), canonical);
        assert_eq!(json.expect("valid"), canonical);
        let kept = of(&["amount_cents=38.0.0", "order_id=a=b"], None).expect("kept as text");
        assert_eq!(kept, r#"{"amount_cents":"38.0.0","order_id":"a=b"}"#);
    }

    #[test]
    fn what_cannot_be_read_is_wrong_usage() {
        for (args, json) in [
            (&["order_id"][..], None),
            (&["=4417"], None),
            (&["a=1", "a=2"], None),
            (&["a=1"], Some(r#"{"a":"1"}"#)),
            (&[], Some("{")),
            (&[], Some("[]")),
            (&[], Some("null")),
            (&[], Some(r#"{"a":1,"a":2}"#)),
        ] {
            let failure = of(args, json).expect_err("refused");
            assert_eq!(failure.exit, Exit::Usage, "{args:?} {json:?}");
        }
        assert!(of(&[], Some(&"[".repeat(100_000))).is_err());
    }
}
