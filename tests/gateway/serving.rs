//! The real binary: what it accepted survives a kill, its log is JSON, and beyond this machine it wants
//! tokens.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli::{Home, simulator};
use crate::client::{Ask, Talk};

struct Serving {
    child: Child,
    addr: SocketAddr,
}

fn serve(home: &Home, args: &[&str], vars: &[(&str, &str)]) -> Serving {
    let mut command = home.command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
    let mut child = command.envs(vars.iter().copied()).spawn().expect("started");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let said = line.trim();
    let addr = match serde_json::from_str::<Value>(said) {
        Ok(Value::Object(said)) => said["listen"].as_str().expect("an address").parse(),
        _ => said.parse(),
    };
    let addr = addr.unwrap_or_else(|e| panic!("{e}: {line:?}"));
    Serving { child, addr }
}

impl Serving {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill_process(Pid::from_raw(pid).expect("a process"), signal).expect("told");
    }

    /// What it said on standard error until it ended.
    fn ended(mut self) -> String {
        self.child.wait().expect("it ended");
        let mut said = String::new();
        let mut err = self.child.stderr.take().expect("its errors");
        err.read_to_string(&mut said).expect("text");
        said
    }
}

fn token(home: &Home) -> String {
    let added = home.json(&["agents", "add", "desk"]);
    added["token"].as_str().expect("a token").to_owned()
}

/// Killed anywhere between acceptance and answer: no acknowledged call is lost, none is paid twice, and
/// the client that asks again with the same key gets its answer (I26, R83).
#[tokio::test(flavor = "multi_thread")]
async fn killed_between_acceptance_and_answer_no_call_is_lost_i26_r83() {
    let provider = simulator("honest").await;
    let more = "rate = \"1000/s\"\nread_rate = \"1000/s\"\n[engine]\nlease = \"1s\"\npoll = \"50ms\"\n[tools.issue_refund]\nrate = \"1000/s\"\n";
    let home = Home::with_provider(&provider.base_url(), more);
    let token = token(&home);
    let mut acknowledged = Vec::new();
    for (n, place) in [
        "accepted",
        "opened",
        "authorised",
        "sent",
        "answered",
        "saved",
    ]
    .iter()
    .enumerate()
    {
        let serving = serve(&home, &[], &[("SAMEKEY_KILL_AT", place)]);
        let key = format!("k{n}");
        let mut talk = Talk::to(serving.addr).await;
        // Acknowledged before it dies, unless it dies in the middle of that.
        let answer = talk.ask(&Ask::refund(&token, &key, &key, 100)).await;
        assert!(matches!(answer.status, 202 | 0), "{place}: {answer:?}");
        if answer.status == 202 {
            acknowledged.push(key);
        }
        serving.ended();
    }
    assert_eq!(
        acknowledged.len(),
        5,
        "only the first died before it could answer"
    );
    let serving = serve(&home, &[], &[]);
    for key in &acknowledged {
        let path = format!("/v1/tool-calls/{key}");
        let mut call = Value::Null;
        for _ in 0..3 {
            call = Ask::get(&path)
                .by(&token)
                .waiting(30)
                .send(serving.addr)
                .await
                .json();
            if !call["result"].is_null() {
                break;
            }
        }
        let status = call["result"]["status"].as_str().unwrap_or_default();
        assert!(
            matches!(status, "refunded" | "checking" | "unconfirmed"),
            "{key}: {call}"
        );
    }
    // The one that heard nothing asks again.
    let mut again = Ask::refund(&token, "k0", "k0", 100)
        .waiting(30)
        .send(serving.addr)
        .await;
    for _ in 0..100 {
        if again.status != 409 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        again = Ask::refund(&token, "k0", "k0", 100)
            .send(serving.addr)
            .await;
    }
    assert_eq!(
        (again.status, &again.json()["status"]),
        (200, &"refunded".into())
    );
    serving.signal(Signal::TERM);
    serving.ended();
    home.ok(0, &["verify"]);
    for n in 0..6 {
        let order = Some(format!("k{n}"));
        let effects = provider
            .effects()
            .iter()
            .filter(|e| e.order_id == order)
            .count();
        assert!(effects <= 1, "k{n}: {effects}");
    }
    provider.stop().await;
}

/// One JSON object a line for every answer: the route and the agent, and never a token or a call.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_json_and_names_no_secret_i30() {
    let provider = simulator("honest").await;
    let home = Home::with_provider(&provider.base_url(), "");
    let token = token(&home);
    let serving = serve(&home, &["--json", "-v"], &[]);
    let ask = Ask::refund(&token, "toolu_secret_name", "4417", 3800).waiting(30);
    assert_eq!(ask.send(serving.addr).await.status, 200);
    assert_eq!(
        Ask::get("/v1/tools")
            .by("wrong")
            .send(serving.addr)
            .await
            .status,
        401
    );
    serving.signal(Signal::TERM);
    let said = serving.ended();
    let lines: Vec<Value> = said
        .lines()
        .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
        .collect();
    let answered = |status: u16| {
        let one = lines
            .iter()
            .find(|l| l["status"] == status && l["message"] == "answered");
        one.unwrap_or_else(|| panic!("no {status} in {said}"))
            .clone()
    };
    let (good, bad) = (answered(200), answered(401));
    assert_eq!(
        (&good["span"]["route"], &good["span"]["agent"]),
        (&"/v1/tool-calls".into(), &"desk".into())
    );
    assert_eq!(
        (&bad["span"]["route"], &bad["span"]["agent"]),
        (&"/v1/tools".into(), &Value::Null)
    );
    assert!(
        !said.contains(&token) && !said.contains("toolu_secret_name"),
        "{said}"
    );
    home.ok(0, &["verify"]);
    provider.stop().await;
}

/// Another address than this machine's only where an agent has a token, and with a warning.
#[tokio::test(flavor = "multi_thread")]
async fn beyond_this_machine_only_with_a_token_and_a_warning() {
    let home = Home::with_provider("http://127.0.0.1:1", "");
    let outside = ["serve", "--listen", "0.0.0.0:0"];
    let refused = home.ok(2, &outside);
    assert!(
        refused.stderr.contains("no agent has a token"),
        "{refused:?}"
    );
    assert!(!home.ledger().exists(), "nothing was begun");
    let token = token(&home);
    home.ok(0, &["agents", "revoke", "desk"]);
    assert!(home.ok(2, &outside).stderr.contains("no agent has a token"));
    home.ok(0, &["agents", "add", "other"]);
    let mut child = home.command(&outside).spawn().expect("started");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("its output"))
        .read_line(&mut line)
        .expect("a line");
    let addr: SocketAddr = line.trim().parse().expect("an address");
    let near = SocketAddr::from(([127, 0, 0, 1], addr.port()));
    assert_eq!(
        Ask::get("/v1/tools").by(&token).send(near).await.status,
        401,
        "revoked"
    );
    let serving = Serving { child, addr };
    serving.signal(Signal::TERM);
    assert!(serving.ended().contains("not encrypted"));
}
