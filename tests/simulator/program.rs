//! `samekey sim` itself: its flags, files and scenarios.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use super::receiver::Receiver;
use super::*;

/// What the outside contract names, in its order.
const CONTRACT: &str = "timeout-before-effect timeout-after-effect reset-after-commit slow \
    overlap-409 saved-500-with-effect saved-500-without-effect bad-gateway rate-limited lock-timeout \
    key-mismatch pruned-key refused already-refunded permission-denied pending-then-succeeded \
    pending-then-failed succeeded-then-failed webhook-lost webhook-late webhook-early \
    webhook-duplicate webhook-out-of-order external-refund copied-metadata match-on-page-2 \
    ignores-keys garbled-reply wrong-amount-reply outage mixed";

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_samekey"));
    command
        .arg("sim")
        .args(args)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A running `samekey sim`; ends when this is dropped.
struct Program {
    child: Child,
    addr: String,
}

impl Program {
    fn start(args: &[&str]) -> Self {
        let mut child = command(args).spawn().expect("started");
        let out = child.stdout.take().expect("its output");
        let mut addr = String::new();
        BufReader::new(out)
            .read_line(&mut addr)
            .expect("an address");
        let addr = addr.trim().to_owned();
        Self { child, addr }
    }

    async fn ask(&self, method: &str, path: &str, key: &str, body: &str) -> Value {
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: s\r\nConnection: close\r\n{AUTH}{key}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut socket = TcpStream::connect(&self.addr).await.expect("connect");
        socket.write_all(text.as_bytes()).await.expect("write");
        let mut reply = String::new();
        socket.read_to_string(&mut reply).await.expect("a reply");
        let (_, body) = reply.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }

    async fn refund(&self, key: &str) -> Value {
        let key = format!("Idempotency-Key: {key}\r\n");
        self.ask("POST", "/v1/refunds", &key, PAYMENT).await
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn refused(args: &[&str]) -> (i32, String) {
    let Output { status, stderr, .. } = command(args).output().expect("ended");
    let text = String::from_utf8(stderr).expect("UTF-8");
    (status.code().unwrap_or(-1), text)
}

#[test]
fn every_scenario_of_the_contract_has_its_file() {
    let names: Vec<_> = Plan::catalogue().into_iter().map(|(n, _)| n).collect();
    for name in CONTRACT.split_whitespace() {
        assert!(names.contains(&name), "{name}");
        Plan::parse(name).expect("a plan");
    }
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/scenarios");
    let files = std::fs::read_dir(dir).expect("scenarios");
    let files: BTreeSet<_> = files
        .map(|f| {
            f.expect("a file")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    let wanted: BTreeSet<_> = names.iter().map(|n| format!("{n}.toml")).collect();
    assert_eq!(
        files, wanted,
        "each file is a scenario, and each scenario a file"
    );
    assert_eq!(names.len(), Scenario::ALL.len() + 1, "and mixed");
}

#[tokio::test]
async fn its_clock_can_be_moved_and_a_key_expires_in_an_instant_s9() {
    let program = Program::start(&[]);
    let first = program.refund("K").await;
    assert_eq!(program.refund("K").await["id"], first["id"]);
    let body = "{\"seconds\": 86400}";
    let now = program.ask("POST", "/_sim/advance", "", body).await;
    assert!(now["now"].is_string());
    let second = program.refund("K").await;
    assert_ne!(second["id"], first["id"], "forgotten");
    let apart = second["created"].as_i64().zip(first["created"].as_i64());
    assert!(apart.is_some_and(|(b, a)| b - a >= 86_400));
    for wrong in [
        "",
        "{}",
        "{\"seconds\": -1}",
        "{\"seconds\": 1.5}",
        "{\"seconds\": 999999999999}",
    ] {
        let refused = program.ask("POST", "/_sim/advance", "", wrong).await;
        assert_eq!(refused["error"]["param"], "seconds", "{wrong}");
    }
}

#[tokio::test]
async fn it_sends_webhooks_where_it_is_told_s52() {
    let mut receiver = Receiver::start().await;
    let url = receiver.url();
    let program = Program::start(&[
        "--webhook",
        &url,
        "--webhook-secret",
        "whsec_a",
        "--webhook-secret",
        "whsec_b",
        "--scenario",
        "pending-then-failed",
    ]);
    program.refund("K").await;
    let told = receiver.next().await;
    assert_eq!(
        (told.signed_with("whsec_a"), told.signed_with("whsec_b")),
        (1, 1)
    );
    let body = "{\"seconds\": 600}";
    program.ask("POST", "/_sim/advance", "", body).await;
    let failed = receiver.next().await;
    assert_eq!(failed.kind(), "refund.failed");
    // Signed by the clock that both have: what was skipped is nobody else's time (S53).
    assert!(failed.at() - told.at() < 300);
    assert!(failed.event()["created"].as_i64().expect("a time") - told.at() >= 599);
}

#[tokio::test]
async fn a_file_of_ones_own_is_a_scenario_too() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let path = dir.path().join("mine.toml");
    std::fs::write(
        &path,
        "about = 'x'\n[[step]]\neffect = false\nanswer = { status = 503 }\n",
    )
    .expect("written");
    let program = Program::start(&["--scenario", &format!("{}:1", path.display())]);
    assert!(program.refund("K").await["error"].is_object());
    assert_eq!(program.refund("K").await["object"], "refund");
}

#[test]
fn what_is_wrong_is_said_in_one_sentence_with_the_line() {
    let dir = tempfile::TempDir::new().expect("a directory");
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, "about = 'x'\n\n[[step]]\nansver = 5\n").expect("written");
    let file = path.display().to_string();
    for (args, words) in [
        (
            vec!["--scenario", file.as_str()],
            "line 4: unknown field `ansver`",
        ),
        (vec!["--scenario", "/nowhere/x.toml"], "cannot be read"),
        (
            vec!["--scenario", "slowly"],
            "there is no scenario \"slowly\"",
        ),
        (vec!["--scenario", "slow:0"], "NAME:N"),
        (
            vec![
                "--webhook",
                "http://example.com/x",
                "--webhook-secret",
                "whsec_x",
            ],
            "must use https",
        ),
        (
            vec!["--webhook", "http://127.0.0.1:1/x"],
            "--webhook-secret",
        ),
    ] {
        let (code, text) = refused(&args);
        assert_eq!(code, 2, "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
        assert!(!text.contains("whsec_x"), "{text}");
    }
}
