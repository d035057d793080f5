//! MCP over HTTP and on a pipe, by hand, line by line as the protocol has them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use samekey::domain::tool_call::Delivery;
use serde_json::{Value, json};

use crate::cli::{Home, simulator};
use crate::client::{Answer, Ask};
use crate::hall::Hall;

fn message(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn post(token: &str, body: &Value) -> Ask<'static> {
    let mut ask = Ask::call(body)
        .by(token)
        .with("Accept", "application/json, text/event-stream")
        .with("MCP-Protocol-Version", "2025-06-18");
    ask.path = "/mcp".into();
    ask
}

fn tool_call(meta: &Value, order: &str, cents: i64) -> Value {
    let arguments = json!({"order_id": order, "amount_cents": cents, "currency": "usd"});
    json!({"name": "issue_refund", "arguments": arguments, "_meta": meta})
}

async fn rpc(hall: &Hall, token: &str, method: &str, params: &Value) -> Value {
    let answer: Answer = post(token, &message(1, method, params))
        .send(hall.addr)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let reply = answer.json();
    assert_eq!(reply["id"], 1, "{reply}");
    reply["result"].clone()
}

fn begin() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
}

/// Tools with their schemas and honest hints, structured results, one effect for one call id and for
/// calls of equal arguments; the model sees no key (R60, R62, R67).
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_over_http_and_its_result_is_structured_r60_r62_r67() {
    let hall = Hall::new("honest").await;
    let token = hall.agent("desk", &[]).await;
    let info = rpc(&hall, &token, "initialize", &begin()).await;
    assert_eq!(info["serverInfo"]["name"], "samekey");
    let tools = rpc(&hall, &token, "tools/list", &json!({})).await;
    let tool = |name: &str| {
        let all = tools["tools"].as_array().expect("tools");
        all.iter()
            .find(|t| t["name"] == name)
            .cloned()
            .expect("the tool")
    };
    let refund = tool("issue_refund");
    let file: Value = serde_json::from_str(samekey::gateway::tools::ISSUE_REFUND).expect("JSON");
    assert_eq!(refund["inputSchema"], file);
    assert!(refund["outputSchema"]["properties"]["status"]["enum"].is_array());
    let hints = |t: &Value| {
        let a = &t["annotations"];
        [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ]
        .map(|h| a[h].as_bool())
    };
    assert_eq!(
        hints(&refund),
        [Some(false), Some(true), Some(true), Some(true)]
    );
    assert_eq!(
        hints(&tool("operation_status")),
        [Some(true), Some(false), Some(true), Some(false)]
    );
    let first = rpc(
        &hall,
        &token,
        "tools/call",
        &tool_call(&json!({"call_id": "toolu_1"}), "1", 100),
    )
    .await;
    let result = &first["structuredContent"];
    assert_eq!(
        (&result["status"], &first["isError"]),
        (&json!("refunded"), &json!(false)),
        "{first}"
    );
    assert_eq!(
        first["content"][0]["text"],
        result.to_string(),
        "the same as text"
    );
    let same = rpc(
        &hall,
        &token,
        "tools/call",
        &tool_call(&json!({"call_id": "toolu_1"}), "1", 100),
    )
    .await;
    assert_eq!(&same["structuredContent"], result);
    let made = rpc(
        &hall,
        &token,
        "tools/call",
        &tool_call(&json!({}), "1", 100),
    )
    .await;
    assert_eq!(made["structuredContent"]["repeat"], true);
    let reused = rpc(
        &hall,
        &token,
        "tools/call",
        &tool_call(&json!({"call_id": "toolu_1"}), "2", 100),
    )
    .await;
    assert_eq!(
        (&reused["isError"], &reused["structuredContent"]["code"]),
        (&json!(true), &json!("call_id_reused"))
    );
    assert_eq!(hall.simulator.effects().len(), 1);
    hall.until("desk", "toolu_1", |c| c.delivery == Delivery::Delivered)
        .await;
    let id = result["operation_id"].clone();
    let status = json!({"name": "operation_status", "arguments": {"operation_id": id}});
    let status = rpc(&hall, &token, "tools/call", &status).await;
    assert_eq!(status["structuredContent"]["status"], "succeeded");
    let key = hall.world.only().await.op.row.key.to_string();
    for seen in [&first, &same, &made, &tools, &status] {
        assert!(!seen.to_string().contains(&key) && !seen.to_string().contains("idempotency_key"));
    }
    let call = json!({"name": "operation_status", "arguments": {"call_id": "toolu_1"}});
    let call = rpc(&hall, &token, "tools/call", &call).await;
    assert_eq!(call["structuredContent"]["result"]["status"], "refunded");
    hall.end().await;
}

/// Nobody without a token, nothing that is not permitted, nothing that could mean two things (R98).
#[tokio::test(flavor = "multi_thread")]
async fn over_http_a_token_is_needed_and_bodies_are_read_strictly_r98() {
    let hall = Hall::idle().await;
    let few = hall.agent("few", &["create_ticket"]).await;
    let list = message(1, "tools/list", &json!({}));
    let nobody = post("x", &list).send(hall.addr).await;
    assert_eq!((nobody.status, nobody.code()), (401, "unauthorised".into()));
    let tools = rpc(&hall, &few, "tools/list", &json!({})).await;
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(1), "{tools}");
    let refused = rpc(&hall, &few, "tools/call", &tool_call(&json!({}), "1", 100)).await;
    assert_eq!(
        (&refused["isError"], &refused["structuredContent"]["code"]),
        (&json!(true), &json!("tool_not_permitted"))
    );
    let twice =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
    let twice = post(&few, &list).body(twice).send(hall.addr).await;
    assert_eq!(
        (twice.status, twice.code()),
        (400, "duplicate_member".into())
    );
    let long = post(&few, &list)
        .body("x".repeat(100_000))
        .send(hall.addr)
        .await;
    assert_eq!(long.status, 413);
    let get = Ask {
        method: "GET",
        body: Vec::new(),
        ..post(&few, &list)
    };
    assert_eq!(
        get.send(hall.addr).await.status,
        405,
        "there are no sessions"
    );
    for arguments in [
        json!({}),
        json!({"operation_id": 7}),
        json!({"operation_id": "a", "call_id": "b"}),
    ] {
        let params = json!({"name": "operation_status", "arguments": arguments});
        let reply = post(&few, &message(1, "tools/call", &params))
            .send(hall.addr)
            .await;
        assert!(reply.json()["error"].is_object(), "{reply:?}");
    }
    hall.end().await;
}

/// On a pipe: standard output carries the protocol and nothing else, the engine drives, an answer is
/// delivered once its line is out, and the end of input is the end.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_pipe_the_protocol_is_all_there_is() {
    let provider = simulator("honest").await;
    let home = Home::with_provider(&provider.base_url(), "");
    let mut child = home
        .command(&["mcp"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("its input");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut ask = |value: Value| {
        writeln!(input, "{value}").expect("written");
        if value.get("id").is_none() {
            return Value::Null;
        }
        let line = lines.next().expect("a line").expect("text");
        let reply: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(
            (&reply["jsonrpc"], &reply["id"]),
            (&json!("2.0"), &value["id"]),
            "{line}"
        );
        reply["result"].clone()
    };
    let info = ask(message(1, "initialize", &begin()));
    assert_eq!(info["serverInfo"]["name"], "samekey");
    ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let tools = ask(message(2, "tools/list", &json!({})));
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(2));
    let meta = json!({"call_id": "toolu_1", "session_id": "s1"});
    let refund = ask(message(3, "tools/call", &tool_call(&meta, "4417", 3800)));
    assert_eq!(
        refund["structuredContent"]["status"], "refunded",
        "{refund}"
    );
    let again = ask(message(4, "tools/call", &tool_call(&meta, "4417", 3800)));
    assert_eq!(again["structuredContent"], refund["structuredContent"]);
    drop(input);
    assert!(lines.next().is_none(), "nothing more");
    assert_eq!(child.wait().expect("it ended").code(), Some(0));
    let call = home.json(&["calls", "show", "toolu_1"]);
    assert_eq!(
        (&call["delivery"], &call["session_id"]),
        (&json!("delivered"), &json!("s1"))
    );
    assert_eq!(provider.effects().len(), 1);
    home.ok(0, &["verify"]);
    provider.stop().await;
}

/// Without an engine of its own it only queues; what does not speak MCP is told so.
#[tokio::test(flavor = "multi_thread")]
async fn without_an_engine_it_queues_and_whoever_does_not_speak_mcp_is_told() {
    let home = Home::new();
    let mut child = home
        .command(&["mcp", "--no-engine"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("its input");
    let initialize = message(1, "initialize", &begin());
    writeln!(input, "{initialize}").expect("written");
    writeln!(
        input,
        "{}",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    )
    .expect("written");
    writeln!(
        input,
        "{}",
        message(
            2,
            "tools/call",
            &tool_call(&json!({"call_id": "q"}), "1", 100)
        )
    )
    .expect("written");
    let mut state = Value::Null;
    for _ in 0..200 {
        let list = home.run(&["calls", "list", "--json"]);
        state = serde_json::from_str(&list.stdout).unwrap_or_default();
        if state[0]["state"] == "queued" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(state[0]["state"], "queued", "{state}");
    drop(input);
    assert_eq!(child.wait().expect("it ended").code(), Some(0));
    let refused = home.ok(2, &["mcp", "--json"]);
    assert_eq!(refused.error()["code"], "no_provider");
}
