//! The official SDKs as clients of `samekey sim`: create, replay, overlap, mismatch, list, page, the
//! errors they raise, their webhook verifiers, and their automatic retries under every fault.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{install, say, skipped};

const PYTHON_SDK: &str = "stripe==16.1.0";
const NODE_SDK: &str = "stripe@23.1.0";
/// Longest run of a script.
const LIMIT: Duration = Duration::from_secs(400);

/// Runs a script to its end; every line of it is a check that holds.
pub fn holds(peer: &str, command: &mut Command, at_least: usize) {
    let dir = tempfile::TempDir::new().expect("a directory");
    let path = dir.path().join("said");
    let said = File::create(&path).expect("a file");
    let again = said.try_clone().expect("a file");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(said)
        .stderr(again)
        .spawn()
        .expect("started");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break Some(status);
        }
        if began.elapsed() > LIMIT {
            child.kill().expect("killed");
            child.wait().expect("ended");
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let said = std::fs::read_to_string(&path).expect("what it said");
    let ok = said.lines().filter(|l| l.starts_with("ok ")).count();
    assert!(
        status.is_some_and(|s| s.success()) && ok >= at_least && !said.contains("FAILED"),
        "{peer}: {status:?} after {:?}\n{said}",
        began.elapsed()
    );
    let version = said.lines().next().unwrap_or_default();
    say(&format!("peers: {peer} ({version}): {ok} checks held"));
    for figures in said.lines().filter(|l| l.starts_with("figures: ")) {
        say(figures);
    }
}

pub fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peers")
        .join(name)
}

const SAMEKEY: &str = env!("CARGO_BIN_EXE_samekey");

/// With its own automatic retries, whatever the fault: one refund (S3, S8, S15, S16, S61–S64).
#[test]
fn the_python_sdk_finds_the_provider_it_knows_s3_s4_s6_s8_s15_s19_s42_s52() {
    match install::python(&[PYTHON_SDK]) {
        Err(why) => skipped("the Python SDK against samekey sim", &why),
        Ok(python) => holds(
            "Python SDK against samekey sim",
            Command::new(python)
                .arg(script("simulator.py"))
                .arg(SAMEKEY),
            110,
        ),
    }
}

#[test]
fn the_node_sdk_finds_the_provider_it_knows_s3_s4_s6_s8_s19_s42_s52() {
    match install::node(NODE_SDK) {
        Err(why) => skipped("the Node SDK against samekey sim", &why),
        Ok(modules) => holds(
            "Node SDK against samekey sim",
            Command::new("node")
                .arg(script("simulator.mjs"))
                .arg(SAMEKEY)
                .arg(modules),
            20,
        ),
    }
}
