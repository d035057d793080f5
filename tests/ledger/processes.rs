//! Real processes on one SQLite ledger: this test binary runs itself as a child.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use samekey::clock::Clock;
use samekey::ledger::CallQuery;
use samekey::ledger::Ledger;
use samekey::ledger::sqlite::{OpenMode, SqliteLedger};

use crate::common::*;

const WHERE: &str = "SAMEKEY_TEST_LEDGER";
const NAME: &str = "SAMEKEY_TEST_CALL";
const MASK: &str = "SAMEKEY_TEST_UMASK";

fn child(place: &Place, name: &str, umask: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command
        .args([
            "--exact",
            "processes::as_a_child",
            "--ignored",
            "--nocapture",
        ])
        .env(WHERE, place.location())
        .env(NAME, name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(mask) = umask {
        command.env(MASK, mask);
    }
    command.spawn().expect("a child")
}

/// Waits for the child's word that its call was acknowledged.
fn acknowledged(child: &mut Child) {
    let out = child.stdout.take().expect("its output");
    let mut said = String::new();
    for line in BufReader::new(out).lines() {
        let line = line.expect("a line");
        if line.ends_with("acknowledged") {
            return;
        }
        said.push_str(&line);
        said.push('\n');
    }
    panic!("the child said:\n{said}");
}

fn end(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

/// What a child does: opens the ledger as `submit` does, accepts a call, says so, and stays.
#[tokio::test]
#[ignore = "run by the tests of this file, as a child"]
#[allow(
    clippy::disallowed_methods,
    reason = "a child is told by its environment what to do"
)]
async fn as_a_child() {
    let Ok(location) = std::env::var(WHERE) else {
        return;
    };
    if let Some(mask) = std::env::var(MASK)
        .ok()
        .and_then(|m| u32::from_str_radix(&m, 8).ok())
    {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
    }
    let name = std::env::var(NAME).expect("a name");
    let clock = Clock::manual(at(0));
    let ledger = SqliteLedger::open(&location, OpenMode::Submit, all(terms()), clock).await;
    let ledger = ledger.expect("opened");
    ledger
        .accept_call(new_call(&name, "4417", 100))
        .await
        .expect("accepted");
    println!("\nacknowledged");
    // Until the parent is done with it.
    let _ = std::io::stdin().read_line(&mut String::new());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn five_processes_open_a_new_ledger_at_once_f73() {
    for _ in 0..3 {
        let place = Place::new(Store::Sqlite);
        let mut children: Vec<Child> = (0..5)
            .map(|n| child(&place, &format!("t{n}"), None))
            .collect();
        children.iter_mut().for_each(acknowledged);
        let ledger = place.open(all(terms()), &Clock::manual(at(0))).await;
        let query = CallQuery {
            limit: 100,
            ..CallQuery::default()
        };
        assert_eq!(ledger.calls(&query).await.expect("listed").calls.len(), 5);
        children.into_iter().for_each(end);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_handles_open_a_new_ledger_at_once_f73() {
    for _ in 0..10 {
        let place = std::sync::Arc::new(Place::new(Store::Sqlite));
        let mut opening = Vec::new();
        for n in 0..5 {
            let place = std::sync::Arc::clone(&place);
            opening.push(tokio::spawn(async move {
                let ledger = place.open(all(terms()), &Clock::manual(at(0))).await;
                ledger
                    .accept_call(new_call(&format!("t{n}"), "4417", 100))
                    .await
                    .expect("accepted");
            }));
        }
        for one in opening {
            one.await.expect("opened");
        }
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9_i26_f72() {
    let place = Place::new(Store::Sqlite);
    for n in 0..5 {
        let name = format!("t{n}");
        let mut process = child(&place, &name, None);
        acknowledged(&mut process);
        end(process);
        let ledger = place.open(all(terms()), &Clock::manual(at(0))).await;
        let call = ledger
            .call(&agent("agent"), &call_id(&name))
            .await
            .expect("read");
        assert!(call.is_some(), "{name}");
        ledger.close().await;
    }
}

#[tokio::test]
async fn all_files_are_the_owners_alone_whatever_the_umask_f80() {
    let place = Place::new(Store::Sqlite);
    let mut process = child(&place, "t1", Some("000"));
    acknowledged(&mut process);
    let mut seen = 0;
    for file in std::fs::read_dir(place.dir.path()).expect("listed") {
        let file = file.expect("a file");
        let mode = file.metadata().expect("its mode").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.file_name());
        seen += 1;
    }
    assert!(seen >= 3, "the ledger and its sidecars");
    end(process);
    // And what was left open once is closed.
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o644)).expect("opened up");
    let _ledger = place.open(all(terms()), &Clock::manual(at(0))).await;
    let mode = std::fs::metadata(place.path())
        .expect("its mode")
        .permissions()
        .mode()
        & 0o777;
    assert_eq!(mode, 0o600);
}

#[tokio::test]
async fn a_commit_of_another_process_is_noticed_l6() {
    let place = Place::new(Store::Sqlite);
    let ledger = place.open(all(terms()), &Clock::manual(at(0))).await;
    let mut changes = ledger.changed();
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    changes.mark_unchanged();
    let mut process = child(&place, "t1", None);
    let noticed = tokio::time::timeout(std::time::Duration::from_secs(20), changes.changed()).await;
    noticed.expect("in time").expect("alive");
    acknowledged(&mut process);
    let call = ledger
        .call(&agent("agent"), &call_id("t1"))
        .await
        .expect("read");
    assert!(call.is_some());
    end(process);
}
