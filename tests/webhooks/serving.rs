//! The real binary: `samekey serve` takes calls and webhooks, and ends cleanly.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ExitStatus};

use samekey::clock::Clock;
use samekey::config::Secret;
use samekey::gateway::signature;
use serde_json::{Value, json};

use crate::cli::{Home, KEY, simulator};
use crate::scripted::{post, send};

const SECRET: &str = "whsec_never_shown_9c1e";

/// A home whose provider is a simulator, with a secret for its webhooks.
fn home(base_url: &str) -> Home {
    let mut home = Home::with_provider(base_url, "webhook_secret_env = \"HOOK\"\n");
    home.set("HOOK", SECRET);
    home
}

struct Serving {
    child: Child,
    addr: SocketAddr,
}

fn serve(home: &Home) -> Serving {
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut child = command.spawn().expect("started");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let addr = line.trim().parse();
    let addr = addr.unwrap_or_else(|e| panic!("{e}: {line:?}"));
    Serving { child, addr }
}

impl Serving {
    /// Ends it as an init system does; how it ended and what it said.
    fn end(mut self) -> (ExitStatus, String) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        let pid = rustix::process::Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
        let ended = self.child.wait().expect("it ended");
        let mut said = String::new();
        let mut err = self.child.stderr.take().expect("its errors");
        err.read_to_string(&mut said).expect("text");
        (ended, said)
    }
}

async fn deliver(addr: SocketAddr, event: &Value) -> u16 {
    let body = event.to_string();
    let now = Clock::system().now();
    let header = signature::sign(&Secret::new(SECRET), body.as_bytes(), now);
    post(addr, &[("Stripe-Signature", &header)], body.as_bytes())
        .await
        .0
}

/// A call is driven, a signed event settles an unknown row, and SIGTERM ends it with 0; L8, I30, M3.
#[tokio::test(flavor = "multi_thread")]
async fn it_drives_calls_takes_webhooks_and_ends_on_sigterm_l8_m3() {
    let provider = simulator("saved-500-with-effect:1").await;
    let home = home(&provider.base_url());
    let serving = serve(&home);
    let asked = [
        "submit",
        "issue_refund",
        "--json-args",
        r#"{"order_id":"4417","amount_cents":3800,"currency":"usd"}"#,
        "--wait",
        "30",
    ];
    let result = home.json(&asked);
    assert_eq!(result["status"], "checking", "{result}");
    let rows = home.json(&["ops", "list"]);
    let id = rows[0]["operation_id"].as_str().expect("a row").to_owned();
    let refund = json!({
        "id": "re_hook", "object": "refund", "amount": 3800, "currency": "usd", "status": "succeeded",
        "created": Clock::system().now().timestamp(), "payment_intent": rows[0]["payment"],
        "charge": rows[0]["charge"], "metadata": {"operation_id": id, "order_id": "4417"},
    });
    let event = json!({
        "id": "evt_1", "object": "event", "type": "refund.created", "livemode": false,
        "created": Clock::system().now().timestamp(), "request": null, "data": {"object": refund},
    });
    assert_eq!(deliver(serving.addr, &event).await, 200);
    let row = until(&home, &id, "succeeded").await;
    assert_eq!(
        (row["provider_ref"].as_str(), row["closed_by"].as_str()),
        (Some("re_hook"), Some("webhook"))
    );
    assert_eq!(
        send(serving.addr, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .0,
        200
    );
    let (ended, said) = serving.end();
    assert_eq!(ended.code(), Some(0), "{said}");
    assert!(
        !said.contains(SECRET) && !said.contains(KEY),
        "{said} (I30)"
    );
    home.ok(0, &["verify"]);
    let shown = home.ok(0, &["config", "show"]).stdout;
    assert!(
        shown.contains("webhook_secret_env = \"HOOK\"") && !shown.contains(SECRET),
        "{shown}"
    );
    let doctor = home.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("the secret is there") && doctor.contains("1 processed"),
        "{doctor}"
    );
    assert!(!doctor.contains(SECRET));
    provider.stop().await;
}

/// The row, once it has this status.
async fn until(home: &Home, id: &str, status: &str) -> Value {
    for _ in 0..600 {
        let row = home.json(&["ops", "show", id]);
        if row["status"] == status {
            return row;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("it never was {status}");
}

/// An empty secret is an error of the configuration, another machine's address too; F65.
#[tokio::test]
async fn an_empty_secret_and_an_outside_address_are_refused_f65() {
    let mut home = home("http://127.0.0.1:1");
    for listen in ["0.0.0.0:0", "[::]:7717", "192.0.2.1:7717"] {
        let ran = home.ok(2, &["serve", "--listen", listen]);
        assert!(ran.stderr.contains("of this machine"), "{ran:?}");
        assert!(!home.ledger().exists(), "nothing was begun");
    }
    for empty in ["", " , "] {
        home.set("HOOK", empty);
        let ran = home.ok(2, &["serve", "--listen", "127.0.0.1:0", "--json"]);
        assert_eq!(ran.error()["code"], "secret", "{ran:?}");
    }
    let none = Home::new();
    let ran = none.ok(2, &["serve", "--listen", "127.0.0.1:0", "--json"]);
    assert_eq!(ran.error()["code"], "no_provider");
}
