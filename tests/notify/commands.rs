//! A program that is told: what it gets, and that it cannot stay.

use std::path::Path;

use rustix::process::{Pid, test_kill_process};
use samekey::config::Env;
use samekey::notify::round;

use super::{common::*, notifier, notifier_in, settled, stored};

/// `[notify]` with a shell script. The shell is the program: a script that a test has just written
/// cannot always be run itself.
fn script(w: &World, text: &str) -> String {
    let path = w.place.dir.path().join("tell.sh");
    std::fs::write(&path, text).expect("written");
    format!("command = [\"/bin/sh\", \"{}\"]", path.display())
}

#[tokio::test]
async fn a_command_gets_ids_and_nothing_of_our_environment_i30() {
    for_each_store(async |w| {
        let dir = w.place.dir.path().to_owned();
        let lines = script(&w, &format!("env > {}/$SAMEKEY_EVENT", dir.display()));
        let env = Env::fixed([
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/nowhere"),
            ("STRIPE_API_KEY", "sk_test_never_shown"),
        ]);
        let deps = notifier_in(&w, w.ledger.clone(), &lines, &env);
        let id = settled(&w, "t1", "44 $(touch x); 17").await;
        assert_eq!(round(&deps).await.expect("a round").trouble, None);
        let vars = |event: &str| {
            let text = std::fs::read_to_string(dir.join(event)).expect("it ran");
            let mut lines: Vec<String> = text
                .lines()
                // The shell's own.
                .filter(|l| !["PWD=", "SHLVL=", "_=", "OLDPWD="].iter().any(|p| l.starts_with(p)))
                .map(str::to_owned)
                .collect();
            lines.sort();
            lines
        };
        let common = [
            "HOME=/nowhere".to_owned(),
            "PATH=/usr/bin:/bin".to_owned(),
            "SAMEKEY_MODE=test".to_owned(),
            format!("SAMEKEY_OPERATION_ID={id}"),
            "SAMEKEY_ORDER_ID=44 $(touch x); 17".to_owned(),
            "SAMEKEY_SESSION_IDS=conversation".to_owned(),
            "SAMEKEY_STATUS=succeeded".to_owned(),
            "SAMEKEY_TOOL=issue_refund".to_owned(),
        ];
        let mut unknown = common.to_vec();
        unknown.extend(
            ["SAMEKEY_EVENT=unknown", "SAMEKEY_NOTICE_ID=1", "SAMEKEY_REASON=server_error"]
                .map(str::to_owned),
        );
        unknown.sort();
        assert_eq!(vars("unknown"), unknown);
        let mut resolved = common.to_vec();
        resolved.extend(
            [
                "SAMEKEY_CUSTOMER_MESSAGE=Your refund of USD 38.00 for order 44 $(touch x); 17 has been made. It can take some days to appear in your account.",
                "SAMEKEY_EVENT=resolved",
                "SAMEKEY_NOTICE_ID=2",
            ]
            .map(str::to_owned),
        );
        resolved.sort();
        assert_eq!(vars("resolved"), resolved);
    })
    .await;
}

#[tokio::test]
async fn a_command_that_does_not_end_is_killed_with_what_it_started() {
    for_each_store(async |w| {
        let pids = w.place.dir.path().join("pids");
        let text = format!(
            "sleep 1000 &\necho $$ $! > {0}.new; mv {0}.new {0}\nwait",
            pids.display()
        );
        let deps = notifier(&w, w.ledger.clone(), &script(&w, &text));
        w.unknown("t1", "4417", 3800).await;
        let running = tokio::spawn({
            let deps = deps.clone();
            async move { round(&deps).await }
        });
        while !pids.exists() {
            tokio::task::yield_now().await;
        }
        w.wait(seconds(10));
        let round = running.await.expect("no panic").expect("a round");
        assert!(round.trouble.expect("told").contains("killed"));
        assert_eq!(stored(&w).await[0].state, "pending", "again later");
        for pid in std::fs::read_to_string(&pids)
            .expect("pids")
            .split_whitespace()
        {
            let pid = Pid::from_raw(pid.parse().expect("a number")).expect("a pid");
            let gone = async {
                while is_running(pid) {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            };
            let limit = std::time::Duration::from_secs(10);
            let killed = tokio::time::timeout(limit, gone).await;
            killed.unwrap_or_else(|_| panic!("{pid:?} lives on"));
        }
    })
    .await;
}

/// Alive, and not merely waiting to be buried by whoever inherited it.
fn is_running(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let dead = stat.map_or(true, |s| s.contains(") Z ") || s.contains(") X "));
    test_kill_process(pid).is_ok() && !dead
}

#[tokio::test]
async fn a_command_that_fails_or_floods_is_bounded() {
    for_each_store(async |w| {
        let deps = notifier(&w, w.ledger.clone(), &script(&w, "echo no >&2; exit 3"));
        w.unknown("t1", "1", 3800).await;
        let failed = round(&deps).await.expect("a round").trouble.expect("told");
        assert!(failed.contains("exit status: 3"), "{failed}");
        // A megabyte that nobody reads whole, and a child that keeps the pipe.
        let flood = "head -c 1000000 /dev/zero; sleep 5 & exit 0";
        let deps = notifier(&w, w.ledger.clone(), &script(&w, flood));
        w.unknown("t2", "2", 3800).await;
        assert_eq!(round(&deps).await.expect("a round").trouble, None);
        let missing = notifier(&w, w.ledger.clone(), "command = [\"/no/such/program\"]");
        w.unknown("t3", "3", 3800).await;
        let why = round(&missing)
            .await
            .expect("a round")
            .trouble
            .expect("told");
        assert!(why.contains("cannot be started"), "{why}");
        assert!(!Path::new("/no/such/program").exists());
    })
    .await;
}
