//! Orders resolved by a table or a command, where the provider's search does not serve (S43).

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use samekey::clock::Clock;
use samekey::config::OrdersBy;
use samekey::domain::ids::OrderId;
use samekey::domain::opening::Resolved;
use samekey::provider::stripe::Orders;
use samekey::provider::{Provider as _, ResolveError, ResolveQuery};
use serde_json::json;
use tempfile::TempDir;

use crate::reads::World;
use crate::server::Server;
use crate::{free, stripe};

/// What an order resolves to, and whether the provider was searched or asked at all.
async fn resolve(
    world: World,
    by: &OrdersBy,
    order: &str,
) -> (Result<Resolved, ResolveError>, Vec<String>) {
    let server = Server::start(move |_, seen| world.answer(seen)).await;
    let environment = |name: &str| match name {
        "PATH" => Some("/usr/bin:/bin".to_owned()),
        "STRIPE_API_KEY" => Some(crate::API_KEY.to_owned()),
        _ => None,
    };
    let stripe = stripe(&server.origin, &Clock::system()).resolving(Orders::new(by, environment));
    let query = ResolveQuery {
        order: OrderId::parse(order).expect("an order"),
        payment: None,
        charge: None,
    };
    let resolved = stripe.resolve(&query, &free()).await;
    (
        resolved,
        server.requests().into_iter().map(|s| s.line).collect(),
    )
}

fn file(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    let mut file = std::fs::File::create(&path).expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    path
}

fn script(dir: &TempDir, text: &str) -> OrdersBy {
    let path = file(dir, "find", &format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("its mode");
    OrdersBy::Command(vec![path.display().to_string(), "{order_id}".into()])
}

fn refused(resolved: &Result<Resolved, ResolveError>) -> String {
    match resolved {
        Err(ResolveError::Refused(why)) => why.to_string(),
        other => panic!("refused, not {other:?}"),
    }
}

fn unreadable(resolved: &Result<Resolved, ResolveError>) -> String {
    match resolved {
        Err(ResolveError::Unreadable(why)) => why.to_string(),
        other => panic!("unreadable, not {other:?}"),
    }
}

#[tokio::test]
async fn a_table_names_the_payment_and_nothing_is_searched_s43() {
    let dir = TempDir::new().expect("a folder");
    for (name, text) in [
        ("orders.csv", "order_id,payment\n1,pi_9\n4417,pi_1\n"),
        ("charges.csv", "4417,ch_1\n"),
        ("orders.toml", "4417 = \"pi_1\"\n"),
    ] {
        let by = OrdersBy::Table(file(&dir, name, text));
        // The search would find nothing, and the payment carries no order.
        let mut world = World::new();
        world.found.clear();
        world.payment["metadata"] = json!({});
        let (resolved, seen) = resolve(world, &by, "4417").await;
        assert_eq!(
            resolved.expect("resolves").payment.as_str(),
            "pi_1",
            "{name}"
        );
        assert!(seen.iter().all(|line| !line.contains("search")), "{seen:?}");
        let (unknown, seen) = resolve(World::new(), &by, "4418").await;
        assert!(refused(&unknown).contains("no payment of order 4418"));
        assert!(seen.is_empty(), "{seen:?}");
    }
}

#[tokio::test]
async fn a_table_is_read_anew_and_never_trusted_when_damaged() {
    let dir = TempDir::new().expect("a folder");
    let path = file(&dir, "orders.csv", "4417,pi_9\n");
    let by = OrdersBy::Table(path.clone());
    let (other, _) = resolve(World::new(), &by, "4417").await;
    assert!(refused(&other).contains("no payment_intent pi_9"));
    file(&dir, "orders.csv", "4417,pi_1\n");
    assert!(resolve(World::new(), &by, "4417").await.0.is_ok());
    for (text, says) in [
        ("4417,pi_1\n4418,everything\n", "line 2"),
        ("4417,pi_1\n4417,pi_2\n", "two payments"),
        ("4417;pi_1\n", "line 1"),
        ("4417,pi_1\n\u{1b}[2J,pi_2\n", "line 2"),
    ] {
        file(&dir, "orders.csv", text);
        let (damaged, seen) = resolve(World::new(), &by, "4417").await;
        let why = unreadable(&damaged);
        assert!(why.contains(says) && !why.contains('\u{1b}'), "{why}");
        assert!(seen.is_empty(), "{seen:?}");
    }
    std::fs::write(&path, [0xff, 0xfe, b'\n']).expect("written");
    assert!(unreadable(&resolve(World::new(), &by, "4417").await.0).contains("UTF-8"));
    std::fs::remove_file(&path).expect("removed");
    assert!(unreadable(&resolve(World::new(), &by, "4417").await.0).contains("cannot be read"));
    // A pipe that nobody writes to is not waited for.
    let pipe = dir.path().join("pipe.csv");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
    for other in [dir.path().to_owned(), pipe] {
        let by = OrdersBy::Table(other);
        assert!(unreadable(&resolve(World::new(), &by, "4417").await.0).contains("is no file"));
    }
}

/// The payment that a table names still has to be this order's, where it says whose it is.
#[tokio::test]
async fn a_table_cannot_give_an_order_the_payment_of_another() {
    let dir = TempDir::new().expect("a folder");
    let by = OrdersBy::Table(file(&dir, "orders.csv", "9,pi_1\n"));
    let (resolved, _) = resolve(World::new(), &by, "9").await;
    assert!(refused(&resolved).contains("another order than 9"));
}

#[tokio::test]
async fn a_command_is_asked_with_the_order_and_without_our_secrets_s43() {
    let dir = TempDir::new().expect("a folder");
    let order = r#"4417 "; echo pi_9 $(id) 'x"#;
    let by = script(
        &dir,
        r#"env > "$0.env"; [ "$1" = "$SAMEKEY_ORDER_ID" ] && printf 'pi_1\n'"#,
    );
    let mut world = World::new();
    world.payment["metadata"] = json!({});
    let (resolved, seen) = resolve(world, &by, order).await;
    assert_eq!(resolved.expect("resolves").payment.as_str(), "pi_1");
    assert!(seen.iter().all(|line| !line.contains("search")), "{seen:?}");
    let env = std::fs::read_to_string(dir.path().join("find.env")).expect("its environment");
    assert!(env.contains(&format!("SAMEKEY_ORDER_ID={order}")), "{env}");
    assert!(!env.contains("sk_test") && !env.contains("HOME="), "{env}");
}

/// Whatever a command says, there is one id or one clear refusal, and nothing is asked of the provider.
#[tokio::test]
async fn a_hostile_answer_of_a_command_is_one_clear_refusal_i31_i33() {
    let dir = TempDir::new().expect("a folder");
    for said in [
        "echo pi_1 pi_2",
        "printf 'pi_1\\npi_2\\n'",
        "echo re_1",
        "echo pi_",
        "echo '../account'",
        "echo 'pi_1?expand[]=x'",
        "printf 'pi_1\\033[2J'",
        "printf 'pi_\\377'",
        "printf 'pi_1\\000'",
        "printf 'pi_'; head -c 300 /dev/zero | tr '\\0' a",
        "head -c 9000000 /dev/zero | tr '\\0' '\\n'; echo pi_1",
        "echo 'sk_test_abcdef'",
        // What is kept of it names one id, but that is not all of it.
        r"printf pi_1; head -c 5000 /dev/zero | tr '\0' '\n'; echo pi_2",
    ] {
        let (resolved, seen) = resolve(World::new(), &script(&dir, said), "4417").await;
        let why = refused(&resolved);
        assert!(why.contains("did not answer with one id"), "{said}: {why}");
        assert!(
            !why.contains("abcdef") && why.chars().all(|c| !c.is_control()),
            "{why}"
        );
        assert!(seen.is_empty(), "{said}: {seen:?}");
    }
    let (none, _) = resolve(World::new(), &script(&dir, "true"), "4417").await;
    assert!(refused(&none).contains("no payment of order 4417"));
    let (option, seen) = resolve(World::new(), &script(&dir, "echo pi_1"), "--help").await;
    assert!(refused(&option).contains("like an option") && seen.is_empty());
    for (broken, says) in [
        (
            "echo pi_1; echo no database sk_live_x >&2; exit 3",
            "ended with exit status: 3",
        ),
        ("kill -9 $$", "ended with signal: 9"),
    ] {
        let (resolved, seen) = resolve(World::new(), &script(&dir, broken), "4417").await;
        let why = unreadable(&resolved);
        assert!(why.contains(says) && !why.contains("sk_live"), "{why}");
        assert!(seen.is_empty());
    }
    let gone = OrdersBy::Command(vec!["/nowhere/at/all".into()]);
    let (resolved, _) = resolve(World::new(), &gone, "4417").await;
    assert!(unreadable(&resolved).contains("cannot be started"));
}

/// A command that hangs is killed with what it started, within the provider's own time limit.
#[tokio::test]
async fn a_command_that_hangs_is_killed_with_its_children_i33() {
    let dir = TempDir::new().expect("a folder");
    let by = script(&dir, "sleep 600 & echo $! > \"$0.child\"; wait");
    let clock = Clock::scaled(20);
    let server = Server::start(|_, seen| World::new().answer(seen)).await;
    let stripe = stripe(&server.origin, &clock).resolving(Orders::new(&by, |_| None));
    let query = ResolveQuery {
        order: OrderId::parse("4417").expect("an order"),
        payment: None,
        charge: None,
    };
    let resolved = stripe.resolve(&query, &free()).await;
    assert!(
        unreadable(&resolved).contains("did not end within 10 s"),
        "{resolved:?}"
    );
    let child = std::fs::read_to_string(dir.path().join("find.child")).expect("its child");
    let child = child
        .trim()
        .parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    for _ in 0..500 {
        // A zombie is dead; who reaps it is another's business.
        let stat = std::fs::read_to_string(format!(
            "/proc/{}/stat",
            child.expect("a pid").as_raw_nonzero()
        ));
        if stat.map_or(true, |s| s.contains(") Z ")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the child lives on");
}

/// What a command leaves behind keeps no pipe of ours: its writes fail once we have stopped listening.
#[tokio::test]
async fn what_a_command_leaves_behind_is_not_listened_to_i33() {
    let dir = TempDir::new().expect("a folder");
    let by = script(
        &dir,
        r#"(trap "" PIPE; while echo x; do sleep 0.1; done 2>/dev/null; touch "$0.ended") & echo pi_1"#,
    );
    let (resolved, _) = resolve(World::new(), &by, "4417").await;
    assert!(refused(&resolved).contains("did not answer with one id"));
    for _ in 0..500 {
        if dir.path().join("find.ended").exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it is listened to for ever");
}
