//! The document and the routes are held together: every answer that any test gets is in the document, and
//! every answer of the document is given.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock};

use samekey::gateway::OPENAPI;
use serde_json::{Value, json};

use crate::client::{Ask, Talk};
use crate::hall::{Hall, wide};

fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(OPENAPI).expect("JSON"))
}

/// What was answered in this process: method, path and status as the document has them.
static GIVEN: Mutex<BTreeSet<(String, String, String)>> = Mutex::new(BTreeSet::new());

/// The document's path that a request's path is of.
fn template(path: &str) -> Option<&'static str> {
    let path = path.split('?').next().expect("a path");
    let paths = document()["paths"].as_object().expect("paths");
    let fits = |template: &&String| {
        let (t, p) = (template.split('/'), path.split('/'));
        t.clone().count() == p.clone().count()
            && t.zip(p).all(|(t, p)| t == p || t.starts_with('{'))
    };
    paths.keys().find(fits).map(String::as_str)
}

/// The document has this answer, or the path is none of ours.
pub fn documented(method: &str, path: &str, status: u16) {
    let Some(template) = template(path) else {
        assert_eq!(status, 404, "{method} {path}");
        return;
    };
    let method = method.to_lowercase();
    let operation = &document()["paths"][template][&method];
    if operation.is_null() {
        assert_eq!(status, 405, "{method} {path}");
        return;
    }
    let known = operation["responses"].get(status.to_string());
    assert!(
        known.is_some(),
        "{method} {path} answered {status}, which is not documented"
    );
    let one = (method, template.to_owned(), status.to_string());
    GIVEN.lock().expect("the list").insert(one);
}

/// Each answer of the document, provoked.
#[tokio::test(flavor = "multi_thread")]
async fn each_answer_of_the_document_is_given_and_no_other() {
    let limits = samekey::domain::agent::SubmitLimits {
        max_waiting: 3,
        ..wide()
    };
    let hall = Hall::open("honest", limits, true).await;
    let (all, few) = (
        hall.agent("all", &[]).await,
        hall.agent("few", &["x"]).await,
    );
    let addr = hall.addr;
    let done = Ask::refund(&all, "done", "1", 100)
        .waiting(30)
        .send(addr)
        .await
        .json();
    let id = done["operation_id"]
        .as_str()
        .expect("an operation")
        .to_owned();
    let get = |path: &str| Ask::get(path).by(&all);
    for path in [
        "/v1/tool-calls/done",
        "/v1/tool-calls/none",
        "/v1/tool-calls/%FF",
        "/v1/operations",
        "/v1/operations?x=1",
        "/v1/operations/none",
        "/v1/operations/%FF",
        &format!("/v1/operations/{id}"),
        "/v1/tools",
    ] {
        get(path).send(addr).await;
        Ask::get(path).send(addr).await;
    }
    for path in ["/v1/openapi.json", "/healthz", "/readyz", "/metrics"] {
        Ask::get(path).send(addr).await;
    }
    for id in ["done", "none", "%FF"] {
        let ack = Ask::get(format!("/v1/tool-calls/{id}/ack")).post();
        ack.clone().by(&all).send(addr).await;
        ack.send(addr).await;
    }
    let ask = |key: &str| Ask::refund(&all, key, "1", 100);
    ask("done").body("{}").send(addr).await;
    ask("done").without("authorization").send(addr).await;
    Ask::refund(&few, "k", "1", 100).send(addr).await;
    ask("k")
        .body(json!({"tool": "y", "arguments": {}}).to_string())
        .send(addr)
        .await;
    ask("k").body("x".repeat(100_000)).send(addr).await;
    ask("k").without("content-type").send(addr).await;
    Ask::refund(&all, "done", "1", 200).send(addr).await;
    let mut half = Talk::to(addr).await;
    let bytes = ask("half").bytes();
    half.write(&bytes[..bytes.len() - 5]).await;
    documented("POST", "/v1/tool-calls", half.read().await.status);
    // Without an engine calls stay as they are.
    let idle = Hall::open(
        "honest",
        samekey::domain::agent::SubmitLimits {
            max_waiting: 1,
            ..wide()
        },
        false,
    )
    .await;
    let token = idle.agent("all", &[]).await;
    for (key, order) in [("k", "1"), ("k", "1"), ("l", "2")] {
        Ask::refund(&token, key, order, 100).send(idle.addr).await;
    }
    Ask::get("/v1/tool-calls/k/ack")
        .post()
        .by(&token)
        .send(idle.addr)
        .await;
    idle.world.ledger.close().await;
    for path in [
        "/v1/tool-calls/k",
        "/v1/operations",
        "/v1/operations/x",
        "/v1/tools",
        "/readyz",
    ] {
        Ask::get(path).by(&token).send(idle.addr).await;
    }
    Ask::get("/v1/tool-calls/k/ack")
        .post()
        .by(&token)
        .send(idle.addr)
        .await;
    Ask::refund(&token, "k", "1", 100).send(idle.addr).await;
    hall.end().await;
    let given = GIVEN.lock().expect("the list").clone();
    let mut missing = Vec::new();
    for (path, methods) in document()["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            for status in operation["responses"].as_object().expect("answers").keys() {
                // Webhooks have tests of their own; other machines cannot be had here.
                let elsewhere = path == "/webhooks/stripe"
                    || path == "/mcp"
                    || (status == "401" && matches!(path.as_str(), "/readyz" | "/metrics"));
                let one = (method.clone(), path.clone(), status.clone());
                if !elsewhere && !given.contains(&one) {
                    missing.push(one);
                }
            }
        }
    }
    assert_eq!(missing, [], "documented and never given");
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(
                members
                    .get("$ref")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            members.values().for_each(|v| references(v, found));
        }
        Value::Array(all) => all.iter().for_each(|v| references(v, found)),
        _ => {}
    }
}

/// The document is served as it is, and its references lead somewhere.
#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_whole() {
    let hall = Hall::idle().await;
    let served = Ask::get("/v1/openapi.json").send(hall.addr).await;
    assert_eq!(&served.json(), document());
    let mut found = Vec::new();
    references(document(), &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let at = reference.strip_prefix('#').expect("in this document");
        assert!(document().pointer(at).is_some(), "{reference}");
    }
    hall.end().await;
}
